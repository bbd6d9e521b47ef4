/* cudnn.cpp: cuDNN's convolution and its gradients by plain loops.
 *
 * Images and filters are gathered into dense doubles, in the order batch, channels, depth, height,
 * width; one walk over all products serves the three of them, which differ in what they add to. */
#include "include/cudnn.h"
#include "library.h"
#include "runtime.h"

#include <atomic>
#include <cstring>

using namespace td_played;

constexpr int SPATIAL = 3;

/* A tensor or a filter: dims and strides in five dims, depth being 1 where there is none. */
struct shape {
    cudnnDataType_t type;
    int ndims;
    int64_t dims[2 + SPATIAL], strides[2 + SPATIAL];
};
struct cudnnContext {
    cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct : shape {};
struct cudnnFilterStruct : shape {};
struct cudnnConvolutionStruct {
    int nspatial, groups = 1;
    int64_t pads[SPATIAL], strides[SPATIAL], dilations[SPATIAL];
    cudnnConvolutionMode_t mode;
    cudnnDataType_t compute;
    cudnnMathType_t math;
};
typedef cudnnConvolutionStruct convolution;

namespace {

cudaDataType type_of(cudnnDataType_t type) {
    switch (type) {
    case CUDNN_DATA_FLOAT:
        return CUDA_R_32F;
    case CUDNN_DATA_DOUBLE:
        return CUDA_R_64F;
    case CUDNN_DATA_HALF:
        return CUDA_R_16F;
    case CUDNN_DATA_INT8:
        return CUDA_R_8I;
    case CUDNN_DATA_INT32:
        return CUDA_R_32I;
    case CUDNN_DATA_BFLOAT16:
        return CUDA_R_16BF;
    }
    return CUDA_R_32F;
}

/* Put n dims behind batch and channels at the end of five. */
cudnnStatus_t set_shape(shape *s, cudnnDataType_t type, int ndims, const int dims[],
                        const int strides[]) {
    if (!s || ndims < 4 || ndims > CUDNN_DIM_MAX)
        return CUDNN_STATUS_BAD_PARAM;
    if (ndims > 2 + SPATIAL)
        return CUDNN_STATUS_NOT_SUPPORTED;
    s->type = type;
    s->ndims = ndims;
    for (int k = 0; k < 2 + SPATIAL; k++) {
        int from = k < 2 ? k : k - (2 + SPATIAL - ndims);
        bool there = k < 2 || from >= 2;
        s->dims[k] = there ? dims[from] : 1;
        s->strides[k] = there ? strides[from] : 0;
        if (s->dims[k] <= 0 || s->strides[k] < 0)
            return CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_dense(shape *s, cudnnTensorFormat_t format, cudnnDataType_t type, int ndims,
                        const int dims[]) {
    int strides[CUDNN_DIM_MAX], stride = 1;
    if (ndims < 4 || ndims > CUDNN_DIM_MAX)
        return CUDNN_STATUS_BAD_PARAM;
    if (format == CUDNN_TENSOR_NHWC) {
        strides[1] = 1;
        stride = dims[1];
    }
    for (int k = ndims - 1; k >= 0; k--) {
        if (k == 1 && format == CUDNN_TENSOR_NHWC)
            continue;
        strides[k] = stride;
        stride *= dims[k];
    }
    return set_shape(s, type, ndims, dims, strides);
}

int64_t count(const shape &s) {
    int64_t n = 1;
    for (int64_t dim : s.dims)
        n *= dim;
    return n;
}

size_t bytes_of(const shape &s) {
    int64_t last = 0;
    for (int k = 0; k < 2 + SPATIAL; k++)
        last += (s.dims[k] - 1) * s.strides[k];
    return (size_t)(last + 1) * size_of(type_of(s.type));
}

/* Calls f(dense index, place in memory) for every element. */
template <typename F> void each(const shape &s, F f) {
    int64_t at[2 + SPATIAL] = {0}, n = count(s);
    for (int64_t k = 0; k < n; k++) {
        int64_t place = 0;
        for (int d = 0; d < 2 + SPATIAL; d++)
            place += at[d] * s.strides[d];
        f((size_t)k, (size_t)place);
        for (int d = 1 + SPATIAL; d >= 0 && ++at[d] == s.dims[d]; d--)
            at[d] = 0;
    }
}

std::vector<double> gather(const convolution &c, const shape &s, const void *p) {
    bool rounds = s.type == CUDNN_DATA_FLOAT && c.math == CUDNN_DEFAULT_MATH;
    std::vector<double> values((size_t)count(s));
    each(s, [&](size_t k, size_t place) {
        double x = load(type_of(s.type), p, place);
        values[k] = rounds ? to_tf32(x) : x;
    });
    return values;
}

void scatter(const shape &s, void *p, const std::vector<double> &values, double alpha,
             double beta) {
    cudaDataType type = type_of(s.type);
    each(s, [&](size_t k, size_t place) {
        double old = beta != 0 ? beta * load(type, p, place) : 0;
        store(type, p, place, alpha * values[k] + old);
    });
}

/* Calls f(x, w, y) with the dense indices of every product, taps that lie in the padding left out.
 */
template <typename F>
void each_product(const convolution &c, const shape &x, const shape &w, const shape &y, F f) {
    int64_t taps = w.dims[2] * w.dims[3] * w.dims[4], outs = y.dims[2] * y.dims[3] * y.dims[4];
    int64_t inner = w.dims[1], share = y.dims[1] / c.groups;
    for (int64_t n = 0; n < y.dims[0]; n++)
        for (int64_t o = 0; o < outs; o++)
            for (int64_t t = 0; t < taps; t++) {
                int64_t in = 0, tap[SPATIAL] = {t / w.dims[4] / w.dims[3],
                                                t / w.dims[4] % w.dims[3], t % w.dims[4]};
                int64_t out[SPATIAL] = {o / y.dims[4] / y.dims[3], o / y.dims[4] % y.dims[3],
                                        o % y.dims[4]};
                bool inside = true;
                for (int d = 0; d < SPATIAL; d++) {
                    int64_t turned =
                        c.mode == CUDNN_CONVOLUTION ? w.dims[2 + d] - 1 - tap[d] : tap[d];
                    int64_t at = out[d] * c.strides[d] - c.pads[d] + turned * c.dilations[d];
                    inside = inside && at >= 0 && at < x.dims[2 + d];
                    in = in * x.dims[2 + d] + at;
                }
                if (!inside)
                    continue;
                int64_t ins = x.dims[2] * x.dims[3] * x.dims[4];
                for (int64_t k = 0; k < y.dims[1]; k++)
                    for (int64_t i = 0; i < inner; i++)
                        f((size_t)((n * x.dims[1] + k / share * inner + i) * ins + in),
                          (size_t)((k * inner + i) * taps + t),
                          (size_t)((n * y.dims[1] + k) * outs + o));
            }
}

enum direction { FORWARD, BACKWARD_DATA, BACKWARD_FILTER };
const char *const call_names[] = {"cudnnConvolutionForward", "cudnnConvolutionBackwardData",
                                  "cudnnConvolutionBackwardFilter"};

void run(direction to, const convolution &c, const shape &x_shape, const void *x,
         const shape &w_shape, const void *w, const shape &y_shape, const void *y, double alpha,
         double beta) {
    const shape &result = to == FORWARD ? y_shape : to == BACKWARD_DATA ? x_shape : w_shape;
    const void *out = to == FORWARD ? y : to == BACKWARD_DATA ? x : w;
    std::vector<double> sums((size_t)count(result)), xs, ws, ys;
    if (to != BACKWARD_DATA)
        xs = gather(c, x_shape, x);
    if (to != BACKWARD_FILTER)
        ws = gather(c, w_shape, w);
    if (to != FORWARD)
        ys = gather(c, y_shape, y);
    each_product(c, x_shape, w_shape, y_shape, [&](size_t i, size_t j, size_t k) {
        if (to == FORWARD)
            sums[k] += xs[i] * ws[j];
        else if (to == BACKWARD_DATA)
            sums[i] += ys[k] * ws[j];
        else
            sums[j] += xs[i] * ys[k];
    });
    scatter(result, const_cast<void *>(out), sums, alpha, beta);
}

int64_t out_dim(const convolution &c, const shape &x, const shape &w, int d) {
    int64_t room = x.dims[2 + d] + 2 * c.pads[d] - c.dilations[d] * (w.dims[2 + d] - 1) - 1;
    return room < 0 ? 0 : room / c.strides[d] + 1;
}

cudnnStatus_t check(const convolution *c, const shape *x, const shape *w, const shape *y) {
    if (!c || !x || !w || !y || x->ndims != y->ndims || x->ndims != w->ndims ||
        x->ndims != c->nspatial + 2)
        return CUDNN_STATUS_BAD_PARAM;
    for (int d = 0; d < SPATIAL; d++)
        if (y->dims[2 + d] != out_dim(*c, *x, *w, d))
            return CUDNN_STATUS_BAD_PARAM;
    bool channels = x->dims[1] == w->dims[1] * c->groups && w->dims[0] == y->dims[1] &&
                    y->dims[1] % c->groups == 0 && x->dims[0] == y->dims[0];
    if (!channels)
        return CUDNN_STATUS_BAD_PARAM;
    bool doubles = x->type == CUDNN_DATA_DOUBLE;
    bool floats =
        x->type == CUDNN_DATA_FLOAT || x->type == CUDNN_DATA_HALF || x->type == CUDNN_DATA_BFLOAT16;
    bool types = x->type == w->type && x->type == y->type &&
                 ((doubles && c->compute == CUDNN_DATA_DOUBLE) ||
                  (floats && c->compute == CUDNN_DATA_FLOAT));
    bool last_filter =
        w->strides[1] == 1 && w->dims[1] > 1 && w->dims[2] * w->dims[3] * w->dims[4] > 1;
    bool last_images = x->strides[1] == 1 && y->strides[1] == 1;
    return !types || (last_filter && !last_images) ? CUDNN_STATUS_NOT_SUPPORTED
                                                   : CUDNN_STATUS_SUCCESS;
}

std::atomic<int> last{-1}; /* what the last convolution was */

size_t workspace_of(int algo) {
    return algo ? 1024 : 0;
}

cudnnStatus_t queue(direction to, cudnnHandle_t handle, const void *alpha, const void *beta,
                    const convolution *c, const shape *x_shape, const void *x, const shape *w_shape,
                    const void *w, const shape *y_shape, const void *y, int algo, void *workspace,
                    size_t bytes) {
    if (!handle || !alpha || !beta || algo < 0 || algo > 1 || bytes < workspace_of(algo))
        return CUDNN_STATUS_BAD_PARAM;
    if (cudnnStatus_t status = check(c, x_shape, w_shape, y_shape))
        return status;
    const char *name = call_names[to];
    check_range(name, "x", x, bytes_of(*x_shape));
    check_range(name, "w", w, bytes_of(*w_shape));
    check_range(name, "y", y, bytes_of(*y_shape));
    check_range(name, "the workspace", workspace, workspace_of(algo));
    last = (int)c->math * 2 + algo;
    cudaDataType scale = x_shape->type == CUDNN_DATA_DOUBLE ? CUDA_R_64F : CUDA_R_32F;
    double a = load(scale, alpha, 0), b = load(scale, beta, 0);
    cudaError_t error = enqueue_library(
        handle->stream, name, [=, conv = *c, xs = *x_shape, ws = *w_shape, ys = *y_shape] {
            if (size_t needs = workspace_of(algo))
                memset(workspace, 0xEE, needs);
            run(to, conv, xs, x, ws, w, ys, y, a, b);
        });
    return error ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}

/* Both algorithms, the one without storage last; with it gradients are summed by whoever comes
 * first. */
template <typename P, typename A>
cudnnStatus_t list(direction to, const convolution *c, cudnnStatus_t status, int wanted, int *found,
                   P *results) {
    *found = 0;
    if (status)
        return status;
    count_choice();
    for (int algo = 1; algo >= 0 && *found < wanted; algo--) {
        P &p = results[(*found)++];
        p = P{};
        p.algo = (A)algo;
        p.time = (float)(2 - algo);
        p.memory = workspace_of(algo);
        p.determinism = algo && to != FORWARD ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
        p.mathType = c->math;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* Runs both algorithms, as far as there is room, and finds the one without storage quicker, which
 * is not what list() guesses. A stream that is recorded can't be timed. */
template <typename P, typename A>
cudnnStatus_t measure(direction to, cudnnHandle_t handle, const convolution *c,
                      const shape *x_shape, const void *x, const shape *w_shape, const void *w,
                      const shape *y_shape, const void *y, int wanted, int *found, P *results,
                      void *workspace, size_t bytes) {
    double one = 1, zero = 0;
    float one_f = 1, zero_f = 0;
    bool is_double = x_shape->type == CUDNN_DATA_DOUBLE;
    cudaStreamCaptureStatus capture;
    *found = 0;
    if (cudaStreamIsCapturing(handle->stream, &capture) || capture != cudaStreamCaptureStatusNone)
        return CUDNN_STATUS_EXECUTION_FAILED;
    for (int algo = 0; algo <= 1 && *found < wanted; algo++) {
        P &p = results[(*found)++];
        p = P{};
        p.algo = (A)algo;
        p.time = (float)(1 + algo);
        p.memory = workspace_of(algo);
        p.determinism = algo && to != FORWARD ? CUDNN_NON_DETERMINISTIC : CUDNN_DETERMINISTIC;
        p.mathType = c->math;
        p.status = bytes < p.memory ? CUDNN_STATUS_NOT_SUPPORTED
                                    : queue(to, handle, is_double ? (void *)&one : &one_f,
                                            is_double ? (void *)&zero : &zero_f, c, x_shape, x,
                                            w_shape, w, y_shape, y, algo, workspace, bytes);
    }
    count_choice();
    return cudaStreamSynchronize(handle->stream) ? CUDNN_STATUS_EXECUTION_FAILED
                                                 : CUDNN_STATUS_SUCCESS;
}

template <typename D> cudnnStatus_t create(D **out) {
    *out = new D{};
    return CUDNN_STATUS_SUCCESS;
}

template <typename D> cudnnStatus_t destroy(D *d) {
    delete d;
    return CUDNN_STATUS_SUCCESS;
}

} // namespace

const char *td_played_convolution(void) {
    static const char *const names[] = {
        "DEFAULT 0",         "DEFAULT 1",           "TENSOR_OP 0", "TENSOR_OP 1",
        "TENSOR_OP_CONVERT", "TENSOR_OP_CONVERT 1", "FMA 0",       "FMA 1"};
    return last < 0 ? "" : names[last];
}

size_t cudnnGetVersion(void) {
    return CUDNN_VERSION;
}

size_t cudnnGetCudartVersion(void) {
    return CUDART_VERSION;
}

const char *cudnnGetErrorString(cudnnStatus_t status) {
    switch (status) {
    case CUDNN_STATUS_SUCCESS:
        return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED:
        return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM:
        return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
        return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_INTERNAL_ERROR:
        return "CUDNN_STATUS_INTERNAL_ERROR";
    case CUDNN_STATUS_EXECUTION_FAILED:
        return "CUDNN_STATUS_EXECUTION_FAILED";
    }
    return "CUDNN_STATUS unknown";
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
    int device;
    if (cudaGetDevice(&device))
        return CUDNN_STATUS_NOT_INITIALIZED;
    return create(handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
    return destroy(handle);
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
    if (!handle || !is_stream(stream))
        return CUDNN_STATUS_BAD_PARAM;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream) {
    *stream = handle->stream;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *d) {
    return create(d);
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t d) {
    return destroy(d);
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int ndims,
                                         const int dims[], const int strides[]) {
    return set_shape(d, type, ndims, dims, strides);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format,
                                           cudnnDataType_t type, int ndims, const int dims[]) {
    return set_dense(d, format, type, ndims, dims);
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w) {
    int dims[] = {n, c, h, w};
    return set_dense(d, format, type, 4, dims);
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n,
                                           int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride) {
    int dims[] = {n, c, h, w}, strides[] = {n_stride, c_stride, h_stride, w_stride};
    return set_shape(d, type, 4, dims, strides);
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *d) {
    return create(d);
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t d) {
    return destroy(d);
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int ndims, const int dims[]) {
    return set_dense(d, format, type, ndims, dims);
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w) {
    int dims[] = {k, c, h, w};
    return set_dense(d, format, type, 4, dims);
}

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t *d) {
    return create(d);
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t d) {
    return destroy(d);
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int nspatial,
                                              const int pads[], const int strides[],
                                              const int dilations[], cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    if (!d || nspatial < 2 || nspatial > SPATIAL)
        return d && nspatial > SPATIAL ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM;
    d->nspatial = nspatial;
    d->mode = mode;
    d->compute = compute;
    for (int k = 0; k < SPATIAL; k++) {
        int from = k - (SPATIAL - nspatial);
        d->pads[k] = from < 0 ? 0 : pads[from];
        d->strides[k] = from < 0 ? 1 : strides[from];
        d->dilations[k] = from < 0 ? 1 : dilations[from];
        if (d->pads[k] < 0 || d->strides[k] < 1 || d->dilations[k] < 1)
            return CUDNN_STATUS_BAD_PARAM;
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w,
                                              int u, int v, int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t compute) {
    int pads[] = {pad_h, pad_w}, strides[] = {u, v}, dilations[] = {dilation_h, dilation_w};
    return cudnnSetConvolutionNdDescriptor(d, 2, pads, strides, dilations, mode, compute);
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math) {
    d->math = math;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups) {
    if (!d || groups < 1)
        return CUDNN_STATUS_BAD_PARAM;
    d->groups = groups;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(cudnnConvolutionDescriptor_t c,
                                                    cudnnTensorDescriptor_t x,
                                                    cudnnFilterDescriptor_t w, int ndims,
                                                    int dims[]) {
    if (!c || !x || !w || ndims != x->ndims || ndims != c->nspatial + 2)
        return CUDNN_STATUS_BAD_PARAM;
    dims[0] = (int)x->dims[0];
    dims[1] = (int)w->dims[0];
    for (int d = 0; d < c->nspatial; d++)
        dims[2 + d] = (int)out_dim(*c, *x, *w, SPATIAL - c->nspatial + d);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t
cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                       cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                       cudnnTensorDescriptor_t y, int wanted, int *found,
                                       cudnnConvolutionFwdAlgoPerf_t *results) {
    (void)handle;
    return list<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
        FORWARD, c, check(c, x, w, y), wanted, found, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t dx, int wanted, int *found,
    cudnnConvolutionBwdDataAlgoPerf_t *results) {
    (void)handle;
    return list<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
        BACKWARD_DATA, c, check(c, dx, w, dy), wanted, found, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t c, cudnnFilterDescriptor_t dw, int wanted, int *found,
    cudnnConvolutionBwdFilterAlgoPerf_t *results) {
    (void)handle;
    return list<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
        BACKWARD_FILTER, c, check(c, x, dw, dy), wanted, found, results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void *x,
    cudnnFilterDescriptor_t w_desc, const void *w, cudnnConvolutionDescriptor_t c,
    cudnnTensorDescriptor_t y_desc, void *y, int wanted, int *found,
    cudnnConvolutionFwdAlgoPerf_t *results, void *workspace, size_t bytes) {
    return measure<cudnnConvolutionFwdAlgoPerf_t, cudnnConvolutionFwdAlgo_t>(
        FORWARD, handle, c, x_desc, x, w_desc, w, y_desc, y, wanted, found, results, workspace,
        bytes);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w_desc, const void *w,
    cudnnTensorDescriptor_t dy_desc, const void *dy, cudnnConvolutionDescriptor_t c,
    cudnnTensorDescriptor_t dx_desc, void *dx, int wanted, int *found,
    cudnnConvolutionBwdDataAlgoPerf_t *results, void *workspace, size_t bytes) {
    return measure<cudnnConvolutionBwdDataAlgoPerf_t, cudnnConvolutionBwdDataAlgo_t>(
        BACKWARD_DATA, handle, c, dx_desc, dx, w_desc, w, dy_desc, dy, wanted, found, results,
        workspace, bytes);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x_desc, const void *x,
    cudnnTensorDescriptor_t dy_desc, const void *dy, cudnnConvolutionDescriptor_t c,
    cudnnFilterDescriptor_t dw_desc, void *dw, int wanted, int *found,
    cudnnConvolutionBwdFilterAlgoPerf_t *results, void *workspace, size_t bytes) {
    return measure<cudnnConvolutionBwdFilterAlgoPerf_t, cudnnConvolutionBwdFilterAlgo_t>(
        BACKWARD_FILTER, handle, c, x_desc, x, dw_desc, dw, dy_desc, dy, wanted, found, results,
        workspace, bytes);
}

cudnnStatus_t
cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                        cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t c,
                                        cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                        size_t *bytes) {
    *bytes = workspace_of(algo);
    return handle ? check(c, x, w, y) : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t c, cudnnTensorDescriptor_t dx, cudnnConvolutionBwdDataAlgo_t algo,
    size_t *bytes) {
    *bytes = workspace_of(algo);
    return handle ? check(c, dx, w, dy) : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
    cudnnConvolutionDescriptor_t c, cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes) {
    *bytes = workspace_of(algo);
    return handle ? check(c, x, dw, dy) : CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha,
                                      cudnnTensorDescriptor_t x_desc, const void *x,
                                      cudnnFilterDescriptor_t w_desc, const void *w,
                                      cudnnConvolutionDescriptor_t c,
                                      cudnnConvolutionFwdAlgo_t algo, void *workspace, size_t bytes,
                                      const void *beta, cudnnTensorDescriptor_t y_desc, void *y) {
    return queue(FORWARD, handle, alpha, beta, c, x_desc, x, w_desc, w, y_desc, y, algo, workspace,
                 bytes);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha,
                                           cudnnFilterDescriptor_t w_desc, const void *w,
                                           cudnnTensorDescriptor_t dy_desc, const void *dy,
                                           cudnnConvolutionDescriptor_t c,
                                           cudnnConvolutionBwdDataAlgo_t algo, void *workspace,
                                           size_t bytes, const void *beta,
                                           cudnnTensorDescriptor_t dx_desc, void *dx) {
    return queue(BACKWARD_DATA, handle, alpha, beta, c, dx_desc, dx, w_desc, w, dy_desc, dy, algo,
                 workspace, bytes);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha,
                                             cudnnTensorDescriptor_t x_desc, const void *x,
                                             cudnnTensorDescriptor_t dy_desc, const void *dy,
                                             cudnnConvolutionDescriptor_t c,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void *workspace,
                                             size_t bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_desc, void *dw) {
    return queue(BACKWARD_FILTER, handle, alpha, beta, c, x_desc, x, dw_desc, dw, dy_desc, dy, algo,
                 workspace, bytes);
}
