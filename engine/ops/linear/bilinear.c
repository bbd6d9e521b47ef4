/* bilinear.c: the bilinear map of two inputs. */
#include "engine/ops/rule_helpers.h"

#define TD_FAMILY "bilinear"

static td_status check_bilinear(const td_tensor *a, const td_tensor *b, const td_tensor *weight) {
    char x[TD_SHAPE_TEXT], y[TD_SHAPE_TEXT], w[TD_SHAPE_TEXT];
    bool fits = a->ndim == b->ndim && a->ndim > 0 && weight->ndim == 3 &&
                a->sizes[a->ndim - 1] == weight->sizes[1] &&
                b->sizes[b->ndim - 1] == weight->sizes[2];
    for (int d = 0; fits && d < a->ndim - 1; d++)
        fits = a->sizes[d] == b->sizes[d];
    return fits ? TD_OK
                : td_fail(TD_ESHAPE,
                          "input1 (..., I), input2 (..., J) and weight (O, I, J) don't fit: shapes "
                          "%s, %s and %s",
                          td_tensor_shape_text(a, x), td_tensor_shape_text(b, y),
                          td_tensor_shape_text(weight, w));
}

static td_status run_bilinear(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *weight = a[2].tensor, *bias = td_arg_tensor(a[3]), *rows = NULL;
    int64_t sizes[TD_MAX_DIMS], count = 1;
    td_status status = TD_OK;
    TD_TRY(check_bilinear(x, a[1].tensor, weight));
    TD_TRY(td_check_pair(x, a[1].tensor));
    TD_TRY(td_check_pair(x, weight));
    TD_TRY(td_check_bias(x, bias, weight->sizes[0]));
    for (int d = 0; d < x->ndim; d++)
        sizes[d] = x->sizes[d];
    for (int d = 0; d < x->ndim - 1; d++)
        count *= sizes[d];
    sizes[x->ndim - 1] = weight->sizes[0];
    TD_TRY(TD_APPLY(&rows, bilinear_rows, a[0], a[1], a[2], a[3], TD_I(count)));
    status = TD_APPLY(&call->out[0], reshape, TD_T(rows), TD_INTS(x->ndim, sizes));
done:
    td_release(rows);
    return status;
}

TD_OPERATOR(bilinear) = {
    .schema = "(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=nil) -> Tensor",
    .doc = "input1 (..., I) weight (O, I, J) input2 (..., J), plus bias.",
    .shapes = "input1 (..., I), input2 (..., J), weight (O, I, J), bias (O) -> (..., O)",
    .takes = "floating and integers, one dtype",
    .run = run_bilinear,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(bilinear_rows) = {
    .schema = "(Tensor a, Tensor b, Tensor weight, Tensor? bias, int rows) -> Tensor",
    .doc = "The same for rows.",
    .formula = "i = weight.size(1); j = weight.size(2); o = weight.size(0);"
               "left = reshape(matmul(reshape(a, {rows, i}),"
               "                      reshape(transpose(weight, 0, 1), {i, o * j})), {rows, o, j});"
               "y = squeeze(matmul(left, reshape(b, {rows, j, 1})), 2);"
               "if(bias == nil, y, y + bias)",
    .flags = TD_OP_INTERNAL,
};
