/* select.cu: one element of the order of each long line, or all that are not behind it: its key is
 * found digit by digit from the highest, by counting those that have what is known of it; then
 * places, equal ones being in the order in which they stand. Counts are sums of integers, which any
 * order of adding gives. Of lines that are sorted the longest run. */
#include "engine/cuda/order/keys.cuh"

#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/order/order.cuh"

typedef unsigned long long td_wide_key;

/* Where a block's piece of a line lies. */
struct td_piece {
    long long line, begin, end, base;
};

__device__ static inline td_piece td_my_piece(const td_cu_select &s) {
    const td_cu_lines &l = s.of.lines;
    td_piece p;
    p.line = td_divide(blockIdx.x, s.pieces);
    p.begin = (blockIdx.x - p.line * s.pieces) * s.piece_len;
    p.end = p.begin + s.piece_len < l.n ? p.begin + s.piece_len : l.n;
    long long outer = l.inner == 1 ? p.line : td_divide(p.line, l.inner);
    p.base = outer * l.n * l.inner + p.line - outer * l.inner;
    return p;
}

__device__ static inline td_wide_key td_key_at(const td_cu_select &s, const td_piece &p,
                                               long long k) {
    return td_load_key<td_wide_key>(s.of.keys, s.of.x, p.base + k * s.of.lines.inner);
}

/* ---- keys ---- */

__global__ void td_select_clear_kernel(const __grid_constant__ td_cu_select s) {
    if (threadIdx.x == 0) {
        td_cu_selected none = {0, 0, (uint32_t)s.rank};
        s.found[blockIdx.x] = none;
    }
    s.counts[(long long)blockIdx.x * TD_CU_SELECT_DIGITS + threadIdx.x] = 0;
}

/* How many of each line are NaN, into its first count. */
__global__ void td_select_nans_kernel(const __grid_constant__ td_cu_select s) {
    td_piece p = td_my_piece(s);
    unsigned int nans = 0;
    for (long long k = p.begin + threadIdx.x; k < p.end; k += TD_GROUP_BLOCK)
        nans += td_key_at(s, p, k) == s.of.keys.all;
    if (nans)
        atomicAdd(&s.counts[p.line * TD_CU_SELECT_DIGITS], nans);
}

__global__ void td_select_median_kernel(const __grid_constant__ td_cu_select s, long long lines) {
    long long line = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    if (line >= lines)
        return;
    uint32_t *nans = &s.counts[line * TD_CU_SELECT_DIGITS];
    s.found[line].rank = (uint32_t)td_wanted_rank(s.selection, s.rank, s.of.lines.n, *nans);
    *nans = 0;
}

/* Lanes with one digit are counted by one of them: highest digits are few. */
__global__ void td_select_count_kernel(const __grid_constant__ td_cu_select s, int shift) {
    __shared__ unsigned int digits[TD_CU_SELECT_DIGITS];
    unsigned int lane = threadIdx.x % 32;
    td_piece p = td_my_piece(s);
    td_cu_selected known = s.found[p.line];
    digits[threadIdx.x] = 0;
    __syncthreads();
    for (long long begin = p.begin; begin < p.end; begin += TD_GROUP_BLOCK) {
        long long k = begin + threadIdx.x;
        td_wide_key key = k < p.end ? td_key_at(s, p, k) : 0;
        bool counts = k < p.end && (key & known.mask) == known.key;
        unsigned int digit = (unsigned int)(key >> shift) & (TD_CU_SELECT_DIGITS - 1);
        unsigned int alike =
            __match_any_sync(TD_ALL_LANES, counts ? digit : (unsigned int)TD_CU_SELECT_DIGITS);
        if (counts && (alike & ((1u << lane) - 1)) == 0)
            atomicAdd(&digits[digit], (unsigned int)__popc(alike));
    }
    __syncthreads();
    if (digits[threadIdx.x])
        atomicAdd(&s.counts[p.line * TD_CU_SELECT_DIGITS + threadIdx.x], digits[threadIdx.x]);
}

/* Each line's next digit by one block; counts are cleared for the one after. */
__global__ void td_select_digit_kernel(const __grid_constant__ td_cu_select s, int shift) {
    __shared__ unsigned int shared[TD_ORDER_WARPS];
    uint32_t *count = &s.counts[(long long)blockIdx.x * TD_CU_SELECT_DIGITS + threadIdx.x];
    td_cu_selected known = s.found[blockIdx.x];
    unsigned int mine = *count, all, before = td_sum_before(mine, shared, &all);
    if (known.rank >= before && known.rank - before < mine) {
        known.key |= (uint64_t)threadIdx.x << shift;
        known.mask |= (uint64_t)(TD_CU_SELECT_DIGITS - 1) << shift;
        known.rank -= before;
        s.found[blockIdx.x] = known;
    }
    *count = 0;
}

/* ---- places ---- */

