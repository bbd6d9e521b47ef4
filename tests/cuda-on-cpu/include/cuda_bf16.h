/* cuda_bf16.h: __nv_bfloat16 and __nv_bfloat162 for the host's compiler. */
#ifndef TIDE_PLAYED_CUDA_BF16_H
#define TIDE_PLAYED_CUDA_BF16_H

#include "cuda_fp16.h"
#include "played/small_float.h"

struct __attribute__((aligned(2))) __nv_bfloat16_raw {
    unsigned short x;
};

static inline unsigned short td_played_bfloat_bits(float f) {
    uint32_t bits = td_played_bits<uint32_t>(f);
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return 0x7FFF; /* a device's NaN */
    return (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

struct __attribute__((aligned(2))) __nv_bfloat16 {
    unsigned short bits;
    __nv_bfloat16() = default;
    __nv_bfloat16(float f) : bits(td_played_bfloat_bits(f)) {}
    __nv_bfloat16(double d) : bits(td_played_bfloat_bits(td_played_float_to_odd(d))) {}
    __nv_bfloat16(int i) : __nv_bfloat16((double)i) {}
    __nv_bfloat16(unsigned i) : __nv_bfloat16((double)i) {}
    __nv_bfloat16(long i) : __nv_bfloat16((float)i) {}
    __nv_bfloat16(unsigned long i) : __nv_bfloat16((float)i) {}
    __nv_bfloat16(long long i) : __nv_bfloat16((float)i) {}
    __nv_bfloat16(unsigned long long i) : __nv_bfloat16((float)i) {}
    __nv_bfloat16(const __nv_bfloat16_raw &raw) : bits(raw.x) {}
    operator float() const { return td_played_bits<float>((uint32_t)bits << 16); }
    operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
};
typedef __nv_bfloat16 nv_bfloat16;
TD_PLAYED_SMALL_FLOAT(__nv_bfloat16)

struct __attribute__((aligned(4))) __nv_bfloat162 {
    __nv_bfloat16 x, y;
    __nv_bfloat162() = default;
    __nv_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) : x(a), y(b) {}
};
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float f) {
    return __nv_bfloat16(f);
}
static inline __nv_bfloat16 __float2bfloat16_rn(float f) {
    return __nv_bfloat16(f);
}
static inline __nv_bfloat16 __double2bfloat16(double d) {
    return __nv_bfloat16(d);
}
static inline float __bfloat162float(__nv_bfloat16 b) {
    return (float)b;
}
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    return __nv_bfloat16(__nv_bfloat16_raw{bits});
}
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 b) {
    return b.bits;
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(a, b);
}
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) {
    return __nv_bfloat162(a, b);
}
static inline float __low2float(__nv_bfloat162 b) {
    return (float)b.x;
}
static inline float __high2float(__nv_bfloat162 b) {
    return (float)b.y;
}

#endif
