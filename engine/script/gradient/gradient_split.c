/* gradient_split.c: which values a part of a joint graph needs, which of them are kept, and copies
 * of the parts. */
#include "engine/script/gradient/gradient_split.h"

#include "engine/core/memory.h"
#include "engine/ops/language/expression.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/script/kernel.h"

#include <string.h>

enum {
    MOST_AGAIN = 24, /* calls that compute one value again */
    DEAR = 8         /* of an element, an addition being 1: not to be computed again */
};

/* A value of the joint graph. */
typedef struct mark {
    const td_ir_value *value;
    bool forward; /* made before the gradients came in */
    bool needed;
    int kept;          /* its place among what is kept; -1: none */
    td_ir_value *copy; /* in the graph that is made */
} mark;

typedef struct splitter {
    const td_joint *joint;
    td_ir_graph *memory; /* of the marks */
    td_map marks;
    td_kept *kept; /* owned while it is chosen */
    int nkept;
    td_ir_graph *made;
    int nagain;
    bool failed; /* memory ran out */
} splitter;

/* ---- marks ---- */

static bool is_of(const void *entry, const void *value) {
    return ((const mark *)entry)->value == value;
}

static mark *mark_of(const splitter *s, const td_ir_value *value) {
    return td_map_find(&s->marks, td_hash_address(value), is_of, value);
}

static void add_mark(splitter *s, const td_ir_value *value, bool forward) {
    mark *m = td_ir_alloc(s->memory, sizeof *m);
    if (!m || td_map_add(&s->marks, td_hash_address(value), m)) {
        s->failed = true;
        return;
    }
    *m = (mark){.value = value, .forward = forward, .kept = -1};
}

static td_status no_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for a gradient");
}

static td_status begin(splitter *s, const td_joint *joint) {
    const td_ir_block *block = joint->graph->block;
    bool forward = joint->last != NULL;
    *s = (splitter){.joint = joint, .memory = td_ir_graph_new()};
    if (!s->memory)
        return no_memory();
    for (int k = 0; k < block->ninputs; k++)
        add_mark(s, block->inputs[k],
                 k < joint->ninputs + joint->ncaptured || k >= block->ninputs - joint->nnumbers);
    for (const td_ir_node *node = block->first; node; node = node->next) {
        for (int k = 0; k < node->noutputs; k++)
            add_mark(s, node->outputs[k], forward);
        forward = forward && node != joint->last;
    }
    return s->failed ? no_memory() : TD_OK;
}

static void end(splitter *s) {
    td_map_clear(&s->marks);
    td_ir_graph_release(s->memory);
}

/* ---- what is needed ---- */

static bool is_constant(const td_ir_value *value) {
    return value->node && value->node->kind == TD_IR_CONSTANT;
}

/* A number, a list of them and the like: of no cost, and copied where it is read; or an input of
 * both parts. */
static bool is_number(const td_ir_value *value) {
    return value->node ? is_constant(value) && value->node->constant.kind != TD_KIND_TENSOR
                       : value->type->kind != TD_IR_TENSOR;
}

/* Does it write, draw or refuse elements, so that it runs whether its outputs are read or not? */
static bool acts(const td_ir_node *node) {
    return node->kind == TD_IR_OPERATOR &&
           (node->inplace || !node->noutputs ||
            node->op->flags & (TD_OP_INPLACE_ONLY | TD_OP_RANDOM | TD_OP_REFUSES));
}

static void need(const splitter *s, const td_ir_value *value) {
    if (value)
        mark_of(s, value)->needed = true;
}

static bool is_needed(const splitter *s, const td_ir_node *node) {
    for (int k = 0; k < node->noutputs; k++)
        if (mark_of(s, node->outputs[k])->needed)
            return true;
    return acts(node);
}

/* The last node of a part, and where the part ends: the node before its first. */
static const td_ir_node *last_of(const splitter *s, bool forward) {
    return forward ? s->joint->last : s->joint->graph->block->last;
}
static const td_ir_node *before(const splitter *s, bool forward) {
    return forward ? NULL : s->joint->last;
}

/* From what is needed of a part's results to all that is needed for them. */
static void need_all(const splitter *s, bool forward) {
    for (const td_ir_node *node = last_of(s, forward); node != before(s, forward);
         node = node->previous)
        if (is_needed(s, node))
            for (int k = 0; k < node->ninputs; k++)
                need(s, node->inputs[k]);
}

static void need_gradients(const splitter *s) {
    const td_joint *j = s->joint;
    for (int k = 0; k < j->ninputs + j->ncaptured; k++)
        need(s, j->gradients[k]);
    need_all(s, false);
}

/* ---- what is kept ---- */

