/* algebra.c: products of vectors, matrices and chains of them, and distances: expressions over
 * products and sums. */
#include "engine/core/memory.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/pointwise/pointwise_rows.h"
#include "engine/ops/rule_helpers.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#define TD_FAMILY "algebra"

/* ---- kron ---- */

/* x's sizes, right-aligned to n dims, each beside a 1: before it (odd = 0) or behind it. */
static void interleave(const td_tensor *x, int n, int odd, int64_t *sizes) {
    for (int d = 0; d < n; d++) {
        int from = d - (n - x->ndim);
        sizes[2 * d + odd] = from < 0 ? 1 : x->sizes[from];
        sizes[2 * d + 1 - odd] = 1;
    }
}

static td_status run_kron(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor, *x = NULL, *y = NULL;
    int n = a->ndim > b->ndim ? a->ndim : b->ndim;
    int64_t sizes[TD_MAX_DIMS], joined[TD_MAX_DIMS];
    td_status status = TD_OK;
    if (2 * n > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "at most %d dims are possible, got %d", TD_MAX_DIMS / 2, n);
    /* Row-major, so that the products lie in the order in which the dims are joined. */
    TD_TRY(TD_APPLY(&x, contiguous, TD_T(a)));
    TD_TRY(TD_APPLY(&y, contiguous, TD_T(b)));
    interleave(a, n, 0, sizes);
    TD_STEP(&x, reshape, TD_T(x), TD_INTS(2 * n, sizes));
    interleave(b, n, 1, sizes);
    TD_STEP(&y, reshape, TD_T(y), TD_INTS(2 * n, sizes));
    TD_STEP(&x, mul, TD_T(x), TD_T(y));
    for (int d = 0; d < n; d++)
        joined[d] = x->sizes[2 * d] * x->sizes[2 * d + 1];
    TD_TRY(TD_APPLY(&call->out[0], reshape, TD_T(x), TD_INTS(n, joined)));
done:
    td_release(x);
    td_release(y);
    return status;
}

/* ---- cross ---- */

/* Part k, from 0, of three along a dim. */
static td_status third_of(const td_tensor *x, int dim, int k, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    for (int d = 0; d < x->ndim - 1; d++) {
        sizes[d] = x->sizes[d + (d >= dim)];
        strides[d] = x->strides[d + (d >= dim)];
    }
    return td_tensor_view((td_tensor *)x, x->ndim - 1, sizes, strides, k * x->strides[dim], out);
}

/* Three lists of one plan: each part of the result from two of x and two of y. */
static td_status kernel_cross_of(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = call->args[1].tensor, *parts[9] = {NULL};
    td_operand operands[12] = {{0}};
    int dim;
    td_status status = TD_OK;
    TD_TRY(td_wrap_dim(call->args[2].i, x->ndim, &dim));
    for (int k = 0; k < 3; k++) {
        TD_TRY(third_of(call->out[0], dim, k, &parts[k]));
        TD_TRY(third_of(x, dim, k, &parts[3 + k]));
        TD_TRY(third_of(y, dim, k, &parts[6 + k]));
    }
    for (int k = 0; k < 3; k++) {
        int next = (k + 1) % 3, last = (k + 2) % 3;
        operands[4 * k].tensor = parts[3 + next];
        operands[4 * k + 1].tensor = parts[6 + last];
        operands[4 * k + 2].tensor = parts[3 + last];
        operands[4 * k + 3].tensor = parts[6 + next];
    }
    td_pointwise_plan plan = {.program = td_pointwise_program(TD_OP(cross_term), NULL),
                              .operands = operands,
                              .compute = (td_dtype)x->dtype,
                              .nlists = 3,
                              .outs = parts};
    status = TD_RUN(td_tensor_device(x), pointwise, &plan);
done:
    for (int k = 0; k < 9; k++)
        td_release(parts[k]);
    return status;
}

