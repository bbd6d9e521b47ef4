/* gather.c: see gather.h. */
#include "profiler/gather.h"

#include "engine/core/memory.h"

#include <stdlib.h>
#include <string.h>

struct tide_raw {
    uint64_t origin, end;
    uint64_t *steps;
    int nsteps, nlanes;
    tide_lane *lanes; /* what they hold */
    tide_device_log *log;
    int64_t most;   /* events that are kept, the newest */
    uint64_t cut;   /* what ended before goes; 0: nothing */
    double tick_ns; /* the length of a tick */
};

tide_raw *tide_raw_new(uint64_t origin, uint64_t end, uint64_t *steps, int nsteps, int64_t most,
                       tide_device_log *log) {
    tide_raw *raw = td_calloc(1, sizeof *raw);
    if (!raw) {
        td_free(steps);
        tide_device_log_free(log);
        return NULL;
    }
    raw->origin = origin;
    raw->end = end;
    raw->steps = steps;
    raw->nsteps = nsteps;
    raw->most = most;
    raw->log = log;
    return raw;
}

void tide_raw_free(tide_raw *raw) {
    if (!raw)
        return;
    for (int k = 0; k < raw->nlanes; k++)
        tide_lane_clear(&raw->lanes[k]);
    td_free(raw->lanes);
    td_free(raw->steps);
    tide_device_log_free(raw->log);
    td_free(raw);
}

void tide_raw_take(tide_raw **raw, tide_lane *l) {
    tide_raw *r = *raw;
    tide_lane *grown = td_realloc(r->lanes, (size_t)(r->nlanes + 1) * sizeof *grown);
    if (!grown) {
        tide_raw_free(r);
        *raw = NULL;
        return;
    }
    r->lanes = grown;
    tide_lane *to = &grown[r->nlanes++];
    memcpy(to, l, sizeof *to);
    l->first = l->last = NULL;
    l->kept = NULL;
    l->kept_words = NULL;
    l->open = NULL;
}

