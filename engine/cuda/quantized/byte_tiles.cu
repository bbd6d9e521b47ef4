/* byte_tiles.cu: products of bytes on the tensor cores. x is read where it lies, uint8 times int8
 * makes exact sums of 32 bits, and these leave as floats or bytes: one launch, no room.
 *
 * The depth is walked 64 bytes at a time. Four neighbouring lanes hold 16 of them each, of a row or
 * of a column, and give them to the instruction eight at a time: which eight meet in one
 * instruction does not matter to a sum, as long as rows and columns agree. */
#include "engine/cuda/limits.h"
#include "engine/cuda/quantized/byte_product.cuh"
#include "engine/cuda/runtime/groups.cuh"
#include "engine/cuda/runtime/launch.cuh"

namespace {

enum {
    TD_TILE_STEP = 64,  /* bytes of the depth */
    TD_TILE_CHUNK = 16, /* of these, a lane's */
    TD_TILE_QUAD = TD_TILE_STEP / TD_TILE_CHUNK,
    TD_TILE_ROWS = 128,
    TD_TILE_COLUMNS = 64,
    TD_TILE_STAGES = 3, /* steps of the depth in shared memory */
    TD_TILE_LOADS = TD_TILE_ROWS * TD_TILE_QUAD / TD_GROUP_BLOCK, /* chunks of x of a thread */
    TD_TILE_WARP_ROWS = 32,
    TD_TILE_WARPS_DOWN = TD_TILE_ROWS / TD_TILE_WARP_ROWS,
    TD_TILE_WARP_COLUMNS = TD_TILE_COLUMNS / (TD_GROUP_WARPS / TD_TILE_WARPS_DOWN),
    TD_SMALL_ROWS = 16, /* an instruction's */
    TD_SMALL_COLUMNS = 8
};

/* ---- the instruction ---- */

/* 16 bytes of a row or a column. */
struct alignas(16) td_cu_chunk {
    unsigned words[4];
};

/* c (16 x 8) += a (16 x 32 bytes) * b (32 x 8): PTX's m16n8k32. Lane 4 r + q holds words q and 4 +
 * q of rows r (a0, a2) and r + 8 (a1, a3) and of column r (b0, b1), and of both rows the sums of
 * columns 2 q and 2 q + 1. */
__device__ void td_multiply_bytes(int *c, unsigned a0, unsigned a1, unsigned a2, unsigned a3,
                                  unsigned b0, unsigned b1) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#else
    const int lane = (int)threadIdx.x % 32, row = lane / 4, column = lane % 4 * 2;
    for (int q = 0; q < 4; q++) {
        const unsigned a[2][2] = {
            {__shfl_sync(0xffffffffu, a0, row * 4 + q), __shfl_sync(0xffffffffu, a2, row * 4 + q)},
            {__shfl_sync(0xffffffffu, a1, row * 4 + q), __shfl_sync(0xffffffffu, a3, row * 4 + q)}};
        for (int e = 0; e < 2; e++) {
            const unsigned low = __shfl_sync(0xffffffffu, b0, (column + e) * 4 + q);
            const unsigned high = __shfl_sync(0xffffffffu, b1, (column + e) * 4 + q);
            for (int h = 0; h < 2; h++) {
                c[2 * h + e] = td_add_unsigned_products(a[h][0], low, c[2 * h + e]);
                c[2 * h + e] = td_add_unsigned_products(a[h][1], high, c[2 * h + e]);
            }
        }
    }
#endif
}

/* The same for all 64 bytes of both rows and the column. */
__device__ void td_multiply_chunks(int *c, const td_cu_chunk &upper, const td_cu_chunk &lower,
                                   const td_cu_chunk &column) {
    td_multiply_bytes(c, upper.words[0], lower.words[0], upper.words[1], lower.words[1],
                      column.words[0], column.words[1]);
    td_multiply_bytes(c, upper.words[2], lower.words[2], upper.words[3], lower.words[3],
                      column.words[2], column.words[3]);
}

/* The sum of a chunk's unsigned bytes, and c. */
__device__ int td_add_bytes(const td_cu_chunk &x, int c) {
    TD_UNROLL
    for (int j = 0; j < 4; j++)
        c = td_add_unsigned_products(x.words[j], 0x01010101u, c);
    return c;
}

/* What the four lanes of a row have, added up. */
__device__ int td_add_quad(int mine) {
    return (int)td_group_fold(td_adder(), (long long)mine, TD_TILE_QUAD, (long long *)nullptr);
}

