/* cusolverDn.h: the part of cuSOLVER that the played device answers, in float and double: Cholesky,
 * LU and QR factors, what they solve, singular values, eigenvalues of symmetric matrices. */
#ifndef TIDE_PLAYED_CUSOLVERDN_H
#define TIDE_PLAYED_CUSOLVERDN_H

#include "cublas_v2.h"

#define CUSOLVER_VER_MAJOR 12

typedef enum {
    CUSOLVER_STATUS_SUCCESS = 0,
    CUSOLVER_STATUS_NOT_INITIALIZED = 1,
    CUSOLVER_STATUS_ALLOC_FAILED = 2,
    CUSOLVER_STATUS_INVALID_VALUE = 3,
    CUSOLVER_STATUS_ARCH_MISMATCH = 4,
    CUSOLVER_STATUS_EXECUTION_FAILED = 6,
    CUSOLVER_STATUS_INTERNAL_ERROR = 7,
    CUSOLVER_STATUS_NOT_SUPPORTED = 9
} cusolverStatus_t;
typedef enum { CUSOLVER_EIG_MODE_NOVECTOR = 0, CUSOLVER_EIG_MODE_VECTOR = 1 } cusolverEigMode_t;
typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef struct gesvdjInfo *gesvdjInfo_t;

#ifdef __cplusplus
extern "C" {
#endif

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream);
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info);
cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info);

/* Matrices, vectors and results lie on the device, sizes of storage are counted in elements. */
#define TD_PLAYED_CUSOLVER(S, T)                                                                   \
    cusolverStatus_t cusolverDn##S##potrf_bufferSize(                                              \
        cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T *A, int lda, int *size);        \
    cusolverStatus_t cusolverDn##S##potrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, \
                                          T *A, int lda, T *work, int size, int *info);            \
    cusolverStatus_t cusolverDn##S##potrfBatched(cusolverDnHandle_t handle, cublasFillMode_t uplo, \
                                                 int n, T *A[], int lda, int *infos, int batches); \
    cusolverStatus_t cusolverDn##S##potrs(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, \
                                          int nrhs, const T *A, int lda, T *B, int ldb,            \
                                          int *info);                                              \
    cusolverStatus_t cusolverDn##S##getrf_bufferSize(cusolverDnHandle_t handle, int m, int n,      \
                                                     T *A, int lda, int *size);                    \
    cusolverStatus_t cusolverDn##S##getrf(cusolverDnHandle_t handle, int m, int n, T *A, int lda,  \
                                          T *work, int *pivots, int *info);                        \
    cusolverStatus_t cusolverDn##S##getrs(cusolverDnHandle_t handle, cublasOperation_t trans,      \
                                          int n, int nrhs, const T *A, int lda, const int *pivots, \
                                          T *B, int ldb, int *info);                               \
    cusolverStatus_t cusolverDn##S##geqrf_bufferSize(cusolverDnHandle_t handle, int m, int n,      \
                                                     T *A, int lda, int *size);                    \
    cusolverStatus_t cusolverDn##S##geqrf(cusolverDnHandle_t handle, int m, int n, T *A, int lda,  \
                                          T *tau, T *work, int size, int *info);                   \
    cusolverStatus_t cusolverDn##S##orgqr_bufferSize(cusolverDnHandle_t handle, int m, int n,      \
                                                     int k, const T *A, int lda, const T *tau,     \
                                                     int *size);                                   \
    cusolverStatus_t cusolverDn##S##orgqr(cusolverDnHandle_t handle, int m, int n, int k, T *A,    \
                                          int lda, const T *tau, T *work, int size, int *info);    \
    cusolverStatus_t cusolverDn##S##gesvd_bufferSize(cusolverDnHandle_t handle, int m, int n,      \
                                                     int *size);                                   \
    cusolverStatus_t cusolverDn##S##gesvd(cusolverDnHandle_t handle, signed char jobu,             \
                                          signed char jobvt, int m, int n, T *A, int lda,          \
                                          T *values, T *U, int ldu, T *VT, int ldvt, T *work,      \
                                          int size, T *rwork, int *info);                          \
    cusolverStatus_t cusolverDn##S##gesvdj_bufferSize(                                             \
        cusolverDnHandle_t handle, cusolverEigMode_t job, int econ, int m, int n, const T *A,      \
        int lda, const T *values, const T *U, int ldu, const T *V, int ldv, int *size,             \
        gesvdjInfo_t params);                                                                      \
    cusolverStatus_t cusolverDn##S##gesvdj(cusolverDnHandle_t handle, cusolverEigMode_t job,       \
                                           int econ, int m, int n, T *A, int lda, T *values, T *U, \
                                           int ldu, T *V, int ldv, T *work, int size, int *info,   \
                                           gesvdjInfo_t params);                                   \
    cusolverStatus_t cusolverDn##S##syevd_bufferSize(                                              \
        cusolverDnHandle_t handle, cusolverEigMode_t job, cublasFillMode_t uplo, int n,            \
        const T *A, int lda, const T *values, int *size);                                          \
    cusolverStatus_t cusolverDn##S##syevd(cusolverDnHandle_t handle, cusolverEigMode_t job,        \
                                          cublasFillMode_t uplo, int n, T *A, int lda, T *values,  \
                                          T *work, int size, int *info);
TD_PLAYED_CUSOLVER(S, float)
TD_PLAYED_CUSOLVER(D, double)
#undef TD_PLAYED_CUSOLVER

#ifdef __cplusplus
}
#endif
#endif
