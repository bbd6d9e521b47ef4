/* recurrent_times.h: in which order the times of a recurrent layer come, and where each one lies:
 * for the operators and for the devices' functions that take all times at once. */
#ifndef TD_OPS_PLAN_RECURRENT_TIMES_H
#define TD_OPS_PLAN_RECURRENT_TIMES_H

#include "engine/core/tensor.h"

/* The time that comes k-th of so many; `backwards`: the last comes first. */
static inline int64_t td_time_at(bool backwards, int64_t times, int64_t k) {
    return backwards ? times - 1 - k : k;
}

/* The first byte of what a row-major tensor of all times, or of one alone, has of the time t; NULL
 * of NULL. */
static inline void *td_part_at(const td_tensor *x, int64_t t) {
    int64_t bytes = x ? x->numel / x->sizes[0] * (int64_t)td_dtype_size((td_dtype)x->dtype) : 0;
    return x ? (char *)x->data + (x->sizes[0] > 1 ? t * bytes : 0) : NULL;
}

#endif
