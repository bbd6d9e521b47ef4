/* combine.cu: writes or adds elements at places that may be named several times. One thread
 * combines all that goes to a place, in the order of the rows, so results are the same bits in
 * every run, and the CPU's. */
#include "engine/cuda/index/index.cuh"

/* Elements of a launch: `after` lies closest together. */
struct td_cu_place {
    long long row, before, after;
};
__device__ static inline bool td_place_of(const td_cu_combination &c, td_cu_place *p) {
    long long k = td_thread(), rest = k / c.after_n;
    if (k >= c.before_n * c.n * c.after_n)
        return false;
    p->after = k - rest * c.after_n;
    p->before = rest / c.n;
    p->row = rest - p->before * c.n;
    return true;
}

__device__ static inline long long td_to_offset(const td_cu_combination &c, const td_cu_place &p,
                                                unsigned key) {
    return td_cu_offset(c.rows, key) + td_cu_offset(c.to_before, p.before) +
           td_cu_offset(c.to_after, p.after);
}
__device__ static inline long long td_from_offset(const td_cu_combination &c, const td_cu_place &p,
                                                  long long row) {
    return td_cu_offset(c.sources, row) + p.before * c.from_before + p.after;
}

static unsigned td_combination_blocks(const td_cu_combination *c) {
    return td_index_blocks(c->before_n * c->n * c->after_n);
}

/* ---- in order ---- */

template <typename T>
__global__ void td_combine_ordered_kernel(const __grid_constant__ td_cu_combination c) {
    td_cu_place p;
    if (!td_place_of(c, &p))
        return;
    unsigned key = c.keys[p.row];
    if (key >= c.limit || (p.row > 0 && c.keys[p.row - 1] == key))
        return;
    T *to = (T *)c.to + td_to_offset(c, p, key);
    td_wide<T> sum = td_widen(*to);
    for (long long row = p.row; row < c.n && c.keys[row] == key; row++) {
        T x = ((const T *)c.from)[td_from_offset(c, p, c.ranks[row])];
        sum = td_combined<td_wide<T>>(c.how, sum, td_widen(x));
        if (!c.wide)
            sum = td_rounded<T>(sum);
    }
    *to = td_narrow<T>::of(sum);
}

cudaError_t td_cu_combine_ordered(const td_cu_combination *c, cudaStream_t stream) {
    TD_BY_DTYPE(c->dtype, T,
                return TD_LAUNCH(td_combine_ordered_kernel<T>, td_combination_blocks(c),
                                 TD_INDEX_BLOCK, stream, *c))
    return cudaErrorInvalidValue;
}

template <typename T>
__global__ void td_combine_single_kernel(const __grid_constant__ td_cu_combination c) {
    td_cu_place p;
    if (!td_place_of(c, &p))
        return;
    unsigned key = c.keys[p.row];
    if (key >= c.limit)
        return;
    T *to = (T *)c.to + td_to_offset(c, p, key);
    T x = ((const T *)c.from)[td_from_offset(c, p, p.row)];
    *to = td_narrow<T>::of(td_combined<td_wide<T>>(c.how, td_widen(*to), td_widen(x)));
}

cudaError_t td_cu_combine_single(const td_cu_combination *c, cudaStream_t stream) {
    TD_BY_DTYPE(c->dtype, T,
                return TD_LAUNCH(td_combine_single_kernel<T>, td_combination_blocks(c),
                                 TD_INDEX_BLOCK, stream, *c))
    return cudaErrorInvalidValue;
}

/* ---- the last of several ---- */

__global__ void td_clear_last_kernel(const uint32_t *keys, unsigned n, unsigned limit,
                                     uint32_t *last) {
    long long k = td_thread();
    if (k < n && keys[k] < limit)
        last[keys[k]] = 0;
}

