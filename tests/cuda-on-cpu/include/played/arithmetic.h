/* arithmetic.h: CUDA's functions of numbers that a host's C library has not, or has by other names.
 *
 * Bits, conversions, roots, error functions and their inverses, Bessel functions. The quick forms
 * (__expf) are the exact ones here. */
#ifndef TIDE_PLAYED_ARITHMETIC_H
#define TIDE_PLAYED_ARITHMETIC_H

#include <math.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF   __builtin_inf()
#define CUDART_NAN   __builtin_nan("")

#define TD_PLAYED_FN static inline __attribute__((unused))

/* ---- bits ---- */

template <typename To, typename From> TD_PLAYED_FN To td_played_bits(From from) {
    static_assert(sizeof(To) == sizeof(From), "not the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}
TD_PLAYED_FN unsigned __float_as_uint(float x) {
    return td_played_bits<unsigned>(x);
}
TD_PLAYED_FN int __float_as_int(float x) {
    return td_played_bits<int>(x);
}
TD_PLAYED_FN float __uint_as_float(unsigned x) {
    return td_played_bits<float>(x);
}
TD_PLAYED_FN float __int_as_float(int x) {
    return td_played_bits<float>(x);
}
TD_PLAYED_FN long long __double_as_longlong(double x) {
    return td_played_bits<long long>(x);
}
TD_PLAYED_FN double __longlong_as_double(long long x) {
    return td_played_bits<double>(x);
}
TD_PLAYED_FN int __popc(unsigned x) {
    return __builtin_popcount(x);
}
TD_PLAYED_FN int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
TD_PLAYED_FN int __clz(int x) {
    return x ? __builtin_clz((unsigned)x) : 32;
}
TD_PLAYED_FN int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
TD_PLAYED_FN int __ffs(int x) {
    return __builtin_ffs(x);
}
TD_PLAYED_FN int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
TD_PLAYED_FN unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int k = 0; k < 32; k++)
        y |= (x >> k & 1) << (31 - k);
    return y;
}
TD_PLAYED_FN unsigned long long __brevll(unsigned long long x) {
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
TD_PLAYED_FN unsigned __umulhi(unsigned a, unsigned b) {
    return (unsigned)((unsigned long long)a * b >> 32);
}
TD_PLAYED_FN int __mulhi(int a, int b) {
    return (int)((long long)a * b >> 32);
}
TD_PLAYED_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
TD_PLAYED_FN long long __mul64hi(long long a, long long b) {
    return (long long)((__int128)a * b >> 64);
}
TD_PLAYED_FN unsigned __funnelshift_l(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((unsigned long long)high << 32 | low) << (by & 31) >> 32);
}
TD_PLAYED_FN unsigned __funnelshift_r(unsigned low, unsigned high, unsigned by) {
    return (unsigned)(((unsigned long long)high << 32 | low) >> (by & 31));
}

/* ---- conversions: to the nearest, and saturated as a device does ---- */

template <typename To, typename From> TD_PLAYED_FN To td_played_integer(From x) {
    if (x != x)
        return 0;
    if (x >= (From)std::numeric_limits<To>::max())
        return std::numeric_limits<To>::max();
    if (x <= (From)std::numeric_limits<To>::min())
        return std::numeric_limits<To>::min();
    return (To)x;
}
#define TD_PLAYED_ROUNDINGS(name, From, To)                                                        \
    TD_PLAYED_FN To name##_rn(From x) {                                                            \
        return td_played_integer<To>(std::nearbyint(x));                                           \
    }                                                                                              \
    TD_PLAYED_FN To name##_rz(From x) {                                                            \
        return td_played_integer<To>(std::trunc(x));                                               \
    }                                                                                              \
    TD_PLAYED_FN To name##_rd(From x) {                                                            \
        return td_played_integer<To>(std::floor(x));                                               \
    }                                                                                              \
    TD_PLAYED_FN To name##_ru(From x) {                                                            \
        return td_played_integer<To>(std::ceil(x));                                                \
    }
TD_PLAYED_ROUNDINGS(__float2int, float, int)
TD_PLAYED_ROUNDINGS(__float2uint, float, unsigned)
TD_PLAYED_ROUNDINGS(__float2ll, float, long long)
TD_PLAYED_ROUNDINGS(__float2ull, float, unsigned long long)
TD_PLAYED_ROUNDINGS(__double2int, double, int)
TD_PLAYED_ROUNDINGS(__double2uint, double, unsigned)
TD_PLAYED_ROUNDINGS(__double2ll, double, long long)
TD_PLAYED_ROUNDINGS(__double2ull, double, unsigned long long)
#undef TD_PLAYED_ROUNDINGS
TD_PLAYED_FN float __int2float_rn(int x) {
    return (float)x;
}
TD_PLAYED_FN float __uint2float_rn(unsigned x) {
    return (float)x;
}
TD_PLAYED_FN float __ll2float_rn(long long x) {
    return (float)x;
}
TD_PLAYED_FN double __ll2double_rn(long long x) {
    return (double)x;
}
TD_PLAYED_FN float __double2float_rn(double x) {
    return (float)x;
}