/* As `shape` and `dtype` say. */
static td_status brought_to(td_tensor *x, int ndim, const int64_t *shape, td_dtype dtype,
                            td_tensor **out) {
    td_tensor *y = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&y, to, TD_T(x), TD_DTYPE(dtype)));
    TD_TRY(TD_APPLY(out, expand, TD_T(y), TD_INTS(ndim, shape)));
done:
    td_release(y);
    return status;
}

static td_status run_linalg_cross(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = call->args[1].tensor, *a = NULL, *b = NULL;
    char have[TD_SHAPE_TEXT], other[TD_SHAPE_TEXT];
    int64_t sizes[TD_MAX_DIMS];
    int dim, ndim;
    td_status status = TD_OK;
    td_tensor_shape_text(x, have);
    td_tensor_shape_text(y, other);
    if (x->ndim != y->ndim)
        return td_fail(TD_ESHAPE, "shapes %s and %s must have as many dims", have, other);
    TD_TRY(td_wrap_dim(call->args[2].i, x->ndim, &dim));
    if (x->ndim == 0 || x->sizes[dim] != 3 || y->sizes[dim] != 3)
        return td_fail(TD_ESHAPE, "the dim must be of size 3 in both shapes, %s and %s", have,
                       other);
    TD_TRY(td_broadcast(x->ndim, x->sizes, y->ndim, y->sizes, &ndim, sizes));
    td_dtype dtype = td_dtype_promote((td_dtype)x->dtype, (td_dtype)y->dtype);
    TD_TRY(brought_to(x, ndim, sizes, dtype, &a));
    TD_TRY(brought_to(y, ndim, sizes, dtype, &b));
    TD_TRY(TD_APPLY(&call->out[0], cross_of, TD_T(a), TD_T(b), TD_I(dim)));
done:
    td_release(a);
    td_release(b);
    return status;
}

static td_status run_cross(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value dim = call->args[2];
    char text[TD_SHAPE_TEXT];
    for (int d = 0; td_is_nil(dim) && d < x->ndim; d++)
        if (x->sizes[d] == 3)
            dim = TD_I(d);
    if (td_is_nil(dim))
        return td_fail(TD_ESHAPE, "needs a dim of size 3, got shape %s",
                       td_tensor_shape_text(x, text));
    return TD_APPLY(&call->out[0], linalg_cross, TD_T(x), call->args[1], dim);
}

static td_status run_vecdot(td_call *call) {
    const td_value *a = call->args;
    td_tensor *product = NULL;
    int64_t dim = a[2].i;
    td_status status = td_check_float((td_dtype)a[0].tensor->dtype);
    if (status == TD_OK)
        status = TD_APPLY(&product, mul, a[0], a[1]);
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], sum, TD_T(product), TD_INTS(1, &dim));
    td_release(product);
    return status;
}

/* ---- chains of products ---- */

/* The cheapest order: matrix k is sizes[k] by sizes[k + 1]; split[i * n + j] is where the product
 * of the matrices from i to j is split. */
static td_status best_splits(int n, const int64_t *sizes, int *split) {
    double *cost = td_calloc((size_t)n * (size_t)n, sizeof *cost);
    if (!cost)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int length = 1; length < n; length++)
        for (int i = 0; i + length < n; i++) {
            int j = i + length;
            cost[i * n + j] = 1e300;
            for (int k = i; k < j; k++) {
                double c = cost[i * n + k] + cost[(k + 1) * n + j] +
                           (double)sizes[i] * (double)sizes[k + 1] * (double)sizes[j + 1];
                if (c < cost[i * n + j]) {
                    cost[i * n + j] = c;
                    split[i * n + j] = k;
                }
            }
        }
    td_free(cost);
    return TD_OK;
}

