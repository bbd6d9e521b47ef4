/* add_strided.c: sums into views whose elements may share memory, on the CPU: runs along the dim
 * that is longest, threads along dims whose parts don't meet. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/reduce/sums.h"
#include "engine/ops/make/copy.h"

enum { STRETCH = 64 * 1024 }; /* elements added without a look at the interrupt flag */

typedef void (*add_fn)(void *to, int64_t to_step, const void *from, int64_t from_step, int64_t n);

#define DEFINE_ADD(NAME, type, SUM)                                                                \
    static void add_##NAME(void *to, int64_t to_step, const void *from, int64_t from_step,         \
                           int64_t n) {                                                            \
        type *x = to;                                                                              \
        const type *v = from;                                                                      \
        for (int64_t k = 0; k < n; k++)                                                            \
            x[k * to_step] = SUM(x[k * to_step], v[k * from_step]);                                \
    }
TD_SUMS(DEFINE_ADD)

#define ROW(NAME, type, SUM) [TD_##NAME] = add_##NAME,
static const add_fn add_functions[TD_DTYPE_COUNT] = {TD_SUMS(ROW)};
#undef ROW

typedef struct side_dim {
    int64_t size, to, from; /* strides */
} side_dim;

/* Dims, of which the first `free`, those with the longest strides, are an item each, and the last
 * one is a run. */
typedef struct job {
    td_dtype dtype;
    int64_t size; /* bytes of an element */
    char *to;
    const char *from;
    side_dim dims[TD_MAX_DIMS + 1];
    int ndim, free;
} job;

/* Where the dims that are an item each stand. */
static void move_to(const job *j, int64_t item, int64_t *to, int64_t *from) {
    for (int d = j->free - 1; d >= 0; d--) {
        int64_t at = item % j->dims[d].size;
        item /= j->dims[d].size;
        *to += at * j->dims[d].to;
        *from += at * j->dims[d].from;
    }
}

static void add_run(const job *j, int64_t to, int64_t from) {
    const side_dim *run = &j->dims[j->ndim - 1];
    for (int64_t at = 0, n; at < run->size && !(at && td_interrupt_requested()); at += n) {
        char *x = j->to + (to + at * run->to) * j->size;
        const char *v = j->from + (from + at * run->from) * j->size;
        n = run->size - at < STRETCH ? run->size - at : STRETCH;
        if (run->to == 1 && run->from == 1)
            td_cpu->combine->rows[TD_COMBINE_ADD][j->dtype](x, v, n);
        else
            add_functions[j->dtype](x, run->to, v, run->from, n);
    }
}

/* All runs of the dims from `d` on. */
static void add_all(const job *j, int d, int64_t to, int64_t from) {
    if (d == j->ndim - 1) {
        add_run(j, to, from);
        return;
    }
    const side_dim *dim = &j->dims[d];
    for (int64_t k = 0; k < dim->size; k++) {
        if (d == j->free && td_interrupt_requested())
            return;
        add_all(j, d + 1, to + k * dim->to, from + k * dim->from);
    }
}

static void add_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t item = begin; item < end && !td_interrupt_requested(); item++) {
        int64_t to = 0, from = 0;
        move_to(j, item, &to, &from);
        add_all(j, j->free, to, from);
    }
}

static bool goes_before(const side_dim *a, const side_dim *b) {
    return a->to != b->to ? a->to > b->to : a->size < b->size;
}

static void take_dims(job *j, const td_tensor *x, const int64_t *strides) {
    for (int d = 0; d < x->ndim; d++) {
        side_dim dim = {x->sizes[d], strides[d], x->strides[d]};
        int at = j->ndim;
        if (dim.size == 1)
            continue;
        for (; at > 0 && goes_before(&dim, &j->dims[at - 1]); at--)
            j->dims[at] = j->dims[at - 1];
        j->dims[at] = dim;
        j->ndim++;
    }
    for (int d = j->ndim - 2; d >= 0; d--) { /* what runs through two of them is one */
        side_dim *outer = &j->dims[d], *inner = outer + 1;
        if (outer->to != inner->to * inner->size || outer->from != inner->from * inner->size)
            continue;
        *outer = (side_dim){outer->size * inner->size, inner->to, inner->from};
        j->ndim--;
        for (int k = d + 1; k < j->ndim; k++)
            j->dims[k] = j->dims[k + 1];
    }
    if (j->ndim == 0)
        j->dims[j->ndim++] = (side_dim){1, 1, 1};
}

/* Parts of a dim whose stride is beyond all that the dims behind it reach don't meet. */
static void find_free(job *j) {
    int64_t reach = 0, reaches[TD_MAX_DIMS + 1];
    for (int d = j->ndim - 1; d >= 0; d--) {
        reaches[d] = reach;
        reach += (j->dims[d].size - 1) * j->dims[d].to;
    }
    while (j->free < j->ndim - 1 && j->dims[j->free].to > reaches[j->free])
        j->free++;
}

/* The dim with the longest run comes last: what meets is added by one thread, in any order. */
static void choose_run(job *j) {
    int64_t most = 0;
    int best = j->ndim - 1;
    for (int d = j->free; d < j->ndim; d++) {
        const side_dim *dim = &j->dims[d];
        int64_t worth = dim->size * (dim->to == 1 && dim->from == 1 ? 4 : 1);
        best = worth > most ? d : best;
        most = worth > most ? worth : most;
    }
    side_dim run = j->dims[best];
    for (int d = best; d < j->ndim - 1; d++)
        j->dims[d] = j->dims[d + 1];
    j->dims[j->ndim - 1] = run;
}

td_status td_cpu_add_strided(const td_add_strided_plan *plan) {
    td_tensor *out = plan->out, *x = NULL;
    int64_t items = 1, cost;
    job j = {.dtype = (td_dtype)out->dtype, .size = (int64_t)td_tensor_itemsize(out)};
    if (plan->x->numel == 0)
        return TD_OK;
    if (plan->x->dtype == j.dtype)
        x = td_retain(plan->x);
    td_status status = x ? TD_OK : td_contiguous_as(plan->x, j.dtype, &x);
    if (status)
        return status;
    take_dims(&j, x, plan->strides);
    find_free(&j);
    choose_run(&j);
    j.to = (char *)out->data + plan->offset * j.size;
    j.from = x->data;
    for (int d = 0; d < j.free; d++)
        items *= j.dims[d].size;
    cost = 2 * (x->numel / items);
    status = td_parallel_for(items, cost, add_items, &j);
    td_release(x);
    return status == TD_OK ? td_interrupt_check() : status;
}
