/* resize.h: planes of uint8 at another size. */
#ifndef TIDE_LUA_IMAGES_RESIZE_H
#define TIDE_LUA_IMAGES_RESIZE_H

#include "engine/core/status.h"

typedef enum tide_filter { TIDE_NEAREST, TIDE_BILINEAR, TIDE_BICUBIC } tide_filter;

/* A plane: `x` and `y` are the steps in bytes between neighbours of a row and between rows. */
typedef struct tide_plane {
    unsigned char *at;
    int64_t width, height, x, y;
} tide_plane;

/* Which pixels of a side become which, worked out once for all planes. */
typedef struct tide_resize tide_resize;

/* NULL: out of memory. Sides are at least 1 and below 2^24. */
tide_resize *tide_resize_new(int64_t width, int64_t height, int64_t to_width, int64_t to_height,
                             tide_filter filter);
void tide_resize_free(tide_resize *r);

/* Resize a plane of the first size into one of the second, whose `x` is 1. Rows first, then
 * columns, with uint8 in between, and where the image gets smaller the filter as wide as the step
 * (antialiased), by Pillow's formulas: values are torchvision's on uint8 to the bit, and within 1
 * of Pillow's wherever that begins with the rows too. */
void tide_resize_plane(tide_resize *r, tide_plane from, tide_plane to);

#endif
