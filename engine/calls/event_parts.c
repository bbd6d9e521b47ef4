/* event_parts.c: a table of kept names, found by their texts and by their addresses. */
#include "engine/calls/event_parts.h"

#include "engine/core/map.h"
#include "engine/core/memory.h"

#include <pthread.h>

enum { MOST = 4096 };

typedef struct group {
    const char *parts; /* behind the name */
    char name[];
} group;

typedef struct texts {
    const char *name, *parts;
} texts;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static td_map by_text, by_address;

static bool has_texts(const void *entry, const void *key) {
    const group *g = entry;
    const texts *t = key;
    return !strcmp(g->name, t->name) && !strcmp(g->parts, t->parts);
}

static bool is_named(const void *entry, const void *name) {
    return ((const group *)entry)->name == name;
}

static group *group_new(const texts *t) {
    size_t n = strlen(t->name) + 1, m = strlen(t->parts) + 1;
    group *g = td_malloc(sizeof *g + n + m);
    if (!g)
        return NULL;
    memcpy(g->name, t->name, n);
    memcpy(g->name + n, t->parts, m);
    g->parts = g->name + n;
    return g;
}

/* With the lock held. */
static group *add_group(uint64_t hash, const texts *t) {
    group *g = by_text.count < MOST ? group_new(t) : NULL;
    if (!g || td_map_add(&by_text, hash, g)) {
        td_free(g);
        return NULL;
    }
    if (td_map_add(&by_address, td_hash_address(g->name), g))
        return NULL; /* it stays, for it is found by its texts, and is of no parts */
    return g;
}

const char *td_event_group_name(const char *name, const char *parts, const char *otherwise) {
    const texts t = {name, parts};
    uint64_t hash = td_hash_text(name) * 31 + td_hash_text(parts);
    pthread_mutex_lock(&lock);
    group *g = td_map_find(&by_text, hash, has_texts, &t);
    g = g ? g : add_group(hash, &t);
    pthread_mutex_unlock(&lock);
    return g ? g->name : otherwise;
}

const char *td_event_parts(const char *name) {
    pthread_mutex_lock(&lock);
    const group *g = td_map_find(&by_address, td_hash_address(name), is_named, name);
    pthread_mutex_unlock(&lock);
    return g ? g->parts : NULL;
}
