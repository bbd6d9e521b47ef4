/* loads.c: see loads.h. */
#include "profiler/loads.h"

#include "engine/core/memory.h"

static bool is_outermost(const tide_recording *r, const tide_event *e) {
    int32_t at = e->parent;
    while (at >= 0 && r->events[at].kind != TD_EVENT_LOAD)
        at = r->events[at].parent;
    return e->kind == TD_EVENT_LOAD && at < 0;
}

td_status tide_loads_find(const tide_recording *r, tide_loads *out) {
    int64_t n = 0;
    *out = (tide_loads){0};
    for (int64_t k = 0; k < r->count; k++)
        n += r->events[k].kind == TD_EVENT_LOAD;
    if (n && !(out->list = td_malloc((size_t)n * sizeof *out->list)))
        return td_fail(TD_ENOMEM, "out of memory");
    for (int64_t k = 0; n && k < r->count; k++) {
        const tide_event *e = &r->events[k];
        if (!is_outermost(r, e))
            continue;
        const tide_load *last = out->n ? &out->list[out->n - 1] : NULL;
        bool follows = last && last->thread == e->thread;
        out->list[out->n++] = (tide_load){
            .start_ns = e->start_ns,
            .end_ns = e->end_ns,
            .before_ns = follows ? last->before_ns + last->end_ns - last->start_ns : 0,
            .thread = e->thread,
        };
        out->total_ns += e->end_ns - e->start_ns;
    }
    return TD_OK;
}

void tide_loads_clear(tide_loads *loads) {
    td_free(loads->list);
    *loads = (tide_loads){0};
}

int64_t tide_loads_moment(const tide_loads *loads, int16_t thread, int64_t ns) {
    int64_t low = 0, high = loads->n;
    while (low < high) { /* what begins by then, or on threads before, lies before low */
        int64_t mid = (low + high) / 2;
        const tide_load *l = &loads->list[mid];
        if (l->thread < thread || (l->thread == thread && l->start_ns <= ns))
            low = mid + 1;
        else
            high = mid;
    }
    const tide_load *last = low ? &loads->list[low - 1] : NULL;
    if (!last || last->thread != thread)
        return ns;
    int64_t until = ns < last->end_ns ? ns : last->end_ns;
    return ns - last->before_ns - (until - last->start_ns);
}

int64_t tide_loads_duration(const tide_loads *loads, const tide_event *e) {
    if (e->kind == TD_EVENT_LOAD || !loads->n)
        return e->end_ns - e->start_ns;
    return tide_loads_moment(loads, e->thread, e->end_ns) -
           tide_loads_moment(loads, e->thread, e->start_ns);
}
