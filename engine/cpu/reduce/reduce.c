/* reduce.c: reductions on the CPU: sums and their like, variance, norms, extremes.
 *
 * The plan (ops/plan/reduction.h) sees the input as outputs x count. Outputs are walked in chunks,
 * by rows (each output's elements in turn) or by columns (neighbouring outputs side by side),
 * whichever runs along memory. Few outputs with much behind each are cut into pieces along the
 * reduced dims, combined in order. Chunks and pieces follow from the shape alone, so results do not
 * depend on the number of threads. Elements that must be converted, or raised to a power, are read
 * a tile at a time. Short rows are turned into columns; few elements of the result's own dtype
 * behind each output are taken together as pointwise operators take tensors.
 */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/ops/plan/reduction.h"
#include "engine/ops/plan/row_blocks.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    PIECE = 64 * 1024,      /* elements of a piece */
    STRETCH = 4096 * 1024,  /* elements taken without a look at the interrupt flag */
    COLUMNS = 64,           /* that one thread takes together */
    SHORT = 16,             /* elements of rows that are turned into columns */
    TURNED = 128,           /* rows that are turned together */
    DIRECT = 1024,          /* outputs that are taken together as pointwise operators would */
    MOMENT_ROWS = 4096,     /* elements whose mean and deviations are taken together */
    MOMENT_COLUMNS = 64,    /* the same by columns: rows of them */
    MOMENT_TILE = 32 * 1024 /* elements of such a tile, which must stay in a cache */
};

typedef struct job {
    td_reduction plan;
    const char *x;
    td_tensor *out;
    td_dtype stored, dtype; /* of x's elements; what they are converted to */
    bool floating, by_columns, moments, tiled;
    bool norm;             /* of squares or another power */
    bool turned;           /* short rows are turned into columns */
    td_abs_pow_fn abs_pow; /* of each element first; NULL: as it is */
    td_reducer reducer;
    td_accumulator start;
    td_finish finish;
    double param, power;
    double scale; /* float64 tiles are multiplied by it; 0: they are not */
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
    case TD_REDUCE_SUM:
    case TD_REDUCE_NANSUM:
    case TD_REDUCE_ABS_SUM:
    case TD_REDUCE_SQUARE_SUM:
    case TD_REDUCE_CENTERED:
    case TD_REDUCE_NONZERO:
    case TD_REDUCE_ABS_MAX:
    case TD_REDUCE_POWER_SUM:
    case TD_REDUCERS:
        break;
    }
    return floating ? (td_accumulator){.f = 0} : (td_accumulator){.i = 0};
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
    case TD_REDUCE_SUM:
    case TD_REDUCE_NANSUM:
    case TD_REDUCE_ABS_SUM:
    case TD_REDUCE_SQUARE_SUM:
    case TD_REDUCE_CENTERED:
    case TD_REDUCE_NONZERO:
    case TD_REDUCE_POWER_SUM:
    case TD_REDUCERS:
        break;
    }
    if (floating)
        return (td_accumulator){.f = a.f + b.f};
    return (td_accumulator){.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i)};
}

/* rows x n elements of x as a row-major tile of j->dtype. */
static void read_tile(const job *j, void *tile, const char *x, int64_t rows, int64_t row_stride,
                      int64_t n, int64_t stride) {
    int64_t size = (int64_t)td_dtype_size(j->stored), step = (int64_t)td_dtype_size(j->dtype);
    if (row_stride == n * stride) {
        n *= rows;
        rows = 1;
    }
    for (int64_t r = 0; r < rows; r++)
        td_block_read(j->dtype, (char *)tile + r * n * step, j->stored, x + r * row_stride * size,
                      stride, n);
    for (int64_t k = 0; j->scale != 0 && k < rows * n; k++)
        ((double *)tile)[k] *= j->scale;
    if (j->abs_pow)
        j->abs_pow(tile, rows * n, j->power);
}

typedef struct loops {
    td_reduce_rows_fn rows;
    td_reduce_columns_fn columns;
} loops;

