/* fuse.c: pointwise operators that make one shape become groups.
 *
 * A group is a run of nodes, which need not be neighbours: one that stands further on joins where
 * it can be moved up to the others, past nodes that it doesn't read, that don't write what it
 * reads, and whose errors it can't come before. Constants are moved up first.
 */
#include "engine/core/memory.h"
#include "engine/script/kernel.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/copy.h"
#include "engine/script/passes/fails.h"
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
    return a->n >= 0 && a->n == b->n &&
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

/* Constants are the group's own: nothing else is neither input nor made in the run. */
static void copy_member(td_copier *c, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++)
        if (!td_copier_get(c, node->inputs[k]))
            td_copier_set(c, node->inputs[k],
                          td_ir_add_constant(c->graph->block, node->inputs[k]->node->constant));
    (void)td_copier_copy(c, c->graph->block, node);
}

static td_ir_graph *make_graph(const run *r, int nout, td_ir_value *const *leaving) {
    td_ir_value *outputs[MOST_ENDS];
    td_copier c = {.graph = td_ir_graph_new()};
    if (!c.graph)
        return NULL;
    c.graph->fast = r->nodes[0]->block->graph->fast;
    for (int k = 0; k < r->ninputs; k++)
        td_copier_set(&c, r->inputs[k],
                      td_ir_add_input(c.graph->block, td_ir_type_copy(c.graph, r->inputs[k]->type),
                                      r->inputs[k]->name));
    for (int k = 0; k < r->n && !c.graph->failed; k++)
        copy_member(&c, r->nodes[k]);
    for (int k = 0; k < nout; k++)
        outputs[k] = td_copier_get(&c, leaving[k]);
    if (!c.graph->failed)
        td_ir_set_outputs(c.graph->block, nout, outputs);
    td_copier_clear(&c);
    if (c.graph->failed) {
        td_ir_graph_release(c.graph);
        return NULL;
    }
    return c.graph;
}

/* ---- rewriting ---- */

static td_status make_group(td_ir_graph *g, const run *r, td_pass_note *note) {
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
    td_pass_say(note, group, "%d operators are one kernel", r->n);
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

/* ---- nodes that are no neighbours ---- */

enum { MOST_BETWEEN = 64 }; /* nodes that a run steps over */

typedef struct between {
    td_ir_node *nodes[MOST_BETWEEN];
    int n;
    int asked;  /* of how many of them it is known: */
    bool fails; /* one acts or may fail */
} between;

static bool one_fails(between *b) {
    for (; b->asked < b->n && !b->fails; b->asked++)
        b->fails = td_node_acts(b->nodes[b->asked]) || td_node_may_fail(b->nodes[b->asked]);
    return b->fails;
}

/* May a node run before those that were stepped over? */
static bool may_move_up(const td_alias_info *a, between *b, const td_ir_node *node) {
    for (int j = 0; j < b->n; j++)
        for (int k = 0; k < node->ninputs; k++)
            if (node->inputs[k]->node == b->nodes[j] ||
                td_alias_writes(a, b->nodes[j], node->inputs[k]))
                return false;
    return !b->n || !td_node_may_fail(node) || !one_fails(b);
}

/* The run that begins with a node, all of it moved up behind that. */
static void gather(const td_alias_info *a, td_ir_node *first, run *r) {
    between b = {.n = 0};
    *r = (run){.n = 0};
    if (!add_node(r, first))
        return;
    for (td_ir_node *node = first->next, *next; node && b.n < MOST_BETWEEN; node = next) {
        next = node->next;
        td_ir_node *last = r->nodes[r->n - 1];
        if (td_script_kernel_takes(node) && may_move_up(a, &b, node) && add_node(r, node)) {
            if (last->next != node)
                td_ir_move_before(node, last->next);
        } else if (r->n == MOST_NODES)
            break;
        else
            b.nodes[b.n++] = node;
    }
}

static td_status fuse_block(td_ir_graph *g, const td_alias_info *a, td_ir_block *block,
                            td_pass_note *note) {
    td_status status = TD_OK;
    run r;
    raise_constants(block);
    for (td_ir_node *node = block->first, *next; node && status == TD_OK; node = next) {
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = fuse_block(g, a, node->blocks[b], note);
        gather(a, node, &r);
        next = r.n > 1 ? r.nodes[r.n - 1]->next : node->next;
        if (r.n > 1 && status == TD_OK)
            status = make_group(g, &r, note);
    }
    return status;
}

td_status td_pass_fuse(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    if (status == TD_OK)
        status = fuse_block(g, a, g->block, note);
    td_alias_free(a);
    return status ? status : td_ir_status(g);
}
