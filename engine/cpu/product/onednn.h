/* onednn.h: the part of oneDNN that kernels use: float32 and bfloat16 products and
 * convolutions with cached primitives. onednn.c and loaded_libraries/onednn.* alone include
 * oneDNN's header, so that a new version of it is one change.
 */
#ifndef TD_CPU_PRODUCT_ONEDNN_H
#define TD_CPU_PRODUCT_ONEDNN_H

#include "engine/cpu/product/gemm.h"
#include "engine/ops/plan/plan.h"

/* A batch of matrices; strides count elements. */
typedef struct td_dnn_matrices {
    void *data;
    int64_t batch_stride, row_stride, column_stride;
} td_dnn_matrices;

/* How many times as fast as float32 the machine multiplies bfloat16: 8, 2, or 0 where it does not.
 */
int td_dnn_bfloat_gain(void);

/* c[i] = a[i] b[i] (+ bias[n] in every row), i < batch; a is m x k, b k x n, c m x n, all of one
 * dtype: float32, or bfloat16 (summed in float32) where td_dnn_bfloat_gain. Of each matrix one
 * stride is 1. A bias is for a batch of 1. `packs`: the right side of one large bfloat16 product is
 * packed by us, and may be kept so beside `right`, the storage in which it lies, if that is not
 * NULL. */
td_status td_dnn_matmul(td_dtype dtype, int64_t batch, int64_t m, int64_t n, int64_t k,
                        td_dnn_matrices a, td_dnn_matrices b, const void *bias, td_dnn_matrices c,
                        bool packs, td_storage *right) TD_MUST_CHECK;

/* The same of float32, without a bias, by the function that oneDNN has beside its primitives:
 * quicker called, and slower with AVX-512 than what they choose there. */
td_status td_dnn_sgemm(const td_gemm *g) TD_MUST_CHECK;
/* What the first one does besides. A pool's thread needs more room for it than who calls the pool.
 */
td_status td_dnn_sgemm_ready(void) TD_MUST_CHECK;

/* A convolution or one of its gradients, of tensors that lie as the shape says, of one dtype:
 * float32, or bfloat16 where td_dnn_bfloat_gain; a weight's gradient is float32 for both, so that
 * those of parts can be added. Images with channels last are taken as they are wherever oneDNN has
 * more than its reference for that. */
td_status td_dnn_conv(td_conv_direction direction, td_dtype dtype, const td_conv_geometry *shape,
                      const void *a, const void *b, const void *bias, void *out) TD_MUST_CHECK;

/* "oneDNN 2.6.3", some 30 bytes. Loads it. */
void td_dnn_version(char *text, size_t size);

/* Number of primitives made since the start: what a cache hit does not add to (for tests). */
int64_t td_dnn_primitives_made(void);

#endif
