/* quantized_kernels.c: floats to integers of a scale and a zero point, products of bytes, and their
 * sums back to floats or integers. Built once per instruction set; all give the same bits. */
#include "engine/cpu/quantized/quantized_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"

#include <math.h>
#include <string.h>

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
#include <immintrin.h>
#endif
#if defined(TD_ISA_avx512)
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/quantized/amx_loops.h"
#endif

enum { COLUMNS = 16, FOUR = 4, PANEL_GROUP = COLUMNS * FOUR }; /* bytes of a group of a panel */

/* ---- rounding ---- */

/* Half to even, of |v| < 2^22: there floats beside `whole` are the integers. */
static inline float round_small(float v) {
    const float whole = 0x1.8p23f;
    return (v + whole) - whole;
}

/* v between bounds that are whole numbers, and rounded, in which order is all the same; NaN gives
 * the lower one. */
static inline int32_t round_between(float v, float low, float high) {
    v = v > low ? v : low; /* one instruction each, as they stand */
    v = v < high ? v : high;
    return (int32_t)round_small(v);
}

/* `n` is a copy: a byte that is stored may change anything that the compiler knows of, and a loop
 * whose end might change is not made of vectors. */
#define DEFINE_QUANTIZE(NAME, T)                                                                   \
    static void NAME(const td_quantize_line *l) {                                                  \
        const float *restrict x = l->x;                                                            \
        T *restrict out = l->out;                                                                  \
        const float inverse = 1 / l->scale;                                                        \
        const int32_t zero_point = l->zero_point;                                                  \
        const float low = (float)(l->low - zero_point), high = (float)(l->high - zero_point);      \
        const int64_t n = l->n;                                                                    \
        for (int64_t i = 0; i < n; i++)                                                            \
            out[i] = (T)(round_between(x[i] * inverse, low, high) + zero_point);                   \
    }
DEFINE_QUANTIZE(quantize_u8, uint8_t)
DEFINE_QUANTIZE(quantize_i8, int8_t)

/* Bounds of 32 bits are no floats, but doubles are exact here. */
static void quantize_i32(const td_quantize_line *l) {
    int32_t *restrict out = l->out;
    const float inverse = 1 / l->scale;
    const double low = l->low, high = l->high, zero_point = l->zero_point;
    const float *restrict x = l->x;
    const int64_t n = l->n;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)rintf(x[i] * inverse) + zero_point;
        v = v >= low ? v : low;
        out[i] = (int32_t)(v <= high ? v : high);
    }
}

/* ---- sums ---- */

static int32_t sum_bytes(const uint8_t *x, int64_t n) {
    uint32_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return (int32_t)sum;
}

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
/* Four bytes of a row, from any address. */
static inline int32_t load_four(const uint8_t *x) {
    int32_t four;
    memcpy(&four, x, sizeof four);
    return four;
}
#endif

#if defined(TD_ISA_avx512)
/* ROWS rows with PANELS panels: each group of four bytes of a row meets 16 columns at a time. */
#define DEFINE_VNNI(ROWS, PANELS)                                                                  \
    __attribute__((target("avx512vnni"))) static void vnni_##ROWS##_##PANELS(                      \
        const td_byte_tile *t) {                                                                   \
        __m512i sums[ROWS][PANELS];                                                                \
        const int64_t apart = t->groups * PANEL_GROUP;                                             \
        _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++)                                   \
            _Pragma("GCC unroll 8") for (int p = 0; p < (PANELS); p++) sums[r][p] =                \
                _mm512_setzero_si512();                                                            \
        for (int64_t i = 0; i < t->count; i++) {                                                   \
            __asm__ volatile("" ::: "memory"); /* or the tile's numbers take registers */          \
            const td_byte_part *part = t->which + i;                                               \
            const int8_t *w = t->weights + part->part * t->each * PANEL_GROUP;                     \
            const uint8_t *x[ROWS];                                                                \
            _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++) x[r] =                        \
                td_byte_tile_part(t, r, part);                                                     \
            for (int64_t k = 0; k < t->each; k++, w += PANEL_GROUP) {                              \
                __m512i b[PANELS];                                                                 \
                _Pragma("GCC unroll 8") for (int p = 0; p < (PANELS); p++) b[p] =                  \
                    _mm512_load_si512(w + p * apart);                                              \
                _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++) {                         \
                    __m512i a = _mm512_set1_epi32(load_four(x[r] + k * FOUR));                     \
                    _Pragma("GCC unroll 8") for (int p = 0; p < (PANELS); p++) sums[r][p] =        \
                        _mm512_dpbusd_epi32(sums[r][p], a, b[p]);                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++)                                   \
            _Pragma("GCC unroll 8") for (int p = 0; p < (PANELS); p++)                             \
                _mm512_storeu_si512(t->sums + (r * (PANELS) + p) * COLUMNS, sums[r][p]);           \
    }
#define DEFINE_VNNI_ROWS(PANELS)                                                                   \
    DEFINE_VNNI(1, PANELS)                                                                         \
    DEFINE_VNNI(2, PANELS)                                                                         \
    DEFINE_VNNI(3, PANELS)                                                                         \
    DEFINE_VNNI(4, PANELS)                                                                         \
    DEFINE_VNNI(5, PANELS)                                                                         \
    DEFINE_VNNI(6, PANELS)
DEFINE_VNNI_ROWS(1)
DEFINE_VNNI_ROWS(2)
DEFINE_VNNI_ROWS(3)
DEFINE_VNNI_ROWS(4)

