/* misfit.c: a library whose second operator names one that there is not: none of them is known
 * after it was refused. */
#include "engine/td.h"

#define TD_FAMILY "late"

TD_OPERATOR_LIBRARY;

TD_OPERATOR(late_fine) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "x plus 1.",
    .formula = "x + 1",
};

TD_OPERATOR(late_wrong) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "Nothing.",
    .formula = "no_such_operator(x)",
};
