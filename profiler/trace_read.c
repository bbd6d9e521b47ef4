/* trace_read.c: the trace event format, into events of any order; trace_place.c puts them in order.
 * Whatever the file says: what isn't known is skipped, what can't be is refused with its place.
 */
#include "profiler/trace_read.h"

#include "engine/core/activity.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/io/json.h"
#include "profiler/chrome_trace.h"
#include "profiler/trace_place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { TENSORS = 64, TEXT = 512 };

#define LARGEST ((size_t)4 << 30) /* bytes of text: what unpacks to more is no trace */

/* A string of the text, or a number as it stands there. */
typedef struct text {
    const char *at;
    size_t len;
} text;

/* What an event of the file says. */
typedef struct slice {
    char ph;
    text name, cat, pid, tid, id, line, label; /* label: of metadata */
    int64_t ts, dur, bytes, total;
    bool has_ts, has_dur;
    uint64_t sequence;
    int64_t device, stream; /* below 0: not said */
    int64_t correlation;    /* 0: none */
    int64_t group, order;   /* of a collective: its group, and its number within; 0: none */
    int64_t external;       /* joins what devices did to who asked for it; 0: nothing */
    int ninputs;
    int ndims[TENSORS], argument[TENSORS]; /* of which argument it is, from 0 */
    int64_t sizes[TENSORS][TD_MAX_DIMS];
    int ntypes;
    text types[TENSORS];
} slice;

/* Where a slice begins (B) or ends (E): of a thread, or asynchronous (b, e). */
typedef struct edge {
    tide_event event; /* its start is the moment */
    text id;
    int64_t number; /* of the event in the file */
    int64_t outer;  /* the index of what was open around it; -1: nothing */
    bool begins, async;
} edge;

typedef struct reader {
    td_json json;
    tide_recording *out;
    int64_t room;
    int64_t number; /* of the event, from 1 */
    int rooms;      /* of tracks */
    text *keys;     /* what each track goes by */
    td_map tracks;  /* their numbers, from 1 */
    td_map names;   /* texts that events have */
    edge *edges;
    int64_t nedges, edge_room;
    slice s;
} reader;

static bool is(text t, const char *what) {
    return t.len == strlen(what) && memcmp(t.at, what, t.len) == 0;
}

static bool begins(text t, const char *what) {
    size_t n = strlen(what);
    return t.len >= n && memcmp(t.at, what, n) == 0;
}

static uint64_t hash_of(text t) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (size_t k = 0; k < t.len; k++)
        hash = (hash ^ (unsigned char)t.at[k]) * 0x100000001B3u;
    return hash;
}

static td_status out_of_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory");
}

/* ---- values ---- */

/* A string or a number as text; of anything else nothing. */
static td_status read_text(td_json *json, text *t) {
    td_json_number number;
    td_json_kind kind = td_json_peek(json);
    if (kind == TD_JSON_STRING)
        return td_json_read_string(json, &t->at, &t->len);
    if (kind != TD_JSON_NUMBER)
        return td_json_skip(json);
    t->at = json->at;
    td_status status = td_json_read_number(json, &number);
    t->len = (size_t)(json->at - t->at);
    return status;
}

/* A number, which may stand in a string; `at` and `end`: its text. False for what is none. */
static td_status read_number(td_json *json, td_json_number *number, text *t, bool *is) {
    td_json_kind kind = td_json_peek(json);
    td_json inner;
    td_status status;
    *is = kind == TD_JSON_NUMBER;
    t->at = json->at;
    if (*is) {
        status = td_json_read_number(json, number);
        t->len = (size_t)(json->at - t->at);
        return status;
    }
    if (kind != TD_JSON_STRING)
        return td_json_skip(json);
    status = td_json_read_string(json, &t->at, &t->len);
    if (status)
        return status;
    char *copy = json->start + (t->at - json->start);
    copy[t->len] = '\0'; /* where the string's quote was, or what an escape left over */
    td_json_begin(&inner, copy, t->len);
    *is = td_json_peek(&inner) == TD_JSON_NUMBER && td_json_read_number(&inner, number) == TD_OK &&
          td_json_finish(&inner) == TD_OK;
    return TD_OK;
}

