/* check_cpp.h: what the tests of the played device share. */
#ifndef TIDE_PLAYED_CHECK_CPP_H
#define TIDE_PLAYED_CHECK_CPP_H

#include "tests/check.h"

#include "include/cuda_runtime.h"
#include "include/played/played.h"

#include <vector>

#define CHECK_OK(call) CHECK_STR(cudaGetErrorName(call), "cudaSuccess")

#define LAUNCH(kernel, grid, block, shared, stream, ...)                                           \
    td_played::launch(#kernel, false, grid, block, shared, stream, kernel, __VA_ARGS__)
#define LAUNCH_TOGETHER(kernel, grid, block, shared, stream, ...)                                  \
    td_played::launch(#kernel, true, grid, block, shared, stream, kernel, __VA_ARGS__)

template <typename T> static inline T *device_array(size_t n) {
    T *p = nullptr;
    CHECK_OK(cudaMalloc(&p, n * sizeof(T)));
    return p;
}

template <typename T> static inline T *upload(const std::vector<T> &values) {
    T *p = device_array<T>(values.size());
    CHECK_OK(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return p;
}

template <typename T> static inline std::vector<T> download(const T *p, size_t n) {
    std::vector<T> values(n);
    CHECK_OK(cudaMemcpy(values.data(), p, n * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
}

/* An array on the device whose elements are from, from + 1, ... */
template <typename T> static inline T *counting(size_t n, T from) {
    T *p = device_array<T>(n), *host = new T[n];
    for (size_t k = 0; k < n; k++)
        host[k] = (T)(from + (T)k);
    CHECK_OK(cudaMemcpy(p, host, n * sizeof(T), cudaMemcpyHostToDevice));
    delete[] host;
    return p;
}

template <typename T> static inline T read_one(const T *p) {
    T value;
    CHECK_OK(cudaMemcpy(&value, p, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

#endif
