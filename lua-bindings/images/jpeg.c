/* jpeg.c: JPEG files by libturbojpeg, which is opened at first use. Files of inks (CMYK) become RGB
 * as Pillow and torchvision have it. What the library would warn of and go on from is an error,
 * since pixels are made up then, but for bytes between two parts of a file, which many cameras
 * leave there.
 */
#include "lua-bindings/images/images.h"

#include <string.h>
#include <turbojpeg.h>

/* clang-format off */
#define JPEG_CALLS(X)                                                                              \
    X(InitDecompress) X(InitCompress) X(DecompressHeader3) X(Decompress2) X(Compress2) X(BufSize)  \
    X(Destroy) X(GetErrorStr2)
/* clang-format on */

static struct {
#define JPEG_FIELD(name) __typeof__(tj##name) *name;
    JPEG_CALLS(JPEG_FIELD)
#undef JPEG_FIELD
} jpeg;

#define JPEG_NAME(name) #name " "
static tide_late_library libturbojpeg = {
    .file = "libturbojpeg.so.0", .prefix = "tj", .names = JPEG_CALLS(JPEG_NAME), .table = &jpeg};

static bool is_jpeg(const unsigned char *bytes, size_t size) {
    return size > 2 && !memcmp(bytes, "\xFF\xD8\xFF", 3);
}

/* ---- the head ---- */

enum { START_OF_FRAME = 0xC0, HUFFMAN = 0xC4, EXTENSION = 0xC8, ARITHMETIC = 0xCC, SCAN = 0xDA };
enum { IMAGE_END = 0xD9, RESTART = 0xD0, EXIF_PART = 0xE1, INKS = 4 };

static bool is_frame(int marker) {
    return marker >= START_OF_FRAME && marker < START_OF_FRAME + 16 && marker != HUFFMAN &&
           marker != EXTENSION && marker != ARITHMETIC;
}

/* The next marker behind `*at`, which moves behind it; 0: there is none. */
static int next_marker(const unsigned char **at, const unsigned char *end) {
    while (*at < end) {
        const unsigned char *found = memchr(*at, 0xFF, (size_t)(end - *at));
        if (!found)
            break;
        while (found < end && *found == 0xFF)
            found++;
        if (found == end)
            break;
        *at = found + 1;
        if (*found)
            return *found;
    }
    return 0;
}

/* A file of inks is decoded into four of them, and made three colours of behind it. */
static td_status read_frame(tide_image *image, const unsigned char *part, size_t size) {
    if (size < 6)
        return td_fail(TD_EVALUE, "cut off in its header");
    int64_t height = tide_big16(part + 1), width = tide_big16(part + 3);
    int parts = part[5];
    if (!width || !height || (parts != 1 && parts != 3 && parts != INKS))
        return td_fail(TD_EVALUE, "%lld x %lld pixels of %d channels are no image that is read",
                       (long long)width, (long long)height, parts);
    image->width = (width + image->scale - 1) / image->scale;
    image->height = (height + image->scale - 1) / image->scale;
    image->opaque = parts == INKS;
    image->channels = parts == 1 || (image->grey && parts == 3) ? 1 : parts;
    return TD_OK;
}

static bool has_length(int marker) {
    return marker != 1 && !(marker >= RESTART && marker < RESTART + 8);
}

static td_status read_head(tide_image *image) {
    static const char exif[] = "Exif\0";
    const unsigned char *at = image->bytes + 2, *end = image->bytes + image->size;
    int marker;
    while ((marker = next_marker(&at, end)) && marker != SCAN && marker != IMAGE_END) {
        if (!has_length(marker))
            continue;
        size_t size = end - at >= 2 ? tide_big16(at) : 0;
        if (size < 2 || size > (size_t)(end - at))
            break;
        if (is_frame(marker))
            return read_frame(image, at + 2, size - 2);
        if (marker == EXIF_PART && size > 8 && !memcmp(at + 2, exif, sizeof exif))
            image->orientation = tide_exif_orientation(at + 8, size - 8);
        at += size;
    }
    return td_fail(TD_EVALUE, "cut off, or damaged: no header with the image's size");
}

