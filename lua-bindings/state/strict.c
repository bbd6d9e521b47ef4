/* strict.c: reading a name that the tide table or one of its modules does not have is an error that
 * names the nearest one, and so is setting it to a value that nothing would look at. It costs
 * nothing where a name is found. Names that begin with an underscore are internal: a missing one is
 * nil. */
#include "lua-bindings/state/strict.h"
#include "lua-bindings/call/function.h"
#include "lua-bindings/tide_lua.h"

#include <string.h>

enum { MOST_NAMES = 1024, MOST_DEPTH = 3, UP_MODULE = TIDE_UP_FIRST };

/* The name as one may be shown, at most. */
enum { LONGEST = 60 };

/* Adds the names of the table at idx to a list, which the table keeps alive. */
static int add_names(lua_State *L, int idx, const char **names, int n) {
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1))
        if (lua_type(L, -2) == LUA_TSTRING && lua_tostring(L, -2)[0] != '_' && n < MOST_NAMES)
            names[n++] = lua_tostring(L, -2);
    return n;
}

/* Has the table on top, or a module in it, that name? Pushes the full one, "tide.nn.Linear". */
static bool push_elsewhere(lua_State *L, const char *name) {
    static const char *const rooms[][2] = {
        {"nn", NULL},      {"nn", "functional"},      {"nn", "init"},
        {"optim", NULL},   {"optim", "lr_scheduler"}, {"linalg", NULL},
        {"special", NULL}, {"autograd", NULL},        {"io", NULL},
        {"profiler", NULL}};
    int top = lua_gettop(L);
    for (size_t k = 0; k < sizeof rooms / sizeof *rooms; k++) {
        lua_settop(L, top);
        if (lua_getfield(L, top, rooms[k][0]) != LUA_TTABLE ||
            (rooms[k][1] && lua_getfield(L, -1, rooms[k][1]) != LUA_TTABLE))
            continue;
        lua_pushstring(L, name);
        if (lua_rawget(L, -2) == LUA_TNIL)
            continue;
        lua_pushfstring(L, "tide.%s%s%s.%s", rooms[k][0], rooms[k][1] ? "." : "",
                        rooms[k][1] ? rooms[k][1] : "", name);
        lua_replace(L, top + 1);
        lua_settop(L, top + 1);
        return true;
    }
    lua_settop(L, top);
    lua_pushstring(L, name);
    bool here = lua_rawget(L, top) != LUA_TNIL;
    lua_settop(L, top);
    if (here)
        lua_pushfstring(L, "tide.%s", name);
    return here;
}

static void push_tide(lua_State *L) {
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "tide") != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_newtable(L);
    }
    lua_remove(L, -2);
}

bool tide_push_pytorch(lua_State *L, const char *path, tide_pytorch_words words) {
    static const char *const names[] = {"named", "absent", "elsewhere", "option"};
    int top = lua_gettop(L);
    luaL_checkstack(L, 8, NULL);
    push_tide(L);
    tide_push_part(L, "help.pytorch");
    lua_getfield(L, -1, names[words]);
    lua_pushstring(L, path);
    lua_call(L, 1, 1);
    lua_replace(L, top + 1);
    lua_settop(L, lua_isstring(L, top + 1) ? top + 1 : top);
    return lua_gettop(L) > top;
}

int tide_fail_name(lua_State *L, const char *module, const char *const *more, int n) {
    const char *names[2 * MOST_NAMES], *name = lua_tostring(L, 2);
    char quoted[TIDE_QUOTED];
    if (strlen(name) > LONGEST)
        return tide_error(L, "%s has no %s", module, tide_quote(name, strlen(name), quoted));
    for (int k = 0; k < n; k++)
        names[k] = more[k];
    n = add_names(L, 1, names, n);
    const char *path = lua_pushfstring(L, "%s.%s", module, name) + strlen("tide.");
    if (tide_push_pytorch(L, path, TIDE_PYTORCH_NAMED))
        return tide_error(L, "%s has no '%s': %s", module, name, lua_tostring(L, -1));
    push_tide(L);
    if (push_elsewhere(L, name))
        return tide_error(L, "%s has no '%s': there is %s", module, name, lua_tostring(L, -1));
    if (tide_push_pytorch(L, path, TIDE_PYTORCH_ABSENT))
        return tide_error(L, "%s has no '%s': %s", module, name, lua_tostring(L, -1));
    const char *near = tide_nearest(name, names, n);
    near = near ? near : tide_begun(name, names, n);
    if (near)
        return tide_error(L, "%s has no '%s': did you mean '%s'?", module, name, near);
    if (tide_push_pytorch(L, path, TIDE_PYTORCH_ELSEWHERE))
        return tide_error(L, "%s has no '%s': %s", module, name, lua_tostring(L, -1));
    return tide_error(L, "%s has no '%s'", module, name);
}

