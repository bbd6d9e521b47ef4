/* spatial.c: windows over one to three dims on the CPU: weighted sums, maxima, and back. Volumes
 * that share no memory are worked on by several threads, of forward directions their rows too. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/by_size.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/axis_windows.h"

#include <string.h>

typedef struct job {
    const td_spatial_functions *fn; /* NULL: moves alone */
    td_taps axis[TD_SPATIAL];
    int64_t inner, rows;  /* rows: of a small volume */
    int64_t large, small; /* bytes of a volume */
    char *to;
    const char *from;
    int64_t *places;
    size_t size;
    double divisor;
    double *lines; /* one per worker */
    int64_t line;
} job;

static int64_t large_places(const td_axis *a) {
    return a[0].in * a[1].in * a[2].in;
}
static int64_t small_places(const td_axis *a) {
    return a[0].out * a[1].out * a[2].out;
}

static void job_init(job *j, const td_axis *axis, int64_t inner, td_dtype dtype) {
    j->fn = td_cpu->spatial->of[dtype];
    j->size = td_dtype_size(dtype);
    j->inner = inner;
    j->rows = axis[0].out * axis[1].out;
    j->large = large_places(axis) * inner * (int64_t)j->size;
    j->small = small_places(axis) * inner * (int64_t)j->size;
}

/* Additions that a small volume costs, about. */
static int64_t cost_of(const td_axis *axis, int64_t inner) {
    int64_t large = large_places(axis), small = small_places(axis);
    return 2 * (large + small) * inner;
}

/* ---- rows of small volumes ---- */

typedef void (*rows_fn)(const job *j, int64_t volume, int64_t begin, int64_t end, int worker);

typedef struct row_loop {
    const job *j;
    rows_fn run;
} row_loop;

/* Items are rows of all volumes. */
static void do_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    const row_loop *l = ctx;
    int64_t rows = l->j->rows;
    while (begin < end && !td_interrupt_requested()) {
        int64_t volume = begin / rows, row = begin % rows;
        int64_t stop = end - volume * rows < rows ? end - volume * rows : rows;
        l->run(l->j, volume, row, stop, worker);
        begin += stop - row;
    }
}

static td_status for_rows(const job *j, const td_axis *axis, int64_t outer, int threads,
                          rows_fn run) {
    row_loop l = {j, run};
    int64_t rows = j->rows > 0 ? j->rows : 1;
    int64_t cost = cost_of(axis, j->inner) / rows + 1;
    return td_parallel_for_among(threads, outer * j->rows, cost, do_rows, &l);
}

static void sum_rows(const job *j, int64_t volume, int64_t begin, int64_t end, int worker) {
    j->fn->sum(j->to + volume * j->small, j->from + volume * j->large, j->axis, j->inner,
               j->divisor, j->lines + worker * j->line, begin, end);
}

static void max_rows(const job *j, int64_t volume, int64_t begin, int64_t end, int worker) {
    (void)worker;
    int64_t *places = j->places ? j->places + volume * (j->small / (int64_t)j->size) : NULL;
    j->fn->max(j->to + volume * j->small, places, j->from + volume * j->large, j->axis, j->inner,
               begin, end);
}

/* Does a row see the same line as the one before? */
static bool again(const td_taps *a, int64_t row) {
    int64_t j = row % a[1].out;
    return j > 0 && a[1].begin[j] == a[1].begin[j - 1];
}

/* The longest run of places of a line that see places one after the other. */
static void find_run(const td_taps *a, int64_t *from, int64_t *to) {
    *from = *to = 0;
    for (int64_t begin = 0, end; begin < a->out; begin = end) {
        for (end = begin + 1; end < a->out && a->begin[end] == a->begin[end - 1] + 1;)
            end++;
        if (end - begin > *to - *from) {
            *from = begin;
            *to = end;
        }
    }
}

