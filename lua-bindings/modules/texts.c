/* texts.c: lists of texts as tensors (texts.h) for lua/data/texts.lua. */
#include "lua-bindings/modules/texts.h"

#include "engine/core/memory.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"

#include <stdlib.h>
#include <string.h>

static bool is_row(const td_tensor *x, td_dtype dtype) {
    return x->layout == TD_STRIDED && x->ndim == 1 && x->contiguous && x->dtype == dtype &&
           td_tensor_device(x).type == TD_CPU;
}

tide_texts tide_check_texts(lua_State *L, int bytes, int offsets) {
    const td_tensor *b = tide_hold_elements(L, bytes, "texts");
    const td_tensor *o = tide_hold_elements(L, offsets, "texts");
    luaL_argcheck(L, is_row(b, TD_U8), bytes, "a row of bytes expected");
    luaL_argcheck(L, is_row(o, TD_I64) && o->sizes[0] > 0, offsets, "a row of offsets expected");
    tide_texts t = {b->data, o->data, o->sizes[0] - 1};
    bool rises = t.offsets[0] >= 0 && t.offsets[t.n] <= b->sizes[0];
    for (int64_t k = 0; rises && k < t.n; k++)
        rises = t.offsets[k] <= t.offsets[k + 1];
    luaL_argcheck(L, rises, offsets, "offsets that rise within the bytes expected");
    return t;
}

void tide_push_texts(lua_State *L, int64_t n, int64_t size, char **bytes, int64_t **offsets) {
    int64_t noffsets = n + 1;
    tide_handle *b = tide_push_handle(L), *o = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &b->tensor));
    TIDE_CHECK(L, td_tensor_empty(TD_I64, TD_DEVICE_CPU, 1, &noffsets, &o->tensor));
    *bytes = b->tensor->data;
    *offsets = o->tensor->data;
}

/* _texts_pack(list of strings): bytes, offsets */
static int pack_texts(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    int64_t n = (int64_t)lua_rawlen(L, 1), size = 0, *offsets;
    char *bytes;
    size_t len;
    for (int64_t k = 0; k < n; k++) {
        tide_poll(L, k);
        lua_rawgeti(L, 1, (lua_Integer)k + 1);
        luaL_checklstring(L, -1, &len);
        size += (int64_t)len;
        lua_pop(L, 1);
    }
    tide_push_texts(L, n, size, &bytes, &offsets);
    offsets[0] = 0;
    for (int64_t k = 0; k < n; k++) {
        lua_rawgeti(L, 1, (lua_Integer)k + 1);
        const char *text = lua_tolstring(L, -1, &len);
        memcpy(bytes + offsets[k], text, len);
        offsets[k + 1] = offsets[k] + (int64_t)len;
        lua_pop(L, 1);
    }
    return 2;
}

/* _texts_at(bytes, offsets, k): the text, counted from 1 */
static int text_at(lua_State *L) {
    const td_tensor *b = tide_hold_elements(L, 1, "texts"), *o = tide_hold_elements(L, 2, "texts");
    int64_t k = (int64_t)luaL_checkinteger(L, 3);
    luaL_argcheck(L, is_row(b, TD_U8), 1, "a row of bytes expected");
    luaL_argcheck(L, is_row(o, TD_I64) && k > 0 && k < o->sizes[0], 3,
                  "the number of a text expected");
    const int64_t *offsets = (const int64_t *)o->data + k - 1;
    luaL_argcheck(L, offsets[0] >= 0 && offsets[0] <= offsets[1] && offsets[1] <= b->sizes[0], 2,
                  "offsets that rise within the bytes expected");
    lua_pushlstring(L, (const char *)b->data + offsets[0], (size_t)(offsets[1] - offsets[0]));
    return 1;
}

/* _texts_find(bytes, offsets, text): its number from 1, nil where it is none of them */
static int find_text(lua_State *L) {
    size_t len;
    const char *text = luaL_checklstring(L, 3, &len);
    tide_texts t = tide_check_texts(L, 1, 2);
    for (int64_t k = 0; k < t.n; k++)
        if ((size_t)(t.offsets[k + 1] - t.offsets[k]) == len &&
            !memcmp(t.bytes + t.offsets[k], text, len)) {
            lua_pushinteger(L, (lua_Integer)k + 1);
            return 1;
        }
    return 0;
}

/* ---- the order of bytes ---- */

typedef struct item {
    const char *at;
    size_t len;
    int64_t number;
} item;

static int compare(const void *a, const void *b) {
    const item *x = a, *y = b;
    int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);
    if (order)
        return order;
    return x->len != y->len ? (x->len < y->len ? -1 : 1) : x->number < y->number ? -1 : 1;
}

/* _texts_order(bytes, offsets): the texts' numbers, from 1, in the order of their bytes */
static int order_texts(lua_State *L) {
    tide_texts t = tide_check_texts(L, 1, 2);
    item *items = lua_newuserdatauv(L, (size_t)(t.n + 1) * sizeof *items, 0);
    tide_handle *order = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_empty(TD_I64, TD_DEVICE_CPU, 1, &t.n, &order->tensor));
    for (int64_t k = 0; k < t.n; k++)
        items[k] = (item){t.bytes + t.offsets[k], (size_t)(t.offsets[k + 1] - t.offsets[k]), k + 1};
    qsort(items, (size_t)t.n, sizeof *items, compare);
    for (int64_t k = 0; k < t.n; k++)
        ((int64_t *)order->tensor->data)[k] = items[k].number;
    return 1;
}

void tide_open_texts(lua_State *L) {
    static const luaL_Reg functions[] = {{"_texts_pack", pack_texts},
                                         {"_texts_at", text_at},
                                         {"_texts_find", find_text},
                                         {"_texts_order", order_texts},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
