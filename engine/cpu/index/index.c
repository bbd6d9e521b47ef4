/* index.c: indexing with tensors on the CPU: reading and writing whole rows and single elements at
 * the places of a plan (ops/plan/plan.h). Knows nothing of masks and gradients. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/index/indices.h"
#include "engine/cpu/pointwise/by_size.h"
#include "engine/cpu/reduce/sums.h"

#include <string.h>

static td_status fail_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory");
}

/* How the k-th of the index tensors counts. */
static td_counting counting_of(const td_index_plan *p, int k) {
    return (td_counting){p->index_sizes[k], p->from_one >> k & 1};
}

enum {
    BLOCK = 1024,        /* offsets on the stack */
    FEW = 64,            /* places of a row that are not worth a call of their own */
    STRETCH = 64 * 1024, /* elements written without a look at the interrupt flag */
};

/* ---- offsets ---- */

typedef struct offsets_job {
    const td_index_plan *plan;
    int64_t *to;
    atomic_llong bad; /* one more than a place whose index is out of range; 0: none */
} offsets_job;

/* The offsets of n places from `begin` on. Returns the first place (from begin on) with an index
 * out of range, or n. */
static int64_t offsets_of(const td_index_plan *p, int64_t begin, int64_t n, int64_t *to) {
    if (p->nindexed == 0)
        memset(to, 0, (size_t)n * sizeof *to);
    for (int k = 0; k < p->nindexed; k++) {
        const int64_t *index = (const int64_t *)p->index[k]->data + begin;
        const td_counting counting = counting_of(p, k);
        int64_t stride = p->index_strides[k];
        if (td_are_plain(index, n, counting)) {
            for (int64_t b = 0; b < n; b++)
                to[b] = (index[b] - counting.base) * stride + (k ? to[b] : 0);
            continue;
        }
        for (int64_t b = 0; b < n; b++) {
            int64_t i = td_place_of(index[b], counting);
            if (TD_UNLIKELY(!td_is_place(i, counting)))
                return b;
            to[b] = i * stride + (k ? to[b] : 0);
        }
    }
    return n;
}

/* A block's offsets count from `base`. */
typedef struct offset_block {
    const int64_t *at; /* NULL: 0, 1, 2, ... */
    int64_t n, base;
} offset_block;

/* Likewise as a block, which may lie in `room`: plain indices of neighbours are offsets as they
 * are. Its n is less where an index is out of range. */
static offset_block block_of(const td_index_plan *p, int64_t begin, int64_t n, int64_t *room) {
    const td_counting counting = counting_of(p, 0);
    if (p->nindexed == 1 && p->index_strides[0] == 1) {
        const int64_t *index = (const int64_t *)p->index[0]->data + begin;
        if (td_are_plain(index, n, counting))
            return (offset_block){index, n, counting.base};
    }
    return (offset_block){room, offsets_of(p, begin, n, room), 0};
}

static void picked_offsets(void *ctx, int64_t begin, int64_t end, int worker) {
    offsets_job *j = ctx;
    int64_t good = offsets_of(j->plan, begin, end - begin, j->to + begin);
    (void)worker;
    if (good < end - begin)
        atomic_store_explicit(&j->bad, begin + good + 1, memory_order_relaxed);
}

/* Names the index at a place that is out of range. */
static td_status fail_place(const td_index_plan *p, int64_t place) {
    for (int k = 0; k < p->nindexed; k++) {
        int64_t i = ((const int64_t *)p->index[k]->data)[place];
        td_counting counting = counting_of(p, k);
        if (!td_is_place(td_place_of(i, counting), counting))
            return td_fail_index(i, counting, p->index_dims[k]);
    }
    return TD_OK;
}

/* Offsets of the places that the index tensors pick. */
static td_status pick(const td_index_plan *p, int64_t **out) {
    offsets_job j = {.plan = p};
    *out = j.to = td_malloc((size_t)(p->places ? p->places : 1) * sizeof *j.to);
    if (!j.to)
        return fail_memory();
    td_status status = td_parallel_for(p->places, 4, picked_offsets, &j);
    if (status == TD_OK && j.bad)
        status = fail_place(p, j.bad - 1);
    if (status) {
        td_free(*out);
        *out = NULL;
    }
    return status;
}

/* Offsets of all elements of some dims in row-major order; *out stays NULL where they are 0,
 * 1, 2... */
