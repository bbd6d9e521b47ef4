/* recurrent.cuh: what the kernels of recurrent layers share. A block makes a tile of 16 rows by 8
 * units. Both factors of a product come by pieces of the depth into shared memory; threads share a
 * piece's depth in parts and keep a sum for each gate of their row and unit, which the first part
 * then adds up in their order. */
#ifndef TD_CUDA_PRODUCT_RECURRENT_CUH
#define TD_CUDA_PRODUCT_RECURRENT_CUH

#include "engine/cuda/product/recurrent_code.h"
#include "engine/cuda/runtime/elements.cuh"
#include "engine/cuda/runtime/launch.cuh"
#include "engine/cuda/runtime/math.cuh"
#include "engine/cuda/runtime/vector.cuh"

enum {
    TD_RECURRENT_ROWS = 16,
    TD_RECURRENT_UNITS = 8,
    TD_RECURRENT_CELLS = TD_RECURRENT_ROWS * TD_RECURRENT_UNITS,
    TD_RECURRENT_PARTS = 4,
    TD_RECURRENT_BLOCK = TD_RECURRENT_CELLS * TD_RECURRENT_PARTS,
    TD_RECURRENT_PIECE = 512 /* bytes of a line of a piece */
};

/* Where a thread's row and unit stand. */
struct td_cu_cell {
    int row, unit, part;
    bool finishes; /* it is the one thread that makes something of the sums of a place there is */
};

__device__ static inline td_cu_cell td_my_cell(const td_cu_recurrent_layer &l) {
    td_cu_cell c;
    int place = (int)threadIdx.x % TD_RECURRENT_CELLS;
    c.unit = (int)blockIdx.x * TD_RECURRENT_UNITS + place % TD_RECURRENT_UNITS;
    c.row = (int)blockIdx.y * TD_RECURRENT_ROWS + place / TD_RECURRENT_UNITS;
    c.part = (int)threadIdx.x / TD_RECURRENT_CELLS;
    c.finishes = c.part == 0 && c.row < l.rows && c.unit < l.units;
    return c;
}

/* The place of a gate of that cell where there are so many. */
__device__ static inline int td_gate_at(const td_cu_recurrent_layer &l, const td_cu_cell &c,
                                        int gates, int gate) {
    return (c.row * gates + gate) * l.units + c.unit;
}

/* A number as elements of a type hold it. */
template <typename T, typename W> __device__ static inline W td_rounded(W v) {
    return (W)td_widen(td_narrow<T>::of(v));
}

/* An element, or 0 of what is not there. */
template <typename T> __device__ static inline td_wide<T> td_element_or_0(const void *p, int at) {
    return p ? td_widen(((const T *)p)[at]) : (td_wide<T>)0;
}

template <typename W, int COLUMNS> struct td_recurrent_piece {
    enum { DEPTH = TD_RECURRENT_PIECE / sizeof(W), PITCH = DEPTH + 16 / sizeof(W) };
    alignas(16) W rows[TD_RECURRENT_ROWS][PITCH];
    alignas(16) W columns[COLUMNS][PITCH];
};

/* What a thread brings of a piece, on its way. */
template <typename W, int COLUMNS> struct td_recurrent_load {
    enum { DEPTH = td_recurrent_piece<W, COLUMNS>::DEPTH };
    enum { ROWS_EACH = TD_RECURRENT_ROWS * DEPTH / TD_RECURRENT_BLOCK };
    enum { COLUMNS_EACH = COLUMNS * DEPTH / TD_RECURRENT_BLOCK };
    W rows[ROWS_EACH], columns[COLUMNS_EACH];

    /* Neighbours are read by neighbouring threads: along the depth, or across columns. */
    __device__ static void spread(bool across, int e, int *column, int *depth) {
        int at = (int)threadIdx.x + e * TD_RECURRENT_BLOCK;
        *column = across ? at % COLUMNS : at / DEPTH;
        *depth = across ? at / COLUMNS : at % DEPTH;
    }
    template <typename P> __device__ void fetch(const P &p, int from) {
        int side, depth;
        TD_UNROLL
        for (int e = 0; e < ROWS_EACH; e++) {
            spread(false, e, &side, &depth);
            rows[e] = p.row(side, from + depth);
        }
        TD_UNROLL
        for (int e = 0; e < COLUMNS_EACH; e++) {
            spread(P::ACROSS, e, &side, &depth);
            columns[e] = p.column(side, from + depth);
        }
    }
    template <typename P>
    __device__ void put(const P &, td_recurrent_piece<W, COLUMNS> &piece) const {
        int side, depth;
        TD_UNROLL
        for (int e = 0; e < ROWS_EACH; e++) {
            spread(false, e, &side, &depth);
            piece.rows[side][depth] = rows[e];
        }
        TD_UNROLL
        for (int e = 0; e < COLUMNS_EACH; e++) {
            spread(P::ACROSS, e, &side, &depth);
            piece.columns[side][depth] = columns[e];
        }
    }
};

