/* trace_place.c: see trace_place.h. */
#include "profiler/trace_place.h"

#include "engine/core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_BESIDE = 256, /* tracks that one track's slices may need */
    ROUNDED_NS = 10    /* overlaps of so little are the writer's rounding */
};

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/* By track, then by start, the longer first; equal ones in the order they had. */
static int by_place(const void *a, const void *b) {
    const tide_event *x = a, *y = b;
    int order = x->thread - y->thread;
    order = order ? order : compare(x->start_ns, y->start_ns);
    order = order ? order : compare(y->end_ns, x->end_ns);
    return order ? order : compare(x->self_ns, y->self_ns);
}

/* The innermost event that is open on each of the tracks that a track has become. */
typedef struct beside {
    int32_t outer[MOST_BESIDE];
    int16_t track[MOST_BESIDE];
    int n;
} beside;

/* Where the event would overlap by nothing but rounding, take that off; does it lie within, or
 * behind? */
static bool fits(tide_event *events, int32_t *outer, tide_event *e) {
    while (*outer >= 0 && events[*outer].end_ns <= e->start_ns + ROUNDED_NS &&
           events[*outer].end_ns < e->end_ns) {
        tide_event *before = &events[*outer];
        if (before->end_ns > e->start_ns && e->start_ns > before->start_ns)
            before->end_ns = e->start_ns;
        else if (before->end_ns > e->start_ns)
            return false;
        *outer = before->parent;
    }
    if (*outer < 0)
        return true;
    tide_event *around = &events[*outer];
    if (e->end_ns > around->end_ns && e->end_ns - around->end_ns <= ROUNDED_NS)
        e->end_ns = around->end_ns;
    return e->end_ns <= around->end_ns;
}

static td_status add_track(tide_recording *r, int like, int number, int16_t *track) {
    char name[256];
    if (r->ntracks == INT16_MAX)
        return td_fail(TD_EVALUE, "more than %d threads", INT16_MAX);
    tide_track *grown = td_realloc(r->tracks, (size_t)(r->ntracks + 1) * sizeof *grown);
    if (!grown)
        return td_fail(TD_ENOMEM, "out of memory");
    r->tracks = grown;
    tide_track *to = &grown[r->ntracks];
    *to = grown[like - 1];
    snprintf(name, sizeof name, "%.200s (%d)", to->name, number);
    const char *kept = tide_words_text(&r->words, name, strlen(name));
    to->name = kept ? kept : to->name;
    *track = (int16_t)++r->ntracks;
    return TD_OK;
}

/* Give the event to the first of the tracks where it nests. */
static td_status place(tide_recording *r, int32_t at, beside *b) {
    tide_event *e = &r->events[at];
    for (int k = 0; k < b->n; k++)
        if (fits(r->events, &b->outer[k], e)) {
            e->parent = b->outer[k];
            e->thread = b->track[k];
            if (e->kind != TD_EVENT_ALLOC)
                b->outer[k] = at;
            return TD_OK;
        }
    if (b->n == MOST_BESIDE)
        return td_fail(TD_EVALUE, "more than %d slices of one thread overlap", MOST_BESIDE);
    b->outer[b->n] = -1;
    td_status status = add_track(r, b->track[0], b->n + 1, &b->track[b->n]);
    return status ? status : (b->n++, place(r, at, b));
}

static td_status place_all(tide_recording *r) {
    beside b = {.n = 0};
    int track = 0;
    for (int64_t k = 0; k < r->count; k++) {
        if (r->events[k].thread != track) {
            track = r->events[k].thread;
            b = (beside){.outer = {-1}, .track = {(int16_t)track}, .n = 1};
        }
        td_status status = place(r, (int32_t)k, &b);
        if (status)
            return status;
    }
    return TD_OK;
}

/* Parents and own times, once every track is in order. */
static void find_parents(tide_recording *r) {
    int32_t outer = -1;
    int track = 0;
    for (int64_t k = 0; k < r->count; k++) {
        tide_event *e = &r->events[k];
        if (e->thread != track) {
            track = e->thread;
            outer = -1;
        }
        while (outer >= 0 && r->events[outer].end_ns <= e->start_ns)
            outer = r->events[outer].parent;
        e->parent = outer;
        e->self_ns = e->end_ns - e->start_ns;
        if (e->kind == TD_EVENT_ALLOC)
            continue;
        if (outer >= 0)
            r->events[outer].self_ns -= e->self_ns;
        outer = (int32_t)k;
    }
}

/* Who bears a link's number. */
typedef struct asker {
    int64_t number;
    int32_t event; /* index */
} asker;

typedef struct askers {
    asker *list;
    int64_t n;
} askers;

