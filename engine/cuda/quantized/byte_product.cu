/* byte_product.cu: what stands before and behind a product of bytes that cuBLASLt makes: bytes of
 * images as rows of int8, and sums of int32 as floats or integers of a scale; and convolutions of
 * few channels, whose bytes are read where they lie. */
#include "engine/cuda/quantized/byte_product_code.h"

#include "engine/cuda/quantized/quantized_code.h"
#include "engine/cuda/quantized/rounding.cuh"
#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

namespace {

enum { TD_BYTE_SHIFT = 128, TD_BYTE_ROWS = 16 }; /* rows of a thread that delivers sums */

/* ---- places ---- */

/* Where a row's kernel begins, of each dim, and its image. */
struct td_cu_byte_place {
    long long image, at[TD_CU_BYTE_DIMS];
};

__device__ td_cu_byte_place td_byte_place(const td_cu_byte_product &p, long long row) {
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
__device__ const unsigned char *td_byte_met(const td_cu_byte_product &p,
                                            const td_cu_byte_place &place, long long group,
                                            long long tap) {
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
__device__ long long td_byte_row_of_out(const td_cu_byte_product &p, long long row) {
    long long index[TD_CU_BYTE_DIMS];
    if (!p.apart)
        return row;
    for (int d = TD_CU_BYTE_DIMS - 1; d >= 0; d--)
        row = td_cu_divide(row, p.places[d], &index[d]);
    for (int d = 0; d < TD_CU_BYTE_DIMS; d++)
        row = row * p.whole[d] + p.begin[d] + index[d] * p.every[d];
    return row;
}

/* ---- rows ---- */

/* Where byte k of a row lies; NULL outside. */
__device__ const unsigned char *td_byte_of_x(const td_cu_byte_product &p,
                                             const td_cu_byte_place &place, long long group,
                                             long long k) {
    long long channel;
    const long long tap = td_cu_divide(k, p.channels, &channel);
    const unsigned char *met = td_byte_met(p, place, group, tap);
    return met ? met + channel : nullptr;
}

/* Byte k of a row less 128; behind the depth, 0. */
__device__ int td_byte_of_row(const td_cu_byte_product &p, const td_cu_byte_place &place,
                              long long group, long long k) {
    if (k >= p.depth)
        return 0;
    const unsigned char *at = td_byte_of_x(p, place, group, k);
    return (at ? *at : p.x_zero_point) - TD_BYTE_SHIFT;
}

/* Four bytes of a row from k on, the first in the lowest bits. */
__device__ unsigned td_word_of_row(const td_cu_byte_product &p, const td_cu_byte_place &place,
                                   long long group, long long k) {
    unsigned word = 0;
    for (int j = 0; j < 4; j++)
        word |= (unsigned)(td_byte_of_row(p, place, group, k + j) & 0xff) << 8 * j;
    return word;
}

/* The same where channels are a multiple of four, which lie in one word. */
__device__ unsigned td_fours_of_row(const td_cu_byte_product &p, const td_cu_byte_place &place,
                                    long long group, long long k) {
    if (k >= p.depth)
        return 0;
    const unsigned char *at = td_byte_of_x(p, place, group, k);
    const unsigned outside = (unsigned)p.x_zero_point * 0x01010101u;
    return (at ? *(const unsigned *)at : outside) ^ 0x80808080u;
}

/* A warp for each row of each group. */
template <bool FOURS>
__global__ void td_byte_rows_kernel(const __grid_constant__ td_cu_byte_product p) {
    const long long at = (long long)blockIdx.x * TD_GROUP_WARPS + threadIdx.x / 32;
    const long long words = (p.step - TD_CU_LINE_HEAD) / 4;
    long long row, sum = 0;
    const long long group = td_cu_divide(at, p.count, &row);
    if (group < p.groups) {
        const td_cu_byte_place place = td_byte_place(p, p.first + row);
        for (long long w = threadIdx.x % 32; w < words; w += 32) {
            const unsigned word = FOURS ? td_fours_of_row(p, place, group, 4 * w)
                                        : td_word_of_row(p, place, group, 4 * w);
            ((unsigned *)p.rows)[at * words + w] = word;
            for (int j = 0; j < 4; j++)
                sum += (signed char)(word >> 8 * j);
        }
    }
    sum = td_group_fold(td_adder(), sum, 32, (long long *)nullptr);
    if (group < p.groups && threadIdx.x % 32 == 0)
        p.row_sums[at] = (int)sum;
}

/* ---- results ---- */

/* What is the same for all sums of a column. */
struct td_cu_byte_column {
    float factor, addend, low, high;
    int zero_point, offset; /* the weight's; x's, less what bytes are shifted by, times its sum */
};

__device__ td_cu_byte_column td_byte_column(const td_cu_byte_product &p, const unsigned char *line,
                                            long long column, int x_zero_point) {
    const td_cu_line_head head = *(const td_cu_line_head *)line;
    const float both = p.x_scale * head.scale, bias = p.bias ? p.bias[column] : 0.0f;
    td_cu_byte_column c;
    c.factor = p.floats ? both : both / p.out_scale;
    c.addend = p.floats ? bias : bias / both;
    c.low = (float)(p.low - p.out_zero_point);
    c.high = (float)(p.high - p.out_zero_point);
    c.zero_point = head.zero_point;
    c.offset = (int)((unsigned)x_zero_point * (unsigned)head.sum);
    return c;
}

/* An exact sum to its place: what fits 32 bits in the end may wrap around before. */
__device__ void td_byte_store(const td_cu_byte_product &p, const td_cu_byte_column &c, int sum,
                              int row_sum, long long at) {
    const float whole = (float)(int)((unsigned)sum - (unsigned)c.offset -
                                     (unsigned)c.zero_point * (unsigned)row_sum);
    if (p.floats) {
        const float v = whole * c.factor + c.addend;
        ((float *)p.out)[at] = p.relu && v < 0 ? 0.0f : v;
        return;
    }
    float v = (whole + c.addend) * c.factor;
    if (p.residual)
        v += (float)(p.residual[at] - p.residual_zero_point) * p.residual_factor;
    ((unsigned char *)p.out)[at] =
        (unsigned char)(td_round_between(v, c.low, c.high) + p.out_zero_point);
}

/* A thread has a column, and TD_BYTE_ROWS rows of it. */
__global__ void td_byte_deliver_kernel(const __grid_constant__ td_cu_byte_product p) {
    const long long all = p.groups * p.columns;
    const long long tiles = (p.count + TD_BYTE_ROWS - 1) / TD_BYTE_ROWS;
    for (long long item = td_my_first(); item < tiles * all; item += td_all_threads()) {
        long long column, own;
        const long long begin = td_cu_divide(item, all, &column) * TD_BYTE_ROWS;
        const long long group = td_cu_divide(column, p.columns, &own);
        const long long end = begin + TD_BYTE_ROWS < p.count ? begin + TD_BYTE_ROWS : p.count;
        const td_cu_byte_column c =
            td_byte_column(p, p.lines + (group * p.lines_each + own) * p.step, column,
                           p.x_zero_point - TD_BYTE_SHIFT);
        for (long long row = begin; row < end; row++) {
            const long long line = group * p.count + row;
            td_byte_store(p, c, p.sums[line * p.lines_each + own], p.row_sums[line],
                          td_byte_row_of_out(p, p.first + row) * all + column);
        }
    }
}

/* A thread for each result. */
__global__ void td_byte_direct_kernel(const __grid_constant__ td_cu_byte_product p) {
    const long long all = p.groups * p.columns;
    const long long taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
    for (long long item = td_my_first(); item < p.count * all; item += td_all_threads()) {
        long long column, own;
        const long long row = p.first + td_cu_divide(item, all, &column);
        const long long group = td_cu_divide(column, p.columns, &own);
        const unsigned char *line = p.lines + (group * p.lines_each + own) * p.step;
        const signed char *weight = (const signed char *)(line + TD_CU_LINE_HEAD);
        const td_cu_byte_place place = td_byte_place(p, row);
        int sum = 0, row_sum = 0;
        for (long long tap = 0; tap < taps; tap++, weight += p.channels) {
            const unsigned char *met = td_byte_met(p, place, group, tap);
            for (long long c = 0; c < p.channels; c++) {
                const int x = met ? met[c] : p.x_zero_point;
                sum += x * weight[c];
                row_sum += x;
            }
        }
        td_byte_store(p, td_byte_column(p, line, column, p.x_zero_point), sum, row_sum,
                      td_byte_row_of_out(p, row) * all + column);
    }
}
} // namespace

cudaError_t td_cu_byte_rows(const td_cu_byte_product *p, cudaStream_t stream) {
    const long long blocks = (p->groups * p->count + TD_GROUP_WARPS - 1) / TD_GROUP_WARPS;
    if (p->channels % 4 == 0 && (uintptr_t)p->x % 4 == 0)
        return TD_LAUNCH_TOGETHER((td_byte_rows_kernel<true>), (unsigned)blocks, TD_GROUP_BLOCK,
                                  stream, *p);
    return TD_LAUNCH_TOGETHER((td_byte_rows_kernel<false>), (unsigned)blocks, TD_GROUP_BLOCK,
                              stream, *p);
}

cudaError_t td_cu_byte_deliver(const td_cu_byte_product *p, cudaStream_t stream) {
    const long long tiles = (p->count + TD_BYTE_ROWS - 1) / TD_BYTE_ROWS;
    return TD_LAUNCH(td_byte_deliver_kernel, td_blocks_of(tiles * p->groups * p->columns),
                     TD_GROUP_BLOCK, stream, *p);
}

cudaError_t td_cu_byte_direct(const td_cu_byte_product *p, cudaStream_t stream) {
    return TD_LAUNCH(td_byte_direct_kernel, td_blocks_of(p->count * p->groups * p->columns),
                     TD_GROUP_BLOCK, stream, *p);
}
