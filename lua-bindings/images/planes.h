/* planes.h: where the pixels of a picture are to lie, and its way there. */
#ifndef TIDE_LUA_IMAGES_PLANES_H
#define TIDE_LUA_IMAGES_PLANES_H

#include "lua-bindings/images/images.h"

typedef struct tide_planes {
    unsigned char *at;     /* of the first pixel's first channel */
    int64_t channel, y, x; /* steps in bytes */
    int channels;          /* wanted: 1 to 4, as in tide_image */
} tide_planes;

/* Write the interleaved pixels of an image, turned as its orientation says (from 5 on the planes
 * are as high as the image is wide). Colours become grey as Pillow makes it; alpha that the image
 * has not is 255, alpha that is not wanted is dropped. */
void tide_fill_planes(const unsigned char *from, const tide_image *image, tide_planes to);

#endif
