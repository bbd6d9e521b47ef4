/* modes.h: how this thread wants operators to run. */
#ifndef TD_CORE_MODES_H
#define TD_CORE_MODES_H

#include <stdbool.h>

/* Are operators recorded for backward? On in a new thread. */
bool td_grad_enabled(void);
bool td_set_grad_enabled(bool enabled); /* returns the former state */

#endif
