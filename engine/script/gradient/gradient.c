/* gradient.c: the gradient of a graph, and calls that are recorded as one node.
 *
 * The node's results are the outputs that have a history, and behind them what is kept for backward
 * and has one: nobody sees these, but where backward is recorded gradients flow into them.
 */
#include "engine/autograd/function.h"
#include "engine/core/memory.h"
#include "engine/ops/language/expression.h"
#include "engine/script/gradient/gradient_flat.h"
#include "engine/script/gradient/gradient_variant.h"
#include "engine/script/passes/alias.h"
#include "engine/script/scalars.h"

#include <string.h>

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for a gradient");
}

static void *alloc(int n, size_t size) {
    return td_calloc((size_t)(n ? n : 1), size);
}

/* ---- birth and death ---- */

/* But for sizes. */
static bool is_like(const td_tensor *x, const td_tensor *like) {
    return x->dtype == like->dtype && x->layout == TD_STRIDED &&
           td_device_same(td_tensor_device(x), td_device_real(td_tensor_device(like)));
}

static td_status stand_in(const td_tensor *x, td_tensor **out) {
    td_storage *storage;
    td_device device = td_tensor_device(x);
    if (x->layout != TD_STRIDED || device.type == TD_META)
        return td_fail(TD_ETYPE, "a graph has a gradient for strided tensors that have elements");
    td_status status = td_storage_empty(td_device_stand_in(device), x->storage->bytes, &storage);
    if (status)
        return status;
    status = td_tensor_over(x, storage, out);
    td_storage_release(storage);
    return status;
}

static td_status copy_inputs(td_gradient *d, const td_value *inputs) {
    const uint32_t plain = 1u << TD_KIND_NIL | 1u << TD_KIND_TENSOR | 1u << TD_KIND_INT |
                           1u << TD_KIND_FLOAT | 1u << TD_KIND_BOOL | 1u << TD_KIND_DTYPE |
                           1u << TD_KIND_DEVICE;
    for (int k = 0; k < d->ninputs; k++) {
        td_tensor *made;
        if (inputs[k].kind > TD_KIND_FLOATS || !(plain >> inputs[k].kind & 1))
            return td_fail(TD_EVALUE, "an input is no tensor, number, list or tuple");
        if (inputs[k].from_one)
            return td_fail(TD_EVALUE, "an input has indices that count from 1");
        d->inputs[k] = inputs[k];
        if (inputs[k].kind != TD_KIND_TENSOR)
            continue;
        d->inputs[k] = TD_NIL;
        td_status status = stand_in(inputs[k].tensor, &made);
        if (status)
            return status;
        d->inputs[k] = TD_T(made);
        d->wanted[k] = td_is_followed(inputs[k].tensor);
    }
    return TD_OK;
}

/* The results of the node: the ends that the joint graph has, then what is kept and has a history;
 * and where forward gives them. */
static void find_results(td_gradient *d, const td_joint *joint) {
    int made = d->noutputs;
    for (int k = 0; k < joint->nends; k++) {
        d->results[d->nresults] = joint->ends[k];
        for (int o = d->noutputs - 1; o >= 0; o--)
            if (td_joint_number(joint, joint->outputs[o]) == joint->ends[k])
                d->places[d->nresults] = o;
        d->nresults++;
    }
    for (int k = 0; k < d->nkept; k++) {
        if (d->kept[k].from != TD_KEPT_MADE)
            continue;
        bool known = td_joint_value(joint, d->kept[k].number)->type->requires_grad != 1;
        for (int r = 0; r < d->nresults; r++)
            known |= d->results[r] == d->kept[k].number;
        if (!known) {
            d->results[d->nresults] = d->kept[k].number;
            d->places[d->nresults++] = made;
        }
        made++;
    }
    d->nmade = made - d->noutputs;
}

static void find_outputs(td_gradient *d, const td_joint *joint) {
    for (int k = 0; k < d->noutputs; k++) {
        int number = td_joint_number(joint, joint->outputs[k]);
        d->outputs[k] = (td_gradient_output){-1, -1};
        for (int r = 0; r < joint->nends; r++)
            if (number >= 0 && d->results[r] == number && joint->differentiable[k])
                d->outputs[k].result = r;
        for (int i = 0; i < d->ninputs; i++)
            if (joint->outputs[k] == joint->graph->block->inputs[i])
                d->outputs[k].input = i;
    }
}

