/* resize.c: uint8 planes at another size; see resize.h.
 *
 * Weights are integers of 16 bits with as many bits of fraction as the largest leaves room for, so
 * that a tap is a product of 16 bits added in 32. Both passes are one loop (mix): LANES pixels of
 * neighbouring columns get the weighted sum of some rows. For the pass along rows, LANES rows are
 * turned into columns, mixed, and turned back, in blocks that vectors hold.
 */
#include "lua-bindings/images/resize.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 32 /* more than a compiler unrolls before it vectorises */,
    BLOCK = 16,
    MOST_BITS = 22
};

/* Pixel k of the result is the sum of `count` pixels from `first` on by the weights behind k *
 * most. */
typedef struct side {
    int64_t from, to, most; /* most: weights of a pixel at most */
    int32_t *first, *count;
    int16_t *weights;
    int bits; /* of fraction */
} side;

struct tide_resize {
    side x, y;
    tide_filter filter;
    unsigned char *columns, *mixed,
        *rows; /* LANES rows turned, the same mixed; the plane between */
};

/* ---- weights ---- */

static double filter_at(tide_filter filter, double x) {
    const double a = -0.5; /* of Keys's cubic, as Pillow has it */
    x = fabs(x);
    if (filter == TIDE_BILINEAR)
        return x < 1 ? 1 - x : 0;
    if (x < 1)
        return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/* The pixels that count for pixel k, and how much, adding up to 1; returns the largest weight. */
static double weigh(side *s, tide_filter filter, int64_t k, double *weights) {
    double step = (double)s->from / (double)s->to, wide = step > 1 ? step : 1;
    double support = (filter == TIDE_BICUBIC ? 2 : 1) * wide, centre = ((double)k + 0.5) * step;
    int64_t first = (int64_t)(centre - support + 0.5), end = (int64_t)(centre + support + 0.5);
    double sum = 0, largest = 0;
    first = first < 0 || centre - support + 0.5 < 0 ? 0 : first;
    end = end > s->from ? s->from : end;
    for (int64_t x = first; x < end; x++)
        sum += weights[x - first] = filter_at(filter, ((double)x - centre + 0.5) / wide);
    for (int64_t x = 0; x < end - first; x++) {
        weights[x] /= sum;
        largest = fmax(largest, fabs(weights[x]));
    }
    s->first[k] = (int32_t)first;
    s->count[k] = (int32_t)(end - first);
    return largest;
}

static void round_weights(side *s, const double *weights, double largest) {
    s->bits = 0;
    while (s->bits < MOST_BITS && largest * (double)(1 << (s->bits + 1)) + 0.5 < 32768)
        s->bits++;
    for (int64_t k = 0; k < s->to * s->most; k++)
        s->weights[k] = (int16_t)lrint(weights[k] * (double)(1 << s->bits));
}

static void choose_nearest(side *s) {
    for (int64_t k = 0; k < s->to; k++)
        s->first[k] = (int32_t)((double)k * ((double)s->from / (double)s->to));
}

static bool make_side(side *s, int64_t from, int64_t to, tide_filter filter) {
    double step = (double)from / (double)to, largest = 0;
    *s = (side){.from = from, .to = to};
    s->most = 2 * (int64_t)ceil((filter == TIDE_BICUBIC ? 2 : 1) * (step > 1 ? step : 1)) + 1;
    s->first = malloc((size_t)to * sizeof *s->first);
    s->count = malloc((size_t)to * sizeof *s->count);
    if (filter == TIDE_NEAREST) {
        if (s->first)
            choose_nearest(s);
        return s->first && s->count;
    }
    s->weights = malloc((size_t)(to * s->most) * sizeof *s->weights);
    double *weights = calloc((size_t)(to * s->most), sizeof *weights);
    bool made = s->first && s->count && s->weights && weights;
    for (int64_t k = 0; made && k < to; k++)
        largest = fmax(largest, weigh(s, filter, k, weights + k * s->most));
    if (made)
        round_weights(s, weights, largest);
    free(weights);
    return made;
}

static void free_side(side *s) {
    free(s->first);
    free(s->count);
    free(s->weights);
}

tide_resize *tide_resize_new(int64_t width, int64_t height, int64_t to_width, int64_t to_height,
                             tide_filter filter) {
    tide_resize *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->filter = filter;
    bool made = make_side(&r->x, width, to_width, filter);
    made = make_side(&r->y, height, to_height, filter) && made;
    r->columns = calloc((size_t)width, LANES); /* lanes without a row are mixed too */
    r->mixed = malloc((size_t)to_width * LANES);
    r->rows = malloc((size_t)height * (size_t)to_width);
    if (made && r->columns && r->mixed && r->rows)
        return r;
    tide_resize_free(r);
    return NULL;
}

void tide_resize_free(tide_resize *r) {
    if (!r)
        return;
    free_side(&r->x);
    free_side(&r->y);
    free(r->columns);
    free(r->mixed);
    free(r->rows);
    free(r);
}

/* ---- pixels ---- */

static inline unsigned char clamp(int value) {
    return (unsigned char)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static inline void mix_lanes(const unsigned char *from, int64_t step, const int16_t *weights,
                             int count, int bits, unsigned char *to, int lanes) {
    int sums[LANES];
    for (int l = 0; l < lanes; l++)
        sums[l] = 1 << bits >> 1;
    for (int t = 0; t < count; t++, from += step)
        for (int l = 0; l < lanes; l++)
            sums[l] += (int16_t)from[l] * weights[t];
    for (int l = 0; l < lanes; l++)
        to[l] = clamp(sums[l] >> bits);
}

/* Pixel k of side `s`, for n neighbours at once: `step` bytes lie between the pixels of the side.
 * The last lanes are mixed twice where n is no multiple. */
static void mix(const side *s, int64_t k, const unsigned char *from, int64_t step,
                unsigned char *to, int64_t n) {
    const int16_t *weights = s->weights + k * s->most;
    int count = s->count[k];
    from += s->first[k] * step;
    if (n < LANES) {
        mix_lanes(from, step, weights, count, s->bits, to, (int)n);
        return;
    }
    for (int64_t x = 0; x < n; x += LANES) {
        int64_t at = x + LANES <= n ? x : n - LANES;
        mix_lanes(from + at, step, weights, count, s->bits, to + at, LANES);
    }
}

typedef unsigned char block __attribute__((vector_size(BLOCK)));

/* BLOCK x BLOCK bytes, rows becoming columns: interleaving halves four times is all of it. */
static void turn_block(const unsigned char *from, int64_t from_step, unsigned char *to,
                       int64_t to_step) {
    block rows[BLOCK], next[BLOCK];
    for (int k = 0; k < BLOCK; k++)
        memcpy(&rows[k], from + k * from_step, BLOCK);
    for (int turn = 0; turn < 4; turn++) {
        for (int k = 0; k < BLOCK / 2; k++) {
            block a = rows[k], b = rows[k + BLOCK / 2];
            next[2 * k] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6,
                                                  22, 7, 23);
            next[2 * k + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                                      13, 29, 14, 30, 15, 31);
        }
        memcpy(rows, next, sizeof rows);
    }
    for (int k = 0; k < BLOCK; k++)
        memcpy(to + k * to_step, &rows[k], BLOCK);
}

/* Rows of `width` bytes as columns, `n` of them; the last blocks are turned again in part where
 * either is no multiple. Both are at least BLOCK. */
static void turn_blocks(const unsigned char *from, int64_t from_step, int64_t width,
                        unsigned char *to, int64_t to_step, int64_t n) {
    for (int64_t y = 0; y < n; y += BLOCK)
        for (int64_t x = 0; x < width; x += BLOCK) {
            int64_t row = y + BLOCK <= n ? y : n - BLOCK;
            int64_t column = x + BLOCK <= width ? x : width - BLOCK;
            turn_block(from + row * from_step + column, from_step, to + column * to_step + row,
                       to_step);
        }
}

/* `n` rows from `y` on as columns of LANES. */
static void turn_rows(tide_plane from, int64_t y, int n, unsigned char *columns) {
    const unsigned char *first = from.at + y * from.y;
    if (from.x == 1 && from.width >= BLOCK && n >= BLOCK) {
        turn_blocks(first, from.y, from.width, columns, LANES, n);
        return;
    }
    for (int l = 0; l < n; l++)
        for (int64_t x = 0; x < from.width; x++)
            columns[x * LANES + l] = first[l * from.y + x * from.x];
}

static void turn_back(const unsigned char *columns, int64_t width, unsigned char *rows, int n) {
    if (width >= BLOCK && n >= BLOCK) {
        turn_blocks(columns, LANES, n, rows, width, width);
        return;
    }
    for (int l = 0; l < n; l++)
        for (int64_t x = 0; x < width; x++)
            rows[l * width + x] = columns[x * LANES + l];
}

static void mix_rows(tide_resize *r, tide_plane from) {
    int64_t width = r->x.to;
    for (int64_t y = 0; y < from.height; y += LANES) {
        int n = from.height - y < LANES ? (int)(from.height - y) : LANES;
        turn_rows(from, y, n, r->columns);
        for (int64_t x = 0; x < width; x++)
            mix(&r->x, x, r->columns, LANES, r->mixed + x * LANES, LANES);
        turn_back(r->mixed, width, r->rows + y * width, n);
    }
}

static void pick_nearest(const tide_resize *r, tide_plane from, tide_plane to) {
    for (int64_t y = 0; y < to.height; y++) {
        const unsigned char *row = from.at + r->y.first[y] * from.y;
        for (int64_t x = 0; x < to.width; x++)
            to.at[y * to.y + x] = row[r->x.first[x] * from.x];
    }
}

void tide_resize_plane(tide_resize *r, tide_plane from, tide_plane to) {
    if (r->filter == TIDE_NEAREST) {
        pick_nearest(r, from, to);
        return;
    }
    mix_rows(r, from);
    for (int64_t y = 0; y < to.height; y++)
        mix(&r->y, y, r->rows, to.width, to.at + y * to.y, to.width);
}
