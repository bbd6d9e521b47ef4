/* reduction.h: the geometry of a reduction, the same for every device.
 *
 * A reduction's input is seen as outputs x count: dims that stay ("kept") and dims that go
 * ("reduced"), each list sorted by the input's strides, large first, and merged where neighbours
 * lie together. It knows shapes and strides, no elements and no operators.
 */
#ifndef TD_OPS_PLAN_REDUCTION_H
#define TD_OPS_PLAN_REDUCTION_H

#include "engine/ops/op.h"

typedef struct td_reduction {
    int nkept, nreduced;    /* at least 1 each: a dim of size 1 stands for none */
    int64_t outputs, count; /* elements of the result; elements behind each of them */
    int64_t kept_sizes[TD_MAX_DIMS], kept_strides[TD_MAX_DIMS];
    int64_t out_strides[TD_MAX_DIMS]; /* the result's strides over the kept dims */
    int64_t reduced_sizes[TD_MAX_DIMS], reduced_strides[TD_MAX_DIMS];
} td_reduction;

/* The dims that a dim[]? argument (nil, one, several, counted from 0 or negative) names, as a bit
 * mask: nil and an empty list mean all. EINDEX out of range, EVALUE for a dim named twice. */
td_status td_reduce_dims(td_value dims, int ndim, uint32_t *mask) TD_MUST_CHECK;

/* Shape of x without the masked dims, or with size 1 in their place. */
int td_reduce_shape(const td_tensor *x, uint32_t mask, bool keepdim, int64_t *sizes);

/* The dtype of a sum or product over x's dtype: what the option says, else int64 of integers and
 * bool. */
td_dtype td_reduce_sum_dtype(td_dtype x, td_value option);

/* Number of elements over the masked dims. */
int64_t td_reduce_count(const td_tensor *x, uint32_t mask);

/* The dims of x, broadcast from `sizes`, that must be summed to get back to it. ESHAPE when
 * `sizes` does not broadcast to x's shape. */
td_status td_reduce_dims_to(const td_tensor *x, int ndim, const int64_t *sizes,
                            uint32_t *mask) TD_MUST_CHECK;

/* Plan the reduction of x over the masked dims into `out`, whose dims are x's without the masked
 * ones, or with size 1 in place of all or of the trailing ones of them. */
void td_reduction_plan(const td_tensor *x, uint32_t mask, const td_tensor *out, td_reduction *plan);

/* A run of elements along the innermost kept (reduced) dim, from the flat position `at` on. */
typedef struct td_segment {
    int64_t offset;     /* of its first element in x */
    int64_t out_offset; /* kept dims: in the result */
    int64_t len;
} td_segment;
td_segment td_reduction_kept(const td_reduction *plan, int64_t at, int64_t end);
td_segment td_reduction_reduced(const td_reduction *plan, int64_t at, int64_t end);

#endif
