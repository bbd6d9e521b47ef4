/* dnn.c: convolutions of floats by cuDNN, which is loaded when it is first needed. Its plan for a
 * shape, the first that it guesses or the quickest of several, is kept. What it can't do, or all
 * where it is not installed, is left to our own kernels. */
#include "engine/cuda/spatial/dnn.h"

#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/core/switches.h"
#include "engine/cuda/loaded_libraries/cudnn.h"
#include "engine/cuda/runtime/loaded_libraries.h"
#include "engine/cuda/runtime/shape_choices.h"
#include "engine/ops/language/program.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/spatial/spatial.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#ifndef TD_CUDA_CUDNN
#define TD_CUDA_CUDNN "" /* the module's file, beside ours: built without it */
#endif

#define WORKSPACE ((size_t)1 << 30) /* at most */

enum { RUNS = 3 /* of a plan that is timed */ };

_Static_assert(sizeof(td_dnn_shape) <= TD_CUDA_SHAPE_BYTES, "a shape fits");
_Static_assert((int)TD_DNN_SPATIAL == (int)TD_SPATIAL, "as many dims");

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static td_cuda_late library = {.file = TD_CUDA_CUDNN, .symbol = TD_LATE_CUDNN};
static td_cuda_ways ways = {.shape_bytes = sizeof(td_dnn_shape)};

/* ---- shapes ---- */

static bool is_its_dtype(const td_tensor *x) {
    const uint32_t floats = 1u << TD_F16 | 1u << TD_BF16 | 1u << TD_F32 | 1u << TD_F64;
    return floats >> x->dtype & 1;
}

/* The library counts in int, and pads on both sides alike. */
static bool shape_of(const td_convolution_plan *p, td_dnn_shape *s) {
    const td_conv_geometry *g = &p->geometry;
    int64_t most = g->n > g->groups ? g->n : g->groups;
    *s = (td_dnn_shape){.direction = p->direction,
                        .dtype = p->out->dtype,
                        .device = p->stream.device.index,
                        .spatial = g->spatial == 3 ? 3 : 2,
                        .channels_last = g->channels_last,
                        .groups = (int32_t)g->groups,
                        .is_tf32 =
                            p->out->dtype == TD_F32 && td_switch_is_on(TD_SWITCH_TF32_CONVOLUTIONS),
                        .is_fixed = td_deterministic() || td_switch_is_on(TD_SWITCH_CUDNN_FIXED),
                        .is_measured = td_switch_is_on(TD_SWITCH_CUDNN_MEASURES),
                        .n = (int32_t)g->n,
                        .c = (int32_t)g->c,
                        .o = (int32_t)g->o};
    for (int d = 0; d < TD_SPATIAL; d++) {
        int64_t reach = g->dilation[d] * (g->kernel[d] - 1) + 1;
        if (g->out[d] != (g->in[d] + 2 * g->padding[d] - reach) / g->stride[d] + 1)
            return false;
        s->in[d] = (int32_t)g->in[d];
        s->kernel[d] = (int32_t)g->kernel[d];
        s->out[d] = (int32_t)g->out[d];
        s->stride[d] = (int32_t)g->stride[d];
        s->padding[d] = (int32_t)g->padding[d];
        s->dilation[d] = (int32_t)g->dilation[d];
        most = g->stride[d] > most ? g->stride[d] : most;
        most = g->padding[d] > most ? g->padding[d] : most;
        most = g->dilation[d] > most ? g->dilation[d] : most;
    }
    return is_its_dtype(p->out) && p->a->numel <= INT32_MAX && p->b->numel <= INT32_MAX &&
           p->out->numel <= INT32_MAX && most <= INT32_MAX;
}

/* With the lock held. */
static td_dnn_way *choose_way(const td_late_cudnn *dnn, void *handle, const td_dnn_shape *s,
                              void **place) {
    if (*place)
        dnn->drop(*place);
    td_free(*place);
    *place = td_calloc(1, dnn->way_bytes);
    if (*place && dnn->choose(handle, s, WORKSPACE, *place) != 0) {
        td_free(*place);
        *place = NULL;
    }
    return *place;
}

