/* table_rows.cu: tables whose rows are bytes or halves of bytes with a scale and an offset each:
 * packed, and added up by bags, in the order of a bag's places: the CPU's bits. */
#include "engine/cuda/quantized/table_rows_code.h"

#include "engine/cuda/quantized/rounding.cuh"
#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/runtime/numbers.cuh"

#include <math.h>
#include <string.h>

namespace {

/* ---- packing ---- */

/* An element of a row. Of equal ones (0 and -0) the first counts. */
struct td_extreme {
    float v;
    long long at;
};
__device__ td_extreme td_shuffle_xor(td_extreme mine, int by) {
    td_extreme r = {::td_shuffle_xor(mine.v, by), ::td_shuffle_xor(mine.at, by)};
    return r;
}
struct td_lowest {
    __device__ td_extreme join(td_extreme a, td_extreme b) const {
        return b.v < a.v || (b.v == a.v && b.at < a.at) ? b : a;
    }
};
struct td_highest {
    __device__ td_extreme join(td_extreme a, td_extreme b) const {
        return b.v > a.v || (b.v == a.v && b.at < a.at) ? b : a;
    }
};

__device__ float td_through_half(float v) {
    return __half2float(__float2half_rn(v));
}

/* Bytes of a number at a place that need not be aligned to it. */
template <typename T> __device__ void td_store_at(unsigned char *to, T v) {
    memcpy(to, &v, sizeof v);
}
template <typename T> __device__ T td_load_at(const unsigned char *from) {
    T v;
    memcpy(&v, from, sizeof v);
    return v;
}

__device__ void td_pack_bytes(const float *x, long long n, float low, float high, int lane,
                              unsigned char *to) {
    const float inverse = 255 / (high - low + 1e-8f);
    for (long long i = lane; i < n; i += 32)
        to[i] = (unsigned char)(long long)rintf((x[i] - low) * inverse);
    if (lane == 0) {
        td_store_at(to + n, (high - low) / 255);
        td_store_at(to + n + 4, low);
    }
}

__device__ void td_pack_halves(const float *x, long long n, float low, float high, int lane,
                               unsigned char *to) {
    low = td_through_half(low);
    float scale = high == low ? 1 : td_through_half((high - low) / 15);
    if (scale == 0)
        scale = 1;
    const float inverse = 1 / scale;
    for (long long i = lane; i < n / 2; i += 32)
        to[i] = (unsigned char)(td_round_between((x[2 * i] - low) * inverse, 0, 15) |
                                td_round_between((x[2 * i + 1] - low) * inverse, 0, 15) << 4);
    if (lane == 0) {
        td_store_at(to + n / 2, __float2half_rn(scale));
        td_store_at(to + n / 2 + 2, __float2half_rn(low));
    }
}

/* A warp for each row. */
__global__ void td_pack_rows_kernel(const __grid_constant__ td_cu_pack_rows p) {
    const long long row = (long long)blockIdx.x * TD_GROUP_WARPS + threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;
    const float *x = p.x + (row < p.rows ? row : 0) * p.n;
    td_extreme low = {x[0], 0}, high = low;
    for (long long i = lane; i < p.n; i += 32) {
        const td_extreme mine = {x[i], i};
        low = td_lowest().join(low, mine);
        high = td_highest().join(high, mine);
    }
    low = td_group_fold(td_lowest(), low, 32, (td_extreme *)nullptr);
    high = td_group_fold(td_highest(), high, 32, (td_extreme *)nullptr);
    if (row >= p.rows)
        return;
    if (p.bits == 8)
        td_pack_bytes(x, p.n, low.v, high.v, lane, p.out + row * p.bytes);
    else
        td_pack_halves(x, p.n, low.v, high.v, lane, p.out + row * p.bytes);
}

/* ---- bags ---- */

/* The places of a bag. */
__device__ long long td_begin_of(const td_cu_add_rows &a, long long bag) {
    if (!a.starts)
        return bag * a.length;
    return bag < a.nstarts ? a.starts[bag] : a.places;
}

/* A row's scale and offset, behind its elements. */
template <int BITS, bool WORDS>
__device__ void td_load_ends(const unsigned char *ends, float *scale, float *offset) {
    if (BITS == 8) {
        *scale = WORDS ? *(const float *)ends : td_load_at<float>(ends);
        *offset = WORDS ? ((const float *)ends)[1] : td_load_at<float>(ends + 4);
    } else {
        *scale = __half2float(WORDS ? *(const __half *)ends : td_load_at<__half>(ends));
        *offset = __half2float(WORDS ? ((const __half *)ends)[1] : td_load_at<__half>(ends + 2));
    }
}

/* The elements of a row that a thread adds up: those of four bytes, or of one. */
template <int BITS, bool WORDS>
__device__ void td_add_bag(const td_cu_add_rows &a, long long bag, long long piece) {
    const int bytes = WORDS ? 4 : 1, many = bytes * 8 / BITS;
    const long long begin = td_begin_of(a, bag), end = td_begin_of(a, bag + 1);
    if (begin < 0 || begin > end || end > a.places) {
        td_cu_found(a.bad_start, begin + 1, end + 1);
        return;
    }
    float sums[many] = {};
    long long count = 0;
    for (long long k = begin; k < end; k++) {
        const long long at = a.index[k];
        if (at == a.padding || at < 0 || at >= a.rows)
            continue;
        const unsigned char *row = a.table + at * a.bytes;
        const unsigned char *from = row + piece * bytes;
        const float w = a.weights ? a.weights[k] : 1.0f;
        const unsigned u = WORDS ? *(const unsigned *)from : *from;
        float scale, offset;
        td_load_ends<BITS, WORDS>(row + a.n * BITS / 8, &scale, &offset);
        scale *= w;
        offset *= w;
        for (int j = 0; j < many; j++)
            sums[j] += (float)(u >> j * BITS & ((1u << BITS) - 1)) * scale + offset;
        count++;
    }
    for (int j = 0; j < many; j++)
        a.out[bag * a.n + piece * many + j] = a.mean && count ? sums[j] / (float)count : sums[j];
}

/* All indices are looked at, those of no bag too. */
template <int BITS, bool WORDS>
__global__ void td_add_rows_kernel(const __grid_constant__ td_cu_add_rows a) {
    const long long pieces = a.n * BITS / (WORDS ? 32 : 8);
    for (long long k = td_my_first(); k < a.places; k += td_all_threads())
        if (a.index[k] < 0 || a.index[k] >= a.rows)
            td_cu_found(a.bad_index, a.index[k] + 1, a.rows);
    for (long long at = td_my_first(); at < a.bags * pieces; at += td_all_threads()) {
        long long piece;
        const long long bag = td_cu_divide(at, pieces, &piece);
        td_add_bag<BITS, WORDS>(a, bag, piece);
    }
}
} // namespace