static int by_link(const void *a, const void *b) {
    const asker *x = a, *y = b;
    return x->number != y->number ? compare(x->number, y->number) : compare(x->event, y->event);
}

static td_status askers_init(const tide_recording *r, askers *a,
                             int64_t (*number_of)(const tide_event *)) {
    *a = (askers){.list = td_malloc((size_t)(r->count + 1) * sizeof *a->list)};
    if (!a->list)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int64_t k = 0; k < r->count; k++)
        if (!tide_is_apart_kind(r->events[k].kind) && number_of(&r->events[k]))
            a->list[a->n++] = (asker){number_of(&r->events[k]), (int32_t)k};
    qsort(a->list, (size_t)a->n, sizeof *a->list, by_link);
    return TD_OK;
}

/* The first operator that bears it, or what else does. */
static const asker *find_asker(const tide_recording *r, const askers *a, int64_t number) {
    const asker *list = a->list;
    int64_t n = number ? a->n : 0, low = 0, high = n;
    while (low < high) {
        int64_t mid = (low + high) / 2;
        if (list[mid].number < number)
            low = mid + 1;
        else
            high = mid;
    }
    for (int64_t k = low; k < n && list[k].number == number; k++)
        if (r->events[list[k].event].kind == TD_EVENT_OP)
            return &list[k];
    return low < n && list[low].number == number ? &list[low] : NULL;
}

/* The reader left the links' numbers in the events' steps. */
static int64_t link_of(const tide_event *e) {
    return e->step;
}

static int64_t call_of(const tide_event *e) {
    return e->kind == TIDE_EVENT_RUNTIME ? e->correlation : 0;
}

/* By the link, or by the call of the device's library and the operator that made it. */
static td_status link_devices(tide_recording *r) {
    askers links = {0}, calls = {0};
    td_status status = askers_init(r, &links, link_of);
    if (status == TD_OK)
        status = askers_init(r, &calls, call_of);
    for (int64_t k = 0; k < r->count && status == TD_OK; k++) {
        tide_event *e = &r->events[k];
        if (!tide_is_apart_kind(e->kind))
            continue;
        const asker *link = find_asker(r, &links, e->step), *call = NULL;
        if (!link && tide_is_device_kind(e->kind) &&
            (call = find_asker(r, &calls, e->correlation))) {
            int32_t outer = r->events[call->event].parent;
            bool op = outer >= 0 && r->events[outer].kind == TD_EVENT_OP;
            e->launcher = (op ? outer : call->event) + 1;
        } else {
            e->launcher = link ? link->event + 1 : 0;
        }
    }
    td_free(links.list);
    td_free(calls.list);
    return status;
}

static int by_number(const void *a, const void *b) {
    return compare(*(const int64_t *)a, *(const int64_t *)b);
}

/* Which step each event belongs to, by the beginnings of all slices that are steps. */
static td_status find_steps(tide_recording *r) {
    int64_t *begun = td_malloc((size_t)(r->count + 1) * sizeof *begun);
    if (!begun)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int64_t k = 0; k < r->count; k++)
        if (r->events[k].kind == TIDE_EVENT_STEP)
            begun[r->steps++] = r->events[k].start_ns;
    qsort(begun, (size_t)r->steps, sizeof *begun, by_number);
    for (int64_t k = 0; k < r->count; k++) {
        int low = 0, high = r->steps;
        while (low < high) {
            int mid = (low + high) / 2;
            if (begun[mid] <= r->events[k].start_ns)
                low = mid + 1;
            else
                high = mid;
        }
        r->events[k].step = low;
    }
    td_free(begun);
    return TD_OK;
}

static void count_from_the_first(tide_recording *r) {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (int64_t k = 0; k < r->count; k++) {
        first = r->events[k].start_ns < first ? r->events[k].start_ns : first;
        last = r->events[k].end_ns > last ? r->events[k].end_ns : last;
    }
    for (int64_t k = 0; k < r->count; k++) {
        r->events[k].start_ns -= first;
        r->events[k].end_ns -= first;
        r->events[k].self_ns = k; /* the file's order, until they have been put in theirs */
    }
    r->wall_ns = r->count ? last - first : 0;
}

static void sort_events(tide_recording *r) {
    if (r->count > 0)
        qsort(r->events, (size_t)r->count, sizeof *r->events, by_place);
}

td_status tide_place_events(tide_recording *r) {
    count_from_the_first(r);
    sort_events(r);
    td_status status = place_all(r);
    if (status)
        return status;
    for (int64_t k = 0; k < r->count; k++)
        r->events[k].self_ns = k;
    sort_events(r);
    find_parents(r);
    status = link_devices(r);
    return status ? status : find_steps(r);
}
