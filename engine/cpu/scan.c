/* scan.c: cumulative sums on the CPU. Floats are summed in double whatever the dtype. Knows nothing
 * of gradients. */
#include "engine/ops/reduce.h"

#include "engine/core/threads.h"
#include "engine/ops/copy.h"

enum { GRAIN = 16 * 1024, WIDTH = 256 };

typedef struct scan {
    const void *x; /* row-major outer x n x inner, of the result's dtype */
    void *out;
    int64_t n, inner, strips; /* strips: parts of WIDTH that `inner` is cut into */
} scan;

#define DEFINE_SCAN(type, sum)                                                                     \
    static void scan_row_##type(const type *x, type *out, int64_t n) {                             \
        sum total = 0;                                                                             \
        for (int64_t k = 0; k < n; k++) {                                                          \
            total += (sum)x[k];                                                                    \
            out[k] = (type)total;                                                                  \
        }                                                                                          \
    }                                                                                              \
    static void scan_columns_##type(const type *x, type *out, int64_t n, int64_t stride,           \
                                    int64_t columns) {                                             \
        sum total[WIDTH] = {0};                                                                    \
        for (int64_t k = 0; k < n; k++, x += stride, out += stride)                                \
            for (int64_t c = 0; c < columns; c++) {                                                \
                total[c] += (sum)x[c];                                                             \
                out[c] = (type)total[c];                                                           \
            }                                                                                      \
    }                                                                                              \
    static void scan_##type(void *ctx, int64_t begin, int64_t end, int worker) {                   \
        const scan *s = ctx;                                                                       \
        const type *x = s->x;                                                                      \
        type *out = s->out;                                                                        \
        (void)worker;                                                                              \
        for (int64_t item = begin; item < end; item++) {                                           \
            int64_t column = item % s->strips * WIDTH, left = s->inner - column;                   \
            int64_t at = item / s->strips * s->n * s->inner + column;                              \
            if (s->inner == 1)                                                                     \
                scan_row_##type(x + at, out + at, s->n);                                           \
            else                                                                                   \
                scan_columns_##type(x + at, out + at, s->n, s->inner,                              \
                                    left < WIDTH ? left : WIDTH);                                  \
        }                                                                                          \
    }
DEFINE_SCAN(float, double)
DEFINE_SCAN(double, double)
DEFINE_SCAN(int64_t, uint64_t)
DEFINE_SCAN(int32_t, uint64_t)
DEFINE_SCAN(uint8_t, uint64_t)

static td_range_fn scan_function(td_dtype dtype) {
    switch (dtype) {
    case TD_F32:
        return scan_float;
    case TD_F64:
        return scan_double;
    case TD_I64:
        return scan_int64_t;
    case TD_I32:
        return scan_int32_t;
    case TD_U8:
        return scan_uint8_t;
    default:
        return NULL;
    }
}

td_status td_cpu_cumsum(td_call *call) {
    td_tensor *x = NULL, *result = NULL, *out = call->out[0];
    td_status status = TD_OK;
    int dim;
    TD_TRY(td_wrap_dim(call->args[1].i, out->ndim, &dim));
    TD_TRY(td_contiguous_as(call->args[0].tensor, out->dtype, &x));
    if (out->contiguous && (out->storage != x->storage || out->data == x->data))
        result = td_retain(out);
    else
        TD_TRY(td_tensor_empty(out->dtype, TD_DEVICE_CPU, out->ndim, out->sizes, &result));
    td_range_fn fn = scan_function(out->dtype);
    if (!fn)
        status = td_fail(TD_EDTYPE, "not implemented for %s", td_dtype_name(out->dtype));
    if (fn && out->numel > 0) {
        scan s = {.x = x->data, .out = result->data, .n = 1, .inner = 1};
        int64_t outer = 1;
        for (int d = 0; d < out->ndim; d++)
            *(d < dim ? &outer : d == dim ? &s.n : &s.inner) *= out->sizes[d];
        s.strips = (s.inner + WIDTH - 1) / WIDTH;
        int64_t work = s.n * (s.inner < WIDTH ? s.inner : WIDTH);
        TD_TRY(td_parallel_for(outer * s.strips, work < GRAIN ? GRAIN / work : 1, fn, &s));
    }
    if (status == TD_OK && result != out)
        status = td_copy_into(out, result);
done:
    td_release(result);
    td_release(x);
    return status;
}
