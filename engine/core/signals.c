/* signals.c: the signal mask of a thread. */
#include "engine/core/signals.h"

#include <stddef.h>

void td_signals_hold(sigset_t *before) {
    static const int raised[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t held;
    sigfillset(&held);
    for (size_t k = 0; k < sizeof raised / sizeof *raised; k++)
        sigdelset(&held, raised[k]);
    pthread_sigmask(SIG_SETMASK, &held, before);
}

void td_signals_release(const sigset_t *before) {
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
