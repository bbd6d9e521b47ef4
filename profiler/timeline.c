/* timeline.c: the picture for a terminal; see timeline.h. */
#include "profiler/timeline.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/number.h"
#include "profiler/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLORS = 10, LABEL = 22, WIDEST_LABEL = 40, MOST_THREADS = 64 };

/* What a thread's time goes to; each moment belongs to one of them. */
typedef enum lane_row { SCRIPT, DISPATCH, KERNELS, DEVICE, ROWS } lane_row;

static const char *const row_names[ROWS] = {"Lua", "dispatch", "kernels", "device"};

/* One row's share of a cell. The name is the one that a vote by time leaves (Boyer and Moore). */
typedef struct cell {
    double ns, votes;
    const char *name;
} cell;

/* Names by the time that they take, in rows that have names. */
typedef struct tally {
    const char *name;
    double ns;
} tally;

typedef struct picture {
    const tide_recording *recording;
    tide_window window;
    int width, label; /* cells, and what stands before them */
    bool color;
    cell *cells[ROWS]; /* of the thread that is drawn */
    tally *tallies;    /* for the legend */
    int ntallies, room;
    td_map places; /* of names among them, from 1 */
} picture;

static bool is_device(int kind) {
    return tide_is_apart_kind(kind);
}

static bool is_operator(int kind) {
    return kind == TD_EVENT_OP || kind == TD_EVENT_BACKWARD || kind == TIDE_EVENT_RUNTIME;
}

/* ---- sums ---- */

static bool is_wanted(const void *place, const void *key) {
    const struct {
        const picture *p;
        const char *name;
    } *w = key;
    return strcmp(w->p->tallies[(intptr_t)place - 1].name, w->name) == 0;
}

static bool count_name(picture *p, const char *name, double ns) {
    const struct {
        const picture *p;
        const char *name;
    } w = {p, name};
    uint64_t hash = td_hash_text(name);
    intptr_t place = (intptr_t)td_map_find(&p->places, hash, is_wanted, &w);
    if (!place && p->ntallies == p->room) {
        int room = p->room ? 2 * p->room : 64;
        tally *grown = td_realloc(p->tallies, (size_t)room * sizeof *grown);
        if (!grown)
            return false;
        p->tallies = grown;
        p->room = room;
    }
    if (!place) {
        if (td_map_add(&p->places, hash, (void *)(intptr_t)(p->ntallies + 1)))
            return false;
        p->tallies[p->ntallies++] = (tally){name, 0};
        place = p->ntallies;
    }
    p->tallies[place - 1].ns += ns;
    return true;
}

static void vote(cell *c, const char *name, double ns) {
    if (!name)
        return;
    if (c->name == name || (c->name && strcmp(c->name, name) == 0)) {
        c->votes += ns;
    } else if ((c->votes -= ns) < 0) {
        c->name = name;
        c->votes = -c->votes;
    }
}

/* Add (sign 1) or take off (-1) the part of an interval that lies in each cell. */
static void spread(const picture *p, lane_row row, int64_t start, int64_t end, double sign,
                   const char *name) {
    double each = (double)(p->window.to - p->window.from) / p->width;
    start = (start > p->window.from ? start : p->window.from) - p->window.from;
    end = (end < p->window.to ? end : p->window.to) - p->window.from;
    if (start >= end)
        return;
    int first = (int)((double)start / each), last = (int)((double)end / each);
    for (int k = first; k <= last && k < p->width; k++) {
        double from = (double)start > k * each ? (double)start : k * each;
        double to = (double)end < (k + 1) * each ? (double)end : (k + 1) * each;
        if (to <= from)
            continue;
        p->cells[row][k].ns += sign * (to - from);
        if (sign > 0)
            vote(&p->cells[row][k], name, to - from);
    }
}

static bool in_window(const picture *p, const tide_event *e) {
    return e->end_ns > p->window.from && e->start_ns < p->window.to;
}

/* Does an event of this sort lie around it? */
static bool lies_in(const tide_recording *r, const tide_event *e, bool (*sort)(int kind)) {
    for (int32_t at = e->parent; at >= 0; at = r->events[at].parent)
        if (sort(r->events[at].kind))
            return true;
    return false;
}

static bool is_kernel(int kind) {
    return kind == TD_EVENT_KERNEL;
}

