/* sample.c: draws whose parameters are tensors: normal and Poisson numbers, weighted choices. */
#include "engine/core/random.h"
#include "engine/ops/element_checks.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#define TD_FAMILY "sample"

/* ---- normal ---- */

static td_refusal negative_std = {
    {"logical_not(ge(x, 0))", NULL}, TD_EVALUE, "std must not be negative"};

static td_status check_std(td_value std) {
    if (std.kind == TD_KIND_TENSOR)
        return td_refuse(&negative_std, std.tensor);
    double number = td_arg_double(std);
    return number >= 0 ? TD_OK : td_fail(TD_EVALUE, "std must not be negative, got %g", number);
}

/* The shape that tensors and size agree on. */
static td_status normal_shape(td_value mean, td_value std, td_value size, int *ndim,
                              int64_t *sizes) {
    const td_tensor *operands[2] = {td_arg_tensor(mean), td_arg_tensor(std)};
    td_status status = TD_OK;
    *ndim = 0;
    if (!operands[0] && !operands[1]) {
        if (td_is_nil(size))
            return td_fail(TD_EVALUE, "of two numbers a size is needed");
        for (; *ndim < size.n && *ndim < TD_MAX_DIMS; ++*ndim)
            sizes[*ndim] = size.ints[*ndim];
        return TD_OK;
    }
    if (!td_is_nil(size))
        return td_fail(TD_EVALUE, "the size is that of the tensors: it can't be given as well");
    for (int k = 0; k < 2 && status == TD_OK; k++)
        if (operands[k])
            status = td_broadcast(*ndim, sizes, operands[k]->ndim, operands[k]->sizes, ndim, sizes);
    return status;
}

static td_status run_normal(td_call *call) {
    const td_value *a = call->args;
    const td_tensor *model = a[0].kind == TD_KIND_TENSOR ? a[0].tensor : td_arg_tensor(a[1]);
    td_value dtype = model ? TD_DTYPE((td_dtype)model->dtype) : a[3];
    td_value device = model ? TD_DEVICE(td_tensor_device(model)) : a[4];
    int64_t sizes[TD_MAX_DIMS];
    td_tensor *y = NULL;
    int ndim;
    td_status status = TD_OK;
    for (int k = 0; k < 2; k++)
        if (a[k].kind == TD_KIND_TENSOR)
            TD_TRY(td_check_float((td_dtype)a[k].tensor->dtype));
    TD_TRY(normal_shape(a[0], a[1], a[2], &ndim, sizes));
    TD_TRY(check_std(a[1]));
    TD_TRY(TD_APPLY(&y, randn, TD_INTS(ndim, sizes), dtype, device, a[5]));
    TD_TRY(TD_APPLY_INPLACE(mul, TD_T(y), a[1]));
    TD_TRY(TD_APPLY_INPLACE(add, TD_T(y), a[0]));
    call->out[0] = td_retain(y);
done:
    td_release(y);
    return status;
}

/* ---- poisson ---- */

static td_refusal no_rate = {
    {"logical_not(ge(x, 0))", NULL}, TD_EVALUE, "rates must not be negative"};

static td_status kernel_poisson(td_call *call) {
    td_tensor *x = call->args[0].tensor, *rates = NULL, *counts = NULL;
    td_poisson_plan plan = {.seed = 0};
    td_status status = TD_OK;
    if (x->numel == 0)
        return TD_OK;
    TD_TRY(td_refuse(&no_rate, x));
    TD_TRY(td_contiguous_as(x, TD_F64, &rates));
    TD_TRY(td_tensor_empty(TD_F64, td_tensor_device(x), x->ndim, x->sizes, &counts));
    td_reserve_numbers(td_tensor_device(x), call->args[1], (uint64_t)x->numel * TD_POISSON_BLOCKS,
                       &plan.seed, &plan.offset);
    plan.out = counts;
    plan.x = rates;
    TD_TRY(TD_RUN(td_tensor_device(x), poisson, &plan));
    TD_TRY(td_copy_into(call->out[0], counts));
done:
    td_release(rates);
    td_release(counts);
    return status;
}

