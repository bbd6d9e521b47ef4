/* script_describe.c: graphs as Lua tables, for what shows them (lua/jit/).
 *
 * A block is {inputs = {{name, type}...}, nodes = {...}, outputs = {name...}}. Beside the text of
 * its type a value has its `kind` ("int", "Tensor"; "[]" of a list, "?", "()" of a tuple,
 * "Future") and the `parts` of it, which are of the same form. A node has
 *   kind        "mul" of an operator, "prim::If" of others
 *   operator    true of an operator; with it `inplace`, `view` (its result may share memory with
 *               its first input), and `method`: it is one of tensors
 *   inputs      names; `params` says of each of an operator's: {name, option, default, counted}
 *   outputs     {{name, type, index}...}; index: its elements count from 1 in Lua
 *   parameters  of an operator on what is no tensor: the letters of its row, and that of its
 *               `result`
 *   id          of a function of the host
 *   constant    its value, where Lua has such values; `what` its kind; `address` of a tensor,
 *               which is the same for the same tensor
 *   place       "cell.lua:2"
 *   blocks      of prim::If and the like
 *   group       the number of its graph among `groups` of the whole
 */
#include "lua-bindings/call/values.h"
#include "lua-bindings/script/script_function.h"

#include "engine/ops/language/schema.h"
#include "engine/ops/quantized/quantized_tensor.h"

#include <string.h>

/* Stack index of the list of groups' graphs, as light userdata, in the order of their numbers. */
typedef struct describer {
    int groups;
} describer;

static void describe_block(lua_State *L, describer *d, const td_ir_block *block);

static void set_string(lua_State *L, const char *key, const char *text) {
    lua_pushstring(L, text);
    lua_setfield(L, -2, key);
}

static void set_bool(lua_State *L, const char *key, bool value) {
    lua_pushboolean(L, value);
    lua_setfield(L, -2, key);
}

