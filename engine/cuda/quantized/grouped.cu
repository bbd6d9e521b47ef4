/* grouped.cu: rows of floats rounded in blocks, and their products with weights of a few bits in
 * groups: the CPU's bits, since sums of integers are exact and floats are added in its order. */
#include "engine/cuda/quantized/grouped_code.h"

#include "engine/cuda/runtime/dims.h"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

#include <float.h>
#include <math.h>

namespace {

enum {
    TD_GROUPED_COLUMNS = 16,                                 /* of a panel */
    TD_GROUPED_SLICES = TD_GROUP_BLOCK / TD_GROUPED_COLUMNS, /* steps that are multiplied at once */
    TD_GROUPED_ROWS = 4,                                     /* of x that a block multiplies */
    TD_GROUPED_LINE = 64                                     /* bytes of a quad of all columns */
};

/* ---- blocks ---- */

struct td_cu_larger {
    __device__ unsigned join(unsigned a, unsigned b) const { return a > b ? a : b; }
};

/* A warp for each block, a thread for each of its elements. The bits of magnitudes are compared:
 * those of a NaN are above infinity's. */
__global__ void td_grouped_round_kernel(const __grid_constant__ td_cu_grouped g) {
    const long long at = (long long)blockIdx.x * TD_GROUP_WARPS + threadIdx.x / 32;
    const int lane = (int)threadIdx.x % 32;
    long long block;
    const long long row = td_cu_divide(at, g.blocks, &block);
    const long long k = block * TD_CU_GROUPED_BLOCK + lane;
    const float x = row < g.rows && k < g.depth ? g.x[row * g.depth + k] : 0.0f;
    const unsigned most =
        td_group_fold(td_cu_larger(), __float_as_uint(x) & 0x7fffffffu, 32, (unsigned *)nullptr);
    if (row >= g.rows)
        return;
    float scale = __uint_as_float(most) / 127;
    int q = 0;
    if (scale >= FLT_MIN && scale <= FLT_MAX) {
        const float inverse = 1 / scale;
        q = (int)rintf(x * inverse);
    } else {
        scale = scale < FLT_MIN ? 0.0f : nanf("");
    }
    g.ints[at * TD_CU_GROUPED_BLOCK + lane] = (signed char)q;
    if (lane == 0)
        g.x_scales[at] = scale;
}

/* ---- products ---- */

/* c + the products of four signed bytes each. */
__device__ int td_add_products(unsigned a, unsigned b, int c) {
#ifdef __CUDA_ARCH__
    return __dp4a((int)a, (int)b, c);
#else
    for (int j = 0; j < 4; j++)
        c += (signed char)(a >> 8 * j) * (signed char)(b >> 8 * j);
    return c;
#endif
}

/* Four weights of a column, quad q of the step at w, as bytes; of 8 bits, less 128. */
template <int BITS> __device__ unsigned td_grouped_quad(const unsigned char *w, int q) {
    const unsigned low = *(const unsigned *)(w + (BITS == 8 ? q : q / 2) * TD_GROUPED_LINE);
    if (BITS == 8)
        return low ^ 0x80808080u;
    const unsigned four = low >> q % 2 * 4 & 0x0f0f0f0fu;
    if (BITS == 4)
        return four;
    const unsigned high = *(const unsigned *)(w + 2 * TD_GROUPED_LINE);
    return four | (high >> 2 * q & 0x03030303u) << 4;
}

/* Of rows and slices: what a step gives a column, and what meets the mins. */
struct td_cu_grouped_terms {
    float steps[TD_GROUPED_ROWS][TD_GROUPED_SLICES][TD_GROUPED_COLUMNS];
    float totals[TD_GROUPED_ROWS][TD_GROUPED_SLICES];
};

/* Step `at` of a column. */
template <int BITS>
__device__ void td_grouped_step(const td_cu_grouped &g, const unsigned char *panel, long long at,
                                long long first, int rows, int slice, int column,
                                td_cu_grouped_terms &terms) {
    enum { STEP = BITS == 6 ? 16 : 32, QUADS = STEP / 4 };
    const unsigned char *w = panel + at * 2 * STEP * BITS + column * 4;
    const int off = (g.mins ? 0 : 1 << (BITS - 1)) - (BITS == 8 ? 128 : 0);
    int sums[TD_GROUPED_ROWS] = {}, x_sums[TD_GROUPED_ROWS] = {};
    TD_UNROLL
    for (int q = 0; q < QUADS; q++) {
        const unsigned weights = td_grouped_quad<BITS>(w, q);
        TD_UNROLL
        for (int r = 0; r < TD_GROUPED_ROWS; r++) {
            if (r >= rows)
                continue;
            const unsigned x =
                *(const unsigned *)(g.ints + (first + r) * g.blocks * TD_CU_GROUPED_BLOCK +
                                    at * STEP + q * 4);
            sums[r] = td_add_products(weights, x, sums[r]);
            x_sums[r] = td_add_products(0x01010101u, x, x_sums[r]);
        }
    }
    TD_UNROLL
    for (int r = 0; r < TD_GROUPED_ROWS; r++) {
        if (r >= rows)
            continue;
        const float scale = g.x_scales[(first + r) * g.blocks + at * STEP / TD_CU_GROUPED_BLOCK];
        terms.steps[r][slice][column] = scale * (float)(sums[r] - off * x_sums[r]);
        if (column == 0)
            terms.totals[r][slice] = scale * (float)x_sums[r];
    }
}

/* A block has a panel and some rows of x. Each slice of its threads multiplies a step; then the
 * first slices, one for each row, add up what the steps gave in their order. */
template <int BITS> __global__ void td_grouped_kernel(const __grid_constant__ td_cu_grouped g) {
    enum { STEP = BITS == 6 ? 16 : 32 };
    __shared__ td_cu_grouped_terms terms;
    const int slice = (int)threadIdx.x / TD_GROUPED_COLUMNS;
    const int own = (int)threadIdx.x % TD_GROUPED_COLUMNS;
    const long long panels = (g.columns + TD_GROUPED_COLUMNS - 1) / TD_GROUPED_COLUMNS;
    long long panel;
    const long long first = td_cu_divide(blockIdx.x, panels, &panel) * TD_GROUPED_ROWS;
    const long long left = g.rows - first;
    const int rows = left < TD_GROUPED_ROWS ? (int)left : (int)TD_GROUPED_ROWS;
    const long long per_group = g.group / STEP, steps = g.groups * per_group;
    const unsigned char *weight = g.weight + panel * steps * 2 * STEP * BITS;
    const long long numbers = panel * g.groups * TD_GROUPED_COLUMNS + own;
    float out = 0, part = 0, total = 0;
    long long group = 0, done = 0; /* done: steps of the group */
    for (long long base = 0; base < steps; base += TD_GROUPED_SLICES) {
        if (base + slice < steps)
            td_grouped_step<BITS>(g, weight, base + slice, first, rows, slice, own, terms);
        __syncthreads();
        for (int j = 0; slice < rows && j < TD_GROUPED_SLICES && base + j < steps; j++) {
            part += terms.steps[slice][j][own];
            total += terms.totals[slice][j];
            if (++done < per_group)
                continue;
            out += g.scales[numbers + group * TD_GROUPED_COLUMNS] * part;
            if (g.mins)
                out -= g.mins[numbers + group * TD_GROUPED_COLUMNS] * total;
            part = total = 0;
            done = 0;
            group++;
        }
        __syncthreads();
    }
    const long long column = panel * TD_GROUPED_COLUMNS + own;
    if (slice < rows && column < g.columns)
        g.out[(first + slice) * g.columns + column] = g.bias ? out + g.bias[column] : out;
}
} // namespace