/* The product of the matrices from i to j in that order: as deep as the chain is long at most. */
static td_status multiply(td_tensor *const *list, int n, const int *split, int i, int j,
                          td_tensor **out) {
    td_tensor *left = NULL, *right = NULL;
    td_status status = TD_OK;
    if (i == j) {
        *out = td_retain(list[i]);
        return TD_OK;
    }
    int k = split[i * n + j];
    TD_TRY(multiply(list, n, split, i, k, &left));
    TD_TRY(multiply(list, n, split, k + 1, j, &right));
    TD_TRY(TD_APPLY(out, mm, TD_T(left), TD_T(right)));
done:
    td_release(left);
    td_release(right);
    return status;
}

enum { LONGEST_CHAIN = 256 };

static td_status multiply_best(td_tensor *const *list, int n, td_tensor **out) {
    int64_t sizes[LONGEST_CHAIN + 1];
    for (int k = 0; k < n; k++) {
        if (k && list[k]->sizes[0] != list[k - 1]->sizes[1])
            return td_fail(TD_ESHAPE, "matrix %d has %lld columns, matrix %d has %lld rows", k,
                           (long long)list[k - 1]->sizes[1], k + 1, (long long)list[k]->sizes[0]);
        sizes[k] = list[k]->sizes[0];
        sizes[k + 1] = list[k]->sizes[1];
    }
    int *split = td_calloc((size_t)n * (size_t)n, sizeof *split);
    td_status status = split ? best_splits(n, sizes, split) : td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK)
        status = multiply(list, n, split, 0, n - 1, out);
    td_free(split);
    return status;
}

/* The operands with a vector at the front as a row, one at the end as a column; the bits say which
 * were. */
static td_status as_matrices(td_value list, bool vectors, td_tensor **matrices, int *ends) {
    char text[TD_SHAPE_TEXT];
    *ends = 0;
    for (int k = 0; k < list.n; k++) {
        td_tensor *x = list.tensors[k];
        bool first = k == 0, last = k == list.n - 1;
        td_status status = TD_OK;
        if (x->ndim == 2)
            matrices[k] = td_retain(x);
        else if (x->ndim == 1 && vectors && (first || last))
            status = TD_APPLY(&matrices[k], unsqueeze, TD_T(x), TD_I(first ? 0 : 1));
        else
            status = td_fail(TD_ESHAPE, "tensor %d must be a matrix, got shape %s", k + 1,
                             td_tensor_shape_text(x, text));
        if (status)
            return status;
        *ends |= x->ndim == 1 ? first ? 1 : 2 : 0;
    }
    return TD_OK;
}

static td_status multiply_chain(td_call *call, bool vectors) {
    td_value list = call->args[0];
    td_tensor *matrices[LONGEST_CHAIN] = {NULL}, *y = NULL;
    int ends, least = vectors ? 2 : 1;
    td_status status = TD_OK;
    if (list.n < least || list.n > LONGEST_CHAIN)
        return td_fail(TD_EVALUE, "%d to %d tensors expected, got %d", least, LONGEST_CHAIN,
                       list.n);
    TD_TRY(as_matrices(list, vectors, matrices, &ends));
    TD_TRY(multiply_best(matrices, list.n, &y));
    if (ends & 2)
        TD_STEP(&y, select, TD_T(y), TD_I(1), TD_I(0));
    if (ends & 1)
        TD_STEP(&y, select, TD_T(y), TD_I(0), TD_I(0));
    call->out[0] = td_retain(y);
done:
    td_release(y);
    for (int k = 0; k < list.n; k++)
        td_release(matrices[k]);
    return status;
}

static td_status run_multi_dot(td_call *call) {
    return multiply_chain(call, true);
}
static td_status run_chain_matmul(td_call *call) {
    return multiply_chain(call, false);
}

/* ---- matrix_power ---- */

