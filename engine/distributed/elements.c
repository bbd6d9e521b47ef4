/* elements.c: loops over elements in a row, a function for each dtype and reduction. */
#include "engine/distributed/elements.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

static inline float load_f16(td_half h) {
    return td_half_to_float(h);
}
static inline float load_bf16(td_bfloat b) {
    return td_bfloat_to_float(b);
}

#define SAME(x)       (x)
#define LESS(a, b)    ((a) != (a) || (a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))

/* The reductions of numbers: T as it lies in memory, C what it is computed in. */
#define EACH(T, load, store, expression)                                                           \
    for (int64_t k = 0; k < n; k++) {                                                              \
        C a = load(((T *)into)[k]), b = load(((const T *)from)[k]);                                \
        ((T *)into)[k] = store((C)(expression));                                                   \
    }                                                                                              \
    return;
#define NUMBERS(T, load, store)                                                                    \
    case TD_ACROSS_SUM:                                                                            \
        EACH(T, load, store, a + b)                                                                \
    case TD_ACROSS_PRODUCT:                                                                        \
        EACH(T, load, store, a *b)                                                                 \
    case TD_ACROSS_MIN:                                                                            \
        EACH(T, load, store, LESS(a, b))                                                           \
    case TD_ACROSS_MAX:                                                                            \
        EACH(T, load, store, GREATER(a, b))                                                        \
    case TD_ACROSS_MEAN:                                                                           \
        return;
#define NO_BITS                                                                                    \
    case TD_ACROSS_BAND:                                                                           \
    case TD_ACROSS_BOR:                                                                            \
    case TD_ACROSS_BXOR:                                                                           \
    case TD_ACROSS_OPS:                                                                            \
        return;

#define REDUCE_FLOAT(name, T, COMPUTE, load, store)                                                \
    static void reduce_##name(td_across op, void *into, const void *from, int64_t n) {             \
        typedef COMPUTE C;                                                                         \
        switch (op) { NUMBERS(T, load, store) NO_BITS }                                            \
    }

/* Sums and products wrap around, as unsigned ones do. */
#define REDUCE_INT(name, T, WRAP)                                                                  \
    static void reduce_##name(td_across op, void *into, const void *from, int64_t n) {             \
        typedef T C;                                                                               \
        switch (op) {                                                                              \
        case TD_ACROSS_SUM:                                                                        \
            EACH(T, SAME, SAME, (WRAP)a + (WRAP)b)                                                 \
        case TD_ACROSS_PRODUCT:                                                                    \
            EACH(T, SAME, SAME, (WRAP)a *(WRAP)b)                                                  \
        case TD_ACROSS_MIN:                                                                        \
            EACH(T, SAME, SAME, a < b ? a : b)                                                     \
        case TD_ACROSS_MAX:                                                                        \
            EACH(T, SAME, SAME, a > b ? a : b)                                                     \
        case TD_ACROSS_BAND:                                                                       \
            EACH(T, SAME, SAME, a &b)                                                              \
        case TD_ACROSS_BOR:                                                                        \
            EACH(T, SAME, SAME, a | b)                                                             \
        case TD_ACROSS_BXOR:                                                                       \
            EACH(T, SAME, SAME, a ^ b)                                                             \
        case TD_ACROSS_MEAN:                                                                       \
        case TD_ACROSS_OPS:                                                                        \
            return;                                                                                \
        }                                                                                          \
    }

REDUCE_INT(u8, uint8_t, uint32_t)
REDUCE_INT(i8, int8_t, uint32_t)
REDUCE_INT(i16, int16_t, uint32_t)
REDUCE_INT(i32, int32_t, uint32_t)
REDUCE_INT(i64, int64_t, uint64_t)
REDUCE_FLOAT(f16, td_half, float, load_f16, td_float_to_half)
REDUCE_FLOAT(bf16, td_bfloat, float, load_bf16, td_float_to_bfloat)
REDUCE_FLOAT(f32, float, float, SAME, SAME)
REDUCE_FLOAT(f64, double, double, SAME, SAME)

/* A sum of truths is "any of them", a product "all". */
static void reduce_bool_(td_across op, void *into, const void *from, int64_t n) {
    if (op == TD_ACROSS_SUM || op == TD_ACROSS_MAX)
        op = TD_ACROSS_BOR;
    else if (op == TD_ACROSS_PRODUCT || op == TD_ACROSS_MIN)
        op = TD_ACROSS_BAND;
    reduce_u8(op, into, from, n);
}

/* Sums of float16 eight at a time, where the processor converts them itself: the loop above takes
 * ten times as long, and longer still for subnormal numbers, which small gradients are. The same
 * bits. How many elements it took. */
#ifdef __x86_64__
__attribute__((target("avx2,f16c"))) static int64_t add_f16_in_eights(void *into, const void *from,
                                                                      int64_t n) {
    int64_t k = 0;
    for (; k + 8 <= n; k += 8) {
        __m128i *to = (__m128i *)((td_half *)into + k);
        const __m128i *with = (const __m128i *)((const td_half *)from + k);
        __m256 sum = _mm256_add_ps(_mm256_cvtph_ps(_mm_loadu_si128(to)),
                                   _mm256_cvtph_ps(_mm_loadu_si128(with)));
        _mm_storeu_si128(to, _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
    }
    return k;
}

/* Whatever has AVX2 converts; clang 14 can't be asked for f16c itself. */
static int64_t add_f16(void *into, const void *from, int64_t n) {
    return __builtin_cpu_supports("avx2") ? add_f16_in_eights(into, from, n) : 0;
}
#else
static int64_t add_f16(void *into, const void *from, int64_t n) {
    (void)into;
    (void)from;
    (void)n;
    return 0;
}
#endif

void td_elements_reduce(td_across op, td_dtype dtype, void *into, const void *from, int64_t n) {
    typedef void (*reduce)(td_across, void *, const void *, int64_t);
    static const reduce loops[TD_DTYPE_COUNT] = {
#define LOOP(name, NAME, type, text, category, alias) [TD_##NAME] = reduce_##name,
        TD_DTYPE_TABLE(LOOP)
#undef LOOP
    };
    int64_t done = dtype == TD_F16 && op == TD_ACROSS_SUM ? add_f16(into, from, n) : 0;
    size_t bytes = (size_t)done * td_dtypes[dtype].size;
    loops[dtype](op, (char *)into + bytes, (const char *)from + bytes, n - done);
}

#define DIVIDE(T, load, store)                                                                     \
    for (int64_t k = 0; k < n; k++)                                                                \
        ((T *)x)[k] = store(load(((T *)x)[k]) / by);

void td_elements_divide(td_dtype dtype, void *x, double divisor, int64_t n) {
    if (dtype == TD_F64) {
        double by = divisor;
        DIVIDE(double, SAME, SAME)
        return;
    }
    float by = (float)divisor;
    if (dtype == TD_F32)
        DIVIDE(float, SAME, SAME)
    else if (dtype == TD_F16)
        DIVIDE(td_half, load_f16, td_float_to_half)
    else if (dtype == TD_BF16)
        DIVIDE(td_bfloat, load_bf16, td_float_to_bfloat)
}
