/* elements.cuh: elements of every dtype on the device, conversions between them as the CPU does
 * them, and the choice of a type by a dtype. */
#ifndef TD_CUDA_RUNTIME_ELEMENTS_CUH
#define TD_CUDA_RUNTIME_ELEMENTS_CUH

#include "engine/core/dtype.h"
#include "engine/cuda/runtime/numbers.cuh"

/* ---- one element whose dtype is known when the kernel runs ---- */

/* A number of any dtype: floats of up to 32 bits as f, float64 as d, integers and bool as i. */
union td_slot {
    float f;
    double d;
    long long i;
};

enum td_slot_kind { TD_SLOT_FLOAT, TD_SLOT_DOUBLE, TD_SLOT_INT };

__device__ static inline int td_slot_kind_of(int dtype) {
    const unsigned int floats = 1u << TD_F16 | 1u << TD_BF16 | 1u << TD_F32, doubles = 1u << TD_F64;
    return doubles >> dtype & 1 ? TD_SLOT_DOUBLE : floats >> dtype & 1 ? TD_SLOT_FLOAT : TD_SLOT_INT;
}

/* Bytes of an element; a table of their logarithms, two bits each. */
__device__ static inline int td_element_size(int dtype) {
    const unsigned int logarithms = 1u << 2 * TD_I16 | 2u << 2 * TD_I32 | 3u << 2 * TD_I64 |
                                    1u << 2 * TD_F16 | 1u << 2 * TD_BF16 | 2u << 2 * TD_F32 |
                                    3u << 2 * TD_F64;
    return 1 << (logarithms >> 2 * dtype & 3);
}

__device__ static inline td_slot td_load_slot(int dtype, const void *p) {
    td_slot s;
    s.i = 0;
    switch (dtype) {
    case TD_BOOL: s.i = *(const unsigned char *)p != 0; break;
    case TD_U8: s.i = *(const unsigned char *)p; break;
    case TD_I8: s.i = *(const signed char *)p; break;
    case TD_I16: s.i = *(const short *)p; break;
    case TD_I32: s.i = *(const int *)p; break;
    case TD_I64: s.i = *(const long long *)p; break;
    case TD_F16: s.f = __half2float(*(const __half *)p); break;
    case TD_BF16: s.f = __bfloat162float(*(const __nv_bfloat16 *)p); break;
    case TD_F32: s.f = *(const float *)p; break;
    case TD_F64: s.d = *(const double *)p; break;
    }
    return s;
}

/* A number of one dtype as one of another, rounded to what that holds. */
template <typename T> __device__ static inline td_slot td_slot_of(int to, T v) {
    td_slot s;
    s.i = 0;
    switch (to) {
    case TD_BOOL: s.i = v != 0; break;
    case TD_U8: s.i = td_narrow<unsigned char>::of(v); break;
    case TD_I8: s.i = td_narrow<signed char>::of(v); break;
    case TD_I16: s.i = td_narrow<short>::of(v); break;
    case TD_I32: s.i = td_narrow<int>::of(v); break;
    case TD_I64: s.i = td_narrow<long long>::of(v); break;
    case TD_F16: s.f = __half2float(td_narrow<__half>::of(v)); break;
    case TD_BF16: s.f = __bfloat162float(td_narrow<__nv_bfloat16>::of(v)); break;
    case TD_F32: s.f = (float)v; break;
    case TD_F64: s.d = (double)v; break;
    }
    return s;
}
__device__ static inline td_slot td_convert_slot(int to, int from, td_slot s) {
    if (to == from)
        return s;
    int kind = td_slot_kind_of(from);
    return kind == TD_SLOT_FLOAT    ? td_slot_of(to, s.f)
           : kind == TD_SLOT_DOUBLE ? td_slot_of(to, s.d)
                                    : td_slot_of(to, s.i);
}

/* `s` is of the dtype, which rounds nothing any more. */
__device__ static inline void td_store_slot(int dtype, void *p, td_slot s) {
    switch (dtype) {
    case TD_BOOL:
    case TD_U8: *(unsigned char *)p = (unsigned char)s.i; break;
    case TD_I8: *(signed char *)p = (signed char)s.i; break;
    case TD_I16: *(short *)p = (short)s.i; break;
    case TD_I32: *(int *)p = (int)s.i; break;
    case TD_I64: *(long long *)p = s.i; break;
    case TD_F16: *(__half *)p = __float2half_rn(s.f); break;
    case TD_BF16: *(__nv_bfloat16 *)p = __float2bfloat16_rn(s.f); break;
    case TD_F32: *(float *)p = s.f; break;
    case TD_F64: *(double *)p = s.d; break;
    }
}

/* ---- a type by a dtype, on the host ----
 *
 *   TD_BY_DTYPE(dtype, T, return launch<T>(arguments))   T: one of the types below
 */
#define TD_CASE_(D, type, T, ...)                                                                  \
    case D: {                                                                                      \
        typedef type T;                                                                            \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }
#define TD_CASES_FLOAT_(T, ...)                                                                    \
    TD_CASE_(TD_F16, __half, T, __VA_ARGS__)                                                       \
    TD_CASE_(TD_BF16, __nv_bfloat16, T, __VA_ARGS__)                                               \
    TD_CASE_(TD_F32, float, T, __VA_ARGS__)                                                        \
    TD_CASE_(TD_F64, double, T, __VA_ARGS__)
#define TD_CASES_INT_(T, ...)                                                                      \
    TD_CASE_(TD_U8, unsigned char, T, __VA_ARGS__)                                                 \
    TD_CASE_(TD_I8, signed char, T, __VA_ARGS__)                                                   \
    TD_CASE_(TD_I16, short, T, __VA_ARGS__)                                                        \
    TD_CASE_(TD_I32, int, T, __VA_ARGS__)                                                          \
    TD_CASE_(TD_I64, long long, T, __VA_ARGS__)
#define TD_BY_DTYPE(dtype, T, ...)                                                                 \
    switch (dtype) {                                                                               \
        TD_CASE_(TD_BOOL, td_bool, T, __VA_ARGS__)                                                 \
        TD_CASES_INT_(T, __VA_ARGS__)                                                              \
        TD_CASES_FLOAT_(T, __VA_ARGS__)                                                            \
    default: break;                                                                                \
    }
#define TD_BY_FLOAT(dtype, T, ...)                                                                 \
    switch (dtype) {                                                                               \
        TD_CASES_FLOAT_(T, __VA_ARGS__)                                                            \
    default: break;                                                                                \
    }
/* All but bool. */
#define TD_BY_NUMBER(dtype, T, ...)                                                                \
    switch (dtype) {                                                                               \
        TD_CASES_INT_(T, __VA_ARGS__)                                                              \
        TD_CASES_FLOAT_(T, __VA_ARGS__)                                                            \
    default: break;                                                                                \
    }
/* Elements that are only moved: by their size. */
#define TD_BY_SIZE(size, T, ...)                                                                   \
    switch (size) {                                                                                \
        TD_CASE_(1, unsigned char, T, __VA_ARGS__)                                                 \
        TD_CASE_(2, unsigned short, T, __VA_ARGS__)                                                \
        TD_CASE_(4, unsigned int, T, __VA_ARGS__)                                                  \
        TD_CASE_(8, unsigned long long, T, __VA_ARGS__)                                            \
    default: break;                                                                                \
    }

#endif