/* ---- copies ---- */

/* 16 bytes to shared memory, which are there when the group that they are committed with has been
 * waited for; and before the next barrier what other threads copied. */
__device__ void td_copy_chunk(td_cu_chunk *to, const unsigned char *from) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile(
        "cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
        "l"(from)
        : "memory");
#else
    *to = *(const td_cu_chunk *)from;
#endif
}
__device__ void td_commit_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
/* All but the last OPEN groups. */
template <int OPEN> __device__ void td_wait_for_copies() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(OPEN) : "memory");
#endif
}

/* ---- what is read ---- */

/* Where in the kernel a thread is: the element of each dim, how far it is from the first in x, and
 * the channel. Behind the last element `ended` is set. */
struct td_cu_byte_walk {
    long long offset; /* in bytes of x, the channel included */
    int channel, at[TD_CU_BYTE_DIMS];
    bool ended;
};

/* On to the elements of the kernel behind the end of a channel. */
__device__ void td_byte_next_element(const td_cu_byte_product &p, td_cu_byte_walk &w) {
    do {
        w.channel -= (int)p.channels;
        if (++w.at[2] == (int)p.kernel[2]) {
            w.at[2] = 0;
            if (++w.at[1] == (int)p.kernel[1]) {
                w.at[1] = 0;
                if (++w.at[0] == (int)p.kernel[0]) {
                    w.ended = true;
                    return;
                }
            }
        }
    } while (w.channel >= (int)p.channels);
    w.offset = ((w.at[0] * p.dilation[0] * p.in[1] + w.at[1] * p.dilation[1]) * p.in[2] +
                w.at[2] * p.dilation[2]) *
                   (p.groups * p.channels) +
               w.channel;
}

__device__ void td_byte_advance(const td_cu_byte_product &p, td_cu_byte_walk &w, int by) {
    w.channel += by;
    w.offset += by;
    if (w.channel >= (int)p.channels && !w.ended)
        td_byte_next_element(p, w);
}

/* A row of the result: where its kernel begins. */
struct td_cu_byte_row {
    const unsigned char *first; /* the byte of x there, which may be outside; NULL: no such row */
    int at[TD_CU_BYTE_DIMS];
};

__device__ td_cu_byte_row td_byte_row(const td_cu_byte_product &p, long long row, long long group) {
    td_cu_byte_row r = {nullptr, {0, 0, 0}};
    if (row >= p.count)
        return r;
    const td_cu_byte_place place = td_byte_place(p, row);
    long long at = place.image;
    for (int d = 0; d < TD_CU_BYTE_DIMS; d++) {
        r.at[d] = (int)place.at[d];
        at = at * p.in[d] + place.at[d];
    }
    r.first = p.x + (at * p.groups + group) * p.channels;
    return r;
}

/* Does the row meet x? */
__device__ bool td_byte_is_inside(const td_cu_byte_product &p, const td_cu_byte_row &r,
                                  const td_cu_byte_walk &w) {
    bool inside = true;
    TD_UNROLL
    for (int d = 0; d < TD_CU_BYTE_DIMS; d++)
        inside &= (unsigned)(r.at[d] + w.at[d] * (int)p.dilation[d]) < (unsigned)p.in[d];
    return inside;
}

/* 16 bytes of a row, byte by byte: x's zero point outside of the image, 0 behind the kernel. */
__device__ td_cu_chunk td_byte_gather(const td_cu_byte_product &p, const td_cu_byte_row &r,
                                      td_cu_byte_walk w) {
    td_cu_chunk chunk = {{0, 0, 0, 0}};
    TD_UNROLL
    for (int j = 0; j < TD_TILE_CHUNK; j++) {
        const unsigned byte = w.ended                      ? 0
                              : td_byte_is_inside(p, r, w) ? r.first[w.offset]
                                                           : (unsigned)p.x_zero_point;
        chunk.words[j / 4] |= byte << 8 * (j % 4);
        td_byte_advance(p, w, 1);
    }
    return chunk;
}

__device__ td_cu_chunk td_filled_chunk(unsigned word) {
    return {{word, word, word, word}};
}

/* 16 bytes of a row. WHOLE: channels are a multiple of 16, and lie so. Where there
 * is no row, 0. */
