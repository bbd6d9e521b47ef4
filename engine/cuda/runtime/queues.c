/* queues.c: streams, events, pinned memory and recorded work, as the user sees them. */
#include "engine/core/queues.h"

#include "engine/core/memory.h"
#include "engine/cuda/cuda.h"
#include "engine/cuda/runtime/activity.h"

#include <stdio.h>

/* ---- devices ---- */

static td_status properties(int index, td_device_properties *out) {
    struct cudaDeviceProp facts;
    td_status status =
        td_cuda_status(cudaGetDeviceProperties(&facts, index), "asking what a device is");
    if (status != TD_OK)
        return status;
    *out = (td_device_properties){.major = facts.major,
                                  .minor = facts.minor,
                                  .processors = facts.multiProcessorCount,
                                  .total_bytes = (int64_t)facts.totalGlobalMem,
                                  .cache_bytes = facts.l2CacheSize,
                                  .warp_size = facts.warpSize,
                                  .threads_per_processor = facts.maxThreadsPerMultiProcessor};
    snprintf(out->name, sizeof out->name, "%.127s", facts.name);
    return TD_OK;
}

static td_stream first_stream(int index) {
    return (td_stream){{TD_CUDA, (uint8_t)index}, 0};
}

static td_status memory(int index, int64_t *free_bytes, int64_t *total_bytes) {
    size_t left = 0, all = 0;
    cudaStream_t unused;
    td_status status = td_cuda_enter(first_stream(index), &unused);
    if (status == TD_OK)
        status = td_cuda_status(cudaMemGetInfo(&left, &all), "asking for free memory");
    *free_bytes = (int64_t)left;
    *total_bytes = (int64_t)all;
    return status;
}

/* ---- streams ---- */

static td_status stream_query(td_stream stream, bool *idle) {
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    if (status != TD_OK)
        return status;
    cudaError_t answer = cudaStreamQuery(s);
    *idle = answer == cudaSuccess;
    return answer == cudaErrorNotReady ? TD_OK : td_cuda_status(answer, "asking for a stream");
}

static td_status stream_handle(td_stream stream, void **out) {
    cudaStream_t s = NULL;
    td_status status = td_cuda_enter(stream, &s);
    *out = s;
    return status;
}

static td_status stream_use(td_stream stream, const td_tensor *x) {
    cudaStream_t unused;
    td_status status = td_cuda_enter(stream, &unused);
    if (status == TD_OK && td_cuda_is_recording(stream))
        return td_fail(TD_EVALUE, "what other processes take part in can't be recorded in a graph");
    if (status == TD_OK)
        status = td_cuda_use_memory(stream, x->data);
    if (status == TD_OK)
        td_cuda_use(stream, x);
    return status;
}

/* ---- events ---- */

struct td_event {
    cudaEvent_t event;
    int device;
};

static td_status enter(int device) {
    cudaStream_t unused;
    return td_cuda_enter(first_stream(device), &unused);
}

static td_status event_new(int index, bool timed, td_event **out) {
    td_event *e = td_calloc(1, sizeof *e);
    td_status status = e ? enter(index) : td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK)
        status = td_cuda_status(
            cudaEventCreateWithFlags(&e->event, timed ? cudaEventDefault : cudaEventDisableTiming),
            "making an event");
    if (status != TD_OK) {
        td_free(e);
        return status;
    }
    e->device = index;
    *out = e;
    return TD_OK;
}

static void event_free(td_event *e) {
    if (e)
        (void)cudaEventDestroy(e->event);
    td_free(e);
}

static td_status event_record(td_event *e, td_stream stream) {
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    return status == TD_OK ? td_cuda_status(cudaEventRecord(e->event, s), "recording an event")
                           : status;
}

static td_status event_wait(td_event *e, td_stream stream) {
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    return status == TD_OK
               ? td_cuda_status(cudaStreamWaitEvent(s, e->event, 0), "waiting for an event")
               : status;
}

static td_status event_query(td_event *e, bool *reached) {
    cudaError_t answer = cudaEventQuery(e->event);
    *reached = answer == cudaSuccess;
    return answer == cudaErrorNotReady ? TD_OK : td_cuda_status(answer, "asking for an event");
}

static td_status event_synchronize(td_event *e) {
    return td_cuda_status(cudaEventSynchronize(e->event), "waiting for an event");
}

