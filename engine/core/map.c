/* map.c: the hash map of map.h, by open addressing with linear probing, and hashes of words, texts
 * and addresses. */
#include "engine/core/map.h"

#include "engine/core/memory.h"

uint64_t td_hash_words(const int64_t *words, int n) {
    uint64_t h = 14695981039346656037u;
    for (int k = 0; k < n; k++)
        h = (h ^ (uint64_t)words[k]) * 1099511628211u;
    return h ^ h >> 29;
}

uint64_t td_hash_text(const char *text) {
    uint64_t h = 14695981039346656037u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h ^ h >> 29;
}

void *td_map_find(const td_map *map, uint64_t hash, td_map_match_fn match, const void *key) {
    size_t mask = map->size - 1;
    if (!map->count)
        return NULL;
    for (size_t at = hash & mask; map->slots[at].entry; at = (at + 1) & mask)
        if (map->slots[at].hash == hash && match(map->slots[at].entry, key))
            return map->slots[at].entry;
    return NULL;
}

/* Into the first free slot from its hash on. */
static void put(td_map *map, uint64_t hash, void *entry) {
    size_t mask = map->size - 1, at = hash & mask;
    while (map->slots[at].entry)
        at = (at + 1) & mask;
    map->slots[at] = (td_map_slot){hash, entry};
}

static td_status grow(td_map *map) {
    td_map bigger = {.size = map->size ? 2 * map->size : 16, .count = map->count};
    bigger.slots = td_calloc(bigger.size, sizeof *bigger.slots);
    if (!bigger.slots)
        return td_fail(TD_ENOMEM, "out of memory");
    for (size_t k = 0; k < map->size; k++)
        if (map->slots[k].entry)
            put(&bigger, map->slots[k].hash, map->slots[k].entry);
    td_free(map->slots);
    *map = bigger;
    return TD_OK;
}

td_status td_map_add(td_map *map, uint64_t hash, void *entry) {
    td_status status = 2 * (map->count + 1) > map->size ? grow(map) : TD_OK;
    if (status)
        return status;
    put(map, hash, entry);
    map->count++;
    return TD_OK;
}

void td_map_clear(td_map *map) {
    td_free(map->slots);
    *map = (td_map){0};
}
