/* images.c: image files as tensors, tensors as the bytes of image files, and bytes as base64. What
 * an image is shown as is not known here.
 *
 * Libraries are opened at first use: few programs show or read pictures, and each would start later
 * for it.
 */
#include "lua-bindings/images/images.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/images/planes.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include <string.h>

enum {
    MOST_SHOWN = 1 << 24,
    /* Deflate makes 1,032 bytes of one at most, and a byte is 8 pixels at most; a JPEG file has a
     * bit or more for 64 pixels. */
    MOST_PIXELS_OF_A_BYTE = 8 * 1032
};

static const tide_image_format *const formats[] = {&tide_png_format, &tide_jpeg_format};

/* ---- reading ---- */

static td_status new_bytes(lua_State *L, int ndim, const int64_t *sizes) {
    tide_handle *handle = tide_push_handle(L);
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, ndim, sizes, &handle->tensor);
    if (status != TD_ENOMEM)
        return status;
    tide_free_memory(L, TIDE_STATE(L));
    return td_tensor_empty(TD_U8, TD_DEVICE_CPU, ndim, sizes, &handle->tensor);
}

/* The bytes at stack index 1: a string, or a tensor of them, which is held on the stack. */
static void get_bytes(lua_State *L, tide_image *image, const char *what) {
    if (lua_type(L, 1) == LUA_TSTRING) {
        image->bytes = (const unsigned char *)lua_tolstring(L, 1, &image->size);
        return;
    }
    const td_tensor *x = tide_hold_tensor(L, 1, what);
    if (x->dtype != TD_U8 || x->ndim != 1 || !x->contiguous || td_tensor_device(x).type != TD_CPU)
        tide_error(L, "%s: a string, or uint8 bytes in a row on the CPU expected", what);
    image->bytes = x->data;
    image->size = (size_t)x->numel;
}

static const tide_image_format *find_format(lua_State *L, const tide_image *image,
                                            const char *what) {
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++)
        if (formats[k]->matches(image->bytes, image->size))
            return formats[k];
    tide_error(L, "%s: no image: PNG and JPEG are read", what);
    return NULL;
}

/* Is what the head says possible, and not more than is wanted? */
static void check_size(lua_State *L, const tide_image *image, lua_Integer most, const char *what) {
    lua_Integer width = image->width, height = image->height;
    int64_t pixels;
    if (__builtin_mul_overflow(width, height, &pixels) || pixels > most)
        tide_error(L, "%s: %I x %I pixels are more than max_pixels = %I", what, width, height,
                   most);
    if ((uint64_t)pixels / MOST_PIXELS_OF_A_BYTE > image->size)
        tide_error(L, "%s: damaged: %I x %I pixels don't fit %I bytes", what, width, height,
                   (lua_Integer)image->size);
}

/* The tensor that was given for the pixels; one like it must be what they need. */
static td_tensor *check_given(lua_State *L, int index, const int64_t sizes[3], const char *what) {
    td_tensor *x = tide_check_tensor(L, index, what);
    bool fits = x->ndim == 3 && x->dtype == TD_U8 && x->layout == TD_STRIDED &&
                td_tensor_device(x).type == TD_CPU && !memcmp(x->sizes, sizes, 3 * sizeof *sizes);
    if (!fits)
        tide_error(L, "%s: option into: a uint8 tensor of shape (%d, %d, %d) expected", what,
                   (int)sizes[0], (int)sizes[1], (int)sizes[2]);
    return x;
}

static tide_planes planes_of(const td_tensor *x) {
    return (tide_planes){x->data, x->strides[0], x->strides[1], x->strides[2], (int)x->sizes[0]};
}

static int fail_image(lua_State *L, const char *what, const char *format) {
    if (td_error_code() == TD_EINTR)
        tide_raise(L);
    return tide_error(L, "%s: %s: %s", what, format, td_error_message());
}

/* _image_decode(bytes, channels, scale, turned, most, what, into): the planes as a uint8 tensor
 * (channels, height, width). channels: 1 to 4, 0 for those of the file; turned: as EXIF says; most:
 * pixels; what: the function and the file, for messages; into: the tensor to write to, or nil. */
