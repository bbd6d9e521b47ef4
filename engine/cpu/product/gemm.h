/* gemm.h: the arguments of a library's matrix product (gemm) of one float type. */
#ifndef TD_CPU_PRODUCT_GEMM_H
#define TD_CPU_PRODUCT_GEMM_H

#include "engine/core/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Row-major c (m x n, row stride ldc) = a b + beta c, for each of a batch. A transposed operand
 * lies in memory as its transpose, rows of ld elements. Steps, in elements, lead to the next
 * matrices. Sizes fit an int. */
typedef struct td_gemm {
    bool ta, tb;
    int64_t batch, m, n, k;
    const char *a;
    int64_t lda, a_step;
    const char *b;
    int64_t ldb, b_step;
    double beta;
    char *c;
    int64_t ldc, c_step;
} td_gemm;

typedef td_status (*td_gemm_fn)(const td_gemm *g);

#endif
