/* scope.c: see scope.h. All inputs together are like one chunk: what `local` declares at the top of
 * one, the later ones see, and the closures that were made of it see what these assign.
 *
 * Nothing is copied, and within its own input a local is one like any other. Behind the statement
 * that declares it a closure is made that has it as an upvalue, and kept; an input that mentions
 * the name is compiled within a function that declares it, and its upvalue is joined to the kept
 * one. A constant is kept as its value. Text is put in on the lines that are there, so that their
 * numbers stay true.
 */
#include "repl/session/scope.h"
#include "repl/session/lex.h"
#include "repl/session/state.h"
#include "repl/session/statements.h"

#include <lauxlib.h>
#include <string.h>

/* The kept: closure of each name, or {value} of a constant; the functions that inputs became. */
static const char kept_key, inputs_key;

#define KEEP "__tide_keep"

/* Lua's limit for the locals of one function, less ours. */
enum { MOST_USED = 198, MOST_DECLARED = 200 };

/* ---- what is kept ---- */

/* Index of the upvalue of that name of the function at idx, or 0. */
static int find_upvalue(lua_State *L, int idx, const char *name) {
    const char *found;
    for (int i = 1; (found = lua_getupvalue(L, idx, i)) != NULL; i++) {
        lua_pop(L, 1);
        if (strcmp(found, name) == 0)
            return i;
    }
    return 0;
}

/* keep(function or nil, name, value, ...): the upvalues of the function, and constants. */
static int keep(lua_State *L) {
    int top = lua_gettop(L);
    const char *name;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    for (int i = 1; lua_isfunction(L, 1) && (name = lua_getupvalue(L, 1, i)) != NULL; i++) {
        lua_pop(L, 1);
        lua_pushvalue(L, 1);
        lua_setfield(L, top + 1, name);
    }
    for (int i = 2; i + 1 <= top; i += 2) {
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, i + 1);
        lua_rawseti(L, -2, 1);
        lua_setfield(L, top + 1, lua_tostring(L, i));
    }
    return 0;
}

void scope_push_values(lua_State *L) {
    luaL_checkstack(L, 6, NULL);
    lua_newtable(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        if (lua_istable(L, -2))
            lua_rawgeti(L, -2, 1);
        else
            lua_getupvalue(L, -2, find_upvalue(L, -2, lua_tostring(L, -3)));
        lua_rawset(L, -6);
    }
    lua_pop(L, 1);
}

void scope_push_names(lua_State *L) {
    luaL_checkstack(L, 6, NULL);
    lua_newtable(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, 1);
        lua_rawset(L, -6);
    }
    lua_pop(L, 1);
}

void scope_clear(lua_State *L) {
    lua_newtable(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &kept_key);
}

void scope_install(lua_State *L) {
    scope_clear(L);
    lua_newtable(L);
    lua_createtable(L, 0, 1);
    lua_pushliteral(L, "k");
    lua_setfield(L, -2, "__mode");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &inputs_key);
}

bool scope_is_input(lua_State *L, int idx) {
    lua_pushvalue(L, idx);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &inputs_key);
    lua_insert(L, -2);
    lua_rawget(L, -2);
    bool is = lua_toboolean(L, -1);
    lua_pop(L, 2);
    return is;
}

/* ---- the text that is compiled ---- */

/* Has the table at idx the key on top? */
static bool has(lua_State *L, int idx) {
    lua_pushvalue(L, -1);
    bool there = lua_rawget(L, idx) != LUA_TNIL;
    lua_pop(L, 1);
    return there;
}

