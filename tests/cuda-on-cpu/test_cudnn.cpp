/* test_cudnn.cpp: convolution on the played device: values from PyTorch, gradients by the identity
 * <conv(x, w), y> = <x, backward data> = <w, backward filter>, layouts, refusals. */
#include "check_cpp.h"
#include "include/cuda_fp16.h"
#include "include/cudnn.h"

#include <vector>

#define CHECK_DNN(call) CHECK_STR(cudnnGetErrorString(call), "CUDNN_STATUS_SUCCESS")

/* A convolution, its three descriptors and the handle. */
struct setting {
    cudnnHandle_t handle;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    setting() {
        CHECK_DNN(cudnnCreate(&handle));
        cudnnCreateTensorDescriptor(&x), cudnnCreateTensorDescriptor(&y);
        cudnnCreateFilterDescriptor(&w), cudnnCreateConvolutionDescriptor(&conv);
    }
    ~setting() {
        cudnnDestroyTensorDescriptor(x), cudnnDestroyTensorDescriptor(y);
        cudnnDestroyFilterDescriptor(w), cudnnDestroyConvolutionDescriptor(conv);
        cudnnDestroy(handle);
    }
};

static size_t product(const std::vector<int> &dims) {
    size_t n = 1;
    for (int dim : dims)
        n *= (size_t)dim;
    return n;
}

template <typename T> static double dot(const T *a, const T *b, size_t n) {
    std::vector<T> x = download(a, n), y = download(b, n);
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        sum += (double)x[k] * (double)y[k];
    return sum;
}

