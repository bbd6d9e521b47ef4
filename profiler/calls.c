/* calls.c: see calls.h. One pass over the events, which come parents first. */
#include "profiler/calls.h"

#include "engine/core/interrupt.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "profiler/loads.h"

#include <string.h>

/* Behind a call so much is its own: what comes later is another matter. */
enum { PAUSE_NS = 5000, POLL = 1 << 16, TEXT_WORDS = 64 };

/* What an event lies in: a call's index, or one of these. */
enum { NOWHERE = -1, IN_BACKWARD = -2 };

typedef struct finder {
    const tide_recording *recording;
    tide_calls *out;
    td_map sites, arguments, layouts;
    int32_t *place; /* by event: the call that it is or lies in */
    int32_t *span;  /* by event: the span that it is or lies in, from 1 */
    int32_t *maker; /* by sequence - least: the call whose node it is, from 1 */
    uint64_t least, most;
    bool in_pass; /* what came last is of a backward pass */
    tide_loads loads;
} finder;

/* All times are told on a clock that stands still while the process loads something. */
static int64_t moment(const finder *f, const tide_event *e, int64_t ns) {
    return tide_loads_moment(&f->loads, e->thread, ns);
}

/* ---- what is alike ---- */

typedef struct words_key {
    const int64_t *words;
    int n;
} words_key;

static bool is_shared(const void *entry, const void *key) {
    const tide_shared *shared = entry;
    const words_key *k = key;
    return shared->n == k->n && !memcmp(shared->words, k->words, (size_t)k->n * sizeof *k->words);
}

/* Room for twice as many when they are a power of two. */
static bool has_room(void **list, int64_t count, size_t size) {
    if (count & (count - 1) || (count > 0 && count < 16))
        return true;
    size_t room = count < 16 ? 16 : 2 * (size_t)count;
    void *grown = td_realloc(*list, room * size);
    if (grown)
        *list = grown;
    return grown != NULL;
}

/* The number of these words; 0: memory is out. */
static int32_t share(finder *f, td_map *map, tide_shared_list *list, const int64_t *words, int n) {
    words_key key = {words, n};
    uint64_t hash = td_hash_words(words, n);
    tide_shared *found = td_map_find(map, hash, is_shared, &key);
    if (found)
        return found->number;
    found = (tide_shared *)tide_words_new(&f->out->words, (size_t)n + 1);
    if (!found || !has_room((void **)&list->list, list->count, sizeof *list->list) ||
        td_map_add(map, hash, found))
        return 0;
    found->n = n;
    found->number = ++list->count;
    memcpy(found->words, words, (size_t)n * sizeof *words);
    list->list[list->count - 1] = found;
    return found->number;
}

static int32_t share_site(finder *f, const tide_event *e) {
    int64_t words[TEXT_WORDS] = {0};
    char *text = (char *)words;
    size_t most = sizeof words - 2, len = strlen(e->name);
    len = len < most / 2 ? len : most / 2;
    memcpy(text, e->name, len);
    size_t line = e->line ? strlen(e->line) : 0;
    line = line < most / 2 ? line : most / 2;
    memcpy(text + len + 1, e->line ? e->line : "", line);
    int n = (int)((len + line + 2 + sizeof *words - 1) / sizeof *words);
    return share(f, &f->sites, &f->out->sites, words, n);
}

/* ---- tensors ---- */

static bool add_tensor(finder *f, const tide_input *in) {
    tide_calls *out = f->out;
    int64_t words[1 + 2 * TD_MAX_DIMS];
    int n = 1;
    words[0] = in->dtype | in->ndim << 8 | (in->dense ? TIDE_INPUT_DENSE : 0) |
               (in->strides ? TIDE_INPUT_STRIDED : 0);
    for (int d = 0; d < in->ndim; d++)
        words[n++] = in->sizes[d];
    for (int d = 0; in->strides && d < in->ndim; d++)
        words[n++] = in->strides[d];
    int32_t layout = share(f, &f->layouts, &out->layouts, words, n);
    if (!layout || !has_room((void **)&out->seen, out->nseen, sizeof *out->seen))
        return false;
    out->seen[out->nseen++] = (tide_seen){.storage = in->known ? in->storage : 0,
                                          .offset = in->offset,
                                          .version = in->version,
                                          .layout = layout,
                                          .requires_grad = in->requires_grad};
    out->known |= in->known;
    return true;
}

