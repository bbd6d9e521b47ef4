/* docs.c: what help, completion and the tests read off the operators' descriptors. */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"

#include "engine/core/number.h"
#include "engine/ops/help.h"
#include "engine/ops/language/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_int(luaL_Buffer *b, int64_t value) {
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    luaL_addstring(b, text);
}

static void add_ints(luaL_Buffer *b, const td_value *v, bool counted) {
    luaL_addchar(b, '{');
    for (int k = 0; k < v->n; k++) {
        luaL_addstring(b, k ? ", " : "");
        add_int(b, v->ints[k] + (counted && v->ints[k] >= 0));
    }
    luaL_addchar(b, '}');
}

/* A default as Lua users write it: dims and indices counted from 1. */
static void add_default(luaL_Buffer *b, const td_param *p) {
    char text[32];
    const td_value *v = &p->preset;
    bool counted = p->type == TD_PARAM_DIM || p->type == TD_PARAM_INDEX ||
                   (p->type == TD_PARAM_DIMS && !p->alone); /* an int|dim[] counts dims */
    luaL_addchar(b, '=');
    switch ((td_kind)v->kind) {
    case TD_KIND_NIL:
        luaL_addstring(b, "nil");
        break;
    case TD_KIND_BOOL:
        luaL_addstring(b, v->b ? "true" : "false");
        break;
    case TD_KIND_INT:
        add_int(b, counted && v->i >= 0 && v->i < INT64_MAX ? v->i + 1 : v->i);
        break;
    case TD_KIND_FLOAT:
        td_number_print(text, sizeof text, "%g", v->f);
        luaL_addstring(b, text);
        break;
    case TD_KIND_STRING:
        luaL_addchar(b, '"');
        luaL_addstring(b, v->string);
        luaL_addchar(b, '"');
        break;
    case TD_KIND_INTS:
        add_ints(b, v, counted);
        break;
    case TD_KIND_TENSOR: /* no schema writes these as defaults */
    case TD_KIND_TENSORS:
    case TD_KIND_FLOATS:
    case TD_KIND_DTYPE:
    case TD_KIND_DEVICE:
    case TD_KIND_GENERATOR:
        break;
    }
}

static void add_param(luaL_Buffer *b, const td_param *p, bool comma) {
    char type[TD_PARAM_TEXT];
    td_param_type_text(p, type, sizeof type);
    if (comma)
        luaL_addstring(b, ", ");
    luaL_addstring(b, type);
    luaL_addchar(b, ' ');
    luaL_addstring(b, p->name);
    if (p->has_default)
        add_default(b, p);
}

static void add_results(luaL_Buffer *b, const td_op *op) {
    static const char *const words[] = {[TD_RESULT_TENSORS] = "Tensor[]",
                                        [TD_RESULT_NUMBER] = "number",
                                        [TD_RESULT_BOOL] = "bool",
                                        [TD_RESULT_NOTHING] = "nothing"};
    if (!op->nresults && op->result_type == TD_RESULT_TENSOR) { /* not an operator */
        if (op->result_names[0]) {
            luaL_addstring(b, " -> ");
            luaL_addstring(b, op->result_names[0]);
        }
        return;
    }
    luaL_addstring(b, " -> ");
    if (op->result_type != TD_RESULT_TENSOR) {
        luaL_addstring(b, words[op->result_type]);
        return;
    }
    for (int k = 0; k < op->nresults; k++) {
        if (k)
            luaL_addstring(b, ", ");
        luaL_addstring(b, op->result_base[k] ? "index Tensor" : "Tensor");
        if (op->result_names[k]) {
            luaL_addchar(b, ' ');
            luaL_addstring(b, op->result_names[k]);
        }
    }
}

void tide_push_signature(lua_State *L, const td_op *op, const char *name) {
    luaL_Buffer b;
    luaL_buffinit(L, &b);
    luaL_addstring(&b, name);
    luaL_addchar(&b, '(');
    for (int k = 0; k < op->npositional; k++)
        add_param(&b, &op->params[k], k > 0);
    if (op->flags & TD_OP_REST)
        luaL_addstring(&b, op->nparams ? ", ..." : "...");
    bool out = op->flags & TD_OP_OUT;
    bool leaf = op->family && (op->flags & TD_OP_CREATES ||
                               (op->flags & TD_OP_FUNCTION_ONLY && op->flags & TD_OP_NONDIFF));
    bool table = out || leaf || op->nparams > op->npositional;
    if (table) {
        luaL_addstring(&b, op->npositional ? ", {" : "{");
        for (int k = op->npositional; k < op->nparams; k++)
            add_param(&b, &op->params[k], k > op->npositional);
        if (leaf)
            luaL_addstring(&b, op->nparams > op->npositional ? ", bool requires_grad=false"
                                                             : "bool requires_grad=false");
        if (out && (leaf || op->nparams > op->npositional))
            luaL_addstring(&b, ", ");
        if (out)
            luaL_addstring(&b, op->nresults > 1 ? "Tensor[]? out=nil" : "Tensor? out=nil");
        luaL_addchar(&b, '}');
    }
    luaL_addchar(&b, ')');
    add_results(&b, op);
    luaL_pushresult(&b);
}