static void tile_by_fours(const td_byte_tile *t) {
#define VNNI_ROW(ROWS)                                                                             \
    { vnni_##ROWS##_1, vnni_##ROWS##_2, vnni_##ROWS##_3, vnni_##ROWS##_4 }
    static const td_byte_tile_fn fns[TD_TILE_ROWS][TD_TILE_PANELS] = {
        VNNI_ROW(1), VNNI_ROW(2), VNNI_ROW(3), VNNI_ROW(4), VNNI_ROW(5), VNNI_ROW(6)};
    if (t->rows <= TD_TILE_ROWS) {
        fns[t->rows - 1][t->panels - 1](t);
        return;
    }
    td_byte_tile part = *t; /* of one panel */
    for (int row = 0; row < t->rows; row += part.rows) {
        part.taps = t->taps + row * t->apart;
        part.sums = t->sums + (int64_t)row * t->panels * COLUMNS;
        part.rows = t->rows - row < TD_TILE_ROWS ? t->rows - row : TD_TILE_ROWS;
        fns[part.rows - 1][t->panels - 1](&part);
    }
}
#define TILE_BY_FOURS tile_by_fours

/* The columns of a panel of lanes from the sums of its places, of which `each` make a column. */
static inline __attribute__((always_inline)) __m512i lane_columns(const __m512i *sums,
                                                                  const int each) {
    const __m512i places = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i even =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 2, 6, 10, 14, 18, 22, 26, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    if (each == 1)
        return _mm512_permutexvar_epi32(places, sums[0]);
    return _mm512_add_epi32(_mm512_permutex2var_epi32(sums[0], even, sums[1]),
                            _mm512_permutex2var_epi32(sums[0], odd, sums[1]));
}

/* ROWS rows from `row` on with a panel of lanes, whose parts have EACH groups of weights: 16 bytes
 * of a row meet all of them. */
#define DEFINE_LANES(ROWS, EACH)                                                                   \
    __attribute__((target("avx512vnni"))) static void vnni_lanes_##ROWS##_##EACH(                  \
        const td_byte_tile *t, int row) {                                                          \
        __m512i sums[ROWS][2];                                                                     \
        _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++) sums[r][0] = sums[r][1] =         \
            _mm512_setzero_si512();                                                                \
        for (int64_t i = 0; i < t->count; i++) {                                                   \
            const td_byte_part *part = t->which + i;                                               \
            const int8_t *w = t->weights + part->part * (EACH)*PANEL_GROUP;                        \
            const __m512i b0 = _mm512_load_si512(w);                                               \
            const __m512i b1 = _mm512_load_si512(w + ((EACH)-1) * PANEL_GROUP);                    \
            _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++) {                             \
                const uint8_t *x = td_byte_tile_part(t, row + r, part);                            \
                __m512i a = _mm512_broadcast_i32x4(_mm_loadu_si128((const void *)x));              \
                sums[r][0] = _mm512_dpbusd_epi32(sums[r][0], a, b0);                               \
                if ((EACH) == 2)                                                                   \
                    sums[r][1] = _mm512_dpbusd_epi32(sums[r][1], a, b1);                           \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 8") for (int r = 0; r < (ROWS); r++)                                   \
            _mm512_storeu_si512(t->sums + (row + r) * COLUMNS, lane_columns(sums[r], EACH));       \
    }
DEFINE_LANES(1, 1)
DEFINE_LANES(4, 1)
DEFINE_LANES(8, 1)
DEFINE_LANES(1, 2)
DEFINE_LANES(4, 2)
DEFINE_LANES(8, 2)

static void lanes_by_fours(const td_byte_tile *t) {
    int row = 0;
    for (; row + 8 <= t->rows; row += 8)
        (t->each == 1 ? vnni_lanes_8_1 : vnni_lanes_8_2)(t, row);
    for (; row + 4 <= t->rows; row += 4)
        (t->each == 1 ? vnni_lanes_4_1 : vnni_lanes_4_2)(t, row);
    for (; row < t->rows; row++)
        (t->each == 1 ? vnni_lanes_1_1 : vnni_lanes_1_2)(t, row);
}
#define LANES_BY_FOURS lanes_by_fours

static const td_amx_kernels amx = {td_cpu_has_amx_bytes, amx_configure, amx_tile, amx_release};
#define BY_AMX &amx
#else
#define TILE_BY_FOURS  NULL
#define LANES_BY_FOURS NULL
#define BY_AMX         NULL
#endif

#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
/* ROWS rows with one panel. `vpmaddubsw` adds two products in 16 bits, which saturate: it is used
 * for the groups of which the packing has proved that no bytes make them do so. The others come
 * last, and are multiplied in 16 bits and added up in 32. */
#define DEFINE_AVX2(ROWS)                                                                          \
    static void avx2_##ROWS(const td_byte_tile *t, const int8_t *w, const uint16_t *order,         \
                            int64_t safe, int32_t *out) {                                          \
        const __m256i ones = _mm256_set1_epi16(1);                                                 \
        const int64_t width = (int64_t)t->panels * COLUMNS;                                        \
        __m256i low[ROWS], high[ROWS];                                                             \
        const uint8_t *rows[ROWS];                                                                 \
        int64_t k = 0;                                                                             \
        _Pragma("GCC unroll 4") for (int r = 0; r < (ROWS); r++) {                                 \
            low[r] = high[r] = _mm256_setzero_si256();                                             \
            rows[r] = td_byte_tile_part(t, r, t->which);                                           \
        }                                                                                          \
        for (; k < safe; k++, w += PANEL_GROUP) {                                                  \
            const int64_t at = (int64_t)order[k] * FOUR;                                           \
            __m256i b0 = _mm256_load_si256((const void *)w);                                       \
            __m256i b1 = _mm256_load_si256((const void *)(w + PANEL_GROUP / 2));                   \
            _Pragma("GCC unroll 4") for (int r = 0; r < (ROWS); r++) {                             \
                __m256i a = _mm256_set1_epi32(load_four(rows[r] + at));                            \
                low[r] = _mm256_add_epi32(low[r],                                                  \
                                          _mm256_madd_epi16(_mm256_maddubs_epi16(a, b0), ones));   \
                high[r] = _mm256_add_epi32(high[r],                                                \
                                           _mm256_madd_epi16(_mm256_maddubs_epi16(a, b1), ones));  \
            }                                                                                      \
        }                                                                                          \
        for (; k < t->groups; k++, w += PANEL_GROUP) {                                             \
            const int64_t at = (int64_t)order[k] * FOUR;                                           \
            const __m256i odd = _mm256_set1_epi16((short)0xff00);                                  \
            __m256i b0 = _mm256_load_si256((const void *)w);                                       \
            __m256i b1 = _mm256_load_si256((const void *)(w + PANEL_GROUP / 2));                   \
            __m256i b0_odd = _mm256_srai_epi16(b0, 8), b1_odd = _mm256_srai_epi16(b1, 8);          \
            __m256i b0_even = _mm256_srai_epi16(_mm256_slli_epi16(b0, 8), 8);                      \
            __m256i b1_even = _mm256_srai_epi16(_mm256_slli_epi16(b1, 8), 8);                      \
            _Pragma("GCC unroll 4") for (int r = 0; r < (ROWS); r++) {                             \
                __m256i a = _mm256_set1_epi32(load_four(rows[r] + at));                            \
                __m256i a_odd = _mm256_srli_epi16(a, 8), a_even = _mm256_andnot_si256(odd, a);     \
                low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(a_even, b0_even));             \
                low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(a_odd, b0_odd));               \
                high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(a_even, b1_even));           \
                high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(a_odd, b1_odd));             \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 4") for (int r = 0; r < (ROWS); r++) {                                 \
            _mm256_storeu_si256((void *)(out + r * width), low[r]);                                \
            _mm256_storeu_si256((void *)(out + r * width + COLUMNS / 2), high[r]);                 \
        }                                                                                          \
    }
