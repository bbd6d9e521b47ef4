/* observer.c: the observer in force, and who knows the line of the script. */
#include "engine/core/observer.h"

td_observer *_Atomic td_observer_current;
td_origin_fn _Atomic td_origin_current;
_Thread_local const td_origin *td_origin_in_force;

td_observer *td_observer_set(td_observer *observer) {
    return atomic_exchange_explicit(&td_observer_current, observer, memory_order_acq_rel);
}

td_origin td_origin_get(void) {
    td_origin origin = {.line = 0};
    td_origin_fn fn = atomic_load_explicit(&td_origin_current, memory_order_acquire);
    if (fn)
        fn(&origin);
    return origin;
}
