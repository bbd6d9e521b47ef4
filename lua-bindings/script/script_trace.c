/* script_trace.c: traces: a Lua function runs, and its calls become a graph
 * (engine/script/trace.h).
 *
 * All that may raise an error while a trace is open runs in a protected call, so that no way out
 * leaves one behind. The trace is a mode of the running coroutine, as no_grad is: guards that the
 * function opens keep it.
 */
#include "lua-bindings/call/args.h"
#include "lua-bindings/recording/origin.h"
#include "lua-bindings/script/escape.h"
#include "lua-bindings/script/script_function.h"
#include "lua-bindings/state/mode_stacks.h"

#include <string.h>

enum { FN = 1, INPUTS, NAMES, NOTES, NAME };

typedef struct tracing {
    td_trace *trace;
    td_ir_graph *graph; /* when it has ended */
    lua_State *main;
    td_modes modes;    /* at its beginning */
    td_origin changed; /* where a call first ran in other modes; line 0: nowhere */
    int base;          /* stack index of the first result */
    const char *name;
} tracing;

/* ---- places ---- */

/* Does a graph that was begun in modes a hold what it has of b? What is made in no_grad is
 * detached, and the casts of an autocast are calls; but not where the trace itself ran in these. */
static bool holds_modes(const td_modes *a, const td_modes *b) {
    bool grad = !a->grad_disabled || b->grad_disabled;
    return grad && (!a->casting || memcmp(a->cast, b->cast, sizeof a->cast) == 0);
}

/* The line that a call works for; where it runs in modes that the graph does not hold, that is
 * noted. */
static void find_place(void *ctx, td_ir_graph *g, td_ir_place *place) {
    tracing *t = ctx;
    td_origin origin = {.line = 0};
    tide_find_origin(t->main, &origin);
    if (origin.line) {
        place->file = td_ir_text(g, origin.source, strlen(origin.source));
        place->line = origin.line;
    }
    if (!t->changed.line && !holds_modes(&t->modes, &td_modes_current))
        t->changed = origin;
}

/* ---- notes ---- */

/* Operators that answer with a number or a boolean of Lua's. */
static void note_answers(lua_State *L, const td_ir_graph *g, int notes) {
    for (const td_ir_node *node = g->block->first; node; node = node->next)
        if (node->kind == TD_IR_OPERATOR && node->place.file &&
            (node->op->result_type == TD_RESULT_NUMBER || node->op->result_type == TD_RESULT_BOOL))
            tide_add_note(L, notes, node->op->name, node->place.file, node->place.line);
}

static void note_modes(lua_State *L, const tracing *t, int notes) {
    if (t->changed.line)
        tide_add_note(L, notes, "modes", t->changed.source, t->changed.line);
}

/* ---- inputs and outputs ---- */

static void load_inputs(lua_State *L, int n, td_tensor **inputs) {
    for (int k = 0; k < n; k++) {
        lua_rawgeti(L, INPUTS, k + 1);
        inputs[k] = tide_check_tensor(L, -1, "trace");
        lua_pop(L, 1);
    }
}

static const char **read_names(lua_State *L, int n) {
    const char **names = lua_newuserdatauv(L, sizeof *names * (size_t)(n + 1), 0);
    for (int k = 0; k < n; k++) {
        names[k] = NULL;
        if (!lua_istable(L, NAMES))
            continue;
        if (lua_rawgeti(L, NAMES, k + 1) == LUA_TSTRING)
            names[k] = lua_tostring(L, -1); /* it stays in the table */
        lua_pop(L, 1);
    }
    return names;
}

static int fail_result(lua_State *L, const tracing *t, int index, int k) {
    char text[80];
    return tide_error(L,
                      "trace: result %d of %s is %s: a traced function returns tensors, or lists "
                      "of them (what Lua works out is fixed in the graph)",
                      k, t->name, tide_describe(L, index, text, sizeof text));
}