/* A copy of x overwritten: what depends on x has a gradient, though it is zero. */
static td_status identity_like(td_tensor *x, td_tensor **out) {
    td_tensor *one = NULL, *y = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&one, eye, TD_I(x->sizes[x->ndim - 1]), TD_NIL, TD_DTYPE((td_dtype)x->dtype),
                    TD_DEVICE(td_tensor_device(x))));
    TD_TRY(TD_APPLY(&y, clone, TD_T(x)));
    TD_TRY(TD_APPLY_INPLACE(copy_, TD_T(y), TD_T(one)));
    *out = td_retain(y);
done:
    td_release(one);
    td_release(y);
    return status;
}

/* By squaring: the bits of n from the lowest on. */
static td_status run_matrix_power(td_call *call) {
    td_tensor *x = call->args[0].tensor, *square = NULL, *y = NULL;
    int64_t n = call->args[1].i;
    char text[TD_SHAPE_TEXT];
    td_status status = TD_OK;
    if (x->ndim < 2 || x->sizes[x->ndim - 1] != x->sizes[x->ndim - 2])
        return td_fail(TD_ESHAPE, "needs square matrices, got shape %s",
                       td_tensor_shape_text(x, text));
    if (n == 0)
        return identity_like(x, &call->out[0]);
    if (n == 1)
        return TD_APPLY(&call->out[0], clone, TD_T(x));
    square = td_retain(x);
    if (n < 0)
        TD_STEP(&square, linalg_inv, TD_T(square));
    for (uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;; left >>= 1) {
        if (left & 1 && y)
            TD_STEP(&y, matmul, TD_T(y), TD_T(square));
        else if (left & 1)
            y = td_retain(square);
        if (left == 1)
            break;
        TD_STEP(&square, matmul, TD_T(square), TD_T(square));
    }
    call->out[0] = td_retain(y);
done:
    td_release(square);
    td_release(y);
    return status;
}

/* ---- products that are added ---- */

/* beta * input + alpha * y; without beta it does not matter what is in input, even NaN. */
static td_status add_scaled(td_value input, td_tensor *y, td_value beta, td_value alpha,
                            td_tensor **out) {
    td_tensor *x = td_retain(input.tensor);
    td_status status = TD_OK;
    if (td_arg_double(beta) == 0) {
        TD_STEP(&x, expand, TD_T(x), TD_INTS(y->ndim, y->sizes)); /* it fits all the same */
        TD_TRY(TD_APPLY(out, mul, TD_T(y), alpha));
        goto done;
    }
    if (td_arg_double(beta) != 1)
        TD_STEP(&x, mul, TD_T(x), beta);
    TD_TRY(TD_APPLY(out, add, TD_T(x), TD_T(y), alpha));
done:
    td_release(x);
    return status;
}

/* Of truths: either what input has, or what both vectors have. */
static td_status run_addr_of_truths(td_call *call, td_tensor *y) {
    const td_value *a = call->args;
    td_tensor *x = NULL, *all = td_retain(y);
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&x, expand, a[0], TD_INTS(y->ndim, y->sizes)));
    if (td_arg_double(a[3]) == 0)
        TD_STEP(&x, zeros_like, TD_T(x));
    if (td_arg_double(a[4]) == 0)
        TD_STEP(&all, zeros_like, TD_T(all));
    TD_TRY(TD_APPLY(&call->out[0], logical_or, TD_T(x), TD_T(all)));
done:
    td_release(x);
    td_release(all);
    return status;
}

/* In one pass, which reads a column and a row. */
static td_status add_products(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = NULL, *column = NULL, *row = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&column, unsqueeze, a[1], TD_I(1)));
    TD_TRY(TD_APPLY(&row, unsqueeze, a[2], TD_I(0)));
    TD_TRY(TD_APPLY(&x, expand, a[0],
                    TD_INTS(2, ((const int64_t[]){column->sizes[0], row->sizes[1]}))));
    if (td_arg_double(a[3]) != 1)
        TD_STEP(&x, mul, TD_T(x), a[3]);
    TD_TRY(TD_APPLY(&call->out[0], addcmul, TD_T(x), TD_T(column), TD_T(row), a[4]));