/* Pushes the list of the kept names that the code mentions; their number. */
static int push_used(lua_State *L, const scope_input *input) {
    int n = 0, list = lua_gettop(L) + 1, kept = list + 1, seen = list + 2;
    lua_newtable(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    lua_newtable(L);
    lexer lx = {input->code, input->len, 0};
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx)) {
        if (t.kind != LEX_NAME)
            continue;
        lua_pushlstring(L, input->code + t.start, t.end - t.start);
        if (has(L, kept) && !has(L, seen)) {
            lua_pushvalue(L, -1);
            lua_rawseti(L, list, ++n);
            lua_pushvalue(L, -1);
            lua_rawset(L, seen);
        } else {
            lua_pop(L, 1);
        }
    }
    lua_settop(L, list);
    if (n > MOST_USED)
        luaL_error(L, "%d locals of earlier inputs in one input, at most %d", n, MOST_USED);
    return n;
}

/* "local keep, magic, x, y <const> = ... return function(...) " */
static void add_head(lua_State *L, luaL_Buffer *out, int used, int n) {
    luaL_addstring(out, "local " KEEP ", " SCOPE_MAGIC);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, used, i);
        const char *name = lua_tostring(L, -1);
        lua_pop(L, 1); /* the list holds it */
        lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
        bool constant = lua_getfield(L, -1, name) == LUA_TTABLE;
        lua_pop(L, 2);
        luaL_addstring(out, ", ");
        luaL_addstring(out, name);
        luaL_addstring(out, constant ? " <const>" : "");
    }
    luaL_addstring(out, " = ... return function(...) ");
}

/* Names that end with their input: _ENV, and those that stand for the last values. */
static bool is_fleeting(const char *name, size_t len) {
    static const char *const names[] = {"_ENV", "_", "__"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == len && memcmp(names[i], name, len) == 0)
            return true;
    return false;
}

static bool is_kept(const char *code, const local_name *name) {
    return !name->closed && !is_fleeting(code + name->start, name->end - name->start);
}

static int add_names(luaL_Buffer *out, const char *code, const local_name *names, int n,
                     bool constants) {
    int added = 0;
    for (int i = 0; i < n; i++) {
        if (names[i].constant != constants || !is_kept(code, &names[i]))
            continue;
        const char *name = code + names[i].start;
        size_t len = names[i].end - names[i].start;
        if (constants) {
            luaL_addstring(out, ", '");
            luaL_addlstring(out, name, len);
            luaL_addstring(out, "'");
        }
        luaL_addstring(out, constants || added ? ", " : "");
        luaL_addlstring(out, name, len);
        added++;
    }
    return added;
}

/* " keep(function() return x end, 'y', y);" behind the statement that declares them. */
static void add_keeping(luaL_Buffer *out, const scope_input *input, size_t start) {
    local_name names[MOST_DECLARED];
    int n = statement_locals(input->code, input->len, start, names, MOST_DECLARED);
    luaL_addstring(out, " " KEEP "(function() return ");
    add_names(out, input->code, names, n, false);
    luaL_addstring(out, " end");
    add_names(out, input->code, names, n, true);
    luaL_addstring(out, ");");
}

/* Adds the input with what is put in; whether that keeps anything. */
static bool add_body(luaL_Buffer *out, const scope_input *input) {
    size_t copied = 0;
    bool keeps = false;
    bool may_keep = input->keeps && !memmem(input->code, input->len, KEEP, sizeof KEEP - 1);
    statement_reader r;
    statement_reader_init(&r, input->code, input->len);
    statement st = statement_next(&r);
    for (; may_keep && st.kind != STATEMENT_END; st = statement_next(&r)) {
        if (st.kind != STATEMENT_LOCAL || st.start >= input->value_at)
            continue;
        luaL_addlstring(out, input->code + copied, st.end - copied);
        add_keeping(out, input, st.start);
        copied = st.end;
        keeps = true;
    }
    if (input->value_at != SCOPE_NO_VALUE) {
        luaL_addlstring(out, input->code + copied, input->value_at - copied);
        luaL_addstring(out, SCOPE_AS_VALUE);
        copied = input->value_at;
    }
    luaL_addlstring(out, input->code + copied, input->len - copied);
    return keeps;
}

