/* sort.cu: lines in order, rows in order, and random orders. Short ones are put in order by one
 * block each, or several by one; for long ones keys are made here, which radix_sort.cu orders. */
#include "engine/cuda/order/keys.cuh"

#include "engine/core/draw_math.h"
#include "engine/cuda/runtime/launch.cuh"

enum { TD_SORT_NARROW_TILE = 1024 };

typedef unsigned long long td_wide_key;

/* Where element 0 of a line lies in a tensor with n elements along it. */
__device__ static inline long long td_line_at(const td_cu_lines &l, long long n, long long line) {
    long long outer = l.inner == 1 ? line : td_divide(line, l.inner);
    return outer * n * l.inner + line - outer * l.inner;
}

__device__ static inline void td_put_sorted(const td_cu_sort &s, long long line, long long k,
                                            long long place, bool known, td_wide_key bits) {
    long long to = td_line_at(s.lines, s.first, line) + k * s.lines.inner;
    if (s.values) {
        if (!known)
            bits = td_load_bits(s.keys.size, s.x,
                                td_line_at(s.lines, s.lines.n, line) + place * s.lines.inner);
        td_store_bits(s.keys.size, s.values, to, bits);
    }
    if (s.index)
        s.index[to] = place;
}

/* ---- short lines ---- */

/* Keys of a tile's lines, `width` apart; what stands behind a line goes behind its elements. */
template <typename K, int TILE>
__device__ static inline void td_load_tile(const td_cu_sort &s, long long first, int width,
                                           const td_keyed<K> &tile) {
    long long lines = s.lines.outer * s.lines.inner;
    for (int e = threadIdx.x; e < TILE; e += TD_GROUP_BLOCK) {
        long long line = first + e / width, k = e & (width - 1);
        bool there = line < lines && k < s.lines.n;
        long long at = there ? td_line_at(s.lines, s.lines.n, line) + k * s.lines.inner : 0;
        tile.keys[e] = there ? td_load_key<K>(s.keys, s.x, at) : ~(K)0;
        tile.places[e] = (unsigned int)k;
    }
    __syncthreads();
}

template <typename K, int TILE>
__global__ void td_sort_short_kernel(const __grid_constant__ td_cu_sort s, int width) {
    __shared__ K keys[TILE];
    __shared__ unsigned int places[TILE];
    td_keyed<K> tile = {keys, places};
    long long first = (long long)blockIdx.x * (TILE / width), lines = s.lines.outer * s.lines.inner;
    td_load_tile<K, TILE>(s, first, width, tile);
    td_order_tile<TILE>(tile, width);
    for (int e = threadIdx.x; e < TILE; e += TD_GROUP_BLOCK) {
        long long line = first + e / width, k = e & (width - 1);
        K bits = 0;
        if (line < lines && k < s.first) {
            bool known = td_bits_of<K>(s.keys, keys[e], &bits);
            td_put_sorted(s, line, k, places[e], known, bits);
        }
    }
}

/* How many of n keys in order are less. */
template <typename K>
__device__ static inline int td_count_less(const K *keys, int n, K key) {
    int at = 0;
    for (int left = n; left > 0;) {
        int half = left / 2;
        bool less = keys[at + half] < key;
        at = less ? at + half + 1 : at;
        left = less ? left - half - 1 : half;
    }
    return at;
}

template <typename K, int TILE>
__global__ void td_select_short_kernel(const __grid_constant__ td_cu_select s, int width) {
    __shared__ K keys[TILE];
    __shared__ unsigned int places[TILE];
    td_keyed<K> tile = {keys, places};
    int per = TILE / width, n = (int)s.of.lines.n;
    long long first = (long long)blockIdx.x * per, lines = s.of.lines.outer * s.of.lines.inner;
    td_load_tile<K, TILE>(s.of, first, width, tile);
    td_order_tile<TILE>(tile, width);
    for (int e = threadIdx.x; e < per && first + e < lines; e += TD_GROUP_BLOCK) {
        const K *own = keys + e * width;
        int numbers = s.of.keys.infinity ? td_count_less(own, n, (K)s.of.keys.all) : n;
        int k = (int)td_wanted_rank(s.selection, s.rank, n, n - numbers);
        td_put_sorted(s.of, first + e, 0, places[e * width + k], false, 0);
    }
}

