/* group.c: how nodes are gathered, and how they become one. */
#include "engine/script/passes/group.h"

#include "engine/script/passes/copy.h"
#include "engine/script/passes/fails.h"

#include <string.h>

/* ---- members ---- */

static bool is_member(const td_group *g, const td_ir_node *node) {
    for (int k = 0; k < g->n; k++)
        if (g->nodes[k] == node)
            return true;
    return false;
}

bool td_group_makes(const td_group *g, const td_ir_value *value) {
    return value->node && is_member(g, value->node);
}

bool td_group_reads(const td_group *g, const td_ir_value *value) {
    for (int k = 0; k < g->ninputs; k++)
        if (g->inputs[k] == value)
            return true;
    return false;
}

bool td_group_add(td_group *g, td_ir_node *node) {
    int before = g->ninputs;
    bool room = g->n < TD_GROUP_NODES;
    for (int k = 0; k < node->ninputs && room; k++) {
        td_ir_value *value = node->inputs[k];
        if (value->type->kind != TD_IR_TENSOR || td_group_makes(g, value) ||
            td_group_reads(g, value))
            continue;
        room = g->ninputs < TD_GROUP_ENDS;
        if (room)
            g->inputs[g->ninputs++] = value;
    }
    if (!room) {
        g->ninputs = before;
        return false;
    }
    g->nodes[g->n++] = node;
    return true;
}

/* ---- nodes that are no neighbours ---- */

enum { MOST_BETWEEN = 64 }; /* nodes that a group steps over */

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

static bool reads_members(const td_group *g, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++)
        if (td_group_makes(g, node->inputs[k]))
            return true;
    return false;
}

static void forget(between *b, int j) {
    memmove(b->nodes + j, b->nodes + j + 1, sizeof *b->nodes * (size_t)(--b->n - j));
    b->asked -= j < b->asked;
}

/* Of those that were stepped over, what a node reads stands before the group from now on, where
 * that is of no matter to anything else. */
static void raise_inputs(const td_alias_info *a, between *b, const td_group *g,
                         const td_ir_node *node) {
    for (int j = 0; g->n && j < b->n; j++) {
        td_ir_node *made = b->nodes[j];
        bool reads = false;
        for (int k = 0; k < node->ninputs; k++)
            reads |= node->inputs[k]->node == made;
        if (!reads || made->nblocks || reads_members(g, made) || td_node_acts(made) ||
            td_node_may_fail(made) || !may_move_up(a, b, made))
            continue;
        td_ir_move_before(made, g->nodes[0]);
        forget(b, j--);
    }
}

void td_group_gather(const td_alias_info *a, td_ir_node *first, td_group_fits fits, const void *ctx,
                     bool raise, td_group *g) {
    between b = {.n = 0};
    *g = (td_group){.n = 0};
    if (!fits(g, first, ctx) || !td_group_add(g, first))
        return;
    for (td_ir_node *node = first->next, *next; node && b.n < MOST_BETWEEN; node = next) {
        next = node->next;
        td_ir_node *last = g->nodes[g->n - 1];
        bool joins = fits(g, node, ctx);
        if (joins && raise)
            raise_inputs(a, &b, g, node);
        if (joins && may_move_up(a, &b, node) && td_group_add(g, node)) {
            if (last->next != node)
                td_ir_move_before(node, last->next);
        } else if (g->n == TD_GROUP_NODES)
            break;
        else
            b.nodes[b.n++] = node;
    }
}

void td_raise_constants(td_ir_block *block) {
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

/* ---- a group's graph ---- */

/* Constants are the group's own: nothing else is neither input nor made in the group. */
static void copy_member(td_copier *c, const td_ir_node *node) {
    for (int k = 0; k < node->ninputs; k++)
        if (!td_copier_get(c, node->inputs[k]))
            td_copier_set(c, node->inputs[k],
                          td_ir_add_constant(c->graph->block, node->inputs[k]->node->constant));
    (void)td_copier_copy(c, c->graph->block, node);
}

static td_ir_graph *make_graph(const td_group *g, int nout, td_ir_value *const *leaving) {
    td_ir_value *outputs[TD_GROUP_ENDS];
    td_copier c = {.graph = td_ir_graph_new()};
    if (!c.graph)
        return NULL;
    c.graph->fast = g->nodes[0]->block->graph->fast;
    for (int k = 0; k < g->ninputs; k++)
        td_copier_set(&c, g->inputs[k],
                      td_ir_add_input(c.graph->block, td_ir_type_copy(c.graph, g->inputs[k]->type),
                                      g->inputs[k]->name));
    for (int k = 0; k < g->n && !c.graph->failed; k++)
        copy_member(&c, g->nodes[k]);
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

/* Is it read by what is not in the group? */
static bool leaves(const td_group *g, const td_ir_value *value) {
    for (const td_ir_use *use = value->uses; use; use = use->next)
        if (!use->node || !is_member(g, use->node))
            return true;
    return false;
}

/* The values that leave; or more than there may be. */
static int find_leaving(const td_group *g, td_ir_value **leaving) {
    int n = 0;
    for (int k = 0; k < g->n; k++)
        for (int j = 0; j < g->nodes[k]->noutputs; j++)
            if (leaves(g, g->nodes[k]->outputs[j]) && n++ < TD_GROUP_ENDS)
                leaving[n - 1] = g->nodes[k]->outputs[j];
    return n;
}

/* What leaves is read from the group, and what people know goes by its name. */
static void hand_over(td_ir_graph *g, td_ir_node *group, td_ir_value *const *leaving) {
    for (int k = 0; k < group->noutputs; k++)
        td_ir_replace(leaving[k], group->outputs[k]);
    for (int k = 0; k < group->noutputs; k++) {
        const char *name = leaving[k]->name;
        td_ir_set_name(g, leaving[k], NULL);
        td_ir_set_name(g, group->outputs[k], name);
    }
}

td_status td_group_make(const td_group *g, td_ir_node **made) {
    td_ir_value *leaving[TD_GROUP_ENDS];
    const td_ir_type *types[TD_GROUP_ENDS];
    td_ir_node *last = g->nodes[g->n - 1], *next = last->next;
    td_ir_graph *graph = last->block->graph;
    int nout = find_leaving(g, leaving);
    *made = NULL;
    if (!nout || nout > TD_GROUP_ENDS)
        return TD_OK;
    for (int k = 0; k < nout; k++)
        types[k] = leaving[k]->type;
    td_ir_graph *sub = make_graph(g, nout, leaving);
    td_ir_node *group = sub ? td_ir_append(last->block, TD_IR_FUSION_GROUP, g->ninputs,
                                           (td_ir_value **)g->inputs, nout, types)
                            : NULL;
    if (!group) {
        graph->failed = true;
        td_ir_graph_release(sub);
        return td_ir_status(graph);
    }
    group->subgraph = sub;
    if (next)
        td_ir_move_before(group, next);
    hand_over(graph, group, leaving);
    for (int k = g->n - 1; k >= 0; k--)
        td_ir_remove(g->nodes[k]);
    *made = group;
    return TD_OK;
}
