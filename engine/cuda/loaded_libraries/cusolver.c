/* cusolver.c: the table of cuSOLVER's calls, in a module of its own. */
#include "engine/cuda/loaded_libraries/cusolver.h"

#include <cusolverDn.h>
#include <stddef.h>

static int start(void **handle) {
    return (int)cusolverDnCreate((cusolverDnHandle_t *)handle);
}

static int set_stream(void *handle, cudaStream_t stream) {
    return (int)cusolverDnSetStream(handle, stream);
}

static int lu(void *handle, td_solver_call *c) {
    if (!c->work)
        return (int)cusolverDnDgetrf_bufferSize(handle, c->n, c->n, c->a, c->n, &c->nwork);
    return (int)cusolverDnDgetrf(handle, c->n, c->n, c->a, c->n, c->work, c->pivots, c->info);
}

static int solve(void *handle, td_solver_call *c) {
    c->nwork = 0;
    return (int)cusolverDnDgetrs(handle, CUBLAS_OP_N, c->n, c->k, c->a, c->n, c->pivots, c->b, c->n,
                                 c->info);
}

static int cholesky(void *handle, td_solver_call *c) {
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
    if (!c->work)
        return (int)cusolverDnDpotrf_bufferSize(handle, lower, c->n, c->a, c->n, &c->nwork);
    return (int)cusolverDnDpotrf(handle, lower, c->n, c->a, c->n, c->work, c->nwork, c->info);
}

static int qr(void *handle, td_solver_call *c) {
    if (!c->work)
        return (int)cusolverDnDgeqrf_bufferSize(handle, c->m, c->n, c->a, c->m, &c->nwork);
    return (int)cusolverDnDgeqrf(handle, c->m, c->n, c->a, c->m, c->values, c->work, c->nwork,
                                 c->info);
}

static int q(void *handle, td_solver_call *c) {
    if (!c->work)
        return (int)cusolverDnDorgqr_bufferSize(handle, c->m, c->n, c->k, c->a, c->m, c->values,
                                                &c->nwork);
    return (int)cusolverDnDorgqr(handle, c->m, c->n, c->k, c->a, c->m, c->values, c->work, c->nwork,
                                 c->info);
}

/* By Jacobi's method, which takes matrices of any shape; its accuracy is the library's default. The
 * vectors' room is written where only values are asked for, too. */
static int svd(void *handle, td_solver_call *c) {
    static gesvdjInfo_t defaults;
    int bad = defaults ? 0 : (int)cusolverDnCreateGesvdjInfo(&defaults),
        economical = c->mode != 'A';
    cusolverEigMode_t mode = c->mode == 'N' ? CUSOLVER_EIG_MODE_NOVECTOR : CUSOLVER_EIG_MODE_VECTOR;
    if (bad)
        return bad;
    if (!c->work)
        return (int)cusolverDnDgesvdj_bufferSize(handle, mode, economical, c->m, c->n, c->a, c->m,
                                                 c->values, c->b, c->m, c->c, c->n, &c->nwork,
                                                 defaults);
    return (int)cusolverDnDgesvdj(handle, mode, economical, c->m, c->n, c->a, c->m, c->values, c->b,
                                  c->m, c->c, c->n, c->work, c->nwork, c->info, defaults);
}

static int eigh(void *handle, td_solver_call *c) {
    const cublasFillMode_t lower = CUBLAS_FILL_MODE_LOWER;
    cusolverEigMode_t mode = c->mode == 'V' ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
    if (!c->work)
        return (int)cusolverDnDsyevd_bufferSize(handle, mode, lower, c->n, c->a, c->n, c->values,
                                                &c->nwork);
    return (int)cusolverDnDsyevd(handle, mode, lower, c->n, c->a, c->n, c->values, c->work,
                                 c->nwork, c->info);
}

extern const td_late_cusolver td_late_cusolver_calls;
const td_late_cusolver td_late_cusolver_calls = {.start = start,
                                                 .set_stream = set_stream,
                                                 .lu = lu,
                                                 .solve = solve,
                                                 .cholesky = cholesky,
                                                 .qr = qr,
                                                 .q = q,
                                                 .svd = svd,
                                                 .eigh = eigh};
