/* host.h: what a front end lends the functions that it makes of graphs. */
#ifndef TD_SCRIPT_HOST_H
#define TD_SCRIPT_HOST_H

#include "engine/ops/op.h"

/* Every member may be NULL. */
typedef struct td_script_host {
    void *ctx;
    /* prim::HostCall[id]: inputs are borrowed; outputs, nil at first, are the graph's and of the
     * types that it gives them. Only on the thread that called the function, and not within a fork,
     * unless any_thread. */
    td_status (*call)(void *ctx, int id, int ninputs, const td_value *inputs, int noutputs,
                      td_value *outputs);
    /* prim::Print: its arguments, borrowed. NULL: nothing is printed. On threads as `call`; from
     * others nothing is printed. */
    td_status (*print)(void *ctx, int n, const td_value *values);
    void (*release)(void *ctx); /* when the function dies or has another host */
    bool any_thread;
} td_script_host;

#endif