done:
    td_release(x);
    td_release(column);
    td_release(row);
    return status;
}

static td_status run_addr(td_call *call) {
    const td_value *a = call->args;
    td_tensor *y = NULL;
    td_status status = TD_OK;
    const td_dtype dtypes[3] = {(td_dtype)a[0].tensor->dtype, (td_dtype)a[1].tensor->dtype,
                                (td_dtype)a[2].tensor->dtype};
    td_dtype dtype = td_dtype_promote(dtypes[0], td_dtype_promote(dtypes[1], dtypes[2]));
    TD_TRY(td_check_ndim(a[1].tensor, "vec1", 1));
    TD_TRY(td_check_ndim(a[2].tensor, "vec2", 1));
    if (!td_dtype_is_float(dtype) && (a[3].kind == TD_KIND_FLOAT || a[4].kind == TD_KIND_FLOAT))
        TD_TRY(td_fail(TD_EDTYPE, "beta and alpha must be integers for %s", td_dtype_name(dtype)));
    if (dtype != TD_BOOL && td_arg_double(a[3]) != 0)
        return add_products(call);
    TD_TRY(TD_APPLY(&y, outer, a[1], a[2]));
    status = dtype == TD_BOOL ? run_addr_of_truths(call, y)
                              : add_scaled(a[0], y, a[3], a[4], &call->out[0]);
done:
    td_release(y);
    return status;
}

/* A factor as integers take it: without its fraction. */
static td_status make_whole(td_dtype dtype, td_value *v) {
    if (td_dtype_is_float(dtype) || v->kind != TD_KIND_FLOAT)
        return TD_OK;
    if (!(fabs(v->f) < 0x1p62))
        return td_fail(TD_EVALUE, "beta and alpha must fit into integers, got %g", v->f);
    *v = TD_I((int64_t)v->f);
    return TD_OK;
}

static td_status run_addbmm(td_call *call) {
    const td_value *a = call->args;
    td_value beta = a[3], alpha = a[4];
    td_tensor *y = NULL;
    int64_t batch = 0;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&y, bmm, a[1], a[2]));
    td_dtype dtype = (td_dtype)y->dtype;
    TD_TRY(make_whole(dtype, &beta));
    TD_TRY(make_whole(dtype, &alpha));
    TD_STEP(&y, sum, TD_T(y), TD_INTS(1, &batch), TD_B(false), TD_DTYPE(dtype));
    TD_TRY(add_scaled(a[0], y, beta, alpha, &call->out[0]));
    /* Alone of all forms in place it takes the result's shape, where no base and no history knows
     * it by another. */
    if (call->inplace && !a[0].tensor->base && !a[0].tensor->requires_grad &&
        !td_tensor_same_shape(a[0].tensor, y))
        TD_TRY(td_tensor_resize(a[0].tensor, y->ndim, y->sizes));
