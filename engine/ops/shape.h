/* shape.h: the geometry of views, and the kernels of the shape family that a device defines. */
#ifndef TD_OPS_SHAPE_H
#define TD_OPS_SHAPE_H

#include "engine/ops/op.h"

/* Strides with which x's elements, in row-major order, are seen in another shape of as many
 * elements; false where that needs a copy. */
bool td_view_strides(const td_tensor *x, int ndim, const int64_t *sizes, int64_t *strides);

/* Sizes with a -1 put in its place. ESHAPE unless the elements come out even. */
td_status td_infer_size(int64_t numel, int n, const int64_t *sizes, int64_t *out) TD_MUST_CHECK;

/* Rule: the shape and dtype of the first argument. */
td_status td_rule_same(const td_call *call, td_meta *out);

/* view.c: run functions and gradients of views. */
td_status td_run_view(td_call *call);
td_status td_run_permute(td_call *call);
td_status td_run_transpose(td_call *call);
td_status td_run_squeeze(td_call *call);
td_status td_run_unsqueeze(td_call *call);
td_status td_run_expand(td_call *call);
td_status td_run_select(td_call *call);
td_status td_run_slice(td_call *call);
td_status td_run_as_strided(td_call *call);

td_status td_grad_reshaped(td_grad *grad); /* the gradient in the input's shape */
td_status td_grad_permute(td_grad *grad);
td_status td_grad_transpose(td_grad *grad);
td_status td_grad_expand(td_grad *grad);
td_status td_grad_select(td_grad *grad);
td_status td_grad_slice(td_grad *grad);
td_status td_grad_as_strided(td_grad *grad);

/* The part of a row-major or any other tensor between two diagonals: out = x where
 * column - row lies in [first, last], else 0. out is row-major and may be x. */
td_status td_cpu_band(const td_tensor *x, int64_t first, int64_t last,
                      td_tensor *out) TD_MUST_CHECK;

/* Add g's elements to the row-major x where a view of it with these strides and offset has them. */
td_status td_cpu_add_strided(td_tensor *x, const td_tensor *g, const int64_t *strides,
                             int64_t offset) TD_MUST_CHECK;

#endif
