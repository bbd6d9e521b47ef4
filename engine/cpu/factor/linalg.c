/* linalg.c: decompositions of matrices: LU, Cholesky's and triangles by our own blocks
 * (factor_blocks.h), of few rows several matrices at once (factor/factor_kernels.h), others by
 * LAPACK, which OpenBLAS brings along. They work on copies of the matrices, in their own order and
 * in their dtype, but for determinants: pivots of small matrices are float64, and so is every
 * product of them, which soon leaves float32. Matrices of a batch are done in parallel, and between
 * them an interrupt is noticed. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/team.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/factor/factor_blocks.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/loaded_libraries/loaded_libraries.h"
#include "engine/cpu/pointwise/transpose.h"
#include "engine/cpu/product/blas.h"
#include "engine/cpu/reduce/dim_lines.h"
#include "engine/ops/plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NO_MEMORY = -1000000, NOT_FINITE };
enum { PARTS = 5 };       /* of a desk's numbers */
enum { SMALL_DET = 128 }; /* rows of a matrix whose pivots are float64 for a determinant */

typedef struct job {
    const td_factor_plan *plan;
    int m, n, k, least, most; /* a is m x n, b n x k; the smaller and the larger of m and n */
    size_t counts[PARTS];     /* of the desk's numbers, in its order */
    size_t nplaces, room;     /* room: bytes, of our own decompositions */
    int *info;                /* of every matrix */
} job;

/* Matrices of a batch that one thread does. */
typedef struct stretch {
    const job *job;
    int64_t begin, end;
} stretch;

typedef enum part { WHOLE, LOWER, UPPER } part;

/* The first byte of item `at` of a batch, whose own dims are the last `inner`. */
static char *item(const td_tensor *x, int inner, int64_t at) {
    int64_t offset = 0;
    for (int d = x->ndim - inner - 1; d >= 0; d--) {
        offset += at % x->sizes[d] * x->strides[d];
        at /= x->sizes[d];
    }
    return (char *)x->data + offset * (int64_t)td_tensor_itemsize(x);
}

/* Which of them take no library? */
static bool is_ours(td_factoring kind) {
    return kind == TD_FACTOR_SOLVE || kind == TD_FACTOR_TRIANGLE || kind == TD_FACTOR_CHOLESKY ||
           kind == TD_FACTOR_DET;
}

/* Are they done side by side? */
static bool is_small(const job *j) {
    td_factoring kind = j->plan->kind;
    return is_ours(kind) && kind != TD_FACTOR_TRIANGLE && j->n > 0 && j->n <= TD_FACTOR_FEW &&
           (kind != TD_FACTOR_SOLVE || (j->k > 0 && j->k <= TD_FACTOR_FEW));
}

/* out[r * out_step + c] = x[r + c * x_step], block by block: those that reach into a part of out.
 */
static void turn_blocks(char *out, int64_t out_step, const char *x, int64_t x_step, int64_t rows,
                        int64_t columns, part which, int64_t size) {
    enum { SIDE = 32 };
    for (int64_t c = 0; c < columns; c += SIDE)
        for (int64_t r = which == LOWER ? c : 0; r < (which == UPPER ? c + 1 : rows); r += SIDE)
            if (r < rows)
                td_cpu_turn(out + (r * out_step + c) * size, out_step, x + (r + c * x_step) * size,
                            x_step, rows - r < SIDE ? rows - r : SIDE,
                            columns - c < SIDE ? columns - c : SIDE, (size_t)size);
}

#define R      float
#define SUFFIX float
#define DTYPE  TD_F32
#include "engine/cpu/factor/factor_loops.h"

#define R      double
#define SUFFIX double
#define DTYPE  TD_F64
#include "engine/cpu/factor/factor_loops.h"

/* ---- cofactors ---- */

/* The sign of an orthogonal matrix's determinant; overwrites it. */
static double orientation(const job *j, const desk_double *d, double *a) {
    double sign = 1;
    if (lu_double(j, d, a))
        return 0;
    for (int k = 0; k < j->n; k++)
        if (pivot_double(j, d, a, k) < 0)
            sign = -sign;
    return sign;
}

/* Of a matrix, in a, whose pivots say that it is far from singular: determinant times the
 * transposed inverse. False: it isn't. Columns are taken for rows, which turns the matrix and what
 * comes of it. */
static bool cofactor_by_inverse(const job *j, const desk_double *d) {
    const double far = 0x1p-20;
    size_t n = (size_t)j->n;
    double det = 1, least = INFINITY, most = 0;
    memcpy(d->c, d->a, n * n * sizeof *d->c);
    if (n == 0 || lu_double(j, d, d->c))
        return false;
    for (int k = 0; k < j->n; k++) {
        double pivot = pivot_double(j, d, d->c, k), size = fabs(pivot);
        det *= pivot;
        least = size < least ? size : least;
        most = size > most ? size : most;
    }
    if (!(least >= far * most) || !isnormal(det))
        return false;
    solve_factored_double(j, d, d->c, (td_factor_lines){0}, j->n,
                          (td_factor_lines){(char *)d->b, 1, j->n});
    for (size_t k = 0; k < n * n; k++)
        d->a[k] = det * d->b[k];
    return true;
}