/* ---- single operations, never contracted ---- */

#define TD_PLAYED_ONE(name, T, op)                                                                 \
    TD_PLAYED_FN T name(T a, T b) {                                                                \
        volatile T exact = a op b;                                                                 \
        return exact;                                                                              \
    }
TD_PLAYED_ONE(__fadd_rn, float, +)
TD_PLAYED_ONE(__fsub_rn, float, -)
TD_PLAYED_ONE(__fmul_rn, float, *)
TD_PLAYED_ONE(__fdiv_rn, float, /)
TD_PLAYED_ONE(__dadd_rn, double, +)
TD_PLAYED_ONE(__dsub_rn, double, -)
TD_PLAYED_ONE(__dmul_rn, double, *)
TD_PLAYED_ONE(__ddiv_rn, double, /)
#undef TD_PLAYED_ONE
TD_PLAYED_FN float __fmaf_rn(float a, float b, float c) {
    return fmaf(a, b, c);
}
TD_PLAYED_FN double __fma_rn(double a, double b, double c) {
    return fma(a, b, c);
}
TD_PLAYED_FN float __frcp_rn(float x) {
    return 1.0f / x;
}
TD_PLAYED_FN double __drcp_rn(double x) {
    return 1.0 / x;
}
TD_PLAYED_FN float __fsqrt_rn(float x) {
    return sqrtf(x);
}
TD_PLAYED_FN double __dsqrt_rn(double x) {
    return sqrt(x);
}
TD_PLAYED_FN float __fdividef(float a, float b) {
    return a / b;
}
TD_PLAYED_FN float fdividef(float a, float b) {
    return a / b;
}
TD_PLAYED_FN float __saturatef(float x) {
    return !(x > 0) ? 0 : x > 1 ? 1 : x;
}
/* The C library declares these names and keeps them to itself. */
#define __expf(x)    expf(x)
#define __exp2f(x)   exp2f(x)
#define __logf(x)    logf(x)
#define __log2f(x)   log2f(x)
#define __powf(x, y) powf(x, y)
#define __sinf(x)    sinf(x)
#define __cosf(x)    cosf(x)
#define __tanf(x)    tanf(x)

/* ---- functions; the float ones round the double ones ---- */

/* glibc has functions of these names from 2.41 (rsqrt 2.42) on, which round otherwise than those of
 * CUDA. */
#define sinpi  td_played_sinpi
#define sinpif td_played_sinpif
#define cospi  td_played_cospi
#define cospif td_played_cospif
#define rsqrt  td_played_rsqrt
#define rsqrtf td_played_rsqrtf

TD_PLAYED_FN double rsqrt(double x) {
    return 1.0 / sqrt(x);
}
TD_PLAYED_FN float rsqrtf(float x) {
    return (float)(1.0 / sqrt((double)x));
}
TD_PLAYED_FN float __frsqrt_rn(float x) {
    return rsqrtf(x);
}
TD_PLAYED_FN double rcbrt(double x) {
    return 1.0 / cbrt(x);
}
TD_PLAYED_FN double sinpi(double x) {
    double r = remainder(x, 2.0);
    return r == trunc(r) ? copysign(0.0, x) : sin(M_PI * r);
}
TD_PLAYED_FN double cospi(double x) {
    double r = fabs(remainder(x, 2.0));
    return r == 0.5 ? 0.0 : cos(M_PI * r);
}
TD_PLAYED_FN double normcdf(double x) {
    return 0.5 * erfc(-x * M_SQRT1_2);
}
TD_PLAYED_FN double erfcx(double x) {
    if (x < 25)
        return exp(x * x) * erfc(x);
    double sum = 1; /* its asymptotic series, from the smallest term on */
    for (int k = 8; k > 0; k--)
        sum = 1 - (2 * k - 1) / (2 * x * x) * sum;
    return M_2_SQRTPI / 2 / x * sum;
}

/* The inverse of erfc: a first guess (Giles' for erfinv with its logarithm) and Halley's steps. */
TD_PLAYED_FN double erfcinv(double y) {
    if (!(y >= 0 && y <= 2))
        return std::numeric_limits<double>::quiet_NaN();
    if (y == 0 || y == 2)
        return y == 0 ? __builtin_inf() : -__builtin_inf();
    double small = y < 1 ? y : 2 - y, t = sqrt(-2 * log(small / 2));
    double x = 0.70711 * (t - (2.30753 + t * 0.27061) / (1 + t * (0.99229 + t * 0.04481)));
    for (int k = 0; k < 3; k++) {
        double error = erfc(x) - small;
        x += error / (M_2_SQRTPI * exp(-x * x) - x * error);
    }
    return y < 1 ? x : -x;
}
TD_PLAYED_FN double erfinv(double y) {
    if (!(fabs(y) <= 1))
        return std::numeric_limits<double>::quiet_NaN();
    if (fabs(y) > 0.5)
        return y > 0 ? erfcinv(1 - y) : -erfcinv(1 + y);
    double x = y * 0.886226925452758; /* the series' first term; erf itself is exact near zero */
    for (int k = 0; k < 4; k++) {
        double error = erf(x) - y;
        x -= error / (M_2_SQRTPI * exp(-x * x) + x * error);
    }
    return x;
}
TD_PLAYED_FN double normcdfinv(double y) {
    return -M_SQRT2 * erfcinv(2 * y);
}

