/* scan_lines.c: running extremes with their places, log-sum-exps and linear recurrences on the CPU,
 * line by line: extremes as what they are, the others in double, converted block by block. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/cpu/reduce/scan.h"
#include "engine/ops/language/program.h"
#include "engine/ops/make/copy.h"

#include <math.h>
#include <string.h>

enum { DEPTH = 512, WIDTH = 256 }; /* elements of a line, lines, that are worked on at a time */
enum { EIGHT = 8 };
enum { FEW_ROWS = 8 * 1024 }; /* between two looks at the interrupt flag */
enum { TILE = 2048 };         /* elements of lines that are turned together */

typedef struct line_scan {
    const char *x, *a;
    char *out;
    int64_t *index;
    td_dtype from, to;
    td_scan_kind kind;
    int64_t n, inner; /* elements of a line; lines that lie side by side */
    int64_t width;    /* of these, how many are an item: at most WIDTH */
} line_scan;

/* What a line is at: the result so far, if there is one, and the factor of the next. */
typedef struct progress {
    double f, a;
    bool begun;
} progress;

/* Items are lines that lie side by side: each row of results comes of the one before. */
static void scan_side_by_side(void *ctx, int64_t begin, int64_t end, int worker) {
    const line_scan *s = ctx;
    const td_scan_kernels *all = td_cpu->scan;
    td_extremes_step step = s->kind == TD_SCAN_MAX ? all->largest[s->to] : all->smallest[s->to];
    int64_t each = (s->inner + s->width - 1) / s->width, size = (int64_t)td_dtype_size(s->to);
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item % each * s->width, from = item / each * s->n * s->inner + first;
        int64_t lines = s->inner - first < s->width ? s->inner - first : s->width;
        memcpy(s->out + from * size, s->x + from * size, (size_t)(lines * size));
        memset(s->index + from, 0, (size_t)lines * sizeof *s->index);
        for (int64_t k = 1; k < s->n && !td_interrupt_requested(); k++) {
            int64_t at = from + k * s->inner, last = at - s->inner;
            step(s->out + at * size, s->index + at, s->out + last * size, s->index + last,
                 s->x + at * size, k, lines);
        }
    }
}

/* A line, or few that lie side by side: an item is all of them. */
static void scan_few(void *ctx, int64_t begin, int64_t end, int worker) {
    const line_scan *s = ctx;
    const td_scan_kernels *all = td_cpu->scan;
    td_extremes_few few =
        s->kind == TD_SCAN_MAX ? all->largest_few[s->to] : all->smallest_few[s->to];
    int64_t size = (int64_t)td_dtype_size(s->to);
    (void)worker;
    for (int64_t item = begin; item < end; item++)
        for (int64_t k = 0; k < s->n && !td_interrupt_requested(); k += FEW_ROWS) {
            int64_t at = (item * s->n + k) * s->width;
            few(s->out + at * size, s->index + at, s->x + at * size, k,
                s->n - k < FEW_ROWS ? s->n - k : FEW_ROWS, s->width);
        }
}

/* Short lines: as many as a tile has room for are turned, so that they lie side by side, and what
 * comes of them is turned back. */
static void scan_turned(void *ctx, int64_t begin, int64_t end, int worker) {
    const line_scan *s = ctx;
    const td_scan_kernels *all = td_cpu->scan;
    td_extremes_step step = s->kind == TD_SCAN_MAX ? all->largest[s->to] : all->smallest[s->to];
    const int64_t size = (int64_t)td_dtype_size(s->to), n = s->n;
    _Alignas(64) char x[TILE * 8], out[TILE * 8];
    int64_t index[TILE];
    (void)worker;
    for (int64_t first = begin * s->width; first < end * s->width && first < s->inner;
         first += s->width) {
        int64_t lines = s->inner - first < s->width ? s->inner - first : s->width;
        td_cpu_turn(x, lines, s->x + first * n * size, n, n, lines, (size_t)size);
        memcpy(out, x, (size_t)(lines * size));
        memset(index, 0, (size_t)lines * sizeof *index);
        for (int64_t k = 1; k < n; k++)
            step(out + k * lines * size, index + k * lines, out + (k - 1) * lines * size,
                 index + (k - 1) * lines, x + k * lines * size, k, lines);
        td_cpu_turn(s->out + first * n * size, n, out, lines, lines, n, (size_t)size);
        td_cpu_turn(s->index + first * n, n, index, lines, lines, n, sizeof *index);
    }
}