static td_status enumerate(int ndim, const int64_t *sizes, const int64_t *strides, int64_t n,
                           int64_t **out) {
    int64_t at[TD_MAX_DIMS] = {0}, offset = 0;
    *out = NULL;
    if (n == 0 || td_is_contiguous(ndim, sizes, strides))
        return TD_OK;
    int64_t *to = td_malloc((size_t)n * sizeof *to);
    if (!to)
        return fail_memory();
    const int64_t line = sizes[ndim - 1], step = strides[ndim - 1];
    for (int64_t k = 0; k < n; k += line) {
        for (int64_t i = 0; i < line; i++)
            to[k + i] = offset + i * step;
        for (int d = ndim - 2; d >= 0; d--) {
            offset += strides[d];
            if (++at[d] < sizes[d])
                break;
            offset -= strides[d] * sizes[d];
            at[d] = 0;
        }
    }
    *out = to;
    return TD_OK;
}

typedef struct places {
    const td_index_plan *plan;
    int64_t *picked;
    int64_t *before, *after; /* NULL: 0, 1, 2, ... */
    char *x, *values;        /* values in the result's order */
    size_t size;
} places;

static void places_free(places *j) {
    td_free(j->picked);
    td_free(j->before);
    td_free(j->after);
}

static td_status places_make(const td_tensor *x, const td_index_plan *p, char *values, places *j) {
    *j = (places){.plan = p, .x = x->data, .values = values, .size = td_tensor_itemsize(x)};
    td_status status = pick(p, &j->picked);
    if (status == TD_OK)
        status = enumerate(p->nbefore, p->before_sizes, p->before_strides, p->before, &j->before);
    if (status == TD_OK)
        status = enumerate(p->nafter, p->after_sizes, p->after_strides, p->after, &j->after);
    if (status)
        places_free(j);
    return status;
}

static int64_t row_offset(const places *j, int64_t before, int64_t place) {
    return (j->before ? j->before[before] : before) + j->picked[place];
}

/* ---- reading ---- */

/* Of whole rows whose places are few: `rows` of them from one on. */
static void read_rows_of_few(const places *j, int64_t row, int64_t rows) {
    const int64_t n = j->plan->places, *picked = j->picked, *before = j->before;
#define MOVE(type)                                                                                 \
    type *to = (type *)(void *)j->values + row * n;                                                \
    for (int64_t r = row; r < row + rows; r++, to += n) {                                          \
        const type *from = (const type *)(const void *)j->x + (before ? before[r] : r);            \
        for (int64_t k = 0; k < n; k++)                                                            \
            to[k] = from[picked[k]];                                                               \
    }
    TD_BY_SIZE(j->size, MOVE);
#undef MOVE
}

static void read_elements(void *ctx, int64_t begin, int64_t end, int worker) {
    const places *j = ctx;
    int64_t n = j->plan->places, len;
    (void)worker;
    for (int64_t k = begin; k < end; k += len) {
        int64_t place = k % n, before = k / n, row = j->before ? j->before[before] : before;
        if (n <= FEW && place == 0 && end - k >= n) {
            len = (end - k) / n * n;
            read_rows_of_few(j, before, len / n);
            continue;
        }
        len = n - place < end - k ? n - place : end - k;
        td_cpu->places->pick(j->values + k * (int64_t)j->size, j->x + row * (int64_t)j->size,
                             j->picked + place, 0, len, j->size);
    }
}

/* Elements that no other dims stand before or behind: checked and read a block at a time, so that
 * no offset leaves the cache. */
static void read_picked(void *ctx, int64_t begin, int64_t end, int worker) {
    offsets_job *j = ctx;
    const td_index_plan *p = j->plan;
    size_t size = td_tensor_itemsize(p->x);
    int64_t offsets[BLOCK];
    (void)worker;
    for (int64_t k = begin; k < end; k += BLOCK) {
        int64_t len = end - k < BLOCK ? end - k : BLOCK;
        offset_block block = block_of(p, k, len, offsets);
        td_cpu->places->pick((char *)p->out->data + k * (int64_t)size, p->x->data, block.at,
                             block.base, block.n, size);
        if (block.n < len) {
            atomic_store_explicit(&j->bad, k + block.n + 1, memory_order_relaxed);
            return;
        }
    }
}

/* Does each place stand for one element? */
static bool is_single(const td_index_plan *p) {
    return p->after == 1 && p->nafter == 0;
}

static td_status read_single(const td_index_plan *p) {
    offsets_job j = {.plan = p};
    td_status status = td_parallel_for(p->places, 4, read_picked, &j);
    return status == TD_OK && j.bad ? fail_place(p, j.bad - 1) : status;
}

