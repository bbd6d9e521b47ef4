/* scan.cu: running sums, products, extremes with their places, log-sum-exps and linear recurrences.
 *
 * A block takes a line, or a piece of one, tile by tile; pieces are gathered up first, and begin
 * with what those before them come to. Many lines that lie side by side, and recurrences, whose
 * factors' products might leave what a double holds, have a thread each. */
#include "engine/cuda/reduce/scan_code.h"

#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

enum { TD_SCAN_EACH = 4, TD_SCAN_TILE = TD_GROUP_BLOCK * TD_SCAN_EACH };

/* ---- elements ---- */

__device__ static inline void td_load_number(int dtype, const void *p, long long at, double *out) {
    td_slot s = td_load_slot(dtype, (const char *)p + at * td_element_size(dtype));
    int kind = td_slot_kind_of(dtype);
    *out = kind == TD_SLOT_DOUBLE ? s.d : kind == TD_SLOT_FLOAT ? (double)s.f : (double)s.i;
}
__device__ static inline void td_load_number(int dtype, const void *p, long long at,
                                             long long *out) {
    td_slot s = td_load_slot(dtype, (const char *)p + at * td_element_size(dtype));
    *out = td_convert_slot(TD_I64, dtype, s).i;
}

template <typename N>
__device__ static inline void td_store_number(const td_cu_scan &s, long long at, N v) {
    td_store_slot(s.to, (char *)s.out + at * td_element_size(s.to), td_slot_of(s.to, v));
}

/* ---- what is gathered up: join's second argument stands behind its first ---- */

template <typename Number, int KIND> struct td_gather_numbers {
    typedef Number N;
    typedef Number S;
    __device__ static S nothing() {
        return KIND == TD_CU_SCAN_PROD ? (S)1 : KIND == TD_CU_SCAN_LSE ? (S)(-1 / 0.0f) : (S)0;
    }
    __device__ static S one(N v, long long) { return v; }
    __device__ static double log_add_exp(double a, double b) {
        if (a != a || b != b)
            return a + b;
        double low = a < b ? a : b, high = a < b ? b : a;
        return low == high && isinf(low) ? low : log1p(exp(low - high)) + high;
    }
    __device__ static S join(S a, S b) {
        if (KIND == TD_CU_SCAN_PROD)
            return a * b;
        if (KIND == TD_CU_SCAN_LSE)
            return (S)log_add_exp((double)a, (double)b);
        return a + b;
    }
    __device__ static void give(const td_cu_scan &s, long long at, S v) {
        td_store_number(s, at, v);
    }
};

template <typename N> struct td_extreme {
    N v;
    long long k; /* -1: none yet */
};

template <typename Number, int KIND> struct td_gather_extremes {
    typedef Number N;
    typedef td_extreme<Number> S;
    __device__ static S nothing() { return S{0, -1}; }
    __device__ static S one(N v, long long k) { return S{v, k}; }
    __device__ static S join(S a, S b) {
        if (a.k < 0 || b.k < 0)
            return a.k < 0 ? b : a;
        if (b.v != b.v)
            return b;
        return a.v == a.v && (KIND == TD_CU_SCAN_MAX ? b.v >= a.v : b.v <= a.v) ? b : a;
    }
    __device__ static void give(const td_cu_scan &s, long long at, S v) {
        td_store_number(s, at, v.v);
        s.index[at] = v.k;
    }
};

template <typename S> __device__ static inline S td_shuffle_up(S mine, int by) {
    return __shfl_up_sync(0xFFFFFFFFu, mine, by);
}
template <typename N>
__device__ static inline td_extreme<N> td_shuffle_up(td_extreme<N> mine, int by) {
    td_extreme<N> r = {td_shuffle_up(mine.v, by), td_shuffle_up(mine.k, by)};
    return r;
}

/* ---- blocks ---- */

/* What the threads before this one have, and in *all what the whole block has. */
template <typename G>
__device__ static typename G::S td_before(typename G::S mine, typename G::S *shared,
                                          typename G::S *all) {
    typedef typename G::S S;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    S upto = mine;
    for (int by = 1; by < 32; by *= 2) {
        S other = td_shuffle_up(upto, by);
        if (lane >= by)
            upto = G::join(other, upto);
    }
    S before = td_shuffle_up(upto, 1);
    if (lane == 0)
        before = G::nothing();
    __syncthreads(); /* what the last tile left there has been read */
    if (lane == 31)
        shared[warp] = upto;
    __syncthreads();
    S warps = G::nothing();
    for (int k = 0; k < TD_GROUP_WARPS; k++) {
        if (k == warp)
            before = G::join(warps, before);
        warps = G::join(warps, shared[k]);
    }
    *all = warps;
    return before;
}

/* Where element 0 of a line lies. */
__device__ static inline long long td_line_base(const td_cu_lines &l, long long line) {
    long long outer = l.inner == 1 ? line : td_divide(line, l.inner);
    return outer * l.n * l.inner + line - outer * l.inner;
}

