/* byte_product_code.h: products of bytes with lines of weights, as the kernels of byte_product.cu
 * take them: x laid out in rows, and what becomes of sums. */
#ifndef TD_CUDA_QUANTIZED_BYTE_PRODUCT_CODE_H
#define TD_CUDA_QUANTIZED_BYTE_PRODUCT_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum { TD_CU_BYTE_DIMS = 3 };

/* A convolution of bytes; a linear layer is one of images of one place and a kernel of one element.
 * `rows` are the places of the result in all images, of which `count` from `first` on are made.
 *
 * x's bytes less 128 are int8, as are the weights, so that a product of int8 multiplies them: what
 * that changes is taken off with the zero point. */
typedef struct td_cu_byte_product {
    void *out; /* rows x (groups x columns): float32 where `floats`, else uint8 or int8 */
    const unsigned char *x, *lines;
    const float *bias;             /* NULL: none */
    const unsigned char *residual; /* as out lies; NULL: none */
    int floats;
    int64_t groups, columns, depth, lines_each, step; /* td_qlines */
    int64_t channels;                                 /* of x in a group */
    int64_t in[TD_CU_BYTE_DIMS], kernel[TD_CU_BYTE_DIMS], places[TD_CU_BYTE_DIMS];
    int64_t stride[TD_CU_BYTE_DIMS], padding[TD_CU_BYTE_DIMS], dilation[TD_CU_BYTE_DIMS];
    int64_t first, count;
    /* Place i of the result is place begin + i * every of out's, which are `whole`; of out that has
     * no others, `apart` is 0. */
    int apart;
    int64_t begin[TD_CU_BYTE_DIMS], every[TD_CU_BYTE_DIMS], whole[TD_CU_BYTE_DIMS];

    /* td_requantization; residual_factor is its scale by that of the result. */
    float x_scale, out_scale, residual_factor;
    int32_t x_zero_point, out_zero_point, residual_zero_point, low, high;
    int relu;

    /* Room: rows of x, groups x count x (step less the head), filled up with 0; the sums of each,
     * groups x count; and of products, groups x count x lines_each. */
    signed char *rows;
    int *row_sums;
    const int *sums;
} td_cu_byte_product;

#ifdef __cplusplus
extern "C" {
#endif
/* x to rows and their sums. */
cudaError_t td_cu_byte_rows(const td_cu_byte_product *p, cudaStream_t stream);
/* Sums to results. */
cudaError_t td_cu_byte_deliver(const td_cu_byte_product *p, cudaStream_t stream);
/* x to results, a thread for each, without rows and sums. */
cudaError_t td_cu_byte_direct(const td_cu_byte_product *p, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
