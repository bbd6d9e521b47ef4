/* special.c: how a specialisation is made: what is known of inputs goes into a copy of the graph,
 * which the passes then rewrite; and so do the graphs that it calls or forks.
 */
#include "engine/script/special.h"

#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/script/passes/copy.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/passes.h"
#include "engine/script/scalars.h"

#include <string.h>

void td_special_free(td_special *s) {
    if (!s)
        return;
    td_script_release(s->script);
    td_free(s->keys);
    td_free(s->sizes);
    td_free(s);
}

/* The key and sizes of a value, and of a list's entries; counted alone where there is no room yet.
 */
static void add_value(td_special *s, const td_value *v) {
    int n;
    td_tensor *const *entries = td_special_entries(v, &n);
    if (s->keys)
        s->keys[s->nkeys] = td_special_key(v);
    s->nkeys++;
    for (int d = 0; v->kind == TD_KIND_TENSOR && d < v->tensor->ndim; d++, s->nsizes++)
        if (s->sizes)
            s->sizes[s->nsizes] = v->tensor->sizes[d];
    for (int k = 0; entries && k < n; k++) {
        const td_value entry = td_tensor_or_nil(entries[k]);
        add_value(s, &entry);
    }
}

td_special *td_special_new(const td_scripted *f, uint64_t modes, const td_value *inputs) {
    td_special *s = td_calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->modes = modes;
    for (int k = 0; k < f->nlooks; k++)
        add_value(s, &inputs[f->looks[k]]);
    s->keys = td_malloc(sizeof *s->keys * (size_t)(s->nkeys + 1));
    s->sizes = td_malloc(sizeof *s->sizes * (size_t)(s->nsizes + 1));
    if (!s->keys || !s->sizes) {
        td_special_free(s);
        return NULL;
    }
    s->nkeys = s->nsizes = 0;
    for (int k = 0; k < f->nlooks; k++)
        add_value(s, &inputs[f->looks[k]]);
    return s;
}

/* The type of an input tensor as far as the specialisation has it. */
static const td_ir_type *type_of(td_ir_graph *g, const td_tensor *x, const int64_t *sizes,
                                 bool recorded) {
    int64_t strides[TD_MAX_DIMS];
    const bool last = !td_is_row_major(x) && td_is_channels_last(x);
    bool whole = x->layout == TD_STRIDED && (last || td_is_row_major(x));
    for (int d = 0; d < x->ndim; d++)
        whole &= sizes[d] != TD_IR_UNKNOWN;
    if (whole && last)
        memcpy(strides, x->strides, sizeof *strides * (size_t)x->ndim);
    else if (whole)
        td_contiguous_strides(x->ndim, sizes, strides);
    td_ir_type type = {.kind = TD_IR_TENSOR,
                       .dtype = x->dtype,
                       .requires_grad = recorded && td_is_followed(x),
                       .placed = true,
                       .device = td_device_real(td_tensor_device(x)),
                       .n = x->layout == TD_STRIDED ? x->ndim : TD_IR_UNKNOWN,
                       .sizes = sizes,
                       .strides = whole ? strides : NULL};
    return td_ir_type_copy(g, &type);
}

static bool takes_type(const td_ir_type *declared, td_ir_type_kind kind) {
    return declared->kind == kind ||
           (declared->kind == TD_IR_OPTIONAL && declared->parts[0]->kind == kind);
}

/* Does a block switch recording on, whatever holds around it? */
static bool may_record(const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        if (node->kind == TD_IR_WITH &&
            (node->mode.kind == TD_IR_ENABLE_GRAD ||
             (node->mode.kind == TD_IR_INFERENCE_MODE && !node->mode.enabled)))
            return true;
        if (node->subgraph && node->subgraph != block->graph && may_record(node->subgraph->block))
            return true;
        for (int b = 0; b < node->nblocks; b++)
            if (may_record(node->blocks[b]))
                return true;
    }
    return false;
}

/* A list is taken apart where the graph begins, and its length is a constant. */
static void take_apart(td_ir_graph *g, td_ir_value *list, int n, const td_ir_type *const *types) {
    td_ir_node *first = g->block->first;
    td_ir_node *node = td_ir_append(g->block, TD_IR_LIST_UNPACK, 1, &list, n, types);
    if (!node || !first)
        return;
    node->typed = true;
    td_ir_move_before(node, first);
    for (td_ir_use *use = list->uses, *next; use; use = next) {
        next = use->next;
        td_ir_node *reader = use->node;
        if (reader->kind != TD_IR_SCALAR || strcmp(reader->scalar->name, "len") != 0)
            continue;
        td_ir_value *length = td_edit_constant_before(reader, TD_I(n));
        if (length)
            td_ir_replace(reader->outputs[0], length);
    }
}

/* The types of a list's entries; *sizes goes on behind theirs. A list that holds a nil stays. */
static void set_entries(td_ir_graph *g, td_ir_value *input, const td_value *v,
                        const int64_t **sizes, bool recorded) {
    int n;
    td_tensor *const *entries = td_special_entries(v, &n);
    const td_ir_type *types[TD_SPECIAL_ENTRIES];
    bool whole = input->type->kind == TD_IR_LIST && td_list_is_only_read(input);
    for (int k = 0; entries && k < n; k++) {
        types[k] = entries[k] ? type_of(g, entries[k], *sizes, recorded) : NULL;
        whole &= types[k] != NULL;
        *sizes += entries[k] ? entries[k]->ndim : 0;
    }
    if (entries && n && whole)
        take_apart(g, input, n, types);
}