template <bool WHOLE>
__device__ td_cu_chunk td_byte_read(const td_cu_byte_product &p, const td_cu_byte_row &r,
                                    const td_cu_byte_walk &w) {
    if (!r.first || w.ended)
        return td_filled_chunk(0);
    if (!WHOLE)
        return td_byte_gather(p, r, w);
    if (td_byte_is_inside(p, r, w))
        return *(const td_cu_chunk *)(r.first + w.offset);
    return td_filled_chunk((unsigned)p.x_zero_point * 0x01010101u);
}

/* The same to shared memory. */
template <bool WHOLE>
__device__ void td_byte_load(const td_cu_byte_product &p, const td_cu_byte_row &r,
                             const td_cu_byte_walk &w, td_cu_chunk *to) {
    if (WHOLE && r.first && !w.ended && td_byte_is_inside(p, r, w))
        td_copy_chunk(to, r.first + w.offset);
    else
        *to = td_byte_read<WHOLE>(p, r, w);
}

/* The weights of a group's column; NULL where there is no such column. */
__device__ const unsigned char *td_weights_of(const td_cu_byte_product &p, long long group,
                                              long long column) {
    return column < p.columns ? td_byte_weights(p, group * p.columns + column) : nullptr;
}

/* ---- results ---- */

/* Sums of two neighbouring columns, of which the first is `column` of the group, to row `row`. */
__device__ void td_byte_store_two(const td_cu_byte_product &p, const td_cu_byte_column *columns,
                                  const int *sums, int row_sum, long long row, long long group,
                                  long long column) {
    const long long at =
        td_byte_row_of_out(p, row) * p.groups * p.columns + group * p.columns + column;
    if (column + 1 < p.columns && !p.floats && p.columns % 2 == 0) {
        const unsigned low =
            td_byte_rounded(p, columns[0], td_byte_exact(columns[0], sums[0], row_sum), at);
        const unsigned high =
            td_byte_rounded(p, columns[1], td_byte_exact(columns[1], sums[1], row_sum), at + 1);
        *(unsigned short *)((unsigned char *)p.out + at) = (unsigned short)(low | high << 8);
        return;
    }
    for (int e = 0; e < 2; e++)
        if (column + e < p.columns)
            td_byte_store(p, columns[e], sums[e], row_sum, at + e);
}

/* ---- tiles ---- */

/* The rows and columns of a block. */
struct td_cu_byte_tile {
    long long group, row, column; /* the first of each */
};

__device__ td_cu_byte_tile td_byte_tile_of(const td_cu_byte_product &p, int rows, int columns) {
    td_cu_byte_tile tile;
    const long long both = td_cu_divide(blockIdx.x, p.groups, &tile.group);
    tile.row = td_cu_divide(both, td_divide(p.columns + columns - 1, columns), &tile.column) * rows;
    tile.column *= columns;
    return tile;
}

/* 64 bytes of each row and column of a block. */
struct td_cu_byte_stage {
    td_cu_chunk x[TD_TILE_ROWS * TD_TILE_QUAD], weights[TD_TILE_COLUMNS * TD_TILE_QUAD];
};

/* What a warp multiplies of a stage: 32 rows by half the columns; and their bytes added up where
 * they are wanted. */
__device__ void td_multiply_stage(const td_cu_byte_stage &stage, int top, int left,
                                  int sums[2][TD_TILE_WARP_COLUMNS / TD_SMALL_COLUMNS][4],
                                  bool adds, int *row_sums) {
    const int lane = (int)threadIdx.x % 32; /* row or column times four and quad */
    td_cu_chunk rows[4];
    TD_UNROLL
    for (int i = 0; i < 4; i++)
        rows[i] = stage.x[(top + 8 * i) * TD_TILE_QUAD + lane];
    TD_UNROLL
    for (int j = 0; j < TD_TILE_WARP_COLUMNS / TD_SMALL_COLUMNS; j++) {
        const td_cu_chunk column = stage.weights[(left + 8 * j) * TD_TILE_QUAD + lane];
        td_multiply_chunks(sums[0][j], rows[0], rows[1], column);
        td_multiply_chunks(sums[1][j], rows[2], rows[3], column);
    }
    if (adds) {
        TD_UNROLL
        for (int i = 0; i < 4; i++)
            row_sums[i] = td_add_bytes(rows[i], row_sums[i]);
    }
}

/* ---- many rows ---- */

/* A block makes 128 rows by 64 columns of a group. While it multiplies one step of the depth, the
 * next two are on their way to shared memory. */
