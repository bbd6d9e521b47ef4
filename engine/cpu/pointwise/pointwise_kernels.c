/* pointwise_kernels.c: the primitives' loops for each element type, in this instruction set. */
#include "engine/cpu/pointwise/pointwise_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/math/vec_gamma.h"
#include "engine/cpu/vectors/vec_half.h"
#include "engine/ops/language/integers.h"

#include "engine/cpu/pointwise/formula_words.h" /* behind those that have such words of their own */

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Remainder with the sign of the divisor. */
static inline vf vf_floor_mod(vf x, vf y) {
    vf m = vf_fmod(x, y);
    return vf_select((m != 0) & ((y < 0) ^ (m < 0)), m + y, m);
}
static inline vd vd_floor_mod(vd x, vd y) {
    vd m = vd_fmod(x, y);
    return vd_select((m != 0) & ((y < 0) ^ (m < 0)), m + y, m);
}
/* floor(x / y) from the exact remainder, so that it agrees with it, also where y is infinite; x / 0
 * is as division says, and a 0 has the quotient's sign. */
static inline vf vf_floor_div(vf x, vf y) {
    vf m = vf_fmod(x, y), q = vf_rint((x - m) / y);
    q = vf_select((m != 0) & ((y < 0) ^ (m < 0)), q - 1, q);
    q = vf_select(q == 0, vf_copysign(q, x / y), q);
    return vf_select(y == 0, x / y, q);
}
static inline vd vd_floor_div(vd x, vd y) {
    vd m = vd_fmod(x, y), q = vd_rint((x - m) / y);
    q = vd_select((m != 0) & ((y < 0) ^ (m < 0)), q - 1, q);
    q = vd_select(q == 0, vd_copysign(q, x / y), q);
    return vd_select(y == 0, x / y, q);
}

/* As many bytes as a vector has lanes, widened to these. (Of conversions between vectors of other
 * sizes the compiler makes one for each lane.) */
#if defined(TD_ISA_avx512)
#define WIDEN_vi(p, bytes) (vi) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(p)))
#define WIDEN_vl(p, bytes) (vl) _mm512_cvtepu8_epi64(_mm_loadl_epi64((const __m128i *)(p)))
#define WIDEN_vs(p, bytes) (vs) _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)(p)))
#elif defined(TD_ISA_avx2)
static inline __m128i four_bytes(const uint8_t *p) {
    int32_t bytes;
    memcpy(&bytes, p, sizeof bytes);
    return _mm_cvtsi32_si128(bytes);
}
#define WIDEN_vi(p, bytes) (vi) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(p)))
#define WIDEN_vl(p, bytes) (vl) _mm256_cvtepu8_epi64(four_bytes(p))
#define WIDEN_vs(p, bytes) (vs) _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(p)))
#else
#define WIDEN_vi(p, bytes) __builtin_convertvector(*(const bytes *)(const void *)(p), vi)
#define WIDEN_vl(p, bytes) __builtin_convertvector(*(const bytes *)(const void *)(p), vl)
#define WIDEN_vs(p, bytes) __builtin_convertvector(*(const bytes *)(const void *)(p), vs)
#endif
#define WIDEN_vb(p, bytes) vb_load(p)
#define WIDEN_vc(p, bytes) (vc) vb_load(p)

