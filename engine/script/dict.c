/* dict.c: dicts of graphs while they run: a map of entries, which also form a list in their order.
 * An entry that was taken out stays in the map until there are more such than others. */
#include "engine/core/memory.h"
#include "engine/script/boxes.h"

#include <string.h>

td_status td_box_dict_new(td_value *out) {
    td_box_dict *dict = td_calloc(1, sizeof *dict);
    if (!dict)
        return td_fail(TD_ENOMEM, "out of memory for a dict");
    atomic_init(&dict->box.refs, 1);
    *out = TD_BOX(TD_BOX_DICT, dict);
    return TD_OK;
}

static bool has_key(const void *found, const void *key) {
    const td_dict_entry *entry = found;
    int64_t length, own;
    const char *text = td_value_text(*(const td_value *)key, &length);
    const char *other = td_value_text(entry->key, &own);
    return length == own && !memcmp(text, other, (size_t)length);
}

static td_dict_entry *find(const td_box_dict *dict, uint64_t hash, td_value key) {
    return td_map_find(&dict->map, hash, has_key, &key);
}

td_dict_entry *td_dict_find(const td_box_dict *dict, td_value key) {
    td_dict_entry *entry = find(dict, td_hash_text(td_value_text(key, NULL)), key);
    return entry && entry->there ? entry : NULL;
}

/* ---- the order ---- */

static void link_last(td_box_dict *dict, td_dict_entry *entry) {
    entry->before = dict->last;
    entry->next = NULL;
    *(dict->last ? &dict->last->next : &dict->first) = entry;
    dict->last = entry;
    entry->there = true;
    dict->n++;
}

static void take_out(td_box_dict *dict, td_dict_entry *entry) {
    *(entry->before ? &entry->before->next : &dict->first) = entry->next;
    *(entry->next ? &entry->next->before : &dict->last) = entry->before;
    entry->there = false;
    dict->n--;
}

/* ---- writing ---- */

static void free_entry(td_dict_entry *entry) {
    td_value_drop(&entry->key);
    td_value_drop(&entry->value);
    td_free(entry);
}

/* The map anew, of what is there alone. It stays as it is where memory has run out. */
static void forget_removed(td_box_dict *dict) {
    td_map map = {0};
    for (td_dict_entry *entry = dict->first; entry; entry = entry->next)
        if (td_map_add(&map, entry->hash, entry)) {
            td_map_clear(&map);
            return;
        }
    for (size_t k = 0; k < dict->map.size; k++) {
        td_dict_entry *entry = dict->map.slots[k].entry;
        if (entry && !entry->there)
            free_entry(entry);
    }
    td_map_clear(&dict->map);
    dict->map = map;
}

static td_dict_entry *add_entry(td_box_dict *dict, uint64_t hash, td_value key) {
    td_dict_entry *entry = td_calloc(1, sizeof *entry);
    if (!entry || td_value_keep(key, &entry->key) || td_map_add(&dict->map, hash, entry)) {
        if (entry)
            free_entry(entry);
        return NULL;
    }
    entry->hash = hash;
    return entry;
}

td_status td_dict_set(td_box_dict *dict, td_value key, td_value value) {
    uint64_t hash = td_hash_text(td_value_text(key, NULL));
    td_dict_entry *entry = find(dict, hash, key);
    td_value kept;
    td_status status = td_value_keep(value, &kept);
    if (status)
        return status;
    if (!entry && dict->map.count > 2 * (size_t)dict->n + 16)
        forget_removed(dict);
    if (!entry)
        entry = add_entry(dict, hash, key);
    if (!entry) {
        td_value_drop(&kept);
        return td_fail(TD_ENOMEM, "out of memory for a dict");
    }
    td_value former = entry->value; /* may hold the dict itself */
    entry->value = kept;
    if (!entry->there)
        link_last(dict, entry);
    td_value_drop(&former);
    return TD_OK;
}

void td_dict_delete(td_box_dict *dict, td_value key) {
    td_dict_entry *entry = td_dict_find(dict, key);
    if (!entry)
        return;
    td_value former = entry->value;
    entry->value = TD_NIL;
    take_out(dict, entry);
    td_value_drop(&former);
}

void td_dict_clear(td_box_dict *dict) {
    td_map map = dict->map;
    dict->map = (td_map){0};
    dict->first = dict->last = NULL;
    dict->n = 0;
    for (size_t k = 0; k < map.size; k++)
        if (map.slots[k].entry)
            free_entry(map.slots[k].entry);
    td_map_clear(&map);
}
