/* family.h: what the files of families are written with. */
#ifndef TD_OPS_FAMILY_H
#define TD_OPS_FAMILY_H

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

/* A rule that is another function with more arguments. */
#define TD_RULE(name, function, ...)                                                               \
    static td_status name(const td_call *call, td_meta *out) {                                     \
        return function(call, out, __VA_ARGS__);                                                   \
    }

/* The kernel of an operator whose results and first arguments stand in the plan in that order:
 * hands the plan to the device's function. Arguments that are no tensors are NULL there. */
#define TD_KERNEL(name, function, plan, nresults, nargs)                                           \
    static td_status name(td_call *call) {                                                         \
        plan *p = TD_PLAN(call, plan);                                                             \
        for (int k = 0; k < (nresults); k++)                                                       \
            p->tensors[k] = call->out[k];                                                          \
        for (int k = 0; k < (nargs); k++)                                                          \
            p->tensors[(nresults) + k] = td_arg_tensor(call->args[k]);                             \
        return TD_RUN(td_tensor_device(call->out[0]), function, p);                                \
    }

#endif