static void set_string(lua_State *L, const char *key, const char *value) {
    lua_pushstring(L, value);
    lua_setfield(L, -2, key);
}

static void set_flag(lua_State *L, const char *key, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

/* What autocast does to it, by device. */
static void set_autocast(lua_State *L, const td_op *op) {
    static const char *const names[TD_AUTOCAST_CLASSES] = {
        [TD_AUTOCAST_NONE] = "none",       [TD_AUTOCAST_LOWER] = "lower",
        [TD_AUTOCAST_FP32] = "fp32",       [TD_AUTOCAST_FP32_RESULT] = "fp32_result",
        [TD_AUTOCAST_PROMOTE] = "promote", [TD_AUTOCAST_BANNED] = "banned"};
    lua_createtable(L, 0, 2);
    set_string(L, "cpu", names[op->autocast[TD_CPU]]);
    set_string(L, "cuda", names[op->autocast[TD_CUDA]]);
    lua_setfield(L, -2, "autocast");
}

/* What help says besides: shapes, dtypes and notes. */
static void set_help(lua_State *L, const td_op *op) {
    char text[TD_HELP_TEXT];
    set_string(L, "shapes", td_help_shapes(op, text));
    set_string(L, "dtypes", td_help_dtypes(op, text));
    set_string(L, "notes", td_help_notes(op, text));
}

static void push_operator_doc(lua_State *L, const td_op *op) {
    lua_createtable(L, 0, 32);
    set_string(L, "name", op->name);
    tide_push_signature(L, op, op->name);
    lua_setfield(L, -2, "signature");
    set_string(L, "doc", op->doc);
    lua_createtable(L, op->nparams, 0);
    for (int k = 0; k < op->nparams; k++) {
        lua_pushstring(L, op->params[k].name);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "params");
    if (!op->family) { /* no operator */
        set_string(L, "shapes", op->shapes);
        return;
    }
    set_string(L, "family", op->family);
    set_help(L, op);
    set_autocast(L, op);
    set_flag(L, "by_elements", op->flags & TD_OP_BY_ELEMENTS);
    set_flag(L, "differentiable",
             op->backward != NULL || (op->run && !(op->flags & (TD_OP_NONDIFF | TD_OP_INTERNAL))));
    set_flag(L, "inplace", op->inplace_name != NULL);
    set_flag(L, "inplace_only", op->flags & TD_OP_INPLACE_ONLY);
    set_flag(L, "out", op->flags & TD_OP_OUT);
    set_flag(L, "out_exact", op->flags & TD_OP_OUT_EXACT);
    set_flag(L, "turns", op->flags & TD_OP_TURNS);
    set_flag(L, "creates", op->flags & TD_OP_FUNCTION_ONLY && op->flags & TD_OP_NONDIFF);
    set_flag(L, "view", op->flags & TD_OP_VIEW);
    set_flag(L, "random", op->flags & TD_OP_RANDOM);
    set_flag(L, "internal", op->flags & TD_OP_INTERNAL);
    set_flag(L, "method_only", op->flags & TD_OP_METHOD_ONLY);
    set_flag(L, "function_only", op->flags & TD_OP_FUNCTION_ONLY);
}

/* What differs in the description of another name of an operator. */
static void set_alias(lua_State *L, const td_op *op, const char *name) {
    set_string(L, "name", name);
    set_string(L, "alias_of", op->name);
    tide_push_signature(L, op, name);
    lua_setfield(L, -2, "signature");
    lua_pushfstring(L, "Alias of %s. %s", op->name, op->doc);
    lua_setfield(L, -2, "doc");
}

/* The alias behind a function or a name; NULL when there is none. */
static const td_alias *find_alias(lua_State *L, int index) {
    if (lua_type(L, index) == LUA_TSTRING)
        return td_alias_find(lua_tostring(L, index));
    if (!tide_is_operator_function(lua_tocfunction(L, index)) ||
        !lua_getupvalue(L, index, TIDE_UP_FIRST + 1))
        return NULL;
    const char *name = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return name ? td_alias_find(name) : NULL;
}

/* The operator or declared function behind a function or a name; NULL when there is none. */
static const td_op *find_operator(lua_State *L, int index) {
    if (lua_type(L, index) == LUA_TSTRING) {
        const char *name = lua_tostring(L, index);
        const td_op *op = td_op_find(name);
        size_t len = strlen(name);
        char stem[64];
        if (!op && len > 1 && len < sizeof stem && name[len - 1] == '_') {
            memcpy(stem, name, len - 1);
            stem[len - 1] = 0;
            op = td_op_find(stem);
        }
        return op;
    }
    const td_op *declared = tide_declared(L, index);
    if (declared || !tide_is_operator_function(lua_tocfunction(L, index)))
        return declared;
    lua_getupvalue(L, index, TIDE_UP_FIRST);
    const td_op *op = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return op;
}

/* {name, signature, doc} of a value that the session has put into the tide table. */
static int push_session_doc(lua_State *L) {
    static const char *const rows[][3] = {
        {"clear_output", "clear_output(bool wait=false)", "Empty the output of a notebook's cell."},
        {"breakpoint", "breakpoint()",
         "Stop here for a look: frames, locals, expressions in a frame; h lists what it takes."},
    };
    lua_getfield(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "tide") != LUA_TTABLE)
        return 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        lua_pushstring(L, rows[k][0]);
        lua_rawget(L, -2);
        if (!lua_isnil(L, -1) && lua_rawequal(L, 1, -1)) {
            tide_document(L, 1, rows[k][0], rows[k][1], rows[k][2]);
            return tide_push_document(L, 1);
        }
        lua_pop(L, 1);
    }
    return 0;
}

