/* boxes.c: strings, lists, dicts and tuples of graphs while they run. */
#include "engine/script/boxes.h"

#include "engine/core/memory.h"
#include "engine/script/ir.h"

#include <string.h>

static td_status fail_memory(void) {
    return td_fail(TD_ENOMEM, "out of memory for a value");
}

/* ---- making ---- */

td_status td_box_string_new(const char *text, int64_t length, td_value *out) {
    td_box_string *s = td_malloc(sizeof *s + (size_t)length + 1);
    if (!s)
        return fail_memory();
    atomic_init(&s->box.refs, 1);
    s->length = length;
    memcpy(s->text, text, (size_t)length);
    s->text[length] = 0;
    *out = TD_BOX(TD_BOX_STRING, s);
    return TD_OK;
}

td_status td_box_tuple_new(int n, td_value *out) {
    td_box_tuple *t = td_malloc(sizeof *t + sizeof *t->parts * (size_t)n);
    if (!t)
        return fail_memory();
    atomic_init(&t->box.refs, 1);
    t->n = n;
    for (int k = 0; k < n; k++)
        t->parts[k] = TD_NIL;
    *out = TD_BOX(TD_BOX_TUPLE, t);
    return TD_OK;
}

td_status td_box_list_new(td_box_entries entries, td_value *out) {
    td_box_list *list = td_malloc(sizeof *list);
    if (!list)
        return fail_memory();
    *list = (td_box_list){.entries = (uint8_t)entries};
    atomic_init(&list->box.refs, 1);
    *out = TD_BOX(TD_BOX_LIST, list);
    return TD_OK;
}

td_status td_box_dict_new(td_value *out) {
    td_box_dict *dict = td_calloc(1, sizeof *dict);
    if (!dict)
        return fail_memory();
    atomic_init(&dict->box.refs, 1);
    *out = TD_BOX(TD_BOX_DICT, dict);
    return TD_OK;
}

/* ---- letting go ---- */

static void drop_entries(td_box_list *list) {
    for (int k = 0; list->entries == TD_ENTRIES_TENSORS && k < list->n; k++)
        td_release(list->tensors[k]);
    for (int k = 0; list->entries == TD_ENTRIES_VALUES && k < list->n; k++)
        td_value_drop(&list->values[k]);
    list->n = 0;
}

void td_box_destroy(td_value box) {
    td_box_list *list = td_value_list(box);
    td_box_tuple *tuple = td_value_tuple(box);
    if (box.kind == TD_BOX_FUTURE) {
        td_box_future *future = (td_box_future *)(void *)td_value_box(box);
        future->destroy(future);
        return;
    }
    if (list) {
        drop_entries(list);
        td_free(list->block);
    }
    if (td_value_dict(box))
        td_dict_clear(td_value_dict(box));
    for (int k = 0; tuple && k < tuple->n; k++)
        td_value_drop(&tuple->parts[k]);
    td_free(td_value_box(box));
}

/* ---- lists ---- */

td_box_entries td_entries_of_type(const td_ir_type *entry) {
    bool hole = entry->kind == TD_IR_OPTIONAL;
    if (entry->kind == TD_IR_TENSOR || (hole && entry->parts[0]->kind == TD_IR_TENSOR))
        return TD_ENTRIES_TENSORS;
    return entry->kind == TD_IR_INT     ? TD_ENTRIES_INTS
           : entry->kind == TD_IR_FLOAT ? TD_ENTRIES_FLOATS
                                        : TD_ENTRIES_VALUES;
}

static size_t entry_size(const td_box_list *list) {
    return list->entries == TD_ENTRIES_VALUES ? sizeof(td_value) : sizeof(int64_t);
}

/* Entries of 8 bytes each are alike to whoever moves them. */
_Static_assert(sizeof(int64_t) == sizeof(double) && sizeof(td_tensor *) <= sizeof(int64_t),
               "entries have the size of an int");

