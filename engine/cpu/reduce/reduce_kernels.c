/* reduce_kernels.c: the reductions' loops for each element type, in this instruction set. */
#include "engine/cpu/reduce/reduce_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/math/vec_math.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_extremes.h"
#include "engine/cpu/vectors/vec_half.h"

static inline vd widen_float(const float *x) {
    vf_half v;
    memcpy(&v, x, sizeof v);
    return vd_of_floats(v);
}

static inline vd widen_halves(const td_half *x) {
#if defined(TD_ISA_avx512)
    return (vd)_mm512_cvtps_pd(_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x)));
#elif defined(TD_ISA_avx2)
    return (vd)_mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)x)));
#else
    float lanes[VF_N];
    vf_store(lanes, vf_load_halves_part(x, VD_N));
    return widen_float(lanes);
#endif
}
static inline vd widen_bfloats(const td_bfloat *x) {
#if defined(TD_ISA_avx512)
    __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)x));
    return (vd)_mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(words, 16)));
#elif defined(TD_ISA_avx2)
    __m128i words = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)x));
    return (vd)_mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(words, 16)));
#else
    float lanes[VF_N];
    vf_store(lanes, vf_load_bfloats_part(x, VD_N));
    return widen_float(lanes);
#endif
}

/* From here on results that would be denormal are 0; operands that are count as they are. What to
 * give back to unflush_tiny. The compiler moves no access to memory past either. */
static inline unsigned flush_tiny(bool wanted) {
#if defined(__SSE2__)
    unsigned was = _mm_getcsr();
    if (wanted && !(was & _MM_FLUSH_ZERO_ON)) {
        _mm_setcsr(was | _MM_FLUSH_ZERO_ON);
        __asm__ volatile("" : : : "memory");
    }
    return was;
#else
    (void)wanted;
    return 0;
#endif
}
static inline void unflush_tiny(bool wanted, unsigned was) {
#if defined(__SSE2__)
    if (wanted && !(was & _MM_FLUSH_ZERO_ON)) {
        __asm__ volatile("" : : : "memory");
        _mm_setcsr(was);
    }
#else
    (void)wanted;
    (void)was;
#endif
}

/* Elements `step` apart, by the processor's instruction. */
#if defined(TD_ISA_avx512)
enum { GATHERS = 1 };
static inline vf vf_apart(const float *x, int64_t step) {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i at = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)step));
    return (vf)_mm512_i32gather_ps(at, x, 4);
}
static inline vd vd_apart(const double *x, int64_t step) {
    const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    __m256i at = _mm256_mullo_epi32(lanes, _mm256_set1_epi32((int)step));
    return (vd)_mm512_i32gather_pd(at, x, 8);
}
#elif defined(TD_ISA_avx2)
enum { GATHERS = 1 };
static inline vf vf_apart(const float *x, int64_t step) {
    const __m256i lanes = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    __m256i at = _mm256_mullo_epi32(lanes, _mm256_set1_epi32((int)step));
    return (vf)_mm256_i32gather_ps(x, at, 4);
}
static inline vd vd_apart(const double *x, int64_t step) {
    __m128i at = _mm_mullo_epi32(_mm_set_epi32(3, 2, 1, 0), _mm_set1_epi32((int)step));
    return (vd)_mm256_i32gather_pd(x, at, 8);
}
#else
enum { GATHERS = 0 };
#define vf_apart(x, step) ((vf){0})
#define vd_apart(x, step) ((vd){0})
#endif

/* sum and the lanes of a, two by two. */
static inline vd vf_widen_add(vd sum, vf a) {
    float lanes[VF_N];
    vf_store(lanes, a);
    return sum + (widen_float(lanes) + widen_float(lanes + VD_N));
}
static inline vd vd_widen_add(vd sum, vd a) {
    return sum + a;
}

/* NAME(acc, x, rows, n): rows of two to four elements, one after the other in memory. Returns
 * whether it was that. The loop is over the rows, so that the compiler can take several at a time;
 * of each the elements go in as they do elsewhere: `a`, of type A, is FROM at first, then JOIN of
 * itself and b, which is ELEMENT of v; INTO is what becomes of acc[r].FIELD. */