bool tide_is_private(const char *name) {
    return *name == '_' && strncmp(name, "_foreach_", strlen("_foreach_")) != 0;
}

/* __index of a module. */
static int fail_member(lua_State *L) {
    if (lua_type(L, 2) != LUA_TSTRING || tide_is_private(lua_tostring(L, 2)))
        return 0;
    return tide_fail_name(L, lua_tostring(L, lua_upvalueindex(UP_MODULE)), NULL, 0);
}

/* __newindex: what can be called or looked into may be added. */
static int add_member(lua_State *L) {
    int type = lua_type(L, 3);
    bool named = lua_type(L, 2) == LUA_TSTRING;
    if (named && lua_tostring(L, 2)[0] != '_' && type != LUA_TFUNCTION && type != LUA_TTABLE &&
        type != LUA_TUSERDATA && type != LUA_TNIL) {
        char given[TIDE_QUOTED], quoted[TIDE_QUOTED];
        size_t len;
        const char *name = lua_tolstring(L, 2, &len);
        return tide_error(L, "%s has no setting %s: giving it %s would do nothing",
                          lua_tostring(L, lua_upvalueindex(UP_MODULE)),
                          tide_quote(name, len, quoted), tide_describe(L, 3, given, sizeof given));
    }
    lua_settop(L, 3);
    lua_rawset(L, 1);
    return 0;
}

/* __newindex of the tide table: what it computes can't be given. */
static int add_to_tide(lua_State *L) {
    if (lua_type(L, 2) == LUA_TSTRING && strcmp(lua_tostring(L, 2), "default_dtype") == 0)
        return tide_error(L, "tide.default_dtype can't be assigned: tide.set_default_dtype(dtype) "
                             "sets it, {dtype = ...} and x:to(dtype) choose another for one");
    return add_member(L);
}

static void push_named(lua_State *L, lua_CFunction fn, const char *module) {
    lua_pushstring(L, module);
    tide_push_function(L, fn, 1);
}

/* __tostring of a module: "<module tide.optim: what it is>". */
static int module_tostring(lua_State *L) {
    enum { MOST = 100 };
    const char *doc = "", *name = lua_tostring(L, lua_upvalueindex(UP_MODULE));
    lua_settop(L, 1);
    push_tide(L);
    lua_getfield(L, -1, "_doc");
    lua_pushvalue(L, 1);
    if (lua_pcall(L, 1, 1, 0) == LUA_OK && lua_istable(L, -1) &&
        lua_getfield(L, -1, "doc") == LUA_TSTRING)
        doc = lua_tostring(L, -1);
    size_t len = strcspn(doc, "\n"), cut = len;
    while (cut > MOST || (cut < len && (doc[cut] & 0xC0) == 0x80))
        cut--;
    lua_pushlstring(L, doc, cut);
    lua_pushfstring(L, "<module %s%s%s%s>", name, cut ? ": " : "", lua_tostring(L, -1),
                    cut < len ? "..." : "");
    return 1;
}

void tide_set_newindex(lua_State *L) {
    push_named(L, add_to_tide, "tide");
    lua_setfield(L, -2, "__newindex");
    push_named(L, module_tostring, "tide");
    lua_setfield(L, -2, "__tostring");
}

/* The table at idx, if it has no metatable of its own, and the modules in it. */
static void seal(lua_State *L, int idx, const char *module, int depth) {
    if (depth > MOST_DEPTH || lua_getmetatable(L, idx)) {
        lua_settop(L, depth > MOST_DEPTH ? lua_gettop(L) : lua_gettop(L) - 1);
        return;
    }
    luaL_checkstack(L, 10, NULL);
    lua_createtable(L, 0, 3);
    push_named(L, module_tostring, module);
    lua_setfield(L, -2, "__tostring");
    push_named(L, fail_member, module);
    lua_setfield(L, -2, "__index");
    push_named(L, add_member, module);
    lua_setfield(L, -2, "__newindex");
    lua_setmetatable(L, idx);
    for (lua_pushnil(L); lua_next(L, idx); lua_pop(L, 1)) {
        if (!lua_istable(L, -1) || lua_type(L, -2) != LUA_TSTRING || lua_tostring(L, -2)[0] == '_')
            continue;
        const char *inner = lua_pushfstring(L, "%s.%s", module, lua_tostring(L, -2));
        seal(L, lua_gettop(L) - 1, inner, depth + 1);
        lua_pop(L, 1);
    }
}

void tide_seal_module(lua_State *L, int idx, const char *name) {
    idx = lua_absindex(L, idx);
    if (!lua_istable(L, idx))
        return;
    const char *module = lua_pushfstring(L, "tide.%s", name);
    seal(L, idx, module, 0);
    lua_pop(L, 1);
}
