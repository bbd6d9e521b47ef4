/* library_parts.h: work for libraries shared out among the threads of our own pool; in a way that
 * does not depend on their number where td_deterministic asks for that. */
#ifndef TD_CPU_PRODUCT_LIBRARY_PARTS_H
#define TD_CPU_PRODUCT_LIBRARY_PARTS_H

#include "engine/cpu/product/gemm.h"

/* Part of a batch of products: some of its matrices, of each the same rows and columns. */
typedef struct td_tile {
    int64_t batch, batches, row, rows, column, columns;
} td_tile;

typedef td_status (*td_tile_fn)(const void *ctx, const td_tile *tile);

/* Run fn over the tiles of batch products m x k by k x n, each tile on one thread that the library
 * it calls does not share out further; a product that is short on both sides goes to the library
 * as it is. Under td_deterministic the cut follows from the sizes alone. The first failure, or
 * EINTR. */
td_status td_run_tiles(int64_t batch, int64_t m, int64_t n, int64_t k, td_tile_fn fn,
                       const void *ctx) TD_MUST_CHECK;

/* One product of float64 matrices by OpenBLAS. */
td_status td_dgemm_tiles(const td_gemm *g) TD_MUST_CHECK;

/* Into how many parts so many multiplications are cut. */
int64_t td_parts_of(double work);

/* Run fn for `parts` parts of some work, each on one thread as above. */
typedef td_status (*td_part_fn)(const void *ctx, int64_t part);
td_status td_run_parts(int64_t parts, int64_t cost, td_part_fn fn, const void *ctx) TD_MUST_CHECK;

#endif