template <bool WHOLE>
__global__ void __launch_bounds__(TD_GROUP_BLOCK, 2)
    td_byte_tiles_kernel(const __grid_constant__ td_cu_byte_product p) {
    enum { APART = TD_GROUP_BLOCK / TD_TILE_QUAD }; /* rows between chunks of a thread */
    __shared__ td_cu_byte_stage stages[TD_TILE_STAGES];
    __shared__ td_cu_byte_column columns[TD_TILE_COLUMNS];
    __shared__ int row_sums[TD_TILE_ROWS];
    const int thread = (int)threadIdx.x, quad = thread % TD_TILE_QUAD, own = thread / TD_TILE_QUAD;
    const int warp = thread / 32, lane_row = thread % 32 / TD_TILE_QUAD;
    const int top = warp % TD_TILE_WARPS_DOWN * TD_TILE_WARP_ROWS;
    const int left = warp / TD_TILE_WARPS_DOWN * TD_TILE_WARP_COLUMNS;
    const td_cu_byte_tile tile = td_byte_tile_of(p, TD_TILE_ROWS, TD_TILE_COLUMNS);
    const int depth = (int)p.step - TD_CU_LINE_HEAD; /* filled up */
    const int steps = (depth + TD_TILE_STEP - 1) / TD_TILE_STEP;
    const unsigned char *weights = td_weights_of(p, tile.group, tile.column + own);
    td_cu_byte_row rows[TD_TILE_LOADS];
    td_cu_byte_walk walk = {0, 0, {0, 0, 0}, false};
    int sums[2][TD_TILE_WARP_COLUMNS / TD_SMALL_COLUMNS][4] = {}, my_row_sums[4] = {};
    int shifted = 0;

    TD_UNROLL
    for (int k = 0; k < TD_TILE_LOADS; k++)
        rows[k] = td_byte_row(p, tile.row + own + k * APART, tile.group);
    td_byte_advance(p, walk, quad * TD_TILE_CHUNK);
    if (thread < TD_TILE_COLUMNS && tile.column + thread < p.columns) {
        columns[thread] = td_byte_column(p, tile.group * p.columns + tile.column + thread);
        shifted = columns[thread].zero_point != 0;
    }
    const bool adds = __syncthreads_or(shifted) && left == 0;

    int filled = 0, used = 0; /* stages */
    for (int step = 1 - TD_TILE_STAGES; step < steps; step++) {
        const int next = (step + TD_TILE_STAGES - 1) * TD_TILE_STEP + quad * TD_TILE_CHUNK;
        if (step >= 0) {
            td_wait_for_copies<TD_TILE_STAGES - 2>();
            __syncthreads(); /* and nobody reads the stage that is filled next */
        }
        if (step + TD_TILE_STAGES - 1 < steps) {
            td_cu_byte_stage &stage = stages[filled];
            TD_UNROLL
            for (int k = 0; k < TD_TILE_LOADS; k++)
                td_byte_load<WHOLE>(p, rows[k], walk, &stage.x[thread + k * TD_GROUP_BLOCK]);
            if (weights && next < depth)
                td_copy_chunk(&stage.weights[thread], weights + next);
            else
                stage.weights[thread] = td_filled_chunk(0);
            td_byte_advance(p, walk, TD_TILE_STEP);
            filled = filled + 1 == TD_TILE_STAGES ? 0 : filled + 1;
        }
        td_commit_copies();
        if (step >= 0) {
            td_multiply_stage(stages[used], top, left, sums, adds, my_row_sums);
            used = used + 1 == TD_TILE_STAGES ? 0 : used + 1;
        }
    }

    TD_UNROLL
    for (int i = 0; i < 4; i++) {
        const int all = td_add_quad(my_row_sums[i]);
        if (left == 0 && quad == 0)
            row_sums[top + 8 * i + lane_row] = all;
    }
    __syncthreads();
    TD_UNROLL
    for (int i = 0; i < 4; i++) {
        const int row = top + 8 * i + lane_row;
        if (tile.row + row >= p.count)
            continue;
        TD_UNROLL
        for (int j = 0; j < TD_TILE_WARP_COLUMNS / TD_SMALL_COLUMNS; j++) {
            const int column = left + 8 * j + 2 * quad;
            td_byte_store_two(p, columns + column, sums[i / 2][j] + i % 2 * 2, row_sums[row],
                              tile.row + row, tile.group, tile.column + column);
        }
    }
}

/* ---- few rows ---- */

/* A block makes 16 rows by 8 columns of a group. Its warps share the depth, and each reads its part
 * straight from memory. */
