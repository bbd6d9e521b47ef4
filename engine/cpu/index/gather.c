/* gather.c: gather, scatter and places of nonzero elements on the CPU. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/index/indices.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/by_size.h"
#include "engine/cpu/reduce/sums.h"
#include "engine/ops/make/copy.h"

#include <string.h>

enum {
    STRETCH = 64 * 1024, /* elements moved without a look at the interrupt flag */
    BLOCK = 1024,        /* whose indices are looked at before they are followed */
    COLUMNS = 128,       /* of lines that one thread writes */
};

/* ---- gather and scatter ---- */

/* `wide` is the tensor reached through the index (x of gather, the result of scatter), `narrow` the
 * other one, which goes along with the index. */
typedef struct walk_job {
    const td_tensor *index; /* row-major */
    char *wide, *narrow;
    const int64_t *wide_strides, *narrow_strides;
    int ndim, dim;
    td_counting counting; /* along the dim of wide */
    int64_t stride;       /* of wide along it */
    int64_t line, lines;  /* the index's last dim, and the number of those */
    bool rows;            /* one index for each line, which lies side by side in both tensors */
    td_range_fn part;     /* what goes along lines */
    int64_t blocks;       /* of lines that write apart from each other */
    td_dtype dtype;
    bool gather;
    td_combine how;
    atomic_llong bad; /* one more than the place of an index out of range; 0: none */
    bool checked;     /* all have been looked at */
    atomic_bool odd;  /* one of them counts from the end */
} walk_job;

/* Where a line of elements meets the two tensors, or several, whose indices lie side by side and
 * are known to be plain. */
typedef struct walk_line {
    const int64_t *index;
    int64_t n, wide, narrow, wide_step, narrow_step; /* elements */
    int64_t lines, wide_by, narrow_by;               /* from one to the next */
} walk_line;

/* What a loop over a line reads, as locals: elements that are written might be any of it. */
#define LINE_LOCALS                                                                                \
    const td_counting counting = j->counting;                                                      \
    const int64_t *index = l->index, stride = j->stride, n = l->n;                                 \
    const int64_t wide_step = l->wide_step, narrow_step = l->narrow_step;                          \
    const int64_t lines = l->lines, wide_by = l->wide_by, narrow_by = l->narrow_by
#define EACH_LINE(LINE)                                                                            \
    for (int64_t line = 0; line < lines; line++) {                                                 \
        LINE;                                                                                      \
        index += n;                                                                                \
        wide += wide_by;                                                                           \
        narrow += narrow_by;                                                                       \
    }

/* As td_are_plain; of what has been checked it is known. */
static bool are_plain(const walk_job *j, const int64_t *index, int64_t n) {
    return j->checked && !j->odd ? true : td_are_plain(index, n, j->counting);
}

/* PLACE for each k along the line, whose index leads to i: block by block, without a look at single
 * indices where all count from the base and are in range, as nearly all do. Leaves the function
 * with the place of the first that is out of range. */
#define PLAIN_LINE(PLACE)                                                                          \
    _Pragma("GCC unroll 4") for (int64_t k = from; k < to; k++) {                                  \
        int64_t i = index[k] - counting.base;                                                      \
        PLACE;                                                                                     \
    }
#define FOLLOW_LINES(PLACE)                                                                        \
    if (lines > 1) {                                                                               \
        const int64_t from = 0, to = n;                                                            \
        EACH_LINE(PLAIN_LINE(PLACE))                                                               \
        return n;                                                                                  \
    }                                                                                              \
    for (int64_t from = 0, to; from < n; from = to) {                                              \
        to = n - from < BLOCK ? n : from + BLOCK;                                                  \
        if (TD_LIKELY(are_plain(j, index + from, to - from)))                                      \
            PLAIN_LINE(PLACE)                                                                      \
        else                                                                                       \
            for (int64_t k = from; k < to; k++) {                                                  \
                int64_t i = td_place_of(index[k], counting);                                       \
                if (TD_UNLIKELY(!td_is_place(i, counting)))                                        \
                    return k;                                                                      \
                PLACE;                                                                             \
            }                                                                                      \
    }

