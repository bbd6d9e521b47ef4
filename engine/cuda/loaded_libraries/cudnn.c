/* cudnn.c: the table of cuDNN's calls, in a module of its own. */
#include "engine/cuda/loaded_libraries/cudnn.h"

#include "engine/ops/plan/plan.h"

#include <cudnn.h>
#include <stdbool.h>
#include <string.h>

/* Calls for single convolutions, which version 9 calls old beside its graphs; they choose among the
 * same kernels. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

enum { MOST = 16, DIMS = 2 + TD_DNN_SPATIAL };

struct td_dnn_way {
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t convolution;
    cudnnMathType_t math;
    size_t workspace, room;
    int direction, algorithm, is_double;
};

static size_t version(void) {
    return cudnnGetVersion();
}

static int start(void **handle) {
    return (int)cudnnCreate((cudnnHandle_t *)handle);
}

static size_t workspace(const td_dnn_way *w) {
    return w->workspace;
}

static size_t room(const td_dnn_way *w) {
    return w->room;
}

static void drop(td_dnn_way *w) {
    if (w->x)
        (void)cudnnDestroyTensorDescriptor(w->x);
    if (w->y)
        (void)cudnnDestroyTensorDescriptor(w->y);
    if (w->w)
        (void)cudnnDestroyFilterDescriptor(w->w);
    if (w->convolution)
        (void)cudnnDestroyConvolutionDescriptor(w->convolution);
    memset(w, 0, sizeof *w);
}

/* ---- descriptions ---- */

static const cudnnDataType_t types[TD_DTYPE_COUNT] = {[TD_F16] = CUDNN_DATA_HALF,
                                                      [TD_BF16] = CUDNN_DATA_BFLOAT16,
                                                      [TD_F32] = CUDNN_DATA_FLOAT,
                                                      [TD_F64] = CUDNN_DATA_DOUBLE};

/* The dims that are there behind two others. */
static int set_dims(const td_dnn_shape *s, int a, int b, const int32_t *spatial, int *dims) {
    dims[0] = a;
    dims[1] = b;
    memcpy(dims + 2, spatial + TD_DNN_SPATIAL - s->spatial, sizeof *dims * (size_t)s->spatial);
    return 2 + s->spatial;
}

static int describe_images(cudnnTensorDescriptor_t *to, const td_dnn_shape *s, int channels,
                           const int32_t *spatial) {
    int dims[DIMS], strides[DIMS], ndims = set_dims(s, s->n, channels, spatial, dims);
    int at = s->channels_last ? channels : 1;
    strides[1] = s->channels_last ? 1 : 0;
    for (int d = ndims - 1; d > 1; d--) {
        strides[d] = at;
        at *= dims[d];
    }
    if (!s->channels_last) {
        strides[1] = at;
        at *= channels;
    }
    strides[0] = at;
    int bad = (int)cudnnCreateTensorDescriptor(to);
    return bad ? bad : (int)cudnnSetTensorNdDescriptor(*to, types[s->dtype], ndims, dims, strides);
}

static int describe_weight(cudnnFilterDescriptor_t *to, const td_dnn_shape *s) {
    int dims[DIMS], ndims = set_dims(s, s->o, s->c / s->groups, s->kernel, dims);
    cudnnTensorFormat_t format = s->channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW;
    int bad = (int)cudnnCreateFilterDescriptor(to);
    return bad ? bad : (int)cudnnSetFilterNdDescriptor(*to, types[s->dtype], format, ndims, dims);
}

static cudnnMathType_t math_of(const td_dnn_shape *s) {
    if (s->dtype == TD_F16 || s->dtype == TD_BF16)
        return CUDNN_TENSOR_OP_MATH;
    return s->dtype == TD_F32 && !s->is_tf32 ? CUDNN_FMA_MATH : CUDNN_DEFAULT_MATH;
}

