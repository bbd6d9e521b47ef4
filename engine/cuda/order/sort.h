/* sort.h: sorting lines on the device, for the other files that need an order. */
#ifndef TD_CUDA_ORDER_SORT_H
#define TD_CUDA_ORDER_SORT_H

#include "engine/cuda/cuda.h"
#include "engine/cuda/order/sort_code.h"

/* How a dtype's elements are ordered. */
td_cu_keys td_cuda_keys_of(td_dtype dtype, bool descending);

/* Are lines of n elements few enough for what ranks count, 32 bits? */
bool td_cuda_can_sort(int64_t n);

/* Room for the steps of a long selection, and how its lines are cut: of so many lines at most. */
enum { TD_CUDA_SELECT_LINES = INT32_MAX / 1024 };
td_status td_cuda_select_room(td_cu_select *select, td_stream stream,
                              td_cuda_scratch *room) TD_MUST_CHECK;

/* The first s->first of each line, which has elements, on the stream `s`. */
td_status td_cuda_sort_lines(const td_cu_sort *sort, td_stream stream,
                             cudaStream_t s) TD_MUST_CHECK;

#endif