/* Returns the place of the first index out of range, or n. */
static int64_t gather_line(const walk_job *j, const walk_line *l) {
    LINE_LOCALS;
#define MOVE(type)                                                                                 \
    const type *wide = (const type *)j->wide + l->wide;                                            \
    type *narrow = (type *)j->narrow + l->narrow;                                                  \
    FOLLOW_LINES(narrow[k * narrow_step] = wide[k * wide_step + i * stride])
    TD_BY_SIZE(td_dtype_size(j->dtype), MOVE);
#undef MOVE
    return n;
}

/* The same of places that lie side by side, into such. */
static int64_t pick_line(const walk_job *j, const walk_line *l) {
    const int64_t size = (int64_t)td_dtype_size(j->dtype);
    walk_line part = *l;
    for (int64_t from = 0; from < l->n; from += part.n) {
        part.n = l->n - from < BLOCK ? l->n - from : BLOCK;
        part.index = l->index + from;
        part.narrow = l->narrow + from;
        if (TD_LIKELY(are_plain(j, part.index, part.n))) {
            td_cpu->places->pick(j->narrow + part.narrow * size, j->wide + part.wide * size,
                                 part.index, j->counting.base, part.n, (size_t)size);
            continue;
        }
        int64_t good = gather_line(j, &part);
        if (good < part.n)
            return from + good;
    }
    return l->n;
}

/* Likewise; the indices have been checked. */
static int64_t scatter_line(const walk_job *j, const walk_line *l) {
    LINE_LOCALS;
#define MOVE(type)                                                                                 \
    type *wide = (type *)j->wide + l->wide;                                                        \
    const type *narrow = (const type *)j->narrow + l->narrow;                                      \
    if (stride == 1 && wide_step == 0 && narrow_step == 1) {                                       \
        FOLLOW_LINES(wide[i] = narrow[k])                                                          \
    } else {                                                                                       \
        FOLLOW_LINES(wide[k * wide_step + i * stride] = narrow[k * narrow_step])                   \
    }
    TD_BY_SIZE(td_dtype_size(j->dtype), MOVE);
#undef MOVE
    return n;
}

/* A line with one index. */
static void move_row(const walk_job *j, const walk_line *l) {
    const int64_t size = (int64_t)td_dtype_size(j->dtype);
    char *wide = j->wide + l->wide * size, *narrow = j->narrow + l->narrow * size;
    if (j->gather)
        memcpy(narrow, wide, (size_t)(l->n * size));
    else if (j->how == TD_COMBINE_PUT)
        memcpy(wide, narrow, (size_t)(l->n * size));
    else
        td_cpu->combine->rows[j->how][j->dtype](wide, narrow, l->n);
}

/* The indices have been checked; nearly all count from the base. */
#define COMBINE_AT(place, READ, WRITE, wider, result)                                              \
    for (int64_t k = from; k < to; k++) {                                                          \
        int64_t i = k * wide_step + (place)*stride;                                                \
        wider a = READ(wide[i]), b = READ(narrow[k * narrow_step]);                                \
        wide[i] = WRITE(result);                                                                   \
    }
#define COMBINE_LINES(READ, WRITE, wider, result)                                                  \
    if (lines > 1) {                                                                               \
        const int64_t from = 0, to = n;                                                            \
        EACH_LINE(COMBINE_AT(index[k] - counting.base, READ, WRITE, wider, result)) return;        \
    }                                                                                              \
    for (int64_t from = 0, to; from < n; from = to) {                                              \
        to = n - from < BLOCK ? n : from + BLOCK;                                                  \
        if (TD_LIKELY(are_plain(j, index + from, to - from)))                                      \
            COMBINE_AT(index[k] - counting.base, READ, WRITE, wider, result)                       \
        else                                                                                       \
            COMBINE_AT(td_place_of(index[k], counting), READ, WRITE, wider, result)                \
    }
#define COMBINE_HOW(LOOP, READ, WRITE, wider)                                                      \
    if (j->how == TD_COMBINE_ADD) {                                                                \
        LOOP(READ, WRITE, wider, a + b)                                                            \
    } else if (j->how == TD_COMBINE_MUL) {                                                         \
        LOOP(READ, WRITE, wider, a *b)                                                             \
    } else if (j->how == TD_COMBINE_MAX) {                                                         \
        LOOP(READ, WRITE, wider, ((a != a) | (a > b)) ? a : b)                                     \
    } else {                                                                                       \
        LOOP(READ, WRITE, wider, ((a != a) | (a < b)) ? a : b)                                     \
    }
