/* table.c: sums events by kind and name, and writes the sums as aligned text. */
#include "profiler/table.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/number.h"
#include "profiler/loads.h"
#include "profiler/timing.h"
#include "profiler/work.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b) {
    const tide_row *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : x->kind - y->kind;
}

static int descending(int64_t x, int64_t y, const void *a, const void *b) {
    return x != y ? (x < y) - (x > y) : by_name(a, b);
}

static int by_self(const void *a, const void *b) {
    return descending(((const tide_row *)a)->self_ns, ((const tide_row *)b)->self_ns, a, b);
}

static int by_total(const void *a, const void *b) {
    return descending(((const tide_row *)a)->total_ns, ((const tide_row *)b)->total_ns, a, b);
}

static int by_calls(const void *a, const void *b) {
    return descending(((const tide_row *)a)->calls, ((const tide_row *)b)->calls, a, b);
}

static int by_memory(const void *a, const void *b) {
    return descending(((const tide_row *)a)->memory, ((const tide_row *)b)->memory, a, b);
}

static int by_flops(const void *a, const void *b) {
    double x = ((const tide_row *)a)->flops, y = ((const tide_row *)b)->flops;
    return x == y ? by_name(a, b) : x < y ? 1 : -1;
}

static int by_device(const void *a, const void *b) {
    return descending(((const tide_row *)a)->device_total_ns,
                      ((const tide_row *)b)->device_total_ns, a, b);
}

static bool same(const tide_event *e, uint8_t kind, const char *name) {
    return e->kind == kind && (e->name == name || strcmp(e->name, name) == 0);
}

/* Is there an event of the same name and kind around it? Then its time is counted already. */
static bool within_itself(const tide_recording *r, const tide_event *e) {
    for (int32_t at = e->parent; at >= 0; at = r->events[at].parent)
        if (same(&r->events[at], e->kind, e->name))
            return true;
    return false;
}

/* Rows while they are summed up; the map's entries are their numbers, from 1. */
typedef struct row_set {
    tide_row *rows;
    int n, room;
    td_map places;
    tide_loads loads;
    bool by_shape;
} row_set;

typedef struct wanted {
    const row_set *set;
    const tide_event *event;
} wanted;

/* The tensors that a row by shape stands for; memory events have something else in their place. */
static int shapes_of(const tide_event *e) {
    return e->kind == TD_EVENT_ALLOC ? 0 : e->ninputs;
}

static bool same_shapes(const tide_event *e, const tide_row *row) {
    const int64_t *a = e->inputs, *b = row->inputs;
    if (shapes_of(e) != row->ninputs)
        return false;
    for (int k = 0; k < row->ninputs; k++) {
        tide_input x = tide_input_next(&a), y = tide_input_next(&b);
        if (x.dtype != y.dtype || x.ndim != y.ndim ||
            memcmp(x.sizes, y.sizes, (size_t)x.ndim * sizeof *x.sizes) != 0)
            return false;
    }
    return true;
}

static uint64_t hash_shapes(const tide_event *e) {
    uint64_t hash = 0;
    const int64_t *at = e->inputs;
    for (int k = shapes_of(e); k > 0; k--) {
        tide_input in = tide_input_next(&at);
        hash = hash * 31 + td_hash_words(in.sizes, in.ndim) + in.dtype;
    }
    return hash;
}

static bool is_wanted(const void *place, const void *key) {
    const wanted *w = key;
    const tide_row *row = &w->set->rows[(intptr_t)place - 1];
    return same(w->event, row->kind, row->name) &&
           (!w->set->by_shape || same_shapes(w->event, row));
}

static bool grow(row_set *set) {
    int room = set->room ? 2 * set->room : 64;
    tide_row *rows = td_realloc(set->rows, (size_t)room * sizeof *rows);
    if (!rows)
        return false;
    set->rows = rows;
    set->room = room;
    return true;
}

