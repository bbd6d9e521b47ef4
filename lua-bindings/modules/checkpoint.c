/* checkpoint.c: what tide.save and tide.load (lua/files/checkpoint.lua) stand on: files of named
 * tensors, and JSON as Lua values. What a file means is not known here. */
#include "engine/core/interrupt.h"
#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include <string.h>

static const char archive_name[] = "tide.archive";

static int close_archive(lua_State *L) {
    td_safetensors **archive = luaL_checkudata(L, 1, archive_name);
    td_safetensors_close(*archive);
    *archive = NULL;
    return 0;
}

/* ---- reading ---- */

static void fail_load(lua_State *L, const char *path) {
    if (td_error_code() == TD_EINTR)
        tide_raise(L);
    tide_error(L, "load: '%s': %s", path, td_error_message());
}

static td_safetensors **push_archive(lua_State *L, const char *path, bool map) {
    td_safetensors **archive = lua_newuserdatauv(L, sizeof *archive, 0);
    *archive = NULL;
    luaL_setmetatable(L, archive_name);
    td_status status = td_safetensors_open(path, map, archive);
    if (status == TD_ENOMEM) {
        tide_free_memory(L, TIDE_STATE(L));
        status = td_safetensors_open(path, map, archive);
    }
    if (status)
        fail_load(L, path);
    return archive;
}

static void push_tensor(lua_State *L, td_safetensors *archive, int64_t k, const char *path) {
    tide_handle *handle = tide_push_handle(L);
    td_status status = td_safetensors_get(archive, k, &handle->tensor);
    if (status == TD_ENOMEM) {
        tide_free_memory(L, TIDE_STATE(L));
        status = td_safetensors_get(archive, k, &handle->tensor);
    }
    if (status)
        fail_load(L, path);
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
}

/* Into the tables of tensors and of those that are left out, which lie on top. */
static void add_entry(lua_State *L, td_safetensors *archive, int64_t k, const char *path) {
    const td_entry *e = &archive->entries[k];
    bool known = e->dtype != TD_DTYPE_NONE;
    lua_pushlstring(L, e->name.at, e->name.len);
    if (known)
        push_tensor(L, archive, k, path);
    else
        lua_pushlstring(L, e->dtype_name.at, e->dtype_name.len);
    lua_rawset(L, known ? -4 : -3);
}

/* _archive_read(path, map): {name = tensor}, {name = dtype} of those whose dtype Tide has not,
 * {key = note}. */
static int read_archive(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    td_safetensors **archive = push_archive(L, path, lua_toboolean(L, 2));
    lua_newtable(L);
    lua_newtable(L);
    for (int64_t k = 0; k < (*archive)->nentries; k++) {
        tide_poll(L, k);
        add_entry(L, *archive, k, path);
    }
    lua_newtable(L);
    for (int64_t k = 0; k < (*archive)->nnotes; k++) {
        const td_note *note = &(*archive)->notes[k];
        lua_pushlstring(L, note->key.at, note->key.len);
        lua_pushlstring(L, note->value.at, note->value.len);
        lua_rawset(L, -3);
    }
    td_safetensors_close(*archive);
    *archive = NULL;
    return 3;
}

/* ---- JSON ---- */

typedef struct reader {
    lua_State *L;
    td_json json;
    const char *path; /* for messages */
    int null;         /* where the value stands that null is; 0: it is refused */
    int arrays;       /* where the table stands whose keys are the arrays; 0: nobody asks */
} reader;

static void check(const reader *r, td_status status) {
    if (status)
        fail_load(r->L, r->path);
}

static void push_value(reader *r);

static void push_object(reader *r) {
    lua_State *L = r->L;
    const char *key;
    size_t len;
    bool more;
    lua_newtable(L);
    check(r, td_json_open(&r->json, TD_JSON_OBJECT));
    for (;;) {
        check(r, td_json_next(&r->json, TD_JSON_OBJECT, &more));
        if (!more)
            return;
        check(r, td_json_read_key(&r->json, &key, &len));
        lua_pushlstring(L, key, len);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, -3) != LUA_TNIL)
            check(r, td_fail(TD_EVALUE, "JSON: a key stands there twice"));
        lua_pop(L, 1);
        push_value(r);
        lua_rawset(L, -3);
    }
}

