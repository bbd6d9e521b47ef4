/* script_module.c: tide._script: what lua/jit.lua and its parts stand on. */
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/script/script_function.h"

void tide_open_script_functions(lua_State *L) {
    tide_open_script_values(L);
    lua_newtable(L);
    tide_open_script_class(L);
    tide_set_script_functions(L);
    tide_open_compiled_class(L);
    lua_setfield(L, -2, "_script");
}