static int describe(td_dnn_way *w, const td_dnn_shape *s) {
    int first = TD_DNN_SPATIAL - s->spatial;
    w->direction = s->direction;
    w->is_double = s->dtype == TD_F64;
    int bad = describe_images(&w->x, s, s->c, s->in);
    if (!bad)
        bad = describe_images(&w->y, s, s->o, s->out);
    if (!bad)
        bad = describe_weight(&w->w, s);
    if (!bad)
        bad = (int)cudnnCreateConvolutionDescriptor(&w->convolution);
    if (!bad)
        bad = (int)cudnnSetConvolutionNdDescriptor(
            w->convolution, s->spatial, s->padding + first, s->stride + first, s->dilation + first,
            CUDNN_CROSS_CORRELATION, w->is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT);
    if (!bad)
        bad = (int)cudnnSetConvolutionGroupCount(w->convolution, s->groups);
    if (!bad)
        bad = (int)cudnnSetConvolutionMathType(w->convolution, math_of(s));
    return bad;
}

/* ---- choices ---- */

/* The quickest of n that may be taken, where the library lists them by their time. */
#define TAKE_FIRST(found, n)                                                                       \
    bool any = false;                                                                              \
    for (int k = 0; k < (n); k++) {                                                                \
        if (found[k].status != CUDNN_STATUS_SUCCESS || found[k].memory > most ||                   \
            (s->is_fixed && found[k].determinism != CUDNN_DETERMINISTIC))                          \
            continue;                                                                              \
        w->room = found[k].memory > w->room ? found[k].memory : w->room;                           \
        if (any)                                                                                   \
            continue;                                                                              \
        any = true;                                                                                \
        w->algorithm = (int)found[k].algo;                                                         \
        w->math = found[k].mathType;                                                               \
    }                                                                                              \
    return any ? 0 : (int)CUDNN_STATUS_NOT_SUPPORTED

/* By its own guess, or measured on a call. */
static int choose_forward(cudnnHandle_t h, const td_dnn_shape *s, const td_dnn_call *c, size_t most,
                          td_dnn_way *w) {
    cudnnConvolutionFwdAlgoPerf_t found[MOST];
    int n = 0;
    int bad = c ? (int)cudnnFindConvolutionForwardAlgorithmEx(h, w->x, c->a, w->w, c->b,
                                                              w->convolution, w->y, c->out, MOST,
                                                              &n, found, c->workspace, most)
                : (int)cudnnGetConvolutionForwardAlgorithm_v7(h, w->x, w->w, w->convolution, w->y,
                                                              MOST, &n, found);
    if (bad)
        return bad;
    TAKE_FIRST(found, n);
}

static int choose_input(cudnnHandle_t h, const td_dnn_shape *s, const td_dnn_call *c, size_t most,
                        td_dnn_way *w) {
    cudnnConvolutionBwdDataAlgoPerf_t found[MOST];
    int n = 0;
    int bad = c ? (int)cudnnFindConvolutionBackwardDataAlgorithmEx(
                      h, w->w, c->b, w->y, c->a, w->convolution, w->x, c->out, MOST, &n, found,
                      c->workspace, most)
                : (int)cudnnGetConvolutionBackwardDataAlgorithm_v7(h, w->w, w->y, w->convolution,
                                                                   w->x, MOST, &n, found);
    if (bad)
        return bad;
    TAKE_FIRST(found, n);
}

static int choose_weight(cudnnHandle_t h, const td_dnn_shape *s, const td_dnn_call *c, size_t most,
                         td_dnn_way *w) {
    cudnnConvolutionBwdFilterAlgoPerf_t found[MOST];
    int n = 0;
    int bad = c ? (int)cudnnFindConvolutionBackwardFilterAlgorithmEx(
                      h, w->x, c->a, w->y, c->b, w->convolution, w->w, c->out, MOST, &n, found,
                      c->workspace, most)
                : (int)cudnnGetConvolutionBackwardFilterAlgorithm_v7(h, w->x, w->y, w->convolution,
                                                                     w->w, MOST, &n, found);
    if (bad)
        return bad;
    TAKE_FIRST(found, n);
}