/* Elements from the one place that each place of the result sees. */
static void move_rows(const job *j, int64_t volume, int64_t begin, int64_t end, int worker) {
    enum { RUN = 8 /* elements that are better copied together */ };
    const td_taps *a = j->axis;
    int64_t inner = j->inner, n = a[2].out, from, to;
    const int32_t *at = a[2].begin;
    (void)worker;
    find_run(&a[2], &from, &to);
    if (to - from < RUN)
        from = to = 0;
#define MOVE_EACH(type, first, last)                                                               \
    if (inner == 1)                                                                                \
        for (int64_t k = first; k < (last); k++)                                                   \
            y[k] = x[at[k]];                                                                       \
    else                                                                                           \
        for (int64_t k = first; k < (last); k++)                                                   \
            for (int64_t c = 0; c < inner; c++)                                                    \
                y[k * inner + c] = x[at[k] * inner + c];
#define MOVE(type)                                                                                 \
    for (int64_t row = begin; row < end; row++) {                                                  \
        int64_t i = row / a[1].out, line = a[0].begin[i] * a[1].in + a[1].begin[row % a[1].out];   \
        const type *x = (const type *)(j->from + volume * j->large) + line * a[2].in * inner;      \
        type *restrict y = (type *)(j->to + volume * j->small) + row * n * inner;                  \
        if (row > begin && again(a, row)) {                                                        \
            memcpy(y, y - n * inner, (size_t)(n * inner) * sizeof *y);                             \
            continue;                                                                              \
        }                                                                                          \
        MOVE_EACH(type, 0, from)                                                                   \
        if (to > from)                                                                             \
            memcpy(y + from * inner, x + at[from] * inner,                                         \
                   (size_t)((to - from) * inner) * sizeof *y);                                     \
        MOVE_EACH(type, to, n)                                                                     \
    }
    TD_BY_SIZE(j->size, MOVE);
#undef MOVE
#undef MOVE_EACH
}

static void gather_rows(const job *j, int64_t volume, int64_t begin, int64_t end, int worker) {
    int64_t first = begin * j->axis[2].out, last = end * j->axis[2].out;
    const int64_t *places = j->places + volume * (j->small / (int64_t)j->size);
    (void)worker;
#define MOVE(type)                                                                                 \
    const type *x = (const type *)(j->from + volume * j->large);                                   \
    type *y = (type *)(j->to + volume * j->small);                                                 \
    for (int64_t k = first * j->inner; k < last * j->inner; k++)                                   \
        y[k] = x[places[k] * j->inner + k % j->inner];
    TD_BY_SIZE(j->size, MOVE);
#undef MOVE
}

/* ---- whole volumes ---- */

static void spread_volumes(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    for (int64_t k = begin; k < end; k++)
        j->fn->spread(j->to + k * j->large, j->from + k * j->small, j->axis, j->inner, j->divisor,
                      j->lines + worker * j->line);
}

static void scatter_volumes(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    int64_t n = j->rows * j->axis[2].out;
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        j->fn->scatter(j->to + k * j->large, j->places + k * n * j->inner, j->from + k * j->small,
                       j->inner, n);
}

/* ---- sums over memory of 16 bits are kept in float32 ---- */

static bool is_narrow(const td_tensor *x) {
    return td_dtype_wide((td_dtype)x->dtype) != x->dtype;
}

/* A row-major float32 tensor of the elements as they lie. */
static td_status widen(const td_tensor *x, td_tensor **out) {
    td_tensor *flat = NULL;
    const int64_t sizes[1] = {x->numel}, strides[1] = {1};
    td_status status = td_tensor_view((td_tensor *)x, 1, sizes, strides, 0, &flat);
    if (status == TD_OK)
        status = td_contiguous_as(flat, TD_F32, out);
    td_release(flat);
    return status;
}

static td_status narrow(td_tensor *out, const td_tensor *wide) {
    td_tensor *flat = NULL;
    const int64_t sizes[1] = {out->numel}, strides[1] = {1};
    td_status status = td_tensor_view(out, 1, sizes, strides, 0, &flat);
    if (status == TD_OK)
        status = td_copy_into(flat, wide);
    td_release(flat);
    return status;
}