static void read_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const places *j = ctx;
    int64_t n = j->plan->places, after = j->plan->after, before = begin / n, place = begin % n;
    const int64_t bytes = after * (int64_t)j->size;
    (void)worker;
    for (int64_t k = begin; k < end; k++, place++) {
        if (place == n) {
            place = 0;
            before++;
        }
        const char *from = j->x + row_offset(j, before, place) * (int64_t)j->size;
        char *to = j->values + k * bytes;
        if (!j->after && bytes <= TD_BY_ENDS)
            td_move_short(to, from, bytes);
        else if (!j->after)
            memcpy(to, from, (size_t)bytes);
        else
            td_cpu->places->pick(to, from, j->after, 0, after, j->size);
    }
}

td_status td_cpu_index_read(const td_index_plan *p) {
    places j;
    if (is_single(p) && p->before == 1)
        return read_single(p);
    td_status status = places_make(p->x, p, p->out->data, &j);
    if (status)
        return status;
    if (p->out->numel > 0)
        status = td_parallel_for(p->before * p->places, 4 * p->after,
                                 is_single(p) ? read_elements : read_rows, &j);
    places_free(&j);
    return status;
}

/* ---- writing ---- */

static void set_elements(void *to, const void *from, offset_block offsets, size_t size) {
    const int64_t *at = offsets.at, n = offsets.n, base = offsets.base;
    if (!at) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
#define MOVE(type)                                                                                 \
    for (int64_t k = 0; k < n; k++)                                                                \
        ((type *)to)[at[k] - base] = ((const type *)from)[k];
    TD_BY_SIZE(size, MOVE);
#undef MOVE
}

typedef struct write_job {
    places places;
    td_dtype dtype;
    bool add; /* or overwrite */
    bool by_columns, by_rows;
    int64_t width;         /* columns of a part */
    int64_t extent, parts; /* by rows: of the places picked, which is cut into so many */
} write_job;

/* n elements that lie side by side to their places. */
static void write_elements(const write_job *j, char *to, const char *from, offset_block offsets) {
    if (j->add && offsets.at)
        td_cpu->combine->add_at[j->dtype](to, offsets.at, offsets.base, from, offsets.n);
    else if (j->add)
        td_cpu->combine->rows[TD_COMBINE_ADD][j->dtype](to, from, offsets.n);
    else
        set_elements(to, from, offsets, j->places.size);
}

/* Elements [first, last) of the row at a place. */
static void write_row(const write_job *j, int64_t before, int64_t place, int64_t first,
                      int64_t last) {
    const places *p = &j->places;
    int64_t size = (int64_t)p->size, row = before * p->plan->places + place;
    if (p->plan->one_row)
        row = 0;
    char *to = p->x + row_offset(p, before, place) * size;
    const char *from = p->values + (row * p->plan->after + first) * size;
    const int64_t *offsets = p->after ? p->after + first : NULL;
    if (!offsets)
        to += first * size;
    write_elements(j, to, from, (offset_block){offsets, last - first, 0});
}

/* The rows at places [k, end), which are short and lie without gaps, are set. */
static void set_short_rows(const write_job *j, int64_t before, int64_t k, int64_t end) {
    const places *p = &j->places;
    int64_t size = (int64_t)p->size, bytes = p->plan->after * size;
    int64_t step = p->plan->one_row ? 0 : bytes;
    char *to = p->x + (p->before ? p->before[before] : before) * size;
    const char *from = p->values + (before * p->plan->places + k) * step;
    for (; k < end; k++, from += step)
        td_move_short(to + p->picked[k] * size, from, bytes);
}

/* Rows of n elements, `step` apart, are added at places. */
typedef void (*add_rows_fn)(void *to, const void *from, const int64_t *at, int64_t rows, int64_t n,
                            int64_t step);
#define DEFINE_ADD(NAME, type, SUM)                                                                \
    static void add_rows_##NAME(void *to, const void *from, const int64_t *at, int64_t rows,       \
                                int64_t n, int64_t step) {                                         \
        const type *v = from;                                                                      \
        for (int64_t k = 0; k < rows; k++, v += step) {                                            \
            type *x = (type *)to + at[k];                                                          \
            for (int64_t c = 0; c < n; c++)                                                        \
                x[c] = SUM(x[c], v[c]);                                                            \
        }                                                                                          \
    }
TD_SUMS(DEFINE_ADD)
#define ROW(NAME, type, SUM) [TD_##NAME] = add_rows_##NAME,
static const add_rows_fn add_rows[TD_DTYPE_COUNT] = {TD_SUMS(ROW)};
#undef ROW