DEFINE_AVX2(1)
DEFINE_AVX2(2)
DEFINE_AVX2(3)
DEFINE_AVX2(4)

typedef void (*avx2_fn)(const td_byte_tile *t, const int8_t *w, const uint16_t *order, int64_t safe,
                        int32_t *out);

static void tile(const td_byte_tile *t) {
    static const avx2_fn fns[] = {avx2_1, avx2_2, avx2_3, avx2_4};
    enum { MOST = sizeof fns / sizeof *fns };
    for (int row = 0; row < t->rows; row += MOST) {
        td_byte_tile part = *t;
        part.taps += row * t->apart;
        int rows = t->rows - row < MOST ? t->rows - row : MOST;
        for (int p = 0; p < t->panels; p++)
            fns[rows - 1](&part, t->weights + p * t->groups * PANEL_GROUP, t->order + p * t->groups,
                          t->safe[p], t->sums + ((int64_t)row * t->panels + p) * COLUMNS);
    }
}
enum { ORDERED = 1 };

/* A sum of four products at each of eight places, safe or not. */
static inline __attribute__((always_inline)) __m256i add_fours(__m256i sums, __m256i a, __m256i b,
                                                               const bool safe) {
    if (safe)
        return _mm256_add_epi32(
            sums, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
    __m256i a_even = _mm256_andnot_si256(_mm256_set1_epi16((short)0xff00), a);
    __m256i b_even = _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8);
    sums = _mm256_add_epi32(sums, _mm256_madd_epi16(a_even, b_even));
    return _mm256_add_epi32(sums,
                            _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8)));
}

/* The sums of a group of weights at its 16 places as those of columns of which each is `each`
 * places of a row; they are 4 * each apart. */
static inline __attribute__((always_inline)) void store_lanes(int32_t *to, __m256i low,
                                                              __m256i high, const int each) {
    __m256i a = _mm256_permute2x128_si256(low, high, 0x20);
    __m256i b = _mm256_permute2x128_si256(low, high, 0x31);
    __m256i pairs = _mm256_unpacklo_epi32(a, b), others = _mm256_unpackhi_epi32(a, b);
    /* pairs: the first two places of rows 0 and 1, then of 2 and 3; others: their last two */
    __m256i first = _mm256_permute4x64_epi64(pairs, 0xd8);
    __m256i last = _mm256_permute4x64_epi64(others, 0xd8);
    if (each == 1) {
        _mm256_storeu_si256((void *)to, first);
        _mm256_storeu_si256((void *)(to + COLUMNS / 2), last);
    } else {
        _mm_storeu_si128((void *)to, _mm_add_epi32(_mm256_castsi256_si128(first),
                                                   _mm256_extracti128_si256(first, 1)));
        _mm_storeu_si128(
            (void *)(to + COLUMNS / 2),
            _mm_add_epi32(_mm256_castsi256_si128(last), _mm256_extracti128_si256(last, 1)));
    }
}

/* `rows` rows from `row` on with a panel of lanes, and group `v` of each part. */
static inline __attribute__((always_inline)) void
lane_rows(const td_byte_tile *t, int row, const int rows, const int each, int v, const bool safe) {
    enum { MOST = 4 };
    __m256i low[MOST], high[MOST];
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) low[r] = high[r] =
        _mm256_setzero_si256();
    for (int64_t i = 0; i < t->count; i++) {
        const td_byte_part *part = t->which + i;
        const int8_t *w = t->weights + (part->part * each + v) * PANEL_GROUP;
        const __m256i b0 = _mm256_load_si256((const void *)w);
        const __m256i b1 = _mm256_load_si256((const void *)(w + PANEL_GROUP / 2));
        _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
            const uint8_t *x = td_byte_tile_part(t, row + r, part);
            __m256i a = _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)x));
            low[r] = add_fours(low[r], a, b0, safe);
            high[r] = add_fours(high[r], a, b1, safe);
        }
    }
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
        store_lanes(t->sums + (row + r) * COLUMNS + v * FOUR, low[r], high[r], each);
}

