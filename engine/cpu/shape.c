/* shape.c: triangles, and sums into overlapping views, on the CPU. */
#include "engine/ops/shape.h"

#include "engine/core/threads.h"
#include "engine/cpu/sums.h"
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

#define DEFINE_ADD(NAME, type, SUM)                                                                \
    static void add_##NAME(void *to, const void *from, int64_t offset, const td_tensor *g,         \
                           const int64_t *strides) {                                               \
        int64_t at[TD_MAX_DIMS] = {0};                                                             \
        type *x = (type *)to + offset;                                                             \
        const type *v = from;                                                                      \
        for (int64_t k = 0; k < g->numel; k++) {                                                   \
            *x = SUM(*x, v[k]);                                                                    \
            for (int d = g->ndim - 1; d >= 0; d--) {                                               \
                x += strides[d];                                                                   \
                if (++at[d] < g->sizes[d])                                                         \
                    break;                                                                         \
                x -= strides[d] * g->sizes[d];                                                     \
                at[d] = 0;                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
TD_SUMS(DEFINE_ADD)

typedef void (*add_fn)(void *to, const void *from, int64_t offset, const td_tensor *g,
                       const int64_t *strides);

#define ROW(NAME, type, SUM) [TD_##NAME] = add_##NAME,
static const add_fn add_functions[TD_DTYPE_COUNT] = {TD_SUMS(ROW)};
#undef ROW

td_status td_cpu_add_strided(td_tensor *x, const td_tensor *g, const int64_t *strides,
                             int64_t offset) {
    td_tensor *packed = NULL;
    td_status status = td_contiguous_as((td_tensor *)g, (td_dtype)x->dtype, &packed);
    if (status)
        return status;
    add_functions[x->dtype](x->data, packed->data, offset, g, strides);
    td_release(packed);
    return TD_OK;
}
