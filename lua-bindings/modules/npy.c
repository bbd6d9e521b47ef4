/* npy.c: NumPy's files as tensors and back, for lua/io.lua. */
#include "engine/io/npy.h"

#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/bytes.h"
#include "lua-bindings/modules/modules.h"

#include <string.h>

static int fail(lua_State *L, const char *fname, const char *path, td_status status) {
    if (status == TD_EINTR)
        tide_raise(L);
    return tide_error(L, "%s: '%s': %s", fname, path, td_error_message());
}

/* _npy_read(path, fname): the arrays as tensors. */
static int read_npy(lua_State *L) {
    const char *path = luaL_checkstring(L, 1), *fname = luaL_checkstring(L, 2);
    size_t held;
    tide_read_bytes(L, path, fname, &held);
    td_tensor *bytes = tide_check_tensor(L, -1, fname);
    int first = lua_gettop(L);
    size_t at = 0;
    do {
        luaL_checkstack(L, 8, fname);
        tide_handle *handle = tide_push_handle(L);
        td_status status = td_npy_read(bytes, held, &at, &handle->tensor);
        if (status)
            return fail(L, fname, path, status);
    } while (at < held);
    return lua_gettop(L) - first;
}

/* _npy_decode(bytes): the array that a file of these bytes holds; nil and what is wrong. */
static int decode_npy(lua_State *L) {
    size_t held, at = 0;
    const char *bytes = luaL_checklstring(L, 1, &held);
    int64_t size = (int64_t)held;
    tide_handle *handle = tide_push_handle(L), *out = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &handle->tensor));
    memcpy(handle->tensor->data, bytes, held);
    td_status status = td_npy_read(handle->tensor, held, &at, &out->tensor);
    return tide_value_or_why(L, status);
}

/* _npy_encode(x): the bytes of a file that holds x, which lies row by row on the CPU. */
static int encode_npy(lua_State *L) {
    char header[TD_NPY_HEADER];
    const td_tensor *x = tide_hold_elements(L, 1, "write_tar");
    if (!td_npy_holds(x))
        return tide_error(L, "write_tar: a row-major tensor of a dtype that NumPy has expected");
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addlstring(&b, header, td_npy_header(x, header));
    luaL_addlstring(&b, x->data, (size_t)x->numel * td_tensor_itemsize(x));
    luaL_pushresult(&b);
    return 1;
}

/* _npy_write(path, x, fname): x lies row by row on the CPU. */
static int write_npy(lua_State *L) {
    const char *path = luaL_checkstring(L, 1), *fname = luaL_checkstring(L, 3);
    const td_tensor *x = tide_check_tensor(L, 2, fname);
    if (x->layout != TD_STRIDED || !x->contiguous || td_tensor_device(x).type != TD_CPU)
        return tide_error(L, "%s: a row-major tensor on the CPU expected", fname);
    tide_enter_engine(TIDE_STATE(L));
    td_status status = td_npy_write(path, x);
    if (status == TD_EVALUE)
        return fail(L, fname, path, status);
    if (status == TD_EINTR)
        tide_raise(L);
    if (status) /* says the path itself */
        return tide_error(L, "%s: %s", fname, td_error_message());
    return 0;
}

void tide_open_npy(lua_State *L) {
    static const luaL_Reg functions[] = {{"_npy_read", read_npy},
                                         {"_npy_write", write_npy},
                                         {"_npy_decode", decode_npy},
                                         {"_npy_encode", encode_npy},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
