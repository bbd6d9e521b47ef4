/* product_kernels.h: inner loops of products of matrices and vectors. */
#ifndef TD_CPU_PRODUCT_PRODUCT_KERNELS_H
#define TD_CPU_PRODUCT_PRODUCT_KERNELS_H

#include "engine/core/dtype.h"

#include <stdbool.h>
#include <stdint.h>

struct td_epilogue;

/* c (rows x columns) = a (rows x depth) b (depth x columns), plus `bias` (columns elements; NULL:
 * none) in every row; or, where td_product_by_few is to make it, plus `row_bias` (rows elements) in
 * every column, and, of float32, with an epilogue (NULL: none) for what is whole and has been added
 * to `added` (which lies as c; NULL: nothing). Strides in elements; any. */
typedef struct td_product_block {
    const char *a, *b, *bias, *row_bias, *added;
    const struct td_epilogue *epilogue;
    char *c;
    int64_t rows, columns, depth;
    int64_t a_row, a_column, b_row, b_column, c_row, c_column;
} td_product_block;

/* Columns of b that a block packs at a time: more are taken one such panel after the other. What
 * an element of c gives depends on its row, its column and depth alone. Leaves early when an
 * interrupt is requested. */
typedef void (*td_product_block_fn)(const td_product_block *block);

/* After so many terms each a tile asks for lines of the cache. */
enum { TD_TILE_ASKS = 4 };

/* c (rows x columns, at most tile_rows and as many columns as tile_bytes hold) = `base` (NULL:
 * zero) plus a times b, whose sums begin with `start`, one for each row (NULL: with zero); of b
 * each row is read in whole vectors, whatever the columns. Strides in elements, of lines whose
 * elements lie side by side but for a's, which lie a_step apart. Of float32, `added` and an
 * epilogue as td_product_block has them. Meanwhile what will be read next, from `ahead` on, is
 * asked for, so many lines of the cache each TD_TILE_ASKS terms (0: none): memory works while the
 * tile multiplies. */
typedef struct td_product_tile {
    const void *a, *b, *base, *start, *added, *ahead;
    const struct td_epilogue *epilogue;
    void *c;
    int64_t rows, columns, depth, a_row, a_step, b_row, base_row, c_row, lines;
} td_product_tile;
typedef void (*td_product_tile_fn)(const td_product_tile *tile);

/* x, whose rows lie as those of a tile's b, becomes minus a^-1 x, which a tile adds to what is
 * left, for a triangular a (n x n, of which the other triangle isn't read, nor the diagonal where
 * it is `unit`). What a column gives does not depend on the columns beside it. */
typedef struct td_product_triangle {
    const void *a;
    void *x;
    int64_t n, columns, a_row, a_column;
    bool upper, unit;
} td_product_triangle;
typedef void (*td_product_solve_fn)(const td_product_triangle *triangle);

/* sums[i * sums_stride + r] = sum over k < n of x[i * x_stride + k] * rows[r * stride + k], i <
 * vectors, r < count; the terms of each in the same order, however many vectors and rows there are.
 * Strides in elements. */
typedef struct td_product_dots {
    const void *x, *rows;
    double *sums;
    int64_t x_stride, stride, sums_stride;
    int64_t vectors, count, n;
} td_product_dots;
typedef void (*td_product_dots_fn)(const td_product_dots *dots);

/* sums[c] += sum over k < n of x[k] * rows[k * stride + c], c < count; sums of the element type.
 * What a column gives does not depend on the columns beside it. */
typedef void (*td_product_combine_fn)(void *sums, const void *x, const void *rows, int64_t stride,
                                      int64_t count, int64_t n);

/* By dtype; NULL: not for this one. */
/* The dot products of x and `count` rows of integers, n each, to places `apart` in c; of one dtype,
 * wrapped around. */
typedef void (*td_product_whole_fn)(void *c, int64_t apart, const void *x, const void *rows,
                                    int64_t stride, int64_t count, int64_t n);

typedef struct td_product_kernels {
    td_product_block_fn block[TD_DTYPE_COUNT];
    td_product_tile_fn tile[TD_DTYPE_COUNT];
    td_product_solve_fn solve[TD_DTYPE_COUNT];
    td_product_dots_fn dots[TD_DTYPE_COUNT];
    td_product_combine_fn combine[TD_DTYPE_COUNT];
    td_product_whole_fn whole[TD_DTYPE_COUNT];
    /* int8 matrices, c and its sums int32, no bias: by pairs of terms, and by fours (NULL: not in
     * this set), which takes AVX512_VNNI (td_cpu_has_vnni). The same bits. */
    td_product_block_fn pairs, quads;
    /* As many multiplications of vectors, of float32 and of pairs of bfloat16; AVX-512's alone, the
     * second where the machine has AVX512_BF16. */
    void (*try_floats)(void), (*try_pairs)(void);
    int tile_rows, tile_bytes; /* of c, which a block's loop keeps in registers */
    /* Have the libraries float32 loops for this set that they lack below it: OpenBLAS for small
     * matrices, oneDNN for blocks? */
    bool libraries_at_best;
} td_product_kernels;

#endif
