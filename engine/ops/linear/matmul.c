/* matmul.c: products of matrices and vectors. matmul chooses among dot, mv, mm and bmm, which with
 * linear are one plan: batches of matrices. */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/shape/shape.h"
#include "engine/ops/sparse/sparse.h"

#include <string.h>

#define TD_FAMILY "matmul"

/* ---- rules ---- */

static td_status fail_shapes(const td_tensor *a, const td_tensor *b, int64_t left, int64_t right) {
    char ta[TD_SHAPE_TEXT], tb[TD_SHAPE_TEXT];
    return td_fail(TD_ESHAPE, "shapes %s and %s don't fit: %lld ≠ %lld",
                   td_tensor_shape_text(a, ta), td_tensor_shape_text(b, tb), (long long)left,
                   (long long)right);
}

static td_status check_operands(const td_tensor *a, const td_tensor *b) {
    td_status status = td_check_pair(a, b);
    if (status == TD_OK && a->dtype == TD_BOOL)
        status = td_fail(TD_EDTYPE, "not for bool: convert with x:float() or x:long()");
    return status;
}

/* The rule of operands of these dims: a vector on the left is a row, on the right a column. */
static td_status plan_product(const td_call *call, td_meta *out, int a_ndim, int b_ndim) {
    const td_op *op = call->op;
    const td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor;
    td_status status = td_check_ndim(a, op->params[0].name, a_ndim);
    if (status == TD_OK)
        status = td_check_ndim(b, op->params[1].name, b_ndim);
    if (status)
        return status;
    int64_t left = a->sizes[a_ndim - 1], right = b->sizes[b_ndim == 1 ? 0 : b_ndim - 2];
    status = left == right ? check_operands(a, b) : fail_shapes(a, b, left, right);
    if (status == TD_OK && a_ndim == 3 && a->sizes[0] != b->sizes[0])
        status = fail_shapes(a, b, a->sizes[0], b->sizes[0]);
    if (status)
        return status;
    const int64_t sizes[3] = {a_ndim == 3 ? a->sizes[0] : 1, a_ndim > 1 ? a->sizes[a_ndim - 2] : 1,
                              b_ndim > 1 ? b->sizes[b_ndim - 1] : 1};
    *TD_PLAN(call, td_product_plan) =
        (td_product_plan){.batch = sizes[0], .m = sizes[1], .n = sizes[2], .k = left};
    td_meta_set(out, (td_dtype)a->dtype, (a_ndim == 3) + (a_ndim > 1) + (b_ndim > 1),
                sizes + (a_ndim < 3));
    return TD_OK;
}

TD_RULE(rule_dot, plan_product, 1, 1)
TD_RULE(rule_mv, plan_product, 2, 1)
TD_RULE(rule_mm, plan_product, 2, 2)
TD_RULE(rule_bmm, plan_product, 3, 3)

static td_status rule_int_mm(const td_call *call, td_meta *out) {
    td_status status = rule_mm(call, out);
    if (status == TD_OK)
        td_meta_set(out, TD_I32, 2, (int64_t[]){out->sizes[0], out->sizes[1]});
    return status;
}

static td_status rule_linear(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor, *weight = call->args[1].tensor;
    const td_tensor *bias = td_arg_tensor(call->args[2]);
    char text[TD_SHAPE_TEXT];
    bool row = weight->ndim == 1; /* one output, without a dim */
    td_status status = row ? TD_OK : td_check_ndim(weight, "weight", 2);
    if (status)
        return status;
    if (row && bias)
        return td_fail(TD_ESHAPE, "a weight of one dim takes no bias");
    if (x->ndim == 0)
        return td_fail(TD_ESHAPE, "input must have at least 1 dim");
    int64_t features = x->sizes[x->ndim - 1], taken = weight->sizes[row ? 0 : 1];
    int64_t outputs = row ? 1 : weight->sizes[0];
    if (features != taken)
        return td_fail(TD_ESHAPE, "input of shape %s has %lld features, weight takes %lld",
                       td_tensor_shape_text(x, text), (long long)features, (long long)taken);
    status = check_operands(x, weight);
    if (status == TD_OK)
        status = td_check_bias(x, bias, outputs);
    if (status)
        return status;
    td_meta_set(out, (td_dtype)x->dtype, x->ndim - row, x->sizes);
    if (!row)
        out->sizes[x->ndim - 1] = outputs;
    *TD_PLAN(call, td_product_plan) = (td_product_plan){
        .batch = 1, .m = td_numel(x->ndim - 1, x->sizes), .n = outputs, .k = features};
    return TD_OK;
}