/* How many milliseconds the device takes for a plan; infinite where it does not run. */
static float time_run(const td_late_cudnn *dnn, void *handle, const td_dnn_way *way, int plan,
                      const td_dnn_call *call, const cudaEvent_t events[2]) {
    float took = INFINITY;
    if (cudaEventRecord(events[0], call->stream) != cudaSuccess ||
        dnn->run(handle, way, plan, call) != 0 ||
        cudaEventRecord(events[1], call->stream) != cudaSuccess ||
        cudaEventSynchronize(events[1]) != cudaSuccess ||
        cudaEventElapsedTime(&took, events[0], events[1]) != cudaSuccess)
        return INFINITY;
    return took;
}

/* The best of some runs, behind one that loads what the plan needs. */
static float time_plan(const td_late_cudnn *dnn, void *handle, const td_dnn_way *way, int plan,
                       const td_dnn_call *call, const cudaEvent_t events[2]) {
    float best = INFINITY;
    if (isinf(time_run(dnn, handle, way, plan, call, events)))
        return best;
    for (int k = 0; k < RUNS; k++)
        best = fminf(best, time_run(dnn, handle, way, plan, call, events));
    return best;
}

static int quickest_plan(const td_late_cudnn *dnn, void *handle, const td_dnn_way *way,
                         const td_dnn_call *call, const cudaEvent_t events[2]) {
    float best = INFINITY;
    int quickest = 0;
    for (int k = 0; k < dnn->count(way); k++) {
        float took = time_plan(dnn, handle, way, k, call, events);
        if (took < best) {
            best = took;
            quickest = k;
        }
    }
    return quickest;
}

/* Runs the plans on the call's data, whose result they overwrite. The one that was guessed stays
 * where there is no room to time them. */
static void measure_way(const td_late_cudnn *dnn, void *handle, td_stream stream, td_dnn_call call,
                        td_dnn_way *way) {
    td_cuda_scratch room = {.data = NULL};
    cudaEvent_t events[2] = {NULL, NULL};
    size_t bytes = dnn->room(way);
    int quickest = 0;
    if (dnn->count(way) > 1 &&
        (bytes == 0 || td_cuda_scratch_take(&room, stream, bytes) == TD_OK) &&
        cudaEventCreate(&events[0]) == cudaSuccess && cudaEventCreate(&events[1]) == cudaSuccess) {
        call.workspace = room.data;
        quickest = quickest_plan(dnn, handle, way, &call, events);
    }
    dnn->keep(way, quickest);
    for (int k = 0; k < 2; k++)
        if (events[k])
            (void)cudaEventDestroy(events[k]);
    td_cuda_scratch_drop(&room);
}

/* While a stream is recorded nothing can be timed: what was measured before counts, or a guess. */
static td_dnn_shape without_measuring(td_dnn_shape s, cudaStream_t stream) {
    enum cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    if (s.is_measured && !td_cuda_ways_known(&ways, &s) &&
        (cudaStreamIsCapturing(stream, &capture) != cudaSuccess ||
         capture != cudaStreamCaptureStatusNone))
        s.is_measured = 0;
    return s;
}

/* With the lock held. */
static const td_dnn_way *way_for(const td_late_cudnn *dnn, void *handle, const td_dnn_shape *asked,
                                 td_stream stream, const td_dnn_call *call) {
    td_dnn_shape s = without_measuring(*asked, call->stream);
    bool known;
    void **place = td_cuda_ways_place(&ways, &s, &known);
    if (known)
        return *place;
    td_loading loading; /* once for a shape, and no work of this call's */
    td_loading_begin(&loading, "cuDNN's algorithm");
    td_dnn_way *way = choose_way(dnn, handle, &s, place);
    if (way && s.is_measured)
        measure_way(dnn, handle, stream, *call, way);
    td_loading_end(&loading);
    return way;
}

