/* shape.c: triangles, and sums into overlapping views, on the CPU. */
#include "engine/ops/shape.h"

#include "engine/core/threads.h"
#include "engine/ops/copy.h"

#include <string.h>

/* ---- triangles ---- */

typedef struct band_job {
    char *out;
    int64_t rows, columns, first, last;
    size_t size;
} band_job;

/* Zero what lies outside the band in rows [begin, end) of all matrices. */
static void clear_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const band_job *j = ctx;
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        int64_t r = row % j->rows, from = 0, to = j->columns;
        if (j->first > -j->rows) /* first kept column: r + first */
            from = r + (j->first < j->columns ? j->first : j->columns);
        if (j->last < j->columns)
            to = r + (j->last > -j->rows ? j->last : -j->rows) + 1;
        from = from < 0 ? 0 : from > j->columns ? j->columns : from;
        to = to < from ? from : to > j->columns ? j->columns : to;
        char *line = j->out + (size_t)(row * j->columns) * j->size;
        memset(line, 0, (size_t)from * j->size);
        memset(line + (size_t)to * j->size, 0, (size_t)(j->columns - to) * j->size);
    }
}

td_status td_cpu_band(const td_tensor *x, int64_t first, int64_t last, td_tensor *out) {
    td_status status = out->data == x->data ? TD_OK : td_copy_into(out, x);
    if (status || out->numel == 0)
        return status;
    band_job j = {.out = out->data,
                  .rows = out->sizes[out->ndim - 2],
                  .columns = out->sizes[out->ndim - 1],
                  .first = first,
                  .last = last,
                  .size = td_tensor_itemsize(out)};
    return td_parallel_for(out->numel / j.columns, 1 + 16384 / j.columns, clear_rows, &j);
}

/* ---- sums into views ---- */

#define DEFINE_ADD(type)                                                                           \
    static void add_##type(type *x, const type *g, int ndim, const int64_t *sizes,                 \
                           const int64_t *strides, int64_t n) {                                    \
        int64_t at[TD_MAX_DIMS] = {0}, offset = 0;                                                 \
        for (int64_t k = 0; k < n; k++) {                                                          \
            x[offset] += g[k];                                                                     \
            for (int d = ndim - 1; d >= 0; d--) {                                                  \
                offset += strides[d];                                                              \
                if (++at[d] < sizes[d])                                                            \
                    break;                                                                         \
                offset -= strides[d] * sizes[d];                                                   \
                at[d] = 0;                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_ADD(float)
DEFINE_ADD(double)

td_status td_cpu_add_strided(td_tensor *x, const td_tensor *g, const int64_t *strides,
                             int64_t offset) {
    td_tensor *packed = NULL;
    if (!td_dtype_is_float((td_dtype)x->dtype))
        return td_fail(TD_EDTYPE, "not for %s", td_dtype_name((td_dtype)x->dtype));
    td_status status = td_contiguous_as((td_tensor *)g, (td_dtype)x->dtype, &packed);
    if (status)
        return status;
    if (x->dtype == TD_F32)
        add_float((float *)x->data + offset, packed->data, g->ndim, g->sizes, strides, g->numel);
    else
        add_double((double *)x->data + offset, packed->data, g->ndim, g->sizes, strides, g->numel);
    td_release(packed);
    return TD_OK;
}
