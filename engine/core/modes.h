/* modes.h: how this thread wants operators to run. */
#ifndef TD_CORE_MODES_H
#define TD_CORE_MODES_H

#include <stdbool.h>

/* All modes of a thread: saved and restored as one value. Zero is what a new thread has. */
typedef struct td_modes {
    bool grad_disabled; /* operators are not recorded for backward */
} td_modes;

td_modes td_get_modes(void);
td_modes td_set_modes(td_modes modes); /* returns the former ones */

/* Are operators recorded for backward? On in a new thread. */
bool td_grad_enabled(void);
bool td_set_grad_enabled(bool enabled); /* returns the former state */

/* Should results be the same for every number of threads, though that takes longer? Of the whole
 * process; off at the start. */
bool td_deterministic(void);
void td_set_deterministic(bool on);

#endif
