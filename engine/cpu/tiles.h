/* tiles.h: products by OpenBLAS whose results do not depend on the number of threads. */
#ifndef TD_CPU_TILES_H
#define TD_CPU_TILES_H

#include "engine/core/status.h"
#include "engine/cpu/blas.h"

/* c = a b + beta c for each matrix of a batch: row-major, a (m x k) and b (k x n) lying transposed
 * where ta and tb say so. Leading dims and batch strides in elements, which have `size` bytes. */
typedef struct td_gemm {
    td_gemm_fn gemm;
    size_t size;
    int64_t batch, m, n, k;
    bool ta, tb;
    const char *a, *b;
    char *c;
    int64_t lda, ldb, ldc, a_stride, b_stride, c_stride;
    double beta;
} td_gemm;

/* The result is cut into tiles that follow from m and n alone, and each is made by one thread.
 * EINTR when it was interrupted. */
td_status td_gemm_tiles(const td_gemm *g) TD_MUST_CHECK;

#endif
