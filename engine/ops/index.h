/* index.h: the kernels of the index family that a device defines. Index tensors are row-major int64
 * and count from 0; negative indices count from the end. */
#ifndef TD_OPS_INDEX_H
#define TD_OPS_INDEX_H

#include "engine/ops/op.h"

/* Geometry of x[..., i, :, j, ...] with index tensors of one shape: x's elements that a place b of
 * the index tensors selects lie at before[] + picked(b) + after[]. */
typedef struct td_index_layout {
    int nindexed;
    const td_tensor *index[TD_MAX_DIMS]; /* each of `places` elements */
    int64_t index_sizes[TD_MAX_DIMS];    /* of the dims that they index */
    int64_t index_strides[TD_MAX_DIMS];
    int index_dims[TD_MAX_DIMS];
    int nbefore, nafter; /* the other dims, before and after the indexed */
    int64_t before_sizes[TD_MAX_DIMS], before_strides[TD_MAX_DIMS];
    int64_t after_sizes[TD_MAX_DIMS], after_strides[TD_MAX_DIMS];
    int64_t before, places, after; /* elements of the result: their product */
    int ndim;                      /* shape of the result: before, index, after */
    int64_t sizes[TD_MAX_DIMS];
} td_index_layout;

/* Plan x[indices]; entries are NULL or int64 tensors of one shape. Where indexed dims do not
 * follow one another, the index tensors' dims come first (as in NumPy). */
td_status td_index_layout_make(const td_tensor *x, td_value indices,
                               td_index_layout *plan) TD_MUST_CHECK;

/* out (row-major) = x[indices]; x[indices] = values, or += where accumulate (values row-major, of
 * x's dtype and the plan's shape). EINDEX for a place that x does not have. */
td_status td_cpu_index_read(const td_tensor *x, const td_index_layout *plan,
                            td_tensor *out) TD_MUST_CHECK;
td_status td_cpu_index_write(td_tensor *x, const td_index_layout *plan, const td_tensor *values,
                             bool accumulate) TD_MUST_CHECK;

/* Places of nonzero elements, row-major (n, x->ndim), made here. */
td_status td_cpu_nonzero(const td_tensor *x, td_tensor **out) TD_MUST_CHECK;

/* out[..., k, ...] = x[..., index[..., k, ...], ...] along a dim; any strides. */
td_status td_cpu_gather(const td_tensor *x, int dim, const td_tensor *index,
                        td_tensor *out) TD_MUST_CHECK;
/* out[..., index[..., k, ...], ...] = (or +=) src[..., k, ...]; src has out's dtype. */
td_status td_cpu_scatter(td_tensor *out, int dim, const td_tensor *index, const td_tensor *src,
                         bool add) TD_MUST_CHECK;

/* int64 row-major out = x - 1 where x > 0, x where x < 0. EINDEX where x is 0. */
td_status td_cpu_from_one_based(const td_tensor *x, td_tensor *out) TD_MUST_CHECK;

#endif
