/* fake_quantize.c: floats rounded as quantizing and back would, for training. The gradient of the
 * rounding is taken to be 1 within the range and 0 outside ("straight through"). */
#include "engine/ops/op.h"

#define TD_FAMILY "quantized"

TD_OPERATOR(fake_quantize) = {
    .schema = "(Tensor x, Tensor scale, Tensor zero_point, int low, int high) -> Tensor",
    .doc = "(clamp(rint(x * (1 / scale)) + zero_point, low, high) - zero_point) * scale; scale and "
           "zero_point broadcast, in x's dtype.",
    .formula = "(clamp(round(x * (1 / scale)) + zero_point, low, high) - zero_point) * scale",
    .gradient = "q = round(x * (1 / scale)) + zero_point; "
                "x: g * logical_and(q >= low, q <= high)",
    .flags = TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};

/* Learned step size quantization: Esser et al., https://arxiv.org/abs/1902.08153; with a zero
 * point: Jain et al., https://arxiv.org/abs/1903.08066. */
TD_OPERATOR(fake_quantize_learnable) = {
    .schema = "(Tensor x, Tensor scale, Tensor zero_point, int low, int high, number factor) "
              "-> Tensor",
    .doc = "The same, of a zero point that is rounded, with gradients for scale and zero_point, "
           "times a factor.",
    .formula = "z = clamp(round(zero_point), low, high); "
               "(clamp(round(x * (1 / scale)) + z, low, high) - z) * scale",
    .gradient = "z = clamp(round(zero_point), low, high); "
                "q = round(x * (1 / scale)) + z; inside = logical_and(q >= low, q <= high); "
                "x: g * inside; "
                "scale: g * where(inside, ((q - z) * scale - x) * (1 / scale), "
                "clamp(q, low, high) - z) * factor; "
                "zero_point: g * where(inside, zeros_like(q), -(scale + zeros_like(q))) * factor",
    .flags = TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
