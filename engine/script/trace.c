/* trace.c: calls become nodes after they have run.
 *
 * A tensor that was seen is held until the end, so that its address is its name.
 */
#include "engine/script/trace.h"

#include "engine/calls/autocast.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"

#include <string.h>

/* What a tensor is in the graph now. */
typedef struct seen {
    struct seen *next;
    td_tensor *tensor; /* held */
    td_ir_value *value;
    bool follows; /* from the inputs, or from what was drawn: it may be other numbers in a call */
    bool silent;  /* made while nothing was recorded for backward (no_grad): without a history */
} seen;

struct td_trace {
    td_dispatcher dispatcher; /* first, so that a call finds the trace */
    td_ir_graph *graph;
    td_map tensors; /* of seen */
    seen *all;
    void (*place)(void *ctx, td_ir_graph *g, td_ir_place *place);
    td_ir_value *(*stranger)(void *ctx, td_trace *t, td_tensor *x);
    void *ctx;
    bool records, casts; /* the modes at the beginning: for backward; autocast */
    td_status failed;    /* of what can't be recorded; its message */
    char why[256];
};

/* ---- tensors ---- */

static bool is_of(const void *entry, const void *tensor) {
    return ((const seen *)entry)->tensor == tensor;
}

static seen *find(const td_trace *t, const td_tensor *x) {
    return td_map_find(&t->tensors, td_hash_address(x), is_of, x);
}

/* From here on the tensor is that value. */
static void remember(td_trace *t, td_tensor *x, td_ir_value *value, bool follows) {
    seen *s = find(t, x);
    if (!s) {
        s = td_ir_alloc(t->graph, sizeof *s);
        if (!s || td_map_add(&t->tensors, td_hash_address(x), s)) {
            t->graph->failed = true;
            return;
        }
        *s = (seen){.next = t->all, .tensor = td_retain(x)};
        t->all = s;
    }
    s->value = value;
    s->follows = follows;
    s->silent = t->records && !td_is_recording();
}

void td_trace_name(td_trace *t, td_tensor *x, td_ir_value *value) {
    remember(t, x, value, true);
}

td_ir_value *td_trace_value(td_trace *t, td_tensor *x) {
    seen *s = find(t, x);
    if (s)
        return s->value;
    td_ir_value *value =
        t->stranger ? t->stranger(t->ctx, t, x) : td_ir_add_constant(t->graph->block, TD_T(x));
    remember(t, x, value, false);
    return value;
}

td_tensor *td_trace_tensor(const td_trace *t, const td_ir_value *value) {
    for (const seen *s = t->all; s; s = s->next)
        if (s->value == value)
            return s->tensor;
    return NULL;
}

static bool same_place(const td_tensor *a, const td_tensor *b) {
    return a->storage == b->storage && a->data == b->data && a->dtype == b->dtype &&
           td_tensor_same_shape(a, b) &&
           !memcmp(a->strides, b->strides, sizeof *a->strides * (size_t)a->ndim);
}

td_ir_value *td_trace_value_like(const td_trace *t, const td_tensor *x) {
    td_ir_value *first = NULL; /* what was seen last stands first */
    for (const seen *s = t->all; s; s = s->next)
        if (same_place(s->tensor, x))
            first = s->value;
    return first;
}

/* ---- arguments ---- */

void td_trace_refuse(td_trace *t, const char *why) {
    if (t->failed)
        return;
    t->failed = TD_EVALUE;
    strncpy(t->why, why, sizeof t->why - 1);
}

/* What is made in no_grad is a constant to what is recorded behind it: there it is detached. */
static td_ir_value *read_value(td_trace *t, td_tensor *x) {
    td_ir_value *value = td_trace_value(t, x);
    seen *s = find(t, x);
    if (!s || !s->silent || !s->follows || !td_is_recording())
        return value;
    td_ir_node *node = td_ir_append(t->graph->block, TD_IR_OPERATOR, 1, &value, 1, &value->type);
    if (!node)
        return NULL;
    node->op = TD_OP(detach);
    s->value = node->outputs[0];
    s->silent = false;
    return s->value;
}

