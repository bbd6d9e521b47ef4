/* pointwise_rows.h: macros for rows of pointwise operators, for every file that has such rows.
 */
#ifndef TD_OPS_POINTWISE_POINTWISE_ROWS_H
#define TD_OPS_POINTWISE_POINTWISE_ROWS_H

#include "engine/ops/pointwise/pointwise.h"

#define FORMS     (TD_OP_INPLACE | TD_OP_OUT)
#define PLAN(...) (&(const td_pointwise){__VA_ARGS__})

/* One operand, one loop of the operator's name. What follows the gradient goes into the row. */
#define UNARY(name, kind, text, ...)                                                               \
    TD_OPERATOR(name) = {.schema = "(Tensor x) -> Tensor",                                         \
                         .doc = text,                                                              \
                         .pointwise = PLAN(.type = kind, .primitive = TD_PW_##name),               \
                         .gradient = __VA_ARGS__,                                                  \
                         .flags = FORMS}
#define UNARY_FP32(name, text, grad)                                                               \
    UNARY(name, TD_PW_FLOATS, text, grad, .autocast = {[TD_CUDA] = TD_AUTOCAST_FP32})
#define FORMULA(name, text_schema, kind, text, forward, ...)                                       \
    TD_OPERATOR(name) = {.schema = text_schema,                                                    \
                         .doc = text,                                                              \
                         .pointwise = PLAN(.type = kind, .primitive = -1, .formula = forward),     \
                         .gradient = __VA_ARGS__,                                                  \
                         .flags = FORMS}
#define BINARY(name, kind, text, ...)                                                              \
    TD_OPERATOR(name) = {.schema = "(Tensor|number a, Tensor|number b) -> Tensor",                 \
                         .doc = text,                                                              \
                         .pointwise = PLAN(.type = kind, .primitive = TD_PW_##name),               \
                         .gradient = __VA_ARGS__,                                                  \
                         .flags = FORMS}
#define NO_ZERO "A division of integers by 0 is an error."
#define WHOLE_QUOTIENT(name, text)                                                                 \
    TD_OPERATOR(name) = {                                                                          \
        .schema = "(Tensor|number a, Tensor|number b) -> Tensor",                                  \
        .doc = text,                                                                               \
        .pointwise = PLAN(.type = TD_PW_ARITH, .primitive = TD_PW_##name, .numbers = true),        \
        .gradient = "a: 0; b: 0",                                                                  \
        .dtypes = TD_DTYPES_NUMBERS,                                                               \
        .notes = NO_ZERO,                                                                          \
        .flags = FORMS}
#define COMPARE(name, text)                                                                        \
    TD_OPERATOR(name) = {.schema = "(Tensor|number a, Tensor|number b) -> Tensor",                 \
                         .doc = text,                                                              \
                         .pointwise = PLAN(.type = TD_PW_COMPARE, .primitive = TD_PW_##name),      \
                         .flags = FORMS | TD_OP_NONDIFF}
#define LOGICAL(name, params, text)                                                                \
    TD_OPERATOR(name) = {.schema = "(" params ") -> Tensor",                                       \
                         .doc = text,                                                              \
                         .pointwise = PLAN(.type = TD_PW_LOGICAL, .primitive = TD_PW_##name),      \
                         .flags = FORMS | TD_OP_NONDIFF}
#define BITWISE(name, params, text)                                                                \
    TD_OPERATOR(name) = {.schema = "(" params ") -> Tensor",                                       \
                         .doc = text,                                                              \
                         .pointwise = PLAN(.type = TD_PW_BITWISE, .primitive = TD_PW_##name),      \
                         .flags = FORMS | TD_OP_NONDIFF}
/* x, but where exponentials of it have vanished or are infinite no further out: what is multiplied
 * by them must not be infinite. */
#define BOUNDED "minimum(maximum(x, -1000), 1000)"
/* Of a to the power b. What has vanished stays 0, whatever its logarithm is. */
#define POWER_SLOPES                                                                               \
    "a: g * where(eq(b, 0), 0, b * pow(a, b - 1));"                                                \
    "b: g * where(logical_or(eq(out, 0), logical_and(eq(a, 0), ge(b, 0))), 0, out * log(a))"
/* `of_integers` is the operator that answers for integers and bools. */
#define FLOAT_TEST(name, text, forward, of_integers)                                               \
    static td_status choose_##name(const td_value *args, const td_op **op) {                       \
        if (!td_dtype_is_float((td_dtype)args[0].tensor->dtype))                                   \
            *op = TD_OP(of_integers);                                                              \
        return TD_OK;                                                                              \
    }                                                                                              \
    TD_OPERATOR(name) = {.schema = "(Tensor x) -> Tensor",                                         \
                         .doc = text,                                                              \
                         .pointwise =                                                              \
                             PLAN(.type = TD_PW_FLOAT_TEST, .primitive = -1, .formula = forward),  \
                         .variant = choose_##name,                                                 \
                         .flags = TD_OP_OUT | TD_OP_NONDIFF}
/* Two operands, one loop, integers only. */
#define INTEGERS(name, kind, text)                                                                 \
    TD_OPERATOR(name) = {.schema = "(Tensor|number a, Tensor|number b) -> Tensor",                 \
                         .doc = text,                                                              \
                         .pointwise = PLAN(.type = kind, .primitive = TD_PW_##name),               \
                         .dtypes = TD_DTYPES_INTS,                                                 \
                         .flags = FORMS | TD_OP_NONDIFF}

#endif
