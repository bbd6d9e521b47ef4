/* search.cu: places of values in ascending sequences, by halving, as engine/cpu/order/search.c does it
 * step by step: a sequence that is not ascending gives the same places. */
#include "engine/cuda/order/sort_code.h"

#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

__global__ void td_search_sorter_kernel(const __grid_constant__ td_cu_search s) {
    long long k = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    for (; k < s.sorted; k += (long long)gridDim.x * TD_GROUP_BLOCK) {
        long long place = s.sorter[k];
        if (place < 0 || place >= s.n)
            td_cu_found(s.report, place + (place >= 0), s.n);
    }
}

/* In the order of sorting, where NaN comes last. */
template <typename N> __device__ static inline bool td_below(N a, N b) {
    return a < b || (b != b && a == a);
}

template <typename T> __global__ void td_search_kernel(const __grid_constant__ td_cu_search s) {
    long long k = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    for (; k < s.count; k += (long long)gridDim.x * TD_GROUP_BLOCK) {
        long long from = s.line ? td_divide(k, s.line) * s.n : 0, at = 0;
        const T *sequence = (const T *)s.sequence + from;
        td_wide<T> wanted = td_widen(((const T *)s.values)[k]);
        for (long long left = s.n; left > 0;) {
            long long middle = left / 2, place = at + middle;
            place = s.sorter ? s.sorter[from + place] : place;
            if (place < 0 || place >= s.n) /* refused by now */
                place = 0;
            td_wide<T> e = td_widen(sequence[place]);
            bool before = s.right ? !td_below(wanted, e) : td_below(e, wanted);
            at = before ? at + middle + 1 : at;
            left = before ? left - middle - 1 : middle;
        }
        if (s.narrow)
            ((int *)s.out)[k] = (int)at;
        else
            ((long long *)s.out)[k] = at;
    }
}

cudaError_t td_cu_run_search(const td_cu_search *s, cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    if (s->sorter && s->sorted > 0)
        error = TD_LAUNCH(td_search_sorter_kernel, td_blocks_of(s->sorted), TD_GROUP_BLOCK, stream,
                          *s);
    if (error != cudaSuccess || s->count == 0)
        return error;
    TD_BY_DTYPE(s->dtype, T,
                error = TD_LAUNCH((td_search_kernel<T>), td_blocks_of(s->count), TD_GROUP_BLOCK,
                                  stream, *s))
    return error;
}
