/* quantized_kernels.h: inner loops of quantized tensors. Every instruction set gives the same bits:
 * sums of integers are exact, and what follows them is done in float32 in one order. */
#ifndef TD_CPU_QUANTIZED_QUANTIZED_KERNELS_H
#define TD_CPU_QUANTIZED_QUANTIZED_KERNELS_H

#include "engine/core/dtype.h"

/* out[i] = clamp(zero_point + rint(x[i] * (1 / scale)), low, high) for i < n; NaN gives low. */
typedef struct td_quantize_line {
    const float *x;
    void *out;
    int64_t n;
    float scale;
    int32_t zero_point, low, high;
} td_quantize_line;
typedef void (*td_quantize_fn)(const td_quantize_line *line);

/* A part of the depth, of which there are several equal ones, and where a row has it: `offset`
 * bytes behind its pointer `tap`. */
typedef struct td_byte_part {
    int64_t part, tap, offset;
} td_byte_part;

/* The sums of `rows` rows of bytes with `panels` panels of packed weights that lie one behind the
 * other: sums[r * 16 * panels + column]. The depth is in equal parts of `each` groups of four
 * bytes, and those in `which`, `count` of them, are multiplied: a row's pointers stand `apart` from
 * those of the row before, and what counts lies `from` bytes behind them. What stands behind the
 * depth meets weights of 0. `order` and `safe` are those of the panels (ops/plan/quantized_pack.h);
 * where `tile` of a set is ordered, and where sums saturate, the depth is one part. */
typedef struct td_byte_tile {
    const uint8_t *const *taps;
    const td_byte_part *which;
    int64_t apart, count, from, each;
    int rows, panels; /* at most TD_TILE_ROWS, or TD_PANEL_TILE_ROWS of one panel, or
                         TD_AMX_TILE_ROWS where AMX's; TD_TILE_PANELS */
    const int8_t *weights;
    const uint16_t *order;
    const int32_t *safe;
    int64_t groups; /* of four along the depth: those of all parts */
    int32_t *sums;
} td_byte_tile;
/* A part of a row of a tile. */
static inline const uint8_t *td_byte_tile_part(const td_byte_tile *t, int row,
                                               const td_byte_part *part) {
    return t->taps[row * t->apart + part->tap] + (t->from + part->offset);
}
typedef void (*td_byte_tile_fn)(const td_byte_tile *tile);

/* Rows of sums, `width` apart, of n channels from `from` on, a multiple of 16: those of the pairs
 * of bytes taps[2k][from + c], taps[2k + 1][from + c] times their weights, which are those of a
 * depthwise pack (ops/plan/quantized_pack.h). Each row has its taps, `apart` pointers behind those
 * of the row before; or all have the same, apart is 0, and row r meets what lies
 * (first + r) * steps[k] bytes behind them. `fours`: the weights in bytes, for sets with
 * AVX512_VNNI; NULL: none. */
typedef struct td_depthwise_tile {
    const uint8_t *const *taps;
    const int64_t *steps;
    int64_t apart, first, pairs, from, n, width;
    int rows; /* at most TD_DEPTHWISE_ROWS */
    const int16_t *weights;
    const int8_t *fours;
    int32_t *sums;
} td_depthwise_tile;
typedef void (*td_depthwise_fn)(const td_depthwise_tile *tile);

/* Bytes of a and b to out, as td_quantized_binary_plan says. */
typedef struct td_combine_line {
    const void *a, *b;
    void *out;
    int64_t n;
    float a_scale, b_scale, inverse;
    int32_t a_zero_point, b_zero_point, out_zero_point, low, high;
    bool multiply;
} td_combine_line;
typedef void (*td_combine_fn)(const td_combine_line *line);

/* The sums of a tile, rows of n columns `width` apart, into their results, as
 * td_quantized_linear_plan says: a float is (sum - offset) * factor + addend, an integer
 * (sum - offset + addend) * factor rounded, with (residual - its zero point) * residual_factor
 * added before. Columns' zero points times the sum of x's bytes in a row are taken off as well. */
typedef struct td_rescale_tile {
    const int32_t *sums,
        *row_sums; /* row_sums: of x's bytes, by row; NULL: all zero points are 0 */
    int rows;
    int64_t width, n;
    const int32_t *offsets,
        *zero_points;               /* by column: x's zero point times weights less their own */
    const float *factors, *addends; /* by column */
    char *out;
    const uint8_t *residual; /* of integers alone; NULL: none */
    const int64_t *at;       /* where each row begins in out and residual, in bytes */
    int32_t out_zero_point, low, high, residual_zero_point;
    float residual_factor;
    bool relu;
} td_rescale_tile;
typedef void (*td_rescale_fn)(const td_rescale_tile *tile);

enum { TD_TILE_ROWS = 6, TD_TILE_PANELS = 4, TD_PANEL_TILE_ROWS = 24, TD_DEPTHWISE_ROWS = 24 };
enum { TD_AMX_TILE_ROWS = 32, TD_AMX_GROUPS = 16 };

/* Byte tiles by AMX, of packs whose groups lie in order. A thread configures its tiles for so many
 * rows, 1 to TD_AMX_TILE_ROWS, and may then make byte tiles of as many rows whose parts have
 * TD_AMX_GROUPS groups at least; it releases them before it does other work: while they are there,
 * they are saved whenever the system changes threads, and the core may not rest deeply. */
typedef struct td_amx_kernels {
    bool (*usable)(void); /* by this process, which may have to ask */
    void (*configure)(int rows);
    td_byte_tile_fn tile;
    void (*release)(void);
} td_amx_kernels;

typedef struct td_quantized_kernels {
    td_quantize_fn quantize[TD_DTYPE_COUNT]; /* by the dtype of out; NULL: not for this one */
    td_byte_tile_fn tile;
    td_byte_tile_fn tile_vnni;         /* NULL: not in this set; takes AVX512_VNNI */
    td_byte_tile_fn lanes, lanes_vnni; /* of packs of lanes: one panel, `each` being 1 or 2 */
    const td_amx_kernels *amx;         /* NULL: not in this set */
    bool ordered; /* `tile` reads groups in the panels' order, safe ones first */
    td_rescale_fn rescale[TD_DTYPE_COUNT]; /* to float32, uint8, int8 */
    int32_t (*sum_bytes)(const uint8_t *x, int64_t n);
    td_depthwise_fn depthwise;
    td_combine_fn combine[TD_DTYPE_COUNT]; /* uint8, int8 */
} td_quantized_kernels;

#endif
