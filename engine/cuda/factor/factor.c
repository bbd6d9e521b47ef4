/* factor.c: decompositions of batches of matrices by cuSOLVER, one matrix after the other, in
 * float64 whatever the dtype. What can't be done is told at the next wait; the library itself may
 * wait for the device within singular values and eigenvalues. Triangles are ours. Without the
 * library, and for matrices without elements, the CPU does it. */
#include "engine/cuda/factor/factor.h"

#include "engine/cuda/limits.h"

typedef struct job {
    const td_factor_plan *plan;
    cudaStream_t s;
    const td_late_cusolver *solver;
    void *handle;
    int m, n, k, least; /* a is m x n, b n x k */
    int64_t batch;
    bool ours; /* done without the library */
    td_cuda_scratch room, work;
    size_t nwork;
    td_cu_columns a, b, c, values, others;
    int *pivots, *info, *bad;
} job;

/* ---- matrices ---- */

static td_cu_matrices matrices_of(const td_tensor *x, bool turned) {
    int row = x->ndim - 2 + turned, column = x->ndim - 1 - turned;
    td_cu_matrices m = {.x = x->data,
                        .is_double = x->dtype == TD_F64,
                        .rows = x->sizes[row],
                        .columns = x->sizes[column],
                        .by_row = x->strides[row],
                        .by_column = x->strides[column]};
    td_cu_dims_set(&m.batch, x->ndim - 2, x->sizes, x->strides);
    return m;
}

/* Of vectors, or numbers, in the last `inner` dims. */
static td_cu_matrices vectors_of(const td_tensor *x, int inner) {
    td_cu_matrices m = {.x = x->data,
                        .is_double = x->dtype == TD_F64,
                        .rows = inner ? x->sizes[x->ndim - 1] : 1,
                        .columns = 1,
                        .by_row = inner ? x->strides[x->ndim - 1] : 0};
    td_cu_dims_set(&m.batch, x->ndim - inner, x->sizes, x->strides);
    return m;
}

/* `only`: those whose number is not 0; NULL: all. x NULL: unit matrices. */
static td_status load_some(const job *j, const td_tensor *x, bool turned, const td_cu_columns *to,
                           const int *only) {
    td_cu_matrices m =
        x ? matrices_of(x, turned) : (td_cu_matrices){.rows = to->ld, .columns = to->item / to->ld};
    return td_cuda_status(td_cu_factor_load(&m, to, only, j->s), "reading matrices");
}

static td_status load(const job *j, const td_tensor *x, bool turned, const td_cu_columns *to) {
    return load_some(j, x, turned, to, NULL);
}

static td_status store(const job *j, const td_cu_columns *from, const td_tensor *x, bool turned,
                       td_cu_triangle which) {
    td_cu_matrices m = matrices_of(x, turned);
    if (x->numel == 0)
        return TD_OK;
    return td_cuda_status(td_cu_factor_store(from, &m, which, j->s), "writing matrices");
}

static td_status store_vectors(const job *j, const td_cu_columns *from, const td_tensor *x,
                               int inner) {
    td_cu_matrices m = vectors_of(x, inner);
    return td_cuda_status(td_cu_factor_store(from, &m, TD_CU_WHOLE, j->s), "writing vectors");
}

/* ---- the library ---- */

/* One call for each matrix, in the room that the call asks for. */
static td_status each(job *j, td_solver_fn *fn, td_solver_call call, double *a) {
    td_status status = TD_OK;
    double *b = call.b, *c = call.c, *values = call.values;
    int *info = call.info;
    int bad = fn == j->solver->solve ? 0 : fn(j->handle, &call);
    size_t bytes = bad ? 0 : sizeof(double) * ((size_t)call.nwork + 1);
    if (bytes > j->nwork) {
        td_cuda_scratch_drop(&j->work);
        j->nwork = 0;
        TD_TRY(td_cuda_scratch_take(&j->work, j->plan->stream, bytes));
        j->nwork = bytes;
    }
    call.work = j->work.data;
    for (int64_t at = 0; at < j->batch && !bad; at++) {
        call.a = a + at * j->a.item;
        call.b = b ? b + at * j->b.item : NULL;
        call.c = c ? c + at * j->c.item : NULL;
        call.values = values ? values + at * j->values.item : NULL;
        call.pivots = j->pivots + at * j->least;
        call.info = info + at;
        bad = fn(j->handle, &call);
    }
    if (bad)
        status = td_fail(TD_EDEVICE, "cuSOLVER can't decompose this: its status is %d", bad);
done:
    return status;
}