static void add_short_rows(const write_job *j, int64_t before, int64_t k, int64_t end) {
    const places *p = &j->places;
    int64_t size = (int64_t)p->size, step = p->plan->one_row ? 0 : p->plan->after;
    char *to = p->x + (p->before ? p->before[before] : before) * size;
    const char *from = p->values + (before * p->plan->places + k) * step * size;
    add_rows[j->dtype](to, from, p->picked + k, end - k, p->plan->after, step);
}

static bool are_short_rows(const write_job *j, int64_t first, int64_t last) {
    return !j->places.after && last - first == j->places.plan->after &&
           (last - first) * (int64_t)j->places.size <= TD_BY_ENDS;
}

static void write_places(const write_job *j, int64_t before, int64_t first, int64_t last) {
    int64_t n = j->places.plan->places, stretch = 1 + STRETCH / (last - first);
    bool is_short = are_short_rows(j, first, last);
    for (int64_t k = 0, end; k < n && !td_interrupt_requested(); k = end) {
        end = n - k < stretch ? n : k + stretch;
        if (is_short)
            (j->add ? add_short_rows : set_short_rows)(j, before, k, end);
        else
            for (int64_t at = k; at < end; at++)
                write_row(j, before, at, first, last);
    }
}

/* Those of the places that lie in a part of the tensor written: its thread has them in its cache,
 * and each of them is written by one thread, in order. */
static void write_range(const write_job *j, int64_t part) {
    const int64_t *picked = j->places.picked, n = j->places.plan->places;
    int64_t low = part * j->extent / j->parts, high = (part + 1) * j->extent / j->parts;
    bool is_short = are_short_rows(j, 0, j->places.plan->after);
    for (int64_t k = 0, end; k < n && !td_interrupt_requested(); k = end) {
        while (k < n && (picked[k] < low || picked[k] >= high))
            k++;
        for (end = k; end < n && end < k + STRETCH && picked[end] >= low && picked[end] < high;)
            end++;
        if (is_short && end > k)
            (j->add ? add_short_rows : set_short_rows)(j, 0, k, end);
        for (int64_t at = k; at < end && !is_short; at++)
            write_row(j, 0, at, 0, j->places.plan->after);
    }
}

/* The same of places that stand for one element each. */
static void write_line(const write_job *j, int64_t before) {
    const places *p = &j->places;
    int64_t n = p->plan->places, size = (int64_t)p->size;
    char *to = p->x + (p->before ? p->before[before] : before) * size;
    const char *from = p->values + before * n * size;
    for (int64_t k = 0; k < n && !td_interrupt_requested(); k += STRETCH)
        write_elements(j, to, from + k * size,
                       (offset_block){p->picked + k, n - k < STRETCH ? n - k : STRETCH, 0});
}

/* Lines of n places that stand for one element each, one line after the other. */
typedef void (*add_lines_fn)(void *to, const int64_t *before, int64_t lines, const void *from,
                             const int64_t *at, int64_t n);
#define DEFINE_LINES(NAME, type, SUM)                                                              \
    static void add_lines_##NAME(void *to, const int64_t *before, int64_t lines, const void *from, \
                                 const int64_t *at, int64_t n) {                                   \
        const type *v = from;                                                                      \
        for (int64_t l = 0; l < lines; l++, v += n) {                                              \
            type *x = (type *)to + before[l];                                                      \
            for (int64_t k = 0; k < n; k++)                                                        \
                x[at[k]] = SUM(x[at[k]], v[k]);                                                    \
        }                                                                                          \
    }
TD_SUMS(DEFINE_LINES)
#define ROW(NAME, type, SUM) [TD_##NAME] = add_lines_##NAME,
static const add_lines_fn add_lines[TD_DTYPE_COUNT] = {TD_SUMS(ROW)};
#undef ROW

static void set_lines(void *to, const int64_t *before, int64_t lines, const void *from,
                      const int64_t *at, int64_t n, size_t size) {
#define MOVE(type)                                                                                 \
    const type *v = from;                                                                          \
    for (int64_t l = 0; l < lines; l++, v += n)                                                    \
        for (int64_t k = 0; k < n; k++)                                                            \
            ((type *)to)[before[l] + at[k]] = v[k];
    TD_BY_SIZE(size, MOVE);
#undef MOVE
}

static bool are_short_lines(const write_job *j) {
    const td_index_plan *p = j->places.plan;
    return is_single(p) && j->places.before && p->places <= FEW;
}

static void write_short_lines(const write_job *j, int64_t begin, int64_t end) {
    const places *p = &j->places;
    int64_t n = p->plan->places, size = (int64_t)p->size, lines;
    for (int64_t line = begin; line < end && !td_interrupt_requested(); line += lines) {
        const int64_t *before = p->before + line;
        const char *from = p->values + line * n * size;
        lines = end - line < STRETCH / FEW ? end - line : STRETCH / FEW;
        if (j->add)
            add_lines[j->dtype](p->x, before, lines, from, p->picked, n);
        else
            set_lines(p->x, before, lines, from, p->picked, n, p->size);
    }
}

