/* timeline_data.c: slices for a picture that can be zoomed; see timeline.h. */
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/io/json.h"
#include "profiler/timeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Texts, each once. */
typedef struct texts {
    const char **list;
    int n, room;
    td_map places; /* their numbers, from 1 */
} texts;

typedef struct wanted {
    const texts *t;
    const char *text;
} wanted;

static bool is_wanted(const void *place, const void *key) {
    const wanted *w = key;
    return strcmp(w->t->list[(intptr_t)place - 1], w->text) == 0;
}

/* The number of the text, from 0; -1: there is none, or memory is out. */
static int number_of(texts *t, const char *text, tide_words **words) {
    if (!text)
        return -1;
    uint64_t hash = td_hash_text(text);
    intptr_t place = (intptr_t)td_map_find(&t->places, hash, is_wanted, &(wanted){t, text});
    if (place)
        return (int)place - 1;
    if (t->n == t->room) {
        int room = t->room ? 2 * t->room : 64;
        const char **grown = td_realloc(t->list, (size_t)room * sizeof *grown);
        if (!grown)
            return -1;
        t->list = grown;
        t->room = room;
    }
    const char *kept = words ? tide_words_text(words, text, strlen(text)) : text;
    if (!kept || td_map_add(&t->places, hash, (void *)(intptr_t)(t->n + 1)))
        return -1;
    t->list[t->n] = kept;
    return t->n++;
}

static void write_texts(FILE *out, const char *key, const texts *t) {
    fprintf(out, "\"%s\":[", key);
    for (int k = 0; k < t->n; k++) {
        if (k)
            fputc(',', out);
        td_json_print(out, t->list[k]);
    }
    fputs("],", out);
}

static void texts_clear(texts *t) {
    td_free(t->list);
    td_map_clear(&t->places);
}

/* ---- which ---- */

static int descending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

static bool is_shown(const tide_event *e, tide_window w) {
    return e->kind != TD_EVENT_ALLOC && e->end_ns > w.from && e->start_ns < w.to;
}

/* The length of the most-th longest, which is the shortest that is shown; -1: memory is out. */
static int64_t shortest_shown(const tide_recording *r, tide_window w, int most, int64_t *n) {
    int64_t *lengths = td_malloc((size_t)(r->count + 1) * sizeof *lengths), shortest = 0;
    *n = 0;
    if (!lengths)
        return -1;
    for (int64_t k = 0; k < r->count; k++)
        if (is_shown(&r->events[k], w))
            lengths[(*n)++] = r->events[k].end_ns - r->events[k].start_ns;
    if (*n > most) {
        qsort(lengths, (size_t)*n, sizeof *lengths, descending);
        shortest = lengths[most - 1];
    }
    td_free(lengths);
    return shortest;
}

/* ---- slices ---- */

static const char *shapes_of(const tide_event *e, char *text, size_t size) {
    const int64_t *at = e->inputs;
    size_t used = 0;
    if (!e->ninputs)
        return NULL;
    for (int k = 0; k < e->ninputs && used + 1 < size; k++) {
        tide_input in = tide_input_next(&at);
        used += (size_t)snprintf(text + used, size - used, "%s(", k ? ", " : "");
        for (int d = 0; d < in.ndim && used + 1 < size; d++)
            used += (size_t)snprintf(text + used, size - used, d ? ", %lld" : "%lld",
                                     (long long)in.sizes[d]);
        if (used + 1 < size)
            used += (size_t)snprintf(text + used, size - used, ") %s", tide_input_dtype(&in));
    }
    return text;
}

typedef struct writing {
    const tide_recording *r;
    tide_window w;
    int64_t shortest;
    int left; /* that may still be written */
    texts names, lines, shapes;
    tide_words *words;
    int rows, deepest;
} writing;

static int depth_of(const tide_recording *r, const tide_event *e) {
    int depth = 0;
    for (int32_t at = e->parent; at >= 0; at = r->events[at].parent)
        depth++;
    return depth;
}

static void write_slice(FILE *out, writing *w, const tide_event *e, bool first) {
    char text[512];
    int64_t start = e->start_ns > w->w.from ? e->start_ns : w->w.from;
    int64_t end = e->end_ns < w->w.to ? e->end_ns : w->w.to;
    int depth = depth_of(w->r, e);
    w->deepest = depth > w->deepest ? depth : w->deepest;
    fprintf(out, "%s%d,%d,%lld,%lld,%d,%d,%d,%d", first ? "" : ",", w->rows, depth,
            (long long)(start - w->w.from), (long long)(end - start),
            number_of(&w->names, e->name, NULL), number_of(&w->lines, e->line, NULL),
            number_of(&w->shapes, shapes_of(e, text, sizeof text), &w->words), e->kind);
}

/* The rows' names and depths go to `rows`. */
static void write_slices(FILE *out, FILE *rows, writing *w) {
    bool first = true;
    for (int64_t k = 0; k < w->r->count; k++) {
        const tide_event *e = &w->r->events[k];
        if (is_shown(e, w->w) && e->end_ns - e->start_ns >= w->shortest && w->left) {
            write_slice(out, w, e, first);
            w->left--;
            first = false;
        }
        if (k + 1 < w->r->count && w->r->events[k + 1].thread == e->thread)
            continue;
        char name[32];
        snprintf(name, sizeof name, "thread %d", e->thread);
        fprintf(rows, "%s{\"name\":", w->rows++ ? "," : "");
        td_json_print(rows, w->r->tracks ? w->r->tracks[e->thread - 1].name : name);
        fprintf(rows, ",\"depth\":%d}", w->deepest + 1);
        w->deepest = 0;
    }
}

static const char *kind_names(char *text, size_t size) {
    size_t used = 0;
    for (int k = 0; k < TIDE_EVENT_KINDS && used + 1 < size; k++)
        used += (size_t)snprintf(text + used, size - used, "%s\"%s\"", k ? "," : "",
                                 tide_event_kind_name(k));
    return text;
}

char *tide_timeline_data(const tide_recording *r, tide_window window, int most) {
    char *slices = NULL, *rows = NULL, *text = NULL, *copy = NULL, kinds[512];
    size_t sizes[3];
    int64_t n;
    writing w = {.r = r, .w = window, .left = most};
    w.shortest = shortest_shown(r, window, most, &n);
    FILE *out = w.shortest >= 0 ? open_memstream(&slices, &sizes[0]) : NULL;
    FILE *side = out ? open_memstream(&rows, &sizes[1]) : NULL;
    if (side) {
        write_slices(out, side, &w);
        fclose(side);
    }
    if (out)
        fclose(out);
    out = slices && rows ? open_memstream(&text, &sizes[2]) : NULL;
    if (out) {
        fprintf(out, "{\"from\":%lld,\"to\":%lld,\"left_out\":%lld,\"kinds\":[%s],\"rows\":[%s],",
                (long long)window.from, (long long)window.to, (long long)(n - (most - w.left)),
                kind_names(kinds, sizeof kinds), rows);
        write_texts(out, "names", &w.names);
        write_texts(out, "lines", &w.lines);
        write_texts(out, "shapes", &w.shapes);
        fprintf(out, "\"slices\":[%s]}", slices);
        fclose(out);
        copy = text ? td_strdup(text) : NULL;
    }
    free(slices);
    free(rows);
    free(text);
    texts_clear(&w.names);
    texts_clear(&w.lines);
    texts_clear(&w.shapes);
    tide_words_free(w.words);
    if (!copy)
        td_fail(TD_ENOMEM, "out of memory");
    return copy;
}
