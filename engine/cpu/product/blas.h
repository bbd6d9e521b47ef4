/* blas.h: the part of OpenBLAS that kernels use: products of small or float64 matrices.
 * loaded_libraries/openblas.c alone includes its header. */
#ifndef TD_CPU_PRODUCT_BLAS_H
#define TD_CPU_PRODUCT_BLAS_H

#include "engine/core/signals.h"
#include "engine/cpu/product/gemm.h"

/* Have OpenBLAS take the loops that this processor's instructions allow: it goes by a list of
 * models, and takes loops of 2004 for those that are newer than itself. Where the user has set
 * OPENBLAS_CORETYPE, that holds. It reads the environment when it is loaded: call before. */
void td_blas_prepare(void);

/* Load OpenBLAS, as the first product does; ENOMEM where there is no room for it. */
td_status td_blas_ready(void) TD_MUST_CHECK;

td_status td_blas_sgemm(const td_gemm *g) TD_MUST_CHECK; /* float32 */
td_status td_blas_dgemm(const td_gemm *g) TD_MUST_CHECK; /* float64 */

/* A call under way. OpenMP's threads take the signal mask of who makes them, and oneDNN, which
 * signals would harm (onednn.c), may use them later. */
typedef struct td_blas_call {
    bool held;
    sigset_t before;
} td_blas_call;

/* Other calls of the table: between these two, one after the other. td_blas_ready comes before. */
const struct td_late_openblas *td_blas_begin(td_blas_call *call);
void td_blas_end(const td_blas_call *call);

/* "OpenBLAS 0.3.21 for SkylakeX", less than 80 bytes. Loads it. */
void td_blas_version(char *text, size_t size);

#endif