__global__ void td_find_last_kernel(const uint32_t *keys, unsigned n, unsigned limit,
                                    uint32_t *last) {
    long long k = td_thread();
    if (k < n && keys[k] < limit)
        atomicMax(&last[keys[k]], (unsigned)k);
}

template <typename T>
__global__ void td_put_last_kernel(const __grid_constant__ td_cu_combination c) {
    td_cu_place p;
    if (!td_place_of(c, &p))
        return;
    unsigned key = c.keys[p.row];
    if (key < c.limit && c.last[key] == p.row)
        ((T *)c.to)[td_to_offset(c, p, key)] = ((const T *)c.from)[td_from_offset(c, p, p.row)];
}

cudaError_t td_cu_put_last(const td_cu_combination *c, cudaStream_t stream) {
    unsigned blocks = td_index_blocks(c->n);
    cudaError_t error = TD_LAUNCH(td_clear_last_kernel, blocks, TD_INDEX_BLOCK, stream, c->keys,
                                  c->n, c->limit, c->last);
    if (error == cudaSuccess)
        error = TD_LAUNCH(td_find_last_kernel, blocks, TD_INDEX_BLOCK, stream, c->keys, c->n,
                          c->limit, c->last);
    if (error != cudaSuccess)
        return error;
    TD_BY_SIZE(td_dtype_size((td_dtype)c->dtype), T,
               return TD_LAUNCH(td_put_last_kernel<T>, td_combination_blocks(c), TD_INDEX_BLOCK,
                                stream, *c))
    return cudaErrorInvalidValue;
}

/* ---- one thread for all that may meet ---- */

template <typename T>
__global__ void td_write_serial_kernel(const __grid_constant__ td_cu_serial_write w) {
    long long k = td_thread(), offset, key;
    if (k >= w.before_n * w.after_n)
        return;
    long long before = k / w.after_n, after = k - before * w.after_n;
    T *to = (T *)w.to + td_cu_offset(w.before, before) + td_cu_offset(w.after, after);
    const T *from = (const T *)w.from + before * w.places * w.after_n + after;
    for (long long b = 0; b < w.places; b++) {
        if (!td_pick(w.picks, b, &offset, &key))
            continue;
        T x = from[b * w.after_n];
        to[offset] = w.accumulate ? td_narrow<T>::of(td_widen(to[offset]) + td_widen(x)) : x;
    }
}

cudaError_t td_cu_write_serial(const td_cu_serial_write *w, cudaStream_t stream) {
    TD_BY_DTYPE(w->dtype, T,
                return TD_LAUNCH(td_write_serial_kernel<T>,
                                 td_index_blocks(w->before_n * w->after_n), TD_INDEX_BLOCK, stream,
                                 *w))
    return cudaErrorInvalidValue;
}

template <typename T>
__global__ void td_write_lines_kernel(const __grid_constant__ td_cu_written_lines l) {
    long long line = td_thread();
    if (line >= l.lines)
        return;
    const int64_t *index = l.index + td_cu_offset(l.index_dims, line);
    const T *from = (const T *)l.from + td_cu_offset(l.from_dims, line);
    T *to = (T *)l.to + td_cu_offset(l.to_dims, line);
    for (long long k = 0; k < l.length; k++) {
        long long i = td_checked(index[k * l.index_step], l.size, l.report);
        if (i < 0)
            continue;
        T x = from[k * l.from_step], *at = &to[i * l.to_stride];
        *at = l.how == TD_CU_PUT
                  ? x
                  : td_narrow<T>::of(td_combined<td_wide<T>>(l.how, td_widen(*at), td_widen(x)));
    }
}

cudaError_t td_cu_write_lines(const td_cu_written_lines *l, cudaStream_t stream) {
    TD_BY_DTYPE(l->dtype, T,
                return TD_LAUNCH(td_write_lines_kernel<T>, td_index_blocks(l->lines),
                                 TD_INDEX_BLOCK, stream, *l))
    return cudaErrorInvalidValue;
}