/* ---- convolutions ---- */

static bool is_aligned(const td_tensor *x) {
    return (uintptr_t)x->data % TD_DNN_ALIGNMENT == 0;
}

/* x itself, or a copy that lies alike: a view can begin at any element, and engines for such, which
 * are few, fail on some shapes. */
static td_status align(td_tensor *x, td_tensor **out) {
    td_meta meta;
    *out = NULL;
    if (is_aligned(x)) {
        *out = td_retain(x);
        return TD_OK;
    }
    td_meta_like(&meta, x, (td_dtype)x->dtype);
    meta.device = td_tensor_device(x);
    meta.strided = true;
    memcpy(meta.strides, x->strides, sizeof(int64_t) * (size_t)x->ndim);
    td_status status = td_tensor_from_meta(&meta, out);
    return status == TD_OK ? td_copy_into(*out, x) : status;
}

/* Where there is no room for its workspace our own kernels may still do. */
static bool run(const td_convolution_plan *p, const td_dnn_shape *s, const td_tensor *a,
                const td_tensor *b, cudaStream_t stream) {
    td_cuda_scratch room = {.data = NULL};
    td_dnn_call call = {.a = a->data, .b = b->data, .out = p->out->data, .stream = stream};
    bool done = false;
    pthread_mutex_lock(&lock);
    const td_late_cudnn *dnn = td_cuda_late_table(&library);
    void *handle = dnn ? td_cuda_late_handle(&library, s->device, dnn->start) : NULL;
    const td_dnn_way *way = handle ? way_for(dnn, handle, s, p->stream, &call) : NULL;
    size_t bytes = way ? dnn->workspace(way) : 0;
    if (way && (bytes == 0 || td_cuda_scratch_take(&room, p->stream, bytes) == TD_OK)) {
        call.workspace = room.data;
        done = dnn->run(handle, way, 0, &call) == 0;
    }
    pthread_mutex_unlock(&lock);
    td_cuda_scratch_drop(&room);
    return done;
}

static td_status add_bias(const td_convolution_plan *p) {
    int64_t sizes[TD_SPATIAL + 1] = {p->bias->sizes[0], 1, 1, 1};
    int64_t strides[TD_SPATIAL + 1] = {p->bias->strides[0]};
    td_tensor *seen = NULL;
    td_status status = td_tensor_view(p->bias, p->geometry.spatial + 1, sizes, strides, 0, &seen);
    if (status)
        return status;
    td_operand operands[2] = {{.tensor = p->out}, {.tensor = seen}};
    status = td_cuda_pointwise(&(td_pointwise_plan){.stream = p->stream,
                                                    .program = td_primitive_program(TD_PW_add),
                                                    .operands = operands,
                                                    .compute = (td_dtype)p->out->dtype,
                                                    .out = p->out});
    td_release(seen);
    return status;
}

td_status td_cuda_dnn_convolution(const td_convolution_plan *p, cudaStream_t stream, bool *done) {
    const td_conv_geometry *g = &p->geometry;
    td_dnn_shape shape;
    td_tensor *packed = NULL, *a = NULL, *b = NULL;
    td_status status = TD_OK;
    *done = false;
    if (!td_switch_is_on(TD_SWITCH_CUDNN) || !shape_of(p, &shape) || !is_aligned(p->out))
        return TD_OK;
    /* it wants the weight as the images lie */
    if (p->direction == TD_CONV_WEIGHT)
        packed = td_retain(p->b);
    else
        TD_TRY(td_pack_spatial(p->b, g->channels_last, &packed));
    TD_TRY(align(p->a, &a));
    TD_TRY(align(packed, &b));
    *done = run(p, &shape, a, b, stream);
    if (*done && p->bias)
        TD_TRY(add_bias(p));
done:
    td_release(packed);
    td_release(a);
    td_release(b);
    return status;
}
