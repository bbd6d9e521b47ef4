/* planes.c: interleaved pixels into planes anywhere; see planes.h. */
#include "lua-bindings/images/planes.h"

#include <string.h>

/* Grey of red, green and blue in 16 bits of fraction, as Pillow rounds it. */
static inline unsigned char brightness(const unsigned char *at) {
    enum { RED = 19595, GREEN = 38470, BLUE = 7471, HALF = 1 << 15 };
    return (unsigned char)((at[0] * RED + at[1] * GREEN + at[2] * BLUE + HALF) >> 16);
}

enum { BRIGHTNESS = -1, OPAQUE = -2 };

/* Which channel of the pixels becomes channel `c` of `want`. */
static int source_of(int have, int want, int c) {
    bool clear = want == 2 || want == 4;
    if (clear && c == want - 1)
        return have == 2 || have == 4 ? have - 1 : OPAQUE;
    return have <= 2 ? 0 : want <= 2 ? BRIGHTNESS : c;
}

static void fill_row(const unsigned char *from, int have, int source, int64_t n, unsigned char *to,
                     int64_t step) {
    if (source == OPAQUE)
        for (int64_t x = 0; x < n; x++)
            to[x * step] = 255;
    else if (source == BRIGHTNESS)
        for (int64_t x = 0; x < n; x++)
            to[x * step] = brightness(from + x * have);
    else if (step == 1)
        for (int64_t x = 0; x < n; x++)
            to[x] = from[x * have + source];
    else
        for (int64_t x = 0; x < n; x++)
            to[x * step] = from[x * have + source];
}

enum { BLOCK = 16 };
typedef unsigned char block __attribute__((vector_size(BLOCK)));

/* BLOCK pixels of red, green and blue: interleaving the halves of three vectors four times, each
 * with the other half of another, is all of it. */
static void split_block(const unsigned char *from, unsigned char *const to[3], int64_t x) {
    block v[3], next[3];
    memcpy(v, from, sizeof v);
    for (int turn = 0; turn < 4; turn++) {
        next[0] = __builtin_shufflevector(v[0], v[1], 0, 24, 1, 25, 2, 26, 3, 27, 4, 28, 5, 29, 6,
                                          30, 7, 31);
        next[1] = __builtin_shufflevector(v[0], v[2], 8, 16, 9, 17, 10, 18, 11, 19, 12, 20, 13, 21,
                                          14, 22, 15, 23);
        next[2] = __builtin_shufflevector(v[1], v[2], 0, 24, 1, 25, 2, 26, 3, 27, 4, 28, 5, 29, 6,
                                          30, 7, 31);
        memcpy(v, next, sizeof v);
    }
    for (int c = 0; c < 3; c++)
        memcpy(to[c] + x, &v[c], BLOCK);
}

/* A row of n pixels, BLOCK at least, into three rows; the last block is split again in part. */
static void split_row(const unsigned char *from, int64_t n, unsigned char *to, int64_t channel) {
    unsigned char *const rows[] = {to, to + channel, to + 2 * channel};
    for (int64_t x = 0; x < n; x += BLOCK) {
        int64_t at = x + BLOCK <= n ? x : n - BLOCK;
        split_block(from + 3 * at, rows, at);
    }
}

/* Where the file's pixel (0, 0) lies, and the steps from it: from orientation 5 on its rows are
 * columns, and a side may be read from its end. */
static void turn(tide_planes *to, int orientation, int64_t width, int64_t height) {
    static const bool flips_x[] = {0, 1, 1, 0, 0, 0, 1, 1}, flips_y[] = {0, 0, 1, 1, 0, 1, 1, 0};
    if (orientation > 4) {
        int64_t x = to->x;
        to->x = to->y;
        to->y = x;
    }
    if (flips_x[orientation - 1]) {
        to->at += (width - 1) * to->x;
        to->x = -to->x;
    }
    if (flips_y[orientation - 1]) {
        to->at += (height - 1) * to->y;
        to->y = -to->y;
    }
}

void tide_fill_planes(const unsigned char *from, const tide_image *image, tide_planes to) {
    int have = image->channels;
    int64_t n = image->width;
    turn(&to, image->orientation, image->width, image->height);
    bool blocks = have == 3 && to.channels == 3 && to.x == 1 && n >= BLOCK;
    for (int64_t y = 0; y < image->height; y++) {
        const unsigned char *row = from + y * n * have;
        unsigned char *at = to.at + y * to.y;
        if (blocks)
            split_row(row, n, at, to.channel);
        for (int c = 0; !blocks && c < to.channels; c++)
            fill_row(row, have, source_of(have, to.channels, c), n, at + c * to.channel, to.x);
    }
}
