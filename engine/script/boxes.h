/* boxes.h: values of graphs that no operator takes as they are: strings made while a graph runs,
 * lists, dicts, tuples and futures.
 *
 * A td_value of a kind from TD_KIND_BOX on points to a box, which is counted by atomic references.
 * All other kinds need no allocation: numbers, bools, nil, dtypes and devices are held by value, a
 * tensor by its own references; texts and arrays (TD_KIND_STRING, INTS, FLOATS, TENSORS) are
 * borrowed from a graph, an operator or a caller, and are boxed where they must live longer
 * (td_value_keep).
 *
 * Lists and dicts are by reference: whoever holds one sees what others put in. They are not
 * guarded: one is used by one thread at a time, so a fork is given copies (td_value_copy). What a
 * caller gave is a copy of the caller's and so is not written (`given`): the caller would not see
 * it. A tuple and a string never change. Entries of lists are counted from 0 here.
 */
#ifndef TD_SCRIPT_BOXES_H
#define TD_SCRIPT_BOXES_H

#include "engine/core/map.h"
#include "engine/ops/op.h"

/* Kinds of values (td_value.kind) behind td_kind's own: td_value_box gives the box. A quantized
 * tensor's dtype is no box but a value, `dtype` being that of its integers; no operator takes it.
 */
typedef enum td_box_kind {
    TD_VALUE_QUANTIZED_DTYPE = 31,
    TD_KIND_BOX = 32, /* the first; all from here on are boxes */
    TD_BOX_STRING = TD_KIND_BOX,
    TD_BOX_LIST,
    TD_BOX_TUPLE,
    TD_BOX_FUTURE, /* scripted.h */
    TD_BOX_DICT
} td_box_kind;

/* What every box begins with. */
typedef struct td_box {
    atomic_int refs;
} td_box;

/* What futures begin with (future.c). */
typedef struct td_box_future {
    td_box box;
    void (*destroy)(struct td_box_future *future);
} td_box_future;

typedef struct td_box_string {
    td_box box;
    int64_t length;
    char text[]; /* terminated, and may hold zeros */
} td_box_string;

typedef struct td_box_tuple {
    td_box box;
    int n;
    td_value parts[]; /* owned */
} td_box_tuple;

/* How the entries of a list are kept: as operators read them, or as values. */
typedef enum td_box_entries {
    TD_ENTRIES_INTS,
    TD_ENTRIES_FLOATS,
    TD_ENTRIES_TENSORS, /* owned; NULL: an entry that is nil */
    TD_ENTRIES_VALUES   /* owned */
} td_box_entries;

typedef struct td_box_list {
    td_box box;
    uint8_t entries; /* td_box_entries */
    bool given;      /* by a caller: it is not written */
    int n, room;
    union {
        void *block;
        int64_t *ints;
        double *floats;
        td_tensor **tensors;
        td_value *values;
    };
} td_box_list;

/* An entry of a dict; those that are there form a list in the order in which they came. */
typedef struct td_dict_entry {
    struct td_dict_entry *before, *next;
    uint64_t hash;
    td_value key, value; /* owned; the key is a boxed string */
    bool there;          /* or it was taken out, and is kept for the map */
} td_dict_entry;

/* Strings to values, in the order in which they were first put in. */
typedef struct td_box_dict {
    td_box box;
    bool given; /* by a caller: it is not written */
    int n;      /* entries that are there */
    td_map map; /* of all */
    td_dict_entry *first, *last;
} td_box_dict;

/* ---- values ---- */

/* Pointers of the union share their place; a box stands in that of generators. */
#define TD_QUANTIZED_DTYPE(ints) ((td_value){.kind = TD_VALUE_QUANTIZED_DTYPE, .dtype = (ints)})
#define TD_BOX(box_kind, x)                                                                        \
    ((td_value){.kind = (box_kind), .generator = (struct td_generator *)(void *)(x)})
/* NULL where a value is something else. */
static inline td_box *td_value_box(td_value v) {
    return v.kind >= TD_KIND_BOX ? (td_box *)(void *)v.generator : NULL;
}
static inline td_box_list *td_value_list(td_value v) {
    return v.kind == TD_BOX_LIST ? (td_box_list *)(void *)v.generator : NULL;
}
static inline td_box_dict *td_value_dict(td_value v) {
    return v.kind == TD_BOX_DICT ? (td_box_dict *)(void *)v.generator : NULL;
}
static inline td_box_tuple *td_value_tuple(td_value v) {
    return v.kind == TD_BOX_TUPLE ? (td_box_tuple *)(void *)v.generator : NULL;
}

