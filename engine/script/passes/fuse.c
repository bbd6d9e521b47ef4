/* fuse.c: runs of pointwise operators become groups.
 *
 * A run is of nodes that follow one another, so nothing is reordered; what keeps them apart and
 * could stand before (constants) is moved there first.
 */
#include "engine/core/memory.h"
#include "engine/script/kernel.h"
#include "engine/script/passes/passes.h"

#include <string.h>

enum { MOST_NODES = 32, MOST_ENDS = 24 }; /* of a group; of its inputs, and of its outputs */

/* The nodes first .. last of a block, all of them to be one group. */
typedef struct run {
    td_ir_node *nodes[MOST_NODES];
    int n;
    td_ir_value *inputs[MOST_ENDS];
    int ninputs;
} run;

static bool is_inside(const run *r, const td_ir_value *value) {
    for (int k = 0; k < r->n; k++)
        if (value->node == r->nodes[k])
            return true;
    return false;
}

static bool same_sizes(const td_ir_type *a, const td_ir_type *b) {
    return a->n >= 0 && a->n == b->n && a->dtype == b->dtype &&
           (a->n == 0 ||
            (a->sizes && b->sizes && !memcmp(a->sizes, b->sizes, sizeof *a->sizes * (size_t)a->n)));
}

/* Its inputs that are not numbers and not made in the run join the run's; false: too many. */
static bool add_inputs(run *r, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++) {
        td_ir_value *value = node->inputs[k];
        bool known = value->type->kind != TD_IR_TENSOR || is_inside(r, value);
        for (int j = 0; j < r->ninputs; j++)
            known |= r->inputs[j] == value;
        if (known)
            continue;
        if (r->ninputs == MOST_ENDS)
            return false;
        r->inputs[r->ninputs++] = value;
    }
    return true;
}

static bool add_node(run *r, td_ir_node *node) {
    run before = *r;
    if (!td_script_kernel_takes(node) || r->n == MOST_NODES ||
        (r->n && !same_sizes(node->outputs[0]->type, r->nodes[0]->outputs[0]->type)) ||
        !add_inputs(r, node)) {
        *r = before;
        return false;
    }
    r->nodes[r->n++] = node;
    return true;
}

/* Is it read by what is not in the run? */
static bool leaves(const run *r, const td_ir_value *value) {
    for (const td_ir_use *use = value->uses; use; use = use->next) {
        bool inside = false;
        for (int k = 0; k < r->n; k++)
            inside |= use->node == r->nodes[k];
        if (!inside)
            return true;
    }
    return false;
}

/* ---- a group's graph ---- */

typedef struct copied {
    const td_ir_value *from[MOST_NODES * TD_MAX_PARAMS];
    td_ir_value *to[MOST_NODES * TD_MAX_PARAMS];
    int n;
} copied;

static td_ir_value *find_copy(const copied *c, const td_ir_value *value) {
    for (int k = 0; k < c->n; k++)
        if (c->from[k] == value)
            return c->to[k];
    return NULL;
}

static td_ir_value *add_copy(copied *c, const td_ir_value *from, td_ir_value *to) {
    c->from[c->n] = from;
    c->to[c->n++] = to;
    return to;
}

static void copy_node(td_ir_graph *g, copied *c, const td_ir_node *node) {
    td_ir_value *inputs[TD_MAX_PARAMS];
    for (int k = 0; k < node->ninputs; k++) {
        td_ir_value *value = node->inputs[k];
        inputs[k] = find_copy(c, value);
        if (!inputs[k]) /* a number, for nothing else is neither input nor made here */
            inputs[k] = add_copy(c, value, td_ir_add_constant(g->block, value->node->constant));
    }
    const td_ir_type *type = td_ir_type_copy(g, node->outputs[0]->type);
    td_ir_node *copy = td_ir_append(g->block, TD_IR_OPERATOR, node->ninputs, inputs, 1, &type);
    if (!copy)
        return;
    copy->op = node->op;
    copy->place = node->place;
    copy->place.file =
        td_ir_text(g, node->place.file, node->place.file ? strlen(node->place.file) : 0);
    td_ir_set_name(g, copy->outputs[0], node->outputs[0]->name);
    add_copy(c, node->outputs[0], copy->outputs[0]);
}

