/* sparse.c: the layout of sparse tensors, whose parts are coordinates and elements. */
#include "engine/core/sparse.h"

#include "engine/core/layout.h"
#include "engine/core/memory.h"

#include <stdio.h>

static void destroy(td_extra *extra) {
    td_sparse *s = (td_sparse *)extra;
    td_release(s->indices);
    td_release(s->values);
    td_object_free(s, sizeof *s);
}

static td_tensor *elements(const td_tensor *x) {
    return td_sparse_of(x)->values;
}

static void describe(const td_tensor *x, char *text, size_t size) {
    snprintf(text, size, "nnz=%lld", (long long)td_sparse_count(td_sparse_of(x)));
}

static void become(td_tensor *x, const td_tensor *y) {
    td_sparse *to = td_sparse_of(x), *from = td_sparse_of(y);
    td_tensor *indices = to->indices, *values = to->values;
    to->indices = td_retain(from->indices);
    to->values = td_retain(from->values);
    to->coalesced = from->coalesced;
    td_release(indices);
    td_release(values);
}

static const td_layout_traits sparse_coo = {.name = "sparse_coo",
                                            .noun = "sparse",
                                            .convert = "to_dense",
                                            .destroy = destroy,
                                            .elements = elements,
                                            .describe = describe,
                                            .become = become};

td_status td_sparse_new(int ndim, const int64_t *sizes, td_tensor *indices, td_tensor *values,
                        bool coalesced, td_tensor **out) {
    *out = NULL;
    td_sparse *s = td_object_alloc(sizeof *s);
    if (!s)
        return td_fail(TD_ENOMEM, "out of memory for a sparse tensor");
    atomic_init(&s->extra.refs, 1);
    s->extra.layout = &sparse_coo;
    s->indices = td_retain(indices);
    s->values = td_retain(values);
    s->coalesced = coalesced || td_sparse_count(s) < 2;
    return td_tensor_from_extra((td_dtype)values->dtype, td_tensor_device(values), TD_SPARSE_COO,
                                ndim, sizes, &s->extra, out);
}
