/* reduction_code.h: what kernels that fold elements over dims are launched with (reduction.cuh). */
#ifndef TD_CUDA_REDUCE_REDUCTION_CODE_H
#define TD_CUDA_REDUCE_REDUCTION_CODE_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

enum { TD_CU_REDUCTION_DIMS = 16 };

/* An input seen as outputs x count; strides in elements. The elements behind an output are cut into
 * pieces where there are few outputs: pieces are put together, in order, by a second kernel. */
typedef struct td_cu_reduction {
    int nkept, nreduced; /* at least 1 each */
    bool by_columns;     /* neighbouring threads have neighbouring outputs, else one's elements */
    int lanes;           /* threads of an output, by rows */
    int64_t outputs, count, pieces, piece_len;
    int64_t kept_sizes[TD_CU_REDUCTION_DIMS], kept_strides[TD_CU_REDUCTION_DIMS];
    int64_t out_strides[TD_CU_REDUCTION_DIMS];
    int64_t reduced_sizes[TD_CU_REDUCTION_DIMS], reduced_strides[TD_CU_REDUCTION_DIMS];
} td_cu_reduction;

/* What is gathered up: in the order of td_reducer (ops/plan/plan.h), then what has no name there.
 */
enum {
    TD_CU_SUM,
    TD_CU_NANSUM,
    TD_CU_ABS_SUM,
    TD_CU_SQUARE_SUM,
    TD_CU_CENTERED, /* around the output's center */
    TD_CU_NONZERO,
    TD_CU_PROD,
    TD_CU_MAX,
    TD_CU_MIN,
    TD_CU_ABS_MAX,
    TD_CU_ABS_MIN,
    TD_CU_POWER_SUM,
    TD_CU_MEAN,  /* taken from the distances to the first element */
    TD_CU_NORM,  /* the root of the sum of squares, which may be out of range */
    TD_CU_SCALE, /* what POWER_SUM's elements are multiplied by, so that no power is out of range */
};

/* In the order of td_finish. */
enum { TD_CU_PLAIN, TD_CU_DIVIDE, TD_CU_POWER, TD_CU_ALL, TD_CU_NOT_0, TD_CU_STD };

typedef struct td_cu_fold {
    const void *x;
    void *out;
    int from, compute, to; /* dtypes of the elements, of what they are taken as, of the results */
    bool exact;            /* `compute` holds whatever `from` holds, in the same way */
    int fold, finish;
    double param, power;
    /* A number for each output: CENTERED reads what MEAN writes; POWER_SUM, unless it is NULL, what
     * SCALE does. */
    double *centers;
} td_cu_fold;

typedef struct td_cu_find {
    const void *x;
    int64_t *index;
    void *values; /* NULL: not wanted */
    int dtype;
    bool least;
} td_cu_find;

enum { TD_CU_PARTIAL = 32 }; /* bytes that a partial result has at most */

#ifdef __cplusplus
extern "C" {
#endif
/* `partial`: pieces * outputs results of TD_CU_PARTIAL bytes where there are several pieces. */
cudaError_t td_cu_run_fold(const td_cu_reduction *shape, const td_cu_fold *fold, void *partial,
                           cudaStream_t stream);
cudaError_t td_cu_run_find(const td_cu_reduction *shape, const td_cu_find *find, void *partial,
                           cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
