/* rows.c: operators along the last dims of one shape, and pointwise groups between them, become
 * groups (group.h) that run block by block of rows. */
#include "engine/ops/plan/row_blocks.h"
#include "engine/script/kernel.h"
#include "engine/script/passes/group.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"
#include "engine/script/row_kernel.h"

enum { MOST_AHEAD = 64 }; /* nodes among which the first operator along rows is looked for */

static bool is_pointwise(const td_ir_node *node) {
    return td_script_kernel_takes(node) ||
           (node->kind == TD_IR_FUSION_GROUP && !td_is_row_group(node->subgraph));
}

static bool same_shape(const td_row_shape *a, const td_row_shape *b) {
    return a->inner == b->inner && td_row_class_of(a, b->full) == TD_ROW_FULL;
}

/* The class that a pointwise node makes; NONE: it does not belong to the shape. */
static td_row_class class_made(const td_row_shape *shape, const td_ir_node *node) {
    td_row_class whole = TD_ROW_ONE;
    for (int k = 0; k < node->ninputs; k++)
        if (node->inputs[k]->type->kind == TD_IR_TENSOR)
            whole = td_row_join(whole, td_row_class_of(shape, node->inputs[k]->type));
    for (int k = 0; k < node->noutputs; k++)
        if (td_row_class_of(shape, node->outputs[k]->type) != whole)
            return TD_ROW_NONE;
    return whole;
}

/* Sums of all are there when the group is done. */
static bool reads_total(const td_group *g, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++)
        if (td_group_makes(g, node->inputs[k]) && td_row_total(node->inputs[k]->node))
            return true;
    return false;
}

/* Does a node read what is made in the group, or what others in it read in its whole shape? */
static bool is_joined(const td_group *g, const td_row_shape *shape, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++) {
        const td_ir_value *x = node->inputs[k];
        if (td_group_makes(g, x) ||
            (td_group_reads(g, x) && td_row_class_of(shape, x->type) == TD_ROW_FULL))
            return true;
    }
    return false;
}

static bool fits(const td_group *g, const td_ir_node *node, const void *ctx) {
    const td_row_shape *shape = ctx;
    td_row_shape own;
    const td_ir_node *cat = td_row_cat_of(node);
    if (td_row_gather(node, &own) || td_row_cat(cat ? cat : node, &own))
        return same_shape(shape, &own) && !reads_total(g, node);
    if (g->n && (!is_joined(g, shape, node) || reads_total(g, node)))
        return false;
    if (td_row_total(node))
        return td_row_class_of(shape, node->inputs[0]->type) == TD_ROW_FULL;
    if (td_row_operator(node, &own))
        return same_shape(shape, &own);
    return is_pointwise(node) && class_made(shape, node) >= TD_ROW_ROW;
}

/* The shape of a group that begins with a node: its own, or, of a pointwise one, that of the next
 * operator along rows of what it makes, or of the next sum of all. */
static bool find_shape(const td_ir_node *first, td_row_shape *shape) {
    int left = MOST_AHEAD;
    const td_ir_node *total = NULL;
    const td_ir_node *cat = td_row_cat_of(first);
    if (td_row_operator(first, shape) || td_row_gather(first, shape) ||
        td_row_cat(cat ? cat : first, shape))
        return true;
    if (!is_pointwise(first))
        return false;
    for (const td_ir_node *node = first->next; node && left-- > 0; node = node->next) {
        if (td_row_operator(node, shape) &&
            td_row_class_of(shape, first->outputs[0]->type) == TD_ROW_FULL)
            return true;
        total = !total && td_row_total(node) ? node : total;
    }
    if (total)
        *shape = (td_row_shape){total->inputs[0]->type, 1};
    return total && td_row_class_of(shape, first->outputs[0]->type) == TD_ROW_FULL;
}

static bool touches(const td_row_shape *shape, int n, td_ir_value *const *values) {
    for (int k = 0; k < n; k++)
        if (td_row_class_of(shape, values[k]->type) == TD_ROW_FULL)
            return true;
    return false;
}

/* Can a kernel take these rows, as far as is known of them? Rows of one element gain nothing. */
static bool may_part(const td_row_shape *shape) {
    const td_ir_type *full = shape->full;
    int64_t rows = 1, n = 1;
    for (int d = 0; d < full->n; d++) {
        int64_t *count = d < full->n - shape->inner ? &rows : &n;
        *count = *count < 0 || full->sizes[d] < 0 ? -1 : *count * full->sizes[d];
    }
    return n != 1 && (n < 0 || rows < 0 || td_row_blocks(rows, n) > 0) &&
           !(full->placed && full->device.type != TD_CPU);
}

/* A list is made where it is read, or not at all: groups give tensors. */
static bool has_lists(const td_group *g) {
    for (int k = 0; k < g->n; k++) {
        const td_ir_node *cat = td_row_cat_of(g->nodes[k]);
        if (cat && !td_group_makes(g, cat->outputs[0]))
            return false;
    }
    return true;
}

/* Is memory of the whole shape passed over less often? */
static bool pays(const td_group *g, const td_row_shape *shape) {
    int passes = 0, along = 0;
    bool shown = false; /* an input says at run time what the shape is */
    td_row_shape own;
    for (int k = 0; k < g->n; k++) {
        const td_ir_node *node = g->nodes[k];
        bool gathers = td_row_gather(node, &own) || td_row_cat(node, &own);
        shown |= gathers;
        along += gathers || td_row_operator(node, &own) || td_row_total(node);
        passes += touches(shape, node->ninputs, node->inputs) ||
                  touches(shape, node->noutputs, node->outputs);
    }
    for (int k = 0; k < g->ninputs; k++) {
        const td_ir_type *type = g->inputs[k]->type;
        bool full = td_row_class_of(shape, type) == TD_ROW_FULL;
        if (full && td_ir_type_is_whole(type) && !td_ir_type_is_contiguous(type))
            return false;
        shown |= full;
    }
    return shown && along && passes > 1 && may_part(shape) && has_lists(g);
}

/* A pointwise operator that is alone becomes a group of its own, which is a stage. */
static td_status wrap(td_group *g) {
    td_status status = TD_OK;
    for (int k = 0; k < g->n && status == TD_OK; k++) {
        td_group one = {.n = 0};
        td_ir_node *made = NULL;
        if (!td_script_kernel_takes(g->nodes[k]) || !td_group_add(&one, g->nodes[k]))
            continue;
        status = td_group_make(&one, &made);
        g->nodes[k] = made ? made : g->nodes[k];
    }
    return status;
}

static td_status group_block(const td_alias_info *a, td_ir_block *block, td_pass_note *note) {
    td_status status = TD_OK;
    td_row_shape shape;
    td_group group;
    td_raise_constants(block);
    for (td_ir_node *node = block->first, *next, *made; node && status == TD_OK; node = next) {
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = group_block(a, node->blocks[b], note);
        next = node->next;
        if (status || !find_shape(node, &shape))
            continue;
        td_group_gather(a, node, fits, &shape, true, &group);
        next = node->next; /* what was there may stand before it now */
        if (!pays(&group, &shape))
            continue;
        next = group.nodes[group.n - 1]->next;
        status = wrap(&group);
        if (status == TD_OK)
            status = td_group_make(&group, &made);
        if (status == TD_OK && made)
            td_pass_say(note, made, "%d stages run block by block of rows", group.n);
    }
    return status;
}

td_status td_pass_rows(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    if (status == TD_OK)
        status = group_block(a, g->block, note);
    td_alias_free(a);
    return status ? status : td_ir_status(g);
}
