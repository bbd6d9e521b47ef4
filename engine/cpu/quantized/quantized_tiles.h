/* quantized_tiles.h: products of rows of bytes with packed weights, and what becomes of their sums:
 * what linear layers and convolutions share. */
#ifndef TD_CPU_QUANTIZED_QUANTIZED_TILES_H
#define TD_CPU_QUANTIZED_QUANTIZED_TILES_H

#include "engine/cpu/cpu.h"
#include "engine/ops/plan/quantized_pack.h"

/* What is the same for all rows of a product with the packs of a tensor. */
typedef struct td_byte_product {
    const td_requantization *to;
    td_dtype dtype;                 /* of the result */
    const float *factors, *addends; /* by column of all packs */
    const int32_t *offsets;         /* likewise: x's zero point times the weights' sums */
    td_tensor *numbers;             /* which owns these */
} td_byte_product;

/* Rows of bytes, and where the rows of the result go. A row is what lies at its `taps_each` taps: an
 * equal part of the depth each, `from` bytes behind pointers that stand `apart` from those of the
 * row before. Where there are several taps, each has a multiple of four bytes; one tap is filled up
 * to such a multiple. */
typedef struct td_byte_rows {
    const uint8_t *const *taps;
    int64_t apart, taps_each, from, count;
    char *out;
    int64_t out_step;        /* bytes */
    const uint8_t *residual; /* as out lies; NULL: none */
} td_byte_rows;

/* Are rows times weights of this pack to have one tap? */
bool td_byte_pack_takes_one_tap(const td_qpack *head);
/* What sums are multiplied by and what is added to them, by column of all the packs; bias (float32)
 * may be NULL. The numbers are new, to be released. ENOMEM. */
td_status td_byte_product_open(td_byte_product *product, const td_requantization *to,
                               td_dtype dtype, const td_tensor *packed,
                               const td_tensor *bias) TD_MUST_CHECK;
/* Pack `index` of a tensor of packs. */
td_qpack_parts td_byte_pack(const td_tensor *packed, int64_t index);
/* The rows times `panels` panels of a pack from `panel` on; `first` is the pack's first column in
 * the product, out and residual that column of the rows. */
void td_byte_rows_multiply(const td_byte_product *product, const td_qpack_parts *packed,
                           const td_byte_rows *rows, int64_t first, int64_t panel, int64_t panels);
/* The sums of some rows, from `row` on, and n columns, from `column` of the pack on, to their
 * place: `width` apart from row to row; row_sums: of x's bytes, NULL where all zero points are 0.
 */
void td_byte_sums_deliver(const td_byte_product *product, const td_qpack_parts *packed,
                          const td_byte_rows *rows, int64_t first, int64_t row, int count,
                          int64_t column, int64_t n, const int32_t *sums, int64_t width,
                          const int32_t *row_sums);

#endif
