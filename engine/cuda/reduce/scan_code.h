/* scan_code.h: what the kernels of running sums and their like are launched with. */
#ifndef TD_CUDA_REDUCE_SCAN_CODE_H
#define TD_CUDA_REDUCE_SCAN_CODE_H

#include "engine/cuda/reduce/softmax_code.h"

/* In the order of td_scan_kind (ops/plan/plan.h). */
enum {
    TD_CU_SCAN_SUM,
    TD_CU_SCAN_PROD,
    TD_CU_SCAN_MAX,
    TD_CU_SCAN_MIN,
    TD_CU_SCAN_LSE,
    TD_CU_SCAN_LINEAR
};

/* Row-major tensors. Lines are cut into pieces where there are few of them. */
typedef struct td_cu_scan {
    td_cu_lines lines;
    int kind, from, to; /* dtypes of x, and of out and a */
    bool integers;      /* gathered up in int64, else in double */
    const void *x, *a;
    void *out;
    int64_t *index;
    int64_t pieces, piece_len;
    bool alone; /* a thread for each line */
} td_cu_scan;

enum { TD_CU_SCAN_STATE = 16 }; /* bytes that a piece's result has at most */

#ifdef __cplusplus
extern "C" {
#endif
/* `totals`: lines * pieces results of TD_CU_SCAN_STATE bytes where there are several pieces. */
cudaError_t td_cu_run_scan(const td_cu_scan *s, void *totals, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
