/* warn.h: what the engine tells a person without failing: once, in one line. */
#ifndef TD_CORE_WARN_H
#define TD_CORE_WARN_H

#include "engine/core/status.h"

/* Hand a line to whoever listens; without a listener it is lost. Callers say a thing once. */
void td_warn(const char *format, ...) TD_PRINTF(1, 2);

/* Who listens (NULL: nobody); called on the thread that warns, which may be any. */
typedef void (*td_warn_fn)(const char *line);
void td_set_warn(td_warn_fn listener);

#endif
