/* scan_kernels.c: the steps of running extremes, of each element type, and lines of integers; the
 * elements themselves are kept, so that nothing is converted but what is compared. */
#include "engine/cpu/isa/scan_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec_half.h"

#define SAME(x) (x)

#define DEFINE_STEP(name, type, better, GET)                                                       \
    static void name(void *restrict to, int64_t *restrict index, const void *restrict before,      \
                     const int64_t *restrict place, const void *restrict from, int64_t at,         \
                     int64_t n) {                                                                  \
        const type *restrict x = from, *restrict last = before;                                    \
        type *restrict out = to;                                                                   \
        for (int64_t k = 0; k < n; k++) {                                                          \
            bool taken = GET(x[k]) better GET(last[k]) || GET(x[k]) != GET(x[k]);                  \
            out[k] = taken ? x[k] : last[k];                                                       \
            index[k] = taken ? at : place[k];                                                      \
        }                                                                                          \
    }
#define DEFINE_FEW(name, type, better, GET)                                                        \
    static void name(void *restrict to, int64_t *restrict index, const void *restrict from,        \
                     int64_t at, int64_t rows, int64_t lines) {                                    \
        const type *restrict x = from;                                                             \
        type *restrict out = to, best[TD_SCAN_FEW];                                                \
        int64_t place[TD_SCAN_FEW];                                                                \
        for (int64_t k = 0; k < lines; k++) {                                                      \
            best[k] = at ? out[k - lines] : x[k];                                                  \
            place[k] = at ? index[k - lines] : 0;                                                  \
        }                                                                                          \
        for (; rows > 0; rows--, at++, x += lines, out += lines, index += lines)                   \
            for (int64_t k = 0; k < lines; k++) {                                                  \
                bool taken = GET(x[k]) better GET(best[k]) || GET(x[k]) != GET(x[k]);              \
                best[k] = taken ? x[k] : best[k];                                                  \
                place[k] = taken ? at : place[k];                                                  \
                out[k] = best[k];                                                                  \
                index[k] = place[k];                                                               \
            }                                                                                      \
    }
#define DEFINE_STEPS(type, GET)                                                                    \
    DEFINE_STEP(type##_largest, type, >=, GET)                                                     \
    DEFINE_STEP(type##_smallest, type, <=, GET)                                                    \
    DEFINE_FEW(type##_largest_few, type, >=, GET)                                                  \
    DEFINE_FEW(type##_smallest_few, type, <=, GET)
DEFINE_STEPS(uint8_t, SAME)
DEFINE_STEPS(int8_t, SAME)
DEFINE_STEPS(int16_t, SAME)
DEFINE_STEPS(int32_t, SAME)
DEFINE_STEPS(int64_t, SAME)
DEFINE_STEPS(td_half, half_get)
DEFINE_STEPS(td_bfloat, td_bfloat_to_float)
DEFINE_STEPS(float, SAME)
DEFINE_STEPS(double, SAME)

/* ---- lines of integers ---- */

#if defined(TD_ISA_avx512)
#define LARGER(a, b)  (vl) _mm512_max_epi64((__m512i)(a), (__m512i)(b))
#define SMALLER(a, b) (vl) _mm512_min_epi64((__m512i)(a), (__m512i)(b))
#else
#define LARGER(a, b)  vl_select((vl)((a) > (b)), a, b)
#define SMALLER(a, b) vl_select((vl)((a) < (b)), a, b)
#endif

/* Each lane with those before it, of which twice as many are known after each step. Lanes before
 * which there are none go with themselves. */
#if defined(TD_ISA_avx512)
#define STEP(v, better, ...) v = better(v, __builtin_shufflevector(v, v, __VA_ARGS__));
#define RUNNING(v, better)                                                                         \
    STEP(v, better, 0, 0, 1, 2, 3, 4, 5, 6)                                                        \
    STEP(v, better, 0, 1, 0, 1, 2, 3, 4, 5)                                                        \
    STEP(v, better, 0, 1, 2, 3, 0, 1, 2, 3)
#define LAST(v) __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7)
#elif defined(TD_ISA_avx2)
#define STEP(v, better, ...) v = better(v, __builtin_shufflevector(v, v, __VA_ARGS__));
#define RUNNING(v, better)                                                                         \
    STEP(v, better, 0, 0, 1, 2)                                                                    \
    STEP(v, better, 0, 1, 0, 1)
#define LAST(v) __builtin_shufflevector(v, v, 3, 3, 3, 3)
#else
#define RUNNING(v, better) v = better(v, (vl){0} + (v)[0]);
#define LAST(v)            ((vl){0} + (v)[1])
#endif

/* Places grow along the line: that of the last one that took over is the largest. */
#define DEFINE_LINE(name, better, BETTER)                                                          \
    static void name(int64_t *out, int64_t *index, const int64_t *x, int64_t at, int64_t n,        \
                     int64_t *best, int64_t *place) {                                              \
        int64_t b = *best, p = *place, i = 0;                                                      \
        vl lanes, bests = (vl){0} + b, places = (vl){0} + p;                                       \
        for (int64_t k = 0; k < VL_N; k++)                                                         \
            lanes[k] = at + k;                                                                     \
        for (; i + VL_N <= n; i += VL_N, lanes += VL_N) {                                          \
            vl v, r, q;                                                                            \
            memcpy(&v, x + i, sizeof v);                                                           \
            r = v;                                                                                 \
            RUNNING(r, BETTER)                                                                     \
            r = BETTER(r, bests);                                                                  \
            q = vl_select((vl)(v == r), lanes, (vl){0} - 1);                                       \
            RUNNING(q, LARGER)                                                                     \
            q = LARGER(q, places);                                                                 \
            memcpy(out + i, &r, sizeof r);                                                         \
            memcpy(index + i, &q, sizeof q);                                                       \
            bests = LAST(r);                                                                       \
            places = LAST(q);                                                                      \
        }                                                                                          \
        b = bests[0];                                                                              \
        p = places[0];                                                                             \
        for (; i < n; i++) {                                                                       \
            bool taken = x[i] better b;                                                            \
            b = taken ? x[i] : b;                                                                  \
            p = taken ? at + i : p;                                                                \
            out[i] = b;                                                                            \
            index[i] = p;                                                                          \
        }                                                                                          \
        *best = b;                                                                                 \
        *place = p;                                                                                \
    }
DEFINE_LINE(largest_line, >=, LARGER)
DEFINE_LINE(smallest_line, <=, SMALLER)

#define BY_DTYPE(name)                                                                             \
    {                                                                                              \
        [TD_BOOL] = uint8_t_##name, [TD_U8] = uint8_t_##name, [TD_I8] = int8_t_##name,             \
        [TD_I16] = int16_t_##name, [TD_I32] = int32_t_##name, [TD_I64] = int64_t_##name,           \
        [TD_F16] = td_half_##name, [TD_BF16] = td_bfloat_##name, [TD_F32] = float_##name,          \
        [TD_F64] = double_##name                                                                   \
    }

extern const td_scan_kernels TD_ISA_SYMBOL(td_scan_kernels);
const td_scan_kernels TD_ISA_SYMBOL(td_scan_kernels) = {
    .largest = BY_DTYPE(largest),
    .smallest = BY_DTYPE(smallest),
    .largest_few = BY_DTYPE(largest_few),
    .smallest_few = BY_DTYPE(smallest_few),
    .largest_line = largest_line,
    .smallest_line = smallest_line,
};