/* The next power of two. */
static int td_width_of(int64_t n) {
    int width = 1;
    while (width < n)
        width *= 2;
    return width;
}

static unsigned int td_tiles_of(const td_cu_lines *l, int tile, int width) {
    int64_t per = tile / width;
    return (unsigned int)((l->outer * l->inner + per - 1) / per);
}

#define TD_LAUNCH_SHORT(kernel, lines, keys, stream, s)                                            \
    do {                                                                                           \
        int width = td_width_of((lines).n);                                                        \
        if (width <= TD_SORT_NARROW_TILE && (keys).size <= 4)                                      \
            return TD_LAUNCH_TOGETHER((kernel<unsigned int, TD_SORT_NARROW_TILE>),                 \
                                      td_tiles_of(&(lines), TD_SORT_NARROW_TILE, width),           \
                                      TD_GROUP_BLOCK, stream, s, width);                           \
        if (width <= TD_SORT_NARROW_TILE)                                                          \
            return TD_LAUNCH_TOGETHER((kernel<td_wide_key, TD_SORT_NARROW_TILE>),                  \
                                      td_tiles_of(&(lines), TD_SORT_NARROW_TILE, width),           \
                                      TD_GROUP_BLOCK, stream, s, width);                           \
        if ((keys).size <= 4)                                                                      \
            return TD_LAUNCH_TOGETHER((kernel<unsigned int, TD_CU_SORT_SHORT>),                    \
                                      td_tiles_of(&(lines), TD_CU_SORT_SHORT, width),              \
                                      TD_GROUP_BLOCK, stream, s, width);                           \
        return TD_LAUNCH_TOGETHER((kernel<td_wide_key, TD_CU_SORT_SHORT>),                         \
                                  td_tiles_of(&(lines), TD_CU_SORT_SHORT, width), TD_GROUP_BLOCK,  \
                                  stream, s, width);                                               \
    } while (0)

cudaError_t td_cu_sort_short(const td_cu_sort *s, cudaStream_t stream) {
    TD_LAUNCH_SHORT(td_sort_short_kernel, s->lines, s->keys, stream, *s);
}

cudaError_t td_cu_select_short(const td_cu_select *s, cudaStream_t stream) {
    TD_LAUNCH_SHORT(td_select_short_kernel, s->of.lines, s->of.keys, stream, *s);
}

/* ---- long lines ---- */

template <typename K>
__global__ void td_sort_load_kernel(const __grid_constant__ td_cu_sort s,
                                    const __grid_constant__ td_cu_part p, K *keys,
                                    uint32_t *ranks) {
    for (long long e = td_my_first(); e < p.lines * s.lines.n; e += td_all_threads()) {
        long long line = td_divide(e, s.lines.n), k = e - line * s.lines.n;
        long long at = td_line_at(s.lines, s.lines.n, p.line + line) + k * s.lines.inner;
        K key = td_load_key<K>(s.keys, s.x, at);
        keys[e] = p.line_shift ? key | (K)line << p.line_shift : key;
        ranks[e] = (uint32_t)e;
    }
}

cudaError_t td_cu_sort_load(const td_cu_sort *s, const td_cu_part *p, void *keys, uint32_t *ranks,
                            cudaStream_t stream) {
    unsigned int blocks = td_blocks_of(p->lines * s->lines.n);
    if (p->wide)
        return TD_LAUNCH((td_sort_load_kernel<td_wide_key>), blocks, TD_GROUP_BLOCK, stream, *s, *p,
                         (td_wide_key *)keys, ranks);
    return TD_LAUNCH((td_sort_load_kernel<uint32_t>), blocks, TD_GROUP_BLOCK, stream, *s, *p,
                     (uint32_t *)keys, ranks);
}

