/* observer.c: the observer in force. */
#include "engine/core/observer.h"

td_observer *_Atomic td_observer_current;

td_observer *td_observer_set(td_observer *observer) {
    return atomic_exchange_explicit(&td_observer_current, observer, memory_order_acq_rel);
}
