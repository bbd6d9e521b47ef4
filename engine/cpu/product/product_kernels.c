/* product_kernels.c: the products' loops for each element type, in this instruction set. */
#include "engine/cpu/product/product_kernels.h"

#include "engine/core/interrupt.h"
#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/math/vec_math.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_epilogue.h"
#include "engine/cpu/vectors/vec_half.h"
#include "engine/cpu/vectors/vec_part.h"
#include "engine/cpu/vectors/vec_single.h"

/* A tile: ROWS * VECTORS sums, VECTORS of b and one of a in 32 registers, or in 16. DEPTH: rows of
 * a panel, which stays in the second-level cache; FEW_ROWS: of a, for which packing does not pay.
 * SIDE_BY_SIDE: vectors whose lanes are summed up together. */
#if defined(TD_ISA_avx512)
enum { ROWS = 6, VECTORS = 4, SIDE_BY_SIDE = 4 };
#else
enum { ROWS = 6, VECTORS = 2, SIDE_BY_SIDE = 2 };
#endif
enum { DEPTH = 256, FEW_ROWS = 32 };

#define ADD_F(a, b, c) vf_fma(b, c, a)
#define ADD_D(a, b, c) vd_fma(b, c, a)
/* The sum of the lanes, by halves. */
#if defined(TD_ISA_avx512)
static inline float sum_f(vf x) {
    return _mm512_reduce_add_ps((__m512)x);
}
static inline double sum_d(vd x) {
    return _mm512_reduce_add_pd((__m512d)x);
}
/* Of four, halves with halves as well. */
static inline void sums_f(const vf *s, float *to) {
    __m512 a = (__m512)s[0], b = (__m512)s[1], c = (__m512)s[2], d = (__m512)s[3];
    a = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    c = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    a = _mm512_add_ps(_mm512_shuffle_f32x4(a, c, 0x88), _mm512_shuffle_f32x4(a, c, 0xDD));
    a = _mm512_add_ps(a, _mm512_permute_ps(a, 0x4E));
    a = _mm512_add_ps(a, _mm512_permute_ps(a, 0xB1));
    for (int k = 0; k < 4; k++)
        to[k] = ((vf)a)[4 * k];
}
#elif defined(TD_ISA_avx2)
static inline float sum_f(vf x) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
static inline double sum_d(vd x) {
    __m128d s =
        _mm_add_pd(_mm256_castpd256_pd128((__m256d)x), _mm256_extractf128_pd((__m256d)x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}
#else
#define sum_f vf_hsum
#define sum_d vd_hsum
#endif

#define ADD_I(a, b, c) ((a) + (b) * (c)) /* they wrap around */

#define P   vf
#define S   float
#define T   float
#define V   vf
#define N   VF_N
#define ADD ADD_F
#include "engine/cpu/product/product_block_loops.h"

#define P   vd
#define S   double
#define T   double
#define V   vd
#define N   VD_N
#define ADD ADD_D
#include "engine/cpu/product/product_block_loops.h"

#define P   vl
#define S   int64_t
#define T   int64_t
#define V   vl
#define N   VL_N
#define ADD ADD_I
#include "engine/cpu/product/product_block_loops.h"

#define P   vi
#define S   int32_t
#define T   int32_t
#define V   vi
#define N   VI_N
#define ADD ADD_I
#include "engine/cpu/product/product_block_loops.h"

#define P   i16
#define S   int16_t
#define T   int16_t
#define V   vs
#define N   VS_N
#define ADD ADD_I
#include "engine/cpu/product/product_block_loops.h"

/* Bytes have no products of their own: what is cut off is the same in 16 bits. */
#define P   i8
#define S   int8_t
#define T   int16_t
#define V   vs
#define N   VS_N
#define ADD ADD_I
#include "engine/cpu/product/product_block_loops.h"

/* Steps along depth before which a row of b is asked for; bytes of a line of the cache. */
enum { AHEAD = 8, LINE = 64 };

/* Is a tile's epilogue one for whole vectors that are still in registers? */
static inline bool td_tile_ends(const td_product_tile *t, int64_t lanes) {
    return t->epilogue && t->columns % lanes == 0 && t->epilogue->curve != TD_CURVE_HARDSWISH;
}

#define P   tile_f
#define T   float
#define V   vf
#define N   VF_N
#define ADD ADD_F
#include "engine/cpu/product/product_tile_loops.h"

#define P   tile_d
#define T   double
#define V   vd
#define N   VD_N
#define ADD ADD_D
#include "engine/cpu/product/product_tile_loops.h"

/* A tile that is in the first-level cache, to its end. */
static void finish_tile(const td_product_tile *t) {
    for (int64_t r = 0; r < t->rows; r++) {
        float *c = (float *)t->c + r * t->c_row;
        const float *added = t->added ? (const float *)t->added + r * t->c_row : NULL;
        for (int64_t k = 0; k < t->columns; k += VF_N) {
            const int64_t n = t->columns - k < VF_N ? t->columns - k : VF_N;
            const vf v = vf_load_part(c + k, n);
            vf_store_part(c + k,
                          vf_epilogue(t->epilogue, added ? v + vf_load_part(added + k, n) : v), n);
        }
    }
}

static void tile_f_finished(const td_product_tile *t) {
    tile_f_tile(t);
    if (t->epilogue && !td_tile_ends(t, VF_N))
        finish_tile(t);
}

/* Bytes with sums of 32 bits. A block's packed rows, 48 KB, stay in the second-level cache. */
enum { WORDS = 128, BYTE_ROWS = 96, BYTE_COLUMNS = VECTORS * VI_N };

static void deliver_bytes(const td_product_block *p, const int32_t *sums, int64_t row, int64_t rows,
                          int64_t column, int64_t columns, bool first) {
    for (int64_t r = 0; r < rows; r++, sums += BYTE_COLUMNS) {
        int32_t *c = (int32_t *)(void *)p->c + (row + r) * p->c_row + column * p->c_column;
        if (first && p->c_column == 1)
            memcpy(c, sums, (size_t)columns * sizeof *c);
        else
            for (int64_t k = 0; k < columns; k++)
                c[k * p->c_column] = sums[k] + (first ? 0 : c[k * p->c_column]);
    }
}

#if defined(TD_ISA_avx512)
#define PAIRS(c, a, b) ((c) + (vi)_mm512_madd_epi16((__m512i)(a), (__m512i)(b)))
#define FOURS(c, a, b) (vi) _mm512_dpbusd_epi32((__m512i)(c), (__m512i)(a), (__m512i)(b))
#elif defined(TD_ISA_avx2)
#define PAIRS(c, a, b) ((c) + (vi)_mm256_madd_epi16((__m256i)(a), (__m256i)(b)))
#elif defined(__SSE2__)
#define PAIRS(c, a, b) ((c) + (vi)_mm_madd_epi16((__m128i)(a), (__m128i)(b)))
#else
#define LOW(x)         ((x) << 16 >> 16)
#define PAIRS(c, a, b) ((c) + LOW(a) * LOW(b) + ((a) >> 16) * ((b) >> 16))
#endif

#define P       pairs
#define EACH    2
#define DOT     PAIRS
#define SHIFTED 0
#define TARGET
#include "engine/cpu/product/product_byte_loops.h"

#if defined(TD_ISA_avx512)
#define P       quads
#define EACH    4
#define DOT     FOURS
#define SHIFTED 1
#define TARGET  __attribute__((target("avx512vnni")))
#include "engine/cpu/product/product_byte_loops.h"
#endif

#if defined(TD_ISA_avx512)
/* Chains side by side, as many as hide how long each step takes. */
enum { CHAINS = 12, LINKS = 128 };
#define DEFINE_TRIAL(name, target, STEP)                                                           \
    target static void name(void) {                                                                \
        __m512 sum[CHAINS];                                                                        \
        __m512i x = _mm512_setzero_si512();                                                        \
        __asm__ volatile("" : "+v"(x)); /* not known to be zero */                                 \
        for (int c = 0; c < CHAINS; c++)                                                           \
            sum[c] = _mm512_castsi512_ps(x);                                                       \
        for (int k = 0; k < LINKS; k++)                                                            \
            for (int c = 0; c < CHAINS; c++)                                                       \
                sum[c] = STEP(sum[c], x);                                                          \
        for (int c = 0; c < CHAINS; c++)                                                           \
            __asm__ volatile("" : : "v"(sum[c]));                                                  \
    }
#define STEP_FLOATS(sum, x) _mm512_fmadd_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(x), sum)
#define STEP_PAIRS(sum, x)  _mm512_dpbf16_ps(sum, (__m512bh)(x), (__m512bh)(x))
DEFINE_TRIAL(try_floats, , STEP_FLOATS)
DEFINE_TRIAL(try_pairs, __attribute__((target("avx512bf16"))), STEP_PAIRS)
#endif

#define P    vf
#define T    float
#define V    vf
#define N    VF_N
#define ADD  ADD_F
#define ADD1 TD_ADD1_F
#define SUM  sum_f
#if defined(TD_ISA_avx512)
#define SUMS sums_f
#endif
#include "engine/cpu/product/product_vector_loops.h"

#define P    vd
#define T    double
#define V    vd
#define N    VD_N
#define ADD  ADD_D
#define ADD1 TD_ADD1_D
#define SUM  sum_d
#include "engine/cpu/product/product_vector_loops.h"

/* The 16-bit floats: as floats. */
#define P    half
#define T    float
#define E    td_half
#define V    vf
#define N    VF_N
#define ADD  ADD_F
#define ADD1 TD_ADD1_F
#define SUM  sum_f
#if defined(TD_ISA_avx512)
#define SUMS sums_f
#endif
#define LOAD(p)        vf_load_halves(p)
#define LOAD2(p, a, b) ((a) = vf_load_one_halves(p), (b) = vf_load_other_halves(p))
#define GET(x)         half_get(x)
#include "engine/cpu/product/product_vector_loops.h"

#define P    bfloat
#define T    float
#define E    td_bfloat
#define V    vf
#define N    VF_N
#define ADD  ADD_F
#define ADD1 TD_ADD1_F
#define SUM  sum_f
#if defined(TD_ISA_avx512)
#define SUMS sums_f
#endif
#define LOAD(p)        vf_load_bfloats(p)
#define LOAD2(p, a, b) ((a) = vf_load_one_bfloats(p), (b) = vf_load_other_bfloats(p))
#define GET(x)         td_bfloat_to_float(x)
#include "engine/cpu/product/product_vector_loops.h"

/* Dot products of integers, which wrap around. */
#define DEFINE_WHOLE(type, sum_type)                                                               \
    static void whole_##type(void *to, int64_t apart, const void *vector, const void *rows,        \
                             int64_t stride, int64_t count, int64_t n) {                           \
        const type *x = vector, *w = rows;                                                         \
        type *out = to;                                                                            \
        for (int64_t r = 0; r < count; r++, w += stride, out += apart) {                           \
            sum_type sum = 0;                                                                      \
            for (int64_t k = 0; k < n; k++)                                                        \
                sum += (sum_type)x[k] * (sum_type)w[k];                                            \
            *out = (type)sum;                                                                      \
        }                                                                                          \
    }
DEFINE_WHOLE(uint8_t, uint32_t)
DEFINE_WHOLE(int8_t, uint32_t)
DEFINE_WHOLE(int16_t, uint32_t)
DEFINE_WHOLE(int32_t, uint32_t)
DEFINE_WHOLE(int64_t, uint64_t)

extern const td_product_kernels TD_ISA_SYMBOL(td_product_kernels);
const td_product_kernels TD_ISA_SYMBOL(td_product_kernels) = {
    .block = {[TD_U8] = i8_block,
              [TD_I8] = i8_block,
              [TD_I16] = i16_block,
              [TD_I32] = vi_block,
              [TD_I64] = vl_block,
              [TD_F32] = vf_block,
              [TD_F64] = vd_block},
    .tile = {[TD_F32] = tile_f_finished, [TD_F64] = tile_d_tile},
    .solve = {[TD_F32] = tile_f_solve, [TD_F64] = tile_d_solve},
    .dots = {[TD_F32] = vf_dots, [TD_F64] = vd_dots, [TD_F16] = half_dots, [TD_BF16] = bfloat_dots},
    .whole = {[TD_U8] = whole_uint8_t,
              [TD_I8] = whole_int8_t,
              [TD_I16] = whole_int16_t,
              [TD_I32] = whole_int32_t,
              [TD_I64] = whole_int64_t},
    .combine = {[TD_F32] = vf_combine, [TD_F64] = vd_combine},
    .pairs = pairs_block,
    .tile_rows = ROWS,
    .tile_bytes = VECTORS * TD_VBYTES,
#if defined(TD_ISA_avx512)
    .quads = quads_block,
    .try_floats = try_floats,
    .try_pairs = try_pairs,
    .libraries_at_best = true,
#endif
};
