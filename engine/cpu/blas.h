/* blas.h: the part of OpenBLAS that kernels use: products of small or float64 matrices.
 * late/openblas.c alone includes its header. */
#ifndef TD_CPU_BLAS_H
#define TD_CPU_BLAS_H

#include "engine/core/signals.h"
#include "engine/core/status.h"

/* Load OpenBLAS. Comes before the products; ENOMEM where there is no room for it. */
td_status td_blas_ready(void) TD_MUST_CHECK;

/* Row-major c (m x n, row stride ldc) = a b + beta c. A transposed operand lies in memory as its
 * transpose, rows of ld elements. Sizes fit an int. */
typedef void (*td_gemm_fn)(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void *a,
                           int64_t lda, const void *b, int64_t ldb, double beta, void *c,
                           int64_t ldc);

void td_blas_sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                   const void *b, int64_t ldb, double beta, void *c, int64_t ldc); /* float32 */
void td_blas_dgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                   const void *b, int64_t ldb, double beta, void *c, int64_t ldc); /* float64 */

/* A call under way. OpenMP's threads take the signal mask of who makes them, and oneDNN, which
 * signals would harm (onednn.c), may use them later. */
typedef struct td_blas_call {
    bool held;
    sigset_t before;
} td_blas_call;

/* Other calls of the table: between these two, one after the other. td_blas_ready comes before. */
const struct td_late_openblas *td_blas_begin(td_blas_call *call);
void td_blas_end(const td_blas_call *call);

/* "OpenBLAS 0.3.21"; valid until this thread asks again. Loads it. */
const char *td_blas_version(void);

#endif
