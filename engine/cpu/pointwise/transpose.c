/* transpose.c: copies between tensors of different fastest dims, block by block, so that the lines
 * read and the rows written both stay in a cache. */
#include "engine/cpu/pointwise/transpose.h"

#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/ops/make/copy.h"

/* Blocks are so many bytes of lines of x, and of rows of the result. */
enum { BLOCK_ROWS = 256, BLOCK_COLUMNS = 128, CHUNK = 1024 /* columns */ };
enum { NEAR = 4 }; /* elements that lie as far apart are found by vectors at once */

typedef struct transpose_job {
    const char *x;
    char *out;
    size_t size;
    int64_t rows, columns; /* of the matrices: x runs along rows, out along columns */
    int64_t x_step, out_step;
    int64_t strips, chunks; /* blocks of rows in a matrix, and of CHUNK columns */
    int nouter;             /* the other dims */
    int64_t outer_sizes[TD_MAX_DIMS], x_outer[TD_MAX_DIMS], out_outer[TD_MAX_DIMS];
} transpose_job;

/* The dim along which x runs, when it is not the last; -1. */
static int fast_dim(const td_tensor *x) {
    for (int d = 0; d < x->ndim - 1; d++)
        if (x->strides[d] == 1 && x->sizes[d] > 1)
            return d;
    return -1;
}

bool td_cpu_is_transpose(const td_tensor *out, const td_tensor *x) {
    const int last = x->ndim - 1, d = fast_dim(x);
    if (d < 0 || x->dtype != out->dtype || !td_tensor_same_shape(out, x))
        return false;
    return out->strides[last] == 1 && x->sizes[last] > 1 && x->strides[last] > 1;
}

void td_cpu_turn(void *out, int64_t out_step, const void *x, int64_t x_step, int64_t rows,
                 int64_t columns, size_t size) {
    td_cpu->turn->turn(out, out_step, x, x_step, rows, columns, size);
}

/* Lines that lie among each other: the columns of one after the other, which are in the first-level
 * cache from the first on. */
static void transpose_near(const transpose_job *j, int64_t x_at, int64_t out_at, int64_t rows,
                           int64_t column, int64_t end) {
    const char *x = j->x + (size_t)(x_at + column * j->x_step) * j->size;
    char *out = j->out + (size_t)(out_at + column) * j->size;
    for (int64_t r = 0; r < rows; r++)
        td_cpu->pointwise->every(out + (size_t)(r * j->out_step) * j->size, x + (size_t)r * j->size,
                                 j->x_step, end - column, j->size);
}

static void transpose_strips(void *ctx, int64_t begin, int64_t end, int worker) {
    const transpose_job *j = ctx;
    const int64_t most = BLOCK_ROWS / (int64_t)j->size, step = BLOCK_COLUMNS / (int64_t)j->size;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item % j->strips * most, matrix = item / j->strips / j->chunks;
        int64_t first = item / j->strips % j->chunks * CHUNK;
        int64_t end_column = j->columns - first < CHUNK ? j->columns : first + CHUNK;
        int64_t x_at = row, out_at = row * j->out_step;
        for (int d = j->nouter - 1; d >= 0; d--) {
            int64_t k = matrix % j->outer_sizes[d];
            matrix /= j->outer_sizes[d];
            x_at += k * j->x_outer[d];
            out_at += k * j->out_outer[d];
        }
        int64_t rows = j->rows - row < most ? j->rows - row : most;
        if (j->x_step <= NEAR) {
            transpose_near(j, x_at, out_at, rows, first, end_column);
            continue;
        }
        for (int64_t column = first; column < end_column; column += step) {
            int64_t columns = end_column - column < step ? end_column - column : step;
            const char *x = j->x + (size_t)(x_at + column * j->x_step) * j->size;
            char *out = j->out + (size_t)(out_at + column) * j->size;
            td_cpu->turn->turn(out, j->out_step, x, j->x_step, rows, columns, j->size);
        }
    }
}

td_status td_cpu_transpose(td_tensor *out, const td_tensor *x) {
    int last = x->ndim - 1, fast = fast_dim(x);
    transpose_job j = {.x = x->data,
                       .out = out->data,
                       .size = td_tensor_itemsize(x),
                       .rows = x->sizes[fast],
                       .columns = x->sizes[last],
                       .x_step = x->strides[last],
                       .out_step = out->strides[fast]};
    int64_t matrices = 1;
    while (last > 0 && last - 1 != fast && x->strides[last - 1] == j.columns * j.x_step &&
           out->strides[last - 1] == j.columns) {
        last--; /* the next dim goes on where this one ends, as it does in the result */
        j.columns *= x->sizes[last];
    }
    for (int d = 0; d < last; d++) {
        if (d == fast)
            continue;
        j.outer_sizes[j.nouter] = x->sizes[d];
        j.x_outer[j.nouter] = x->strides[d];
        j.out_outer[j.nouter++] = out->strides[d];
        matrices *= x->sizes[d];
    }
    const int64_t most = BLOCK_ROWS / (int64_t)j.size;
    j.strips = (j.rows + most - 1) / most;
    j.chunks = (j.columns + CHUNK - 1) / CHUNK;
    int64_t columns = j.columns < CHUNK ? j.columns : CHUNK;
    return td_parallel_for(matrices * j.strips * j.chunks, most * columns, transpose_strips, &j);
}

/* ---- by way of a row-major copy ---- */

bool td_cpu_turns_first(const td_tensor *out, const td_tensor *x) {
    int64_t inner = 0; /* stride of out in the dim behind */
    bool along = false, first = true;
    if (x->ndim < 2 || x->numel < TD_LIMIT(TRANSPOSE_FIRST) || x->dtype != out->dtype ||
        !td_tensor_same_shape(out, x))
        return false;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (x->sizes[d] == 1)
            continue;
        if (out->strides[d] <= inner || (first && x->strides[d] <= 1))
            return false;
        along |= x->strides[d] == 1;
        inner = out->strides[d];
        first = false;
    }
    return along;
}

static td_status without_ones(const td_tensor *x, td_tensor **view) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int ndim = 0;
    for (int d = 0; d < x->ndim; d++)
        if (x->sizes[d] != 1) {
            sizes[ndim] = x->sizes[d];
            strides[ndim++] = x->strides[d];
        }
    return td_tensor_view((td_tensor *)x, ndim, sizes, strides, 0, view);
}

td_status td_cpu_turn_first(td_tensor *out, const td_tensor *x) {
    td_tensor *to = NULL, *from = NULL, *turned = NULL;
    td_status status = TD_OK;
    TD_TRY(without_ones(out, &to));
    TD_TRY(without_ones(x, &from));
    if (td_cpu_is_transpose(to, from)) {
        status = td_cpu_transpose(to, from);
        goto done;
    }
    TD_TRY(td_contiguous(from, &turned));
    status = td_copy_into(to, turned);
done:
    td_release(to);
    td_release(from);
    td_release(turned);
    return status;
}