static bool keep(splitter *s, mark *m) {
    const td_joint *j = s->joint;
    td_kept kept = {.from = TD_KEPT_MADE, .number = td_joint_number(j, m->value)};
    td_kept *more = td_realloc(s->kept, sizeof *more * ((size_t)s->nkept + 1));
    if (!more)
        return false;
    if (is_constant(m->value))
        kept = (td_kept){TD_KEPT_CONSTANT, 0, m->value->node->constant.tensor};
    for (int k = 0; k < j->ninputs + j->ncaptured; k++)
        if (j->graph->block->inputs[k] == m->value)
            kept = k < j->ninputs ? (td_kept){TD_KEPT_INPUT, k, NULL}
                                  : (td_kept){TD_KEPT_CAPTURED, k - j->ninputs, NULL};
    s->kept = more;
    more[s->nkept] = kept;
    m->kept = s->nkept++;
    return true;
}

/* May this call be made again in backward, as far as it goes itself? */
static bool is_cheap(const td_ir_node *node) {
    td_value args[TD_MAX_PARAMS];
    const td_op *op = node->op;
    if (node->kind != TD_IR_OPERATOR || acts(node) || node->noutputs != 1)
        return false;
    if (op->flags & TD_OP_VIEW)
        return true;
    if (!op->pointwise)
        return false;
    for (int k = 0; k < node->ninputs; k++) {
        const td_ir_value *value = node->inputs[k];
        if (!value->node && is_number(value))
            return false;
        args[k] = is_number(value) ? value->node->constant
                                   : (td_value){.kind = TD_KIND_TENSOR}; /* never looked into */
    }
    if (op->variant)
        return td_script_kernel_cost(node) < DEAR;
    const td_program *p = td_pointwise_program(op, args);
    return p && p->cost < DEAR;
}

/* Can a value of the forward part be had from what is kept, in so many calls as are left? */
static bool can_compute(const splitter *s, const td_ir_value *value, int *left) {
    const mark *m = mark_of(s, value);
    if (m->kept >= 0 || is_number(value))
        return true;
    if (s->joint->writes || !value->node || !is_cheap(value->node) || --*left < 0)
        return false;
    for (int k = 0; k < value->node->ninputs; k++)
        if (!can_compute(s, value->node->inputs[k], left))
            return false;
    return true;
}

/* A view of what was not made by the graph: that is kept in its place, whose memory it is. */
static bool keep_viewed(splitter *s, const mark *m) {
    const td_ir_value *value = m->value;
    while (value->node && value->node->kind == TD_IR_OPERATOR && is_cheap(value->node) &&
           value->node->op->flags & TD_OP_VIEW)
        value = value->node->inputs[0];
    if (s->joint->writes || value == m->value || (value->node && !is_constant(value)))
        return true;
    mark *viewed = mark_of(s, value);
    return viewed->kept >= 0 || keep(s, viewed);
}

/* In the order of the forward part, so that what a value could be computed from is known. */
static td_status choose(splitter *s) {
    const td_ir_block *block = s->joint->graph->block;
    for (int k = 0; k < s->joint->ninputs + s->joint->ncaptured; k++) {
        mark *m = mark_of(s, block->inputs[k]);
        if (m->needed && m->value->type->kind == TD_IR_TENSOR && !keep(s, m))
            return no_memory();
    }
    for (const td_ir_node *node = s->joint->last ? block->first : NULL; node;
         node = node == s->joint->last ? NULL : node->next)
        for (int k = 0; k < node->noutputs; k++) {
            mark *m = mark_of(s, node->outputs[k]);
            int left = MOST_AGAIN;
            if (!m->needed || is_number(m->value))
                continue;
            if (!keep_viewed(s, m) || (!can_compute(s, m->value, &left) && !keep(s, m)))
                return no_memory();
        }
    return TD_OK;
}

/* A value is kept that it can be had from. */
static bool secure(splitter *s, const td_ir_value *value) {
    int left = MOST_AGAIN;
    return value->type->kind != TD_IR_TENSOR || can_compute(s, value, &left) ||
           keep(s, mark_of(s, value));
}

/* Of several results of an operator one that is kept may get a gradient of its own, where backward
 * is recorded: what its row then reads, beyond what the others' gradients do. */
static bool keep_for_result(splitter *s, const td_ir_node *node, int result) {
    const td_op *op = node->op;
    uint32_t args = op->derivative ? 0 : op->save_args;
    uint32_t outs = op->derivative ? 0 : op->save_outs;
    for (int k = 0; op->derivative && k < op->derivative->nroots; k++)
        if (op->derivative->roots[k].gradient == result) {
            args |= op->derivative->roots[k].args;
            outs |= op->derivative->roots[k].outs;
        }
    for (int k = 0; k < node->ninputs; k++)
        if (args >> k & 1 && !secure(s, node->inputs[k]))
            return false;
    for (int k = 0; k < node->noutputs; k++)
        if (outs >> k & 1 && !secure(s, node->outputs[k]))
            return false;
    return true;
}

