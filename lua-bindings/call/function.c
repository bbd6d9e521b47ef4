/* function.c: declares functions by a schema, those in C and those in Lua. */
#include "lua-bindings/call/function.h"

#include "engine/core/number.h"
#include "engine/ops/language/schema.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/call/values.h"

#include <math.h>
#include <string.h>

static const char *const schema_name = "tide.schema";
static const char documents_key = 0;

/* ---- schemas ---- */

static int schema_gc(lua_State *L) {
    td_schema_clear(luaL_checkudata(L, 1, schema_name));
    return 0;
}

enum { TEXTS = 3 }; /* schema, doc, shapes */

/* A td_op of a function's schema. Its texts stand at stack indices from `texts` on and stay alive
 * as its user values; 0: they are constants. */
static void push_schema(lua_State *L, td_op row, int texts) {
    td_op *f = lua_newuserdatauv(L, sizeof *f, TEXTS);
    *f = row;
    luaL_setmetatable(L, schema_name);
    for (int k = 1; texts && k <= TEXTS; k++) {
        lua_pushvalue(L, texts + k - 1);
        lua_setiuservalue(L, -2, k);
    }
    if (td_schema_parse_function(f))
        tide_error(L, "%s", td_error_message());
}

void tide_declare(lua_State *L, const tide_function *functions) {
    for (; functions->schema; functions++) {
        push_schema(L, (td_op){.schema = functions->schema, .doc = functions->doc}, 0);
        const td_op *f = lua_touserdata(L, -1);
        tide_push_function(L, functions->call, 1);
        lua_setfield(L, -2, f->name);
    }
}

int tide_fail_collected(lua_State *L) {
    return tide_error(L, "this function was collected already: its state is being closed");
}

void tide_read_call(lua_State *L, tide_frame *frame) {
    frame->op = tide_own_schema(L);
    frame->name = frame->op->name;
    tide_read_args(L, frame);
}

void tide_read_shape_call(lua_State *L, tide_frame *frame) {
    frame->op = tide_own_schema(L);
    frame->name = frame->op->name;
    tide_read_shapes(L, frame);
}

const td_op *tide_declared(lua_State *L, int index) {
    if (!lua_iscfunction(L, index) || !lua_getupvalue(L, index, TIDE_UP_FIRST))
        return NULL;
    const td_op *f = luaL_testudata(L, -1, schema_name);
    lua_pop(L, 1);
    return f && f->name ? f : NULL;
}

/* ---- functions written in Lua ---- */

static void push_ints(lua_State *L, const td_param *p, td_value v) {
    lua_createtable(L, v.n, 0);
    for (int k = 0; k < v.n; k++) {
        if (p->holes && v.ints[k] == TD_LEFT_OUT)
            lua_pushboolean(L, false);
        else
            lua_pushinteger(L,
                            p->type == TD_PARAM_DIMS && v.ints[k] >= 0 ? v.ints[k] + 1 : v.ints[k]);
        lua_rawseti(L, -2, k + 1);
    }
}

static void push_simple(lua_State *L, const td_param *p, td_value v) {
    bool counted = p->type == TD_PARAM_DIM || p->type == TD_PARAM_INDEX;
    switch ((td_kind)v.kind) {
    case TD_KIND_BOOL:
        lua_pushboolean(L, v.b);
        break;
    case TD_KIND_INT:
        lua_pushinteger(L, counted && v.i >= 0 ? v.i + 1 : v.i);
        break;
    case TD_KIND_FLOAT:
        lua_pushnumber(L, v.f);
        break;
    case TD_KIND_STRING:
        lua_pushstring(L, v.string);
        break;
    case TD_KIND_NIL:
    case TD_KIND_TENSOR: /* what Lua has as an object of its own is handed on as it stands */
    case TD_KIND_INTS:
    case TD_KIND_FLOATS:
    case TD_KIND_TENSORS:
    case TD_KIND_DTYPE:
    case TD_KIND_DEVICE:
    case TD_KIND_GENERATOR:
        lua_pushnil(L);
    }
}

/* A list with a metatable: what was checked is what lies in it, and not what it answers. */
static bool is_disguised(lua_State *L, const td_param *p, int index) {
    if ((p->type != TD_PARAM_TENSORS && p->type != TD_PARAM_OBJECTS) || !lua_istable(L, index) ||
        !lua_getmetatable(L, index))
        return false;
    lua_pop(L, 1);
    return true;
}

