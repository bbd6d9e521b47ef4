/* scalar_lists.c: lists and dicts in graphs, and futures. Arrays of a graph or a caller are read as
 * lists are; only lists that a graph made are written. */
#include "engine/script/future.h"
#include "engine/script/scalar_rows.h"

#include "engine/core/memory.h"

#include <string.h>

#define ROW(name) td_status td_scalar_##name(int n, const td_value *args, td_value *out)

/* A new list that is kept as another one. */
static td_status list_like(td_value v, td_value *out) {
    const td_box_list *list = td_value_list(v);
    return td_box_list_new(list                       ? (td_box_entries)list->entries
                           : v.kind == TD_KIND_INTS   ? TD_ENTRIES_INTS
                           : v.kind == TD_KIND_FLOATS ? TD_ENTRIES_FLOATS
                                                      : TD_ENTRIES_TENSORS,
                           out);
}

static td_status written(td_value v, td_box_list **list) {
    *list = td_value_list(v);
    return *list && !(*list)->given
               ? TD_OK
               : td_fail(TD_EVALUE, "a list that was given to the function, or is a constant of "
                                    "it, is not written: copy it first");
}

static td_status finish(td_status status, td_value list, td_value *out) {
    if (status == TD_OK)
        *out = td_value_retain(list);
    return status;
}

/* From 0 or from the end, into [0, n). */
static td_status wrap(int64_t index, int n, int *k) {
    *k = 0;
    int64_t at = index < 0 ? index + n : index;
    if (at < 0 || at >= n)
        return td_fail(TD_EINDEX, "index %lld of a list of %d", (long long)index, n);
    *k = (int)at;
    return TD_OK;
}

/* ---- reading ---- */

ROW(length) {
    int64_t bytes = 0;
    (void)n;
    bool text = td_value_text(args[0], &bytes) != NULL;
    *out = TD_I(text ? bytes : td_value_length(args[0]));
    return TD_OK;
}

ROW(get_item) {
    int k;
    (void)n;
    td_status status = wrap(args[1].i, td_value_length(args[0]), &k);
    return status ? status : td_value_keep(td_value_entry(args[0], k), out);
}

ROW(get_entry) {
    (void)n;
    int count = td_value_length(args[0]);
    if (args[1].i < 1 || args[1].i > count)
        return td_fail(TD_EINDEX, "index %lld of a list of %d", (long long)args[1].i, count);
    return td_value_keep(td_value_entry(args[0], (int)args[1].i - 1), out);
}

static td_status append_all(td_box_list *list, td_value from) {
    td_status status = TD_OK;
    int count = td_value_length(from); /* which may be the list itself */
    for (int k = 0; k < count && status == TD_OK; k++)
        status = td_list_append(list, td_value_entry(from, k));
    return status;
}

ROW(join) {
    td_value made = TD_NIL;
    td_status status = list_like(args[0], &made);
    for (int k = 0; k < n && status == TD_OK; k++)
        status = append_all(td_value_list(made), args[k]);
    if (status)
        td_value_drop(&made);
    else
        *out = made;
    return status;
}

ROW(copy) {
    (void)n;
    return td_scalar_join(1, args, out);
}

/* An end of a slice, into [0, n]. */
static int64_t clamp(td_value end, int64_t otherwise, int64_t n) {
    int64_t at = td_is_nil(end) ? otherwise : end.i < 0 ? end.i + n : end.i;
    return at < 0 ? 0 : at > n ? n : at;
}

static td_status slice_text(const td_value *args, td_value *out) {
    int64_t bytes, step = args[3].i, n = 0;
    const char *text = td_value_text(args[0], &bytes);
    int64_t from = clamp(args[1], 0, bytes), to = clamp(args[2], bytes, bytes);
    char *cut = td_malloc((size_t)bytes + 1);
    if (!cut)
        return td_fail(TD_ENOMEM, "out of memory for a string");
    for (int64_t k = from; k < to; k = step < to - k ? k + step : to)
        cut[n++] = text[k];
    td_status status = td_box_string_new(cut, n, out);
    td_free(cut);
    return status;
}

