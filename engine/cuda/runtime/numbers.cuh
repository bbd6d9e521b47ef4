/* numbers.cuh: elements whose type is known, as numbers, and conversions between them as the CPU
 * does them. Also given to the compiler that runs at run time, which has no headers of its own. */
#ifndef TD_CUDA_RUNTIME_NUMBERS_CUH
#define TD_CUDA_RUNTIME_NUMBERS_CUH

#ifdef __CUDACC_RTC__
struct __half {
    unsigned short bits;
};
__device__ static inline float __half2float(__half h) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
    return f;
}
__device__ static inline __half __float2half_rn(float f) {
    __half h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
}

struct __nv_bfloat16 {
    unsigned short bits;
};
__device__ static inline float __bfloat162float(__nv_bfloat16 b) {
    return __uint_as_float((unsigned int)b.bits << 16);
}
__device__ static inline __nv_bfloat16 __float2bfloat16_rn(float f) {
    __nv_bfloat16 b;
#if __CUDA_ARCH__ >= 800
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(b.bits) : "f"(f));
#else
    unsigned int bits = __float_as_uint(f);
    b.bits = f != f ? 0x7FFF : (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
#endif
    return b;
}
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif

/* bool is an element of its own kind, as whatever is not 0 becomes 1 in it. */
struct td_bool {
    unsigned char byte;
};

/* ---- as numbers: every type has one of float, double and int64 that holds it ---- */

template <typename T> struct td_wide_of { typedef long long type; };
template <> struct td_wide_of<float> { typedef float type; };
template <> struct td_wide_of<__half> { typedef float type; };
template <> struct td_wide_of<__nv_bfloat16> { typedef float type; };
template <> struct td_wide_of<double> { typedef double type; };
template <typename T> using td_wide = typename td_wide_of<T>::type;

/* The type that sums are kept in: double of floats, int64 of integers. */
template <typename W> struct td_sum_of { typedef double type; };
template <> struct td_sum_of<long long> { typedef long long type; };
template <typename T> using td_sum = typename td_sum_of<td_wide<T>>::type;

template <typename T> __device__ static inline td_wide<T> td_widen(T x) { return x; }
__device__ static inline long long td_widen(td_bool x) { return x.byte != 0; }
__device__ static inline float td_widen(__half x) { return __half2float(x); }
__device__ static inline float td_widen(__nv_bfloat16 x) { return __bfloat162float(x); }

/* Towards zero; what an integer does not hold, NaN among it, is the least one: core/dtype.h. */
__device__ static inline long long td_float_to_i64(double v) {
    return v >= -0x1p63 && v < 0x1p63 ? (long long)v : -0x7fffffffffffffffLL - 1;
}
__device__ static inline int td_float_to_i32(double v) {
    return v > -0x1.00000002p31 && v < 0x1p31 ? (int)v : -0x7fffffff - 1;
}

/* From a wide number to an element: narrower integers take the low bits. */
template <typename T> struct td_narrow {
    __device__ static T of(long long v) { return (T)v; }
    __device__ static T of(double v) { return (T)td_float_to_i32(v); }
    __device__ static T of(float v) { return (T)td_float_to_i32(v); }
};
template <> struct td_narrow<unsigned char> {
    __device__ static unsigned char of(long long v) { return (unsigned char)v; }
    __device__ static unsigned char of(double v) { return (unsigned char)td_float_to_i64(v); }
    __device__ static unsigned char of(float v) { return (unsigned char)td_float_to_i64(v); }
};
template <> struct td_narrow<long long> {
    __device__ static long long of(long long v) { return v; }
    __device__ static long long of(double v) { return td_float_to_i64(v); }
    __device__ static long long of(float v) { return td_float_to_i64(v); }
};
template <> struct td_narrow<td_bool> {
    template <typename V> __device__ static td_bool of(V v) {
        td_bool b = {(unsigned char)(v != 0)};
        return b;
    }
};
template <> struct td_narrow<float> {
    template <typename V> __device__ static float of(V v) { return (float)v; }
};
template <> struct td_narrow<double> {
    template <typename V> __device__ static double of(V v) { return (double)v; }
};

/* A float that rounds to fewer digits as the wider number does: core/half.h. */
__device__ static inline float td_cu_odd_float(float v) { return v; }
__device__ static inline float td_cu_odd_float(double v) {
    float f = (float)v;
    double back = (double)f;
    unsigned int bits = __float_as_uint(f);
    bits -= (v < 0 ? back < v : back > v) ? 1 : 0;
    return __uint_as_float(back != v ? bits | 1 : bits);
}
__device__ static inline float td_cu_odd_float(long long v) {
    long long low = v & 0xFFFF, cut = v - low + (low ? 0x8000 : 0);
    return td_cu_odd_float((double)(v > -(1LL << 40) && v < 1LL << 40 ? v : cut));
}
template <> struct td_narrow<__half> {
    template <typename V> __device__ static __half of(V v) {
        return __float2half_rn(td_cu_odd_float(v));
    }
};
template <> struct td_narrow<__nv_bfloat16> {
    template <typename V> __device__ static __nv_bfloat16 of(V v) {
        return __float2bfloat16_rn(td_cu_odd_float(v));
    }
};

#endif