done:
    td_release(y);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(inner) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Products summed over the last dims of both; of a 0-dim tensor the product.",
    .shapes = "x (a..., k), y (b..., k) -> (a..., b...) | x (a...), y () -> (a...) | x (), y "
              "(b...) -> (b...)",
    .takes = "floating and integers, one dtype",
    .formula = "if(x.ndim == 0 or y.ndim == 0, x * y, tensordot(x, y, {-1}, {-1}))",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(vdot) = {
    .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE},
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "dot, which for real numbers is the same.",
    .shapes = "x (n), y (n) -> ()",
    .takes = "floating and integers, one dtype",
    .formula = "dot(x, y)",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_vecdot) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .schema = "(Tensor x, Tensor y, *, dim dim=-1) -> Tensor",
    .doc = "Inner products of the vectors along a dim, which broadcast.",
    .shapes = "x (*), y (*) -> (*) without dim",
    .takes = "floating, promoted",
    .run = run_vecdot,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(addr) = {
    .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER},
    .schema = "(Tensor input, Tensor vec1, Tensor vec2, *, number beta=1, number alpha=1) "
              "-> Tensor",
    .doc = "beta * input + alpha * (all products of elements of vec1 and vec2).",
    .shapes = "input to (n, m), vec1 (n), vec2 (m) -> (n, m)",
    .takes = "any, promoted",
    .run = run_addr,
    .flags = TD_OP_INPLACE | TD_OP_OUT,
};
TD_OPERATOR(addbmm) = {
    .schema = "(Tensor input, Tensor batch1, Tensor batch2, *, number beta=1, number alpha=1) "
              "-> Tensor",
    .doc = "beta * input + alpha * (the sum of batch1's matrices times batch2's).",
    .shapes = "input to (n, m), batch1 (b, n, k), batch2 (b, k, m) -> (n, m)",
    .takes = "floating and integers, one dtype",
    .run = run_addbmm,
    .autocast = {[TD_CPU] = TD_AUTOCAST_LOWER, [TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(kron) = {
    .schema = "(Tensor x, Tensor y) -> Tensor",
    .doc = "Kronecker's product: every element of x times the whole y.",
    .shapes = "x (a...), y (b...) -> (times(x, y)...)",
    .takes = "any, promoted",
    .run = run_kron,
    .flags = TD_OP_OUT,
};
TD_OPERATOR(cross_term) = {
    .schema = "(Tensor a, Tensor b, Tensor c, Tensor d) -> Tensor",
    .doc = "a b - c d.",
    .pointwise = PLAN(.type = TD_PW_ARITH, .primitive = -1, .formula = "a * b - c * d"),
    .dtypes = TD_DTYPES_NUMBERS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(cross_of) = {
    .schema = "(Tensor x, Tensor y, dim dim) -> Tensor",
    .doc = "Cross products along a dim of tensors of one shape and dtype.",
    .rule = td_rule_same,
    .kernel = kernel_cross_of,
    .dtypes = TD_DTYPES_NUMBERS,
    .gradient = "x: cross_of(y, g, dim); y: cross_of(g, x, dim)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(linalg_cross) = {
    .schema = "(Tensor x, Tensor y, *, dim dim=-1) -> Tensor",
    .doc = "Cross products of the vectors of three elements along a dim; other dims broadcast.",
    .shapes = "x (*), y (*) -> (*)",
    .takes = "floating and integers, promoted",
    .run = run_linalg_cross,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(cross) = {
    .schema = "(Tensor x, Tensor y, dim? dim=nil) -> Tensor",
    .doc = "Cross products along a dim of size 3, the first such where none is given.",
    .shapes = "x (*), y (*) -> (*)",
    .takes = "floating and integers, promoted",
    .run = run_cross,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_multi_dot) = {
    .schema = "(Tensor[] tensors) -> Tensor",
    .doc =
        "The product of two matrices or more in the cheapest order; vectors may stand at the ends.",
    .shapes =
        "tensors {(sizes...)} -> (ends...); sizes: of matrices, the first and last of which may be "
        "vectors; ends: rows of the first, columns of the last, which a vector has not",
    .takes = "floating and integers, one dtype",
    .run = run_multi_dot,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(chain_matmul) = {
    .schema = "(Tensor... matrices) -> Tensor",
    .doc = "The product of matrices in the cheapest order.",
    .shapes = "matrices {(n, m)} -> (matrices[1][1], matrices[-1][2]); n: m of the one before; m: "
              "its own",
    .takes = "floating and integers, one dtype",
    .run = run_chain_matmul,
    .autocast = {[TD_CUDA] = TD_AUTOCAST_LOWER},
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(matrix_power) = {
    .schema = "(Tensor x, int n) -> Tensor",
    .doc = "Square matrices to a power; a negative one is that of their inverses.",
    .shapes = "x (..., m, m) -> (..., m, m)",
    .takes = "floating and integers",
    .run = run_matrix_power,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_matrix_power) = {
    .schema = "(Tensor x, int n) -> Tensor",
    .doc = "Another name for matrix_power.",
    .shapes = "x (..., m, m) -> (..., m, m)",
    .takes = "floating and integers",
    .formula = "matrix_power(x, n)",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
/* Exponents beyond which squares, or what is near them, are no numbers of the dtype. */
static const int most_of[TD_DTYPE_COUNT] = {
    [TD_F16] = 4, [TD_BF16] = 50, [TD_F32] = 50, [TD_F64] = 450};

/* Does the largest |x| of a tensor on the CPU have an exponent beyond those? */
static td_status exponent_of(td_tensor *x, int *exponent, bool *odd) {
    td_tensor *size = NULL;
    td_status status = TD_OK;
    *odd = false;
    if (td_tensor_device(x).type != TD_CPU || x->numel == 0 || most_of[x->dtype] == 0)
        return TD_OK;
    TD_TRY(TD_APPLY(&size, detach, TD_T(x)));
    TD_STEP(&size, abs, TD_T(size));
    TD_STEP(&size, amax, TD_T(size));
    const double largest = td_load_double((td_dtype)size->dtype, size->data);
    if (largest > 0 && isfinite(largest)) {
        *exponent = ilogb(largest);
        *odd = *exponent > most_of[x->dtype] || *exponent < -most_of[x->dtype];
    }
done:
    td_release(size);
    return status;
}

/* Where the elements are not at hand, the device finds the power of two. */
static td_status euclidean_dist_elsewhere(td_call *call, td_tensor *const x[2], td_dtype dtype) {
    td_tensor *own[2] = {NULL}, *scale = NULL, *y = NULL;
    td_status status = TD_OK;
    for (int k = 0; k < 2; k++)
        TD_TRY(TD_APPLY(&own[k], to, TD_T(x[k]), TD_DTYPE(dtype)));
    TD_TRY(TD_APPLY(&scale, size_of_squares, TD_T(own[0]), TD_T(own[1]), TD_F(most_of[dtype])));
    for (int k = 0; k < 2; k++)
        TD_STEP(&own[k], div, TD_T(own[k]), TD_T(scale));
    TD_TRY(TD_APPLY(&y, euclidean_dist, TD_T(own[0]), TD_T(own[1])));
    status = TD_APPLY(&call->out[0], mul, TD_T(y), TD_T(scale));
done:
    td_release(own[0]);
    td_release(own[1]);
    td_release(scale);
    td_release(y);
    return status;
}

/* Squares that leave float64 are kept in it by a power of two, all others by float64. */
static td_status run_euclidean_dist(td_call *call) {
    td_tensor *x[2] = {call->args[0].tensor, call->args[1].tensor}, *own[2] = {NULL}, *y = NULL;
    const td_dtype dtype = td_promote_operands(2, call->args);
    static const int lowest[TD_DTYPE_COUNT] = {[TD_F64] = -1022}; /* of what float64 can't widen */
    int exponent[2] = {INT_MIN, INT_MIN}, largest;
    bool odd[2];
    td_status status = TD_OK;
    if (td_tensor_device(x[0]).type != TD_CPU && most_of[dtype] && x[0]->numel && x[1]->numel)
        return euclidean_dist_elsewhere(call, x, dtype);
    for (int k = 0; k < 2; k++)
        TD_TRY(exponent_of(x[k], &exponent[k], &odd[k]));
    if (TD_LIKELY(!odd[0] && !odd[1]))
        return TD_APPLY(&call->out[0], euclidean_dist, TD_T(x[0]), TD_T(x[1]));
    largest = exponent[0] > exponent[1] ? exponent[0] : exponent[1];
    const int exponent_kept = largest < lowest[dtype] ? lowest[dtype] : largest;
    const double scale = lowest[dtype] ? ldexp(1, exponent_kept) : 1;
    for (int k = 0; k < 2; k++) {
        TD_TRY(TD_APPLY(&own[k], to, TD_T(x[k]), TD_DTYPE(TD_F64)));
        TD_STEP(&own[k], div, TD_T(own[k]), TD_F(scale));
    }
    TD_TRY(TD_APPLY(&y, euclidean_dist, TD_T(own[0]), TD_T(own[1])));
    TD_STEP(&y, mul, TD_T(y), TD_F(scale));
    status = TD_APPLY(&call->out[0], to, TD_T(y), TD_DTYPE(dtype));
done:
    td_release(own[0]);
    td_release(own[1]);
    td_release(y);
    return status;
}

TD_OPERATOR(root_from_zero) = {
    .schema = "(Tensor x) -> Tensor",
    .doc = "The square root, of numbers below 0 0.",
    .pointwise = &(const td_pointwise){.type = TD_PW_FLOATS,
                                       .primitive = -1,
                                       .formula = "sqrt(relu(x))"},
    .dtypes = TD_DTYPES_FLOATS,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(euclidean_dist) = {
    .schema = "(Tensor x1, Tensor x2) -> Tensor",
    .doc = "cdist for p = 2 by one product of matrices.",
    .formula = "s1 = sum(x1 * x1, -1, keepdim=true); s2 = sum(x2 * x2, -1, keepdim=true);"
               "root_from_zero(matmul(cat({x1 * -2, s1, ones_like(s1)}, -1),"
               "                      transpose(cat({x2, ones_like(s2), s2}, -1), -2, -1)))",
    .gradient = "r = g / masked_fill(out, out == 0, inf);"
                "x1: x1 * sum(r, -1, keepdim=true) - matmul(r, x2);"
                "x2: x2 * unsqueeze(sum(r, -2), -1) - matmul(transpose(r, -2, -1), x1)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(size_of_squares) = {
    .schema = "(Tensor x1, Tensor x2, float most) -> Tensor",
    .doc = "The power of two below the largest magnitude, where its exponent is beyond `most`; "
           "else 1.",
    .formula = "e = floor(log2(maximum(amax(abs(detach(x1))), amax(abs(detach(x2))))));"
               "exp2(where(abs(e) > most, where(isfinite(e), e, 0.0), 0.0))",
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(euclidean_dist_of_any) = {
    .schema = "(Tensor x1, Tensor x2) -> Tensor",
    .doc = "euclidean_dist of elements whose squares may leave the dtype.",
    .run = run_euclidean_dist,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(cdist) = {
    .schema =
        "(Tensor x1, Tensor x2, float(0..) p=2, "
        "\"use_mm_for_euclid_dist_if_necessary\"|\"use_mm_for_euclid_dist\"|"
        "\"donot_use_mm_for_euclid_dist\" compute_mode=\"use_mm_for_euclid_dist_if_necessary\") "
        "-> Tensor",
    .doc = "Distances by the p-norm between all rows of x1 and all rows of x2.",
    .shapes = "x1 (*, n, k), x2 (*, m, k) -> (*, n, m)",
    .takes = "floating, one dtype",
    .formula = "if(x1.ndim < 2 or x2.ndim < 2 or x1.size(-1) ~= x2.size(-1),"
               "   error(\"needs rows of one length, got shapes % and %\", x1.shape, x2.shape),"
               "   if(x1.size(-1) == 0, sum(unsqueeze(x1, -2) - unsqueeze(x2, -3), -1),"
               "      if(p == 2 and (compute_mode == \"use_mm_for_euclid_dist\" or"
               "                     compute_mode == \"use_mm_for_euclid_dist_if_necessary\" and"
               "                     (x1.size(-2) > 25 or x2.size(-2) > 25)),"
               "         euclidean_dist_of_any(x1, x2),"
               "         norm(unsqueeze(x1, -2) - unsqueeze(x2, -3), p, -1))))",
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32, [TD_CUDA] = TD_AUTOCAST_FP32},
    .flags = TD_OP_FUNCTION_ONLY,
};
