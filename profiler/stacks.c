/* stacks.c: see stacks.h. */
#include "profiler/stacks.h"

#include "engine/core/interrupt.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/io/json.h"
#include "profiler/whole.h"

#include <stdio.h>
#include <string.h>

enum { DEEPEST = 512 }; /* frames of a line; what lies deeper counts for these */

/* A way from outside in: the same names in the same order. */
typedef struct node {
    const char *name, *line; /* line: of the outermost only */
    int parent, depth;
    int64_t self_ns;
} node;

typedef struct tree {
    node *nodes;
    int n, room;
    td_map places; /* nodes by parent and name: their numbers, from 1 */
} tree;

typedef struct wanted {
    const tree *tree;
    const node *node;
} wanted;

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_wanted(const void *place, const void *key) {
    const wanted *w = key;
    const node *n = &w->tree->nodes[(intptr_t)place - 1];
    return n->parent == w->node->parent && same_text(n->name, w->node->name) &&
           same_text(n->line, w->node->line);
}

static bool grow(tree *t) {
    int room = t->room ? 2 * t->room : 256;
    node *nodes = td_realloc(t->nodes, (size_t)room * sizeof *nodes);
    if (!nodes)
        return false;
    t->nodes = nodes;
    t->room = room;
    return true;
}

/* The number of the node, which is added where it isn't there; -1: memory is out. */
static int place_of(tree *t, node n) {
    uint64_t hash = td_hash_text(n.name) ^ (uint64_t)(n.parent + 1) * 0x9E3779B97F4A7C15u;
    intptr_t place = (intptr_t)td_map_find(&t->places, hash, is_wanted, &(wanted){t, &n});
    if (place)
        return (int)place - 1;
    if ((t->n == t->room && !grow(t)) || td_map_add(&t->places, hash, (void *)(intptr_t)(t->n + 1)))
        return -1;
    t->nodes[t->n] = n;
    return t->n++;
}

/* Which node each event is. */
static bool add_events(tree *t, const tide_recording *r, int *nodes) {
    for (int64_t k = 0; k < r->count; k++) {
        const tide_event *e = &r->events[k];
        int parent = e->parent >= 0 ? nodes[e->parent] : -1;
        nodes[k] = parent;
        if (e->kind == TD_EVENT_ALLOC)
            continue;
        node n = {.name = e->name,
                  .line = parent < 0 ? e->line : NULL,
                  .parent = parent,
                  .depth = parent < 0 ? 1 : t->nodes[parent].depth + 1};
        if (n.depth <= DEEPEST)
            nodes[k] = place_of(t, n);
        if (nodes[k] < 0)
            return false;
        t->nodes[nodes[k]].self_ns += e->self_ns;
    }
    return true;
}

/* Semicolons part frames, a line ends a stack, and readers take the text for UTF-8. */
static void write_frame(FILE *f, const char *name) {
    if (!*name)
        fputs("(no name)", f);
    for (size_t n; *name; name += n) {
        n = td_utf8_length(name, name + strnlen(name, 4));
        if (n == 0)
            fputs("\xEF\xBF\xBD", f);
        else if (*name == ';' || (unsigned char)*name < ' ' || *name == 127)
            fputc(' ', f);
        else
            fwrite(name, 1, n, f);
        n += n == 0;
    }
}

static void write_stacks(FILE *f, const void *ctx) {
    const tree *t = ctx;
    for (int k = 0; k < t->n && !td_interrupt_requested(); k++) {
        int way[DEEPEST], depth = 0;
        long long us = (t->nodes[k].self_ns + 500) / 1000;
        if (!us)
            continue;
        for (int at = k; at >= 0; at = t->nodes[at].parent)
            way[depth++] = at;
        if (t->nodes[way[depth - 1]].line) {
            write_frame(f, t->nodes[way[depth - 1]].line);
            fputc(';', f);
        }
        while (depth--) {
            write_frame(f, t->nodes[way[depth]].name);
            fputc(depth ? ';' : ' ', f);
        }
        fprintf(f, "%lld\n", us);
    }
}

td_status tide_write_stacks(const tide_recording *r, const char *path) {
    tree t = {0};
    int *nodes = td_malloc((size_t)(r->count + 1) * sizeof *nodes);
    td_status status = TD_OK;
    if (!nodes || !grow(&t) || !add_events(&t, r, nodes))
        status = td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK)
        status = tide_write_whole(path, write_stacks, &t);
    td_map_clear(&t.places);
    td_free(t.nodes);
    td_free(nodes);
    return status;
}
