/* gradient_variant.c: backward of a graph that was called: a script for each choice of gradients
 * that come in and are wanted, derived when it is first asked for.
 */
#include "engine/script/gradient/gradient_variant.h"

#include "engine/core/memory.h"
#include "engine/ops/language/expression.h"
#include "engine/script/passes/passes.h"

#include <string.h>

enum { MOST_VARIANTS = 32 };

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for a gradient");
}

static void *alloc(int n, size_t size) {
    return td_calloc((size_t)(n ? n : 1), size);
}

td_status td_gradient_rewrite(td_ir_graph *g) {
    td_passes_options options = {0};
    td_status status = td_passes_switch(&options, "types", false); /* all of them are known */
    g->fits = true;
    td_modes before = td_set_modes((td_modes){0}); /* casts are calls */
    if (status == TD_OK)
        status = td_passes_run(g, &options, NULL);
    td_set_modes(before);
    return status;
}

/* ---- variants ---- */

void td_variant_free(const td_gradient *d, td_variant *v) {
    if (!v)
        return;
    if (v->sized != d->sized)
        td_sized_free(v->sized);
    td_script_release(v->script);
    td_free(v->comes);
    td_free(v->wanted);
    td_free(v->gives);
    td_free(v);
}

td_variant *td_variant_new(const td_gradient *d, const bool *comes, const bool *wanted,
                           bool recorded) {
    int n = d->ninputs + d->ncaptured;
    td_variant *v = td_calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->recorded = recorded;
    v->comes = alloc(d->nresults, sizeof *v->comes);
    v->wanted = alloc(n, sizeof *v->wanted);
    v->gives = alloc(n, sizeof *v->gives);
    if (!v->comes || !v->wanted || !v->gives) {
        td_variant_free(d, v);
        return NULL;
    }
    memcpy(v->comes, comes, (size_t)d->nresults);
    memcpy(v->wanted, wanted, (size_t)n);
    return v;
}

/* Does a graph call what works for some strides alone? */
static bool reads_strides(const td_ir_graph *g) {
    for (const td_ir_node *node = g->block->first; node; node = node->next)
        if (node->op == TD_OP(view) || node->op == TD_OP(as_strided))
            return true;
    return false;
}

td_status td_variant_fill(const td_gradient *d, td_joint *joint, td_variant *v) {
    td_ir_graph *g = NULL;
    bool any = false;
    for (int k = 0; k < d->ninputs + d->ncaptured; k++) {
        if (!v->wanted[k])
            joint->gradients[k] = NULL;
        any |= v->gives[k] = joint->gradients[k] != NULL;
    }
    if (!any)
        return TD_OK;
    td_status status = td_split_backward(joint, d->nkept, d->kept, &g);
    v->strict = status == TD_OK && reads_strides(g);
    if (status == TD_OK && !v->recorded)
        status = td_gradient_rewrite(g);
    if (status == TD_OK)
        status = td_script_new_taking(g, &v->script);
    td_ir_graph_release(g);
    return status;
}

td_status td_gradient_record_at(const td_gradient *d, const int64_t *sizes,
                                td_joint_request request, td_joint *joint) {
    td_value *inputs = alloc(d->ninputs, sizeof *inputs);
    td_status status = inputs ? TD_OK : no_memory();
    if (status == TD_OK && d->varying)
        status = td_varying_inputs(d->varying, d->inputs, sizes, inputs);
    request.inputs = d->varying ? inputs : d->inputs;
    request.ninputs = d->ninputs;
    request.layout = d->layout;
    if (status == TD_OK)
        status = td_joint_record(&request, joint);
    for (int k = 0; k < d->ninputs && d->varying && inputs; k++)
        td_release(td_arg_tensor(inputs[k]));
    td_free(inputs);
    return status;
}

td_status td_gradient_record_sized(const td_gradient *d, td_joint_request request, td_sized **out) {
    td_joint joints[TD_SIZES_POINTS] = {{0}};
    td_status status = TD_OK;
    for (int p = 0; p < TD_SIZES_POINTS && status == TD_OK; p++) {
        int64_t sizes[TD_SIZES_MOST];
        for (int k = 0; k < d->varying->n; k++)
            sizes[k] = d->varying->seen[k][p];
        status = td_gradient_record_at(d, sizes, request, &joints[p]);
        request.ncaptured = joints[0].ncaptured;
        request.captured = joints[0].captured;
    }
    if (status == TD_OK)
        return td_sized_new(d->varying, joints, out);
    for (int p = 0; p < TD_SIZES_POINTS; p++)
        td_joint_clear(&joints[p]);
    return status;
}