static td_status event_elapsed(td_event *from, td_event *to, double *milliseconds) {
    float answer = 0;
    td_status status = td_cuda_status(cudaEventElapsedTime(&answer, from->event, to->event),
                                      "measuring between events");
    *milliseconds = (double)answer;
    return status;
}

/* ---- pinned memory ---- */

bool td_cuda_is_pinned(const void *block) {
    struct cudaPointerAttributes facts = {0};
    bool pinned =
        cudaPointerGetAttributes(&facts, block) == cudaSuccess && facts.type == cudaMemoryTypeHost;
    (void)cudaGetLastError();
    return pinned;
}

/* ---- recorded work ---- */

struct td_work_graph {
    cudaGraphExec_t exec;
    td_stream stream; /* on which it was recorded */
};

/* Room for the blocks to be kept in is made by taking one. */
static td_status keep_blocks(td_stream stream) {
    td_cuda_scratch first;
    td_status status = td_cuda_scratch_take(&first, stream, 1);
    if (status != TD_OK)
        return status;
    td_cuda_scratch_drop(&first);
    td_cuda_keep_blocks(stream, true);
    return TD_OK;
}

static td_status graph_begin(td_stream stream) {
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    if (status == TD_OK)
        status = keep_blocks(stream);
    if (status != TD_OK)
        return status;
    status = td_cuda_status(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal),
                            "beginning to record a graph");
    if (status == TD_OK)
        td_cuda_set_recording(stream, true);
    else
        td_cuda_keep_blocks(stream, false);
    return status;
}

static td_status instantiate(cudaGraph_t graph, td_work_graph *g) {
    td_status status =
        td_cuda_status(cudaGraphInstantiate(&g->exec, graph, 0), "making a graph of the record");
    (void)cudaGraphDestroy(graph);
    return status;
}

static td_status graph_end(td_stream stream, td_work_graph **out) {
    cudaStream_t s;
    cudaGraph_t graph = NULL;
    td_work_graph *g = td_calloc(1, sizeof *g);
    td_status status = td_cuda_enter(stream, &s);
    if (status == TD_OK) /* without memory too: the stream must not stay in capture */
        status = td_cuda_status(cudaStreamEndCapture(s, &graph), "recording a graph");
    td_cuda_set_recording(stream, false);
    if (status == TD_OK && !g) {
        (void)cudaGraphDestroy(graph);
        status = td_fail(TD_ENOMEM, "out of memory");
    }
    if (status == TD_OK)
        status = instantiate(graph, g);
    if (status != TD_OK) {
        td_cuda_keep_blocks(stream, false);
        td_free(g);
        return status;
    }
    g->stream = stream;
    *out = g;
    return TD_OK;
}

static td_status graph_launch(td_work_graph *graph, td_stream stream) {
    td_cuda_timed timed = {NULL};
    cudaStream_t s;
    td_status status = td_cuda_enter(stream, &s);
    if (td_cuda_is_timing())
        td_cuda_timed_open(&timed, stream);
    if (status == TD_OK)
        status = td_cuda_status(cudaGraphLaunch(graph->exec, s), "launching a graph");
    td_cuda_timed_close(&timed, TD_ACTIVITY_KERNEL, "graph", 0);
    return status;
}

static void graph_free(td_work_graph *graph) {
    if (!graph)
        return;
    (void)cudaGraphExecDestroy(graph->exec);
    td_cuda_keep_blocks(graph->stream, false);
    td_free(graph);
}

const td_queues td_cuda_queues = {
    .has_kernel = td_cuda_has_kernel,
    .properties = properties,
    .memory = memory,
    .stream_new = td_cuda_stream_new,
    .stream_free = td_cuda_stream_free,
    .stream_query = stream_query,
    .stream_handle = stream_handle,
    .stream_use = stream_use,
    .event_new = event_new,
    .event_free = event_free,
    .event_record = event_record,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed = event_elapsed,
    .pin = td_cuda_pin,
    .unpin = td_cuda_unpin,
    .is_pinned = td_cuda_is_pinned,
    .is_read = td_cuda_is_read,
    .upload_later = td_cuda_upload_later,
    .graph_begin = graph_begin,
    .graph_end = graph_end,
    .graph_launch = graph_launch,
    .graph_free = graph_free,
};
