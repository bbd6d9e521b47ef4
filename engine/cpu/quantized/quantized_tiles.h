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
} td_byte_product;

/* Rows of bytes, and where the rows of the result go. The depth is in `parts` equal parts, of which
 * those in `which`, `count_parts` of them, are multiplied, as all others are 0. A row's pointers
 * stand `apart` from those of the row before, and what counts lies `from` bytes behind them. Where
 * there are several parts, each has a multiple of four bytes; one part is filled up to such a
 * multiple. */
typedef struct td_byte_rows {
    const uint8_t *const *taps;
    const td_byte_part *which;
    int64_t apart, parts, count_parts, from, count;
    char *out;
    const uint8_t *residual; /* as out lies; NULL: none */
    const int64_t *at;       /* where each row begins in out and residual, in bytes */
} td_byte_rows;

/* The whole depth, where a row has one pointer to it. */
extern const td_byte_part td_byte_whole;

/* Is the depth of rows that these weights multiply to be one part? */
bool td_byte_pack_is_whole(const td_qpack *head);
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

/* The work functions of packs; quantized_lines.c has those of the device. ENOMEM. */
td_status td_byte_packs_make(const td_quantized_pack_plan *plan) TD_MUST_CHECK;
td_status td_byte_packs_linear(const td_quantized_linear_plan *plan) TD_MUST_CHECK;
td_status td_byte_packs_conv(const td_quantized_conv_plan *plan) TD_MUST_CHECK;

#endif