/* ---- pixels ---- */

static td_status fail_decoding(tjhandle handle) {
    return td_fail(TD_EVALUE, "%s", jpeg.GetErrorStr2(handle));
}

/* What a call that returned `code` comes to: of warnings one alone changes no pixel. */
static td_status judge(tjhandle handle, int code) {
    return !code || strstr(jpeg.GetErrorStr2(handle), "extraneous bytes") ? TD_OK
                                                                          : fail_decoding(handle);
}

/* Does the library see the picture that read_head saw? */
static td_status check_same(const tide_image *image, tjhandle handle) {
    int width, height, sampling, colours;
    td_status status = judge(handle, jpeg.DecompressHeader3(handle, image->bytes, image->size,
                                                            &width, &height, &sampling, &colours));
    if (status)
        return status;
    bool inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
    bool same = (width + image->scale - 1) / image->scale == image->width &&
                (height + image->scale - 1) / image->scale == image->height &&
                inks == (image->channels == INKS);
    return same ? TD_OK : td_fail(TD_EVALUE, "damaged: it has more than one header");
}

static td_status decode(const tide_image *image, tjhandle handle, unsigned char *to) {
    int format = image->channels == 1 ? TJPF_GRAY : image->channels == INKS ? TJPF_CMYK : TJPF_RGB;
    td_status status = check_same(image, handle);
    if (status)
        return status;
    return judge(handle, jpeg.Decompress2(handle, image->bytes, image->size, to, (int)image->width,
                                          0, (int)image->height, format, TJFLAG_LIMITSCANS));
}

/* Adobe's inks are kept as light: the colour times what black lets through. The fourth channel
 * becomes that of pixels that are wholly there. */
static void mix_inks(unsigned char *at, int64_t pixels) {
    for (; pixels > 0; pixels--, at += INKS) {
        for (int c = 0; c < 3; c++) {
            int dark = at[3] * (255 - at[c]) + 128;
            at[c] = (unsigned char)(at[3] - (((dark >> 8) + dark) >> 8));
        }
        at[3] = 255;
    }
}

static td_status read_pixels(const tide_image *image, unsigned char *to) {
    td_status status = tide_open_late(&libturbojpeg);
    if (status)
        return status;
    tjhandle handle = jpeg.InitDecompress();
    if (!handle)
        return td_fail(TD_ENOMEM, "out of memory");
    status = decode(image, handle, to);
    jpeg.Destroy(handle);
    if (status == TD_OK && image->channels == INKS)
        mix_inks(to, image->width * image->height);
    return status;
}

const tide_image_format tide_jpeg_format = {"JPEG", is_jpeg, read_head, read_pixels};

/* ---- writing ---- */

static int sampling_of(int channels) {
    return channels == 1 ? TJSAMP_GRAY : TJSAMP_420;
}

td_status tide_jpeg_most(int64_t width, int64_t height, size_t *most) {
    enum { MOST_OF_A_SIDE = 65500 };
    td_status status = tide_open_late(&libturbojpeg);
    if (status)
        return status;
    if (width > MOST_OF_A_SIDE || height > MOST_OF_A_SIDE)
        return td_fail(TD_EVALUE, "%lld x %lld: a JPEG file has at most %d pixels a side",
                       (long long)width, (long long)height, MOST_OF_A_SIDE);
    *most = jpeg.BufSize((int)width, (int)height, TJSAMP_444);
    return TD_OK;
}

td_status tide_jpeg_encode(const unsigned char *pixels, int64_t width, int64_t height, int channels,
                           int quality, char *to, size_t *size) {
    unsigned char *buffer = (unsigned char *)to;
    unsigned long taken = *size;
    tjhandle handle = jpeg.InitCompress();
    if (!handle)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status = TD_OK;
    if (jpeg.Compress2(handle, pixels, (int)width, 0, (int)height,
                       channels == 1 ? TJPF_GRAY : TJPF_RGB, &buffer, &taken, sampling_of(channels),
                       quality, TJFLAG_NOREALLOC))
        status = fail_decoding(handle);
    jpeg.Destroy(handle);
    *size = taken;
    return status;
}
