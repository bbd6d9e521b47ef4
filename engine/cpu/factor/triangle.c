/* triangle.c: triangles of matrices on the CPU. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/ops/make/copy.h"

#include <string.h>

typedef struct band_job {
    const td_tensor *out;
    const td_tensor *x; /* NULL: what lies in the band is there already */
    int64_t first, last;
    int64_t rows, columns, stride; /* of columns, in bytes */
    size_t size;
    bool dense; /* rows lie one behind the other, in x as well */
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

static void fill_row(const band_job *j, int64_t row, int64_t r) {
    int64_t from = within(r + j->first, 0, j->columns);
    int64_t to = within(r + j->last + 1, from, j->columns), at = from * (int64_t)j->size;
    char *line = row_of(j->out, row);
    clear(j, line, 0, from);
    if (j->x)
        memcpy(line + at, row_of(j->x, row) + at, (size_t)(to - from) * j->size);
    clear(j, line, to, j->columns);
}

/* Rows that follow this one, of a matrix whose rows lie one behind the other, and of which all or
 * nothing is in the band as of this one: 1 where the band ends within it. */
static int64_t fill_alike(const band_job *j, int64_t row, int64_t r, int64_t most) {
    int64_t end, bytes = j->columns * (int64_t)j->size;
    bool whole = r + j->first <= 0 && r + j->last + 1 >= j->columns;
    if (whole)
        end = 1 - j->first;
    else if (r + j->last < 0)
        end = -j->last;
    else if (r + j->first >= j->columns)
        end = j->rows;
    else
        return fill_row(j, row, r), 1;
    int64_t n = end - r < most ? end - r : most;
    if (!whole)
        memset(row_of(j->out, row), 0, (size_t)(n * bytes));
    else if (j->x)
        memcpy(row_of(j->out, row), row_of(j->x, row), (size_t)(n * bytes));
    return n;
}

/* Zero what lies outside the band in rows [begin, end) of all matrices, and put there what lies
 * within. */
static void fill_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const band_job *j = ctx;
    (void)worker;
    for (int64_t row = begin; row < end;) {
        int64_t r = row % j->rows, left = j->rows - r < end - row ? j->rows - r : end - row;
        if (j->dense)
            row += fill_alike(j, row, r, left);
        else
            fill_row(j, row++, r);
    }
}

/* ---- small matrices, one behind the other ---- */

/* Bytes of the matrices that are masked together. */
enum { MASK = 4096 };

/* Words of 8 bytes: the last one may be part of one. */
static void mask_bytes(char *out, const char *x, const char *mask, size_t bytes) {
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        uint64_t a, b;
        memcpy(&a, x + at, 8);
        memcpy(&b, mask + at, 8);
        a &= b;
        memcpy(out + at, &a, 8);
    }
    for (; at < bytes; at++)
        out[at] = (char)(x[at] & mask[at]);
}

typedef struct mask_job {
    char *out;
    const char *x, *mask;
    size_t bytes, all; /* of the mask, and of the tensor */
} mask_job;

static void mask_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const mask_job *j = ctx;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        size_t at = (size_t)item * j->bytes, left = j->all - at;
        mask_bytes(j->out + at, j->x + at, j->mask, left < j->bytes ? left : j->bytes);
    }
}

static td_status mask_matrices(const band_job *j, const td_tensor *x) {
    _Alignas(64) char mask[MASK];
    size_t row = (size_t)j->columns * j->size, one = row * (size_t)j->rows;
    mask_job job = {.out = j->out->data,
                    .x = x->data,
                    .mask = mask,
                    .bytes = MASK / one * one,
                    .all = (size_t)j->out->numel * j->size};
    memset(mask, 0, job.bytes);
    for (int64_t r = 0; r < j->rows; r++) {
        int64_t from = within(r + j->first, 0, j->columns);
        int64_t to = within(r + j->last + 1, from, j->columns);
        memset(mask + (size_t)r * row + (size_t)from * j->size, 0xff,
               (size_t)(to - from) * j->size);
    }
    for (size_t at = one; at < job.bytes; at += one)
        memcpy(mask + at, mask, one);
    return td_parallel_for((int64_t)((job.all + job.bytes - 1) / job.bytes),
                           (int64_t)(job.bytes / 8), mask_items, &job);
}

