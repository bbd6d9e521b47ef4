/* observer.c: this thread's observer, who finds its line of the script, and the time that the
 * process has spent on loading. */
#include "engine/core/observer.h"

#include <time.h>

TD_THREAD_STATE td_observer *td_observer_current;
_Thread_local const td_origin *td_origin_in_force;
_Thread_local td_origin_finder td_origin_finder_current;

td_observer *td_observer_set(td_observer *observer) {
    td_observer *before = td_observer_current;
    td_observer_current = observer;
    return before;
}

/* ---- loading ---- */

static _Atomic int64_t loading_ns;

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void td_loading_begin(td_loading *l, const char *name) {
    *l = (td_loading){.observer = td_observer_get(TD_EVENT_LOAD),
                      .event = {.kind = TD_EVENT_LOAD, .name = name},
                      .began_ns = now_ns(),
                      .before_ns = atomic_load(&loading_ns)};
    if (l->observer)
        l->observer->begin(l->observer->ctx, &l->event);
}

void td_loading_end(td_loading *l) {
    if (l->observer)
        l->observer->end(l->observer->ctx, &l->event);
    /* what was loaded inside is of the same time */
    atomic_store(&loading_ns, l->before_ns + now_ns() - l->began_ns);
}

int64_t td_loading_ns(void) {
    return atomic_load(&loading_ns);
}

static atomic_int watches;

void td_loading_watch(int by) {
    atomic_fetch_add(&watches, by);
}

bool td_loading_is_watched(void) {
    return td_observer_get(TD_EVENT_LOAD) ||
           atomic_load_explicit(&watches, memory_order_relaxed) > 0;
}
