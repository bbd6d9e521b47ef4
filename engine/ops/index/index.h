/* index.h: indexing with tensors, for the bindings and for operators that are made of it. */
#ifndef TD_OPS_INDEX_INDEX_H
#define TD_OPS_INDEX_INDEX_H

#include "engine/ops/op.h"
#include "engine/ops/plan/plan.h"

/* Geometry of x[indices]; entries are NULL or row-major int64 tensors of one shape. Where indexed
 * dims do not follow one another, the index tensors' dims come first (as in NumPy). */
td_status td_index_plan_make(const td_tensor *x, td_value indices,
                             td_index_plan *plan) TD_MUST_CHECK;

/* x[indices] = values, or += where accumulate; entries are NULL, masks or integer tensors that
 * broadcast. Recorded by autograd. */
td_status td_index_put(td_tensor *x, td_value indices, td_tensor *values,
                       bool accumulate) TD_MUST_CHECK;

/* The dtype in which `written` elements, of which `times` may meet at one place, are added up in a
 * tensor of `all`, or multiplied: in bfloat16 itself a sum of ones stops at 256, in float16 at
 * 2048, in float32 at 2^24. Few elements for a tensor so large that a wider copy of it would take
 * longer than all else stay in its dtype. */
td_dtype td_meeting_dtype(td_dtype dtype, int64_t times, int64_t written, int64_t all);

/* plan->out = 0 but for the sums of what meets at each place, `times` elements at most. */
struct td_add_strided_plan;
td_status td_add_meeting(struct td_add_strided_plan *plan, int64_t times) TD_MUST_CHECK;

/* Put a copy into the place of *x where it shares memory with a tensor to be written: what is read
 * stays as it was. The old reference is stolen. */
td_status td_take_apart(const td_tensor *written, td_tensor **x) TD_MUST_CHECK;

#endif