/* A tensor; one of indices that count from 1 as they are from 0. */
static td_ir_value *add_tensor(td_trace *t, td_tensor *x, bool from_one) {
    td_ir_value *value = x ? read_value(t, x) : td_ir_add_constant(t->graph->block, TD_NIL);
    if (!from_one || !value)
        return value;
    td_ir_node *node = td_ir_append(t->graph->block, TD_IR_OPERATOR, 1, &value, 1, &value->type);
    if (!node)
        return NULL;
    node->op = TD_OP(from_one_based);
    return node->outputs[0];
}

static td_ir_value *add_list(td_trace *t, const td_value *v) {
    const td_ir_type *part = td_ir_simple_type(TD_IR_TENSOR);
    td_ir_value **parts = td_ir_alloc(t->graph, sizeof *parts * (size_t)(v->n ? v->n : 1));
    bool holes = false;
    for (int k = 0; parts && k < v->n; k++) {
        parts[k] = add_tensor(t, v->tensors[k], v->from_one >> (k & 15) & 1);
        holes |= !v->tensors[k];
    }
    if (holes)
        part = td_ir_type_of_parts(t->graph, TD_IR_OPTIONAL, 1, &part);
    const td_ir_type *list = td_ir_type_of_parts(t->graph, TD_IR_LIST, 1, &part);
    td_ir_node *node =
        parts ? td_ir_append(t->graph->block, TD_IR_LIST_CONSTRUCT, v->n, parts, 1, &list) : NULL;
    return node ? node->outputs[0] : NULL;
}

static td_ir_value *add_argument(td_trace *t, const td_value *v) {
    if (v->kind == TD_KIND_TENSOR)
        return add_tensor(t, v->tensor, v->from_one & 1);
    if (v->kind == TD_KIND_TENSORS)
        return add_list(t, v);
    if (v->kind == TD_KIND_GENERATOR) {
        td_trace_refuse(t, "a call draws from a generator of its own: no graph can hold that");
        return td_ir_add_constant(t->graph->block, TD_NIL);
    }
    return td_ir_add_constant(t->graph->block, *v);
}

/* ---- results ---- */

static bool follows(const td_trace *t, const td_tensor *x) {
    const seen *s = x ? find(t, x) : NULL;
    return s && s->follows;
}

/* Do a call's results follow from the inputs, or from what it draws? */
static bool call_follows(const td_trace *t, const td_call *call) {
    bool found = call->op->flags & TD_OP_RANDOM;
    for (int k = 0; k < call->op->nparams && !found; k++) {
        const td_value *v = &call->args[k];
        found = follows(t, td_arg_tensor(*v));
        for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n && !found; j++)
            found = follows(t, v->tensors[j]);
    }
    return found;
}

/* The node's outputs are the call's results. */
static void name_results(td_trace *t, td_call *call, td_ir_node *node, bool follow) {
    const td_op *op = node->op;
    if (op->result_type == TD_RESULT_TENSORS) {
        const td_ir_type **types = td_ir_alloc(t->graph, sizeof *types * (size_t)(call->nlist + 1));
        for (int k = 0; types && k < call->nlist; k++)
            types[k] = td_ir_type_of_tensor(t->graph, call->list[k]);
        td_ir_node *each = types ? td_ir_append(t->graph->block, TD_IR_LIST_UNPACK, 1,
                                                node->outputs, call->nlist, types)
                                 : NULL;
        for (int k = 0; each && k < call->nlist; k++)
            remember(t, call->list[k], each->outputs[k], follow);
        return;
    }
    for (int k = 0; k < node->noutputs; k++)
        if (call->out[k])
            remember(t, call->out[k], node->outputs[k], follow);
}

/* What out= was given holds the results from here on. */
static void add_copies(td_trace *t, td_call *call, td_ir_value *const *results, bool follow) {
    for (int k = 0; k < call->ngiven; k++) {
        td_ir_value *values[2] = {td_trace_value(t, call->given[k]), results[k]};
        const td_ir_type *type = td_ir_type_of_tensor(t->graph, call->given[k]);
        td_ir_node *copy =
            td_ir_append(t->graph->block, TD_IR_OPERATOR, TD_OP(copy_)->nparams, values, 1, &type);
        if (!copy)
            return;
        copy->op = TD_OP(copy_);
        remember(t, call->given[k], copy->outputs[0], follow);
    }
}