/* The other way, of lanes that are 0 or -1, into as many bytes of 0 and 1. */
#if defined(TD_ISA_avx512) || !defined(__SSE2__)
#define NARROW_vi(m, bytes) (__builtin_convertvector(m, bytes) & 1)
#define NARROW_vl(m, bytes) (__builtin_convertvector(m, bytes) & 1)
#define NARROW_vs(m, bytes) (__builtin_convertvector(m, bytes) & 1)
#else
#if defined(TD_ISA_avx2)
#define LOW_HALF(m)  _mm256_castsi256_si128((__m256i)(m))
#define HIGH_HALF(m) _mm256_extracti128_si256((__m256i)(m), 1)
#else
#define LOW_HALF(m)  ((__m128i)(m))
#define HIGH_HALF(m) ((__m128i)(m))
#endif
static inline __m128i ones_of_words(__m128i low, __m128i high) {
    return _mm_and_si128(_mm_packs_epi16(low, high), _mm_set1_epi8(1));
}
static inline __m128i ones_of_ints(__m128i low, __m128i high) {
    __m128i words = _mm_packs_epi32(low, high);
    return ones_of_words(words, words);
}
static inline __m128i ones_of_longs(__m128i low, __m128i high) {
    __m128 ints = _mm_shuffle_ps(_mm_castsi128_ps(low), _mm_castsi128_ps(high), 0x88);
    return ones_of_ints(_mm_castps_si128(ints), _mm_castps_si128(ints));
}
#define NARROW_vi(m, bytes) ones_of_ints(LOW_HALF(m), HIGH_HALF(m))
#define NARROW_vl(m, bytes) ones_of_longs(LOW_HALF(m), HIGH_HALF(m))
#define NARROW_vs(m, bytes) ones_of_words(LOW_HALF(m), HIGH_HALF(m))
#endif
#define NARROW_vb(m, bytes) ((m)&1)
#define NARROW_vc(m, bytes) ((m)&1)

/* Masks in memory are bytes of 0 and 1, as many as the vectors have lanes. */
#define DEFINE_MASKS(v, bytes, mask, lanes)                                                        \
    typedef int8_t bytes __attribute__((vector_size(lanes), aligned(1), may_alias));               \
    static inline void v##_store_mask(uint8_t *p, mask m, int64_t n) {                             \
        __typeof__(NARROW_##mask(m, bytes)) b = NARROW_##mask(m, bytes);                           \
        memcpy(p, &b, (size_t)n);                                                                  \
    }                                                                                              \
    static inline mask v##_load_mask(const uint8_t *p, int64_t n) {                                \
        uint8_t part[lanes] = {0};                                                                 \
        if (n < lanes)                                                                             \
            p = memcpy(part, p, (size_t)n);                                                        \
        return (mask){0} - WIDEN_##mask(p, bytes);                                                 \
    }                                                                                              \
    static inline mask v##_set_mask(uint8_t x) {                                                   \
        __typeof__((mask){0}[0]) one = (__typeof__(one))x;                                         \
        return (mask){0} - one;                                                                    \
    }
DEFINE_MASKS(vf, vf_bytes, vi, VF_N)
DEFINE_MASKS(vd, vd_bytes, vl, VD_N)
DEFINE_MASKS(vi, vi_bytes, vi, VI_N)
DEFINE_MASKS(vl, vl_bytes, vl, VL_N)
DEFINE_MASKS(vb, vb_bytes, vb, VB_N)
DEFINE_MASKS(vc, vc_bytes, vc, VC_N)
DEFINE_MASKS(vs, vs_bytes, vs, VS_N)

#define TD_CHAIN_VECTORS 8
/* Bytes. While the divider has a tile's steps, the processor gets no further than into the next
 * tile, which is too late to ask memory for it. */
#define TD_CHAIN_AHEAD 1024

#define T        float
#define V        vf
#define M        vi
#define N        VF_N
#define P        vf
#define FLOATING 1
#define CHAINS
#define NARROWS /* which may begin and end in 16-bit floats */
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        float
#define E        td_half
#define V        vf
#define M        vi
#define N        VF_N
#define P        vf
#define FLOATING 1
#define HALVES   halves
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        float
#define E        td_bfloat
#define V        vf
#define M        vi
#define N        VF_N
#define P        vf
#define FLOATING 1
#define HALVES   bfloats
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        double
#define V        vd
#define M        vl
#define N        VD_N
#define P        vd
#define FLOATING 1
#define CHAINS
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        int32_t
#define V        vi
#define M        vi
#define N        VI_N
#define P        vi
#define FLOATING 0
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        int64_t
#define V        vl
#define M        vl
#define N        VL_N
#define P        vl
#define FLOATING 0
#define CHAINS
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        int8_t
#define V        vc
#define M        vc
#define N        VC_N
#define P        vc
#define FLOATING 0
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        int16_t
#define V        vs
#define M        vs
#define N        VS_N
#define P        vs
#define FLOATING 0
#include "engine/cpu/pointwise/pointwise_loops.h"

