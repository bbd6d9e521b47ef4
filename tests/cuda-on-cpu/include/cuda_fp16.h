/* cuda_fp16.h: __half and __half2 for the host's compiler. */
#ifndef TIDE_PLAYED_CUDA_FP16_H
#define TIDE_PLAYED_CUDA_FP16_H

#include "played/small_float.h"

struct __attribute__((aligned(2))) __half_raw {
    unsigned short x;
};

static inline unsigned short td_played_half_bits(float f) {
    uint32_t bits = td_played_bits<uint32_t>(f), sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7FFFFFFF, h;
    if (magnitude > 0x7F800000)
        h = 0x7FFF;                   /* a device's NaN */
    else if (magnitude >= 0x477FF000) /* from 65520 on it rounds to infinity */
        h = 0x7C00;
    else if (magnitude < 0x38800000) /* subnormal: an addition rounds to its last place */
        h = td_played_bits<uint32_t>(td_played_bits<float>(magnitude) + 0.5f) - 0x3F000000;
    else
        h = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    return (unsigned short)(magnitude > 0x7F800000 ? h : sign | h);
}

/* Where a double is rounded to a half by way of a float, it is rounded to odd first. */
static inline float td_played_float_to_odd(double d) {
    float f = (float)d;
    uint32_t bits = td_played_bits<uint32_t>(f);
    if ((double)f != d && d == d && !(bits & 1))
        bits += std::fabs((double)f) < std::fabs(d) ? 1 : -1u;
    return td_played_bits<float>(bits);
}

static inline float td_played_half_value(unsigned short h) {
    uint32_t magnitude = (uint32_t)(h & 0x7FFF) << 13, sign = (uint32_t)(h & 0x8000) << 16;
    if (magnitude >= 0x0F800000) /* infinite or NaN */
        return td_played_bits<float>(sign | magnitude | 0x7F800000);
    float value = td_played_bits<float>(magnitude) * 0x1p112f;
    return td_played_bits<float>(sign | td_played_bits<uint32_t>(value));
}

struct __attribute__((aligned(2))) __half {
    unsigned short bits;
    __half() = default;
    __half(float f) : bits(td_played_half_bits(f)) {}
    __half(double d) : bits(td_played_half_bits(td_played_float_to_odd(d))) {}
    __half(int i) : __half((double)i) {}
    __half(unsigned i) : __half((double)i) {}
    __half(long i) : __half((float)i) {}
    __half(unsigned long i) : __half((float)i) {}
    __half(long long i) : __half((float)i) {}
    __half(unsigned long long i) : __half((float)i) {}
    __half(const __half_raw &raw) : bits(raw.x) {}
    operator float() const { return td_played_half_value(bits); }
    operator __half_raw() const { return __half_raw{bits}; }
};
typedef __half half;
TD_PLAYED_SMALL_FLOAT(__half)

struct __attribute__((aligned(4))) __half2 {
    __half x, y;
    __half2() = default;
    __half2(__half a, __half b) : x(a), y(b) {}
};
typedef __half2 half2;

static inline __half __float2half(float f) {
    return __half(f);
}
static inline __half __float2half_rn(float f) {
    return __half(f);
}
static inline __half __double2half(double d) {
    return __half(d);
}
static inline float __half2float(__half h) {
    return (float)h;
}
static inline __half __ushort_as_half(unsigned short bits) {
    return __half(__half_raw{bits});
}
static inline unsigned short __half_as_ushort(__half h) {
    return h.bits;
}
static inline __half2 __floats2half2_rn(float a, float b) {
    return __half2(a, b);
}
static inline __half2 __halves2half2(__half a, __half b) {
    return __half2(a, b);
}
static inline __half __low2half(__half2 h) {
    return h.x;
}
static inline __half __high2half(__half2 h) {
    return h.y;
}
static inline float __low2float(__half2 h) {
    return (float)h.x;
}
static inline float __high2float(__half2 h) {
    return (float)h.y;
}

#endif