static inline __attribute__((always_inline)) void lane_tile(const td_byte_tile *t, const int each,
                                                            const bool safe) {
    for (int v = 0; v < each; v++) {
        int row = 0;
        for (; row + 4 <= t->rows; row += 4)
            lane_rows(t, row, 4, each, v, safe);
        for (; row < t->rows; row++)
            lane_rows(t, row, 1, each, v, safe);
    }
}

static void lanes(const td_byte_tile *t) {
    const bool safe = *t->safe == t->groups;
    if (t->each == 1 && safe)
        lane_tile(t, 1, true);
    else if (t->each == 1)
        lane_tile(t, 1, false);
    else if (safe)
        lane_tile(t, 2, true);
    else
        lane_tile(t, 2, false);
}
#else
/* The sum of four products. */
static inline int32_t sum_fours(const uint8_t *x, const int8_t *w) {
    return x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
}

static void lanes(const td_byte_tile *t) {
    const int64_t each = t->each;
    memset(t->sums, 0, sizeof *t->sums * (size_t)(t->rows * COLUMNS));
    for (int64_t i = 0; i < t->count * each; i++) {
        const td_byte_part *part = &t->which[i / each];
        const int64_t v = i % each;
        const int8_t *w = t->weights + (part->part * each + v) * PANEL_GROUP;
        for (int r = 0; r < t->rows; r++) {
            const uint8_t *x = td_byte_tile_part(t, r, part);
            for (int64_t four = 0; four < FOUR; four++) {
                int32_t *to = t->sums + r * COLUMNS + (four / each * each + v) * FOUR;
                for (int l = 0; l < FOUR; l++)
                    to[l] += sum_fours(x + four * FOUR, w + (l * FOUR + four) * FOUR);
            }
        }
    }
}

static void tile(const td_byte_tile *t) {
    const int64_t width = (int64_t)t->panels * COLUMNS;
    memset(t->sums, 0, sizeof *t->sums * (size_t)(t->rows * width));
    for (int64_t i = 0; i < t->count * t->each * t->panels; i++) {
        const td_byte_part *part = &t->which[i / t->each % t->count];
        const int64_t p = i / t->each / t->count, k = i % t->each;
        const int8_t *w = t->weights + (p * t->groups + part->part * t->each + k) * PANEL_GROUP;
        for (int r = 0; r < t->rows; r++) {
            const uint8_t *x = td_byte_tile_part(t, r, part) + k * FOUR;
            int32_t *sums = t->sums + r * width + p * COLUMNS;
            for (int c = 0; c < COLUMNS; c++)
                sums[c] += sum_fours(x, w + c * FOUR);
        }
    }
}
enum { ORDERED = 0 };
#endif

/* ---- what becomes of sums ---- */

/* The sums of (x - its zero point) times (weight - its own): they fit, as the depth is bounded, so
 * what wraps around on the way does no harm. Of as many columns as a tile has at most. */
enum { MOST_COLUMNS = TD_TILE_PANELS * COLUMNS };

static inline void centre(const td_rescale_tile *t, int row, float *restrict out) {
    const int32_t *restrict sums = t->sums + row * t->width, *restrict offsets = t->offsets;
    const int32_t *restrict zero_points = t->zero_points;
    const uint32_t row_sum = t->row_sums ? (uint32_t)t->row_sums[row] : 0;
    const int64_t n = t->n;
    if (row_sum == 0)
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)(int32_t)((uint32_t)sums[i] - (uint32_t)offsets[i]);
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = (float)(int32_t)((uint32_t)sums[i] - (uint32_t)offsets[i] -
                                      (uint32_t)zero_points[i] * row_sum);
}

static inline void add_residual(const td_rescale_tile *t, int row, float *restrict sums) {
    const uint8_t *restrict residual = t->residual + t->at[row];
    const int32_t zero_point = t->residual_zero_point;
    const float factor = t->residual_factor;
    const int64_t n = t->n;
    for (int64_t i = 0; i < n; i++)
        sums[i] += (float)(residual[i] - zero_point) * factor;
}

#define DEFINE_RESCALE(NAME, T)                                                                    \
    static void NAME(const td_rescale_tile *t) {                                                   \
        const float *restrict factors = t->factors, *restrict addends = t->addends;                \
        const int32_t zero_point = t->out_zero_point;                                              \
        const float low = (float)(t->low - zero_point), high = (float)(t->high - zero_point);      \
        const int64_t n = t->n;                                                                    \
        for (int r = 0; r < t->rows; r++) {                                                        \
            float sums[MOST_COLUMNS];                                                              \
            T *restrict out = (T *)(t->out + t->at[r]);                                            \
            centre(t, r, sums);                                                                    \
            for (int64_t i = 0; i < n; i++)                                                        \
                sums[i] = (sums[i] + addends[i]) * factors[i];                                     \
            if (t->residual)                                                                       \
                add_residual(t, r, sums);                                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                out[i] = (T)(round_between(sums[i], low, high) + zero_point);                      \
        }                                                                                          \
    }
DEFINE_RESCALE(rescale_i8, int8_t)

#if defined(TD_ISA_avx512)
/* What 16 columns have in common. */
typedef struct column_numbers {
    __m512i offsets;
    __m512 factors, addends;
} column_numbers;

static inline __attribute__((always_inline)) column_numbers
load_numbers(const td_rescale_tile *t, int64_t from, const __mmask16 some) {
    return (column_numbers){_mm512_maskz_loadu_epi32(some, t->offsets + from),
                            _mm512_maskz_loadu_ps(some, t->factors + from),
                            _mm512_maskz_loadu_ps(some, t->addends + from)};
}