#define T        uint8_t
#define V        vb
#define M        vb
#define N        VB_N
#define P        vb
#define FLOATING 0
#define BYTES    1
#include "engine/cpu/pointwise/pointwise_loops.h"

/* 16-bit floats whose sign alone changes stay as they are. */
#define SIGNS(name, formula)                                                                       \
    static void signs_##name(int64_t n, void *out, const void *pa, const void *pb, const void *pc, \
                             unsigned scalars) {                                                   \
        const vs sign = vs_set((int16_t)0x8000);                                                   \
        const int16_t *ap = pa, *bp = pb ? pb : pa;                                                \
        int16_t *op = out;                                                                         \
        int64_t i = 0;                                                                             \
        (void)pc, (void)scalars;                                                                   \
        for (; i + VS_N <= n; i += VS_N) {                                                         \
            vs a = vs_load(ap + i), b = vs_load(bp + i);                                           \
            (void)b;                                                                               \
            vs_store(op + i, formula);                                                             \
        }                                                                                          \
        if (i < n) {                                                                               \
            vs a = vs_load_part(ap + i, n - i), b = vs_load_part(bp + i, n - i);                   \
            (void)b;                                                                               \
            vs_store_part(op + i, formula, n - i);                                                 \
        }                                                                                          \
    }
SIGNS(neg, a ^ sign)
SIGNS(abs, a & ~sign)
SIGNS(copysign, (a & ~sign) | (b & sign))
#undef SIGNS

#if defined(__SSE2__)
#if defined(TD_ISA_avx512)
#define STREAM(p, v) _mm512_stream_si512((__m512i *)(p), (__m512i)(v))
#elif defined(TD_ISA_avx2)
#define STREAM(p, v) _mm256_stream_si256((__m256i *)(p), (__m256i)(v))
#else
#define STREAM(p, v) _mm_stream_si128((__m128i *)(p), (__m128i)(v))
#endif
static void stream(void *dst, const void *src, size_t bytes) {
    uint8_t *d = dst;
    const uint8_t *s = src;
    size_t head = (size_t)(-(uintptr_t)d % TD_VBYTES), at = head < bytes ? head : bytes;
    memcpy(d, s, at);
    for (; at + TD_VBYTES <= bytes; at += TD_VBYTES)
        STREAM(d + at, vb_load(s + at));
    memcpy(d + at, s + at, bytes - at);
}
static void stream_end(void) {
    _mm_sfence();
}
#else
static void stream(void *dst, const void *src, size_t bytes) {
    memcpy(dst, src, bytes);
}
static void stream_end(void) {}
#endif

/* Rows of up to twice a size, and no less than it: their first bytes and their last. */
#define DEFINE_ENDS(size)                                                                          \
    typedef unsigned char ends_##size __attribute__((vector_size(size)));                          \
    static inline void copy_ends_##size(char *to, const char *from, int64_t bytes) {               \
        ends_##size a, b;                                                                          \
        memcpy(&a, from, size);                                                                    \
        memcpy(&b, from + bytes - (size), size);                                                   \
        memcpy(to, &a, size);                                                                      \
        memcpy(to + bytes - (size), &b, size);                                                     \
    }
DEFINE_ENDS(1)
DEFINE_ENDS(2)
DEFINE_ENDS(4)
DEFINE_ENDS(8)
DEFINE_ENDS(16)
DEFINE_ENDS(32)
DEFINE_ENDS(64)

/* Larger ones, in vectors. */
static inline void copy_vectors(char *to, const char *from, int64_t bytes) {
    uint8_t *out = (uint8_t *)to;
    const uint8_t *x = (const uint8_t *)from;
    vb last = vb_load(x + bytes - TD_VBYTES);
#pragma GCC unroll 1
    for (int64_t at = 0; at + TD_VBYTES < bytes; at += TD_VBYTES)
        vb_store(out + at, vb_load(x + at));
    vb_store(out + bytes - TD_VBYTES, last);
}