ROW(slice) {
    td_value made = TD_NIL;
    (void)n;
    if (args[3].i < 1)
        return td_fail(TD_EVALUE, "a slice has a step of at least 1");
    if (td_value_text(args[0], NULL))
        return slice_text(args, out);
    int64_t count = td_value_length(args[0]), step = args[3].i;
    int64_t from = clamp(args[1], 0, count), to = clamp(args[2], count, count);
    td_status status = list_like(args[0], &made);
    for (int64_t k = from; k < to && status == TD_OK; k = step < to - k ? k + step : to)
        status = td_list_append(td_value_list(made), td_value_entry(args[0], (int)k));
    if (status)
        td_value_drop(&made);
    else
        *out = made;
    return status;
}

/* ---- writing ---- */

ROW(append) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    return finish(status ? status : td_list_append(list, args[1]), args[0], out);
}

ROW(set_item) {
    td_box_list *list;
    int k = 0;
    (void)n;
    td_status status = written(args[0], &list);
    if (status == TD_OK)
        status = wrap(args[1].i, list->n, &k);
    return finish(status ? status : td_list_replace(list, k, args[2]), args[0], out);
}

ROW(set_entry) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    int64_t i = args[1].i;
    if (status == TD_OK && (i < 1 || i > (int64_t)list->n + 1))
        status = td_fail(TD_EINDEX, "index %lld of a list of %d: the next is %d", (long long)i,
                         list->n, list->n + 1);
    if (status == TD_OK)
        status = i > list->n ? td_list_append(list, args[2])
                             : td_list_replace(list, (int)i - 1, args[2]);
    return finish(status, args[0], out);
}

ROW(insert) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    if (status == TD_OK && (args[1].i < 0 || args[1].i > list->n))
        status = td_fail(TD_EINDEX, "index %lld of a list of %d", (long long)args[1].i, list->n);
    return finish(status ? status : td_list_insert(list, (int)args[1].i, args[2]), args[0], out);
}

ROW(pop) {
    td_box_list *list;
    int k = 0;
    (void)n;
    td_status status = written(args[0], &list);
    if (status == TD_OK)
        status = wrap(args[1].i, list->n, &k);
    if (status == TD_OK)
        *out = td_list_take(list, k);
    return status;
}

ROW(pop_last) {
    td_value whole[2] = {args[0], TD_I(-1)};
    return td_scalar_pop(n + 1, whole, out);
}

ROW(remove) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    if (status == TD_OK && (args[1].i < 1 || args[1].i > list->n))
        status = td_fail(TD_EINDEX, "index %lld of a list of %d", (long long)args[1].i, list->n);
    if (status == TD_OK)
        *out = td_list_take(list, (int)args[1].i - 1);
    return status;
}

/* Is a before b? `sorts` is false from the first two on that have no order. */
static bool entry_before(td_value a, td_value b, bool *sorts) {
    td_value pair[2] = {a, b}, less = TD_B(false);
    bool texts = td_value_text(a, NULL) && td_value_text(b, NULL);
    bool numbers = (a.kind == TD_KIND_INT || a.kind == TD_KIND_FLOAT) &&
                   (b.kind == TD_KIND_INT || b.kind == TD_KIND_FLOAT);
    *sorts &= texts || numbers;
    if (*sorts && td_scalar_less(2, pair, &less))
        *sorts = false;
    return less.b;
}

/* Merges two runs that follow one another, [0, half) and [half, n), by way of `room`. */
static void merge_runs(td_value *runs, int half, int n, td_value *room, bool *sorts) {
    int a = 0, b = half, k = 0;
    while (a < half && b < n)
        room[k++] = entry_before(runs[b], runs[a], sorts) ? runs[b++] : runs[a++];
    while (a < half)
        room[k++] = runs[a++];
    while (b < n)
        room[k++] = runs[b++];
    memcpy(runs, room, sizeof *runs * (size_t)n);
}

static void sort_values(td_value *values, int n, td_value *room, bool *sorts) {
    for (int width = 1; width < n; width *= 2)
        for (int at = 0; at + width < n; at += 2 * width)
            merge_runs(values + at, width, n - at < 2 * width ? n - at : 2 * width, room, sorts);
}

