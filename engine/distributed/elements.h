/* elements.h: reductions over elements in a row, for transports that have none of their own for a
 * dtype (MPI knows no 16-bit floats). */
#ifndef TD_DISTRIBUTED_ELEMENTS_H
#define TD_DISTRIBUTED_ELEMENTS_H

#include "engine/distributed/transport.h"

/* into[k] = into[k] op from[k] for n elements. 16-bit floats are widened to float, reduced and
 * rounded once; integers wrap around; NaN wins in min and max. The op is none of MEAN, and bitwise
 * on integers and bool alone. */
void td_elements_reduce(td_across op, td_dtype dtype, void *into, const void *from, int64_t n);

/* x[k] = x[k] / divisor for n elements of a floating dtype. */
void td_elements_divide(td_dtype dtype, void *x, double divisor, int64_t n);

#endif