static td_solver_call call_of(const job *j) {
    return (td_solver_call){
        .m = j->m, .n = j->n, .k = j->k, .a = j->a.data, .pivots = j->pivots, .info = j->info};
}

/* LU factors of a. */
static td_status take_lu(job *j) {
    if (!j->ours)
        return each(j, j->solver->lu, call_of(j), j->a.data);
    return td_cuda_status(td_cu_small_lu(&j->a, j->n, j->pivots, j->info, j->s),
                          "taking LU factors");
}

static td_status solve_by_lu(job *j) {
    td_solver_call call = call_of(j);
    call.b = j->b.data;
    call.info = j->info + j->batch; /* of the arguments alone */
    if (!j->ours)
        return each(j, j->solver->solve, call, j->a.data);
    return td_cuda_status(td_cu_small_solve(&j->a, j->n, j->pivots, &j->b, j->k, j->s), "solving");
}

static td_status take_cholesky(job *j) {
    if (!j->ours)
        return each(j, j->solver->cholesky, call_of(j), j->a.data);
    return td_cuda_status(td_cu_small_cholesky(&j->a, j->n, j->info, j->s),
                          "taking Cholesky factors");
}

/* ---- what could not be done ---- */

static td_status report(const job *j, td_cu_answer *a) {
    bool many = j->batch > 1;
    const char *failed = many ? "matrix %lld of the batch has no decomposition that converges"
                              : "the matrix has no decomposition that converges";
    if (j->plan->kind == TD_FACTOR_SOLVE)
        failed = many ? "matrix %lld of the batch is singular: its pivot %lld is 0"
                      : "the matrix is singular: its pivot %lld is 0";
    if (j->plan->kind == TD_FACTOR_CHOLESKY)
        failed = many ? "matrix %lld of the batch is not positive-definite: its leading minor %lld "
                        "is not"
                      : "the matrix is not positive-definite: its leading minor %lld is not";
    const char *not_finite =
        many ? "matrix %lld of the batch holds inf or NaN: it has no decomposition"
             : "the matrix holds inf or NaN: it has no decomposition";
    td_status status = td_cuda_report(j->plan->stream, TD_EVALUE, failed, &a->failed);
    if (status == TD_OK)
        status = td_cuda_report(j->plan->stream, TD_EVALUE, not_finite, &a->not_finite);
    return status;
}

static td_status answer(const job *j, const int *info) {
    const td_tensor *to = j->plan->info;
    td_cu_answer a = {.info = info, .bad = j->bad, .batch = j->batch, .to = to ? to->data : NULL};
    td_status status = TD_OK;
    if (to)
        td_cu_dims_set(&a.to_dims, to->ndim, to->sizes, to->strides);
    else if (info || j->bad)
        status = report(j, &a);
    else
        return TD_OK;
    if (status != TD_OK)
        return status;
    return td_cuda_status(td_cu_factor_answer(&a, j->s), "looking for what failed");
}

/* ---- the kinds ---- */

static td_status run_det(job *j) {
    const td_factor_plan *p = j->plan;
    td_cu_columns parts = {.data = j->others.data, .batch = j->batch, .ld = 1, .item = 1};
    td_status status = TD_OK;
    TD_TRY(load(j, p->a, false, &j->a));
    TD_TRY(take_lu(j));
    TD_TRY(td_cuda_status(td_cu_factor_det(&j->a, j->n, j->pivots, parts.data, j->s),
                          "taking determinants"));
    for (int k = 0; k < 3; k++, parts.data += j->batch)
        TD_TRY(store_vectors(j, &parts, p->out[k], 0));
    status = answer(j, NULL);
done:
    return status;
}

/* The solution of what is singular is b itself, as on the CPU. */
static td_status run_solve(job *j) {
    td_status status = TD_OK;
    TD_TRY(load(j, j->plan->a, false, &j->a));
    TD_TRY(load(j, j->plan->b, false, &j->b));
    TD_TRY(take_lu(j));
    TD_TRY(solve_by_lu(j));
    TD_TRY(load_some(j, j->plan->b, false, &j->b, j->info));
    TD_TRY(store(j, &j->b, j->plan->out[0], false, TD_CU_WHOLE));
    status = answer(j, j->info);
done:
    return status;
}

