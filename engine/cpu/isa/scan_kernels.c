/* scan_kernels.c: the steps of running extremes, of each element type; the elements themselves are
 * kept, so that nothing is converted but what is compared. */
#include "engine/cpu/isa/scan_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec_across.h"
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
/* A line. As a rule nothing takes over in a whole vector, which one comparison tells: the others
 * are done element by element. */
#define DEFINE_LINE(name, type, better, GET, V, LOAD)                                              \
    static void name(type *restrict out, int64_t *restrict index, const type *restrict x,          \
                     int64_t at, int64_t n) {                                                      \
        enum { N = sizeof(V) / sizeof((V){0}[0]) };                                                \
        type best = at ? out[-1] : x[0];                                                           \
        int64_t place = at ? index[-1] : 0;                                                        \
        for (int64_t k = 0, end; k < n; k = end) {                                                 \
            end = n - k < N ? n : k + N;                                                           \
            if (end == k + N) {                                                                    \
                V v = LOAD(x + k), b = V##_set(GET(best));                                         \
                if (!vd_any(((vl)(v better b) | (vl)(v != v)) != 0)) {                             \
                    for (int64_t i = k; i < k + N; i++)                                            \
                        out[i] = best;                                                             \
                    for (int64_t i = k; i < k + N; i++)                                            \
                        index[i] = place;                                                          \
                    continue;                                                                      \
                }                                                                                  \
            }                                                                                      \
            for (int64_t i = k; i < end; i++) {                                                    \
                bool taken = GET(x[i]) better GET(best) || GET(x[i]) != GET(x[i]);                 \
                best = taken ? x[i] : best;                                                        \
                place = taken ? at + i : place;                                                    \
                out[i] = best;                                                                     \
                index[i] = place;                                                                  \
            }                                                                                      \
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
#define DEFINE_STEPS(type, GET, V, LOAD)                                                           \
    DEFINE_STEP(type##_largest, type, >=, GET)                                                     \
    DEFINE_STEP(type##_smallest, type, <=, GET)                                                    \
    DEFINE_LINE(type##_largest_few_line, type, >=, GET, V, LOAD)                                   \
    DEFINE_LINE(type##_smallest_few_line, type, <=, GET, V, LOAD)                                  \
    DEFINE_FEW(type##_largest_few, type, >=, GET)                                                  \
    DEFINE_FEW(type##_smallest_few, type, <=, GET)
DEFINE_STEPS(uint8_t, SAME, vb, vb_load)
DEFINE_STEPS(int8_t, SAME, vc, vc_load)
DEFINE_STEPS(int16_t, SAME, vs, vs_load)
DEFINE_STEPS(int32_t, SAME, vi, vi_load)
DEFINE_STEPS(int64_t, SAME, vl, vl_load)
DEFINE_STEPS(td_half, half_get, vf, vf_load_halves)
DEFINE_STEPS(td_bfloat, td_bfloat_to_float, vf, vf_load_bfloats)
DEFINE_STEPS(float, SAME, vf, vf_load)
DEFINE_STEPS(double, SAME, vd, vd_load)

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
};