/* Like the loops themselves, but through tiles: `outputs` results from n elements each. */
static void fold_tiles(const job *j, const loops *l, td_accumulator *acc, const char *x,
                       int64_t outputs, int64_t n, const double *centers) {
    _Alignas(64) unsigned char tile[TD_BLOCK * 8];
    int64_t row_stride = j->plan.kept_strides[j->plan.nkept - 1];
    int64_t stride = j->plan.reduced_strides[j->plan.nreduced - 1];
    int64_t size = (int64_t)td_dtype_size(j->stored);
    int64_t len = n < TD_BLOCK ? n : TD_BLOCK, take = TD_BLOCK / (j->by_columns ? outputs : len);
    if (j->by_columns) {
        for (int64_t k = 0; k < n; k += take) {
            int64_t rows = n - k < take ? n - k : take;
            read_tile(j, tile, x + k * stride * size, rows, stride, outputs, 1);
            l->columns(acc, tile, rows, outputs, outputs, centers);
        }
        return;
    }
    for (int64_t r = 0; r < outputs; r += take)
        for (int64_t k = 0; k < n; k += len) {
            int64_t rows = outputs - r < take ? outputs - r : take, m = n - k < len ? n - k : len;
            read_tile(j, tile, x + (r * row_stride + k * stride) * size, rows, row_stride, m,
                      stride);
            l->rows(acc + r, tile, rows, m, m, 1, centers ? centers + r : NULL);
        }
}

/* Columns of a tile from rows of a few elements: tile[k * TURNED + r] = x[r * row_stride + k]. */
static void turn_rows(const job *j, void *tile, const char *x, int64_t rows, int64_t row_stride,
                      int64_t n) {
    const size_t size = td_dtype_size(j->stored);
    if (row_stride > 4) {
        td_cpu_turn(tile, TURNED, x, row_stride, n, rows, size);
        return;
    }
    for (int64_t k = 0; k < n; k++)
        td_cpu->pointwise->every((char *)tile + (size_t)(k * TURNED) * size, x + (size_t)k * size,
                                 row_stride, rows, size);
}

/* Like rows of the loops, for rows of at most SHORT elements that lie one after the other. */
static void fold_turned(const job *j, const loops *l, td_accumulator *acc, const char *x,
                        int64_t rows, int64_t row_stride, int64_t n) {
    _Alignas(64) unsigned char tile[SHORT * TURNED * 8];
    const int64_t size = (int64_t)td_dtype_size(j->stored);
    for (int64_t r = 0, m; r < rows; r += m) {
        m = rows - r < TURNED ? rows - r : TURNED;
        turn_rows(j, tile, x + r * row_stride * size, m, row_stride, n);
        l->columns(acc + r, tile, n, TURNED, m, NULL);
    }
}

/* Take the reduced positions [begin, end) of outputs [at, at + n) into acc. */
static void fold(const job *j, int reducer, int64_t at, int64_t n, int64_t begin, int64_t end,
                 td_accumulator *acc, const double *centers) {
    const td_reduction *p = &j->plan;
    loops l = {td_cpu->reduce->rows[reducer][j->dtype], td_cpu->reduce->columns[reducer][j->dtype]};
    int64_t row_stride = p->kept_strides[p->nkept - 1];
    int64_t stride = p->reduced_strides[p->nreduced - 1];
    int64_t size = (int64_t)td_dtype_size(j->stored);
    for (int64_t o = at; o < at + n;) {
        td_segment kept = td_reduction_kept(p, o, at + n);
        const double *c = centers ? centers + (o - at) : NULL;
        int64_t most = 1 + STRETCH / kept.len;
        for (int64_t r = begin; r < end && !td_interrupt_requested();) {
            td_segment reduced = td_reduction_reduced(p, r, end - r < most ? end : r + most);
            const char *x = j->x + (kept.offset + reduced.offset) * size;
            if (j->tiled)
                fold_tiles(j, &l, acc + (o - at), x, kept.len, reduced.len, c);
            else if (j->by_columns)
                l.columns(acc + (o - at), x, reduced.len, stride, kept.len, c);
            else if (j->turned && reduced.len <= SHORT)
                fold_turned(j, &l, acc + (o - at), x, kept.len, row_stride, reduced.len);
            else
                l.rows(acc + (o - at), x, kept.len, row_stride, reduced.len, stride, c);
            r += reduced.len;
        }
        o += kept.len;
    }
}

