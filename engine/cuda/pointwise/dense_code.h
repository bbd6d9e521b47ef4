/* dense_code.h: programs of one step over dense tensors, for which there are kernels of their own
 * (dense_*.cu); what those are launched with. */
#ifndef TD_CUDA_POINTWISE_DENSE_CODE_H
#define TD_CUDA_POINTWISE_DENSE_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* out = primitive(operands), element for element. Operands are found as pointwise_code.h says;
 * those that are numbers are as registers of the step's dtype hold them, all others are of
 * `memory`, but for where's mask, which is bool. */
typedef struct td_cu_dense {
    int64_t n;
    uint64_t words[3];
    void *out;
    uint8_t kinds[3];
    uint8_t primitive, memory, to; /* dtypes: of operands, of the result */
} td_cu_dense;

#ifdef __cplusplus
extern "C" {
#endif
/* Each knows some primitives and dtypes; cudaErrorNotSupported for others. */
cudaError_t td_cu_dense_arithmetic(const td_cu_dense *call, cudaStream_t stream);
cudaError_t td_cu_dense_math(const td_cu_dense *call, cudaStream_t stream);
cudaError_t td_cu_dense_integers(const td_cu_dense *call, cudaStream_t stream);
cudaError_t td_cu_dense_compare(const td_cu_dense *call, cudaStream_t stream);
cudaError_t td_cu_dense_move(const td_cu_dense *call, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
