/* group_name.c: the operators of a group as texts. */
#include "engine/script/group_name.h"

#include "engine/calls/event_parts.h"

#include <stdio.h>

static const td_ir_node *next_operator(const td_ir_node *node) {
    while (node && node->kind != TD_IR_OPERATOR)
        node = node->next;
    return node;
}

/* "mul*10": an operator that stands so often in a row; the node behind. */
static const td_ir_node *add_run(char *text, size_t size, size_t *used, const td_ir_node *node) {
    const td_ir_node *first = node;
    int times = 0;
    for (; node && node->op == first->op; times++)
        node = next_operator(node->next);
    if (*used < size)
        *used += (size_t)snprintf(text + *used, size - *used, " %s", first->op->name);
    if (times > 1 && *used < size)
        *used += (size_t)snprintf(text + *used, size - *used, "*%d", times);
    return node;
}

static void add_part(char *text, size_t size, size_t *used, const td_ir_node *node) {
    if (*used < size)
        *used +=
            (size_t)snprintf(text + *used, size - *used, "%s%s", *used ? ", " : "", node->op->name);
    if (node->place.file && *used < size)
        *used += (size_t)snprintf(text + *used, size - *used, " %.60s:%d", node->place.file,
                                  node->place.line);
}

const char *td_script_group_name(const td_ir_graph *g) {
    char name[100] = "fused", parts[2000] = "";
    size_t nname = 5, nparts = 0;
    const td_ir_node *first = next_operator(g->block->first);
    for (const td_ir_node *node = first; node;)
        node = add_run(name, sizeof name, &nname, node);
    for (const td_ir_node *node = first; node; node = next_operator(node->next))
        add_part(parts, sizeof parts, &nparts, node);
    return td_event_group_name(name, parts, "fused");
}
