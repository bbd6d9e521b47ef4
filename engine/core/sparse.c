/* sparse.c: birth and death of the parts of sparse tensors. */
#include "engine/core/sparse.h"

#include "engine/core/memory.h"

static void destroy(td_extra *extra) {
    td_sparse *s = (td_sparse *)extra;
    td_release(s->indices);
    td_release(s->values);
    td_object_free(s, sizeof *s);
}

td_status td_sparse_new(int ndim, const int64_t *sizes, td_tensor *indices, td_tensor *values,
                        bool coalesced, td_tensor **out) {
    *out = NULL;
    td_sparse *s = td_object_alloc(sizeof *s);
    if (!s)
        return td_fail(TD_ENOMEM, "out of memory for a sparse tensor");
    atomic_init(&s->extra.refs, 1);
    s->extra.destroy = destroy;
    s->indices = td_retain(indices);
    s->values = td_retain(values);
    s->coalesced = coalesced || td_sparse_count(s) < 2;
    return td_tensor_from_extra((td_dtype)values->dtype, td_tensor_device(values), TD_SPARSE_COO,
                                ndim, sizes, &s->extra, out);
}

void td_sparse_become(td_tensor *x, const td_tensor *y) {
    td_sparse *to = td_sparse_of(x), *from = td_sparse_of(y);
    td_tensor *indices = to->indices, *values = to->values;
    to->indices = td_retain(from->indices);
    to->values = td_retain(from->values);
    to->coalesced = from->coalesced;
    td_release(indices);
    td_release(values);
}
