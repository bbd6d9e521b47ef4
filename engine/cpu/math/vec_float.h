/* vec_float.h: exp, exp2, expm1, log, log1p, log2, tanh, erf, erfc, sigmoid, silu and gelu of
 * vectors of float, at a few instructions per vector.
 *
 * An element has one result wherever it lies and whatever lies beside it. exp goes by a polynomial
 * about the nearest power of two by an eighth or, with AVX-512, a sixteenth; most others by one of
 * 16, each of which serves an interval (vec_pieces.h). Those that die away are an exponential times
 * something that hardly changes far out, so that their tails are as precise as what is near 0;
 * where no lane of a vector lies so far, that is not asked for. Errors are within
 * tests/torture/ulp/functions.def.
 */
#ifndef TD_CPU_MATH_VEC_FLOAT_H
#define TD_CPU_MATH_VEC_FLOAT_H

#include "engine/cpu/math/tables/vec_pieces.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_fma.h"

/* NaN stays NaN. */
static inline vf vf_at_most(vf x, float limit) {
    return (vf)TD_MIN_F((td_native_f)((vf){0} + limit), (td_native_f)x);
}
static inline vf vf_at_least(vf x, float limit) {
    return (vf)TD_MAX_F((td_native_f)((vf){0} + limit), (td_native_f)x);
}
/* For a function whose sign is that of x; it keeps that of 0. */
static inline vf vf_signed_as(vf r, vf x) {
    return (vf)((vi)r | ((vi)x & INT32_MIN));
}

static inline vf vf_polynomial(const float *terms, int count, vf x) {
    vf sum = (vf){0} + terms[count - 1];
    for (int k = count - 2; k >= 0; k--)
        sum = vf_fma(sum, x, (vf){0} + terms[k]);
    return sum;
}

/* ---- exp ---- */

#if defined(TD_ISA_avx512)
#define TD_EXP_BY_TABLE 1
#define TD_EXP_FRACTION 4 /* bits of an exponent beyond the point: sixteenths */
#elif defined(TD_ISA_avx2)
#define TD_EXP_BY_TABLE 1
#define TD_EXP_FRACTION 3
#else
#define TD_EXP_BY_TABLE 0
#define TD_EXP_FRACTION 0
#endif
/* Adding it leaves them, and the whole ones, in the low bits. */
#define TD_EXP_ROUND   (0x1.8p23f / (1 << TD_EXP_FRACTION))
#define TD_EXP_ROUND_8 (0x1.8p23f / 8)

#if TD_EXP_BY_TABLE
/* Of 8 floats, which are there twice, those that the low three bits of the lanes of k say; with
 * AVX-512 it may be 16. */
static inline vf vf_entry_of_8(const float *row, vi k) {
#if defined(TD_ISA_avx512)
    return (vf)_mm512_permutexvar_ps((__m512i)k, _mm512_loadu_ps(row));
#else
    return (vf)_mm256_permutevar8x32_ps(_mm256_loadu_ps(row), (__m256i)k);
#endif
}
#if defined(TD_ISA_avx512)
#define TD_EXP_POWERS exp_sixteenths
#else
#define TD_EXP_POWERS exp_eighths
#endif

/* How many digits of exp(x) are right, counted as those of a float: all, four more, or yet more and
 * of exp(x) - 1 as well: by eighths, so that the top is 1 where that is small. */
typedef enum td_exp_digits { TD_EXP_FLOAT, TD_EXP_MORE, TD_EXP_MOST } td_exp_digits;

/* exp(x) = (*top + what is returned) * 2^n; vf_times_power knows n from *power. *top is from 1 to 2
 * and the rest at most a twentieth of it. For x from -126 to 89. */
