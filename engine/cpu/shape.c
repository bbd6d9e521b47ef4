/* shape.c: triangles, and sums into overlapping views, on the CPU. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/sums.h"
#include "engine/ops/copy.h"

#include <string.h>

/* ---- triangles ---- */

typedef struct band_job {
    const td_band_plan *plan;
    int64_t rows, columns, stride; /* of columns, in bytes */
    size_t size;
} band_job;

static int64_t within(int64_t v, int64_t low, int64_t high) {
    return v < low ? low : v > high ? high : v;
}

/* The first byte of a row of the matrices, counted through all of them. */
static char *row_of(const td_tensor *x, int64_t row) {
    char *at = x->data;
    for (int d = x->ndim - 2; d >= 0; d--) {
        at += row % x->sizes[d] * x->strides[d] * (int64_t)td_tensor_itemsize(x);
        row /= x->sizes[d];
    }
    return at;
}

static void clear(const band_job *j, char *row, int64_t from, int64_t to) {
    if (j->stride == (int64_t)j->size) {
        memset(row + from * j->stride, 0, (size_t)(to - from) * j->size);
        return;
    }
    for (int64_t c = from; c < to; c++)
        memset(row + c * j->stride, 0, j->size);
}

/* Zero what lies outside the band in rows [begin, end) of all matrices. */
static void clear_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const band_job *j = ctx;
    int64_t first = within(j->plan->first, -j->rows, j->columns);
    int64_t last = within(j->plan->last, -j->rows, j->columns);
    (void)worker;
    for (int64_t row = begin; row < end; row++) {
        int64_t r = row % j->rows, from = within(r + first, 0, j->columns);
        int64_t to = within(r + last + 1, from, j->columns);
        char *line = row_of(j->plan->out, row);
        clear(j, line, 0, from);
        clear(j, line, to, j->columns);
    }
}

td_status td_cpu_band(const td_band_plan *plan) {
    td_tensor *out = plan->out;
    td_status status = out == plan->x ? TD_OK : td_copy_into(out, plan->x);
    if (status || out->numel == 0)
        return status;
    band_job j = {.plan = plan,
                  .rows = out->sizes[out->ndim - 2],
                  .columns = out->sizes[out->ndim - 1],
                  .size = td_tensor_itemsize(out)};
    j.stride = out->strides[out->ndim - 1] * (int64_t)j.size;
    return td_parallel_for(out->numel / j.columns, 4 * j.columns, clear_rows, &j);
}

/* ---- sums into views ---- */

enum { STRETCH = 64 * 1024 }; /* elements added without a look at the interrupt flag */

#define DEFINE_ADD(NAME, type, SUM)                                                                \
    static void add_##NAME(void *to, const void *from, int64_t offset, const td_tensor *g,         \
                           const int64_t *strides) {                                               \
        int64_t at[TD_MAX_DIMS] = {0}, end = 0;                                                    \
        type *x = (type *)to + offset;                                                             \
        const type *v = from;                                                                      \
        for (int64_t k = 0; k < g->numel; k++) {                                                   \
            if (k == end) {                                                                        \
                if (td_interrupt_requested())                                                      \
                    return;                                                                        \
                end += STRETCH;                                                                    \
            }                                                                                      \
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

td_status td_cpu_add_strided(const td_add_strided_plan *plan) {
    td_tensor *out = plan->out, *packed = NULL;
    td_status status = td_contiguous_as(plan->x, (td_dtype)out->dtype, &packed);
    if (status)
        return status;
    add_functions[out->dtype](out->data, packed->data, plan->offset, packed, plan->strides);
    td_release(packed);
    return td_interrupt_check();
}
