/* bf16_pack.c: packs matrices of bfloat16 for products, faster than the library that wants them so.
 */
#include "engine/cpu/product/bf16_pack.h"

#include <string.h>

static int64_t at_most(int64_t n, int64_t left) {
    return n < left ? n : left < 0 ? 0 : left;
}

/* Two rows taking turns. */
static void weave(uint16_t *restrict to, const uint16_t *upper, const uint16_t *lower, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        uint32_t pair = upper[k] | (uint32_t)lower[k] << 16;
        memcpy(to + 2 * k, &pair, sizeof pair);
    }
}

/* A pair of rows through all blocks beside one another: so rows are read from one end to the
 * other. */
static void pack_rows(const td_pairs *p, const uint16_t *from, uint16_t *to, int64_t pair) {
    static const uint16_t zeros[TD_PAIRS_WIDE];
    int64_t row = 2 * pair;
    to += pair / p->deep * p->down + pair % p->deep * 2 * p->wide;
    for (int64_t column = 0; column < p->columns; column += p->wide, to += p->across) {
        int64_t n = at_most(p->wide, p->columns - column);
        const uint16_t *upper = from + row * p->row_stride + column;
        const uint16_t *lower = upper + p->row_stride;
        weave(to, row < p->rows ? upper : zeros, row + 1 < p->rows ? lower : zeros, n);
        memset(to + 2 * n, 0, (size_t)(2 * (p->wide - n)) * sizeof *to);
    }
}

/* A block of a matrix whose columns lie close: two elements of one are a pair already. */
static void pack_block(const td_pairs *p, const uint16_t *from, uint16_t *to, int64_t row,
                       int64_t column) {
    uint32_t lines[TD_PAIRS_WIDE][TD_PAIRS_DEEP];
    int64_t rows = at_most(2 * p->deep, p->rows - row);
    int64_t columns = at_most(p->wide, p->columns - column);
    memset(lines, 0, sizeof lines);
    for (int64_t k = 0; k < columns; k++)
        memcpy(lines[k], from + (column + k) * p->column_stride + row, (size_t)rows * sizeof *from);
    for (int64_t pair = 0; pair < p->deep; pair++)
        for (int64_t k = 0; k < p->wide; k++)
            memcpy(to + 2 * (pair * p->wide + k), &lines[k][pair], sizeof lines[k][pair]);
}

void td_pack_pairs(const td_pairs *p, const uint16_t *from, uint16_t *to) {
    int64_t down = (p->rows + 2 * p->deep - 1) / (2 * p->deep);
    int64_t across = (p->columns + p->wide - 1) / p->wide;
    if (p->column_stride == 1) {
        for (int64_t pair = 0; pair < down * p->deep; pair++)
            pack_rows(p, from, to, pair);
        return;
    }
    for (int64_t j = 0; j < across; j++)
        for (int64_t i = 0; i < down; i++)
            pack_block(p, from, to + i * p->down + j * p->across, i * 2 * p->deep, j * p->wide);
}
