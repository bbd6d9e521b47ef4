/* observer.h: the one hook through which a profiler sees the engine, and the one through which the
 * engine learns which line of a script it works for. */
#ifndef TD_CORE_OBSERVER_H
#define TD_CORE_OBSERVER_H

#include "engine/core/modes.h"
#include "engine/core/tensor.h"

typedef enum td_event_kind {
    TD_EVENT_OP,       /* an operator call */
    TD_EVENT_KERNEL,   /* the device's function inside it, as the host sees it */
    TD_EVENT_BACKWARD, /* an autograd node runs; sequence is its forward call's */
    TD_EVENT_RANGE,    /* named by the user */
    TD_EVENT_ALLOC,    /* instant: bytes > 0 allocated, < 0 released; total after it */
    TD_EVENT_ACTIVITY, /* complete: what a device did by itself, with its own times */
    TD_EVENT_LOAD,     /* what a process does once: a library is loaded, a kernel made ready */
    TD_EVENT_KINDS
} td_event_kind;

struct td_value;

/* A place in a script. */
typedef struct td_origin {
    char source[60];
    int line; /* 0: not known */
} td_origin;

typedef struct td_event {
    td_event_kind kind;
    td_status status; /* at the end: how it went */
    const char *name; /* outlives the observer (operator names, interned) */
    /* What an event of another kind leaves out takes no room: one is cleared for every call. */
    union {
        struct {                         /* operators */
            const struct td_value *args; /* borrowed for the call of begin or end */
            td_tensor *const *results;   /* at the end; NULL entries are possible */
            int nargs, nresults;
        };
        struct {
            int64_t bytes, total; /* of memory */
        };
        struct {                      /* complete events */
            int64_t start_ns, end_ns; /* by the monotonic clock */
            uint64_t correlation;     /* joins an activity to the call that started it; 0: none */
        };
    };
    uint64_t sequence;       /* autograd sequence number, 0: none; of operators known at the end */
    const td_origin *origin; /* the line that an operator works for, or whose call a backward node
                                is of; borrowed for the call of begin or end; NULL: not known */
    td_stream track;         /* where it runs: device and stream */
} td_event;

typedef struct td_observer {
    void *ctx;
    uint32_t kinds; /* bit per td_event_kind that it wants */
    /* Where the calling thread's script is now, cheaply enough to be asked of every operator:
     * events say which line they work for, and nodes made now will know it. NULL: nobody asks. */
    void (*origin)(void *ctx, td_origin *origin);
    /* Called on the thread that works, from inside the engine: must not call operators, must
     * not block. Begin and end nest on each thread; end follows begin whatever happens, with the
     * same event filled up. */
    void (*begin)(void *ctx, const td_event *event);
    void (*end)(void *ctx, const td_event *event);
    void (*instant)(void *ctx, const td_event *event);
    void (*complete)(void *ctx, const td_event *event);
} td_observer;

/* The observer of this thread's work, NULL when none: one load and one branch in the hot path. A
 * new thread has none; the parts of a parallel loop have that of the thread that called it, and a
 * Lua state puts its own in force when it enters the engine. It must stay valid until it has been
 * replaced and every call begun under it has ended. */
extern TD_THREAD_STATE td_observer *td_observer_current;
static inline td_observer *td_observer_get(td_event_kind kind) {
    td_observer *o = td_observer_current;
    return TD_UNLIKELY(o != NULL) && (o->kinds >> kind & 1) ? o : NULL;
}
/* Returns this thread's former one. */
td_observer *td_observer_set(td_observer *observer);

/* What a process does once, and a profile must not take for the work of who came first. */
typedef struct td_loading {
    td_observer *observer;
    td_event event;
    int64_t began_ns, before_ns;
} td_loading;
/* Bracket it; the name outlives the observer. Nests. */
void td_loading_begin(td_loading *loading, const char *name);
void td_loading_end(td_loading *loading);
/* Nanoseconds that the process has spent so. */
int64_t td_loading_ns(void);
/* Whoever tells times without a recording adds 1 while it does, and takes it away again. */
void td_loading_watch(int by);
/* Does somebody tell times, here or by an observer of loading? What can be done apart from the work
 * that it is for is then done apart, such as touching memory that came from the system. */
bool td_loading_is_watched(void);

/* What this thread works for, while an observer wants to know: set around the outermost operator
 * and around each backward node. NULL: nobody asked. */
extern _Thread_local const td_origin *td_origin_in_force;
static inline const td_origin *td_origin_known(void) {
    const td_origin *origin = td_origin_in_force;
    return TD_UNLIKELY(origin != NULL) && origin->line ? origin : NULL;
}

/* Who tells the line for the nodes of a graph where no observer asks, under the mode `anomaly`; the
 * thread's. */
typedef struct td_origin_finder {
    void (*find)(void *ctx, td_origin *origin);
    void *ctx;
} td_origin_finder;
extern _Thread_local td_origin_finder td_origin_finder_current;

#endif
