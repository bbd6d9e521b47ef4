/* vec_float.h: exp, tanh, erf, silu and gelu of vectors of float, at a few instructions per vector.
 *
 * No lane asks what others hold: an element has one result wherever it lies. exp goes by a
 * polynomial about the nearest eighth of a power of two; the others by one of 16, each of which
 * serves an interval (vec_pieces.h). Far out, the last two are an exponential times something that
 * hardly changes, so that their tails are as precise as what is near 0. Errors are within
 * tests/torture/ulp/functions.def.
 */
#ifndef TD_CPU_ISA_VEC_FLOAT_H
#define TD_CPU_ISA_VEC_FLOAT_H

#include "engine/cpu/isa/vec_fma.h"
#include "engine/cpu/isa/vec_pieces.h"

/* NaN stays NaN. */
static inline vf vf_at_most(vf x, float limit) {
    return (vf)TD_MIN_F((td_native_f)((vf){0} + limit), (td_native_f)x);
}
static inline vf vf_at_least(vf x, float limit) {
    return (vf)TD_MAX_F((td_native_f)((vf){0} + limit), (td_native_f)x);
}

/* ---- exp ---- */

/* Of 8 floats, which are there twice, those that the low three bits of the lanes of k say. */
static inline vf vf_entry_of_8(const float *row, vi k) {
#if defined(TD_ISA_avx512)
    return (vf)_mm512_permutexvar_ps((__m512i)k, _mm512_loadu_ps(row));
#elif defined(TD_ISA_avx2)
    return (vf)_mm256_permutevar8x32_ps(_mm256_loadu_ps(row), (__m256i)k);
#else
    vf r;
    for (int lane = 0; lane < VF_N; lane++)
        r[lane] = row[k[lane] & 7];
    return r;
#endif
}

#define TD_EXP_ROUND 0x1.8p20f /* adding it leaves eighths in the low bits */

/* y from 1 to 2 and *power with exp(x - less) = y * 2^n: vf_times_power knows n from it. For x from
 * -126 to 89; `less` is small beside the last place of x. */
static inline vf vf_exp_parts_of(vf x, vf less, vf *power) {
    vf round = (vf){0} + TD_EXP_ROUND;
    vf shifted = vf_fma(x, (vf){0} + 1.44269504f, round), eighths = shifted - round;
    vf high = x - eighths * 0x1.63p-1f; /* exact: few digits by few digits */
    vf r = high - vf_fma(eighths, (vf){0} - 0x1.bd0106p-13f, less);
    vf sum = (vf){0} + exp_terms[TD_EXP_TERMS - 1];
    for (int k = TD_EXP_TERMS - 2; k >= 0; k--)
        sum = vf_fma(sum, r, (vf){0} + exp_terms[k]);
    vf top = vf_entry_of_8(exp_powers.rows[0], (vi)shifted);
    vf rest = vf_entry_of_8(exp_powers.rows[1], (vi)shifted);
    *power = shifted;
    return top + vf_fma(top, vf_fma(sum, r * r, r), rest);
}

/* x * 2^n, rounded once where the result is too small for all its digits. */
static inline vf vf_times_power(vf x, vf power) {
#if defined(TD_ISA_avx512)
    return (vf)_mm512_scalef_ps((__m512)x, (__m512)(power - TD_EXP_ROUND));
#else
    vi n = ((vi)power - (vi)((vf){0} + TD_EXP_ROUND)) >> 3, half = n >> 1;
    return x * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
#endif
}

static inline vf vf_exp(vf x) {
    vf power, y = vf_exp_parts_of(vf_at_least(vf_at_most(x, 89), -104), (vf){0}, &power);
    return vf_times_power(y, power);
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

/* An odd function, which is constant from `limit` on. */
static inline vf vf_odd(const td_pieces *p, vf x, float shift, float limit) {
    vf a = vf_at_most(vf_abs(x), limit), r = vf_piece(p, vf_interval(a, shift), a, a);
    return (vf)((vi)r | ((vi)x & INT32_MIN));
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
    vf above = vf_select((vi)(x < 0), (vf)((vi){0} + INT32_MIN), x);
    return vf_select((vi)(x == -INFINITY), (vf){0} + NAN, above) - tail;
}

/* x erfc(-x / sqrt(2)) / 2. What rounding takes from the square goes into its exponential. */
static inline vf vf_gelu(vf x) {
    vf a = vf_at_most(vf_abs(x), TD_GELU_LIMIT), lost, square = vf_product(a, a, &lost), power;
    vf y = vf_exp_parts_of(square * -0.5f, lost * 0.5f, &power);
    vf f = vf_piece(&gelu_pieces, vf_interval(a, TD_GELU_SHIFT), a, a * 0.5f);
    return vf_less_tail(x, vf_times_power(f * y, power));
}

/* x / (1 + exp(-x)) */
static inline vf vf_silu(vf x) {
    vf a = vf_at_most(vf_abs(x), 125), power, y = vf_exp_parts_of(-a, (vf){0}, &power);
    vf f = vf_piece(&silu_pieces, vf_interval(a, TD_SILU_SHIFT), a, a * 0.5f);
    f = vf_select((vi)(a > TD_SILU_LIMIT), a, f);
    return vf_less_tail(x, vf_times_power(f * y, power));
}

#endif