/* The sums of 16 columns of a row, from `from` on, as `centre` makes them. */
static inline __attribute__((always_inline)) __m512i centre_sums(const td_rescale_tile *t,
                                                                 const column_numbers *c, int row,
                                                                 int64_t from,
                                                                 const __mmask16 some) {
    __m512i sums = _mm512_maskz_loadu_epi32(some, t->sums + row * t->width + from);
    sums = _mm512_sub_epi32(sums, c->offsets);
    if (!t->row_sums)
        return sums;
    __m512i points = _mm512_maskz_loadu_epi32(some, t->zero_points + from);
    return _mm512_sub_epi32(sums, _mm512_mullo_epi32(points, _mm512_set1_epi32(t->row_sums[row])));
}

/* 16 columns of a row, from `from` on, rounded, at most what is above the zero point; what is too
 * small, and NaN, is far below. */
static inline __attribute__((always_inline)) __m512i round_sums(const td_rescale_tile *t,
                                                                const column_numbers *c, int row,
                                                                int64_t from,
                                                                const __mmask16 some) {
    const __m512 high = _mm512_set1_ps((float)(t->high - t->out_zero_point));
    const __m512i sums = centre_sums(t, c, row, from, some);
    __m512 v = _mm512_mul_ps(_mm512_add_ps(_mm512_cvtepi32_ps(sums), c->addends), c->factors);
    if (t->residual) {
        __m128i bytes = _mm_maskz_loadu_epi8(some, t->residual + t->at[row] + from);
        __m512i whole = _mm512_sub_epi32(_mm512_cvtepu8_epi32(bytes),
                                         _mm512_set1_epi32(t->residual_zero_point));
        v = _mm512_add_ps(
            v, _mm512_mul_ps(_mm512_cvtepi32_ps(whole), _mm512_set1_ps(t->residual_factor)));
    }
    return _mm512_cvtps_epi32(_mm512_min_ps(high, v)); /* min gives v where that is NaN */
}

/* A panel of rows from `row` on, one by one. */
static inline __attribute__((always_inline)) void
rescale_panel(const td_rescale_tile *t, int row, int64_t from, const __mmask16 some) {
    const column_numbers c = load_numbers(t, from, some);
    const __m512i zero = _mm512_set1_epi32(t->out_zero_point), low = _mm512_set1_epi32(t->low);
    for (; row < t->rows; row++) {
        __m512i v = round_sums(t, &c, row, from, some);
        v = _mm512_max_epi32(_mm512_add_epi32(v, zero), low);
        char *out = t->out + t->at[row] + from;
        if (some == 0xffff) /* masked stores of bytes take many steps on some processors */
            _mm_storeu_si128((void *)out, _mm512_cvtepi32_epi8(v));
        else
            _mm_mask_storeu_epi8(out, some, _mm512_cvtepi32_epi8(v));
    }
}

/* Four times 16 columns as bytes, one after the other. */
static inline __attribute__((always_inline)) __m512i narrow_four(const td_rescale_tile *t,
                                                                 const __m512i *v) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m512i zero = _mm512_set1_epi16((short)t->out_zero_point);
    __m512i a = _mm512_adds_epi16(_mm512_packs_epi32(v[0], v[1]), zero);
    __m512i b = _mm512_adds_epi16(_mm512_packs_epi32(v[2], v[3]), zero);
    __m512i bytes = _mm512_max_epu8(_mm512_packus_epi16(a, b), _mm512_set1_epi8((char)t->low));
    return _mm512_permutexvar_epi32(order, bytes);
}

/* Rows of 4, 2 or 1 panels, of which four are narrowed at once: those of one row, or of neighbours.
 */
static inline __attribute__((always_inline)) void rescale_panels(const td_rescale_tile *t,
                                                                 int64_t from, const int panels) {
    const int high = TD_TILE_PANELS / panels;
    column_numbers c[TD_TILE_PANELS];
    int row = 0;
    _Pragma("GCC unroll 4") for (int p = 0; p < panels; p++) c[p] =
        load_numbers(t, from + (int64_t)p * COLUMNS, 0xffff);
    for (; row + high <= t->rows; row += high) {
        __m512i v[TD_TILE_PANELS];
        _Pragma("GCC unroll 4") for (int k = 0; k < TD_TILE_PANELS; k++) v[k] = round_sums(
            t, &c[k % panels], row + k / panels, from + (int64_t)(k % panels) * COLUMNS, 0xffff);
        const __m512i bytes = narrow_four(t, v);
        char *out = t->out + from;
        if (panels == 4) {
            _mm512_storeu_si512(out + t->at[row], bytes);
        } else if (panels == 2) {
            _mm256_storeu_si256((void *)(out + t->at[row]), _mm512_castsi512_si256(bytes));
            _mm256_storeu_si256((void *)(out + t->at[row + 1]),
                                _mm512_extracti64x4_epi64(bytes, 1));
        } else {
            _mm_storeu_si128((void *)(out + t->at[row]), _mm512_castsi512_si128(bytes));
            _mm_storeu_si128((void *)(out + t->at[row + 1]), _mm512_extracti32x4_epi32(bytes, 1));
            _mm_storeu_si128((void *)(out + t->at[row + 2]), _mm512_extracti32x4_epi32(bytes, 2));
            _mm_storeu_si128((void *)(out + t->at[row + 3]), _mm512_extracti32x4_epi32(bytes, 3));
        }
    }
    for (int p = 0; row < t->rows && p < panels; p++)
        rescale_panel(t, row, from + (int64_t)p * COLUMNS, 0xffff);
}

static void rescale_u8(const td_rescale_tile *tile) {
    const td_rescale_tile copy = *tile, *const t = &copy; /* which no store of bytes changes */
    int64_t from = 0;
    for (; from + 4 * COLUMNS <= t->n; from += 4 * COLUMNS)
        rescale_panels(t, from, 4);
    if (from + 2 * COLUMNS <= t->n) {
        rescale_panels(t, from, 2);
        from += 2 * COLUMNS;
    }
    if (from + COLUMNS <= t->n) {
        rescale_panels(t, from, 1);
        from += COLUMNS;
    }
    if (from < t->n)
        rescale_panel(t, 0, from, (__mmask16)((1u << (t->n - from)) - 1));
}