static tide_row *row_of(row_set *set, const tide_event *e) {
    uint64_t hash = td_hash_text(e->name) ^ e->kind ^ (set->by_shape ? hash_shapes(e) : 0);
    intptr_t place = (intptr_t)td_map_find(&set->places, hash, is_wanted, &(const wanted){set, e});
    if (place)
        return &set->rows[place - 1];
    if ((set->n == set->room && !grow(set)) ||
        td_map_add(&set->places, hash, (void *)(intptr_t)(set->n + 1)))
        return NULL;
    tide_row *row = &set->rows[set->n++];
    *row = (tide_row){.name = e->name, .kind = e->kind};
    if (set->by_shape && shapes_of(e)) {
        row->inputs = e->inputs;
        row->ninputs = e->ninputs;
    }
    return row;
}

/* What was taken or given back counts for all that was going on, once a name. */
static bool add_memory(row_set *set, const tide_recording *r, const tide_event *e) {
    for (const tide_event *at = e;; at = &r->events[at->parent]) {
        if (!within_itself(r, at)) {
            tide_row *row = row_of(set, at);
            if (!row)
                return false;
            row->memory_total += e->bytes;
        }
        if (at->parent < 0)
            return true;
    }
}

/* What an event adds to its own row, and to that of the event around it. */
static bool add(row_set *set, const tide_recording *r, const tide_event *e) {
    const tide_event *outer = e->parent >= 0 ? &r->events[e->parent] : NULL;
    bool for_outer = outer && (e->kind == TD_EVENT_ALLOC || e->kind == TD_EVENT_KERNEL);
    tide_row *row = row_of(set, e), *around = NULL;
    if (!row)
        return false;
    row->calls++;
    row->self_ns += e->self_ns;
    row->memory += e->kind == TD_EVENT_ALLOC ? e->bytes : 0;
    row->flops += tide_work_of(e).flops;
    if (!within_itself(r, e))
        row->total_ns += tide_loads_duration(&set->loads, e);
    if (for_outer && !(around = row_of(set, outer)))
        return false;
    if (around && e->kind == TD_EVENT_ALLOC)
        around->memory += e->bytes;
    if (e->kind == TD_EVENT_ALLOC) {
        return add_memory(set, r, e);
    } else if (around && outer->kind == TD_EVENT_OP) {
        around->bytes += tide_work_of(outer).bytes;
        around->moved_ns += tide_loads_duration(&set->loads, outer);
    }
    return true;
}

/* What devices did for each event itself, and for those inside. */
typedef struct device_time {
    int64_t own, inside;
} device_time;

/* NULL with *ok: nobody is known who asked them for anything. */
static device_time *find_device_times(const tide_recording *r, bool *ok) {
    device_time *times = NULL;
    for (int64_t k = 0; k < r->count && *ok; k++) {
        const tide_event *e = &r->events[k];
        if (!tide_is_device_kind(e->kind) || !e->launcher)
            continue;
        if (!times)
            *ok = (times = td_calloc((size_t)r->count, sizeof *times)) != NULL;
        if (times)
            times[e->launcher - 1].own += e->end_ns - e->start_ns;
    }
    for (int64_t k = r->count; times && k-- > 0;) /* what lies inside comes behind */
        if (r->events[k].parent >= 0)
            times[r->events[k].parent].inside += times[k].own + times[k].inside;
    return times;
}

/* Time counts for the event that asked for it and, once a name, for those around; and for rows of
 * what devices did. */
static bool add_devices(row_set *set, const tide_recording *r) {
    bool ok = true;
    device_time *times = find_device_times(r, &ok);
    for (int64_t k = 0; k < r->count && ok; k++) {
        const tide_event *e = &r->events[k];
        bool device = tide_is_device_kind(e->kind);
        device_time t = device  ? (device_time){e->end_ns - e->start_ns, 0}
                        : times ? times[k]
                                : (device_time){0, 0};
        tide_row *row = t.own + t.inside ? row_of(set, e) : NULL;
        ok = row || !(t.own + t.inside);
        if (!row)
            continue;
        row->device_ns += t.own;
        row->device_total_ns += !device && within_itself(r, e) ? 0 : t.own + t.inside;
    }
    td_free(times);
    return ok;
}