static void copy_rows(void *dst, int64_t dst_step, const void *src, int64_t src_step, int64_t bytes,
                      int64_t rows) {
    char *to = dst;
    const char *from = src;
#define EACH_ROW(how)                                                                              \
    for (int64_t r = 0; r < rows; r++, to += dst_step, from += src_step)                           \
    how(to, from, bytes)
    if (bytes > 2 * TD_VBYTES)
        EACH_ROW(copy_vectors);
    else if (bytes >= 64)
        EACH_ROW(copy_ends_64);
    else if (bytes >= 32)
        EACH_ROW(copy_ends_32);
    else if (bytes >= 16)
        EACH_ROW(copy_ends_16);
    else if (bytes >= 8)
        EACH_ROW(copy_ends_8);
    else if (bytes >= 4)
        EACH_ROW(copy_ends_4);
    else if (bytes >= 2)
        EACH_ROW(copy_ends_2);
    else
        EACH_ROW(copy_ends_1);
#undef EACH_ROW
}

/* Many short rows by a call; what is known of their operands is known of all. */
#define DEFINE_ROWS_OF(V, T, N, name, op)                                                          \
    static inline __attribute__((always_inline)) void rows_of_##V##_##name(                        \
        const td_rows *p, bool a_single, bool b_single) {                                          \
        char *out = p->out;                                                                        \
        const char *a = p->a, *b = p->b;                                                           \
        for (int64_t r = 0; r < p->rows; r++) {                                                    \
            const T *x = (const T *)(const void *)a, *y = (const T *)(const void *)b;              \
            T *to = (T *)(void *)out;                                                              \
            const V all_x = V##_set(*x), all_y = V##_set(*y);                                      \
            int64_t i = 0;                                                                         \
            for (; i + N <= p->n; i += N)                                                          \
                V##_store(to + i, (a_single ? all_x : V##_load(x + i))                             \
                                      op(b_single ? all_y : V##_load(y + i)));                     \
            if (i < p->n) {                                                                        \
                V left = a_single ? all_x : V##_load_part(x + i, p->n - i);                        \
                V right = b_single ? all_y : V##_load_part(y + i, p->n - i);                       \
                V##_store_part(to + i, left op right, p->n - i);                                   \
            }                                                                                      \
            out += p->out_step;                                                                    \
            a += p->a_step;                                                                        \
            b += p->b_step;                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void rows_##V##_##name(const td_rows *p) {                                              \
        if (p->scalars == 0)                                                                       \
            rows_of_##V##_##name(p, false, false);                                                 \
        else if (p->scalars == 1)                                                                  \
            rows_of_##V##_##name(p, true, false);                                                  \
        else                                                                                       \
            rows_of_##V##_##name(p, false, true);                                                  \
    }
#define DEFINE_ROWS(name, op)                                                                      \
    DEFINE_ROWS_OF(vf, float, VF_N, name, op)                                                      \
    DEFINE_ROWS_OF(vd, double, VD_N, name, op)
DEFINE_ROWS(add, +)
DEFINE_ROWS(sub, -)
DEFINE_ROWS(mul, *)
DEFINE_ROWS(div, /)

/* The compiler turns vectors round. */
#define REVERSED_COPY(type)                                                                        \
    for (int64_t i = 0; i < n; i++)                                                                \
        memcpy(dst + i * (int64_t)sizeof(type), src - i * (int64_t)sizeof(type), sizeof(type));

static void reverse(void *restrict to, const void *restrict from, int64_t n, size_t itemsize) {
    char *dst = to;
    const char *src = from;
    switch (itemsize) {
    case 1:
        REVERSED_COPY(uint8_t)
        break;
    case 2:
        REVERSED_COPY(uint16_t)
        break;
    case 4:
        REVERSED_COPY(uint32_t)
        break;
    default:
        REVERSED_COPY(uint64_t)
    }
}

/* The compiler picks them out of vectors where the step is a small number that it knows. */
#define PICKED_COPY(type, step)                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                \
        memcpy(dst + i * (int64_t)sizeof(type), src + i * (step) * (int64_t)sizeof(type),          \
               sizeof(type));
#define PICKED_BY_STEP(type)                                                                       \
    if (step == 2) {                                                                               \
        PICKED_COPY(type, 2)                                                                       \
    } else if (step == 3) {                                                                        \
        PICKED_COPY(type, 3)                                                                       \
    } else if (step == 4) {                                                                        \
        PICKED_COPY(type, 4)                                                                       \
    } else {                                                                                       \
        _Pragma("GCC unroll 4") PICKED_COPY(type, step)                                            \
    }

static void every(void *restrict to, const void *restrict from, int64_t step, int64_t n,
                  size_t itemsize) {
    char *dst = to;
    const char *src = from;
    switch (itemsize) {
    case 1:
        PICKED_BY_STEP(uint8_t)
        break;
    case 2:
        PICKED_BY_STEP(uint16_t)
        break;
    case 4:
        PICKED_BY_STEP(uint32_t)
        break;
    default:
        PICKED_BY_STEP(uint64_t)
    }
}

static void repeat(void *to, const void *element, int64_t n, size_t itemsize) {
    vb pattern;
    char *dst = to;
    size_t bytes = (size_t)n * itemsize, at = 0;
    for (size_t k = 0; k < sizeof pattern; k += itemsize)
        memcpy((char *)&pattern + k, element, itemsize);
    const vb whole = pattern;
    for (; at + 4 * sizeof whole <= bytes; at += 4 * sizeof whole)
        for (size_t k = 0; k < 4; k++)
            memcpy(dst + at + k * sizeof whole, &whole, sizeof whole);
    for (; at + sizeof whole <= bytes; at += sizeof whole)
        memcpy(dst + at, &whole, sizeof whole);
    memcpy(dst + at, &pattern, bytes - at);
}

/* ---- powers by a number ---- */

#define DEFINE_POWER(name, type, V, lanes, expression)                                             \
    static void name(int64_t n, void *out, const void *a, const void *b, const void *c,            \
                     unsigned scalars) {                                                           \
        const type *from = a;                                                                      \
        type *to = out;                                                                            \
        int64_t i = 0;                                                                             \
        (void)b, (void)c, (void)scalars;                                                           \
        for (; i + (lanes) <= n; i += (lanes)) {                                                   \
            V x = V##_load(from + i);                                                              \
            V##_store(to + i, expression);                                                         \
        }                                                                                          \
        if (i < n) {                                                                               \
            V x = V##_load_part(from + i, n - i);                                                  \
            V##_store_part(to + i, expression, n - i);                                             \
        }                                                                                          \
    }

/* x^3 by two exact products, the same bits in all sets; below `least`, where what such a product
 * was rounded by may be no number of the type, and beyond all numbers by plain ones. */
#define DEFINE_CUBE(name, type, V, lanes, least)                                                   \
    static inline V of_##name(V x) {                                                               \
        V lost, more, square = V##_product(x, x, &lost), y = V##_product(square, x, &more);        \
        V near = y + (more + lost * x);                                                            \
        return V##_select((V##_abs(y) >= (least)) & (y - y == 0), near, y);                        \
    }                                                                                              \
    DEFINE_POWER(name, type, V, lanes, of_##name(x))
/* 1 / x^2 by the square, or by 1 / x where that is no normal number. */
#define DEFINE_INVERSE_SQUARE(name, type, V, mask, lanes, near)                                    \
    static inline V of_##name(V x) {                                                               \
        V square = x * x, y = 1 / square;                                                          \
        mask beyond = (square < 1 / (near)) | (square > (near));                                   \
        return V##_any(beyond) ? V##_select(beyond, (1 / x) * (1 / x), y) : y;                     \
    }                                                                                              \
    DEFINE_POWER(name, type, V, lanes, of_##name(x))
DEFINE_CUBE(cube_f, float, vf, VF_N, 0x1p-90f)
DEFINE_CUBE(cube_d, double, vd, VD_N, 0x1p-900)
DEFINE_INVERSE_SQUARE(inverse_square_f, float, vf, vi, VF_N, 0x1p125f)
DEFINE_INVERSE_SQUARE(inverse_square_d, double, vd, vl, VD_N, 0x1p1020)

extern const td_pointwise_kernels TD_ISA_SYMBOL(td_pointwise_kernels);
const td_pointwise_kernels TD_ISA_SYMBOL(td_pointwise_kernels) = {
    .chain = {[TD_F32] = loop_vf_chain, [TD_F64] = loop_vd_chain, [TD_I64] = loop_vl_chain},
    .tile_bytes = TD_CHAIN_VECTORS * TD_VBYTES,
    .cube = {[TD_F32] = cube_f, [TD_F64] = cube_d},
    .inverse_square = {[TD_F32] = inverse_square_f, [TD_F64] = inverse_square_d},
    .reverse = reverse,
    .every = every,
    .rows =
        {
#define ROWS(name) [TD_PW_##name] = {rows_vf_##name, rows_vd_##name}
            ROWS(add), ROWS(sub), ROWS(mul), ROWS(div)
#undef ROWS
        },
    .copy_rows = copy_rows,
    .repeat = repeat,
    .stream = stream,
    .stream_end = stream_end,
    .primitive =
        {
#define INTEGERS(name)                                                                             \
    [TD_I32] = loop_vi_##name, [TD_I64] = loop_vl_##name, [TD_I16] = loop_vs_##name,               \
    [TD_I8] = loop_vc_##name, [TD_U8] = loop_vb_##name, [TD_BOOL] = loop_vb_##name
/* The 16-bit floats are computed in float32 but moved as they are. */
#define MOVES(name)                   [TD_F16] = loop_vs_##name, [TD_BF16] = loop_vs_##name
#define FLOATS(name)                  [TD_F32] = loop_vf_##name, [TD_F64] = loop_vd_##name
#define COPY(name, arity, formula)    [TD_PW_##name] = {FLOATS(name), INTEGERS(name), MOVES(name)},
#define ARITH(name, arity, formula)   [TD_PW_##name] = {FLOATS(name), INTEGERS(name)},
#define COMPARE(name, arity, formula) [TD_PW_##name] = {FLOATS(name), INTEGERS(name)},
#define SELECT(name, arity, formula)  [TD_PW_##name] = {FLOATS(name), INTEGERS(name), MOVES(name)},
#define LOGIC(name, arity, formula)   [TD_PW_##name] = {[TD_BOOL] = loop_vb_##name},
#define FLOAT(name, arity, formula)   [TD_PW_##name] = {FLOATS(name)},
#define MATH(name, arity, formula)    [TD_PW_##name] = {FLOATS(name)},
#define SPECIAL(name, arity, formula) [TD_PW_##name] = {FLOATS(name)},
#define INTEGER(name, arity, formula) [TD_PW_##name] = {INTEGERS(name)},
#define LANES(name, arity, lane)      [TD_PW_##name] = {INTEGERS(name)},
#define EITHER(name, arity, float_formula, integer_formula)                                        \
    [TD_PW_##name] = {FLOATS(name), INTEGERS(name)},
#define DIVIDE(name, arity, float_formula, lane) [TD_PW_##name] = {FLOATS(name), INTEGERS(name)},
#include "engine/ops/language/primitives.def"
        },
    .signs = {[TD_PW_neg] = signs_neg, [TD_PW_abs] = signs_abs, [TD_PW_copysign] = signs_copysign},
    .narrow =
        {
#define HALF(name) [TD_PW_##name] = {loop_halves_##name, loop_bfloats_##name},
#define COPY(name, arity, formula)
#define ARITH(name, arity, formula)   HALF(name)
#define COMPARE(name, arity, formula) HALF(name)
#define SELECT(name, arity, formula)
#define LOGIC(name, arity, formula)
#define FLOAT(name, arity, formula) HALF(name)
#define MATH(name, arity, formula)
#define SPECIAL(name, arity, formula)
#define INTEGER(name, arity, formula)
#define LANES(name, arity, lane)
#define EITHER(name, arity, float_formula, integer_formula) HALF(name)
#define DIVIDE(name, arity, float_formula, lane)
#include "engine/ops/language/primitives.def"
            HALF(sqrt) HALF(rsqrt) HALF(sin) HALF(cos) HALF(tan)},
};
