/* device_rows.c: a log's activities as events: each stream's on a row of its own, what overlaps on
 * further ones, each with the event that asked for it. */
#include "profiler/device_rows.h"

#include "engine/core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An activity in the recording's time. */
typedef struct placed {
    const tide_activity *of;
    int64_t start, end; /* ns since the recording began */
    int row;            /* from 0 */
} placed;

typedef struct rows {
    const tide_device_log *log;
    const tide_log_frame *frame;
    tide_recording *out;
    placed *list;
    int64_t count;
    int64_t *first; /* of each lane's events, and behind the last */
    int nrows;
    int64_t *free_at; /* when each row's last event ends */
    td_stream *of;    /* which stream's each row is */
    int room;
} rows;

/* ---- time ---- */

static uint64_t to_ticks(const tide_device_log *l, td_device_type type, uint64_t ns) {
    const tide_sighting *a = &l->begin[type], *b = &l->end[type];
    if (b->ns <= a->ns)
        return a->ticks;
    double rate = (double)(b->ticks - a->ticks) / (double)(b->ns - a->ns);
    int64_t since = (int64_t)(ns - a->ns); /* a double holds that, and no time since 1970 */
    return a->ticks + (uint64_t)(int64_t)((double)since * rate);
}

static int64_t to_ns(const tide_log_frame *f, uint64_t ticks) {
    return ticks > f->origin ? (int64_t)((double)(ticks - f->origin) * f->tick_ns) : 0;
}

/* Does the recording take it? What was done before it began or has gone with old events isn't. */
static bool place(const rows *r, const tide_activity *a, placed *to) {
    td_device_type type = (td_device_type)a->track.device.type;
    uint64_t start = to_ticks(r->log, type, a->start_ns), end = to_ticks(r->log, type, a->end_ns);
    if (end <= r->frame->origin || end <= r->frame->cut)
        return false;
    end = end < r->frame->end ? end : r->frame->end; /* clocks are read a little apart */
    start = start < end ? start : end;
    bool ours = !r->log->shared || !a->thread;
    for (int k = 0; k < r->frame->nlanes && !ours; k++)
        ours = r->frame->threads[k] == a->thread;
    *to = (placed){a, to_ns(r->frame, start), to_ns(r->frame, end), 0};
    if (to->end <= to->start)
        to->start = to->end - 1;
    return ours;
}

/* ---- rows ---- */

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int64_t stream_number(td_stream s) {
    return (int64_t)s.device.type << 32 | (int64_t)s.device.index << 16 | s.id;
}

static int by_stream(const void *a, const void *b) {
    const placed *x = a, *y = b;
    int order = compare(stream_number(x->of->track), stream_number(y->of->track));
    order = order ? order : compare(x->start, y->start);
    return order ? order : compare(x->end, y->end);
}

static int by_row(const void *a, const void *b) {
    const placed *x = a, *y = b;
    int order = x->row - y->row;
    return order ? order : compare(x->start, y->start);
}

static bool add_row(rows *r, td_stream of) {
    if (r->nrows == r->room) {
        int room = r->room ? 2 * r->room : 16;
        int64_t *free_at = td_realloc(r->free_at, (size_t)room * sizeof *free_at);
        r->free_at = free_at ? free_at : r->free_at;
        td_stream *streams = free_at ? td_realloc(r->of, (size_t)room * sizeof *streams) : NULL;
        if (!streams)
            return false;
        r->of = streams;
        r->room = room;
    }
    r->free_at[r->nrows] = 0;
    r->of[r->nrows++] = of;
    return true;
}

/* Each goes to the first row of its stream that is free when it begins. */
static bool find_rows(rows *r) {
    int64_t stream = -1;
    int group = 0;
    for (int64_t k = 0; k < r->count; k++) {
        placed *p = &r->list[k];
        if (stream_number(p->of->track) != stream)
            group = r->nrows;
        stream = stream_number(p->of->track);
        p->row = group;
        while (p->row < r->nrows && r->free_at[p->row] > p->start)
            p->row++;
        if (p->row == r->nrows && !add_row(r, p->of->track))
            return false;
        r->free_at[p->row] = p->end;
    }
    return true;
}

/* "cuda:0 stream 3", "compiler of code", "transfers", and of further rows of a stream which. */
static void name_row(const rows *r, int row, char *text, size_t size) {
    td_stream s = r->of[row];
    int turn = 1;
    for (int k = row; k > 0 && stream_number(r->of[k - 1]) == stream_number(s); k--)
        turn++;
    static const char *const compilers[TD_COMPILERS] = {
        [TD_COMPILER_CODE] = "compiler of code", [TD_COMPILER_GRAPHS] = "compiler of graphs"};
    int used = s.device.type != TD_CPU
                   ? snprintf(text, size, "%s stream %d", td_device_name(s.device), s.id)
               : s.id < TD_COMPILERS ? snprintf(text, size, "%s", compilers[s.id])
               : s.id > TD_COMPILERS
                   ? snprintf(text, size, "transfers of group %d", s.id - TD_COMPILERS)
                   : snprintf(text, size, "transfers");
    if (turn > 1)
        snprintf(text + used, size - (size_t)used, " (%d)", turn);
}

