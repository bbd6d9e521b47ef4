/* gather.c: gather, scatter and places of nonzero elements on the CPU. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/by_size.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/sums.h"
#include "engine/ops/copy.h"

#include <string.h>

enum { STRETCH = 64 * 1024 }; /* elements moved without a look at the interrupt flag */

/* ---- gather and scatter ---- */

/* `wide` is the tensor reached through the index (x of gather, the result of scatter), `narrow` the
 * other one, which goes along with the index. */
typedef struct walk_job {
    const td_tensor *index; /* row-major */
    char *wide, *narrow;
    const int64_t *wide_strides, *narrow_strides;
    int ndim, dim;
    int64_t size, stride; /* of wide along the dim */
    int64_t line, lines;  /* the index's last dim, and the number of those */
    td_dtype dtype;
    bool gather;
    td_combine how;
} walk_job;

/* Offset of a line's start, without the indexed dim of the wide tensor. */
static void line_start(const walk_job *j, int64_t line, int64_t *wide, int64_t *narrow) {
    *wide = *narrow = 0;
    for (int d = j->ndim - 2; d >= 0; d--) {
        int64_t at = line % j->index->sizes[d];
        line /= j->index->sizes[d];
        *narrow += at * j->narrow_strides[d];
        if (d != j->dim)
            *wide += at * j->wide_strides[d];
    }
}

/* Where a line of elements meets the two tensors. */
typedef struct walk_line {
    const int64_t *index;
    int64_t n, wide, narrow, wide_step, narrow_step; /* elements */
} walk_line;

static int64_t picked(const walk_job *j, const walk_line *l, int64_t k) {
    int64_t i = l->index[k] < 0 ? l->index[k] + j->size : l->index[k];
    return l->wide + k * l->wide_step + i * j->stride;
}

static void move_line(const walk_job *j, const walk_line *l) {
#define MOVE(type)                                                                                 \
    type *wide = (type *)j->wide, *narrow = (type *)j->narrow + l->narrow;                         \
    if (j->gather)                                                                                 \
        for (int64_t k = 0; k < l->n; k++)                                                         \
            narrow[k * l->narrow_step] = wide[picked(j, l, k)];                                    \
    else                                                                                           \
        for (int64_t k = 0; k < l->n; k++)                                                         \
            wide[picked(j, l, k)] = narrow[k * l->narrow_step];
    TD_BY_SIZE(td_dtype_size(j->dtype), MOVE);
#undef MOVE
}

#define DEFINE_COMBINE(NAME, type, wider, READ, WRITE)                                             \
    static void combine_##NAME(const walk_job *j, const walk_line *l) {                            \
        type *wide = (type *)j->wide, *narrow = (type *)j->narrow + l->narrow;                     \
        for (int64_t k = 0; k < l->n; k++) {                                                       \
            type *to = &wide[picked(j, l, k)];                                                     \
            wider a = READ(*to), b = READ(narrow[k * l->narrow_step]);                             \
            *to = WRITE(j->how == TD_COMBINE_ADD   ? a + b                                         \
                        : j->how == TD_COMBINE_MUL ? a * b                                         \
                        : a != a                   ? a                                             \
                        : j->how == TD_COMBINE_MAX ? (a > b ? a : b)                               \
                                                   : (a < b ? a : b));                             \
        }                                                                                          \
    }
TD_ELEMENTS(DEFINE_COMBINE)
#define ROW(NAME, type, wider, READ, WRITE) [TD_##NAME] = combine_##NAME,
static void (*const combine_functions[TD_DTYPE_COUNT])(const walk_job *j,
                                                       const walk_line *l) = {TD_ELEMENTS(ROW)};
#undef ROW

static void walk_lines(void *ctx, int64_t begin, int64_t end, int worker) {
    const walk_job *j = ctx;
    int last = j->ndim - 1;
    walk_line l = {.n = j->line,
                   .wide_step = j->ndim && j->dim != last ? j->wide_strides[last] : 0,
                   .narrow_step = j->ndim ? j->narrow_strides[last] : 0};
    (void)worker;
    for (int64_t line = begin; line < end; line++) {
        l.index = (const int64_t *)j->index->data + line * j->line;
        line_start(j, line, &l.wide, &l.narrow);
        for (int64_t k = 0; k < j->line && !td_interrupt_requested(); k += STRETCH) {
            walk_line part = {.index = l.index + k,
                              .n = j->line - k < STRETCH ? j->line - k : STRETCH,
                              .wide = l.wide + k * l.wide_step,
                              .narrow = l.narrow + k * l.narrow_step,
                              .wide_step = l.wide_step,
                              .narrow_step = l.narrow_step};
            if (!j->gather && j->how != TD_COMBINE_PUT)
                combine_functions[j->dtype](j, &part);
            else
                move_line(j, &part);
        }
    }
}

/* ---- are all indices there? ---- */

typedef struct range_job {
    const int64_t *index;
    int64_t size;
    atomic_llong bad; /* one more than the place of an index out of range; 0: none */
} range_job;

