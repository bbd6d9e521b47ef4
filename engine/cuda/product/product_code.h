/* product_code.h: batches of matrix products and convolutions, as the kernels of product.cu and
 * conv.cu take them. */
#ifndef TD_CUDA_PRODUCT_PRODUCT_CODE_H
#define TD_CUDA_PRODUCT_PRODUCT_CODE_H

#include <cuda_runtime_api.h>
#include <stdint.h>

enum {
    TD_CU_PRODUCT_SIDE = 64, /* rows and columns of a tile, which a block makes */
    TD_CU_PRODUCT_DEPTH = 16
};

/* What all products have: sizes, and sums over k that are cut into parts, each of which a tile of
 * its own adds up into `partial` (parts x batch x m x n sums). */
typedef struct td_cu_product_size {
    int64_t batch, m, n, k;
    int64_t parts; /* 1: no partial sums */
    void *partial;
} td_cu_product_size;

/* Bytes of a partial sum. */
static inline int td_cu_sum_size(int itemsize) {
    return itemsize == 8 ? 8 : 4;
}

/* Strides in elements. */
typedef struct td_cu_matrix {
    int64_t batch, row, column;
} td_cu_matrix;

/* out = a b + bias. With `bytes` a and b are int8, and out, of `dtype`, int32. */
typedef struct td_cu_product {
    td_cu_product_size size;
    void *out;
    const void *a, *b, *bias; /* bias NULL: none */
    int dtype, bytes;
    int64_t bias_step;
    td_cu_matrix as_out, as_a, as_b;
} td_cu_product;

enum { TD_CU_CONV_DIMS = 3 };
enum { TD_CU_CONV_FORWARD, TD_CU_CONV_INPUT, TD_CU_CONV_WEIGHT };

/* Images: strides of an image, of a place, of a channel. */
typedef struct td_cu_images {
    int64_t image, place, channel;
} td_cu_images;

/* A convolution as a product for each group, whose factors are looked up where they lie:
 *   FORWARD  y (images and places x o) = x (images and places x taps and c) w
 *   INPUT    dx (images and places x c) = dy (images and places x taps and o) w
 *   WEIGHT   dw (o x taps and c) = dy (o x images and places) x */
typedef struct td_cu_convolution {
    td_cu_product_size size;
    void *out;
    const void *x, *y, *w, *bias; /* that of them which is the result is not read */
    int dtype, direction;
    int64_t c, o;                                                                  /* of a group */
    int64_t in[TD_CU_CONV_DIMS], kernel[TD_CU_CONV_DIMS], places[TD_CU_CONV_DIMS]; /* places of y */
    int64_t stride[TD_CU_CONV_DIMS], padding[TD_CU_CONV_DIMS], dilation[TD_CU_CONV_DIMS];
    td_cu_images as_x, as_y, as_w; /* w: image is an output channel, channel an input channel */
} td_cu_convolution;

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t td_cu_product_run(const td_cu_product *p, cudaStream_t stream);
cudaError_t td_cu_convolution_run(const td_cu_convolution *c, cudaStream_t stream);
#ifdef __cplusplus
}
#endif
#endif
