/* needed.h: which nodes lie on a way from outputs to the inputs whose gradients are asked for. */
#ifndef TD_AUTOGRAD_NEEDED_H
#define TD_AUTOGRAD_NEEDED_H

#include "engine/autograd/node.h"

/* A set of nodes, by address; the graph must outlive it. */
typedef struct td_node_set {
    const td_node **table; /* open addressing, a power of two */
    size_t size, count;
} td_node_set;

/* The nodes that must run for gradients to reach one of the targets (addresses of leaves, or of
 * nodes whose results are asked for). ENOMEM. */
td_status td_needed_find(int nstarts, const td_edge *starts, int ntargets,
                         const void *const *targets, td_node_set *needed) TD_MUST_CHECK;

bool td_node_set_has(const td_node_set *set, const td_node *node);
void td_node_set_free(td_node_set *set);

#endif
