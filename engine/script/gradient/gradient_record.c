/* gradient_record.c: a dispatcher that puts stand-ins in the place of tensors and keeps a trace of
 * what runs. Composites come to it part by part, since it is the parts that backward knows. */
#include "engine/script/gradient/gradient_record.h"

#include "engine/autograd/autograd.h"
#include "engine/calls/autocast.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/given.h"
#include "engine/script/gradient/gradient_flat.h"
#include "engine/script/trace.h"

#include <string.h>

enum { MOST_CALLS = 4096 };

/* A storage, and the one that stands for it: what shares memory goes on to do so. */
typedef struct twin {
    struct twin *next;
    const td_storage *of;
    td_storage *storage; /* owned */
} twin;

/* A tensor with elements, and the one that stands for it. */
typedef struct pair {
    struct pair *next;
    td_tensor *real, *stand_in; /* owned */
} pair;

typedef struct recorder {
    td_dispatcher dispatcher; /* first, so that a call finds the recorder */
    const td_joint_request *request;
    td_joint *joint;
    td_trace *trace;
    twin *twins;
    pair *pairs;
    pair **inputs;     /* of the script; NULL: no tensor */
    int ncalls, depth; /* composites around the call */
    bool backward;     /* the forward part is done */
    const char *file;  /* of the last place, in the graph's memory */
} recorder;

static void *alloc(const recorder *r, size_t n, size_t size) {
    return td_ir_alloc(r->joint->graph, (n ? n : 1) * size);
}

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for a gradient");
}

/* ---- stand-ins ---- */

static td_status find_twin(recorder *r, const td_storage *s, td_storage **out) {
    for (const twin *t = r->twins; t; t = t->next)
        if (t->of == s) {
            *out = t->storage;
            return TD_OK;
        }
    twin *t = alloc(r, 1, sizeof *t);
    td_status status =
        t ? td_storage_empty(td_device_stand_in(s->device), s->bytes, out) : no_memory();
    if (status)
        return status;
    *t = (twin){.next = r->twins, .of = s, .storage = *out};
    r->twins = t;
    return TD_OK;
}

static td_status add_pair(recorder *r, td_tensor *x, pair **out) {
    td_storage *storage;
    pair *p = alloc(r, 1, sizeof *p);
    if (!p)
        return no_memory();
    if (x->layout != TD_STRIDED)
        return td_fail(TD_ETYPE, "the gradients of calls with sparse tensors depend on elements");
    td_status status = find_twin(r, x->storage, &storage);
    if (status == TD_OK)
        status = td_tensor_over(x, storage, &p->stand_in);
    if (status)
        return status;
    p->real = td_retain(x);
    p->next = r->pairs;
    r->pairs = *out = p;
    return TD_OK;
}

static bool is_captured(const td_joint_request *q, const td_tensor *x) {
    if (!q->captured)
        return td_is_followed(x);
    for (int k = 0; k < q->ncaptured; k++)
        if (q->captured[k] == x)
            return true;
    return false;
}

/* A tensor that the graph holds, and whose gradient is wanted, is one more input. */
static td_status capture(recorder *r, const pair *p) {
    td_joint *j = r->joint;
    td_tensor **more = td_realloc(j->captured, sizeof *more * ((size_t)j->ncaptured + 1));
    if (!more)
        return no_memory();
    j->captured = more;
    j->captured[j->ncaptured++] = td_retain(p->real);
    td_trace_name(r->trace, p->stand_in,
                  td_ir_add_input(j->graph->block, td_ir_type_of_tensor(j->graph, p->real), NULL));
    return td_set_requires_grad(p->stand_in, true);
}

/* What stands for a tensor that no call made. */
static td_status stand_for(recorder *r, td_tensor *x, td_tensor **out) {
    for (const pair *p = r->pairs; p; p = p->next)
        if (p->real == x) {
            *out = p->stand_in;
            return TD_OK;
        }
    pair *p;
    td_status status = add_pair(r, x, &p);
    if (status)
        return status;
    *out = p->stand_in;
    if (!r->backward && is_captured(r->request, x))
        return capture(r, p);
    td_trace_name(r->trace, p->stand_in, td_ir_add_constant(r->joint->graph->block, TD_T(x)));
    return TD_OK;
}

static td_status replace(void *ctx, td_tensor **x) {
    return td_tensor_device(*x).type == TD_META ? TD_OK : stand_for(ctx, *x, x);
}