#define TD_SHORT_LOOP(count, T, A, FIELD, FROM, ELEMENT, JOIN, INTO)                               \
    for (int64_t r = 0; r < rows; r++) {                                                           \
        A a = FROM;                                                                                \
        for (int k = 0; k < (count); k++) {                                                        \
            const T v = x[r * (count) + k];                                                        \
            const A b = ELEMENT;                                                                   \
            a = JOIN;                                                                              \
        }                                                                                          \
        acc[r].FIELD = INTO;                                                                       \
    }
#define TD_SHORT_ROWS(NAME, T, ...)                                                                \
    static bool NAME(td_accumulator *acc, const void *data, int64_t rows, int64_t n) {             \
        const T *x = data;                                                                         \
        if (n == 2)                                                                                \
            TD_SHORT_LOOP(2, T, __VA_ARGS__)                                                       \
        else if (n == 3)                                                                           \
            TD_SHORT_LOOP(3, T, __VA_ARGS__)                                                       \
        else if (n == 4)                                                                           \
            TD_SHORT_LOOP(4, T, __VA_ARGS__)                                                       \
        else                                                                                       \
            return false;                                                                          \
        return true;                                                                               \
    }

#define P               vf
#define T               float
#define C               float
#define V               vf
#define N               VF_N
#define I               int32_t
#define LOAD(p)         vf_load(p)
#define LOAD_PART(p, n) vf_load_part(p, n)
#define APARTS          GATHERS
#define APART(p, step)  vf_apart(p, step)
#define DOUBLES(p)      widen_float(p)
#define GET(x)          (x)
#define WIDEN(p)        widen_float(p)
#include "engine/cpu/reduce/reduce_float_loops.h"

#define P               vd
#define T               double
#define C               double
#define V               vd
#define N               VD_N
#define I               int64_t
#define LOAD(p)         vd_load(p)
#define LOAD_PART(p, n) vd_load_part(p, n)
#define APARTS          GATHERS
#define APART(p, step)  vd_apart(p, step)
#define DOUBLES(p)      vd_load(p)
#define GET(x)          (x)
#define WIDEN(p)        vd_load(p)
#include "engine/cpu/reduce/reduce_float_loops.h"

#define P               half
#define T               td_half
#define C               float
#define V               vf
#define N               VF_N
#define I               int32_t
#define LOAD(p)         vf_load_halves(p)
#define LOAD_PART(p, n) vf_load_halves_part(p, n)
#define APARTS          0
#define APART(p, step)  LOAD(p)
#define DOUBLES(p)      widen_float(p)
#define GET(x)          half_get(x)
#define WIDEN(p)        widen_halves(p)
#include "engine/cpu/reduce/reduce_float_loops.h"

#define P               bfloat
#define T               td_bfloat
#define C               float
#define V               vf
#define N               VF_N
#define I               int32_t
#define LOAD(p)         vf_load_bfloats(p)
#define LOAD_PART(p, n) vf_load_bfloats_part(p, n)
#define APARTS          0
#define APART(p, step)  LOAD(p)
#define DOUBLES(p)      widen_float(p)
#define GET(x)          td_bfloat_to_float(x)
#define WIDEN(p)        widen_bfloats(p)
#include "engine/cpu/reduce/reduce_float_loops.h"

#define T int32_t
#define P vi
#define I int32_t
#include "engine/cpu/reduce/reduce_int_loops.h"

#define T int64_t
#define P vl
#define I int64_t
#include "engine/cpu/reduce/reduce_int_loops.h"

#define T uint8_t
#define P vb
#define I int32_t
#include "engine/cpu/reduce/reduce_int_loops.h"

/* How many bytes of each row are not 0. They are counted in bytes, and those added up before one
 * can overflow. */
