/* linalg.c: decompositions of matrices by LAPACK, which OpenBLAS brings along. Everything is done
 * in float64, on copies of the matrices in LAPACK's order; float32 is rounded once. Matrices of a
 * batch are done in parallel, and between them an interrupt is noticed. */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/team.h"
#include "engine/core/threads.h"
#include "engine/cpu/blas.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/late/late.h"
#include "engine/ops/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NO_MEMORY = -1000000, NOT_FINITE };

typedef struct job job;

/* What one matrix is done with: memory from one block, and the library. */
typedef struct desk {
    const td_late_openblas *lapack;
    double *a, *b, *c, *values, *work;
    int *places;
    int nwork, nplaces;
} desk;

struct job {
    const td_factor_plan *plan;
    int (*one)(const job *j, const desk *d, int64_t at);
    int m, n, k, least, most; /* a is m x n, b n x k; the smaller and the larger of m and n */
    size_t counts[5];         /* of the desk's doubles, in its order */
    size_t nplaces;
    int *info; /* of every matrix */
};

/* ---- matrices in and out ---- */

/* The first byte of item `at` of a batch, whose own dims are the last `inner`. */
static char *item(const td_tensor *x, int inner, int64_t at) {
    int64_t offset = 0;
    for (int d = x->ndim - inner - 1; d >= 0; d--) {
        offset += at % x->sizes[d] * x->strides[d];
        at /= x->sizes[d];
    }
    return (char *)x->data + offset * (int64_t)td_tensor_itemsize(x);
}

static double get(const td_tensor *x, const char *p, int64_t place) {
    return td_load_double((td_dtype)x->dtype, p + place * (int64_t)td_tensor_itemsize(x));
}
static void put(const td_tensor *x, char *p, int64_t place, double value) {
    td_store_double((td_dtype)x->dtype, p + place * (int64_t)td_tensor_itemsize(x), value);
}

/* n elements of x, `step` apart, from p. Small matrices take less time in LAPACK than to be asked
 * for their dtype at every element, so the dtypes that come here most have loops of their own. */
static void load_line(const td_tensor *x, const char *p, int64_t step, int64_t n, double *to) {
    if (x->dtype == TD_F32)
        for (int64_t k = 0; k < n; k++)
            to[k] = ((const float *)(const void *)p)[k * step];
    else if (x->dtype == TD_F64)
        for (int64_t k = 0; k < n; k++)
            to[k] = ((const double *)(const void *)p)[k * step];
    else
        for (int64_t k = 0; k < n; k++)
            to[k] = get(x, p, k * step);
}

/* The other way round; without `from` they become zeros. */
static void store_line(const td_tensor *x, char *p, int64_t step, int64_t n, const double *from) {
    if (x->dtype == TD_F32)
        for (int64_t k = 0; k < n; k++)
            ((float *)(void *)p)[k * step] = from ? (float)from[k] : 0;
    else if (x->dtype == TD_F64)
        for (int64_t k = 0; k < n; k++)
            ((double *)(void *)p)[k * step] = from ? from[k] : 0;
    else
        for (int64_t k = 0; k < n; k++)
            put(x, p, k * step, from ? from[k] : 0);
}

/* Matrix `at` of x as columns; transposed on the way where wanted. */
static void load(const td_tensor *x, int64_t at, bool transposed, double *to) {
    const char *p = item(x, 2, at);
    int rows = x->ndim - 2 + transposed, columns = x->ndim - 1 - transposed;
    int64_t by_column = x->strides[columns] * (int64_t)td_tensor_itemsize(x);
    for (int64_t c = 0; c < x->sizes[columns]; c++, to += x->sizes[rows])
        load_line(x, p + c * by_column, x->strides[rows], x->sizes[rows], to);
}

typedef enum part { WHOLE, LOWER, UPPER } part;

