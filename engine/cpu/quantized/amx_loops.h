/* amx_loops.h: rows of bytes times packed weights by tiles (vectors/amx.h). A tile of x is 16 rows
 * of 16 groups of four bytes, as they lie where all are equally far apart, else copied; one of
 * weights is 16 groups of a panel as they lie, so packs are those of other kernels; sums are exact,
 * so the bits are theirs too. */
#ifndef TD_CPU_QUANTIZED_AMX_LOOPS_H
#define TD_CPU_QUANTIZED_AMX_LOOPS_H

#include "engine/cpu/quantized/quantized_kernels.h"
#include "engine/cpu/vectors/amx.h"

#include <stdbool.h>
#include <string.h>

#ifdef TD_AMX_TARGET

enum {
    AMX_PANEL_STEP = TD_AMX_ROW_BYTES,
    FOUR_BYTES = 4
}; /* bytes of a group: of a panel, of a row */

/* Tiles 0 and 1 have the sums of the upper 16 rows with two panels, 2 and 3 those of the lower
 * rows; 4 and 5 have the upper and lower rows of x, 6 and 7 the panels. */
static inline void amx_shape(td_amx_config *config, int tile, int rows) {
    config->rows[tile] = (uint8_t)rows;
    config->row_bytes[tile] = rows ? TD_AMX_ROW_BYTES : 0;
}

TD_AMX_TARGET static void amx_configure(int rows) {
    td_amx_config config = {.palette = 1};
    const int upper = rows < TD_AMX_ROWS ? rows : TD_AMX_ROWS;
    for (int k = 0; k < 2; k++) {
        amx_shape(&config, k, upper);
        amx_shape(&config, 2 + k, rows - upper);
        amx_shape(&config, 4 + k, k ? rows - upper : upper);
        amx_shape(&config, 6 + k, TD_AMX_GROUPS);
    }
    TD_AMX_WRITTEN(&config);
    TD_AMX_CONFIGURE(&config);
}

TD_AMX_TARGET static void amx_release(void) {
    TD_AMX_RELEASE();
}

/* 16 groups; `apart`: bytes from a panel to the next. */
TD_AMX_TARGET static inline __attribute__((always_inline)) void
amx_step(const uint8_t *x, int64_t step, const int8_t *w, int64_t apart, const bool lower,
         const bool two) {
    TD_AMX_LOAD(6, w, AMX_PANEL_STEP);
    TD_AMX_LOAD(4, x, step);
    TD_AMX_ADD_FOURS(0, 4, 6);
    if (two) {
        TD_AMX_LOAD(7, w + apart, AMX_PANEL_STEP);
        TD_AMX_ADD_FOURS(1, 4, 7);
    }
    if (lower) {
        TD_AMX_LOAD(5, x + TD_AMX_ROWS * step, step);
        TD_AMX_ADD_FOURS(2, 5, 6);
        if (two)
            TD_AMX_ADD_FOURS(3, 5, 7);
    }
}

/* How far apart the rows of a part lie; 0 where that is not the same for all. */
static inline int64_t amx_distance(const td_byte_tile *t, const td_byte_part *part) {
    const uintptr_t first = (uintptr_t)td_byte_tile_part(t, 0, part);
    if (t->rows == 1)
        return TD_AMX_ROW_BYTES;
    const int64_t apart = (int64_t)((uintptr_t)td_byte_tile_part(t, 1, part) - first);
    for (int r = 2; r < t->rows; r++)
        if ((int64_t)((uintptr_t)td_byte_tile_part(t, r, part) - first) != r * apart)
            return 0;
    return apart;
}

/* The last `n` bytes of the rows of `copy` become those of a part's rows from `from` on; before
 * them there is 0. */
static inline void amx_copy(uint8_t *copy, const td_byte_tile *t, const td_byte_part *part,
                            int64_t from, int64_t n) {
    if (n < TD_AMX_ROW_BYTES)
        memset(copy, 0, (size_t)t->rows * TD_AMX_ROW_BYTES);
    for (int r = 0; r < t->rows; r++, copy += TD_AMX_ROW_BYTES)
        memcpy(copy + TD_AMX_ROW_BYTES - n, td_byte_tile_part(t, r, part) + from, (size_t)n);
    TD_AMX_WRITTEN(copy);
}

/* A part of the depth. The groups that are left over are multiplied as the last 16 of the panel,
 * those of them that came before by 0. */
TD_AMX_TARGET static inline __attribute__((always_inline)) void
amx_part(const td_byte_tile *t, const td_byte_part *part, int panel, uint8_t *copy,
         const bool lower, const bool two) {
    const int64_t apart = t->groups * AMX_PANEL_STEP, left = t->each % TD_AMX_GROUPS * FOUR_BYTES;
    const int8_t *w = t->weights + panel * apart + part->part * t->each * AMX_PANEL_STEP;
    const int64_t whole = t->each * FOUR_BYTES - left, distance = amx_distance(t, part);
    for (int64_t k = 0; k < whole; k += TD_AMX_ROW_BYTES) {
        const uint8_t *x = copy;
        if (distance)
            x = td_byte_tile_part(t, 0, part) + k;
        else
            amx_copy(copy, t, part, k, TD_AMX_ROW_BYTES);
        amx_step(x, distance ? distance : TD_AMX_ROW_BYTES, w + k * TD_AMX_GROUPS, apart, lower,
                 two);
    }
    if (left) {
        amx_copy(copy, t, part, whole, left);
        amx_step(copy, TD_AMX_ROW_BYTES, w + (t->each - TD_AMX_GROUPS) * AMX_PANEL_STEP, apart,
                 lower, two);
    }
}

/* One panel of a byte tile, or two. */
TD_AMX_TARGET static inline __attribute__((always_inline)) void
amx_panels(const td_byte_tile *t, int panel, uint8_t *copy, const bool lower, const bool two) {
    const int64_t width = (int64_t)t->panels * 16, row = width * (int64_t)sizeof(int32_t);
    int32_t *sums = t->sums + (int64_t)panel * 16;
    TD_AMX_ZERO(0);
    if (two)
        TD_AMX_ZERO(1);
    if (lower) {
        TD_AMX_ZERO(2);
        if (two)
            TD_AMX_ZERO(3);
    }
    for (int64_t k = 0; k < t->count; k++)
        amx_part(t, &t->which[k], panel, copy, lower, two);
    TD_AMX_STORE(0, sums, row);
    if (two)
        TD_AMX_STORE(1, sums + 16, row);
    if (lower) {
        TD_AMX_STORE(2, sums + TD_AMX_ROWS * width, row);
        if (two)
            TD_AMX_STORE(3, sums + TD_AMX_ROWS * width + 16, row);
    }
}

TD_AMX_TARGET static void amx_tile(const td_byte_tile *t) {
    _Alignas(64) uint8_t copy[TD_AMX_TILE_ROWS * TD_AMX_ROW_BYTES];
    const bool lower = t->rows > TD_AMX_ROWS;
    for (int p = 0; p < t->panels; p += 2) {
        if (t->panels - p > 1 && lower)
            amx_panels(t, p, copy, true, true);
        else if (t->panels - p > 1)
            amx_panels(t, p, copy, false, true);
        else
            amx_panels(t, p, copy, lower, false);
    }
}

#endif

#endif