static double log_add_exp(double a, double b) {
    if (a != a || b != b)
        return a + b;
    double low = a < b ? a : b, high = a < b ? b : a;
    return low == high && isinf(low) ? low : log1p(exp(low - high)) + high;
}

static void log_sum_exp(progress *p, double *x, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        x[k] = p->f = log_add_exp(x[k], p->f);
}

/* total = log(exp(total) + exp(x)) of lines that lie side by side. */
static void add_exps(double *total, const double *x, int64_t n) {
    td_pointwise_fn exps = td_cpu->pointwise->primitive[TD_PW_exp][TD_F64];
    td_pointwise_fn log1ps = td_cpu->pointwise->primitive[TD_PW_log1p][TD_F64];
    double high[WIDTH], part[WIDTH];
    for (int64_t k = 0; k < n; k++) {
        double a = x[k], b = total[k], low = a < b ? a : b; /* NaN: one of them is, or both */
        high[k] = a < b ? b : a;
        part[k] = low == high[k] ? 0 : low - high[k]; /* infinities have no difference */
    }
    exps(n, part, part, NULL, NULL, 0);
    log1ps(n, part, part, NULL, NULL, 0);
    for (int64_t k = 0; k < n; k++) {
        bool infinite = x[k] == total[k] && isinf(x[k]);
        total[k] = infinite ? x[k] : high[k] + part[k];
    }
}

static void sum_exps_side_by_side(void *ctx, int64_t begin, int64_t end, int worker) {
    const line_scan *s = ctx;
    int64_t size = (int64_t)td_dtype_size(s->from), out_size = (int64_t)td_dtype_size(s->to);
    double x[WIDTH], total[WIDTH];
    (void)worker;
    for (int64_t first = begin * WIDTH; first < s->inner && first < end * WIDTH; first += WIDTH) {
        int64_t lines = s->inner - first < WIDTH ? s->inner - first : WIDTH;
        for (int64_t k = 0; k < s->n && !td_interrupt_requested(); k++) {
            int64_t at = first * s->n + k;
            td_block_read(TD_F64, x, s->from, s->x + at * size, s->n, lines);
            if (k == 0)
                memcpy(total, x, sizeof x[0] * (size_t)lines);
            else
                add_exps(total, x, lines);
            td_block_write(s->to, s->out + at * out_size, s->n, TD_F64, total, lines);
        }
    }
}

static void linear(progress *p, double *x, const double *a, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        x[k] = p->f = p->begun ? x[k] + p->a * p->f : x[k];
        p->a = a[k];
        p->begun = true;
    }
}

static void scan_floats(const line_scan *s, int64_t line) {
    double x[DEPTH], a[DEPTH];
    int64_t from = line * s->n, size = (int64_t)td_dtype_size(s->from);
    int64_t out_size = (int64_t)td_dtype_size(s->to);
    progress p = {.f = s->kind == TD_SCAN_LOG_SUM_EXP ? -INFINITY : 0};
    for (int64_t at = 0; at < s->n && !td_interrupt_requested(); at += DEPTH) {
        int64_t n = s->n - at < DEPTH ? s->n - at : DEPTH;
        td_block_read(TD_F64, x, s->from, s->x + (from + at) * size, 1, n);
        if (s->kind == TD_SCAN_LOG_SUM_EXP) {
            log_sum_exp(&p, x, n);
        } else {
            td_block_read(TD_F64, a, s->to, s->a + (from + at) * out_size, 1, n);
            linear(&p, x, a, n);
        }
        td_block_write(s->to, s->out + (from + at) * out_size, 1, TD_F64, x, n);
    }
}

static void scan_range(void *ctx, int64_t begin, int64_t end, int worker) {
    const line_scan *s = ctx;
    (void)worker;
    for (int64_t line = begin; line < end && !td_interrupt_requested(); line++)
        scan_floats(s, line);
}