/* Columns of `ld` elements into matrix `at` of x: all, or a triangle with zeros beside it. */
static void store(const td_tensor *x, int64_t at, bool transposed, part which, const double *from,
                  int64_t ld) {
    char *p = item(x, 2, at);
    int64_t rows = x->sizes[x->ndim - 2 + transposed], columns = x->sizes[x->ndim - 1 - transposed];
    int64_t size = (int64_t)td_tensor_itemsize(x);
    int64_t step = x->strides[x->ndim - 2 + transposed];
    int64_t by_column = x->strides[x->ndim - 1 - transposed] * size;
    for (int64_t c = 0; c < columns; c++, p += by_column, from += ld) {
        int64_t begin = which != LOWER ? 0 : c < rows ? c : rows;
        int64_t end = which != UPPER || c >= rows ? rows : c + 1;
        store_line(x, p, step, begin, NULL);
        store_line(x, p + begin * step * size, step, end - begin, from + begin);
        store_line(x, p + end * step * size, step, rows - end, NULL);
    }
}

static void store_vector(const td_tensor *x, int64_t at, const double *from, int64_t n) {
    store_line(x, item(x, 1, at), x->strides[x->ndim - 1], n, from);
}

static void store_number(const td_tensor *x, int64_t at, double value) {
    put(x, item(x, 0, at), 0, value);
}

static void fill_unit(double *to, int64_t n) {
    memset(to, 0, (size_t)(n * n) * sizeof *to);
    for (int64_t k = 0; k < n; k++)
        to[k * (n + 1)] = 1;
}

/* ---- one matrix ---- */

/* A singular matrix has a determinant, so LAPACK's answer is none. */
static int one_det(const job *j, const desk *d, int64_t at) {
    double det = 1, sign = 1, logarithm = 0;
    load(j->plan->a, at, false, d->a);
    if (j->n > 0)
        d->lapack->getrf(j->n, j->n, d->a, j->n, d->places);
    for (int k = 0; k < j->n; k++) {
        double pivot = d->places[k] != k + 1 ? -d->a[(size_t)k * (size_t)(j->n + 1)]
                                             : d->a[(size_t)k * (size_t)(j->n + 1)];
        det *= pivot;
        sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
        logarithm += log(fabs(pivot));
    }
    store_number(j->plan->out[0], at, det);
    store_number(j->plan->out[1], at, sign);
    store_number(j->plan->out[2], at, logarithm);
    return 0;
}

static int one_solve(const job *j, const desk *d, int64_t at) {
    load(j->plan->a, at, false, d->a);
    if (j->plan->b)
        load(j->plan->b, at, false, d->b);
    else
        fill_unit(d->b, j->n);
    if (j->n == 0 || j->k == 0)
        return 0;
    int info = d->lapack->getrf(j->n, j->n, d->a, j->n, d->places);
    if (info == 0)
        d->lapack->getrs(j->n, j->k, d->a, j->n, d->places, d->b, j->n);
    store(j->plan->out[0], at, false, WHOLE, d->b, j->n);
    return info;
}

static int one_triangle(const job *j, const desk *d, int64_t at) {
    load(j->plan->a, at, false, d->a);
    load(j->plan->b, at, false, d->b);
    if (j->n > 0 && j->k > 0)
        d->lapack->trsm(j->plan->upper, j->plan->unit, j->n, j->k, d->a, j->n, d->b, j->n);
    store(j->plan->out[0], at, false, WHOLE, d->b, j->n);
    return 0;
}

static int one_cholesky(const job *j, const desk *d, int64_t at) {
    load(j->plan->a, at, j->plan->upper, d->a);
    int info = j->n > 0 ? d->lapack->potrf(j->n, d->a, j->n) : 0;
    store(j->plan->out[0], at, j->plan->upper, LOWER, d->a, j->n);
    return info;
}

static int one_qr(const job *j, const desk *d, int64_t at) {
    td_tensor *q = j->plan->out[0], *r = j->plan->out[1];
    load(j->plan->a, at, false, d->a);
    if (j->least > 0)
        d->lapack->geqrf(j->m, j->n, d->a, j->m, d->values, d->work, d->nwork);
    store(r, at, false, UPPER, d->a, j->m);
    if (!q)
        return 0;
    int columns = (int)q->sizes[q->ndim - 1];
    if (j->least > 0)
        d->lapack->orgqr(j->m, columns, j->least, d->a, j->m, d->values, d->work, d->nwork);
    else
        fill_unit(d->a, columns);
    store(q, at, false, WHOLE, d->a, j->m);
    return 0;
}