/* Inputs that share memory would have to go on to do so wherever backward is derived again. */
static td_status check_shared(const td_joint *joint, const td_value *inputs) {
    for (int k = 0; k < joint->ninputs && joint->writes; k++)
        for (int j = 0; j < k; j++) {
            const td_tensor *x = td_arg_tensor(inputs[k]), *y = td_arg_tensor(inputs[j]);
            if (x && y && x->storage == y->storage)
                return td_fail(TD_EVALUE, "inputs share memory, and the graph writes in place");
        }
    return TD_OK;
}

/* From the joint graph: what is kept, the forward script and the usual variant of backward. */
static td_status take_apart(td_gradient *d, td_joint *joint) {
    td_ir_graph *g = NULL;
    td_status status = td_split_choose(joint, &d->nkept, &d->kept);
    if (status)
        return status;
    d->captured = alloc(joint->ncaptured, sizeof *d->captured);
    if (!d->captured)
        return no_memory();
    d->noutputs = joint->noutputs;
    if (joint->layout) {
        d->layout_out = alloc(joint->nlayout, sizeof *d->layout_out);
        if (!d->layout_out)
            return no_memory();
        memcpy(d->layout_out, joint->layout, sizeof *d->layout_out * (size_t)joint->nlayout);
    }
    d->ncaptured = joint->ncaptured;
    for (int k = 0; k < d->ncaptured; k++)
        d->captured[k] = td_retain(joint->captured[k]);
    int n = d->ninputs + d->ncaptured, most = joint->nends + d->nkept;
    bool *comes = alloc(most, sizeof *comes), *wanted = alloc(n, sizeof *wanted);
    d->outputs = alloc(d->noutputs, sizeof *d->outputs);
    d->results = alloc(most, sizeof *d->results);
    d->places = alloc(most, sizeof *d->places);
    if (!comes || !wanted || !d->outputs || !d->results || !d->places)
        TD_TRY(no_memory());
    find_results(d, joint);
    find_outputs(d, joint);
    TD_TRY(td_split_forward(joint, d->nkept, d->kept, &g));
    TD_TRY(td_gradient_rewrite(g));
    TD_TRY(td_script_new(g, &d->forward));
    memset(comes, true, (size_t)joint->nends); /* nothing comes for what is kept */
    memcpy(wanted, d->wanted, (size_t)d->ninputs);
    memset(wanted + d->ninputs, true, (size_t)d->ncaptured);
    d->variants = td_variant_new(d, comes, wanted, false);
    if (!d->variants)
        TD_TRY(no_memory());
    d->variants->sized = d->sized;
    d->nvariants = 1;
    TD_TRY(td_variant_fill(d, joint, d->variants));
done:
    td_ir_graph_release(g);
    td_free(comes);
    td_free(wanted);
    return status;
}

/* What a call does besides computing would be done when the gradient is derived, and not by what is
 * derived. */
static td_status check_kinds(const td_ir_block *block) {
    td_status status = TD_OK;
    for (const td_ir_node *node = block->first; node && status == TD_OK; node = node->next) {
        if (node->kind == TD_IR_PRINT || node->kind == TD_IR_HOST_CALL || node->kind == TD_IR_FORK)
            return td_fail(TD_EVALUE, "the graph prints, forks or calls its host");
        if (node->kind == TD_IR_WITH && node->mode.kind == TD_IR_INFERENCE_MODE)
            return td_fail(TD_EVALUE, "the graph makes tensors under inference_mode");
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = check_kinds(node->blocks[b]);
        if (node->subgraph && node->subgraph != block->graph && status == TD_OK)
            status = check_kinds(node->subgraph->block);
    }
    return status;
}

/* Does it write a list that may have come in? Of the graphs that it calls any list may have. */
static bool writes_lists(const td_alias_info *a, const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (node->kind == TD_IR_SCALAR && node->scalar->acts == TD_SCALAR_WRITES &&
            (!a || td_alias_comes_in(a, node->inputs[0])))
            return true;
        if (node->subgraph && node->subgraph != block->graph &&
            writes_lists(NULL, node->subgraph->block))
            return true;
        for (int b = 0; b < node->nblocks; b++)
            if (writes_lists(a, node->blocks[b]))
                return true;
    }
    return false;
}

/* A list that comes in must be the same behind the call. */
static td_status check_lists(const td_ir_graph *g) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    if (status == TD_OK && writes_lists(a, g->block))
        status = td_fail(TD_EVALUE, "the graph may write a list that comes in");
    td_alias_free(a);
    return status;
}

