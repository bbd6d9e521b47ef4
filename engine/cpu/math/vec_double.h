/* vec_double.h: exp, exp2, expm1, log, log2, log10, log1p, erf, erfc, gelu and tanh of vectors of
 * double, by tables of polynomials.
 *
 * No lane's result depends on what others hold. What a first step loses by rounding is carried on,
 * so that the last one is what counts. Those with an exponential table are for sets that look
 * entries up sooner than a lane at a time; the others' exp and log are SLEEF's. Errors are within
 * tests/torture/ulp/functions.def.
 */
#ifndef TD_CPU_MATH_VEC_DOUBLE_H
#define TD_CPU_MATH_VEC_DOUBLE_H

#include "engine/cpu/math/table_form.h"
#include "engine/cpu/math/tables/vec_double_octaves.h"
#include "engine/cpu/math/tables/vec_double_pieces.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_fma.h"

/* ---- polynomials by interval ---- */

/* Of 16 intervals: rows[row][k], or where no instruction looks 16 numbers up at once,
 * lines[k][row]. `step` numbers lie between one row or line and the next. */
typedef struct td_table {
    const double *at;
    int step;
} td_table;
#define TD_TABLE(name)                                                                             \
    ((td_table){&name##_pieces[0][0], (int)(sizeof *name##_pieces / sizeof **name##_pieces)})

/* What a row has for the intervals that the lanes of k say, from 0 to 15. */
static inline vd vd_entry(td_table t, int row, vl k) {
#if TD_TABLES_BY_ROWS
    const double *all = t.at + row * t.step;
    return (vd)_mm512_permutex2var_pd(_mm512_loadu_pd(all), (__m512i)k, _mm512_loadu_pd(all + 8));
#else
    vd r;
    for (int lane = 0; lane < VD_N; lane++)
        r[lane] = t.at[k[lane] * t.step + row];
    return r;
#endif
}

/* What it has and what the next one has, two numbers by one load. */
static inline vd vd_two_entries(td_table t, int row, vl k, vd *next) {
#if defined(TD_ISA_avx2)
    const double *from[VD_N];
    for (int lane = 0; lane < VD_N; lane++)
        from[lane] = t.at + k[lane] * t.step + row;
    __m256d even = _mm256_castpd128_pd256(_mm_loadu_pd(from[0]));
    __m256d odd = _mm256_castpd128_pd256(_mm_loadu_pd(from[1]));
    even = _mm256_insertf128_pd(even, _mm_loadu_pd(from[2]), 1);
    odd = _mm256_insertf128_pd(odd, _mm_loadu_pd(from[3]), 1);
    *next = (vd)_mm256_unpackhi_pd(even, odd);
    return (vd)_mm256_unpacklo_pd(even, odd);
#else
    *next = vd_entry(t, row + 1, k);
    return vd_entry(t, row, k);
#endif
}

/* The polynomial in d whose coefficients are the rows from `first` on. */
static inline vd vd_rows(td_table t, int first, int degree, vl k, vd d) {
    int left = degree % 2 ? degree + 1 : degree;
    vd sum = degree % 2 ? (vd){0} : vd_entry(t, first + degree, k);
    for (int row = left - 2; row >= 0; row -= 2) {
        vd upper, lower = vd_two_entries(t, first + row, k, &upper);
        sum = degree % 2 && row == left - 2 ? upper : vd_fma(sum, d, upper);
        sum = vd_fma(sum, d, lower);
    }
    return sum;
}

/* The low four bits of each lane, and what else its instruction does not ask for. */
static inline vl vl_of_16(vl k) {
#if TD_TABLES_BY_ROWS
    return k;
#else
    return k & 15;
#endif
}

/* Which of 16, four to an octave of v and a shift, serves v >= 0. */
static inline vl vd_octave(vd v, double shift) {
    typedef uint64_t bits __attribute__((vector_size(TD_VBYTES)));
    bits from = (bits)((vd){0} + (shift == 2 ? 0 : shift)); /* of 2 those bits are 0 */
    return vl_of_16((vl)(((bits)(v + shift) - from) >> 50));
}

/* Which of 16, two to an octave of 1 - a, serves a from 0 to TD_RESTS_LIMIT. That of 0 is not 1,
 * whose octave would be another one. */
#define TD_RESTS_LIMIT (1 - 0x1p-8)
static inline vl vd_half_octave_of_rest(vd a) {
    return vl_of_16((vl)(0x1.fffffffffffffp-1 - a) >> 51);
}

/* `times` times the polynomial of an interval of a, of which the constant term and what that lacks
 * are apart, so that the last sum is what counts. About 0 it is `slope` times a. */
static inline vd vd_times_rows(vd a, vd times, td_table t, int degree, vl k, double slope) {
    vd top, middle = vd_two_entries(t, 0, k, &top), low, x = vd_product(times, top, &low);
    x += vd_fma(times, vd_rows(t, 2, degree, k, a - middle), low);
#if TD_FUSED
    (void)slope;
    return x;
#else
    return vd_select((vl)(a < 0x1p-900), a * slope, x); /* where products have no lower part */
#endif
}
/* Where a is from 0 to 15 units, in intervals four to an octave of it and one unit. After the first
 * ones, of `octaves` octaves, the polynomial is the function itself. */
static inline vd vd_times_octaves(vd a, td_table t, int degree, double unit, int octaves,
                                  double slope) {
    vd v = vd_fma(a, (vd){0} + 2 / unit, (vd){0} + 2); /* of 2 to 32 the bits count so */
    vd times = vd_pick_lt(v, (vd){0} + (2 << octaves), a, (vd){0} + 1);
    return vd_times_rows(a, times, t, degree, vl_of_16((vl)v >> 50), slope);
}

/* NaN stays NaN. */
static inline vd vd_at_most(vd x, double limit) {
    return (vd)TD_MIN_D((td_native_d)((vd){0} + limit), (td_native_d)x);
}
static inline vd vd_at_least(vd x, double limit) {
    return (vd)TD_MAX_D((td_native_d)((vd){0} + limit), (td_native_d)x);
}
/* For a function whose sign is that of x; it keeps that of 0. */
static inline vd vd_signed_as(vd r, vd x) {
    return (vd)((vl)r | ((vl)x & INT64_MIN));
}

static inline vd vd_polynomial(const double *terms, int count, vd x) {
    vd sum = (vd){0} + terms[count - 1];
    for (int k = count - 2; k >= 0; k--)
        sum = vd_fma(sum, x, (vd){0} + terms[k]);
    return sum;
}

/* ---- exponentials ---- */

/* ln 2 in two parts, the first short enough that multiples of it are exact. */
#define TD_LN2_HIGH 0x1.62e42fefa38p-1
#define TD_LN2_LOW  0x1.ef35793c7673p-45
#define TD_LOG2_E   1.4426950408889634

#if TD_EXP_BY_TABLE_D
/* Adding it leaves sixteenths, and the whole ones, in the low bits. */
#define TD_DEXP_ROUND (0x1.8p52 / 16)

/* exp(r) * 2^(k / 16) = *top + what is returned, for r within ln 2 / 32 of 0 less `lost`. *top is
 * from 1 to 2, and the rest at most a fortieth of it. The low four bits of k count. */
static inline vd vd_exp_near(vd r, vd lost, vl k, vd *top) {
    vd sum = vd_polynomial(dexp_terms, TD_DEXP_TERMS, r);
    vd low, curve = vd_fma(sum, r * r, -lost);
    *top = vd_two_entries(TD_TABLE(dexp), 0, vl_of_16(k), &low);
    return vd_fma(*top, r, vd_fma(*top, curve, vd_fma(low, r, low)));
}

/* exp(x) * 2^-n likewise, where *whole is n and sixteenths; x may be less by `less`, which is small
 * beside its last place. */
static inline vd vd_exp_rest(vd x, vd less, vd *top, vd *shifted, vd *whole) {
    vd round = (vd){0} + TD_DEXP_ROUND;
    *shifted = vd_fma(x, (vd){0} + TD_LOG2_E, round);
    *whole = *shifted - round;
    vd high = vd_fma(*whole, (vd){0} - TD_LN2_HIGH, x); /* exact: few digits by few digits */
    vd low = vd_fma(*whole, (vd){0} + TD_LN2_LOW, less), r = high - low;
    return vd_exp_near(r, low - (high - r), (vl)*shifted, top);
}

/* exp(x) as two numbers that are to be multiplied by 2^n, right to all digits and four more. */
static inline vd vd_exp_two_of(vd x, vd *low, vd *shifted, vd *whole) {
    vd round = (vd){0} + TD_DEXP_ROUND, next;
    *shifted = vd_fma(x, (vd){0} + TD_LOG2_E, round);
    *whole = *shifted - round;
    vd near = vd_fma(*whole, (vd){0} - TD_LN2_HIGH, x); /* exact: few digits by few digits */
    vd r = vd_fma(*whole, (vd){0} - TD_LN2_LOW, near);
    vd sum = vd_polynomial(dexp_terms, TD_DEXP_TERMS, r);
    vd top = vd_two_entries(TD_TABLE(dexp), 0, vl_of_16((vl)*shifted), &next);
    vd rest = vd_fma(top, vd_fma(sum, r * r, r), next), high = top + rest;
    *low = (top - high) + rest;
    return high;
}

/* The same to some 2^-57, of which rounding takes the half from r. */
static inline vd vd_exp_rest_near(vd x, vd less, vd *top, vd *shifted, vd *whole) {
    vd round = (vd){0} + TD_DEXP_ROUND, low;
    *shifted = vd_fma(x, (vd){0} + TD_LOG2_E, round);
    *whole = *shifted - round;
    vd r = vd_less(*whole, (vd){0} + TD_LN2_LOW, vd_less(*whole, (vd){0} + TD_LN2_HIGH, x)) - less;
    vd sum = vd_polynomial(dexp_short_terms, TD_DEXP_SHORT_TERMS, r);
    *top = vd_two_entries(TD_TABLE(dexp), 0, vl_of_16((vl)*shifted), &low);
    return vd_fma(*top, vd_fma(sum, r * r, r), low);
}

static inline vd vd_exp2_rest(vd x, vd *top, vd *shifted, vd *whole) {
    vd round = (vd){0} + TD_DEXP_ROUND;
    *shifted = x + round;
    *whole = *shifted - round;
    return vd_exp_near((x - *whole) * 0.6931471805599453, (vd){0}, (vl)*shifted, top);
}
#endif

#if TD_SCALES
/* What a result is to be multiplied by: 2^n, given as n and sixteenths, which do not count. It is
 * rounded once where it is too small for all its digits. */
typedef vd vd_power;
static inline vd vd_scaled(vd x, vd_power n) {
    return (vd)_mm512_scalef_pd((__m512d)x, (__m512d)n);
}
static inline vd vd_scaled_beside_1(vd x, vd_power n) {
    return vd_scaled(x, n);
}

/* exp(x - less) = (high + *rest) * 2^n for x from -1100 to 0, right to some four bits more than a
 * double has; high is from 1 to 2 and the rest at most a fortieth of it. */
static inline vd vd_exp_halves(vd x, vd less, vd *rest, vd_power *n) {
    vd high, shifted;
    *rest = vd_exp_rest_near(x, less, &high, &shifted, n);
    return high;
}
/* The rest is less than a last place. */
static inline vd vd_exp_parts(vd x, vd less, vd *low, vd_power *n) {
    vd rest, top = vd_exp_halves(x, less, &rest, n), high = top + rest;
    *low = (top - high) + rest;
    return high;
}

/* exp(x) as two numbers, right to all digits and four more, for x from -765 to 700. */
static inline vd vd_exp_two(vd x, vd *low) {
    vd shifted, whole, high = vd_exp_two_of(x, low, &shifted, &whole);
    *low = vd_scaled(*low, whole);
    return vd_scaled(high, whole);
}

static inline vd vd_exp(vd x) {
    vd top, shifted, whole, near = vd_at_least(vd_at_most(x, 710), -746);
    vd rest = vd_exp_rest_near(near, (vd){0}, &top, &shifted, &whole);
    return vd_scaled(top + rest, whole);
}
static inline vd vd_exp2(vd x) {
    vd top, shifted, whole, near = vd_at_least(vd_at_most(x, 1025), -1076);
    vd rest = vd_exp2_rest(near, &top, &shifted, &whole);
    return vd_scaled(top + rest, whole);
}
#else
/* x * 2^n, where the result may be subnormal in two steps, of which the second alone rounds. */
typedef vl vd_power;
static inline vd vd_power_of_two(vl n) {
    return (vd)((n + 1023) << 52);
}
static inline vd vd_scaled(vd x, vd_power n) {
    vl half = n >> 1;
    if (__builtin_expect(!vd_any((vl)(n < -971)), 1))
        return x * vd_power_of_two(n);
    return x * vd_power_of_two(half) * vd_power_of_two(n - half);
}
/* Where x is about 1 and what is far below 1 does not count. */
static inline vd vd_scaled_beside_1(vd x, vd_power n) {
    return x * vd_power_of_two(vl_select((vl)(n < -64), (vl){0} - 64, n));
}

/* The same without a table; high is from 1/sqrt(2) to sqrt(2). */
static inline vd vd_exp_parts(vd x, vd less, vd *low, vd_power *n) {
    static const double taylor[] = {
        0.5,           1 / 6.0,        1 / 24.0,        1 / 120.0,
        1 / 720.0,     1 / 5040.0,     1 / 40320.0,     1 / 362880.0,
        1 / 3628800.0, 1 / 39916800.0, 1 / 479001600.0, 1 / 6227020800.0};
    vd round = (vd){0} + 0x1.8p52;
    vd shifted = vd_fma(x, (vd){0} + TD_LOG2_E, round), whole = shifted - round;
    vd r = x - whole * TD_LN2_HIGH, lower = vd_fma(whole, (vd){0} + TD_LN2_LOW, less);
    vd near = r - lower, rest = (r - near) - lower;
    vd sum = vd_polynomial(taylor, (int)(sizeof taylor / sizeof *taylor), near);
    vd one = near + 1, more = (near - (one - 1)) + vd_fma(sum, near * near, rest),
       high = one + more;
    *low = more - (high - one);
    *n = (vl)shifted - (vl)round;
    return high;
}
static inline vd vd_exp_halves(vd x, vd less, vd *rest, vd_power *n) {
    return vd_exp_parts(x, less, rest, n);
}
#endif

/* Lanes outside of an interval go SLEEF's way. */
static inline vl vd_outside(vd x, double least, double below) {
    return ~((vl)(x >= least) & (vl)(x < below));
}
#define TD_VEC_APART(name)                                                                         \
    static __attribute__((noinline, cold)) vd vd_##name##_apart(vd r, vd x, vl outside) {          \
        return vd_select(outside, vd_##name##_most(x), r);                                         \
    }

#if TD_EXP_BY_TABLE_D && !TD_SCALES
/* 2^n of what was shifted, which has n and sixteenths in its low bits; n is from -1022 to 1023. */
static inline vd vd_power_by(vd shifted) {
    vl bits = ((vl)shifted << 48) & -(1LL << 52);
    return (vd)(bits + (1023LL << 52));
}

/* For x from -708 to 709. */
static inline vd vd_exp_two(vd x, vd *low) {
    vd shifted, whole, high = vd_exp_two_of(x, low, &shifted, &whole), power = vd_power_by(shifted);
    *low *= power;
    return high * power;
}

TD_VEC_APART(exp)
static inline vd vd_exp(vd x) {
    vl outside = vd_outside(x, -708, 709);
    vd top, shifted, whole, rest = vd_exp_rest_near(x, (vd){0}, &top, &shifted, &whole);
    vd r = (top + rest) * vd_power_by(shifted);
    return __builtin_expect(vd_any(outside), 0) ? vd_exp_apart(r, x, outside) : r;
}
TD_VEC_APART(exp2)
static inline vd vd_exp2(vd x) {
    vl outside = vd_outside(x, -1021, 1023);
    vd top, shifted, whole, rest = vd_exp2_rest(x, &top, &shifted, &whole);
    vd r = (top + rest) * vd_power_by(shifted);
    return __builtin_expect(vd_any(outside), 0) ? vd_exp2_apart(r, x, outside) : r;
}
#endif

#if TD_EXP_BY_TABLE_D
/* Where the top may be infinite, and 1 is nothing. */
#define TD_DEXPM1_LIMIT 709
static __attribute__((noinline, cold)) vd vd_expm1_apart(vd r, vd x) {
    return vd_select((vl)(x > TD_DEXPM1_LIMIT), vd_exp(x), r);
}

/* The top less 1, what rounding takes from that, and the rest. */
static inline vd vd_expm1(vd x) {
    vd top, shifted, whole;
    vd rest = vd_exp_rest(vd_at_least(x, -40), (vd){0}, &top, &shifted, &whole);
#if TD_SCALES
    rest = vd_scaled(rest, whole);
    top = vd_scaled(top, whole);
#else
    vd power = vd_power_by(shifted);
    rest *= power;
    top *= power;
#endif
    vd high = top - 1, lost = vd_select((vl)(top > 1), (top - high) - 1, top - (high + 1));
    vd r = vd_signed_as(high + (rest + lost), x);
    bool far = vd_any((vl)(x > TD_DEXPM1_LIMIT));
    return __builtin_expect(far, 0) ? vd_expm1_apart(r, x) : r;
}
#else
static inline vd vd_exp(vd x) {
    return vd_exp_most(x);
}
static inline vd vd_exp2(vd x) {
    return vd_exp2_most(x);
}
static inline vd vd_expm1(vd x) {
    return vd_expm1_most(x);
}
#endif

/* ---- logarithms ---- */

#if TD_EXP_BY_TABLE_D
/* x = m * 2^n with m from 1 to 2: m, and n as a number; the low bits of k have the sixteenth of
 * m - 1. */
static inline vd vd_log_parts(vd x, vl *k, vd *n) {
#if defined(TD_ISA_avx512)
    vd m = (vd)_mm512_getmant_pd((__m512d)x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src);
    *n = (vd)_mm512_getexp_pd((__m512d)x);
    *k = (vl)m >> 48;
    return m;
#else
    const int64_t digits = (1LL << 52) - 1;
    vd round = (vd){0} + 0x1.8p52;
    *k = ((vl)x >> 48) & 15;
    *n = (vd)(((vl)x >> 52) + (vl)(round - 1023)) - round;
    return (vd)(((vl)x & digits) | (vl)((vd){0} + 1));
#endif
}
/* Of which there are no such parts: with AVX-512 0, infinity and what is less than 0, without it
 * numbers that have not all digits and NaN too. */
#if defined(TD_ISA_avx512)
static inline __mmask8 vd_log_lanes(vd x) {
    return _mm512_fpclass_pd_mask((__m512d)x, 0x5E);
}
static inline bool vd_log_all(vd x) {
    return vd_log_lanes(x) == 0;
}
static inline vl vd_log_outside(vd x) {
    return (vl)_mm512_movm_epi64(vd_log_lanes(x));
}
#else
static inline vl vd_log_outside(vd x) {
    return vd_outside(x, 0x1p-1022, (double)INFINITY);
}
static inline bool vd_log_all(vd x) {
    return !vd_any(vd_log_outside(x));
}
#endif

/* log(m * 2^n) = sum + *low by a table of inverses of m: n * ln 2, minus the logarithm of the
 * inverse, and log(1 + f). The inverses have five digits, so that f is exact. On both sides of 1
 * nothing but f is left. */
static inline vd vd_log_sum(vd m, vd n, vd inverse, vd top, vl k, vd *low) {
    vd f = vd_fma(m, inverse, (vd){0} - 1);
    vd tops = vd_fma(n, (vd){0} + TD_LN2_HIGH, top), sum = tops + f; /* the first is exact */
    *low = vd_fma(n, (vd){0} + TD_LN2_LOW, vd_entry(TD_TABLE(dlog), 2, k));
    *low = vd_fma(f * f, vd_polynomial(dlog_terms, TD_DLOG_TERMS, f), *low) + (f - (sum - tops));
    return sum;
}

/* They go SLEEF's way. */
#define TD_VEC_LOG_APART(name)                                                                     \
    static __attribute__((noinline, cold)) vd vd_##name##_apart(vd r, vd x) {                      \
        return vd_select(vd_log_outside(x), vd_##name##_most(x), r);                               \
    }

TD_VEC_LOG_APART(log)
static inline vd vd_log(vd x) {
    vl k;
    vd n, m = vd_log_parts(x, &k, &n), top, inverse = vd_two_entries(TD_TABLE(dlog), 0, k, &top);
    vd low, r = vd_log_sum(m, n, inverse, top, k, &low) + low;
    return __builtin_expect(vd_log_all(x), 1) ? r : vd_log_apart(r, x);
}

/* 1 + x is u and what rounding took, which is less than half a last place. */
static __attribute__((noinline, cold)) vd vd_log1p_apart(vd r, vd x) {
    return vd_select(vd_outside(x, -0x1.fffffffffffffp-1, 0x1p100), vd_log(1 + x), r);
}
static inline vd vd_log1p(vd x) {
    vd u = 1 + x, most = u - 1, lost = (1 - (u - most)) + (x - most);
    vl k;
    vd n, m = vd_log_parts(u, &k, &n), top, inverse = vd_two_entries(TD_TABLE(dlog), 0, k, &top);
#if TD_SCALES
    lost = (vd)_mm512_scalef_pd((__m512d)lost, (__m512d)(-n));
#else
    lost *= (vd)((1023LL << 52) + (1023LL << 52) - (((vl)u >> 52) << 52));
#endif
    lost *= inverse;
    vd f = vd_fma(m, inverse, (vd){0} - 1);
    vd low, sum = vd_log_sum(m, n, inverse, top, k, &low);
    vd r = vd_signed_as(sum + (low + vd_less(f, lost, lost)), x);
    bool all = vd_all_within(x, -0x1.fffffffffffffp-1, 0x1p100);
    return __builtin_expect(all, 1) ? r : vd_log1p_apart(r, x);
}

/* To another base: that of 2 and that of e in two parts, by terms that are so many times as large.
 */
static inline vd vd_log_by(vd x, td_table t, const double *terms, const double *of_2,
                           const double *of_e) {
    vl k;
    vd n, m = vd_log_parts(x, &k, &n), top, inverse = vd_two_entries(t, 0, k, &top), lost;
    vd f = vd_fma(m, inverse, (vd){0} - 1), straight = vd_product(f, (vd){0} + of_e[0], &lost);
    vd tops = vd_fma(n, (vd){0} + of_2[0], top), sum = tops + straight; /* the first is exact */
    vd low = vd_fma(n, (vd){0} + of_2[1], vd_entry(t, 2, k));
    low = vd_fma(f * f, vd_polynomial(terms, TD_DLOG_TERMS, f), low);
    lost = vd_fma(f, (vd){0} + of_e[1], lost);
    return sum + ((low + lost) + (straight - (sum - tops)));
}
#define TD_VEC_LOG_BY(base)                                                                        \
    TD_VEC_LOG_APART(log##base)                                                                    \
    static inline vd vd_log##base(vd x) {                                                          \
        vd r = vd_log_by(x, TD_TABLE(dlog##base), dlog##base##_terms, dlog##base##_of_2,           \
                         dlog##base##_of_e);                                                       \
        return __builtin_expect(vd_log_all(x), 1) ? r : vd_log##base##_apart(r, x);                \
    }
TD_VEC_LOG_BY(2)
TD_VEC_LOG_BY(10)
#undef TD_VEC_LOG_BY
#undef TD_VEC_LOG_APART
#else
static inline vd vd_log(vd x) {
    return vd_log_most(x);
}
static inline vd vd_log2(vd x) {
    return vd_log2_most(x);
}
static inline vd vd_log10(vd x) {
    return vd_log10_most(x);
}
static inline vd vd_log1p(vd x) {
    vd r = vd_log1p_most(x);
    vl far = (vl)(x > 0x1p100);
    return __builtin_expect(vd_any(far), 0) ? vd_select(far, vd_log(x), r) : r;
}
#endif

#undef TD_VEC_APART

/* ---- the error function ---- */

/* From 6 on it is 1. */
static inline vd vd_erf(vd x) {
    vd a = vd_at_most(vd_abs(x), 6);
    vd r = vd_times_octaves(a, TD_TABLE(derf), TD_DERF_DEGREE, TD_DERF_UNIT, TD_DERF_OCTAVES,
                            1.1283791670955126);
    return vd_signed_as(r, x);
}

/* exp(-power - less) times exp(a^2) erfc(a) of a + *more, which are from 0 to 30, but for 2^n; that
 * is erfc(a) where they are the square of a. *more and `less` are small beside a last place. */
static inline vd vd_erfc_parts(vd a, const vd *more, vd power, vd less, vd_power *n) {
    vl k = vd_octave(a, TD_DERFC_SHIFT);
    vd top, middle = vd_two_entries(TD_TABLE(derfc), 0, k, &top), d = a - middle;
    vd rest = vd_rows(TD_TABLE(derfc), 2, TD_DERFC_DEGREE, k, more ? d + *more : d);
    vd f = top + rest, f_low = (top - f) + rest;
    vd e_rest, e = vd_exp_halves(-power, less, &e_rest, n), low, high = vd_product(e, f, &low);
    return high + vd_fma(e_rest, f, vd_fma(e, f_low, low));
}

static inline vd vd_erfc(vd x) {
    vd a = vd_at_most(vd_abs(x), 28), less, square = vd_product(a, a, &less);
    vd_power n;
    vd y = vd_erfc_parts(a, NULL, square, less, &n);
    y = vd_scaled(y, n);
    return vd_pick_lt(x, (vd){0}, 2 - y, y);
}

/* x erfc(-x / sqrt(2)) / 2: the greater of x and 0, less the tail at -|x|. Of minus infinity it is
 * NaN, as 0 times that is. */
static inline vd vd_gelu(vd x) {
    vd a = vd_at_most(vd_abs(x), 39), less, square = vd_product(a, a, &less), more;
    vd z = vd_product(a, (vd){0} + 0x1.6a09e667f3bcdp-1, &more);
    vd_power n;
    more = vd_fma(a, (vd){0} - 0x1.bdd3413b26456p-55, more);
    vd y = vd_erfc_parts(z, &more, square * 0.5, less * 0.5, &n);
    vd tail = vd_scaled(a * 0.5 * y, n);
    tail = vd_select((vl)(x == -(double)INFINITY), (vd){0} + (double)NAN, tail);
    return (vd)((vl)x & ~((vl)x >> 63 & INT64_MAX)) - tail; /* as vf_less_tail */
}

/* ---- tanh ---- */

#if TD_EXP_BY_TABLE_D
/* 1 / x to 14 bits or more. */
static inline vd vd_inverse_about(vd x) {
#if defined(TD_ISA_avx512)
    return (vd)_mm512_rcp14_pd((__m512d)x);
#else
    return 1 / x;
#endif
}
/* To 27 bits. */
static inline vd vd_inverse_by_a_step(vd x) {
    vd y = vd_inverse_about(x);
#if defined(TD_ISA_avx512)
    return vd_fma(y, vd_less(x, y, (vd){0} + 1), y);
#else
    return y;
#endif
}
/* 1 / x of a number that is neither very large nor very small, to the last place or two. */
static inline vd vd_inverse_near(vd x) {
#if defined(TD_ISA_avx512)
    vd y = (vd)_mm512_rcp14_pd((__m512d)x), one = (vd){0} + 1;
    y = vd_fma(y, vd_less(x, y, one), y);
    return vd_fma(y, vd_less(x, y, one), y);
#else
    return 1 / x;
#endif
}

#if TD_TABLES_BY_ROWS
/* From 20 on it is 1. */
static inline vd vd_tanh(vd x) {
    vd a = vd_at_most(vd_abs(x), 20);
    vd r =
        vd_times_octaves(a, TD_TABLE(dtanh), TD_DTANH_DEGREE, TD_DTANH_UNIT, TD_DTANH_OCTAVES, 1);
    return vd_signed_as(r, x);
}
#else
/* 1 - 2 / (exp(2 a) + 1), whose sum is as good as two numbers; from 22 on that is 1. Up to a
 * quarter, where that would lose digits, a polynomial in the square. */
static inline vd vd_tanh(vd x) {
    vd a = vd_abs(x), square = a * a;
    vd e_low, e = vd_exp_two(2 * vd_at_most(a, 22), &e_low), sum = e + 1;
    vd lost = (e - (sum - 1)) + e_low, half = vd_inverse_near(sum);
    vd more = vd_fma(-lost, half, vd_fma(-sum, half, (vd){0} + 1));
    vd high = vd_fma(half, (vd){0} - 2, (vd){0} + 1), rest = vd_fma(half, (vd){0} - 2, 1 - high);
    vd far = high + vd_fma(half * more, (vd){0} - 2, rest);
    vd near = vd_fma(a * square, vd_polynomial(dtanh_terms, TD_DTANH_TERMS, square), a);
    return vd_signed_as(vd_pick_lt(a, (vd){0} + 0.25, near, far), x);
}
#endif
#else
static inline vd vd_tanh(vd x) {
    return vd_tanh_most(x);
}
#endif

#endif