/* ---- kernels ---- */

/* A vector is a row or a column, a 0-dim tensor a matrix of one element. */
static td_matrices as_matrices(const td_tensor *x, bool row) {
    const int64_t *strides = x->strides + x->ndim - 1;
    if (x->ndim >= 2)
        return (td_matrices){x->ndim == 3 ? x->strides[0] : 0, strides[-1], strides[0]};
    if (x->ndim == 0)
        return (td_matrices){0, 0, 0};
    return row ? (td_matrices){0, 0, strides[0]} : (td_matrices){0, strides[0], 0};
}

static td_status kernel_product(td_call *call) {
    td_product_plan *p = TD_PLAN(call, td_product_plan);
    p->out = call->out[0];
    p->a = call->args[0].tensor;
    p->b = call->args[1].tensor;
    p->as_out = as_matrices(p->out, false);
    p->as_a = as_matrices(p->a, true);
    p->as_b = as_matrices(p->b, false);
    return TD_RUN(td_tensor_device(p->out), product, p);
}

/* x, of any dims, as one matrix: itself where its strides allow, else a row-major copy. */
static td_status as_rows(td_tensor *x, const int64_t *sizes, td_tensor **out, td_matrices *how) {
    int64_t strides[2];
    td_status status = TD_OK;
    if (td_view_strides(x, 2, sizes, strides)) {
        *out = td_retain(x);
    } else {
        status = td_contiguous(x, out);
        td_contiguous_strides(2, sizes, strides);
    }
    *how = (td_matrices){0, strides[0], strides[1]};
    return status;
}

static td_status kernel_linear(td_call *call) {
    td_product_plan *p = TD_PLAN(call, td_product_plan);
    td_tensor *weight = call->args[1].tensor, *out = call->out[0], *x = NULL, *y = NULL;
    const int64_t rows[2] = {p->m, p->k}, results[2] = {p->m, p->n};
    const int64_t *steps = weight->strides + weight->ndim - 1;
    td_status status = TD_OK;
    TD_TRY(as_rows(call->args[0].tensor, rows, &x, &p->as_a));
    TD_TRY(as_rows(out, results, &y, &p->as_out));
    p->out = y;
    p->a = x;
    p->b = weight;
    p->bias = td_arg_tensor(call->args[2]);
    p->as_b = (td_matrices){0, steps[0], weight->ndim == 2 ? steps[-1] : p->k};
    TD_TRY(TD_RUN(td_tensor_device(out), product, p));
    if (y->data != out->data) /* out= has strides that are no matrix's */
        status = td_copy_into(out, y);
done:
    td_release(x);
    td_release(y);
    return status;
}

/* ---- composites ---- */

/* out = op(a, b) seen in another shape. */
static td_status product_as(const td_op *op, td_tensor *a, td_tensor *b, int ndim,
                            const int64_t *sizes, td_tensor **out) {
    td_tensor *y = NULL;
    td_status status = td_op_apply(op, &y, 2, (td_value[]){TD_T(a), TD_T(b)});
    if (status == TD_OK)
        status = TD_APPLY(out, view, TD_T(y), TD_INTS(ndim, sizes));
    td_release(y);
    return status;
}

