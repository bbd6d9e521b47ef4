/* operators.c: a library of operators that is loaded after the engine has started. */
#include "engine/td.h"

#define TD_FAMILY "late"

TD_OPERATOR_LIBRARY;

TD_OPERATOR(late_square_plus) = {
    .schema = "(Tensor x, Tensor|number b=1) -> Tensor",
    .doc = "x squared plus b.",
    .formula = "late_square(x) + b",
};

static td_status run_square(td_call *call) {
    return TD_APPLY(&call->out[0], mul, call->args[0], call->args[0]);
}

TD_OPERATOR(late_square) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x squared.",
    .run = run_square,
    .gradient = "x: g * 2 * x",
};
