/* transforms.c: resize.h and pixels.h for tensors, for lua/data/transforms.lua: uint8 on the CPU,
 * without a history. */
#include "lua-bindings/call/args.h"
#include "lua-bindings/images/pixels.h"
#include "lua-bindings/images/resize.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include <stdatomic.h>

enum { MOST_OF_A_SIDE = 1 << 24 };

/* The uint8 CPU tensor of three dims at a stack index: planes, rows, columns, whatever the strides.
 */
static td_tensor *check_planes(lua_State *L, int index) {
    td_tensor *x = tide_check_tensor(L, index, "transforms");
    bool fits = x->dtype == TD_U8 && x->ndim == 3 && x->layout == TD_STRIDED && x->numel > 0 &&
                td_tensor_device(x).type == TD_CPU;
    for (int d = 1; d < 3 && fits; d++)
        fits = x->sizes[d] < MOST_OF_A_SIDE;
    if (!fits)
        tide_error(L, "transforms: a uint8 image (channels, height, width) on the CPU expected");
    return x;
}

static tide_plane plane_of(const td_tensor *x, int64_t k) {
    return (tide_plane){(unsigned char *)x->data + k * x->strides[0], x->sizes[2], x->sizes[1],
                        x->strides[2], x->strides[1]};
}

/* A new tensor for `x`'s planes of another size goes to `index`, unless a tensor that fits is
 * there. What the handle at `index` is may be asked for when nothing is allocated any more. */
static void make_result(lua_State *L, int index, int64_t planes, int64_t height, int64_t width) {
    int64_t sizes[] = {planes, height, width};
    if (lua_isnil(L, index)) {
        tide_handle *handle = tide_push_handle(L);
        td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 3, sizes, &handle->tensor);
        if (status == TD_ENOMEM) {
            tide_free_memory(L, TIDE_STATE(L));
            status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 3, sizes, &handle->tensor);
        }
        TIDE_CHECK(L, status);
        lua_replace(L, index);
        return;
    }
    const td_tensor *to = check_planes(L, index);
    if (to->sizes[0] != planes || to->sizes[1] != height || to->sizes[2] != width ||
        to->strides[2] != 1)
        tide_error(L, "transforms: into: a uint8 tensor of shape (%d, %d, %d) expected",
                   (int)planes, (int)height, (int)width);
}

static int64_t check_side(lua_State *L, int index) {
    int64_t side = luaL_checkinteger(L, index);
    luaL_argcheck(L, side >= 1 && side < MOST_OF_A_SIDE, index, "1 to 16777215 pixels expected");
    return side;
}

/* _image_resize(x, height, width, filter, into): planes of another size. */
static int resize(lua_State *L) {
    enum { HEIGHT = 2, WIDTH, FILTER, INTO };
    static const char *const filters[] = {"nearest", "bilinear", "bicubic", NULL};
    int64_t height = check_side(L, HEIGHT), width = check_side(L, WIDTH);
    tide_filter filter = (tide_filter)luaL_checkoption(L, FILTER, NULL, filters);
    lua_settop(L, INTO);
    make_result(L, INTO, check_planes(L, 1)->sizes[0], height, width);
    const td_tensor *from = check_planes(L, 1);
    td_tensor *to = check_planes(L, INTO);
    tide_resize *r = tide_resize_new(from->sizes[2], from->sizes[1], width, height, filter);
    if (!r)
        return tide_error(L, "transforms: out of memory");
    for (int64_t k = 0; k < from->sizes[0]; k++)
        tide_resize_plane(r, plane_of(from, k), plane_of(to, k));
    tide_resize_free(r);
    atomic_fetch_add(&to->storage->version, 1);
    return 1;
}

/* _image_warp(x, matrix, smooth, fill): planes of the same size; matrix: six numbers. */
static int warp(lua_State *L) {
    enum { MATRIX = 2, SMOOTH, FILL, TO };
    double m[6];
    luaL_checktype(L, MATRIX, LUA_TTABLE);
    bool smooth = lua_toboolean(L, SMOOTH);
    int fill = (int)luaL_checkinteger(L, FILL);
    luaL_argcheck(L, fill >= 0 && fill <= 255, FILL, "0 to 255 expected");
    for (int k = 0; k < 6; k++) {
        lua_rawgeti(L, MATRIX, k + 1);
        m[k] = luaL_checknumber(L, -1);
        lua_pop(L, 1);
    }
    lua_settop(L, FILL);
    lua_pushnil(L);
    const td_tensor *from = check_planes(L, 1);
    make_result(L, TO, from->sizes[0], from->sizes[1], from->sizes[2]);
    from = check_planes(L, 1);
    const td_tensor *to = check_planes(L, TO);
    for (int64_t k = 0; k < from->sizes[0]; k++)
        tide_warp_plane(plane_of(from, k), plane_of(to, k), m, smooth, fill);
    return 1;
}

/* _image_adjust(x, what, factor): changes a contiguous image (1 or 3, height, width) in place. */
static int adjust(lua_State *L) {
    static const char *const names[] = {"brightness", "contrast", "saturation", "hue", NULL};
    tide_adjustment what = (tide_adjustment)luaL_checkoption(L, 2, NULL, names);
    float factor = (float)luaL_checknumber(L, 3);
    td_tensor *x = check_planes(L, 1);
    luaL_argcheck(L, x->contiguous && (x->sizes[0] == 1 || x->sizes[0] == 3), 1,
                  "a contiguous image of 1 or 3 channels expected");
    tide_adjust((tide_pixels){x->data, x->sizes[1] * x->sizes[2], (int)x->sizes[0]}, what, factor);
    atomic_fetch_add(&x->storage->version, 1);
    lua_settop(L, 1);
    return 1;
}

/* _image_normalize(x, scales, shifts): float32 of the same shape: x * scale + shift by channel. */
static int normalize(lua_State *L) {
    enum { MOST_CHANNELS = 64 };
    float scales[MOST_CHANNELS], shifts[MOST_CHANNELS];
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 2);
    luaL_argcheck(L, n >= 1 && n <= MOST_CHANNELS, 2, "1 to 64 channels expected");
    for (lua_Integer k = 0; k < n; k++) {
        lua_rawgeti(L, 2, k + 1);
        lua_rawgeti(L, 3, k + 1);
        scales[k] = (float)luaL_checknumber(L, -2);
        shifts[k] = (float)luaL_checknumber(L, -1);
        lua_pop(L, 2);
    }
    tide_handle *handle = tide_push_handle(L);
    const td_tensor *x = tide_check_tensor(L, 1, "normalize");
    luaL_argcheck(L,
                  x->dtype == TD_U8 && x->contiguous && x->ndim >= 3 &&
                      td_tensor_device(x).type == TD_CPU && x->sizes[x->ndim - 3] == n,
                  1, "contiguous uint8 (..., channels, height, width) expected");
    TIDE_CHECK(L, td_tensor_empty(TD_F32, TD_DEVICE_CPU, x->ndim, x->sizes, &handle->tensor));
    int64_t plane = x->sizes[x->ndim - 2] * x->sizes[x->ndim - 1];
    for (int64_t k = 0; k * plane < x->numel; k++)
        tide_normalize((const unsigned char *)x->data + k * plane, plane, scales[k % n],
                       shifts[k % n], (float *)handle->tensor->data + k * plane);
    return 1;
}

void tide_open_transforms(lua_State *L) {
    static const luaL_Reg functions[] = {{"_image_resize", resize},
                                         {"_image_warp", warp},
                                         {"_image_adjust", adjust},
                                         {"_image_normalize", normalize},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
