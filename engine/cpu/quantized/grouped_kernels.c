/* grouped_kernels.c: rows of floats rounded in blocks, and their products with weights of a few
 * bits in groups. Built once per instruction set; all give the same bits: sums of integers are
 * exact, and floats are added in one order without fused steps. */
#include "engine/cpu/quantized/grouped_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"

#include <float.h>
#include <math.h>
#include <string.h>

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#include <immintrin.h>
#endif

enum { COLUMNS = TD_GROUPED_COLUMNS, BLOCK = TD_GROUPED_BLOCK, FOUR = 4, LINE = COLUMNS * FOUR };

#define INLINE static inline __attribute__((always_inline))

/* ---- rows in blocks ---- */

/* The bits of the largest magnitude of a block: those of a NaN are above infinity's. */
static inline uint32_t largest_bits(const float *x) {
    uint32_t bits[BLOCK], most = 0;
    memcpy(bits, x, sizeof bits);
    for (int i = 0; i < BLOCK; i++) {
        uint32_t magnitude = bits[i] & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    return most;
}

static float round_block(const float *restrict x, int8_t *restrict ints) {
    const float whole = 0x1.8p23f; /* floats beside it are the integers: half goes to even */
    uint32_t bits = largest_bits(x);
    float largest, scale;
    memcpy(&largest, &bits, sizeof largest);
    scale = largest / 127;
    if (!(scale >= FLT_MIN && scale <= FLT_MAX)) {
        memset(ints, 0, BLOCK);
        return scale < FLT_MIN ? 0 : NAN;
    }
    const float inverse = 1 / scale;
    for (int i = 0; i < BLOCK; i++)
        ints[i] = (int8_t)(int32_t)((x[i] * inverse + whole) - whole);
    return scale;
}

static void round_blocks(const float *x, int64_t n, int8_t *ints, float *scales) {
    int64_t at = 0;
    for (; at + BLOCK <= n; at += BLOCK)
        *scales++ = round_block(x + at, ints + at);
    if (at < n) {
        float rest[BLOCK] = {0};
        memcpy(rest, x + at, sizeof *x * (size_t)(n - at));
        *scales = round_block(rest, ints + at);
    }
}

/* ---- tiles ---- */

/* A way to multiply has `rows` rows at once, and does a panel in parts of WIDTH columns, whose
 * floats and integers of 32 bits fill a register. What it calls a part are functions of
 * these:
 *   integers start(sum, offset)    what a step begins with, for the sum of x's integers
 *   integers multiply(sums, weights, x)   ...and adds, for a quad
 */

/* How much more than `u - offset` the weights are that the instructions take. */
INLINE int32_t taken_off(int bits, const float *mins, int32_t base) {
    return base - (mins ? 0 : 1 << (bits - 1));
}

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
INLINE int32_t load_quad(const int8_t *x) {
    int32_t quad;
    memcpy(&quad, x, sizeof quad);
    return quad;
}
#endif

#if defined(TD_ISA_avx512)
#define VNNI __attribute__((target("avx512vnni")))

/* Quad q of the step at w, as bytes from 0 on. */
INLINE VNNI __m512i weights_512(const uint8_t *w, int q, const int bits) {
    if (bits == 8)
        return _mm512_loadu_si512(w + q * LINE);
    const __m512i pair = _mm512_loadu_si512(w + q / 2 * LINE);
    const __m512i low =
        _mm512_and_si512(q & 1 ? _mm512_srli_epi16(pair, 4) : pair, _mm512_set1_epi8(0x0f));
    if (bits == 4)
        return low;
    __m512i high = _mm512_loadu_si512(w + 2 * LINE);
    high = q < 2 ? _mm512_slli_epi16(high, (unsigned)(4 - 2 * q))
                 : _mm512_srli_epi16(high, (unsigned)(2 * q - 4));
    return _mm512_or_si512(low, _mm512_and_si512(high, _mm512_set1_epi8(0x30)));
}

INLINE VNNI void vnni_rows(const td_grouped_tile *t, int row, const int rows, const int bits) {
    const int step = td_grouped_step(bits), quads = step / FOUR;
    const int32_t off = taken_off(bits, t->mins, 0);
    const uint8_t *w = t->weights;
    const int8_t *x = t->x + row * t->x_step;
    const float *x_scales = t->x_scales + row * t->x_scales_step;
    const int32_t *x_sums = t->x_sums + row * t->x_sums_step;
    __m512 out[TD_GROUPED_ROWS], part[TD_GROUPED_ROWS];
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) out[r] = _mm512_setzero_ps();
    for (int64_t g = 0, at = 0; g < t->groups; g++) {
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) part[r] = _mm512_setzero_ps();
        for (int64_t k = 0; k < t->steps; k++, at++, w += 2 * step * bits) {
            __m512i sums[TD_GROUPED_ROWS];
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] =
                _mm512_set1_epi32(off * x_sums[r * t->x_sums_step + at]);
            _Pragma("GCC unroll 8") for (int q = 0; q < quads; q++) {
                const __m512i weights = weights_512(w, q, bits);
                const int8_t *from = x + at * step + q * FOUR;
                _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] =
                    _mm512_dpbusd_epi32(sums[r], weights,
                                        _mm512_set1_epi32(load_quad(from + r * t->x_step)));
            }
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
                const float scale = x_scales[r * t->x_scales_step + at * step / BLOCK];
                part[r] = _mm512_add_ps(
                    part[r], _mm512_mul_ps(_mm512_set1_ps(scale), _mm512_cvtepi32_ps(sums[r])));
            }
        }
        const __m512 scales = _mm512_loadu_ps(t->scales + g * COLUMNS);
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) out[r] =
            _mm512_add_ps(out[r], _mm512_mul_ps(scales, part[r]));
        if (t->mins) {
            const __m512 mins = _mm512_loadu_ps(t->mins + g * COLUMNS);
            const float *totals = t->x_totals + row * t->x_totals_step + g;
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) out[r] = _mm512_sub_ps(
                out[r], _mm512_mul_ps(mins, _mm512_set1_ps(totals[r * t->x_totals_step])));
        }
    }
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)
        _mm512_storeu_ps(t->out + (row + r) * COLUMNS, out[r]);
}

