/* scalar_lists.c: lists in graphs, and futures. Arrays of a graph or a caller are read as lists
 * are; only lists are written. */
#include "engine/script/future.h"
#include "engine/script/scalar_rows.h"

#include "engine/core/memory.h"

#include <string.h>

#define ROW(name) td_status td_scalar_##name(int n, const td_value *args, td_value *out)

static int length_of(td_value v) {
    const td_box_list *list = td_value_list(v);
    return list ? list->n : v.n;
}

/* Borrowed. */
static td_value entry_of(td_value v, int k) {
    const td_box_list *list = td_value_list(v);
    return list                       ? td_list_entry(list, k)
           : v.kind == TD_KIND_INTS   ? TD_I(v.ints[k])
           : v.kind == TD_KIND_FLOATS ? TD_F(v.floats[k])
                                      : td_tensor_or_nil(v.tensors[k]);
}

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
    return *list ? TD_OK : td_fail(TD_EVALUE, "a constant list is not written: copy it first");
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
    *out = TD_I(text ? bytes : length_of(args[0]));
    return TD_OK;
}

ROW(get_item) {
    int k;
    (void)n;
    td_status status = wrap(args[1].i, length_of(args[0]), &k);
    return status ? status : td_value_keep(entry_of(args[0], k), out);
}

ROW(get_entry) {
    (void)n;
    int count = length_of(args[0]);
    if (args[1].i < 1 || args[1].i > count)
        return td_fail(TD_EINDEX, "index %lld of a list of %d", (long long)args[1].i, count);
    return td_value_keep(entry_of(args[0], (int)args[1].i - 1), out);
}

static td_status append_all(td_box_list *list, td_value from) {
    td_status status = TD_OK;
    int count = length_of(from); /* which may be the list itself */
    for (int k = 0; k < count && status == TD_OK; k++)
        status = td_list_append(list, entry_of(from, k));
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
    int64_t count = length_of(args[0]), step = args[3].i;
    int64_t from = clamp(args[1], 0, count), to = clamp(args[2], count, count);
    td_status status = list_like(args[0], &made);
    for (int64_t k = from; k < to && status == TD_OK; k = step < to - k ? k + step : to)
        status = td_list_append(td_value_list(made), entry_of(args[0], (int)k));
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