/* Elements behind the dim: so many lines lie side by side. */
static int64_t lines_inside(const td_scan_plan *p) {
    int64_t inner = 1;
    for (int d = p->dim + 1; d < p->x->ndim; d++)
        inner *= p->x->sizes[d];
    return inner;
}

/* Running extremes of such lines, row-major as the results are: these need not be turned. */
static td_status scan_where_they_lie(const td_scan_plan *p, const td_tensor *x) {
    line_scan s = {.x = x->data,
                   .out = p->out->data,
                   .index = p->index->data,
                   .from = (td_dtype)p->x->dtype,
                   .to = (td_dtype)p->out->dtype,
                   .kind = p->kind,
                   .n = p->x->sizes[p->dim],
                   .inner = lines_inside(p)};
    int64_t outer = p->x->numel / (s.n * s.inner), threads = td_get_num_threads();
    if (s.inner <= TD_SCAN_FEW) {
        s.width = s.inner;
        td_status status = td_parallel_for(outer, 8 * s.n * s.inner, scan_few, &s);
        return status ? status : td_interrupt_check();
    }
    s.width = outer < threads ? (s.inner / threads + 15) / 16 * 16 : WIDTH;
    s.width = s.width < 16 ? 16 : s.width < WIDTH ? s.width : WIDTH;
    int64_t items = outer * ((s.inner + s.width - 1) / s.width);
    td_status status = td_parallel_for(items, 8 * s.n * s.width, scan_side_by_side, &s);
    return status ? status : td_interrupt_check();
}

static bool lies_side_by_side(const td_scan_plan *p) {
    return (p->kind == TD_SCAN_MAX || p->kind == TD_SCAN_MIN) && p->out->contiguous &&
           p->index->contiguous && lines_inside(p) > 1;
}

/* Lines one behind the other, in the way that suits their kind, length and number. */
static td_status scan_all(line_scan *s) {
    bool extremes = s->kind == TD_SCAN_MAX || s->kind == TD_SCAN_MIN;
    td_range_fn some = scan_range;
    int64_t cost = 8;
    s->width = 1;
    if (extremes && s->n <= TD_LIMIT(SCAN_TURNED) && s->inner >= 2 * EIGHT) {
        s->width = TILE / s->n;
        some = scan_turned;
    } else if (extremes) {
        some = scan_few;
    } else if (s->kind == TD_SCAN_LOG_SUM_EXP) {
        s->width = s->inner >= EIGHT ? WIDTH : 1;
        some = s->inner >= EIGHT ? sum_exps_side_by_side : scan_range;
        cost = s->inner >= EIGHT ? 16 : 64;
    }
    return td_parallel_for((s->inner + s->width - 1) / s->width, cost * s->n * s->width, some, s);
}

td_status td_scan_lines(const td_scan_plan *p) {
    td_tensor *x = NULL, *a = NULL, *out = NULL, *index = NULL;
    td_status status = TD_OK;
    if (lies_side_by_side(p)) {
        TD_TRY(td_contiguous((td_tensor *)p->x, &x));
        status = scan_where_they_lie(p, x);
        goto done;
    }
    TD_TRY(td_lines_of(p->x, p->dim, &x));
    if (p->a)
        TD_TRY(td_lines_of(p->a, p->dim, &a));
    TD_TRY(td_lines_for(p->out, p->dim, &out));
    TD_TRY(td_lines_for(p->index, p->dim, &index));
    line_scan s = {.x = x->data,
                   .a = a ? a->data : NULL,
                   .out = out->data,
                   .index = index ? index->data : NULL,
                   .from = (td_dtype)x->dtype,
                   .to = (td_dtype)out->dtype,
                   .kind = p->kind,
                   .n = x->sizes[x->ndim - 1]};
    s.inner = x->numel / s.n;
    TD_TRY(scan_all(&s));
    TD_TRY(td_interrupt_check()); /* a line may have been left early */
    TD_TRY(td_lines_put(p->out, p->dim, out));
    TD_TRY(td_lines_put(p->index, p->dim, index));
done:
    td_release(x);
    td_release(a);
    td_release(out);
    td_release(index);
    return status;
}
