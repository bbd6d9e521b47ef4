/* lists_run.c: events around a plan over lists: the operator's, whose argument and results are the
 * lists, and within it the kernel's. */
#include "engine/calls/lists_run.h"

#include "engine/core/observer.h"
#include "engine/ops/op.h"

static td_status run_kernel(const td_lists_run *r) {
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    if (TD_LIKELY(!o))
        return r->run(r->device, r->plan);
    td_event event = {
        .kind = TD_EVENT_KERNEL, .name = r->name, .track = td_stream_current(r->device)};
    o->begin(o->ctx, &event);
    event.status = r->run(r->device, r->plan);
    o->end(o->ctx, &event);
    return event.status;
}

td_status td_lists_run_observed(const td_lists_run *r) {
    td_observer *o = td_observer_get(TD_EVENT_OP);
    if (TD_LIKELY(!o))
        return run_kernel(r);
    td_value lists = TD_TENSORS(r->n, r->results);
    td_event event = {.kind = TD_EVENT_OP,
                      .name = r->name,
                      .args = &lists,
                      .nargs = 1,
                      .track = td_stream_current(r->device)};
    const td_origin *before = td_origin_in_force;
    td_origin origin = {.line = 0};
    if (o->origin && !before) {
        o->origin(o->ctx, &origin);
        td_origin_in_force = &origin;
    }
    event.origin = td_origin_known();
    o->begin(o->ctx, &event);
    event.status = run_kernel(r);
    event.results = r->results;
    event.nresults = r->n;
    o->end(o->ctx, &event);
    td_origin_in_force = before;
    return event.status;
}