static void push_plain_list(lua_State *L, int index) {
    int n = (int)lua_rawlen(L, index);
    lua_createtable(L, n, 0);
    for (int k = 1; k <= n; k++) {
        lua_rawgeti(L, index, k);
        lua_rawseti(L, -2, k);
    }
}

/* An argument as Lua code gets it: counted from 1, a list where one value stood for it. */
static void push_argument(lua_State *L, const tide_frame *f, int k) {
    const td_param *p = &f->op->params[k];
    if (f->args[k].kind == TD_KIND_INTS) {
        push_ints(L, p, f->args[k]);
    } else if (!f->at[k] || f->args[k].kind == TD_KIND_INT) {
        push_simple(L, p, f->args[k]);
    } else if (p->type == TD_PARAM_TENSORS && lua_isuserdata(L, f->at[k])) {
        lua_createtable(L, 1, 0);
        lua_pushvalue(L, f->at[k]);
        lua_rawseti(L, -2, 1);
    } else if (is_disguised(L, p, f->at[k])) {
        push_plain_list(L, f->at[k]);
    } else {
        lua_pushvalue(L, f->at[k]);
    }
}

static int finish_declared(lua_State *L, int status, lua_KContext base) {
    (void)status;
    return lua_gettop(L) - (int)base;
}

/* Upvalues: schema, Lua function. */
static int call_declared(lua_State *L) {
    tide_frame f;
    tide_read_shape_call(L, &f);
    int n = f.op->nparams, base = lua_gettop(L);
    luaL_checkstack(L, f.last + n + 8, f.name);
    lua_pushvalue(L, lua_upvalueindex(TIDE_UP_FIRST + 1));
    for (int k = 0; k < n; k++)
        push_argument(L, &f, k);
    for (int k = f.op->npositional + 1; k <= f.last && f.op->flags & TD_OP_REST; k++, n++)
        lua_pushvalue(L, k);
    lua_callk(L, n, LUA_MULTRET, base, finish_declared);
    return finish_declared(L, LUA_OK, base);
}

/* Upvalue: schema. Returns the arguments by name. */
static int read_declared(lua_State *L) {
    tide_frame f;
    tide_read_shape_call(L, &f);
    luaL_checkstack(L, 8, f.name);
    lua_createtable(L, 0, f.op->nparams);
    for (int k = 0; k < f.op->nparams; k++) {
        push_argument(L, &f, k);
        lua_setfield(L, -2, f.op->params[k].name);
    }
    return 1;
}

/* tide._function(schema, doc [, fn [, shapes]]): a function that reads its arguments by the schema
 * and calls fn with them in the schema's order; without fn it returns them by name. `shapes` is for
 * help: what it takes and gives, or what the class that it makes objects of does (help.h). */
static int make_function(lua_State *L) {
    td_op row = {.schema = luaL_checkstring(L, 1),
                 .doc = luaL_checkstring(L, 2),
                 .shapes = luaL_optstring(L, 4, NULL)};
    lua_settop(L, 4);
    lua_rotate(L, 3, 1); /* the texts side by side, then fn */
    push_schema(L, row, 1);
    lua_pushvalue(L, 4);
    bool reads = lua_isnil(L, 4);
    if (reads)
        lua_pop(L, 1);
    tide_push_function(L, reads ? read_declared : call_declared, reads ? 1 : 2);
    return 1;
}

/* tide._class(name, class): what the type `name` means in schemas. Under another key than the
 * metatables of userdata, by which C code knows what it may take for its own. */
static int name_class(lua_State *L) {
    lua_pushfstring(L, TIDE_CLASS_KEY, luaL_checkstring(L, 1));
    lua_pushvalue(L, 2);
    lua_rawset(L, LUA_REGISTRYINDEX);
    return 0;
}

/* ---- descriptions of other values ---- */

/* Push the table from values to descriptions; it keeps no value alive. */
static void push_documents(lua_State *L) {
    tide_push_weak_table(L, &documents_key);
}

bool tide_push_document(lua_State *L, int index) {
    index = lua_absindex(L, index);
    push_documents(L);
    lua_pushvalue(L, index);
    bool known = lua_rawget(L, -2) != LUA_TNIL;
    lua_remove(L, -2);
    if (!known)
        lua_pop(L, 1);
    return known;
}