/* What backward is to be recorded for; `ends` has room for all results. */
static td_joint_request request_of(const td_gradient *d, const bool *comes, bool recorded,
                                   int *ends) {
    td_joint_request request = {.script = d->whole,
                                .wanted = d->wanted,
                                .ncaptured = d->ncaptured,
                                .captured = d->captured,
                                .ends = ends,
                                .recorded = recorded,
                                .cast = &d->modes};
    for (int k = 0; k < d->nresults; k++)
        if (comes[k])
            ends[request.nends++] = d->results[k];
    return request;
}

static td_status fill_from(const td_gradient *d, td_joint *joint, td_variant *v) {
    if (joint->ncaptured != d->ncaptured)
        return td_fail(TD_EINTERNAL, "a graph holds other tensors than it did");
    return td_variant_fill(d, joint, v);
}

/* Derive backward for another choice than the usual one: for all sizes, or for these where that
 * can't be. */
static td_status derive(const td_gradient *d, const bool *comes, const bool *wanted, bool recorded,
                        const int64_t *sizes, bool all_sizes, td_variant **out) {
    td_joint joint = {0};
    td_variant *v = td_variant_new(d, comes, wanted, recorded);
    int *ends = alloc(d->nresults, sizeof *ends);
    td_status status = v && ends ? TD_OK : no_memory();
    if (status == TD_OK) {
        td_joint_request request = request_of(d, comes, recorded, ends);
        status = all_sizes ? td_gradient_record_sized(d, request, &v->sized)
                           : td_gradient_record_at(d, sizes, request, &joint);
    }
    if (status == TD_OK)
        status = fill_from(d, all_sizes ? td_sized_joint(v->sized) : &joint, v);
    td_joint_clear(&joint);
    td_free(ends);
    if (status)
        td_variant_free(d, v);
    *out = status ? NULL : v;
    return status;
}

/* Is a variant right for these sizes? It is looked at where they are new. */
static td_status check_variant(const td_gradient *d, const td_variant *v, const int64_t *sizes) {
    td_joint joint = {0};
    if (!v->sized || v->sized == d->sized || td_sized_knows(v->sized, sizes))
        return TD_OK;
    int *ends = alloc(d->nresults, sizeof *ends);
    td_status status = ends ? TD_OK : no_memory();
    if (status == TD_OK)
        status =
            td_gradient_record_at(d, sizes, request_of(d, v->comes, v->recorded, ends), &joint);
    if (status == TD_OK)
        status = td_sized_learn(v->sized, sizes, &joint);
    td_joint_clear(&joint);
    td_free(ends);
    return status;
}

static td_variant *find_variant(td_gradient *d, const bool *comes, const bool *wanted,
                                bool recorded) {
    size_t n = (size_t)(d->ninputs + d->ncaptured);
    pthread_mutex_lock(&d->lock);
    td_variant *v = d->variants;
    while (v && (v->recorded != recorded || memcmp(v->comes, comes, (size_t)d->nresults) ||
                 memcmp(v->wanted, wanted, n)))
        v = v->next;
    pthread_mutex_unlock(&d->lock);
    return v;
}

/* Into the list, unless that is full: then *own is to be freed. */
static void add_variant(td_gradient *d, td_variant *v, td_variant **own) {
    pthread_mutex_lock(&d->lock);
    if (d->nvariants < MOST_VARIANTS) {
        v->next = d->variants;
        d->variants = v;
        d->nvariants++;
    } else {
        *own = v;
    }
    pthread_mutex_unlock(&d->lock);
}

/* It stays as long as the gradient, or *own is to be freed: where there are too many, or where it
 * is for these sizes alone. */
static td_status get_variant(td_gradient *d, const bool *comes, const bool *wanted,
                             const int64_t *sizes, td_variant **out, td_variant **own) {
    bool recorded = td_is_recording(), sized = d->varying != NULL;
    *own = NULL;
    *out = find_variant(d, comes, wanted, recorded);
    if (*out && check_variant(d, *out, sizes) == TD_OK)
        return TD_OK;
    bool again = *out != NULL; /* and it is not for these sizes */
    td_status status = again ? TD_EVALUE : derive(d, comes, wanted, recorded, sizes, sized, out);
    if (status == TD_OK && check_variant(d, *out, sizes) == TD_OK) {
        add_variant(d, *out, own);
        return TD_OK;
    }
    if (status == TD_OK)
        td_variant_free(d, *out);
    if (!sized)
        return status;
    status = derive(d, comes, wanted, recorded, sizes, false, own);
    *out = *own;
    return status;
}

