/* bundle.c: a text and tensors as one row of bytes, in which objects travel between processes. */
#include "lua-bindings/distributed/bundle.h"

#include "lua-bindings/call/args.h"
#include "lua-bindings/state/state.h"

#include <string.h>

static td_tensor *new_tensor(lua_State *L, td_dtype dtype, int ndim, const int64_t *sizes) {
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &handle->tensor));
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return handle->tensor;
}

static size_t bytes_of(const td_tensor *x) {
    return (size_t)x->numel * td_tensor_itemsize(x);
}

/* _bundle(text, tensors): a uint8 tensor of the text's bytes and, behind them, those of the
 * contiguous tensors. */
static int make_bundle(lua_State *L) {
    size_t len, total;
    const char *text = luaL_checklstring(L, 1, &len);
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 2);
    total = len;
    for (lua_Integer k = 1; k <= n; k++, lua_pop(L, 2)) {
        lua_rawgeti(L, 2, k);
        total += bytes_of(tide_hold_elements(L, -1, "tensors"));
    }
    td_tensor *bundle = new_tensor(L, TD_U8, 1, (int64_t[]){(int64_t)total});
    char *at = bundle->data;
    memcpy(at, text, len);
    at += len;
    for (lua_Integer k = 1; k <= n; k++, lua_pop(L, 2)) {
        lua_rawgeti(L, 2, k);
        const td_tensor *x = tide_hold_elements(L, -1, "tensors");
        luaL_argcheck(L,
                      x->contiguous && bytes_of(x) <= total - (size_t)(at - (char *)bundle->data),
                      2, "contiguous tensors expected");
        if (bytes_of(x))
            memcpy(at, x->data, bytes_of(x));
        at += bytes_of(x);
    }
    return 1;
}

/* _bundle_tensor(bundle, at, dtype, sizes): the tensor whose bytes begin at a place (from 0). */
static int take_tensor(lua_State *L) {
    const td_tensor *bundle = tide_hold_elements(L, 1, "bundle");
    lua_Integer at = luaL_checkinteger(L, 2);
    td_dtype dtype = tide_to_dtype(L, 3);
    int64_t sizes[TD_MAX_DIMS];
    luaL_argcheck(L, dtype != TD_DTYPE_NONE, 3, "a dtype expected");
    luaL_checktype(L, 4, LUA_TTABLE);
    lua_Integer ndim = (lua_Integer)lua_rawlen(L, 4);
    luaL_argcheck(L, ndim <= TD_MAX_DIMS, 4, "too many dims");
    for (lua_Integer d = 0; d < ndim; d++) {
        lua_rawgeti(L, 4, d + 1);
        sizes[d] = luaL_checkinteger(L, -1);
        luaL_argcheck(L, sizes[d] >= 0, 4, "a size below 0");
        lua_pop(L, 1);
    }
    int64_t n = td_numel((int)ndim, sizes);
    luaL_argcheck(L,
                  at >= 0 && at <= bundle->numel && n >= 0 &&
                      n <= (bundle->numel - at) / (int64_t)td_dtype_size(dtype),
                  4, "beyond the end of the bundle");
    td_tensor *x = new_tensor(L, dtype, (int)ndim, sizes);
    if (bytes_of(x))
        memcpy(x->data, (const char *)bundle->data + at, bytes_of(x));
    return 1;
}

void tide_open_bundles(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_bundle", make_bundle}, {"_bundle_tensor", take_tensor}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
