/* alias.c: operators under second names, those that NumPy or older versions of PyTorch gave them.
 */
#include "engine/ops/op.h"

#define TD_FAMILY "alias"

TD_OPERATOR(moveaxis) = {
    .schema = "(Tensor x, dim[] source, dim[] destination) -> Tensor",
    .doc = "movedim under the name that NumPy gives it.",
    .formula = "movedim(x, source, destination)",
};
TD_OPERATOR(swapdims) = {
    .schema = "(Tensor x, dim dim0, dim dim1) -> Tensor",
    .doc = "Two dims exchanged: transpose.",
    .formula = "transpose(x, dim0, dim1)",
    .flags = TD_OP_INPLACE | TD_OP_TURNS,
};
TD_OPERATOR(swapaxes) = {
    .schema = "(Tensor x, dim axis0, dim axis1) -> Tensor",
    .doc = "Two dims exchanged: transpose under the name that NumPy gives it.",
    .formula = "transpose(x, axis0, axis1)",
    .flags = TD_OP_INPLACE | TD_OP_TURNS,
};
TD_OPERATOR(concat) = {
    .schema = "(Tensor[] tensors, dim dim=0) -> Tensor",
    .doc = "cat under another name.",
    .formula = "cat(tensors, dim)",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(concatenate) = {
    .schema = "(Tensor[] tensors, dim axis=0) -> Tensor",
    .doc = "cat under the name that NumPy gives it.",
    .formula = "cat(tensors, axis)",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(ger) = {
    .schema = "(Tensor x, Tensor vec2) -> Tensor",
    .doc = "outer under the name that BLAS gives it.",
    .formula = "outer(x, vec2)",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(ravel) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "All elements as one row, a view where possible.",
    .formula = "reshape(contiguous(x), -1)",
};
