/* group_name.c: the operators of a group as texts. */
#include "engine/script/group_name.h"

#include "engine/calls/event_parts.h"

#include <stdio.h>

enum { MOST = 64 }; /* operators that are named */

/* The operators of a group, those of the groups in it among them, in order; how many. */
static int gather(const td_ir_graph *g, const td_ir_node **list, int n) {
    for (const td_ir_node *node = g->block->first; node && n < MOST; node = node->next) {
        if (node->kind == TD_IR_FUSION_GROUP)
            n = gather(node->subgraph, list, n);
        else if (node->kind == TD_IR_OPERATOR)
            list[n++] = node;
    }
    return n;
}

/* "mul*10": an operator that stands so often in a row; how often. */
static int add_run(char *text, size_t size, size_t *used, const td_ir_node *const *list, int n) {
    int times = 1;
    while (times < n && list[times]->op == list[0]->op)
        times++;
    if (*used < size)
        *used += (size_t)snprintf(text + *used, size - *used, " %s", list[0]->op->name);
    if (times > 1 && *used < size)
        *used += (size_t)snprintf(text + *used, size - *used, "*%d", times);
    return times;
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
    const td_ir_node *list[MOST];
    int n = gather(g, list, 0);
    for (int k = 0; k < n;)
        k += add_run(name, sizeof name, &nname, list + k, n - k);
    for (int k = 0; k < n; k++)
        add_part(parts, sizeof parts, &nparts, list[k]);
    return td_event_group_name(name, parts, "fused");
}
