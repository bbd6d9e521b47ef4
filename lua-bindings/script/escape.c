/* escape.c: notes of values that leave a graph while it is traced: what was read, and on which
 * line. */
#include "lua-bindings/script/escape.h"

#include <string.h>

static const char notes_key = 0; /* in the registry: the table of notes of the trace that is made */

void tide_set_notes(lua_State *L, int index) {
    lua_pushvalue(L, index);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &notes_key);
}

void tide_add_note(lua_State *L, int notes, const char *what, const char *source, int line) {
    notes = lua_absindex(L, notes);
    luaL_checkstack(L, 6, "trace");
    lua_pushfstring(L, "%s:%d: %s", source, line, what);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, notes) == LUA_TNIL) {
        lua_createtable(L, 0, 2);
        lua_pushstring(L, what);
        lua_setfield(L, -2, "what");
        lua_pushfstring(L, "%s:%d", source, line);
        lua_setfield(L, -2, "place");
        lua_rawseti(L, notes, (lua_Integer)lua_rawlen(L, notes) + 1);
        lua_pushvalue(L, -2);
        lua_pushboolean(L, 1);
        lua_rawset(L, notes);
    }
    lua_pop(L, 2);
}

/* Is what called the running function the script's own code? */
static bool is_called_by_script(lua_State *L) {
    lua_Debug ar;
    return lua_getstack(L, 1, &ar) && lua_getinfo(L, "S", &ar) &&
           strncmp(ar.source, "=tide.", 6) != 0;
}

void tide_note_escape(lua_State *L, int index, const char *what, tide_escape kind) {
    lua_Debug ar;
    tide_handle *handle = lua_touserdata(L, index);
    if (!tide_is_handle(handle) || !handle->tensor || !td_trace_follows(handle->tensor))
        return;
    if (kind == TIDE_ESCAPE_SIZES && !is_called_by_script(L))
        return;
    luaL_checkstack(L, 8, "trace");
    if (!tide_find_line(L, &ar))
        return;
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &notes_key) == LUA_TTABLE)
        tide_add_note(L, -1, what, ar.short_src, ar.currentline);
    lua_pop(L, 1);
}
