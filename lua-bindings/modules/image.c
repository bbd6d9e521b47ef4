/* image.c: pixels as the bytes of a PNG file, by libpng, and bytes as base64. What an image is
 * shown as is not known here.
 *
 * libpng is opened at first use: few programs show pictures, and each would start later for it.
 */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include "engine/core/dtype.h"

#include <dlfcn.h>
#include <png.h>
#include <string.h>

enum { MOST_PIXELS = 1 << 24 };

static const char library_name[] = "libpng16.so.16"; /* what png.h of this version belongs to */

typedef int (*write_function)(png_imagep, void *, png_alloc_size_t *, int, const void *, png_int_32,
                              const void *);

static write_function find_writer(lua_State *L) {
    static _Atomic(write_function) writer;
    write_function found = writer;
    if (found)
        return found;
    void *library = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "png_image_write_to_memory") : NULL;
    if (!symbol)
        tide_error(L, "png: %s", dlerror());
    memcpy(&found, &symbol, sizeof found); /* C knows no cast from objects to functions */
    writer = found;
    return found;
}

/* _png(pixels): the bytes of a PNG file; pixels is a contiguous uint8 tensor (height, width,
 * channels) of 1 to 4 channels: grey, grey with alpha, RGB, RGB with alpha. */
static int push_png(lua_State *L) {
    static const unsigned formats[] = {PNG_FORMAT_GRAY, PNG_FORMAT_GA, PNG_FORMAT_RGB,
                                       PNG_FORMAT_RGBA};
    const td_tensor *x = tide_check_tensor(L, 1, "png");
    bool fits = x->ndim == 3 && x->dtype == TD_U8 &&
                td_is_contiguous(x->ndim, x->sizes, x->strides) && x->sizes[2] >= 1 &&
                x->sizes[2] <= 4 && x->sizes[0] > 0 && x->sizes[1] > 0;
    if (!fits || x->storage->device.type != TD_CPU)
        return tide_error(L, "png: contiguous uint8 pixels (height, width, 1 to 4) expected");
    if (x->sizes[0] > MOST_PIXELS / x->sizes[1])
        return tide_error(L, "png: %d x %d are more than %d pixels: show a part of it",
                          (int)x->sizes[1], (int)x->sizes[0], MOST_PIXELS);
    write_function write = find_writer(L);
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = (png_uint_32)x->sizes[1],
                       .height = (png_uint_32)x->sizes[0],
                       .format = formats[x->sizes[2] - 1]};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
    luaL_Buffer bytes;
    char *to = luaL_buffinitsize(L, &bytes, size);
    if (!write(&image, to, &size, 0, x->data, 0, NULL))
        return tide_error(L, "png: %s", image.message);
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

void tide_open_image(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_png", push_png}, {"_base64", push_base64}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
