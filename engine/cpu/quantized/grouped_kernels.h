/* grouped_kernels.h: inner loops of products of rows rounded in blocks with weights of a few bits
 * in groups (td_grouped_linear_plan says what lies where). All instruction sets give the same bits.
 */
#ifndef TD_CPU_QUANTIZED_GROUPED_KERNELS_H
#define TD_CPU_QUANTIZED_GROUPED_KERNELS_H

#include "engine/core/dtype.h"

enum { TD_GROUPED_COLUMNS = 16, TD_GROUPED_BLOCK = 32, TD_GROUPED_ROWS = 6 };

/* Elements of a step: an integer sum of so many products becomes a float. */
static inline int td_grouped_step(int bits) {
    return bits == 6 ? 16 : 32;
}

/* n elements of a row as blocks of integers, the last of them filled up with 0, and a scale for
 * each block. */
typedef void (*td_round_blocks_fn)(const float *x, int64_t n, int8_t *ints, float *scales);

/* Some rows of x with a panel: out[row * 16 + column], without bias. Every array of x goes from row
 * to row by the step of its name. */
typedef struct td_grouped_tile {
    const int8_t *x;
    const float *x_scales; /* by block of 32 */
    const int32_t *x_sums; /* by step: of its integers */
    const float *x_totals; /* by group: what meets its min */
    int64_t x_step, x_scales_step, x_sums_step, x_totals_step;
    int rows; /* at most TD_GROUPED_ROWS */
    int bits;
    int64_t groups, steps; /* steps: of a group */
    const uint8_t *weights;
    const float *scales, *mins; /* mins: NULL where there are none */
    float *out;
} td_grouped_tile;
typedef void (*td_grouped_tile_fn)(const td_grouped_tile *tile);

/* out[i] += u[i] * scale + offset for i < n, row by row; u: bytes, or of 4 bits the halves of them.
 */
typedef struct td_row_sum {
    const uint8_t *const *rows;
    const float *scales, *offsets; /* of each row */
    int count, bits;
    int64_t n;
    float *out;
} td_row_sum;
typedef void (*td_add_rows_fn)(const td_row_sum *sum);

typedef struct td_grouped_kernels {
    td_round_blocks_fn round_blocks;
    td_grouped_tile_fn tile;
    td_grouped_tile_fn tile_vnni; /* NULL: not in this set; takes AVX512_VNNI */
    td_add_rows_fn add_rows;
} td_grouped_kernels;

#endif
