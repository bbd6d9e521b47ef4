/* state.c: the bindings' part of a Lua state: allocator, metatable, handles, memory pressure. */
#include "lua-bindings/state/state.h"

#include "lua-bindings/state/anchors.h"

#include <string.h>

static const char state_key = 0, metatable_key = 0, kept_key = 0;

/* ---- a state ---- */

/* A state that somebody else made: our allocator goes in front of its own, and leaves when the
 * state itself is freed. */
static tide_arena *wrap_allocator(lua_State *L) {
    void *ud;
    lua_Alloc next = lua_getallocf(L, &ud);
    tide_arena *arena = tide_arena_new(next, ud);
    if (!arena)
        tide_error(L, "tide: out of memory");
    arena->main = tide_main_thread(L);
    lua_setallocf(L, tide_arena_alloc, arena);
    return arena;
}

/* What `ipairs` steps with. */
static lua_CFunction find_ipairs_iterator(lua_State *L) {
    lua_CFunction iterator = NULL;
    if (lua_getglobal(L, "ipairs") == LUA_TFUNCTION) {
        lua_newtable(L);
        lua_call(L, 1, 1);
        iterator = lua_tocfunction(L, -1);
    }
    lua_pop(L, 1);
    return iterator;
}

static tide_state *new_state(lua_State *L) {
    void *ud;
    tide_state *state = lua_newuserdatauv(L, sizeof *state, 0);
    *state = (tide_state){.ipairs_iterator = find_ipairs_iterator(L)};
    luaL_newmetatable(L, "tide.Tensor");
    lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
    state->arena = lua_getallocf(L, &ud) == tide_arena_alloc ? ud : wrap_allocator(L);
    tide_pressure_open(L, &state->pressure);
    tide_arena_probe(L, state->arena);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &state_key);
    return state;
}

tide_state *tide_state_find(lua_State *L) {
    bool there = lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key) == LUA_TUSERDATA;
    tide_state *state = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return there ? state : new_state(L);
}

void tide_push_function(lua_State *L, lua_CFunction fn, int extra) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    lua_pushlightuserdata(L, lua_touserdata(L, -1));
    lua_replace(L, -2);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_key);
    if (extra)
        lua_rotate(L, -2 - extra, 2);
    lua_pushcclosure(L, fn, 2 + extra);
}

void tide_set_functions(lua_State *L, const luaL_Reg *functions) {
    for (; functions->name; functions++) {
        tide_push_function(L, functions->func, 0);
        lua_setfield(L, -2, functions->name);
    }
}

/* ---- handles ---- */

tide_handle *tide_push_handle(lua_State *L) {
    tide_state *state = TIDE_STATE(L);
    if (TD_UNLIKELY(state->pressure.risen))
        tide_pressure_relieve(L, &state->pressure, &state->arena->live);
    tide_handle *handle = tide_handle_new(L, state->arena);
    tide_enter_engine(state);
    lua_pushvalue(L, lua_upvalueindex(TIDE_UP_METATABLE));
    lua_setmetatable(L, -2);
    return handle;
}

void tide_push_weak_table(lua_State *L, const void *key) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
}

static bool in_finalizer(lua_State *L) {
    return lua_gc(L, LUA_GCCOUNT) < 0;
}

/* A collection may begin when a call has read its arguments and makes its handles. What a finalizer
 * then closes may be one of them: another handle keeps the tensor until a call has ended. So may
 * what a hook closes that the engine calls within a call. */
static void keep(lua_State *L, tide_handle *closed) {
    tide_state *state = TIDE_STATE(L);
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    }
    tide_handle *handle = tide_push_handle(L);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
    handle->tensor = closed->tensor;
    closed->tensor = NULL;
    state->keeping = true;
}

void tide_close_handle(lua_State *L, tide_handle *handle) {
    td_tensor *tensor = handle->tensor;
    if (handle->pending) {
        handle->pending->holder = NULL;
        handle->pending = NULL;
    }
    if (tensor && (TIDE_STATE(L)->depth || in_finalizer(L))) {
        keep(L, handle);
    } else {
        handle->tensor = NULL;
        td_release(tensor);
    }
}

void tide_drop_kept(lua_State *L, tide_state *state) {
    if (state->depth || in_finalizer(L))
        return;
    state->keeping = false;
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
    tide_script_drain(L);
}

td_tensor *tide_to_tensor(lua_State *L, int index) {
    tide_handle *handle = lua_touserdata(L, index);
    if (!tide_is_handle(handle))
        return NULL;
    if (TD_UNLIKELY(!handle->tensor && handle->pending))
        tide_settle(L, tide_state_find(L)); /* not every reader has it as an upvalue */
    if (TD_UNLIKELY(!handle->tensor))
        tide_error(L, "this tensor was closed");
    return handle->tensor;
}

td_tensor *tide_to_shape(lua_State *L, int index) {
    const tide_handle *handle = lua_touserdata(L, index);
    if (tide_is_handle(handle) && handle->pending)
        return handle->pending->stand_in;
    return tide_to_tensor(L, index);
}

static td_tensor *expect_tensor(lua_State *L, td_tensor *x, int index, const char *fname) {
    char text[80];
    if (!x)
        tide_error(L, "%s: argument %d: tensor expected, got %s", fname, index,
                   tide_describe(L, index, text, sizeof text));
    return x;
}

td_tensor *tide_check_tensor(lua_State *L, int index, const char *fname) {
    return expect_tensor(L, tide_to_tensor(L, index), index, fname);
}

td_tensor *tide_check_shape(lua_State *L, int index, const char *fname) {
    return expect_tensor(L, tide_to_shape(L, index), index, fname);
}

/* ---- errors of the engine ---- */

int tide_raise(lua_State *L) {
    if (td_error_code() == TD_ESCRIPT && tide_script_take_error(L))
        return lua_error(L);
    return tide_error(L, "%s", td_error_message());
}

int tide_value_or_why(lua_State *L, td_status status) {
    if (status == TD_EINTR)
        tide_raise(L);
    if (status == TD_OK)
        return 1;
    lua_pushnil(L);
    lua_pushstring(L, td_error_message());
    return 2;
}

/* ---- memory ---- */

void tide_free_memory(lua_State *L, tide_state *state) {
    tide_pressure_collect(L, &state->pressure);
    for (int type = 0; type < TD_DEVICE_TYPES; type++) {
        const td_backend *backend = td_backends[type];
        for (int index = 0; backend && index < backend->count(); index++)
            td_memory_empty_cache((td_device){(uint8_t)type, (uint8_t)index});
    }
}
