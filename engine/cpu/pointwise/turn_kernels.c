/* turn_kernels.c: transposes of matrices. A vector is loaded as parts of 16 bytes, each from a line
 * of x; the lines of neighbouring parts are as far apart as a part has elements. Each part is
 * transposed with the same part of other vectors, and the results lie side by side. */
#include "engine/cpu/pointwise/turn_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/pointwise/by_size.h"

#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

enum { PART = 16 }; /* bytes */

typedef uint8_t one __attribute__((vector_size(PART)));

static inline one one_load(const char *x, size_t apart) {
    one v;
    (void)apart;
    memcpy(&v, x, sizeof v);
    return v;
}

/* Of the elements of each part the lower and the upper halves, in turns. */
#if defined(__SSE2__)
#define ONE_LOW(bits, a, b)  (one) _mm_unpacklo_epi##bits((__m128i)(a), (__m128i)(b))
#define ONE_HIGH(bits, a, b) (one) _mm_unpackhi_epi##bits((__m128i)(a), (__m128i)(b))
#else
#define LOW_64  0, 2
#define HIGH_64 1, 3
#define LOW_32  0, 4, 1, 5
#define HIGH_32 2, 6, 3, 7
#define LOW_16  0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_16 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_8   0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_8  8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
typedef uint8_t one_8 __attribute__((vector_size(PART)));
typedef uint16_t one_16 __attribute__((vector_size(PART)));
typedef uint32_t one_32 __attribute__((vector_size(PART)));
typedef uint64_t one_64 __attribute__((vector_size(PART)));
#define ONE_LOW(bits, a, b)                                                                        \
    (one) __builtin_shufflevector((one_##bits)(a), (one_##bits)(b), LOW_##bits)
#define ONE_HIGH(bits, a, b)                                                                       \
    (one) __builtin_shufflevector((one_##bits)(a), (one_##bits)(b), HIGH_##bits)
#endif

#if defined(TD_ISA_avx512)
typedef uint8_t all __attribute__((vector_size(4 * PART)));
static inline all all_load(const char *x, size_t apart) {
    __m512i v = _mm512_castsi128_si512((__m128i)one_load(x, 0));
    v = _mm512_inserti32x4(v, (__m128i)one_load(x + apart, 0), 1);
    v = _mm512_inserti32x4(v, (__m128i)one_load(x + 2 * apart, 0), 2);
    return (all)_mm512_inserti32x4(v, (__m128i)one_load(x + 3 * apart, 0), 3);
}
#define ALL_LOW(bits, a, b)  (all) _mm512_unpacklo_epi##bits((__m512i)(a), (__m512i)(b))
#define ALL_HIGH(bits, a, b) (all) _mm512_unpackhi_epi##bits((__m512i)(a), (__m512i)(b))
/* Of four vectors, n apart: their first parts into one, their second parts into the next, ... */
static inline void deal(all *to, const all *v, int n) {
    __m512i a = (__m512i)v[0], b = (__m512i)v[n], c = (__m512i)v[2 * n], d = (__m512i)v[3 * n];
    __m512i ab = _mm512_shuffle_i64x2(a, b, 0x44), ba = _mm512_shuffle_i64x2(a, b, 0xEE);
    __m512i cd = _mm512_shuffle_i64x2(c, d, 0x44), dc = _mm512_shuffle_i64x2(c, d, 0xEE);
    to[0] = (all)_mm512_shuffle_i64x2(ab, cd, 0x88);
    to[n] = (all)_mm512_shuffle_i64x2(ab, cd, 0xDD);
    to[2 * n] = (all)_mm512_shuffle_i64x2(ba, dc, 0x88);
    to[3 * n] = (all)_mm512_shuffle_i64x2(ba, dc, 0xDD);
}
#elif defined(TD_ISA_avx2)
typedef uint8_t all __attribute__((vector_size(2 * PART)));
static inline all all_load(const char *x, size_t apart) {
    __m256i v = _mm256_castsi128_si256((__m128i)one_load(x, 0));
    return (all)_mm256_inserti128_si256(v, (__m128i)one_load(x + apart, 0), 1);
}
#define ALL_LOW(bits, a, b)  (all) _mm256_unpacklo_epi##bits((__m256i)(a), (__m256i)(b))
#define ALL_HIGH(bits, a, b) (all) _mm256_unpackhi_epi##bits((__m256i)(a), (__m256i)(b))
static inline void deal(all *to, const all *v, int n) {
    __m256i a = (__m256i)v[0], b = (__m256i)v[n];
    to[0] = (all)_mm256_permute2x128_si256(a, b, 0x20);
    to[n] = (all)_mm256_permute2x128_si256(a, b, 0x31);
}
#else
typedef one all;
#define all_load one_load
#define ALL_LOW  ONE_LOW
#define ALL_HIGH ONE_HIGH
static inline void deal(all *to, const all *v, int n) {
    (void)n;
    to[0] = v[0];
}
#endif

/* N rows of `vector`, and N columns for each part of it: what lies half of the lines apart is
 * interleaved, until each has met each. */
#define DEFINE_SQUARE(name, vector, load, LOW, HIGH, type, bits)                                   \
    static inline void name##_put_##type(type *to, int64_t to_step, vector *v) {                   \
        enum { N = PART / sizeof(type) };                                                          \
        vector next[N];                                                                            \
        for (int met = 1; met < N; met *= 2) {                                                     \
            for (int k = 0; k < N / 2; k++) {                                                      \
                next[2 * k] = LOW(bits, v[k], v[k + N / 2]);                                       \
                next[2 * k + 1] = HIGH(bits, v[k], v[k + N / 2]);                                  \
            }                                                                                      \
            memcpy(v, next, sizeof next);                                                          \
        }                                                                                          \
        for (int k = 0; k < N; k++)                                                                \
            memcpy(to + k * to_step, &v[k], sizeof v[k]);                                          \
    }                                                                                              \
    static inline void name##_##type(type *to, int64_t to_step, const type *x, int64_t x_step) {   \
        enum { N = PART / sizeof(type) };                                                          \
        vector v[N];                                                                               \
        for (int k = 0; k < N; k++)                                                                \
            v[k] = load((const char *)(x + k * x_step), (size_t)(N * x_step) * sizeof(type));      \
        name##_put_##type(to, to_step, v);                                                         \
    }

/* As many rows and columns as a vector has elements: whole vectors are loaded, so that lines of x
 * that share a place of the cache are read once, and their parts are dealt out. */
#define DEFINE_LINES(type)                                                                         \
    static inline void lines_##type(type *to, int64_t to_step, const type *x, int64_t x_step) {    \
        enum { N = PART / sizeof(type), WIDE = sizeof(all) / sizeof(type) };                       \
        all v[WIDE], parts[WIDE];                                                                  \
        for (int k = 0; k < WIDE; k++)                                                             \
            memcpy(&v[k], x + k * x_step, sizeof v[k]);                                            \
        for (int k = 0; k < N; k++)                                                                \
            deal(parts + k, v + k, N);                                                             \
        for (int k = 0; k < WIDE; k += N)                                                          \
            alls_put_##type(to + k * to_step, to_step, parts + k);                                 \
    }

/* Whole lines of the result's memory are written at once, as far as vectors are such: results whose
 * rows lie a power of two apart would push one another out of the cache half written. */
#define DEFINE_TURN(type, bits)                                                                    \
    DEFINE_SQUARE(ones, one, one_load, ONE_LOW, ONE_HIGH, type, bits)                              \
    DEFINE_SQUARE(alls, all, all_load, ALL_LOW, ALL_HIGH, type, bits)                              \
    DEFINE_LINES(type)                                                                             \
    static void turn_##type(type *restrict out, int64_t out_step, const type *restrict x,          \
                            int64_t x_step, int64_t rows, int64_t columns) {                       \
        enum { N = PART / sizeof(type), WIDE = sizeof(all) / sizeof(type) };                       \
        const int64_t whole_rows = rows / N * N, whole = columns / N * N;                          \
        for (int64_t r = 0, some; r < whole_rows; r += some) {                                     \
            int64_t c = 0;                                                                         \
            some = sizeof(type) >= 4 && r + WIDE <= rows ? WIDE : N;                               \
            for (; some == WIDE && c + WIDE <= columns; c += WIDE)                                 \
                lines_##type(out + r * out_step + c, out_step, x + r + c * x_step, x_step);        \
            for (; some == N && c + WIDE <= columns; c += WIDE)                                    \
                alls_##type(out + r * out_step + c, out_step, x + r + c * x_step, x_step);         \
            for (; c < whole; c += N)                                                              \
                for (int64_t q = r; q < r + some; q += N)                                          \
                    ones_##type(out + q * out_step + c, out_step, x + q + c * x_step, x_step);     \
        }                                                                                          \
        for (int64_t r = whole_rows; r < rows; r++)                                                \
            for (int64_t c = 0; c < columns; c++)                                                  \
                out[r * out_step + c] = x[r + c * x_step];                                         \
        for (int64_t c = whole; c < columns; c++)                                                  \
            for (int64_t r = 0; r < whole_rows; r++)                                               \
                out[r * out_step + c] = x[r + c * x_step];                                         \
    }
DEFINE_TURN(uint8_t, 8)
DEFINE_TURN(uint16_t, 16)
DEFINE_TURN(uint32_t, 32)
DEFINE_TURN(uint64_t, 64)

static void turn(void *restrict out, int64_t out_step, const void *restrict x, int64_t x_step,
                 int64_t rows, int64_t columns, size_t size) {
#define MOVE(type) turn_##type(out, out_step, x, x_step, rows, columns);
    TD_BY_SIZE(size, MOVE);
#undef MOVE
}

static void weave(uint16_t *restrict out, const uint16_t *upper, const uint16_t *lower, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        uint32_t pair = upper[k] | (uint32_t)lower[k] << 16;
        memcpy(out + 2 * k, &pair, sizeof pair);
    }
}

extern const td_turn_kernels TD_ISA_SYMBOL(td_turn_kernels);
const td_turn_kernels TD_ISA_SYMBOL(td_turn_kernels) = {.turn = turn, .weave = weave};