template <bool WHOLE>
__global__ void __launch_bounds__(TD_GROUP_BLOCK)
    td_byte_small_kernel(const __grid_constant__ td_cu_byte_product p) {
    __shared__ int sums[TD_GROUP_WARPS][TD_SMALL_ROWS][TD_SMALL_COLUMNS];
    __shared__ int row_sums[TD_GROUP_WARPS][TD_SMALL_ROWS];
    const int thread = (int)threadIdx.x, quad = thread % TD_TILE_QUAD, warp = thread / 32;
    const int lane_row = thread % 32 / TD_TILE_QUAD;
    const td_cu_byte_tile tile = td_byte_tile_of(p, TD_SMALL_ROWS, TD_SMALL_COLUMNS);
    const td_cu_byte_row rows[2] = {td_byte_row(p, tile.row + lane_row, tile.group),
                                    td_byte_row(p, tile.row + lane_row + 8, tile.group)};
    td_cu_byte_walk walk = {0, 0, {0, 0, 0}, false};
    int mine[4] = {}, my_row_sums[2] = {};
    td_byte_advance(p, walk, warp * TD_TILE_STEP + quad * TD_TILE_CHUNK);
    const unsigned char *weights = td_weights_of(p, tile.group, tile.column + lane_row);
    const int depth = (int)p.step - TD_CU_LINE_HEAD; /* filled up */
    for (int k = warp * TD_TILE_STEP; k < depth; k += TD_GROUP_WARPS * TD_TILE_STEP) {
        td_cu_chunk x[2], column = td_filled_chunk(0);
        if (weights && k + quad * TD_TILE_CHUNK < depth)
            column = *(const td_cu_chunk *)(weights + k + quad * TD_TILE_CHUNK);
        TD_UNROLL
        for (int i = 0; i < 2; i++) {
            x[i] = td_byte_read<WHOLE>(p, rows[i], walk);
            my_row_sums[i] = td_add_bytes(x[i], my_row_sums[i]);
        }
        td_multiply_chunks(mine, x[0], x[1], column);
        td_byte_advance(p, walk, TD_GROUP_WARPS * TD_TILE_STEP);
    }
    for (int i = 0; i < 2; i++) {
        const int all = td_add_quad(my_row_sums[i]);
        if (quad == 0)
            row_sums[warp][lane_row + 8 * i] = all;
    }
    for (int e = 0; e < 4; e++)
        sums[warp][lane_row + e / 2 * 8][quad * 2 + e % 2] = mine[e];
    __syncthreads();
    const int row = thread / TD_SMALL_COLUMNS, own = thread % TD_SMALL_COLUMNS;
    const long long column = tile.column + own;
    if (row >= TD_SMALL_ROWS || tile.row + row >= p.count || column >= p.columns)
        return;
    int sum = 0, row_sum = 0;
    for (int k = 0; k < TD_GROUP_WARPS; k++) {
        sum += sums[k][row][own];
        row_sum += row_sums[k][row];
    }
    const long long of_all = tile.group * p.columns + column;
    td_byte_store(p, td_byte_column(p, of_all), sum, row_sum,
                  td_byte_row_of_out(p, tile.row + row) * p.groups * p.columns + of_all);
}

/* Blocks of so many rows by columns. */
int64_t td_tiles_of(const td_cu_byte_product *p, int rows, int columns) {
    return (p->count + rows - 1) / rows * ((p->columns + columns - 1) / columns) * p->groups;
}

template <bool WHOLE> cudaError_t td_run_tiles(const td_cu_byte_product *p, cudaStream_t stream) {
    const int64_t small = td_tiles_of(p, TD_SMALL_ROWS, TD_SMALL_COLUMNS);
    if (small <= TD_LIMIT(QUANTIZED_SMALL_TILES))
        return TD_LAUNCH_TOGETHER((td_byte_small_kernel<WHOLE>), (unsigned)small, TD_GROUP_BLOCK,
                                  stream, *p);
    return TD_LAUNCH_TOGETHER((td_byte_tiles_kernel<WHOLE>),
                              (unsigned)td_tiles_of(p, TD_TILE_ROWS, TD_TILE_COLUMNS),
                              TD_GROUP_BLOCK, stream, *p);
}
} // namespace

cudaError_t td_cu_byte_tiles(const td_cu_byte_product *p, cudaStream_t stream) {
    if (p->channels % TD_TILE_CHUNK == 0 && (uintptr_t)p->x % TD_TILE_CHUNK == 0)
        return td_run_tiles<true>(p, stream);
    return td_run_tiles<false>(p, stream);
}
