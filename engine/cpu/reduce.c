/* reduce.c: reductions on the CPU: sums and their like, variance, norms, extremes.
 *
 * The plan (ops/reduction.h) sees the input as outputs x count. Outputs are walked in chunks, by
 * rows (each output's elements in turn) or by columns (neighbouring outputs side by side),
 * whichever runs along memory. Few outputs with much behind each are cut into pieces along the
 * reduced dims, combined in order. Chunks and pieces follow from the shape alone, so results do not
 * depend on the number of threads. Knows nothing of gradients.
 */
#include "engine/ops/reduce.h"

#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/ops/copy.h"
#include "engine/ops/reduction.h"

#include <math.h>
#include <string.h>

enum {
    GRAIN = 32 * 1024, /* elements worth a thread */
    PIECE = 64 * 1024, /* elements of a piece */
    MAX_PIECES = 256,
    FEW_ROWS = 64, /* fewer outputs than this may be cut into pieces; by columns: */
    FEW_COLUMNS = 1024,
    MOMENT_ROWS = 4096,     /* elements whose mean and deviations are taken together */
    MOMENT_COLUMNS = 64,    /* the same by columns: rows of them */
    MOMENT_TILE = 32 * 1024 /* elements of such a tile, which must stay in a cache */
};

/* What becomes of an accumulator. */
typedef enum finish {
    FINISH_PLAIN,
    FINISH_DIVIDE, /* by param */
    FINISH_POWER,  /* to the power param */
    FINISH_ANY,
    FINISH_ALL, /* equal to the count */
    FINISH_STD  /* square root of value / param */
} finish;

typedef struct job {
    td_reduction plan;
    const char *x;
    size_t itemsize;
    td_tensor *out;
    bool floating, by_columns, moments;
    td_reducer reducer;
    td_dtype dtype; /* of x */
    td_accumulator start;
    finish finish;
    double param;
    /* pieces: partial results [piece][output], and the means that go with sums of squares */
    int64_t pieces, piece_len;
    td_accumulator *partial;
    double *partial_mean;
} job;

static td_accumulator start_of(td_reducer reducer, bool floating) {
    switch (reducer) {
    case TD_REDUCE_PROD:
        return floating ? (td_accumulator){.f = 1} : (td_accumulator){.i = 1};
    case TD_REDUCE_MAX:
        return floating ? (td_accumulator){.f = -INFINITY} : (td_accumulator){.i = INT64_MIN};
    case TD_REDUCE_MIN:
        return floating ? (td_accumulator){.f = INFINITY} : (td_accumulator){.i = INT64_MAX};
    case TD_REDUCE_ABS_MIN:
        return (td_accumulator){.f = INFINITY};
    default:
        return floating ? (td_accumulator){.f = 0} : (td_accumulator){.i = 0};
    }
}

static td_accumulator combine(td_reducer reducer, bool floating, td_accumulator a,
                              td_accumulator b) {
    bool take;
    switch (reducer) {
    case TD_REDUCE_PROD:
        if (floating)
            return (td_accumulator){.f = a.f * b.f};
        return (td_accumulator){.i = (int64_t)((uint64_t)a.i * (uint64_t)b.i)};
    case TD_REDUCE_MAX:
    case TD_REDUCE_ABS_MAX:
        take = floating ? b.f > a.f || b.f != b.f : b.i > a.i;
        return take && !(floating && a.f != a.f) ? b : a;
    case TD_REDUCE_MIN:
    case TD_REDUCE_ABS_MIN:
        take = floating ? b.f < a.f || b.f != b.f : b.i < a.i;
        return take && !(floating && a.f != a.f) ? b : a;
    default:
        if (floating)
            return (td_accumulator){.f = a.f + b.f};
        return (td_accumulator){.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i)};
    }
}