static td_status choose_for_results(splitter *s) {
    for (int k = 0; k < s->nkept; k++) { /* which may grow */
        const td_ir_value *value =
            s->kept[k].from == TD_KEPT_MADE ? td_joint_value(s->joint, s->kept[k].number) : NULL;
        const td_ir_node *node = value ? value->node : NULL;
        if (!node || node->kind != TD_IR_OPERATOR || node->noutputs < 2 ||
            value->type->requires_grad != 1)
            continue;
        for (int r = 0; r < node->noutputs; r++)
            if (node->outputs[r] == value && !keep_for_result(s, node, r))
                return no_memory();
    }
    return TD_OK;
}

td_status td_split_choose(const td_joint *joint, int *nkept, td_kept **kept) {
    splitter s;
    td_status status = begin(&s, joint);
    if (status == TD_OK) {
        need_gradients(&s);
        status = choose(&s);
    }
    if (status == TD_OK)
        status = choose_for_results(&s);
    if (status) {
        td_free(s.kept);
        s.kept = NULL;
        s.nkept = 0;
    }
    *nkept = s.nkept;
    *kept = s.kept;
    end(&s);
    return status;
}

/* ---- copies ---- */

/* The type in the graph that is made: nothing in it is recorded. */
static const td_ir_type *copy_type(td_ir_graph *g, const td_ir_type *type) {
    if (type->kind == TD_IR_LIST || type->kind == TD_IR_OPTIONAL) {
        const td_ir_type *part = copy_type(g, type->parts[0]);
        return td_ir_type_of_parts(g, (td_ir_type_kind)type->kind, 1, &part);
    }
    if (type->kind != TD_IR_TENSOR)
        return td_ir_simple_type((td_ir_type_kind)type->kind);
    td_ir_type plain = *type;
    plain.requires_grad = 0;
    return td_ir_type_copy(g, &plain);
}

static bool copy_node(splitter *s, const td_ir_node *node);

/* The copy of a value: that which is there, or of a number or what is to be computed again one that
 * is made now; NULL: there is none. */
static td_ir_value *copy_of(splitter *s, const td_ir_value *value) {
    mark *m = mark_of(s, value);
    if (!m->copy && is_constant(value))
        m->copy = td_ir_add_constant(s->made->block, value->node->constant);
    else if (!m->copy && m->forward && value->node && !s->joint->writes && is_cheap(value->node) &&
             s->nagain++ < MOST_AGAIN)
        (void)copy_node(s, value->node);
    return m->copy;
}

static bool copy_node(splitter *s, const td_ir_node *node) {
    td_ir_graph *g = s->made;
    td_ir_value **inputs = td_ir_alloc(g, sizeof *inputs * (size_t)(node->ninputs + 1));
    const td_ir_type **types = td_ir_alloc(g, sizeof *types * (size_t)(node->noutputs + 1));
    if (!inputs || !types)
        return false;
    for (int k = 0; k < node->ninputs; k++)
        if (!(inputs[k] = copy_of(s, node->inputs[k])))
            return false;
    for (int k = 0; k < node->noutputs; k++)
        types[k] = copy_type(g, node->outputs[k]->type);
    td_ir_node *copy = td_ir_append(g->block, (td_ir_kind)node->kind, node->ninputs, inputs,
                                    node->noutputs, types);
    if (!copy)
        return false;
    copy->op = node->op;
    copy->inplace = node->inplace;
    copy->place = node->place;
    if (node->place.file)
        copy->place.file = td_ir_text(g, node->place.file, strlen(node->place.file));
    for (int k = 0; k < node->noutputs; k++)
        mark_of(s, node->outputs[k])->copy = copy->outputs[k];
    return true;
}

static void copy_input(splitter *s, const td_ir_value *value, const char *name) {
    const td_ir_type *type = copy_type(s->made, value->type);
    mark_of(s, value)->copy = td_ir_add_input(s->made->block, type, name);
}

/* The last inputs of either part. */
static void copy_numbers(splitter *s) {
    const td_ir_block *block = s->joint->graph->block;
    for (int k = block->ninputs - s->joint->nnumbers; k < block->ninputs; k++)
        copy_input(s, block->inputs[k], "n");
}

/* The nodes of a part that are needed, in their order. */
static td_status copy_part(splitter *s, bool forward) {
    const td_ir_node *last = last_of(s, forward), *stop = before(s, forward);
    const td_ir_node *node = stop ? stop->next : s->joint->graph->block->first;
    for (; last && last != stop; node = node->next) {
        s->nagain = 0;
        if (node->kind != TD_IR_CONSTANT && is_needed(s, node) && !copy_node(s, node))
            return s->made->failed ? td_ir_status(s->made)
                                   : td_fail(TD_EINTERNAL, "a gradient reads what is not kept");
        if (node == last)
            break;
    }
    return TD_OK;
}