#define DEFINE_VNNI(BITS)                                                                          \
    static VNNI void vnni_##BITS(const td_grouped_tile *t) {                                       \
        int row = 0;                                                                               \
        for (; t->rows - row >= 6; row += 6)                                                       \
            vnni_rows(t, row, 6, BITS);                                                            \
        for (; t->rows - row >= 3; row += 3)                                                       \
            vnni_rows(t, row, 3, BITS);                                                            \
        for (; row < t->rows; row++)                                                               \
            vnni_rows(t, row, 1, BITS);                                                            \
    }
DEFINE_VNNI(4)
DEFINE_VNNI(6)
DEFINE_VNNI(8)

static void tile_by_fours(const td_grouped_tile *t) {
    (t->bits == 4 ? vnni_4 : t->bits == 6 ? vnni_6 : vnni_8)(t);
}
#define TILE_BY_FOURS tile_by_fours
#else
#define TILE_BY_FOURS NULL
#endif

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
/* Half of quad q, 8 columns, as bytes from 0 on; of 8 bits, less 128. */
INLINE __m256i weights_256(const uint8_t *w, int q, const int bits) {
    if (bits == 8)
        return _mm256_xor_si256(_mm256_loadu_si256((const void *)(w + q * LINE)),
                                _mm256_set1_epi8((char)0x80));
    const __m256i pair = _mm256_loadu_si256((const void *)(w + q / 2 * LINE));
    const __m256i low =
        _mm256_and_si256(q & 1 ? _mm256_srli_epi16(pair, 4) : pair, _mm256_set1_epi8(0x0f));
    if (bits == 4)
        return low;
    __m256i high = _mm256_loadu_si256((const void *)(w + 2 * LINE));
    high = q < 2 ? _mm256_slli_epi16(high, 4 - 2 * q) : _mm256_srli_epi16(high, 2 * q - 4);
    return _mm256_or_si256(low, _mm256_and_si256(high, _mm256_set1_epi8(0x30)));
}

/* Sums of two products in 16 bits. None saturates: integers of x are between -127 and 127, so that
 * a pair's is at most 2 * 127 * 15 or 63 in magnitude, of which 8 or 2 fit. Weights of 8 bits
 * change places with x: their magnitudes are at most 128, and 2 * 127 * 128 fits once. */
INLINE __m256i pairs_256(__m256i weights, __m256i x, const int bits) {
    if (bits == 8)
        return _mm256_maddubs_epi16(_mm256_abs_epi8(weights), _mm256_sign_epi8(x, weights));
    return _mm256_maddubs_epi16(weights, x);
}

