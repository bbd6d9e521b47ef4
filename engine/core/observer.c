/* observer.c: the observers in force, and who knows the line of the script. */
#include "engine/core/observer.h"

TD_THREAD_STATE td_observer *td_observer_current;
_Thread_local const td_origin *td_origin_in_force;
_Thread_local td_origin_finder td_origin_finder_current;

td_observer *td_observer_set(td_observer *observer) {
    td_observer *before = td_observer_current;
    td_observer_current = observer;
    return before;
}
