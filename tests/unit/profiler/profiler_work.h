/* profiler_work.h: what the tests of the recorder share: something to record, and what must hold of
 * every recording. Included once by each test program. */
#ifndef TIDE_TESTS_PROFILER_WORK_H
#define TIDE_TESTS_PROFILER_WORK_H

#include "engine/td.h"
#include "profiler/recorder.h"

#include "tests/check.h"

#include <stdlib.h>

/* y = sum(x * x) of a leaf x of shape (3, 4), and its backward. */
CHECK_HELPER td_status train(void) {
    td_tensor *x = NULL, *square = NULL, *sum = NULL;
    td_status status = TD_APPLY(&x, ones, TD_INTS(2, ((int64_t[]){3, 4})));
    if (status == TD_OK)
        status = td_set_requires_grad(x, true);
    if (status == TD_OK)
        status = TD_APPLY(&square, mul, TD_T(x), TD_T(x));
    if (status == TD_OK)
        status = TD_APPLY(&sum, sum, TD_T(square));
    if (status == TD_OK)
        status = td_backward(1, &sum, NULL, (td_backward_options){0});
    td_release(sum);
    td_release(square);
    td_release(x);
    return status;
}

CHECK_HELPER bool stop(tide_recorder *recorder, tide_recording *r) {
    bool ok = tide_recorder_stop(recorder, r) == TD_OK;
    return CHECK(ok);
}

/* Events last, lie inside the event around them, follow their siblings, and self times add up. */
CHECK_HELPER void check_nesting(const tide_recording *r) {
    int64_t *inside = calloc((size_t)r->count + 1, sizeof *inside);
    int64_t *last_end = calloc((size_t)r->count + 1, sizeof *last_end);
    REQUIRE(inside && last_end);
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        CHECK(e->end_ns > e->start_ns || e->kind == TD_EVENT_ALLOC);
        CHECK(e->parent < k);
        if (e->parent < 0)
            continue;
        const tide_event *outer = &r->events[e->parent];
        CHECK_INT(outer->thread, e->thread);
        CHECK(outer->start_ns <= e->start_ns && e->end_ns <= outer->end_ns);
        CHECK(last_end[e->parent] <= e->start_ns);
        last_end[e->parent] = e->end_ns;
        inside[e->parent] += e->end_ns - e->start_ns;
    }
    for (int64_t k = 0; k < r->count; k++)
        CHECK_INT(r->events[k].self_ns, r->events[k].end_ns - r->events[k].start_ns - inside[k]);
    free(inside);
    free(last_end);
}

CHECK_HELPER const tide_event *find(const tide_recording *r, int kind, const char *name) {
    for (int64_t k = 0; k < r->count; k++)
        if (r->events[k].kind == kind && strcmp(r->events[k].name, name) == 0)
            return &r->events[k];
    return NULL;
}

#endif