INLINE void avx2_rows(const td_grouped_tile *t, int row, const int rows, const int bits, int half) {
    const int step = td_grouped_step(bits), quads = step / FOUR;
    const int fit = bits == 4 ? 8 : bits == 6 ? 2 : 1; /* quads whose sums of pairs fit 16 bits */
    const int32_t off = taken_off(bits, t->mins, bits == 8 ? 128 : 0);
    const __m256i ones = _mm256_set1_epi16(1);
    const uint8_t *w = t->weights + half * LINE / 2;
    const int8_t *x = t->x + row * t->x_step;
    const float *x_scales = t->x_scales + row * t->x_scales_step;
    const int32_t *x_sums = t->x_sums + row * t->x_sums_step;
    const int64_t column = half * COLUMNS / 2;
    __m256 out[TD_GROUPED_ROWS], part[TD_GROUPED_ROWS];
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) out[r] = _mm256_setzero_ps();
    for (int64_t g = 0, at = 0; g < t->groups; g++) {
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) part[r] = _mm256_setzero_ps();
        for (int64_t k = 0; k < t->steps; k++, at++, w += 2 * step * bits) {
            __m256i sums[TD_GROUPED_ROWS], pairs[TD_GROUPED_ROWS];
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] =
                _mm256_set1_epi32(off * x_sums[r * t->x_sums_step + at]);
            _Pragma("GCC unroll 8") for (int q = 0; q < quads; q++) {
                const __m256i weights = weights_256(w, q, bits);
                const int8_t *from = x + at * step + q * FOUR;
                _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
                    __m256i some = pairs_256(
                        weights, _mm256_set1_epi32(load_quad(from + r * t->x_step)), bits);
                    pairs[r] = q % fit ? _mm256_add_epi16(pairs[r], some) : some;
                    if (q % fit == fit - 1)
                        sums[r] = _mm256_add_epi32(sums[r], _mm256_madd_epi16(pairs[r], ones));
                }
            }
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
                const float scale = x_scales[r * t->x_scales_step + at * step / BLOCK];
                part[r] = _mm256_add_ps(
                    part[r], _mm256_mul_ps(_mm256_set1_ps(scale), _mm256_cvtepi32_ps(sums[r])));
            }
        }
        const __m256 scales = _mm256_loadu_ps(t->scales + g * COLUMNS + column);
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) out[r] =
            _mm256_add_ps(out[r], _mm256_mul_ps(scales, part[r]));
        if (t->mins) {
            const __m256 mins = _mm256_loadu_ps(t->mins + g * COLUMNS + column);
            const float *totals = t->x_totals + row * t->x_totals_step + g;
            _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) out[r] = _mm256_sub_ps(
                out[r], _mm256_mul_ps(mins, _mm256_set1_ps(totals[r * t->x_totals_step])));
        }
    }
    _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)
        _mm256_storeu_ps(t->out + (row + r) * COLUMNS + column, out[r]);
}

#define DEFINE_AVX2(BITS)                                                                          \
    static void avx2_##BITS(const td_grouped_tile *t) {                                            \
        for (int half = 0; half < 2; half++) {                                                     \
            int row = 0;                                                                           \
            for (; t->rows - row >= 3; row += 3)                                                   \
                avx2_rows(t, row, 3, BITS, half);                                                  \
            for (; row < t->rows; row++)                                                           \
                avx2_rows(t, row, 1, BITS, half);                                                  \
        }                                                                                          \
    }
DEFINE_AVX2(4)
DEFINE_AVX2(6)
DEFINE_AVX2(8)

static void tile(const td_grouped_tile *t) {
    (t->bits == 4 ? avx2_4 : t->bits == 6 ? avx2_6 : avx2_8)(t);
}
#else
/* The quads of the step at w, as bytes from 0 on. */
static void open_step(const uint8_t *w, int bits, uint8_t *restrict out) {
    const int quads = td_grouped_step(bits) / FOUR;
    for (int q = 0; q < quads; q++, out += LINE) {
        const uint8_t *from = w + (bits == 8 ? q : q / 2) * LINE, *high = w + 2 * LINE;
        const int by = q % 2 * 4;
        if (bits == 8)
            memcpy(out, from, LINE);
        else
            for (int i = 0; i < LINE; i++)
                out[i] = (from[i] >> by) & 15;
        for (int i = 0; bits == 6 && i < LINE; i++)
            out[i] = (uint8_t)(out[i] | (high[i] >> 2 * q & 3) << 4);
    }
}

static void add_quad(const uint8_t *restrict w, const int8_t *restrict x, int32_t *restrict sums) {
    for (int c = 0; c < COLUMNS; c++)
        for (int i = 0; i < FOUR; i++)
            sums[c] += w[c * FOUR + i] * x[i];
}

