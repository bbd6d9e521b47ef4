/* timed.c: times of what functions do on their streams, by an event before and one behind: of whole
 * functions, with whatever the stream waits for between their kernels. Used where CUPTI is not.
 */
#include "engine/cuda/runtime/activity.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PAIRS = 4096 }; /* that may be under way */

typedef struct td_cuda_pair {
    cudaEvent_t before, after; /* made at first use, and kept */
    int device;                /* on which they were made */
    bool open, forgotten;
    td_activity activity;
} pair;

/* An event that has come, and what the host's clock said before: its times are rather too early, by
 * as much as an event takes to come, than behind the end of a recording. */
typedef struct anchor {
    cudaEvent_t event;
    uint64_t ns; /* 0: none was set yet */
} anchor;

static atomic_bool timing; /* somebody wants times */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pair pairs[PAIRS];
static unsigned int given, done; /* pairs [done, given) are under way, in a ring */
static int64_t untimed;
static anchor anchors[TD_CUDA_DEVICES];
static _Thread_local pair *timed_here; /* the innermost that this thread has open */

/* ---- clocks ---- */

/* With the device current: waits for the stream's work, and then for as little as can be. */
static bool set_anchor(int device, cudaStream_t stream) {
    enum { TRIES = 3 };
    anchor *a = &anchors[device];
    uint64_t least = UINT64_MAX;
    if (a->ns)
        return true;
    cudaEvent_t event = NULL;
    for (int k = 0; k < TRIES && cudaStreamSynchronize(stream) == cudaSuccess; k++) {
        if (!event && cudaEventCreateWithFlags(&event, cudaEventDefault) != cudaSuccess)
            break;
        uint64_t before = td_cuda_clock();
        if (cudaEventRecord(event, stream) != cudaSuccess ||
            cudaEventSynchronize(event) != cudaSuccess)
            break;
        uint64_t took = td_cuda_clock() - before;
        if (took >= least)
            continue;
        cudaEvent_t other = a->event;
        least = took;
        *a = (anchor){event, before};
        event = other;
    }
    if (event)
        (void)cudaEventDestroy(event);
    return a->ns != 0;
}

static bool time_of(const pair *p, cudaEvent_t event, uint64_t *ns) {
    float ms = 0;
    if (cudaEventElapsedTime(&ms, anchors[p->device].event, event) != cudaSuccess)
        return false;
    *ns = anchors[p->device].ns + (uint64_t)(int64_t)((double)ms * 1e6);
    return true;
}

/* ---- pairs ---- */

static bool make_events(pair *p, int device) {
    if (p->before && p->device != device) {
        (void)cudaEventDestroy(p->before);
        (void)cudaEventDestroy(p->after);
        p->before = p->after = NULL;
    }
    p->device = device;
    if (p->before)
        return true;
    if (cudaEventCreateWithFlags(&p->before, cudaEventDefault) != cudaSuccess)
        return false;
    if (cudaEventCreateWithFlags(&p->after, cudaEventDefault) == cudaSuccess)
        return true;
    (void)cudaEventDestroy(p->before);
    p->before = NULL;
    return false;
}

/* Nothing begins before it was asked for. */
static void keep(pair *p) {
    td_activity *a = &p->activity;
    if (!time_of(p, p->before, &a->start_ns) || !time_of(p, p->after, &a->end_ns))
        return;
    a->start_ns = a->start_ns > a->launch_ns ? a->start_ns : a->launch_ns;
    a->end_ns = a->end_ns > a->start_ns ? a->end_ns : a->start_ns + 1;
    td_cuda_keep_activity(a);
}

/* With the lock held: keep the oldest pairs as far as their work is done. */
static void drain(bool all) {
    if (td_cuda_records_anything())
        return;
    for (; done != given; done++) {
        pair *p = &pairs[done % PAIRS];
        if (p->open)
            break;
        if (p->forgotten)
            continue;
        cudaError_t reached = all ? cudaEventSynchronize(p->after) : cudaEventQuery(p->after);
        if (reached == cudaErrorNotReady)
            break;
        if (reached == cudaSuccess)
            keep(p);
    }
    (void)cudaGetLastError();
}

void td_cuda_timing_drain(bool all) {
    pthread_mutex_lock(&lock);
    drain(all);
    pthread_mutex_unlock(&lock);
}

void td_cuda_timing_begin(void) {
    pthread_mutex_lock(&lock);
    untimed = 0;
    for (int d = 0; d < TD_CUDA_DEVICES; d++)
        anchors[d].ns = 0;
    pthread_mutex_unlock(&lock);
    atomic_store(&timing, true);
}

/* What a thread has open meanwhile stays in place, since it is written when it ends. */
void td_cuda_timing_end(void) {
    atomic_store(&timing, false);
    pthread_mutex_lock(&lock);
    for (unsigned int k = done; k != given; k++)
        pairs[k % PAIRS].forgotten = true;
    while (done != given && !pairs[done % PAIRS].open)
        done++;
    pthread_mutex_unlock(&lock);
}

