/* factor_code.h: what the kernels around decompositions are launched with. Matrices of a batch lie
 * one behind the other as doubles, a column at a time. */
#ifndef TD_CUDA_FACTOR_FACTOR_CODE_H
#define TD_CUDA_FACTOR_FACTOR_CODE_H

#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/report.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>

/* What info holds for a matrix that was not tried, as engine/cpu/factor/linalg.c has it. */
enum { TD_CU_NOT_FINITE = -999999 };

/* Matrices of float32 or float64; strides in elements. */
typedef struct td_cu_matrices {
    void *x; /* NULL: unit matrices */
    bool is_double;
    td_cu_dims batch;
    int64_t rows, columns, by_row, by_column;
} td_cu_matrices;

typedef enum td_cu_triangle { TD_CU_WHOLE, TD_CU_LOWER, TD_CU_UPPER } td_cu_triangle;

/* Where columns lie: `ld` apart, and `item` from a matrix to the next. */
typedef struct td_cu_columns {
    double *data;
    int64_t batch, ld, item;
} td_cu_columns;

typedef struct td_cu_answer {
    const int *info; /* the library's, of each matrix; NULL: all is well */
    const int *bad;  /* NULL, or not 0 for a matrix that was not finite */
    int64_t batch;
    int *to; /* NULL: what failed is reported */
    td_cu_dims to_dims;
    td_cu_report failed, not_finite;
} td_cu_answer;

typedef struct td_cu_solver_triangle {
    td_cu_columns a, x; /* x: b at first */
    int64_t n, k;
    bool upper, unit;
} td_cu_solver_triangle;

#ifdef __cplusplus
extern "C" {
#endif
/* Those matrices whose number in `only` is not 0; NULL: all. */
cudaError_t td_cu_factor_load(const td_cu_matrices *from, const td_cu_columns *to, const int *only,
                              cudaStream_t stream);
/* All of each, or a triangle with zeros beside it. */
cudaError_t td_cu_factor_store(const td_cu_columns *from, const td_cu_matrices *to,
                               td_cu_triangle which, cudaStream_t stream);
/* bad[k]: is matrix k, of `item` numbers, not finite? Then it becomes zeros. */
cudaError_t td_cu_factor_look(const td_cu_columns *a, int *bad, cudaStream_t stream);
cudaError_t td_cu_factor_answer(const td_cu_answer *a, cudaStream_t stream);

/* Determinants, their signs and logarithms from what LU left. */
cudaError_t td_cu_factor_det(const td_cu_columns *lu, int n, const int *pivots, double *out,
                             cudaStream_t stream);
/* a = u diag(others) v', all n x n, `others` (filled in) being the products of the other values. */
cudaError_t td_cu_factor_cofactor(const td_cu_columns *a, int n, const double *u,
                                  const double *values, double *others, const double *v,
                                  cudaStream_t stream);
/* a times the sign of the determinant of an orthogonal matrix, from its LU. */
cudaError_t td_cu_factor_orient(const td_cu_columns *a, int n, const double *lu, const int *pivots,
                                cudaStream_t stream);
cudaError_t td_cu_factor_triangle(const td_cu_solver_triangle *t, cudaStream_t stream);

/* factor_small.cu: factors of n x n matrices in place, with LAPACK's pivots and info of each. */
cudaError_t td_cu_small_lu(const td_cu_columns *a, int n, int *pivots, int *info,
                           cudaStream_t stream);
cudaError_t td_cu_small_cholesky(const td_cu_columns *a, int n, int *info, cudaStream_t stream);
/* b (n x k) = the solution, from what LU left. */
cudaError_t td_cu_small_solve(const td_cu_columns *a, int n, const int *pivots,
                              const td_cu_columns *b, int64_t k, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
