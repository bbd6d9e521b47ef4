/* context.c: CUDA's devices, their streams, and errors that come late. */
#include "engine/cuda/cuda.h"

#include "engine/core/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    TICKETS = 1024 /* calls whose findings may be waited for at once */
};

/* A call that may have found something. */
typedef struct ticket {
    td_status code;
    const char *format;
} ticket;

typedef struct stream_state {
    bool there;     /* made by the user, or 0 */
    bool recording; /* a graph */
    cudaStream_t stream;
    td_cu_findings *findings;
    unsigned int given, seen; /* tickets: the newest, and the newest that a wait has covered */
    ticket tickets[TICKETS];
} stream_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static stream_state *streams[TD_CUDA_DEVICES][TD_CUDA_STREAMS];
static char absence[200];
static atomic_int recordings; /* of graphs, that go on */
static _Thread_local int current = -1;

/* ---- devices ---- */

static int ask_count(void) {
    int n = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaSuccess && n > 0)
        return n < TD_CUDA_DEVICES ? n : TD_CUDA_DEVICES;
    snprintf(absence, sizeof absence, "%s",
             error == cudaSuccess ? "the driver knows no device" : cudaGetErrorString(error));
    (void)cudaGetLastError();
    return 0;
}

int td_cuda_count(void) {
    static atomic_int known = -1;
    int n = atomic_load(&known);
    if (n < 0) {
        pthread_mutex_lock(&lock);
        n = atomic_load(&known);
        if (n < 0)
            atomic_store(&known, n = ask_count());
        pthread_mutex_unlock(&lock);
    }
    return n;
}

const char *td_cuda_absence(void) {
    return td_cuda_count() > 0 ? NULL : absence;
}

/* Errors after which the runtime answers nothing else until the process ends. */
static bool is_lasting(cudaError_t error) {
    return error == cudaErrorIllegalAddress || error == cudaErrorAssert ||
           error == cudaErrorLaunchFailure || error == cudaErrorLaunchTimeout ||
           error == cudaErrorMisalignedAddress || error == cudaErrorInvalidAddressSpace ||
           error == cudaErrorInvalidPc || error == cudaErrorHardwareStackError ||
           error == cudaErrorIllegalInstruction || error == cudaErrorECCUncorrectable;
}

td_status td_cuda_status(cudaError_t error, const char *doing) {
    if (error == cudaSuccess)
        return TD_OK;
    (void)cudaGetLastError();
    if (error == cudaErrorMemoryAllocation)
        return td_fail(TD_ENOMEM, "out of memory on the device, %s", doing);
    return td_fail(TD_EDEVICE, "CUDA: %s, %s%s", cudaGetErrorString(error), doing,
                   is_lasting(error) ? "; the device can't be used again in this process (save and "
                                       "restart), work on the CPU goes on"
                                     : "");
}

static td_status make_current(int index) {
    if (current == index)
        return TD_OK;
    td_status status = td_cuda_status(cudaSetDevice(index), "choosing a device");
    current = status == TD_OK ? index : -1;
    return status;
}

/* ---- streams ---- */

static td_status make_stream(td_stream stream, int priority, stream_state **out) {
    static const char doing[] = "making a stream";
    stream_state *s = td_calloc(1, sizeof *s);
    if (!s)
        return td_fail(TD_ENOMEM, "out of memory, %s", doing);
    td_status status = td_cuda_status(
        cudaStreamCreateWithPriority(&s->stream, cudaStreamNonBlocking, priority), doing);
    if (status == TD_OK)
        status = td_cuda_status(
            cudaHostAlloc((void **)&s->findings, sizeof *s->findings, cudaHostAllocDefault), doing);
    if (status != TD_OK) {
        if (s->stream)
            (void)cudaStreamDestroy(s->stream);
        td_free(s);
        return status;
    }
    memset(s->findings, 0, sizeof *s->findings);
    s->there = true;
    __atomic_store_n(&streams[stream.device.index][stream.id], s, __ATOMIC_RELEASE);
    *out = s;
    return TD_OK;
}

/* With its device made current. */
static td_status state_of(td_stream stream, stream_state **out) {
    if (stream.device.index >= TD_CUDA_DEVICES || stream.id >= TD_CUDA_STREAMS)
        return td_fail(TD_EDEVICE, "CUDA: no stream %d of device %d", stream.id,
                       stream.device.index);
    td_status status = make_current(stream.device.index);
    stream_state **at = &streams[stream.device.index][stream.id];
    *out = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (status != TD_OK || TD_LIKELY(*out != NULL))
        return status;
    if (stream.id != 0)
        return td_fail(TD_EDEVICE, "CUDA: there is no stream %d", stream.id);
    pthread_mutex_lock(&lock);
    *out = *at;
    if (!*out)
        status = make_stream(stream, 0, out);
    pthread_mutex_unlock(&lock);
    return status;
}

