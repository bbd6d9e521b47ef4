/* compose.h: what composites and gradients are written with. */
#ifndef TD_OPS_COMPOSE_H
#define TD_OPS_COMPOSE_H

#include "engine/ops/op.h"

/* Replace *x, which is owned, by an operator's result, or go to `done`:
 * TD_STEP(&x, mul, TD_T(x), TD_T(y)). */
#define TD_STEP(x, id, ...)                                                                        \
    do {                                                                                           \
        td_tensor *next_ = NULL;                                                                   \
        TD_TRY(TD_APPLY(&next_, id, __VA_ARGS__));                                                 \
        td_release(*(x));                                                                          \
        *(x) = next_;                                                                              \
    } while (0)

#endif
