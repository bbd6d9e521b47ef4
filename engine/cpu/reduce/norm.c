/* norm.c: normalisation of rows on the CPU and its gradients: a row is read from memory once each
 * way and from the cache after that. Knows rows and weights; what they are called is the
 * operators' business. */
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/reduce/norm_channels.h"
#include "engine/ops/make/copy.h"

#include <math.h>
#include <string.h>

/* Rows whose gradients of the weights are summed in the wide dtype before they go on in double; and
 * elements of the sums that are put together at once. */
enum { BLOCK = 128, STRIP = 256 };

typedef struct job {
    td_norm_shape shape;
    const td_norm_functions *fns;
    td_dtype dtype, wide;
    int64_t rows, n, size, wide_size; /* size: bytes of an element */
    int64_t weights;                  /* groups x per */
    const char *x, *g, *weight, *bias;
    char *out, *mean, *rstd;
    char *dweight, *dbias; /* a row of `weights` sums for each block; NULL: not wanted */
} job;

static td_status begin_job(job *j, const td_norm_shape *shape, td_dtype dtype) {
    j->shape = *shape;
    j->fns = td_cpu->norm->of[dtype];
    j->dtype = dtype;
    j->wide = td_dtype_wide(dtype);
    j->rows = shape->batch * shape->groups;
    j->n = shape->per * shape->inner;
    j->weights = shape->groups * shape->per;
    j->size = (int64_t)td_dtype_size(dtype);
    j->wide_size = (int64_t)td_dtype_size(j->wide);
    return j->fns ? TD_OK : td_fail(TD_EDTYPE, "no kernel for %s", td_dtype_name(dtype));
}

static const char *data_of(const td_tensor *x) {
    return x ? x->data : NULL;
}

/* A number of a list of them; `otherwise` where there is no list. */
static double number_at(const job *j, const char *list, int64_t k, double otherwise) {
    return list ? td_load_double(j->wide, list + k * j->wide_size) : otherwise;
}

/* The first weight of a row, NULL where there are none. */
static const char *of_row(const job *j, const char *list, int64_t row) {
    return list ? list + row % j->shape.groups * j->shape.per * j->wide_size : NULL;
}

/* ---- forward ---- */

/* ---- rows whose squares leave the dtype ---- */

static double squares_of(const job *j, const char *x, double scale, double mean) {
    double block[TD_BLOCK], sum = 0;
    for (int64_t at = 0, n; at < j->n; at += n) {
        n = j->n - at < TD_BLOCK ? j->n - at : TD_BLOCK;
        td_block_read(TD_F64, block, j->dtype, x + at * j->size, 1, n);
        for (int64_t k = 0; k < n; k++)
            sum += (block[k] * scale - mean) * (block[k] * scale - mean);
    }
    return sum;
}

/* The largest |x|, or NaN; and the sum of x * scale. */
static double largest_of(const job *j, const char *x, double scale, double *sum) {
    double block[TD_BLOCK], most = 0;
    *sum = 0;
    for (int64_t at = 0, n; at < j->n; at += n) {
        n = j->n - at < TD_BLOCK ? j->n - at : TD_BLOCK;
        td_block_read(TD_F64, block, j->dtype, x + at * j->size, 1, n);
        for (int64_t k = 0; k < n; k++) {
            most = fabs(block[k]) > most || block[k] != block[k] ? fabs(block[k]) : most;
            *sum += block[k] * scale;
        }
    }
    return most;
}

static bool is_odd(const job *j, double squares) {
    return td_cpu_norm_is_odd(j->wide, squares, (double)j->n, j->shape.eps);
}

/* The row in double, scaled by the power of two that brings its largest element to 1. Returns
 * false where that is 0 or no number: the row stays as it is. */
static bool run_odd_row(const job *j, int64_t row) {
    const char *x = j->x + row * j->n * j->size;
    const char *w = of_row(j, j->weight, row), *b = of_row(j, j->bias, row);
    double block[TD_BLOCK], sum, most = largest_of(j, x, 1, &sum);
    if (most == 0 || !isfinite(most))
        return false;
    const int exponent = ilogb(most);
    const double scale = ldexp(1, exponent < -1023 ? 1023 : -exponent);
    largest_of(j, x, scale, &sum);
    const double mean = j->shape.centered ? sum / (double)j->n : 0;
    const double mean_square = squares_of(j, x, scale, mean) / (double)j->n;
    const double factor = 1 / sqrt(mean_square + j->shape.eps * scale * scale);
    td_store_double(j->wide, j->mean + row * j->wide_size, mean / scale);
    td_store_double(j->wide, j->rstd + row * j->wide_size, factor * scale);
    for (int64_t at = 0, n; at < j->n; at += n) {
        n = j->n - at < TD_BLOCK ? j->n - at : TD_BLOCK;
        td_block_read(TD_F64, block, j->dtype, x + at * j->size, 1, n);
        for (int64_t k = 0; k < n; k++) {
            const int64_t c = (at + k) / j->shape.inner;
            block[k] =
                (block[k] * scale - mean) * factor * number_at(j, w, c, 1) + number_at(j, b, c, 0);
        }
        td_block_write(j->dtype, j->out + (row * j->n + at) * j->size, 1, TD_F64, block, n);
    }
    return true;
}