/* Runs a plan whose tensors are *x and *out with copies in float32 in their places. */
static td_status run_wide(const void *plan, td_tensor **x, td_tensor **out,
                          td_status (*run)(const void *plan)) {
    td_tensor *narrow_x = *x, *narrow_out = *out;
    *x = *out = NULL;
    td_status status = TD_OK;
    TD_TRY(widen(narrow_x, x));
    TD_TRY(widen(narrow_out, out));
    TD_TRY(run(plan));
    status = narrow(narrow_out, *out);
done:
    td_release(*x);
    td_release(*out);
    return status;
}

/* ---- sums ---- */

static td_status make_lines(job *j, int64_t threads) {
    j->line = (j->axis[2].in + 1) * j->inner;
    j->lines = td_malloc((size_t)(threads * j->line + 1) * sizeof *j->lines);
    return j->lines ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

static td_status resample(const td_resample_plan *p, job *j) {
    int threads = td_get_num_threads();
    bool single = !p->transposed && p->divisor == 0;
    for (int d = 0; d < TD_SPATIAL; d++)
        single = single && j->axis[d].single;
    if (single)
        return for_rows(j, p->axis, p->outer, threads, move_rows);
    if (!j->fn || (p->transposed && !j->fn->spread))
        return td_cpu_lacks((td_dtype)p->out->dtype);
    td_status status = make_lines(j, threads);
    if (status == TD_OK && p->transposed)
        status =
            td_parallel_for_among(threads, p->outer, cost_of(p->axis, p->inner), spread_volumes, j);
    else if (status == TD_OK)
        status = for_rows(j, p->axis, p->outer, threads, sum_rows);
    td_free(j->lines);
    return status;
}

static td_status spread_again(const void *plan) {
    return td_cpu_resample(plan);
}

td_status td_cpu_resample(const td_resample_plan *p) {
    job j = {.to = p->out->data, .from = p->x->data, .divisor = (double)p->divisor};
    if (p->transposed && is_narrow(p->out)) {
        td_resample_plan wide = *p;
        return run_wide(&wide, &wide.x, &wide.out, spread_again);
    }
    job_init(&j, p->axis, p->inner, (td_dtype)p->out->dtype);
    td_status status = td_taps_init_all(j.axis, p->axis);
    if (status)
        return status;
    status = resample(p, &j);
    td_taps_clear_all(j.axis);
    return status;
}

/* ---- maxima ---- */

static td_status scatter_again(const void *plan) {
    return td_cpu_max_pool(plan);
}

/* By places: the windows that they came from are not asked. */
static td_status by_places(const td_max_pool_plan *p, job *j) {
    for (int d = 0; d < TD_SPATIAL; d++)
        j->axis[d] = (td_taps){.in = p->axis[d].in, .out = p->axis[d].out};
    if (p->kind == TD_MAX_GATHER)
        return for_rows(j, p->axis, p->outer, td_get_num_threads(), gather_rows);
    if (!j->fn || !j->fn->scatter)
        return td_cpu_lacks((td_dtype)p->out->dtype);
    return td_parallel_for(p->outer, cost_of(p->axis, p->inner), scatter_volumes, j);
}

td_status td_cpu_max_pool(const td_max_pool_plan *p) {
    job j = {.to = p->out->data, .from = p->x->data, .places = p->places ? p->places->data : NULL};
    if (p->kind == TD_MAX_SCATTER && is_narrow(p->out)) {
        td_max_pool_plan wide = *p;
        return run_wide(&wide, &wide.x, &wide.out, scatter_again);
    }
    job_init(&j, p->axis, p->inner, (td_dtype)p->out->dtype);
    if (p->kind != TD_MAX_POOL)
        return by_places(p, &j);
    if (!j.fn)
        return td_cpu_lacks((td_dtype)p->out->dtype);
    td_status status = td_taps_init_all(j.axis, p->axis);
    if (status)
        return status;
    status = for_rows(&j, p->axis, p->outer, td_get_num_threads(), max_rows);
    td_taps_clear_all(j.axis);
    return status;
}
