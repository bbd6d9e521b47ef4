/* reduction.h: shapes of reductions as kernels take them. */
#ifndef TD_CUDA_REDUCE_REDUCTION_H
#define TD_CUDA_REDUCE_REDUCTION_H

#include "engine/cuda/cuda.h"
#include "engine/cuda/reduce/reduction_code.h"
#include "engine/ops/plan/reduction.h"

/* How x is folded over the masked dims into `out`. */
td_cu_reduction td_cuda_reduction_of(const td_tensor *x, uint32_t mask, const td_tensor *out);

/* Choose between rows and columns, threads of an output, and pieces: from the shape alone. */
void td_cuda_reduction_spread(td_cu_reduction *s);

/* Room for the partial results, where there are some. */
td_status td_cuda_reduction_room(const td_cu_reduction *s, td_stream stream,
                                 td_cuda_scratch *partial) TD_MUST_CHECK;

#endif
