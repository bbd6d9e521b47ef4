/* product_choice.c: which way a product of floats goes, by the limits of cpu/limits.h; beside each
 * question stand the times that they were taken from. */
#include "engine/cpu/product/product_ways.h"

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/product/onednn.h"

static double work_of(const td_product_block *p) {
    return (double)p->rows * (double)p->columns * (double)p->depth;
}

static bool is_narrow(td_dtype dtype) {
    return dtype == TD_F16 || dtype == TD_BF16;
}

/* bfloat16 whose pairs oneDNN multiplies, in products that are worth its call. */
static bool has_pairs(td_dtype dtype, double work) {
    return dtype == TD_BF16 && work > TD_LIMIT(PRODUCT_OPENBLAS) && td_dnn_bfloat_gain() > 0;
}

int64_t td_product_leading(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride,
                           bool *transposed) {
    int64_t ld = 0;
    *transposed = false;
    if (column_stride == 1 || columns == 1) {
        ld = rows == 1 ? columns : row_stride;
        if (ld >= columns && ld > 0)
            return ld;
    }
    *transposed = true;
    if (row_stride == 1 || rows == 1) {
        ld = columns == 1 ? rows : column_stride;
        if (ld >= rows && ld > 0)
            return ld;
    }
    return 0;
}

/* ---- blocks ---- */

/* Of small float32 matrices that fill most of a tile's columns: between what OpenBLAS has loops of
 * its own for and what oneDNN's call is worth. Measured on a Zen 4 core, theirs and ours: 32^3 1.0
 * and 1.9 us, 48^3 4.5 and 3.4, 64^3 7.2 and 5.6, 80^3 (of 128 columns) 11.5 and 16.6, 96^3 18 and
 * 22. */
static bool blocks_pay_beside_small_loops(td_dtype dtype, const td_product_block *p, double work) {
    int64_t full = (p->columns + 63) / 64 * 64;
    return dtype == TD_F32 && work > TD_LIMIT(PRODUCT_OPENBLAS) &&
           work <= TD_LIMIT(PRODUCT_BLOCKS) && p->rows >= 16 && 4 * p->columns >= 3 * full;
}

/* Where OpenBLAS has none: as long as tiles are half full, or depth is next to nothing; a right
 * side that lies by columns is turned, which takes some rows to pay. Measured on a Zen 3 core, in a
 * batch of 100, theirs and ours: float32 3^3 79 and 52 ns, 10^3 204 and 128, 16^3 341 and 170, its
 * right side by columns 375 and 249, 32^3 1160 and 1040, 64 x 64 x 4 2208 and 1442, 16 x 8 x 64 544
 * and 688; float64 8^3 131 and 81, 16^3 446 and 349, 32^3 2509 and 2078. */
static bool blocks_pay_alone(td_dtype dtype, const td_product_block *p, double work) {
    bool by_rows = p->b_column == 1 || p->columns == 1;
    bool shallow = p->depth <= 8;
    return (dtype == TD_F32 || dtype == TD_F64) && work < TD_LIMIT(PRODUCT_BLOCKS_ALONE) &&
           (by_rows || shallow || (p->rows >= 10 && work < TD_LIMIT(PRODUCT_BLOCKS_ALONE) / 2)) &&
           (shallow || td_product_filled(dtype, p) >= 0.5);
}

static bool blocks_pay(td_dtype dtype, const td_product_block *p, double work) {
    return td_cpu->product->libraries_at_best ? blocks_pay_beside_small_loops(dtype, p, work)
                                              : blocks_pay_alone(dtype, p, work);
}

/* ---- panels ---- */

/* Are the panels worth packing? Measured on a core of an Emerald Rapids, theirs and ours: float32
 * (oneDNN) 1024^3 13.4 and 13.2 ms, 2048^3 113 and 109. */
static bool floats_pack(td_dtype dtype, const td_product_block *p, double work) {
    (void)dtype;
    (void)p;
    return td_cpu->product->libraries_at_best && work >= TD_LIMIT(PRODUCT_PANELS);
}

/* float64 (OpenBLAS), its right side by rows: 64^3 6.7 and 8.4 us, 100^3 23 and 29, 128^3 70 and
 * 54, 256^3 495 and 436, 16 x 1024 x 1024 975 and 1124; by columns, where OpenBLAS has no small
 * loops: 24^3 1.3 and 1.0, 64^3 10.5 and 9.2, 100^3 38 and 30. */