/* ---- multinomial ---- */

static td_status rule_multinomial(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int64_t draws = call->args[1].i, n;
    td_status status = td_check_float((td_dtype)x->dtype);
    if (status)
        return status;
    if (x->ndim != 1 && x->ndim != 2)
        return td_fail(TD_ESHAPE, "needs weights of 1 or 2 dims, got %d", x->ndim);
    n = x->sizes[x->ndim - 1];
    if (draws < 1)
        return td_fail(TD_EVALUE, "num_samples must be at least 1, got %lld", (long long)draws);
    if (n == 0)
        return td_fail(TD_ESHAPE, "there is nothing to choose from");
    if (!call->args[2].b && draws > n)
        return td_fail(TD_EVALUE, "%lld places can't be drawn from %lld without replacement = true",
                       (long long)draws, (long long)n);
    const int64_t sizes[2] = {x->sizes[0], draws};
    td_meta_set(out, TD_I64, x->ndim, x->ndim == 2 ? sizes : sizes + 1);
    return TD_OK;
}

/* A row as the one row of a matrix. */
static td_status as_rows(td_tensor *x, td_tensor **out) {
    const int64_t sizes[2] = {x->ndim == 2 ? x->sizes[0] : 1, x->sizes[x->ndim - 1]};
    const int64_t strides[2] = {x->ndim == 2 ? x->strides[0] : sizes[1], x->strides[x->ndim - 1]};
    return td_tensor_view(x, 2, sizes, strides, 0, out);
}

static td_status kernel_multinomial(td_call *call) {
    td_tensor *weights = NULL, *x = NULL, *out = NULL;
    td_multinomial_plan plan = {.replacement = call->args[2].b};
    td_status status = TD_OK;
    if (plan.replacement && td_tensor_device(call->args[0].tensor).type == TD_CPU)
        weights = td_retain(call->args[0].tensor); /* made dense and float64 on the way */
    else
        TD_TRY(td_contiguous_as(call->args[0].tensor, TD_F64, &weights));
    TD_TRY(as_rows(weights, &x));
    TD_TRY(as_rows(call->out[0], &out));
    plan.out = out;
    plan.x = x;
    if (out->numel) {
        td_reserve_numbers(td_tensor_device(x), call->args[3],
                           (uint64_t)x->sizes[0] * td_multinomial_blocks(&plan), &plan.seed,
                           &plan.offset);
        status = TD_RUN(td_tensor_device(x), multinomial, &plan);
    }
done:
    td_release(weights);
    td_release(x);
    td_release(out);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(normal) = {
    .schema = "(Tensor|number mean, Tensor|number std=1, int[]? size=nil, *, dtype? dtype=nil, "
              "device? device=nil, generator? generator=nil) -> Tensor",
    .doc = "Normal numbers, each with a mean and deviation of its own; of two numbers in a size.",
    .shapes = "mean (*), std (*) -> (*) if size == nil | -> (size...)",
    .takes = "floating",
    .run = run_normal,
    .gradient = "mean: zeros_like(g); std: zeros_like(g)",
    .flags = TD_OP_OUT | TD_OP_FUNCTION_ONLY | TD_OP_CREATES | TD_OP_RANDOM,
};
TD_OPERATOR(poisson) = {
    .schema = "(Tensor x, *, generator? generator=nil) -> Tensor",
    .doc = "Poisson numbers with the means that x holds.",
    .rule = td_rule_same,
    .kernel = kernel_poisson,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "x: zeros_like(g)",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_RANDOM,
};
TD_OPERATOR(multinomial) = {
    .schema = "(Tensor x, int num_samples, bool replacement=false, *, generator? generator=nil) "
              "-> index Tensor",
    .doc = "Places drawn with probabilities in proportion to the weights in x, row by row.",
    .shapes = "x (N?, n) -> (N?, num_samples)",
    .notes = "Rows are weights, which need no sum of 1; a sum of 0 is an error, and so is drawing "
             "more places than there are without replacement.",
    .rule = rule_multinomial,
    .kernel = kernel_multinomial,
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_NONDIFF | TD_OP_RANDOM | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_REFUSES,
};