static void set_types(const td_scripted *f, const td_special *s, const td_value *inputs,
                      td_ir_graph *g) {
    const int64_t *sizes = s->sizes;
    bool recorded = td_is_recording() || may_record(f->graph->block);
    for (int k = 0; k < f->nlooks; k++) {
        const td_value *v = &inputs[f->looks[k]];
        td_ir_value *input = g->block->inputs[f->looks[k]];
        const td_ir_type *type = input->type;
        if (v->kind == TD_KIND_TENSOR && takes_type(type, TD_IR_TENSOR))
            type = type_of(g, v->tensor, sizes, recorded);
        else if (v->kind == TD_KIND_NIL && type->kind == TD_IR_OPTIONAL)
            type = td_ir_simple_type(TD_IR_NONE);
        input->type = type ? type : input->type;
        sizes += v->kind == TD_KIND_TENSOR ? v->tensor->ndim : 0;
        set_entries(g, input, v, &sizes, recorded);
    }
}

/* May calls of it be recorded for backward? */
static bool is_recorded(const td_scripted *f, const td_value *inputs) {
    bool followed = f->has_tensors;
    for (int k = 0; k < f->nlooks; k++) {
        int n;
        const td_tensor *x = td_arg_tensor(inputs[f->looks[k]]);
        td_tensor *const *entries = td_special_entries(&inputs[f->looks[k]], &n);
        followed |= x && td_is_followed(x);
        for (int j = 0; entries && j < n; j++)
            followed |= entries[j] && td_is_followed(entries[j]);
    }
    return followed && (td_is_recording() || may_record(f->graph->block));
}

/* ---- graphs within ---- */

enum { MOST_WITHIN = 32 }; /* graphs that are copied for one specialisation */

static td_status rewrite_graph(td_ir_graph *g, const td_passes_options *options, int *left);

/* A call or a fork gets a copy of its graph, for what the node gives it. Not one that calls itself:
 * the next call may be of something else. */
static td_status rewrite_call(td_ir_node *node, const td_passes_options *options, int *left) {
    td_ir_graph *whole = node->subgraph;
    if (whole == node->block->graph || *left <= 0)
        return TD_OK;
    --*left;
    td_ir_graph *g = td_ir_graph_copy(whole);
    if (!g)
        return td_fail(TD_ENOMEM, "out of memory for a graph");
    g->fast = node->block->graph->fast;
    bool itself = false;
    for (const td_ir_node *made = g->made; made; made = made->made)
        itself |= made->subgraph == whole;
    for (int k = 0; k < node->ninputs && !itself; k++) {
        const td_ir_type *type = node->inputs[k]->type;
        if (type->kind == TD_IR_TENSOR && g->block->inputs[k]->type->kind == TD_IR_TENSOR) {
            type = td_ir_type_copy(g, type);
            g->block->inputs[k]->type = type ? type : g->block->inputs[k]->type;
        }
    }
    td_status status = td_ir_status(g);
    if (status == TD_OK && !itself)
        status = rewrite_graph(g, options, left);
    if (status || itself) {
        td_ir_graph_release(g);
        return status;
    }
    td_ir_graph_release(node->subgraph);
    node->subgraph = g;
    return TD_OK;
}

static td_status rewrite_calls(td_ir_block *block, const td_passes_options *options, int *left) {
    td_status status = TD_OK;
    for (td_ir_node *node = block->first; node && status == TD_OK; node = node->next) {
        if (node->kind == TD_IR_CALL || node->kind == TD_IR_FORK)
            status = rewrite_call(node, options, left);
        td_modes before = td_ir_enter(node);
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = rewrite_calls(node->blocks[b], options, left);
        td_set_modes(before);
    }
    return status;
}

static td_status rewrite_graph(td_ir_graph *g, const td_passes_options *options, int *left) {
    td_status status = td_passes_run(g, options, NULL);
    return status ? status : rewrite_calls(g->block, options, left);
}

td_status td_special_rewrite(const td_scripted *f, td_special *s, const td_value *inputs) {
    td_passes_options options = {.recorded = is_recorded(f, inputs)};
    td_ir_graph *g = td_ir_graph_copy(f->graph);
    if (!g)
        return td_fail(TD_ENOMEM, "out of memory for a graph");
    g->fast = atomic_load(&f->fast);
    set_types(f, s, inputs, g);
    td_status status = td_ir_status(g);
    int left = MOST_WITHIN;
    if (status == TD_OK)
        status = rewrite_graph(g, &options, &left);
    if (status == TD_OK)
        status = td_script_new(g, &s->script);
    td_ir_graph_release(g);
    if (status == TD_OK || status == TD_ENOMEM || status == TD_EINTR)
        return status;
    s->failed = true;
    s->script = td_script_retain(f->plain);
    return TD_OK;
}
