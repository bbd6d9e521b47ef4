/* device_log.c: logs while they are open; device_rows.c makes rows of them. */
#include "profiler/device_log.h"

#include "engine/core/activity.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "profiler/device_rows.h"
#include "profiler/ticks.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static tide_device_log *open_logs;
static bool begun[TD_DEVICE_TYPES]; /* sources that keep */
static const char *notes[TD_DEVICE_TYPES];

/* ---- clocks ---- */

/* Of several pairs the one whose readings lie closest together. */
static tide_sighting look(const td_activity_source *source) {
    tide_sighting best = {0, 0};
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < 8; k++) {
        uint64_t before = tide_ticks(), ns = source->now(), after = tide_ticks();
        if (after - before < least) {
            least = after - before;
            best = (tide_sighting){before + (after - before) / 2, ns};
        }
    }
    return best;
}

/* ---- sources; with the lock held ---- */

static void begin_source(int type) {
    const td_activity_source *source = td_activity_source_of((td_device_type)type);
    int64_t most = 0;
    if (!source)
        return;
    for (const tide_device_log *l = open_logs; l; l = l->next)
        most = l->most > most ? l->most : most;
    if (!begun[type])
        notes[type] = source->begin(most);
    begun[type] = true;
}

static void join_source(tide_device_log *l, int type) {
    const td_activity_source *source = td_activity_source_of((td_device_type)type);
    if (!begun[type] || l->heard[type])
        return;
    l->heard[type] = true;
    l->begin[type] = look(source);
    if (notes[type])
        l->note = notes[type];
}

static void on_appeared(td_device_type type) {
    pthread_mutex_lock(&lock);
    if (open_logs)
        begin_source(type);
    for (tide_device_log *l = open_logs; l; l = l->next)
        join_source(l, type);
    pthread_mutex_unlock(&lock);
}

/* ---- what they hand over ---- */

static bool same_text(const void *entry, const void *key) {
    return strcmp(entry, key) == 0;
}

static const char *keep_name(tide_device_log *l, const char *name) {
    uint64_t hash = td_hash_text(name);
    const char *found = td_map_find(&l->names, hash, same_text, name);
    if (found)
        return found;
    found = tide_words_text(&l->words, name, strlen(name));
    return found && td_map_add(&l->names, hash, (void *)(uintptr_t)found) == TD_OK ? found : NULL;
}

static bool has_room(tide_device_log *l) {
    if (l->count < l->room)
        return true;
    int64_t room = l->room ? 2 * l->room : 1024;
    tide_activity *list = td_realloc(l->list, (size_t)room * sizeof *list);
    if (!list)
        return false;
    l->list = list;
    l->room = room;
    return true;
}

static void keep(tide_device_log *l, const td_activity *a) {
    const char *name = keep_name(l, a->name);
    if (!name || !has_room(l)) {
        l->dropped++;
        return;
    }
    l->list[l->count++] = (tide_activity){.start_ns = a->start_ns,
                                          .end_ns = a->end_ns,
                                          .launch_ns = a->launch_ns,
                                          .bytes = a->bytes,
                                          .name = name,
                                          .thread = a->thread,
                                          .track = a->track,
                                          .number = a->number,
                                          .kind = (uint8_t)a->kind};
}

static void take(void *ctx, const td_activity *a) {
    (void)ctx;
    for (tide_device_log *l = open_logs; l; l = l->next)
        if (l->heard[a->track.device.type])
            keep(l, a);
}

static void collect(int type) {
    const td_activity_source *source = td_activity_source_of((td_device_type)type);
    int64_t lost = source->collect(take, NULL);
    for (tide_device_log *l = open_logs; l; l = l->next)
        l->evicted += l->heard[type] ? lost : 0;
}

/* ---- logs ---- */

tide_device_log *tide_device_log_open(int64_t most) {
    tide_device_log *l = td_calloc(1, sizeof *l);
    if (!l)
        return NULL;
    l->most = most;
    l->code = td_code_tally_now();
    pthread_mutex_lock(&lock);
    td_activity_listen(on_appeared);
    l->shared = open_logs != NULL;
    for (tide_device_log *other = open_logs; other; other = other->next)
        other->shared = true;
    l->next = open_logs;
    open_logs = l;
    for (int type = 0; type < TD_DEVICE_TYPES; type++) {
        begin_source(type);
        join_source(l, type);
    }
    pthread_mutex_unlock(&lock);
    return l;
}

static void leave(tide_device_log *l) {
    tide_device_log **at = &open_logs;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    for (int type = 0; type < TD_DEVICE_TYPES && !open_logs; type++) {
        if (begun[type])
            td_activity_source_of((td_device_type)type)->end();
        begun[type] = false;
    }
}

static td_code_tally code_since(const td_code_tally *before) {
    td_code_tally now = td_code_tally_now();
    return (td_code_tally){.compiled = now.compiled - before->compiled,
                           .loaded = now.loaded - before->loaded,
                           .refused = now.refused - before->refused,
                           .runs = now.runs - before->runs,
                           .microseconds = now.microseconds - before->microseconds};
}

uint64_t tide_device_log_close(tide_device_log *l) {
    l->code = code_since(&l->code);
    pthread_mutex_lock(&lock);
    for (int type = 0; type < TD_DEVICE_TYPES; type++)
        if (l->heard[type])
            td_activity_source_of((td_device_type)type)->wait();
    for (int type = 0; type < TD_DEVICE_TYPES; type++)
        if (l->heard[type])
            l->end[type] = look(td_activity_source_of((td_device_type)type));
    uint64_t now = tide_ticks();
    for (int type = 0; type < TD_DEVICE_TYPES; type++)
        if (l->heard[type])
            collect(type);
    leave(l);
    pthread_mutex_unlock(&lock);
    return now;
}

void tide_device_log_free(tide_device_log *l) {
    if (!l)
        return;
    td_free(l->list);
    td_map_clear(&l->names);
    tide_words_free(l->words);
    td_free(l);
}

int64_t tide_device_log_count(const tide_device_log *l) {
    return l->count;
}
