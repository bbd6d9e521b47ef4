/* bf16_pack.c: packs matrices of bfloat16 for products, faster than the library that wants them so.
 */
#include "engine/cpu/product/bf16_pack.h"

#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/transpose.h"

#include <string.h>

static int64_t at_most(int64_t n, int64_t left) {
    return n < left ? n : left < 0 ? 0 : left;
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
        td_cpu->turn->weave(to, row < p->rows ? upper : zeros, row + 1 < p->rows ? lower : zeros,
                            n);
        if (n < p->wide)
            memset(to + 2 * n, 0, (size_t)(2 * (p->wide - n)) * sizeof *to);
    }
}

/* A block of a matrix whose columns lie close: two elements of one are a pair already, and pairs
 * are turned round. Cut blocks, and columns of which pairs don't lie evenly, are copied first. */
static void pack_block(const td_pairs *p, const uint16_t *from, uint16_t *to, int64_t row,
                       int64_t column) {
    uint32_t lines[TD_PAIRS_WIDE][TD_PAIRS_DEEP];
    int64_t rows = at_most(2 * p->deep, p->rows - row);
    int64_t columns = at_most(p->wide, p->columns - column);
    const uint16_t *first = from + column * p->column_stride + row;
    if (rows == 2 * p->deep && columns == p->wide && p->column_stride % 2 == 0) {
        td_cpu_turn(to, p->wide, first, p->column_stride / 2, p->deep, p->wide, sizeof **lines);
        return;
    }
    memset(lines, 0, sizeof lines);
    for (int64_t k = 0; k < columns; k++)
        memcpy(lines[k], first + k * p->column_stride, (size_t)rows * sizeof *from);
    td_cpu_turn(to, p->wide, lines, TD_PAIRS_DEEP, p->deep, p->wide, sizeof **lines);
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