static td_status read_int(td_json *json, int64_t *value) {
    td_json_number number;
    text t;
    bool is;
    td_status status = read_number(json, &number, &t, &is);
    if (status == TD_OK && is && number.is_int)
        *value = number.i;
    return status;
}

/* Microseconds as nanoseconds: digit by digit, since times since 1970 are longer than a double. */
static td_status read_us(td_json *json, int64_t *ns, bool *given) {
    td_json_number number;
    text t;
    bool is;
    td_status status = read_number(json, &number, &t, &is);
    if (status || !is)
        return status;
    const char *at = t.at, *end = t.at + t.len;
    while (*at != '-' && !(*at >= '0' && *at <= '9')) /* blanks of a string */
        at++;
    while (end > at && !(end[-1] >= '0' && end[-1] <= '9'))
        end--;
    if (!(number.d >= -4e15 && number.d <= 4e15))
        return td_fail(TD_EVALUE, "a time of %.6g µs", number.d);
    bool negative = *at == '-',
         exact = !memchr(at, 'e', (size_t)(end - at)) && !memchr(at, 'E', (size_t)(end - at));
    int64_t value = 0;
    int decimals = -1;
    *given = true;
    if (!exact) { /* digits alone may be any number */
        *ns = (int64_t)(number.d * 1e3);
        return TD_OK;
    }
    for (at += negative; at < end && decimals < 3; at++) {
        if (*at == '.') {
            decimals = 0;
            continue;
        }
        value = value * 10 + (*at - '0');
        decimals += decimals >= 0;
    }
    for (decimals = decimals < 0 ? 0 : decimals; decimals < 3; decimals++)
        value *= 10;
    *ns = negative ? -value : value;
    return TD_OK;
}

/* ---- arguments ---- */

/* [2, 3], or lists of these, of a list of tensors; an empty one is a tensor without dims, or what
 * is none. */
static td_status read_dims(td_json *json, slice *s, int depth, int argument) {
    int at = s->ninputs, ndim = 0;
    bool more, lists = false;
    td_status status = td_json_open(json, TD_JSON_ARRAY);
    while (status == TD_OK && (status = td_json_next(json, TD_JSON_ARRAY, &more)) == TD_OK &&
           more) {
        if (td_json_peek(json) == TD_JSON_ARRAY && depth < 3) {
            lists = true;
            status = read_dims(json, s, depth + 1, argument);
            argument += !depth;
            continue;
        }
        int64_t size = -1;
        status = read_int(json, &size);
        if (ndim < TD_MAX_DIMS && at < TENSORS && size >= 0)
            s->sizes[at][ndim++] = size;
    }
    if (!lists && at < TENSORS && depth) {
        s->argument[at] = argument;
        s->ndims[s->ninputs++] = ndim;
    }
    return status;
}

static td_status read_types(td_json *json, slice *s) {
    bool more;
    td_status status = td_json_open(json, TD_JSON_ARRAY);
    while (status == TD_OK && (status = td_json_next(json, TD_JSON_ARRAY, &more)) == TD_OK &&
           more) {
        text t = {"", 0};
        status = read_text(json, &t);
        if (s->ntypes < TENSORS)
            s->types[s->ntypes++] = t;
    }
    return status;
}

static td_status read_argument(td_json *json, slice *s, text key) {
    bool list = td_json_peek(json) == TD_JSON_ARRAY;
    int64_t number = 0;
    td_status status;
    if (list && is(key, "Input Dims"))
        return read_dims(json, s, 0, 0);
    if (list && is(key, "Input type"))
        return read_types(json, s);
    if (is(key, "line"))
        return read_text(json, &s->line);
    if (is(key, "name"))
        return read_text(json, &s->label);
    if (is(key, "External id"))
        return read_int(json, &s->external);
    if (is(key, "device"))
        return read_int(json, &s->device);
    if (is(key, "stream"))
        return read_int(json, &s->stream);
    if (is(key, "correlation"))
        return read_int(json, &s->correlation);
    if (is(key, "group"))
        return read_int(json, &s->group);
    if (is(key, "number"))
        return read_int(json, &s->order);
    if (is(key, "Bytes") || is(key, "bytes"))
        return read_int(json, &s->bytes);
    if (is(key, "Total Allocated"))
        return read_int(json, &s->total);
    if (!is(key, "Sequence number"))
        return td_json_skip(json);
    status = read_int(json, &number);
    s->sequence = number > 0 ? (uint64_t)number : 0;
    return status;
}

