/* module.c: `require "tide"`: the module table, with its submodules loaded when first touched. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/compiled.h"
#include "lua-bindings/modules/embedded.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/circles.h"
#include "lua-bindings/state/modes.h"
#include "lua-bindings/state/script.h"
#include "lua-bindings/state/strict.h"
#include "lua-bindings/tensor/index.h"
#include "lua-bindings/tide_lua.h"
#include "lua-bindings/workers/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts and modules of lua/ are found by their paths: "nn" is public (tide.nn), "nn.layers" a part
 * that modules of our own take by tide._require, "examples/nn.txt" a text. */
static const tide_embedded *find_embedded(const char *name) {
    return tide_embedded_find(tide_embedded_tide_lua, name);
}

/* ---- what embedded modules stand on ---- */

static const char environment_key;

/* print and warn: the script's, as they are at the time, since it may have put its own there to
 * hear them; Lua's own where the script's is no function. Upvalues: the name, Lua's own. */
static int call_scripts(lua_State *L) {
    int n = lua_gettop(L);
    lua_pushglobaltable(L);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_rawget(L, -2);
    if (lua_type(L, -1) != LUA_TFUNCTION)
        lua_pushvalue(L, lua_upvalueindex(2));
    lua_insert(L, 1);
    lua_settop(L, n + 1);
    lua_call(L, n, 0);
    return 0;
}

static void keep_environment(lua_State *L) {
    static const char *const heard[] = {"print", "warn"};
    tide_push_environment(L);
    for (size_t k = 0; k < sizeof heard / sizeof *heard; k++) {
        lua_pushstring(L, heard[k]);
        lua_getfield(L, -2, heard[k]);
        lua_pushcclosure(L, call_scripts, 2);
        lua_setfield(L, -2, heard[k]);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &environment_key);
}

/* Run an embedded Lua module: its chunk gets the tide table and returns the module. */
static int run_embedded(lua_State *L) {
    tide_push_chunk(L, lua_touserdata(L, 2), "tide", &environment_key);
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static void load_embedded(lua_State *L, const tide_embedded *e, int tide) {
    tide_state *state = TIDE_STATE(L);
    bool outermost = !state->loading;
    td_loading loading;
    lua_pushcfunction(L, run_embedded);
    lua_pushvalue(L, tide);
    lua_pushlightuserdata(L, (void *)(uintptr_t)e);
    if (outermost) {
        tide_enter_engine(state);
        td_loading_begin(&loading, e->name);
    }
    state->loading = true;
    int code = lua_pcall(L, 2, 1, 0);
    if (outermost) {
        state->loading = false;
        td_loading_end(&loading);
    }
    if (code)
        lua_error(L);
}

static bool is_public(const tide_embedded *e) {
    return !strpbrk(e->name, "./");
}

/* A name that is nowhere. */
static int fail_name(lua_State *L, const char *name) {
    enum { MOST = 128 };
    const char *modules[MOST];
    int n = 0;
    size_t len = strlen(name);
    bool python = len > 4 && !strncmp(name, "__", 2) && !strcmp(name + len - 2, "__");
    if (tide_is_private(name) && !python)
        return 0;
    for (const tide_embedded *e = tide_embedded_tide_lua; e->name && n < MOST - 2; e++)
        if (is_public(e))
            modules[n++] = e->name;
    modules[n++] = "profiler";
    modules[n++] = "default_dtype";
    return tide_fail_name(L, "tide", modules, n);
}

/* __index of the tide table. */
static int load_submodule(lua_State *L) {
    const char *name = lua_type(L, 2) == LUA_TSTRING ? lua_tostring(L, 2) : NULL;
    if (!name)
        return 0;
    if (!strcmp(name, "default_dtype")) {
        tide_push_dtype(L, td_default_dtype());
        return 1;
    }
    const tide_embedded *e = find_embedded(name);
    if (!e || !is_public(e))
        return fail_name(L, name);
    load_embedded(L, e, 1);
    tide_seal_module(L, -1, name);
    lua_pushstring(L, name);
    lua_pushvalue(L, -2);
    lua_rawset(L, 1);
    return 1;
}

enum { WHOLE = TIDE_UP_FIRST, LOADED }; /* upvalues: the tide table, parts by name */

/* tide._require(name): a part of our own modules, loaded once ("nn.layers": lua/nn/layers.lua), or
 * a text as a string
 * ("examples/nn.txt"). tide._loaded holds those that are. */
static int require_part(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_settop(L, 1);
    lua_pushvalue(L, 1);
    if (lua_rawget(L, lua_upvalueindex(LOADED)) != LUA_TNIL)
        return 1;
    const tide_embedded *e = find_embedded(name);
    if (!e)
        return luaL_error(L, "tide has no part '%s'", name);
    if (strchr(name, '/')) {
        lua_pushlstring(L, e->bytes, e->len);
        return 1;
    }
    load_embedded(L, e, lua_upvalueindex(WHOLE));
    lua_pushvalue(L, 1);
    lua_pushvalue(L, -2);
    lua_rawset(L, lua_upvalueindex(LOADED));
    return 1;
}

/* tide._source(chunk): the text behind the name of a chunk that is no file's: of a module of our
 * own
 * ("=tide.nn.layers"), or what a front end knows of it, which it answers by the function under
 * TIDE_SOURCE_KEY in the registry; nil: nobody has it. */
static int source(lua_State *L) {
    static const char own[] = "=tide.";
    const char *chunk = luaL_checkstring(L, 1);
    const tide_embedded *e =
        strncmp(chunk, own, sizeof own - 1) ? NULL : find_embedded(chunk + sizeof own - 1);
    lua_settop(L, 1);
    if (e) {
        lua_pushlstring(L, e->bytes, e->len);
        return 1;
    }
    if (lua_getfield(L, LUA_REGISTRYINDEX, TIDE_SOURCE_KEY) != LUA_TFUNCTION)
        return 0;
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static void open_parts(lua_State *L) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, "_loaded");
    lua_pushvalue(L, -2);
    lua_insert(L, -2);
    tide_push_function(L, require_part, 2);
    lua_setfield(L, -2, "_require");
    tide_push_function(L, source, 0);
    lua_setfield(L, -2, "_source");
}