static bool doubles_pack(td_dtype dtype, const td_product_block *p, double work) {
    (void)dtype;
    bool by_rows = p->b_column == 1 || p->columns == 1;
    double right = (double)p->depth * (double)p->columns;
    return td_cpu->product->libraries_at_best &&
           work > (by_rows ? TD_LIMIT(PRODUCT_PANELS_F64) : TD_LIMIT(PRODUCT_PANELS_F64_TURNED)) &&
           (p->rows >= TD_LIMIT(PRODUCT_PANELS_F64_ROWS) ||
            right <= TD_LIMIT(PRODUCT_PANELS_F64_RIGHT));
}

/* 16-bit floats, which the libraries multiply as float32 unless oneDNN has a way of its own, from
 * some size on: float16 16^3 1.4 and 0.8 us, 48^3 4.2 and 2.8, 1000 x 1000 x 100 1.65 and 1.39 ms,
 * 1024^3 14.9 and 12.5. */
static bool halves_pack(td_dtype dtype, const td_product_block *p, double work) {
    (void)p;
    return !has_pairs(dtype, work) &&
           (td_cpu->product->libraries_at_best || work <= TD_LIMIT(PRODUCT_BLOCKS_ALONE));
}

static bool panels_pay(td_dtype dtype, const td_product_block *p, double work) {
    static bool (*const pay[TD_DTYPE_COUNT])(td_dtype, const td_product_block *,
                                             double) = {[TD_F16] = halves_pack,
                                                        [TD_BF16] = halves_pack,
                                                        [TD_F32] = floats_pack,
                                                        [TD_F64] = doubles_pack};
    return td_product_has_panels(dtype, p) && pay[dtype](dtype, p, work);
}

/* ---- few rows ---- */

/* Beside oneDNN's primitives on a Zen 4 core; ours with the right side as it lies, and kept packed:
 * 16 x 384 x 384 by rows 43 and 41, 40 us, by columns 56 and 58, 40; 16 x 384 x 1536 by columns 218
 * and 226, 168; 64 x 1024 x 1024 by rows 1289 and 1224, 1189, by columns 1353 and 1352, 1213;
 * weights of 50 MB in turn, by columns 256 x 384 x 384 750 and 778, 682, 1024 x 384 x 1536 12064
 * and 11277, 10807. A left side that lies by columns is read by a line for each term and tile. */
static bool few_pay(td_dtype dtype, const td_product_block *p) {
    int64_t most =
        p->a_column == 1 ? TD_LIMIT(PRODUCT_FEW_MOST) : TD_LIMIT(PRODUCT_FEW_MOST_TURNED);
    return dtype == TD_F32 && td_cpu->product->libraries_at_best &&
           p->rows >= TD_LIMIT(PRODUCT_FEW_LEAST) && p->rows <= most &&
           p->columns >= TD_LIMIT(PRODUCT_FEW_COLUMNS) &&
           p->columns * p->depth >= TD_LIMIT(PRODUCT_FEW_RIGHT) && td_product_has_few(dtype, p);
}

/* 16-bit floats that oneDNN has no pairs for, in float32: the right side is kept so, and packed,
 * where it is met again. Measured on a Zen 4 core without its pairs, our panels and this way: 8 x
 * 1024 x 256 64 and 39, by columns 89 and 40, 16 x 128 x 128 6.2 and 5.7, 64 x 784 x 256
 * by columns 282 and 235, 128 x 512 x 128 161 and 158; where nothing
 * is kept the two are level but for 4 rows by columns (95). */
static bool wide_pays(td_dtype dtype, const td_product_block *p, double work) {
    return is_narrow(dtype) && !has_pairs(dtype, work) && p->rows <= TD_LIMIT(PRODUCT_WIDE_ROWS) &&
           few_pay(TD_F32, p);
}

/* ---- vectors ---- */

/* From three rows on oneDNN's pairs of bfloat16 are quicker. Measured on a Zen 4 core, ours and
 * theirs with the right side by columns: 2 x 1024 x 256 21 and 18 us, 2 x 1024 x 1024 65 and 72, 3
 * x 1024 x 256 33 and 21, 4 x 1024 x 256 41 and 23, 4 x 2048 x 1024 257 and 173. */
static bool vectors_pay(td_dtype dtype, const td_product_block *p, double work) {
    bool several = p->rows >= TD_LIMIT(PRODUCT_PAIRS_ROWS) && p->columns > 1;
    return work > TD_LIMIT(PRODUCT_PLAIN) && td_product_has_vector(dtype, p) &&
           !(several && has_pairs(dtype, work));
}

/* ---- libraries ---- */

