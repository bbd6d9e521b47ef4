/* places.c: see places.h. */
#include "profiler/places.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"

#include <stdlib.h>

typedef struct place_set {
    tide_place *places;
    int n, room;
    td_map map;
} place_set;

/* Of whose call an event is, and from where. */
typedef struct origin_of {
    const char *line, *name;
    bool itself; /* the event is that call */
} origin_of;

typedef struct wanted {
    const place_set *set;
    const origin_of *of;
} wanted;

static bool is_call(const tide_event *e) {
    return e->kind == TD_EVENT_OP || e->kind == TD_EVENT_BACKWARD;
}

static origin_of find_origin(const tide_recording *r, const tide_event *e) {
    origin_of of = {.line = e->line, .name = is_call(e) ? e->name : NULL, .itself = is_call(e)};
    for (int32_t at = e->parent; at >= 0; at = r->events[at].parent) {
        const tide_event *outer = &r->events[at];
        if (!is_call(outer) && outer->kind != TD_EVENT_KERNEL)
            continue;
        if (!of.line)
            of.line = outer->line;
        if (is_call(outer)) {
            of.name = outer->name;
            of.itself = false;
        }
    }
    return of;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_wanted(const void *index, const void *key) {
    const wanted *w = key;
    const tide_place *place = &w->set->places[(intptr_t)index - 1];
    return same_text(place->line, w->of->line) && same_text(place->name, w->of->name);
}

static bool grow(place_set *set) {
    int room = set->room ? 2 * set->room : 64;
    tide_place *places = td_realloc(set->places, (size_t)room * sizeof *places);
    if (!places)
        return false;
    set->places = places;
    set->room = room;
    return true;
}

static tide_place *place_of(place_set *set, const origin_of *of) {
    uint64_t hash = td_hash_text(of->name) * 31 + (of->line ? td_hash_text(of->line) : 0);
    intptr_t index = (intptr_t)td_map_find(&set->map, hash, is_wanted, &(const wanted){set, of});
    if (index)
        return &set->places[index - 1];
    if ((set->n == set->room && !grow(set)) ||
        td_map_add(&set->map, hash, (void *)(intptr_t)(set->n + 1)))
        return NULL;
    set->places[set->n] = (tide_place){.line = of->line, .name = of->name};
    return &set->places[set->n++];
}

static bool add(place_set *set, const tide_recording *r, const tide_event *e) {
    bool counts = is_call(e) || e->kind == TD_EVENT_KERNEL || e->kind == TD_EVENT_ALLOC;
    origin_of of = counts ? find_origin(r, e) : (origin_of){0};
    if (!of.name)
        return true;
    tide_place *place = place_of(set, &of);
    if (!place)
        return false;
    place->calls += of.itself;
    place->ns += e->kind == TD_EVENT_ALLOC ? 0 : e->self_ns;
    place->bytes += e->kind == TD_EVENT_ALLOC && e->bytes > 0 ? e->bytes : 0;
    return true;
}

static int by_time(const void *a, const void *b) {
    const tide_place *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : strcmp(x->name, y->name);
}

tide_place *tide_places(const tide_recording *r, int *count) {
    place_set set = {0};
    bool ok = grow(&set);
    *count = 0;
    for (int64_t k = 0; k < r->count && ok; k++)
        ok = add(&set, r, &r->events[k]);
    td_map_clear(&set.map);
    if (!ok) {
        td_free(set.places);
        td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    qsort(set.places, (size_t)set.n, sizeof *set.places, by_time);
    *count = set.n;
    return set.places;
}

/* What another thread works for, it does within a call of this moment. */
static origin_of find_call_at(const tide_recording *r, int64_t ns) {
    origin_of of = {0};
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        if (is_call(e) && e->start_ns <= ns && ns <= e->end_ns && (!of.name || e->line))
            of = find_origin(r, e);
    }
    return of;
}

tide_peak tide_find_peak(const tide_recording *r) {
    const tide_event *most = NULL;
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        if (e->kind == TD_EVENT_ALLOC && e->bytes > 0 && (!most || e->total > most->total))
            most = e;
    }
    if (!most)
        return (tide_peak){0};
    origin_of of = find_origin(r, most);
    if (!of.name)
        of = find_call_at(r, most->start_ns);
    return (tide_peak){most->total, of.line, of.name};
}