void tide_document(lua_State *L, int index, const char *name, const char *signature,
                   const char *doc) {
    index = lua_absindex(L, index);
    push_documents(L);
    lua_pushvalue(L, index);
    lua_createtable(L, 0, 3);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "name");
    lua_pushstring(L, signature);
    lua_setfield(L, -2, "signature");
    lua_pushstring(L, doc);
    lua_setfield(L, -2, "doc");
    lua_rawset(L, -3);
    lua_pop(L, 1);
}

/* tide._document(value, maker) or (value, name, signature, doc) */
static int document(lua_State *L) {
    if (lua_isfunction(L, 2)) {
        push_documents(L);
        lua_pushvalue(L, 1);
        lua_pushvalue(L, 2);
        lua_rawset(L, -3);
    } else {
        tide_document(L, 1, luaL_checkstring(L, 2), luaL_checkstring(L, 3), luaL_checkstring(L, 4));
    }
    return 0;
}

/* ---- messages of functions written in Lua ---- */

/* tide._fail(format, ...): an error at the user's line. */
static int fail(lua_State *L) {
    luaL_checkstring(L, 1);
    int n = lua_gettop(L);
    luaL_getmetafield(L, 1, "__index");
    lua_getfield(L, -1, "format");
    lua_replace(L, -2);
    lua_insert(L, 1);
    lua_call(L, n, 1);
    return tide_error(L, "%s", lua_tostring(L, -1));
}

/* tide._describe(value [, class]): what was given, for messages; with what to write where an object
 * of a class is expected. */
static int describe(lua_State *L) {
    char text[80];
    const char *hint = lua_isnoneornil(L, 2) ? "" : tide_class_hint(L, luaL_checkstring(L, 2), 1);
    lua_settop(L, 1);
    lua_pushfstring(L, "%s%s", tide_describe(L, 1, text, sizeof text), hint);
    return 1;
}

/* tide._deliver(name, exact, out, results...): the results of a function that is no operator,
 * written into what its option out= was given. */
static int deliver(lua_State *L) {
    const char *name = luaL_checkstring(L, 1); /* the caller's constant: it stays */
    bool exact = lua_toboolean(L, 2);
    bool several = lua_gettop(L) > 4;
    lua_createtable(L, 0, 1);
    lua_pushvalue(L, 3);
    lua_setfield(L, -2, "out");
    for (int k = 0; k < 3; k++)
        lua_remove(L, 1);
    return tide_call_as(L,
                        several ? TD_OP(given_four)
                        : exact ? TD_OP(given_exactly)
                                : TD_OP(given),
                        name);
}

/* ---- texts that are the same in every locale ---- */

void tide_push_number_text(lua_State *L, int index, int digits) {
    enum { OF_TOSTRING = 14 };
    char text[64];
    if (lua_isinteger(L, index))
        td_number_print(text, sizeof text, "%lld", (long long)lua_tointeger(L, index));
    else if (isnan(lua_tonumber(L, index))) /* its sign says nothing */
        td_number_print(text, sizeof text, "nan");
    else
        td_number_print(text, sizeof text, "%.*g", digits ? digits : OF_TOSTRING,
                        lua_tonumber(L, index));
    bool whole = !digits && text[strspn(text, "-0123456789")] == 0;
    lua_pushfstring(L, whole && !lua_isinteger(L, index) ? "%s.0" : "%s", text);
}

int tide_number_function(lua_State *L) {
    lua_Integer digits = luaL_optinteger(L, 2, 0);
    luaL_checktype(L, 1, LUA_TNUMBER);
    luaL_argcheck(L, digits >= 0 && digits <= 17, 2, "at most 17 digits");
    tide_push_number_text(L, 1, (int)digits);
    return 1;
}

int tide_before_function(lua_State *L) {
    size_t na, nb;
    const char *a = luaL_checklstring(L, 1, &na), *b = luaL_checklstring(L, 2, &nb);
    int order = memcmp(a, b, na < nb ? na : nb);
    lua_pushboolean(L, order ? order < 0 : na < nb);
    return 1;
}

void tide_open_functions(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"_function", make_function},
        {"_class", name_class},
        {"_document", document},
        {"_fail", fail},
        {"_describe", describe},
        {"_number", tide_number_function},
        {"_before", tide_before_function},
        {"_deliver", deliver},
        {NULL, NULL},
    };
    luaL_newmetatable(L, schema_name);
    lua_pushcfunction(L, schema_gc);
    lua_setfield(L, -2, "__gc");
    lua_pushstring(L, schema_name);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_set_functions(L, functions);
}
