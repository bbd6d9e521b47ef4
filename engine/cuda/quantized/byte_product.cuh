/* byte_product.cuh: where a convolution of bytes meets x, and what becomes of its sums. */
#ifndef TD_CUDA_QUANTIZED_BYTE_PRODUCT_CUH
#define TD_CUDA_QUANTIZED_BYTE_PRODUCT_CUH

#include "engine/cuda/quantized/byte_product_code.h"
#include "engine/cuda/quantized/quantized_code.h"
#include "engine/cuda/quantized/rounding.cuh"
#include "engine/cuda/runtime/dims.h"

#include <cuda_runtime.h>

/* ---- places ---- */

/* Where a row's kernel begins, of each dim, and its image. */
struct td_cu_byte_place {
    long long image, at[TD_CU_BYTE_DIMS];
};

__device__ static inline td_cu_byte_place td_byte_place(const td_cu_byte_product &p,
                                                        long long row) {
    td_cu_byte_place place;
    for (int d = TD_CU_BYTE_DIMS - 1; d >= 0; d--) {
        long long index;
        row = td_cu_divide(row, p.places[d], &index);
        place.at[d] = index * p.stride[d] - p.padding[d];
    }
    place.image = row;
    return place;
}

/* The first byte of a group's channels that an element of the kernel meets; NULL outside. */
__device__ static inline const unsigned char *td_byte_met(const td_cu_byte_product &p,
                                                          const td_cu_byte_place &place,
                                                          long long group, long long tap) {
    long long offset[TD_CU_BYTE_DIMS], at = place.image;
    for (int d = TD_CU_BYTE_DIMS - 1; d >= 0; d--)
        tap = td_cu_divide(tap, p.kernel[d], &offset[d]);
    for (int d = 0; d < TD_CU_BYTE_DIMS; d++) {
        long long i = place.at[d] + offset[d] * p.dilation[d];
        if (i < 0 || i >= p.in[d])
            return nullptr;
        at = at * p.in[d] + i;
    }
    return p.x + (at * p.groups + group) * p.channels;
}

/* Where a row's results stand in out. */
__device__ static inline long long td_byte_row_of_out(const td_cu_byte_product &p, long long row) {
    long long index[TD_CU_BYTE_DIMS];
    if (!p.apart)
        return row;
    for (int d = TD_CU_BYTE_DIMS - 1; d >= 0; d--)
        row = td_cu_divide(row, p.places[d], &index[d]);
    for (int d = 0; d < TD_CU_BYTE_DIMS; d++)
        row = row * p.whole[d] + p.begin[d] + index[d] * p.every[d];
    return row;
}

/* ---- weights ---- */

/* Those of a column, counted over all groups. */
__device__ static inline const unsigned char *td_byte_weights(const td_cu_byte_product &p,
                                                              long long column) {
    return p.lines + column * p.step + TD_CU_LINE_HEAD;
}

/* ---- results ---- */

/* What is the same for all sums of a column. */
struct td_cu_byte_column {
    float factor, addend;
    int zero_point, offset; /* the weight's; x's times the sum of the weights */
};

__device__ static inline td_cu_byte_column td_byte_column(const td_cu_byte_product &p,
                                                          long long column) {
    const td_cu_line_head head = *(const td_cu_line_head *)(p.lines + column * p.step);
    const float both = p.x_scale * head.scale, bias = p.bias ? p.bias[column] : 0.0f;
    td_cu_byte_column c;
    c.factor = p.floats ? both : both / p.out_scale;
    c.addend = p.floats ? bias : bias / both;
    c.zero_point = head.zero_point;
    c.offset = (int)((unsigned)p.x_zero_point * (unsigned)head.sum);
    return c;
}

/* A sum of products less what zero points add to it, exact: what fits 32 bits in the end may wrap
 * around before. */
__device__ static inline float td_byte_exact(const td_cu_byte_column &c, int sum, int row_sum) {
    return (float)(int)((unsigned)sum - (unsigned)c.offset -
                        (unsigned)c.zero_point * (unsigned)row_sum);
}

/* The float of an exact sum. */
__device__ static inline float td_byte_float(const td_cu_byte_product &p,
                                             const td_cu_byte_column &c, float whole) {
    const float v = whole * c.factor + c.addend;
    return p.relu && v < 0 ? 0.0f : v;
}

/* The byte of an exact sum, which stands at place `at` of out. */
__device__ static inline unsigned char td_byte_rounded(const td_cu_byte_product &p,
                                                       const td_cu_byte_column &c, float whole,
                                                       long long at) {
    float v = (whole + c.addend) * c.factor;
    if (p.residual)
        v += (float)(p.residual[at] - p.residual_zero_point) * p.residual_factor;
    return (unsigned char)(td_round_between(v, (float)(p.low - p.out_zero_point),
                                            (float)(p.high - p.out_zero_point)) +
                           p.out_zero_point);
}

/* A sum to its place. */
__device__ static inline void td_byte_store(const td_cu_byte_product &p, const td_cu_byte_column &c,
                                            int sum, int row_sum, long long at) {
    const float whole = td_byte_exact(c, sum, row_sum);
    if (p.floats)
        ((float *)p.out)[at] = td_byte_float(p, c, whole);
    else
        ((unsigned char *)p.out)[at] = td_byte_rounded(p, c, whole, at);
}

/* c + the products of four bytes each, a's unsigned, b's signed. */
__device__ static inline int td_add_unsigned_products(unsigned a, unsigned b, int c) {
#ifdef __CUDA_ARCH__
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(c) : "r"(a), "r"(b));
    return c;
#else
    for (int j = 0; j < 4; j++)
        c += (int)(a >> 8 * j & 0xff) * (signed char)(b >> 8 * j);
    return c;
#endif
}

#endif