td_status td_cuda_enter(td_stream stream, cudaStream_t *out) {
    stream_state *s = NULL;
    td_status status = state_of(stream, &s);
    *out = status == TD_OK ? s->stream : NULL;
    return status;
}

cudaStream_t td_cuda_known_stream(td_stream stream) {
    const stream_state *s =
        __atomic_load_n(&streams[stream.device.index][stream.id], __ATOMIC_ACQUIRE);
    return s ? s->stream : NULL;
}

td_status td_cuda_stream_new(int index, bool urgent, uint16_t *id) {
    td_status status = make_current(index);
    int least = 0, greatest = 0;
    if (status != TD_OK)
        return status;
    (void)cudaDeviceGetStreamPriorityRange(&least, &greatest);
    pthread_mutex_lock(&lock);
    int k = 1;
    while (k < TD_CUDA_STREAMS && streams[index][k] && streams[index][k]->there)
        k++;
    if (k == TD_CUDA_STREAMS) {
        status = td_fail(TD_EVALUE, "more than %d streams at once", TD_CUDA_STREAMS - 1);
    } else if (streams[index][k]) { /* one that was given back */
        streams[index][k]->there = true;
    } else {
        stream_state *unused;
        status = make_stream((td_stream){{TD_CUDA, (uint8_t)index}, (uint16_t)k},
                             urgent ? greatest : least, &unused);
    }
    pthread_mutex_unlock(&lock);
    *id = (uint16_t)k;
    return status;
}

/* Its state stays, since tensors may bear its number; the next who wants a stream takes it over. */
void td_cuda_stream_free(td_stream stream) {
    pthread_mutex_lock(&lock);
    stream_state *s = streams[stream.device.index][stream.id];
    if (s)
        s->there = false;
    pthread_mutex_unlock(&lock);
}

void td_cuda_set_recording(td_stream stream, bool recording) {
    stream_state *s = streams[stream.device.index][stream.id];
    if (s->recording != recording)
        atomic_fetch_add(&recordings, recording ? 1 : -1);
    s->recording = recording;
}

bool td_cuda_records_anything(void) {
    return atomic_load(&recordings) > 0;
}

bool td_cuda_is_recording(td_stream stream) {
    const stream_state *s = streams[stream.device.index][stream.id];
    return s && s->recording;
}

/* ---- findings ---- */

static td_status tell(stream_state *s) {
    td_cu_findings found = *(volatile td_cu_findings *)s->findings;
    s->seen = s->given;
    if (!found.ticket)
        return TD_OK;
    memset(s->findings, 0, sizeof *s->findings);
    const ticket *t = &s->tickets[found.ticket % TICKETS];
    if (!strstr(t->format, "%lld"))
        return td_fail(t->code, "%s", t->format);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    return td_fail(t->code, t->format, found.a, found.b);
#pragma GCC diagnostic pop
}

static td_status wait_for(stream_state *s) {
    td_status status =
        td_cuda_status(cudaStreamSynchronize(s->stream), "waiting for the work of a stream");
    return status == TD_OK ? tell(s) : status;
}

td_status td_cuda_synchronize(td_stream stream) {
    stream_state *s = NULL;
    td_status status = state_of(stream, &s);
    return status == TD_OK ? wait_for(s) : status;
}

td_status td_cuda_findings(td_stream stream) {
    stream_state *s = NULL;
    td_status status = state_of(stream, &s);
    return status == TD_OK ? tell(s) : status;
}

td_status td_cuda_report(td_stream stream, td_status code, const char *format, td_cu_report *out) {
    stream_state *s = NULL;
    td_status status = state_of(stream, &s);
    if (status == TD_OK && s->given - s->seen >= TICKETS - 1)
        status = wait_for(s);
    if (status != TD_OK)
        return status;
    unsigned int number = __atomic_add_fetch(&s->given, 1, __ATOMIC_RELAXED);
    if (number == 0) /* which says that nothing was found */
        number = __atomic_add_fetch(&s->given, 1, __ATOMIC_RELAXED);
    s->tickets[number % TICKETS] = (ticket){code, format};
    *out = (td_cu_report){s->findings, number};
    return TD_OK;
}
