/* radix_sort.cu: keys with ranks in order, by CUB's radix sort; in a file of its own, since it takes long
 * to compile. */
#include "engine/cuda/order/sort_code.h"

#include <cub/cub.cuh>

template <typename K>
static cudaError_t td_sort_pairs(void *own, size_t *bytes, void *const keys[2],
                                 uint32_t *const ranks[2], int *at, int64_t n, int bits,
                                 cudaStream_t stream) {
    cub::DoubleBuffer<K> k((K *)keys[*at], (K *)keys[*at ^ 1]);
    cub::DoubleBuffer<uint32_t> r(ranks[*at], ranks[*at ^ 1]);
    cudaError_t error =
        cub::DeviceRadixSort::SortPairs(own, *bytes, k, r, (int)n, 0, bits, stream);
    if (own && error == cudaSuccess)
        *at = k.Current() == (K *)keys[0] ? 0 : 1;
    return error;
}

cudaError_t td_cu_sort_pairs(void *own, size_t *bytes, bool wide, void *const keys[2],
                             uint32_t *const ranks[2], int *at, int64_t n, int bits,
                             cudaStream_t stream) {
    return wide ? td_sort_pairs<unsigned long long>(own, bytes, keys, ranks, at, n, bits, stream)
                : td_sort_pairs<uint32_t>(own, bytes, keys, ranks, at, n, bits, stream);
}