/* One thread writes all places of its part in order, so that a place named twice comes out the
 * same every time. */
static void write_part(void *ctx, int64_t begin, int64_t end, int worker) {
    const write_job *j = ctx;
    const td_index_plan *p = j->places.plan;
    (void)worker;
    if (j->by_rows) {
        for (int64_t part = begin; part < end; part++)
            write_range(j, part);
        return;
    }
    if (j->by_columns) {
        write_places(j, 0, begin * j->width, end * j->width < p->after ? end * j->width : p->after);
        return;
    }
    if (are_short_lines(j)) {
        write_short_lines(j, begin, end);
        return;
    }
    for (int64_t before = begin; before < end; before++)
        if (is_single(p))
            write_line(j, before);
        else
            write_places(j, before, 0, p->after);
}

static void check_places(void *ctx, int64_t begin, int64_t end, int worker) {
    offsets_job *j = ctx;
    (void)worker;
    for (int k = 0; k < j->plan->nindexed; k++) {
        const int64_t *index = j->plan->index[k]->data;
        int64_t good =
            begin + td_find_bad_index(index + begin, end - begin, counting_of(j->plan, k));
        if (good < end) {
            atomic_store_explicit(&j->bad, good + 1, memory_order_relaxed);
            return;
        }
    }
}

/* Single elements that no other dims stand before: all places are checked before one is written,
 * and written a block at a time, in order. */
static td_status write_single(const td_index_plan *p) {
    offsets_job check = {.plan = p};
    write_job j = {.dtype = (td_dtype)p->out->dtype, .add = p->accumulate};
    const char *from = p->x->data;
    int64_t offsets[BLOCK];
    unsigned mark = td_interrupt_mark();
    td_status status = td_parallel_for(p->places, 2, check_places, &check);
    if (status == TD_OK && check.bad)
        status = fail_place(p, check.bad - 1);
    if (status)
        return status;
    j.places.size = td_tensor_itemsize(p->out);
    for (int64_t k = 0; k < p->places && !td_interrupt_since(mark); k += BLOCK) {
        int64_t n = p->places - k < BLOCK ? p->places - k : BLOCK;
        write_elements(&j, p->out->data, from + k * (int64_t)j.places.size,
                       block_of(p, k, n, offsets));
    }
    return td_interrupt_since(mark) ? td_interrupted() : TD_OK;
}

/* Columns that one thread writes in all rows: as many as there are for each, since few of a row are
 * as many lines of the cache. */
static int64_t part_width(int64_t columns) {
    enum { LEAST = 64 };
    int64_t each = (columns + td_get_num_threads() - 1) / td_get_num_threads();
    return each < LEAST ? LEAST : each;
}

/* Of the places that index tensors can pick, from the first to behind the last. */
static int64_t extent_of(const td_index_plan *p) {
    int64_t extent = 1;
    for (int k = 0; k < p->nindexed; k++)
        extent += (p->index_sizes[k] - 1) * p->index_strides[k];
    return extent;
}

/* Are there rows enough, each long for a look at its place, that threads may have their own? */
static bool rows_pay(const td_index_plan *p) {
    enum { LEAST = 32 };
    return p->before == 1 && p->after >= LEAST && p->places >= LEAST &&
           p->index_sizes[0] >= (int64_t)LEAST * td_get_num_threads();
}

td_status td_cpu_index_write(const td_index_plan *p) {
    if (is_single(p) && p->before == 1)
        return write_single(p);
    write_job j = {
        .dtype = (td_dtype)p->out->dtype, .add = p->accumulate, .by_columns = p->before == 1};
    td_status status = places_make(p->out, p, p->x->data, &j.places);
    if (status)
        return status;
    if (p->x->numel > 0) {
        int64_t row = p->places * p->after;
        j.width = part_width(p->after);
        j.by_rows = rows_pay(p);
        j.extent = extent_of(p);
        j.parts = td_get_num_threads();
        status = j.by_rows      ? td_parallel_for(j.parts, 4 * row / j.parts, write_part, &j)
                 : j.by_columns ? td_parallel_for((p->after + j.width - 1) / j.width,
                                                  4 * p->places * j.width, write_part, &j)
                                : td_parallel_for(p->before, 4 * row, write_part, &j);
    }
    places_free(&j.places);
    return status;
}
