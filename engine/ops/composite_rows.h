/* composite_rows.h: macros for rows that are expressions or formulas: losses, and the internal
 * steps that losses and cells are made of. */
#ifndef TD_OPS_COMPOSITE_ROWS_H
#define TD_OPS_COMPOSITE_ROWS_H

#include "engine/ops/pointwise/pointwise.h"

/* A loss that users call: its expression, behind which may stand what else its row has. */
#define LOSS(name, parameters, text, ...) LOSS_AS(0, name, parameters, text, __VA_ARGS__)
#define LOSS_AS(more, name, parameters, text, ...)                                                 \
    TD_OPERATOR(name) = {.schema = parameters " -> Tensor",                                        \
                         .doc = text,                                                              \
                         .formula = __VA_ARGS__,                                                   \
                         .autocast = {[TD_CPU] = TD_AUTOCAST_FP32, [TD_CUDA] = TD_AUTOCAST_FP32},  \
                         .flags = TD_OP_FUNCTION_ONLY | TD_OP_ANY_BASE | (more)}
/* A step of one. */
#define PART(name, parameters, text, expression)                                                   \
    TD_OPERATOR(name) = {.schema = parameters " -> Tensor",                                        \
                         .doc = text,                                                              \
                         .formula = expression,                                                    \
                         .flags = TD_OP_INTERNAL | TD_OP_ANY_BASE}
/* A step element by element, in one pass over memory. */
#define ELEMENTS(name, parameters, text, forward, grad)                                            \
    TD_OPERATOR(name) = {                                                                          \
        .schema = parameters " -> Tensor",                                                         \
        .doc = text,                                                                               \
        .pointwise =                                                                               \
            &(const td_pointwise){.type = TD_PW_FLOATS, .primitive = -1, .formula = forward},      \
        .gradient = grad,                                                                          \
        .flags = TD_OP_INTERNAL}

#endif