static inline vf vf_exp_rest(vf x, td_exp_digits digits, vf *top, vf *power) {
    bool most = digits == TD_EXP_MOST, few = TD_EXP_FRACTION == 4 && digits == TD_EXP_FLOAT;
    const td_powers *powers = most ? &exp_eighths : &TD_EXP_POWERS;
    vf round = (vf){0} + (most ? TD_EXP_ROUND_8 : TD_EXP_ROUND);
    vf shifted = vf_fma(x, (vf){0} + 1.44269504f, round), parts = shifted - round;
    vf high = vf_fma(parts, (vf){0} - 0x1.63p-1f, x); /* exact: few digits by few digits */
    vf r = vf_fma(parts, (vf){0} + 0x1.bd0106p-13f, high);
    vf sum = few ? vf_polynomial(exp_short_terms, TD_EXP_SHORT_TERMS, r)
                 : vf_polynomial(exp_terms, TD_EXP_TERMS, r);
    vf low = vf_entry_of_8(powers->rows[1], (vi)shifted);
    *top = vf_entry_of_8(powers->rows[0], (vi)shifted);
    *power = TD_EXP_ROUND == TD_EXP_ROUND_8 || !most ? shifted : parts + TD_EXP_ROUND;
    if (!most)
        return vf_fma(*top, vf_fma(sum, r * r, r), low);
    low += vf_fma(parts, (vf){0} + 0x1.bd0106p-13f, high - r);
    return vf_fma(*top, r, vf_fma(*top, sum * (r * r), low));
}

/* y about 1 and *power with exp(x - less) = y * 2^n, likewise; `less` is small beside the last
 * place of x. */
static inline vf vf_exp_parts_of(vf x, vf less, vf *power) {
    vf round = (vf){0} + TD_EXP_ROUND;
    vf shifted = vf_fma(x, (vf){0} + 1.44269504f, round), parts = shifted - round;
    vf high = vf_fma(parts, (vf){0} - 0x1.63p-1f, x);
    vf r = high - vf_fma(parts, (vf){0} - 0x1.bd0106p-13f, less);
    vf sum = vf_polynomial(exp_terms, TD_EXP_TERMS, r);
    vf top = vf_entry_of_8(TD_EXP_POWERS.rows[0], (vi)shifted);
    vf rest = vf_entry_of_8(TD_EXP_POWERS.rows[1], (vi)shifted);
    *power = shifted;
    return top + vf_fma(top, vf_fma(sum, r * r, r), rest);
}
static inline vf vf_exp_scaled(vf x, vf *power) {
    vf top, rest = vf_exp_rest(x, TD_EXP_FLOAT, &top, power);
    return top + rest;
}
#else
/* The same without a table, which costs more than it saves where lanes go through it one by one.
 * What rounding takes on the way is carried along. */
static inline vf vf_exp_parts_of(vf x, vf less, vf *power) {
    vf round = (vf){0} + TD_EXP_ROUND, shifted = x * 1.44269504f + round, n = shifted - round;
    vf high = x - n * 0x1.62e4p-1f, low = n * 0x1.7f7d1cf79abc9p-20f + less;
    vf r = high - low, lost = (high - r) - low, one = 1 + r;
    lost += (1 - one) + r;
    *power = shifted;
    return one + (lost + r * r * vf_polynomial(exp_long_terms, TD_EXP_LONG_TERMS, r));
}
static inline vf vf_exp_scaled(vf x, vf *power) {
    return vf_exp_parts_of(x, (vf){0}, power);
}
#endif

/* x * 2^n, rounded once where the result is too small for all its digits. */
static inline vf vf_times_power(vf x, vf power) {
#if defined(TD_ISA_avx512)
    return (vf)_mm512_scalef_ps((__m512)x, (__m512)(power - TD_EXP_ROUND));
#else
    vi n = ((vi)power - (vi)((vf){0} + TD_EXP_ROUND)) >> TD_EXP_FRACTION, half = n >> 1;
    return x * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
#endif
}

#if TD_EXP_BY_TABLE
/* x and y times 2^n, which is a normal number, as the first product is. */
static inline void vf_both_times_power(vf *x, vf *y, vf power) {
#if defined(TD_ISA_avx512)
    *x = vf_times_power(*x, power);
    *y = vf_times_power(*y, power);
#else
    const int32_t parts = (1 << TD_EXP_FRACTION) - 1;
    vf scale = (vf)((((vi)power & ~parts) << (23 - TD_EXP_FRACTION)) + (127 << 23));
    *x *= scale;
    *y *= scale;
#endif
}