__global__ void td_sort_lines_kernel(long long n, long long count, const uint32_t *ranks,
                                     uint32_t *keys) {
    for (long long e = td_my_first(); e < count; e += td_all_threads())
        keys[e] = (uint32_t)td_divide(ranks[e], n);
}

cudaError_t td_cu_sort_lines(const td_cu_sort *s, const td_cu_part *p, const uint32_t *ranks,
                             uint32_t *keys, cudaStream_t stream) {
    long long n = s->lines.n, count = n * p->lines;
    return TD_LAUNCH(td_sort_lines_kernel, td_blocks_of(count), TD_GROUP_BLOCK, stream, n, count,
                     ranks, keys);
}

template <typename K>
__global__ void td_sort_store_kernel(const __grid_constant__ td_cu_sort s,
                                     const __grid_constant__ td_cu_part p, const K *keys,
                                     const uint32_t *ranks) {
    for (long long e = td_my_first(); e < p.lines * s.first; e += td_all_threads()) {
        long long line = td_divide(e, s.first), k = e - line * s.first;
        long long at = line * s.lines.n + k;
        K bits = 0;
        bool known = keys && td_bits_of<K>(s.keys, keys[at] & (K)s.keys.all, &bits);
        td_put_sorted(s, p.line + line, k, ranks[at] - line * s.lines.n, known, bits);
    }
}

cudaError_t td_cu_sort_store(const td_cu_sort *s, const td_cu_part *p, const void *keys,
                             const uint32_t *ranks, cudaStream_t stream) {
    unsigned int blocks = td_blocks_of(p->lines * s->first);
    if (p->wide)
        return TD_LAUNCH((td_sort_store_kernel<td_wide_key>), blocks, TD_GROUP_BLOCK, stream, *s,
                         *p, (const td_wide_key *)keys, ranks);
    return TD_LAUNCH((td_sort_store_kernel<uint32_t>), blocks, TD_GROUP_BLOCK, stream, *s, *p,
                     (const uint32_t *)keys, ranks);
}

__global__ void td_sort_store_first_kernel(const __grid_constant__ td_cu_sort s, long long lines,
                                           const uint32_t *places, const int64_t *order) {
    for (long long e = td_my_first(); e < lines * s.first; e += td_all_threads()) {
        long long line = td_divide(e, s.first), k = e - line * s.first;
        td_put_sorted(s, line, k, places[line * s.first + order[e]], false, 0);
    }
}

cudaError_t td_cu_sort_store_first(const td_cu_sort *s, const uint32_t *places,
                                   const int64_t *order, cudaStream_t stream) {
    long long lines = s->lines.outer * s->lines.inner;
    return TD_LAUNCH(td_sort_store_first_kernel, td_blocks_of(lines * s->first), TD_GROUP_BLOCK,
                     stream, *s, lines, places, order);
}

__global__ void td_widen_ranks_kernel(const uint32_t *ranks, long long n, int64_t *out) {
    for (long long e = td_my_first(); e < n; e += td_all_threads())
        out[e] = ranks[e];
}

cudaError_t td_cu_widen_ranks(const uint32_t *ranks, int64_t n, int64_t *out,
                              cudaStream_t stream) {
    return TD_LAUNCH(td_widen_ranks_kernel, td_blocks_of(n), TD_GROUP_BLOCK, stream, ranks,
                     (long long)n, out);
}

/* ---- random orders ---- */

__device__ static inline td_wide_key td_random_key(uint64_t seed, uint64_t offset, long long k) {
    uint32_t words[4];
    td_philox_words(seed, offset + (uint64_t)k / 2, words);
    return k % 2 ? (td_wide_key)words[2] << 32 | words[3] : (td_wide_key)words[0] << 32 | words[1];
}

__global__ void td_permute_short_kernel(int64_t *out, int n, int width, uint64_t seed,
                                        uint64_t offset) {
    __shared__ td_wide_key keys[TD_CU_SORT_SHORT];
    __shared__ unsigned int places[TD_CU_SORT_SHORT];
    td_keyed<td_wide_key> tile = {keys, places};
    for (int e = threadIdx.x; e < TD_CU_SORT_SHORT; e += TD_GROUP_BLOCK) {
        keys[e] = e < n ? td_random_key(seed, offset, e) : ~(td_wide_key)0;
        places[e] = e;
    }
    __syncthreads();
    td_order_tile<TD_CU_SORT_SHORT>(tile, width);
    for (int e = threadIdx.x; e < n; e += TD_GROUP_BLOCK)
        out[e] = places[e];
}

