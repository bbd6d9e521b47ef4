/* display.c: what becomes of a value that is shown: text always, and what its __display offers.
 *
 * Turning a value into text may run user code (__tostring, __display), which may fail, recurse or
 * never end: errors become part of the text, interrupts and os.exit pass.
 */
#include "repl/session/display.h"
#include "repl/session/capture.h"
#include "repl/session/control.h"
#include "repl/session/modules.h"
#include "repl/session/output.h"
#include "repl/session/result.h"
#include "repl/session/state.h"

#include "lua-bindings/call/function.h"
#include "lua-bindings/state/state.h"

#include <lauxlib.h>
#include <string.h>

static int tostring_body(lua_State *L) {
    if (lua_type(L, 1) == LUA_TNUMBER)
        tide_push_number_text(L, 1, 0);
    else
        luaL_tolstring(L, 1, NULL);
    return 1;
}

static int describe_body(lua_State *L) {
    int width = session_of(L)->frontend.width;
    module_push_function(L, "display", "describe");
    lua_insert(L, 1);
    lua_pushinteger(L, width > 0 ? width : 80);
    lua_call(L, 2, 1);
    return 1;
}

/* "<table: 0x5581…: error in __tostring: …>" in place of the error on top of the stack. */
static void push_failure(lua_State *L, int idx, const char *where) {
    int error = lua_gettop(L);
    const char *message =
        lua_type(L, error) == LUA_TSTRING ? lua_tostring(L, error) : luaL_typename(L, error);
    lua_pushfstring(L, "<%s: %p: error in %s: %s>", luaL_typename(L, idx), lua_topointer(L, idx),
                    where, message);
    lua_remove(L, error);
}

void display_push_plain(lua_State *L, int idx) {
    luaL_checkstack(L, 8, NULL);
    idx = lua_absindex(L, idx);
    int type = lua_type(L, idx);
    bool direct = type == LUA_TNUMBER || type == LUA_TBOOLEAN || type == LUA_TNIL ||
                  type == LUA_TUSERDATA || type == LUA_TLIGHTUSERDATA || type == LUA_TTHREAD;
    lua_pushcfunction(L, direct ? tostring_body : describe_body);
    lua_pushvalue(L, idx);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        control_let_stops_pass(L);
        push_failure(L, idx, direct ? "__tostring" : "its display");
    }
}

/* The table that value's __display returns, on the stack; false: it has none. */
static bool push_display_table(lua_State *L, int idx, tide_bundle *bundle) {
    if (luaL_getmetafield(L, idx, "__display") == LUA_TNIL)
        return false;
    lua_pushvalue(L, idx);
    bool ok = lua_pcall(L, 1, 1, 0) == LUA_OK;
    if (!ok)
        control_let_stops_pass(L);
    if (ok && lua_istable(L, -1))
        return true;
    if (!ok) {
        push_failure(L, idx, "__display");
        size_t len;
        const char *text = lua_tolstring(L, -1, &len);
        bundle_add(bundle, "text/plain", text, len);
    }
    lua_pop(L, 1);
    return false;
}

/* Pushes tide._require(module)[name]; false: nothing is pushed. */
static bool push_helper(lua_State *L, const char *module, const char *name) {
    int top = lua_gettop(L);
    bool found = module_push_tide(L) && lua_getfield(L, -1, "_require") == LUA_TFUNCTION;
    if (found) {
        lua_pushstring(L, module);
        lua_call(L, 1, 1);
        found = lua_istable(L, -1) && lua_getfield(L, -1, name);
    }
    if (found)
        lua_replace(L, top + 1);
    lua_settop(L, top + (found ? 1 : 0));
    return found;
}

/* tide._require("notebook.mime").read(table): what a bundle may hold of it. */
static int read_body(lua_State *L) {
    if (!push_helper(L, "notebook.mime", "read"))
        return 0;
    lua_insert(L, 1);
    lua_call(L, 1, 3);
    return 3;
}