/* exp(x) as two numbers, right to all digits and four more, for x from -87 to 87. */
static inline vf vf_exp_two(vf x, vf *low) {
    vf top, power, rest = vf_exp_rest(x, TD_EXP_MORE, &top, &power), high = top + rest;
    *low = (top - high) + rest;
    vf_both_times_power(&high, low, power);
    return high;
}
#endif

static inline vf vf_exp(vf x) {
    vf power, y = vf_exp_scaled(vf_at_least(vf_at_most(x, 89), -104), &power);
    return vf_times_power(y, power);
}

/* ---- exp2 and expm1 ---- */

#if TD_EXP_BY_TABLE
static inline vf vf_exp2(vf x) {
    vf near = vf_at_least(vf_at_most(x, 129), -151), shifted = near + TD_EXP_ROUND;
    vf r = (near - (shifted - TD_EXP_ROUND)) * 0.693147181f;
    vf sum = vf_polynomial(exp_terms, TD_EXP_TERMS, r);
    vf top = vf_entry_of_8(TD_EXP_POWERS.rows[0], (vi)shifted);
    vf rest = vf_entry_of_8(TD_EXP_POWERS.rows[1], (vi)shifted);
    return vf_times_power(top + vf_fma(top, vf_fma(sum, r * r, r), rest), shifted);
}

/* Where the top may be infinite, and 1 is nothing. */
#define TD_EXPM1_LIMIT 88
static __attribute__((noinline, cold)) vf vf_expm1_apart(vf r, vf x) {
    return vf_select((vi)(x > TD_EXPM1_LIMIT), vf_exp(x), r);
}

/* The top less 1, what rounding takes from that, and the rest. */
static inline vf vf_expm1(vf x) {
    vf top, power, rest = vf_exp_rest(vf_at_least(x, -18), TD_EXP_MOST, &top, &power);
#if defined(TD_ISA_avx512)
    top = vf_times_power(top, power);
    rest = vf_times_power(rest, power);
#else
    vi n = ((vi)power - (vi)((vf){0} + TD_EXP_ROUND)) >> TD_EXP_FRACTION;
    vf scale = (vf)((n + 127) << 23);
    top *= scale;
    rest *= scale;
#endif
    vf high = top - 1, lost = vf_select((vi)(top > 1), (top - high) - 1, top - (high + 1));
    vf r = vf_signed_as(high + (rest + lost), x);
    return __builtin_expect(vf_any_from(x, TD_EXPM1_LIMIT), 0) ? vf_expm1_apart(r, x) : r;
}
#else
static inline vf vf_exp2(vf x) {
    return vf_exp2_most(x);
}
static inline vf vf_expm1(vf x) {
    return vf_expm1_most(x);
}
#endif

/* ---- logarithms ---- */

/* Where x = m * 2^n, with m from 3/4 to 3/2. */
static inline vi vf_log_power(vf x) {
    return ((vi)x - 0x3F400000) >> 23;
}
static inline vf vf_log_scaled(vf x, vi n) {
    return (vf)((vi)x - (n << 23));
}

/* n * ln 2 + log(1 + f) */
static inline vf vf_log_sum(vi n, vf f) {
    vf times = __builtin_convertvector(n, vf), tops = times * 0x1.62e4p-1f; /* exact */
    vf curve = vf_fma(f, vf_polynomial(log_terms, TD_LOG_TERMS, f), (vf){0} - 0.5f);
    vf rest = vf_fma(times, (vf){0} + 0x1.7f7d1cf79abc9p-20f, f * f * curve);
    vf sum = tops + f;
    return sum + (rest + (f - (sum - tops)));
}

/* n + log2(1 + f). The interval is another: f / log(2) is half of 1 at most, so that a sum with 1
 * cancels little, and what rounding takes from it is found exactly. */
