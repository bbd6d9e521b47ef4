/* quantized.cu: floats to integers of a scale and a zero point, weights to lines, sums and products
 * of bytes, and tables of them. */
#include "engine/cuda/quantized/quantized_code.h"

#include "engine/core/dtype.h"
#include "engine/cuda/quantized/rounding.cuh"
#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

namespace {

/* ---- floats to integers ---- */

__device__ int td_quantized_element(const td_cu_quantize &q, long long at) {
    long long channel;
    td_cu_divide(td_divide(at, q.inner), q.channels, &channel);
    const float inverse = 1 / q.scales[channel];
    const int point = q.zero_points[channel];
    if (q.dtype != TD_I32)
        return td_round_between(q.x[at] * inverse, (float)(q.low - point),
                                (float)(q.high - point)) +
               point;
    double v = (double)rintf(q.x[at] * inverse) + point; /* bounds of 32 bits are no floats */
    v = v >= q.low ? v : q.low;
    return (int)(v <= q.high ? v : q.high);
}

template <typename T> __global__ void td_quantize_kernel(const __grid_constant__ td_cu_quantize q) {
    for (long long at = td_my_first(); at < q.n; at += td_all_threads())
        ((T *)q.out)[at] = (T)td_quantized_element(q, at);
}

/* ---- weights to lines ---- */

/* A warp for each line. */
__global__ void td_lines_kernel(const __grid_constant__ td_cu_weight_lines l) {
    const long long line = (long long)blockIdx.x * TD_GROUP_WARPS + threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;
    long long sum = 0;
    if (line < l.rows)
        for (long long k = lane; k < l.step - TD_CU_LINE_HEAD; k += 32) {
            const signed char w = k < l.depth ? l.weight[line * l.depth + k] : 0;
            ((signed char *)l.out)[line * l.step + TD_CU_LINE_HEAD + k] = w;
            sum += w;
        }
    sum = td_group_fold(td_adder(), sum, 32, (long long *)nullptr);
    if (line < l.rows && lane == 0) {
        const int point = l.zero_points[line];
        const td_cu_line_head head = {l.scales[line], point, (int)(sum - l.depth * point), 0};
        *(td_cu_line_head *)(l.out + line * l.step) = head;
    }
}

/* ---- element by element ---- */

template <typename T>
__global__ void td_quantized_binary_kernel(const __grid_constant__ td_cu_quantized_binary b) {
    const float low = (float)(b.low - b.out_zero_point), high = (float)(b.high - b.out_zero_point);
    for (long long at = td_my_first(); at < b.n; at += td_all_threads()) {
        const float x = (float)(((const T *)b.a)[at] - b.a_zero_point) * b.a_scale;
        const float y = (float)(((const T *)b.b)[at] - b.b_zero_point) * b.b_scale;
        const float v = b.multiply ? x * y : x + y;
        ((T *)b.out)[at] = (T)(td_round_between(v * b.inverse, low, high) + b.out_zero_point);
    }
}

__global__ void td_byte_lookup_kernel(const __grid_constant__ td_cu_byte_lookup l) {
    for (long long at = td_my_first(); at < l.n; at += td_all_threads())
        l.out[at] = l.table[l.x[at] ^ l.flip];
}
} // namespace

cudaError_t td_cu_run_quantize(const td_cu_quantize *q, cudaStream_t stream) {
    const unsigned blocks = td_blocks_of(q->n);
    if (q->dtype == TD_U8)
        return TD_LAUNCH((td_quantize_kernel<unsigned char>), blocks, TD_GROUP_BLOCK, stream, *q);
    if (q->dtype == TD_I8)
        return TD_LAUNCH((td_quantize_kernel<signed char>), blocks, TD_GROUP_BLOCK, stream, *q);
    return TD_LAUNCH((td_quantize_kernel<int>), blocks, TD_GROUP_BLOCK, stream, *q);
}

cudaError_t td_cu_run_lines(const td_cu_weight_lines *l, cudaStream_t stream) {
    const long long blocks = (l->rows + TD_GROUP_WARPS - 1) / TD_GROUP_WARPS;
    return TD_LAUNCH_TOGETHER(td_lines_kernel, (unsigned)blocks, TD_GROUP_BLOCK, stream, *l);
}

cudaError_t td_cu_run_quantized_binary(const td_cu_quantized_binary *b, cudaStream_t stream) {
    const unsigned blocks = td_blocks_of(b->n);
    if (b->dtype == TD_U8)
        return TD_LAUNCH((td_quantized_binary_kernel<unsigned char>), blocks, TD_GROUP_BLOCK,
                         stream, *b);
    return TD_LAUNCH((td_quantized_binary_kernel<signed char>), blocks, TD_GROUP_BLOCK, stream, *b);
}

cudaError_t td_cu_run_byte_lookup(const td_cu_byte_lookup *l, cudaStream_t stream) {
    return TD_LAUNCH(td_byte_lookup_kernel, td_blocks_of(l->n), TD_GROUP_BLOCK, stream, *l);
}