static void tile(const td_grouped_tile *t) {
    const int step = td_grouped_step(t->bits);
    const int32_t off = taken_off(t->bits, t->mins, 0);
    float part[TD_GROUPED_ROWS * COLUMNS];
    uint8_t weights[LINE * BLOCK / FOUR];
    memset(t->out, 0, sizeof(float) * (size_t)t->rows * COLUMNS);
    for (int64_t g = 0, at = 0; g < t->groups; g++) {
        memset(part, 0, sizeof part);
        for (int64_t k = 0; k < t->steps; k++, at++) {
            open_step(t->weights + at * 2 * step * t->bits, t->bits, weights);
            for (int r = 0; r < t->rows; r++) {
                const int8_t *x = t->x + r * t->x_step + at * step;
                const float scale = t->x_scales[r * t->x_scales_step + at * step / BLOCK];
                int32_t sums[COLUMNS];
                for (int c = 0; c < COLUMNS; c++)
                    sums[c] = off * t->x_sums[r * t->x_sums_step + at];
                for (int q = 0; q < step / FOUR; q++)
                    add_quad(weights + q * LINE, x + q * FOUR, sums);
                for (int c = 0; c < COLUMNS; c++)
                    part[r * COLUMNS + c] += scale * (float)sums[c];
            }
        }
        for (int r = 0; r < t->rows; r++)
            for (int c = 0; c < COLUMNS; c++) {
                float *out = t->out + r * COLUMNS + c;
                *out += t->scales[g * COLUMNS + c] * part[r * COLUMNS + c];
                if (t->mins)
                    *out -= t->mins[g * COLUMNS + c] * t->x_totals[r * t->x_totals_step + g];
            }
    }
}
#endif

/* ---- rows of tables ---- */

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#if defined(TD_ISA_avx512)
typedef __m512 floats;
enum { WIDE = 16 };
#define FLOATS(NAME) _mm512_##NAME
#define WIDEN(bytes) _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))
#else
typedef __m256 floats;
enum { WIDE = 8 };
#define FLOATS(NAME) _mm256_##NAME
#define WIDEN(bytes) _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))
#endif

/* WIDE elements from an even one on, each as a byte. */
INLINE __m128i load_elements(const uint8_t *row, int64_t at, const int bits) {
    const uint8_t *from = row + (bits == 8 ? at : at / 2);
    const int bytes = WIDE * bits / 8;
    __m128i x = bytes == 16  ? _mm_loadu_si128((const void *)from)
                : bytes == 8 ? _mm_loadl_epi64((const void *)from)
                             : _mm_cvtsi32_si128(load_quad((const int8_t *)from));
    if (bits == 8)
        return x;
    x = _mm_cvtepu8_epi16(x); /* the high half of a byte goes into the byte behind it */
    return _mm_and_si128(_mm_or_si128(x, _mm_slli_epi16(x, 4)), _mm_set1_epi8(0x0f));
}

enum { PARTS = 4, STRETCH = PARTS * WIDE }; /* elements that stay in registers */

INLINE void add_stretch(const td_row_sum *s, int64_t at, const int bits) {
    floats sums[PARTS];
    _Pragma("GCC unroll 4") for (int k = 0; k < PARTS; k++) sums[k] =
        FLOATS(loadu_ps)(s->out + at + k * WIDE);
    for (int r = 0; r < s->count; r++) {
        const floats scale = FLOATS(set1_ps)(s->scales[r]), offset = FLOATS(set1_ps)(s->offsets[r]);
        _Pragma("GCC unroll 4") for (int k = 0; k < PARTS; k++) {
            floats u = WIDEN(load_elements(s->rows[r], at + k * WIDE, bits));
            sums[k] = FLOATS(add_ps)(sums[k], FLOATS(add_ps)(FLOATS(mul_ps)(u, scale), offset));
        }
    }
    _Pragma("GCC unroll 4") for (int k = 0; k < PARTS; k++)
        FLOATS(storeu_ps)(s->out + at + k * WIDE, sums[k]);
}

/* What of the elements whole stretches hold. */
static int64_t add_stretches(const td_row_sum *s) {
    int64_t at = 0;
    for (; at + STRETCH <= s->n; at += STRETCH) {
        if (s->bits == 8)
            add_stretch(s, at, 8);
        else
            add_stretch(s, at, 4);
    }
    return at;
}
#else
static int64_t add_stretches(const td_row_sum *s) {
    (void)s;
    return 0;
}
#endif

static void add_rows(const td_row_sum *s) {
    const int64_t at = add_stretches(s);
    for (int r = 0; r < s->count; r++)
        for (int64_t i = at; i < s->n; i++) {
            int u = s->bits == 8 ? s->rows[r][i] : s->rows[r][i / 2] >> i % 2 * 4 & 15;
            s->out[i] += (float)u * s->scales[r] + s->offsets[r];
        }
}

/* ---- the table ---- */

extern const td_grouped_kernels TD_ISA_SYMBOL(td_grouped_kernels);
const td_grouped_kernels TD_ISA_SYMBOL(td_grouped_kernels) = {
    .round_blocks = round_blocks,
    .tile = tile,
    .tile_vnni = TILE_BY_FOURS,
    .add_rows = add_rows,
};
