/* transpose.h: copies between a row-major tensor and one that runs along another dim. */
#ifndef TD_CPU_TRANSPOSE_H
#define TD_CPU_TRANSPOSE_H

#include "engine/core/tensor.h"

/* Does copying x into out (same shape and dtype, out row-major) exchange the fast dim? Then it is
 * done in blocks that stay in the first-level cache: td_cpu_transpose does it. */
bool td_cpu_is_transpose(const td_tensor *out, const td_tensor *x);
td_status td_cpu_transpose(td_tensor *out, const td_tensor *x) TD_MUST_CHECK;

#endif