cudaError_t td_cu_grouped_round(const td_cu_grouped *g, cudaStream_t stream) {
    const long long blocks = (g->rows * g->blocks + TD_GROUP_WARPS - 1) / TD_GROUP_WARPS;
    return TD_LAUNCH_TOGETHER(td_grouped_round_kernel, (unsigned)blocks, TD_GROUP_BLOCK, stream,
                              *g);
}

cudaError_t td_cu_grouped_multiply(const td_cu_grouped *g, cudaStream_t stream) {
    const long long panels = (g->columns + TD_GROUPED_COLUMNS - 1) / TD_GROUPED_COLUMNS;
    const long long down = (g->rows + TD_GROUPED_ROWS - 1) / TD_GROUPED_ROWS;
    const unsigned blocks = (unsigned)(panels * down);
    if (g->bits == 8)
        return TD_LAUNCH_TOGETHER((td_grouped_kernel<8>), blocks, TD_GROUP_BLOCK, stream, *g);
    if (g->bits == 6)
        return TD_LAUNCH_TOGETHER((td_grouped_kernel<6>), blocks, TD_GROUP_BLOCK, stream, *g);
    return TD_LAUNCH_TOGETHER((td_grouped_kernel<4>), blocks, TD_GROUP_BLOCK, stream, *g);
}
