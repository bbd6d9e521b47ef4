/* library.cpp: elements of every type that the played libraries take, as doubles. */
#include "library.h"
#include "runtime.h"

#include <atomic>

namespace td_played {

static std::atomic<unsigned long long> choices;

void count_choice() {
    choices++;
}

double to_tf32(double x) {
    uint32_t bits = td_played_bits<uint32_t>((float)x);
    if ((bits & 0x7F800000) != 0x7F800000)
        bits = (bits + 0xFFF + (bits >> 13 & 1)) & ~0x1FFFu;
    return td_played_bits<float>(bits);
}

size_t size_of(cudaDataType type) {
    switch (type) {
    case CUDA_R_8I:
    case CUDA_R_8U:
        return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
        return 2;
    case CUDA_R_32F:
    case CUDA_R_32I:
        return 4;
    case CUDA_R_64F:
    case CUDA_R_64I:
        return 8;
    }
    return 0;
}

double load(cudaDataType type, const void *p, size_t at) {
    switch (type) {
    case CUDA_R_8I:
        return static_cast<const int8_t *>(p)[at];
    case CUDA_R_8U:
        return static_cast<const uint8_t *>(p)[at];
    case CUDA_R_16F:
        return static_cast<const __half *>(p)[at];
    case CUDA_R_16BF:
        return static_cast<const __nv_bfloat16 *>(p)[at];
    case CUDA_R_32F:
        return static_cast<const float *>(p)[at];
    case CUDA_R_32I:
        return static_cast<const int32_t *>(p)[at];
    case CUDA_R_64F:
        return static_cast<const double *>(p)[at];
    case CUDA_R_64I:
        return (double)static_cast<const int64_t *>(p)[at];
    }
    return 0;
}

void store(cudaDataType type, void *p, size_t at, double value) {
    switch (type) {
    case CUDA_R_8I:
        static_cast<int8_t *>(p)[at] = (int8_t)(value < -128 ? -128 : value > 127 ? 127 : value);
        return;
    case CUDA_R_8U:
        static_cast<uint8_t *>(p)[at] = (uint8_t)(int64_t)value;
        return;
    case CUDA_R_16F:
        static_cast<__half *>(p)[at] = __half(value);
        return;
    case CUDA_R_16BF:
        static_cast<__nv_bfloat16 *>(p)[at] = __nv_bfloat16(value);
        return;
    case CUDA_R_32F:
        static_cast<float *>(p)[at] = (float)value;
        return;
    case CUDA_R_32I:
        static_cast<int32_t *>(p)[at] = (int32_t)(int64_t)value;
        return;
    case CUDA_R_64F:
        static_cast<double *>(p)[at] = value;
        return;
    case CUDA_R_64I:
        static_cast<int64_t *>(p)[at] = (int64_t)value;
        return;
    }
}

void check_range(const char *call, const char *what, const void *p, size_t bytes) {
    std::unique_lock<std::mutex> hold(S.lock);
    begin();
    if (bytes && !find_block(p, bytes))
        die("%s: %s needs %zu bytes, which lie in no block of device memory", call, what, bytes);
}

void check_aligned(const char *call, const char *what, const void *p, size_t bytes) {
    if ((uintptr_t)p % bytes)
        die("%s: %s is not aligned to %zu bytes", call, what, bytes);
}

bool is_stream(cudaStream_t handle) {
    std::unique_lock<std::mutex> hold(S.lock);
    return !begin() && stream_of(handle);
}

} // namespace td_played

unsigned long long td_played_choices(void) {
    return td_played::choices;
}