/* Its outputs are these values: the graph is whole. */
static td_status finish(splitter *s, int n, td_ir_value *const *values, td_ir_graph **out) {
    td_ir_value **outputs = td_ir_alloc(s->made, sizeof *outputs * (size_t)(n ? n : 1));
    for (int k = 0; outputs && k < n; k++) {
        s->nagain = 0;
        outputs[k] = copy_of(s, values[k]);
        if (!outputs[k] && !s->made->failed)
            return td_fail(TD_EINTERNAL, "a gradient is what is not kept");
    }
    if (outputs)
        td_ir_set_outputs(s->made->block, n, outputs);
    td_status status = td_ir_status(s->made);
    *out = status ? NULL : td_ir_graph_retain(s->made);
    return status;
}

static td_status start(splitter *s, const td_joint *joint) {
    td_status status = begin(s, joint);
    s->made = status ? NULL : td_ir_graph_new();
    return status || s->made ? status : no_memory();
}

/* ---- the parts ---- */

static td_status make_forward(splitter *s, int nkept, const td_kept *kept, td_ir_graph **out) {
    const td_joint *j = s->joint;
    const td_ir_block *block = j->graph->block;
    td_ir_value **values = td_ir_alloc(s->made, sizeof *values * (size_t)(j->noutputs + nkept + 1));
    int n = 0;
    if (!values)
        return td_ir_status(s->made);
    for (int k = 0; k < j->noutputs; k++)
        values[n++] = j->outputs[k];
    for (int k = 0; k < nkept; k++)
        if (kept[k].from == TD_KEPT_MADE)
            values[n++] = td_joint_value(j, kept[k].number);
    for (int k = 0; k < n; k++)
        need(s, values[k]);
    need_all(s, true);
    for (int k = 0; k < j->ninputs; k++)
        copy_input(s, block->inputs[k], block->inputs[k]->name);
    for (int k = 0; k < j->ncaptured; k++)
        mark_of(s, block->inputs[j->ninputs + k])->copy =
            td_ir_add_constant(s->made->block, TD_T(j->captured[k]));
    copy_numbers(s);
    td_status status = copy_part(s, true);
    return status ? status : finish(s, n, values, out);
}

td_status td_split_forward(const td_joint *joint, int nkept, const td_kept *kept,
                           td_ir_graph **out) {
    splitter s;
    *out = NULL;
    td_status status = start(&s, joint);
    if (status == TD_OK)
        status = make_forward(&s, nkept, kept, out);
    td_ir_graph_release(s.made);
    end(&s);
    return status;
}

/* The value of the joint graph that is kept. */
static const td_ir_value *kept_value(const splitter *s, const td_kept *kept) {
    const td_ir_block *block = s->joint->graph->block;
    if (kept->from == TD_KEPT_INPUT)
        return block->inputs[kept->number];
    if (kept->from == TD_KEPT_CAPTURED)
        return block->inputs[s->joint->ninputs + kept->number];
    if (kept->from == TD_KEPT_MADE)
        return td_joint_value(s->joint, kept->number);
    for (const td_ir_node *node = block->first; node; node = node->next)
        if (node->kind == TD_IR_CONSTANT && td_arg_tensor(node->constant) == kept->tensor)
            return node->outputs[0];
    return NULL;
}

static td_status make_backward(splitter *s, int nkept, const td_kept *kept, td_ir_graph **out) {
    const td_joint *j = s->joint;
    const td_ir_block *block = j->graph->block;
    int n = 0, first = j->ninputs + j->ncaptured;
    td_ir_value **values = td_ir_alloc(s->made, sizeof *values * (size_t)(first + 1));
    if (!values)
        return td_ir_status(s->made);
    need_gradients(s);
    for (int k = 0; k < j->nends; k++)
        copy_input(s, block->inputs[first + k], "g");
    for (int k = 0; k < nkept; k++) {
        const td_ir_value *value = kept_value(s, &kept[k]);
        if (!value)
            return td_fail(TD_EINTERNAL, "what is kept is gone");
        copy_input(s, value, "kept");
    }
    for (int k = 0; k < first; k++)
        if (j->gradients[k])
            values[n++] = j->gradients[k];
    copy_numbers(s);
    td_status status = copy_part(s, false);
    return status ? status : finish(s, n, values, out);
}

td_status td_split_backward(const td_joint *joint, int nkept, const td_kept *kept,
                            td_ir_graph **out) {
    splitter s;
    *out = NULL;
    td_status status = start(&s, joint);
    if (status == TD_OK)
        status = make_backward(&s, nkept, kept, out);
    td_ir_graph_release(s.made);
    end(&s);
    return status;
}