static int find_workspace(cudnnHandle_t h, td_dnn_way *w) {
    switch ((td_conv_direction)w->direction) {
    case TD_CONV_FORWARD:
        return (int)cudnnGetConvolutionForwardWorkspaceSize(h, w->x, w->w, w->convolution, w->y,
                                                            (cudnnConvolutionFwdAlgo_t)w->algorithm,
                                                            &w->workspace);
    case TD_CONV_INPUT:
        return (int)cudnnGetConvolutionBackwardDataWorkspaceSize(
            h, w->w, w->y, w->convolution, w->x, (cudnnConvolutionBwdDataAlgo_t)w->algorithm,
            &w->workspace);
    case TD_CONV_WEIGHT:
        return (int)cudnnGetConvolutionBackwardFilterWorkspaceSize(
            h, w->x, w->y, w->convolution, w->w, (cudnnConvolutionBwdFilterAlgo_t)w->algorithm,
            &w->workspace);
    }
    return (int)CUDNN_STATUS_NOT_SUPPORTED;
}

/* What a run of the way will need, which is computed with its kind of products. */
static int settle(cudnnHandle_t h, size_t most, td_dnn_way *w) {
    int bad = (int)cudnnSetConvolutionMathType(w->convolution, w->math);
    if (!bad)
        bad = find_workspace(h, w);
    return !bad && w->workspace > most ? (int)CUDNN_STATUS_NOT_SUPPORTED : bad;
}

static int choose_by(cudnnHandle_t h, const td_dnn_shape *s, const td_dnn_call *c, size_t most,
                     td_dnn_way *w) {
    int bad = (s->direction == TD_CONV_FORWARD ? choose_forward
               : s->direction == TD_CONV_INPUT ? choose_input
                                               : choose_weight)(h, s, c, most, w);
    return bad ? bad : settle(h, most, w);
}

static int choose(void *handle, const td_dnn_shape *s, size_t most, td_dnn_way *w) {
    int bad = describe(w, s);
    if (!bad)
        bad = choose_by(handle, s, NULL, most, w);
    if (bad)
        drop(w);
    return bad;
}

static int measure(void *handle, const td_dnn_shape *s, const td_dnn_call *c, size_t room,
                   td_dnn_way *w) {
    td_dnn_way measured = *w;
    int bad = (int)cudnnSetConvolutionMathType(w->convolution, math_of(s));
    if (!bad)
        bad = (int)cudnnSetStream(handle, c->stream);
    if (!bad)
        bad = choose_by(handle, s, c, room, &measured);
    if (!bad)
        *w = measured;
    else
        (void)cudnnSetConvolutionMathType(w->convolution, w->math);
    return bad;
}

/* ---- calls ---- */

static int run(void *handle, const td_dnn_way *w, const td_dnn_call *c) {
    static const float one = 1, zero = 0;
    static const double one_double = 1, zero_double = 0;
    const void *alpha = w->is_double ? (const void *)&one_double : &one;
    const void *beta = w->is_double ? (const void *)&zero_double : &zero;
    int bad = (int)cudnnSetStream(handle, c->stream);
    if (bad)
        return bad;
    switch ((td_conv_direction)w->direction) {
    case TD_CONV_FORWARD:
        return (int)cudnnConvolutionForward(handle, alpha, w->x, c->a, w->w, c->b, w->convolution,
                                            (cudnnConvolutionFwdAlgo_t)w->algorithm, c->workspace,
                                            w->workspace, beta, w->y, c->out);
    case TD_CONV_INPUT:
        return (int)cudnnConvolutionBackwardData(handle, alpha, w->w, c->b, w->y, c->a,
                                                 w->convolution,
                                                 (cudnnConvolutionBwdDataAlgo_t)w->algorithm,
                                                 c->workspace, w->workspace, beta, w->x, c->out);
    case TD_CONV_WEIGHT:
        return (int)cudnnConvolutionBackwardFilter(handle, alpha, w->x, c->a, w->y, c->b,
                                                   w->convolution,
                                                   (cudnnConvolutionBwdFilterAlgo_t)w->algorithm,
                                                   c->workspace, w->workspace, beta, w->w, c->out);
    }
    return (int)CUDNN_STATUS_NOT_SUPPORTED;
}

extern const td_late_cudnn td_late_cudnn_calls;
const td_late_cudnn td_late_cudnn_calls = {.version = version,
                                           .start = start,
                                           .way_bytes = sizeof(td_dnn_way),
                                           .choose = choose,
                                           .workspace = workspace,
                                           .room = room,
                                           .measure = measure,
                                           .run = run,
                                           .drop = drop};
