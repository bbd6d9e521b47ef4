/* product.h: products by our own loops (product/product_kernels.h): of integers, of vectors, and of
 * small matrices, where a library's call costs more than its speed gains. */
#ifndef TD_CPU_PRODUCT_PRODUCT_H
#define TD_CPU_PRODUCT_PRODUCT_H

#include "engine/core/status.h"
#include "engine/cpu/product/product_kernels.h"

/* Products of n pairs of matrices that lie so many elements apart. */
typedef struct td_product_batch {
    int64_t n, a, b, c;
} td_product_batch;

/* The products of a batch, of which `first` is the first: cut into blocks that go to threads;
 * results do not depend on how many there are. For all dtypes but bool and the 16-bit floats. */
td_status td_product_by_blocks(td_dtype dtype, const td_product_block *first,
                               const td_product_batch *batch) TD_MUST_CHECK;

/* The same of int8 matrices; c and its sums are int32. No bias. */
td_status td_product_of_bytes(const td_product_block *first,
                              const td_product_batch *batch) TD_MUST_CHECK;

/* The same of large matrices of floats, 16-bit ones too: one side of each lies side by side in
 * memory, and c's columns do. Does that hold, and are 16-bit floats not too deep? */
bool td_product_has_panels(td_dtype dtype, const td_product_block *whole);
td_status td_product_by_panels(td_dtype dtype, const td_product_block *whole,
                               const td_product_batch *batch) TD_MUST_CHECK;

/* Of a right side float32 or float64, packed into panels as wide as a tile, one after the other:
 * `depth` terms from `from` on of `columns` columns from `column` on, which a panel begins with. */
void td_product_pack(td_dtype dtype, const td_product_block *whole, int64_t from, int64_t depth,
                     int64_t column, int64_t columns, char *to);

/* The same of few rows and a right side that may have been packed whole (td_product_pack; NULL: it
 * has not): the same bits either way. float32 and float64. Does that hold, and a side of each lie
 * side by side in memory? */
bool td_product_has_few(td_dtype dtype, const td_product_block *whole);
td_status td_product_by_few(td_dtype dtype, const td_product_block *whole,
                            const char *packed) TD_MUST_CHECK;

/* The share of the tiles in which td_product_by_blocks computes that c fills. */
double td_product_filled(td_dtype dtype, const td_product_block *whole);

/* Floats with a vector on one side, or a few rows on the left and columns of b that lie side by
 * side in memory: is it one that td_product_by_vectors does, and does soonest? */
bool td_product_fits_vector(td_dtype dtype, const td_product_block *whole);
bool td_product_has_vector(td_dtype dtype, const td_product_block *whole);
/* The same for any number of threads. */
td_status td_product_by_vectors(td_dtype dtype, const td_product_block *whole) TD_MUST_CHECK;

#endif
