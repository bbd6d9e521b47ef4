/* errors.c: errors at the line of the user's code, and values in words for them. */
#include "lua-bindings/state/errors.h"

#include "engine/core/number.h"
#include "lua-bindings/state/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
        if (luaL_testudata(L, index, "tide.dtype")) {
            snprintf(buffer, size, "%s", luaL_tolstring(L, index, NULL));
            lua_pop(L, 1);
            return buffer;
        }
        break;
    default:
        break;
    }
    index = lua_absindex(L, index);
    const char *name = luaL_typename(L, index);
    int type = luaL_getmetafield(L, index, "__name");
    if (type == LUA_TSTRING) {
        snprintf(buffer, size, "%s", lua_tostring(L, -1));
        name = buffer;
    }
    if (type == LUA_TSTRING && !strcmp(name, "class")) { /* of modules, by its name */
        lua_pushliteral(L, "__name");
        if (lua_istable(L, index) && lua_rawget(L, index) == LUA_TSTRING)
            snprintf(buffer, size, "class %s", lua_tostring(L, -1));
        lua_pop(L, 1);
    }
    if (type != LUA_TNIL)
        lua_pop(L, 1);
    return name;
}

static char small(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Edit distance, swaps of neighbours counting once and capitals nothing, up to 31 letters. */
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
            int best = before[j - 1] + (small(a[i - 1]) != small(b[j - 1]));
            best = before[j] + 1 < best ? before[j] + 1 : best;
            best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
            if (i > 1 && j > 1 && small(a[i - 1]) == small(b[j - 2]) &&
                small(a[i - 2]) == small(b[j - 1]))
                best = older[j - 2] + 1 < best ? older[j - 2] + 1 : best;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

/* Does the name begin with the word, capitals and underscores left out of both? */
static bool begins_with(const char *name, const char *word) {
    for (; *word; word++) {
        if (*word == '_')
            continue;
        while (*name == '_')
            name++;
        if (small(*name++) != small(*word))
            return false;
    }
    return true;
}

const char *tide_begun(const char *word, const char *const *names, int n) {
    const char *found = NULL;
    for (int k = 0; k < n && strlen(word) > 1; k++) {
        size_t len = strlen(names[k]), least = found ? strlen(found) : SIZE_MAX;
        if ((len < least || (len == least && strcmp(names[k], found) < 0)) &&
            begins_with(names[k], word))
            found = names[k];
    }
    return found;
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