static int decode(lua_State *L) {
    enum { CHANNELS = 2, SCALE, TURNED, MOST, WHAT, INTO };
    const char *what = luaL_checkstring(L, WHAT);
    int channels = (int)luaL_checkinteger(L, CHANNELS);
    tide_image image = {.scale = (int)luaL_checkinteger(L, SCALE),
                        .grey = channels == 1 || channels == 2,
                        .orientation = 1};
    lua_settop(L, INTO);
    get_bytes(L, &image, what);
    const tide_image_format *format = find_format(L, &image, what);
    if (format->read_head(&image))
        return fail_image(L, what, format->name);
    check_size(L, &image, luaL_checkinteger(L, MOST), what);
    if (!lua_toboolean(L, TURNED))
        image.orientation = 1;
    bool lies = image.orientation > 4;
    int64_t size = image.width * image.height * image.channels;
    int own = image.opaque ? image.channels - 1 : image.channels;
    int64_t sizes[] = {channels ? channels : own, lies ? image.width : image.height,
                       lies ? image.height : image.width};
    if (new_bytes(L, 1, &size))
        return tide_raise(L);
    tide_handle *pixels = lua_touserdata(L, -1);
    if (lua_isnil(L, INTO)) {
        if (new_bytes(L, 3, sizes))
            return tide_raise(L);
        lua_replace(L, INTO);
    }
    td_tensor *to = check_given(L, INTO, sizes, what);
    if (format->read_pixels(&image, pixels->tensor->data))
        return fail_image(L, what, format->name);
    tide_fill_planes(pixels->tensor->data, &image, planes_of(to));
    atomic_fetch_add(&to->storage->version, 1);
    tide_close_handle(L, pixels);
    lua_settop(L, INTO);
    return 1;
}

/* ---- writing ---- */

/* A contiguous uint8 tensor (height, width, channels) at index 1, of 1 to 4 channels. */
static const td_tensor *check_pixels(lua_State *L, const char *what) {
    const td_tensor *x = tide_check_tensor(L, 1, what);
    bool fits = x->ndim == 3 && x->dtype == TD_U8 &&
                td_is_contiguous(x->ndim, x->sizes, x->strides) && x->sizes[2] >= 1 &&
                x->sizes[2] <= 4 && x->sizes[0] > 0 && x->sizes[1] > 0;
    if (!fits || x->storage->device.type != TD_CPU)
        tide_error(L, "%s: contiguous uint8 pixels (height, width, 1 to 4) expected", what);
    return x;
}

/* _png(pixels[, whole]): the bytes of a PNG file; pixels is a contiguous uint8 tensor (height,
 * width, channels) of 1 to 4 channels: grey, grey with alpha, RGB, RGB with alpha. What is not to
 * be a `whole` file is to be shown, and has a limit. */
static int push_png(lua_State *L) {
    const td_tensor *x = check_pixels(L, "png");
    if (!lua_toboolean(L, 2) && x->sizes[0] > MOST_SHOWN / x->sizes[1])
        return tide_error(L, "png: %d x %d are more than %d pixels: show a part of it",
                          (int)x->sizes[1], (int)x->sizes[0], MOST_SHOWN);
    size_t size = tide_png_most(x->sizes[1], x->sizes[0], (int)x->sizes[2]);
    luaL_Buffer bytes;
    char *to = luaL_buffinitsize(L, &bytes, size);
    if (tide_png_encode(x->data, x->sizes[1], x->sizes[0], (int)x->sizes[2], to, &size))
        return tide_error(L, "png: %s", td_error_message());
    luaL_pushresultsize(&bytes, size);
    return 1;
}

/* _jpeg(pixels, quality, what): the same for JPEG, of 1 or 3 channels; quality from 1 to 100. */
static int push_jpeg(lua_State *L) {
    const char *what = luaL_checkstring(L, 3);
    const td_tensor *x = check_pixels(L, what);
    int quality = (int)luaL_checkinteger(L, 2);
    size_t size;
    if (tide_jpeg_most(x->sizes[1], x->sizes[0], &size))
        return tide_error(L, "%s: %s", what, td_error_message());
    luaL_Buffer bytes;
    char *to = luaL_buffinitsize(L, &bytes, size);
    if (tide_jpeg_encode(x->data, x->sizes[1], x->sizes[0], (int)x->sizes[2], quality, to, &size))
        return tide_error(L, "%s: %s", what, td_error_message());
    luaL_pushresultsize(&bytes, size);
    return 1;
}

/* _base64(bytes): as text. */
static int push_base64(lua_State *L) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t len;
    const unsigned char *bytes = (const unsigned char *)luaL_checklstring(L, 1, &len);
    luaL_Buffer text;
    size_t size = (len + 2) / 3 * 4;
    char *to = luaL_buffinitsize(L, &text, size);
    for (size_t k = 0; k < len; k += 3, to += 4) {
        unsigned a = bytes[k], b = k + 1 < len ? bytes[k + 1] : 0;
        unsigned c = k + 2 < len ? bytes[k + 2] : 0;
        to[0] = digits[a >> 2];
        to[1] = digits[(a & 3) << 4 | b >> 4];
        to[2] = k + 1 < len ? digits[(b & 15) << 2 | c >> 6] : '=';
        to[3] = k + 2 < len ? digits[c & 63] : '=';
    }
    luaL_pushresultsize(&text, size);
    return 1;
}

void tide_open_images(lua_State *L) {
    static const luaL_Reg functions[] = {{"_image_decode", decode},
                                         {"_png", push_png},
                                         {"_jpeg", push_jpeg},
                                         {"_base64", push_base64},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