#define DEFINE_COMBINE(NAME, type, wider, READ, WRITE)                                             \
    static void combine_##NAME(const walk_job *j, const walk_line *l) {                            \
        LINE_LOCALS;                                                                               \
        type *wide = (type *)j->wide + l->wide;                                                    \
        const type *narrow = (const type *)j->narrow + l->narrow;                                  \
        COMBINE_HOW(COMBINE_LINES, READ, WRITE, wider)                                             \
    }
TD_ELEMENTS(DEFINE_COMBINE)
#define ROW(NAME, type, wider, READ, WRITE) [TD_##NAME] = combine_##NAME,
static void (*const combine_functions[TD_DTYPE_COUNT])(const walk_job *j,
                                                       const walk_line *l) = {TD_ELEMENTS(ROW)};
#undef ROW

/* Added as they lie, where the places are dense, and what is added is so too or one number, and all
 * indices count from the base. */
static bool add_line(const walk_job *j, const walk_line *l) {
    const int64_t size = (int64_t)td_dtype_size(j->dtype), step = l->narrow_step;
    const char *from = j->narrow + l->narrow * size;
    char *to = j->wide + l->wide * size;
    _Alignas(8) char copies[8 * BLOCK];
    if (j->how != TD_COMBINE_ADD || j->stride != 1 || l->wide_step != 0 || (step & ~1) ||
        !are_plain(j, l->index, l->n))
        return false;
    if (step == 0) {
        td_cpu->pointwise->repeat(copies, from, l->n < BLOCK ? l->n : BLOCK, (size_t)size);
        from = copies;
    }
    for (int64_t k = 0, n; k < l->n; k += n) {
        n = l->n - k < BLOCK ? l->n - k : BLOCK;
        td_cpu->combine->add_at[j->dtype](to, l->index + k, j->counting.base,
                                          from + step * k * size, n);
    }
    return true;
}

/* The lines of an index one after the other: where each begins in both tensors. */
typedef struct line_walk {
    int64_t at[TD_MAX_DIMS], wide, narrow;
} line_walk;

static int64_t wide_stride(const walk_job *j, int d) {
    return d == j->dim ? 0 : j->wide_strides[d];
}

static line_walk walk_from(const walk_job *j, int64_t line) {
    line_walk w = {.wide = 0};
    for (int d = j->ndim - 2; d >= 0; d--) {
        w.at[d] = line % j->index->sizes[d];
        line /= j->index->sizes[d];
        w.narrow += w.at[d] * j->narrow_strides[d];
        w.wide += w.at[d] * wide_stride(j, d);
    }
    return w;
}

/* On by n lines, to no more than the end of the dim that they are in. */
static void walk_on(const walk_job *j, line_walk *w, int64_t n) {
    for (int d = j->ndim - 2; d >= 0; d--, n = 1) {
        w->narrow += n * j->narrow_strides[d];
        w->wide += n * wide_stride(j, d);
        w->at[d] += n;
        if (w->at[d] < j->index->sizes[d])
            return;
        w->narrow -= w->at[d] * j->narrow_strides[d];
        w->wide -= w->at[d] * wide_stride(j, d);
        w->at[d] = 0;
    }
}

/* The first of the lines' indices that is out of range, or n. */
static int64_t move_elements(const walk_job *j, const walk_line *l) {
    if (j->gather && l->lines == 1 && j->stride == 1 && l->wide_step == 0 && l->narrow_step == 1)
        return pick_line(j, l);
    if (j->gather)
        return gather_line(j, l);
    if (j->how == TD_COMBINE_PUT)
        return scatter_line(j, l);
    if (l->lines > 1 || !add_line(j, l))
        combine_functions[j->dtype](j, l);
    return l->n;
}

/* Likewise of a line with one index for all. */
static int64_t move_line(const walk_job *j, walk_line *l) {
    if (!j->rows)
        return move_elements(j, l);
    int64_t i = td_place_of(*l->index, j->counting);
    if (!td_is_place(i, j->counting))
        return 0;
    l->wide += i * j->stride;
    move_row(j, l);
    return l->n;
}