static void run_row(const job *j, int64_t row) {
    const td_norm_shape *s = &j->shape;
    const char *x = j->x + row * j->n * j->size;
    const char *w = of_row(j, j->weight, row), *b = of_row(j, j->bias, row);
    char *out = j->out + row * j->n * j->size;
    double moments[2] = {0, 0};
    if (s->centered)
        j->fns->moments(x, j->n, moments);
    else
        moments[1] = j->fns->squares(x, j->n);
    if (TD_UNLIKELY(is_odd(j, moments[1])) && run_odd_row(j, row))
        return;
    double mean = moments[0], factor = 1 / sqrt(moments[1] / (double)j->n + s->eps);
    td_store_double(j->wide, j->mean + row * j->wide_size, mean);
    td_store_double(j->wide, j->rstd + row * j->wide_size, factor);
    if (s->inner == 1) {
        j->fns->scale(out, x, w, b, j->n, mean, factor);
        return;
    }
    for (int64_t c = 0; c < s->per; c++) {
        const double k[4] = {0, mean, factor * number_at(j, w, c, 1), number_at(j, b, c, 0)};
        int64_t at = c * s->inner * j->size;
        j->fns->back(out + at, NULL, x + at, NULL, s->inner, k);
    }
}

static void run_rows(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t row = begin; row < end; row++)
        run_row(ctx, row);
}

/* Short rows are turned, so that a vector holds elements of as many rows. One is too: its result
 * does not depend on how many there are. */
static bool is_short(const td_norm_shape *s) {
    return s->inner == 1 && s->groups == 1 && s->per > 0 && s->per <= TD_NORM_SHORT;
}

static void run_tiles(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    const td_norm_tile t = {.n = j->n,
                            .eps = j->shape.eps,
                            .centered = j->shape.centered,
                            .weight = j->weight,
                            .bias = j->bias};
    _Alignas(64) char tile[TD_NORM_SHORT * TD_NORM_WIDTH * 8];
    _Alignas(64) char mean[TD_NORM_WIDTH * 8], rstd[TD_NORM_WIDTH * 8];
    const size_t size = (size_t)j->size, wide = (size_t)j->wide_size;
    (void)worker;
    for (int64_t item = begin; item < end; item++) {
        int64_t row = item * TD_NORM_WIDTH, left = j->rows - row, at = row * j->n * j->size;
        int64_t rows = left < TD_NORM_WIDTH ? left : TD_NORM_WIDTH;
        if (rows < TD_NORM_WIDTH)
            memset(tile, 0, (size_t)j->n * TD_NORM_WIDTH * size);
        td_cpu_turn(tile, TD_NORM_WIDTH, j->x + at, j->n, j->n, rows, size);
        j->fns->tile(tile, &t, mean, rstd);
        td_cpu_turn(j->out + at, j->n, tile, TD_NORM_WIDTH, rows, j->n, size);
        memcpy(j->mean + (size_t)row * wide, mean, (size_t)rows * wide);
        memcpy(j->rstd + (size_t)row * wide, rstd, (size_t)rows * wide);
        for (int64_t r = 0; r < rows; r++) {
            const double factor = number_at(j, rstd, r, 0);
            if (TD_UNLIKELY(is_odd(j, (double)j->n / (factor * factor) - (double)j->n * t.eps)))
                (void)run_odd_row(j, row + r);
        }
    }
}