/* `require "tide.nn"` too. */
static int open_submodule(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_getfield(L, -1, "tide");
    lua_getfield(L, -1, strncmp(name, "tide.", 5) ? name : name + 5);
    return 1;
}

static void list_submodules(lua_State *L) {
    int n = 0;
    lua_newtable(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    for (const tide_embedded *e = tide_embedded_tide_lua; e->name; e++) {
        if (!is_public(e))
            continue;
        lua_pushstring(L, e->name);
        lua_rawseti(L, -3, ++n);
        lua_pushfstring(L, "tide.%s", e->name);
        lua_pushcfunction(L, open_submodule);
        lua_rawset(L, -3);
    }
    lua_pop(L, 1);
    lua_setfield(L, -2, "_lazy");
}

/* All parts of a state; what a memory error prevented is made by the next attempt. */
static void open_state(lua_State *L) {
    tide_state *state = tide_state_find(L);
    if (state->whole)
        return;
    tide_open_anchors(L, state);
    tide_open_script(L);
    tide_open_circles(L, state);
    tide_count_state();
    state->whole = true;
}

static const tide_states states = {tide_lua_new, tide_lua_close};

int luaopen_tide(lua_State *L) {
    luaL_checkversion(L);
    if (td_init())
        return tide_error(L, "%s", td_error_message());
    open_state(L);
    keep_environment(L);
    lua_createtable(L, 0, 512);
    tide_open_functions(L);
    tide_open_dtypes(L);
    tide_open_dtype_functions(L);
    tide_open_operators(L);
    tide_open_tensor(L);
    tide_open_creation(L);
    tide_open_modes(L);
    tide_open_autograd(L);
    tide_open_docs(L);
    tide_open_system(L);
    tide_open_sizes(L);
    tide_open_printing(L);
    tide_open_generators(L);
    tide_open_csv_file(L);
    tide_open_csv(L);
    tide_open_csv_table(L);
    tide_open_csv_write(L);
    tide_open_bytes(L);
    tide_open_texts(L);
    tide_open_arrow(L);
    tide_open_stream(L);
    tide_open_npy(L);
    tide_open_samples(L);
    tide_open_npz(L);
    tide_open_file(L);
    tide_open_gguf(L);
    tide_open_checkpoint(L);
    tide_open_foreach(L);
    tide_open_optim(L);
    tide_open_profiler(L);
    tide_open_stages(L);
    tide_open_images(L);
    tide_open_transforms(L);
    tide_open_watched(L);
    tide_open_cuda(L);
    tide_open_workers(L, &states);
    tide_open_script_functions(L);
    tide_open_doctor(L);
    tide_open_library(L);
    list_submodules(L);
    open_parts(L);
    tide_push_newaxis(L);
    lua_setfield(L, -2, "newaxis");
    lua_createtable(L, 0, 2);
    tide_push_function(L, load_submodule, 0);
    lua_setfield(L, -2, "__index");
    tide_set_newindex(L);
    lua_setmetatable(L, -2);
    return 1;
}

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
