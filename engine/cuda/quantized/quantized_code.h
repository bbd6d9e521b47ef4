/* quantized_code.h: work on quantized tensors, as the kernels of quantized.cu take it: floats made
 * integers, weights made lines, and bytes element by element. */
#ifndef TD_CUDA_QUANTIZED_QUANTIZED_CODE_H
#define TD_CUDA_QUANTIZED_QUANTIZED_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

/* td_quantize_plan: n elements of channels that lie `inner` at a time. */
typedef struct td_cu_quantize {
    void *out;
    const float *x, *scales;
    const int32_t *zero_points;
    int64_t n, channels, inner;
    int dtype;
    int32_t low, high;
} td_cu_quantize;

/* The head of a line, and its bytes: td_qline_head, TD_QLINE_HEAD. */
enum { TD_CU_LINE_HEAD = 16 };
typedef struct td_cu_line_head {
    float scale;
    int32_t zero_point, sum, unused;
} td_cu_line_head;

/* Rows of a weight, each `depth` long, and the memory of their lines (ops/plan/quantized_pack.h),
 * `step` bytes apart. */
typedef struct td_cu_weight_lines {
    unsigned char *out;
    const signed char *weight;
    const float *scales;
    const int32_t *zero_points;
    int64_t rows, depth, step;
} td_cu_weight_lines;

/* td_quantized_binary_plan. */
typedef struct td_cu_quantized_binary {
    void *out;
    const void *a, *b;
    int64_t n;
    int dtype, multiply;
    float a_scale, b_scale, inverse;
    int32_t a_zero_point, b_zero_point, out_zero_point, low, high;
} td_cu_quantized_binary;

/* out[i] = table[x[i] ^ flip] */
typedef struct td_cu_byte_lookup {
    unsigned char *out;
    const unsigned char *x, *table;
    int64_t n;
    unsigned char flip;
} td_cu_byte_lookup;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_run_quantize(const td_cu_quantize *q, cudaStream_t stream);
cudaError_t td_cu_run_lines(const td_cu_weight_lines *l, cudaStream_t stream);
cudaError_t td_cu_run_quantized_binary(const td_cu_quantized_binary *b, cudaStream_t stream);
cudaError_t td_cu_run_byte_lookup(const td_cu_byte_lookup *l, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
