/* script_cache.c: tide._script.code_cache: machine code that was made, and the files that keep it.
 */
#include "engine/io/code_cache.h"
#include "lua-bindings/script/script_function.h"

static void set_integer(lua_State *L, const char *key, int64_t value) {
    lua_pushinteger(L, value);
    lua_setfield(L, -2, key);
}

/* code_cache(clear): what there is, as a table; files are removed before where `clear` is true. */
int tide_script_code_cache(lua_State *L) {
    td_code_cache_facts facts;
    int64_t removed = lua_toboolean(L, 1) ? td_code_cache_clear() : 0;
    td_code_tally tally = td_code_tally_now();
    td_code_cache_look(&facts);
    lua_createtable(L, 0, 10);
    lua_pushstring(L, facts.folder);
    lua_setfield(L, -2, "path");
    set_integer(L, "entries", facts.files);
    set_integer(L, "bytes", facts.bytes);
    set_integer(L, "bound", facts.most);
    set_integer(L, "removed", removed);
    set_integer(L, "compiled", tally.compiled);
    set_integer(L, "loaded", tally.loaded);
    set_integer(L, "refused", tally.refused);
    set_integer(L, "runs", tally.runs);
    lua_pushnumber(L, (double)tally.microseconds / 1e3);
    lua_setfield(L, -2, "ms");
    return 1;
}