static inline vi vf_log2_power(vf x) {
    return ((vi)x - 0x3F2C56D6) >> 23; /* 0.6732 */
}
#if TD_EXP_BY_TABLE
static inline vf vf_log2_sum(vi n, vf f) {
    vf times = __builtin_convertvector(n, vf), slope = (vf){0} + 0x1.715476p+0f;
    vf sum = vf_fma(f, slope, times), lost = vf_fma(f, slope, times - sum);
    lost = vf_fma(f, (vf){0} + 0x1.4ae0cp-26f, lost); /* behind the digits of log2(e) */
    return sum + vf_fma(f * f, vf_polynomial(log2_fused_terms, TD_LOG_TERMS, f), lost);
}
#else
static inline vf vf_log2_sum(vi n, vf f) {
    const float log2_e = 0x1.715476p+0f, more = 0x1.4ae0cp-26f; /* behind its digits */
    vf times = __builtin_convertvector(n, vf), lost, tops = vf_product(f, (vf){0} + log2_e, &lost);
    vf curve = vf_fma(f, f * vf_polynomial(log2_terms, TD_LOG_TERMS, f), f * -0.5f);
    vf sum = times + tops;
    lost += tops - (sum - times);
    return sum + vf_fma(tops, curve, vf_fma(f, (vf){0} + more, lost));
}
#endif

/* Lanes outside of the interval, where r is wrong. */
#define TD_LOG_LEAST   0x1p-126f
#define TD_LOG1P_LEAST -0x1.fffffep-1f
#define TD_LOG1P_BELOW 0x1p100f
static inline vi vf_outside(vf x, float least, float below) {
    return ~((vi)(x >= least) & (vi)(x < below));
}
static __attribute__((noinline, cold)) vf vf_log_apart(vf r, vf x) {
    return vf_select(vf_outside(x, TD_LOG_LEAST, INFINITY), vf_log_most(x), r);
}
static __attribute__((noinline, cold)) vf vf_log2_apart(vf r, vf x) {
    return vf_select(vf_outside(x, TD_LOG_LEAST, INFINITY), vf_log2_most(x), r);
}
static __attribute__((noinline, cold)) vf vf_log1p_apart(vf r, vf x) {
    return vf_select(vf_outside(x, TD_LOG1P_LEAST, TD_LOG1P_BELOW), vf_log_most(1 + x), r);
}

static inline vf vf_log(vf x) {
    vi n = vf_log_power(x);
    vf r = vf_log_sum(n, vf_log_scaled(x, n) - 1);
    bool all = vf_all_within(x, TD_LOG_LEAST, INFINITY);
    return __builtin_expect(all, 1) ? r : vf_log_apart(r, x);
}

static inline vf vf_log2(vf x) {
    vi n = vf_log2_power(x);
    vf r = vf_log2_sum(n, vf_log_scaled(x, n) - 1);
    bool all = vf_all_within(x, TD_LOG_LEAST, INFINITY);
    return __builtin_expect(all, 1) ? r : vf_log2_apart(r, x);
}

/* 1 + x is u and what rounding took. Near x = 0, where n is 0, f is x to the last digit. */
static inline vf vf_log1p(vf x) {
    vf u = 1 + x, most = u - 1, lost = (1 - (u - most)) + (x - most);
    vi n = vf_log_power(u);
    vf f = vf_fma(lost, (vf)((127 - n) << 23), vf_log_scaled(u, n) - 1);
    vf r = vf_signed_as(vf_log_sum(n, f), x);
    bool all = vf_all_within(x, TD_LOG1P_LEAST, TD_LOG1P_BELOW);
    return __builtin_expect(all, 1) ? r : vf_log1p_apart(r, x);
}

/* ---- polynomials by interval ---- */

/* Of 16 floats those that the low four bits of the lanes of k say. */
static inline vf vf_entry(const float *row, vi k) {
#if defined(TD_ISA_avx512)
    return (vf)_mm512_permutexvar_ps((__m512i)k, _mm512_loadu_ps(row));
#elif defined(TD_ISA_avx2)
    __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(row), (__m256i)k);
    __m256 high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(row + 8), (__m256i)k);
    return (vf)_mm256_blendv_ps(low, high, (__m256)(k << 28));
#else
    vf r;
    for (int lane = 0; lane < VF_N; lane++)
        r[lane] = row[k[lane] & 15];
    return r;
#endif
}

