/* remember.c: see remember.h. All access is raw: a _G with a metatable has no say in it, and names
 * that the user gave another meaning stay as they are.
 */
#include "repl/session/remember.h"

static const char inputs_key, values_key;

/* Pushes the table behind a key of the registry; made, and made the global `name`, at first use. */
static void push_table(lua_State *L, const void *key, const char *name) {
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE)
        return;
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
    lua_pushglobaltable(L);
    lua_pushstring(L, name);
    if (lua_rawget(L, -2) == LUA_TNIL) {
        lua_pushstring(L, name);
        lua_pushvalue(L, -4);
        lua_rawset(L, -4);
    }
    lua_pop(L, 2);
}

int remember_tables(lua_State *L) {
    push_table(L, &inputs_key, "In");
    push_table(L, &values_key, "Out");
    return 2;
}

void remember_input(lua_State *L, int number, const char *code, size_t len) {
    push_table(L, &values_key, "Out");
    lua_pushnil(L);
    lua_rawseti(L, -2, number - REMEMBER_VALUES);
    lua_pop(L, 1);
    push_table(L, &inputs_key, "In");
    lua_pushlstring(L, code, len);
    lua_rawseti(L, -2, number);
    lua_pop(L, 1);
}

void remember_value(lua_State *L, int number) {
    int value = lua_gettop(L);
    push_table(L, &values_key, "Out");
    lua_pushvalue(L, value);
    lua_rawseti(L, -2, number);
    lua_pushglobaltable(L);
    lua_pushliteral(L, "__");
    lua_pushliteral(L, "_");
    lua_rawget(L, -3);
    lua_rawset(L, -3);
    lua_pushliteral(L, "_");
    lua_pushvalue(L, value);
    lua_rawset(L, -3);
    lua_settop(L, value - 1);
}