cudaError_t td_cu_permute_short(int64_t *out, int64_t n, uint64_t seed, uint64_t offset,
                                cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_permute_short_kernel, 1, TD_GROUP_BLOCK, stream, out, (int)n,
                              td_width_of(n), seed, offset);
}

__global__ void td_permutation_keys_kernel(uint64_t *keys, uint32_t *ranks, long long n,
                                           uint64_t seed, uint64_t offset) {
    for (long long e = td_my_first(); e < n; e += td_all_threads()) {
        keys[e] = td_random_key(seed, offset, e);
        ranks[e] = (uint32_t)e;
    }
}

cudaError_t td_cu_permutation_keys(uint64_t *keys, uint32_t *ranks, int64_t n, uint64_t seed,
                                   uint64_t offset, cudaStream_t stream) {
    return TD_LAUNCH(td_permutation_keys_kernel, td_blocks_of(n), TD_GROUP_BLOCK, stream, keys,
                     ranks, (long long)n, seed, offset);
}

/* ---- rows ---- */

/* Places of rows; those from n on go behind all others. */
struct td_rows_order {
    td_cu_rows r;
    unsigned int *places;
    __device__ bool after(int i, int j) const {
        long long a = places[i], b = places[j];
        if (a >= r.n || b >= r.n)
            return a > b;
        for (long long c = 0; c < r.columns; c++) {
            td_wide_key x = td_load_key<td_wide_key>(r.keys, r.x, a * r.columns + c);
            td_wide_key y = td_load_key<td_wide_key>(r.keys, r.x, b * r.columns + c);
            if (x != y)
                return x > y;
        }
        return a > b;
    }
    __device__ void swap(int i, int j) const {
        unsigned int place = places[i];
        places[i] = places[j];
        places[j] = place;
    }
};

__global__ void td_order_rows_kernel(const __grid_constant__ td_cu_rows r, int width) {
    __shared__ unsigned int places[TD_CU_SORT_SHORT];
    td_rows_order order = {r, places};
    for (int e = threadIdx.x; e < TD_CU_SORT_SHORT; e += TD_GROUP_BLOCK)
        places[e] = e;
    __syncthreads();
    td_order_tile<TD_CU_SORT_SHORT>(order, width);
    for (int e = threadIdx.x; e < r.n; e += TD_GROUP_BLOCK)
        r.index[e] = places[e];
}

cudaError_t td_cu_order_rows_short(const td_cu_rows *r, cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_order_rows_kernel, 1, TD_GROUP_BLOCK, stream, *r,
                              td_width_of(r->n));
}

__global__ void td_row_keys_kernel(const __grid_constant__ td_cu_rows r, long long column,
                                   int count, bool first, uint64_t *keys, uint32_t *ranks) {
    int bits = 8 * r.keys.size;
    for (long long e = td_my_first(); e < r.n; e += td_all_threads()) {
        uint32_t row = first ? (uint32_t)e : ranks[e];
        td_wide_key key = 0;
        for (int c = 0; c < count; c++) {
            td_wide_key one =
                td_load_key<td_wide_key>(r.keys, r.x, (long long)row * r.columns + column + c);
            key = bits < 64 ? key << bits | one : one;
        }
        keys[e] = key;
        if (first)
            ranks[e] = row;
    }
}

cudaError_t td_cu_row_keys(const td_cu_rows *r, int64_t column, int count, bool first,
                           uint64_t *keys, uint32_t *ranks, cudaStream_t stream) {
    return TD_LAUNCH(td_row_keys_kernel, td_blocks_of(r->n), TD_GROUP_BLOCK, stream, *r,
                     (long long)column, count, first, keys, ranks);
}
