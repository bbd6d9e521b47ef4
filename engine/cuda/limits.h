/* limits.h: the device's limits (ops/plan/limits.h), of host code and of what launches kernels.
 * They are constants in every build, with TIDE_LIMITS=variable, too: no bench moves them. */
#ifndef TD_CUDA_LIMITS_H
#define TD_CUDA_LIMITS_H

#include "engine/ops/plan/limits.h"

/* X(name, value, unit, what, processor that it was measured on ("": not noted), when it was set) */
/* clang-format off */
#define TD_CUDA_LIMITS(X) \
    X(ALLOCATE_SLAB,        1 << 20,   "bytes", "up to here blocks are cut from slabs, then the runtime's own", "", "2026-11-22") \
    X(COMPILE_RUNS,         16,        "runs", "of a program: from here on it gets a kernel of its own,", "", "2026-11-22") \
    X(COMPILE_ELEMENTS,     1 << 22,   "elements", "or from so many on in all its runs", "", "2026-11-22") \
    X(POINTWISE_STEPS,      12,        "steps", "compiled, of 1 and 2 bytes: up to here a thread takes vectors of 8, then of 4", "", "2026-11-22") \
    X(TRANSPOSE_SIDE,       8,         "elements", "from here on of both dims a copy that exchanges them goes by tiles", "", "2026-11-22") \
    X(REDUCE_FULL,          2048,      "blocks", "of outputs: fewer than half, and outputs are cut, into so many pieces in all,", "", "2026-11-27") \
    X(REDUCE_PIECE_ROWS,    8192,      "elements", "from two pieces of so many on, by rows", "", "2026-11-22") \
    X(REDUCE_PIECE_COLUMNS, 256,       "elements", "the same by columns", "", "2026-11-22") \
    X(REDUCE_EACH,          4,         "elements of a thread", "more, and a row gets twice as many threads, up to a warp", "", "2026-11-22") \
    X(REDUCE_BLOCK,         2048,      "elements of a row", "up to here a warp at most, then a block", "", "2026-11-22") \
    X(REDUCE_JOINED,        1 << 14,   "threads of all outputs", "up to here an output gets more to join its pieces", "", "2026-11-27") \
    X(SCAN_FULL,            1024,      "blocks", "of lines: fewer than half, and lines are cut, into so many pieces in all,", "", "2026-11-22") \
    X(SCAN_PIECE,           8192,      "elements", "from two pieces of so many on", "", "2026-11-22") \
    X(SCAN_SHORT,           32,        "elements of a line", "up to here a thread has a line of its own, then a block;", "", "2026-11-22") \
    X(SCAN_LINES,           8192,      "lines", "longer ones have a thread each, too, from so many on,", "", "2026-11-22") \
    X(SCAN_BESIDE,          16,        "lines", "where so many lie side by side", "", "2026-11-22") \
    X(SOFTMAX_EACH,         4,         "elements of a thread", "as REDUCE_EACH, of lines that are not held in registers", "", "2026-11-22") \
    X(SOFTMAX_BLOCK,        1024,      "elements of a line", "up to here a warp at most, then a block", "", "2026-11-22") \
    X(NORM_EACH,            8,         "elements of a thread", "as REDUCE_EACH", "", "2026-11-22") \
    X(NORM_BLOCK,           2048,      "elements of a row", "up to here a warp at most, then a block", "", "2026-11-22") \
    X(NORM_MAP_FULL,        2112,      "blocks", "maps by channel: so many, several on each of a large device's processors, go from row to row", "H100", "2026-11-27") \
    X(NORM_MAP_UNIT,        1 << 14,   "blocks of whole rows", "up to here threads keep their channels from row to row", "", "2026-11-27") \
    X(SELECT_FULL,          1024,      "blocks", "of lines: up to half, and long lines are cut, into so many pieces in all,", "", "2026-11-22") \
    X(SELECT_PIECE,         8192,      "elements", "each of so many or somewhat fewer", "", "2026-11-22") \
    X(SORT_FIRST,           4,         "elements for each wanted", "topk of long lines: from here on those wanted are found, then sorted", "", "2026-11-22") \
    X(ORDER_COUNTS,         16,        "tiles", "up to here a thread adds up what they count of a digit, then a block", "", "2026-11-22") \
    X(PRODUCT_FULL,         264,       "tiles", "our kernels: up to half, and sums are cut, into so many parts in all,", "", "2026-11-22") \
    X(PRODUCT_PART,         256,       "terms", "of at least so many", "", "2026-11-22") \
    X(PRODUCT_COPIED,       1 << 24,   "multiplications", "int8: from here on copied to cuBLASLt's layout, not our kernels", "", "2026-11-23") \
    X(QUANTIZED_DIRECT,     4,         "channels of a group", "convolutions of bytes: up to here without tensor cores", "", "2026-11-28") \
    X(QUANTIZED_SMALL_TILES, 1280,     "tiles of 16 rows by 8 columns", "products of bytes: up to here a tile is a block, then tiles of 128 by 64", "H200", "2026-11-28") \
    X(RECURRENT_ROWS,       128,       "rows of the batch", "recurrent layers: up to here, and", "", "2026-11-28") \
    X(RECURRENT_UNITS,      1024,      "hidden units", "up to here a time is one launch, then products of a library and programs", "", "2026-11-28") \
    X(FACTOR_SMALL,         32,        "rows", "det, solve, cholesky: up to here a block of ours for each matrix, not cuSOLVER;", "", "2026-11-22") \
    X(FACTOR_SMALL_OF_MANY, 128,       "rows", "the same", "", "2026-11-22") \
    X(FACTOR_MANY,          16,        "matrices", "where there are so many", "", "2026-11-22") \
    X(INDEX_SERIAL,         16,        "rows to write", "up to here one thread takes them in turn, then they are put in the order of their places;", "", "2026-11-22") \
    X(INDEX_SERIAL_OF_MANY, 1024,      "rows to write", "the same", "", "2026-11-22") \
    X(INDEX_MANY,           16 * 1024, "lines side by side", "where there are so many; scatter: of however many rows", "", "2026-11-22")
/* clang-format on */

TD_LIMITS_DECLARE(TD_CUDA_LIMITS);

#endif
