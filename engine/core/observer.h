/* observer.h: the one hook through which a profiler sees the engine. */
#ifndef TD_CORE_OBSERVER_H
#define TD_CORE_OBSERVER_H

#include "engine/core/tensor.h"

typedef enum td_event_kind {
    TD_EVENT_OP,       /* an operator call; args and nargs are set */
    TD_EVENT_KERNEL,   /* the device kernel inside it */
    TD_EVENT_BACKWARD, /* an autograd node runs; sequence is its forward call's */
    TD_EVENT_RANGE,    /* named by the user */
    TD_EVENT_ALLOC,    /* instant: bytes > 0 allocated, < 0 released; total after it */
    TD_EVENT_KINDS
} td_event_kind;

struct td_value;

typedef struct td_event {
    td_event_kind kind;
    const char *name;            /* outlives the observer (operator names, interned) */
    const struct td_value *args; /* borrowed for the call of begin */
    int nargs;
    uint64_t sequence; /* autograd sequence number, 0: none */
    td_device device;
    int64_t bytes, total;
} td_event;

typedef struct td_observer {
    void *ctx;
    uint32_t kinds; /* bit per td_event_kind that it wants */
    /* Called on the thread that works, from inside the engine: must not call operators, must
     * not block. Begin and end nest on each thread; end follows begin whatever happens. */
    void (*begin)(void *ctx, const td_event *event);
    void (*end)(void *ctx, td_event_kind kind);
    void (*instant)(void *ctx, const td_event *event);
} td_observer;

/* The observer in force, NULL when none: one load and one branch in the hot path. It may be
 * replaced while others work; the old one must stay valid until td_observer_set returns and every
 * call begun under it has ended. */
extern td_observer *_Atomic td_observer_current;
static inline td_observer *td_observer_get(td_event_kind kind) {
    td_observer *o = atomic_load_explicit(&td_observer_current, memory_order_acquire);
    return TD_UNLIKELY(o != NULL) && (o->kinds >> kind & 1) ? o : NULL;
}
/* Returns the former one. */
td_observer *td_observer_set(td_observer *observer);

#endif