typedef td_status (*field_reader)(td_json *json, slice *s, text key);

static td_status read_object(td_json *json, slice *s, field_reader read) {
    bool more;
    td_status status = td_json_open(json, TD_JSON_OBJECT);
    while (status == TD_OK && (status = td_json_next(json, TD_JSON_OBJECT, &more)) == TD_OK &&
           more) {
        text key;
        status = td_json_read_key(json, &key.at, &key.len);
        if (status == TD_OK)
            status = read(json, s, key);
    }
    return status;
}

static td_status read_arguments(td_json *json, slice *s) {
    return td_json_peek(json) == TD_JSON_OBJECT ? read_object(json, s, read_argument)
                                                : td_json_skip(json);
}

static td_status read_field(td_json *json, slice *s, text key) {
    text ph = {"", 0};
    if (is(key, "ph")) {
        td_status status = read_text(json, &ph);
        s->ph = ph.len == 1 ? *ph.at : '\0';
        return status;
    }
    if (is(key, "ts"))
        return read_us(json, &s->ts, &s->has_ts);
    if (is(key, "dur"))
        return read_us(json, &s->dur, &s->has_dur);
    if (is(key, "args"))
        return read_arguments(json, s);
    const struct {
        const char *key;
        text *to;
    } texts[] = {
        {"name", &s->name}, {"cat", &s->cat}, {"pid", &s->pid}, {"tid", &s->tid}, {"id", &s->id}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (is(key, texts[k].key))
            return read_text(json, texts[k].to);
    return td_json_skip(json);
}

static td_status read_slice(td_json *json, slice *s) {
    static const text none = {"", 0};
    s->ph = '\0';
    s->name = s->cat = s->pid = s->tid = s->id = s->line = s->label = none;
    s->ts = s->dur = s->bytes = s->total = 0;
    s->has_ts = s->has_dur = false;
    s->sequence = 0;
    s->external = s->correlation = s->group = s->order = 0;
    s->device = s->stream = -1;
    s->ninputs = s->ntypes = 0;
    return read_object(json, s, read_field);
}

/* ---- what becomes of it ---- */

static bool same_text(const void *entry, const void *key) {
    const text *t = key;
    return strlen(entry) == t->len && memcmp(entry, t->at, t->len) == 0;
}

/* A copy that events share, of at most TEXT bytes; NULL: memory is out. */
static const char *intern(reader *r, text t) {
    const char *nul = memchr(t.at, '\0', t.len);
    t.len = nul ? (size_t)(nul - t.at) : t.len;
    if (t.len > TEXT)
        for (t.len = TEXT; t.len && (t.at[t.len] & 0xC0) == 0x80;)
            t.len--;
    uint64_t hash = hash_of(t);
    const char *found = td_map_find(&r->names, hash, same_text, &t);
    if (found)
        return found;
    found = tide_words_text(&r->out->words, t.at, t.len);
    return found && td_map_add(&r->names, hash, (void *)(uintptr_t)found) == TD_OK ? found : NULL;
}

static bool same_track(const void *place, const void *key) {
    const struct {
        const reader *r;
        text key;
    } *w = key;
    text t = w->r->keys[(intptr_t)place - 1];
    return t.len == w->key.len && memcmp(t.at, w->key.at, t.len) == 0;
}

static bool grow_tracks(reader *r) {
    int room = r->rooms ? 2 * r->rooms : 16;
    text *keys = td_realloc(r->keys, (size_t)room * sizeof *keys);
    r->keys = keys ? keys : r->keys;
    tide_track *tracks = keys ? td_realloc(r->out->tracks, (size_t)room * sizeof *tracks) : NULL;
    r->out->tracks = tracks ? tracks : r->out->tracks;
    r->rooms = tracks ? room : r->rooms;
    return tracks != NULL;
}

static int64_t number_of(text t) {
    int64_t n = 0;
    for (size_t k = 0; k < t.len && k < 18 && t.at[k] >= '0' && t.at[k] <= '9'; k++)
        n = n * 10 + (t.at[k] - '0');
    return n;
}

/* The number of the thread's track, from 1, which is made where there is none. */
static td_status find_track(reader *r, text kind, int *track) {
    char buffer[3 * 64 + 8], name[80];
    const slice *s = &r->s;
    int n = snprintf(buffer, sizeof buffer, "%.*s/%.*s/%.*s", (int)(kind.len < 64 ? kind.len : 64),
                     kind.at, (int)(s->pid.len < 64 ? s->pid.len : 64), s->pid.at,
                     (int)(s->tid.len < 64 ? s->tid.len : 64), s->tid.at);
    struct {
        const reader *r;
        text key;
    } w = {r, {buffer, (size_t)n}};
    uint64_t hash = hash_of(w.key);
    *track = (int)(intptr_t)td_map_find(&r->tracks, hash, same_track, &w);
    if (*track)
        return TD_OK;
    int at = r->out->ntracks;
    if (at == INT16_MAX)
        return td_fail(TD_EVALUE, "more than %d threads", INT16_MAX);
    snprintf(name, sizeof name, "%s%.*s", kind.len ? "async " : "thread ",
             (int)(s->tid.len < 64 ? s->tid.len : 64), s->tid.at);
    const char *key = tide_words_text(&r->out->words, buffer, (size_t)n);
    const char *called = tide_words_text(&r->out->words, name, strlen(name));
    if (!key || !called || (at == r->rooms && !grow_tracks(r)) ||
        td_map_add(&r->tracks, hash, (void *)(intptr_t)(at + 1)))
        return out_of_memory();
    r->keys[at] = (text){key, (size_t)n};
    r->out->tracks[at] = (tide_track){called, number_of(s->pid), number_of(s->tid)};
    *track = ++r->out->ntracks;
    return TD_OK;
}

static int kind_of(const slice *s) {
    static const struct {
        const char *category;
        int kind;
    } others[] = {{"cuda_driver", TIDE_EVENT_RUNTIME},
                  {"python_function", TIDE_EVENT_FUNCTION},
                  {"step", TIDE_EVENT_STEP},
                  {"gpu_user_annotation", TD_EVENT_RANGE}};
    if (begins(s->name, "autograd::engine::evaluate_function"))
        return TD_EVENT_BACKWARD;
    if (is(s->cat, "user_annotation") && begins(s->name, "ProfilerStep#"))
        return TIDE_EVENT_STEP;
    if (is(s->cat, "user_annotation") && begins(s->name, "Optimizer.step"))
        return TIDE_EVENT_OPTIMIZER;
    if (begins(s->name, "enumerate(DataLoader)"))
        return TIDE_EVENT_DATA;
    for (int k = 0; k < TIDE_EVENT_KINDS; k++)
        if (is(s->cat, tide_event_category(k)))
            return k;
    for (size_t k = 0; k < sizeof others / sizeof *others; k++)
        if (is(s->cat, others[k].category))
            return others[k].kind;
    return TD_EVENT_RANGE;
}

/* Ours by their names, PyTorch's by C++'s; TD_DTYPE_NONE: no tensor. */
static td_dtype dtype_of(text t) {
    static const struct {
        const char *name;
        td_dtype dtype;
    } theirs[] = {{"float", TD_F32},
                  {"double", TD_F64},
                  {"long int", TD_I64},
                  {"long", TD_I64},
                  {"int", TD_I32},
                  {"short", TD_I16},
                  {"short int", TD_I16},
                  {"signed char", TD_I8},
                  {"unsigned char", TD_U8},
                  {"c10::Half", TD_F16},
                  {"c10::BFloat16", TD_BF16},
                  {"bool", TD_BOOL}};
    char name[32];
    for (size_t k = 0; k < sizeof theirs / sizeof *theirs; k++)
        if (is(t, theirs[k].name))
            return theirs[k].dtype;
    if (t.len >= sizeof name)
        return TD_DTYPE_NONE;
    memcpy(name, t.at, t.len);
    name[t.len] = '\0';
    return td_dtype_find(name);
}

static td_status keep_inputs(reader *r, tide_event *e) {
    const slice *s = &r->s;
    int64_t words[TIDE_MAX_INPUTS * (1 + TD_MAX_DIMS)];
    size_t used = 0;
    for (int k = 0; k < s->ninputs && e->ninputs < TIDE_MAX_INPUTS; k++) {
        int at = s->argument[k];
        td_dtype dtype = at < s->ntypes ? dtype_of(s->types[at]) : TD_DTYPE_NONE;
        if (dtype == TD_DTYPE_NONE && at < s->ntypes && !is(s->types[at], "TensorList") &&
            !is(s->types[at], TIDE_DTYPE_UNKNOWN))
            continue;
        words[used++] = dtype | (int64_t)s->ndims[k] << 8;
        memcpy(&words[used], s->sizes[k], (size_t)s->ndims[k] * sizeof *words);
        used += (size_t)s->ndims[k];
        e->ninputs++;
    }
    int64_t *kept = used ? tide_words_new(&r->out->words, used) : NULL;
    if (used && !kept)
        return out_of_memory();
    e->inputs = kept ? memcpy(kept, words, used * sizeof *kept) : NULL;
    return TD_OK;
}

static td_status add(reader *r, const tide_event *e) {
    tide_recording *out = r->out;
    if (out->count == r->room) {
        int64_t room = r->room ? 2 * r->room : 1024;
        tide_event *events =
            room < INT32_MAX ? td_realloc(out->events, (size_t)room * sizeof *events) : NULL;
        if (!events)
            return out_of_memory();
        out->events = events;
        r->room = room;
    }
    out->events[out->count++] = *e;
    return TD_OK;
}

/* The event that the slice is, on its track; without an end yet. */
static td_status make(reader *r, text track_kind, tide_event *e) {
    const slice *s = &r->s;
    int track;
    *e =
        (tide_event){.name = intern(r, s->name),
                     .kind = (uint8_t)kind_of(s),
                     .sequence = s->sequence,
                     .step = s->external > 0 && s->external <= INT32_MAX ? (int32_t)s->external : 0,
                     .start_ns = s->ts};
    if (tide_is_apart_kind(e->kind))
        e->bytes = s->bytes;
    if (tide_is_apart_kind(e->kind) || e->kind == TIDE_EVENT_RUNTIME)
        e->correlation = s->correlation > 0 ? s->correlation : 0;
    if (e->kind == TIDE_EVENT_COLLECTIVE)
        e->correlation = (int64_t)td_collective_number((uint32_t)s->group, (uint32_t)s->order);
    if (s->line.len && !(e->line = intern(r, s->line)))
        return out_of_memory();
    td_status status = e->name ? find_track(r, track_kind, &track) : out_of_memory();
    if (status)
        return status;
    e->thread = (int16_t)track;
    if (tide_is_apart_kind(e->kind) && s->device >= 0)
        r->out->tracks[track - 1].process = s->device;
    if (tide_is_apart_kind(e->kind) && s->stream >= 0)
        r->out->tracks[track - 1].thread = s->stream;
    return tide_is_apart_kind(e->kind) ? TD_OK : keep_inputs(r, e);
}

static const char incomplete[] = "the file has slices without a time, which are left out, or "
                                 "without a duration, which count for 1 ns";

static td_status add_complete(reader *r) {
    tide_event e;
    if (is(r->s.cat, "Trace")) /* Kineto's slice of the whole recording */
        return TD_OK;
    if (!r->s.has_ts || !r->s.has_dur || r->s.dur < 0)
        r->out->note = incomplete;
    if (!r->s.has_ts)
        return TD_OK;
    td_status status = make(r, (text){"", 0}, &e);
    e.end_ns = e.start_ns + (r->s.has_dur && r->s.dur > 0 ? r->s.dur : 1);
    return status ? status : add(r, &e);
}

static td_status add_memory(reader *r) {
    tide_event e;
    if (!is(r->s.name, "[memory]") || !r->s.has_ts)
        return TD_OK;
    td_status status = make(r, (text){"", 0}, &e);
    e.kind = TD_EVENT_ALLOC;
    e.end_ns = e.start_ns;
    e.bytes = r->s.bytes;
    e.total = r->s.total;
    return status ? status : add(r, &e);
}

static td_status add_edge(reader *r, bool begins, bool async) {
    if (!r->s.has_ts) {
        r->out->note = incomplete;
        return TD_OK;
    }
    if (r->nedges == r->edge_room) {
        int64_t room = r->edge_room ? 2 * r->edge_room : 256;
        edge *edges = td_realloc(r->edges, (size_t)room * sizeof *edges);
        if (!edges)
            return out_of_memory();
        r->edges = edges;
        r->edge_room = room;
    }
    edge *to = &r->edges[r->nedges++];
    *to = (edge){.id = async ? r->s.id : (text){"", 0},
                 .number = r->number,
                 .begins = begins,
                 .async = async};
    return make(r, async ? r->s.cat : (text){"", 0}, &to->event);
}

/* By track, then by time: a file may hold them in any order. */
static int by_moment(const void *a, const void *b) {
    const edge *x = a, *y = b;
    if (x->event.thread != y->event.thread)
        return x->event.thread < y->event.thread ? -1 : 1;
    if (x->event.start_ns != y->event.start_ns)
        return x->event.start_ns < y->event.start_ns ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static bool belongs(const edge *begin, const edge *end) {
    text a = begin->id, b = end->id;
    return !begin->async || (a.len == b.len && !memcmp(a.at, b.at, a.len) &&
                             !strcmp(begin->event.name, end->event.name));
}

/* The slice that begins there, until `end_ns` or for a moment. */
static td_status add_slice(reader *r, edge *begin, int64_t end_ns) {
    begin->event.end_ns = end_ns > begin->event.start_ns ? end_ns : begin->event.start_ns + 1;
    return add(r, &begin->event);
}

/* End the last that began on the track, or, of asynchronous ones, under the same id and name. Ends
 * without a beginning are of slices that began before the trace. */
static td_status end_slice(reader *r, int64_t *open, const edge *end) {
    for (int64_t *at = open; *at >= 0; at = &r->edges[*at].outer) {
        edge *begin = &r->edges[*at];
        if (!belongs(begin, end))
            continue;
        *at = begin->outer;
        return add_slice(r, begin, end->event.start_ns);
    }
    return TD_OK;
}

/* Slices of which the file holds begin and end apart; what has no end lasts as long as the trace.
 */
static td_status join_edges(reader *r) {
    int64_t open = -1, last = INT64_MIN;
    td_status status = TD_OK;
    for (int64_t k = 0; k < r->out->count; k++)
        last = r->out->events[k].end_ns > last ? r->out->events[k].end_ns : last;
    for (int64_t k = 0; k < r->nedges; k++)
        last = r->edges[k].event.start_ns > last ? r->edges[k].event.start_ns : last;
    if (r->nedges)
        qsort(r->edges, (size_t)r->nedges, sizeof *r->edges, by_moment);
    for (int64_t k = 0; k < r->nedges && status == TD_OK; k++) {
        edge *e = &r->edges[k];
        if (e->begins) {
            e->outer = open;
            open = k;
        } else {
            status = end_slice(r, &open, e);
        }
        bool ends = k + 1 == r->nedges || r->edges[k + 1].event.thread != e->event.thread;
        for (; ends && open >= 0 && status == TD_OK; open = r->edges[open].outer)
            status = add_slice(r, &r->edges[open], last);
    }
    return status;
}

static td_status name_track(reader *r) {
    int track;
    if (!is(r->s.name, "thread_name") || !r->s.label.len)
        return TD_OK;
    td_status status = find_track(r, (text){"", 0}, &track);
    const char *name = status ? NULL : intern(r, r->s.label);
    if (!name)
        return status ? status : out_of_memory();
    r->out->tracks[track - 1].name = name;
    return TD_OK;
}

static td_status take(reader *r) {
    switch (r->s.ph) {
    case 'X':
        return add_complete(r);
    case 'B':
    case 'b':
        return add_edge(r, true, r->s.ph == 'b');
    case 'E':
    case 'e':
        return add_edge(r, false, r->s.ph == 'e');
    case 'i':
    case 'I':
        return add_memory(r);
    case 'M':
        return name_track(r);
    default: /* counters, arrows, samples */
        return TD_OK;
    }
}

/* ---- the file ---- */

static td_status read_events(reader *r) {
    bool more;
    td_status status = td_json_open(&r->json, TD_JSON_ARRAY);
    while (status == TD_OK && (status = td_json_next(&r->json, TD_JSON_ARRAY, &more)) == TD_OK &&
           more) {
        r->number++;
        status = read_slice(&r->json, &r->s);
        if (status == TD_OK)
            status = take(r);
    }
    return status;
}

static td_status read_trace(reader *r) {
    bool more, found = false;
    if (td_json_peek(&r->json) == TD_JSON_ARRAY) {
        td_status status = read_events(r);
        return status ? status : td_json_finish(&r->json);
    }
    td_status status = td_json_open(&r->json, TD_JSON_OBJECT);
    while (status == TD_OK && (status = td_json_next(&r->json, TD_JSON_OBJECT, &more)) == TD_OK &&
           more) {
        text key;
        status = td_json_read_key(&r->json, &key.at, &key.len);
        if (status == TD_OK && is(key, "traceEvents") && !found) {
            found = true;
            status = read_events(r);
        } else if (status == TD_OK) {
            status = td_json_skip(&r->json);
        }
    }
    if (status == TD_OK)
        status = td_json_finish(&r->json);
    return status || found ? status : td_fail(TD_EVALUE, "it has no traceEvents");
}

/* All of the file, unpacked where it is packed, with a NUL behind it. */
static td_status read_file(gzFile gz, char **bytes, size_t *len) {
    size_t room = (size_t)1 << 20;
    char *grown = td_malloc(room + 1);
    int n = 0;
    *len = 0;
    while (grown) {
        *bytes = grown;
        n = gzread(gz, grown + *len, (unsigned)(room - *len < INT_MAX ? room - *len : INT_MAX));
        if (n <= 0)
            break;
        *len += (size_t)n;
        if (*len == room && room >= LARGEST)
            return td_fail(TD_EVALUE, "it is larger than 4 GiB");
        if (*len == room)
            grown = td_realloc(*bytes, (room *= 2) + 1);
    }
    if (!grown)
        return out_of_memory();
    (*bytes)[*len] = '\0';
    int error = Z_OK;
    (void)gzerror(gz, &error);
    if (error == Z_ERRNO)
        return td_fail(TD_EIO, "%s", strerror(errno));
    if (n < 0 || error != Z_OK)
        return td_fail(TD_EVALUE, "the packed file is cut short or damaged");
    return *len ? TD_OK : td_fail(TD_EVALUE, "the file is empty");
}

static void reader_clear(reader *r) {
    td_free(r->edges);
    td_map_clear(&r->tracks);
    td_map_clear(&r->names);
    td_free(r->keys);
}

static td_status read_text_of(char *bytes, size_t len, tide_recording *out) {
    reader *r = td_calloc(1, sizeof *r);
    if (!r)
        return out_of_memory();
    r->out = out;
    td_json_begin(&r->json, bytes, len);
    td_status status = read_trace(r);
    if (status == TD_OK)
        status = join_edges(r);
    if (status == TD_EVALUE && r->number) {
        char why[256];
        snprintf(why, sizeof why, "%s", td_error_message());
        status = td_fail(TD_EVALUE, "event %lld: %s", (long long)r->number, why);
    }
    reader_clear(r);
    td_free(r);
    return status ? status : tide_place_events(out);
}

td_status tide_read_trace(const char *path, tide_recording *out) {
    char *bytes = NULL, why[320];
    size_t len = 0;
    *out = (tide_recording){0};
    gzFile gz = gzopen(path, "rb");
    if (!gz)
        return td_fail(TD_EIO, "%s: %s", path, strerror(errno ? errno : ENOMEM));
    td_status status = read_file(gz, &bytes, &len);
    gzclose(gz);
    if (status == TD_OK)
        status = read_text_of(bytes, len, out);
    td_free(bytes);
    if (status == TD_OK)
        return TD_OK;
    tide_recording_free(out);
    snprintf(why, sizeof why, "%s", td_error_message());
    return status == TD_EINTR || status == TD_ENOMEM ? status
                                                     : td_fail(status, "%s: %s", path, why);
}
