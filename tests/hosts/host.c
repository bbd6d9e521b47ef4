/* host.c: a program in C that has Lua in itself, runs a script and shows what it raises. */
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

int main(int argc, char **argv) {
    lua_State *L = luaL_newstate();
    int failed = argc != 2 || !L;
    if (failed) {
        fputs("usage: host SCRIPT\n", stderr);
        return 2;
    }
    luaL_openlibs(L);
    failed = luaL_dofile(L, argv[1]) != LUA_OK;
    if (failed)
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    lua_close(L);
    return failed;
}