/* Another holder of a value; what is borrowed stays so. */
static inline td_value td_value_retain(td_value v) {
    if (v.kind == TD_KIND_TENSOR)
        td_retain(v.tensor);
    else if (v.kind >= TD_KIND_BOX)
        atomic_fetch_add_explicit(&td_value_box(v)->refs, 1, memory_order_relaxed);
    return v;
}
void td_box_destroy(td_value box); /* for td_value_drop only */
/* Let go of what a value holds; it is nil then. */
static inline void td_value_drop(td_value *v) {
    if (v->kind == TD_KIND_TENSOR)
        td_release(v->tensor);
    else if (v->kind >= TD_KIND_BOX && td_was_last(&td_value_box(*v)->refs))
        td_box_destroy(*v);
    *v = TD_NIL;
}

/* A value that owns all it has, new: borrowed texts and arrays are boxed. ENOMEM. */
td_status td_value_keep(td_value v, td_value *out) TD_MUST_CHECK;
/* The same without any list or dict in common with others: these, and tuples that hold some, are
 * copied through and through; tensors are shared. ENOMEM. */
td_status td_value_copy(td_value v, td_value *out) TD_MUST_CHECK;

/* What a caller gave: no list or dict in it is written from here on. */
void td_value_set_given(td_value v);

/* The text of a string, borrowed from it or from its box, and its length; NULL: it is none. */
const char *td_value_text(td_value v, int64_t *length);

/* ---- making boxes ---- */

/* New, with a copy of a text of that length. ENOMEM. */
td_status td_box_string_new(const char *text, int64_t length, td_value *out) TD_MUST_CHECK;
/* New, of n parts, which are nil at first. ENOMEM. */
td_status td_box_tuple_new(int n, td_value *out) TD_MUST_CHECK;
/* New, empty. ENOMEM. */
td_status td_box_list_new(td_box_entries entries, td_value *out) TD_MUST_CHECK;

/* New, empty. ENOMEM. */
td_status td_box_dict_new(td_value *out) TD_MUST_CHECK;

/* ---- dicts ---- */

/* The entry under a string; NULL: there is none. */
td_dict_entry *td_dict_find(const td_box_dict *dict, td_value key);
/* Put a value, which is held, under a string: in the place of the one there, else behind all
 * others. ENOMEM. */
td_status td_dict_set(td_box_dict *dict, td_value key, td_value value) TD_MUST_CHECK;
/* Take the entry under a string out, if there is one. */
void td_dict_delete(td_box_dict *dict, td_value key);
void td_dict_clear(td_box_dict *dict); /* of all entries */

/* ---- lists ---- */

/* How a list of entries of a graph's type is kept. */
struct td_ir_type;
td_box_entries td_entries_of_type(const struct td_ir_type *entry);

/* Another entry at the end, which is held. An int becomes a float where the list has floats. ETYPE:
 * it is not of the list's kind; ENOMEM. */
td_status td_list_append(td_box_list *list, td_value entry) TD_MUST_CHECK;
/* The entry at 0 <= index < n: borrowed from the list. */
td_value td_list_entry(const td_box_list *list, int index);
/* In place of the one at 0 <= index < n. ETYPE. */
td_status td_list_replace(td_box_list *list, int index, td_value entry) TD_MUST_CHECK;
/* Put in before the one at 0 <= index <= n. ETYPE, ENOMEM. */
td_status td_list_insert(td_box_list *list, int index, td_value entry) TD_MUST_CHECK;
/* Taken out of 0 <= index < n: the caller's. */
td_value td_list_take(td_box_list *list, int index);
/* Of a list, or an array that is borrowed: how many entries, and the one at 0 <= k < n, borrowed.
 */
int td_value_length(td_value v);
td_value td_value_entry(td_value v, int k);
/* As an argument of an operator: borrowed from the list while nobody changes it. A list of values
 * stays a box. */
td_value td_list_argument(const td_box_list *list);

#endif
