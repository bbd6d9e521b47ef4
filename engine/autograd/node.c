/* node.c: graph nodes: made in one block, filled with what backward will read, and freed without
 * recursion, however long the chain of nodes behind them. */
#include "engine/autograd/node.h"

#include "engine/core/memory.h"
#include "engine/ops/language/expression.h"
#include "engine/ops/pointwise/pointwise.h"

#include <string.h>

/* Grows in the order of recording: whoever reads a node's result is recorded after it, so that
 * backward may run nodes from the highest number down. */
static atomic_ullong next_sequence = 1;

const char *td_node_name(const td_node *node) {
    if (node->op)
        return node->op->backward_name;
    return node->name ? node->name : node->node_class->name;
}

td_notes *td_node_notes(td_node *node) {
    if (!node->notes && !(node->notes = td_calloc(1, sizeof *node->notes)))
        td_fail(TD_ENOMEM, "out of memory for a graph node");
    return node->notes;
}

/* ---- layout of the block ---- */

typedef struct layout {
    uint32_t nslots;
    size_t dims, ints, chars; /* counts of what follows slots and args */
} layout;

static void count_tensor(layout *l, const td_tensor *x) {
    l->dims += x ? x->ndim : 0;
}

static layout measure(const td_op *op, const td_value *args) {
    layout l = {.nslots = op->nlooks};
    for (int k = 0; k < op->nparams; k++) {
        switch ((td_kind)args[k].kind) {
        case TD_KIND_TENSOR:
            count_tensor(&l, args[k].tensor);
            break;
        case TD_KIND_TENSORS:
            l.nslots += (uint32_t)args[k].n;
            for (int j = 0; j < args[k].n; j++)
                count_tensor(&l, args[k].tensors[j]);
            break;
        case TD_KIND_INTS:
        case TD_KIND_FLOATS:
            l.ints += (size_t)args[k].n;
            break;
        case TD_KIND_STRING:
            l.chars += strlen(args[k].string) + 1;
            break;
        case TD_KIND_NIL: /* in the value itself */
        case TD_KIND_INT:
        case TD_KIND_FLOAT:
        case TD_KIND_BOOL:
        case TD_KIND_DTYPE:
        case TD_KIND_DEVICE:
        case TD_KIND_GENERATOR:
            break;
        }
    }
    return l;
}

/* Without memory for it the node does without. */
static void note_origin(td_node *node) {
    const td_origin *origin = td_origin_known();
    td_origin_finder finder = td_origin_finder_current;
    td_origin asked = {.line = 0};
    if (!origin && td_modes_current.anomaly && finder.find) {
        finder.find(finder.ctx, &asked);
        origin = &asked;
    }
    if (origin && origin->line && td_node_notes(node))
        node->notes->origin = *origin;
}

/* In every recorded call. */
static inline __attribute__((always_inline)) td_node *
allocate(uint32_t nslots, int nargs, size_t ints, size_t chars, int64_t **tail) {
    size_t bytes = sizeof(td_node) + nslots * sizeof(td_slot) + (size_t)nargs * sizeof(td_value) +
                   ints * sizeof(int64_t) + chars;
    td_node *node = td_object_alloc(bytes);
    if (!node) {
        td_fail(TD_ENOMEM, "out of memory for a graph node of %zu bytes", bytes);
        return NULL;
    }
    memset(node, 0, sizeof *node + nslots * sizeof(td_slot));
    atomic_init(&node->refs, 1);
    node->bytes = bytes;
    node->nslots = nslots;
    node->slots = (td_slot *)(node + 1);
    node->args = (td_value *)(node->slots + nslots);
    node->sequence = atomic_fetch_add_explicit(&next_sequence, 1, memory_order_relaxed);
    *tail = (int64_t *)(node->args + nargs);
    if (TD_UNLIKELY(td_origin_in_force || td_modes_current.anomaly))
        note_origin(node);
    return node;
}

td_status td_fail_inference(void) {
    return td_fail(TD_EAUTOGRAD, "a tensor made in inference_mode can't be saved for backward: use "
                                 "a clone() of it, or make it in no_grad");
}

static bool is_overwritten(const td_call *call, const td_tensor *x) {
    for (int k = 0; k < call->ngiven; k++)
        if (call->given[k] == x)
            return true;
    return false;
}

/* What a write in place is about to destroy, and its gradient reads. */
static td_status save_copy(td_slot *slot, td_tensor *x) {
    td_tensor *alias = NULL;
    td_status status = td_tensor_alias(x, &alias);
    if (status == TD_OK)
        status = TD_APPLY(&slot->saved, clone, TD_T(alias));
    td_release(alias);
    slot->version = status ? 0 : td_tensor_version(slot->saved);
    return status;
}

