/* dim_lines.h: tensors seen as lines along a dim, row-major. */
#ifndef TD_CUDA_REDUCE_DIM_LINES_H
#define TD_CUDA_REDUCE_DIM_LINES_H

#include "engine/cuda/cuda.h"
#include "engine/cuda/reduce/softmax_code.h"

/* x's shape around one dim (of a 0-dim x: one line of one element). */
td_cu_lines td_cuda_lines_of(const td_tensor *x, int dim);

/* `out` itself, or a row-major tensor like it, which td_cuda_hand_over copies there. New; where no
 * result is wanted (NULL) none. */
td_status td_cuda_room_for(td_tensor *out, td_tensor **result) TD_MUST_CHECK;
td_status td_cuda_hand_over(td_tensor *out, const td_tensor *result) TD_MUST_CHECK;

#endif
