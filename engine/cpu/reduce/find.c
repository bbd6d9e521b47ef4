/* find.c: where the extremes are: argmax, argmin, max and min along a dim, on the CPU. Equal
 * elements and NaN go by the first place. Knows nothing of gradients. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/by_size.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/reduction.h"

#include <string.h>

enum {
    PIECE = 64 * 1024,     /* elements of a piece of one long row */
    STRETCH = 4096 * 1024, /* elements looked at without a look at the interrupt flag */
    COLUMNS = 64,          /* that one thread takes together */
    TILE = 16 * 1024,      /* bytes of them together */
    NARROW = 32,           /* columns that are few for a vector... */
    WIDE = 128             /* and that are looked at together then */
};

typedef struct find_job {
    td_reduction plan;
    const char *x;
    size_t itemsize;
    td_dtype dtype;
    bool least, by_columns;
    td_tensor *index, *values; /* values may be NULL */
    int64_t piece_len, *candidates;
} find_job;

static td_reduce_find_fn finder(const find_job *j) {
    return j->least ? td_cpu->reduce->find_min[j->dtype] : td_cpu->reduce->find_max[j->dtype];
}

/* Is the element at `later` better than the one before it, at `best`? */
static bool is_better(const find_job *j, const char *later, const char *best) {
    _Alignas(8) char pair[16];
    memcpy(pair, best, j->itemsize);
    memcpy(pair + j->itemsize, later, j->itemsize);
    return finder(j)(pair, 2, 1) == 1;
}

/* The best of each of n rows that lie side by side, of at most STRETCH elements. */
static void find_together(const find_job *j, const char *x, int64_t count, int64_t n,
                          int64_t *index) {
    (j->least ? td_cpu->reduce->find_min_columns : td_cpu->reduce->find_max_columns)[j->dtype](
        index, x, count, j->plan.reduced_strides[0], n);
}

/* The same of few rows without a gap between one element's and the next's: these are looked at as
 * `folds` times as many, and the best of each is the best of its folds'. */
static void find_folded(const find_job *j, const char *x, int64_t count, int64_t n,
                        int64_t *index) {
    int64_t folds = WIDE / n, each = count / folds, part[WIDE];
    int64_t size = (int64_t)j->itemsize;
    (j->least ? td_cpu->reduce->find_min_columns
              : td_cpu->reduce->find_max_columns)[j->dtype](part, x, each, n * folds, n * folds);
    for (int64_t k = 0; k < n; k++) {
        int64_t best = part[k] * folds;
        for (int64_t f = 1; f < folds; f++) {
            int64_t at = part[f * n + k] * folds + f;
            int64_t first = at < best ? at : best, later = at < best ? best : at;
            best = is_better(j, x + (later * n + k) * size, x + (first * n + k) * size) ? later
                                                                                        : first;
        }
        for (int64_t at = each * folds; at < count; at++)
            if (is_better(j, x + (at * n + k) * size, x + (best * n + k) * size))
                best = at;
        index[k] = best;
    }
}

/* The best of each of n rows that lie side by side. */
static void find_columns(const find_job *j, const char *x, int64_t n, int64_t *index) {
    int64_t count = j->plan.count, stride = j->plan.reduced_strides[0], part[TD_REDUCE_WIDTH];
    int64_t size = (int64_t)j->itemsize, most = 1 + STRETCH / n;
    bool folded = stride == n && n <= NARROW && count * n >= TD_LIMIT(FIND_FOLDED);
    for (int64_t at = 0; at < count && !(at && td_interrupt_requested()); at += most) {
        int64_t len = count - at < most ? count - at : most;
        (folded && len * n >= TD_LIMIT(FIND_FOLDED) ? find_folded : find_together)(
            j, x + at * stride * size, len, n, at ? part : index);
        for (int64_t k = 0; k < n && at; k++)
            if (is_better(j, x + ((at + part[k]) * stride + k) * size,
                          x + (index[k] * stride + k) * size))
                index[k] = at + part[k];
    }
}

static int64_t find_row(const find_job *j, const char *row) {
    int64_t count = j->plan.count, step = j->plan.reduced_strides[0] * (int64_t)j->itemsize;
    int64_t best = finder(j)(row, count < STRETCH ? count : STRETCH, j->plan.reduced_strides[0]);
    for (int64_t at = STRETCH; at < count && !td_interrupt_requested(); at += STRETCH) {
        int64_t len = count - at < STRETCH ? count - at : STRETCH;
        int64_t found = at + finder(j)(row + at * step, len, j->plan.reduced_strides[0]);
        if (is_better(j, row + found * step, row + best * step))
            best = found;
    }
    return best;
}

/* Of so many short rows, which are turned for that. */
static void find_short(const find_job *j, const char *x, int64_t row_stride, int64_t rows,
                       int64_t *index) {
    _Alignas(64) char tile[TILE];
    int64_t count = j->plan.count, size = (int64_t)j->itemsize, most = TILE / (count * size);
    for (int64_t k = 0; k < rows; k += most) {
        int64_t n = rows - k < most ? rows - k : most;
        td_cpu_turn(tile, n, x + k * row_stride * size, row_stride, count, n, j->itemsize);
        (j->least ? td_cpu->reduce->find_min_columns
                  : td_cpu->reduce->find_max_columns)[j->dtype](index + k, tile, count, n, n);
    }
}