/* Without its parts, for so many inputs that stand so; NULL: out of memory. */
static td_gradient *new_gradient(td_script *s, int ninputs, int nlayout, const int *layout) {
    td_gradient *d = td_calloc(1, sizeof *d);
    if (!d)
        return NULL;
    atomic_init(&d->refs, 1);
    pthread_mutex_init(&d->lock, NULL);
    d->whole = td_script_retain(s);
    d->modes = td_get_modes();
    d->ninputs = ninputs;
    d->nlayout = nlayout;
    d->inputs = alloc(d->ninputs, sizeof *d->inputs);
    d->wanted = alloc(d->ninputs, sizeof *d->wanted);
    d->layout = layout ? alloc(nlayout, sizeof *d->layout) : NULL;
    if (d->layout)
        memcpy(d->layout, layout, sizeof *layout * (size_t)nlayout);
    if (d->inputs && d->wanted && !d->layout == !layout)
        return d;
    td_gradient_release(d);
    return NULL;
}

static td_joint_request usual_request(const td_gradient *d) {
    return (td_joint_request){.script = d->whole,
                              .wanted = d->wanted,
                              .ninputs = d->ninputs,
                              .layout = d->layout,
                              .nends = -1,
                              .cast = &d->modes};
}

static td_status fill_gradient(td_gradient *d, td_joint *joint, const td_value *inputs) {
    td_status status = check_shared(joint, inputs);
    if (status == TD_OK && !joint->nends)
        status = td_fail(TD_EVALUE, "no output has a gradient");
    return status ? status : take_apart(d, joint);
}

static td_status derive_new(td_gradient *d, const td_value *inputs) {
    td_joint joint = {0};
    td_joint_request request = usual_request(d);
    td_status status = check_kinds(td_script_graph(d->whole)->block);
    if (status == TD_OK && d->layout)
        status = check_lists(td_script_graph(d->whole));
    if (status == TD_OK)
        status = copy_inputs(d, inputs);
    /* Of stand-ins that share no memory, as wherever it is derived again: what is saved of one
     * input is known by its elements, and must not be taken for another. */
    request.inputs = d->inputs;
    if (status == TD_OK)
        status = td_joint_record(&request, &joint);
    if (status == TD_OK)
        status = fill_gradient(d, &joint, inputs);
    td_joint_clear(&joint);
    return status;
}

td_status td_gradient_new(td_script *s, const td_value *inputs, td_gradient **out) {
    td_flat flat;
    td_gradient *d = NULL;
    td_status status = td_flat_begin(td_script_graph(s)->block->ninputs, inputs, &flat);
    *out = NULL;
    if (status == TD_OK && !(d = new_gradient(s, flat.n, flat.nlayout, flat.layout)))
        status = no_memory();
    if (status == TD_OK)
        status = derive_new(d, flat.values);
    td_flat_end(&flat);
    if (status)
        td_gradient_release(d);
    else
        *out = d;
    return status;
}

/* ---- for all sizes ---- */

static bool fits_modes(const td_gradient *d);
static bool fits_numbers(const td_gradient *d, const td_value *inputs);

static td_status copy_from(td_gradient *d, const td_gradient *like, const td_value *inputs) {
    if (like->varying || !fits_modes(like) || !fits_numbers(like, inputs))
        return td_fail(TD_ETYPE, "more than sizes varies");
    for (int k = 0; k < d->ninputs; k++) {
        td_tensor *x = td_arg_tensor(like->inputs[k]);
        d->inputs[k] = like->inputs[k];
        d->wanted[k] = like->wanted[k];
        if (x)
            td_retain(x);
    }
    return td_varying_new(d->ninputs, like->inputs, inputs, &d->varying);
}

/* The inputs of a call in a row, where they stand as d's do. */
static bool take_inputs(const td_gradient *d, const td_value *inputs, td_flat *flat) {
    if (td_flat_begin(td_script_graph(d->whole)->block->ninputs, inputs, flat) == TD_OK &&
        td_flat_alike(d->nlayout, d->layout, flat))
        return true;
    td_flat_end(flat);
    return false;
}

