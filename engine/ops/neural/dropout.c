/* dropout.c: dropout beyond the plain one (random.c): of whole channels, and with the noise that
 * keeps mean and variance behind selu. All are products with drawn noise, so they are expressions.
 */
#include "engine/ops/rule_helpers.h"

#define TD_FAMILY "dropout"

/* Noise of shape (N, C, 1, ...) for x of shape (N, C, ...). */
static td_status run_channel_noise(td_call *call) {
    const td_tensor *x = call->args[0].tensor;
    td_tensor *channels = NULL;
    int64_t sizes[TD_MAX_DIMS];
    td_status status = TD_OK;
    if (x->ndim < 2)
        return td_fail(TD_ESHAPE, "a tensor of at least 2 dims is needed, got %d", x->ndim);
    for (int d = 0; d < x->ndim; d++)
        sizes[d] = d < 2 ? x->sizes[d] : 1;
    TD_TRY(td_tensor_empty((td_dtype)x->dtype, td_tensor_device(x), x->ndim, sizes, &channels));
    TD_TRY(TD_APPLY(&call->out[0], dropout_noise, TD_T(channels), call->args[1], call->args[2]));
done:
    td_release(channels);
    return status;
}

#define CHECK_P(formula)                                                                           \
    "if(p >= 0 and p <= 1, if(training and p > 0, " formula ", x),"                                \
    "   error(\"p must lie between 0 and 1, got %\", p))"
/* Kept elements are scaled and shifted; `noise` is 1 / (1 - p) or 0. All but one product and one
 * sum is of the noise alone, which for whole channels is small. */
#define ALPHA_SCALE "((1 - p) * ((1 - p) * (1 + p * 3.0909132918524275)) ^ -0.5)"
#define ALPHA(noise)                                                                               \
    CHECK_P("if(p == 1, x * 0,"                                                                    \
            "  x * (" noise " * " ALPHA_SCALE ") +"                                                \
            "  (" noise " * " ALPHA_SCALE " - " ALPHA_SCALE ") * 1.7580993408473766)")

TD_OPERATOR(channel_noise) = {
    .schema = "(Tensor x, float p, *, generator? generator=nil) -> Tensor",
    .doc = "What feature_dropout multiplies by, one number for each channel.",
    .run = run_channel_noise,
    .flags = TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_INTERNAL,
};
TD_OPERATOR(feature_dropout) = {
    .schema = "(Tensor x, float p=0.5, bool training=true, *, "
              "generator? generator=nil) -> Tensor",
    .doc = "In training, zero each channel of (N, C, ...) with probability p and divide the others "
           "by 1 - p.",
    .formula = CHECK_P("x * channel_noise(x, p, generator=generator)"),
    .flags = TD_OP_INPLACE | TD_OP_RANDOM,
};
TD_OPERATOR(alpha_dropout) = {
    .schema = "(Tensor x, float p=0.5, bool training=true, *, "
              "generator? generator=nil) -> Tensor",
    .doc = "Dropout that keeps mean 0 and variance 1, for networks of selu.",
    .formula = ALPHA("dropout_noise(x, p, generator=generator)"),
    .flags = TD_OP_INPLACE | TD_OP_RANDOM,
};
TD_OPERATOR(feature_alpha_dropout) = {
    .schema = "(Tensor x, float p=0.5, bool training=true, *, "
              "generator? generator=nil) -> Tensor",
    .doc = "alpha_dropout of whole channels of (N, C, ...).",
    .formula = ALPHA("channel_noise(x, p, generator=generator)"),
    .flags = TD_OP_INPLACE | TD_OP_RANDOM,
};
