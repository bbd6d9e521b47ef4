/* library.c: operators of libraries that scripts load. */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include <dlfcn.h>
#include <lauxlib.h>
#include <string.h>

typedef int (*entries_function)(const td_operator_entry *const **entries);

/* What the library says its operators are; it stays loaded. */
static int find_entries(lua_State *L, const char *path, const td_operator_entry *const **entries) {
    entries_function of;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        tide_error(L, "load_library: %s", dlerror());
    void *symbol = dlsym(library, "td_library_operators");
    if (!symbol)
        tide_error(L,
                   "load_library: '%s' has no operators: one of its files needs "
                   "TD_OPERATOR_LIBRARY;",
                   path);
    memcpy(&of, &symbol, sizeof of); /* C knows no cast from objects to functions */
    return of(entries);
}

/* tide._load_operators(tide, path): the names of a library's operators, which are functions and
 * methods of this state from now on. */
static int load_operators(lua_State *L) {
    const td_operator_entry *const *entries;
    luaL_checktype(L, 1, LUA_TTABLE);
    int n = find_entries(L, luaL_checkstring(L, 2), &entries);
    if (td_op_register(n, entries))
        tide_error(L, "load_library: '%s': %s", lua_tostring(L, 2), td_error_message());
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        lua_pushvalue(L, 1);
        tide_set_operator(L, entries[k]->op);
        lua_pop(L, 1);
        tide_add_method(L, 1, entries[k]->op);
        lua_pushstring(L, entries[k]->name);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

void tide_open_library(lua_State *L) {
    static const luaL_Reg functions[] = {{"_load_operators", load_operators}, {NULL, NULL}};
    tide_set_functions(L, functions);
}