/* Adds the entries of the MIME table on top, but for the text; what is wrong is said. */
static void add_mime_entries(lua_State *L, tide_bundle *bundle) {
    int top = lua_gettop(L);
    lua_pushcfunction(L, read_body);
    lua_pushvalue(L, top);
    if (lua_pcall(L, 1, 3, 0) != LUA_OK) {
        control_let_stops_pass(L);
        output_line(session_of(L), lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "error");
    } else if (lua_istable(L, top + 1)) {
        for (lua_Integer k = 1; lua_rawgeti(L, top + 1, k) == LUA_TSTRING; k += 2) {
            lua_rawgeti(L, top + 1, k + 1);
            bundle_add(bundle, lua_tostring(L, -2), lua_tostring(L, -1), lua_rawlen(L, -1));
            lua_pop(L, 2);
        }
        if (lua_isstring(L, top + 2))
            bundle->metadata = copy_string(lua_tostring(L, top + 2));
        if (lua_isstring(L, top + 3))
            output_line(session_of(L), lua_tostring(L, top + 3));
    }
    lua_settop(L, top);
}

/* tide._require("notebook.html").value(value): how a notebook shows it; nothing: as text. */
static int html_body(lua_State *L) {
    if (!push_helper(L, "notebook.html", "value"))
        return 0;
    lua_insert(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

static void add_html(lua_State *L, int idx, tide_bundle *bundle) {
    lua_pushcfunction(L, html_body);
    lua_pushvalue(L, idx);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK)
        control_let_stops_pass(L); /* the text is there */
    else if (lua_type(L, -1) == LUA_TSTRING)
        bundle_add(bundle, "text/html", lua_tostring(L, -1), lua_rawlen(L, -1));
    lua_pop(L, 1);
}

static void add_plain(lua_State *L, int idx, tide_bundle *bundle) {
    display_push_plain(L, idx);
    bundle_add(bundle, "text/plain", lua_tostring(L, -1), lua_rawlen(L, -1));
    lua_pop(L, 1);
}

static void bundle_of_one(lua_State *L, int idx, tide_bundle *bundle) {
    if (!push_display_table(L, idx, bundle)) {
        if (bundle->n > 0)
            return;
        add_plain(L, idx, bundle);
        if (session_of(L)->frontend.notebook)
            add_html(L, idx, bundle);
        return;
    }
    lua_pushliteral(L, "text/plain");
    if (lua_rawget(L, -2) == LUA_TSTRING)
        bundle_add(bundle, "text/plain", lua_tostring(L, -1), lua_rawlen(L, -1));
    else
        add_plain(L, idx, bundle);
    lua_pop(L, 1);
    add_mime_entries(L, bundle);
    lua_pop(L, 1);
}

void display_bundle(lua_State *L, int first, int n, tide_bundle *bundle) {
    luaL_checkstack(L, 8, NULL);
    if (n == 1) {
        bundle_of_one(L, first, bundle);
    } else if (n > 1) {
        luaL_Buffer text;
        luaL_buffinit(L, &text);
        for (int i = 0; i < n; i++) {
            if (i > 0)
                luaL_addchar(&text, '\n');
            display_push_plain(L, first + i);
            luaL_addvalue(&text);
        }
        luaL_pushresult(&text);
        bundle_add(bundle, "text/plain", lua_tostring(L, -1), lua_rawlen(L, -1));
        lua_pop(L, 1);
    }
}

/* ---- print ---- */

/* A table that says nothing of itself. */
static bool is_silent_table(lua_State *L, int index) {
    bool silent = lua_istable(L, index) && luaL_getmetafield(L, index, "__tostring") == LUA_TNIL;
    if (lua_istable(L, index) && !silent)
        lua_pop(L, 1);
    return silent;
}

/* Is it a tensor whose rows stand below each other, so that none may have anything before it? */
static bool has_rows(lua_State *L, int index) {
    const td_tensor *x = lua_isuserdata(L, index) ? tide_to_tensor(L, index) : NULL;
    return x && x->ndim > 1 && x->numel > 1;
}

/* Where `whole`, tables are shown by what they hold. */
static int print_values(lua_State *L, bool whole) {
    tide_session *s = session_of(L);
    int n = lua_gettop(L);
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    for (int i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&text, has_rows(L, i) ? '\n' : '\t');
        if (whole && is_silent_table(L, i))
            display_push_plain(L, i);
        else
            luaL_tolstring(L, i, NULL);
        luaL_addvalue(&text);
    }
    luaL_addchar(&text, '\n');
    luaL_pushresult(&text);
    size_t len;
    const char *bytes = lua_tolstring(L, -1, &len);
    output_write(s, TIDE_STDOUT, bytes, len);
    return 0;
}

