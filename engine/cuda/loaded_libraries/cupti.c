/* cupti.c: the table of CUPTI's calls, in a module of its own. Records are read through the oldest
 * structs that have what is wanted: newer ones go on behind them.
 */
#include "engine/cuda/loaded_libraries/cupti.h"

#include <cupti.h>

enum { BUFFER = 1 << 20 };

static td_cupti_host host;
static CUpti_SubscriberHandle subscriber;

static const CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,  CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
    CUPTI_ACTIVITY_KIND_MEMCPY,  CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- records ---- */

static const char *copy_name(int kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOA:
        return "copy to device";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
    case CUPTI_ACTIVITY_MEMCPY_KIND_ATOH:
        return "copy to host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOH:
        return "copy on host";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
        return "copy between devices";
    default:
        return "copy on device";
    }
}

static void take_call(const CUpti_Activity *any) {
    const CUpti_ActivityAPI *a = (const CUpti_ActivityAPI *)any;
    host.take(&(td_cupti_record){.kind = TD_CUPTI_CALL,
                                 .number = a->correlationId,
                                 .thread = a->threadId,
                                 .start = a->start,
                                 .end = a->end});
}

/* What a device did has these, whatever it was. */
#define TAKE_WORK(a, what, ...)                                                                    \
    host.take(&(td_cupti_record){.kind = (what),                                                   \
                                 .number = (a)->correlationId,                                     \
                                 .device = (a)->deviceId,                                          \
                                 .stream = (a)->streamId,                                          \
                                 .start = (a)->start,                                              \
                                 .end = (a)->end,                                                  \
                                 __VA_ARGS__})

static void take_kernel(const CUpti_Activity *any) {
    const CUpti_ActivityKernel4 *a = (const CUpti_ActivityKernel4 *)any;
    TAKE_WORK(a, TD_CUPTI_KERNEL, .name = a->name ? a->name : "kernel");
}

static void take_copy(const CUpti_Activity *any) {
    const CUpti_ActivityMemcpy *a = (const CUpti_ActivityMemcpy *)any;
    TAKE_WORK(a, TD_CUPTI_COPY, .bytes = a->bytes, .name = copy_name(a->copyKind));
}

static void take_peer_copy(const CUpti_Activity *any) {
    const CUpti_ActivityMemcpyPtoP *a = (const CUpti_ActivityMemcpyPtoP *)any;
    TAKE_WORK(a, TD_CUPTI_COPY, .bytes = a->bytes, .name = "copy between devices");
}

static void take_set(const CUpti_Activity *any) {
    const CUpti_ActivityMemset *a = (const CUpti_ActivityMemset *)any;
    TAKE_WORK(a, TD_CUPTI_SET, .bytes = a->bytes, .name = "set memory");
}

static void take_record(const CUpti_Activity *a) {
    if (a->kind == CUPTI_ACTIVITY_KIND_RUNTIME || a->kind == CUPTI_ACTIVITY_KIND_DRIVER)
        take_call(a);
    else if (a->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL ||
             a->kind == CUPTI_ACTIVITY_KIND_KERNEL)
        take_kernel(a);
    else if (a->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        take_copy(a);
    else if (a->kind == CUPTI_ACTIVITY_KIND_MEMCPY2)
        take_peer_copy(a);
    else if (a->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        take_set(a);
}

/* ---- buffers ---- */

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = host.allocate(BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most = 0; /* as many as fit */
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid) {
    CUpti_Activity *at = NULL;
    (void)context;
    (void)stream;
    (void)size;
    while (valid && cuptiActivityGetNextRecord(buffer, valid, &at) == CUPTI_SUCCESS)
        take_record(at);
    host.release(buffer);
}

/* ---- the table ---- */

static const char *text_of(CUptiResult result) {
    const char *text = NULL;
    if (result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES)
        return "this user may not profile (the driver's NVreg_RestrictProfilingToAdminUsers)";
    if (result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ||
        result == CUPTI_ERROR_MAX_LIMIT_REACHED)
        return "another profiler is attached";
    return cuptiGetResultString(result, &text) == CUPTI_SUCCESS && text ? text : "it fails";
}

static void disable(int n) {
    while (n-- > 0)
        (void)cuptiActivityDisable(kinds[n]);
    (void)cuptiUnsubscribe(subscriber);
    subscriber = NULL;
}

/* Nothing is called back but with buffers; whoever has subscribed is the only one. */
static void CUPTIAPI called_back(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *facts) {
    (void)data;
    (void)domain;
    (void)id;
    (void)facts;
}

static const char *begin(const td_cupti_host *given) {
    int n = 0;
    CUptiResult result = cuptiSubscribe(&subscriber, called_back, NULL);
    if (result != CUPTI_SUCCESS)
        return text_of(result);
    host = *given;
    (void)cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
    result = cuptiActivityRegisterCallbacks(give_buffer, take_buffer);
    while (result == CUPTI_SUCCESS && n < KINDS)
        if ((result = cuptiActivityEnable(kinds[n])) == CUPTI_SUCCESS)
            n++;
    if (result == CUPTI_SUCCESS)
        return NULL;
    disable(n);
    return text_of(result);
}

static uint64_t now(void) {
    uint64_t ns = 0;
    (void)cuptiGetTimestamp(&ns);
    return ns;
}

static void flush(void) {
    (void)cuptiActivityFlushAll(0);
}

/* Buffers come back, whatever is not done yet. */
static void end(void) {
    disable(KINDS);
    (void)cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}

static uint32_t stream_number(cudaStream_t stream) {
    uint32_t number = UINT32_MAX;
    (void)cuptiGetStreamIdEx(NULL, stream, 0, &number);
    return number;
}

extern const td_late_cupti td_late_cupti_calls;
const td_late_cupti td_late_cupti_calls = {
    .begin = begin, .now = now, .flush = flush, .end = end, .stream_number = stream_number};