static int types_of(td_trace *t, const td_op *op, const td_call *call,
                    const td_ir_type *types[TD_MAX_RESULTS]) {
    const td_ir_type *tensor = td_ir_simple_type(TD_IR_TENSOR);
    switch ((td_result_type)op->result_type) {
    case TD_RESULT_TENSOR:
        for (int k = 0; k < op->nresults; k++)
            types[k] = call->out[k] ? td_ir_type_of_tensor(t->graph, call->out[k])
                                    : td_ir_simple_type(TD_IR_NONE);
        return op->nresults;
    case TD_RESULT_TENSORS:
        types[0] = td_ir_type_of_parts(t->graph, TD_IR_LIST, 1, &tensor);
        return 1;
    case TD_RESULT_NUMBER:
        types[0] = td_ir_simple_type(TD_IR_NUMBER);
        return 1;
    case TD_RESULT_BOOL:
        types[0] = td_ir_simple_type(TD_IR_BOOL);
        return 1;
    case TD_RESULT_NOTHING:
        break;
    }
    return 0;
}

static td_ir_node *add_node(td_trace *t, const td_op *op, const td_call *call,
                            td_ir_value *const *arguments) {
    const td_ir_type *types[TD_MAX_RESULTS];
    td_ir_node *node = td_ir_append(t->graph->block, TD_IR_OPERATOR, op->nparams, arguments,
                                    types_of(t, op, call, types), types);
    if (!node)
        return NULL;
    node->op = op;
    node->inplace = call->inplace && op->inplace_name && !(op->flags & TD_OP_INPLACE_ONLY);
    if (t->place)
        t->place(t->ctx, t->graph, &node->place);
    return node;
}

/* ---- calls ---- */

void td_trace_add_call(td_trace *t, const td_op *op, td_call *call) {
    td_ir_value *arguments[TD_MAX_PARAMS];
    if (t->graph->failed)
        return;
    bool follow = call_follows(t, call);
    for (int k = 0; k < op->nparams; k++)
        arguments[k] = add_argument(t, &call->args[k]);
    td_ir_node *node = add_node(t, op, call, arguments);
    if (!node)
        return; /* td_trace_status says so */
    if (call->ngiven && !call->inplace)
        add_copies(t, call, node->outputs, follow);
    else
        name_results(t, call, node, follow);
}

/* Does it write what has a history, and shall that not know? No graph says so. */
static bool writes_silently(const td_trace *t, const td_call *call) {
    bool found = false;
    for (int k = 0; k < call->ngiven; k++)
        found |= t->records && !td_is_recording() && call->given[k]->requires_grad;
    return found;
}

static td_status run_call(const td_dispatcher *self, td_call *call);

/* A call under an autocast that began within the traced function: its arguments are cast by calls,
 * which become nodes, and it is recorded with these. */
static td_status run_with_casts(void *ctx, td_call *call) {
    const td_trace *t = ctx;
    if (td_modes_current.casting)
        return td_op_run(call); /* of calls of its own, which are cast */
    return run_call(&t->dispatcher, call);
}

static td_status run_cast(td_trace *t, td_call *call) {
    td_modes before = td_get_modes();
    td_modes_current.uncached = true; /* a cast from before the trace would be a constant */
    td_status status = td_autocast_dispatch(call, run_with_casts, t);
    td_set_modes(before);
    return status;
}

static td_status run_call(const td_dispatcher *self, td_call *call) {
    td_trace *t = (td_trace *)self;
    if (td_modes_current.casting && !t->casts)
        return run_cast(t, call);
    if (writes_silently(t, call))
        td_trace_refuse(t, "what has a history is written in place in no_grad");
    const td_op *op = call->op;         /* the one that was asked for, of which a variant may run */
    td_modes_current.dispatcher = NULL; /* a composite is one node */
    td_status status = td_op_run(call);
    td_modes_current.dispatcher = self;
    if (status == TD_OK)
        td_trace_add_call((td_trace *)self, op, call);
    return status;
}

