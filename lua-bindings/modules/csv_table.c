/* csv_table.c: a table in text as typed columns for lua/data/table.lua: tensors, and of texts their
 * numbers beside the list of the distinct ones. */
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/csv_columns.h"
#include "lua-bindings/modules/csv_file.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/modules/texts.h"

#include <string.h>

static const char reading_name[] = "tide.csv_columns";
static const char *const type_names[] = {"skip", "unknown", "bool", "int", "float", "text", NULL};

/* Columns that are being read: a userdata, so that they go whatever is raised. */
typedef struct reading {
    int64_t n;
    tide_csv_column columns[];
} reading;

static void free_columns(reading *r) {
    for (int64_t k = 0; k < r->n; k++)
        tide_csv_clear_column(&r->columns[k]);
    r->n = 0;
}

static int close_reading(lua_State *L) {
    free_columns(luaL_checkudata(L, 1, reading_name));
    return 0;
}

enum { AT_TYPES = TIDE_CSV_AT + 1, AT_RULES, AT_MOST };

static reading *push_reading(lua_State *L, int64_t n) {
    reading *r = lua_newuserdatauv(L, sizeof *r + (size_t)n * sizeof *r->columns, 0);
    r->n = n;
    memset(r->columns, 0, (size_t)n * sizeof *r->columns);
    luaL_setmetatable(L, reading_name);
    for (int64_t k = 0; k < n; k++) {
        lua_rawgeti(L, AT_TYPES, (lua_Integer)k + 1);
        r->columns[k].type = (tide_csv_type)luaL_checkoption(L, -1, "unknown", type_names);
        r->columns[k].fixed = r->columns[k].type > TIDE_CSV_UNKNOWN;
        lua_pop(L, 1);
    }
    return r;
}

/* The words stay in the list for as long as the call lasts. */
static void read_rules(lua_State *L, const tide_csv_file *file, tide_csv_rules *rules) {
    *rules = (tide_csv_rules){.decimal = file->decimal};
    if (lua_getfield(L, AT_RULES, "thousands") == LUA_TSTRING)
        rules->thousands = *lua_tostring(L, -1);
    luaL_argcheck(L, lua_getfield(L, AT_RULES, "missing") == LUA_TTABLE, AT_RULES,
                  "words expected");
    int list = lua_gettop(L), n = (int)lua_rawlen(L, list);
    tide_csv_text *words = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *words, 0);
    for (int k = 0; k < n; k++) {
        lua_rawgeti(L, list, k + 1);
        words[k].at = luaL_checklstring(L, -1, &words[k].len);
        lua_pop(L, 1);
    }
    tide_csv_set_missing(rules, words, n);
}

static size_t text_room(const tide_csv_text *text) {
    for (size_t k = 0; k < text->len; k++)
        if ((unsigned char)text->at[k] >= 0x80)
            return 3 * text->len;
    return text->len;
}

/* Set the fields "bytes" and "offsets" of the table at the top to a column's distinct texts. */
static void set_texts(lua_State *L, const tide_csv_column *c) {
    int64_t size = 0, *offsets;
    char *bytes;
    for (int64_t k = 0; k < c->ntexts; k++) /* as UTF-8 they may be longer */
        size += (int64_t)(text_room(&c->texts[k]));
    tide_push_texts(L, c->ntexts, size, &bytes, &offsets);
    offsets[0] = 0;
    for (int64_t k = 0; k < c->ntexts; k++)
        offsets[k + 1] = offsets[k] + (int64_t)tide_csv_utf8(c->texts[k].at, c->texts[k].len,
                                                             bytes + offsets[k]);
    lua_setfield(L, -3, "offsets");
    lua_setfield(L, -2, "bytes");
}

/* Push {type, gaps, values, bytes, offsets} of a column, or false; its values go over to Lua. */
static void push_column(lua_State *L, tide_csv_column *c, bool kept) {
    if (c->type == TIDE_CSV_SKIPPED) {
        lua_pushboolean(L, 0);
        return;
    }
    lua_createtable(L, 0, 3);
    lua_pushstring(L, type_names[c->type]);
    lua_setfield(L, -2, "type");
    lua_pushboolean(L, c->gaps);
    lua_setfield(L, -2, "gaps");
    if (!kept)
        return;
    if (c->type == TIDE_CSV_TEXTS)
        set_texts(L, c);
    tide_handle *handle = tide_push_handle(L);
    handle->tensor = c->values;
    c->values = NULL;
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    lua_setfield(L, -2, "values");
}

static td_status read_columns(tide_csv_file *file, const tide_csv_rules *rules, reading *r,
                              int64_t most, int64_t *rows) {
    tide_csv_reader first = file->reader;
    td_status status = tide_csv_read_columns(&file->reader, rules, r->columns, r->n, most, rows);
    if (status || most == 0)
        file->reader = first;
    return status;
}

/* Memory that is out is freed and asked for once more. */
static void read_twice(lua_State *L, tide_csv_file *file, const tide_csv_rules *rules, reading *r,
                       int64_t most, int64_t *rows) {
    td_status status = read_columns(file, rules, r, most, rows);
    if (status == TD_ENOMEM) {
        tide_free_memory(L, TIDE_STATE(L));
        for (int64_t k = 0; k < r->n; k++) {
            tide_csv_clear_column(&r->columns[k]);
            if (!r->columns[k].fixed && r->columns[k].type != TIDE_CSV_SKIPPED)
                r->columns[k].type = TIDE_CSV_UNKNOWN;
        }
        status = read_columns(file, rules, r, most, rows);
    }
    if (status)
        tide_csv_raise(L, file);
}

/* _csv_columns(file, {type of each column}, {thousands, missing = words}, most): {type, values,
 * texts} of each column that is wanted (false of others), and how many rows they are, at most so
 * many of those that are still to come. With most = 0 the types alone, of all rows. */
static int read_csv_columns(lua_State *L) {
    tide_csv_file *file = tide_csv_check(L);
    luaL_checktype(L, AT_TYPES, LUA_TTABLE);
    luaL_checktype(L, AT_RULES, LUA_TTABLE);
    int64_t most = (int64_t)luaL_checkinteger(L, AT_MOST), rows = 0;
    tide_csv_rules *rules = lua_newuserdatauv(L, sizeof *rules, 0);
    luaL_argcheck(L, file->columns > 0, TIDE_CSV_AT, "the file was converted already");
    read_rules(L, file, rules);
    reading *r = push_reading(L, file->columns);
    read_twice(L, file, rules, r, most, &rows);
    lua_createtable(L, (int)(r->n < INT32_MAX ? r->n : INT32_MAX), 0);
    for (int64_t k = 0; k < r->n; k++) {
        push_column(L, &r->columns[k], most > 0);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    free_columns(r);
    lua_pushinteger(L, (lua_Integer)rows);
    return 2;
}

void tide_open_csv_table(lua_State *L) {
    static const luaL_Reg functions[] = {{"_csv_columns", read_csv_columns}, {NULL, NULL}};
    luaL_newmetatable(L, reading_name);
    lua_pushcfunction(L, close_reading);
    lua_setfield(L, -2, "__gc");
    lua_pushboolean(L, 0);
    lua_setfield(L, -2, "__metatable");
    lua_pop(L, 1);
    tide_set_functions(L, functions);
}