/* Values that repeat with a period prime to the dims. */
template <typename T> static T *values(size_t n, int period) {
    std::vector<T> v(n);
    for (size_t k = 0; k < n; k++)
        v[k] = (T)((int)(k * 7 % (size_t)period) - period / 2);
    T *p = device_array<T>(n);
    CHECK_OK(cudaMemcpy(p, v.data(), n * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <typename T>
static void check_gradients(cudnnDataType_t type, cudnnTensorFormat_t format,
                            std::vector<int> x_dims, std::vector<int> w_dims, int groups,
                            std::vector<int> pads, std::vector<int> strides,
                            std::vector<int> dilations) {
    setting s;
    int ndims = (int)x_dims.size();
    std::vector<int> y_dims(x_dims.size());
    cudnnDataType_t compute = type == CUDNN_DATA_DOUBLE ? type : CUDNN_DATA_FLOAT;
    CHECK_DNN(cudnnSetTensorNdDescriptorEx(s.x, format, type, ndims, x_dims.data()));
    CHECK_DNN(cudnnSetFilterNdDescriptor(s.w, type, format, ndims, w_dims.data()));
    CHECK_DNN(cudnnSetConvolutionNdDescriptor(s.conv, ndims - 2, pads.data(), strides.data(),
                                              dilations.data(), CUDNN_CROSS_CORRELATION, compute));
    CHECK_DNN(cudnnSetConvolutionGroupCount(s.conv, groups));
    CHECK_DNN(cudnnGetConvolutionNdForwardOutputDim(s.conv, s.x, s.w, ndims, y_dims.data()));
    CHECK_DNN(cudnnSetTensorNdDescriptorEx(s.y, format, type, ndims, y_dims.data()));
    size_t nx = product(x_dims), nw = product(w_dims), ny = product(y_dims);
    T *x = values<T>(nx, 5), *w = values<T>(nw, 3), *dy = values<T>(ny, 7);
    T *y = device_array<T>(ny), *dx = device_array<T>(nx), *dw = device_array<T>(nw);
    double one = 1, zero = 0;
    float one_f = 1, zero_f = 0;
    const void *a = type == CUDNN_DATA_DOUBLE ? (void *)&one : &one_f;
    const void *b = type == CUDNN_DATA_DOUBLE ? (void *)&zero : &zero_f;
    cudnnConvolutionFwdAlgoPerf_t best;
    int found;
    CHECK_DNN(
        cudnnGetConvolutionForwardAlgorithm_v7(s.handle, s.x, s.w, s.conv, s.y, 1, &found, &best));
    void *workspace = device_array<char>(best.memory);
    CHECK_INT(cudnnConvolutionForward(s.handle, a, s.x, x, s.w, w, s.conv, best.algo, workspace,
                                      best.memory - 1, b, s.y, y),
              CUDNN_STATUS_BAD_PARAM);
    CHECK_DNN(cudnnConvolutionForward(s.handle, a, s.x, x, s.w, w, s.conv, best.algo, workspace,
                                      best.memory, b, s.y, y));
    CHECK_DNN(cudnnConvolutionBackwardData(s.handle, a, s.w, w, s.y, dy, s.conv,
                                           CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, NULL, 0, b, s.x, dx));
    CHECK_DNN(cudnnConvolutionBackwardFilter(s.handle, a, s.x, x, s.y, dy, s.conv,
                                             CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, NULL, 0, b, s.w,
                                             dw));
    double through = dot(y, dy, ny);
    CHECK(through != 0);
    CHECK_CLOSE(dot(x, dx, nx), through, 0);
    CHECK_CLOSE(dot(w, dw, nw), through, 0);
    for (void *p : {(void *)x, (void *)w, (void *)y, (void *)dx, (void *)dw, (void *)dy, workspace})
        cudaFree(p);
}

TEST(gradients_belong_to_the_convolution) {
    check_gradients<double>(CUDNN_DATA_DOUBLE, CUDNN_TENSOR_NCHW, {2, 4, 7, 6}, {6, 2, 3, 2}, 2,
                            {1, 0}, {2, 1}, {1, 2});
    check_gradients<float>(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, {2, 3, 5, 5}, {4, 3, 3, 3}, 1,
                           {1, 1}, {1, 1}, {1, 1});
    check_gradients<__half>(CUDNN_DATA_HALF, CUDNN_TENSOR_NCHW, {1, 2, 4, 4}, {2, 1, 2, 2}, 2,
                            {0, 0}, {1, 1}, {1, 1});
    check_gradients<float>(CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, {1, 2, 3, 4, 5}, {3, 2, 2, 3, 2}, 1,
                           {1, 1, 0}, {1, 2, 1}, {2, 1, 1});
}

/* x = arange(9) as 1x1x3x3, w = [[1, 2], [3, 4]], padding 1, stride 2. */
TEST(values_are_those_of_the_definition) {
    setting s;
    CHECK_DNN(cudnnSetTensor4dDescriptor(s.x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 3, 3));
    CHECK_DNN(cudnnSetFilter4dDescriptor(s.w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 1, 1, 2, 2));
    CHECK_DNN(cudnnSetTensor4dDescriptor(s.y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 2, 2));
    float *x = counting<float>(9, 0), *w = counting<float>(4, 1), *y = counting<float>(4, 1);
    float one = 1, two = 2;
    CHECK_DNN(cudnnSetConvolution2dDescriptor(s.conv, 1, 1, 2, 2, 1, 1, CUDNN_CROSS_CORRELATION,
                                              CUDNN_DATA_FLOAT));
    auto forward = [&] {
        return cudnnConvolutionForward(s.handle, &one, s.x, x, s.w, w, s.conv,
                                       CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &two, s.y,
                                       y);
    };
    CHECK_DNN(forward());
    CHECK(download(y, 4) == (std::vector<float>{0 + 2, 11 + 4, 30 + 6, 67 + 8}));
    CHECK_DNN(cudnnSetConvolution2dDescriptor(s.conv, 1, 1, 2, 2, 1, 1, CUDNN_CONVOLUTION,
                                              CUDNN_DATA_FLOAT));
    two = 0;
    CHECK_DNN(forward());
    CHECK(download(y, 4) == (std::vector<float>{0, 4, 15, 53})); /* the filter turned around */
    CHECK_DNN(cudnnSetTensor4dDescriptor(s.y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 3, 2));
    CHECK_INT(forward(), CUDNN_STATUS_BAD_PARAM);
    CHECK_DNN(cudnnSetTensor4dDescriptor(s.y, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 1, 1, 2, 2));
    CHECK_INT(forward(), CUDNN_STATUS_NOT_SUPPORTED);
    CHECK_INT(cudnnSetTensor4dDescriptor(s.y, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 1, 0, 2, 2),
              CUDNN_STATUS_BAD_PARAM);
    cudaFree(x), cudaFree(w), cudaFree(y);
}

int main() {
    RUN(gradients_belong_to_the_convolution);
    RUN(values_are_those_of_the_definition);
    return check_finish();
}