static td_ir_graph *make_graph(const run *r, int nout, td_ir_value *const *leaving) {
    td_ir_value *outputs[MOST_ENDS];
    td_ir_graph *g = td_ir_graph_new();
    copied *c = td_calloc(1, sizeof *c);
    for (int k = 0; g && c && k < r->ninputs; k++)
        add_copy(
            c, r->inputs[k],
            td_ir_add_input(g->block, td_ir_type_copy(g, r->inputs[k]->type), r->inputs[k]->name));
    for (int k = 0; g && c && k < r->n; k++)
        copy_node(g, c, r->nodes[k]);
    for (int k = 0; g && c && k < nout; k++)
        outputs[k] = find_copy(c, leaving[k]);
    if (g && c)
        td_ir_set_outputs(g->block, nout, outputs);
    bool whole = g && c && !g->failed;
    td_free(c);
    if (!whole)
        td_ir_graph_release(g);
    return whole ? g : NULL;
}

/* ---- rewriting ---- */

static td_status make_group(td_ir_graph *g, const run *r) {
    td_ir_value *leaving[MOST_NODES];
    const td_ir_type *types[MOST_NODES];
    td_ir_node *last = r->nodes[r->n - 1], *next = last->next;
    int nout = 0;
    for (int k = 0; k < r->n; k++)
        if (leaves(r, r->nodes[k]->outputs[0])) {
            types[nout] = r->nodes[k]->outputs[0]->type;
            leaving[nout++] = r->nodes[k]->outputs[0];
        }
    if (!nout || nout > MOST_ENDS)
        return TD_OK;
    td_ir_graph *sub = make_graph(r, nout, leaving);
    td_ir_node *group = sub ? td_ir_append(last->block, TD_IR_FUSION_GROUP, r->ninputs,
                                           (td_ir_value **)r->inputs, nout, types)
                            : NULL;
    if (!group) {
        g->failed = true;
        td_ir_graph_release(sub);
        return td_ir_status(g);
    }
    group->subgraph = sub;
    if (next)
        td_ir_move_before(group, next);
    for (int k = 0; k < nout; k++)
        td_ir_replace(leaving[k], group->outputs[k]);
    for (int k = 0; k < nout; k++) { /* what people know goes by its name */
        const char *name = leaving[k]->name;
        td_ir_set_name(g, leaving[k], NULL);
        td_ir_set_name(g, group->outputs[k], name);
    }
    for (int k = r->n - 1; k >= 0; k--)
        td_ir_remove(r->nodes[k]);
    return TD_OK;
}

/* Constants first, so that they do not part what belongs together. */
static void raise_constants(td_ir_block *block) {
    td_ir_node *place = block->first;
    for (td_ir_node *node = block->first, *next; node; node = next) {
        next = node->next;
        if (node->kind != TD_IR_CONSTANT)
            continue;
        if (node == place)
            place = node->next;
        else
            td_ir_move_before(node, place);
    }
}

static td_status fuse_block(td_ir_graph *g, td_ir_block *block) {
    td_status status = TD_OK;
    run r = {.n = 0};
    raise_constants(block);
    for (td_ir_node *node = block->first, *next; status == TD_OK; node = next) {
        next = node ? node->next : NULL;
        for (int b = 0; node && b < node->nblocks && status == TD_OK; b++)
            status = fuse_block(g, node->blocks[b]);
        if (node && add_node(&r, node))
            continue;
        if (r.n > 1 && status == TD_OK)
            status = make_group(g, &r);
        r = (run){.n = 0};
        if (!node)
            break;
        (void)add_node(&r, node); /* may begin the next */
    }
    return status;
}

td_status td_pass_fuse(td_ir_graph *g) {
    td_status status = fuse_block(g, g->block);
    return status ? status : td_ir_status(g);
}
