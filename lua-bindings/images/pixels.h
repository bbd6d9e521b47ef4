/* pixels.h: work on planes of uint8 that knows no size but that of its planes: colours, numbers,
 * and places. Values are torchvision's on uint8. */
#ifndef TIDE_LUA_IMAGES_PIXELS_H
#define TIDE_LUA_IMAGES_PIXELS_H

#include "lua-bindings/images/resize.h"

/* An image in rows without gaps, `plane` bytes between the planes of 1 or 3 channels. */
typedef struct tide_pixels {
    unsigned char *at;
    int64_t n; /* pixels of a plane */
    int channels;
} tide_pixels;

typedef enum tide_adjustment {
    TIDE_BRIGHTNESS, /* times the factor */
    TIDE_CONTRAST,   /* towards, or away from, the mean of the grey image */
    TIDE_SATURATION, /* towards, or away from, the grey image */
    TIDE_HUE         /* turned by the factor, of a whole turn */
} tide_adjustment;

/* Change an image in place; with one channel saturation and hue change nothing. */
void tide_adjust(tide_pixels x, tide_adjustment what, float factor);

/* to[k] = at[k] * scale + shift, n of them. */
void tide_normalize(const unsigned char *at, int64_t n, float scale, float shift, float *to);

/* Where pixel (x, y) of the result comes from, both counted from the middle: (m[0] x + m[1] y +
 * m[2], m[3] x + m[4] y + m[5]). `smooth`: between four pixels, or else the nearest; what lies
 * outside is `fill`. */
void tide_warp_plane(tide_plane from, tide_plane to, const double m[6], bool smooth, int fill);

#endif