/* Elements [from, to) of the lines [begin, end). */
static void walk_part(walk_job *j, int64_t begin, int64_t end, int64_t from, int64_t to) {
    const int64_t *all = j->index->data;
    int last = j->ndim - 1;
    line_walk w = walk_from(j, begin);
    int64_t wide_step = j->ndim ? wide_stride(j, last) : 0;
    int64_t narrow_step = j->ndim ? j->narrow_strides[last] : 0;
    for (int64_t line = begin; line < end; line++, walk_on(j, &w, 1))
        for (int64_t k = from; k < to && !td_interrupt_requested(); k += STRETCH) {
            const int64_t *index = all + (j->rows ? line : line * j->line + k);
            walk_line part = {.index = index,
                              .n = to - k < STRETCH ? to - k : STRETCH,
                              .wide = w.wide + k * wide_step,
                              .narrow = w.narrow + k * narrow_step,
                              .wide_step = wide_step,
                              .narrow_step = narrow_step,
                              .lines = 1};
            int64_t good = move_line(j, &part);
            if (good < part.n) {
                atomic_store_explicit(&j->bad, 1 + (index + good - all), memory_order_relaxed);
                return;
            }
        }
}

static void walk_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    walk_job *j = ctx;
    (void)worker;
    walk_part(j, begin, end, 0, j->line);
}

/* Strips of COLUMNS elements of all lines. */
static void walk_strips(void *ctx, int64_t begin, int64_t end, int worker) {
    walk_job *j = ctx;
    int64_t to = end * COLUMNS < j->line ? end * COLUMNS : j->line;
    (void)worker;
    walk_part(j, 0, j->lines, begin * COLUMNS, to);
}

/* Short lines, several at once. */
static void walk_short(void *ctx, int64_t begin, int64_t end, int worker) {
    walk_job *j = ctx;
    const int last = j->ndim - 1;
    const int64_t most = BLOCK / j->line, in_dim = j->index->sizes[last - 1];
    line_walk w = walk_from(j, begin);
    for (int64_t line = begin, n; line < end && !td_interrupt_requested(); line += n) {
        n = end - line < most ? end - line : most;
        if (n > in_dim - w.at[last - 1])
            n = in_dim - w.at[last - 1];
        walk_line part = {.index = (const int64_t *)j->index->data + line * j->line,
                          .n = j->line,
                          .wide = w.wide,
                          .narrow = w.narrow,
                          .wide_step = wide_stride(j, last),
                          .narrow_step = j->narrow_strides[last],
                          .lines = n,
                          .wide_by = wide_stride(j, last - 1),
                          .narrow_by = j->narrow_strides[last - 1]};
        if (n > 1 && are_plain(j, part.index, n * j->line))
            (void)move_elements(j, &part);
        else
            walk_lines(ctx, line, line + n, worker);
        walk_on(j, &w, n);
    }
}

/* ---- are all indices there? ---- */

static void find_bad(void *ctx, int64_t begin, int64_t end, int worker) {
    walk_job *j = ctx;
    const int64_t *index = j->index->data;
    (void)worker;
    if (td_are_plain(index + begin, end - begin, j->counting))
        return;
    int64_t good = begin + td_find_bad_index(index + begin, end - begin, j->counting);
    atomic_store_explicit(&j->odd, true, memory_order_relaxed);
    if (good < end)
        atomic_store_explicit(&j->bad, good + 1, memory_order_relaxed);
}

static td_status fail_range(const walk_job *j) {
    int64_t i = ((const int64_t *)j->index->data)[j->bad - 1];
    return td_fail_index(i, j->counting, j->dim);
}

/* Blocks of lines, each block with what no other writes to: those with one place each in the dims
 * before the index's. */
static void walk_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    walk_job *j = ctx;
    int64_t each = j->lines / j->blocks;
    j->part(j, begin * each, end * each, worker);
}