/* Rows [r, r + rows) and columns [c, c + columns) of matrices. */
static td_status box_of(const td_tensor *x, int64_t r, int64_t rows, int64_t c, int64_t columns,
                        td_tensor **box) {
    int64_t sizes[TD_MAX_DIMS];
    int last = x->ndim - 1;
    memcpy(sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim);
    sizes[last - 1] = rows;
    sizes[last] = columns;
    return td_tensor_view((td_tensor *)x, x->ndim, sizes, x->strides,
                          r * x->strides[last - 1] + c * x->strides[last], box);
}

/* x's elements in the rows and columns that the band crosses. */
static td_status copy_box(const band_job *j, const td_tensor *x) {
    int64_t r = within(-j->last, 0, j->rows), r_end = within(j->columns - j->first, r, j->rows);
    int64_t c = within(j->first, 0, j->columns), c_end = within(j->rows + j->last, c, j->columns);
    td_tensor *from = NULL, *to = NULL;
    td_status status = TD_OK;
    TD_TRY(box_of(x, r, r_end - r, c, c_end - c, &from));
    TD_TRY(box_of(j->out, r, r_end - r, c, c_end - c, &to));
    status = td_copy_into(to, from);
done:
    td_release(from);
    td_release(to);
    return status;
}

/* x seen with its last two dims in each other's place. */
static td_status turned(const td_tensor *x, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int last = x->ndim - 1;
    for (int d = 0; d <= last; d++) {
        int at = d < last - 1 ? d : 2 * last - 1 - d;
        sizes[d] = x->sizes[at];
        strides[d] = x->strides[at];
    }
    return td_tensor_view((td_tensor *)x, x->ndim, sizes, strides, 0, out);
}

static td_status fill_band(const td_tensor *out, const td_tensor *x, int64_t first, int64_t last) {
    int n = out->ndim;
    band_job j = {.out = out,
                  .rows = out->sizes[n - 2],
                  .columns = out->sizes[n - 1],
                  .size = td_tensor_itemsize(out)};
    td_status status = TD_OK;
    j.stride = out->strides[n - 1] * (int64_t)j.size;
    j.first = within(first, -j.rows, j.columns);
    j.last = within(last, -j.rows, j.columns);
    if (x && out->strides[n - 1] == 1 && x->strides[n - 1] == 1)
        j.x = x;
    else if (x)
        status = copy_box(&j, x);
    if (status)
        return status;
    j.dense = out->contiguous && (!j.x || x->contiguous);
    if (j.dense && out->ndim > 2 && j.rows * j.columns * (int64_t)j.size <= MASK / 2)
        return mask_matrices(&j, j.x ? x : out);
    return td_parallel_for(out->numel / j.columns, 4 * j.columns, fill_rows, &j);
}

/* Rows of the result are walked along, or columns where these lie side by side. */
td_status td_cpu_band(const td_band_plan *plan) {
    const td_tensor *out = plan->out, *x = out == plan->x ? NULL : plan->x;
    td_tensor *across = NULL, *from = NULL;
    td_status status = TD_OK;
    if (out->numel == 0)
        return TD_OK;
    if (x && x->storage == out->storage) { /* what is read may be written before */
        TD_TRY(td_copy_into(plan->out, plan->x));
        x = NULL;
    }
    if (out->strides[out->ndim - 2] >= out->strides[out->ndim - 1])
        return fill_band(out, x, plan->first, plan->last);
    TD_TRY(turned(out, &across));
    if (x)
        TD_TRY(turned(x, &from));
    status = fill_band(across, from, -within(plan->last, -INT64_MAX, INT64_MAX),
                       -within(plan->first, -INT64_MAX, INT64_MAX));
done:
    td_release(across);
    td_release(from);
    return status;
}