/* What autograd saves are other tensors on the same elements. */
static td_ir_value *find_stranger(void *ctx, td_trace *t, td_tensor *x) {
    (void)ctx;
    td_ir_value *value = td_trace_value_like(t, x);
    if (!value && !td_trace_graph(t)->failed)
        td_trace_refuse(t, "backward reads what a write in place destroys, or what no operator "
                           "made");
    return value;
}

/* Anomaly mode holds, so a call has the place of the script's node that it is for, and backward's
 * have that of the call whose gradient they compute. */
static void find_place(void *ctx, td_ir_graph *g, td_ir_place *place) {
    recorder *r = ctx;
    const td_origin *origin = td_origin_known();
    if (!origin)
        return;
    if (!r->file || strcmp(r->file, origin->source) != 0)
        r->file = td_ir_text(g, origin->source, strlen(origin->source));
    *place = (td_ir_place){.file = r->file, .line = r->file ? origin->line : 0};
}

/* ---- calls ---- */

/* Does it run others, which are what is recorded (calls/dispatch.c)? But for reshape, whose parts
 * depend on strides, and those of gradients that come in may be others than the stand-ins'. */
static bool runs_parts(const td_call *call, const td_op *op) {
    if (op == TD_OP(reshape))
        return false;
    bool composite = op->run && !op->backward && !(op->flags & (TD_OP_NONDIFF | TD_OP_VIEW));
    return (composite || (op->run && call->ngiven)) && !(op->flags & TD_OP_INPLACE_ONLY);
}

/* Devices become stand-ins; where there is no tensor to say so, one that is not named is the CPU.
 * `named` gets the arguments as they will be in the graph. */
static void replace_devices(const td_op *op, td_value *args, td_value *named) {
    bool any = false;
    memcpy(named, args, sizeof *args * op->nparams);
    for (int k = 0; k < op->nparams; k++) {
        any |= args[k].kind == TD_KIND_TENSOR || args[k].kind == TD_KIND_TENSORS;
        if (args[k].kind == TD_KIND_DEVICE) {
            named[k].device = td_device_real(args[k].device);
            args[k].device = td_device_stand_in(args[k].device);
        } else if (td_is_nil(args[k]) && op->params[k].type == TD_PARAM_DEVICE && !any) {
            args[k] = TD_DEVICE(td_device_stand_in(TD_DEVICE_CPU));
        }
    }
}

/* Do the parts of a composite, or a gradient, move elements to another device, to read them there?
 * (Devices that they have from a tensor are stand-ins already.) */
static bool moves_elements(const recorder *r, const td_call *call) {
    bool inner = r->depth > 0 || r->backward, tensors = td_call_count_tensors(call) > 0;
    for (int k = 0; k < call->op->nparams; k++)
        if (call->args[k].kind == TD_KIND_DEVICE && call->args[k].device.type != TD_META)
            return inner && tensors;
    return false;
}

static td_status run_parts(recorder *r, td_call *call) {
    r->depth++;
    td_status status = td_op_run(call);
    r->depth--;
    return status;
}

static td_status run_one(recorder *r, td_call *call, const td_value *named) {
    const td_op *op = call->op;
    unsigned missed = td_looks_missed();
    td_modes_current.dispatcher = NULL;
    td_status status = td_op_run(call);
    td_modes_current.dispatcher = &r->dispatcher;
    td_looks_forget(missed); /* it chooses again when it runs */
    if (status)
        return status;
    const td_value *args = call->args;
    call->args = named;
    td_trace_add_call(r->trace, op, call);
    call->args = args;
    r->joint->writes |= !r->backward && call->ngiven > 0;
    return TD_OK;
}

static td_status check_call(recorder *r, const td_call *call) {
    if (++r->ncalls > MOST_CALLS)
        return td_fail(TD_EVALUE, "more than %d calls", MOST_CALLS);
    if (call->ngiven && call->op->flags & TD_OP_TURNS)
        return td_fail(TD_EVALUE, "%s turns a tensor in place", call->op->name);
    if (moves_elements(r, call))
        return td_fail(TD_EVALUE, "elements are read on the host");
    return TD_OK;
}

/* A call whose tensors are stand-ins. */
static td_status run_replaced(void *ctx, td_call *call) {
    recorder *r = ctx;
    td_value args[TD_MAX_PARAMS], named[TD_MAX_PARAMS];
    const td_value *before = call->args;
    const td_op *op = call->op;
    td_status status = op->variant ? op->variant(before, &op) : TD_OK;
    if (status)
        return status;
    memcpy(args, before, sizeof *args * call->op->nparams);
    replace_devices(call->op, args, named);
    call->args = args;
    status = runs_parts(call, op) ? run_parts(r, call) : run_one(r, call, named);
    call->args = before;
    return status;
}