/* 16 columns of all rows, which stay floats. */
static inline __attribute__((always_inline)) void
rescale_floats(const td_rescale_tile *t, int64_t from, const __mmask16 some) {
    const column_numbers c = load_numbers(t, from, some);
    for (int r = 0; r < t->rows; r++) {
        __m512 v = _mm512_cvtepi32_ps(centre_sums(t, &c, r, from, some));
        v = _mm512_add_ps(_mm512_mul_ps(v, c.factors), c.addends);
        if (t->relu) /* NaN and -0 stay */
            v = _mm512_mask_blend_ps(_mm512_cmp_ps_mask(v, _mm512_setzero_ps(), _CMP_LT_OQ), v,
                                     _mm512_setzero_ps());
        _mm512_mask_storeu_ps((float *)(void *)(t->out + t->at[r]) + from, some, v);
    }
}

static void rescale_f32(const td_rescale_tile *t) {
    int64_t from = 0;
    for (; from + COLUMNS <= t->n; from += COLUMNS)
        rescale_floats(t, from, 0xffff);
    if (from < t->n)
        rescale_floats(t, from, (__mmask16)((1u << (t->n - from)) - 1));
}
#else
DEFINE_RESCALE(rescale_u8, uint8_t)

static void rescale_f32(const td_rescale_tile *t) {
    const float *restrict factors = t->factors, *restrict addends = t->addends;
    const int64_t n = t->n;
    for (int r = 0; r < t->rows; r++) {
        float sums[MOST_COLUMNS], *restrict out = (float *)(void *)(t->out + t->at[r]);
        centre(t, r, sums);
        for (int64_t i = 0; i < n; i++)
            out[i] = sums[i] * factors[i] + addends[i];
        if (t->relu)
            for (int64_t i = 0; i < n; i++)
                out[i] = out[i] < 0 ? 0 : out[i];
    }
}
#endif

/* ---- depthwise ---- */

/* What a tap meets in a row of the tile, the channel `at` behind the tile's; shared: apart is 0. */
static inline __attribute__((always_inline)) const uint8_t *
tap_of(const td_depthwise_tile *t, const bool shared, int64_t tap, int row, int64_t at) {
    if (shared)
        return t->taps[tap] + (t->first + row) * t->steps[tap] + t->from + at;
    return t->taps[row * t->apart + tap] + t->from + at;
}

#if defined(TD_ISA_avx512)
/* Pairs of bytes of 16 channels, side by side, as 16 bits. */
static inline __m512i load_pairs(const uint8_t *a, const uint8_t *b) {
    __m512i x = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)a));
    __m512i y = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)b));
    return _mm512_or_si512(x, _mm512_slli_epi32(y, 16));
}

/* A panel of ROWS rows from `row` on, whose first channel is `at` behind the tile's. */
static inline __attribute__((always_inline)) void depthwise_panel(const td_depthwise_tile *t,
                                                                  const bool shared, int row,
                                                                  const int rows, int64_t at,
                                                                  const int16_t *w) {
    __m512i sums[TD_TILE_ROWS];
    for (int r = 0; r < rows; r++)
        sums[r] = _mm512_setzero_si512();
    for (int64_t k = 0; k < t->pairs; k++, w += 2 * COLUMNS) {
        __m512i weights = _mm512_load_si512(w);
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sums[r] = _mm512_add_epi32(
            sums[r], _mm512_madd_epi16(load_pairs(tap_of(t, shared, 2 * k, row + r, at),
                                                  tap_of(t, shared, 2 * k + 1, row + r, at)),
                                       weights));
    }
    for (int r = 0; r < rows; r++)
        _mm512_storeu_si512(t->sums + (row + r) * t->width + at, sums[r]);
}

/* Two panels at once: 32 channels are widened and paired in fewer steps, which leaves them in an
 * order of their own, in which the weights are put too. */
static inline __attribute__((always_inline)) void depthwise_panels(const td_depthwise_tile *t,
                                                                   const bool shared, int row,
                                                                   const int rows, int64_t at,
                                                                   const int16_t *w) {
    const __m512i first =
        _mm512_setr_epi32(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(4));
    const __m512i back = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    const int64_t apart = t->pairs * 2 * COLUMNS;
    __m512i low[TD_TILE_ROWS], high[TD_TILE_ROWS];
    for (int r = 0; r < rows; r++)
        low[r] = high[r] = _mm512_setzero_si512();
    for (int64_t k = 0; k < t->pairs; k++, w += 2 * COLUMNS) {
        __m512i w0 = _mm512_load_si512(w), w1 = _mm512_load_si512(w + apart);
        __m512i low_weights = _mm512_permutex2var_epi32(w0, first, w1);
        __m512i high_weights = _mm512_permutex2var_epi32(w0, second, w1);
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
            const uint8_t *a = tap_of(t, shared, 2 * k, row + r, at);
            const uint8_t *b = tap_of(t, shared, 2 * k + 1, row + r, at);
            __m512i x = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)a));
            __m512i y = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)b));
            low[r] = _mm512_add_epi32(low[r],
                                      _mm512_madd_epi16(_mm512_unpacklo_epi16(x, y), low_weights));
            high[r] = _mm512_add_epi32(
                high[r], _mm512_madd_epi16(_mm512_unpackhi_epi16(x, y), high_weights));
        }
    }
    for (int r = 0; r < rows; r++) {
        int32_t *sums = t->sums + (row + r) * t->width + at;
        _mm512_storeu_si512(sums, _mm512_permutex2var_epi32(low[r], back, high[r]));
        _mm512_storeu_si512(sums + COLUMNS,
                            _mm512_permutex2var_epi32(
                                low[r], _mm512_add_epi32(back, _mm512_set1_epi32(8)), high[r]));
    }
}

