/* map.h: a hash map of pointers to entries that hold their own keys. Entries are only added; the
 * map owns nothing but its slots, and whoever uses it frees the entries. */
#ifndef TD_CORE_MAP_H
#define TD_CORE_MAP_H

#include "engine/core/status.h"

#include <string.h>

typedef struct td_map_slot {
    uint64_t hash;
    void *entry; /* NULL: free */
} td_map_slot;

/* {0} is an empty map. */
typedef struct td_map {
    td_map_slot *slots; /* a power of two, at most half of them taken */
    size_t size, count;
} td_map;

/* Is this the entry that the key is for? */
typedef bool (*td_map_match_fn)(const void *entry, const void *key);

/* The entry, or NULL. */
void *td_map_find(const td_map *map, uint64_t hash, td_map_match_fn match, const void *key);
/* Add an entry whose key is not there. ENOMEM; the map is as it was then. */
td_status td_map_add(td_map *map, uint64_t hash, void *entry) TD_MUST_CHECK;
void td_map_clear(td_map *map); /* frees the slots, not the entries */

/* FNV-1a over words or the characters of a text, and a multiplicative hash of an address (Knuth).
 */
uint64_t td_hash_words(const int64_t *words, int n);
uint64_t td_hash_text(const char *text);
static inline uint64_t td_hash_address(const void *p) {
    return ((uintptr_t)p >> 4) * 0x9E3779B97F4A7C15u >> 20;
}

#endif