static td_status run_call(recorder *r, td_call *call, td_tensor **room) {
    td_value args[TD_MAX_PARAMS];
    int ngiven = call->ngiven + call->nbeside;
    td_tensor **given = room, **lists = room + ngiven;
    td_status status = check_call(r, call);
    if (status == TD_OK)
        status = td_call_map_tensors(call, args, lists, replace, r);
    for (int k = 0; k < ngiven && status == TD_OK; k++) {
        given[k] = call->given[k];
        status = replace(r, &given[k]);
    }
    if (status)
        return status;
    td_call other = {.op = call->op,
                     .args = args,
                     .given = given,
                     .ngiven = call->ngiven,
                     .nbeside = call->nbeside,
                     .inplace = call->inplace};
    status = td_modes_current.casting ? td_autocast_dispatch(&other, run_replaced, r)
                                      : run_replaced(r, &other);
    if (status)
        return status;
    memcpy(call->out, other.out, sizeof call->out);
    call->list = other.list;
    call->nlist = other.nlist;
    call->result = other.result;
    return TD_OK;
}

static td_status take_call(const td_dispatcher *self, td_call *call) {
    td_tensor *few[16], **room = few;
    size_t n = (size_t)(call->ngiven + call->nbeside + td_call_count_tensors(call));
    if (n > 16 && !(room = td_malloc(n * sizeof *room)))
        return no_memory();
    td_status status = run_call((recorder *)self, call, room);
    if (room != few)
        td_free(room);
    return status;
}

/* ---- the forward part ---- */

static td_status make_inputs(recorder *r, const td_ir_block *block, td_value *stand_ins) {
    const td_joint_request *q = r->request;
    td_ir_block *made = r->joint->graph->block;
    r->inputs = alloc(r, (size_t)q->ninputs, sizeof *r->inputs);
    if (!r->inputs)
        return no_memory();
    for (int k = 0; k < q->ninputs; k++) {
        const td_ir_value *given = q->layout ? NULL : block->inputs[k];
        td_ir_value *input =
            td_ir_add_input(made, given ? given->type : NULL, given ? given->name : NULL);
        stand_ins[k] = q->inputs[k];
        if (stand_ins[k].kind != TD_KIND_TENSOR || !input)
            continue;
        td_status status = add_pair(r, q->inputs[k].tensor, &r->inputs[k]);
        if (status == TD_OK && q->wanted[k])
            status = td_set_requires_grad(r->inputs[k]->stand_in, true);
        if (status)
            return status;
        input->type = td_ir_type_of_tensor(r->joint->graph, q->inputs[k].tensor);
        td_trace_name(r->trace, r->inputs[k]->stand_in, input);
        stand_ins[k] = TD_T(r->inputs[k]->stand_in);
    }
    return TD_OK;
}

/* The value of each output, and whether it has a history. */
static td_status see_outputs(recorder *r, int n, const td_value *outputs) {
    td_joint *j = r->joint;
    j->noutputs = n;
    j->outputs = alloc(r, (size_t)n, sizeof *j->outputs);
    j->differentiable = alloc(r, (size_t)n, sizeof *j->differentiable);
    if (!j->outputs || !j->differentiable)
        return no_memory();
    for (int k = 0; k < n; k++) {
        td_status status = TD_OK;
        const td_value *v = &outputs[k];
        if (v->kind > TD_KIND_FLOATS)
            return td_fail(TD_EVALUE, "an output is no tensor, number, list or tuple");
        if (v->kind == TD_KIND_TENSOR) {
            td_tensor *x = v->tensor;
            status = replace(r, &x);
            j->outputs[k] = status ? NULL : td_trace_value(r->trace, x);
            j->differentiable[k] = !status && x->requires_grad;
        } else {
            j->outputs[k] = td_ir_add_constant(j->graph->block, *v);
        }
        if (status)
            return status;
    }
    return TD_OK;
}

/* Outputs with lists and tuples taken apart. */
static td_status see_layout(recorder *r, int n, const td_value *outputs) {
    td_joint *j = r->joint;
    td_flat flat;
    td_status status = td_flat_begin(n, outputs, &flat);
    if (status == TD_OK && flat.layout) {
        size_t bytes = sizeof *j->layout * (size_t)flat.nlayout;
        j->nlayout = flat.nlayout;
        j->layout = td_ir_alloc(j->graph, bytes);
        if (j->layout)
            memcpy(j->layout, flat.layout, bytes);
        status = td_ir_status(j->graph);
    }
    if (status == TD_OK)
        status = see_outputs(r, flat.n, flat.values);
    td_flat_end(&flat);
    return status;
}

