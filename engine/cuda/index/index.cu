/* index.cu: reads elements at places that indices name, and turns indices into keys. */
#include "engine/cuda/index/index.cuh"

/* ---- reading ---- */

template <typename T> __global__ void td_index_read_kernel(const __grid_constant__ td_cu_index_read r) {
    long long k = td_thread(), offset, key;
    if (k >= r.before_n * r.places * r.after_n)
        return;
    long long row = k / r.after_n, after = k - row * r.after_n;
    long long before = row / r.places, place = row - before * r.places;
    if (td_pick(r.picks, place, &offset, &key))
        ((T *)r.out)[k] = ((const T *)r.x)[offset + td_cu_offset(r.before, before) +
                                           td_cu_offset(r.after, after)];
}

cudaError_t td_cu_index_read_run(const td_cu_index_read *r, cudaStream_t stream) {
    unsigned blocks = td_index_blocks(r->before_n * r->places * r->after_n);
    if (r->itemsize == 16)
        return TD_LAUNCH(td_index_read_kernel<uint4>, blocks, TD_INDEX_BLOCK, stream, *r);
    TD_BY_SIZE(r->itemsize, T,
               return TD_LAUNCH(td_index_read_kernel<T>, blocks, TD_INDEX_BLOCK, stream, *r))
    return cudaErrorInvalidValue;
}

template <typename T> __global__ void td_gather_kernel(const __grid_constant__ td_cu_gather g) {
    long long k = td_thread();
    if (k >= g.n)
        return;
    long long i = td_checked(g.index[td_cu_offset(g.index_dims, k)], g.size, g.report);
    if (i >= 0)
        ((T *)g.out)[td_cu_offset(g.narrow, k)] =
            ((const T *)g.x)[td_cu_offset(g.wide, k) + i * g.stride];
}

cudaError_t td_cu_gather_run(const td_cu_gather *g, cudaStream_t stream) {
    TD_BY_SIZE(g->itemsize, T,
               return TD_LAUNCH(td_gather_kernel<T>, td_index_blocks(g->n), TD_INDEX_BLOCK, stream,
                                *g))
    return cudaErrorInvalidValue;
}

/* ---- keys ---- */

__global__ void td_picked_keys_kernel(const __grid_constant__ td_cu_picks p, unsigned n,
                                      unsigned limit, uint32_t *keys) {
    long long k = td_thread(), offset, key;
    if (k >= n)
        return;
    bool there = td_pick(p, k, &offset, &key);
    if (keys)
        keys[k] = there ? (uint32_t)key : limit;
}

cudaError_t td_cu_picked_keys(const td_cu_picks *p, uint32_t n, uint32_t limit, uint32_t *keys,
                              cudaStream_t stream) {
    return TD_LAUNCH(td_picked_keys_kernel, td_index_blocks(n), TD_INDEX_BLOCK, stream, *p, n,
                     limit, keys);
}

__global__ void td_gathered_keys_kernel(const __grid_constant__ td_cu_gather g, unsigned limit,
                                        uint32_t *keys) {
    long long k = td_thread();
    if (k >= g.n)
        return;
    long long i = td_checked(g.index[td_cu_offset(g.index_dims, k)], g.size, g.report);
    keys[k] = i < 0 ? limit : (uint32_t)(td_cu_offset(g.wide, k) + i * g.stride);
}

cudaError_t td_cu_gathered_keys(const td_cu_gather *g, uint32_t limit, uint32_t *keys,
                                cudaStream_t stream) {
    return TD_LAUNCH(td_gathered_keys_kernel, td_index_blocks(g->n), TD_INDEX_BLOCK, stream, *g,
                     limit, keys);
}

__global__ void td_offset_keys_kernel(const __grid_constant__ td_cu_dims dims, long long first,
                                      unsigned n, uint32_t *keys) {
    long long k = td_thread();
    if (k < n)
        keys[k] = (uint32_t)(first + td_cu_offset(dims, k));
}

cudaError_t td_cu_offset_keys(const td_cu_dims *dims, int64_t first, uint32_t n, uint32_t *keys,
                              cudaStream_t stream) {
    return TD_LAUNCH(td_offset_keys_kernel, td_index_blocks(n), TD_INDEX_BLOCK, stream, *dims,
                     first, n, keys);
}
