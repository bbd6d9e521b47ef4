/* parcel.c: packs Lua values into bytes and tensors, and makes them anew in another state. */
#include "lua-bindings/workers/parcel.h"

#include "lua-bindings/state/state.h"
#include "lua-bindings/workers/known_values.h"

#include <stdio.h>
#include <string.h>

/* One byte before each value. What may be met again has the next number, from 1, in the order in
 * which it is begun. */
enum tag {
    NIL = 'n',
    FALSE = 'f',
    TRUE = 't',
    INTEGER = 'i',
    FLOAT = 'd',
    STRING = 's',
    TENSOR = 'T',
    TABLE = '{',
    END = '}',
    FUNCTION = 'F',
    KNOWN = 'k',
    AGAIN = 'a',
    GLOBALS = 'G'
};

enum { DEEPEST = 150 }; /* tables and functions within one another: both ways recurse */

/* ---- bytes ---- */

static bool reserve(tide_parcel *p, size_t more) {
    if (p->room - p->size >= more)
        return true;
    size_t room = p->room ? p->room : 256;
    while (room - p->size < more)
        room *= 2;
    unsigned char *bytes = td_realloc(p->bytes, room);
    if (!bytes)
        return false;
    p->bytes = bytes;
    p->room = room;
    return true;
}

static bool put_bytes(tide_parcel *p, const void *bytes, size_t n) {
    if (!reserve(p, n))
        return false;
    if (n)
        memcpy(p->bytes + p->size, bytes, n);
    p->size += n;
    return true;
}

static bool put_tag(tide_parcel *p, int tag) {
    unsigned char byte = (unsigned char)tag;
    return put_bytes(p, &byte, 1);
}

static bool put_text(tide_parcel *p, int tag, const char *text, size_t len) {
    return put_tag(p, tag) && put_bytes(p, &len, sizeof len) && put_bytes(p, text, len);
}

bool tide_parcel_text(tide_parcel *parcel, const char *text, size_t len) {
    return put_text(parcel, STRING, text, len);
}

void tide_parcel_free(tide_parcel *parcel) {
    for (size_t k = 0; k < parcel->ntensors; k++)
        td_release(parcel->tensors[k]);
    td_free(parcel->tensors);
    td_free(parcel->bytes);
    *parcel = (tide_parcel){0};
}

/* ---- packing ---- */

/* How a value was reached: within what, and there as what. Where it has a name, that is `name`, or
 * the key at a stack index; `function` is the stack index of the function whose upvalue it is. */
typedef struct step {
    const struct step *within;
    const char *what; /* "upvalue", "field", "value", ... */
    const char *name;
    int key, function;
} step;

/* Stack indices of tables, and how many numbers were given. */
typedef struct packer {
    tide_parcel *parcel;
    int known;   /* value -> name that every state has it under; nil until one is looked for */
    int seen;    /* value -> number */
    int globals; /* names of globals that go along: as a list, and name -> true */
    lua_Integer count;
} packer;

static void pack(lua_State *L, packer *p, int index, const step *way, int depth);

static void require_memory(lua_State *L, bool ok) {
    if (!ok)
        luaL_error(L, "out of memory");
}

static void add_name(lua_State *L, luaL_Buffer *b, const step *s) {
    char text[80];
    if (s->name)
        snprintf(text, sizeof text, " '%.60s'", s->name);
    else if (s->key && lua_type(L, s->key) == LUA_TSTRING)
        snprintf(text, sizeof text, " '%.60s'", lua_tostring(L, s->key));
    else if (s->key && lua_isinteger(L, s->key))
        snprintf(text, sizeof text, " '%lld'", (long long)lua_tointeger(L, s->key));
    else
        return;
    luaL_addstring(b, text);
}

static void add_function(lua_State *L, luaL_Buffer *b, const step *s) {
    lua_Debug ar;
    char text[160];
    lua_pushvalue(L, s->function);
    lua_getinfo(L, ">S", &ar);
    snprintf(text, sizeof text, " of the function at %.100s:%d", ar.short_src, ar.linedefined);
    luaL_addstring(b, text);
}

/* "upvalue 'file' (userdata) of the function at data.lua:12, value '1'": from the inside out. */
static int refuse(lua_State *L, const char *what, const step *way) {
    luaL_Buffer b;
    char text[160];
    luaL_buffinit(L, &b);
    luaL_addstring(&b, "can't go to a worker: ");
    for (const step *s = way; s; s = s->within) {
        luaL_addstring(&b, s == way ? "" : ", ");
        luaL_addstring(&b, s->what);
        add_name(L, &b, s);
        if (s == way) {
            snprintf(text, sizeof text, " (%.120s)", what);
            luaL_addstring(&b, text);
        }
        if (s->function)
            add_function(L, &b, s);
    }
    luaL_pushresult(&b);
    return tide_error(L, "%s", lua_tostring(L, -1));
}