/* What a node saves has no history: it might become the history of what it saved, by a write in
 * place. (The edge of the slot knows where a gradient goes.) A leaf that requires grad is itself,
 * since nothing with a history is ever written into it. */
static td_status save(td_slot *slot, td_tensor *x, const td_call *call) {
    if (TD_UNLIKELY(x->storage->inference))
        return td_fail_inference();
    if (TD_UNLIKELY(is_overwritten(call, x)))
        return save_copy(slot, x);
    slot->version = td_tensor_version(x);
    if (!x->requires_grad || !td_is_leaf(x))
        return td_tensor_alias(x, &slot->saved);
    slot->saved = td_retain(x);
    return TD_OK;
}

/* `saver`: the call that saves x; NULL: backward does not read it. */
static td_status fill_slot(td_slot *slot, td_tensor *x, const td_call *saver, int64_t **tail) {
    slot->present = true;
    slot->dtype = x->dtype;
    slot->device_type = td_tensor_device(x).type & 0x7F;
    slot->device_index = td_tensor_device(x).index;
    slot->ndim = x->ndim;
    slot->sizes = *tail;
    for (int d = 0; d < x->ndim; d++)
        (*tail)[d] = x->sizes[d];
    *tail += x->ndim;
    return saver ? save(slot, x, saver) : TD_OK;
}

/* Will the gradient of parameter k be wanted? The first may be a view that the call writes, which
 * takes the history of its base. */
static bool may_want(const td_value *args, int k) {
    const td_value *v = &args[k];
    return v->kind == TD_KIND_TENSOR && (td_is_followed(v->tensor) || (k == 0 && v->tensor->base));
}

static td_saving saving_of_expressions(const td_expression *e, const td_value *args) {
    td_saving saving = {0, 0};
    for (int k = 0; k < e->nroots; k++) {
        if (!may_want(args, e->roots[k].slot))
            continue;
        saving.args |= e->roots[k].args;
        saving.outs |= e->roots[k].outs;
    }
    return saving;
}

td_saving td_saving_of(const td_op *op, const td_value *args) {
    td_saving saving = {op->save_args, op->save_outs};
    if (op->derivative)
        return saving_of_expressions(op->derivative, args);
    if (!op->pointwise || !op->programs)
        return saving;
    saving = (td_saving){0, 0};
    for (int k = 0; k < op->nlooks; k++) {
        const td_program *p = op->programs->gradient[k];
        if (!p || !may_want(args, k))
            continue;
        saving.args |= p->used & ((1u << op->nparams) - 1);
        saving.outs |= (uint8_t)(p->used >> op->nparams & 1);
    }
    return saving;
}

/* Copies of the arguments, with their tensors in the slots. */
static td_status fill_node(td_node *node, const td_call *call, uint32_t saved, const layout *l,
                           int64_t *tail) {
    const td_value *args = call->args;
    char *chars = (char *)(tail + l->dims + l->ints);
    td_slot *list = node->slots + node->op->nlooks;
    td_status status = TD_OK;
    for (int k = 0; k < node->nparams && status == TD_OK; k++) {
        const td_call *saver = saved >> k & 1 ? call : NULL;
        node->args[k] = args[k];
        if (args[k].kind == TD_KIND_TENSOR) {
            status = fill_slot(&node->slots[k], args[k].tensor, saver, &tail);
        } else if (args[k].kind == TD_KIND_TENSORS) {
            for (int j = 0; j < args[k].n && status == TD_OK; j++, list++)
                if (args[k].tensors[j])
                    status = fill_slot(list, args[k].tensors[j], saver, &tail);
        } else if (args[k].kind == TD_KIND_INTS) {
            memcpy(tail, args[k].ints, sizeof(int64_t) * (size_t)args[k].n);
            node->args[k].ints = tail;
            tail += args[k].n;
        } else if (args[k].kind == TD_KIND_FLOATS) {
            memcpy(tail, args[k].floats, sizeof(double) * (size_t)args[k].n);
            node->args[k].floats = (const double *)tail;
            tail += args[k].n;
        } else if (args[k].kind == TD_KIND_STRING) {
            size_t size = strlen(args[k].string) + 1;
            node->args[k].string = memcpy(chars, args[k].string, size);
            chars += size;
        }
    }
    return status;
}

td_node *td_node_new(const td_call *call, uint32_t saved, int nresults, td_status *status) {
    const td_op *op = call->op;
    layout l = measure(op, call->args);
    int64_t *tail;
    td_node *node = allocate(l.nslots, op->nparams, l.dims + l.ints, l.chars, &tail);
    if (!node) {
        *status = TD_ENOMEM;
        return NULL;
    }
    node->op = op;
    node->nparams = op->nparams;
    node->nresults = (uint16_t)nresults;
    *status = fill_node(node, call, saved, &l, tail);
    if (*status == TD_OK)
        return node;
    td_node_release(node);
    return NULL;
}

