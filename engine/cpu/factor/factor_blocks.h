/* factor_blocks.h: triangles solved, and matrices decomposed into them, block by block: what is
 * left of a matrix is a product, made of tiles that stay in registers (product/product_kernels.h).
 *
 * Float32 and float64. Results are the same for any number of threads. When an interrupt is
 * requested they return early with what is done. */
#ifndef TD_CPU_FACTOR_FACTOR_BLOCKS_H
#define TD_CPU_FACTOR_FACTOR_BLOCKS_H

#include "engine/cpu/product/product_kernels.h"

/* A matrix where it lies; steps in elements. */
typedef struct td_factor_lines {
    char *p;
    int64_t row, column;
} td_factor_lines;

/* out (n x k) = a^-1 b for triangular factors of a, at most two, of which the first is solved
 * first; none: b. */
typedef struct td_factor_system {
    td_dtype dtype;
    int64_t n, k;
    td_product_triangle factors[2]; /* what they are, without x and sizes */
    int count;
    const int *places;      /* what td_factor_lu gave; NULL: rows stay where they are */
    td_factor_lines b, out; /* b.p: NULL for a unit matrix */
    char *room;
} td_factor_system;

/* Bytes that a system's room takes. */
size_t td_factor_system_room(td_dtype dtype, int64_t n, int64_t k);
void td_factor_solve(td_factor_system *system);

/* Bytes that a decomposition of an n x n matrix takes. */
size_t td_factor_room(td_dtype dtype, int64_t n);
/* a (n x n, row-major) becomes l and u, whose product it is with rows exchanged: l's diagonal is 1.
 * places[k] is the row, from 0, that changed places with row k, one after the other. Returns the
 * first step, from 1, whose pivot is 0, or 0. */
int td_factor_lu(td_dtype dtype, int64_t n, void *a, int *places, char *room);
/* The upper triangle of a (n x n, row-major; the lower one is not read) becomes u of transposed u
 * times u. Returns the first step, from 1, whose pivot isn't positive, or 0. */
int td_factor_cholesky(td_dtype dtype, int64_t n, void *a, char *room);

#endif