/* Can the list hold it? It is made as the list has it, and what it holds is held once more. */
static td_status fit_entry(const td_box_list *list, td_value *entry) {
    static const char *const nouns[] = {[TD_ENTRIES_INTS] = "ints",
                                        [TD_ENTRIES_FLOATS] = "floats",
                                        [TD_ENTRIES_TENSORS] = "tensors",
                                        [TD_ENTRIES_VALUES] = "values"};
    bool fits = true;
    switch ((td_box_entries)list->entries) {
    case TD_ENTRIES_INTS:
        fits = entry->kind == TD_KIND_INT;
        break;
    case TD_ENTRIES_FLOATS:
        if (entry->kind == TD_KIND_INT)
            *entry = TD_F((double)entry->i);
        fits = entry->kind == TD_KIND_FLOAT;
        break;
    case TD_ENTRIES_TENSORS:
        if (entry->kind == TD_KIND_NIL)
            entry->tensor = NULL;
        fits = entry->kind == TD_KIND_TENSOR || entry->kind == TD_KIND_NIL;
        td_retain(fits ? entry->tensor : NULL);
        break;
    case TD_ENTRIES_VALUES:
        return td_value_keep(*entry, entry);
    }
    return fits ? TD_OK
                : td_fail(TD_ETYPE, "a list of %s takes no value of another kind",
                          nouns[list->entries]);
}

static void store(td_box_list *list, int index, td_value entry) {
    if (list->entries == TD_ENTRIES_VALUES)
        list->values[index] = entry;
    else if (list->entries == TD_ENTRIES_TENSORS)
        list->tensors[index] = entry.tensor;
    else if (list->entries == TD_ENTRIES_FLOATS)
        list->floats[index] = entry.f;
    else
        list->ints[index] = entry.i;
}

static void drop_entry(td_box_list *list, int index) {
    if (list->entries == TD_ENTRIES_VALUES)
        td_value_drop(&list->values[index]);
    else if (list->entries == TD_ENTRIES_TENSORS)
        td_release(list->tensors[index]);
}

static td_status make_room(td_box_list *list) {
    if (list->n < list->room)
        return TD_OK;
    if (list->n >= 1 << 29)
        return fail_memory();
    int room = list->room ? 2 * list->room : 4;
    void *block = td_realloc(list->block, entry_size(list) * (size_t)room);
    if (!block)
        return fail_memory();
    list->block = block;
    list->room = room;
    return TD_OK;
}

td_status td_list_insert(td_box_list *list, int index, td_value entry) {
    td_status status = make_room(list);
    if (status == TD_OK)
        status = fit_entry(list, &entry);
    if (status)
        return status;
    char *at = (char *)list->block + entry_size(list) * (size_t)index;
    memmove(at + entry_size(list), at, entry_size(list) * (size_t)(list->n - index));
    store(list, index, entry);
    list->n++;
    return TD_OK;
}

td_status td_list_append(td_box_list *list, td_value entry) {
    return td_list_insert(list, list->n, entry);
}

td_value td_list_entry(const td_box_list *list, int index) {
    switch ((td_box_entries)list->entries) {
    case TD_ENTRIES_INTS:
        return TD_I(list->ints[index]);
    case TD_ENTRIES_FLOATS:
        return TD_F(list->floats[index]);
    case TD_ENTRIES_TENSORS:
        return td_tensor_or_nil(list->tensors[index]);
    case TD_ENTRIES_VALUES:
        return list->values[index];
    }
    return TD_NIL;
}

int td_value_length(td_value v) {
    const td_box_list *list = td_value_list(v);
    return list ? list->n : v.n;
}

td_value td_value_entry(td_value v, int k) {
    const td_box_list *list = td_value_list(v);
    return list                       ? td_list_entry(list, k)
           : v.kind == TD_KIND_INTS   ? TD_I(v.ints[k])
           : v.kind == TD_KIND_FLOATS ? TD_F(v.floats[k])
                                      : td_tensor_or_nil(v.tensors[k]);
}

