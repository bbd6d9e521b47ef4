/* cudnn.c: the table of cuDNN's calls, in a module of its own.
 *
 * A convolution is a graph of one operation. The library's heuristics list configurations of
 * engines for it, the best guess first, and a configuration becomes a plan, which is made once for
 * a shape; a run names the addresses alone. */
#include "engine/cuda/loaded_libraries/cudnn.h"

#include "engine/ops/plan/plan.h"

#include <cudnn.h>
#include <stdbool.h>
#include <string.h>

typedef cudnnBackendDescriptor_t descriptor;

/* How many plans are timed, and how many configurations looked at; there are about forty. */
enum { MOST = 16, LISTED = 128, DIMS = 2 + TD_DNN_SPATIAL };

struct td_dnn_way {
    int count;
    struct {
        descriptor configuration, plan;
        size_t workspace;
    } plans[MOST];
};

static size_t version(void) {
    return cudnnGetVersion();
}

static int start(void **handle) {
    return (int)cudnnCreate((cudnnHandle_t *)handle);
}

static int count(const td_dnn_way *w) {
    return w->count;
}

static size_t workspace(const td_dnn_way *w) {
    return w->plans[0].workspace;
}

static size_t room(const td_dnn_way *w) {
    size_t most = 0;
    for (int k = 0; k < w->count; k++)
        most = w->plans[k].workspace > most ? w->plans[k].workspace : most;
    return most;
}

/* ---- descriptors ---- */

static descriptor create(int *bad, cudnnBackendDescriptorType_t type) {
    descriptor made = NULL;
    if (!*bad)
        *bad = (int)cudnnBackendCreateDescriptor(type, &made);
    return made;
}

static void destroy(descriptor d) {
    if (d)
        (void)cudnnBackendDestroyDescriptor(d);
}

/* These do nothing once a call has failed. */
static void set(int *bad, descriptor d, cudnnBackendAttributeName_t name,
                cudnnBackendAttributeType_t type, int64_t n, const void *values) {
    if (!*bad)
        *bad = (int)cudnnBackendSetAttribute(d, name, type, n, values);
}