tide_row *tide_rows(const tide_recording *r, const tide_table_options *options, int *count) {
    static int (*const orders[])(const void *, const void *) = {
        by_self, by_total, by_calls, by_name, by_memory, by_flops, by_device};
    row_set set = {.by_shape = options->by_shape};
    bool ok = grow(&set) && tide_loads_find(r, &set.loads) == TD_OK;
    *count = 0;
    for (int64_t k = 0; k < r->count && ok; k++)
        ok = add(&set, r, &r->events[k]);
    ok = ok && add_devices(&set, r);
    td_map_clear(&set.places);
    tide_loads_clear(&set.loads);
    if (!ok) {
        td_free(set.rows);
        td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    if (set.n > 0)
        qsort(set.rows, (size_t)set.n, sizeof *set.rows, orders[options->sort]);
    *count = set.n;
    return set.rows;
}

/* ---- text ---- */

static void write_time(int64_t ns, char *text, size_t size) {
    tide_format_time((double)ns * 1e-9, 3, text, size);
}

/* Bytes that fill a width on a terminal: characters beyond ASCII take more than one. */
static int bytes_for(const char *text, int width) {
    for (const char *c = text; *c; c++)
        width += ((unsigned char)*c & 0xC0) == 0x80;
    return width;
}

static int characters(const char *text) {
    return (int)strlen(text) - bytes_for(text, 0);
}

/* 1.5e9 -> "1.5 G"; by 1024 "1.4 Gi". */
static void write_amount(double x, double thousand, const char *unit, char *text, size_t size) {
    static const char *const decimal[] = {"", "k", "M", "G", "T", "P", "E"};
    static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    const char *const *prefixes = thousand > 1000 ? binary : decimal;
    char number[32];
    int k = 0;
    for (; fabs(x) >= 0.9995 * thousand && k < 6; k++)
        x /= thousand;
    td_number_print(number, sizeof number, fabs(x) >= 100 ? "%.0f" : "%.3g", x);
    snprintf(text, size, "%s %s%s", number, prefixes[k], unit);
}

/* Which columns there are beside those that are always, and how wide names and shapes are. */
typedef struct columns {
    bool device, memory, flops, shapes;
    int name, shape;
    int64_t all_ns, device_ns; /* what shares are of: the host's time, and devices' */
    int64_t load_ns;           /* of neither */
    const tide_table_options *options;
} columns;

enum { WIDEST_NAME = 60, WIDEST_SHAPES = 48 };

/* Cut to so many characters; returns `out`. */
static const char *fit(const char *text, int width, char *out, size_t size) {
    if (characters(text) <= width && strlen(text) < size) {
        snprintf(out, size, "%s", text);
        return out;
    }
    const char *end = text;
    for (int n = 0; n < width - 1 && *end && (size_t)(end - text) < size - 8; n++)
        do
            end++;
        while (((unsigned char)*end & 0xC0) == 0x80);
    snprintf(out, size, "%.*s…", (int)(end - text), text);
    return out;
}

/* "4x3 float32, 3x2" */
static void write_shapes(const tide_row *row, char *text, size_t size) {
    const int64_t *at = row->inputs;
    td_dtype before = TD_DTYPE_NONE;
    size_t used = 0;
    text[0] = '\0';
    for (int k = 0; k < row->ninputs && used + 1 < size; k++) {
        tide_input in = tide_input_next(&at);
        used +=
            (size_t)snprintf(text + used, size - used, "%s%s", k ? ", " : "", in.ndim ? "" : "()");
        for (int d = 0; d < in.ndim && used + 1 < size; d++)
            used += (size_t)snprintf(text + used, size - used, d ? "x%lld" : "%lld",
                                     (long long)in.sizes[d]);
        if (in.dtype != before && used + 1 < size)
            used += (size_t)snprintf(text + used, size - used, " %s", tide_input_dtype(&in));
        before = in.dtype;
    }
}

/* "12.3 GFLOP/s", with its share of the peak where that is known; empty where nothing is. */
static void write_rate(double amount, int64_t ns, const char *unit, double peak, char *text,
                       size_t size) {
    char share[16];
    text[0] = '\0';
    if (amount <= 0 || ns <= 0)
        return;
    double rate = amount / ((double)ns * 1e-9);
    write_amount(rate, 1000, unit, text, size);
    if (peak > 0) {
        td_number_print(share, sizeof share, " %4.1f %%", 100 * rate / peak);
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s", share);
    }
}

static void write_extras(FILE *out, const tide_row *row, const columns *c) {
    char text[256], cut[256];
    if (c->device) {
        write_time(row->device_ns, text, sizeof text);
        fprintf(out, "  %*s", bytes_for(text, 8), text);
        write_time(row->device_total_ns, text, sizeof text);
        fprintf(out, "  %*s", bytes_for(text, 9), text);
    }
    if (c->memory) {
        write_amount((double)row->memory, 1024, "B", text, sizeof text);
        fprintf(out, "  %9s", row->memory ? text : "");
    }
    if (c->flops) {
        write_rate(row->flops, row->total_ns, "FLOP/s", c->options->peak_flops, text, sizeof text);
        fprintf(out, "  %19s", text);
        write_rate(row->bytes, row->moved_ns, "B/s", c->options->peak_bytes, text, sizeof text);
        fprintf(out, "  %16s", text);
    }
    if (c->shapes) {
        write_shapes(row, text, sizeof text);
        fprintf(out, "  %s", fit(text, WIDEST_SHAPES, cut, sizeof cut));
    }
}

static void write_row(FILE *out, const tide_row *row, const columns *c) {
    char self[32], total[32], mean[32], share[16], name[WIDEST_NAME * 4 + 8];
    bool unshared = row->kind == TD_EVENT_LOAD || row->kind == TIDE_EVENT_COLLECTIVE;
    int64_t all_ns = tide_is_device_kind(row->kind) ? c->device_ns : c->all_ns;
    write_time(row->self_ns, self, sizeof self);
    write_time(row->total_ns, total, sizeof total);
    write_time(row->total_ns / row->calls, mean, sizeof mean);
    td_number_print(share, sizeof share, unshared ? "      -" : "%5.1f %%",
                    all_ns ? 100.0 * (double)row->self_ns / (double)all_ns : 0);
    fit(row->name, WIDEST_NAME, name, sizeof name);
    fprintf(out, "%-*s  %-10s  %*s  %s  %*s  %8lld  %*s", bytes_for(name, c->name), name,
            tide_event_kind_name(row->kind), bytes_for(self, 8), self, share, bytes_for(total, 8),
            total, (long long)row->calls, bytes_for(mean, 8), mean);
    write_extras(out, row, c);
    fputc('\n', out);
}

static void write_heading(FILE *out, const columns *c) {
    fprintf(out, "%-*s  %-10s  %8s  %7s  %8s  %8s  %8s", c->name, "name", "kind", "self", "share",
            "total", "calls", "mean");
    if (c->device)
        fprintf(out, "  %8s  %9s", "device", "dev.total");
    if (c->memory)
        fprintf(out, "  %9s", "memory");
    if (c->flops)
        fprintf(out, "  %19s  %16s", "work", "moved");
    if (c->shapes)
        fprintf(out, "  %s", "shapes");
    fputc('\n', out);
}

static int by_start(const void *a, const void *b) {
    const tide_event *x = *(const tide_event *const *)a, *y = *(const tide_event *const *)b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

int64_t tide_busy_ns(const tide_recording *r) {
    int64_t n = 0, busy = 0, end = INT64_MIN;
    const tide_event **list = td_malloc((size_t)(r->count + 1) * sizeof *list);
    for (int64_t k = 0; list && k < r->count; k++)
        if (tide_is_device_kind(r->events[k].kind))
            list[n++] = &r->events[k];
    if (n)
        qsort(list, (size_t)n, sizeof *list, by_start);
    for (int64_t k = 0; k < n; k++) {
        int64_t from = list[k]->start_ns > end ? list[k]->start_ns : end;
        busy += list[k]->end_ns > from ? list[k]->end_ns - from : 0;
        end = list[k]->end_ns > end ? list[k]->end_ns : end;
    }
    td_free(list);
    return busy;
}

/* How long any device worked, and what is to be said of its times. */
static void write_devices(FILE *out, const tide_recording *r, const columns *c) {
    char busy[32], share[16];
    int64_t ns = c->device_ns ? tide_busy_ns(r) : 0;
    if (ns) {
        write_time(ns, busy, sizeof busy);
        td_number_print(share, sizeof share, "%.1f",
                        r->wall_ns ? 100.0 * (double)ns / (double)r->wall_ns : 0);
        fprintf(out, "; devices busy for %s of it (%s %%)", busy, share);
    }
    if (r->note)
        fprintf(out, "\n%s", r->note);
}

/* What the figures above leave out. */
static void write_losses(FILE *out, const tide_recording *r) {
    if (r->untimed)
        fprintf(out, "; %lld kernels of tiny calls not timed (kernels = true)",
                (long long)r->untimed);
    if (r->evicted && r->steps)
        fprintf(out, "; the oldest %d of %d steps made room for newer ones", r->steps_lost,
                r->steps);
    else if (r->evicted)
        fprintf(out, "; the oldest %lld events made room for newer ones", (long long)r->evicted);
}

static columns find_columns(const tide_row *rows, int n, int shown,
                            const tide_table_options *options) {
    columns c = {.name = 4, .shapes = options->by_shape, .options = options};
    for (int k = 0; k < n; k++) {
        bool device = tide_is_device_kind(rows[k].kind);
        bool load = rows[k].kind == TD_EVENT_LOAD, transfer = rows[k].kind == TIDE_EVENT_COLLECTIVE;
        c.all_ns += device || load || transfer ? 0 : rows[k].self_ns;
        c.load_ns += load ? rows[k].self_ns : 0;
        c.device_ns += device ? rows[k].self_ns : 0;
        c.device |= !device && rows[k].device_total_ns > 0;
        c.memory |= rows[k].kind == TD_EVENT_ALLOC;
        c.flops |= (rows[k].bytes > 0 && !options->without_work) ||
                   (rows[k].flops > 0 && options->sort == TIDE_SORT_FLOPS);
    }
    for (int k = 0; k < shown; k++)
        c.name = characters(rows[k].name) > c.name ? characters(rows[k].name) : c.name;
    c.name = c.name < WIDEST_NAME ? c.name : WIDEST_NAME;
    return c;
}

static void write_table(FILE *out, const tide_recording *r, const tide_row *rows, int n,
                        const tide_table_options *options) {
    char wall[32], self[32];
    int shown = options->limit > 0 && options->limit < n ? options->limit : n;
    int64_t operators = 0;
    columns c = find_columns(rows, n, shown, options);
    write_heading(out, &c);
    for (int k = 0; k < shown; k++)
        write_row(out, &rows[k], &c);
    if (shown < n)
        fprintf(out, "... %d more\n", n - shown);
    for (int k = 0; k < n; k++)
        if (rows[k].kind == TD_EVENT_OP || rows[k].kind == TD_EVENT_KERNEL ||
            rows[k].kind == TD_EVENT_BACKWARD)
            operators += rows[k].self_ns;
    write_time(r->wall_ns - r->kept_from_ns, wall, sizeof wall);
    write_time(operators, self, sizeof self);
    fprintf(out, "%lld events, %s of %s in operators", (long long)r->count, self, wall);
    if (c.load_ns) {
        write_time(c.load_ns, self, sizeof self);
        fprintf(
            out,
            "; loading and first touches of memory took %s more: shares and times are without them",
            self);
    }
    if (r->dropped)
        fprintf(out, "; %lld events lost for want of memory", (long long)r->dropped);
    write_losses(out, r);
    write_devices(out, r, &c);
}

char *tide_table(const tide_recording *r, const tide_table_options *options) {
    char *text = NULL;
    size_t size = 0;
    int n;
    tide_row *rows = tide_rows(r, options, &n);
    FILE *out = rows ? open_memstream(&text, &size) : NULL;
    if (out) {
        write_table(out, r, rows, n, options);
        fclose(out);
    }
    td_free(rows);
    char *copy = text ? td_strdup(text) : NULL;
    free(text);
    return copy;
}
