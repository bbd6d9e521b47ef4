/* needed.c: a walk over the graph before backward, for autograd.grad alone: nodes behind which no
 * input lies neither run nor lose what they saved. */
#include "engine/autograd/needed.h"

#include "engine/core/memory.h"

#include <stdlib.h>
#include <string.h>

static size_t slot_of(const td_node_set *set, const td_node *node) {
    size_t at = ((uintptr_t)node >> 4) * 0x9E3779B97F4A7C15u >> 20 & (set->size - 1);
    while (set->table[at] && set->table[at] != node)
        at = (at + 1) & (set->size - 1);
    return at;
}

bool td_node_set_has(const td_node_set *set, const td_node *node) {
    return set->size && set->table[slot_of(set, node)] == node;
}

void td_node_set_free(td_node_set *set) {
    td_free(set->table);
    *set = (td_node_set){0};
}

static td_status grow(td_node_set *set) {
    td_node_set bigger = {.size = set->size ? 2 * set->size : 64, .count = set->count};
    bigger.table = td_calloc(bigger.size, sizeof *bigger.table);
    if (!bigger.table)
        return td_fail(TD_ENOMEM, "out of memory");
    for (size_t k = 0; k < set->size; k++)
        if (set->table[k])
            bigger.table[slot_of(&bigger, set->table[k])] = set->table[k];
    td_free(set->table);
    *set = bigger;
    return TD_OK;
}

/* *fresh says whether the node was not there yet. */
static td_status add(td_node_set *set, const td_node *node, bool *fresh) {
    td_status status = 2 * (set->count + 1) > set->size ? grow(set) : TD_OK;
    if (status)
        return status;
    size_t at = slot_of(set, node);
    *fresh = !set->table[at];
    set->count += *fresh;
    set->table[at] = node;
    return TD_OK;
}

typedef struct node_list {
    const td_node **nodes;
    size_t n, room;
} node_list;

/* Note a node met for the first time. */
static td_status visit(node_list *list, td_node_set *seen, const td_node *node) {
    bool fresh;
    if (!node)
        return TD_OK;
    td_status status = add(seen, node, &fresh);
    if (status || !fresh)
        return status;
    if (list->n == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        const td_node **nodes = td_realloc(list->nodes, room * sizeof *nodes);
        if (!nodes)
            return td_fail(TD_ENOMEM, "out of memory");
        list->nodes = nodes;
        list->room = room;
    }
    list->nodes[list->n++] = node;
    return TD_OK;
}

static int by_sequence(const void *a, const void *b) {
    const td_node *const *x = a, *const *y = b;
    return ((*x)->sequence > (*y)->sequence) - ((*x)->sequence < (*y)->sequence);
}

static bool is_target(const void *key, int n, const void *const *targets) {
    for (int k = 0; k < n; k++)
        if (targets[k] == key)
            return true;
    return false;
}

static bool leads_on(const td_node *node, const td_node_set *needed, int n,
                     const void *const *targets) {
    for (uint32_t k = 0; k < node->nslots; k++) {
        const td_edge *edge = &node->slots[k].edge;
        if (edge->node ? td_node_set_has(needed, edge->node) || is_target(edge->node, n, targets)
                       : edge->leaf && is_target(edge->leaf, n, targets))
            return true;
    }
    return false;
}

td_status td_needed_find(int nstarts, const td_edge *starts, int ntargets,
                         const void *const *targets, td_node_set *needed) {
    node_list list = {0};
    td_node_set seen = {0};
    td_status status = TD_OK;
    *needed = (td_node_set){0};
    for (int k = 0; k < nstarts; k++)
        TD_TRY(visit(&list, &seen, starts[k].node));
    for (size_t at = 0; at < list.n; at++)
        for (uint32_t k = 0; k < list.nodes[at]->nslots; k++)
            TD_TRY(visit(&list, &seen, list.nodes[at]->slots[k].edge.node));
    /* Edges point at older nodes: in that order what lies behind a node is known before it. */
    if (list.n)
        qsort(list.nodes, list.n, sizeof *list.nodes, by_sequence);
    for (size_t k = 0; k < list.n; k++) {
        bool fresh;
        if (leads_on(list.nodes[k], needed, ntargets, targets))
            TD_TRY(add(needed, list.nodes[k], &fresh));
    }
done:
    td_free(list.nodes);
    td_node_set_free(&seen);
    if (status)
        td_node_set_free(needed);
    return status;
}