/* Is the value at a stack index under a number already? Then it goes as that, else it gets the
 * next. */
static bool is_again(lua_State *L, packer *p, int index) {
    lua_pushvalue(L, index);
    if (lua_rawget(L, p->seen) == LUA_TNUMBER) {
        lua_Integer number = lua_tointeger(L, -1);
        lua_pop(L, 1);
        require_memory(L,
                       put_tag(p->parcel, AGAIN) && put_bytes(p->parcel, &number, sizeof number));
        return true;
    }
    lua_pop(L, 1);
    lua_pushvalue(L, index);
    lua_pushinteger(L, ++p->count);
    lua_rawset(L, p->seen);
    return false;
}

static void pack_tensor(lua_State *L, packer *p, int index, const step *way) {
    td_tensor *x = tide_to_tensor(L, index), *alias = NULL;
    if (x->requires_grad && !td_is_leaf(x))
        refuse(L, "a tensor with a history: detach() gives its values alone", way);
    tide_parcel *to = p->parcel;
    if (to->ntensors == to->tensors_room) {
        size_t room = to->tensors_room ? 2 * to->tensors_room : 8;
        td_tensor **tensors = td_realloc(to->tensors, room * sizeof *tensors);
        require_memory(L, tensors != NULL);
        to->tensors = tensors;
        to->tensors_room = room;
    }
    TIDE_CHECK(L, TD_APPLY(&alias, detach, TD_T(x)));
    to->tensors[to->ntensors++] = alias;
    unsigned char grad = x->requires_grad;
    require_memory(L, put_tag(to, TENSOR) && put_bytes(to, &grad, 1));
}

static void pack_table(lua_State *L, packer *p, int index, const step *way, int depth) {
    require_memory(L, put_tag(p->parcel, TABLE));
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        int value = lua_gettop(L);
        pack(L, p, value - 1, &(step){way, "key", .key = value - 1}, depth);
        pack(L, p, value, &(step){way, "field", .key = value - 1}, depth);
    }
    require_memory(L, put_tag(p->parcel, END));
    if (lua_getmetatable(L, index)) {
        pack(L, p, lua_gettop(L), &(step){.within = way, .what = "metatable"}, depth);
        lua_pop(L, 1);
    } else {
        require_memory(L, put_tag(p->parcel, NIL));
    }
}

static int write_dump(lua_State *L, const void *bytes, size_t n, void *ud) {
    (void)L;
    return !put_bytes(ud, bytes, n);
}

/* The names are gathered for the first value that may have one: tensors and numbers travel without.
 */
static bool is_known(lua_State *L, const packer *p, int index) {
    if (lua_isnil(L, p->known)) {
        tide_push_known_names(L);
        lua_replace(L, p->known);
    }
    lua_pushvalue(L, index);
    bool known = lua_rawget(L, p->known) != LUA_TNIL;
    lua_pop(L, 1);
    return known;
}

/* The name at a stack index, once. */
static void add_global(lua_State *L, const packer *p, int index) {
    lua_pushvalue(L, index);
    lua_pushvalue(L, -1);
    if (lua_rawget(L, p->globals) == LUA_TNIL) {
        lua_pushvalue(L, -2);
        lua_pushboolean(L, 1);
        lua_rawset(L, p->globals);
        lua_pushvalue(L, -2);
        lua_rawseti(L, p->globals, (lua_Integer)lua_rawlen(L, p->globals) + 1);
    }
    lua_pop(L, 2);
}

/* The script's own globals among those that the code of a function may name: short strings in its
 * dump are a byte of length and the bytes. They go along with the parcel. The dump is one without
 * names of locals, which may be called as a global is. */
static void note_globals(lua_State *L, packer *p, int index) {
    size_t from = p->parcel->size;
    lua_pushvalue(L, index);
    require_memory(L, lua_dump(L, write_dump, p->parcel, 1) == 0);
    lua_pop(L, 1);
    lua_pushglobaltable(L);
    for (lua_pushnil(L); lua_next(L, -2); lua_pop(L, 1)) {
        size_t len;
        const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tolstring(L, -2, &len) : NULL;
        char sought[104];
        if (!name || len == 0 || len > 100 || is_known(L, p, -1))
            continue;
        sought[0] = (char)(0x80 | (len + 1));
        memcpy(sought + 1, name, len);
        if (memmem(p->parcel->bytes + from, p->parcel->size - from, sought, len + 1))
            add_global(L, p, -2);
    }
    lua_pop(L, 1);
    p->parcel->size = from;
}

