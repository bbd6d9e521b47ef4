/* script_passes.c: the rewriting of a graph for given inputs: its steps (f:passes), the memory that
 * it saves (f:memory), the step that changes a value (f:bisect), and what it is without groups. */
#include "lua-bindings/script/script_function.h"

#include "engine/core/memory.h"
#include "engine/script/passes/bisect.h"
#include "engine/script/passes/order.h"

/* A graph of its own, whose inputs have the types of these values. */
static td_status copy_for(const tide_script_function *f, const td_value *inputs,
                          td_ir_graph **out) {
    td_list tensors = {0};
    char *text = td_ir_print_with(td_scripted_graph(f->function), &tensors);
    td_status status = text ? TD_OK : td_fail(TD_ENOMEM, "out of memory for a graph");
    TD_TRY(status);
    TD_TRY(td_ir_parse_with(text, tensors.n, tensors.items, out));
    for (int k = 0; k < f->ninputs; k++) {
        td_tensor *x = td_arg_tensor(inputs[k]);
        const td_ir_type *type = x ? td_ir_type_of_tensor(*out, x) : NULL;
        if (type)
            (*out)->block->inputs[k]->type = type;
    }
    status = td_ir_status(*out);
done:
    td_free(text);
    td_list_clear(&tensors);
    return status;
}

typedef struct stepping {
    td_ir_graph *graph;
    td_pass_log log;
} stepping;

static void set_string(lua_State *L, const char *key, const char *text) {
    lua_pushstring(L, text ? text : "");
    lua_setfield(L, -2, key);
}

static int push_steps(lua_State *L) {
    const stepping *s = lua_touserdata(L, 1);
    lua_createtable(L, s->log.nsteps, 0);
    for (int k = 0; k < s->log.nsteps; k++) {
        const td_pass_step *step = &s->log.steps[k];
        lua_createtable(L, 0, 5);
        set_string(L, "pass", step->pass->name);
        set_string(L, "doc", step->pass->doc);
        set_string(L, "before", step->before);
        set_string(L, "after", step->after);
        lua_pushinteger(L, step->note.changes);
        lua_setfield(L, -2, "changes");
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* As a call with these inputs is rewritten. */
static td_passes_options options_for(const tide_script_function *f, const td_value *inputs) {
    td_passes_options options = {.recorded = false};
    for (int k = 0; k < f->ninputs; k++) {
        const td_tensor *x = td_arg_tensor(inputs[k]);
        options.recorded |= x && td_is_recording() && x->requires_grad;
    }
    return options;
}

static td_status run_passes(const tide_script_function *f, const td_value *inputs, stepping *s) {
    td_passes_options options = options_for(f, inputs);
    s->log.keep = true;
    td_status status = copy_for(f, inputs, &s->graph);
    return status ? status : td_passes_run(s->graph, &options, &s->log);
}

/* passes(f, ...): {pass, doc, before, after, changes} of each pass that changed something. */
int tide_script_passes(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "passes");
    stepping s = {.graph = NULL};
    td_value *inputs = tide_read_inputs(L, f);
    tide_push_function(L, push_steps, 0);
    tide_load_inputs(L, f, inputs);
    td_status status = run_passes(f, inputs, &s);
    lua_pushlightuserdata(L, &s);
    int failed = status ? 0 : lua_pcall(L, 1, 1, 0);
    td_pass_log_clear(&s.log);
    td_ir_graph_release(s.graph);
    if (status)
        return tide_fail_script(L, f, inputs);
    return failed ? lua_error(L) : 1;
}

/* The most bytes that a graph holds at a time behind these passes, -1: sizes are not known; and how
 * many pieces of memory its calls make. */
static td_status peak_behind(const tide_script_function *f, const td_value *inputs,
                             const td_passes_options *options, int64_t *bytes, int *pieces) {
    td_ir_graph *g = NULL;
    td_status status = copy_for(f, inputs, &g);
    if (status == TD_OK)
        status = td_passes_run(g, options, NULL);
    if (status == TD_OK)
        status = td_ir_count_memory(g, bytes, pieces);
    td_ir_graph_release(g);
    return status;
}

/* memory(f, ...): the most bytes as it was written and as it is rewritten, and of each how many
 * pieces of memory its calls make; nil where sizes are not known. */
int tide_script_memory(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "memory");
    td_value *inputs = tide_read_inputs(L, f);
    tide_load_inputs(L, f, inputs);
    td_passes_options all = options_for(f, inputs), types = all;
    for (int k = 0; k < td_pass_count(); k++)
        if (td_pass_get(k) != td_pass_find("types"))
            types.off |= (uint32_t)1 << k;
    int64_t bytes[2] = {-1, -1};
    int pieces[2] = {0, 0};
    td_status status = peak_behind(f, inputs, &types, &bytes[0], &pieces[0]);
    if (status == TD_OK)
        status = peak_behind(f, inputs, &all, &bytes[1], &pieces[1]);
    if (status)
        return tide_fail_script(L, f, inputs);
    for (int k = 0; k < 2; k++) {
        if (bytes[k] < 0)
            lua_pushnil(L);
        else
            lua_pushinteger(L, bytes[k]);
    }
    for (int k = 0; k < 2; k++) {
        if (bytes[k] < 0)
            lua_pushnil(L);
        else
            lua_pushinteger(L, pieces[k]);
    }
    return 4;
}

