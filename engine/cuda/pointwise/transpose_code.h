/* transpose_code.h: what the kernel that turns two dims round is launched with. */
#ifndef TD_CUDA_POINTWISE_TRANSPOSE_CODE_H
#define TD_CUDA_POINTWISE_TRANSPOSE_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { TD_CU_TURN = 32, TD_CU_TURN_DIMS = 14 }; /* a tile's rows and columns; dims beside the two */

/* out[.., b, a] = in[.., a, b], strides in elements: those of `out` along a and of `in` along b are
 * 1. Elements of `size` bytes are moved as they are. */
typedef struct td_cu_transpose {
    const void *in;
    void *out;
    int64_t a, b;
    int64_t in_a, out_b; /* strides */
    int size, ndim;
    int64_t batch; /* elements of the other dims together */
    int64_t sizes[TD_CU_TURN_DIMS], in_strides[TD_CU_TURN_DIMS], out_strides[TD_CU_TURN_DIMS];
} td_cu_transpose;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_run_transpose(const td_cu_transpose *transpose, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