/* The first step that began at `cut` or later: its number, from 0. */
static int first_whole_step(const tide_raw *g) {
    int low = 0, high = g->nsteps;
    while (low < high) {
        int mid = (low + high) / 2;
        if (g->steps[mid] < g->cut)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static int64_t to_ns(const tide_raw *g, uint64_t ticks) {
    return ticks > g->origin ? (int64_t)((double)(ticks - g->origin) * g->tick_ns) : 0;
}

static int by_ticks(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int64_t add_ends(const tide_record *records, int n, uint64_t *ends) {
    int64_t count = 0;
    for (int k = 0; k < n; k++)
        if (records[k].kind != TIDE_RECORD_GONE && records[k].end)
            ends[count++] = records[k].end;
    return count;
}

/* Lanes let chunks go, which hold more than one event: move the cut to where no more than the most
 * are left. `count`: at most so many are there. */
static td_status cut_to_most(tide_raw *g, int64_t count) {
    int64_t n = 0;
    if (count <= g->most)
        return TD_OK;
    uint64_t *ends = td_malloc((size_t)count * sizeof *ends);
    if (!ends)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < g->nlanes; k++) {
        const tide_lane *l = &g->lanes[k];
        n += add_ends(l->kept, l->nkept, ends + n);
        for (const tide_chunk *c = l->first; c; c = c->next)
            n += add_ends(c->records, c->n, ends + n);
    }
    qsort(ends, (size_t)n, sizeof *ends, by_ticks);
    if (n > g->most && ends[n - g->most - 1] > g->cut)
        g->cut = ends[n - g->most - 1];
    td_free(ends);
    return TD_OK;
}

/* Without the steps that have lost events. */
static void find_cut(tide_raw *g, tide_recording *out) {
    for (int k = 0; k < g->nlanes; k++)
        if (g->lanes[k].cut > g->cut)
            g->cut = g->lanes[k].cut;
    out->steps = g->nsteps;
    if (!g->cut || !g->nsteps)
        return;
    int first = first_whole_step(g);
    if (first < g->nsteps) /* else there is but a part of the last */
        g->cut = g->steps[first];
    out->steps_lost = first < g->nsteps ? first : g->nsteps - 1;
}

static tide_event event_of(const tide_raw *g, const tide_lane *l, const tide_record *r) {
    tide_event e = {.name = r->name,
                    .line = r->line,
                    .inputs = r->inputs,
                    .results = r->results,
                    .sequence = r->sequence,
                    .thread = (int16_t)l->number,
                    .kind = r->kind,
                    .ninputs = r->ninputs,
                    .nresults = r->nresults};
    uint64_t end = r->end                   ? r->end
                   : g->end > l->last_ticks ? g->end
                                            : l->last_ticks + TIDE_TICKS_APART;
    e.start_ns =
        to_ns(g, r->start > g->cut ? r->start : g->cut); /* what was open has a part there */
    e.end_ns = to_ns(g, end);
    if (e.end_ns == e.start_ns && e.kind != TD_EVENT_ALLOC)
        e.end_ns++;
    return e;
}

/* While a lane's events are added one after the other. */
typedef struct place {
    int32_t outer; /* the event around what comes next */
    int step;      /* that has begun */
} place;

static void add(const tide_raw *g, const tide_lane *l, const tide_record *r, place *p,
                tide_recording *out) {
    if (r->kind == TIDE_RECORD_GONE)
        return;
    if (g->cut && r->end && r->end <= g->cut) {
        out->evicted++;
        return;
    }
    int32_t at = (int32_t)out->count++;
    tide_event *e = &out->events[at];
    *e = event_of(g, l, r);
    while (p->step < g->nsteps && g->steps[p->step] <= r->start)
        p->step++;
    e->step = p->step;
    while (p->outer >= 0 && out->events[p->outer].end_ns <= e->start_ns)
        p->outer = out->events[p->outer].parent;
    e->parent = p->outer;
    e->self_ns = e->end_ns - e->start_ns;
    if (e->kind == TD_EVENT_ALLOC)
        return;
    if (p->outer >= 0)
        out->events[p->outer].self_ns -= e->self_ns;
    p->outer = at;
}

static void take_words(tide_words **from, tide_recording *out) {
    tide_words *first = *from, *last = first;
    if (!first)
        return;
    while (last->next)
        last = last->next;
    last->next = out->words;
    out->words = first;
    *from = NULL;
}

static void gather(const tide_raw *g, tide_lane *l, tide_recording *out) {
    place p = {.outer = -1};
    for (int k = 0; k < l->nkept; k++)
        add(g, l, &l->kept[k], &p, out);
    take_words(&l->kept_words, out);
    for (tide_chunk *c = l->first, *next; c; c = next) {
        next = c->next;
        for (int k = 0; k < c->n; k++)
            add(g, l, &c->records[k], &p, out);
        take_words(&c->words, out);
        tide_chunk_free(c);
    }
    l->first = l->last = NULL;
    out->dropped += l->dropped;
    out->evicted += l->evicted;
    out->untimed += l->untimed;
}

/* What devices did, behind all lanes' events. */
static td_status gather_devices(const tide_raw *g, tide_recording *out) {
    if (!g->log || !tide_device_log_count(g->log))
        return TD_OK;
    uint32_t *threads = td_malloc((size_t)(g->nlanes + 1) * sizeof *threads);
    if (!threads)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < g->nlanes; k++)
        threads[k] = g->lanes[k].thread;
    td_status status = tide_device_log_add(g->log,
                                           &(tide_log_frame){.origin = g->origin,
                                                             .end = g->end,
                                                             .cut = g->cut,
                                                             .tick_ns = g->tick_ns,
                                                             .threads = threads,
                                                             .nlanes = g->nlanes},
                                           out);
    td_free(threads);
    return status;
}

td_status tide_raw_gather(tide_raw *g, tide_recording *out) {
    int64_t count = g->log ? tide_device_log_count(g->log) : 0;
    *out = (tide_recording){0};
    g->tick_ns = tide_ticks_length();
    out->began_ns = (int64_t)tide_ticks_moment(g->origin, g->tick_ns);
    for (int k = 0; k < g->nlanes; k++)
        count += tide_lane_count(&g->lanes[k]);
    if (cut_to_most(g, count)) {
        tide_raw_free(g);
        return TD_ENOMEM;
    }
    find_cut(g, out);
    out->kept_from_ns = g->cut ? to_ns(g, g->cut) : 0;
    out->events = count < INT32_MAX ? td_malloc((size_t)(count + 1) * sizeof *out->events) : NULL;
    out->wall_ns = to_ns(g, g->end);
    for (int k = 0; k < g->nlanes && out->events; k++)
        gather(g, &g->lanes[k], out);
    td_status status = out->events ? gather_devices(g, out) : td_fail(TD_ENOMEM, "out of memory");
    tide_raw_free(g);
    if (status)
        tide_recording_free(out);
    return status;
}
