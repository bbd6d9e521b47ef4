/* cusolver.h: cuSOLVER as a table of calls, in a module of its own beside libtide_cuda.so, so that
 * machines without the library leave decompositions to the CPU. Answers of calls: 0, or the
 * library's status. */
#ifndef TD_CUDA_LOADED_LIBRARIES_CUSOLVER_H
#define TD_CUDA_LOADED_LIBRARIES_CUSOLVER_H

#include <cuda_runtime_api.h>

#define TD_LATE_CUSOLVER "td_late_cusolver_calls"

/* One matrix on the device, a column at a time in memory without gaps. */
typedef struct td_solver_call {
    int m, n, k;
    double *a, *b, *c, *values; /* as each call says */
    double *work;               /* NULL: the call does nothing but say in nwork what it needs */
    int nwork;                  /* doubles */
    int *pivots, *info;
    char mode; /* of svd: 'A', 'S' or 'N' as LAPACK has it; of eigh: 'V' or 'N' */
} td_solver_call;

typedef int td_solver_fn(void *handle, td_solver_call *call);

typedef struct td_late_cusolver {
    int (*start)(void **handle); /* of the current device */
    int (*set_stream)(void *handle, cudaStream_t stream);
    td_solver_fn *lu;       /* a (n x n) by rows exchanged as pivots say */
    td_solver_fn *solve;    /* b (n x k) from what lu left in a and pivots; needs no room */
    td_solver_fn *cholesky; /* the lower triangle of a (n x n) */
    td_solver_fn *qr;       /* a (m x n), scales in values */
    td_solver_fn *q;        /* the first n columns of q (m x n) from k reflections in a, values */
    td_solver_fn *svd;      /* of a (m x n): u in b, values, v in c */
    td_solver_fn *eigh;     /* of the lower triangle of a (n x n): vectors in a, values */
} td_late_cusolver;

#endif
