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

/* A progression: element k is first + k * step, and from the middle on last - (n - 1 - k) * step
 * where `anchored`; integers where both are. */
typedef struct td_progression {
    bool integer, anchored;
    int64_t ifirst, istep;
    double first, step, last;
} td_progression;

/* What a device defines: a progression or a unit matrix into a row-major tensor. */
td_status td_cpu_fill_progression(td_tensor *x, const td_progression *p) TD_MUST_CHECK;
td_status td_cpu_fill_eye(td_tensor *x) TD_MUST_CHECK;

#endif
