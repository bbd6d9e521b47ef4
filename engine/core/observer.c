/* observer.c: the observers in force, and who knows the line of the script. */
#include "engine/core/observer.h"

TD_THREAD_STATE td_observer *td_observer_current;
td_origin_fn _Atomic td_origin_current;

td_observer *td_observer_set(td_observer *observer) {
    td_observer *before = td_observer_current;
    td_observer_current = observer;
    return before;
}

td_origin td_origin_get(void) {
    td_origin origin = {.line = 0};
    td_origin_fn fn = atomic_load_explicit(&td_origin_current, memory_order_acquire);
    if (fn)
        fn(&origin);
    return origin;
}
