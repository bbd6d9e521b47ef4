/* transpose.c: copies that exchange the fast dim, block by block. */
#include "engine/cpu/transpose.h"

#include "engine/core/threads.h"
#include "engine/cpu/by_size.h"
#include "engine/cpu/isa/isa.h"

#include <string.h>

enum { BLOCK = 32, CHUNK = 32 * BLOCK, SMALLEST = 4096, BYTES = 16 /* of a vector */ };
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
    if (x->ndim < 2 || x->numel < SMALLEST || x->dtype != out->dtype || !out->contiguous ||
        !td_tensor_same_shape(out, x))
        return false;
    int last = x->ndim - 1, d = fast_dim(x);
    return d >= 0 && x->sizes[last] > 1 && x->strides[last] > 1;
}

/* As many lines of x as a vector has elements become as many rows of the buffer: what lies half of
 * them apart is interleaved, until each has met each. */
#define DEFINE_SQUARE(type, LOW, HIGH)                                                             \
    static inline void square_##type(type *to, int64_t to_step, const type *x, int64_t x_step) {   \
        enum { N = BYTES / sizeof(type) };                                                         \
        typedef type vector __attribute__((vector_size(BYTES)));                                   \
        vector v[N], next[N];                                                                      \
        for (int k = 0; k < N; k++)                                                                \
            memcpy(&v[k], x + k * x_step, sizeof v[k]);                                            \
        for (int met = 1; met < N; met *= 2) {                                                     \
            for (int k = 0; k < N / 2; k++) {                                                      \
                next[2 * k] = __builtin_shufflevector(v[k], v[k + N / 2], LOW);                    \
                next[2 * k + 1] = __builtin_shufflevector(v[k], v[k + N / 2], HIGH);               \
            }                                                                                      \
            memcpy(v, next, sizeof v);                                                             \
        }                                                                                          \
        for (int k = 0; k < N; k++)                                                                \
            memcpy(to + k * to_step, &v[k], sizeof v[k]);                                          \
    }
#define LOW_2   0, 2
#define HIGH_2  1, 3
#define LOW_4   0, 4, 1, 5
#define HIGH_4  2, 6, 3, 7
#define LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
DEFINE_SQUARE(uint8_t, LOW_16, HIGH_16)
DEFINE_SQUARE(uint16_t, LOW_8, HIGH_8)
DEFINE_SQUARE(uint32_t, LOW_4, HIGH_4)
DEFINE_SQUARE(uint64_t, LOW_2, HIGH_2)

/* By way of a buffer: lines a power of two apart would push one another out of the cache if they
 * were written an element at a time. */
#define DEFINE_BLOCK(type)                                                                         \
    static void block_##type(type *restrict out, const type *restrict x, int64_t rows,             \
                             int64_t columns, int64_t x_step, int64_t out_step) {                  \
        enum { N = BYTES / sizeof(type), STEP = BLOCK + N };                                       \
        type buffer[BLOCK * STEP];                                                                 \
        for (int64_t r = 0; r < rows && columns < N; r++)                                          \
            for (int64_t c = 0; c < columns; c++)                                                  \
                out[r * out_step + c] = x[r + c * x_step];                                         \
        if (columns < N)                                                                           \
            return;                                                                                \
        int64_t whole_rows = rows / N * N, whole = columns / N * N;                                \
        for (int64_t c = 0; c < whole; c += N)                                                     \
            for (int64_t r = 0; r < whole_rows; r += N)                                            \
                square_##type(buffer + r * STEP + c, STEP, x + r + c * x_step, x_step);            \
        for (int64_t c = 0; c < columns; c++)                                                      \
            for (int64_t r = c < whole ? whole_rows : 0; r < rows; r++)                            \
                buffer[r * STEP + c] = x[r + c * x_step];                                          \
        for (int64_t r = 0; r < rows; r++)                                                         \
            memcpy(out + r * out_step, buffer + r * STEP, (size_t)columns * sizeof(type));         \
    }
DEFINE_BLOCK(uint8_t)
DEFINE_BLOCK(uint16_t)
DEFINE_BLOCK(uint32_t)
DEFINE_BLOCK(uint64_t)

/* Lines that are not so many that they would push one another out: without the buffer. */
#define DEFINE_TURN(type)                                                                          \
    static void turn_##type(type *restrict out, int64_t out_step, const type *restrict x,          \
                            int64_t x_step, int64_t rows, int64_t columns) {                       \
        enum { N = BYTES / sizeof(type) };                                                         \
        int64_t whole_rows = rows / N * N, whole = columns / N * N;                                \
        for (int64_t r = 0; r < whole_rows; r += N)                                                \
            for (int64_t c = 0; c < whole; c += N)                                                 \
                square_##type(out + r * out_step + c, out_step, x + r + c * x_step, x_step);       \
        for (int64_t r = whole_rows; r < rows; r++)                                                \
            for (int64_t c = 0; c < columns; c++)                                                  \
                out[r * out_step + c] = x[r + c * x_step];                                         \
        for (int64_t r = 0; r < whole_rows; r++)                                                   \
            for (int64_t c = whole; c < columns; c++)                                              \
                out[r * out_step + c] = x[r + c * x_step];                                         \
    }
DEFINE_TURN(uint8_t)
DEFINE_TURN(uint16_t)
DEFINE_TURN(uint32_t)
DEFINE_TURN(uint64_t)

void td_cpu_turn(void *out, int64_t out_step, const void *x, int64_t x_step, int64_t rows,
                 int64_t columns, size_t size) {
#define MOVE(type) turn_##type(out, out_step, x, x_step, rows, columns);
    TD_BY_SIZE(size, MOVE);
#undef MOVE
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
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item % j->strips * BLOCK, matrix = item / j->strips / j->chunks;
        int64_t first = item / j->strips % j->chunks * CHUNK;
        int64_t end_column = j->columns - first < CHUNK ? j->columns : first + CHUNK;
        int64_t x_at = row, out_at = row * j->out_step;
        for (int d = j->nouter - 1; d >= 0; d--) {
            int64_t k = matrix % j->outer_sizes[d];
            matrix /= j->outer_sizes[d];
            x_at += k * j->x_outer[d];
            out_at += k * j->out_outer[d];
        }
        int64_t rows = j->rows - row < BLOCK ? j->rows - row : BLOCK;
        if (j->x_step <= NEAR) {
            transpose_near(j, x_at, out_at, rows, first, end_column);
            continue;
        }
        for (int64_t column = first; column < end_column; column += BLOCK) {
            int64_t columns = end_column - column < BLOCK ? end_column - column : BLOCK;
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
    while (last > 0 && last - 1 != fast && x->strides[last - 1] == j.columns * j.x_step) {
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
    j.strips = (j.rows + BLOCK - 1) / BLOCK;
    j.chunks = (j.columns + CHUNK - 1) / CHUNK;
    int64_t columns = j.columns < CHUNK ? j.columns : CHUNK;
    return td_parallel_for(matrices * j.strips * j.chunks, BLOCK * columns, transpose_strips, &j);
}
