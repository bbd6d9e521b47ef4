/* images.h: what the formats of image files share. A format reads the bytes of a file and gives
 * rows of interleaved uint8 pixels; whatever else is wanted (planes, channels, orientation) is made
 * of them in one place (images.c). Nothing here knows Lua, and nothing of a file is believed before
 * it is checked against the file's length.
 */
#ifndef TIDE_LUA_IMAGES_IMAGES_H
#define TIDE_LUA_IMAGES_IMAGES_H

#include "engine/core/status.h"

typedef struct tide_image {
    const unsigned char *bytes; /* of the file, borrowed */
    size_t size;
    int scale; /* each side is divided by it, rounded up, where the format can: 1, 2, 4, 8 */
    bool grey; /* brightness alone is wanted: a format that has it may give one channel */
    int64_t width, height;
    int channels;    /* 1: grey, 2: grey and alpha, 3: RGB, 4: RGB and alpha */
    bool opaque;     /* an alpha of the format's own making, which no file has */
    int orientation; /* EXIF's, 1 to 8; 1 where there is none */
} tide_image;

typedef struct tide_image_format {
    const char *name;
    bool (*matches)(const unsigned char *bytes, size_t size);
    /* Sets width, height, channels and orientation. EVALUE. */
    td_status (*read_head)(tide_image *image);
    /* Writes height rows of width pixels without gaps. EVALUE, EIO (a library is missing), ENOMEM.
     */
    td_status (*read_pixels)(const tide_image *image, unsigned char *to);
} tide_image_format;

extern const tide_image_format tide_png_format, tide_jpeg_format;

/* Pixels as the bytes of a file, at `to` with room for `*size`, which becomes what they take;
 * ..._most is how much they take at most. EVALUE, EIO, ENOMEM. */
size_t tide_png_most(int64_t width, int64_t height, int channels);
td_status tide_png_encode(const unsigned char *pixels, int64_t width, int64_t height, int channels,
                          char *to, size_t *size) TD_MUST_CHECK;
td_status tide_jpeg_most(int64_t width, int64_t height, size_t *most) TD_MUST_CHECK;
td_status tide_jpeg_encode(const unsigned char *pixels, int64_t width, int64_t height, int channels,
                           int quality, char *to, size_t *size) TD_MUST_CHECK;

/* The orientation that a block of EXIF's has (a TIFF header and its first directory); 1 where none
 * is in it. */
int tide_exif_orientation(const unsigned char *block, size_t size);

/* Functions of a library that is opened at first use. `table` gets a pointer for each name behind
 * `prefix`; names are separated by blanks. EIO where the library or one of them is not there. */
typedef struct tide_late_library {
    const char *file, *prefix, *names;
    void *table;
    _Atomic int state; /* 0 at first */
} tide_late_library;

td_status tide_open_late(tide_late_library *library) TD_MUST_CHECK;

static inline unsigned tide_big16(const unsigned char *at) {
    return (unsigned)at[0] << 8 | at[1];
}
static inline uint32_t tide_big32(const unsigned char *at) {
    return (uint32_t)tide_big16(at) << 16 | tide_big16(at + 2);
}

#endif