/* Where places may be named twice those of one block, or of one column, are written in order. */
static td_status write_apart(walk_job *j) {
    const int64_t cost = j->how == TD_COMBINE_PUT ? 4 : 8;
    int last = j->ndim - 1;
    j->blocks = 1;
    for (int d = 0; d < (j->dim < last ? j->dim : last); d++)
        j->blocks *= j->index->sizes[d];
    bool strips = j->dim < last && j->line > COLUMNS;
    if (j->blocks >= td_get_num_threads() || (j->blocks > 1 && !strips))
        return td_parallel_for(j->blocks, cost * j->line * (j->lines / j->blocks), walk_blocks, j);
    if (strips)
        return td_parallel_for((j->line + COLUMNS - 1) / COLUMNS, cost * COLUMNS * j->lines,
                               walk_strips, j);
    return td_serial_for(j->lines, cost * j->line, j->part, j);
}

/* Reading checks on the way. Writing checks first, so that nothing is written where it fails. */
static td_status run_walk(walk_job *j) {
    j->part =
        j->line <= TD_LIMIT(GATHER_SHORT) && !j->rows && j->ndim > 1 ? walk_short : walk_lines;
    if (j->gather)
        return td_parallel_for(j->lines, 4 * j->line, j->part, j);
    td_status status = td_parallel_for(j->index->numel, 4, find_bad, j);
    if (status || j->bad)
        return status;
    j->checked = true;
    return write_apart(j);
}

/* Is the index the same along each line, as index_reduce's is, whose elements lie side by side in
 * `wide`? */
static bool has_rows(const td_gather_plan *p, const td_tensor *wide) {
    const td_tensor *index = p->index;
    int last = index->ndim - 1;
    return last > 0 && p->dim != last && index->strides[last] == 0 && wide->strides[last] == 1;
}

/* The index in row-major order; of one that is the same along each line a single column. */
static td_status pack_index(const td_gather_plan *p, bool rows, td_tensor **out) {
    td_tensor *index = (td_tensor *)p->index, *column = NULL;
    int64_t sizes[TD_MAX_DIMS];
    int last = index->ndim - 1;
    if (!rows)
        return td_contiguous(index, out);
    memcpy(sizes, index->sizes, sizeof(int64_t) * (size_t)index->ndim);
    sizes[last] = 1;
    td_status status = td_tensor_view(index, index->ndim, sizes, index->strides, 0, &column);
    if (status == TD_OK)
        status = td_contiguous(column, out);
    td_release(column);
    return status;
}

static td_status walk(walk_job *j, const td_gather_plan *p, const td_tensor *wide,
                      const td_tensor *narrow) {
    td_tensor *index = NULL;
    td_status status = TD_OK;
    if (p->index->numel == 0)
        return TD_OK;
    j->rows = has_rows(p, wide) && narrow->strides[narrow->ndim - 1] == 1;
    TD_TRY(pack_index(p, j->rows, &index));
    j->index = index;
    j->wide = wide->data;
    j->narrow = narrow->data;
    j->wide_strides = wide->strides;
    j->narrow_strides = narrow->strides;
    j->ndim = index->ndim;
    j->dim = p->dim;
    j->counting = (td_counting){wide->ndim ? wide->sizes[p->dim] : 1, p->from_one};
    j->stride = wide->ndim ? wide->strides[p->dim] : 0;
    while (!j->rows && j->ndim > 1 && index->sizes[j->ndim - 1] == 1)
        j->ndim--; /* so that no line is of one element, such as the labels of a matrix's rows */
    j->line = j->ndim ? p->index->sizes[j->ndim - 1] : 1;
    j->lines = p->index->numel / j->line;
    j->dtype = (td_dtype)wide->dtype;
    status = run_walk(j);
    if (status == TD_OK && j->bad)
        status = fail_range(j);
done:
    td_release(index);
    return status;
}

td_status td_cpu_gather(const td_gather_plan *p) {
    walk_job j = {.gather = true};
    return walk(&j, p, p->x, p->out);
}

/* Rows that lie across are turned round: that is one walk along both, and all else goes by rows. */
td_status td_cpu_scatter(const td_gather_plan *p) {
    walk_job j = {.how = p->how};
    td_tensor *x = NULL;
    td_status status = TD_OK;
    if (p->index->numel && has_rows(p, p->out) && td_tensor_same_shape(p->x, p->index))
        status = td_contiguous((td_tensor *)p->x, &x);
    if (status == TD_OK)
        status = walk(&j, p, p->out, x ? x : p->x);
    td_release(x);
    return status;
}

/* ---- nonzero ---- */

enum { PLACES = 1024 }; /* elements looked at before their places are put down */