/* The outermost operators are dispatch but for their kernels, and all else is the script's. */
static bool add_event(picture *p, const tide_event *e) {
    const tide_recording *r = p->recording;
    double ns = (double)(e->end_ns - e->start_ns);
    if (is_kernel(e->kind) && !lies_in(r, e, is_kernel)) {
        spread(p, KERNELS, e->start_ns, e->end_ns, 1, e->name);
        spread(p, DISPATCH, e->start_ns, e->end_ns, lies_in(r, e, is_operator) ? -1 : 0, NULL);
        return count_name(p, e->name, ns);
    }
    if (is_operator(e->kind) && !lies_in(r, e, is_operator)) {
        spread(p, DISPATCH, e->start_ns, e->end_ns, 1, e->name);
        spread(p, SCRIPT, e->start_ns, e->end_ns, -1, NULL);
        return count_name(p, e->name, ns);
    }
    if (is_device(e->kind) && !lies_in(r, e, is_device)) {
        spread(p, DEVICE, e->start_ns, e->end_ns, 1, e->name);
        return count_name(p, e->name, ns);
    }
    return true;
}

/* ---- text ---- */

static int by_time(const void *a, const void *b) {
    const tally *x = a, *y = b;
    return x->ns != y->ns ? (x->ns < y->ns) - (x->ns > y->ns) : strcmp(x->name, y->name);
}

/* The place of a name among those that take most; COLORS: it is not one of them. */
static int color_of(const picture *p, const char *name) {
    int k = 0;
    while (name && k < COLORS && k < p->ntallies && strcmp(p->tallies[k].name, name) != 0)
        k++;
    return name && k < p->ntallies ? k : COLORS;
}

static void write_color(FILE *out, const picture *p, int color) {
    static const int codes[COLORS + 1] = {39, 208, 41, 199, 226, 141, 51, 203, 118, 215, 245};
    if (p->color)
        fprintf(out, "\x1b[38;5;%dm", codes[color]);
}

static void write_plain(FILE *out, const picture *p) {
    if (p->color)
        fputs("\x1b[0m", out);
}

/* At least a sliver where there is anything. */
static const char *block_of(double share) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int k = share <= 0.002 ? 0 : (int)(share * 8 + 0.5);
    return blocks[share > 0.002 && k == 0 ? 1 : k > 8 ? 8 : k];
}

static void write_row(FILE *out, const picture *p, lane_row row, const char *label) {
    double each = (double)(p->window.to - p->window.from) / p->width, busy = 0;
    char share[16];
    int color = -1;
    fprintf(out, "%-*s▕", p->label, label);
    for (int k = 0; k < p->width; k++) {
        const cell *c = &p->cells[row][k];
        int wanted = row == SCRIPT ? COLORS : color_of(p, c->name);
        busy += c->ns > 0 ? c->ns : 0;
        if (wanted != color)
            write_color(out, p, color = wanted);
        fputs(block_of(c->ns / each), out);
    }
    write_plain(out, p);
    td_number_print(share, sizeof share, "%5.1f %%", 100 * busy / (each * p->width));
    fprintf(out, "▏%s\n", share);
}

static bool is_empty(const picture *p, lane_row row) {
    for (int k = 0; k < p->width; k++)
        if (p->cells[row][k].ns > 0)
            return false;
    return true;
}

/* A thread that has but device work has one row, its own. */
static void write_thread(FILE *out, const picture *p, int thread, bool alone) {
    char called[WIDEST_LABEL + 1], label[WIDEST_LABEL + LABEL];
    const tide_recording *r = p->recording;
    bool device = !is_empty(p, DEVICE) && is_empty(p, DISPATCH);
    if (r->tracks)
        snprintf(called, sizeof called, "%.*s",
                 device ? WIDEST_LABEL - (int)sizeof " device" + 1 : 12,
                 r->tracks[thread - 1].name);
    else
        snprintf(called, sizeof called, "thread %d", thread);
    for (int row = 0; row < ROWS; row++) {
        bool idle = !alone && is_empty(p, DISPATCH) && is_empty(p, KERNELS);
        if ((row == SCRIPT && (device || idle)) || (row != SCRIPT && is_empty(p, (lane_row)row)))
            continue;
        snprintf(label, sizeof label, "%s%s%s", alone ? "" : called, alone ? "" : " ",
                 row_names[row]);
        write_row(out, p, (lane_row)row, label);
    }
}

static void write_axis(FILE *out, const picture *p) {
    char from[32], to[32], all[32];
    tide_format_time((double)p->window.from * 1e-9, 4, from, sizeof from);
    tide_format_time((double)p->window.to * 1e-9, 4, to, sizeof to);
    tide_format_time((double)(p->window.to - p->window.from) * 1e-9, 3, all, sizeof all);
    fprintf(out, "%-*s %s to %s (%s, %s a cell)\n", p->label, "", from, to, all,
            tide_format_time((double)(p->window.to - p->window.from) * 1e-9 / p->width, 3,
                             (char[32]){0}, 32));
}