td_status td_cpu_norm(const td_norm_plan *plan) {
    td_tensor *out = plan->out, *x = NULL, *weight = NULL, *bias = NULL, *result = NULL;
    td_dtype dtype = (td_dtype)out->dtype;
    job j;
    td_status status = TD_OK;
    if (td_cpu_norm_is_of_channels(plan)) {
        bool odd = false;
        status = td_cpu_norm_channels(plan, &odd);
        if (status || !odd)
            return status;
    }
    TD_TRY(begin_job(&j, &plan->shape, dtype));
    TD_TRY(td_contiguous_as(plan->x, dtype, &x));
    TD_TRY(td_contiguous_or_none(plan->weight, j.wide, &weight));
    TD_TRY(td_contiguous_or_none(plan->bias, j.wide, &bias));
    if (out->contiguous)
        result = td_retain(out);
    else
        TD_TRY(td_tensor_empty(dtype, TD_DEVICE_CPU, out->ndim, out->sizes, &result));
    j.x = x->data;
    j.weight = data_of(weight);
    j.bias = data_of(bias);
    j.out = result->data;
    j.mean = plan->mean->data;
    j.rstd = plan->rstd->data;
    if (is_short(&j.shape))
        TD_TRY(td_parallel_for((j.rows + TD_NORM_WIDTH - 1) / TD_NORM_WIDTH,
                               4 * j.n * TD_NORM_WIDTH, run_tiles, &j));
    else
        TD_TRY(td_parallel_for(j.rows, 4 * j.n + 16, run_rows, &j));
    if (result != out)
        TD_TRY(td_copy_into(out, result));
done:
    td_release(x);
    td_release(weight);
    td_release(bias);
    td_release(result);
    return status;
}

/* ---- backward ---- */

/* The sums of a row whose weights stand for single elements. */
static void back_elements(const job *j, int64_t row, int64_t block, double mean, double factor,
                          double sums[2]) {
    int64_t at = row * j->n * j->size;
    int64_t sum = (block * j->weights + row % j->shape.groups * j->n) * j->wide_size;
    j->fns->sums(j->g + at, j->x + at, of_row(j, j->weight, row), j->n, mean, sums);
    if (j->dweight)
        j->fns->gather(j->dweight + sum, j->dbias + sum, j->g + at, j->x + at, j->n, mean, factor);
}

static void add_number(const job *j, char *at, double value) {
    td_store_double(j->wide, at, td_load_double(j->wide, at) + value);
}

/* The same of a row whose weights stand for runs of elements. */
static void back_runs(const job *j, int64_t row, int64_t block, double mean, double factor,
                      double sums[2]) {
    const char *w = of_row(j, j->weight, row);
    int64_t first = block * j->weights + row % j->shape.groups * j->shape.per;
    sums[0] = sums[1] = 0;
    for (int64_t c = 0; c < j->shape.per; c++) {
        int64_t at = (row * j->n + c * j->shape.inner) * j->size;
        double own[2], weight = number_at(j, w, c, 1);
        j->fns->sums(j->g + at, j->x + at, NULL, j->shape.inner, mean, own);
        sums[0] += weight * own[0];
        sums[1] += weight * own[1];
        if (j->dweight) {
            add_number(j, j->dweight + (first + c) * j->wide_size, own[1] * factor);
            add_number(j, j->dbias + (first + c) * j->wide_size, own[0]);
        }
    }
}

/* Does the third power of the factor, or what it is multiplied by, leave the dtype? */
static bool leaves(const job *j, double factor) {
    static const double numbers[TD_DTYPE_COUNT] = {[TD_F32] = 0x1p40, [TD_F64] = 0x1p320};
    const double most = numbers[j->wide];
    return isfinite(factor) && factor > 0 && (factor > most || factor < 1 / most);
}

/* The gradient in double, of the row scaled by the power of two that brings its factor to 1. */
static void back_odd_row(const job *j, int64_t row, int64_t block, double mean, double factor) {
    const td_norm_shape *s = &j->shape;
    const char *w = of_row(j, j->weight, row);
    const double scale = ldexp(1, ilogb(factor)), r = factor / scale;
    double x[TD_BLOCK], g[TD_BLOCK], sums[2] = {0, 0};
    for (int pass = 0; pass < 2; pass++)
        for (int64_t at = 0, n; at < j->n; at += n) {
            n = j->n - at < TD_BLOCK ? j->n - at : TD_BLOCK;
            td_block_read(TD_F64, x, j->dtype, j->x + (row * j->n + at) * j->size, 1, n);
            td_block_read(TD_F64, g, j->dtype, j->g + (row * j->n + at) * j->size, 1, n);
            for (int64_t k = 0; k < n; k++) {
                const int64_t c = (at + k) / s->inner;
                const double own = g[k] * number_at(j, w, c, 1),
                             y = (x[k] * scale - mean * scale) * r;
                if (pass) {
                    const double less = s->centered ? sums[0] : 0;
                    g[k] = factor * (own - (y * sums[1] + less) / (double)j->n);
                    continue;
                }
                sums[0] += own;
                sums[1] += own * y;
                if (j->dweight) {
                    const int64_t of = block * j->weights + row % s->groups * s->per + c;
                    add_number(j, j->dweight + of * j->wide_size, g[k] * y);
                    add_number(j, j->dbias + of * j->wide_size, g[k]);
                }
            }
            if (pass)
                td_block_write(j->dtype, j->out + (row * j->n + at) * j->size, 1, TD_F64, g, n);
        }
}