/* ---- backward ---- */

/* The gradients that come in and what is kept: new references, which the script takes, with a
 * history where backward is recorded. What this choice of gradients does not read is not asked for,
 * since it may have been written meanwhile: a gradient stands in its place. */
static td_status fill_inputs(const td_gradient *d, const td_variant *v, td_function *f,
                             td_tensor *const *gout, td_value *inputs) {
    td_status status = TD_OK;
    td_tensor *x;
    int n = 0;
    for (int k = 0; k < d->nresults && status == TD_OK; k++) {
        if (!v->comes[k])
            continue;
        x = NULL;
        if (v->strict && !gout[k]->contiguous)
            status = TD_APPLY(&x, contiguous, TD_T(gout[k]));
        else
            x = td_function_take_gradient(f, gout, k);
        inputs[n++] = td_tensor_or_nil(x);
    }
    for (int k = 0; k < d->nkept && status == TD_OK; k++) {
        if (td_script_graph(v->script)->block->inputs[n]->uses)
            status = td_function_take_saved(f, k, &x);
        else
            x = td_retain(td_arg_tensor(inputs[0]));
        inputs[n++] = td_tensor_or_nil(x);
    }
    return status;
}

td_status td_gradient_numbers(const td_sized *sized, const int64_t *sizes, int64_t **room,
                              td_value *inputs) {
    *room = sized ? alloc(td_sized_room(sized), sizeof **room) : NULL;
    if (sized && !*room)
        return no_memory();
    return !sized || td_sized_numbers(sized, sizes, *room, inputs)
               ? TD_OK
               : td_fail(TD_EINTERNAL, "a gradient is not for these sizes");
}

static td_status run_variant(const td_gradient *d, const td_variant *v, td_function *f,
                             const int64_t *sizes, td_tensor *const *gout, td_tensor **in) {
    const td_ir_block *block = td_script_graph(v->script)->block;
    td_value *inputs = alloc(block->ninputs, sizeof *inputs);
    td_value *outputs = alloc(block->noutputs, sizeof *outputs);
    int64_t *room = NULL;
    td_status status = inputs && outputs ? TD_OK : no_memory();
    int n = 0, nnumbers = v->sized ? td_sized_joint(v->sized)->nnumbers : 0;
    if (status == TD_OK)
        status = fill_inputs(d, v, f, gout, inputs);
    if (status == TD_OK)
        status = td_gradient_numbers(v->sized, sizes, &room, inputs + block->ninputs - nnumbers);
    if (status == TD_OK)
        status = td_script_run(v->script, inputs, outputs);
    else
        for (int k = 0; k < block->ninputs && inputs; k++)
            td_release(td_arg_tensor(inputs[k]));
    for (int k = 0; k < d->ninputs + d->ncaptured && status == TD_OK; k++)
        if (v->gives[k])
            in[k] = outputs[n++].tensor;
    td_free(room);
    td_free(inputs);
    td_free(outputs);
    return status;
}

td_status td_gradient_backward_run(td_gradient *d, const int64_t *sizes, td_function *f,
                                   td_tensor *const *gout, td_tensor **in) {
    td_variant *v = NULL, *own = NULL;
    int n = d->ninputs + d->ncaptured;
    bool *comes = alloc(d->nresults, sizeof *comes), *wanted = alloc(n, sizeof *wanted);
    td_status status = comes && wanted ? TD_OK : no_memory();
    for (int k = 0; k < d->nresults && status == TD_OK; k++)
        comes[k] = gout[k] != NULL;
    for (int k = 0; k < n && status == TD_OK; k++)
        wanted[k] = td_function_wants(f, k);
    if (status == TD_OK)
        status = get_variant(d, comes, wanted, sizes, &v, &own);
    if (status == TD_OK && v->script)
        status = run_variant(d, v, f, sizes, gout, in);
    td_variant_free(d, own);
    td_free(comes);
    td_free(wanted);
    return status;
}