int64_t td_cuda_timing_lost(void) {
    pthread_mutex_lock(&lock);
    int64_t n = untimed;
    untimed = 0;
    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- work ---- */

/* With the lock held and the device current. */
static pair *take_pair(td_stream stream, cudaStream_t s) {
    if (given - done == PAIRS)
        drain(false);
    pair *p = &pairs[given % PAIRS];
    if (given - done == PAIRS || !make_events(p, stream.device.index) ||
        !set_anchor(stream.device.index, s) || cudaEventRecord(p->before, s) != cudaSuccess) {
        (void)cudaGetLastError();
        untimed++;
        return NULL;
    }
    given++;
    p->open = true;
    p->forgotten = false;
    p->activity =
        (td_activity){.thread = td_cuda_thread(), .track = stream, .launch_ns = td_cuda_clock()};
    return p;
}

void td_cuda_timed_open(td_cuda_timed *t, td_stream stream) {
    cudaStream_t s;
    t->pair = NULL;
    if (td_cuda_records_anything() || timed_here || td_cuda_enter(stream, &s) != TD_OK)
        return;
    pthread_mutex_lock(&lock);
    t->pair = timed_here = take_pair(stream, s);
    pthread_mutex_unlock(&lock);
}

void td_cuda_timed_close(td_cuda_timed *t, td_activity_kind kind, const char *name, int64_t bytes) {
    cudaStream_t s;
    pair *p = t->pair;
    if (!p)
        return;
    if (timed_here == p)
        timed_here = NULL;
    pthread_mutex_lock(&lock);
    p->activity.kind = kind;
    p->activity.name = name;
    p->activity.bytes = bytes;
    p->forgotten |= td_cuda_enter(p->activity.track, &s) != TD_OK ||
                    cudaEventRecord(p->after, s) != cudaSuccess;
    p->open = false;
    pthread_mutex_unlock(&lock);
}

void td_cuda_timed_forget(void) {
    if (!timed_here)
        return;
    pthread_mutex_lock(&lock);
    timed_here->forgotten = true;
    pthread_mutex_unlock(&lock);
    timed_here = NULL;
}

/* ---- the functions of the table ---- */

static td_backend plain;

bool td_cuda_is_timing(void) {
    return atomic_load_explicit(&timing, memory_order_acquire);
}

#define TIMED(function, plan, ntensors, nwritten)                                                  \
    static td_status time_##function(const struct plan *given_plan) {                              \
        td_cuda_timed t;                                                                           \
        if (TD_LIKELY(!td_cuda_is_timing()))                                                       \
            return plain.function(given_plan);                                                     \
        td_cuda_timed_open(&t, given_plan->stream);                                                \
        td_status status = plain.function(given_plan);                                             \
        td_cuda_timed_close(&t, TD_ACTIVITY_KERNEL, #function, 0);                                 \
        return status;                                                                             \
    }
TD_BACKEND_WORK(TIMED)
TIMED(recurrent, td_recurrent_plan, , )
TIMED(recurrent_backward, td_recurrent_backward_plan, , )
#undef TIMED

static td_status time_copy(td_stream stream, void *dst, const void *src, size_t bytes) {
    td_cuda_timed t;
    if (!td_cuda_is_timing())
        return plain.copy(stream, dst, src, bytes);
    td_cuda_timed_open(&t, stream);
    td_status status = plain.copy(stream, dst, src, bytes);
    td_cuda_timed_close(&t, TD_ACTIVITY_COPY, "copy on device", (int64_t)bytes);
    return status;
}

static td_status time_upload(td_stream stream, void *dst, const void *host, size_t bytes) {
    td_cuda_timed t;
    if (!td_cuda_is_timing())
        return plain.upload(stream, dst, host, bytes);
    td_cuda_timed_open(&t, stream);
    td_status status = plain.upload(stream, dst, host, bytes);
    td_cuda_timed_close(&t, TD_ACTIVITY_COPY, "copy to device", (int64_t)bytes);
    return status;
}

static td_status time_download(td_stream stream, void *host, const void *src, size_t bytes) {
    td_cuda_timed t;
    if (!td_cuda_is_timing())
        return plain.download(stream, host, src, bytes);
    td_cuda_timed_open(&t, stream);
    td_status status = plain.download(stream, host, src, bytes);
    td_cuda_timed_close(&t, TD_ACTIVITY_COPY, "copy to host", (int64_t)bytes);
    return status;
}

void td_cuda_time_functions(td_backend *backend) {
    plain = *backend;
#define TIMED(function, plan, ntensors, nwritten) backend->function = time_##function;
    TD_BACKEND_WORK(TIMED)
    TIMED(recurrent, , , )
    TIMED(recurrent_backward, , , )
#undef TIMED
    backend->copy = time_copy;
    backend->upload = time_upload;
    backend->download = time_download;
}