/* In inputs of a person print shows tables; scripts' print is Lua's. */
static int session_print(lua_State *L) {
    const tide_session *s = session_of(L);
    return print_values(L, s->input || s->frontend.notebook);
}

/* tide._print(...): behind tide.print. */
static int whole_print(lua_State *L) {
    return print_values(L, true);
}

/* ---- tide.display and its kin ---- */

/* Hands a bundle out, and clears it. */
static void show_bundle(lua_State *L, tide_bundle *bundle, const char *id, bool update) {
    tide_session *s = session_of(L);
    if (capture_take_display(L, bundle))
        ;
    else if (s->frontend.display)
        s->frontend.display(s->frontend.ctx, bundle, id, update);
    else if (bundle->n > 0) {
        output_write(s, TIDE_STDOUT, bundle->entries[0].data, bundle->entries[0].len);
        output_write(s, TIDE_STDOUT, "\n", 1);
    }
    tide_bundle_clear(bundle);
}

int display_show_text(lua_State *L) {
    size_t len;
    const char *type = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &len);
    tide_bundle bundle = {0};
    bundle_add(&bundle, "text/plain", text, len > 0 && text[len - 1] == '\n' ? len - 1 : len);
    bundle_add(&bundle, type, text, len);
    show_bundle(L, &bundle, NULL, false);
    return 0;
}

/* (value [, {id = "name", update = true}]): see display.h. */
int display_show(lua_State *L) {
    luaL_checkany(L, 1);
    const char *id = NULL;
    bool update = false;
    if (!lua_isnoneornil(L, 2)) {
        luaL_checktype(L, 2, LUA_TTABLE);
        int type = lua_getfield(L, 2, "id");
        if (type != LUA_TNIL && !lua_isstring(L, -1))
            return luaL_argerror(
                L, 2, lua_pushfstring(L, "id is a %s, expected a string", luaL_typename(L, -1)));
        id = lua_tostring(L, -1);
        lua_getfield(L, 2, "update");
        update = lua_toboolean(L, -1);
        luaL_argcheck(L, id || !update, 2, "update needs the id of a display");
    }
    tide_bundle bundle = {0};
    display_bundle(L, 1, 1, &bundle);
    show_bundle(L, &bundle, id, update);
    return 0;
}

/* What the table tide.display does when it is called. */
static int tide_display(lua_State *L) {
    lua_remove(L, 1);
    return display_show(L);
}

/* tide.clear_output([wait]): empties the output of the cell; nothing in a terminal. */
static int tide_clear_output(lua_State *L) {
    tide_session *s = session_of(L);
    if (s->frontend.clear_output)
        s->frontend.clear_output(s->frontend.ctx, lua_toboolean(L, 1));
    return 0;
}

/* tide._frontend(): {interactive, color, notebook, width}, for progress bars and plots. */
static int tide_frontend_table(lua_State *L) {
    const tide_frontend *f = &session_of(L)->frontend;
    lua_createtable(L, 0, 4);
    lua_pushboolean(L, f->interactive);
    lua_setfield(L, -2, "interactive");
    lua_pushboolean(L, f->color && (f->interactive || f->notebook)); /* of standard output */
    lua_setfield(L, -2, "color");
    lua_pushboolean(L, f->notebook);
    lua_setfield(L, -2, "notebook");
    lua_pushinteger(L, f->width > 0 ? f->width : 80);
    lua_setfield(L, -2, "width");
    return 1;
}

void display_install(lua_State *L) {
    static const luaL_Reg functions[] = {{"_show_value", tide_display},
                                         {"clear_output", tide_clear_output},
                                         {"_frontend", tide_frontend_table},
                                         {"_print", whole_print},
                                         {NULL, NULL}};
    for (const luaL_Reg *f = functions; f->name; f++) {
        lua_pushcfunction(L, f->func);
        lua_pushstring(L, f->name);
        lua_insert(L, -2);
        lua_rawset(L, -3);
    }
    lua_pushcfunction(L, session_print);
    lua_setglobal(L, "print");
}