/* Take the reduced positions [begin, end) of outputs [at, at + n) into acc. */
static void fold(const job *j, td_reducer reducer, int64_t at, int64_t n, int64_t begin,
                 int64_t end, td_accumulator *acc, const double *centers) {
    const td_reduction *p = &j->plan;
    td_reduce_rows_fn rows = td_cpu->reduce->rows[reducer][j->dtype];
    td_reduce_columns_fn columns = td_cpu->reduce->columns[reducer][j->dtype];
    int64_t row_stride = p->kept_strides[p->nkept - 1];
    int64_t stride = p->reduced_strides[p->nreduced - 1];
    for (int64_t o = at; o < at + n;) {
        td_segment kept = td_reduction_kept(p, o, at + n);
        const double *c = centers ? centers + (o - at) : NULL;
        for (int64_t r = begin; r < end;) {
            td_segment reduced = td_reduction_reduced(p, r, end);
            const char *x = j->x + (kept.offset + reduced.offset) * (int64_t)j->itemsize;
            if (j->by_columns)
                columns(acc + (o - at), x, reduced.len, stride, kept.len, c);
            else
                rows(acc + (o - at), x, kept.len, row_stride, reduced.len, stride, c);
            r += reduced.len;
        }
        o += kept.len;
    }
}

/* Means and sums of squared deviations of outputs [at, at + n), n <= TD_REDUCE_WIDTH, over reduced
 * positions [begin, end): tile by tile in two passes, joined by Chan, Golub and LeVeque's update
 * (1979). What the rounding of a tile's center leaves is put back. */
static void fold_moments(const job *j, int64_t at, int64_t n, int64_t begin, int64_t end,
                         double *mean, td_accumulator *squares) {
    td_accumulator acc[TD_REDUCE_WIDTH];
    double center[TD_REDUCE_WIDTH], exact[TD_REDUCE_WIDTH];
    int64_t step = j->by_columns ? MOMENT_COLUMNS : MOMENT_ROWS;
    for (int64_t k = 0; k < n; k++) {
        mean[k] = 0;
        squares[k].f = 0;
    }
    for (int64_t r = begin; r < end; r += step) {
        int64_t len = end - r < step ? end - r : step;
        double before = (double)(r - begin), now = (double)len, after = before + now;
        memset(acc, 0, sizeof *acc * (size_t)n);
        fold(j, TD_REDUCE_SUM, at, n, r, r + len, acc, NULL);
        for (int64_t k = 0; k < n; k++) {
            exact[k] = acc[k].f / now;
            center[k] = j->dtype == TD_F32 ? (double)(float)exact[k] : exact[k];
            acc[k].f = 0;
        }
        fold(j, TD_REDUCE_CENTERED, at, n, r, r + len, acc, center);
        for (int64_t k = 0; k < n; k++) {
            double off = center[k] - exact[k], delta = exact[k] - mean[k];
            double own = acc[k].f - now * off * off;
            squares[k].f +=
                (own > 0 || own != own ? own : 0) + delta * delta * before * now / after;
            mean[k] += delta * now / after;
        }
    }
}

static void finish_values(const job *j, td_accumulator *acc, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        switch (j->finish) {
        case FINISH_PLAIN:
            if (j->floating && !td_dtype_is_float(j->out->dtype))
                acc[k].i = (int64_t)acc[k].f;
            break;
        case FINISH_DIVIDE:
            acc[k].f /= j->param;
            break;
        case FINISH_POWER:
            acc[k].f = j->param == 0.5 ? sqrt(acc[k].f) : pow(acc[k].f, j->param);
            break;
        case FINISH_ANY:
            acc[k].i = j->floating ? acc[k].f != 0 : acc[k].i != 0;
            break;
        case FINISH_ALL:
            acc[k].i = (j->floating ? (int64_t)acc[k].f : acc[k].i) == j->plan.count;
            break;
        case FINISH_STD:
            acc[k].f = sqrt(acc[k].f / j->param);
            break;
        }
    }
}

#define STORE(type, member)                                                                        \
    for (int64_t k = 0; k < n; k++)                                                                \
        ((type *)out)[k * stride] = (type)acc[k].member;

static void store_run(td_dtype dtype, void *out, int64_t stride, const td_accumulator *acc,
                      int64_t n) {
    switch (dtype) {
    case TD_F32:
        STORE(float, f)
        break;
    case TD_F64:
        STORE(double, f)
        break;
    case TD_I64:
        STORE(int64_t, i)
        break;
    case TD_I32:
        STORE(int32_t, i)
        break;
    case TD_BOOL:
        for (int64_t k = 0; k < n; k++)
            ((uint8_t *)out)[k * stride] = acc[k].i != 0;
        break;
    default:
        STORE(uint8_t, i)
        break;
    }
}