/* One part's share of a piece. */
template <typename W, int GATES>
__device__ static inline void
td_add_piece(const td_recurrent_piece<W, GATES * TD_RECURRENT_UNITS> &piece, int part, W *sums) {
    enum { N = 16 / sizeof(W), STEP = N * TD_RECURRENT_PARTS };
    int place = (int)threadIdx.x % TD_RECURRENT_CELLS;
    const W *row = piece.rows[place / TD_RECURRENT_UNITS];
    TD_UNROLL
    for (int k = 0; k < td_recurrent_piece<W, GATES>::DEPTH; k += STEP) {
        td_pack<W, N> a = td_read_pack<W, N>(row + k + part * N);
        TD_UNROLL
        for (int gate = 0; gate < GATES; gate++) {
            const W *column = piece.columns[gate * TD_RECURRENT_UNITS + place % TD_RECURRENT_UNITS];
            td_pack<W, N> b = td_read_pack<W, N>(column + k + part * N);
            TD_UNROLL
            for (int e = 0; e < N; e++)
                sums[gate] += a.e[e] * b.e[e];
        }
    }
}

/* The sums of a cell's gates, which its first part's thread gets. All threads of the block come
 * here. P: T and GATES, ACROSS (columns lie side by side in memory), depth, and
 *   p.row(r, k), p.column(gate * TD_RECURRENT_UNITS + u, k)   of the tile; 0 of what is not there
 */
template <typename P>
__device__ static void td_sum_gates(const P &p, td_wide<typename P::T> *sums) {
    typedef td_wide<typename P::T> W;
    enum { GATES = P::GATES, COLUMNS = GATES * TD_RECURRENT_UNITS };
    __shared__ td_recurrent_piece<W, COLUMNS> piece;
    static_assert(sizeof piece >= sizeof(W) * (TD_RECURRENT_PARTS - 1) * GATES * TD_RECURRENT_CELLS,
                  "partial sums have no room");
    td_recurrent_load<W, COLUMNS> load;
    int place = (int)threadIdx.x % TD_RECURRENT_CELLS;
    int part = (int)threadIdx.x / TD_RECURRENT_CELLS;
    load.fetch(p, 0);
    for (int k = 0; k < p.depth; k += load.DEPTH) {
        __syncthreads(); /* the piece before has been read */
        load.put(p, piece);
        __syncthreads();
        if (k + load.DEPTH < p.depth)
            load.fetch(p, k + load.DEPTH);
        td_add_piece<W, GATES>(piece, part, sums);
    }
    __syncthreads();
    W *partial = &piece.rows[0][0];
    for (int gate = 0; part > 0 && gate < GATES; gate++)
        partial[((part - 1) * GATES + gate) * TD_RECURRENT_CELLS + place] = sums[gate];
    __syncthreads();
    for (int other = 1; part == 0 && other < TD_RECURRENT_PARTS; other++)
        for (int gate = 0; gate < GATES; gate++)
            sums[gate] += partial[((other - 1) * GATES + gate) * TD_RECURRENT_CELLS + place];
}

static inline dim3 td_recurrent_tiles(const td_cu_recurrent_layer *l) {
    return dim3((unsigned int)((l->units + TD_RECURRENT_UNITS - 1) / TD_RECURRENT_UNITS),
                (unsigned int)((l->rows + TD_RECURRENT_ROWS - 1) / TD_RECURRENT_ROWS), 1);
}

/* `run`, with T and S the types of a layer's weights and of what is kept. */
#define TD_BY_RECURRENT(l, T, S, run)                                                              \
    if ((l).dtype == TD_F64 && (l).kept == TD_F64) {                                               \
        typedef double T;                                                                          \
        typedef double S;                                                                          \
        run;                                                                                       \
    }                                                                                              \
    if ((l).kept == TD_F32) {                                                                      \
        typedef float S;                                                                           \
        switch ((l).dtype) {                                                                       \
            TD_CASE_(TD_F16, __half, T, run)                                                       \
            TD_CASE_(TD_BF16, __nv_bfloat16, T, run)                                               \
            TD_CASE_(TD_F32, float, T, run)                                                        \
        }                                                                                          \
    } else if ((l).kept == (l).dtype) {                                                            \
        switch ((l).dtype) {                                                                       \
            TD_CASE_(TD_F16, __half, T, typedef T S; run)                                          \
            TD_CASE_(TD_BF16, __nv_bfloat16, T, typedef T S; run)                                  \
        }                                                                                          \
    }

#endif
