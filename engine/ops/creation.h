/* creation.h: the rules of operators that make tensors from a shape or like another tensor. */
#ifndef TD_OPS_CREATION_H
#define TD_OPS_CREATION_H

#include "engine/ops/op.h"

/* Shape from an int[] value, dtype and device from options (nil: the default dtype, the CPU).
 * ESHAPE for a negative size or too many dims. */
td_status td_creation_meta(td_value size, td_value dtype, td_value device,
                           td_meta *out) TD_MUST_CHECK;

/* The same shape as x, row-major; x's dtype and device where the options are nil. */
td_status td_creation_meta_like(const td_tensor *x, td_value dtype, td_value device,
                                td_meta *out) TD_MUST_CHECK;

#endif
