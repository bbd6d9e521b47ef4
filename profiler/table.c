/* table.c: sums events by kind and name, and writes the sums as aligned text. */
#include "profiler/table.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/number.h"
#include "profiler/timing.h"

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
} row_set;

typedef struct wanted {
    const row_set *set;
    const tide_event *event;
} wanted;

static bool is_wanted(const void *place, const void *key) {
    const wanted *w = key;
    const tide_row *row = &w->set->rows[(intptr_t)place - 1];
    return same(w->event, row->kind, row->name);
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
    uint64_t hash = td_hash_text(e->name) ^ e->kind;
    intptr_t place = (intptr_t)td_map_find(&set->places, hash, is_wanted, &(const wanted){set, e});
    if (place)
        return &set->rows[place - 1];
    if ((set->n == set->room && !grow(set)) ||
        td_map_add(&set->places, hash, (void *)(intptr_t)(set->n + 1)))
        return NULL;
    set->rows[set->n] = (tide_row){.name = e->name, .kind = e->kind};
    return &set->rows[set->n++];
}

tide_row *tide_rows(const tide_recording *r, tide_sort sort, int *count) {
    static int (*const orders[])(const void *, const void *) = {by_self, by_total, by_calls,
                                                                by_name};
    row_set set = {0};
    bool ok = grow(&set);
    *count = 0;
    for (int64_t k = 0; k < r->count && ok; k++) {
        const tide_event *e = &r->events[k];
        tide_row *row = row_of(&set, e);
        ok = row != NULL;
        if (!ok)
            break;
        row->calls++;
        row->self_ns += e->self_ns;
        if (!within_itself(r, e))
            row->total_ns += e->end_ns - e->start_ns;
    }
    td_map_clear(&set.places);
    if (!ok) {
        td_free(set.rows);
        td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    qsort(set.rows, (size_t)set.n, sizeof *set.rows, orders[sort]);
    *count = set.n;
    return set.rows;
}

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

static void write_row(FILE *out, const tide_row *row, int width, int64_t all) {
    char self[32], total[32], mean[32], share[16];
    write_time(row->self_ns, self, sizeof self);
    write_time(row->total_ns, total, sizeof total);
    write_time(row->total_ns / row->calls, mean, sizeof mean);
    td_number_print(share, sizeof share, "%5.1f",
                    all ? 100.0 * (double)row->self_ns / (double)all : 0);
    fprintf(out, "%-*s  %-8s  %*s  %s %%  %*s  %8lld  %*s\n", bytes_for(row->name, width),
            row->name, tide_event_kind_name(row->kind), bytes_for(self, 8), self, share,
            bytes_for(total, 8), total, (long long)row->calls, bytes_for(mean, 8), mean);
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

char *tide_table(const tide_recording *r, tide_sort sort, int limit) {
    char *text = NULL, *copy, wall[32], self[32];
    size_t size = 0;
    int n, width = 4;
    int64_t all = 0, ranges = 0;
    tide_row *rows = tide_rows(r, sort, &n);
    FILE *out = rows ? open_memstream(&text, &size) : NULL;
    if (!out) {
        td_free(rows);
        return NULL;
    }
    int shown = limit > 0 && limit < n ? limit : n;
    for (int k = 0; k < n; k++) {
        all += rows[k].self_ns;
        ranges += rows[k].kind == TD_EVENT_RANGE ? rows[k].self_ns : 0;
    }
    for (int k = 0; k < shown; k++)
        width = characters(rows[k].name) > width ? characters(rows[k].name) : width;
    fprintf(out, "%-*s  %-8s  %8s  %7s  %8s  %8s  %8s\n", width, "name", "kind", "self", "share",
            "total", "calls", "mean");
    for (int k = 0; k < shown; k++)
        write_row(out, &rows[k], width, all);
    if (shown < n)
        fprintf(out, "... %d more\n", n - shown);
    write_time(r->wall_ns, wall, sizeof wall);
    write_time(all - ranges, self, sizeof self);
    fprintf(out, "%lld events, %s of %s in operators", (long long)r->count, self, wall);
    if (r->dropped)
        fprintf(out, "; %lld events lost for want of memory", (long long)r->dropped);
    write_losses(out, r);
    td_free(rows);
    fclose(out);
    copy = text ? td_strdup(text) : NULL;
    free(text);
    return copy;
}