static int push_bisected(lua_State *L) {
    const td_bisect_result *r = lua_touserdata(L, 1);
    lua_createtable(L, 0, 7);
    set_string(L, "pass", r->pass->name);
    set_string(L, "why", r->why);
    set_string(L, "before", r->before);
    set_string(L, "after", r->after);
    lua_pushinteger(L, r->step);
    lua_setfield(L, -2, "step");
    if (r->node)
        set_string(L, "node", r->node);
    if (r->place.file) {
        lua_pushfstring(L, "%s:%d", r->place.file, r->place.line);
        lua_setfield(L, -2, "place");
    }
    return 1;
}

/* bisect(f, ...): {pass, step, why, node, place, before, after} of the first pass behind which
 * anything differs; nil: nothing does. */
int tide_script_bisect(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "bisect");
    td_value *inputs = tide_read_inputs(L, f);
    td_bisect_result result = {.pass = NULL};
    td_ir_graph *g = NULL;
    tide_push_function(L, push_bisected, 0);
    tide_load_inputs(L, f, inputs);
    td_passes_options options = options_for(f, inputs);
    td_status status = copy_for(f, inputs, &g);
    if (status == TD_OK)
        status = td_bisect(g, inputs, 0, NULL, &options, &result);
    td_ir_graph_release(g);
    if (status)
        return tide_fail_script(L, f, inputs);
    if (!result.pass) {
        td_bisect_result_clear(&result);
        return 0;
    }
    lua_pushlightuserdata(L, &result);
    int failed = lua_pcall(L, 1, 1, 0);
    td_bisect_result_clear(&result);
    return failed ? lua_error(L) : 1;
}

/* ---- the graph of single operators ---- */

enum { MOST_MASKS = 64 };

/* Read a list of masks, one for each input, at a stack index. */
static void read_masks(lua_State *L, int index, int n, uint64_t *masks) {
    if (n > MOST_MASKS)
        luaL_error(L, "operators: a function of %d inputs, %d at most", n, MOST_MASKS);
    for (int k = 0; k < n; k++) {
        lua_rawgeti(L, index, k + 1);
        masks[k] = (uint64_t)lua_tointeger(L, -1);
        lua_pop(L, 1);
    }
}

/* Let dims of an input be of any size, those with a bit in the mask; strides are not known then. */
static void forget_sizes(td_ir_graph *g, td_ir_value *input, uint64_t mask) {
    int64_t sizes[TD_MAX_DIMS];
    const td_ir_type *type = input->type;
    if (!mask || type->kind != TD_IR_TENSOR || !type->sizes)
        return;
    for (int d = 0; d < type->n; d++)
        sizes[d] = mask >> d & 1 ? TD_IR_UNKNOWN : type->sizes[d];
    td_ir_type loose = *type;
    loose.sizes = sizes;
    loose.strides = NULL;
    const td_ir_type *copy = td_ir_type_copy(g, &loose); /* NULL: td_ir_status tells */
    if (copy)
        input->type = copy;
}

static td_status rewrite_operators(const tide_script_function *f, const td_value *inputs,
                                   const uint64_t *masks, td_ir_graph **out) {
    static const char *const left_off[] = {"hoist", "parts", "epilogue", "fuse",
                                           "rows",  "order", "reuse"};
    td_passes_options options = {.recorded = false};
    td_status status = copy_for(f, inputs, out);
    for (size_t k = 0; k < sizeof left_off / sizeof *left_off && !status; k++)
        status = td_passes_switch(&options, left_off[k], false);
    for (int k = 0; k < f->ninputs && !status; k++)
        forget_sizes(*out, (*out)->block->inputs[k], masks[k]);
    if (!status)
        status = td_ir_status(*out);
    return status ? status : td_passes_run(*out, &options, NULL);
}

static int push_described(lua_State *L) {
    tide_describe_graph(L, lua_touserdata(L, 1));
    return 1;
}

/* operators(f, masks, ...): the graph for inputs like these, as describe has graphs: with the types
 * of its values, rewritten by the passes that leave single operators. Bit d of the k-th mask: dim d
 * of input k may have any size. */
int tide_script_operators(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "operators");
    uint64_t masks[MOST_MASKS] = {0};
    td_ir_graph *g = NULL;
    luaL_checktype(L, 2, LUA_TTABLE);
    read_masks(L, 2, f->ninputs, masks);
    lua_remove(L, 2);
    td_value *inputs = tide_read_inputs(L, f);
    tide_push_function(L, push_described, 0);
    tide_load_inputs(L, f, inputs);
    td_status status = rewrite_operators(f, inputs, masks, &g);
    lua_pushlightuserdata(L, g);
    int failed = status ? 0 : lua_pcall(L, 1, 1, 0);
    td_ir_graph_release(g);
    if (status)
        return tide_fail_script(L, f, inputs);
    return failed ? lua_error(L) : 1;
}

/* ---- what it writes ---- */

static int push_tensors(lua_State *L) {
    const td_list *list = lua_touserdata(L, 1);
    td_tensor *const *tensors = list->items;
    lua_createtable(L, list->n, 0);
    for (int k = 0; k < list->n; k++) {
        tide_push_handle(L)->tensor = td_retain(tensors[k]);
        lua_rawseti(L, -2, k + 1);
    }
    return 1;
}

/* written(f): a list of the tensors among its constants that calls may write in place. */
int tide_script_written(lua_State *L) {
    const tide_script_function *f = tide_check_script_function(L, 1, "written");
    td_list list = {.items = NULL};
    tide_push_function(L, push_tensors, 0);
    td_status status = td_scripted_written(f->function, &list);
    lua_pushlightuserdata(L, &list);
    int failed = status ? 0 : lua_pcall(L, 1, 1, 0);
    td_list_clear(&list);
    if (status)
        return tide_raise(L);
    return failed ? lua_error(L) : 1;
}
