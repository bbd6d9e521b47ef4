/* signals.h: threads, and stretches of code, that no signal handler runs on. */
#ifndef TD_CORE_SIGNALS_H
#define TD_CORE_SIGNALS_H

#include <signal.h>

/* Keep signals from this thread, but those that an instruction raises, until td_signals_release is
 * given the mask that was there before. A signal for the process goes to another thread, or waits.
 */
void td_signals_hold(sigset_t *before);
void td_signals_release(const sigset_t *before);

#endif
