/* samples.c: numbers that files keep in ways of their own, as elements of tensors: any order of
 * bytes (IDX), and sound (WAV) from 8 to 32 bits as float32. Where they lie in a file, and whether
 * the file is whole, modules in Lua find out (lua/files/); every place is checked against the bytes
 * that there are.
 */
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include <string.h>

/* A new tensor at the top of the stack. */
static td_tensor *new_tensor(lua_State *L, td_dtype dtype, int ndim, const int64_t *sizes) {
    tide_handle *handle = tide_push_handle(L);
    td_status status = td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &handle->tensor);
    if (status == TD_ENOMEM) {
        tide_free_memory(L, TIDE_STATE(L));
        status = td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &handle->tensor);
    }
    TIDE_CHECK(L, status);
    return handle->tensor;
}

/* The uint8 tensor at stack index 1, held on the stack, and `n` bytes of it from the place at index
 * 2 on (from 0); n < 0: more than can be counted. */
static const unsigned char *check_bytes(lua_State *L, int64_t n) {
    const td_tensor *bytes = tide_hold_tensor(L, 1, "bytes");
    int64_t at = luaL_checkinteger(L, 2);
    luaL_argcheck(L, bytes->dtype == TD_U8 && bytes->contiguous, 1,
                  "uint8 bytes in a row expected");
    luaL_argcheck(L, at >= 0 && n >= 0 && at <= bytes->numel && n <= bytes->numel - at, 2,
                  "beyond the end of the bytes");
    return (const unsigned char *)bytes->data + at;
}

/* ---- elements ---- */

static void turn(unsigned char *at, size_t size, int64_t n) {
    for (; n > 0; n--, at += size)
        for (size_t k = 0; k < size / 2; k++) {
            unsigned char kept = at[k];
            at[k] = at[size - 1 - k];
            at[size - 1 - k] = kept;
        }
}

static int read_sizes(lua_State *L, int index, int64_t sizes[TD_MAX_DIMS]) {
    lua_Integer ndim = (lua_Integer)lua_rawlen(L, index);
    luaL_argcheck(L, ndim <= TD_MAX_DIMS, index, "too many dims");
    for (lua_Integer d = 0; d < ndim; d++) {
        lua_rawgeti(L, index, d + 1);
        sizes[d] = luaL_checkinteger(L, -1);
        luaL_argcheck(L, sizes[d] >= 0, index, "a size below 0");
        lua_pop(L, 1);
    }
    return (int)ndim;
}

/* _elements(bytes, at, dtype, sizes): a new tensor of numbers whose highest byte comes first. */
static int push_elements(lua_State *L) {
    int64_t sizes[TD_MAX_DIMS], n;
    td_dtype dtype = tide_to_dtype(L, 3);
    luaL_argcheck(L, dtype != TD_DTYPE_NONE && dtype != TD_BOOL, 3, "a dtype of numbers expected");
    luaL_checktype(L, 4, LUA_TTABLE);
    int ndim = read_sizes(L, 4, sizes);
    n = td_numel(ndim, sizes);
    if (n < 0 || __builtin_mul_overflow(n, (int64_t)td_dtype_size(dtype), &n))
        n = -1;
    const unsigned char *from = check_bytes(L, n);
    td_tensor *x = new_tensor(L, dtype, ndim, sizes);
    if (n)
        memcpy(x->data, from, (size_t)n);
    turn(x->data, td_dtype_size(dtype), x->numel);
    return 1;
}

/* ---- sound ---- */

typedef enum sound { SOUND_U8, SOUND_I16, SOUND_I24, SOUND_I32, SOUND_F32, SOUND_F64 } sound;

static const char *const sound_names[] = {"u8", "i16", "i24", "i32", "f32", "f64", NULL};
static const int sound_bytes[] = {1, 2, 3, 4, 4, 8};

static inline uint32_t little(const unsigned char *at, int n) {
    uint32_t value = 0;
    for (int k = 0; k < n; k++)
        value |= (uint32_t)at[k] << 8 * k;
    return value;
}

/* One channel of `frames`, each `step` bytes behind the one before. Integers are divided by what
 * their most negative one is, so that all lies from -1 to 1. */
