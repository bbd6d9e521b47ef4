/* transpose.c: copies that exchange the fast dim, block by block. */
#include "engine/cpu/transpose.h"

#include "engine/core/threads.h"
#include "engine/cpu/by_size.h"

#include <string.h>

enum { BLOCK = 32, SMALLEST = 4096 };

typedef struct transpose_job {
    const char *x;
    char *out;
    size_t size;
    int64_t rows, columns; /* of the matrices: x runs along rows, out along columns */
    int64_t x_step, out_step;
    int64_t strips; /* blocks of rows in a matrix */
    int nouter;     /* the other dims */
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
    if (x->ndim < 2 || x->numel < SMALLEST || x->dtype != out->dtype || !out->contiguous ||
        !td_tensor_same_shape(out, x))
        return false;
    int last = x->ndim - 1, d = fast_dim(x);
    return d >= 0 && x->sizes[last] > 1 && x->strides[last] > 1;
}

/* By way of a buffer: lines a power of two apart would push one another out of the cache if they
 * were written an element at a time. */
#define DEFINE_BLOCK(type)                                                                         \
    static void block_##type(type *restrict out, const type *restrict x, int64_t rows,             \
                             int64_t columns, int64_t x_step, int64_t out_step) {                  \
        type buffer[BLOCK][BLOCK + 1];                                                             \
        for (int64_t c = 0; c < columns; c++)                                                      \
            for (int64_t r = 0; r < rows; r++)                                                     \
                buffer[r][c] = x[r + c * x_step];                                                  \
        for (int64_t r = 0; r < rows; r++)                                                         \
            memcpy(out + r * out_step, buffer[r], (size_t)columns * sizeof(type));                 \
    }
DEFINE_BLOCK(uint8_t)
DEFINE_BLOCK(uint16_t)
DEFINE_BLOCK(uint32_t)
DEFINE_BLOCK(uint64_t)

static void transpose_strips(void *ctx, int64_t begin, int64_t end, int worker) {
    const transpose_job *j = ctx;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item % j->strips * BLOCK, matrix = item / j->strips;
        int64_t x_at = row, out_at = row * j->out_step;
        for (int d = j->nouter - 1; d >= 0; d--) {
            int64_t k = matrix % j->outer_sizes[d];
            matrix /= j->outer_sizes[d];
            x_at += k * j->x_outer[d];
            out_at += k * j->out_outer[d];
        }
        int64_t rows = j->rows - row < BLOCK ? j->rows - row : BLOCK;
        for (int64_t column = 0; column < j->columns; column += BLOCK) {
            int64_t columns = j->columns - column < BLOCK ? j->columns - column : BLOCK;
            const char *x = j->x + (size_t)(x_at + column * j->x_step) * j->size;
            char *out = j->out + (size_t)(out_at + column) * j->size;
#define MOVE(type)                                                                                 \
    block_##type((type *)(void *)out, (const type *)(const void *)x, rows, columns, j->x_step,     \
                 j->out_step);
            TD_BY_SIZE(j->size, MOVE);
#undef MOVE
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
    for (int d = 0; d < last; d++) {
        if (d == fast)
            continue;
        j.outer_sizes[j.nouter] = x->sizes[d];
        j.x_outer[j.nouter] = x->strides[d];
        j.out_outer[j.nouter++] = out->strides[d];
        matrices *= x->sizes[d];
    }
    j.strips = (j.rows + BLOCK - 1) / BLOCK;
    return td_parallel_for(matrices * j.strips, BLOCK * j.columns, transpose_strips, &j);
}