/* I0 and I1 by their power series, which has positive terms only: sum (x/2)^(2k+n) / (k! (k+n)!).
 */
TD_PLAYED_FN double td_played_bessel_i(int n, double x) {
    if (fabs(x) > 714)
        return n && x < 0 ? -__builtin_inf() : __builtin_inf();
    double q = x * x / 4, term = n ? x / 2 : 1, sum = term;
    for (int k = 1; fabs(term) > fabs(sum) * 1e-17; k++) {
        term *= q / k / (k + n);
        sum += term;
    }
    return sum;
}
TD_PLAYED_FN double cyl_bessel_i0(double x) {
    return td_played_bessel_i(0, x);
}
TD_PLAYED_FN double cyl_bessel_i1(double x) {
    return td_played_bessel_i(1, x);
}

#define TD_PLAYED_FLOAT(name)                                                                      \
    TD_PLAYED_FN float name##f(float x) {                                                          \
        return (float)name((double)x);                                                             \
    }
TD_PLAYED_FLOAT(rcbrt)
TD_PLAYED_FLOAT(sinpi)
TD_PLAYED_FLOAT(cospi)
TD_PLAYED_FLOAT(normcdf)
TD_PLAYED_FLOAT(normcdfinv)
TD_PLAYED_FLOAT(erfcx)
TD_PLAYED_FLOAT(erfcinv)
TD_PLAYED_FLOAT(erfinv)
TD_PLAYED_FLOAT(cyl_bessel_i0)
TD_PLAYED_FLOAT(cyl_bessel_i1)
#undef TD_PLAYED_FLOAT
#define TD_PLAYED_OVERLOAD(name)                                                                   \
    TD_PLAYED_FN float name(float x) {                                                             \
        return name##f(x);                                                                         \
    }
TD_PLAYED_OVERLOAD(rsqrt)
TD_PLAYED_OVERLOAD(rcbrt)
TD_PLAYED_OVERLOAD(sinpi)
TD_PLAYED_OVERLOAD(cospi)
TD_PLAYED_OVERLOAD(normcdf)
TD_PLAYED_OVERLOAD(normcdfinv)
TD_PLAYED_OVERLOAD(erfcx)
TD_PLAYED_OVERLOAD(erfcinv)
TD_PLAYED_OVERLOAD(erfinv)
#undef TD_PLAYED_OVERLOAD
TD_PLAYED_FN void sincos(float x, float *s, float *c) {
    ::sincosf(x, s, c);
}

/* ---- min and max ---- */

#define TD_PLAYED_EXTREMES(R, A, B)                                                                \
    TD_PLAYED_FN constexpr R min(A a, B b) {                                                       \
        return (R)b < (R)a ? (R)b : (R)a;                                                          \
    }                                                                                              \
    TD_PLAYED_FN constexpr R max(A a, B b) {                                                       \
        return (R)a < (R)b ? (R)b : (R)a;                                                          \
    }
TD_PLAYED_EXTREMES(int, int, int)
TD_PLAYED_EXTREMES(unsigned, unsigned, unsigned)
TD_PLAYED_EXTREMES(unsigned, int, unsigned)
TD_PLAYED_EXTREMES(unsigned, unsigned, int)
TD_PLAYED_EXTREMES(long, long, long)
TD_PLAYED_EXTREMES(unsigned long, unsigned long, unsigned long)
TD_PLAYED_EXTREMES(unsigned long, long, unsigned long)
TD_PLAYED_EXTREMES(unsigned long, unsigned long, long)
TD_PLAYED_EXTREMES(long long, long long, long long)
TD_PLAYED_EXTREMES(unsigned long long, unsigned long long, unsigned long long)
TD_PLAYED_EXTREMES(unsigned long long, long long, unsigned long long)
TD_PLAYED_EXTREMES(unsigned long long, unsigned long long, long long)
#undef TD_PLAYED_EXTREMES
#define TD_PLAYED_EXTREMES(R, A, B)                                                                \
    TD_PLAYED_FN R min(A a, B b) {                                                                 \
        return std::fmin((R)a, (R)b);                                                              \
    }                                                                                              \
    TD_PLAYED_FN R max(A a, B b) {                                                                 \
        return std::fmax((R)a, (R)b);                                                              \
    }
TD_PLAYED_EXTREMES(float, float, float)
TD_PLAYED_EXTREMES(double, double, double)
TD_PLAYED_EXTREMES(double, float, double)
TD_PLAYED_EXTREMES(double, double, float)
#undef TD_PLAYED_EXTREMES
#undef TD_PLAYED_FN

#endif