/* tide._doc(name or value): {name, signature, doc, ...}: of an operator, of a declared function or
 * of what has a description; nil for anything else. */
static int doc(lua_State *L) {
    lua_settop(L, 1);
    const td_alias *alias = find_alias(L, 1);
    const td_op *op = alias ? alias->op : find_operator(L, 1);
    if (!op && tide_push_document(L, 1) && !(op = find_operator(L, -1)))
        return 1;
    if (!op)
        return lua_isfunction(L, 1) ? push_session_doc(L) : 0;
    push_operator_doc(L, op);
    if (alias)
        set_alias(L, op, alias->name);
    return 1;
}

/* tide._aliases(): their names, each with the operator's. */
static int aliases(lua_State *L) {
    lua_createtable(L, 0, td_alias_count());
    for (int k = 0; k < td_alias_count(); k++)
        set_string(L, td_alias_get(k)->name, td_alias_get(k)->op->name);
    return 1;
}

/* tide._ops(): all of them. */
static int ops(lua_State *L) {
    lua_createtable(L, td_op_count(), 0);
    for (int k = 0; k < td_op_count(); k++) {
        push_operator_doc(L, td_op_get(k));
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* Of operators: by family, then by name. */
static int by_family(const void *a, const void *b) {
    const td_op *const *x = a, *const *y = b;
    int order = strcmp((*x)->family, (*y)->family);
    return order ? order : strcmp((*x)->name, (*y)->name);
}

/* tide._reference(): a line for each public operator: family, signature, documentation. */
static int reference(lua_State *L) {
    int n = 0;
    const td_op **all = lua_newuserdatauv(L, sizeof *all * (size_t)td_op_count(), 0);
    for (int k = 0; k < td_op_count(); k++)
        if (!(td_op_get(k)->flags & TD_OP_INTERNAL))
            all[n++] = td_op_get(k);
    qsort(all, (size_t)n, sizeof *all, by_family);
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        lua_pushfstring(L, "%s  ", all[k]->family);
        tide_push_signature(L, all[k], all[k]->name);
        lua_pushfstring(L, "  %s", all[k]->doc);
        lua_concat(L, 3);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

void tide_open_docs(lua_State *L) {
    static const luaL_Reg functions[] = {{"_doc", doc},
                                         {"_ops", ops},
                                         {"_aliases", aliases},
                                         {"_reference", reference},
                                         {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}

void tide_set_operator(lua_State *L, const td_op *op) {
    /* what is internal but makes nothing, or is called a function, is for our own modules, as
     * tide._name */
    bool ours = op->flags & TD_OP_INTERNAL &&
                (op->result_type == TD_RESULT_NOTHING || op->flags & TD_OP_FUNCTION_ONLY);
    if (!ours && op->flags & (TD_OP_METHOD_ONLY | TD_OP_INTERNAL | TD_OP_INPLACE_ONLY))
        return;
    lua_pushfstring(L, ours ? "_%s" : "%s", op->name);
    tide_push_operator(L, op, NULL, false);
    lua_rawset(L, -3);
}

void tide_open_operators(lua_State *L) {
    for (int k = 0; k < td_op_count(); k++)
        tide_set_operator(L, td_op_get(k));
    for (int k = 0; k < td_alias_count(); k++) {
        const td_alias *alias = td_alias_get(k);
        if (alias->op->flags & (TD_OP_METHOD_ONLY | TD_OP_INPLACE_ONLY))
            continue;
        tide_push_operator(L, alias->op, alias->name, false);
        lua_setfield(L, -2, alias->name);
    }
}