static void back_row(const job *j, int64_t row, int64_t block) {
    const td_norm_shape *s = &j->shape;
    const char *w = of_row(j, j->weight, row);
    double mean = number_at(j, j->mean, row, 0), factor = number_at(j, j->rstd, row, 1), sums[2];
    if (TD_UNLIKELY(leaves(j, factor))) {
        back_odd_row(j, row, block, mean, factor);
        return;
    }
    (s->inner == 1 ? back_elements : back_runs)(j, row, block, mean, factor, sums);
    double along = -factor * factor * factor * sums[1] / (double)j->n;
    double shift = s->centered ? -factor * sums[0] / (double)j->n : 0;
    const double k[4] = {factor, mean, along, shift};
    int64_t at = row * j->n * j->size;
    if (s->inner == 1) {
        j->fns->back(j->out + at, j->g + at, j->x + at, w, j->n, k);
        return;
    }
    for (int64_t c = 0; c < s->per; c++, at += s->inner * j->size) {
        const double own[4] = {factor * number_at(j, w, c, 1), mean, along, shift};
        j->fns->back(j->out + at, j->g + at, j->x + at, NULL, s->inner, own);
    }
}

static void back_blocks(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    (void)worker;
    for (int64_t block = begin; block < end; block++) {
        int64_t last = (block + 1) * BLOCK < j->rows ? (block + 1) * BLOCK : j->rows;
        size_t bytes = (size_t)(j->weights * j->wide_size);
        if (j->dweight) {
            memset(j->dweight + block * j->weights * j->wide_size, 0, bytes);
            memset(j->dbias + block * j->weights * j->wide_size, 0, bytes);
        }
        for (int64_t row = block * BLOCK; row < last; row++)
            back_row(j, row, block);
    }
}

/* The blocks' sums, in their order. */
static void add_blocks(const job *j, int64_t blocks, const char *parts, char *out) {
    for (int64_t at = 0; at < j->weights; at += STRIP) {
        double sums[STRIP] = {0};
        int64_t width = j->weights - at < STRIP ? j->weights - at : STRIP;
        for (int64_t block = 0; block < blocks; block++)
            for (int64_t c = 0; c < width; c++)
                sums[c] += number_at(j, parts, block * j->weights + at + c, 0);
        for (int64_t c = 0; c < width; c++)
            td_store_double(j->wide, out + (at + c) * j->wide_size, sums[c]);
    }
}

td_status td_cpu_norm_backward(const td_norm_backward_plan *plan) {
    td_tensor *dx = plan->dx, *own[5] = {NULL}, *parts = NULL;
    td_dtype dtype = (td_dtype)dx->dtype;
    job j;
    td_status status = TD_OK;
    TD_TRY(begin_job(&j, &plan->shape, dtype));
    TD_TRY(td_contiguous_as(plan->g, dtype, &own[0]));
    TD_TRY(td_contiguous_as(plan->x, dtype, &own[1]));
    TD_TRY(td_contiguous_or_none(plan->weight, j.wide, &own[2]));
    TD_TRY(td_contiguous_as(plan->mean, j.wide, &own[3]));
    TD_TRY(td_contiguous_as(plan->rstd, j.wide, &own[4]));
    int64_t blocks = (j.rows + BLOCK - 1) / BLOCK, sizes[3] = {2, blocks, j.weights};
    TD_TRY(td_tensor_empty(j.wide, TD_DEVICE_CPU, 3, sizes, &parts));
    j.g = own[0]->data;
    j.x = own[1]->data;
    j.weight = data_of(own[2]);
    j.mean = own[3]->data;
    j.rstd = own[4]->data;
    j.out = dx->data;
    j.dweight = plan->dweight ? parts->data : NULL;
    j.dbias = plan->dweight ? j.dweight + blocks * j.weights * j.wide_size : NULL;
    TD_TRY(td_parallel_for(blocks, BLOCK * (6 * j.n + 32), back_blocks, &j));
    if (plan->dweight) {
        add_blocks(&j, blocks, j.dweight, plan->dweight->data);
        add_blocks(&j, blocks, j.dbias, plan->dbias->data);
    }
done:
    for (int k = 0; k < 5; k++)
        td_release(own[k]);
    td_release(parts);
    return status;
}