#if defined(TD_ISA_avx512)
/* The same of two tables, the second one where the fifth bit is set. */
static inline vf vf_entry_of_32(const float *row, const float *more, vi k) {
    return (vf)_mm512_permutex2var_ps(_mm512_loadu_ps(row), (__m512i)k, _mm512_loadu_ps(more));
}
#endif

/* Which polynomial serves a >= 0. */
static inline vi vf_interval(vf a, float shift) {
    return ((vi)(a + shift) - (vi)((vf){0} + shift)) >> 21;
}

/* Polynomial k at a; `first` is the term that the one next to 0 lacks. */
static inline vf vf_piece(const td_pieces *p, vi k, vf a, vf first) {
    vf d = a - vf_entry(p->rows[0], k), sum = vf_entry(p->rows[TD_PIECES_DEGREE + 1], k);
    for (int row = TD_PIECES_DEGREE; row > 1; row--)
        sum = vf_fma(sum, d, vf_entry(p->rows[row], k));
    return vf_fma(sum, d, vf_select((vi)(k == 0), first, vf_entry(p->rows[1], k)));
}

/* The polynomial of the nearest multiple of a step; adding `round` leaves its number in the low
 * bits, by which `entry` looks up each term. */
static inline __attribute__((always_inline)) vf vf_even_piece_by(vf (*entry)(const float *, vi),
                                                                 const td_pieces *p, int degree,
                                                                 vf a, float round) {
    vi k = (vi)(a + round);
    vf d = a - entry(p->rows[0], k), sum = entry(p->rows[degree + 1], k);
    for (int row = degree; row > 0; row--)
        sum = vf_fma(sum, d, entry(p->rows[row], k));
    return sum;
}
static inline vf vf_even_piece(const td_pieces *p, int degree, vf a, float round) {
    return vf_even_piece_by(vf_entry, p, degree, a, round);
}

/* An odd function, which is constant from `limit` on. */
static inline vf vf_odd(const td_pieces *p, vf x, float shift, float limit) {
    vf a = vf_at_most(vf_abs(x), limit);
    return vf_signed_as(vf_piece(p, vf_interval(a, shift), a, a), x);
}

static inline vf vf_tanh(vf x) {
    return vf_odd(&tanh_pieces, x, TD_TANH_SHIFT, TD_TANH_LIMIT);
}

static inline vf vf_erf(vf x) {
    return vf_odd(&erf_pieces, x, TD_ERF_SHIFT, TD_ERF_LIMIT);
}

/* ---- x times a step ---- */

/* x times a function that rises from 0 to 1, by its tail at -|x|: the greater of x and 0, less
 * that. Of minus infinity it is NaN, as 0 times that is. */
static inline vf vf_less_tail(vf x, vf tail) {
    /* of what is below 0 the sign alone, by bits: clang 15 takes a choice for a maximum, whose 0
     * has either sign */
    return (vf)((vi)x & ~((vi)x >> 31 & INT32_MAX)) - tail;
}
static inline vf vf_less_far_tail(vf x, vf tail) {
    return vf_less_tail(x, vf_select((vi)(x == -INFINITY), (vf){0} + NAN, tail));
}

/* Lanes from the limit on go another way, and so does a vector that has any: `far` is what those
 * get. NaN is not beyond; the limit itself is, since it may lie halfway to an entry that the table
 * does not have. */
#define TD_VEC_BOTH_WAYS(name, limit)                                                              \
    static __attribute__((noinline)) vf vf_##name##_apart(vf x) {                                  \
        vi beyond = (vi)(vf_abs(x) >= (limit));                                                    \
        return vf_select(beyond, vf_##name##_far(x), vf_##name##_near(x));                         \
    }
#define TD_VEC_NEAR_OR_APART(name, limit)                                                          \
    static inline vf vf_##name(vf x) {                                                             \
        bool any = vf_any_from(vf_abs(x), limit);                                                  \
        return __builtin_expect(any, 0) ? vf_##name##_apart(x) : vf_##name##_near(x);              \
    }
#define TD_VEC_NEAR_AND_FAR(name, limit)                                                           \
    TD_VEC_BOTH_WAYS(name, limit)                                                                  \
    TD_VEC_NEAR_OR_APART(name, limit)