static bool add_tensors(finder *f, const int64_t *at, int n) {
    for (int k = 0; k < n; k++) {
        tide_input in = tide_input_next(&at);
        if (!add_tensor(f, &in))
            return false;
    }
    return true;
}

/* ---- events ---- */

static bool add_call(finder *f, const tide_event *e, int32_t span) {
    tide_calls *out = f->out;
    int64_t n;
    const int64_t *arguments = tide_event_arguments(e, &n);
    tide_call call = {.start_ns = moment(f, e, e->start_ns),
                      .end_ns = moment(f, e, e->end_ns),
                      .cost_ns = tide_loads_duration(&f->loads, e),
                      .first = out->nseen,
                      .site = share_site(f, e),
                      .outer = span,
                      .ninputs = e->ninputs,
                      .nresults = e->nresults};
    if (arguments)
        call.arguments = share(f, &f->arguments, &out->arguments, arguments, (int)n);
    if (!call.site || (arguments && !call.arguments) || !add_tensors(f, e->inputs, e->ninputs) ||
        !add_tensors(f, e->results, e->nresults) ||
        !has_room((void **)&out->calls, out->ncalls, sizeof *out->calls))
        return false;
    out->calls[out->ncalls++] = call;
    return true;
}

static bool add_span(finder *f, const tide_event *e, int32_t outer) {
    tide_calls *out = f->out;
    if (!has_room((void **)&out->spans, out->nspans, sizeof *out->spans))
        return false;
    out->spans[out->nspans++] = (tide_span){e, out->ncalls, outer};
    return true;
}

/* The call that made the node of this number; NULL: none is known. */
static tide_call *maker_of(const finder *f, uint64_t sequence) {
    int32_t maker =
        f->maker && sequence >= f->least && sequence <= f->most ? f->maker[sequence - f->least] : 0;
    return maker ? &f->out->calls[maker - 1] : NULL;
}

/* A backward pass adds to gradients that are there between its nodes. */
static bool is_accumulation(const finder *f, const tide_event *e) {
    return f->in_pass && !strcmp(e->name, "add_");
}

static bool add_operator(finder *f, const tide_event *e, int64_t k, int32_t around) {
    if (around == NOWHERE && is_accumulation(f, e)) {
        f->place[k] = IN_BACKWARD;
        return true;
    }
    if (around == NOWHERE) {
        f->in_pass = false;
        if (!add_call(f, e, f->span[k]))
            return false;
        f->place[k] = (int32_t)f->out->ncalls - 1;
    }
    if (f->place[k] >= 0 && e->sequence) {
        f->out->calls[f->place[k]].recorded = true;
        if (f->maker)
            f->maker[e->sequence - f->least] = f->place[k] + 1;
    }
    return true;
}

static void add_backward(finder *f, const tide_event *e, int64_t k, int32_t around) {
    tide_call *maker = maker_of(f, e->sequence);
    if (maker) {
        maker->used = true;
        if (around == NOWHERE)
            maker->backward_ns += tide_loads_duration(&f->loads, e);
    }
    if (around != NOWHERE)
        return;
    f->place[k] = IN_BACKWARD;
    f->in_pass = true;
}