td_node *td_node_new_custom(const td_node_class *node_class, void *payload, int nslots,
                            td_tensor *const *inputs, int nresults, td_status *status) {
    int64_t *tail;
    size_t dims = 0;
    for (int k = 0; k < nslots && inputs; k++)
        dims += inputs[k] ? inputs[k]->ndim : 0;
    td_node *node = allocate((uint32_t)nslots, 0, dims, 0, &tail);
    *status = node ? TD_OK : TD_ENOMEM;
    if (!node)
        return NULL;
    for (int k = 0; k < nslots && inputs; k++)
        if (inputs[k])
            *status = fill_slot(&node->slots[k], inputs[k], NULL, &tail);
    node->node_class = node_class;
    node->payload = payload;
    node->nresults = (uint16_t)nresults;
    return node;
}

/* ---- death, without recursion however long the chain ---- */

static _Thread_local td_node *dead_list;
static _Thread_local bool draining;

/* Returns whether there was any. */
static bool drop_packed(td_node *node) {
    td_packed **packed = node->notes->packed;
    node->notes->packed = NULL;
    for (uint32_t k = 0; packed && k < node->nslots + TD_MAX_RESULTS; k++)
        td_packed_free(packed[k]);
    td_free(packed);
    return packed != NULL;
}

void td_node_release_saved(td_node *node) {
    if (TD_UNLIKELY(node->running)) { /* a hook or a function within it ran backward through it */
        node->released = node->give_up = true;
        return;
    }
    bool any = node->payload != NULL; /* what has saved nothing can run again */
    if (TD_UNLIKELY(node->notes != NULL))
        any |= drop_packed(node);
    for (uint32_t k = 0; k < node->nslots; k++) {
        td_tensor *saved = node->slots[k].saved;
        any |= saved != NULL;
        node->slots[k].saved = NULL;
        td_release(saved);
    }
    for (int k = 0; node->saved_outs >> k; k++) {
        td_tensor *saved = node->saved_out[k];
        any |= saved != NULL;
        node->saved_out[k] = NULL;
        td_release(saved);
    }
    if (node->payload && node->node_class->destroy)
        node->node_class->destroy(node->payload);
    node->payload = NULL;
    node->released |= any;
}

void td_edge_release(td_edge *edge) {
    td_node_release(edge->node);
    td_release(edge->leaf);
    *edge = (td_edge){0};
}

static void bury(td_node *node) {
    td_node_release_saved(node);
    for (uint32_t k = 0; k < node->nslots; k++)
        td_edge_release(&node->slots[k].edge);
    if (TD_UNLIKELY(node->retained || node->notes)) {
        td_free(node->retained);
        if (node->notes)
            td_hooks_free(node->notes->hooks);
        td_free(node->notes);
    }
    td_object_free(node, node->bytes);
}

td_node *td_node_retain(td_node *node) {
    return node_retain(node);
}

void td_node_release(td_node *node) {
    if (!node || !td_was_last(&node->refs))
        return;
    node->next_dead = dead_list;
    dead_list = node;
    if (draining)
        return;
    draining = true;
    while (dead_list) {
        td_node *dead = dead_list;
        dead_list = dead->next_dead;
        bury(dead);
    }
    draining = false;
}

/* ---- in the custody of others ---- */

static td_status pack(td_tensor **saved, td_packed **packed) {
    if (!*saved)
        return TD_OK;
    td_status status = td_pack_saved(*saved, packed);
    td_release(*saved);
    *saved = NULL;
    return status;
}

td_status td_node_pack(td_node *node) {
    td_notes *notes = td_node_notes(node);
    td_status status = TD_OK;
    if (!notes)
        return TD_ENOMEM;
    notes->packed = td_calloc(node->nslots + TD_MAX_RESULTS, sizeof *notes->packed);
    if (!notes->packed)
        return td_fail(TD_ENOMEM, "out of memory for saved tensors");
    for (uint32_t k = 0; k < node->nslots && status == TD_OK; k++)
        status = pack(&node->slots[k].saved, &notes->packed[k]);
    for (uint32_t k = 0; node->saved_outs >> k && status == TD_OK; k++)
        status = pack(&node->saved_out[k], &notes->packed[node->nslots + k]);
    return status;
}

/* ---- what others see of it ---- */

int td_node_ninputs(const td_node *node) {
    return (int)node->nslots;
}

bool td_node_next(const td_node *node, int k, td_node **next, uint32_t *result, td_tensor **leaf) {
    const td_slot *slot = &node->slots[k];
    if (k >= (int)node->nslots || !(slot->present || slot->edge.node || slot->edge.leaf))
        return false;
    *next = slot->edge.node;
    *result = slot->edge.result;
    *leaf = slot->edge.leaf;
    return true;
}
