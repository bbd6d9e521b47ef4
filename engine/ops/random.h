/* random.h: the kernels of random operators that a device defines. */
#ifndef TD_OPS_RANDOM_H
#define TD_OPS_RANDOM_H

#include "engine/core/random.h"
#include "engine/ops/op.h"
#include "engine/ops/plan.h"

typedef struct td_draw {
    td_distribution distribution;
    double a, b;
    int64_t low;
    uint64_t count;
    td_generator *generator; /* NULL: the default one */
} td_draw;

/* Fill x, of any strides, with independent draws; element i in row-major order depends on the
 * generator and i alone. EDTYPE where the distribution has no numbers of x's dtype. */
td_status td_cpu_draw(td_tensor *x, const td_draw *draw) TD_MUST_CHECK;

/* A random order of 0 .. n-1 into row-major int64. */
td_status td_cpu_randperm(td_tensor *x, td_generator *generator) TD_MUST_CHECK;

#endif
