/* planes.c: interleaved pixels into planes anywhere; see planes.h. */
#include "lua-bindings/images/planes.h"

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
    turn(&to, image->orientation, image->width, image->height);
    for (int64_t y = 0; y < image->height; y++)
        for (int c = 0; c < to.channels; c++)
            fill_row(from + y * image->width * image->channels, image->channels,
                     source_of(image->channels, to.channels, c), image->width,
                     to.at + c * to.channel + y * to.y, to.x);
}