static void deliver(const job *j, int64_t at, int64_t n, td_accumulator *acc) {
    const td_reduction *p = &j->plan;
    finish_values(j, acc, n);
    for (int64_t o = at; o < at + n;) {
        td_segment kept = td_reduction_kept(p, o, at + n);
        char *out = (char *)j->out->data + kept.out_offset * (int64_t)td_tensor_itemsize(j->out);
        store_run(j->out->dtype, out, p->out_strides[p->nkept - 1], acc + (o - at), kept.len);
        o += kept.len;
    }
}

/* Outputs that are worked on together. */
static int64_t chunk_width(const job *j) {
    if (!j->moments || j->by_columns || j->plan.count == 0)
        return TD_REDUCE_WIDTH;
    int64_t width = MOMENT_TILE / (j->plan.count < MOMENT_ROWS ? j->plan.count : MOMENT_ROWS);
    return width < TD_REDUCE_WIDTH ? width : TD_REDUCE_WIDTH;
}

static void reduce_outputs(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    td_accumulator acc[TD_REDUCE_WIDTH];
    double mean[TD_REDUCE_WIDTH];
    int64_t width = chunk_width(j);
    (void)worker;
    for (int64_t at = begin; at < end; at += width) {
        int64_t n = end - at < width ? end - at : width;
        if (j->moments) {
            fold_moments(j, at, n, 0, j->plan.count, mean, acc);
        } else {
            for (int64_t k = 0; k < n; k++)
                acc[k] = j->start;
            fold(j, j->reducer, at, n, 0, j->plan.count, acc, NULL);
        }
        deliver(j, at, n, acc);
    }
}

static void reduce_pieces(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    int64_t outputs = j->plan.outputs, width = chunk_width(j);
    (void)worker;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t from = piece * j->piece_len, to = from + j->piece_len;
        if (to > j->plan.count)
            to = j->plan.count;
        for (int64_t at = 0; at < outputs; at += width) {
            int64_t n = outputs - at < width ? outputs - at : width;
            td_accumulator *acc = j->partial + piece * outputs + at;
            if (j->moments) {
                fold_moments(j, at, n, from, to, j->partial_mean + piece * outputs + at, acc);
                continue;
            }
            for (int64_t k = 0; k < n; k++)
                acc[k] = j->start;
            fold(j, j->reducer, at, n, from, to, acc, NULL);
        }
    }
}

/* Join all pieces into the first. */
static void join_pieces(job *j) {
    int64_t outputs = j->plan.outputs;
    for (int64_t piece = 1; piece < j->pieces; piece++) {
        const td_accumulator *from = j->partial + piece * outputs;
        if (!j->moments) {
            for (int64_t k = 0; k < outputs; k++)
                j->partial[k] = combine(j->reducer, j->floating, j->partial[k], from[k]);
            continue;
        }
        double before = (double)(piece * j->piece_len);
        double now = piece == j->pieces - 1 ? (double)j->plan.count - before : (double)j->piece_len;
        const double *mean = j->partial_mean + piece * outputs;
        for (int64_t k = 0; k < outputs; k++) {
            double delta = mean[k] - j->partial_mean[k];
            j->partial[k].f += from[k].f + delta * delta * before * now / (before + now);
            j->partial_mean[k] += delta * now / (before + now);
        }
    }
}

static td_status run_pieces(job *j) {
    int64_t outputs = j->plan.outputs;
    size_t cells = (size_t)(j->pieces * outputs);
    j->partial = td_malloc(cells * (sizeof *j->partial + sizeof *j->partial_mean));
    if (!j->partial)
        return td_fail(TD_ENOMEM, "out of memory for partial results");
    j->partial_mean = (double *)(j->partial + cells);
    td_status status = td_parallel_for(j->pieces, 1, reduce_pieces, j);
    if (status == TD_OK) {
        join_pieces(j);
        deliver(j, 0, outputs, j->partial);
    }
    td_free(j->partial);
    return status;
}