static void pack_function(lua_State *L, packer *p, int index, const step *way, int depth) {
    if (lua_iscfunction(L, index))
        refuse(L, "a function written in C that no module shows", way);
    require_memory(L, put_tag(p->parcel, FUNCTION));
    size_t at = p->parcel->size, none = 0;
    require_memory(L, put_bytes(p->parcel, &none, sizeof none));
    lua_pushvalue(L, index);
    require_memory(L, lua_dump(L, write_dump, p->parcel, 0) == 0);
    lua_pop(L, 1);
    size_t length = p->parcel->size - at - sizeof length;
    memcpy(p->parcel->bytes + at, &length, sizeof length);
    note_globals(L, p, index);
    for (int k = 1;; k++) {
        const char *name = lua_getupvalue(L, index, k);
        if (!name)
            break;
        pack(L, p, lua_gettop(L), &(step){way, "upvalue", *name ? name : "?", .function = index},
             depth);
        lua_pop(L, 1);
    }
    require_memory(L, put_tag(p->parcel, END));
}

static void pack(lua_State *L, packer *p, int index, const step *way, int depth) {
    tide_parcel *to = p->parcel;
    size_t len;
    bool ok = true;
    luaL_checkstack(L, 12, "too much within one another");
    switch (lua_type(L, index)) {
    case LUA_TNIL:
        ok = put_tag(to, NIL);
        break;
    case LUA_TBOOLEAN:
        ok = put_tag(to, lua_toboolean(L, index) ? TRUE : FALSE);
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, index)) {
            lua_Integer i = lua_tointeger(L, index);
            ok = put_tag(to, INTEGER) && put_bytes(to, &i, sizeof i);
        } else {
            lua_Number f = lua_tonumber(L, index);
            ok = put_tag(to, FLOAT) && put_bytes(to, &f, sizeof f);
        }
        break;
    case LUA_TSTRING: {
        const char *text = lua_tolstring(L, index, &len);
        ok = put_text(to, STRING, text, len);
        break;
    }
    default:
        if (lua_touserdata(L, index) && tide_is_handle(lua_touserdata(L, index))) {
            if (!is_again(L, p, index))
                pack_tensor(L, p, index, way);
        } else if (is_known(L, p, index)) {
            lua_pushvalue(L, index);
            lua_rawget(L, p->known);
            const char *name = lua_tolstring(L, -1, &len);
            require_memory(L, put_text(to, KNOWN, name, len));
            lua_pop(L, 1);
        } else if (lua_type(L, index) != LUA_TTABLE && lua_type(L, index) != LUA_TFUNCTION) {
            char text[80];
            refuse(L, tide_describe(L, index, text, sizeof text), way);
        } else if (depth > DEEPEST) {
            refuse(L, "more than 150 tables or functions within one another", way);
        } else if (!is_again(L, p, index)) {
            (lua_istable(L, index) ? pack_table : pack_function)(L, p, index, way, depth + 1);
        }
    }
    require_memory(L, ok);
}

/* Those that go along name others in their turn, which the list gets at its end. */
static void pack_globals(lua_State *L, packer *p) {
    lua_pushglobaltable(L);
    int globals = lua_gettop(L);
    for (lua_Integer k = 1; lua_rawgeti(L, p->globals, k) == LUA_TSTRING; k++) {
        size_t len;
        const char *name = lua_tolstring(L, -1, &len);
        require_memory(L, put_text(p->parcel, GLOBALS, name, len));
        lua_pushvalue(L, -1);
        lua_rawget(L, globals);
        pack(L, p, lua_gettop(L), &(step){.what = "global", .name = name}, 0);
        lua_settop(L, globals);
    }
    lua_pop(L, 2);
}

/* (parcel, values...): packs them; whatever is raised, the parcel is the caller's to free. */
static int pack_all(lua_State *L) {
    packer p = {.parcel = lua_touserdata(L, 1)};
    char number[16];
    int top = lua_gettop(L);
    lua_pushnil(L);
    lua_newtable(L);
    lua_newtable(L);
    p.known = top + 1;
    p.seen = top + 2;
    p.globals = top + 3;
    for (int k = 2; k <= top; k++) {
        snprintf(number, sizeof number, "%d", k - 1);
        pack(L, &p, k, &(step){.what = "value", .name = number}, 0);
    }
    pack_globals(L, &p);
    return 0;
}

void tide_parcel_pack(lua_State *L, tide_parcel *parcel, int first) {
    int top = lua_gettop(L), n = top - first + 1;
    luaL_checkstack(L, n + 4, "too many values");
    tide_push_function(L, pack_all, 0);
    lua_pushlightuserdata(L, parcel);
    for (int k = first; k <= top; k++)
        lua_pushvalue(L, k);
    if (lua_pcall(L, 1 + n, 0, 0) != LUA_OK) {
        tide_parcel_free(parcel);
        lua_error(L);
    }
}

