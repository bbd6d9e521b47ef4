/* pointwise_kernels.h: loops of the primitive pointwise operators. */
#ifndef TD_CPU_ISA_POINTWISE_KERNELS_H
#define TD_CPU_ISA_POINTWISE_KERNELS_H

#include "engine/core/dtype.h"
#include "engine/ops/pointwise.h"

/* out[i] = f(a[i], b[i], c[i]) for i < n; contiguous, of the dtypes that td_primitive_signature
 * says (bool is 0 or 1). Bit k of `scalars` says that operand k is a single element used for all i.
 * `out` may be the same memory as an operand. */
typedef void (*td_pointwise_fn)(int64_t n, void *out, const void *a, const void *b, const void *c,
                                unsigned scalars);

typedef struct td_pointwise_kernels {
    td_pointwise_fn primitive[TD_PRIMITIVES][TD_DTYPE_COUNT]; /* [dtype of computation];
                                                                    NULL: not for it */
    /* Copies past the caches: for results that are too large to be found there again. */
    void (*stream)(void *dst, const void *src, size_t bytes);
    void (*stream_end)(void); /* before other threads may read what was streamed */
} td_pointwise_kernels;

#endif
