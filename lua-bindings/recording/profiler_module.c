/* profiler_module.c: tide.profiler put together: recording (profiler.c), what is done with a
 * recording (profile.c, summary.c), and the classes of their objects. */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/recording/profile.h"

static void make_metatable(lua_State *L, const char *name, const tide_function *const methods[],
                           const luaL_Reg *events) {
    luaL_newmetatable(L, name);
    luaL_setfuncs(L, events, 0);
    lua_newtable(L);
    for (; *methods; methods++)
        tide_declare(L, *methods);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
}

/* () -> the table of functions, the methods of profiles. */
static int open_profiler(lua_State *L) {
    static const tide_function loading[] = {
        {"load(str path) -> profile",
         "The recording in a trace file, packed by gzip or not: Tide's, PyTorch's, others' in the "
         "trace event format.",
         tide_profile_load},
        {NULL, NULL, NULL}};
    make_metatable(L, TIDE_PROFILE_NAME,
                   (const tide_function *const[]){tide_recording_methods, tide_profile_methods,
                                                  tide_summary_methods, NULL},
                   tide_profile_events);
    luaL_getmetatable(L, TIDE_PROFILE_NAME);
    lua_pushcfunction(L, tide_profile_tostring);
    lua_setfield(L, -2, "__tostring");
    lua_pop(L, 1);
    make_metatable(L, TIDE_RANGE_NAME, (const tide_function *const[]){NULL}, tide_range_events);
    lua_newtable(L);
    tide_declare(L, tide_recording_functions);
    tide_declare(L, loading);
    luaL_getmetatable(L, TIDE_PROFILE_NAME);
    lua_getfield(L, -1, "__index");
    lua_insert(L, -2);
    return 3;
}

void tide_open_profiler(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_profiler", open_profiler}, {"_profiler_write", tide_profiler_write}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