/* Which of n elements are not zero: all bits clear but, in floats, the sign. */
static void mark(const td_tensor *x, int64_t at, int64_t n, uint8_t *marks) {
    size_t size = td_tensor_itemsize(x);
    uint64_t mask = ~(uint64_t)0;
    if (td_dtype_is_float((td_dtype)x->dtype))
        mask >>= 65 - 8 * size;
#define MOVE(type)                                                                                 \
    const type *p = (const type *)x->data + at;                                                    \
    for (int64_t k = 0; k < n; k++)                                                                \
        marks[k] = (p[k] & (type)mask) != 0;
    TD_BY_SIZE(size, MOVE);
#undef MOVE
}

/* Those of x's n <= PLACES elements from the one at `at` on that are not zero, in row-major order:
 * how many. */
static int64_t find_places(const td_tensor *x, int64_t at, int64_t n, int64_t *to) {
    uint8_t marks[PLACES];
    if (td_tensor_itemsize(x) == 1)
        return td_cpu->places->find((const uint8_t *)x->data + at, n, at, to);
    mark(x, at, n, marks);
    return td_cpu->places->find(marks, n, at, to);
}

/* A line of x, along the last dim: where it begins, and in the dims before. */
typedef struct place_line {
    int64_t start, at[TD_MAX_DIMS];
} place_line;

/* On to the line of the element at `place`, which is hardly ever far. */
static void go_to(place_line *l, const td_tensor *x, int64_t place) {
    int last = x->ndim - 1;
    int64_t length = x->sizes[last];
    if (place - l->start < 2 * length) {
        l->start += length;
        for (int d = last - 1; d >= 0 && ++l->at[d] == x->sizes[d]; d--)
            l->at[d] = 0;
        return;
    }
    int64_t line = place / length;
    l->start = line * length;
    for (int d = last - 1; d >= 0; line /= x->sizes[d--])
        l->at[d] = line % x->sizes[d];
}

/* The places of row-major x, column by column. */
static void put_places(const td_tensor *x, int64_t *out, int64_t rows) {
    int64_t found[PLACES + TD_PLACES_MORE], row = 0, n;
    place_line l = {.start = 0};
    int last = x->ndim - 1;
    for (int64_t k = 0; last >= 0 && k < x->numel && !td_interrupt_requested(); k += n) {
        n = x->numel - k < PLACES ? x->numel - k : PLACES;
        int64_t count = find_places(x, k, n, found);
        if (count > rows - row)
            return; /* another thread writes x */
        if (last == 0)
            memcpy(out + row, found, (size_t)count * sizeof *found);
        for (int64_t i = 0; last > 0 && i < count; i++) {
            if (found[i] - l.start >= x->sizes[last])
                go_to(&l, x, found[i]);
            for (int d = 0; d < last; d++)
                out[d * rows + row + i] = l.at[d];
            out[last * rows + row + i] = found[i] - l.start;
        }
        row += count;
    }
}

static int64_t count_places(const td_tensor *x) {
    td_dtype dtype = (td_dtype)x->dtype;
    size_t size = td_dtype_size(dtype);
    int64_t found[PLACES + TD_PLACES_MORE], floats = 0;
    td_accumulator integers = {.i = 0};
    for (int64_t k = 0, n; k < x->numel && !td_interrupt_requested(); k += n) {
        const int64_t most = td_dtype_is_float(dtype) ? PLACES : STRETCH;
        n = x->numel - k < most ? x->numel - k : most;
        if (td_dtype_is_float(dtype)) /* by bits: denormals are not 0 whatever the mode */
            floats += find_places(x, k, n, found);
        else
            td_cpu->reduce->rows[TD_REDUCE_NONZERO][dtype](
                &integers, (const char *)x->data + (size_t)k * size, 1, 0, n, 1, NULL);
    }
    return floats + integers.i;
}

td_status td_cpu_nonzero(const td_nonzero_plan *plan) {
    td_tensor *x = NULL;
    int64_t *to = plan->out->data;
    td_status status = td_contiguous(plan->x, &x);
    if (status)
        return status;
    if (plan->places)
        put_places(x, to, plan->out->sizes[0]);
    else
        *to = count_places(x);
    td_release(x);
    return td_interrupt_check();
}
