/* quantized_tiles.h: products of rows of bytes with packed weights, and what becomes of their sums:
 * what linear layers and convolutions share. */
#ifndef TD_CPU_QUANTIZED_QUANTIZED_TILES_H
#define TD_CPU_QUANTIZED_QUANTIZED_TILES_H

#include "engine/cpu/cpu.h"
#include "engine/cpu/quantized/quantized_kernels.h"
#include "engine/ops/plan/quantized_pack.h"

/* What is the same for all rows of a product with the packs of a tensor. */
typedef struct td_byte_product {
    const td_requantization *to;
    td_dtype dtype;                 /* of the result */
    const float *factors, *addends; /* by column of all packs */
    const int32_t *offsets;         /* likewise: x's zero point times the weights' sums */
    td_tensor *numbers;             /* which owns these */
    td_byte_tile_fn tile;
    int tile_rows;             /* rows of a byte tile, at most */
    const td_amx_kernels *amx; /* whose tiles are to be configured; NULL: no others need that */
} td_byte_product;

/* Rows of bytes that lie `step` bytes apart, each filled up to a multiple of four, and where the
 * rows of the result go. */
typedef struct td_byte_rows {
    const uint8_t *x;
    int64_t step, count;
    char *out;
    int64_t out_step;        /* bytes */
    const uint8_t *residual; /* as out lies; NULL: none */
} td_byte_rows;

/* What sums are multiplied by and what is added to them, by column of all the packs, and the loop
 * for byte tiles, chosen for so many rows of x in all; bias (float32) may be NULL. The numbers are
 * new, to be released. ENOMEM. */
td_status td_byte_product_open(td_byte_product *product, const td_requantization *to,
                               td_dtype dtype, const td_tensor *packed, const td_tensor *bias,
                               int64_t rows) TD_MUST_CHECK;
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

/* The work functions of packs; quantized_lines.c has those of the device. ENOMEM. */
td_status td_byte_packs_make(const td_quantized_pack_plan *plan) TD_MUST_CHECK;
td_status td_byte_packs_linear(const td_quantized_linear_plan *plan) TD_MUST_CHECK;
td_status td_byte_packs_conv(const td_quantized_conv_plan *plan) TD_MUST_CHECK;

#endif
