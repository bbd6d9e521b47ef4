/* byte_product_code.h: products of bytes with lines of weights, as their kernels take them. */
#ifndef TD_CUDA_QUANTIZED_BYTE_PRODUCT_CODE_H
#define TD_CUDA_QUANTIZED_BYTE_PRODUCT_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { TD_CU_BYTE_DIMS = 3 };

/* A convolution of bytes; a linear layer is one of images of one place and a kernel of one element.
 * `rows` are the places of the result in all images. */
typedef struct td_cu_byte_product {
    void *out; /* rows x (groups x columns): float32 where `floats`, else uint8 or int8 */
    const unsigned char *x, *lines;
    const float *bias;             /* NULL: none */
    const unsigned char *residual; /* as out lies; NULL: none */
    int floats;
    int64_t groups, columns, depth, step; /* td_qlines */
    int64_t channels;                     /* of x in a group */
    int64_t in[TD_CU_BYTE_DIMS], kernel[TD_CU_BYTE_DIMS], places[TD_CU_BYTE_DIMS];
    int64_t stride[TD_CU_BYTE_DIMS], padding[TD_CU_BYTE_DIMS], dilation[TD_CU_BYTE_DIMS];
    int64_t count; /* of rows */
    /* Place i of the result is place begin + i * every of out's, which are `whole`; of out that has
     * no others, `apart` is 0. */
    int apart;
    int64_t begin[TD_CU_BYTE_DIMS], every[TD_CU_BYTE_DIMS], whole[TD_CU_BYTE_DIMS];

    /* td_requantization; residual_factor is its scale by that of the result. */
    float x_scale, out_scale, residual_factor;
    int32_t x_zero_point, out_zero_point, residual_zero_point, low, high;
    int relu;
} td_cu_byte_product;

#ifdef __cplusplus
extern "C" {
#endif
/* On the tensor cores; */
cudaError_t td_cu_byte_tiles(const td_cu_byte_product *p, cudaStream_t stream);
/* where each channel has its own kernel, and all that td_cu_byte_is_depthwise asks for; */
int td_cu_byte_is_depthwise(const td_cu_byte_product *p);
cudaError_t td_cu_byte_depthwise(const td_cu_byte_product *p, cudaStream_t stream);
/* and a thread for each. */
cudaError_t td_cu_byte_direct(const td_cu_byte_product *p, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
