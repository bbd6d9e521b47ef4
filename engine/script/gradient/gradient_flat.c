/* gradient_flat.c: lists and tuples of values, taken apart and put together. */
#include "engine/script/gradient/gradient_flat.h"

#include "engine/core/memory.h"

#include <string.h>

enum {
    MOST = 512, /* values, lists and tuples */
    PLAIN = 0,  /* what stands in a layout: a value by itself, */
    TUPLE,      /* a tuple, */
    LIST        /* a list, of each kind of td_box_entries */
};

static int entries_of(td_value v) {
    if (v.kind == TD_BOX_TUPLE)
        return td_value_tuple(v)->n;
    return v.kind == TD_BOX_LIST ? td_value_list(v)->n : v.kind == TD_KIND_TENSORS ? v.n : 0;
}

static int code_of(td_value v) {
    if (v.kind == TD_BOX_TUPLE)
        return TUPLE;
    if (v.kind == TD_BOX_LIST)
        return LIST + td_value_list(v)->entries;
    return v.kind == TD_KIND_TENSORS ? LIST + TD_ENTRIES_TENSORS : PLAIN;
}

static td_value entry_of(td_value v, int k) {
    if (v.kind == TD_BOX_TUPLE)
        return td_value_tuple(v)->parts[k];
    return v.kind == TD_BOX_LIST ? td_list_entry(td_value_list(v), k)
                                 : td_tensor_or_nil(v.tensors[k]);
}

/* Counted, and put down where there is room; more than MOST: false. */
static bool add(td_flat *f, td_value v) {
    int code = code_of(v), n = entries_of(v);
    if (f->nlayout >= 2 * MOST)
        return false;
    if (f->layout) {
        f->layout[f->nlayout] = code;
        f->layout[f->nlayout + 1] = n;
    }
    f->nlayout += 2;
    if (code == PLAIN) {
        if (f->own)
            f->own[f->n] = v;
        f->n++;
    }
    for (int k = 0; k < n; k++)
        if (!add(f, entry_of(v, k)))
            return false;
    return true;
}

static bool add_all(td_flat *f, int n, const td_value *values) {
    f->n = f->nlayout = 0;
    for (int k = 0; k < n; k++)
        if (!add(f, values[k]))
            return false;
    return true;
}

td_status td_flat_begin(int n, const td_value *values, td_flat *out) {
    bool plain = true;
    *out = (td_flat){.n = n, .values = values};
    for (int k = 0; k < n; k++)
        plain &= code_of(values[k]) == PLAIN;
    if (plain)
        return TD_OK;
    if (!add_all(out, n, values))
        return td_fail(TD_EVALUE, "more than %d values in lists", MOST);
    out->own = td_malloc(sizeof *out->own * (size_t)(out->n + 1));
    out->layout = td_malloc(sizeof *out->layout * (size_t)(out->nlayout + 1));
    if (!out->own || !out->layout)
        return td_fail(TD_ENOMEM, "out of memory for a gradient");
    (void)add_all(out, n, values);
    out->values = out->own;
    return TD_OK;
}

void td_flat_end(td_flat *f) {
    td_free(f->own);
    td_free(f->layout);
    *f = (td_flat){0};
}

bool td_flat_alike(int nlayout, const int *layout, const td_flat *f) {
    return nlayout == f->nlayout && !layout == !f->layout &&
           (!layout || !memcmp(layout, f->layout, sizeof *layout * (size_t)nlayout));
}

/* One value; the layout and the row go on behind it. */
static td_status rebuild(const int **layout, const td_value **row, td_value *out) {
    int code = (*layout)[0], n = (*layout)[1];
    *layout += 2;
    *out = TD_NIL;
    if (code == PLAIN) {
        *out = td_value_retain(*(*row)++);
        return TD_OK;
    }
    td_status status = code == TUPLE ? td_box_tuple_new(n, out)
                                     : td_box_list_new((td_box_entries)(code - LIST), out);
    for (int k = 0; k < n && status == TD_OK; k++) {
        td_value entry;
        status = rebuild(layout, row, &entry);
        if (status == TD_OK && code == TUPLE) {
            td_value_tuple(*out)->parts[k] = entry;
        } else if (status == TD_OK) {
            status = td_list_append(td_value_list(*out), entry);
            td_value_drop(&entry);
        }
    }
    if (status)
        td_value_drop(out);
    return status;
}

td_status td_flat_rebuild(const int *layout, const td_value *row, int n, td_value *out) {
    for (int k = 0; k < n; k++) {
        td_status status = TD_OK;
        if (layout)
            status = rebuild(&layout, &row, &out[k]);
        else
            out[k] = td_value_retain(row[k]);
        if (status) {
            while (k-- > 0)
                td_value_drop(&out[k]);
            return status;
        }
    }
    return TD_OK;
}