/* (..., m, k) times (k, n) or (k): all rows of all matrices at once. */
static td_status matmul_folded(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor, *rows = NULL;
    int64_t sizes[TD_MAX_DIMS];
    int n = a->ndim;
    td_status status = TD_APPLY(&rows, flatten, TD_T(a), TD_I(0), TD_I(-2));
    memcpy(sizes, a->sizes, sizeof(int64_t) * (size_t)n);
    if (b->ndim == 1)
        n--;
    else
        sizes[n - 1] = b->sizes[1];
    if (status == TD_OK)
        status = product_as(b->ndim == 1 ? TD_OP(mv) : TD_OP(mm), rows, b, n, sizes, &call->out[0]);
    td_release(rows);
    return status;
}

/* x's matrices, one per place of the batch shape, as (batch, rows, columns). */
static td_status as_batch(td_tensor *x, int ndim, const int64_t *batch, int64_t count,
                          td_tensor **out) {
    td_tensor *wide = NULL;
    int64_t sizes[TD_MAX_DIMS + 2];
    memcpy(sizes, batch, sizeof(int64_t) * (size_t)ndim);
    sizes[ndim] = x->sizes[x->ndim - 2];
    sizes[ndim + 1] = x->sizes[x->ndim - 1];
    const int64_t flat[3] = {count, sizes[ndim], sizes[ndim + 1]};
    td_status status = TD_APPLY(&wide, expand, TD_T(x), TD_INTS(ndim + 2, sizes));
    if (status == TD_OK)
        status = TD_APPLY(out, reshape, TD_T(wide), TD_INTS(3, flat));
    td_release(wide);
    return status;
}

static td_status matmul_batched(td_call *call, td_tensor *a, td_tensor *b) {
    td_tensor *left = NULL, *right = NULL;
    int64_t sizes[TD_MAX_DIMS + 2];
    int ndim;
    td_status status = td_broadcast(a->ndim - 2, a->sizes, b->ndim - 2, b->sizes, &ndim, sizes);
    if (status) {
        char ta[TD_SHAPE_TEXT], tb[TD_SHAPE_TEXT];
        return td_fail(TD_ESHAPE, "shapes %s and %s don't fit: their batches don't broadcast",
                       td_tensor_shape_text(a, ta), td_tensor_shape_text(b, tb));
    }
    int64_t count = td_numel(ndim, sizes);
    TD_TRY(as_batch(a, ndim, sizes, count, &left));
    TD_TRY(as_batch(b, ndim, sizes, count, &right));
    sizes[ndim] = a->sizes[a->ndim - 2];
    sizes[ndim + 1] = b->sizes[b->ndim - 1];
    TD_TRY(product_as(TD_OP(bmm), left, right, ndim + 2, sizes, &call->out[0]));
done:
    td_release(left);
    td_release(right);
    return status;
}

/* A vector on one side is a row or a column, whose dim goes again. */
static td_status matmul_vector(td_call *call, bool left) {
    td_tensor *v = call->args[left ? 0 : 1].tensor, *m = call->args[left ? 1 : 0].tensor;
    td_tensor *matrix = NULL, *y = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&matrix, unsqueeze, TD_T(v), TD_I(left ? 0 : 1)));
    TD_TRY(left ? TD_APPLY(&y, matmul, TD_T(matrix), TD_T(m))
                : TD_APPLY(&y, matmul, TD_T(m), TD_T(matrix)));
    TD_TRY(TD_APPLY(&call->out[0], squeeze, TD_T(y), TD_INTS(1, (int64_t[]){left ? -2 : -1})));
done:
    td_release(matrix);
    td_release(y);
    return status;
}

/* The call as one of an operator of the same arguments, which writes what was given to be written.
 * Where that is recorded the copy is (run_composite), as of other composites. */