cudaError_t td_cu_run_pack_rows(const td_cu_pack_rows *p, cudaStream_t stream) {
    const long long blocks = (p->rows + TD_GROUP_WARPS - 1) / TD_GROUP_WARPS;
    return TD_LAUNCH_TOGETHER(td_pack_rows_kernel, (unsigned)blocks, TD_GROUP_BLOCK, stream, *p);
}

cudaError_t td_cu_run_add_rows(const td_cu_add_rows *a, cudaStream_t stream) {
    const int64_t threads = a->bags * a->n * a->bits / (a->words ? 32 : 8);
    const unsigned blocks = td_blocks_of(threads > a->places ? threads : a->places);
    if (a->bits == 8 && a->words)
        return TD_LAUNCH((td_add_rows_kernel<8, true>), blocks, TD_GROUP_BLOCK, stream, *a);
    if (a->bits == 8)
        return TD_LAUNCH((td_add_rows_kernel<8, false>), blocks, TD_GROUP_BLOCK, stream, *a);
    if (a->words)
        return TD_LAUNCH((td_add_rows_kernel<4, true>), blocks, TD_GROUP_BLOCK, stream, *a);
    return TD_LAUNCH((td_add_rows_kernel<4, false>), blocks, TD_GROUP_BLOCK, stream, *a);
}