/* u diag(product of the other s) vh, by the signs of u and vh. */
static int cofactor_by_values(const job *j, const desk_double *d) {
    size_t n = (size_t)j->n;
    int info = decompose_double(j, d, 'A');
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

static int one_cofactor(const job *j, const desk_double *d, int64_t at) {
    load_double(j->plan->a, at, false, d->a);
    int info = cofactor_by_inverse(j, d) ? 0 : cofactor_by_values(j, d);
    if (info == 0)
        store_double(j->plan->out[0], at, false, WHOLE, d->a, j->n);
    return info;
}

/* ---- batches ---- */

static void part_float(void *ctx) {
    static const doing_float ones[TD_FACTORINGS] = {[TD_FACTOR_DET] = one_det_float,
                                                    [TD_FACTOR_SOLVE] = one_solve_float,
                                                    [TD_FACTOR_TRIANGLE] = one_triangle_float,
                                                    [TD_FACTOR_CHOLESKY] = one_cholesky_float,
                                                    [TD_FACTOR_QR] = one_qr_float,
                                                    [TD_FACTOR_SVD] = one_svd_float,
                                                    [TD_FACTOR_EIGH] = one_eigh_float};
    const stretch *p = ctx;
    do_part_float(p, ones[p->job->plan->kind]);
}

static void part_double(void *ctx) {
    static const doing_double ones[TD_FACTORINGS] = {
        [TD_FACTOR_DET] = one_det_double,           [TD_FACTOR_COFACTOR] = one_cofactor,
        [TD_FACTOR_SOLVE] = one_solve_double,       [TD_FACTOR_TRIANGLE] = one_triangle_double,
        [TD_FACTOR_CHOLESKY] = one_cholesky_double, [TD_FACTOR_QR] = one_qr_double,
        [TD_FACTOR_SVD] = one_svd_double,           [TD_FACTOR_EIGH] = one_eigh_double};
    const stretch *p = ctx;
    do_part_double(p, ones[p->job->plan->kind]);
}

static bool in_float(const job *j) {
    return j->plan->a->dtype == TD_F32 && j->plan->kind != TD_FACTOR_COFACTOR &&
           (j->plan->kind != TD_FACTOR_DET || j->n > SMALL_DET);
}

/* OpenBLAS calls its team for every step of a decomposition, and each call costs as much as many
 * steps where threads that wait sleep. Measured on two threads of a Zen 4 (ms by one, by two): eigh
 * of 46 x 46 0.19 and 1.4, of 400 x 400 21 and 47, qr of 700 x 700 28 and 71. */
static bool team_pays(const job *j) {
    return !is_ours(j->plan->kind) && (double)j->n * j->m >= TD_LIMIT(FACTOR_TEAM);
}

/* LAPACK's results depend on the size of its team. */
static void some(void *ctx, int64_t begin, int64_t end, int worker) {
    const job *j = ctx;
    stretch p = {j, begin, end};
    void (*do_part)(void *) = in_float(j) ? part_float : part_double;
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
    size_t m = (size_t)j->m, n = (size_t)j->n;
    size_t least = (size_t)j->least, most = (size_t)j->most;
    bool singular = p->kind == TD_FACTOR_SVD || p->kind == TD_FACTOR_COFACTOR;
    bool copies = p->kind != TD_FACTOR_TRIANGLE; /* which is solved where it lies */
    bool cofactor = p->kind == TD_FACTOR_COFACTOR;
    td_dtype dtype = in_float(j) ? TD_F32 : TD_F64;
    j->counts[0] = copies ? m * (p->kind == TD_FACTOR_QR ? most : n) : 0;
    j->counts[1] = singular ? m * m : 0;
    j->counts[2] = singular ? n * n : 0;
    j->counts[3] = least;
    j->counts[4] = p->kind == TD_FACTOR_QR     ? 64 * (most + 1)
                   : p->kind == TD_FACTOR_EIGH ? 1 + 6 * n + 2 * n * n
                   : singular                  ? 4 * least * least + 7 * least + 65 * most
                                               : 0;
    if (is_ours(p->kind) || cofactor) {
        size_t solving = td_factor_system_room(dtype, j->n, cofactor ? j->n : j->k);
        size_t factoring = td_factor_room(dtype, j->n);
        j->room = solving > factoring ? solving : factoring;
    }
    j->nplaces = p->kind == TD_FACTOR_EIGH ? 3 + 5 * n : singular ? 8 * most : most;
}

static int64_t count(const td_tensor *x) {
    int64_t n = 1;
    for (int d = 0; d < x->ndim - 2; d++)
        n *= x->sizes[d];
    return n;
}

td_status td_cpu_factor(const td_factor_plan *plan) {
    const td_tensor *a = plan->a, *x = plan->out[0];
    int64_t batch = count(a), cost;
    job j = {.plan = plan};
    j.m = (int)a->sizes[a->ndim - 2];
    j.n = (int)a->sizes[a->ndim - 1];
    bool solves = plan->kind == TD_FACTOR_SOLVE || plan->kind == TD_FACTOR_TRIANGLE;
    j.k = solves ? (int)x->sizes[x->ndim - 1] : 0;
    j.least = j.m < j.n ? j.m : j.n;
    j.most = j.m < j.n ? j.n : j.m;
    measure(&j);
    td_status status = batch > 0 && !is_ours(plan->kind) ? td_blas_ready() : TD_OK;
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
