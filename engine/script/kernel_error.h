/* kernel_error.h: how far results of a fast kernel are from its operators' bits, as measured. */
#ifndef TD_SCRIPT_KERNEL_ERROR_H
#define TD_SCRIPT_KERNEL_ERROR_H

#include "engine/core/tensor.h"

/* {0}: nothing was measured. */
typedef struct td_kernel_error {
    int64_t calls; /* that were looked at */
    double ulps; /* the most, of floats: numbers of their dtype between the two; infinite where one
                    is NaN or infinite and the other is not */
    double scaled; /* the most, in ulps of the largest element: where differences of like numbers
                      leave small ones, these have many of their own */
    bool others;   /* integers or masks differed */
} td_kernel_error;

/* What two row-major tensors of one dtype and shape, on any device, differ in, joins `error`. */
td_status td_kernel_error_add(td_kernel_error *error, td_tensor *is,
                              td_tensor *should_be) TD_MUST_CHECK;

/* Both together. */
void td_kernel_error_join(td_kernel_error *error, const td_kernel_error *other);

#endif
