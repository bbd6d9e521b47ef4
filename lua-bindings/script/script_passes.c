/* script_passes.c: f:passes(...): the rewriting of a graph for given inputs, step by step. */
#include "lua-bindings/script/script_function.h"

#include "engine/core/memory.h"

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

static td_status run_passes(const tide_script_function *f, const td_value *inputs, stepping *s) {
    td_passes_options options = {.recorded = false};
    s->log.keep = true;
    for (int k = 0; k < f->ninputs; k++) {
        const td_tensor *x = td_arg_tensor(inputs[k]);
        options.recorded |= x && td_is_recording() && x->requires_grad;
    }
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