static int64_t vb_count(const uint8_t *x, int64_t n) {
    int64_t count = 0;
    for (; n >= VB_N;) {
        int64_t vectors = n / VB_N < 255 ? n / VB_N : 255;
        uint8_t lanes[VB_N];
        vb sums = {0};
        for (int64_t k = 0; k < vectors; k++)
            sums -= (vb)(vb_load(x + k * VB_N) != 0);
        vb_store(lanes, sums);
        for (int l = 0; l < VB_N; l++)
            count += lanes[l];
        x += vectors * VB_N;
        n -= vectors * VB_N;
    }
    for (int64_t k = 0; k < n; k++)
        count += x[k] != 0;
    return count;
}
static void vb_count_rows(td_accumulator *acc, const void *data, int64_t rows, int64_t row_stride,
                          int64_t n, int64_t stride, const double *centers) {
    if (stride != 1 || n < VB_N) {
        vb_nonzero_rows(acc, data, rows, row_stride, n, stride, centers);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        acc[r].i += vb_count((const uint8_t *)data + r * row_stride, n);
}
#define vb_count_columns vb_nonzero_columns

#define T int8_t
#define P i8
#define I int32_t
#include "engine/cpu/reduce/reduce_int_loops.h"

#define T int16_t
#define P i16
#define I int32_t
#include "engine/cpu/reduce/reduce_int_loops.h"

#define DEFINE_ABS_POW(V, T, N)                                                                    \
    static void V##_abs_pow(void *data, int64_t n, double power) {                                 \
        T *x = data;                                                                               \
        V exponent = V##_set((T)power);                                                            \
        for (; n >= N; n -= N, x += N)                                                             \
            V##_store(x, V##_pow(V##_abs(V##_load(x)), exponent));                                 \
        if (n > 0)                                                                                 \
            V##_store_part(x, V##_pow(V##_abs(V##_load_part(x, n)), exponent), n);                 \
    }
DEFINE_ABS_POW(vf, float, VF_N)
DEFINE_ABS_POW(vd, double, VD_N)

#define BYTES_AND(bools, bytes, name, form)                                                        \
    [TD_BOOL] = vb_##bools##form, [TD_U8] = vb_##bytes##form, [TD_I8] = i8_##name##form,           \
    [TD_I16] = i16_##name##form, [TD_I32] = vi_##name##form, [TD_I64] = vl_##name##form
#define INTEGERS(name, form) BYTES_AND(name, name, name, form)
#define WIDE(name, form)     [TD_F32] = vf_##name##form, [TD_F64] = vd_##name##form
#define FLOATS(name, form)                                                                         \
    [TD_F16] = half_##name##form, [TD_BF16] = bfloat_##name##form, WIDE(name, form)
#define REDUCERS(form)                                                                             \
    {                                                                                              \
        [TD_REDUCE_SUM] = {BYTES_AND(count, sum, sum, form), FLOATS(sum, form)},                   \
        [TD_REDUCE_NANSUM] = {BYTES_AND(count, sum, sum, form), FLOATS(nansum, form)},             \
        [TD_REDUCE_ABS_SUM] = {FLOATS(abs_sum, form)},                                             \
        [TD_REDUCE_SQUARE_SUM] = {FLOATS(square_sum, form)},                                       \
        [TD_REDUCE_CENTERED] = {FLOATS(centered, form)},                                           \
        [TD_FOLD_SHIFTED] = {FLOATS(shifted, form)},                                               \
        [TD_REDUCE_NONZERO] = {BYTES_AND(count, count, nonzero, form), FLOATS(nonzero, form)},     \
        [TD_REDUCE_PROD] = {INTEGERS(prod, form), FLOATS(prod, form)},                             \
        [TD_REDUCE_MAX] = {INTEGERS(max, form), FLOATS(max, form)},                                \
        [TD_REDUCE_MIN] = {INTEGERS(min, form), FLOATS(min, form)},                                \
        [TD_REDUCE_ABS_MAX] = {FLOATS(abs_max, form)},                                             \
        [TD_REDUCE_ABS_MIN] = {FLOATS(abs_min, form)},                                             \
    }

extern const td_reduce_kernels TD_ISA_SYMBOL(td_reduce_kernels);
const td_reduce_kernels TD_ISA_SYMBOL(td_reduce_kernels) = {
    .rows = REDUCERS(_rows),
    .columns = REDUCERS(_columns),
    .find_max = {INTEGERS(find_max, ), FLOATS(find_max, )},
    .find_min = {INTEGERS(find_min, ), FLOATS(find_min, )},
    .find_max_columns = {INTEGERS(find_max, _columns), FLOATS(find_max, _columns)},
    .find_min_columns = {INTEGERS(find_min, _columns), FLOATS(find_min, _columns)},
    .abs_pow = {WIDE(abs_pow, )},
};