static td_status call_as(td_call *call, const td_op *op) {
    td_call inner = {.op = op, .args = call->args};
    if (call->ngiven && !td_op_records(call->args[0].tensor) &&
        !td_op_records(call->args[1].tensor) && !td_op_records(call->given[0])) {
        inner.given = call->given;
        inner.ngiven = call->ngiven;
        inner.nbeside = call->nbeside;
    }
    td_status status = td_op_call(&inner);
    call->out[0] = inner.out[0];
    return status;
}

static td_status run_matmul(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor;
    char ta[TD_SHAPE_TEXT], tb[TD_SHAPE_TEXT];
    if (a->ndim == 0 || b->ndim == 0)
        return td_fail(TD_ESHAPE,
                       "shapes %s and %s: a 0-dim tensor has no product; multiply with *",
                       td_tensor_shape_text(a, ta), td_tensor_shape_text(b, tb));
    int64_t left = a->sizes[a->ndim - 1], right = b->sizes[b->ndim == 1 ? 0 : b->ndim - 2];
    if (left != right)
        return fail_shapes(a, b, left, right);
    if (a->ndim == 2 && b->ndim == 2)
        return call_as(call, TD_OP(mm));
    if (a->ndim == 1 && b->ndim == 1)
        return call_as(call, TD_OP(dot));
    if (a->ndim == 2 && b->ndim == 1)
        return call_as(call, TD_OP(mv));
    if (a->ndim == 1)
        return matmul_vector(call, true);
    if (b->ndim <= 2)
        return matmul_folded(call);
    return matmul_batched(call, a, b);
}

/* input broadcasts to the product, in place it has its shape. */
static td_status check_addend(const td_call *call, const td_tensor *y) {
    const td_tensor *input = call->args[0].tensor;
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    int64_t sizes[TD_MAX_DIMS];
    int ndim;
    td_status status = td_broadcast(y->ndim, y->sizes, input->ndim, input->sizes, &ndim, sizes);
    if (status)
        return status;
    bool same = ndim == y->ndim && !memcmp(sizes, y->sizes, sizeof(int64_t) * (size_t)ndim);
    if (same && (!call->inplace || td_tensor_same_shape(input, y)))
        return TD_OK;
    return td_fail(TD_ESHAPE, "input of shape %s, the product has %s",
                   td_tensor_shape_text(input, have), td_tensor_shape_text(y, want));
}

/* A factor of integers is their own: its whole part. */
static td_value factor(const td_tensor *x, td_value v) {
    bool cut = v.kind == TD_KIND_FLOAT && !td_dtype_is_float((td_dtype)x->dtype);
    return cut && v.f > -0x1p63 && v.f < 0x1p63 ? TD_I((int64_t)v.f) : v;
}

/* beta * input + alpha * product; without beta it does not matter what is in input, even NaN. */
static td_status add_product(td_call *call, const td_op *op) {
    const td_value *a = call->args;
    td_tensor *input = a[0].tensor, *y = NULL, *kept = NULL;
    td_value beta = factor(input, a[3]), alpha = factor(input, a[4]);
    td_status status = td_check_pair(input, a[1].tensor);
    if (status == TD_OK && !td_dtype_is_float((td_dtype)input->dtype))
        status = td_check_holds(TD_I64, beta);
    if (status == TD_OK && !td_dtype_is_float((td_dtype)input->dtype))
        status = td_check_holds(TD_I64, alpha);
    if (status)
        return status;
    TD_TRY(td_op_apply(op, &y, 2, a + 1));
    TD_TRY(check_addend(call, y));
    if (td_arg_double(beta) == 0) {
        TD_STEP(&y, mul, TD_T(y), alpha);
    } else {
        kept = td_retain(input);
        if (td_arg_double(beta) != 1)
            TD_STEP(&kept, mul, TD_T(kept), beta);
        TD_STEP(&y, add, TD_T(kept), TD_T(y), alpha);
    }
    call->out[0] = td_retain(y);
done:
    td_release(y);
    td_release(kept);
    return status;
}