static bool name_tracks(const rows *r) {
    int n = r->frame->nlanes + r->nrows;
    char text[80];
    tide_track *tracks = td_calloc((size_t)n, sizeof *tracks);
    r->out->tracks = tracks;
    r->out->ntracks = tracks ? n : 0;
    for (int k = 0; tracks && k < n; k++) {
        int row = k - r->frame->nlanes;
        if (row < 0)
            snprintf(text, sizeof text, "thread %d", k + 1);
        else
            name_row(r, row, text, sizeof text);
        if (row >= 0) {
            tracks[k].process = r->of[row].device.index;
            tracks[k].thread = r->of[row].id;
        }
        tracks[k].name = tide_words_text(&r->out->words, text, strlen(text));
        if (!tracks[k].name)
            return false;
    }
    return tracks != NULL;
}

/* ---- who asked for it ---- */

/* The innermost event of the lane around a moment that is no kernel of the host's; -1: none. */
static int64_t around(const rows *r, int lane, int64_t ns) {
    const tide_event *events = r->out->events;
    int64_t low = r->first[lane], high = r->first[lane + 1];
    while (low < high) { /* the last that began by then lies before low */
        int64_t mid = low + (high - low) / 2;
        if (events[mid].start_ns <= ns)
            low = mid + 1;
        else
            high = mid;
    }
    int64_t at = low - 1;
    if (at < r->first[lane])
        return -1;
    while (at >= 0 && (events[at].end_ns <= ns || events[at].kind == TD_EVENT_ALLOC ||
                       events[at].kind == TD_EVENT_KERNEL))
        at = events[at].parent;
    return at;
}

static int64_t launcher_of(const rows *r, const tide_activity *a) {
    uint64_t ticks = to_ticks(r->log, (td_device_type)a->track.device.type, a->launch_ns);
    int64_t found = -1;
    if (!a->launch_ns || ticks < r->frame->origin)
        return -1;
    for (int k = 0; k < r->frame->nlanes && found < 0; k++)
        if (r->frame->threads[k] == a->thread)
            found = around(r, k, to_ns(r->frame, ticks));
    return found;
}

static void find_lanes(rows *r) {
    int64_t at = 0;
    for (int k = 0; k < r->frame->nlanes; k++) {
        r->first[k] = at;
        while (at < r->out->count && r->out->events[at].thread == k + 1)
            at++;
    }
    r->first[r->frame->nlanes] = at;
}

/* ---- events ---- */

static tide_event event_of(const rows *r, const placed *p) {
    static const uint8_t kinds[] = {[TD_ACTIVITY_KERNEL] = TD_EVENT_ACTIVITY,
                                    [TD_ACTIVITY_COPY] = TIDE_EVENT_TRANSFER,
                                    [TD_ACTIVITY_SET] = TIDE_EVENT_SET,
                                    [TD_ACTIVITY_COMPILE] = TIDE_EVENT_COMPILE,
                                    [TD_ACTIVITY_COLLECTIVE] = TIDE_EVENT_COLLECTIVE};
    int64_t launcher = launcher_of(r, p->of);
    bool device = p->of->kind != TD_ACTIVITY_COMPILE;
    return (tide_event){.name = p->of->name,
                        .launcher = device ? launcher + 1 : 0,
                        .correlation = (int64_t)p->of->number,
                        .bytes = p->of->bytes,
                        .start_ns = p->start,
                        .end_ns = p->end,
                        .self_ns = p->end - p->start,
                        .parent = -1,
                        .step = launcher < 0 ? 0 : r->out->events[launcher].step,
                        .thread = (int16_t)(r->frame->nlanes + p->row + 1),
                        .kind = kinds[p->of->kind]};
}

/* Names live as long as the recording. */
static void take_words(tide_device_log *log, tide_recording *out) {
    tide_words *last = log->words;
    while (last && last->next)
        last = last->next;
    if (last) {
        last->next = out->words;
        out->words = log->words;
    }
    log->words = NULL;
}

static bool add_rows(rows *r) {
    qsort(r->list, (size_t)r->count, sizeof *r->list, by_stream);
    if (!find_rows(r) || r->frame->nlanes + r->nrows > INT16_MAX || !name_tracks(r))
        return false;
    find_lanes(r);
    qsort(r->list, (size_t)r->count, sizeof *r->list, by_row);
    for (int64_t k = 0; k < r->count; k++)
        r->out->events[r->out->count++] = event_of(r, &r->list[k]);
    return true;
}

td_status tide_device_log_add(tide_device_log *log, const tide_log_frame *frame,
                              tide_recording *out) {
    rows r = {.log = log, .frame = frame, .out = out};
    out->evicted += log->evicted;
    out->dropped += log->dropped;
    out->code = log->code;
    r.list = td_malloc((size_t)(log->count + 1) * sizeof *r.list);
    r.first = td_malloc((size_t)(frame->nlanes + 1) * sizeof *r.first);
    bool ok = r.list && r.first;
    for (int64_t k = 0; k < log->count && ok; k++)
        r.count += place(&r, &log->list[k], &r.list[r.count]);
    if (ok && r.count) {
        out->note = log->note;
        ok = add_rows(&r);
        take_words(log, out);
    }
    td_free(r.list);
    td_free(r.first);
    td_free(r.free_at);
    td_free(r.of);
    return ok ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}