static void push_array(reader *r) {
    bool more;
    lua_newtable(r->L);
    if (r->arrays) {
        lua_pushvalue(r->L, -1);
        lua_pushboolean(r->L, 1);
        lua_rawset(r->L, r->arrays);
    }
    check(r, td_json_open(&r->json, TD_JSON_ARRAY));
    for (lua_Integer k = 1;; k++) {
        check(r, td_json_next(&r->json, TD_JSON_ARRAY, &more));
        if (!more)
            return;
        push_value(r);
        lua_rawseti(r->L, -2, k);
    }
}

static void push_scalar(reader *r, td_json_kind kind) {
    td_json_number number;
    const char *text;
    size_t len;
    if (kind == TD_JSON_NUMBER) {
        check(r, td_json_read_number(&r->json, &number));
        if (number.is_int)
            lua_pushinteger(r->L, (lua_Integer)number.i);
        else
            lua_pushnumber(r->L, number.d);
    } else if (kind == TD_JSON_STRING) {
        check(r, td_json_read_string(&r->json, &text, &len));
        lua_pushlstring(r->L, text, len);
    } else {
        check(r, td_json_read_word(&r->json));
        if (kind == TD_JSON_NULL && r->null) {
            lua_pushvalue(r->L, r->null);
            return;
        }
        if (kind == TD_JSON_NULL)
            check(r, td_fail(TD_EVALUE, "JSON: null, which Lua's tables can't hold"));
        lua_pushboolean(r->L, kind == TD_JSON_TRUE);
    }
}

static void push_value(reader *r) {
    td_json_kind kind = td_json_peek(&r->json);
    luaL_checkstack(r->L, 4, "JSON");
    if (kind == TD_JSON_OBJECT)
        push_object(r);
    else if (kind == TD_JSON_ARRAY)
        push_array(r);
    else
        push_scalar(r, kind);
}

/* _json_read(text, path [, null, arrays]): the value that a text in a file is; `null` stands for
 * null, and the table `arrays` gets what is one, empty or not, as keys. */
static int read_json(lua_State *L) {
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    reader r = {.L = L, .path = luaL_checkstring(L, 2)};
    lua_settop(L, 4);
    r.null = lua_isnil(L, 3) ? 0 : 3;
    r.arrays = lua_istable(L, 4) ? 4 : 0;
    char *copy = lua_newuserdatauv(L, len + 1, 0);
    memcpy(copy, text, len + 1);
    td_json_begin(&r.json, copy, len);
    push_value(&r);
    check(&r, td_json_finish(&r.json));
    return 1;
}

static void put_text(void *buffer, const char *bytes, size_t n) {
    luaL_addlstring(buffer, bytes, n);
}

/* _json_quote(text): it as a string of JSON. */
static int quote_json(lua_State *L) {
    size_t len;
    const char *text = luaL_checklstring(L, 1, &len);
    luaL_Buffer buffer;
    luaL_buffinit(L, &buffer);
    td_json_quote(put_text, &buffer, text, len);
    luaL_pushresult(&buffer);
    return 1;
}

/* ---- writing ---- */

static td_text text_at(lua_State *L, int index) {
    td_text text;
    text.at = luaL_checklstring(L, index, &text.len);
    return text;
}

/* _archive_write(path, names, tensors, structure): the lists and what is in them are the caller's
 * alone. */
static int write_archive(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 2);
    td_note note = {{"tide", 4}, text_at(L, 4)};
    td_named *list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
    for (lua_Integer k = 0; k < n; k++) {
        tide_poll(L, k);
        lua_rawgeti(L, 2, k + 1);
        lua_rawgeti(L, 3, k + 1);
        list[k] = (td_named){text_at(L, -2), tide_check_tensor(L, -1, "save")};
        lua_pop(L, 2);
    }
    tide_enter_engine(TIDE_STATE(L));
    td_status status = td_safetensors_write(path, n, list, 1, &note);
    if (status == TD_EINTR)
        tide_raise(L);
    if (status)
        return tide_error(L, "save: %s", td_error_message());
    return 0;
}

void tide_open_checkpoint(lua_State *L) {
    static const luaL_Reg functions[] = {{"_archive_read", read_archive},
                                         {"_archive_write", write_archive},
                                         {"_json_read", read_json},
                                         {"_json_quote", quote_json},
                                         {NULL, NULL}};
    luaL_newmetatable(L, archive_name);
    lua_pushcfunction(L, close_archive);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_set_functions(L, functions);
}
