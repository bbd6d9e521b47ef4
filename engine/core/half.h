/* half.h: the 16-bit floating formats, and their conversions from and to float (round to nearest,
 * ties to even; NaN stays NaN). */
#ifndef TD_CORE_HALF_H
#define TD_CORE_HALF_H

#include <stdint.h>
#include <string.h>

/* IEEE 754 binary16: 5 bits of exponent, 10 of fraction. */
typedef struct td_half {
    uint16_t bits;
} td_half;

/* The upper half of a float: 8 bits of exponent, 7 of fraction. */
typedef struct td_bfloat {
    uint16_t bits;
} td_bfloat;

static inline float td_float_of_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static inline uint32_t td_bits_of_float(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

static inline float td_bfloat_to_float(td_bfloat b) {
    return td_float_of_bits((uint32_t)b.bits << 16);
}

static inline td_bfloat td_float_to_bfloat(float f) {
    uint32_t bits = td_bits_of_float(f), rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
    uint32_t quiet = bits >> 16 | 0x40;
    return (td_bfloat){(uint16_t)((bits & 0x7FFFFFFF) > 0x7F800000 ? quiet : rounded)};
}

/* The fraction is put in place and the exponent moved by a multiplication, which is exact for
 * subnormal numbers too. */
static inline float td_half_to_float(td_half h) {
    uint32_t magnitude = (uint32_t)(h.bits & 0x7FFF) << 13;
    uint32_t sign = (uint32_t)(h.bits & 0x8000) << 16;
    if (magnitude >= 0x0F800000) /* infinite or NaN */
        return td_float_of_bits(sign | magnitude | 0x7F800000);
    return td_float_of_bits(sign | td_bits_of_float(td_float_of_bits(magnitude) * 0x1p112f));
}

static inline td_half td_float_to_half(float f) {
    uint32_t bits = td_bits_of_float(f), sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7FFFFFFF, h;
    if (magnitude > 0x7F800000) {
        h = 0x7E00 | (magnitude >> 13 & 0x3FF);
    } else if (magnitude >= 0x477FF000) { /* from 65520 on it rounds to infinity */
        h = 0x7C00;
    } else if (magnitude < 0x38800000) { /* subnormal: an addition rounds to its last place */
        h = td_bits_of_float(td_float_of_bits(magnitude) + 0.5f) - 0x3F000000;
    } else {
        h = (magnitude - 0x38000000 + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    }
    return (td_half){(uint16_t)(sign | h)};
}

/* A float that rounds to fewer digits as the double or integer does: what it can't hold is cut off
 * and leaves its last bit set (rounding to odd), so that nothing is rounded twice. */
static inline float td_odd_float(double v) {
    float f = (float)v;
    double back = (double)f;
    uint32_t bits = td_bits_of_float(f), lost = back != v;
    bits -= (v < 0 ? back < v : back > v);
    return td_float_of_bits(bits | lost);
}
static inline float td_odd_float_of_int(int64_t v) {
    /* of large numbers the last 16 bits are far below what is kept */
    int64_t low = v & 0xFFFF, cut = v - low + (low ? 0x8000 : 0);
    return td_odd_float((double)(v > -(1ll << 40) && v < 1ll << 40 ? v : cut));
}
static inline td_half td_double_to_half(double v) {
    return td_float_to_half(td_odd_float(v));
}
static inline td_bfloat td_double_to_bfloat(double v) {
    return td_float_to_bfloat(td_odd_float(v));
}

#endif