ROW(sort) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    if (status)
        return status;
    td_value *values = td_malloc(sizeof *values * 2 * (size_t)(list->n + 1));
    bool sorts = true;
    if (!values)
        return td_fail(TD_ENOMEM, "out of memory to sort a list");
    for (int k = 0; k < list->n; k++)
        values[k] = td_list_entry(list, k);
    sort_values(values, list->n, values + list->n, &sorts);
    for (int k = 0; k < list->n && sorts;
         k++) { /* the same entries, so references stay as they are */
        if (list->entries == TD_ENTRIES_VALUES)
            list->values[k] = values[k];
        else if (list->entries == TD_ENTRIES_FLOATS)
            list->floats[k] = values[k].f;
        else
            list->ints[k] = values[k].i;
    }
    td_free(values);
    return finish(sorts ? TD_OK : td_fail(TD_ETYPE, "a list of numbers, or of strings, is sorted"),
                  args[0], out);
}

ROW(clear) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    while (status == TD_OK && list->n) {
        td_value last = td_list_take(list, list->n - 1);
        td_value_drop(&last);
    }
    return finish(status, args[0], out);
}

ROW(extend) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    return finish(status ? status : append_all(list, args[1]), args[0], out);
}

ROW(reverse) {
    td_box_list *list;
    (void)n;
    td_status status = written(args[0], &list);
    size_t size = status == TD_OK && list->entries == TD_ENTRIES_VALUES ? sizeof(td_value) : 8;
    for (int a = 0, b = status ? 0 : list->n - 1; a < b; a++, b--) {
        char kept[sizeof(td_value)], *block = list->block;
        memcpy(kept, block + size * (size_t)a, size);
        memcpy(block + size * (size_t)a, block + size * (size_t)b, size);
        memcpy(block + size * (size_t)b, kept, size);
    }
    return finish(status, args[0], out);
}

/* ---- dicts ---- */

static td_status written_dict(td_value v, td_box_dict **dict) {
    *dict = td_value_dict(v);
    return (*dict)->given
               ? td_fail(TD_EVALUE, "a dict that was given to the function is not written")
               : TD_OK;
}

ROW(dict_item) {
    (void)n;
    const td_dict_entry *entry = td_dict_find(td_value_dict(args[0]), args[1]);
    if (!entry)
        return td_fail(TD_EINDEX, "there is nothing under '%.60s'", td_value_text(args[1], NULL));
    return td_value_keep(entry->value, out);
}

ROW(dict_get) {
    (void)n;
    const td_dict_entry *entry = td_dict_find(td_value_dict(args[0]), args[1]);
    return td_value_keep(entry ? entry->value : TD_NIL, out);
}

ROW(dict_contains) {
    (void)n;
    *out = TD_B(td_dict_find(td_value_dict(args[0]), args[1]) != NULL);
    return TD_OK;
}

ROW(dict_length) {
    (void)n;
    *out = TD_I(td_value_dict(args[0])->n);
    return TD_OK;
}

ROW(dict_keys) {
    (void)n;
    td_value made = TD_NIL;
    const td_box_dict *dict = td_value_dict(args[0]);
    td_status status = td_box_list_new(TD_ENTRIES_VALUES, &made);
    for (const td_dict_entry *e = dict->first; e && status == TD_OK; e = e->next)
        status = td_list_append(td_value_list(made), e->key);
    if (status)
        td_value_drop(&made);
    else
        *out = made;
    return status;
}

ROW(dict_set) {
    td_box_dict *dict;
    (void)n;
    td_status status = written_dict(args[0], &dict);
    return finish(status ? status : td_dict_set(dict, args[1], args[2]), args[0], out);
}

ROW(dict_delete) {
    td_box_dict *dict;
    (void)n;
    td_status status = written_dict(args[0], &dict);
    if (status == TD_OK)
        td_dict_delete(dict, args[1]);
    return finish(status, args[0], out);
}

ROW(dict_clear) {
    td_box_dict *dict;
    (void)n;
    td_status status = written_dict(args[0], &dict);
    if (status == TD_OK)
        td_dict_clear(dict);
    return finish(status, args[0], out);
}

/* ---- others ---- */

ROW(unwrap) {
    (void)n;
    if (td_is_nil(args[0]))
        return td_fail(TD_EVALUE, "a value is expected, and it is nil");
    return td_value_keep(args[0], out);
}

ROW(wait) {
    (void)n;
    return td_future_wait(args[0], out);
}
