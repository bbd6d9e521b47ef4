/* matmul.h: the kernels of products that a device defines. Operands may have any strides. */
#ifndef TD_OPS_MATMUL_H
#define TD_OPS_MATMUL_H

#include "engine/ops/op.h"

td_status td_cpu_dot(td_call *call);    /* (k), (k) -> () */
td_status td_cpu_mv(td_call *call);     /* (m, k), (k) -> (m) */
td_status td_cpu_mm(td_call *call);     /* (m, k), (k, n) -> (m, n) */
td_status td_cpu_bmm(td_call *call);    /* (b, m, k), (b, k, n) -> (b, m, n) */
td_status td_cpu_linear(td_call *call); /* (..., k), (n, k), (n)? -> (..., n) */

#endif