/* How many of each piece have the line's key. */
__global__ void td_select_equal_kernel(const __grid_constant__ td_cu_select s) {
    __shared__ unsigned int shared[TD_ORDER_WARPS];
    td_piece p = td_my_piece(s);
    unsigned int equal = 0, all;
    td_wide_key wanted = s.found[p.line].key;
    for (long long k = p.begin + threadIdx.x; k < p.end; k += TD_GROUP_BLOCK)
        equal += td_key_at(s, p, k) == wanted;
    td_sum_before(equal, shared, &all);
    if (threadIdx.x == 0)
        s.counts[blockIdx.x] = all;
}

/* The piece of which one has the rank that is left writes it down. */
__global__ void td_select_place_kernel(const __grid_constant__ td_cu_select s) {
    __shared__ unsigned int shared[TD_ORDER_WARPS];
    td_piece p = td_my_piece(s);
    td_cu_selected known = s.found[p.line];
    unsigned int before = 0, all;
    for (long long k = p.line * s.pieces + threadIdx.x; k < blockIdx.x; k += TD_GROUP_BLOCK)
        before += s.counts[k];
    td_sum_before(before, shared, &all);
    before = all;
    if (known.rank < before || known.rank - before >= s.counts[blockIdx.x])
        return;
    for (long long begin = p.begin; begin < p.end; begin += TD_GROUP_BLOCK) {
        long long k = begin + threadIdx.x;
        bool equal = k < p.end && td_key_at(s, p, k) == known.key;
        unsigned int at = before + td_sum_before(equal, shared, &all);
        if (equal && at == known.rank) {
            td_store_bits(s.of.keys.size, s.of.values, p.line,
                          td_load_bits(s.of.keys.size, s.of.x, p.base + k * s.of.lines.inner));
            if (s.of.index)
                s.of.index[p.line] = k;
        }
        before += all;
    }
}

/* ---- the first of the order ---- */

/* How many of each piece go before the line's key, and how many have it. */
__global__ void td_select_before_kernel(const __grid_constant__ td_cu_select s) {
    __shared__ unsigned int shared[TD_ORDER_WARPS];
    td_piece p = td_my_piece(s);
    unsigned int less = 0, equal = 0, all_less, all_equal;
    td_wide_key wanted = s.found[p.line].key;
    for (long long k = p.begin + threadIdx.x; k < p.end; k += TD_GROUP_BLOCK) {
        td_wide_key key = td_key_at(s, p, k);
        less += key < wanted;
        equal += key == wanted;
    }
    td_sum_before(less, shared, &all_less);
    td_sum_before(equal, shared, &all_equal);
    if (threadIdx.x == 0) {
        s.counts[2 * (long long)blockIdx.x] = all_less;
        s.counts[2 * (long long)blockIdx.x + 1] = all_equal;
    }
}

/* Those that go before the key come first, then as many as are wanted of those that have it; both
 * as they stand. */
__global__ void td_select_gather_kernel(const __grid_constant__ td_cu_select s, void *elements,
                                        uint32_t *places) {
    __shared__ unsigned int shared[TD_ORDER_WARPS];
    td_piece p = td_my_piece(s);
    td_cu_selected known = s.found[p.line];
    long long first = s.rank + 1;
    unsigned int mine[2] = {0, 0}, before[2], all;
    for (long long k = p.line * s.pieces + threadIdx.x; k < blockIdx.x; k += TD_GROUP_BLOCK)
        for (int which = 0; which < 2; which++)
            mine[which] += s.counts[2 * k + which];
    for (int which = 0; which < 2; which++)
        td_sum_before(mine[which], shared, &before[which]);
    for (long long begin = p.begin; begin < p.end; begin += TD_GROUP_BLOCK) {
        long long k = begin + threadIdx.x, to = -1;
        td_wide_key key = k < p.end ? td_key_at(s, p, k) : ~0ull;
        bool less = k < p.end && key < known.key, equal = k < p.end && key == known.key;
        unsigned int at = td_sum_before(less | equal << 16, shared, &all);
        unsigned int among = before[1] + (at >> 16);
        if (less)
            to = before[0] + (at & 0xFFFF);
        else if (equal && among <= known.rank)
            to = s.rank - known.rank + among;
        if (to >= 0) {
            td_store_bits(s.of.keys.size, elements, p.line * first + to,
                          td_load_bits(s.of.keys.size, s.of.x, p.base + k * s.of.lines.inner));
            places[p.line * first + to] = (uint32_t)k;
        }
        before[0] += all & 0xFFFF;
        before[1] += all >> 16;
    }
}

/* ---- modes ---- */

/* Where the key at k of a sorted line stands last: from there on by steps that double, then by
 * halves. NaN stand alone. */