/* Is it a layer, a bias for each row? */
static bool is_layer(const td_call *call) {
    const td_value *args = call->args;
    const td_tensor *bias = args[0].tensor, *x = args[1].tensor, *y = args[2].tensor;
    bool fits = bias->ndim == 1 && x->ndim == 2 && y->ndim == 2 && x->sizes[1] == y->sizes[0] &&
                bias->sizes[0] == y->sizes[1];
    return fits && !call->inplace && x->layout == TD_STRIDED && y->layout == TD_STRIDED &&
           x->dtype == y->dtype && bias->dtype == x->dtype &&
           td_device_same(td_tensor_device(x), td_tensor_device(y)) &&
           td_device_same(td_tensor_device(x), td_tensor_device(bias)) &&
           td_arg_double(args[3]) == 1 && td_arg_double(args[4]) == 1;
}

/* Of a layer: in one pass, rounded once. */
static td_status run_addmm(td_call *call) {
    td_tensor *weight = NULL;
    td_status status = TD_OK;
    if (!is_layer(call))
        return add_product(call, TD_OP(mm));
    TD_TRY(TD_APPLY(&weight, transpose, TD_T(call->args[2].tensor), TD_I(0), TD_I(1)));
    status = TD_APPLY(&call->out[0], linear, TD_T(call->args[1].tensor), TD_T(weight),
                      TD_T(call->args[0].tensor));
done:
    td_release(weight);
    return status;
}
static td_status run_addmv(td_call *call) {
    return add_product(call, TD_OP(mv));
}
static td_status run_baddbmm(td_call *call) {
    return add_product(call, TD_OP(bmm));
}

/* ---- the table ---- */

#define MM(product)                                                                                \
    "x: " product "(g, transpose(y, -2, -1)); y: " product "(transpose(x, -2, -1), g)"

