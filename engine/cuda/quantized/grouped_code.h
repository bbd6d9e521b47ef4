/* grouped_code.h: floats times weights of a few bits in groups, as the kernels of grouped.cu take
 * them. */
#ifndef TD_CUDA_QUANTIZED_GROUPED_CODE_H
#define TD_CUDA_QUANTIZED_GROUPED_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { TD_CU_GROUPED_BLOCK = 32 }; /* elements of x that are rounded by one scale */

/* td_grouped_linear_plan; its rule and where weights lie stand there. */
typedef struct td_cu_grouped {
    float *out;
    const float *x, *scales, *mins, *bias; /* mins and bias NULL: none */
    const unsigned char *weight;
    int64_t rows, columns, depth, groups, group;
    int bits;
    /* Room for x in blocks: blocks of a row, which reach to the end of the last group; their
     * integers and scales, row by row. */
    int64_t blocks;
    signed char *ints;
    float *x_scales;
} td_cu_grouped;

#ifdef __cplusplus
extern "C" {
#endif
/* x to blocks. */
cudaError_t td_cu_grouped_round(const td_cu_grouped *g, cudaStream_t stream);
/* Blocks to results. */
cudaError_t td_cu_grouped_multiply(const td_cu_grouped *g, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
