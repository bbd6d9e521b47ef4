/* row_blocks.h: how a row-major matrix is parted into blocks of rows, so that several operators run
 * on a block before the next one, and how sums of many elements are cut into pieces.
 *
 * The CPU promises that what works along rows (reductions, softmax) makes of the rows of such a
 * block the bits that it makes of them in the whole; it asserts so where its ways are chosen
 * (cpu/reduce/). Other devices promise nothing.
 */
#ifndef TD_OPS_PLAN_ROW_BLOCKS_H
#define TD_OPS_PLAN_ROW_BLOCKS_H

#include <stdint.h>

enum {
    TD_ROW_BLOCK = 16 * 1024, /* elements of a block, a few of which stay in a core's cache */
    TD_ROW_BLOCK_SHORT = 128, /* elements of rows that are worked on many together; and how many
                                 a block that is not the only one has of them at least */
    TD_ROW_BLOCK_LONG = 64 * 1024, /* elements of a row up to which rows are not cut, */
    TD_ROW_BLOCK_FEW = 64          /* unless they are fewer than this and twice as long in all */
};

/* The number of blocks, of rows/blocks rows or one more; 0: the rows are not to be parted. */
static inline int64_t td_row_blocks(int64_t rows, int64_t n) {
    const int64_t fit = TD_ROW_BLOCK / (n > 0 ? n : 1);
    const int64_t least = n <= TD_ROW_BLOCK_SHORT ? TD_ROW_BLOCK_SHORT : 1;
    const int64_t block = fit > least ? fit : least;
    if (n > TD_ROW_BLOCK_LONG || (rows < TD_ROW_BLOCK_FEW && rows * n >= 2 * TD_ROW_BLOCK_LONG))
        return 0;
    return rows / block > 1 ? rows / block : 1;
}

/* Few sums of many elements each are cut into pieces of so many, each summed by itself in double,
 * and the pieces' sums added in order; `count`: they are not. */
enum { TD_REDUCE_PIECES = 256 /* of a sum at most */ };
static inline int64_t td_reduce_piece(int64_t outputs, int64_t count) {
    if (outputs * count < 2 * TD_ROW_BLOCK_LONG)
        return count;
    int64_t piece = TD_ROW_BLOCK_LONG / outputs > 0 ? TD_ROW_BLOCK_LONG / outputs : 1;
    if ((count + piece - 1) / piece > TD_REDUCE_PIECES)
        piece = (count + TD_REDUCE_PIECES - 1) / TD_REDUCE_PIECES;
    return piece;
}

#endif