TD_OPERATOR(matmul) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Product of vectors, matrices, or batches of matrices (leading dims broadcast).",
    .shapes = "x (k), y (k) -> () | x (*, n, k), y (k) -> (*, n) | x (k), y (*, k, m) -> (*, m) | "
              "x (*, n, k), y (*, k, m) -> (*, n, m)",
    .takes = "floating and integers, one dtype",
    .notes = "Vectors are taken as a row on the left and a column on the right, and that dim goes; "
             "dims before the last two are broadcast. A tensor without dims is an error.",
    .forms[TD_SPARSE_COO] = td_sparse_product,
    .run = run_matmul,
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(mm) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Product of two matrices.",
    .shapes = "x (n, k), y (k, m) -> (n, m)",
    .notes = "Nothing is broadcast: matmul does.",
    .rule = rule_mm,
    .kernel = kernel_product,
    .dtypes = TD_DTYPES_NUMBERS,
    .forms[TD_SPARSE_COO] = td_sparse_product,
    .gradient = MM("mm"),
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(int_mm) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Product of two int8 matrices, summed up in int32: of quantized values.",
    .shapes = "x (n, k), y (k, m) -> (n, m)",
    .takes = "int8, one dtype; the result is int32",
    .rule = rule_int_mm,
    .kernel = kernel_product,
    .dtypes = TD_DTYPE_BIT(I8),
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_NONDIFF,
};
TD_OPERATOR(bmm) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Products of two batches of matrices, one by one.",
    .shapes = "x (b, n, k), y (b, k, m) -> (b, n, m)",
    .notes = "Nothing is broadcast: matmul does.",
    .rule = rule_bmm,
    .kernel = kernel_product,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = MM("bmm"),
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(mv) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Product of a matrix and a vector.",
    .shapes = "x (n, k), y (k) -> (n)",
    .rule = rule_mv,
    .kernel = kernel_product,
    .dtypes = TD_DTYPES_NUMBERS,
    .forms[TD_SPARSE_COO] = td_sparse_product,
    .gradient = "x: outer(g, y); y: mv(transpose(x, 0, 1), g)",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(dot) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Inner product of two vectors.",
    .shapes = "x (n), y (n) -> ()",
    .rule = rule_dot,
    .kernel = kernel_product,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = "x: g * y; y: g * x",
    .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(outer) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "All products of an element of one vector and an element of another.",
    .shapes = "x (n), y (m) -> (n, m)",
    .takes = "any, promoted",
    .formula = "if(x.ndim == 1 and y.ndim == 1, unsqueeze(x, 1) * unsqueeze(y, 0),"
               "   error(\"needs two vectors, got shapes % and %\", x.shape, y.shape))",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(addmm) = {
    .schema = "(Tensor input, Tensor mat1, Tensor mat2, *, number beta=1, number alpha=1) "
              "-> Tensor",
    .doc = "beta * input + alpha * (mat1 times mat2).",
    .shapes = "input to (n, m), mat1 (n, k), mat2 (k, m) -> (n, m)",
    .takes = "floating and integers, one dtype",
    .run = run_addmm,
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(addmv) = {
    .schema = "(Tensor input, Tensor mat, Tensor vec, *, number beta=1, number alpha=1) "
              "-> Tensor",
    .doc = "beta * input + alpha * (mat times vec).",
    .shapes = "input to (n), mat (n, k), vec (k) -> (n)",
    .takes = "floating and integers, one dtype",
    .run = run_addmv,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(baddbmm) = {
    .schema = "(Tensor input, Tensor batch1, Tensor batch2, *, number beta=1, "
              "number alpha=1) -> Tensor",
    .doc = "beta * input + alpha * (batch1 times batch2).",
    .shapes = "input to (b, n, m), batch1 (b, n, k), batch2 (b, k, m) -> (b, n, m)",
    .takes = "floating and integers, one dtype",
    .run = run_baddbmm,
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_EXACT,
};
/* A bias of another shape that fits the result is spread over it. */
static td_status choose_linear(const td_value *args, const td_op **op) {
    const td_tensor *x = args[0].tensor, *weight = args[1].tensor, *bias = td_arg_tensor(args[2]);
    if (!bias || weight->ndim != 2 || (bias->ndim == 1 && bias->sizes[0] == weight->sizes[0]))
        return TD_OK;
    if (bias->ndim > x->ndim)
        return TD_OK;
    for (int d = 1; d <= bias->ndim; d++) {
        int64_t have = bias->sizes[bias->ndim - d];
        int64_t want = d == 1 ? weight->sizes[0] : x->sizes[x->ndim - d];
        if (have != 1 && have != want)
            return TD_OK;
    }
    *op = TD_OP(linear_spread);
    return TD_OK;
}
TD_OPERATOR(linear_spread) = {
    .schema = "(Tensor input, Tensor weight, Tensor bias) -> Tensor",
    .doc = "linear with a bias that is spread over the result.",
    .formula = "linear(input, weight) + bias",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(linear) = {
    .schema = "(Tensor input, Tensor weight, Tensor? bias=nil) -> Tensor",
    .doc = "input times the transposed weight, plus bias: the fully connected layer.",
    .shapes =
        "input (..., I), weight (O, I), bias (O) -> (..., O) | input (..., I), weight (I) -> (...)",
    .notes = "The last dim of input must have the size of weight's.",
    .variant = choose_linear,
    .rule = rule_linear,
    .kernel = kernel_linear,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = "input: if(weight.ndim == 1, unsqueeze(g, -1) * weight, matmul(g, weight));"
                "weight: if(weight.ndim == 1,"
                "           if(input.ndim == 1, g * input,"
                "              mv(transpose(flatten(input, 0, -2), 0, 1), flatten(g))),"
                "        if(g.ndim == 2, mm(transpose(g, 0, 1), input),"
                "        if(g.ndim == 1, outer(g, input),"
                "           mm(transpose(flatten(g, 0, -2), 0, 1), flatten(input, 0, -2)))));"
                "bias: g",
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
