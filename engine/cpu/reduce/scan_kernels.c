/* scan_kernels.c: inner loops of running maxima and minima with their places, for each element
 * type, and running sums of int64. Elements are copied as they are; only what is compared is
 * converted. */
#include "engine/cpu/reduce/scan_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/vectors/vec_across.h"
#include "engine/cpu/vectors/vec_half.h"

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

/* A line of floats. As a rule nothing takes over in a whole vector, which one comparison tells;
 * where that was not so three times, the next SOME elements are not asked. */
enum { SOME = 32 };
#define DEFINE_FLOAT_LINE(name, type, better, GET, V, LOAD)                                        \
    static void name(type *restrict out, int64_t *restrict index, const type *restrict x,          \
                     int64_t at, int64_t n) {                                                      \
        enum { N = sizeof(V) / sizeof((V){0}[0]) };                                                \
        type best = at ? out[-1] : x[0];                                                           \
        int64_t place = at ? index[-1] : 0;                                                        \
        int hits = 0;                                                                              \
        for (int64_t k = 0, end; k < n; k = end) {                                                 \
            int64_t some = hits < 3 ? N : SOME;                                                    \
            end = n - k < some ? n : k + some;                                                     \
            if (hits < 3 && end == k + N) {                                                        \
                V v = LOAD(x + k), b = V##_set(GET(best));                                         \
                if (!vd_any(((vl)(v better b) | (vl)(v != v)) != 0)) {                             \
                    for (int64_t i = k; i < k + N; i++)                                            \
                        out[i] = best;                                                             \
                    for (int64_t i = k; i < k + N; i++)                                            \
                        index[i] = place;                                                          \
                    hits = 0;                                                                      \
                    continue;                                                                      \
                }                                                                                  \
            }                                                                                      \
            hits += hits < 3 ? 1 : -1;                                                             \
            for (int64_t i = k; i < end; i++) {                                                    \
                bool taken = GET(x[i]) better GET(best) || GET(x[i]) != GET(x[i]);                 \
                best = taken ? x[i] : best;                                                        \
                place = taken ? at + i : place;                                                    \
                out[i] = best;                                                                     \
                index[i] = place;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* A line of integers, among which many may be equal: nobody can foretell which of them take over,
 * and the compiler would branch. */
#if defined(__x86_64__)
#define TAKE_OVER(cc, better, best, place, v, at)                                                  \
    __asm__("cmp %2, %0\n\tcmov" cc " %2, %0\n\tcmov" cc " %3, %1"                                 \
            : "+r"(best), "+r"(place)                                                              \
            : "r"(v), "r"(at)                                                                      \
            : "cc")
#else
#define TAKE_OVER(cc, better, best, place, v, at)                                                  \
    place = (v)better(best) ? (at) : place;                                                        \
    best = (v)better(best) ? (v) : best
#endif
#define DEFINE_INTEGER_LINE(name, type, better, cc)                                                \
    static void name(type *restrict out, int64_t *restrict index, const type *restrict x,          \
                     int64_t at, int64_t n) {                                                      \
        int64_t best = at ? out[-1] : x[0], place = at ? index[-1] : 0;                            \
        for (int64_t i = 0; i < n; i++) {                                                          \
            int64_t v = x[i], here = at + i;                                                       \
            TAKE_OVER(cc, better, best, place, v, here);                                           \
            out[i] = (type)best;                                                                   \
            index[i] = place;                                                                      \
        }                                                                                          \
    }

#define DEFINE_FEW(name, type, better, GET)                                                        \
    static void name(void *restrict to, int64_t *restrict index, const void *restrict from,        \
                     int64_t at, int64_t rows, int64_t lines) {                                    \
        const type *restrict x = from;                                                             \
        type *restrict out = to, best[TD_SCAN_FEW];                                                \
        int64_t place[TD_SCAN_FEW];                                                                \
        if (lines == 1) {                                                                          \
            name##_line(out, index, x, at, rows);                                                  \
            return;                                                                                \
        }                                                                                          \
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
#define DEFINE_INTEGERS(type)                                                                      \
    DEFINE_INTEGER_LINE(type##_largest_few_line, type, >=, "le")                                   \
    DEFINE_INTEGER_LINE(type##_smallest_few_line, type, <=, "ge")                                  \
    DEFINE_STEPS(type, SAME)
#define DEFINE_FLOATS(type, GET, V, LOAD)                                                          \
    DEFINE_FLOAT_LINE(type##_largest_few_line, type, >=, GET, V, LOAD)                             \
    DEFINE_FLOAT_LINE(type##_smallest_few_line, type, <=, GET, V, LOAD)                            \
    DEFINE_STEPS(type, GET)
DEFINE_INTEGERS(uint8_t)
DEFINE_INTEGERS(int8_t)
DEFINE_INTEGERS(int16_t)
DEFINE_INTEGERS(int32_t)
DEFINE_INTEGERS(int64_t)
DEFINE_FLOATS(td_half, half_get, vf, vf_load_halves)
DEFINE_FLOATS(td_bfloat, td_bfloat_to_float, vf, vf_load_bfloats)
DEFINE_FLOATS(float, SAME, vf, vf_load)
DEFINE_FLOATS(double, SAME, vd, vd_load)

/* Each lane and those before it, by steps of 1, 2, 4 lanes; and the last lane in all. */
#if defined(TD_ISA_avx512)
static inline vl sums_within(vl v) {
    v += __builtin_shufflevector(v, (vl){0}, 8, 0, 1, 2, 3, 4, 5, 6);
    v += __builtin_shufflevector(v, (vl){0}, 8, 8, 0, 1, 2, 3, 4, 5);
    return v + __builtin_shufflevector(v, (vl){0}, 8, 8, 8, 8, 0, 1, 2, 3);
}
static inline vl last_in_all(vl v) {
    return __builtin_shufflevector(v, v, 7, 7, 7, 7, 7, 7, 7, 7);
}
#elif defined(TD_ISA_avx2)
static inline vl sums_within(vl v) {
    v += __builtin_shufflevector(v, (vl){0}, 4, 0, 6, 2);
    return v + __builtin_shufflevector(v, (vl){0}, 4, 4, 1, 1);
}
static inline vl last_in_all(vl v) {
    return __builtin_shufflevector(v, v, 3, 3, 3, 3);
}
#else
static inline vl sums_within(vl v) {
    return v + __builtin_shufflevector(v, (vl){0}, 2, 0);
}
static inline vl last_in_all(vl v) {
    return __builtin_shufflevector(v, v, 1, 1);
}
#endif
static int64_t sums(int64_t *restrict out, const int64_t *restrict x, int64_t n, int64_t before) {
    vl all = vl_set(before);
    int64_t k = 0;
    for (; k + VL_N <= n; k += VL_N) {
        const vl v = sums_within(vl_load(x + k));
        vl_store(out + k, v + all);
        all += last_in_all(v);
    }
    for (before = all[0]; k < n; k++)
        out[k] = before += x[k];
    return before;
}

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
    .sums = sums,
    .largest_few = BY_DTYPE(largest_few),
    .smallest_few = BY_DTYPE(smallest_few),
};
