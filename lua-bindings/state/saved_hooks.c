/* saved_hooks.c: calls a script's pack and unpack functions, found by the number of their guard. A
 * coroutine that inherited the mode may outlive the guard: where the number is gone, tensors are
 * kept as they are. */
#include "lua-bindings/state/saved_hooks.h"

#include "lua-bindings/state/script.h"

#include <stdlib.h>

static const char pairs_key = 0;

typedef struct packed {
    tide_anchor *anchor; /* {unpack, value} */
    td_tensor *plain;    /* instead */
} packed;

/* Push the table from numbers to {pack, unpack}. */
static void push_pairs(lua_State *L) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &pairs_key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &pairs_key);
}

int tide_keeper_new(lua_State *L) {
    static atomic_int last;
    (void)tide_script_enter(L); /* any call from here on may ask pack */
    int number = 1 + (atomic_fetch_add(&last, 1) & 0x3fffffff);
    push_pairs(L);
    lua_createtable(L, 2, 0);
    for (int k = 1; k <= 2; k++) {
        lua_pushvalue(L, k);
        lua_rawseti(L, -2, k);
    }
    lua_rawseti(L, -2, number);
    lua_pop(L, 1);
    return number;
}

void tide_keeper_end(lua_State *L, int64_t number) {
    luaL_checkstack(L, 4, NULL);
    push_pairs(L);
    lua_pushnil(L);
    lua_rawseti(L, -2, number);
    lua_pop(L, 1);
}

static void drop(void *payload) {
    packed *p = payload;
    tide_anchor_drop(p->anchor);
    td_release(p->plain);
    free(p);
}

/* ---- pack ---- */

typedef struct packing {
    td_tensor *x;
    packed *to;
} packing;

static int call_pack(lua_State *L) {
    packing *p = lua_touserdata(L, 1);
    push_pairs(L);
    if (lua_rawgeti(L, -1, (lua_Integer)td_modes_current.keeping) != LUA_TTABLE) {
        p->to->plain = td_retain(p->x);
        return 0;
    }
    lua_createtable(L, 2, 0);
    lua_rawgeti(L, -2, 2);
    lua_rawseti(L, -2, 1);
    lua_rawgeti(L, -2, 1);
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, td_tensor_alias(p->x, &handle->tensor));
    lua_call(L, 1, 1);
    lua_rawseti(L, -2, 2);
    p->to->anchor = tide_anchor_new(L);
    tide_anchor_held_by(p->to->anchor, p->to);
    return 0;
}

static td_status pack(void *ctx, td_tensor *x, void **out) {
    (void)ctx;
    packed *to = calloc(1, sizeof *to);
    if (!to)
        return td_fail(TD_ENOMEM, "out of memory for a saved tensor");
    packing p = {x, to};
    td_status status = tide_script_call_here(call_pack, &p);
    if (status)
        drop(to);
    else
        *out = to;
    return status;
}

/* ---- unpack ---- */

typedef struct unpacking {
    const packed *from;
    td_tensor *x;
} unpacking;

static int call_unpack(lua_State *L) {
    unpacking *u = lua_touserdata(L, 1);
    char text[80];
    tide_anchor_push(L, u->from->anchor);
    lua_rawgeti(L, -1, 1);
    lua_rawgeti(L, -2, 2);
    lua_call(L, 1, 1);
    td_tensor *x = tide_to_tensor(L, -1);
    if (!x)
        return tide_error(L, "saved_tensors_hooks: unpack must return a tensor, got %s",
                          tide_describe(L, -1, text, sizeof text));
    u->x = td_retain(x);
    return 0;
}

static td_status unpack(void *payload, td_tensor **out) {
    unpacking u = {payload, NULL};
    if (u.from->plain) {
        *out = td_retain(u.from->plain);
        return TD_OK;
    }
    td_status status = tide_script_call(u.from->anchor, call_unpack, &u);
    *out = u.x;
    return status;
}

const td_keeper tide_keeper = {pack, unpack, drop, NULL};
