/* byte_product.cu: convolutions of bytes of groups of few channels: a thread for each result reads
 * x where it lies. */
#include "engine/cuda/quantized/byte_product.cuh"

#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

namespace {

/* A thread for each result. */
__global__ void td_byte_direct_kernel(const __grid_constant__ td_cu_byte_product p) {
    const long long all = p.groups * p.columns;
    const long long taps = p.kernel[0] * p.kernel[1] * p.kernel[2];
    for (long long item = td_my_first(); item < p.count * all; item += td_all_threads()) {
        long long column;
        const long long row = td_cu_divide(item, all, &column);
        const long long group = td_divide(column, p.columns);
        const signed char *weight = (const signed char *)td_byte_weights(p, column);
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
        td_byte_store(p, td_byte_column(p, column), sum, row_sum,
                      td_byte_row_of_out(p, row) * all + column);
    }
}
} // namespace

cudaError_t td_cu_byte_direct(const td_cu_byte_product *p, cudaStream_t stream) {
    return TD_LAUNCH(td_byte_direct_kernel, td_blocks_of(p->count * p->groups * p->columns),
                     TD_GROUP_BLOCK, stream, *p);
}
