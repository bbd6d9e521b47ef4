/* shape.h: the geometry of views. */
#ifndef TD_OPS_SHAPE_SHAPE_H
#define TD_OPS_SHAPE_SHAPE_H

#include "engine/ops/op.h"

/* Strides with which x's elements, in row-major order, are seen in another shape of as many
 * elements; false where that needs a copy. */
bool td_view_strides(const td_tensor *x, int ndim, const int64_t *sizes, int64_t *strides);

/* Sizes with a -1 put in its place. ESHAPE unless the elements come out even. */
td_status td_infer_size(int64_t numel, int n, const int64_t *sizes, int64_t *out) TD_MUST_CHECK;

/* New view of the places from start to stop (nil: the ends) along a dim, as the operator slice
 * counts them. */
td_status td_slice_view(td_tensor *x, int64_t dim, td_value start, td_value stop, int64_t step,
                        td_tensor **out) TD_MUST_CHECK;

/* view.c: run functions of views, and a gradient. */
td_status td_run_view(td_call *call);
td_status td_run_permute(td_call *call);
td_status td_run_transpose(td_call *call);
td_status td_run_squeeze(td_call *call);
td_status td_run_unsqueeze(td_call *call);
td_status td_run_expand(td_call *call);
td_status td_run_select(td_call *call);
td_status td_run_slice(td_call *call);
td_status td_run_strided(td_call *call);
td_status td_grad_permute(td_grad *grad);

#endif