td_status td_gradient_for_sizes(const td_gradient *like, const td_value *inputs,
                                td_gradient **out) {
    td_flat flat;
    *out = NULL;
    if (!take_inputs(like, inputs, &flat))
        return td_fail(TD_ETYPE, "more than sizes varies");
    td_gradient *d = new_gradient(like->whole, like->ninputs, like->nlayout, like->layout);
    td_status status = d ? copy_from(d, like, flat.values) : no_memory();
    if (status == TD_OK)
        status = td_gradient_record_sized(d, usual_request(d), &d->sized);
    if (status == TD_OK)
        status = fill_gradient(d, td_sized_joint(d->sized), flat.values);
    td_flat_end(&flat);
    if (status)
        td_gradient_release(d);
    else
        *out = d;
    return status;
}

td_gradient *td_gradient_retain(td_gradient *d) {
    if (d)
        atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void td_gradient_release(td_gradient *d) {
    if (!d || !td_was_last(&d->refs))
        return;
    for (td_variant *v = d->variants, *next; v; v = next) {
        next = v->next;
        td_variant_free(d, v);
    }
    for (int k = 0; k < d->ninputs && d->inputs; k++)
        td_release(td_arg_tensor(d->inputs[k]));
    for (int k = 0; k < d->ncaptured; k++)
        td_release(d->captured[k]);
    td_script_release(d->whole);
    td_script_release(d->forward);
    td_varying_free(d->varying);
    td_sized_free(d->sized);
    td_free(d->layout);
    td_free(d->layout_out);
    td_free(d->inputs);
    td_free(d->wanted);
    td_free(d->captured);
    td_free(d->outputs);
    td_free(d->kept);
    td_free(d->results);
    td_free(d->places);
    pthread_mutex_destroy(&d->lock);
    td_free(d);
}

/* ---- calls ---- */

/* 0 and -0 are not the same number here. */
static bool same_number(td_value a, td_value b) {
    if (a.kind == TD_KIND_FLOAT && b.kind == TD_KIND_FLOAT)
        return !memcmp(&a.f, &b.f, sizeof a.f);
    return a.kind == b.kind && td_value_equal(a, b);
}

/* All but sizes. */
static bool fits_numbers(const td_gradient *d, const td_value *inputs) {
    for (int k = 0; k < d->ninputs; k++) {
        const td_tensor *x = td_arg_tensor(inputs[k]), *like = td_arg_tensor(d->inputs[k]);
        if (inputs[k].from_one)
            return false;
        if (!x && !like ? !same_number(inputs[k], d->inputs[k])
                        : !x || !like || !is_like(x, like) || td_is_followed(x) != d->wanted[k])
            return false;
    }
    for (int k = 0; k < d->ncaptured; k++)
        if (!td_is_followed(d->captured[k]))
            return false;
    return true;
}

/* Sizes, too; those that vary are read. */
static bool fits_sizes(const td_gradient *d, const td_value *inputs, int64_t *sizes) {
    memset(sizes, 0, sizeof *sizes * TD_SIZES_MOST);
    for (int k = 0; k < d->ninputs; k++) {
        const td_tensor *x = td_arg_tensor(inputs[k]), *like = td_arg_tensor(d->inputs[k]);
        if (x && d->varying
                ? !td_varying_takes(d->varying, k, x, like, sizes)
                : x && (!td_tensor_same_shape(x, like) ||
                        memcmp(x->strides, like->strides, sizeof *x->strides * x->ndim)))
            return false;
    }
    return true;
}

static bool fits_modes(const td_gradient *d) {
    const td_modes *now = &td_modes_current, *then = &d->modes;
    return td_is_recording() && !now->dispatcher && now->casting == then->casting &&
           (!now->casting ||
            (now->uncached == then->uncached && !memcmp(now->cast, then->cast, sizeof now->cast)));
}

bool td_gradient_fits(const td_gradient *d, const td_value *inputs) {
    int64_t sizes[TD_SIZES_MOST];
    td_flat flat;
    if (!fits_modes(d) || !take_inputs(d, inputs, &flat))
        return false;
    bool fits = fits_numbers(d, flat.values) && fits_sizes(d, flat.values, sizes) &&
                (!d->sized || td_sized_knows(d->sized, sizes));
    td_flat_end(&flat);
    return fits;
}

static td_status learn(const td_gradient *d, const td_value *inputs, bool *learned) {
    int64_t sizes[TD_SIZES_MOST];
    td_joint joint = {0};
    if (!fits_numbers(d, inputs) || !fits_sizes(d, inputs, sizes) ||
        td_sized_refuses(d->sized, sizes))
        return TD_OK;
    td_joint_request request = usual_request(d);
    request.ncaptured = d->ncaptured;
    request.captured = d->captured;
    td_status status = td_gradient_record_at(d, sizes, request, &joint);
    if (status != TD_ENOMEM && status != TD_EINTR)
        status = td_sized_learn(d->sized, sizes, status ? NULL : &joint);
    td_joint_clear(&joint);
    *learned = status == TD_OK;
    return status == TD_EVALUE ? TD_OK : status;
}

td_status td_gradient_learn(td_gradient *d, const td_value *inputs, bool *learned) {
    td_flat flat;
    *learned = false;
    if (!d->sized || !fits_modes(d) || !take_inputs(d, inputs, &flat))
        return TD_OK;
    td_status status = learn(d, flat.values, learned);
    td_flat_end(&flat);
    return status;
}

/* One call, behind its node. */
typedef struct node_call {
    td_gradient *gradient; /* a reference */
    int64_t sizes[];       /* that vary */
} node_call;

static td_status backward(td_function *f, void *data, td_tensor *const *gout, td_tensor **in) {
    const node_call *made = data;
    return td_gradient_backward_run(made->gradient, made->sizes, f, gout, in);
}

static void destroy(void *data) {
    node_call *made = data;
    td_gradient_release(made->gradient);
    td_free(made);
}

static const td_function_class node_class = {"ScriptFunctionBackward", backward, destroy};

/* Room for a call. */
typedef struct room {
    td_value *given;     /* by forward */
    td_tensor **inputs;  /* of the node */
    td_tensor **kept;    /* borrowed */
    td_tensor **results; /* of the node, owned */
} room;

static td_status make_room(const td_gradient *d, room *r) {
    r->given = alloc(d->noutputs + d->nmade, sizeof *r->given);
    r->inputs = alloc(d->ninputs + d->ncaptured, sizeof *r->inputs);
    r->kept = alloc(d->nkept, sizeof *r->kept);
    r->results = alloc(d->nresults, sizeof *r->results);
    return r->given && r->inputs && r->kept && r->results ? TD_OK : no_memory();
}

static void drop_room(const td_gradient *d, room *r) {
    for (int k = 0; k < d->noutputs + d->nmade && r->given; k++)
        td_script_drop(&r->given[k]);
    for (int k = 0; k < d->nresults && r->results; k++)
        td_release(r->results[k]);
    td_free(r->given);
    td_free(r->inputs);
    td_free(r->kept);
    td_free(r->results);
}

/* No call within is recorded or cast: casts are calls of the graph. */
static td_status run_forward(const td_gradient *d, const td_value *inputs, td_value *given) {
    td_modes before = td_get_modes(), modes = before;
    modes.grad_disabled = true;
    modes.casting = false;
    td_set_modes(modes);
    td_status status = td_script_run(d->forward, inputs, given);
    td_set_modes(before);
    return status;
}

/* The same with the numbers that follow from the sizes. */
static td_status run_forward_sized(const td_gradient *d, const int64_t *sizes,
                                   const td_value *inputs, td_value *given) {
    int64_t *lists = NULL;
    int nnumbers = td_sized_joint(d->sized)->nnumbers;
    td_value *all = alloc(d->ninputs + nnumbers, sizeof *all);
    td_status status = all ? TD_OK : no_memory();
    for (int k = 0; k < d->ninputs && all; k++)
        all[k] = inputs[k];
    if (status == TD_OK)
        status = td_gradient_numbers(d->sized, sizes, &lists, all + d->ninputs);
    if (status == TD_OK)
        status = run_forward(d, all, given);
    td_free(lists);
    td_free(all);
    return status;
}

/* What goes behind the node of a call; NULL: out of memory. */
static node_call *new_call(td_gradient *d, const td_value *inputs) {
    int64_t sizes[TD_SIZES_MOST];
    size_t bytes = d->varying ? sizeof sizes : 0;
    node_call *made = td_malloc(sizeof *made + bytes);
    if (!made)
        return NULL;
    made->gradient = td_gradient_retain(d);
    if (bytes) {
        (void)fits_sizes(d, inputs, sizes);
        memcpy(made->sizes, sizes, bytes);
    }
    return made;
}

static td_status save(const td_gradient *d, td_function *f, const td_value *inputs, room *r) {
    int made = d->noutputs;
    for (int k = 0; k < d->nkept; k++) {
        const td_kept *kept = &d->kept[k];
        r->kept[k] = kept->from == TD_KEPT_INPUT      ? td_arg_tensor(inputs[kept->number])
                     : kept->from == TD_KEPT_CAPTURED ? d->captured[kept->number]
                     : kept->from == TD_KEPT_CONSTANT ? kept->tensor
                                                      : td_arg_tensor(r->given[made++]);
    }
    return td_function_save(f, d->nkept, r->kept);
}

/* Outputs are what forward gives, with the node's history where they have one. */
static void fill_outputs(const td_gradient *d, const td_value *inputs, room *r, td_value *outputs) {
    for (int k = 0; k < d->noutputs; k++) {
        const td_gradient_output *o = &d->outputs[k];
        if (o->result >= 0) {
            outputs[k] = TD_T(td_retain(r->results[o->result]));
        } else if (o->input >= 0 && inputs[o->input].kind == TD_KIND_TENSOR) {
            outputs[k] = TD_T(td_retain(inputs[o->input].tensor));
        } else {
            outputs[k] = r->given[k];
            r->given[k] = TD_NIL;
        }
    }
}

/* With inputs and outputs in a row. */
static td_status call_flat(td_gradient *d, const td_value *inputs, td_value *outputs) {
    room r = {0};
    td_function *f = NULL;
    for (int k = 0; k < d->noutputs; k++)
        outputs[k] = TD_NIL;
    td_status status = make_room(d, &r);
    node_call *made = status ? NULL : new_call(d, inputs);
    if (status == TD_OK && !made)
        status = no_memory();
    for (int k = 0; k < d->ninputs && status == TD_OK; k++)
        r.inputs[k] = td_arg_tensor(inputs[k]);
    for (int k = 0; k < d->ncaptured && status == TD_OK; k++)
        r.inputs[d->ninputs + k] = d->captured[k];
    if (status == TD_OK)
        status = td_function_begin(&node_class, made, d->ninputs + d->ncaptured, r.inputs, &f);
    if (status)
        goto done;
    td_function_set_materialize(f, false);
    status = d->sized ? run_forward_sized(d, made->sizes, inputs, r.given)
                      : run_forward(d, inputs, r.given);
    if (status == TD_OK)
        status = save(d, f, inputs, &r);
    if (status) {
        td_function_drop(f);
        goto done;
    }
    for (int k = 0; k < d->nresults; k++)
        r.results[k] = td_retain(td_arg_tensor(r.given[d->places[k]]));
    status = td_function_end(f, d->nresults, r.results);
    if (status == TD_OK)
        fill_outputs(d, inputs, &r, outputs);
done:
    drop_room(d, &r);
    return status;
}

/* With lists and tuples among what it gives. */
static td_status call_apart(td_gradient *d, const td_value *inputs, td_value *outputs) {
    int n = td_script_graph(d->whole)->block->noutputs;
    td_value *row = alloc(d->noutputs, sizeof *row);
    td_status status = row ? call_flat(d, inputs, row) : no_memory();
    if (status == TD_OK)
        status = td_flat_rebuild(d->layout_out, row, n, outputs);
    for (int k = 0; k < d->noutputs && row; k++)
        td_value_drop(&row[k]);
    td_free(row);
    return status;
}

td_status td_gradient_call(td_gradient *d, const td_value *inputs, td_value *outputs) {
    td_flat flat;
    for (int k = 0; k < td_script_graph(d->whole)->block->noutputs; k++)
        outputs[k] = TD_NIL;
    if (!take_inputs(d, inputs, &flat))
        return td_fail(TD_EINTERNAL, "a gradient is not for these inputs");
    td_status status =
        d->layout_out ? call_apart(d, flat.values, outputs) : call_flat(d, flat.values, outputs);
    td_flat_end(&flat);
    return status;
}

/* ---- what runs ---- */

bool td_gradient_is_sized(const td_gradient *d) {
    return d->sized != NULL;
}

const td_ir_graph *td_gradient_forward(const td_gradient *d) {
    return td_script_graph(d->forward);
}

const td_ir_graph *td_gradient_backward(td_gradient *d) {
    pthread_mutex_lock(&d->lock);
    const td_variant *first = d->variants;
    while (first->next) /* the usual one was the first */
        first = first->next;
    pthread_mutex_unlock(&d->lock);
    return first->script ? td_script_graph(first->script) : NULL;
}

int td_gradient_nkept(const td_gradient *d) {
    return d->nmade;
}
