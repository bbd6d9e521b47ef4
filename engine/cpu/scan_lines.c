/* scan_lines.c: running extremes with their places, log-sum-exps and linear recurrences on the CPU,
 * line by line: floats in double, integers in int64, converted block by block. */
#include "engine/core/interrupt.h"
#include "engine/core/threads.h"
#include "engine/cpu/block.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/lines.h"
#include "engine/cpu/scan.h"

#include <math.h>

enum { DEPTH = 512 };

typedef struct line_scan {
    const char *x, *a;
    char *out;
    int64_t *index;
    td_dtype from, to;
    td_scan_kind kind;
    int64_t n;
} line_scan;

/* What a line is at: the result so far, and where it stands. */
typedef struct progress {
    double f, a; /* a: the factor of the next result */
    int64_t i, place;
} progress;

/* A block of x becomes the results; equal and NaN elements take over. */
#define DEFINE_EXTREME(NAME, type, field, better, IS_NAN)                                          \
    static void extreme_##NAME(progress *p, type *x, int64_t *index, int64_t at, int64_t n) {      \
        type best = p->field;                                                                      \
        int64_t place = p->place;                                                                  \
        if (place < 0)                                                                             \
            best = x[0];                                                                           \
        for (int64_t k = 0; k < n; k++) {                                                          \
            bool taken = IS_NAN(x[k]) || (!IS_NAN(best) && x[k] better best);                      \
            best = taken ? x[k] : best;                                                            \
            place = taken ? at + k : place;                                                        \
            x[k] = best;                                                                           \
            index[k] = place;                                                                      \
        }                                                                                          \
        p->field = best;                                                                           \
        p->place = place;                                                                          \
    }
#define FLOAT_NAN(v) ((v) != (v))
#define NO_NAN(v)    ((void)(v), false)
DEFINE_EXTREME(max_floats, double, f, >=, FLOAT_NAN)
DEFINE_EXTREME(min_floats, double, f, <=, FLOAT_NAN)
DEFINE_EXTREME(max_integers, int64_t, i, >=, NO_NAN)
DEFINE_EXTREME(min_integers, int64_t, i, <=, NO_NAN)

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

static void linear(progress *p, double *x, const double *a, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        x[k] = p->f = p->place < 0 ? x[k] : x[k] + p->a * p->f;
        p->a = a[k];
        p->place = 0;
    }
}

static void scan_floats(const line_scan *s, int64_t line) {
    double x[DEPTH], a[DEPTH];
    int64_t from = line * s->n, size = (int64_t)td_dtype_size(s->from);
    int64_t out_size = (int64_t)td_dtype_size(s->to);
    progress p = {.f = s->kind == TD_SCAN_LOG_SUM_EXP ? -INFINITY : 0, .place = -1};
    for (int64_t at = 0; at < s->n && !td_interrupt_requested(); at += DEPTH) {
        int64_t n = s->n - at < DEPTH ? s->n - at : DEPTH;
        td_block_read(TD_F64, x, s->from, s->x + (from + at) * size, 1, n);
        if (s->kind == TD_SCAN_MAX)
            extreme_max_floats(&p, x, s->index + from + at, at, n);
        else if (s->kind == TD_SCAN_MIN)
            extreme_min_floats(&p, x, s->index + from + at, at, n);
        else if (s->kind == TD_SCAN_LOG_SUM_EXP)
            log_sum_exp(&p, x, n);
        else {
            td_block_read(TD_F64, a, s->to, s->a + (from + at) * out_size, 1, n);
            linear(&p, x, a, n);
        }
        td_block_write(s->to, s->out + (from + at) * out_size, 1, TD_F64, x, n);
    }
}

static void scan_integers(const line_scan *s, int64_t line) {
    int64_t x[DEPTH], from = line * s->n, size = (int64_t)td_dtype_size(s->from);
    progress p = {.place = -1};
    for (int64_t at = 0; at < s->n && !td_interrupt_requested(); at += DEPTH) {
        int64_t n = s->n - at < DEPTH ? s->n - at : DEPTH;
        td_block_read(TD_I64, x, s->from, s->x + (from + at) * size, 1, n);
        if (s->kind == TD_SCAN_MAX)
            extreme_max_integers(&p, x, s->index + from + at, at, n);
        else
            extreme_min_integers(&p, x, s->index + from + at, at, n);
        td_block_write(s->to, s->out + (from + at) * size, 1, TD_I64, x, n);
    }
}

static void scan_range(void *ctx, int64_t begin, int64_t end, int worker) {
    const line_scan *s = ctx;
    (void)worker;
    for (int64_t line = begin; line < end && !td_interrupt_requested(); line++)
        if (td_dtype_is_float(s->to))
            scan_floats(s, line);
        else
            scan_integers(s, line);
}

td_status td_scan_lines(const td_scan_plan *p) {
    td_tensor *x = NULL, *a = NULL, *out = NULL, *index = NULL;
    td_status status = TD_OK;
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
    int64_t cost = s.n * (p->kind == TD_SCAN_LOG_SUM_EXP ? 64 : 8);
    TD_TRY(td_parallel_for(x->numel / s.n, cost, scan_range, &s));
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
