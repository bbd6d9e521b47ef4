/* sort_short.c: short lines in order, side by side: a tile of them is turned, so that a vector
 * holds the k-th elements of several, and the same pairs of places are compared in all (Batcher's
 * odd-even merges). Keys of up to 32 bits go with their places as one number; longer ones have the
 * places beside them. */
#include "engine/cpu/order/sort_short.h"

#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/limits.h"
#include "engine/cpu/order/keys.h"
#include "engine/cpu/pointwise/transpose.h"

#include <string.h>

enum {
    SHORT = 48,     /* elements of a line */
    WIDTH = 64,     /* lines of a tile at most, of elements */
    TILE = 32 * 64, /* so many at most, and half of both where keys and places are two numbers, so
                     * that all stay in the cache */
    COST = 8        /* of an element */
};

/* Signed numbers are compared: those are what all sets have an instruction for. */
static const uint64_t SIGN = (uint64_t)1 << 63;

static bool is_wide(const td_short_lines *l) {
    return td_key_bits(l->dtype) > 32;
}

/* Few lines are a tile that is no wider than they need. */
static int64_t width_of(const td_short_lines *l) {
    int64_t width = (l->n * WIDTH > TILE ? WIDTH / 2 : WIDTH) / (is_wide(l) ? 2 : 1);
    while (width > TD_LIMIT(SORT_NETWORK_LINES) && width / 2 >= l->lines)
        width /= 2;
    return width;
}

bool td_are_short_lines(const td_short_lines *l) {
    return l->n <= SHORT && l->lines >= TD_LIMIT(SORT_NETWORK_LINES) && td_cpu->keys->order;
}

/* Keys of the tile's elements, in rows of one place each, become the keys and places of sorted
 * columns. */
static void order_narrow(uint64_t *keys, uint64_t *places, int64_t n, int64_t first,
                         int64_t width) {
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < width; c++)
            keys[r * width + c] = (keys[r * width + c] << 32 | (uint64_t)r) ^ SIGN;
    td_cpu->keys->order((int64_t *)keys, n, width);
    for (int64_t k = 0; k < first * width; k++) {
        places[k] = keys[k] & UINT32_MAX;
        keys[k] = (keys[k] ^ SIGN) >> 32;
    }
}

static void order_wide(uint64_t *keys, uint64_t *places, int64_t n, int64_t first, int64_t width) {
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < width; c++) {
            keys[r * width + c] ^= SIGN;
            places[r * width + c] = (uint64_t)r;
        }
    td_cpu->keys->order_wide((int64_t *)keys, (int64_t *)places, n, width);
    for (int64_t k = 0; k < first * width; k++)
        keys[k] ^= SIGN;
}

/* `lines` lines from one on: no more than the width of a tile. */
static void sort_tile(const td_short_lines *l, int64_t line, int64_t lines) {
    _Alignas(64) char x[TILE * 4], values[TILE * 4];
    _Alignas(64) uint64_t keys[TILE], places[TILE];
    int64_t at[WIDTH], n = l->n, first = l->first, width = width_of(l);
    const int64_t size = (int64_t)td_dtype_size(l->dtype);
    if (lines < width) /* the rest of each row is sorted as well */
        memset(x, 0, (size_t)(n * width * size));
    td_cpu_turn(x, width, l->x + line * n * size, n, n, lines, (size_t)size);
    td_keys_read(l->dtype, x, n * width, l->descending, keys);
    (is_wide(l) ? order_wide : order_narrow)(keys, places, n, first, width);
    for (int64_t r = 0; r < first && l->values; r++) {
        for (int64_t c = 0; c < width; c++)
            at[c] = (int64_t)places[r * width + c] * width + c;
        td_keys_write(l->dtype, keys + r * width, at, width, l->descending, x,
                      values + r * width * size);
    }
    if (l->values)
        td_cpu_turn(l->values + line * first * size, first, values, width, lines, first,
                    (size_t)size);
    if (l->index)
        td_cpu_turn(l->index + line * first, first, places, width, lines, first, sizeof *places);
}

static void sort_tiles(void *ctx, int64_t begin, int64_t end, int worker) {
    const td_short_lines *l = ctx;
    int64_t width = width_of(l);
    (void)worker;
    for (int64_t line = begin * width; line < end * width && line < l->lines; line += width)
        sort_tile(l, line, l->lines - line < width ? l->lines - line : width);
}

td_status td_sort_short(const td_short_lines *l) {
    int64_t width = width_of(l);
    return td_parallel_for((l->lines + width - 1) / width, COST * l->n * width, sort_tiles,
                           (void *)l);
}
