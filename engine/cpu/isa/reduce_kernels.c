/* reduce_kernels.c: the reductions' loops for each element type, in this instruction set. */
#include "engine/cpu/isa/reduce_kernels.h"

#include "engine/cpu/isa/isa_symbol.h"
#include "engine/cpu/isa/vec.h"

/* Floats as doubles. */
typedef float half_vf __attribute__((vector_size(TD_VBYTES / 2)));

static inline vd widen_float(const float *x) {
    half_vf v;
    memcpy(&v, x, sizeof v);
    return __builtin_convertvector(v, vd);
}
static inline vd widen_double(const double *x) {
    return vd_load(x);
}

/* sum and the lanes of a, two by two. */
static inline vd vf_widen_add(vd sum, vf a) {
    float lanes[VF_N];
    vf_store(lanes, a);
    return sum + (widen_float(lanes) + widen_float(lanes + VD_N));
}
static inline vd vd_widen_add(vd sum, vd a) {
    return sum + a;
}

#define T float
#define V vf
#define N VF_N
#define P vf
#define I int32_t
#include "engine/cpu/isa/reduce_float_loops.h"

#define T double
#define V vd
#define N VD_N
#define P vd
#define I int64_t
#include "engine/cpu/isa/reduce_float_loops.h"

#define T int32_t
#define P vi
#define I int32_t
#include "engine/cpu/isa/reduce_int_loops.h"

#define T int64_t
#define P vl
#define I int64_t
#include "engine/cpu/isa/reduce_int_loops.h"

#define T uint8_t
#define P vb
#define I int32_t
#include "engine/cpu/isa/reduce_int_loops.h"

/* Products of floats grow in double: no overflow on the way to a result that fits. */

#define DEFINE_PROD(prefix, T)                                                                     \
    static double prefix##_prod_run(const T *x, int64_t n) {                                       \
        double total = 1;                                                                          \
        if (n >= 2 * VD_N) {                                                                       \
            vd a0 = widen_##T(x), a1 = widen_##T(x + VD_N);                                        \
            for (x += 2 * VD_N, n -= 2 * VD_N; n >= 2 * VD_N; x += 2 * VD_N, n -= 2 * VD_N) {      \
                a0 *= widen_##T(x);                                                                \
                a1 *= widen_##T(x + VD_N);                                                         \
            }                                                                                      \
            a0 *= a1;                                                                              \
            for (int k = 0; k < VD_N; k++)                                                         \
                total *= a0[k];                                                                    \
        }                                                                                          \
        for (; n > 0; n--, x++)                                                                    \
            total *= (double)*x;                                                                   \
        return total;                                                                              \
    }                                                                                              \
    static void prefix##_prod_rows(td_accumulator *acc, const void *data, int64_t rows,            \
                                   int64_t row_stride, int64_t n, int64_t stride,                  \
                                   const double *centers) {                                        \
        (void)centers;                                                                             \
        for (int64_t r = 0; r < rows; r++) {                                                       \
            const T *x = (const T *)data + r * row_stride;                                         \
            if (stride == 1) {                                                                     \
                acc[r].f *= prefix##_prod_run(x, n);                                               \
            } else {                                                                               \
                for (int64_t k = 0; k < n; k++)                                                    \
                    acc[r].f *= (double)x[k * stride];                                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void prefix##_prod_columns(td_accumulator *acc, const void *data, int64_t rows,         \
                                      int64_t row_stride, int64_t columns,                         \
                                      const double *centers) {                                     \
        const T *x = data;                                                                         \
        (void)centers;                                                                             \
        double part[TD_REDUCE_WIDTH];                                                              \
        for (int64_t c = 0; c < columns; c++)                                                      \
            part[c] = acc[c].f;                                                                    \
        for (; rows > 0; rows--, x += row_stride) {                                                \
            int64_t c = 0;                                                                         \
            for (; c + VD_N <= columns; c += VD_N)                                                 \
                vd_store(part + c, vd_load(part + c) * widen_##T(x + c));                          \
            for (; c < columns; c++)                                                               \
                part[c] *= (double)x[c];                                                           \
        }                                                                                          \
        for (int64_t c = 0; c < columns; c++)                                                      \
            acc[c].f = part[c];                                                                    \
    }
DEFINE_PROD(vf, float)
DEFINE_PROD(vd, double)

#define INTEGERS(name, form)                                                                       \
    [TD_BOOL] = vb_##name##form, [TD_U8] = vb_##name##form, [TD_I32] = vi_##name##form,            \
    [TD_I64] = vl_##name##form
#define FLOATS(name, form) [TD_F32] = vf_##name##form, [TD_F64] = vd_##name##form
#define REDUCERS(form)                                                                             \
    {                                                                                              \
        [TD_REDUCE_SUM] = {INTEGERS(sum, form), FLOATS(sum, form)},                                \
        [TD_REDUCE_NANSUM] = {INTEGERS(sum, form), FLOATS(nansum, form)},                          \
        [TD_REDUCE_ABS_SUM] = {FLOATS(abs_sum, form)},                                             \
        [TD_REDUCE_SQUARE_SUM] = {FLOATS(square_sum, form)},                                       \
        [TD_REDUCE_CENTERED] = {FLOATS(centered, form)},                                           \
        [TD_REDUCE_NONZERO] = {INTEGERS(nonzero, form), FLOATS(nonzero, form)},                    \
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
    .abs_pow_f32 = vf_abs_pow,
    .abs_pow_f64 = vd_abs_pow,
};