/* LAPACK may look for ever for the values of a matrix that is not. */
static bool is_finite(const double *a, size_t n) {
    for (size_t k = 0; k < n; k++)
        if (!isfinite(a[k]))
            return false;
    return true;
}

/* Into b (u), values (s), c (vh). */
static int decompose(const job *j, const desk *d, char mode) {
    int v_rows = mode == 'A' ? j->n : j->least;
    if (!is_finite(d->a, (size_t)j->m * (size_t)j->n))
        return NOT_FINITE;
    if (j->least > 0)
        return d->lapack->gesdd(mode, j->m, j->n, d->a, j->m, d->values, d->b, j->m, d->c,
                                mode == 'N' ? 1 : v_rows, d->work, d->nwork, d->places);
    if (mode == 'A') {
        fill_unit(d->b, j->m);
        fill_unit(d->c, j->n);
    }
    return 0;
}

static int one_svd(const job *j, const desk *d, int64_t at) {
    const td_factor_plan *p = j->plan;
    char mode = !p->out[0] ? 'N' : p->full ? 'A' : 'S';
    load(p->a, at, false, d->a);
    int info = decompose(j, d, mode);
    if (info)
        return info;
    store_vector(p->out[1], at, d->values, j->least);
    if (p->out[0]) {
        store(p->out[0], at, false, WHOLE, d->b, j->m);
        store(p->out[2], at, false, WHOLE, d->c, p->full ? j->n : j->least);
    }
    return info;
}

/* Values lie ascending; vectors replace the matrix. */
static int one_eigh(const job *j, const desk *d, int64_t at) {
    const td_factor_plan *p = j->plan;
    load(p->a, at, p->upper, d->a);
    int info = 0;
    if (!is_finite(d->a, (size_t)j->n * (size_t)j->n))
        return NOT_FINITE;
    if (j->n > 0)
        info = d->lapack->syevd(p->out[1] != NULL, j->n, d->a, j->n, d->values, d->work, d->nwork,
                                d->places, d->nplaces);
    store_vector(p->out[0], at, d->values, j->n);
    if (p->out[1])
        store(p->out[1], at, false, WHOLE, d->a, j->n);
    return info;
}

/* The sign of an orthogonal matrix's determinant; overwrites it. */
static double orientation(const job *j, const desk *d, double *a) {
    double sign = 1;
    d->lapack->getrf(j->n, j->n, a, j->n, d->places);
    for (int k = 0; k < j->n; k++)
        if ((a[(size_t)k * (size_t)(j->n + 1)] < 0) != (d->places[k] != k + 1))
            sign = -sign;
    return sign;
}

/* Of a matrix, in a, whose pivots say that it is far from singular: determinant times the
 * transposed inverse. False: it isn't. */