static void find_bad(void *ctx, int64_t begin, int64_t end, int worker) {
    range_job *j = ctx;
    uint64_t least = (uint64_t)j->size, span = 2 * (uint64_t)j->size;
    bool bad = false;
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        bad |= (uint64_t)j->index[k] + least >= span;
    for (int64_t k = begin; bad && k < end; k++)
        if ((uint64_t)j->index[k] + least >= span) {
            atomic_store_explicit(&j->bad, k + 1, memory_order_relaxed);
            return;
        }
}

static td_status check_range(const td_tensor *index, int dim, int64_t size) {
    range_job j = {.index = index->data, .size = size};
    td_status status = td_parallel_for(index->numel, 4, find_bad, &j);
    if (status || !j.bad)
        return status;
    int64_t i = j.index[j.bad - 1];
    return td_fail(TD_EINDEX, "index %lld is out of range for dim %d of size %lld",
                   (long long)(i < 0 ? i : i + 1), dim + 1, (long long)size);
}

static td_status walk(walk_job *j, const td_gather_plan *p, const td_tensor *wide,
                      const td_tensor *narrow) {
    td_tensor *index = NULL;
    td_status status = TD_OK;
    if (p->index->numel == 0)
        return TD_OK;
    TD_TRY(td_contiguous(p->index, &index));
    j->index = index;
    j->wide = wide->data;
    j->narrow = narrow->data;
    j->wide_strides = wide->strides;
    j->narrow_strides = narrow->strides;
    j->ndim = index->ndim;
    j->dim = p->dim;
    j->size = wide->ndim ? wide->sizes[p->dim] : 1;
    j->stride = wide->ndim ? wide->strides[p->dim] : 0;
    j->line = j->ndim ? index->sizes[j->ndim - 1] : 1;
    j->lines = index->numel / j->line;
    j->dtype = (td_dtype)wide->dtype;
    TD_TRY(check_range(index, p->dim, j->size));
    if (j->gather)
        status = td_parallel_for(j->lines, 4 * j->line, walk_lines, j);
    else /* places may be named twice: in order, on one thread */
        status = td_serial_for(j->lines, 4 * j->line, walk_lines, j);
done:
    td_release(index);
    return status;
}

td_status td_cpu_gather(const td_gather_plan *p) {
    walk_job j = {.gather = true};
    return walk(&j, p, p->x, p->out);
}

td_status td_cpu_scatter(const td_gather_plan *p) {
    walk_job j = {.how = p->how};
    return walk(&j, p, p->out, p->x);
}

/* ---- nonzero ---- */

/* Zero is all bits clear but, in floats, the sign. */
#define DEFINE_NONZERO(type)                                                                       \
    static int64_t count_##type(const type *p, int64_t n, type mask) {                             \
        int64_t count = 0;                                                                         \
        for (int64_t k = 0; k < n && !td_interrupt_requested();)                                   \
            for (int64_t end = n - k < STRETCH ? n : k + STRETCH; k < end; k++)                    \
                count += (p[k] & mask) != 0;                                                       \
        return count;                                                                              \
    }                                                                                              \
    static void places_##type(const td_tensor *x, const type *p, type mask, int64_t *to,           \
                              int64_t column) {                                                    \
        int64_t at[TD_MAX_DIMS] = {0}, end = 0;                                                    \
        for (int64_t k = 0; k < x->numel; k++) {                                                   \
            if (k == end) {                                                                        \
                if (td_interrupt_requested())                                                      \
                    return;                                                                        \
                end += STRETCH;                                                                    \
            }                                                                                      \
            if (p[k] & mask) {                                                                     \
                for (int d = 0; d < x->ndim; d++)                                                  \
                    to[d * column] = at[d];                                                        \
                to++;                                                                              \
            }                                                                                      \
            for (int d = x->ndim - 1; d >= 0; d--) {                                               \
                if (++at[d] < x->sizes[d])                                                         \
                    break;                                                                         \
                at[d] = 0;                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_NONZERO(uint8_t)
DEFINE_NONZERO(uint16_t)
DEFINE_NONZERO(uint32_t)
DEFINE_NONZERO(uint64_t)

td_status td_cpu_nonzero(const td_nonzero_plan *plan) {
    td_tensor *x = NULL;
    int64_t *to = plan->out->data;
    td_status status = td_contiguous(plan->x, &x);
    if (status)
        return status;
    uint64_t mask = ~(uint64_t)0;
    if (td_dtype_is_float((td_dtype)x->dtype))
        mask >>= 65 - 8 * td_tensor_itemsize(x);
#define MOVE(type)                                                                                 \
    if (plan->places)                                                                              \
        places_##type(x, x->data, (type)mask, to, plan->out->sizes[0]);                            \
    else                                                                                           \
        *to = count_##type(x->data, x->numel, (type)mask);
    TD_BY_SIZE(td_tensor_itemsize(x), MOVE);
#undef MOVE
    td_release(x);
    return td_interrupt_check();
}
