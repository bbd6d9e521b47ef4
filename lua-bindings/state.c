/* state.c: the bindings' part of a Lua state: allocator, metatable, errors, memory pressure. */
#include "lua-bindings/state.h"

#include "engine/core/number.h"
#include "lua-bindings/circles.h"
#include "lua-bindings/modes.h"
#include "lua-bindings/modules.h"
#include "lua-bindings/script.h"
#include "lua-bindings/tide_lua.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char state_key = 0, metatable_key = 0, kept_key = 0;

/* ---- making states ---- */

static void *plain_alloc(void *ud, void *block, size_t old_size, size_t new_size) {
    (void)ud;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return realloc(block, new_size);
}

static int on_panic(lua_State *L) {
    const char *message = lua_tostring(L, -1);
    fprintf(stderr, "tide: unprotected error: %s\n", message ? message : "(no message)");
    return 0;
}

static int open_libraries(lua_State *L) {
    luaL_openlibs(L);
    tide_open_coroutines(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_tide);
    lua_setfield(L, -2, "tide");
    return 0;
}

lua_State *tide_lua_new(void) {
    tide_arena *arena = tide_arena_new(plain_alloc, NULL);
    lua_State *L = arena ? lua_newstate(tide_arena_alloc, arena) : NULL;
    if (!L) {
        if (arena)
            tide_arena_free(arena);
        return NULL;
    }
    lua_atpanic(L, on_panic);
    lua_pushcfunction(L, open_libraries);
    if (lua_pcall(L, 0, 0, 0) == LUA_OK)
        return L;
    tide_lua_close(L);
    return NULL;
}

void tide_lua_close(lua_State *L) {
    void *arena;
    lua_getallocf(L, &arena);
    lua_close(L);
    tide_arena_free(arena);
}

/* A state that somebody else made: our allocator goes in front of its own, and leaves when the
 * state itself is freed. */
static tide_arena *wrap_allocator(lua_State *L) {
    void *ud;
    lua_Alloc next = lua_getallocf(L, &ud);
    tide_arena *arena = tide_arena_new(next, ud);
    if (!arena)
        tide_error(L, "tide: out of memory");
    lua_rawgeti(L, LUA_REGISTRYINDEX, LUA_RIDX_MAINTHREAD);
    arena->main = lua_tothread(L, -1);
    lua_pop(L, 1);
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

tide_state *tide_state_open(lua_State *L) {
    bool there = lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key) == LUA_TUSERDATA;
    tide_state *state = lua_touserdata(L, -1);
    lua_pop(L, 1);
    if (!there)
        state = new_state(L);
    if (!state->whole) { /* a memory error may have come between */
        tide_open_script(L, state);
        tide_open_circles(L, state);
        state->whole = true;
    }
    return state;
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
    if (TD_UNLIKELY(!handle->tensor))
        tide_error(L, "this tensor was closed");
    return handle->tensor;
}

td_tensor *tide_check_tensor(lua_State *L, int index, const char *fname) {
    char text[80];
    td_tensor *x = tide_to_tensor(L, index);
    if (!x)
        tide_error(L, "%s: argument %d: tensor expected, got %s", fname, index,
                   tide_describe(L, index, text, sizeof text));
    return x;
}

/* ---- errors ---- */

/* No deeper than any module is nested: Lua finds a level by walking to it, so that a module which
 * calls itself without end would take longer and longer for each call. */
enum { DEEPEST_LINE = 60 };

bool tide_find_line(lua_State *L, lua_Debug *ar) {
    for (int level = 1; level <= DEEPEST_LINE && lua_getstack(L, level, ar); level++) {
        lua_getinfo(L, "Sl", ar);
        if (ar->currentline > 0 && strncmp(ar->source, "=tide.", 6) != 0)
            return true;
    }
    return false;
}

/* Push "file:line: " of the user's code, as luaL_where does. */
static void push_place(lua_State *L) {
    lua_Debug ar;
    if (tide_find_line(L, &ar))
        lua_pushfstring(L, "%s:%d: ", ar.short_src, ar.currentline);
    else
        lua_pushliteral(L, "");
}