static bool cofactor_by_inverse(const job *j, const desk *d) {
    const double far = 0x1p-20;
    size_t n = (size_t)j->n;
    double det = 1, least = INFINITY, most = 0;
    memcpy(d->c, d->a, n * n * sizeof *d->c);
    if (n == 0 || d->lapack->getrf(j->n, j->n, d->c, j->n, d->places))
        return false;
    for (size_t k = 0; k < n; k++) {
        double pivot = d->c[k * (n + 1)], size = fabs(pivot);
        det *= d->places[k] == (int)k + 1 ? pivot : -pivot;
        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    if (!(least >= far * most) || !isnormal(det))
        return false;
    fill_unit(d->b, j->n);
    d->lapack->getrs(j->n, j->n, d->c, j->n, d->places, d->b, j->n);
    for (size_t row = 0; row < n; row++)
        for (size_t column = 0; column < n; column++)
            d->a[row + column * n] = det * d->b[column + row * n];
    return true;
}

/* u diag(product of the other s) vh, by the signs of u and vh. */
static int cofactor_by_values(const job *j, const desk *d) {
    size_t n = (size_t)j->n;
    int info = decompose(j, d, 'A');
    if (info)
        return info;
    double *others = d->work, sign = 1; /* LAPACK is done with it */
    for (size_t k = 0; k < n; k++) {
        others[k] = 1;
        for (size_t l = 0; l < n; l++)
            others[k] *= l == k ? 1 : d->values[l];
    }
    for (size_t row = 0; row < n; row++)
        for (size_t column = 0; column < n; column++) {
            double sum = 0;
            for (size_t k = 0; k < n; k++)
                sum += d->b[row + k * n] * others[k] * d->c[k + column * n];
            d->a[row + column * n] = sum;
        }
    if (n > 0)
        sign = orientation(j, d, d->b) * orientation(j, d, d->c);
    for (size_t k = 0; k < n * n; k++)
        d->a[k] *= sign;
    return 0;
}

static int one_cofactor(const job *j, const desk *d, int64_t at) {
    load(j->plan->a, at, false, d->a);
    int info = cofactor_by_inverse(j, d) ? 0 : cofactor_by_values(j, d);
    if (info == 0)
        store(j->plan->out[0], at, false, WHOLE, d->a, j->n);
    return info;
}

/* ---- batches ---- */

static void lay(desk *d, const job *j, double *block) {
    double **parts[] = {&d->a, &d->b, &d->c, &d->values, &d->work};
    for (int k = 0; k < 5; k++) {
        *parts[k] = block;
        block += j->counts[k];
    }
    d->places = (int *)block;
    d->nwork = (int)j->counts[4];
    d->nplaces = (int)j->nplaces;
}

typedef struct stretch {
    const job *job;
    int64_t begin, end;
} stretch;

static void do_part(void *ctx) {
    const stretch *p = ctx;
    const job *j = p->job;
    desk d;
    td_blas_call blas;
    size_t doubles = 1 + (j->nplaces + 1) / 2;
    for (int k = 0; k < 5; k++)
        doubles += j->counts[k];
    double *block = td_malloc(doubles * sizeof *block);
    if (block)
        lay(&d, j, block);
    for (int64_t at = p->begin; at < p->end; at++) {
        if (block) {
            d.lapack = td_blas_begin(&blas);
            j->info[at] = j->one(j, &d, at);
            td_blas_end(&blas);
        } else {
            j->info[at] = NO_MEMORY;
        }
    }
    td_free(block);
}

/* OpenBLAS calls its team for every step of a decomposition, and each call costs as much as many
 * steps where threads that wait sleep. Measured on two threads of a Zen 4 (ms by one, by two): eigh
 * of 46 x 46 0.19 and 1.4, of 400 x 400 21 and 47, qr of 700 x 700 28 and 71; cholesky of 200 x 200
 * 0.19 and 1.7, of 700 x 700 5.0 and 5.1; inverse of 200 x 200 1.6 and 2.7, of 400 x 400 11.4 and
 * 8.9; triangular solve of 46 x 46 16 and 68 us, of 100 x 100 132 and 97. */
static bool team_pays(const job *j) {
    double n = j->n, right = n * n * j->k;
    switch (j->plan->kind) {
    case TD_FACTOR_TRIANGLE:
        return right >= 0x1p20;
    case TD_FACTOR_SOLVE:
        return right >= 0x1p25;
    case TD_FACTOR_DET:
    case TD_FACTOR_CHOLESKY:
        return n * n * n >= 0x1p29;
    case TD_FACTOR_COFACTOR:
    case TD_FACTOR_QR:
    case TD_FACTOR_SVD:
    case TD_FACTOR_EIGH:
    case TD_FACTORINGS:
        break;
    }
    return n * j->m >= 0x1p22;
}

/* LAPACK's results depend on the size of its team. */
static void some(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    stretch p = {j, begin, end};
    (void)worker;
    if (td_deterministic() || !team_pays(j))
        td_run_alone(do_part, &p);
    else
        do_part(&p);
}

/* What matrix `at` of so many could not be done for. */
static td_status fail(const job *j, int64_t at, int64_t batch) {
    char which[48] = "the matrix";
    int info = j->info[at];
    if (info == NO_MEMORY)
        return td_fail(TD_ENOMEM, "out of memory");
    if (batch > 1)
        snprintf(which, sizeof which, "matrix %lld of the batch", (long long)at + 1);
    if (info == NOT_FINITE)
        return td_fail(TD_EVALUE, "%s holds inf or NaN: it has no decomposition", which);
    if (j->plan->kind == TD_FACTOR_SOLVE)
        return td_fail(TD_EVALUE, "%s is singular: its pivot %d is 0", which, info);
    if (j->plan->kind == TD_FACTOR_CHOLESKY)
        return td_fail(TD_EVALUE, "%s is not positive-definite: its leading minor %d is not", which,
                       info);
    return td_fail(TD_EVALUE, "%s has no decomposition that converges", which);
}

static td_status answer(const job *j, int64_t batch) {
    const td_tensor *info = j->plan->info;
    for (int64_t at = 0; at < batch; at++) {
        if (j->info[at] && (!info || j->info[at] == NO_MEMORY))
            return fail(j, at, batch);
        if (info)
            *(int32_t *)(void *)item(info, 0, at) = j->info[at];
    }
    return TD_OK;
}

/* Room for what LAPACK wants. */
static void measure(job *j) {
    const td_factor_plan *p = j->plan;
    size_t m = (size_t)j->m, n = (size_t)j->n, k = (size_t)j->k;
    size_t least = (size_t)j->least, most = (size_t)j->most;
    bool singular = p->kind == TD_FACTOR_SVD || p->kind == TD_FACTOR_COFACTOR;
    j->counts[0] = m * (p->kind == TD_FACTOR_QR ? most : n);
    j->counts[1] = singular ? m * m : n * k;
    j->counts[2] = singular ? n * n : 0;
    j->counts[3] = least;
    j->counts[4] = p->kind == TD_FACTOR_QR     ? 64 * (most + 1)
                   : p->kind == TD_FACTOR_EIGH ? 1 + 6 * n + 2 * n * n
                   : singular                  ? 4 * least * least + 7 * least + 65 * most
                                               : 0;
    j->nplaces = p->kind == TD_FACTOR_EIGH ? 3 + 5 * n : singular ? 8 * most : most;
}

static int64_t count(const td_tensor *x) {
    int64_t n = 1;
    for (int d = 0; d < x->ndim - 2; d++)
        n *= x->sizes[d];
    return n;
}

td_status td_cpu_factor(const td_factor_plan *plan) {
    static int (*const ones[TD_FACTORINGS])(const job *, const desk *, int64_t) = {
        one_det, one_cofactor, one_solve, one_triangle, one_cholesky, one_qr, one_svd, one_eigh};
    const td_tensor *a = plan->a, *x = plan->out[0];
    int64_t batch = count(a), cost;
    job j = {.plan = plan, .one = ones[plan->kind]};
    j.m = (int)a->sizes[a->ndim - 2];
    j.n = (int)a->sizes[a->ndim - 1];
    bool solves = plan->kind == TD_FACTOR_SOLVE || plan->kind == TD_FACTOR_TRIANGLE;
    j.k = solves ? (int)x->sizes[x->ndim - 1] : 0;
    j.least = j.m < j.n ? j.m : j.n;
    j.most = j.m < j.n ? j.n : j.m;
    measure(&j);
    td_status status = batch > 0 ? td_blas_ready() : TD_OK;
    if (status || batch == 0)
        return status;
    j.info = td_calloc((size_t)batch, sizeof *j.info);
    if (!j.info)
        return td_fail(TD_ENOMEM, "out of memory");
    cost = 1000 + (int64_t)j.m * j.n * (j.least + j.k);
    status = td_parallel_for(batch, cost, some, &j);
    if (status == TD_OK)
        status = answer(&j, batch);
    td_free(j.info);
    return status;
}