/* Replaces the string on top by the chunk compiled from it, or by the message. */
static int load_text(lua_State *L, const char *chunkname) {
    int status = luaL_loadbufferx(L, lua_tostring(L, -1), lua_rawlen(L, -1), chunkname, "t");
    lua_remove(L, -2);
    return status;
}

static int load_plain(lua_State *L, const scope_input *input, const char *chunkname) {
    scope_input bare = *input;
    bare.keeps = false;
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    add_body(&text, &bare);
    luaL_pushresult(&text);
    return load_text(L, chunkname);
}

/* ---- the function ---- */

/* Joins the upvalues of the function on top to those that are kept of these names. */
static void join(lua_State *L, int used, int n) {
    int function = lua_gettop(L);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
    for (int i = 1; i <= n; i++) {
        lua_rawgeti(L, used, i);
        const char *name = lua_tostring(L, -1);
        int mine = find_upvalue(L, function, name);
        if (lua_getfield(L, function + 1, name) == LUA_TFUNCTION && mine > 0)
            lua_upvaluejoin(L, function, mine, -1, find_upvalue(L, -1, name));
        lua_pop(L, 2);
    }
    lua_pop(L, 1);
}

/* Calls the outer function on top with keep, the magics' function and the constants, and joins what
 * it returns. */
static void unwrap(lua_State *L, int used, int n) {
    luaL_checkstack(L, n + 8, NULL);
    lua_pushcfunction(L, keep);
    lua_pushcfunction(L, session_of(L)->magic_line);
    for (int i = 1; i <= n; i++) {
        lua_rawgetp(L, LUA_REGISTRYINDEX, &kept_key);
        lua_rawgeti(L, used, i);
        if (lua_rawget(L, -2) == LUA_TTABLE)
            lua_rawgeti(L, -1, 1);
        else
            lua_pushnil(L);
        lua_replace(L, -3);
        lua_pop(L, 1);
    }
    lua_call(L, n + 2, 1);
    join(L, used, n);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &inputs_key);
    lua_pushvalue(L, -2);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* Pushes the text with what is put in; false: there is nothing to put in. */
static bool push_text(lua_State *L, const scope_input *input, int used, int n) {
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    add_head(L, &text, used, n);
    bool keeps = add_body(&text, input);
    luaL_addstring(&text, "\nend");
    luaL_pushresult(&text);
    return keeps || n > 0 || memmem(input->code, input->len, SCOPE_MAGIC, sizeof SCOPE_MAGIC - 1);
}

/* Pushes the function, or the compiler's message, with a status; LUA_ERRSYNTAX without a message
 * where there is nothing to put in: then nil is pushed. */
static int load_within(lua_State *L, const scope_input *input, const char *chunkname, int used,
                       int n) {
    if (!push_text(L, input, used, n)) {
        lua_pop(L, 1);
        lua_pushnil(L);
        return LUA_ERRSYNTAX;
    }
    int status = load_text(L, chunkname);
    if (status == LUA_OK)
        unwrap(L, used, n);
    return status;
}

int scope_load(lua_State *L, const scope_input *input, const char *chunkname) {
    luaL_checkstack(L, 12, NULL);
    int n = push_used(L, input), used = lua_gettop(L);
    int status = load_within(L, input, chunkname, used, n);
    if (status == LUA_ERRSYNTAX && lua_isstring(L, -1) &&
        strstr(lua_tostring(L, -1), "to const variable"))
        status = LUA_ERRRUN;       /* and no other reading is better */
    if (status == LUA_ERRSYNTAX) { /* too much for one function: without the locals, then */
        scope_input bare = *input;
        bare.keeps = false;
        lua_pop(L, 1);
        status = load_within(L, &bare, chunkname, used, 0);
    }
    if (status == LUA_ERRSYNTAX) {
        lua_pop(L, 1);
        status = load_plain(L, input, chunkname);
    }
    lua_remove(L, used);
    return status == LUA_ERRRUN ? LUA_ERRSYNTAX : status;
}