static td_status run_triangle(job *j) {
    const td_factor_plan *p = j->plan;
    td_status status = TD_OK;
    td_cu_solver_triangle t = {
        .a = j->a, .x = j->b, .n = j->n, .k = j->k, .upper = p->upper, .unit = p->unit};
    TD_TRY(load(j, p->a, false, &j->a));
    TD_TRY(load(j, p->b, false, &j->b));
    TD_TRY(td_cuda_status(td_cu_factor_triangle(&t, j->s), "solving triangles"));
    TD_TRY(store(j, &j->b, p->out[0], false, TD_CU_WHOLE));
    status = answer(j, NULL);
done:
    return status;
}

static td_status run_cholesky(job *j) {
    const td_factor_plan *p = j->plan;
    td_status status = TD_OK;
    TD_TRY(load(j, p->a, p->upper, &j->a));
    TD_TRY(take_cholesky(j));
    TD_TRY(store(j, &j->a, p->out[0], p->upper, TD_CU_LOWER));
    status = answer(j, j->info);
done:
    return status;
}

static td_status run_qr(job *j) {
    td_tensor *q = j->plan->out[0], *r = j->plan->out[1];
    td_status status = TD_OK;
    td_solver_call call = call_of(j);
    call.values = j->values.data;
    TD_TRY(load(j, j->plan->a, false, &j->a));
    TD_TRY(each(j, j->solver->qr, call, j->a.data));
    TD_TRY(store(j, &j->a, r, false, TD_CU_UPPER));
    if (q) {
        call.n = (int)q->sizes[q->ndim - 1];
        call.k = j->least;
        TD_TRY(each(j, j->solver->q, call, j->a.data));
        TD_TRY(store(j, &j->a, q, false, TD_CU_WHOLE));
    }
    status = answer(j, NULL);
done:
    return status;
}

/* Into b, values and c; matrices that are not finite are not tried. */
static td_status decompose(job *j, char mode) {
    td_status status = TD_OK;
    td_solver_call call = call_of(j);
    call.mode = mode;
    call.b = j->b.data;
    call.c = j->c.data;
    call.values = j->values.data;
    TD_TRY(load(j, j->plan->a, false, &j->a));
    TD_TRY(td_cuda_status(td_cu_factor_look(&j->a, j->bad, j->s), "looking at matrices"));
    status = each(j, j->solver->svd, call, j->a.data);
done:
    return status;
}

static td_status run_svd(job *j) {
    const td_factor_plan *p = j->plan;
    td_tensor *u = p->out[0], *vh = p->out[2];
    td_status status = TD_OK;
    TD_TRY(decompose(j, !u ? 'N' : p->full ? 'A' : 'S'));
    TD_TRY(store_vectors(j, &j->values, p->out[1], 1));
    if (u) {
        TD_TRY(store(j, &j->b, u, false, TD_CU_WHOLE));
        TD_TRY(store(j, &j->c, vh, true, TD_CU_WHOLE));
    }
    status = answer(j, j->info);
done:
    return status;
}

static td_status run_eigh(job *j) {
    const td_factor_plan *p = j->plan;
    td_status status = TD_OK;
    td_solver_call call = call_of(j);
    call.values = j->values.data;
    call.mode = p->out[1] ? 'V' : 'N';
    TD_TRY(load(j, p->a, p->upper, &j->a));
    TD_TRY(td_cuda_status(td_cu_factor_look(&j->a, j->bad, j->s), "looking at matrices"));
    TD_TRY(each(j, j->solver->eigh, call, j->a.data));
    TD_TRY(store_vectors(j, &j->values, p->out[0], 1));
    if (p->out[1])
        TD_TRY(store(j, &j->a, p->out[1], false, TD_CU_WHOLE));
    status = answer(j, j->info);
done:
    return status;
}

/* u diag(products of the other values) vh, by the signs of u and vh. */
static td_status run_cofactor(job *j) {
    td_status status = TD_OK;
    td_cu_columns *factors[2] = {&j->b, &j->c};
    td_solver_call call = call_of(j);
    call.info = j->info + j->batch;
    TD_TRY(decompose(j, 'A'));
    TD_TRY(td_cuda_status(td_cu_factor_cofactor(&j->a, j->n, j->b.data, j->values.data,
                                                j->others.data, j->c.data, j->s),
                          "taking cofactors"));
    for (int k = 0; k < 2; k++) {
        call.a = factors[k]->data;
        TD_TRY(each(j, j->solver->lu, call, call.a));
        TD_TRY(td_cuda_status(td_cu_factor_orient(&j->a, j->n, factors[k]->data, j->pivots, j->s),
                              "taking cofactors"));
    }
    TD_TRY(store(j, &j->a, j->plan->out[0], false, TD_CU_WHOLE));
    status = answer(j, j->info);
done:
    return status;
}

/* ---- room ---- */