static void read_channel(sound kind, const unsigned char *at, int64_t step, int64_t frames,
                         float *to) {
    double wide;
    for (int64_t k = 0; k < frames; k++, at += step)
        switch (kind) {
        case SOUND_U8:
            to[k] = (float)(*at - 128) * 0x1p-7f;
            break;
        case SOUND_I16:
            to[k] = (float)(int16_t)little(at, 2) * 0x1p-15f;
            break;
        case SOUND_I24: /* as the upper three bytes of four, which have the sign */
            to[k] = (float)((int32_t)(little(at, 3) << 8) >> 8) * 0x1p-23f;
            break;
        case SOUND_I32:
            to[k] = (float)(int32_t)little(at, 4) * 0x1p-31f;
            break;
        case SOUND_F32:
            memcpy(&to[k], at, sizeof *to);
            break;
        case SOUND_F64:
            memcpy(&wide, at, sizeof wide);
            to[k] = (float)wide;
            break;
        }
}

/* _sound(bytes, at, kind, channels, frames): float32 (channels, frames) of interleaved samples. */
static int push_sound(lua_State *L) {
    sound kind = (sound)luaL_checkoption(L, 3, NULL, sound_names);
    int64_t sizes[] = {luaL_checkinteger(L, 4), luaL_checkinteger(L, 5)}, n;
    luaL_argcheck(L, sizes[0] > 0 && sizes[0] < 1 << 16, 4, "channels expected");
    int64_t step = sizes[0] * sound_bytes[kind];
    if (__builtin_mul_overflow(sizes[1], step, &n))
        n = -1;
    const unsigned char *from = check_bytes(L, n);
    td_tensor *x = new_tensor(L, TD_F32, 2, sizes);
    for (int64_t c = 0; c < sizes[0]; c++)
        read_channel(kind, from + c * sound_bytes[kind], step, sizes[1],
                     (float *)x->data + c * sizes[1]);
    return 1;
}

/* The nearest integer of `bits` to x of -1 to 1; what lies beyond is cut off, no number is 0. */
static inline int64_t to_integer(float x, int bits) {
    double most = (double)(1LL << (bits - 1)), y = (double)x * most;
    return !(y == y)       ? 0
           : y >= most - 1 ? (int64_t)most - 1
           : y <= -most    ? -(int64_t)most
                           : (int64_t)(y + (y < 0 ? -0.5 : 0.5));
}

static void write_sample(sound kind, float x, unsigned char *to) {
    static const int bits[] = {8, 16, 24, 32};
    double wide = x;
    if (kind == SOUND_F32) {
        memcpy(to, &x, sizeof x);
    } else if (kind == SOUND_F64) {
        memcpy(to, &wide, sizeof wide);
    } else {
        int64_t value = to_integer(x, bits[kind]) + (kind == SOUND_U8 ? 128 : 0);
        for (int k = 0; k < sound_bytes[kind]; k++)
            to[k] = (unsigned char)((uint64_t)value >> 8 * k);
    }
}

/* _sound_bytes(x, kind, text): a float32 tensor (channels, frames) as interleaved samples: a uint8
 * tensor, or (text) a string. */
static int push_sound_bytes(lua_State *L) {
    const td_tensor *x = tide_hold_tensor(L, 1, "write_wav");
    sound kind = (sound)luaL_checkoption(L, 2, NULL, sound_names);
    luaL_argcheck(L, x->dtype == TD_F32 && x->ndim == 2 && x->contiguous, 1,
                  "contiguous float32 (channels, frames) expected");
    int64_t channels = x->sizes[0], frames = x->sizes[1];
    int64_t n = channels * frames * sound_bytes[kind];
    unsigned char *to = new_tensor(L, TD_U8, 1, &n)->data;
    const float *from = x->data;
    for (int64_t k = 0; k < frames; k++)
        for (int64_t c = 0; c < channels; c++, to += sound_bytes[kind])
            write_sample(kind, from[c * frames + k], to);
    if (lua_toboolean(L, 3))
        lua_pushlstring(L, (const char *)to - n, (size_t)n);
    return 1;
}

void tide_open_samples(lua_State *L) {
    static const luaL_Reg functions[] = {{"_elements", push_elements},
                                         {"_sound", push_sound},
                                         {"_sound_bytes", push_sound_bytes},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
