/* grouped_linear.c: floats times weights of a few bits with a scale for each group of them: what
 * weight-only quantization and GGML's blocks come to. */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

#define TD_FAMILY "quantized"

enum { X, WEIGHT, SCALES, MINS, BIAS, FEATURES, BITS, GROUP };
enum { COLUMNS = 16, LINE = 64 }; /* of a panel; bytes of a row of it */

/* A part of the weight: row-major, of a dtype and three sizes. */
static td_status check_part(const td_tensor *part, const char *name, td_dtype dtype,
                            const int64_t *sizes) {
    char shape[TD_SHAPE_TEXT];
    if (part->dtype != dtype || part->layout != TD_STRIDED || !part->contiguous)
        return td_fail(TD_ETYPE, "%s: a row-major %s tensor expected", name, td_dtype_name(dtype));
    if (part->ndim != 3 || memcmp(part->sizes, sizes, 3 * sizeof *sizes) != 0)
        return td_fail(TD_ESHAPE, "%s of shape (%lld, %lld, %lld) expected, got %s", name,
                       (long long)sizes[0], (long long)sizes[1], (long long)sizes[2],
                       td_tensor_shape_text(part, shape));
    return TD_OK;
}

static td_status check_weight(const td_value *a, const td_grouped_linear_plan *plan) {
    const int64_t panels = (plan->columns + COLUMNS - 1) / COLUMNS;
    const int64_t lines = plan->groups * (plan->group * plan->bits / 32);
    td_status status =
        check_part(a[WEIGHT].tensor, "weight", TD_U8, (const int64_t[]){panels, lines, LINE});
    const int64_t sizes[] = {panels, plan->groups, COLUMNS};
    if (status == TD_OK)
        status = check_part(a[SCALES].tensor, "scales", TD_F32, sizes);
    if (status == TD_OK && !td_is_nil(a[MINS]))
        status = check_part(a[MINS].tensor, "mins", TD_F32, sizes);
    return status;
}

static td_status rule_grouped_linear(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[X].tensor;
    const int64_t bits = a[BITS].i, group = a[GROUP].i;
    int64_t sizes[TD_MAX_DIMS];
    if (x->dtype != TD_F32)
        return td_fail(TD_EDTYPE, "x: a float32 tensor expected, got %s", td_tensor_dtype_name(x));
    if (bits != 4 && bits != 6 && bits != 8)
        return td_fail(TD_EVALUE, "weights have 4, 6 or 8 bits, not %lld", (long long)bits);
    if (group < 1 || group > INT32_MAX || group % (bits == 6 ? 16 : 32))
        return td_fail(TD_EVALUE, "a group of weights of %d bits is a multiple of %d, not %lld",
                       (int)bits, bits == 6 ? 16 : 32, (long long)group);
    if (x->ndim < 1 || x->sizes[x->ndim - 1] == 0 || a[FEATURES].i < 1)
        return td_fail(TD_ESHAPE, "x and the result have one feature at least");
    const int64_t depth = x->sizes[x->ndim - 1];
    td_grouped_linear_plan *plan = TD_PLAN(call, td_grouped_linear_plan);
    *plan = (td_grouped_linear_plan){.rows = x->numel / depth,
                                     .columns = a[FEATURES].i,
                                     .depth = depth,
                                     .groups = (depth + group - 1) / group,
                                     .group = group,
                                     .bits = (int)bits};
    td_status status = check_weight(a, plan);
    if (status == TD_OK)
        status = td_quantized_check_bias(td_arg_tensor(a[BIAS]), plan->columns);
    if (status)
        return status;
    memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
    sizes[x->ndim - 1] = plan->columns;
    td_meta_set(out, TD_F32, x->ndim, sizes);
    return TD_OK;
}

static td_status kernel_grouped_linear(td_call *call) {
    td_grouped_linear_plan *plan = TD_PLAN(call, td_grouped_linear_plan);
    td_tensor *x = NULL, *bias = NULL;
    td_status status = TD_OK;
    TD_TRY(td_contiguous(call->args[X].tensor, &x));
    TD_TRY(td_contiguous_or_none(td_arg_tensor(call->args[BIAS]), TD_F32, &bias));
    plan->out = call->out[0];
    plan->x = x;
    plan->weight = call->args[WEIGHT].tensor;
    plan->scales = call->args[SCALES].tensor;
    plan->mins = td_arg_tensor(call->args[MINS]);
    plan->bias = bias;
    status = TD_RUN(td_tensor_device(x), grouped_linear, plan);
done:
    td_release(x);
    td_release(bias);
    return status;
}

TD_OPERATOR(grouped_linear) = {
    .schema = "(Tensor x, Tensor weight, Tensor scales, Tensor? mins, Tensor? bias, "
              "int out_features, int bits, int group) -> Tensor",
    .doc = "float32 x, rounded to 8 bits in blocks of 32, times a weight of 4, 6 or 8 bits in "
           "groups, plus bias (td_grouped_linear_plan says how both lie).",
    .rule = rule_grouped_linear,
    .kernel = kernel_grouped_linear,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