typedef struct part {
    td_cu_columns *to;
    int64_t ld, columns;
} part;

static td_status make_room(job *j) {
    td_factoring kind = j->plan->kind;
    bool cofactor = kind == TD_FACTOR_COFACTOR, singular = cofactor || kind == TD_FACTOR_SVD;
    bool square = cofactor || j->plan->full;
    int64_t most = j->m > j->n ? j->m : j->n, ints = j->batch * (j->least + 3);
    int64_t u_columns =
        square ? j->m : j->least; /* the library writes there for values alone, too */
    part parts[] = {
        {&j->a, j->m, kind == TD_FACTOR_QR ? most : j->n},
        {&j->b, singular ? j->m : j->n, singular ? u_columns : j->k},
        {&j->c, j->n, singular ? j->n : 0},
        {&j->values, j->least, 1},
        {&j->others, kind == TD_FACTOR_DET ? 3 : j->least, kind == TD_FACTOR_DET || cofactor}};
    size_t doubles = 0;
    for (int k = 0; k < 5; k++)
        doubles += (size_t)(j->batch * parts[k].ld * parts[k].columns);
    td_status status = td_cuda_scratch_take(&j->room, j->plan->stream,
                                            doubles * sizeof(double) + (size_t)ints * sizeof(int));
    if (status != TD_OK)
        return status;
    double *at = j->room.data;
    for (int k = 0; k < 5; k++) {
        int64_t item = parts[k].ld * parts[k].columns;
        *parts[k].to = (td_cu_columns){at, j->batch, parts[k].ld, item};
        at += j->batch * item;
    }
    j->info = (int *)(void *)at;
    j->bad = singular || kind == TD_FACTOR_EIGH ? j->info + 2 * j->batch : NULL;
    j->pivots = j->info + 3 * j->batch;
    return TD_OK;
}

/* ---- the plan ---- */

static td_status factor_on_cpu(const void *plan) {
    return td_backends[TD_CPU]->factor(plan);
}

static td_status fall_back(const td_factor_plan *p) {
    return td_cuda_fall_back("factor", p, sizeof *p, factor_on_cpu, 6, 4);
}

static job job_of(const td_factor_plan *p) {
    const td_tensor *a = p->a, *x = p->out[0];
    bool solves = p->kind == TD_FACTOR_SOLVE || p->kind == TD_FACTOR_TRIANGLE;
    job j = {.plan = p, .batch = 1};
    for (int d = 0; d < a->ndim - 2; d++)
        j.batch *= a->sizes[d];
    j.m = (int)a->sizes[a->ndim - 2];
    j.n = (int)a->sizes[a->ndim - 1];
    j.k = solves ? (int)x->sizes[x->ndim - 1] : 0;
    j.least = j.m < j.n ? j.m : j.n;
    bool small = j.n <= TD_LIMIT(FACTOR_SMALL) ||
                 (j.n <= TD_LIMIT(FACTOR_SMALL_OF_MANY) && j.batch >= TD_LIMIT(FACTOR_MANY));
    j.ours = p->kind == TD_FACTOR_TRIANGLE ||
             (small && (p->kind == TD_FACTOR_DET || p->kind == TD_FACTOR_SOLVE ||
                        p->kind == TD_FACTOR_CHOLESKY));
    return j;
}

td_status td_cuda_factor(const td_factor_plan *p) {
    static td_status (*const runs[TD_FACTORINGS])(job *) = {
        run_det, run_cofactor, run_solve, run_triangle, run_cholesky, run_qr, run_svd, run_eigh};
    job j = job_of(p);
    bool solves = p->kind == TD_FACTOR_TRIANGLE || p->kind == TD_FACTOR_SOLVE;
    td_status status;
    if (j.batch == 0)
        return TD_OK;
    if (j.least == 0 || (solves && j.k == 0) || j.batch > INT32_MAX / (j.k + 1))
        return fall_back(p);
    TD_TRY(td_cuda_begin(p->stream, 6, p->tensors, &j.s));
    if (!j.ours && !td_cuda_solver_enter(p->stream.device.index, &j.solver, &j.handle))
        return fall_back(p);
    status = make_room(&j);
    if (status == TD_OK && !j.ours && j.solver->set_stream(j.handle, j.s) != 0)
        status = td_fail(TD_EDEVICE, "cuSOLVER can't work on this stream");
    if (status == TD_OK)
        status = runs[p->kind](&j);
    td_cuda_scratch_drop(&j.work);
    td_cuda_scratch_drop(&j.room);
    if (!j.ours)
        td_cuda_solver_leave();
done:
    return status;
}
