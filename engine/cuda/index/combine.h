/* combine.h: rows that are written to places named several times, in one fixed order, so that every
 * run gives the same bits. */
#ifndef TD_CUDA_INDEX_COMBINE_H
#define TD_CUDA_INDEX_COMBINE_H

#include "engine/cuda/cuda.h"
#include "engine/cuda/index/index_code.h"

/* Rooms for the keys of n rows, keys up to `limit`. */
typedef struct td_cuda_ordered {
    td_cuda_scratch scratch;
    td_cu_ordering ordering; /* keys[0]: to be filled in */
} td_cuda_ordered;

/* Are there few enough rows and keys? */
bool td_cuda_can_order(int64_t n, int64_t limit);
td_status td_cuda_ordered_take(td_cuda_ordered *o, td_stream stream, int64_t n,
                               int64_t limit) TD_MUST_CHECK;
/* Order the keys and combine; `keys`, `ranks` and `n` of c are filled in. */
td_status td_cuda_ordered_combine(td_cuda_ordered *o, td_cu_combination *c,
                                  cudaStream_t s) TD_MUST_CHECK;
void td_cuda_ordered_drop(td_cuda_ordered *o);

/* "index %lld is out of range for dim D of size %lld", of a dim from 0, and of a kernel that writes
 * that it has written the rest: indices are looked at while it does, and waiting for a look at all
 * of them first would take as long again. Static. */
const char *td_cuda_out_of_range(int dim, bool writes);

#endif
