/* small_float.h: what __half and __nv_bfloat16 have in common: 16 bits that compute as a float does
 * and round to the nearest, ties to even.
 *
 * TD_PLAYED_SMALL_FLOAT(T) gives T its operators; T has bits, T(float) and operator float. */
#ifndef TIDE_PLAYED_SMALL_FLOAT_H
#define TIDE_PLAYED_SMALL_FLOAT_H

#include <cmath>
#include <cstdint>
#include <cstring>

#include "arithmetic.h"
#include "atomics.h"

#define TD_PLAYED_SMALL_FLOAT(T)                                                                   \
    static inline T operator+(T a, T b) {                                                          \
        return T((float)a + (float)b);                                                             \
    }                                                                                              \
    static inline T operator-(T a, T b) {                                                          \
        return T((float)a - (float)b);                                                             \
    }                                                                                              \
    static inline T operator*(T a, T b) {                                                          \
        return T((float)a * (float)b);                                                             \
    }                                                                                              \
    static inline T operator/(T a, T b) {                                                          \
        return T((float)a / (float)b);                                                             \
    }                                                                                              \
    static inline T operator-(T a) {                                                               \
        return T(-(float)a);                                                                       \
    }                                                                                              \
    static inline T &operator+=(T &a, T b) {                                                       \
        return a = a + b;                                                                          \
    }                                                                                              \
    static inline T &operator-=(T &a, T b) {                                                       \
        return a = a - b;                                                                          \
    }                                                                                              \
    static inline T &operator*=(T &a, T b) {                                                       \
        return a = a * b;                                                                          \
    }                                                                                              \
    static inline T &operator/=(T &a, T b) {                                                       \
        return a = a / b;                                                                          \
    }                                                                                              \
    static inline bool operator<(T a, T b) {                                                       \
        return (float)a < (float)b;                                                                \
    }                                                                                              \
    static inline bool operator>(T a, T b) {                                                       \
        return (float)a > (float)b;                                                                \
    }                                                                                              \
    static inline bool operator<=(T a, T b) {                                                      \
        return (float)a <= (float)b;                                                               \
    }                                                                                              \
    static inline bool operator>=(T a, T b) {                                                      \
        return (float)a >= (float)b;                                                               \
    }                                                                                              \
    static inline bool operator==(T a, T b) {                                                      \
        return (float)a == (float)b;                                                               \
    }                                                                                              \
    static inline bool operator!=(T a, T b) {                                                      \
        return (float)a != (float)b;                                                               \
    }                                                                                              \
    static inline T __hadd(T a, T b) {                                                             \
        return a + b;                                                                              \
    }                                                                                              \
    static inline T __hsub(T a, T b) {                                                             \
        return a - b;                                                                              \
    }                                                                                              \
    static inline T __hmul(T a, T b) {                                                             \
        return a * b;                                                                              \
    }                                                                                              \
    static inline T __hdiv(T a, T b) {                                                             \
        return a / b;                                                                              \
    }                                                                                              \
    static inline T __hneg(T a) {                                                                  \
        return -a;                                                                                 \
    }                                                                                              \
    static inline T __hfma(T a, T b, T c) {                                                        \
        return T(fmaf((float)a, (float)b, (float)c));                                              \
    }                                                                                              \
    static inline bool __hisnan(T a) {                                                             \
        return std::isnan((float)a);                                                               \
    }                                                                                              \
    static inline bool __hlt(T a, T b) {                                                           \
        return a < b;                                                                              \
    }                                                                                              \
    static inline bool __hgt(T a, T b) {                                                           \
        return a > b;                                                                              \
    }                                                                                              \
    static inline bool __heq(T a, T b) {                                                           \
        return a == b;                                                                             \
    }                                                                                              \
    static inline T atomicAdd(T *p, T v) {                                                         \
        return td_played::atomically(p, [v](T old) { return old + v; });                           \
    }                                                                                              \
    static inline T __ldg(const T *p) {                                                            \
        return *p;                                                                                 \
    }

#endif