/* The script on stand-ins, which are put together as its inputs. */
static td_status run_script(const recorder *r, const td_ir_block *block, const td_value *stand_ins,
                            td_value *outputs) {
    td_value *inputs = alloc(r, (size_t)block->ninputs, sizeof *inputs);
    if (!inputs)
        return no_memory();
    td_status status = td_flat_rebuild(r->request->layout, stand_ins, block->ninputs, inputs);
    if (status)
        return status;
    status = td_script_run(r->request->script, inputs, outputs);
    for (int k = 0; k < block->ninputs; k++)
        td_value_drop(&inputs[k]);
    return status;
}

/* What others see is written by the script as it runs, but its history would not be the node's. */
static td_status check_written(const recorder *r) {
    for (const pair *p = r->pairs; p; p = p->next)
        if (p->stand_in->requires_grad && !td_is_leaf(p->stand_in))
            return td_fail(TD_EVALUE, "a tensor that was not made in the graph is written in place "
                                      "and has a gradient then");
    return TD_OK;
}

static td_status run_forward(recorder *r) {
    const td_ir_block *block = td_script_graph(r->request->script)->block;
    td_joint *j = r->joint;
    td_value *stand_ins = alloc(r, (size_t)r->request->ninputs, sizeof *stand_ins);
    td_value *outputs = alloc(r, (size_t)block->noutputs, sizeof *outputs);
    if (!stand_ins || !outputs)
        return no_memory();
    j->ninputs = r->request->ninputs;
    td_status status = make_inputs(r, block, stand_ins);
    if (status)
        return status;
    status = run_script(r, block, stand_ins, outputs);
    if (status)
        return status;
    status = see_layout(r, block->noutputs, outputs);
    j->last = j->graph->block->last;
    for (int k = 0; k < block->noutputs; k++) /* the trace holds what is asked for */
        td_script_drop(&outputs[k]);
    if (status == TD_OK)
        status = check_written(r);
    return status ? status : td_trace_status(r->trace);
}

/* ---- numbers of values ---- */

int td_joint_number(const td_joint *j, const td_ir_value *value) {
    int n = 0;
    for (const td_ir_node *node = j->last ? j->graph->block->first : NULL; node;
         node = node == j->last ? NULL : node->next)
        for (int k = 0; k < node->noutputs; k++, n++)
            if (node->outputs[k] == value)
                return node->kind == TD_IR_CONSTANT ? -1 : n;
    return -1;
}

td_ir_value *td_joint_value(const td_joint *j, int number) {
    int n = 0;
    for (const td_ir_node *node = j->last ? j->graph->block->first : NULL; node;
         node = node == j->last ? NULL : node->next) {
        if (number < n + node->noutputs)
            return node->outputs[number - n];
        n += node->noutputs;
    }
    return NULL;
}

/* ---- the backward part ---- */

/* Each output that was made and has a history, once. */
static td_status find_ends(recorder *r) {
    const td_joint_request *q = r->request;
    td_joint *j = r->joint;
    int most = q->nends < 0 ? j->noutputs : q->nends;
    j->ends = alloc(r, (size_t)most, sizeof *j->ends);
    if (!j->ends)
        return no_memory();
    j->nends = 0;
    if (q->nends >= 0) {
        memcpy(j->ends, q->ends, sizeof *j->ends * (size_t)q->nends);
        j->nends = q->nends;
        return TD_OK;
    }
    for (int k = 0; k < j->noutputs; k++) {
        int number = j->differentiable[k] ? td_joint_number(j, j->outputs[k]) : -1;
        for (int e = 0; e < j->nends; e++)
            if (j->ends[e] == number)
                number = -1;
        if (number >= 0)
            j->ends[j->nends++] = number;
    }
    return TD_OK;
}

/* A gradient that comes in, of the tensor that it is for. */
static td_status make_gradient(recorder *r, const td_tensor *end, td_tensor **out) {
    td_ir_graph *g = r->joint->graph;
    td_status status =
        td_tensor_empty((td_dtype)end->dtype, td_tensor_device(end), end->ndim, end->sizes, out);
    if (status == TD_OK)
        td_trace_name(r->trace, *out,
                      td_ir_add_input(g->block, td_ir_type_of_tensor(g, *out), NULL));
    return status;
}