/* ---- begin and end ---- */

static void free_trace(td_trace *t) {
    for (seen *s = t->all; s; s = s->next)
        td_release(s->tensor);
    td_map_clear(&t->tensors);
    td_ir_graph_release(t->graph);
    td_free(t);
}

td_status td_trace_new(td_ir_value *(*stranger)(void *ctx, td_trace *t, td_tensor *x),
                       void (*place)(void *ctx, td_ir_graph *g, td_ir_place *place), void *ctx,
                       td_trace **out) {
    *out = NULL;
    td_trace *t = td_calloc(1, sizeof *t);
    if (!t || !(t->graph = td_ir_graph_new())) {
        td_free(t);
        return td_fail(TD_ENOMEM, "out of memory for a graph");
    }
    t->stranger = stranger;
    t->place = place;
    t->ctx = ctx;
    *out = t;
    return TD_OK;
}

td_ir_graph *td_trace_graph(const td_trace *t) {
    return t->graph;
}

td_status td_trace_status(const td_trace *t) {
    return t->failed ? td_fail(t->failed, "%s", t->why) : td_ir_status(t->graph);
}

td_status td_trace_begin(int n, td_tensor *const *inputs, const char *const *names,
                         void (*place)(void *ctx, td_ir_graph *g, td_ir_place *place), void *ctx,
                         td_trace **out) {
    td_trace *t;
    *out = NULL;
    if (td_modes_current.dispatcher)
        return td_fail(TD_EVALUE, "calls are being recorded already: one trace at a time");
    td_status status = td_trace_new(NULL, place, ctx, &t);
    if (status)
        return status;
    t->dispatcher.call = run_call;
    t->records = td_is_recording();
    t->casts = td_modes_current.casting;
    for (int k = 0; k < n && status == TD_OK; k++) {
        if (find(t, inputs[k]))
            status = td_fail(TD_EVALUE, "input %d stands twice among the inputs", k + 1);
        else
            remember(t, inputs[k],
                     td_ir_add_input(t->graph->block, td_ir_type_of_tensor(t->graph, inputs[k]),
                                     names ? names[k] : NULL),
                     true);
    }
    if (status == TD_OK)
        status = td_ir_status(t->graph);
    if (status) {
        free_trace(t);
        return status;
    }
    td_modes_current.dispatcher = &t->dispatcher;
    *out = t;
    return TD_OK;
}

void td_trace_abandon(td_trace *t) {
    if (!t)
        return;
    if (td_modes_current.dispatcher == &t->dispatcher)
        td_modes_current.dispatcher = NULL;
    free_trace(t);
}

const td_dispatcher *td_trace_dispatcher(const td_trace *t) {
    return &t->dispatcher;
}

bool td_trace_follows(const td_tensor *x) {
    const td_dispatcher *d = td_modes_current.dispatcher;
    return d && d->call == run_call && follows((const td_trace *)d, x);
}

/* The value of a result: of a tensor its own, of a list of them a list. */
static td_ir_value *result_of(td_trace *t, const td_value *v) {
    return v->kind == TD_KIND_TENSORS ? add_list(t, v) : read_value(t, v->tensor);
}

td_status td_trace_end_values(td_trace *t, int n, const td_value *outputs, td_ir_graph **out) {
    *out = NULL;
    td_ir_value **values = td_ir_alloc(t->graph, sizeof *values * (size_t)(n ? n : 1));
    for (int k = 0; values && k < n; k++)
        values[k] = result_of(t, &outputs[k]);
    if (values)
        td_ir_set_outputs(t->graph->block, n, values);
    td_status status = td_trace_status(t);
    if (status == TD_OK)
        *out = td_ir_graph_retain(t->graph);
    td_trace_abandon(t);
    return status;
}

td_status td_trace_end(td_trace *t, int n, td_tensor *const *outputs, td_ir_graph **out) {
    td_value *values = td_ir_alloc(t->graph, sizeof *values * (size_t)(n ? n : 1));
    for (int k = 0; values && k < n; k++)
        values[k] = TD_T(outputs[k]);
    return td_trace_end_values(t, values ? n : 0, values, out);
}
