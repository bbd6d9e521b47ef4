/* png.c: PNG files by libpng, which is opened at first use. What it would print or exit for becomes
 * a status: its errors jump to a frame of this file's own, never through anybody else's.
 *
 * Samples of 16 bits keep their upper 8, palettes become the colours that they stand for, and gamma
 * is left alone, as Pillow and torchvision have it. Every checksum counts.
 */
#include "lua-bindings/images/images.h"

#include <png.h>
#include <setjmp.h>
#include <string.h>

/* clang-format off */
#define PNG_CALLS(X)                                                                               \
    X(create_read_struct) X(create_info_struct) X(destroy_read_struct) X(set_read_fn)              \
    X(get_io_ptr) X(get_error_ptr) X(set_crc_action) X(set_user_limits) X(read_info)               \
    X(set_expand) X(set_strip_16) X(set_interlace_handling) X(read_update_info) X(get_rowbytes)    \
    X(read_row) X(read_end) X(error) X(image_write_to_memory)
/* clang-format on */

static struct {
#define PNG_FIELD(name) __typeof__(png_##name) *name;
    PNG_CALLS(PNG_FIELD)
#undef PNG_FIELD
} png;

#define PNG_NAME(name) #name " "
static tide_late_library libpng = {
    .file = "libpng16.so.16", .prefix = "png_", .names = PNG_CALLS(PNG_NAME), .table = &png};

static const unsigned char signature[] = "\x89PNG\r\n\x1A\n";
enum { SIGNATURE = 8, CHUNK = 12 /* length, type, checksum */, HEADER = 13 };

static bool is_png(const unsigned char *bytes, size_t size) {
    return size >= SIGNATURE && !memcmp(bytes, signature, SIGNATURE);
}

/* ---- the head ---- */

/* What chunks in front of the pixels say. */
static void read_chunk(tide_image *image, const unsigned char *type, const unsigned char *at,
                       size_t size, bool *clear) {
    if (!memcmp(type, "tRNS", 4))
        *clear = true;
    else if (!memcmp(type, "eXIf", 4))
        image->orientation = tide_exif_orientation(at, size);
}

static td_status read_head(tide_image *image) {
    static const int channels[] = {1, 0, 3, 3, 2, 0, 4};
    const unsigned char *at = image->bytes + SIGNATURE, *end = image->bytes + image->size;
    if (end - at < CHUNK + HEADER || tide_big32(at) != HEADER || memcmp(at + 4, "IHDR", 4) != 0)
        return td_fail(TD_EVALUE, "cut off, or no PNG file: it does not begin with its header");
    int type = at[17];
    bool clear = false;
    image->width = tide_big32(at + 8);
    image->height = tide_big32(at + 12);
    image->channels = type < 7 ? channels[type] : 0;
    if (!image->width || !image->height || !image->channels)
        return td_fail(TD_EVALUE, "damaged: %lld x %lld pixels of colour type %d",
                       (long long)image->width, (long long)image->height, type);
    for (at += CHUNK + HEADER; end - at >= CHUNK && memcmp(at + 4, "IDAT", 4) != 0;) {
        size_t size = tide_big32(at);
        if (size > (size_t)(end - at) - CHUNK)
            break; /* libpng says what is wrong with it */
        read_chunk(image, at + 4, at + 8, size, &clear);
        at += CHUNK + size;
    }
    image->channels += clear && type < 4;
    return TD_OK;
}

/* ---- pixels ---- */

typedef struct reader {
    const tide_image *image;
    size_t at; /* of the file's bytes */
    td_status status;
    png_structp png;
    png_infop info;
    jmp_buf out;
} reader;

static void on_error(png_structp p, png_const_charp message) {
    reader *r = png.get_error_ptr(p);
    r->status = td_fail(TD_EVALUE, "%s", message);
    longjmp(r->out, 1);
}

static void on_warning(png_structp p, png_const_charp message) {
    (void)p;
    (void)message;
}

static void give_bytes(png_structp p, png_bytep to, size_t n) {
    reader *r = png.get_io_ptr(p);
    if (n > r->image->size - r->at)
        png.error(p, "cut off");
    memcpy(to, r->image->bytes + r->at, n);
    r->at += n;
}

static void begin(reader *r) {
    const png_uint_32 most = 0x7FFFFFFF;
    png.set_crc_action(r->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png.set_user_limits(r->png, most, most); /* the pixels were counted already */
    png.set_read_fn(r->png, r, give_bytes);
    png.read_info(r->png, r->info);
    png.set_expand(r->png);
    png.set_strip_16(r->png);
}

/* Interlaced rows come several times, and keep what is not in the pass. */
static void read_rows(reader *r, unsigned char *to) {
    size_t row = (size_t)r->image->width * (size_t)r->image->channels;
    int passes = png.set_interlace_handling(r->png);
    png.read_update_info(r->png, r->info);
    if (png.get_rowbytes(r->png, r->info) != row)
        png.error(r->png, "damaged: its chunks do not agree on the channels");
    for (int pass = 0; pass < passes; pass++)
        for (int64_t y = 0; y < r->image->height; y++)
            png.read_row(r->png, to + (size_t)y * row, NULL);
    png.read_end(r->png, NULL);
}

static td_status read_all(reader *r, unsigned char *to) {
    if (setjmp(r->out))
        return r->status;
    begin(r);
    read_rows(r, to);
    return TD_OK;
}

static td_status read_pixels(const tide_image *image, unsigned char *to) {
    reader r = {.image = image};
    td_status status = tide_open_late(&libpng);
    if (status)
        return status;
    r.png = png.create_read_struct(PNG_LIBPNG_VER_STRING, &r, on_error, on_warning);
    r.info = r.png ? png.create_info_struct(r.png) : NULL;
    status = r.info ? read_all(&r, to) : td_fail(TD_ENOMEM, "out of memory");
    png.destroy_read_struct(&r.png, &r.info, NULL);
    return status;
}

const tide_image_format tide_png_format = {"PNG", is_png, read_head, read_pixels};

/* ---- writing ---- */

static png_image image_of(int64_t width, int64_t height, int channels) {
    static const png_uint_32 formats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                          PNG_FORMAT_RGBA};
    return (png_image){.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)width,
                       .height = (png_uint_32)height,
                       .format = formats[channels - 1]};
}

size_t tide_png_most(int64_t width, int64_t height, int channels) {
    png_image image = image_of(width, height, channels);
    return PNG_IMAGE_PNG_SIZE_MAX(image);
}

td_status tide_png_encode(const unsigned char *pixels, int64_t width, int64_t height, int channels,
                          char *to, size_t *size) {
    png_image image = image_of(width, height, channels);
    png_alloc_size_t taken = *size;
    td_status status = tide_open_late(&libpng);
    if (status)
        return status;
    if (!png.image_write_to_memory(&image, to, &taken, 0, pixels, 0, NULL))
        return td_fail(TD_EVALUE, "%s", image.message);
    *size = taken;
    return TD_OK;
}
