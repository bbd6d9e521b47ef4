/* bf16_pack.h: matrices of bfloat16 packed for products: pairs of rows, in blocks of columns. */
#ifndef TD_CPU_PRODUCT_BF16_PACK_H
#define TD_CPU_PRODUCT_BF16_PACK_H

#include <stdint.h>

/* A matrix whose rows or columns lie close (one stride is 1), and where it goes: blocks of 2 * deep
 * rows and `wide` columns, in each of which the elements of two rows take turns. All count
 * elements. */
typedef struct td_pairs {
    int64_t rows, columns, row_stride, column_stride;
    int64_t deep, wide;   /* wide <= TD_PAIRS_WIDE, deep <= TD_PAIRS_DEEP */
    int64_t down, across; /* from a block to the one below it and to the one beside it */
} td_pairs;

enum { TD_PAIRS_DEEP = 32, TD_PAIRS_WIDE = 64 };

/* Fills all blocks; what lies beyond the matrix is zero. */
void td_pack_pairs(const td_pairs *p, const uint16_t *from, uint16_t *to);

#endif
