/* sparse.h: sparse tensors as operators see them: their parts with the tensor's history, sparse
 * tensors of parts, and what operators of other families do where an argument is sparse. */
#ifndef TD_OPS_SPARSE_SPARSE_H
#define TD_OPS_SPARSE_SPARSE_H

#include "engine/core/sparse.h"
#include "engine/ops/op.h"

/* The parts of a sparse tensor, new references. */
typedef struct td_parts {
    td_tensor *indices, *values;
    bool coalesced;
} td_parts;

/* Of x, which is sparse: the values lead back to x where it requires grad and calls are recorded
 * (then of x coalesced, since a gradient has one element for each place). */
td_status td_parts_open(td_tensor *x, td_parts *parts) TD_MUST_CHECK;
td_status td_parts_open_coalesced(td_tensor *x, td_parts *parts) TD_MUST_CHECK;
void td_parts_close(td_parts *parts);

/* The sparse tensor of x's shape with these parts. */
td_status td_parts_join(const td_tensor *x, const td_parts *parts, td_tensor **out) TD_MUST_CHECK;

/* Add the values at their places to a strided tensor of the sparse one's shape and dtype, in
 * place. */
td_status td_parts_add_to(td_tensor *dense, const td_parts *parts) TD_MUST_CHECK;

/* The places that columns of indices name, numbered in row-major order of the sparse dims, which
 * have these sizes: new, (n). */
td_status td_number_places(td_tensor *indices, const int64_t *sizes, td_tensor **out) TD_MUST_CHECK;

/* ---- for td_op.forms ---- */

td_status td_sparse_clone(td_call *call);
td_status td_sparse_to(td_call *call);
td_status td_sparse_zeros(td_call *call); /* zero_, zeros_like, empty_like */
td_status td_sparse_copy(td_call *call);
td_status td_sparse_add(td_call *call); /* add, sub */
td_status td_sparse_mul(td_call *call);
td_status td_sparse_div(td_call *call);
td_status td_sparse_linear(td_call *call); /* neg: of each value, whether coalesced or not */
td_status td_sparse_each(td_call *call);   /* functions of one element that leave 0 as it is */
td_status td_sparse_sum(td_call *call);
td_status td_sparse_norm(td_call *call);
td_status td_sparse_product(td_call *call); /* matmul, mm, mv */

#endif