/* The tensors whose gradients are wanted, and the place of each in td_joint.gradients. */
static int find_wanted(const recorder *r, td_tensor **wanted, int *places) {
    const td_joint *j = r->joint;
    int n = 0;
    for (int k = 0; k < j->ninputs; k++)
        if (r->inputs[k] && r->request->wanted[k]) {
            places[n] = k;
            wanted[n++] = r->inputs[k]->stand_in;
        }
    for (int k = 0; k < j->ncaptured; k++)
        for (const pair *p = r->pairs; p; p = p->next)
            if (p->real == j->captured[k]) {
                places[n] = j->ninputs + k;
                wanted[n++] = p->stand_in;
                break;
            }
    return n;
}

static td_status run_backward(recorder *r) {
    td_joint *j = r->joint;
    size_t n = (size_t)(j->ninputs + j->ncaptured);
    td_tensor **ends = alloc(r, (size_t)j->nends, sizeof *ends);
    td_tensor **comes = alloc(r, (size_t)j->nends, sizeof *comes);
    td_tensor **wanted = alloc(r, n, sizeof *wanted), **results = alloc(r, n, sizeof *results);
    int *places = alloc(r, n, sizeof *places);
    td_status status = TD_OK;
    if (!ends || !comes || !wanted || !results || !places)
        return no_memory();
    int nwanted = find_wanted(r, wanted, places);
    for (int e = 0; e < j->nends && status == TD_OK; e++) {
        ends[e] = td_trace_tensor(r->trace, td_joint_value(j, j->ends[e]));
        status = ends[e] ? make_gradient(r, ends[e], &comes[e])
                         : td_fail(TD_EVALUE, "an output was written after it was read");
    }
    td_backward_options options = {.retain_graph = true, .create_graph = r->request->recorded};
    if (status == TD_OK && j->nends && nwanted)
        status = td_autograd_grad(j->nends, ends, comes, nwanted, wanted, options, true, results);
    for (int k = 0; k < nwanted; k++) {
        if (results[k] && status == TD_OK)
            j->gradients[places[k]] = td_trace_value(r->trace, results[k]);
        td_release(results[k]);
    }
    for (int e = 0; e < j->nends; e++)
        td_release(comes[e]);
    return status ? status : td_trace_status(r->trace);
}

/* ---- all of it ---- */

static td_status record(recorder *r) {
    td_joint *j = r->joint;
    td_status status = run_forward(r);
    if (status)
        return status;
    r->backward = true;
    j->gradients = alloc(r, (size_t)(j->ninputs + j->ncaptured), sizeof *j->gradients);
    if (!j->gradients)
        return no_memory();
    status = find_ends(r);
    return status ? status : run_backward(r);
}

static void clear(recorder *r) {
    for (pair *p = r->pairs; p; p = p->next) {
        td_release(p->real);
        td_release(p->stand_in);
    }
    for (twin *t = r->twins; t; t = t->next)
        td_storage_release(t->storage);
    td_trace_abandon(r->trace);
}

/* An autocast that holds keeps casts of weights to the end of the recording, as a region of its
 * own.
 */
static td_modes modes_for(const td_joint_request *request, const recorder *r) {
    td_modes modes = {.dispatcher = &r->dispatcher, .anomaly = true, .unchecked = true};
    if (!request->cast || !request->cast->casting)
        return modes;
    modes.casting = true;
    modes.uncached = request->cast->uncached;
    memcpy(modes.cast, request->cast->cast, sizeof modes.cast);
    modes.region = modes.uncached ? 0 : td_autocast_region_begin();
    return modes;
}

td_status td_joint_record(const td_joint_request *request, td_joint *out) {
    recorder r = {.dispatcher = {.call = take_call}, .request = request, .joint = out};
    *out = (td_joint){0};
    td_status status = td_trace_new(find_stranger, find_place, &r, &r.trace);
    if (status)
        return status;
    out->graph = td_ir_graph_retain(td_trace_graph(r.trace));
    const td_origin *origin = td_origin_in_force;
    td_modes modes = modes_for(request, &r);
    td_modes before = td_set_modes(modes);
    td_origin_in_force = NULL;
    td_observer *observer = td_observer_set(NULL); /* nothing is computed that one could see */
    unsigned missed = td_looks_missed();
    status = record(&r);
    if (status == TD_OK && td_looks_missed() != missed)
        status = td_fail(TD_EVALUE, "elements choose the operators that run");
    td_looks_forget(missed);
    td_observer_set(observer);
    td_set_modes(before);
    if (modes.region)
        td_autocast_region_end(modes.region);
    td_origin_in_force = origin;
    clear(&r);
    if (status)
        td_joint_clear(out);
    return status;
}

void td_joint_clear(td_joint *j) {
    for (int k = 0; k < j->ncaptured; k++)
        td_release(j->captured[k]);
    td_free(j->captured);
    td_ir_graph_release(j->graph);
    *j = (td_joint){0};
}