/* Cut the reduced dims when there are few outputs with much behind each. */
static void choose_pieces(job *j) {
    const td_reduction *p = &j->plan;
    int64_t few = j->by_columns ? FEW_COLUMNS : FEW_ROWS;
    j->pieces = 1;
    if (p->outputs >= few || p->count < 2 || p->outputs * p->count < 2 * PIECE)
        return;
    j->piece_len = PIECE / p->outputs > 0 ? PIECE / p->outputs : 1;
    if ((p->count + j->piece_len - 1) / j->piece_len > MAX_PIECES)
        j->piece_len = (p->count + MAX_PIECES - 1) / MAX_PIECES;
    j->pieces = (p->count + j->piece_len - 1) / j->piece_len;
}

/* Reduce x over the masked dims into out, whose memory is not x's. */
static td_status run_job(job *j, td_tensor *x, uint32_t mask, td_tensor *out) {
    td_reduction_plan(x, mask, out, &j->plan);
    const td_reduction *p = &j->plan;
    int64_t stride = p->reduced_strides[p->nreduced - 1];
    j->x = x->data;
    j->itemsize = td_tensor_itemsize(x);
    j->out = out;
    j->dtype = x->dtype;
    j->floating = td_dtype_is_float(x->dtype);
    j->start = start_of(j->reducer, j->floating);
    j->by_columns = p->kept_strides[p->nkept - 1] == 1 && (stride != 1 || p->count == 1);
    choose_pieces(j);
    if (j->pieces > 1)
        return run_pieces(j);
    int64_t grain = p->count > 0 ? GRAIN / p->count : GRAIN;
    return td_parallel_for(p->outputs, grain > 0 ? grain : 1, reduce_outputs, j);
}

/* The same into the call's result, whatever memory that is. */
static td_status reduce_into(td_call *call, job *j, td_tensor *x, uint32_t mask) {
    td_tensor *out = call->out[0], *target = out;
    td_status status = TD_OK;
    if (out->storage == ((td_tensor *)call->args[0].tensor)->storage)
        TD_TRY(td_tensor_empty(out->dtype, TD_DEVICE_CPU, out->ndim, out->sizes, &target));
    TD_TRY(run_job(j, x, mask, target));
    if (target != out)
        TD_TRY(td_copy_into(out, target));
done:
    if (target != out)
        td_release(target);
    return status;
}

/* x as what is reduced: integers into integers and floats into floats as they are, else converted
 * to the result's dtype. New reference. */
static td_status as_input(td_tensor *x, td_dtype result, td_tensor **out) {
    bool same = td_dtype_is_float(x->dtype) == td_dtype_is_float(result);
    if (same && !(x->dtype == TD_F32 && result == TD_F64)) {
        *out = td_retain(x);
        return TD_OK;
    }
    return td_contiguous_as(x, result, out);
}

/* Operators whose arguments are x, dim: reduce, then finish. */
static td_status reduce_simple(td_call *call, td_reducer reducer, finish last) {
    td_tensor *x = call->args[0].tensor;
    uint32_t mask;
    td_status status = td_reduce_dims(call->args[1], x->ndim, &mask);
    if (status)
        return status;
    job j = {.reducer = reducer, .finish = last};
    return reduce_into(call, &j, x, mask);
}

/* The same where the result's dtype may be chosen. `mean` divides. */
static td_status reduce_converted(td_call *call, td_reducer reducer, bool mean) {
    td_tensor *x = NULL;
    uint32_t mask;
    td_status status = TD_OK;
    TD_TRY(td_reduce_dims(call->args[1], call->args[0].tensor->ndim, &mask));
    TD_TRY(as_input(call->args[0].tensor, call->out[0]->dtype, &x));
    job j = {.reducer = reducer};
    if (mean) {
        int64_t count = call->out[0]->numel ? x->numel / call->out[0]->numel : 1;
        j.finish = FINISH_DIVIDE;
        j.param = (double)count;
    }
    TD_TRY(reduce_into(call, &j, x, mask));
done:
    td_release(x);
    return status;
}

