/* source.c: see source.h. Inputs are found in the history of their session, scripts on disk,
 * what came by standard input in the session. */
#include "repl/session/source.h"
#include "lua-bindings/modules/embedded.h"
#include "repl/session/history.h"
#include "repl/session/state.h"

#include <lauxlib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Chunk name of an input without a number. */
#define UNNUMBERED "=(input)"

void source_name(int number, char *name, size_t size) {
    if (number)
        snprintf(name, size, "=In[%d]", number);
    else
        snprintf(name, size, "%s", UNNUMBERED);
}

static bool push_file(lua_State *L, const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return false;
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    size_t n;
    do {
        char *space = luaL_prepbuffer(&text);
        n = fread(space, 1, LUAL_BUFFERSIZE, file);
        luaL_addsize(&text, n);
    } while (n > 0);
    fclose(file);
    luaL_pushresult(&text);
    return true;
}

bool source_push(lua_State *L, const char *chunkname) {
    if (chunkname[0] == '@')
        return push_file(L, chunkname + 1);
    tide_session *s = session_of(L);
    if (s->text.code && strcmp(chunkname, SOURCE_STDIN) == 0) {
        lua_pushlstring(L, s->text.code, s->text.len);
        return true;
    }
    size_t len = s->input_len;
    const char *input = strcmp(chunkname, UNNUMBERED) == 0 ? s->input : NULL;
    if (strncmp(chunkname, "=In[", 4) == 0)
        input = history_input(s, (int)strtol(chunkname + 4, NULL, 10), &len);
    if (input)
        lua_pushlstring(L, input, len);
    return input != NULL;
}

/* (chunk): the same for Lua modules; nil where nobody has the text. */
static int tell_source(lua_State *L) {
    return source_push(L, luaL_checkstring(L, 1));
}

void source_install(lua_State *L) {
    lua_pushcfunction(L, tell_source);
    lua_setfield(L, LUA_REGISTRYINDEX, TIDE_SOURCE_KEY);
}

void source_push_line(lua_State *L, const char *line, size_t len, size_t at) {
    enum { WINDOW = 100 };
    size_t start = at <= len && at > WINDOW ? at - WINDOW : 0;
    size_t last = (at <= len ? at : start) + WINDOW;
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    luaL_addstring(&text, "    ");
    for (size_t i = start; i < len && i < last; i++)
        luaL_addchar(&text, (unsigned char)line[i] < ' ' ? ' ' : line[i]);
    if (at <= len) {
        luaL_addstring(&text, "\n    ");
        for (size_t i = start; i < at; i++)
            if (((unsigned char)line[i] & 0xC0) != 0x80) /* one column for each code point */
                luaL_addchar(&text, ' ');
        luaL_addchar(&text, '^');
    }
    luaL_pushresult(&text);
}