/* Centers must be numbers that the dtype holds in which the deviations are taken. */
static void round_centers(td_dtype dtype, double *center, const double *exact, int64_t n) {
    unsigned char rounded[TD_REDUCE_WIDTH * 8];
    td_cpu->convert->convert[dtype][TD_F64](n, rounded, exact);
    td_cpu->convert->convert[TD_F64][dtype](n, center, rounded);
}

static void clear(td_accumulator *acc, int64_t n) {
    memset(acc, 0, sizeof *acc * (size_t)n);
}

static void begin_all(const job *j, td_accumulator *acc, int64_t n) {
    td_cpu->pointwise->repeat(acc, &j->start, n, sizeof *acc);
}

/* Means of outputs [at, at + n) over [begin, end), taken from the distances to each one's first
 * element: where the elements lie close together for their size, a plain sum would lose what
 * distinguishes them. */
static void fold_means(const job *j, int64_t at, int64_t n, int64_t begin, int64_t end,
                       double *mean) {
    td_accumulator acc[TD_REDUCE_WIDTH];
    clear(acc, n);
    fold(j, TD_REDUCE_SUM, at, n, begin, begin + 1, acc, NULL);
    for (int64_t k = 0; k < n; k++)
        mean[k] = acc[k].f;
    clear(acc, n);
    fold(j, TD_FOLD_SHIFTED, at, n, begin, end, acc, mean);
    for (int64_t k = 0; k < n; k++)
        mean[k] += acc[k].f / (double)(end - begin);
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
    for (int64_t r = begin; r < end && !td_interrupt_requested(); r += step) {
        int64_t len = end - r < step ? end - r : step;
        double before = (double)(r - begin), now = (double)len, after = before + now;
        fold_means(j, at, n, r, r + len, exact);
        clear(acc, n);
        round_centers(td_dtype_wide(j->dtype), center, exact, n);
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

/* A double by its reciprocal is off by a unit or two, which no result of less digits shows. */
static void divide(td_dtype dtype, double by, td_accumulator *acc, int64_t n) {
    if (dtype == TD_F64) {
        for (int64_t k = 0; k < n; k++)
            acc[k].f /= by;
        return;
    }
    const double times = 1 / by;
    for (int64_t k = 0; k < n; k++)
        acc[k].f *= times;
}

static void take_roots(td_accumulator *acc, int64_t n) {
    td_cpu->pointwise->primitive[TD_PW_sqrt][TD_F64](n, acc, acc, NULL, NULL, 0);
}

/* `dtype`: of the results; `count`: elements behind each. */
static void finish_values(td_finish finish, double param, bool floating, td_dtype dtype,
                          int64_t count, td_accumulator *acc, int64_t n) {
    switch (finish) {
    case TD_FINISH_PLAIN:
        break;
    case TD_FINISH_DIVIDE:
        divide(dtype, param, acc, n);
        break;
    case TD_FINISH_POWER:
        if (param == 0.5)
            take_roots(acc, n);
        else
            for (int64_t k = 0; k < n; k++)
                acc[k].f = pow(acc[k].f, param);
        break;
    case TD_FINISH_ALL:
        for (int64_t k = 0; k < n; k++)
            if (floating)
                acc[k].f = acc[k].f == (double)count;
            else
                acc[k].i = acc[k].i == count;
        break;
    case TD_FINISH_ANY:
        for (int64_t k = 0; k < n; k++)
            if (floating)
                acc[k].f = acc[k].f != 0;
            else
                acc[k].i = acc[k].i != 0;
        break;
    case TD_FINISH_STD:
        divide(dtype, param, acc, n);
        take_roots(acc, n);
        break;
    }
}

/* Below this a sum of squares may have lost some on the way. */
static double least_squares(td_dtype dtype, int64_t count) {
    static const double least[TD_DTYPE_COUNT] = {
        [TD_F16] = 0x1p-90, [TD_BF16] = 0x1p-90, [TD_F32] = 0x1p-90, [TD_F64] = 0x1p-960};
    return (double)count * least[dtype];
}

/* Is this sum of squares too large or too small? */
static bool needs_scale(double least, double sum) {
    return (sum < least) | (sum > DBL_MAX);
}

/* What output `at` of a norm or of squared deviations is where these are too large or too small to
 * be added as they are, `plain`: worked out in double, of elements scaled by the power of two that
 * brings the largest (of a negative power's the smallest) to 1. */
static double scaled(const job *j, int64_t at, double plain) {
    job wide = *j;
    const td_reducer size = j->power < 0 ? TD_REDUCE_ABS_MIN : TD_REDUCE_ABS_MAX;
    td_accumulator acc = start_of(size, true);
    double mean;
    wide.dtype = TD_F64;
    wide.tiled = true;
    wide.abs_pow = NULL;
    fold(&wide, size, at, 1, 0, j->plan.count, &acc, NULL);
    if (acc.f == 0 || !isfinite(acc.f))
        return j->moments ? plain : fabs(acc.f); /* of -0 too */
    int exponent = ilogb(acc.f);
    wide.scale = ldexp(1, exponent < -1023 ? 1023 : -exponent);
    if (j->abs_pow)
        wide.abs_pow = td_cpu->reduce->abs_pow[TD_F64];
    acc.f = 0;
    if (j->moments)
        fold_moments(&wide, at, 1, 0, j->plan.count, &mean, &acc);
    else
        fold(&wide, j->reducer, at, 1, 0, j->plan.count, &acc, NULL);
    finish_values(j->finish, j->param, true, TD_F64, j->plan.count, &acc, 1);
    return j->finish == TD_FINISH_DIVIDE ? acc.f / wide.scale / wide.scale : acc.f / wide.scale;
}

/* Sums of squares, or of other powers, of n <= TD_REDUCE_WIDTH outputs. */
static void finish_powers(const job *j, int64_t at, int64_t n, td_accumulator *acc) {
    const double least = least_squares(j->dtype, j->plan.count);
    bool odd[TD_REDUCE_WIDTH];
    int64_t any = 0;
    for (int64_t k = 0; k < n; k++)
        any |= odd[k] = needs_scale(least, acc[k].f) | (j->moments & isnan(acc[k].f));
    finish_values(j->finish, j->param, true, (td_dtype)j->out->dtype, j->plan.count, acc, n);
    for (int64_t k = 0; any && k < n; k++)
        if (odd[k])
            acc[k].f = scaled(j, at + k, acc[k].f);
}

/* Writes outputs [at, at + n), n <= TD_REDUCE_WIDTH, from what their folds left. */
static void deliver(const job *j, int64_t at, int64_t n, td_accumulator *acc) {
    const td_reduction *p = &j->plan;
    td_dtype dtype = (td_dtype)j->out->dtype, grown = j->floating ? TD_F64 : TD_I64;
    if (j->norm || j->moments)
        finish_powers(j, at, n, acc);
    else
        finish_values(j->finish, j->param, j->floating, dtype, p->count, acc, n);
    for (int64_t o = at; o < at + n;) {
        td_segment kept = td_reduction_kept(p, o, at + n);
        char *out = (char *)j->out->data + kept.out_offset * (int64_t)td_dtype_size(dtype);
        td_block_write(dtype, out, p->out_strides[p->nkept - 1], grown, acc + (o - at), kept.len);
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
            begin_all(j, acc, n);
            fold(j, j->reducer, at, n, 0, j->plan.count, acc, NULL);
        }
        deliver(j, at, n, acc);
    }
}

/* Neighbouring columns are an item: alone they would read all of each cache line for little. */
static void reduce_columns(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    int64_t last = end * COLUMNS < j->plan.outputs ? end * COLUMNS : j->plan.outputs;
    reduce_outputs(ctx, begin * COLUMNS, last, worker);
}

/* ---- few elements behind each output ---- */

/* The operator that takes two elements of a reduction together in the result's dtype: rounding
 * as that does; -1: none. */
static int primitive_of(const job *j) {
    const bool one = j->plan.count == 1, narrow = j->dtype == TD_F16 || j->dtype == TD_BF16;
    const td_reducer reducer = j->reducer;
    if (reducer == TD_REDUCE_MAX || reducer == TD_REDUCE_MIN)
        return reducer == TD_REDUCE_MAX ? TD_PW_maximum : TD_PW_minimum;
    if (reducer == TD_REDUCE_SUM) /* floats in rows are added in double */
        return one || !j->floating || (j->by_columns && !narrow) ? TD_PW_add : -1;
    if (reducer == TD_REDUCE_PROD) /* of floats in double, which is the same of two */
        return j->plan.count <= 2 || j->dtype == TD_F64 || !j->floating ? TD_PW_mul : -1;
    if (j->norm)
        return one ? TD_PW_abs : -1;
    if (reducer == TD_REDUCE_NONZERO) /* any and all alone have truths as results */
        return one ? TD_PW_ne : -1;
    return -1;
}

/* Its loop; NULL: the reduction is none of these. */
static td_pointwise_fn direct_loop(const job *j) {
    const td_reduction *p = &j->plan;
    const td_dtype made = (td_dtype)j->out->dtype;
    const int primitive = p->count > 0 && p->count <= SHORT ? primitive_of(j) : -1;
    const bool rows = p->nreduced == 1 && p->reduced_strides[0] == 1;
    const bool divides = j->finish == TD_FINISH_DIVIDE;
    if (primitive < 0 || j->tiled || made != (primitive == TD_PW_ne ? TD_BOOL : j->dtype) ||
        p->out_strides[p->nkept - 1] != 1 || !(j->by_columns || rows) || p->outputs < TURNED)
        return NULL;
    if (primitive != TD_PW_ne && primitive != TD_PW_abs && j->finish != TD_FINISH_PLAIN &&
        !(divides && (j->dtype == TD_F32 || j->dtype == TD_F64)))
        return NULL;
    if (j->dtype == TD_F16 || j->dtype == TD_BF16)
        return td_cpu->pointwise->narrow[primitive][j->dtype == TD_BF16];
    return td_cpu->pointwise->primitive[primitive][j->dtype];
}

/* out[o] for o < n from the reduced positions, of which the k-th lie at x[k]. */
static void combine_directly(const job *j, td_pointwise_fn loop, int64_t n, char *out,
                             const char *const *x) {
    static const _Alignas(8) unsigned char zero[8];
    const int64_t count = j->plan.count;
    int64_t k = 1;
    if (j->reducer == TD_REDUCE_SUM || j->reducer == TD_REDUCE_NONZERO)
        loop(n, out, x[0], zero, NULL, 2); /* -0 is added to 0 */
    else if (j->norm)
        loop(n, out, x[0], NULL, NULL, 0);
    else if (count == 1)
        memcpy(out, x[0], (size_t)n * td_dtype_size(j->dtype));
    else
        loop(n, out, x[0], x[k++], NULL, 0);
    for (; k < count; k++)
        loop(n, out, out, x[k], NULL, 0);
    if (j->finish == TD_FINISH_DIVIDE && j->reducer == TD_REDUCE_SUM) {
        _Alignas(8) unsigned char by[8];
        td_store_double(j->dtype, by, j->param);
        td_cpu->pointwise->primitive[TD_PW_div][j->dtype](n, out, out, by, NULL, 2);
    }
}

static void reduce_directly(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_reduction *p = &j->plan;
    const td_pointwise_fn loop = direct_loop(j);
    const size_t size = td_dtype_size(j->dtype), made = td_dtype_size((td_dtype)j->out->dtype);
    const int64_t last = end * DIRECT < p->outputs ? end * DIRECT : p->outputs;
    _Alignas(64) unsigned char tile[SHORT * TURNED * 8];
    int64_t offsets[SHORT];
    const char *x[SHORT];
    (void)worker;
    for (int64_t k = 0; k < p->count; k++)
        offsets[k] = td_reduction_reduced(p, k, k + 1).offset;
    for (int64_t o = begin * DIRECT, m; o < last && !td_interrupt_requested(); o += m) {
        td_segment kept = td_reduction_kept(p, o, last);
        const int64_t most = j->by_columns ? DIRECT : TURNED;
        m = kept.len < most ? kept.len : most;
        const char *from = j->x + (size_t)kept.offset * size;
        for (int64_t k = 0; k < p->count; k++)
            x[k] = j->by_columns ? from + (size_t)offsets[k] * size
                                 : (const char *)tile + (size_t)(k * TURNED) * size;
        if (!j->by_columns)
            turn_rows(j, tile, from, m, p->kept_strides[p->nkept - 1], p->count);
        combine_directly(j, loop, m, (char *)j->out->data + (size_t)kept.out_offset * made, x);
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
            begin_all(j, acc, n);
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
    td_status status = td_parallel_for(j->pieces, 2 * PIECE, reduce_pieces, j);
    if (status == TD_OK) {
        join_pieces(j);
        for (int64_t at = 0; at < outputs; at += TD_REDUCE_WIDTH)
            deliver(j, at, outputs - at < TD_REDUCE_WIDTH ? outputs - at : TD_REDUCE_WIDTH,
                    j->partial + at);
    }
    td_free(j->partial);
    return status;
}

/* Ways that depend on how many rows there are: pieces, and rows that are turned together. */
_Static_assert(PIECE == (int)TD_ROW_BLOCK_LONG, "pieces of rows");
#if !defined(TD_LIMITS_VARIABLE)
_Static_assert(TD_LIMIT(REDUCE_ROWS_CUT) <= (int)TD_ROW_BLOCK_FEW, "rows that are cut");
#endif
_Static_assert(TURNED <= (int)TD_ROW_BLOCK_SHORT && SHORT <= (int)TD_ROW_BLOCK_SHORT,
               "blocks of rows");

/* Cut the reduced dims when there are few outputs with much behind each. */
static void choose_pieces(job *j) {
    const td_reduction *p = &j->plan;
    int64_t few = j->by_columns ? TD_LIMIT(REDUCE_COLUMNS_CUT) : TD_LIMIT(REDUCE_ROWS_CUT);
    j->pieces = 1;
    if (p->outputs >= few || p->count < 2 || p->outputs * p->count < 2 * PIECE)
        return;
    j->piece_len = td_reduce_piece(p->outputs, p->count);
    j->pieces = (p->count + j->piece_len - 1) / j->piece_len;
}

static bool is_norm(const td_reduce_plan *plan) {
    return plan->finish == TD_FINISH_POWER;
}

/* The call that a prompt makes most: all elements of a row-major tensor that is one piece, by the
 * loop alone. Returns false when it is not that, having done nothing. */
static bool reduce_at_once(const td_reduce_plan *plan) {
    const td_tensor *x = plan->x, *out = plan->out;
    td_dtype dtype = plan->compute;
    bool floating = td_dtype_is_float(dtype);
    if (out->numel != 1 || !x->contiguous || x->dtype != dtype || x->numel >= 2 * PIECE ||
        x->numel == 0 || plan->reducer == TD_REDUCE_CENTERED ||
        plan->reducer == TD_REDUCE_POWER_SUM)
        return false;
    td_reduce_rows_fn rows = td_cpu->reduce->rows[plan->reducer][dtype];
    if (!rows)
        return false;
    td_accumulator acc = start_of(plan->reducer, floating);
    rows(&acc, x->data, 1, 0, x->numel, 1, NULL);
    if (is_norm(plan) && needs_scale(least_squares(dtype, x->numel), acc.f))
        return false;
    finish_values(plan->finish, plan->param, floating, (td_dtype)out->dtype, x->numel, &acc, 1);
    td_block_write((td_dtype)out->dtype, out->data, 1, floating ? TD_F64 : TD_I64, &acc, 1);
    return true;
}

/* What does not follow from shape and strides. */
static void prepare(job *j, const td_reduce_plan *plan) {
    const td_tensor *x = plan->x;
    bool power = plan->reducer == TD_REDUCE_POWER_SUM;
    *j = (job){.x = x->data,
               .out = plan->out,
               .stored = (td_dtype)x->dtype,
               .dtype = power ? td_dtype_wide(plan->compute) : plan->compute,
               .floating = td_dtype_is_float(plan->compute),
               .reducer = power ? TD_REDUCE_SUM : plan->reducer,
               .moments = plan->reducer == TD_REDUCE_CENTERED,
               .norm = is_norm(plan),
               .finish = plan->finish,
               .param = plan->param,
               .power = plan->power};
    j->abs_pow = power ? td_cpu->reduce->abs_pow[j->dtype] : NULL;
    j->start = start_of(j->reducer, j->floating);
    j->tiled = power || j->dtype != j->stored;
}

static void lay_out(job *j, const td_reduce_plan *plan) {
    td_reduction *p = &j->plan;
    td_reduction_plan(plan->x, plan->mask, plan->out, p);
    int64_t stride = p->reduced_strides[p->nreduced - 1];
    j->by_columns = p->kept_strides[p->nkept - 1] == 1 && (stride != 1 || p->count == 1);
    j->turned = !j->by_columns && !j->tiled && !j->moments && stride == 1 &&
                (j->reducer != TD_REDUCE_SUM || j->dtype == TD_F16 || j->dtype == TD_BF16);
    choose_pieces(j);
}

static td_status check_loops(const job *j, const td_reduce_plan *plan) {
    bool lacks_power = plan->reducer == TD_REDUCE_POWER_SUM && !j->abs_pow;
    return td_cpu->reduce->rows[j->reducer][j->dtype] && !lacks_power ? TD_OK
                                                                      : td_cpu_lacks(j->stored);
}

td_status td_cpu_reduce(const td_reduce_plan *plan) {
    if (reduce_at_once(plan))
        return TD_OK;
    job j;
    prepare(&j, plan);
    td_status status = check_loops(&j, plan);
    if (status)
        return status;
    lay_out(&j, plan);
    if (j.pieces > 1)
        return run_pieces(&j);
    if (direct_loop(&j))
        return td_parallel_for((j.plan.outputs + DIRECT - 1) / DIRECT, j.plan.count * DIRECT,
                               reduce_directly, &j);
    if (j.by_columns)
        return td_parallel_for((j.plan.outputs + COLUMNS - 1) / COLUMNS, 2 * j.plan.count * COLUMNS,
                               reduce_columns, &j);
    return td_parallel_for(j.plan.outputs, 2 * j.plan.count, reduce_outputs, &j);
}

/* ---- many tensors ---- */

typedef struct lists {
    const td_reduce_plan *plans;
    int64_t *starts;         /* of each one's items, and of the end */
    td_accumulator *partial; /* of each item, where there is more than one */
} lists;

/* A small tensor is one item, a large one has one for each of its pieces. */
static void reduce_item(const lists *l, int k, int64_t piece) {
    const td_reduce_plan *plan = &l->plans[k];
    bool whole = l->starts[k + 1] - l->starts[k] == 1;
    job j;
    if (whole && reduce_at_once(plan))
        return;
    prepare(&j, plan);
    lay_out(&j, plan);
    j.partial = l->partial + l->starts[k];
    if (whole)
        reduce_outputs(&j, 0, 1, 0);
    else
        reduce_pieces(&j, piece, piece + 1, 0);
}

static void reduce_items(void *ctx, int64_t begin, int64_t end, int worker) {
    const lists *l = ctx;
    int k = 0;
    (void)worker;
    while (l->starts[k + 1] <= begin)
        k++;
    for (int64_t item = begin; item < end && !td_interrupt_requested(); item++) {
        while (l->starts[k + 1] <= item)
            k++;
        reduce_item(l, k, item - l->starts[k]);
    }
}

/* The number of items, and of elements. */
static td_status number_items(lists *l, int n, int64_t *items, int64_t *elements) {
    *items = *elements = 0;
    for (int k = 0; k < n; k++) {
        job j;
        l->starts[k] = *items;
        prepare(&j, &l->plans[k]);
        td_status status = check_loops(&j, &l->plans[k]);
        if (status)
            return status;
        j.plan.outputs = 1;
        j.plan.count = l->plans[k].x->numel;
        choose_pieces(&j);
        *items += j.pieces;
        *elements += j.plan.count;
    }
    l->starts[n] = *items;
    return TD_OK;
}

static void join_lists(const lists *l, int n) {
    for (int k = 0; k < n; k++) {
        job j;
        if (l->starts[k + 1] - l->starts[k] == 1)
            continue;
        prepare(&j, &l->plans[k]);
        lay_out(&j, &l->plans[k]);
        j.partial = l->partial + l->starts[k];
        join_pieces(&j);
        deliver(&j, 0, 1, j.partial);
    }
}

td_status td_cpu_reduce_lists(const td_reduce_lists_plan *plan) {
    lists l = {.plans = plan->plans};
    int64_t items, elements;
    td_status status = TD_OK;
    l.starts = td_malloc(sizeof *l.starts * (size_t)(plan->n + 1));
    if (!l.starts)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory for %d reductions", plan->n));
    TD_TRY(number_items(&l, plan->n, &items, &elements));
    l.partial = td_malloc(sizeof *l.partial * (size_t)(items + 1));
    if (!l.partial)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory for partial results"));
    TD_TRY(td_parallel_for(items, 1 + 2 * elements / (items + 1), reduce_items, &l));
    join_lists(&l, plan->n);
done:
    td_free(l.partial);
    td_free(l.starts);
    return status;
}