__device__ static long long td_end_of_run(const td_cu_sort &s, long long base, long long k,
                                          td_wide_key key) {
    const td_cu_lines &l = s.lines;
    long long step = 1, low = k, high;
    if (s.keys.infinity && key == s.keys.all)
        return k;
    while (low + step < l.n &&
           td_load_key<td_wide_key>(s.keys, s.values, base + (low + step) * l.inner) == key) {
        low += step;
        step *= 2;
    }
    for (high = low + step < l.n ? low + step : l.n; high - low > 1;) {
        long long middle = low + (high - low) / 2;
        if (td_load_key<td_wide_key>(s.keys, s.values, base + middle * l.inner) == key)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The longest run of a sorted line by one block, the first of several: its length above how far
 * from the end it begins. */
__global__ void td_take_modes_kernel(const __grid_constant__ td_cu_sort s, void *values,
                                     int64_t *index) {
    __shared__ unsigned long long longest[TD_GROUP_BLOCK];
    const td_cu_lines &l = s.lines;
    long long line = blockIdx.x, outer = l.inner == 1 ? line : td_divide(line, l.inner);
    long long base = outer * l.n * l.inner + line - outer * l.inner;
    unsigned long long best = 0;
    for (long long k = threadIdx.x; k < l.n; k += TD_GROUP_BLOCK) {
        td_wide_key key = td_load_key<td_wide_key>(s.keys, s.values, base + k * l.inner);
        if (k && td_load_key<td_wide_key>(s.keys, s.values, base + (k - 1) * l.inner) == key)
            continue;
        unsigned long long length = (unsigned long long)(td_end_of_run(s, base, k, key) - k + 1);
        unsigned long long run = length << 32 | (unsigned int)(l.n - k);
        best = run > best ? run : best;
    }
    longest[threadIdx.x] = best;
    for (unsigned int half = TD_GROUP_BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half && longest[threadIdx.x + half] > longest[threadIdx.x])
            longest[threadIdx.x] = longest[threadIdx.x + half];
    }
    if (threadIdx.x == 0) {
        long long length = (long long)(longest[0] >> 32);
        long long at = base + (l.n - (long long)(longest[0] & 0xffffffffu) + length - 1) * l.inner;
        td_store_bits(s.keys.size, values, line, td_load_bits(s.keys.size, s.values, at));
        if (index)
            index[line] = s.index[at];
    }
}

/* ---- launches ---- */

cudaError_t td_cu_take_modes(const td_cu_sort *s, void *values, int64_t *index,
                             cudaStream_t stream) {
    return TD_LAUNCH_TOGETHER(td_take_modes_kernel,
                              (unsigned int)(s->lines.outer * s->lines.inner), TD_GROUP_BLOCK,
                              stream, *s, values, index);
}

static cudaError_t td_find_medians(const td_cu_select *s, unsigned int lines, unsigned int blocks,
                                   cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    if (s->selection == TD_CU_SELECT_RANK)
        return error;
    if (s->of.keys.infinity)
        error = TD_LAUNCH(td_select_nans_kernel, blocks, TD_GROUP_BLOCK, stream, *s);
    if (error == cudaSuccess)
        error = TD_LAUNCH(td_select_median_kernel, (lines + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK,
                          TD_GROUP_BLOCK, stream, *s, (long long)lines);
    return error;
}

static unsigned int td_lines_of(const td_cu_select *s) {
    return (unsigned int)(s->of.lines.outer * s->of.lines.inner);
}

static cudaError_t td_find_keys(const td_cu_select *s, cudaStream_t stream) {
    static_assert((int)TD_CU_SELECT_DIGITS == (int)TD_GROUP_BLOCK, "a thread for each digit");
    unsigned int lines = td_lines_of(s), blocks = lines * (unsigned int)s->pieces;
    cudaError_t error =
        TD_LAUNCH(td_select_clear_kernel, lines, TD_CU_SELECT_DIGITS, stream, *s);
    if (error == cudaSuccess)
        error = td_find_medians(s, lines, blocks, stream);
    for (int shift = 8 * s->of.keys.size - 8; shift >= 0 && error == cudaSuccess; shift -= 8) {
        error = TD_LAUNCH_TOGETHER(td_select_count_kernel, blocks, TD_GROUP_BLOCK, stream, *s,
                                   shift);
        if (error == cudaSuccess)
            error = TD_LAUNCH_TOGETHER(td_select_digit_kernel, lines, TD_GROUP_BLOCK, stream, *s,
                                       shift);
    }
    return error;
}

cudaError_t td_cu_select_long(const td_cu_select *s, cudaStream_t stream) {
    unsigned int blocks = td_lines_of(s) * (unsigned int)s->pieces;
    cudaError_t error = td_find_keys(s, stream);
    if (error == cudaSuccess)
        error = TD_LAUNCH_TOGETHER(td_select_equal_kernel, blocks, TD_GROUP_BLOCK, stream, *s);
    return error != cudaSuccess ? error
                                : TD_LAUNCH_TOGETHER(td_select_place_kernel, blocks,
                                                     TD_GROUP_BLOCK, stream, *s);
}

cudaError_t td_cu_select_first(const td_cu_select *s, void *elements, uint32_t *places,
                               cudaStream_t stream) {
    unsigned int blocks = td_lines_of(s) * (unsigned int)s->pieces;
    cudaError_t error = td_find_keys(s, stream);
    if (error == cudaSuccess)
        error = TD_LAUNCH_TOGETHER(td_select_before_kernel, blocks, TD_GROUP_BLOCK, stream, *s);
    return error != cudaSuccess
               ? error
               : TD_LAUNCH_TOGETHER(td_select_gather_kernel, blocks, TD_GROUP_BLOCK, stream, *s,
                                    elements, places);
}