/* Put the message on the top on one line, and cut it where it holds a page of what was given. */
static void push_line(lua_State *L) {
    enum { MOST = 1000, HEAD = 600, TAIL = 200 };
    luaL_Buffer b;
    size_t len;
    const char *text = lua_tolstring(L, -1, &len);
    luaL_buffinit(L, &b);
    for (size_t k = 0; k < len; k++) {
        if (len > MOST && k == HEAD) {
            luaL_addstring(&b, "...");
            k = len - TAIL;
        }
        unsigned char c = (unsigned char)text[k];
        if (c >= ' ' && c != 127) {
            luaL_addchar(&b, text[k]);
            continue;
        }
        char code[8];
        snprintf(code, sizeof code, c == '\n' ? "\\n" : "\\x%02X", c);
        luaL_addstring(&b, code);
    }
    luaL_pushresult(&b);
    lua_remove(L, -2);
}

int tide_error(lua_State *L, const char *format, ...) {
    va_list args;
    va_start(args, format);
    push_place(L);
    lua_pushvfstring(L, format, args);
    va_end(args);
    push_line(L);
    lua_concat(L, 2);
    return lua_error(L);
}

int tide_raise(lua_State *L) {
    if (td_error_code() == TD_ESCRIPT && tide_script_take_error(L))
        return lua_error(L);
    return tide_error(L, "%s", td_error_message());
}

const char *tide_quote(const char *text, size_t len, char buffer[TIDE_QUOTED]) {
    enum { SHOWN = 40, ENDS = 12 }; /* room for a byte, the dots and the quote */
    size_t k = 0;
    char *to = buffer, *last = buffer + TIDE_QUOTED - ENDS;
    *to++ = '"';
    for (; k < len && to < last && (k < SHOWN || ((unsigned char)text[k] & 0xC0) == 0x80); k++) {
        unsigned char byte = (unsigned char)text[k];
        to += snprintf(to, 5, byte < ' ' || byte == 127 ? "\\x%02X" : "%c", byte);
    }
    snprintf(to, ENDS, k < len ? "...\"" : "\"");
    return buffer;
}

const char *tide_describe(lua_State *L, int index, char *buffer, size_t size) {
    switch (lua_type(L, index)) {
    case LUA_TNONE:
        return "nothing";
    case LUA_TNIL:
        return "nil";
    case LUA_TNUMBER:
        if (lua_isinteger(L, index))
            snprintf(buffer, size, "number %lld", (long long)lua_tointeger(L, index));
        else
            td_number_print(buffer, size, "number %.14g", lua_tonumber(L, index));
        return buffer;
    case LUA_TBOOLEAN:
        return lua_toboolean(L, index) ? "true" : "false";
    case LUA_TSTRING: {
        char quoted[TIDE_QUOTED];
        snprintf(buffer, size, "string %s",
                 tide_quote(lua_tostring(L, index), lua_rawlen(L, index), quoted));
        return buffer;
    }
    case LUA_TUSERDATA:
        if (tide_is_handle(lua_touserdata(L, index)))
            return "a tensor";
        break;
    default:
        break;
    }
    const char *name = luaL_typename(L, index);
    int type = luaL_getmetafield(L, index, "__name");
    if (type == LUA_TSTRING) {
        snprintf(buffer, size, "%s", lua_tostring(L, -1));
        name = buffer;
    }
    if (type != LUA_TNIL)
        lua_pop(L, 1);
    return name;
}

/* Edit distance, swaps of neighbours counting once, up to 31 letters. */
static int distance(const char *a, const char *b) {
    int row[3][33], n = (int)strlen(a), m = (int)strlen(b);
    if (n > 31 || m > 31)
        return 99;
    for (int j = 0; j <= m; j++)
        row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *older = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = before[j - 1] + (a[i - 1] != b[j - 1]);
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = older[j - 2] + 1 < best ? older[j - 2] + 1 : best;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *tide_nearest(const char *word, const char *const *names, int n) {
    const char *nearest = NULL;
    enum { FEW = 16 }; /* names, of which none resembles a word by chance */
    size_t len = strlen(word);
    int limit = len <= 2 ? 0 : len <= 3 || (len <= 7 && n > FEW) ? 1 : 2, least = limit + 1;
    for (int k = 0; k < n; k++) {
        int d = distance(word, names[k]);
        if (d < least) {
            least = d;
            nearest = names[k];
        }
    }
    return nearest;
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
