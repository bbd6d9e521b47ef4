/* lua.c: the played device's counts and failures on demand for tests in Lua:
 *
 *     local played = package.loadlib(PATH_OF_THE_MODULE, "luaopen_played")()
 *     played.reset()
 *     played.counts().launches, played.counts().kernels["NAME"]
 *     played.counts().choices, played.counts().compute   of cuBLASLt
 *     played.counts().plans, played.counts().convolution   of cuDNN
 */
#include "include/played/played.h"

#include <lauxlib.h>
#include <lua.h>
#include <string.h>

__attribute__((visibility("default"))) int luaopen_played(lua_State *L);

static void set_count(lua_State *L, const char *name, unsigned long long value) {
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

static int counts(lua_State *L) {
    td_played_counts c = td_played_get_counts();
    lua_newtable(L);
    set_count(L, "launches", c.launches);
    set_count(L, "graph_launches", c.graph_launches);
    set_count(L, "to_device", c.to_device);
    set_count(L, "to_host", c.to_host);
    set_count(L, "on_device", c.on_device);
    set_count(L, "on_host", c.on_host);
    set_count(L, "bytes_to_device", c.bytes_to_device);
    set_count(L, "bytes_to_host", c.bytes_to_host);
    set_count(L, "sets", c.sets);
    set_count(L, "synchronisations", c.synchronisations);
    set_count(L, "mallocs", c.mallocs);
    set_count(L, "frees", c.frees);
    set_count(L, "host_mallocs", c.host_mallocs);
    set_count(L, "events", c.events);
    set_count(L, "compilations", c.compilations);
    set_count(L, "memory_out", td_played_memory_out());
    set_count(L, "choices", td_played_choices());
    set_count(L, "plans", td_played_plans());
    lua_pushstring(L, td_played_compute());
    lua_setfield(L, -2, "compute");
    lua_pushstring(L, td_played_convolution());
    lua_setfield(L, -2, "convolution");
    lua_newtable(L);
    unsigned long long launches;
    const char *name;
    for (size_t k = 0; (name = td_played_kernel(k, &launches)); k++)
        set_count(L, name, launches);
    lua_setfield(L, -2, "kernels");
    return 1;
}

static int reset(lua_State *L) {
    (void)L;
    td_played_reset_counts();
    return 0;
}

static int fail(lua_State *L) {
    lua_Integer n = luaL_checkinteger(L, 1);
    luaL_argcheck(L, n >= 0, 1, "a count of cudaMalloc");
    td_played_fail_malloc((unsigned long long)n);
    return 0;
}

/* Takes the error's name, with or without cudaError before it. */
static int fail_next(lua_State *L) {
    const char *wanted = luaL_checkstring(L, 1);
    for (int error = 1; error < 1000; error++) {
        const char *name = cudaGetErrorName((cudaError_t)error);
        if (strcmp(name, wanted) == 0 ||
            (strncmp(name, "cudaError", 9) == 0 && strcmp(name + 9, wanted) == 0)) {
            td_played_fail_next((cudaError_t)error);
            return 0;
        }
    }
    return luaL_error(L, "fail_next: no error is called '%s'", wanted);
}

static int seed(lua_State *L) {
    td_played_set_seed((unsigned long long)luaL_checkinteger(L, 1));
    return 0;
}

/* (what cuptiSubscribe answers, or 0; a kind that is refused, or nothing) */
static int fail_cupti(lua_State *L) {
    td_played_fail_cupti((int)luaL_checkinteger(L, 1), (int)luaL_optinteger(L, 2, 0));
    return 0;
}

/* () -> what NVTX was told since the last time, a list of lines */
static int nvtx(lua_State *L) {
    const char *line;
    lua_newtable(L);
    for (size_t k = 0; (line = td_played_nvtx(k)); k++) {
        lua_pushstring(L, line);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    td_played_nvtx_clear();
    return 1;
}

static int has_compiler(lua_State *L) {
    lua_pushboolean(L, td_played_has_compiler());
    return 1;
}

static int reset_device(lua_State *L) {
    lua_pushstring(L, cudaGetErrorName(cudaDeviceReset()));
    return 1;
}

int luaopen_played(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"counts", counts},
        {"reset", reset},
        {"fail", fail},
        {"fail_next", fail_next},
        {"seed", seed},
        {"reset_device", reset_device},
        {"has_compiler", has_compiler},
        {"nvtx", nvtx},
        {"fail_cupti", fail_cupti},
        {NULL, NULL},
    };
    luaL_newlib(L, functions);
    return 1;
}