static void set_descriptor(int *bad, descriptor d, cudnnBackendAttributeName_t name,
                           descriptor value) {
    set(bad, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

static void finalize(int *bad, descriptor d) {
    if (!*bad)
        *bad = (int)cudnnBackendFinalize(d);
}

static void drop_plan(td_dnn_way *w, int k) {
    destroy(w->plans[k].plan);
    destroy(w->plans[k].configuration);
}

static void drop(td_dnn_way *w) {
    for (int k = 0; k < w->count; k++)
        drop_plan(w, k);
    memset(w, 0, sizeof *w);
}

static void keep(td_dnn_way *w, int plan) {
    for (int k = 0; k < w->count; k++)
        if (k != plan)
            drop_plan(w, k);
    w->plans[0] = w->plans[plan];
    w->count = 1;
}

/* ---- the graph of a convolution ---- */

/* The names of tensors in a graph, by the order of td_dnn_call. */
enum { A = 1, B, OUT };

static const struct direction {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
    int64_t x_name, w_name, y_name;
} directions[] = {
    [TD_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, A, B, OUT},
    [TD_CONV_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, OUT, B, A},
    [TD_CONV_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, A, OUT, B}};

static const float one = 1, zero = 0;
static const double double_one = 1, double_zero = 0;

static const struct numbers {
    cudnnDataType_t type, sums;
    cudnnBackendAttributeType_t scale;
    const void *one, *zero;
} numbers[TD_DTYPE_COUNT] = {
    [TD_F16] = {CUDNN_DATA_HALF, CUDNN_DATA_FLOAT, CUDNN_TYPE_FLOAT, &one, &zero},
    [TD_BF16] = {CUDNN_DATA_BFLOAT16, CUDNN_DATA_FLOAT, CUDNN_TYPE_FLOAT, &one, &zero},
    [TD_F32] = {CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_TYPE_FLOAT, &one, &zero},
    [TD_F64] = {CUDNN_DATA_DOUBLE, CUDNN_DATA_DOUBLE, CUDNN_TYPE_DOUBLE, &double_one,
                &double_zero}};

/* The spatial dims that are there. */
static void copy_spatial(const td_dnn_shape *s, const int32_t *from, int64_t *to) {
    for (int d = 0; d < s->spatial; d++)
        to[d] = from[TD_DNN_SPATIAL - s->spatial + d];
}

static descriptor make_tensor(int *bad, const td_dnn_shape *s, int64_t name, int outer,
                              int channels, const int32_t *spatial) {
    int64_t dims[DIMS] = {outer, channels}, strides[DIMS], alignment = TD_DNN_ALIGNMENT;
    int64_t at = s->channels_last ? channels : 1;
    int ndims = 2 + s->spatial;
    copy_spatial(s, spatial, dims + 2);
    for (int d = ndims - 1; d > 1; d--) {
        strides[d] = at;
        at *= dims[d];
    }
    strides[1] = s->channels_last ? 1 : at;
    strides[0] = s->channels_last ? at : at * channels;
    descriptor t = create(bad, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    set(bad, t, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &numbers[s->dtype].type);
    set(bad, t, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, ndims, dims);
    set(bad, t, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, ndims, strides);
    set(bad, t, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
    set(bad, t, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
    finalize(bad, t);
    return t;
}

static descriptor make_convolution(int *bad, const td_dnn_shape *s) {
    int64_t n = s->spatial, padding[TD_DNN_SPATIAL], stride[TD_DNN_SPATIAL],
            dilation[TD_DNN_SPATIAL];
    cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    copy_spatial(s, s->padding, padding);
    copy_spatial(s, s->stride, stride);
    copy_spatial(s, s->dilation, dilation);
    descriptor c = create(bad, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    set(bad, c, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &numbers[s->dtype].sums);
    set(bad, c, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
    set(bad, c, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &n);
    set(bad, c, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, n, padding);
    set(bad, c, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, n, padding);
    set(bad, c, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, n, stride);
    set(bad, c, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, n, dilation);
    finalize(bad, c);
    return c;
}

/* out = 1 * the convolution + 0 * out. How many groups there are follows from the channels. */
static descriptor make_operation(int *bad, const td_dnn_shape *s) {
    const struct direction *to = &directions[s->direction];
    const struct numbers *of = &numbers[s->dtype];
    descriptor x = make_tensor(bad, s, to->x_name, s->n, s->c, s->in);
    descriptor w = make_tensor(bad, s, to->w_name, s->o, s->c / s->groups, s->kernel);
    descriptor y = make_tensor(bad, s, to->y_name, s->n, s->o, s->out);
    descriptor convolution = make_convolution(bad, s);
    descriptor operation = create(bad, to->type);
    set_descriptor(bad, operation, to->x, x);
    set_descriptor(bad, operation, to->w, w);
    set_descriptor(bad, operation, to->y, y);
    set_descriptor(bad, operation, to->convolution, convolution);
    set(bad, operation, to->alpha, of->scale, 1, of->one);
    set(bad, operation, to->beta, of->scale, 1, of->zero);
    finalize(bad, operation);
    destroy(x);
    destroy(w);
    destroy(y);
    destroy(convolution);
    return operation;
}

static descriptor make_graph(int *bad, cudnnHandle_t handle, const td_dnn_shape *s) {
    descriptor operation = make_operation(bad, s);
    descriptor graph = create(bad, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    set(bad, graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    set_descriptor(bad, graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    finalize(bad, graph);
    destroy(operation);
    return graph;
}

/* ---- plans ---- */

/* Does an engine of which the library notes this compute what the shape asks for? */
static bool does(const td_dnn_shape *s, cudnnBackendNumericalNote_t note) {
    bool halves = s->dtype == TD_F16 || s->dtype == TD_BF16;
    if (note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)
        return !s->is_fixed;
    if (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE) /* they read ten bits of a float32's mantissa */
        return s->dtype != TD_F32 || s->is_tf32;
    if (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)
        return halves;
    if (note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)
        return !halves; /* whose sums are float32 */
    return true;
}

static bool may_take(const td_dnn_shape *s, descriptor configuration) {
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    int64_t n = 0;
    int bad = 0;
    descriptor engine = create(&bad, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    if (!bad)
        bad = (int)cudnnBackendGetAttribute(configuration, CUDNN_ATTR_ENGINECFG_ENGINE,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    if (!bad)
        bad = (int)cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                            CUDNN_TYPE_NUMERICAL_NOTE,
                                            CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, notes);
    destroy(engine);
    bool may = !bad && n <= CUDNN_NUMERICAL_NOTE_TYPE_COUNT;
    for (int64_t k = 0; may && k < n; k++)
        may = does(s, notes[k]);
    return may;
}

/* Takes the configuration, unless no plan can be made of it or it needs too much. */
static bool add_plan(cudnnHandle_t handle, descriptor configuration, size_t most, td_dnn_way *w) {
    int64_t bytes = 0, n = 0;
    int bad = 0;
    descriptor plan = create(&bad, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    set(&bad, plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    set_descriptor(&bad, plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    finalize(&bad, plan);
    if (!bad)
        bad = (int)cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                            CUDNN_TYPE_INT64, 1, &n, &bytes);
    if (bad || (size_t)bytes > most) {
        destroy(plan);
        return false;
    }
    w->plans[w->count].configuration = configuration;
    w->plans[w->count].plan = plan;
    w->plans[w->count++].workspace = (size_t)bytes;
    return true;
}

/* Plans for what one of the library's heuristics lists. */
static void add_plans(cudnnHandle_t handle, const td_dnn_shape *s, descriptor graph,
                      cudnnBackendHeurMode_t mode, size_t most, td_dnn_way *w) {
    descriptor found[LISTED] = {NULL};
    int64_t n = 0;
    int bad = 0, wanted = s->is_measured ? MOST : 1;
    descriptor heuristic = create(&bad, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    set_descriptor(&bad, heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    set(&bad, heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    finalize(&bad, heuristic);
    if (!bad) /* how many there are */
        bad = (int)cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &n, NULL);
    int64_t made = bad ? 0 : n < LISTED ? n : LISTED;
    for (int64_t k = 0; k < made; k++)
        found[k] = create(&bad, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    if (!bad && made) /* fills them */
        bad = (int)cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                            CUDNN_TYPE_BACKEND_DESCRIPTOR, made, &n, found);
    for (int64_t k = 0; k < made; k++)
        if (bad || k >= n || w->count == wanted || !may_take(s, found[k]) ||
            !add_plan(handle, found[k], most, w))
            destroy(found[k]);
    destroy(heuristic);
}

static int choose(void *handle, const td_dnn_shape *s, size_t most, td_dnn_way *w) {
    int bad = 0;
    descriptor graph = make_graph(&bad, handle, s);
    if (!bad)
        add_plans(handle, s, graph, CUDNN_HEUR_MODE_INSTANT, most, w);
    if (!bad && w->count == 0)
        add_plans(handle, s, graph, CUDNN_HEUR_MODE_FALLBACK, most, w);
    destroy(graph);
    return bad ? bad : w->count ? 0 : (int)CUDNN_STATUS_NOT_SUPPORTED;
}

static int run(void *handle, const td_dnn_way *w, int plan, const td_dnn_call *c) {
    static const int64_t names[] = {A, B, OUT};
    const void *const places[] = {c->a, c->b, c->out};
    int bad = (int)cudnnSetStream(handle, c->stream);
    descriptor pack = create(&bad, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    set(&bad, pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 3, names);
    set(&bad, pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, places);
    set(&bad, pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &c->workspace);
    finalize(&bad, pack);
    if (!bad)
        bad = (int)cudnnBackendExecute(handle, w->plans[plan].plan, pack);
    destroy(pack);
    return bad;
}

extern const td_late_cudnn td_late_cudnn_calls;
const td_late_cudnn td_late_cudnn_calls = {.version = version,
                                           .start = start,
                                           .way_bytes = sizeof(td_dnn_way),
                                           .choose = choose,
                                           .count = count,
                                           .workspace = workspace,
                                           .room = room,
                                           .run = run,
                                           .keep = keep,
                                           .drop = drop};