/* Without the vectors that its primitives are written for, oneDNN's plain function is the quickest
 * from PRODUCT_BLOCKS_ALONE multiplications on, but where its loops meet lines that lie a multiple
 * of 2 KB apart (of a left side that is transposed and deep, 1 KB): those share a few places of the
 * first-level cache. OpenBLAS copies such operands. Measured on a Zen 3 core, OpenBLAS and oneDNN:
 * 16^3 0.32 and 0.70 us, 32^3 1.43 and 1.35, 64^3 8.0 and 5.9, 256 x 1000 x 1000 5.8 and 5.5 ms,
 * 256 x 1024 x 1024 5.9 and 11.4, its left side transposed 5.9 and 11.6, its right one 5.9 and 6.5,
 * 2000 x 1536 x 16 2.4 and 1.3. */
static td_product_way plain_library(const td_product_block *p, double work) {
    bool ta, tb;
    int64_t lda = td_product_leading(p->rows, p->depth, p->a_row, p->a_column, &ta);
    int64_t ldb = td_product_leading(p->depth, p->columns, p->b_row, p->b_column, &tb);
    bool wide =
        p->rows >= TD_LIMIT(PRODUCT_CLASH_SIDES) && p->columns >= TD_LIMIT(PRODUCT_CLASH_SIDES);
    bool a_clashes =
        ta && lda % (p->depth >= TD_LIMIT(PRODUCT_CLASH_DEEPER) ? TD_LIMIT(PRODUCT_CLASH) / 2
                                                                : TD_LIMIT(PRODUCT_CLASH)) ==
                  0;
    bool b_clashes = (!tb || wide) && ldb % TD_LIMIT(PRODUCT_CLASH) == 0;
    bool clash = p->depth >= TD_LIMIT(PRODUCT_CLASH_DEPTH) && (a_clashes || b_clashes);
    return work < TD_LIMIT(PRODUCT_BLOCKS_ALONE) || clash ? TD_WAY_OPENBLAS : TD_WAY_ONEDNN_SGEMM;
}

static td_product_way library_of(td_dtype dtype, const td_product_block *p, double work) {
    if (dtype == TD_F64)
        return TD_WAY_OPENBLAS;
    if (dtype == TD_F32 && !td_cpu->product->libraries_at_best)
        return plain_library(p, work);
    if (dtype == TD_F32)
        return work > TD_LIMIT(PRODUCT_OPENBLAS) ? TD_WAY_ONEDNN : TD_WAY_OPENBLAS;
    return has_pairs(dtype, work) ? TD_WAY_ONEDNN_PACKED : TD_WAY_WIDE;
}

td_product_way td_product_choose(td_dtype dtype, const td_product_block *p, int64_t batch) {
    double work = work_of(p);
    if (batch == 1 && wide_pays(dtype, p, work))
        return TD_WAY_WIDE;
    if (batch == 1 && vectors_pay(dtype, p, work))
        return TD_WAY_VECTORS;
    if (batch == 1 && few_pay(dtype, p))
        return TD_WAY_FEW_KEPT;
    if (panels_pay(dtype, p, work))
        return TD_WAY_PANELS;
    if (blocks_pay(dtype, p, work))
        return TD_WAY_BLOCKS;
    return work * (double)batch <= TD_LIMIT(PRODUCT_PLAIN) ? TD_WAY_PLAIN
                                                           : library_of(dtype, p, work);
}

bool td_product_can(td_product_way way, td_dtype dtype, const td_product_block *p, int64_t batch) {
    bool narrow = is_narrow(dtype), dnn = dtype == TD_BF16 && td_dnn_bfloat_gain() > 0;
    switch (way) {
    case TD_WAY_CHOSEN:
    case TD_WAY_PLAIN:
        return true;
    case TD_WAY_VECTORS:
        return batch == 1 && td_product_fits_vector(dtype, p);
    case TD_WAY_BLOCKS:
        return td_cpu->product->block[dtype] != NULL;
    case TD_WAY_PANELS:
        return td_product_has_panels(dtype, p);
    case TD_WAY_FEW:
    case TD_WAY_FEW_KEPT:
        return batch == 1 && td_product_has_few(dtype, p);
    case TD_WAY_OPENBLAS:
        return dtype == TD_F32 || dtype == TD_F64;
    case TD_WAY_ONEDNN_SGEMM:
        return dtype == TD_F32;
    case TD_WAY_ONEDNN:
        return dtype == TD_F32 || dnn;
    case TD_WAY_ONEDNN_PACKED:
        return dnn && batch == 1;
    case TD_WAY_WIDE:
        return narrow;
    }
    return false;
}
