/* cublaslt.h: cuBLASLt as a table of calls, in a module of its own beside libtide_cuda.so, so that
 * machines without the library run our own kernels. Answers of calls: 0, or the library's status.
 */
#ifndef TD_CUDA_LOADED_LIBRARIES_CUBLASLT_H
#define TD_CUDA_LOADED_LIBRARIES_CUBLASLT_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#define TD_LATE_CUBLASLT "td_late_cublaslt_calls"

/* out (m x n) = a (m x k) b (k x n) + bias, a column at a time in memory; `turned` factors lie as
 * their transposes do. The bias has m elements, for each column. Compared by its bytes. Factors of
 * int8 give int32. */
typedef struct td_lt_shape {
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;                       /* from a column to the next */
    int64_t a_batch, b_batch, out_batch;         /* from a matrix to the next */
    int32_t dtype, a_turned, b_turned, has_bias; /* the factors' */
    int32_t a_aligned, b_aligned, out_aligned;   /* bytes */
    int16_t device, is_tf32;                     /* float32 factors may be rounded to TF32 */
} td_lt_shape;

/* A product's description, and the kernel that was chosen; in memory of the caller's. */
typedef struct td_lt_way td_lt_way;

typedef struct td_lt_call {
    const void *a, *b, *bias;
    void *out, *workspace;
    size_t workspace_bytes;
    cudaStream_t stream;
} td_lt_call;

typedef struct td_late_cublaslt {
    size_t (*version)(void);
    int (*start)(void **handle); /* of the current device */
    size_t way_bytes;
    /* `way` is clear at first; what fails leaves it so. */
    int (*choose)(void *handle, const td_lt_shape *shape, size_t workspace_bytes, td_lt_way *way);
    int (*run)(void *handle, td_lt_way *way, const td_lt_call *call);
    void (*drop)(td_lt_way *way); /* what it holds */
} td_late_cublaslt;

#endif