/* Into the table on the top of the stack. */
static void set_kind(lua_State *L, const td_ir_type *type) {
    static const char *const made[] = {[TD_IR_LIST] = "[]",
                                       [TD_IR_OPTIONAL] = "?",
                                       [TD_IR_FUTURE] = "Future",
                                       [TD_IR_TUPLE] = "()"};
    char text[32];
    bool simple = type->kind < TD_IR_LIST;
    set_string(
        L, "kind",
        simple ? td_ir_type_text(td_ir_simple_type((td_ir_type_kind)type->kind), text, sizeof text)
               : made[type->kind]);
    luaL_checkstack(L, 6, "a type of types within types");
    lua_createtable(L, simple ? 0 : type->n, 0);
    for (int k = 0; !simple && k < type->n; k++) {
        lua_createtable(L, 0, 2);
        set_kind(L, type->parts[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "parts");
}

static void push_value(lua_State *L, const td_ir_value *value) {
    char text[512];
    lua_createtable(L, 0, 5);
    set_string(L, "name", value->name);
    set_string(L, "type", td_ir_type_text(value->type, text, sizeof text));
    set_kind(L, value->type);
}

static void set_values(lua_State *L, const char *key, int n, td_ir_value *const *values) {
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        push_value(L, values[k]);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, key);
}

static void set_names(lua_State *L, const char *key, int n, td_ir_value *const *values) {
    lua_createtable(L, n, 0);
    for (int k = 0; k < n; k++) {
        lua_pushstring(L, values[k]->name);
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, key);
}

/* ---- operators ---- */

static bool same_ints(const td_value *a, const td_value *b) {
    return a->n == b->n && (!a->n || !memcmp(a->ints, b->ints, sizeof *a->ints * (size_t)a->n));
}

/* Is the constant that an input reads what the parameter is without being given? */
static bool is_default(const td_ir_value *value, const td_param *p) {
    if (!p->has_default || !value->node || value->node->kind != TD_IR_CONSTANT)
        return false;
    const td_value *a = &value->node->constant, *b = &p->preset;
    if (a->kind != b->kind)
        return (a->kind == TD_KIND_INT || a->kind == TD_KIND_FLOAT) &&
               (b->kind == TD_KIND_INT || b->kind == TD_KIND_FLOAT) &&
               td_arg_double(*a) == td_arg_double(*b);
    switch ((td_kind)a->kind) {
    case TD_KIND_NIL:
        return true;
    case TD_KIND_INT:
        return a->i == b->i;
    case TD_KIND_FLOAT:
        return a->f == b->f;
    case TD_KIND_BOOL:
        return a->b == b->b;
    case TD_KIND_INTS:
        return same_ints(a, b);
    case TD_KIND_STRING:
        return !strcmp(a->string, b->string);
    case TD_KIND_DTYPE:
        return a->dtype == b->dtype;
    case TD_KIND_DEVICE:
        return td_device_same(a->device, b->device);
    case TD_KIND_TENSOR:
    case TD_KIND_TENSORS:
    case TD_KIND_FLOATS:
    case TD_KIND_GENERATOR:
        break;
    }
    return false;
}

static bool is_counted(const td_param *p) {
    return p->type == TD_PARAM_DIM || p->type == TD_PARAM_INDEX || p->type == TD_PARAM_DIMS;
}

static void set_params(lua_State *L, const td_ir_node *node) {
    lua_createtable(L, node->ninputs, 0);
    for (int k = 0; k < node->ninputs && k < node->op->nparams; k++) {
        const td_param *p = &node->op->params[k];
        lua_createtable(L, 0, 4);
        set_string(L, "name", p->name);
        set_bool(L, "option", p->option);
        set_bool(L, "default", is_default(node->inputs[k], p));
        set_bool(L, "counted", is_counted(p));
        lua_rawseti(L, -2, k + 1);
    }
    lua_setfield(L, -2, "params");
}

static void set_operator(lua_State *L, const td_ir_node *node) {
    const td_op *op = node->op;
    set_string(L, "kind", op->name);
    set_bool(L, "operator", true);
    set_bool(L, "inplace", node->inplace);
    set_bool(L, "view", (op->flags & TD_OP_VIEW) != 0);
    bool of_tensor = op->nparams && (op->params[0].type == TD_PARAM_TENSOR ||
                                     op->params[0].type == TD_PARAM_TENSOR_OR_NUMBER);
    set_bool(L, "method", of_tensor && !(op->flags & TD_OP_FUNCTION_ONLY));
    set_bool(L, "several", op->result_type == TD_RESULT_TENSOR && op->nresults > 1);
    set_params(L, node);
    lua_getfield(L, -1, "outputs");
    for (int k = 0; op->result_type == TD_RESULT_TENSOR && k < op->nresults; k++) {
        lua_rawgeti(L, -1, k + 1);
        set_bool(L, "index", op->result_base[k] != 0);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* ---- constants ---- */

static void set_constant(lua_State *L, const td_ir_node *node) {
    const td_value *v = &node->constant;
    set_string(L, "what", tide_kind_name((td_kind)v->kind));
    if (v->kind == TD_VALUE_QUANTIZED_DTYPE) {
        set_string(L, "what", "dtype");
        lua_pushstring(L, td_quantized_name(v->dtype));
    } else if (v->kind == TD_KIND_DTYPE)
        lua_pushstring(L, td_dtype_name(v->dtype));
    else
        tide_script_push(L, v);
    lua_setfield(L, -2, "constant");
    if (v->kind == TD_KIND_TENSOR) {
        lua_pushlightuserdata(L, v->tensor);
        lua_setfield(L, -2, "address");
    }
}

/* ---- nodes ---- */

/* The number of a group's graph: that of the node that was met first with it. */
static lua_Integer group_number(lua_State *L, const describer *d, const td_ir_graph *g) {
    lua_Integer n = (lua_Integer)lua_rawlen(L, d->groups);
    for (lua_Integer k = 1; k <= n; k++) {
        lua_rawgeti(L, d->groups, k);
        bool same = lua_touserdata(L, -1) == g;
        lua_pop(L, 1);
        if (same)
            return k;
    }
    lua_pushlightuserdata(L, (void *)(uintptr_t)g);
    lua_rawseti(L, d->groups, n + 1);
    return n + 1;
}

/* mode = {name =, enabled =}; of autocast also device, dtype (names) and cached. */
static void set_mode(lua_State *L, const td_ir_mode *mode) {
    lua_createtable(L, 0, 5);
    set_string(L, "name", td_ir_mode_name((td_ir_mode_kind)mode->kind));
    lua_pushboolean(L, mode->enabled);
    lua_setfield(L, -2, "enabled");
    if (mode->kind == TD_IR_AUTOCAST) {
        set_string(L, "device", td_device_name((td_device){.type = mode->device}));
        set_string(L, "dtype", td_dtype_name((td_dtype)mode->dtype));
        lua_pushboolean(L, mode->cached);
        lua_setfield(L, -2, "cached");
    }
    lua_setfield(L, -2, "mode");
}

static void describe_node(lua_State *L, describer *d, const td_ir_node *node) {
    luaL_checkstack(L, 12, "a graph of blocks within blocks");
    lua_createtable(L, 0, 8);
    set_names(L, "inputs", node->ninputs, node->inputs);
    set_values(L, "outputs", node->noutputs, node->outputs);
    if (node->kind == TD_IR_OPERATOR)
        set_operator(L, node);
    else
        set_string(L, "kind", td_ir_kind_name((td_ir_kind)node->kind));
    if (node->kind == TD_IR_CONSTANT)
        set_constant(L, node);
    if (node->place.file) {
        lua_pushfstring(L, "%s:%d", node->place.file, node->place.line);
        lua_setfield(L, -2, "place");
    }
    if (node->kind == TD_IR_SCALAR) {
        lua_pushfstring(L, "aten::%s", node->scalar->name);
        lua_setfield(L, -2, "kind");
        set_string(L, "parameters", node->scalar->parameters);
        lua_pushlstring(L, &node->scalar->result, 1);
        lua_setfield(L, -2, "result");
    }
    if (node->kind == TD_IR_HOST_CALL) {
        lua_pushinteger(L, node->id);
        lua_setfield(L, -2, "id");
    }
    if (node->kind == TD_IR_WITH)
        set_mode(L, &node->mode);
    if (node->subgraph) {
        lua_pushinteger(L, group_number(L, d, node->subgraph));
        lua_setfield(L, -2, "group");
    }
    lua_createtable(L, node->nblocks, 0);
    for (int b = 0; b < node->nblocks; b++) {
        describe_block(L, d, node->blocks[b]);
        lua_rawseti(L, -2, b + 1);
    }
    lua_setfield(L, -2, "blocks");
}

static void describe_block(lua_State *L, describer *d, const td_ir_block *block) {
    lua_Integer n = 0;
    lua_createtable(L, 0, 4);
    set_values(L, "inputs", block->ninputs, block->inputs);
    set_names(L, "outputs", block->noutputs, block->outputs);
    lua_newtable(L);
    for (const td_ir_node *node = block->first; node; node = node->next) {
        describe_node(L, d, node);
        lua_rawseti(L, -2, ++n);
    }
    lua_setfield(L, -2, "nodes");
}

void tide_describe_graph(lua_State *L, const td_ir_graph *whole) {
    describer d;
    lua_newtable(L);
    d.groups = lua_gettop(L);
    describe_block(L, &d, whole->block);
    lua_newtable(L);
    for (lua_Integer k = 1; k <= (lua_Integer)lua_rawlen(L, d.groups);
         k++) { /* which may add some */
        lua_rawgeti(L, d.groups, k);
        const td_ir_graph *g = lua_touserdata(L, -1);
        lua_pop(L, 1);
        describe_block(L, &d, g->block);
        lua_rawseti(L, -2, k);
    }
    lua_setfield(L, -2, "groups");
    lua_remove(L, d.groups);
}

/* describe(f): its graph as a block, with `groups`, a block for each. */
int tide_script_describe(lua_State *L) {
    tide_describe_graph(L,
                        td_scripted_graph(tide_check_script_function(L, 1, "describe")->function));
    return 1;
}