/* The elements at the places that were found, of n rows. */
static void put_values(const find_job *j, char *out, int64_t out_stride, const char *x,
                       int64_t row_stride, const int64_t *index, int64_t n) {
    int64_t stride = j->plan.reduced_strides[0];
#define MOVE(type)                                                                                 \
    type *to = (type *)(void *)out;                                                                \
    const type *from = (const type *)(const void *)x;                                              \
    for (int64_t k = 0; k < n; k++)                                                                \
        to[k * out_stride] = from[k * row_stride + index[k] * stride];
    TD_BY_SIZE(j->itemsize, MOVE);
#undef MOVE
}

static void find_outputs(void *ctx, int64_t begin, int64_t end, int worker) {
    const find_job *j = ctx;
    const td_reduction *p = &j->plan;
    int64_t stride = p->reduced_strides[0], row_stride = p->kept_strides[p->nkept - 1];
    int64_t size = (int64_t)j->itemsize, index[TD_REDUCE_WIDTH];
    (void)worker;
    while (begin < end && !td_interrupt_requested()) {
        int64_t limit = end - begin < TD_REDUCE_WIDTH ? end : begin + TD_REDUCE_WIDTH;
        td_segment kept = td_reduction_kept(p, begin, limit);
        const char *x = j->x + kept.offset * size;
        int64_t out_stride = p->out_strides[p->nkept - 1];
        int64_t *out = (int64_t *)j->index->data + kept.out_offset;
        if (j->by_columns)
            find_columns(j, x, kept.len, index);
        else if (stride == 1 && p->count <= TD_LIMIT(FIND_SHORT) && kept.len >= TD_LIMIT(FIND_ROWS))
            find_short(j, x, row_stride, kept.len, index);
        else
            for (int64_t k = 0; k < kept.len; k++)
                index[k] = find_row(j, x + k * row_stride * size);
        for (int64_t k = 0; k < kept.len; k++)
            out[k * out_stride] = index[k];
        if (j->values)
            put_values(j, (char *)j->values->data + kept.out_offset * size, out_stride, x,
                       row_stride, index, kept.len);
        begin += kept.len;
    }
}

/* Neighbouring columns are an item. */
static void find_in_columns(void *ctx, int64_t begin, int64_t end, int worker) {
    const find_job *j = ctx;
    int64_t last = end * COLUMNS < j->plan.outputs ? end * COLUMNS : j->plan.outputs;
    find_outputs(ctx, begin * COLUMNS, last, worker);
}

static void find_pieces(void *ctx, int64_t begin, int64_t end, int worker) {
    const find_job *j = ctx;
    int64_t stride = j->plan.reduced_strides[0];
    (void)worker;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t from = piece * j->piece_len, len = j->plan.count - from;
        if (len > j->piece_len)
            len = j->piece_len;
        const char *x = j->x + from * stride * (int64_t)j->itemsize;
        j->candidates[piece] = from + finder(j)(x, len, stride);
    }
}

/* One long row: the best of each piece, then the first best of these. */
static td_status find_in_row(find_job *j) {
    int64_t stride = j->plan.reduced_strides[0], pieces = (j->plan.count - 1) / PIECE + 1;
    unsigned char *best = td_malloc((size_t)pieces * (sizeof(int64_t) + j->itemsize));
    if (!best)
        return td_fail(TD_ENOMEM, "out of memory for partial results");
    j->candidates = (int64_t *)(void *)best;
    best += (size_t)pieces * sizeof(int64_t);
    j->piece_len = PIECE;
    td_status status = td_parallel_for(pieces, 2 * PIECE, find_pieces, j);
    if (status == TD_OK) {
        for (int64_t k = 0; k < pieces; k++)
            memcpy(best + (size_t)k * j->itemsize,
                   j->x + j->candidates[k] * stride * (int64_t)j->itemsize, j->itemsize);
        int64_t found = finder(j)(best, pieces, 1);
        *(int64_t *)j->index->data = j->candidates[found];
        if (j->values)
            memcpy(j->values->data, best + (size_t)found * j->itemsize, j->itemsize);
    }
    td_free(j->candidates);
    return status;
}

td_status td_cpu_find(const td_find_plan *plan) {
    td_tensor *x = NULL;
    td_status status = TD_OK;
    if (plan->mask & (plan->mask - 1)) /* over several dims: places count in row-major order */
        TD_TRY(td_contiguous(plan->x, &x));
    else
        x = td_retain(plan->x);
    find_job j = {.x = x->data,
                  .itemsize = td_tensor_itemsize(x),
                  .dtype = (td_dtype)x->dtype,
                  .least = plan->least,
                  .index = plan->index,
                  .values = plan->values};
    if (!finder(&j)) {
        status = td_cpu_lacks(j.dtype);
        goto done;
    }
    td_reduction_plan(x, plan->mask, plan->index, &j.plan);
    int64_t stride = j.plan.reduced_strides[0], count = j.plan.count;
    j.by_columns = j.plan.kept_strides[j.plan.nkept - 1] == 1 && stride != 1 && count <= INT32_MAX;
    if (count == 1 && j.index->contiguous && !j.values)
        memset(j.index->data, 0, (size_t)j.index->numel * sizeof(int64_t));
    else if (j.plan.outputs == 1 && count >= 2 * PIECE)
        status = find_in_row(&j);
    else if (j.by_columns)
        status = td_parallel_for((j.plan.outputs + COLUMNS - 1) / COLUMNS, 2 * count * COLUMNS,
                                 find_in_columns, &j);
    else
        status = td_parallel_for(j.plan.outputs, 2 * count, find_outputs, &j);
    if (status == TD_OK)
        status = td_interrupt_check(); /* a single item may have left early */
done:
    td_release(x);
    return status;
}