/* What result k, at a stack index, is as a value; a list's array is pushed. */
static td_value read_result(lua_State *L, const tracing *t, int index, int k) {
    if (tide_to_tensor(L, index))
        return (td_value){.kind = TD_KIND_TENSOR};
    if (!lua_istable(L, index))
        fail_result(L, t, index, k);
    int n = (int)tide_list_length(L, index, "trace: a list that is returned");
    td_tensor **list = lua_newuserdatauv(L, sizeof(td_tensor *) * (size_t)(n + 1), 0);
    for (int j = 0; j < n; j++) {
        lua_rawgeti(L, index, j + 1);
        if (!tide_to_tensor(L, -1))
            fail_result(L, t, lua_gettop(L), k);
        lua_pop(L, 1);
    }
    return TD_TENSORS(n, list);
}

/* The results lie from t->base to the top. */
static void end(lua_State *L, tracing *t) {
    int n = lua_gettop(L) - t->base + 1;
    if (n == 0)
        tide_error(L, "trace: %s returns nothing: a traced function returns tensors", t->name);
    luaL_checkstack(L, n + 8, "trace");
    td_value *outputs = lua_newuserdatauv(L, sizeof *outputs * (size_t)n, 0);
    for (int k = 0; k < n; k++)
        outputs[k] = read_result(L, t, t->base + k, k + 1);
    for (int k = 0; k < n; k++)
        tide_script_load(L, t->base + k, &outputs[k]);
    td_trace *trace = t->trace;
    bool recording = td_modes_current.dispatcher == td_trace_dispatcher(trace);
    t->trace = NULL;
    TIDE_CHECK(L, td_trace_end_values(trace, n, outputs, &t->graph));
    if (!recording)
        tide_error(L,
                   "trace: %s switched the recording off: a guard that was opened outside was "
                   "closed within",
                   t->name);
}

static void apply_trace(td_modes *modes, int64_t dispatcher) {
    modes->dispatcher = (const td_dispatcher *)(intptr_t)dispatcher;
}

/* Protected: the arguments of trace, and a light userdata of the tracing behind them. */
static int trace_protected(lua_State *L) {
    tracing *t = lua_touserdata(L, NAME + 1);
    int n = (int)lua_rawlen(L, INPUTS);
    luaL_checkstack(L, n + 12, "trace");
    td_tensor **inputs = lua_newuserdatauv(L, sizeof *inputs * (size_t)(n + 1), 0);
    const char **names = read_names(L, n);
    load_inputs(L, n, inputs);
    t->modes = td_get_modes();
    TIDE_CHECK(L, td_trace_begin(n, inputs, names, find_place, t, &t->trace));
    td_modes_current.dispatcher = NULL; /* the guard sets it, and so takes it away */
    tide_push_mode(L, "trace", apply_trace, (int64_t)(intptr_t)td_trace_dispatcher(t->trace), NULL);
    lua_toclose(L, -1);
    t->base = lua_gettop(L) + 1;
    lua_pushvalue(L, FN);
    for (int k = 0; k < n; k++)
        lua_rawgeti(L, INPUTS, k + 1);
    lua_call(L, n, LUA_MULTRET);
    end(L, t);
    note_answers(L, t->graph, NOTES);
    note_modes(L, t, NOTES);
    lua_settop(L, NAME);
    tide_push_script_function(L, t->graph, t->name);
    return 1;
}

/* trace(fn, inputs, names, notes, name): the function of what fn does with these tensors. `notes`
 * gets {what, place} of each value that left the graph. */
int tide_script_trace(lua_State *L) {
    lua_settop(L, NAME);
    luaL_checktype(L, INPUTS, LUA_TTABLE);
    luaL_checktype(L, NOTES, LUA_TTABLE);
    tracing t = {.name = luaL_checkstring(L, NAME), .main = tide_main_thread(L)};
    tide_set_notes(L, NOTES);
    tide_push_function(L, trace_protected, 0);
    for (int k = FN; k <= NAME; k++)
        lua_pushvalue(L, k);
    lua_pushlightuserdata(L, &t);
    int failed = lua_pcall(L, NAME + 1, 1, 0);
    td_trace_abandon(t.trace);
    td_ir_graph_release(t.graph);
    lua_pushnil(L);
    tide_set_notes(L, -1);
    lua_pop(L, 1);
    return failed ? lua_error(L) : 1;
}