static void write_legend(FILE *out, const picture *p) {
    char time[32];
    for (int k = 0; k < p->ntallies && k < COLORS; k++) {
        tide_format_time(p->tallies[k].ns * 1e-9, 3, time, sizeof time);
        fputs(k ? "  " : "", out);
        write_color(out, p, k);
        fputs("█", out);
        write_plain(out, p);
        fprintf(out, " %.40s %s", p->tallies[k].name, time);
    }
    if (p->ntallies > COLORS)
        fprintf(out, "  and %d more", p->ntallies - COLORS);
}

/* ---- threads ---- */

static void clear_cells(picture *p) {
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < p->width; k++)
            p->cells[row][k] = (cell){0};
    double each = (double)(p->window.to - p->window.from) / p->width;
    for (int k = 0; k < p->width; k++)
        p->cells[SCRIPT][k].ns = each;
}

/* The thread whose events begin at `at` into the cells; the index behind them, -1: memory is out.
 */
static int64_t add_thread(picture *p, int64_t at) {
    const tide_recording *r = p->recording;
    int thread = r->events[at].thread;
    clear_cells(p);
    for (; at < r->count && r->events[at].thread == thread; at++)
        if (in_window(p, &r->events[at]) && !add_event(p, &r->events[at]))
            return -1;
    return at;
}

/* As wide as a device's row is called, or as usual. */
static int label_of(const tide_recording *r) {
    int width = LABEL;
    for (int64_t k = 0; r->tracks && k < r->count; k++) {
        int wanted =
            (int)strlen(r->tracks[r->events[k].thread - 1].name) + (int)sizeof " device" - 1;
        if (is_device(r->events[k].kind) && wanted > width)
            width = wanted < WIDEST_LABEL ? wanted : WIDEST_LABEL;
    }
    return width;
}

/* Once for the colours, which all threads share, then to draw. */
static bool draw(picture *p, FILE *out) {
    int threads = 0;
    int64_t at = 0;
    for (int64_t k = 0; k < p->recording->count; k++)
        threads += !k || p->recording->events[k].thread != p->recording->events[k - 1].thread;
    while (at >= 0 && at < p->recording->count)
        at = add_thread(p, at);
    if (at < 0)
        return false;
    if (p->ntallies > 0)
        qsort(p->tallies, (size_t)p->ntallies, sizeof *p->tallies, by_time);
    tally *sorted = p->tallies;
    int nsorted = p->ntallies;
    if (!p->recording->count) {
        fputs("nothing was recorded", out);
        return true;
    }
    write_axis(out, p);
    at = 0;
    for (int n = 0; at < p->recording->count && n < MOST_THREADS; n++) {
        int thread = p->recording->events[at].thread;
        picture again = *p; /* what it counts is thrown away */
        again.tallies = NULL;
        again.ntallies = again.room = 0;
        again.places = (td_map){0};
        at = add_thread(&again, at);
        td_free(again.tallies);
        td_map_clear(&again.places);
        if (at < 0)
            return false;
        p->tallies = sorted;
        p->ntallies = nsorted;
        write_thread(out, p, thread, threads == 1);
    }
    if (threads > MOST_THREADS)
        fprintf(out, "... %d threads more\n", threads - MOST_THREADS);
    write_legend(out, p);
    return true;
}

tide_window tide_window_of(const tide_recording *r) {
    tide_window w = {INT64_MAX, 0};
    for (int64_t k = 0; k < r->count; k++) {
        w.from = r->events[k].start_ns < w.from ? r->events[k].start_ns : w.from;
        w.to = r->events[k].end_ns > w.to ? r->events[k].end_ns : w.to;
    }
    return w.from < w.to ? w : (tide_window){0, r->wall_ns > 1 ? r->wall_ns : 1};
}

char *tide_timeline_text(const tide_recording *r, tide_window window, int width, bool color) {
    picture p = {
        .recording = r, .window = window, .width = width, .label = label_of(r), .color = color};
    char *text = NULL, *copy = NULL;
    size_t size = 0;
    cell *cells = td_calloc((size_t)width * ROWS, sizeof *cells);
    FILE *out = cells ? open_memstream(&text, &size) : NULL;
    for (int row = 0; row < ROWS; row++)
        p.cells[row] = cells ? cells + row * width : NULL;
    if (out) {
        bool ok = draw(&p, out);
        fclose(out);
        copy = ok && text ? td_strdup(text) : NULL;
    }
    free(text);
    td_free(cells);
    td_free(p.tallies);
    td_map_clear(&p.places);
    if (!copy)
        td_fail(TD_ENOMEM, "out of memory");
    return copy;
}
