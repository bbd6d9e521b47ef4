/* math.cuh: the vocabulary of ops/language/primitives.def for the device: functions of float and double. */
#ifndef TD_CUDA_RUNTIME_MATH_CUH
#define TD_CUDA_RUNTIME_MATH_CUH

#ifndef __CUDACC_RTC__
#include <cuda_runtime.h>
#include <math.h>
#endif

/* A function of the toolkit in both precisions. */
#define TD_CU_MATH1(name)                                                                          \
    __device__ static inline float td_cu_##name(float x) { return name##f(x); }                    \
    __device__ static inline double td_cu_##name(double x) { return name(x); }
#define TD_CU_MATH2(name)                                                                          \
    __device__ static inline float td_cu_##name(float x, float y) { return name##f(x, y); }        \
    __device__ static inline double td_cu_##name(double x, double y) { return name(x, y); }
TD_CU_MATH1(sqrt)
TD_CU_MATH1(floor)
TD_CU_MATH1(ceil)
TD_CU_MATH1(rint)
TD_CU_MATH1(trunc)
TD_CU_MATH1(exp)
TD_CU_MATH1(exp2)
TD_CU_MATH1(expm1)
TD_CU_MATH1(log)
TD_CU_MATH1(log2)
TD_CU_MATH1(log10)
TD_CU_MATH1(log1p)
TD_CU_MATH1(sin)
TD_CU_MATH1(cos)
TD_CU_MATH1(tan)
TD_CU_MATH1(asin)
TD_CU_MATH1(acos)
TD_CU_MATH1(atan)
TD_CU_MATH1(sinh)
TD_CU_MATH1(cosh)
TD_CU_MATH1(tanh)
TD_CU_MATH1(erf)
TD_CU_MATH1(erfc)
TD_CU_MATH1(asinh)
TD_CU_MATH1(acosh)
TD_CU_MATH1(atanh)
TD_CU_MATH1(lgamma)
TD_CU_MATH2(copysign)
TD_CU_MATH2(nextafter)
TD_CU_MATH2(atan2)
TD_CU_MATH2(hypot)
TD_CU_MATH2(fmod)
#undef TD_CU_MATH1
#undef TD_CU_MATH2

__device__ static inline float td_cu_abs(float x) { return fabsf(x); }
__device__ static inline double td_cu_abs(double x) { return fabs(x); }
__device__ static inline float td_cu_rsqrt(float x) { return 1 / sqrtf(x); }
__device__ static inline double td_cu_rsqrt(double x) { return 1 / sqrt(x); }
__device__ static inline float td_cu_pow(float x, float y) { return powf(x, y); }
__device__ static inline double td_cu_pow(double x, double y) { return pow(x, y); }

/* NaN wins, and of equals the first. */
template <typename T> __device__ static inline T td_cu_max(T a, T b) {
    return a != a || a >= b ? a : b;
}
template <typename T> __device__ static inline T td_cu_min(T a, T b) {
    return a != a || a <= b ? a : b;
}

/* Nothing cancels, and nothing overflows, at either end. */
template <typename T> __device__ static inline T td_cu_sigmoid(T x) {
    T e = td_cu_exp(-td_cu_abs(x));
    return (x < 0 ? e : (T)1) / ((T)1 + e);
}
/* x times it; where x is so low that e is no normal number, by its root. Floats stay floats: many
 * devices are slow with doubles. */
__device__ static inline float td_cu_silu(float x) {
    float e = expf(x < -80 ? 0.5f * x : -fabsf(x));
    return x < -80 ? x * e * e : x * ((x < 0 ? e : 1.0f) / (1 + e));
}
__device__ static inline double td_cu_silu(double x) {
    double e = exp(-fabs(x));
    return x * ((x < 0 ? e : 1.0) / (1 + e));
}
/* Where erfc is small it multiplies what z was rounded by, which is put right to first order. */
__device__ static inline float td_cu_gelu(float x) {
    const float root = 0.70710678118654752440f, rest = 1.21016175e-8f; /* of one half */
    float z = -x * root, f = erfcf(z);
    if (z > 1 && z < 12)
        f *= 1 - 2 * z * (fmaf(-x, root, -z) - x * rest);
    return 0.5f * x * f;
}
__device__ static inline double td_cu_gelu(double x) {
    return 0.5 * x * erfc(-x * 0.70710678118654752440);
}

/* Remainder with the sign of the divisor; floor(x / y) from it, so that they agree. x / 0 is as
 * division says, and a 0 has the quotient's sign. */
template <typename T> __device__ static inline T td_cu_floor_mod(T x, T y) {
    T m = td_cu_fmod(x, y);
    return m != 0 && (y < 0) != (m < 0) ? m + y : m;
}
template <typename T> __device__ static inline T td_cu_floor_div(T x, T y) {
    T m = td_cu_fmod(x, y), q = td_cu_rint((x - m) / y);
    if (m != 0 && (y < 0) != (m < 0))
        q -= 1;
    if (q == 0)
        q = td_cu_copysign(q, x / y);
    return y == 0 ? x / y : q;
}

#endif