td_status td_list_replace(td_box_list *list, int index, td_value entry) {
    td_status status = fit_entry(list, &entry);
    if (status)
        return status;
    td_value former = td_value_retain(td_list_entry(list, index)); /* may hold the list itself */
    drop_entry(list, index);
    store(list, index, entry);
    td_value_drop(&former);
    return TD_OK;
}

td_value td_list_take(td_box_list *list, int index) {
    td_value entry = td_list_entry(list, index); /* the list's reference goes with it */
    char *at = (char *)list->block + entry_size(list) * (size_t)index;
    list->n--;
    memmove(at, at + entry_size(list), entry_size(list) * (size_t)(list->n - index));
    return entry;
}

td_value td_list_argument(const td_box_list *list) {
    switch ((td_box_entries)list->entries) {
    case TD_ENTRIES_INTS:
        return TD_INTS(list->n, list->ints);
    case TD_ENTRIES_FLOATS:
        return TD_FLOATS(list->n, list->floats);
    case TD_ENTRIES_TENSORS:
        return TD_TENSORS(list->n, list->tensors);
    case TD_ENTRIES_VALUES:
        break;
    }
    return TD_BOX(TD_BOX_LIST, list);
}

/* ---- dicts ---- */

/* A map of entries, which also form a list in their order. An entry that was taken out stays in the
 * map until there are more such than others. */
static bool has_key(const void *found, const void *key) {
    const td_dict_entry *entry = found;
    int64_t length, own;
    const char *text = td_value_text(*(const td_value *)key, &length);
    const char *other = td_value_text(entry->key, &own);
    return length == own && !memcmp(text, other, (size_t)length);
}

static td_dict_entry *find_entry(const td_box_dict *dict, uint64_t hash, td_value key) {
    return td_map_find(&dict->map, hash, has_key, &key);
}

td_dict_entry *td_dict_find(const td_box_dict *dict, td_value key) {
    td_dict_entry *entry = find_entry(dict, td_hash_text(td_value_text(key, NULL)), key);
    return entry && entry->there ? entry : NULL;
}

static void link_last(td_box_dict *dict, td_dict_entry *entry) {
    entry->before = dict->last;
    entry->next = NULL;
    *(dict->last ? &dict->last->next : &dict->first) = entry;
    dict->last = entry;
    entry->there = true;
    dict->n++;
}

static void unlink_entry(td_box_dict *dict, td_dict_entry *entry) {
    *(entry->before ? &entry->before->next : &dict->first) = entry->next;
    *(entry->next ? &entry->next->before : &dict->last) = entry->before;
    entry->there = false;
    dict->n--;
}

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
    td_dict_entry *entry = find_entry(dict, hash, key);
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
        return fail_memory();
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
    unlink_entry(dict, entry);
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

/* ---- values ---- */

const char *td_value_text(td_value v, int64_t *length) {
    const td_box_string *s = v.kind == TD_BOX_STRING ? (td_box_string *)td_value_box(v) : NULL;
    const char *text = s ? s->text : v.kind == TD_KIND_STRING ? v.string : NULL;
    if (length)
        *length = s ? s->length : text ? (int64_t)strlen(text) : 0;
    return text;
}

/* An array that is borrowed, as a list. */
static td_status box_array(td_value v, td_value *out) {
    td_value made = TD_NIL;
    td_status status = td_box_list_new(v.kind == TD_KIND_INTS     ? TD_ENTRIES_INTS
                                       : v.kind == TD_KIND_FLOATS ? TD_ENTRIES_FLOATS
                                                                  : TD_ENTRIES_TENSORS,
                                       &made);
    td_box_list *list = td_value_list(made);
    if (status == TD_OK && v.n) {
        list->block = td_malloc(sizeof(int64_t) * (size_t)v.n);
        status = list->block ? TD_OK : fail_memory();
    }
    if (status) {
        td_value_drop(&made);
        return status;
    }
    list->room = v.n;
    list->n = v.n;
    if (v.n)
        memcpy(list->block, v.ints, entry_size(list) * (size_t)v.n);
    for (int k = 0; v.kind == TD_KIND_TENSORS && k < v.n; k++)
        td_retain(list->tensors[k]);
    *out = made;
    return TD_OK;
}