static bool add_event(finder *f, int64_t k) {
    const tide_event *e = &f->recording->events[k];
    int32_t around = e->parent >= 0 ? f->place[e->parent] : NOWHERE;
    f->place[k] = around;
    f->span[k] = e->parent >= 0 ? f->span[e->parent] : 0;
    if (e->kind == TD_EVENT_OP)
        return add_operator(f, e, k, around);
    if (e->kind == TD_EVENT_KERNEL) {
        if (around >= 0)
            f->out->calls[around].kernel_ns += e->self_ns;
        return true;
    }
    if (e->kind == TD_EVENT_BACKWARD) {
        add_backward(f, e, k, around);
        return true;
    }
    if (e->kind == TD_EVENT_ALLOC || e->kind == TD_EVENT_LOAD || tide_is_apart_kind(e->kind) ||
        around != NOWHERE)
        return true;
    if (!add_span(f, e, f->span[k]))
        return false;
    f->span[k] = (int32_t)f->out->nspans;
    return true;
}

/* What the script does between a call and what comes next belongs to the call, as far as it goes.
 */
static void add_pauses(finder *f) {
    const tide_recording *r = f->recording;
    int64_t last = -1, end = 0;
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        if (e->kind == TD_EVENT_ALLOC || e->kind == TD_EVENT_LOAD || tide_is_apart_kind(e->kind) ||
            (e->parent >= 0 && f->place[e->parent] != NOWHERE))
            continue;
        int64_t pause = moment(f, e, e->start_ns) - end;
        if (last >= 0 && pause > 0 && r->events[k - 1].thread == e->thread)
            f->out->calls[last].cost_ns += pause < PAUSE_NS ? pause : PAUSE_NS;
        last = e->kind == TD_EVENT_OP && f->place[k] >= 0 ? f->place[k] : -1;
        end = moment(f, e, e->end_ns);
    }
}

/* ---- all ---- */

/* Tables of what belongs to each event, and of the nodes' numbers. */
static bool make_tables(finder *f) {
    const tide_recording *r = f->recording;
    f->place = td_malloc((size_t)(r->count + 1) * sizeof *f->place);
    f->span = td_malloc((size_t)(r->count + 1) * sizeof *f->span);
    f->least = UINT64_MAX;
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        if (e->kind != TD_EVENT_OP || !e->sequence)
            continue;
        f->least = e->sequence < f->least ? e->sequence : f->least;
        f->most = e->sequence > f->most ? e->sequence : f->most;
    }
    bool any = f->most && f->most - f->least < UINT32_MAX / 4;
    if (any)
        f->maker = td_calloc((size_t)(f->most - f->least) + 1, sizeof *f->maker);
    return f->place && f->span && (!any || f->maker);
}

static td_status find_all(finder *f) {
    const tide_recording *r = f->recording;
    td_status status = tide_loads_find(r, &f->loads);
    if (status)
        return status;
    f->out->wall_ns -= f->loads.total_ns + r->kept_from_ns;
    if (!make_tables(f))
        return td_fail(TD_ENOMEM, "out of memory");
    for (int64_t k = 0; k < r->count; k++) {
        if (!add_event(f, k))
            return td_fail(TD_ENOMEM, "out of memory");
        if (k % POLL == 0 && td_interrupt_requested())
            return td_fail(TD_EINTR, "interrupted");
    }
    add_pauses(f);
    return TD_OK;
}

td_status tide_calls_find(const tide_recording *recording, tide_calls *out) {
    *out = (tide_calls){.wall_ns = recording->wall_ns};
    finder f = {.recording = recording, .out = out};
    td_status status = find_all(&f);
    td_map_clear(&f.sites);
    td_map_clear(&f.arguments);
    td_map_clear(&f.layouts);
    tide_loads_clear(&f.loads);
    td_free(f.place);
    td_free(f.span);
    td_free(f.maker);
    if (status)
        tide_calls_free(out);
    return status;
}

void tide_calls_free(tide_calls *calls) {
    td_free(calls->calls);
    td_free(calls->seen);
    td_free(calls->spans);
    td_free(calls->sites.list);
    td_free(calls->arguments.list);
    td_free(calls->layouts.list);
    tide_words_free(calls->words);
    *calls = (tide_calls){0};
}