#if defined(TD_ISA_avx2)
/* By half as many polynomials, which one permutation each looks up, of two degrees more. */
static inline vf vf_gelu_near(vf x) {
    return vf_less_tail(x, vf_even_piece_by(vf_entry_of_8, &gelu_eight, TD_GELU_EIGHT_DEGREE,
                                            vf_abs(x), TD_GELU_EIGHT_ROUND));
}
#else
static inline vf vf_gelu_near(vf x) {
    return vf_less_tail(
        x, vf_even_piece(&gelu_near, TD_GELU_NEAR_DEGREE, vf_abs(x), TD_GELU_NEAR_ROUND));
}
#endif
/* exp(-a^2 / 2); what rounding takes from the square goes into it. */
static inline vf vf_gelu_power(vf a, vf *power) {
    vf lost, square = vf_product(a, a, &lost);
    return vf_exp_parts_of(square * -0.5f, lost * 0.5f, power);
}
#if defined(TD_ISA_avx512)
/* Both ways at once: the polynomials of either lie in one table of 32. Where the exponential has no
 * place it is 1, which leaves the bits as they are. */
static __attribute__((noinline)) vf vf_gelu_apart(vf x) {
    vi beyond = (vi)(vf_abs(x) >= TD_GELU_NEAR_LIMIT);
    vf a = vf_at_most(vf_abs(x), TD_GELU_FAR_LIMIT), power, y = vf_gelu_power(a, &power);
    vf round = vf_select(beyond, (vf){0} + (TD_GELU_FAR_ROUND + 16), (vf){0} + TD_GELU_NEAR_ROUND);
    vi k = (vi)(a + round);
    vf d = a - vf_entry_of_32(gelu_near.rows[0], gelu_far.rows[0], k), f = {0};
    for (int row = TD_GELU_FAR_DEGREE + 1; row > 0; row--)
        f = vf_fma(f, d, vf_entry_of_32(gelu_near.rows[row], gelu_far.rows[row], k));
    y = vf_select(beyond, y, (vf){0} + 1);
    power = vf_select(beyond, power, (vf){0} + TD_EXP_ROUND);
    return vf_less_far_tail(x, vf_times_power(f * y, power));
}
#else
static inline vf vf_gelu_far(vf x) {
    vf a = vf_at_most(vf_abs(x), TD_GELU_FAR_LIMIT), power, y = vf_gelu_power(a, &power);
    vf f = vf_even_piece(&gelu_far, TD_GELU_FAR_DEGREE, a, TD_GELU_FAR_ROUND);
    return vf_less_far_tail(x, vf_times_power(f * y, power));
}
TD_VEC_BOTH_WAYS(gelu, TD_GELU_NEAR_LIMIT)
#endif
/* x erfc(-x / sqrt(2)) / 2 */
TD_VEC_NEAR_OR_APART(gelu, TD_GELU_NEAR_LIMIT)

static inline vf vf_silu_near(vf x) {
    return vf_less_tail(
        x, vf_even_piece(&silu_near, TD_SILU_NEAR_DEGREE, vf_abs(x), TD_SILU_NEAR_ROUND));
}
/* x / (1 + exp(-x)) */
static inline vf vf_silu_far(vf x) {
    vf a = vf_at_most(vf_abs(x), 125), power, y = vf_exp_scaled(-a, &power);
    vf f = vf_piece(&silu_pieces, vf_interval(a, TD_SILU_SHIFT), a, a * 0.5f);
    f = vf_select((vi)(a > TD_SILU_LIMIT), a, f);
    return vf_less_far_tail(x, vf_times_power(f * y, power));
}

static inline vf vf_sigmoid_near(vf x) {
    vf tail =
        vf_even_piece(&sigmoid_near, TD_SIGMOID_NEAR_DEGREE, vf_abs(x), TD_SIGMOID_NEAR_ROUND);
    return vf_select((vi)(x < 0), tail, 1 - tail);
}

static inline vf vf_erfc_near(vf x) {
    vf tail = vf_even_piece(&erfc_near, TD_ERFC_NEAR_DEGREE, vf_abs(x), TD_ERFC_NEAR_ROUND);
    return vf_select((vi)(x < 0), 2 - tail, tail);
}

#endif