/* `totals`: of pieces, which the first pass writes and the second begins with; or NULL. */
template <typename G>
__global__ void td_scan_tiles(const __grid_constant__ td_cu_scan s, typename G::S *totals,
                              bool first_pass) {
    typedef typename G::S S;
    __shared__ S shared[TD_GROUP_WARPS];
    long long line = td_divide(blockIdx.x, s.pieces), piece = blockIdx.x - line * s.pieces;
    long long begin = piece * s.piece_len, end = begin + s.piece_len;
    end = end < s.lines.n ? end : s.lines.n;
    long long base = td_line_base(s.lines, line);
    S carry = totals && !first_pass ? totals[blockIdx.x] : G::nothing();
    for (long long tile = begin; tile < end; tile += TD_SCAN_TILE) {
        long long at = tile + (long long)threadIdx.x * TD_SCAN_EACH;
        S own[TD_SCAN_EACH], sum = G::nothing(), all;
        for (int e = 0; e < TD_SCAN_EACH; e++) {
            if (at + e < end) {
                typename G::N v;
                td_load_number(s.from, s.x, base + (at + e) * s.lines.inner, &v);
                sum = G::join(sum, G::one(v, at + e));
            }
            own[e] = sum;
        }
        S before = td_before<G>(sum, shared, &all);
        before = G::join(carry, before);
        for (int e = 0; !first_pass && e < TD_SCAN_EACH && at + e < end; e++)
            G::give(s, base + (at + e) * s.lines.inner, G::join(before, own[e]));
        carry = G::join(carry, all);
    }
    if (first_pass && threadIdx.x == 0)
        totals[blockIdx.x] = carry;
}

/* For each piece what comes before it. */
template <typename G>
__global__ void td_scan_totals(long long lines, long long pieces, typename G::S *totals) {
    long long line = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    typename G::S sum = G::nothing();
    for (long long k = 0; line < lines && k < pieces; k++) {
        typename G::S own = totals[line * pieces + k];
        totals[line * pieces + k] = sum;
        sum = G::join(sum, own);
    }
}

/* ---- a thread for each line ---- */

template <typename G> __global__ void td_scan_alone(const __grid_constant__ td_cu_scan s) {
    long long line = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    if (line >= s.lines.outer * s.lines.inner)
        return;
    long long at = td_line_base(s.lines, line);
    typename G::S sum = G::nothing();
    for (long long k = 0; k < s.lines.n; k++, at += s.lines.inner) {
        typename G::N v;
        td_load_number(s.from, s.x, at, &v);
        sum = G::join(sum, G::one(v, k));
        G::give(s, at, sum);
    }
}

__global__ void td_scan_linear(const __grid_constant__ td_cu_scan s) {
    long long line = (long long)blockIdx.x * TD_GROUP_BLOCK + threadIdx.x;
    if (line >= s.lines.outer * s.lines.inner)
        return;
    long long at = td_line_base(s.lines, line);
    double sum = 0, factor = 0;
    for (long long k = 0; k < s.lines.n; k++, at += s.lines.inner) {
        double v;
        td_load_number(s.from, s.x, at, &v);
        sum = k == 0 ? v : v + factor * sum;
        td_load_number(s.to, s.a, at, &factor);
        td_store_number(s, at, sum);
    }
}

/* ---- launches ---- */

static unsigned int td_line_blocks(const td_cu_scan *s) {
    return (unsigned int)((s->lines.outer * s->lines.inner + TD_GROUP_BLOCK - 1) / TD_GROUP_BLOCK);
}

template <typename G>
static cudaError_t td_launch_scan(const td_cu_scan *s, void *scratch, cudaStream_t stream) {
    static_assert(sizeof(typename G::S) <= TD_CU_SCAN_STATE, "a piece's result is too large");
    if (s->alone)
        return TD_LAUNCH((td_scan_alone<G>), td_line_blocks(s), TD_GROUP_BLOCK, stream, *s);
    typename G::S *totals = s->pieces > 1 ? (typename G::S *)scratch : NULL;
    long long lines = s->lines.outer * s->lines.inner;
    unsigned int blocks = (unsigned int)(lines * s->pieces);
    cudaError_t error = cudaSuccess;
    if (totals) {
        error = TD_LAUNCH_TOGETHER((td_scan_tiles<G>), blocks, TD_GROUP_BLOCK, stream, *s, totals,
                                   true);
        if (error == cudaSuccess)
            error = TD_LAUNCH((td_scan_totals<G>), td_line_blocks(s), TD_GROUP_BLOCK, stream, lines,
                              (long long)s->pieces, totals);
    }
    return error != cudaSuccess ? error
                                : TD_LAUNCH_TOGETHER((td_scan_tiles<G>), blocks, TD_GROUP_BLOCK,
                                                     stream, *s, totals, false);
}

template <typename N>
static cudaError_t td_choose_scan(const td_cu_scan *s, void *totals, cudaStream_t stream) {
    switch (s->kind) {
    case TD_CU_SCAN_SUM:
        return td_launch_scan<td_gather_numbers<N, TD_CU_SCAN_SUM>>(s, totals, stream);
    case TD_CU_SCAN_PROD:
        return td_launch_scan<td_gather_numbers<N, TD_CU_SCAN_PROD>>(s, totals, stream);
    case TD_CU_SCAN_MAX:
        return td_launch_scan<td_gather_extremes<N, TD_CU_SCAN_MAX>>(s, totals, stream);
    case TD_CU_SCAN_MIN:
        return td_launch_scan<td_gather_extremes<N, TD_CU_SCAN_MIN>>(s, totals, stream);
    }
    return cudaErrorInvalidValue;
}

cudaError_t td_cu_run_scan(const td_cu_scan *s, void *totals, cudaStream_t stream) {
    if (s->kind == TD_CU_SCAN_LINEAR)
        return TD_LAUNCH(td_scan_linear, td_line_blocks(s), TD_GROUP_BLOCK, stream, *s);
    if (s->kind == TD_CU_SCAN_LSE)
        return td_launch_scan<td_gather_numbers<double, TD_CU_SCAN_LSE>>(s, totals, stream);
    return s->integers ? td_choose_scan<long long>(s, totals, stream)
                       : td_choose_scan<double>(s, totals, stream);
}
