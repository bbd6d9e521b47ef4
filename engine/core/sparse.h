/* sparse.h: sparse tensors in coordinates: where the elements stand that are kept, and what they
 * are; all others are 0.
 *
 * The first dims, as many as `indices` has rows, are sparse: a column of `indices` names a place in
 * them, and the row of `values` of the same number holds what stands there: one element, or all
 * elements of the other dims, which are dense. A place may be named several times, its element is
 * then the sum; a coalesced tensor names each once, in row-major order.
 *
 * The struct is shared by aliases, as a storage is: a write in place gives it other parts, and
 * bumps the version of the tensor's storage.
 */
#ifndef TD_CORE_SPARSE_H
#define TD_CORE_SPARSE_H

#include "engine/core/tensor.h"

typedef struct td_sparse {
    td_extra extra;
    td_tensor *indices; /* int64, (sparse dims, n), row-major, from 0; owned */
    td_tensor *values;  /* (n, dense sizes), without history; owned */
    bool coalesced;
} td_sparse;

/* New sparse tensor of a shape; takes its own references to the parts, which fit one another and
 * the shape. Fewer than two elements are coalesced always. ESHAPE unless the sizes can be counted,
 * ENOMEM. */
td_status td_sparse_new(int ndim, const int64_t *sizes, td_tensor *indices, td_tensor *values,
                        bool coalesced, td_tensor **out) TD_MUST_CHECK;

/* The parts of a sparse tensor, borrowed; NULL for any other. */
static inline td_sparse *td_sparse_of(const td_tensor *x) {
    return TD_UNLIKELY(x->layout == TD_SPARSE_COO) ? (td_sparse *)x->extra : NULL;
}
static inline int td_sparse_dims(const td_sparse *s) {
    return (int)s->indices->sizes[0];
}
static inline int64_t td_sparse_count(const td_sparse *s) {
    return s->indices->sizes[1];
}

#endif