#define VNNI __attribute__((target("avx512vnni,avx512vl,avx512bw")))

enum { FOURS_ROWS = 4 };

/* The products of a group of four taps, or of the two that are left at the end, in all rows. */
VNNI static inline __attribute__((always_inline)) void
add_taps(const td_depthwise_tile *t, const bool shared, int64_t tap, const int count, int row,
         const int rows, int64_t at, const __m256i *weights, __m256i (*sums)[FOUR]) {
    const uint8_t *taps[FOUR];
    int64_t steps[FOUR];
    _Pragma("GCC unroll 4") for (int p = 0; p < count; p++) {
        taps[p] = tap_of(t, shared, tap + p, row, at);
        steps[p] = shared ? t->steps[tap + p] : 0;
    }
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
        __m256i x[FOUR];
        _Pragma("GCC unroll 4") for (int p = 0; p < FOUR; p++) {
            x[p] = _mm256_setzero_si256();
            if (p < count)
                x[p] = _mm256_loadu_si256(
                    (const void *)(shared ? taps[p] + r * steps[p]
                                          : tap_of(t, false, tap + p, row + r, at)));
        }
        __m256i low = _mm256_unpacklo_epi8(x[0], x[1]), high = _mm256_unpackhi_epi8(x[0], x[1]);
        __m256i low2 = _mm256_unpacklo_epi8(x[2], x[3]), high2 = _mm256_unpackhi_epi8(x[2], x[3]);
        const __m256i fours[] = {_mm256_unpacklo_epi16(low, low2), _mm256_unpackhi_epi16(low, low2),
                                 _mm256_unpacklo_epi16(high, high2),
                                 _mm256_unpackhi_epi16(high, high2)};
        _Pragma("GCC unroll 4") for (int p = 0; p < FOUR; p++) sums[r][p] =
            _mm256_dpbusd_epi32(sums[r][p], fours[p], weights[p]);
    }
}

/* `rows` rows of two panels in fours: bytes that four taps meet are put side by side, which leaves
 * four columns of both panels in a half of a register each. */
VNNI static inline __attribute__((always_inline)) void depthwise_fours(const td_depthwise_tile *t,
                                                                       const bool shared, int row,
                                                                       const int rows, int64_t at) {
    const int64_t groups = (t->pairs + 1) / 2;
    const int8_t *w = t->fours + (t->from + at) * groups * FOUR, *v = w + groups * PANEL_GROUP;
    __m256i sums[FOURS_ROWS][FOUR];
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++)
        _Pragma("GCC unroll 4") for (int p = 0; p < FOUR; p++) sums[r][p] = _mm256_setzero_si256();
    for (int64_t k = 0; k < groups; k++, w += PANEL_GROUP, v += PANEL_GROUP) {
        __m256i weights[FOUR];
        _Pragma("GCC unroll 4") for (int p = 0; p < FOUR; p++) weights[p] = _mm256_inserti128_si256(
            _mm256_castsi128_si256(_mm_load_si128((const void *)(w + p * COLUMNS))),
            _mm_load_si128((const void *)(v + p * COLUMNS)), 1);
        if (2 * k + 1 < t->pairs)
            add_taps(t, shared, FOUR * k, FOUR, row, rows, at, weights, sums);
        else
            add_taps(t, shared, FOUR * k, 2, row, rows, at, weights, sums);
    }
    _Pragma("GCC unroll 4") for (int r = 0; r < rows; r++) {
        int32_t *to = t->sums + (row + r) * t->width + at;
        __m512i a = _mm512_inserti64x4(_mm512_castsi256_si512(sums[r][0]), sums[r][1], 1);
        __m512i b = _mm512_inserti64x4(_mm512_castsi256_si512(sums[r][2]), sums[r][3], 1);
        _mm512_storeu_si512(to, _mm512_shuffle_i64x2(a, b, 0x88));
        _mm512_storeu_si512(to + COLUMNS, _mm512_shuffle_i64x2(a, b, 0xdd));
    }
}

VNNI static inline __attribute__((always_inline)) void
depthwise_fours_tile(const td_depthwise_tile *t, const bool shared, int64_t at) {
    int row = 0;
    for (; row + FOURS_ROWS <= t->rows; row += FOURS_ROWS)
        depthwise_fours(t, shared, row, FOURS_ROWS, at);
    for (; row < t->rows; row++)
        depthwise_fours(t, shared, row, 1, at);
}

VNNI static void depthwise_fours_some(const td_depthwise_tile *t, int64_t at) {
    if (t->apart == 0)
        depthwise_fours_tile(t, true, at);
    else
        depthwise_fours_tile(t, false, at);
}
#elif defined(TD_ISA_avx2)
static inline __m256i load_pairs(const uint8_t *a, const uint8_t *b) {
    __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)a));
    __m256i y = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)b));
    return _mm256_or_si256(x, _mm256_slli_epi32(y, 16));
}

static inline __attribute__((always_inline)) void depthwise_panel(const td_depthwise_tile *t,
                                                                  const bool shared, int row,
                                                                  const int rows, int64_t at,
                                                                  const int16_t *w) {
    __m256i low[TD_TILE_ROWS], high[TD_TILE_ROWS];
    for (int r = 0; r < rows; r++)
        low[r] = high[r] = _mm256_setzero_si256();
    for (int64_t k = 0; k < t->pairs; k++, w += 2 * COLUMNS) {
        __m256i first = _mm256_load_si256((const void *)w);
        __m256i second = _mm256_load_si256((const void *)(w + COLUMNS));
        _Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
            const uint8_t *x = tap_of(t, shared, 2 * k, row + r, at);
            const uint8_t *y = tap_of(t, shared, 2 * k + 1, row + r, at);
            low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(load_pairs(x, y), first));
            high[r] = _mm256_add_epi32(
                high[r], _mm256_madd_epi16(load_pairs(x + COLUMNS / 2, y + COLUMNS / 2), second));
        }
    }
    for (int r = 0; r < rows; r++) {
        int32_t *sums = t->sums + (row + r) * t->width + at;
        _mm256_storeu_si256((void *)sums, low[r]);
        _mm256_storeu_si256((void *)(sums + COLUMNS / 2), high[r]);
    }
}
#endif

