/* transpose.h: copies between tensors of different fastest dims, and small transposes. */
#ifndef TD_CPU_POINTWISE_TRANSPOSE_H
#define TD_CPU_POINTWISE_TRANSPOSE_H

#include "engine/core/tensor.h"

/* Does copying x into out (same shape and dtype, out's last dim without gaps) exchange the fast
 * dim? Then it is done in blocks that stay in the first-level cache: td_cpu_transpose does it. */
bool td_cpu_is_transpose(const td_tensor *out, const td_tensor *x);
td_status td_cpu_transpose(td_tensor *out, const td_tensor *x) TD_MUST_CHECK;

/* Does copying x into out (same shape and dtype) go along memory in neither, as out is row-major
 * with gaps, or are there dims of one element? Then x is turned round first, without those dims. */
bool td_cpu_turns_first(const td_tensor *out, const td_tensor *x);
td_status td_cpu_turn_first(td_tensor *out, const td_tensor *x) TD_MUST_CHECK;

/* out[r * out_step + c] = x[r + c * x_step] of a matrix that stays in a cache, elements of size
 * bytes (1, 2, 4, 8): lines of x that are to be worked on side by side. */
void td_cpu_turn(void *out, int64_t out_step, const void *x, int64_t x_step, int64_t rows,
                 int64_t columns, size_t size);

#endif
