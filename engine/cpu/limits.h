/* limits.h: the CPU's limits (ops/plan/limits.h); tests/torture/digests/differs tells where the
 * ways on both sides of one round differently.
 *
 * tests/bench/limits times both ways around each limit that has a case there, in a build with
 * -DTIDE_LIMITS=variable, and prints what it finds beside this table. In such a build limits are
 * variables, and the environment may set them: TIDE_LIMIT_SORT_LONG=1000. */
#ifndef TD_CPU_LIMITS_H
#define TD_CPU_LIMITS_H

#include "engine/ops/plan/limits.h"

/* X(name, value, unit, what, processor that it was measured on ("": not noted), when it was set) */
/* clang-format off */
#define TD_CPU_LIMITS(X) \
    X(PRODUCT_PLAIN,             512,         "multiplications", "floats: up to here a plain loop, then a library", "", "2026-11-21") \
    X(PRODUCT_OPENBLAS,          64 * 1024,   "multiplications", "float32, AVX-512: up to here OpenBLAS, then oneDNN's primitives", "Zen 4", "2026-11-21") \
    X(PRODUCT_BLOCKS,            256 * 1024,  "multiplications", "float32, AVX-512: up to here our blocks, then oneDNN's primitives", "Zen 4", "2026-11-22") \
    X(PRODUCT_BLOCKS_ALONE,      32 * 1024,   "multiplications", "without AVX-512: up to here our blocks or OpenBLAS, then oneDNN's sgemm", "Zen 3", "2026-11-24") \
    X(PRODUCT_PANELS,            1 << 30,     "multiplications", "float32, AVX-512: from here on our panels, not oneDNN", "Emerald Rapids", "2026-11-25") \
    X(PRODUCT_PANELS_F64,        1000 * 1000, "multiplications", "float64, AVX-512: from here on our panels, not OpenBLAS", "Emerald Rapids", "2026-11-25") \
    X(PRODUCT_PANELS_F64_TURNED, 4 * 1024,    "multiplications", "the same where the right side lies by columns", "Emerald Rapids", "2026-11-25") \
    X(PRODUCT_PANELS_F64_ROWS,   48,          "rows", "from here on packing the right side pays,", "Emerald Rapids", "2026-11-25") \
    X(PRODUCT_PANELS_F64_RIGHT,  128 * 1024,  "elements", "or where the right side has no more than so many", "Emerald Rapids", "2026-11-25") \
    X(PRODUCT_FEW_LEAST,         4,           "rows", "float32, AVX-512: from here on tiles that read the right side as it lies or is kept,", "Zen 4", "2026-11-27") \
    X(PRODUCT_FEW_MOST,          1024,        "rows", "up to here,", "Zen 4", "2026-11-28") \
    X(PRODUCT_FEW_MOST_TURNED,   128,         "rows", "or to here where the left side lies by columns,", "Zen 4", "2026-11-27") \
    X(PRODUCT_FEW_COLUMNS,       64,          "columns", "where the right side has so many", "Zen 4", "2026-11-27") \
    X(PRODUCT_FEW_RIGHT,         16 * 1024,   "elements", "and so many; then oneDNN", "Zen 4", "2026-11-27") \
    X(PRODUCT_WIDE_ROWS,         128,         "rows", "16-bit floats without pairs, AVX-512: up to here in float32 by those tiles, then our panels", "Zen 4", "2026-11-28") \
    X(PRODUCT_CLASH,             512,         "elements", "float32, without AVX-512: lines a multiple of this apart go to OpenBLAS,", "Zen 3", "2026-11-24") \
    X(PRODUCT_CLASH_DEPTH,       64,          "terms", "from so deep a product on; its left side turned: half as far apart", "Zen 3", "2026-11-24") \
    X(PRODUCT_CLASH_DEEPER,      192,         "terms", "is enough from so deep on; its right side turned: from so many rows", "Zen 3", "2026-11-24") \
    X(PRODUCT_CLASH_SIDES,       128,         "rows, columns", "and columns on", "Zen 3", "2026-11-24") \
    X(PRODUCT_DOTS_F32,          64 * 1024,   "multiplications", "float32, 1 to 3 rows, AVX-512: from here on dot products, not libraries", "Zen 4", "2026-11-22") \
    X(PRODUCT_DOTS_F64,          576 * 1024,  "multiplications", "float64, 1 to 4 rows, AVX-512: the same", "Zen 4", "2026-11-22") \
    X(PRODUCT_DOTS_HALVES,       4 * 1024,    "multiplications", "16-bit floats, 1 to 4 rows: the same", "", "2026-11-24") \
    X(PRODUCT_PAIRS_ROWS,        3,           "rows", "bfloat16, where the processor has pairs of it: from here on oneDNN, not dot products", "Zen 4", "2026-11-28") \
    X(PRODUCT_DOTS_1,            256,         "multiplications", "1 row, without AVX-512: the same", "Zen 3", "2026-11-24") \
    X(PRODUCT_DOTS_2,            512,         "multiplications", "2 or 3 rows, without AVX-512: the same", "Zen 3", "2026-11-24") \
    X(PRODUCT_DOTS_4,            32 * 1024,   "multiplications", "4 rows, without AVX-512: the same", "Zen 3", "2026-11-24") \
    X(PRODUCT_PLAIN_WHOLE,       512,         "multiplications", "integers: up to here a plain loop, then our blocks", "", "2026-11-21") \
    X(PRODUCT_PLAIN_SUMS,        16,          "results", "the same for so few sums, however long", "", "2026-11-22") \
    X(PRODUCT_PACKED_ROWS,       8,           "rows", "bfloat16: from here on the right side is packed by us, and kept, not by oneDNN,", "Zen 4", "2026-11-28") \
    X(PRODUCT_PACKED_SIDES,      64,          "rows, columns", "where it has so many", "", "2026-11-22") \
    X(PRODUCT_TEAM,              32,          "rows, columns", "of a product that is long inside: from here on the library's team", "Zen 4", "2026-11-24") \
    X(PRODUCT_THREAD,            1000 * 1000, "multiplications", "AVX-512: so many are worth a thread", "", "2026-11-24") \
    X(PRODUCT_THREAD_ALONE,      250 * 1000,  "multiplications", "without AVX-512: the same", "Zen 3", "2026-11-24") \
    X(QUANTIZED_AMX_ROWS,        8,           "rows", "bytes: from here on by AMX's tiles where they are, not by VNNI,", "Emerald Rapids", "2026-11-28") \
    X(QUANTIZED_AMX_DEPTH,       128,         "terms", "of so deep a product,", "Emerald Rapids", "2026-11-28") \
    X(QUANTIZED_AMX,             2 << 20,     "multiplications", "where there are so many", "Emerald Rapids", "2026-11-28") \
    X(FACTOR_TEAM,               4 << 20,     "elements times rows", "from here on OpenBLAS's team decomposes, not one thread", "Zen 4", "2026-11-23") \
    X(RANK_SORTED,               16,          "keys", "up to here sorted, not searched", "", "2026-11-23") \
    X(RANK_SAMPLED,              2048,        "keys", "from here on bounds come from a sample", "", "2026-11-23") \
    X(SELECT_LONG,               128 * 1024,  "elements of a line", "from here on all threads look through one line, not each through its own", "", "2026-11-22") \
    X(SELECT_SORTED,             32,          "elements of a line", "up to here lines are sorted by networks, not searched", "", "2026-11-25") \
    X(SORT_LONG,                 128 * 1024,  "elements of a line", "from here on all threads sort one line, not each its own", "", "2026-11-22") \
    X(SORT_FIRST,                1024 * 1024, "first elements", "of topk: up to here they alone are sorted", "", "2026-11-22") \
    X(SORT_TWICE,                4096,        "elements of a line", "up to here 64-bit keys are looked at half by half", "", "2026-11-23") \
    X(SORT_NETWORK_LINES,        16,          "lines", "from here on short lines are sorted by networks", "", "2026-11-23") \
    X(MODE_COUNTED,              64 * 1024,   "elements of a line", "up to here counted in a table, then sorted", "Zen 3", "2026-11-27") \
    X(POINTWISE_CHAIN,           256,         "elements", "from here on making a chain is worth it", "", "2026-11-22") \
    X(POINTWISE_CODE,            2,           "elements", "from here on a program is asked whether it has machine code", "Zen 4", "2026-11-27") \
    X(POINTWISE_CODE_WORK,       1 << 18,     "additions of an element", "that a program does before machine code is made of it", "Zen 4", "2026-11-27") \
    X(POINTWISE_CACHED,          1 << 20,     "bytes of operands", "that a core's own cache keeps between calls", "", "2026-11-22") \
    X(POINTWISE_TURNED_ROW,      16,          "inner elements", "from here on a row is a call where dims are turned round", "", "2026-11-24") \
    X(POINTWISE_NARROW_ROW,      16,          "inner elements", "from here on a row is a call of a loop of 16-bit floats", "", "2026-11-23") \
    X(POINTWISE_CHAIN_ROW,       8,           "inner elements", "from here on a row is a call of a chain", "", "2026-11-23") \
    X(WALK_ROW,                  256,         "inner elements", "from here on walked row by row, not block by block", "", "2026-11-21") \
    X(WALK_DIRECT_ROW,           6,           "inner elements", "from here on a row is a call of a single step's loop", "", "2026-11-23") \
    X(WALK_COPIED_ROW,           2,           "inner elements", "the same where it is a copy of bytes", "", "2026-11-24") \
    X(WALK_COLUMNS,              8,           "inner elements", "up to here moved column by column", "", "2026-11-22") \
    X(WALK_BOX,                  64,          "elements of short dims", "up to here moved place by place", "", "2026-11-24") \
    X(WALK_STREAM,               64 << 20,    "bytes of a result", "from here on stored past the caches", "", "2026-11-21") \
    X(TRANSPOSE_FIRST,           4096,        "elements", "from here on a copy to another order of dims goes by way of a row-major one", "", "2026-11-21") \
    X(GATHER_SHORT,              100,         "elements of a line", "up to here lines are walked together", "", "2026-11-23") \
    X(REDUCE_ROWS_CUT,           64,          "outputs", "fewer may be cut into pieces", "", "2026-11-21") \
    X(REDUCE_COLUMNS_CUT,        1024,        "outputs", "the same by columns", "", "2026-11-21") \
    X(FIND_SHORT,                128,         "elements of a row", "up to here a row is looked at beside others,", "", "2026-11-25") \
    X(FIND_ROWS,                 16,          "rows", "where there are so many", "", "2026-11-23") \
    X(FIND_FOLDED,               4096,        "elements", "from here on few columns are folded", "", "2026-11-23") \
    X(SCAN_ROWS,                 32,          "lines", "from here on taken a row at a time", "", "2026-11-23") \
    X(SCAN_ROWS_CONVERTED,       16,          "lines", "the same where rows are converted", "", "2026-11-24") \
    X(SCAN_TURNED,               64,          "elements of a line", "up to here lines are turned", "", "2026-11-23") \
    X(SOFTMAX_LINES,             16,          "lines", "from here on short ones are taken together", "", "2026-11-23") \
    X(SOFTMAX_COLUMNS,           8,           "columns", "up to here turned,", "", "2026-11-23") \
    X(SOFTMAX_TURNED,            64,          "elements of a column", "where they are so long", "", "2026-11-23") \
    X(CONV_UNROLLED,             4 << 20,     "elements of an unrolled image", "up to here a whole image is unrolled at once", "", "2026-11-24") \
    X(CONV_DIRECT,               4,           "channels in times out", "of a group: up to here shifted lines are added up", "", "2026-11-22") \
    X(CONV_DEPTHWISE,            12,          "columns of the result", "float32, AVX-512, row-major batches: from here on a vector of channels at a time, not oneDNN", "Zen 4", "2026-11-28") \
    X(CONV_PLACES,               400,         "places of an image", "float32, AVX-512, one image with channels last: up to here tiles that keep the weight packed, then oneDNN", "Zen 4", "2026-11-28") \
    X(CONV_PRODUCT,              128,         "places of an image", "float32, AVX-512, kernels of one place: from here on a product, not oneDNN", "Zen 4", "2026-11-27")
/* clang-format on */

TD_LIMITS_DECLARE(TD_CPU_LIMITS);

#endif