td_status td_cpu_sum(td_call *call) {
    return reduce_converted(call, TD_REDUCE_SUM, false);
}
td_status td_cpu_nansum(td_call *call) {
    return reduce_converted(call, TD_REDUCE_NANSUM, false);
}
td_status td_cpu_mean(td_call *call) {
    return reduce_converted(call, TD_REDUCE_SUM, true);
}
td_status td_cpu_prod(td_call *call) {
    return reduce_converted(call, TD_REDUCE_PROD, false);
}
td_status td_cpu_amax(td_call *call) {
    return reduce_simple(call, TD_REDUCE_MAX, FINISH_PLAIN);
}
td_status td_cpu_amin(td_call *call) {
    return reduce_simple(call, TD_REDUCE_MIN, FINISH_PLAIN);
}
td_status td_cpu_any(td_call *call) {
    return reduce_simple(call, TD_REDUCE_NONZERO, FINISH_ANY);
}
td_status td_cpu_all(td_call *call) {
    return reduce_simple(call, TD_REDUCE_NONZERO, FINISH_ALL);
}
td_status td_cpu_count_nonzero(td_call *call) {
    return reduce_simple(call, TD_REDUCE_NONZERO, FINISH_PLAIN);
}

td_status td_cpu_sum_to_size(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    uint32_t mask;
    td_status status = td_reduce_dims_to(x, call->args[1].n, call->args[1].ints, &mask);
    if (status)
        return status;
    job j = {.reducer = TD_REDUCE_SUM};
    return reduce_into(call, &j, x, mask);
}

/* ---- variance ---- */

static td_status reduce_moments(td_call *call, bool root) {
    td_tensor *x = call->args[0].tensor;
    uint32_t mask;
    td_status status = td_reduce_dims(call->args[1], x->ndim, &mask);
    if (status)
        return status;
    int64_t count = call->out[0]->numel ? x->numel / call->out[0]->numel : 0;
    double divisor = td_var_divisor(count, call->args[2], call->args[4]);
    job j = {.reducer = TD_REDUCE_CENTERED,
             .moments = true,
             .finish = root ? FINISH_STD : FINISH_DIVIDE,
             .param = divisor > 0 ? divisor : NAN};
    return reduce_into(call, &j, x, mask);
}

td_status td_cpu_var(td_call *call) {
    return reduce_moments(call, false);
}
td_status td_cpu_std(td_call *call) {
    return reduce_moments(call, true);
}

/* ---- norm ---- */

typedef struct power_job {
    const td_tensor *x;
    void *out;
    double p;
} power_job;

static void raise_range(void *ctx, int64_t begin, int64_t end, int worker) {
    power_job *j = ctx;
    (void)worker;
    if (j->x->dtype == TD_F32)
        td_cpu->reduce->abs_pow_f32((float *)j->out + begin, (const float *)j->x->data + begin,
                                    end - begin, j->p);
    else
        td_cpu->reduce->abs_pow_f64((double *)j->out + begin, (const double *)j->x->data + begin,
                                    end - begin, j->p);
}

/* |x|^p, row-major. New reference. */
static td_status raised(td_tensor *x, double p, td_tensor **out) {
    td_tensor *flat = NULL;
    td_status status = TD_OK;
    *out = NULL;
    TD_TRY(td_contiguous(x, &flat));
    TD_TRY(td_tensor_empty(x->dtype, TD_DEVICE_CPU, x->ndim, x->sizes, out));
    power_job j = {flat, (*out)->data, p};
    TD_TRY(td_parallel_for(flat->numel, GRAIN / 8, raise_range, &j));
done:
    td_release(flat);
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

td_status td_cpu_norm(td_call *call) {
    td_tensor *x = NULL, *powers = NULL;
    double p = td_arg_double(call->args[1]);
    uint32_t mask;
    td_status status = TD_OK;
    job j = {.reducer = TD_REDUCE_SUM, .finish = FINISH_POWER, .param = 1 / p};
    TD_TRY(td_reduce_dims(call->args[2], call->args[0].tensor->ndim, &mask));
    TD_TRY(as_input(call->args[0].tensor, call->out[0]->dtype, &x));
    if (p == 2) {
        j.reducer = TD_REDUCE_SQUARE_SUM;
    } else if (p == 1 || p == 0 || isinf(p)) {
        j.reducer = p == 1   ? TD_REDUCE_ABS_SUM
                    : p == 0 ? TD_REDUCE_NONZERO
                    : p > 0  ? TD_REDUCE_ABS_MAX
                             : TD_REDUCE_ABS_MIN;
        j.finish = FINISH_PLAIN;
    } else {
        TD_TRY(raised(x, p, &powers));
    }
    TD_TRY(reduce_into(call, &j, powers ? powers : x, mask));
done:
    td_release(powers);
    td_release(x);
    return status;
}