/* ---- unpacking ---- */

typedef struct unpacker {
    const tide_parcel *parcel;
    size_t at, tensor;
    int made; /* stack index of the table number -> value */
    lua_Integer count;
} unpacker;

static void take_bytes(unpacker *u, void *to, size_t n) {
    memcpy(to, u->parcel->bytes + u->at, n);
    u->at += n;
}

static const char *take_text(unpacker *u, size_t *len) {
    take_bytes(u, len, sizeof *len);
    const char *text = (const char *)u->parcel->bytes + u->at;
    u->at += *len;
    return text;
}

/* The value on top is the next number's. */
static lua_Integer remember(lua_State *L, unpacker *u) {
    lua_Integer number = ++u->count;
    lua_pushvalue(L, -1);
    lua_rawseti(L, u->made, number);
    return number;
}

static void unpack(lua_State *L, unpacker *u);

static void unpack_tensor(lua_State *L, unpacker *u) {
    unsigned char grad;
    take_bytes(u, &grad, 1);
    tide_handle *handle = tide_push_handle(L);
    TIDE_CHECK(L, TD_APPLY(&handle->tensor, detach, TD_T(u->parcel->tensors[u->tensor++])));
    if (grad)
        TIDE_CHECK(L, td_set_requires_grad(handle->tensor, true));
    remember(L, u);
}

static bool is_next(unpacker *u, int tag) {
    if (u->at >= u->parcel->size || u->parcel->bytes[u->at] != tag)
        return false;
    u->at++;
    return true;
}

static void unpack_table(lua_State *L, unpacker *u) {
    lua_newtable(L);
    remember(L, u);
    while (!is_next(u, END)) {
        unpack(L, u);
        unpack(L, u);
        lua_rawset(L, -3);
    }
    unpack(L, u);
    if (lua_istable(L, -1))
        lua_setmetatable(L, -2);
    else
        lua_pop(L, 1);
}

static void unpack_function(lua_State *L, unpacker *u) {
    size_t len;
    const char *dump = take_text(u, &len);
    if (luaL_loadbufferx(L, dump, len, "function", "b"))
        lua_error(L);
    remember(L, u);
    for (int k = 1; !is_next(u, END); k++) {
        unpack(L, u);
        lua_setupvalue(L, -2, k);
    }
}

static void unpack(lua_State *L, unpacker *u) {
    unsigned char tag;
    lua_Integer i;
    lua_Number f;
    size_t len;
    const char *text;
    luaL_checkstack(L, 8, NULL);
    take_bytes(u, &tag, 1);
    switch ((enum tag)tag) {
    case FALSE:
        lua_pushboolean(L, 0);
        break;
    case TRUE:
        lua_pushboolean(L, 1);
        break;
    case INTEGER:
        take_bytes(u, &i, sizeof i);
        lua_pushinteger(L, i);
        break;
    case FLOAT:
        take_bytes(u, &f, sizeof f);
        lua_pushnumber(L, f);
        break;
    case STRING:
        text = take_text(u, &len);
        lua_pushlstring(L, text, len);
        break;
    case KNOWN:
        text = take_text(u, &len);
        tide_push_known_named(L, text, len);
        break;
    case AGAIN:
        take_bytes(u, &i, sizeof i);
        lua_rawgeti(L, u->made, i);
        break;
    case TENSOR:
        unpack_tensor(L, u);
        break;
    case TABLE:
        unpack_table(L, u);
        break;
    case FUNCTION:
        unpack_function(L, u);
        break;
    case NIL:
    case END:
    case GLOBALS:
        lua_pushnil(L);
        break;
    }
}

static int unpack_all(lua_State *L) {
    unpacker u = {.parcel = lua_touserdata(L, 1)};
    lua_newtable(L);
    u.made = lua_gettop(L);
    while (u.at < u.parcel->size && u.parcel->bytes[u.at] != GLOBALS)
        unpack(L, &u);
    int n = lua_gettop(L) - u.made;
    while (is_next(&u, GLOBALS)) {
        size_t len;
        const char *name = take_text(&u, &len);
        lua_pushglobaltable(L);
        lua_pushlstring(L, name, len);
        unpack(L, &u);
        lua_rawset(L, -3);
        lua_pop(L, 1);
    }
    return n;
}

int tide_parcel_unpack(lua_State *L, const tide_parcel *parcel) {
    int top = lua_gettop(L);
    tide_push_function(L, unpack_all, 0);
    lua_pushlightuserdata(L, (void *)(uintptr_t)parcel);
    lua_call(L, 1, LUA_MULTRET);
    return lua_gettop(L) - top;
}