td_status td_value_keep(td_value v, td_value *out) {
    if (v.kind == TD_KIND_STRING)
        return td_box_string_new(v.string, (int64_t)strlen(v.string), out);
    if (v.kind == TD_KIND_INTS || v.kind == TD_KIND_FLOATS || v.kind == TD_KIND_TENSORS)
        return box_array(v, out);
    *out = td_value_retain(v);
    return TD_OK;
}

static td_status copy_list(const td_box_list *list, td_value *out) {
    td_value made = TD_NIL;
    td_status status = td_box_list_new((td_box_entries)list->entries, &made);
    for (int k = 0; k < list->n && status == TD_OK; k++) {
        td_value entry = TD_NIL;
        status = td_value_copy(td_list_entry(list, k), &entry);
        if (status == TD_OK)
            status = td_list_append(td_value_list(made), entry);
        td_value_drop(&entry);
    }
    if (status)
        td_value_drop(&made);
    else
        *out = made;
    return status;
}

static td_status copy_dict(const td_box_dict *dict, td_value *out) {
    td_value made = TD_NIL;
    td_status status = td_box_dict_new(&made);
    for (td_dict_entry *entry = dict->first; entry && status == TD_OK; entry = entry->next) {
        td_value value = TD_NIL;
        status = td_value_copy(entry->value, &value);
        if (status == TD_OK)
            status = td_dict_set(td_value_dict(made), entry->key, value);
        td_value_drop(&value);
    }
    if (status)
        td_value_drop(&made);
    else
        *out = made;
    return status;
}

static bool has_list(td_value v) {
    const td_box_tuple *tuple = td_value_tuple(v);
    for (int k = 0; tuple && k < tuple->n; k++)
        if (has_list(tuple->parts[k]))
            return true;
    return v.kind == TD_BOX_LIST || v.kind == TD_BOX_DICT;
}

td_status td_value_copy(td_value v, td_value *out) {
    const td_box_list *list = td_value_list(v);
    const td_box_tuple *tuple = td_value_tuple(v);
    if (list && list->entries != TD_ENTRIES_VALUES)
        return td_value_keep(td_list_argument(list), out);
    if (list)
        return copy_list(list, out);
    if (td_value_dict(v))
        return copy_dict(td_value_dict(v), out);
    if (!tuple || !has_list(v))
        return td_value_keep(v, out);
    td_value made = TD_NIL;
    td_status status = td_box_tuple_new(tuple->n, &made);
    for (int k = 0; k < tuple->n && status == TD_OK; k++)
        status = td_value_copy(tuple->parts[k], &td_value_tuple(made)->parts[k]);
    if (status)
        td_value_drop(&made);
    else
        *out = made;
    return status;
}

void td_value_set_given(td_value v) {
    td_box_list *list = td_value_list(v);
    td_box_dict *dict = td_value_dict(v);
    const td_box_tuple *tuple = td_value_tuple(v);
    if (list)
        list->given = true;
    for (int k = 0; list && list->entries == TD_ENTRIES_VALUES && k < list->n; k++)
        td_value_set_given(list->values[k]);
    if (dict)
        dict->given = true;
    for (td_dict_entry *entry = dict ? dict->first : NULL; entry; entry = entry->next)
        td_value_set_given(entry->value);
    for (int k = 0; tuple && k < tuple->n; k++)
        td_value_set_given(tuple->parts[k]);
}