/* n channels of a panel, the first of them `at` behind the tile's, of one row. */
static void depthwise_part(const td_depthwise_tile *t, const bool shared, int row, int64_t at,
                           int64_t n, const int16_t *w) {
    int32_t *restrict sums = t->sums + row * t->width + at;
    memset(sums, 0, sizeof *sums * (size_t)n);
    for (int64_t k = 0; k < t->pairs; k++, w += 2 * COLUMNS) {
        const uint8_t *x = tap_of(t, shared, 2 * k, row, at),
                      *y = tap_of(t, shared, 2 * k + 1, row, at);
        for (int64_t c = 0; c < n; c++)
            sums[c] += x[c] * w[2 * c] + y[c] * w[2 * c + 1];
    }
}

/* Rows of n channels of a panel, or of two panels; how many channels there were. */
static inline __attribute__((always_inline)) int64_t depthwise_rows(const td_depthwise_tile *t,
                                                                    const bool shared, int row,
                                                                    const int rows, int64_t at,
                                                                    const int16_t *w) {
    int64_t n = t->n - at < COLUMNS ? t->n - at : COLUMNS;
#if defined(TD_ISA_avx512)
    if (t->n - at >= 2 * COLUMNS) {
        depthwise_panels(t, shared, row, rows, at, w);
        return 2 * COLUMNS;
    }
#endif
#if defined(TD_ISA_avx512) || defined(TD_ISA_avx2)
    if (n == COLUMNS) {
        depthwise_panel(t, shared, row, rows, at, w);
        return n;
    }
#endif
    for (int r = row; r < row + rows; r++)
        depthwise_part(t, shared, r, at, n, w);
    return n;
}

/* Channels from `at` on, of as many rows as a loop has at most. */
static inline __attribute__((always_inline)) void depthwise_tile(const td_depthwise_tile *t,
                                                                 const bool shared, int64_t at) {
    const int16_t *w = t->weights + (t->from + at) * t->pairs * 2;
    for (int64_t n = 0; at < t->n; at += n, w += n * t->pairs * 2)
        if (t->rows == TD_TILE_ROWS)
            n = depthwise_rows(t, shared, 0, TD_TILE_ROWS, at, w);
        else
            for (int row = 0; row < t->rows; row++)
                n = depthwise_rows(t, shared, row, 1, at, w);
}

static void depthwise_some(const td_depthwise_tile *t, int64_t at) {
    if (t->apart == 0)
        depthwise_tile(t, true, at);
    else
        depthwise_tile(t, false, at);
}

static void depthwise(const td_depthwise_tile *t) {
    int64_t at = 0;
#if defined(TD_ISA_avx512)
    for (; t->fours && at + 2 * COLUMNS <= t->n; at += 2 * COLUMNS)
        depthwise_fours_some(t, at);
#endif
    if (t->rows <= TD_TILE_ROWS) {
        depthwise_some(t, at);
        return;
    }
    td_depthwise_tile part = *t;
    for (int row = 0; row < t->rows && at < t->n; row += part.rows) {
        part.taps = t->taps + row * t->apart;
        part.first = t->first + row;
        part.sums = t->sums + row * t->width;
        part.rows = t->rows - row < TD_TILE_ROWS ? t->rows - row : TD_TILE_ROWS;
        depthwise_some(&part, at);
    }
}

/* ---- element by element ---- */

#define DEFINE_COMBINE(NAME, T)                                                                    \
    static void NAME(const td_combine_line *l) {                                                   \
        const T *restrict a = l->a, *restrict b = l->b;                                            \
        T *restrict out = l->out;                                                                  \
        const float a_scale = l->a_scale, b_scale = l->b_scale, inverse = l->inverse;              \
        const int32_t a_zero = l->a_zero_point, b_zero = l->b_zero_point;                          \
        const int32_t zero_point = l->out_zero_point;                                              \
        const float low = (float)(l->low - zero_point), high = (float)(l->high - zero_point);      \
        const int64_t n = l->n;                                                                    \
        if (l->multiply)                                                                           \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float v = (float)(a[i] - a_zero) * a_scale * ((float)(b[i] - b_zero) * b_scale);   \
                out[i] = (T)(round_between(v * inverse, low, high) + zero_point);                  \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                float v = (float)(a[i] - a_zero) * a_scale + (float)(b[i] - b_zero) * b_scale;     \
                out[i] = (T)(round_between(v * inverse, low, high) + zero_point);                  \
            }                                                                                      \
    }
DEFINE_COMBINE(combine_u8, uint8_t)
DEFINE_COMBINE(combine_i8, int8_t)

/* ---- the table ---- */

extern const td_quantized_kernels TD_ISA_SYMBOL(td_quantized_kernels);
const td_quantized_kernels TD_ISA_SYMBOL(td_quantized_kernels) = {
    .quantize = {[TD_U8] = quantize_u8, [TD_I8] = quantize_i8, [TD_I32] = quantize_i32},
    .tile = tile,
    .tile_vnni = TILE_BY_FOURS,
    .lanes = lanes,
    .lanes_vnni = LANES_BY_FOURS,
    .amx = BY_AMX,
    .ordered = ORDERED,
    .rescale = {[TD_F32] = rescale_f32, [TD_U8] = rescale_u8, [TD_I8] = rescale_i8},
    .sum_bytes = sum_bytes,
    .depthwise = depthwise,
    .combine = {[TD_U8] = combine_u8, [TD_I8] = combine_i8},
};
