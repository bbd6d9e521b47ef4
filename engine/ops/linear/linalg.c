/* linalg.c: decompositions of matrices and what follows from them, of batches alike: determinants,
 * inverses, solutions, norms. Kernels make one plan (td_factor_plan); public operators are composed
 * of them, so that gradients of gradients come by themselves. float32 and float64. */
#include "engine/core/modes.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TD_FAMILY "linalg"

#define REAL (TD_DTYPE_BIT(F32) | TD_DTYPE_BIT(F64))
#define T(x) "transpose(" x ", -2, -1)"

/* ---- rules ---- */

enum { LARGEST = 20000 }; /* rows or columns of what LAPACK's work is counted for in an int */

static td_status check_matrices(const td_tensor *x, const char *name, bool square) {
    char text[TD_SHAPE_TEXT];
    if (x->ndim < 2)
        return td_fail(TD_ESHAPE, "%s must have at least 2 dims, got shape %s", name,
                       td_tensor_shape_text(x, text));
    int64_t m = x->sizes[x->ndim - 2], n = x->sizes[x->ndim - 1];
    if (square && m != n)
        return td_fail(TD_ESHAPE, "%s must hold square matrices, got shape %s", name,
                       td_tensor_shape_text(x, text));
    if (m > LARGEST || n > LARGEST)
        return td_fail(TD_ESHAPE, "%s has matrices beyond %d rows or columns: shape %s", name,
                       (int)LARGEST, td_tensor_shape_text(x, text));
    return TD_OK;
}

static td_factor_plan *plan_of(const td_call *call, td_factoring kind) {
    td_factor_plan *p = TD_PLAN(call, td_factor_plan);
    *p = (td_factor_plan){.kind = kind, .a = call->args[0].tensor};
    return p;
}

/* Matrices lie as columns, as LAPACK leaves them. */
static void as_columns(td_meta *out) {
    td_contiguous_strides(out->ndim, out->sizes, out->strides);
    int64_t *last = out->strides + out->ndim - 2;
    last[0] = 1;
    last[1] = out->sizes[out->ndim - 2] > 1 ? out->sizes[out->ndim - 2] : 1;
    out->strided = true;
}

/* x's batch with these dims of its own. */
static void set_own(td_meta *out, const td_tensor *x, int own, int64_t rows, int64_t columns) {
    td_meta_like(out, x, (td_dtype)x->dtype);
    out->ndim = x->ndim - 2 + own;
    if (own == 2)
        out->sizes[x->ndim - 2] = rows;
    if (own > 0)
        out->sizes[out->ndim - 1] = columns;
    if (own == 2)
        as_columns(out);
}

static td_status rule_determinants(const td_call *call, td_meta *out) {
    const td_tensor *a = call->args[0].tensor;
    td_status status = check_matrices(a, "A", true);
    if (status)
        return status;
    plan_of(call, TD_FACTOR_DET);
    for (int k = 0; k < 3; k++)
        set_own(&out[k], a, 0, 0, 0);
    return TD_OK;
}

static td_status rule_square(const td_call *call, td_meta *out, td_factoring kind) {
    const td_tensor *a = call->args[0].tensor;
    td_status status = check_matrices(a, "A", true);
    if (status)
        return status;
    plan_of(call, kind);
    td_meta_like(out, a, (td_dtype)a->dtype);
    as_columns(out);
    return TD_OK;
}
TD_RULE(rule_cofactors, rule_square, TD_FACTOR_COFACTOR)
TD_RULE(rule_inverse_alone, rule_square, TD_FACTOR_SOLVE)

static void set_info(td_meta *out, const td_tensor *a) {
    set_own(out, a, 0, 0, 0);
    out->dtype = TD_I32;
}

static td_status rule_inverse(const td_call *call, td_meta *out) {
    td_status status = rule_square(call, out, TD_FACTOR_SOLVE);
    if (status == TD_OK)
        set_info(&out[1], call->args[0].tensor);
    return status;
}

static td_status check_sides(const td_tensor *a, const td_tensor *b) {
    char ta[TD_SHAPE_TEXT], tb[TD_SHAPE_TEXT];
    td_status status = check_matrices(a, "A", true);
    if (status == TD_OK)
        status = check_matrices(b, "B", false);
    if (status == TD_OK && a->sizes[a->ndim - 1] != b->sizes[b->ndim - 2])
        return td_fail(TD_ESHAPE, "shapes %s and %s don't fit: %lld ≠ %lld",
                       td_tensor_shape_text(a, ta), td_tensor_shape_text(b, tb),
                       (long long)a->sizes[a->ndim - 1], (long long)b->sizes[b->ndim - 2]);
    return status == TD_OK ? td_check_pair(a, b) : status;
}

static td_status plan_solution(const td_call *call, td_meta *out, td_factoring kind) {
    const td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor;
    td_status status = check_sides(a, b);
    if (status)
        return status;
    td_factor_plan *p = plan_of(call, kind);
    p->b = call->args[1].tensor;
    if (kind == TD_FACTOR_TRIANGLE) {
        p->upper = call->args[2].b;
        p->unit = call->args[3].b;
    }
    td_meta_like(out, b, (td_dtype)b->dtype);
    as_columns(out);
    return TD_OK;
}
TD_RULE(rule_solution, plan_solution, TD_FACTOR_SOLVE)
TD_RULE(rule_triangle, plan_solution, TD_FACTOR_TRIANGLE)

static td_status rule_cholesky_alone(const td_call *call, td_meta *out) {
    td_status status = rule_square(call, out, TD_FACTOR_CHOLESKY);
    if (status == TD_OK)
        TD_PLAN(call, td_factor_plan)->upper = call->args[1].b;
    return status;
}

static td_status rule_cholesky(const td_call *call, td_meta *out) {
    td_status status = rule_cholesky_alone(call, out);
    if (status == TD_OK)
        set_info(&out[1], call->args[0].tensor);
    return status;
}

static td_status rule_qr(const td_call *call, td_meta *out) {
    const td_tensor *a = call->args[0].tensor;
    td_status status = check_matrices(a, "A", false);
    if (status)
        return status;
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1], k = m < n ? m : n;
    td_factor_plan *p = plan_of(call, TD_FACTOR_QR);
    p->full = call->args[1].b;
    if (p->full)
        k = m;
    set_own(&out[0], a, 2, m, k);
    set_own(&out[1], a, 2, k, n);
    return TD_OK;
}

static td_status rule_svd(const td_call *call, td_meta *out) {
    const td_tensor *a = call->args[0].tensor;
    td_status status = check_matrices(a, "A", false);
    if (status)
        return status;
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1], k = m < n ? m : n;
    td_factor_plan *p = plan_of(call, TD_FACTOR_SVD);
    p->full = call->args[1].b;
    set_own(&out[0], a, 2, m, p->full ? m : k);
    set_own(&out[1], a, 1, 0, k);
    set_own(&out[2], a, 2, p->full ? n : k, n);
    return TD_OK;
}

/* Values alone take a fraction of the time that vectors take: the plan's vectors stay NULL. */
static td_status rule_singular_values(const td_call *call, td_meta *out) {
    const td_tensor *a = call->args[0].tensor;
    td_status status = check_matrices(a, "A", false);
    if (status)
        return status;
    int64_t m = a->sizes[a->ndim - 2], n = a->sizes[a->ndim - 1];
    plan_of(call, TD_FACTOR_SVD);
    set_own(&out[0], a, 1, 0, m < n ? m : n);
    return TD_OK;
}

static td_status rule_symmetric_values(const td_call *call, td_meta *out) {
    const td_tensor *a = call->args[0].tensor;
    td_status status = check_matrices(a, "A", true);
    if (status)
        return status;
    plan_of(call, TD_FACTOR_EIGH)->upper = call->args[1].b;
    set_own(&out[0], a, 1, 0, a->sizes[a->ndim - 1]);
    return TD_OK;
}

static td_status rule_eigh(const td_call *call, td_meta *out) {
    const td_tensor *a = call->args[0].tensor;
    td_status status = rule_symmetric_values(call, out);
    if (status)
        return status;
    td_meta_like(&out[1], a, (td_dtype)a->dtype);
    as_columns(&out[1]);
    return TD_OK;
}

/* ---- kernels ---- */

static td_status factor(td_call *call, int nout, bool info) {
    td_factor_plan *p = TD_PLAN(call, td_factor_plan);
    for (int k = 0; k < nout; k++)
        p->out[k] = call->out[k];
    p->info = info ? call->out[nout] : NULL;
    return TD_RUN(td_tensor_device(p->a), factor, p);
}

static td_status kernel_one(td_call *call) {
    return factor(call, 1, false);
}
static td_status kernel_one_info(td_call *call) {
    return factor(call, 1, true);
}
/* The plan of singular values holds them between the vectors. */
static td_status kernel_singular_values(td_call *call) {
    td_factor_plan *p = TD_PLAN(call, td_factor_plan);
    p->out[1] = call->out[0];
    return TD_RUN(td_tensor_device(p->a), factor, p);
}
static td_status kernel_two(td_call *call) {
    return factor(call, 2, false);
}
static td_status kernel_three(td_call *call) {
    return factor(call, 3, false);
}

/* ---- composites in C: what broadcasts batches ---- */

/* x with the batch of that shape before its last two dims. */
static td_status with_batch(td_tensor *x, int ndim, const int64_t *batch, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS + 2];
    memcpy(sizes, batch, sizeof(int64_t) * (size_t)ndim);
    memcpy(sizes + ndim, x->sizes + x->ndim - 2, sizeof(int64_t) * 2);
    return TD_APPLY(out, expand, TD_T(x), TD_INTS(ndim + 2, sizes));
}

/* New references to both in the batch that they broadcast to. */
static td_status same_batch(td_tensor *a, td_tensor *b, td_tensor **wide_a, td_tensor **wide_b) {
    int64_t batch[TD_MAX_DIMS];
    int ndim;
    td_status status = check_matrices(a, "A", false);
    if (status == TD_OK)
        status = check_matrices(b, "B", false);
    if (status == TD_OK)
        status = td_broadcast(a->ndim - 2, a->sizes, b->ndim - 2, b->sizes, &ndim, batch);
    if (status == TD_OK)
        status = with_batch(a, ndim, batch, wide_a);
    return status == TD_OK ? with_batch(b, ndim, batch, wide_b) : status;
}

/* Is B one column for each of A's matrices? */
static bool is_vectors(const td_tensor *a, const td_tensor *b) {
    return b->ndim == 1 || (b->ndim == a->ndim - 1 &&
                            memcmp(a->sizes, b->sizes, sizeof(int64_t) * (size_t)b->ndim) == 0);
}

static td_status turned(td_tensor **x) {
    td_tensor *next = NULL;
    td_status status = TD_APPLY(&next, transpose, TD_T(*x), TD_I(-2), TD_I(-1));
    td_release(*x);
    *x = next;
    return status;
}

static td_status run_solve(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = td_retain(call->args[1].tensor);
    td_tensor *wide_a = NULL, *wide_b = NULL, *x = NULL;
    bool left = call->args[2].b, vectors = false;
    td_status status = check_matrices(a, "A", true);
    TD_TRY(status);
    vectors = is_vectors(a, b);
    if (vectors && !left)
        TD_TRY(td_fail(TD_ESHAPE, "B holds vectors: with left=false it must hold matrices"));
    if (vectors)
        TD_STEP(&b, unsqueeze, TD_T(b), TD_I(-1));
    TD_TRY(same_batch(a, b, &wide_a, &wide_b));
    if (!left) {
        TD_TRY(turned(&wide_a));
        TD_TRY(turned(&wide_b));
    }
    TD_TRY(TD_APPLY(&x, solution, TD_T(wide_a), TD_T(wide_b)));
    if (!left)
        TD_TRY(turned(&x));
    if (vectors)
        TD_STEP(&x, squeeze, TD_T(x), TD_INTS(1, (int64_t[]){-1}));
    call->out[0] = td_retain(x);
done:
    td_release(b);
    td_release(wide_a);
    td_release(wide_b);
    td_release(x);
    return status;
}

static td_status run_solve_triangular(td_call *call) {
    td_tensor *wide_a = NULL, *wide_b = NULL, *x = NULL;
    bool upper = call->args[2].b, left = call->args[3].b;
    td_status status = same_batch(call->args[0].tensor, call->args[1].tensor, &wide_a, &wide_b);
    TD_TRY(status);
    if (!left) {
        TD_TRY(turned(&wide_a));
        TD_TRY(turned(&wide_b));
        upper = !upper;
    }
    TD_TRY(TD_APPLY(&x, triangle, TD_T(wide_a), TD_T(wide_b), TD_B(upper), call->args[4]));
    if (!left) {
        TD_STEP(&x, contiguous, TD_T(x)); /* so that the result lies as columns */
        TD_TRY(turned(&x));
    }
    call->out[0] = td_retain(x);
done:
    td_release(wide_a);
    td_release(wide_b);
    td_release(x);
    return status;
}

/* qr and eigh take a word that is one of two. */
static td_status one_of(const char *name, td_value given, const char *no, const char *yes,
                        bool *is) {
    *is = strcmp(given.string, yes) == 0;
    if (*is || strcmp(given.string, no) == 0)
        return TD_OK;
    return td_fail(TD_EVALUE, "%s must be \"%s\" or \"%s\", got \"%s\"", name, no, yes,
                   given.string);
}

static td_status run_qr(td_call *call) {
    bool complete;
    td_status status = one_of("mode", call->args[1], "reduced", "complete", &complete);
    return status ? status : TD_APPLY(call->out, qr_parts, call->args[0], TD_B(complete));
}

static td_status run_eigh(td_call *call) {
    bool upper;
    td_status status = one_of("UPLO", call->args[1], "L", "U", &upper);
    return status ? status : TD_APPLY(call->out, eigh_parts, call->args[0], TD_B(upper));
}

/* The gradient of values is made of the vectors: who records needs these too. */
static bool needs_vectors(const td_call *call) {
    return td_op_records(call->args[0].tensor);
}

static td_status run_svdvals(td_call *call) {
    td_tensor *parts[3] = {NULL};
    if (!needs_vectors(call))
        return TD_APPLY(call->out, singular_values, call->args[0]);
    td_status status = TD_APPLY(parts, svd_parts, call->args[0], TD_B(false));
    call->out[0] = parts[1];
    td_release(parts[0]);
    td_release(parts[2]);
    return status;
}

static td_status run_eigvalsh(td_call *call) {
    td_tensor *parts[2] = {NULL};
    bool upper;
    td_status status = one_of("UPLO", call->args[1], "L", "U", &upper);
    if (status)
        return status;
    if (!needs_vectors(call))
        return TD_APPLY(call->out, symmetric_values, call->args[0], TD_B(upper));
    status = TD_APPLY(parts, eigh_parts, call->args[0], TD_B(upper));
    call->out[0] = parts[0];
    td_release(parts[1]);
    return status;
}

/* A tolerance for each matrix as one beside its values. */
static td_status beside_values(td_value tolerance, td_tensor **out) {
    td_tensor *x = td_arg_tensor(tolerance);
    return x->ndim == 0 ? TD_APPLY(out, clone, tolerance)
                        : TD_APPLY(out, unsqueeze, tolerance, TD_I(-1));
}

/* max(atol, rtol * the largest value). Without both the relative one is the dtype's epsilon times
 * the larger size of the matrices. */
static td_status run_rank_limit(td_call *call) {
    static const double epsilons[TD_DTYPE_COUNT] = {[TD_F32] = FLT_EPSILON, [TD_F64] = DBL_EPSILON};
    td_value values = call->args[0], atol = call->args[2], rtol = call->args[3];
    td_tensor *limit = NULL, *absolute = NULL, *relative = NULL;
    td_status status = TD_OK;
    if (td_is_nil(rtol)) {
        bool given = td_arg_tensor(atol) || (!td_is_nil(atol) && td_arg_double(atol) > 0);
        double epsilon = epsilons[values.tensor->dtype];
        rtol = TD_F(given ? 0 : epsilon * (double)call->args[1].i);
    }
    TD_TRY(TD_APPLY(&limit, amax, values, TD_INTS(1, (int64_t[]){-1}), TD_B(true)));
    if (td_arg_tensor(rtol)) {
        TD_TRY(beside_values(rtol, &relative));
        TD_STEP(&limit, mul, TD_T(limit), TD_T(relative));
    } else {
        TD_STEP(&limit, mul, TD_T(limit), rtol);
    }
    if (td_arg_tensor(atol)) {
        TD_TRY(beside_values(atol, &absolute));
        TD_STEP(&limit, maximum, TD_T(limit), TD_T(absolute));
    } else if (!td_is_nil(atol)) {
        TD_STEP(&limit, clamp_min, TD_T(limit), atol);
    }
    call->out[0] = td_retain(limit);
done:
    td_release(limit);
    td_release(absolute);
    td_release(relative);
    return status;
}

/* ---- parts: what kernels give ---- */

static td_status run_inverse_for(td_call *call) {
    char name[64];
    td_status status = TD_APPLY(&call->out[0], linalg_inv, call->args[0]);
    if (status) {
        snprintf(name, sizeof name, "%s's gradient", call->args[1].string);
        td_error_rename(name);
    }
    return status;
}

TD_OPERATOR(determinants) = {
    .schema = "(Tensor A, str of) -> (Tensor det, Tensor sign, Tensor logabsdet)",
    .doc = "Determinants of square matrices, their signs and the logarithms of their sizes; `of` "
           "is who asks.",
    .rule = rule_determinants,
    .kernel = kernel_three,
    .dtypes = REAL,
    .gradient = "A: unsqueeze(unsqueeze(g.det, -1), -1) * cofactors(A);"
                "A: unsqueeze(unsqueeze(g.logabsdet, -1), -1) * " T("inverse_for(A, of)"),
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(inverse_for) = {
    .schema = "(Tensor A, str of) -> Tensor",
    .doc = "The inverse that the gradient of `of` takes, which a singular matrix has not.",
    .run = run_inverse_for,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(cofactors) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "The gradient of the determinant: its product with the transposed inverse.",
    .rule = rule_cofactors,
    .kernel = kernel_one,
    .dtypes = REAL,
    .gradient = "A: cofactor_slope(A, g)",
    .flags = TD_OP_INTERNAL,
};
/* What cofactors(A + t G) grows by with t, which is also the gradient of sum(G * cofactors(A)), by
 * singular values, since A may have no inverse: with A = U S V and H = U' G V', the cofactors of S
 * grow by sum_k H_kk P_ik on the diagonal and by -H_ji P_ij elsewhere, where P_ij is the product of
 * all singular values but the i-th and the j-th. Its own gradient takes the inverse. */
TD_OPERATOR(cofactor_slope) = {
    .schema = "(Tensor A, Tensor G) -> Tensor",
    .doc = "The derivative of the cofactors of A in the direction of G.",
    .formula =
        "d = svd_parts(A, false); p = products_but_two(d.S);"
        "H = matmul(matmul(" T("d.U") ", G), " T(
            "d.Vh") ");"
                    "D = diag_embed(sum(p * unsqueeze(diagonal(H, 0, -2, -1), -2), {-1})) - p * " T(
                        "H") ";"
                             "u = determinants(d.U, \"det\"); v = determinants(d.Vh, \"det\");"
                             "if(A.numel == 0, zeros_like(A),"
                             "   unsqueeze(unsqueeze(u.sign * v.sign, -1), -1) * "
                             "matmul(matmul(d.U, D), d.Vh))",
    .gradient = "c = cofactors(A); t = " T(
        "inverse_for(A, \"det\")") "; s = sum(G * c, {-2, -1}, true);"
                                   "w = sum(g * t, {-2, -1}, true); gt = matmul(g, " T(
                                       "t") ");"
                                            "A: cofactor_slope(A, w * G - matmul(gt, G));"
                                            "A: matmul(matmul(t, " T("g") "), matmul(matmul(c, " T(
                                                "G") "), t) - s * t);"
                                                     "G: w * c - matmul(matmul(t, " T("g") "), c)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(products_but_two) = {
    .schema = "(Tensor s) -> Tensor",
    .doc = "For each pair the product of all elements of a row but these two; 0 on the diagonal.",
    .formula = "n = s.size(-1); k = arange(0, n, 1, device=s.device);"
               "above = unsqueeze(k, 0) > unsqueeze(k, 1);"
               "between = exclusive_products(where(above, unsqueeze(s, -2), 1.0));"
               "before = exclusive_products(s);"
               "behind = flip(exclusive_products(flip(s, {-1})), {-1});"
               "p = where(above, unsqueeze(before, -1) * between * unsqueeze(behind, -2), 0.0);"
               "p + " T("p"),
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(exclusive_products) = {
    .schema = "(Tensor s) -> Tensor",
    .doc = "Products of the elements before each one along the last dim.",
    .formula = "n = s.size(-1); one = ones_like(narrow(s, -1, 0, 1));"
               "cat({one, narrow(cumprod(s, -1), -1, 0, n - 1)}, -1)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(linalg_inv_ex) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A) -> (Tensor inverse, Tensor info)",
    .doc = "Inverse of square matrices; info is 0, or the place of the pivot that is 0.",
    .shapes = "A (..., n, n) -> (..., n, n), (...)",
    .takes = "float32 and float64; info is int32",
    .rule = rule_inverse,
    .kernel = kernel_one_info,
    .dtypes = REAL,
    .gradient = "A: -matmul(matmul(" T("inverse") ", g.inverse), " T("inverse") ")",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_REFUSES,
};
TD_OPERATOR(linalg_inv) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A) -> Tensor",
    .doc = "Inverse of square matrices.",
    .shapes = "A (..., n, n) -> (..., n, n)",
    .notes = "Matrices that are not square are an error. A singular one is an error: linalg_inv_ex "
             "says so in info.",
    .rule = rule_inverse_alone,
    .kernel = kernel_one,
    .dtypes = REAL,
    .gradient = "A: -matmul(matmul(" T("out") ", g), " T("out") ")",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_REFUSES | TD_OP_OUT_EXACT,
};
TD_OPERATOR(solution) = {
    .schema = "(Tensor A, Tensor B) -> Tensor",
    .doc = "x with A x = B, of batches of one shape.",
    .rule = rule_solution,
    .kernel = kernel_one,
    .dtypes = REAL,
    .gradient = "b = solution(" T("A") ", g); B: b; A: -matmul(b, " T("out") ")",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(triangle) = {
    .schema = "(Tensor A, Tensor B, bool upper, bool unit) -> Tensor",
    .doc = "x with A x = B, where of A one triangle counts.",
    .rule = rule_triangle,
    .kernel = kernel_one,
    .dtypes = REAL,
    .gradient = "b = if(upper, triangle(" T("A") ", g, false, unit), triangle(" T(
        "A") ", g, true, unit));"
             "B: b;"
             "A: if(upper, triu(-matmul(b, " T("out") "), if(unit, 1, 0)),"
                                                      "             tril(-matmul(b, " T(
                                                          "out") "), if(unit, -1, 0)))",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(rank_limit) = {
    .schema =
        "(Tensor values, int size, Tensor|number? atol=nil, Tensor|number? rtol=nil) -> Tensor",
    .doc = "What singular values must exceed to count.",
    .run = run_rank_limit,
    .flags = TD_OP_INTERNAL,
};

/* ---- decompositions ---- */

#define EYE(like, size) "eye(" size ", " size ", dtype=" like ".dtype, device=" like ".device)"

/* Of l with the lower triangle p = l^T g: l^-T (p + p^T - diagonal) l^-1 / 2. */
#define CHOLESKY_SLOPE(l, g)                                                                       \
    "0.5 * " T("triangle(" T(l) ", " T("triangle(" T(l) ", tril(matmul(" T(l) ", " g ")) + " T(    \
        "tril(matmul(" T(l) ", " g "), -1)") ", true, false)") ", true, false)")

TD_OPERATOR(linalg_cholesky_ex) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, *, bool upper=false) -> (Tensor L, Tensor info)",
    .doc = "L with L L^T = A; info is 0, or the order of the leading minor that is not positive.",
    .shapes = "A (..., n, n) -> (..., n, n), (...)",
    .takes = "float32 and float64; info is int32",
    .rule = rule_cholesky,
    .kernel = kernel_one_info,
    .dtypes = REAL,
    .gradient = "A: if(upper, " CHOLESKY_SLOPE(T("L"), T("g.L")) ", " CHOLESKY_SLOPE("L",
                                                                                     "g.L") ")",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_REFUSES,
};
TD_OPERATOR(linalg_cholesky) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, *, bool upper=false) -> Tensor",
    .doc = "The triangular L with L L^T = A, of symmetric positive-definite matrices.",
    .shapes = "A (..., n, n) -> (..., n, n)",
    .notes = "One triangle is read. A matrix that is not positive definite is an error: "
             "linalg_cholesky_ex says so in info.",
    .rule = rule_cholesky_alone,
    .kernel = kernel_one,
    .dtypes = REAL,
    .gradient = "A: if(upper, " CHOLESKY_SLOPE(T("out"), T("g")) ", " CHOLESKY_SLOPE("out",
                                                                                     "g") ")",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_REFUSES | TD_OP_OUT_EXACT,
};

/* x R^-T for an upper triangular R. */
#define BEHIND_R(x, r) T("triangle(" r ", " T(x) ", true, false)")
/* x + x^T with half of its diagonal, of what lies in the upper triangle of x. */
#define SYMMETRIC(x) "(triu(" x ") + " T("triu(" x ", 1)") ")"
/* The lower triangle of x - x^T. */
#define SKEW(x) "tril(" x " - " T(x) ")"
/* The first m columns of the (m x n) R, and those of zeros that bring a gradient of them back. */
#define R_HEAD   "slice(R, -1, 0, R.size(-2), 1)"
#define WIDER(x) "matmul(" x ", eye(R.size(-2), R.size(-1), dtype=R.dtype, device=R.device))"

TD_OPERATOR(qr_parts) = {
    .schema = "(Tensor A, bool complete) -> (Tensor Q, Tensor R)",
    .doc = "Orthogonal Q and upper triangular R with Q R = A.",
    .rule = rule_qr,
    .kernel = kernel_two,
    .dtypes = REAL,
    .gradient =
        "A: if(complete and A.size(-2) > A.size(-1),"
        "      error(\"mode complete has no gradient where rows outnumber columns: shape %\", "
        "A.shape),"
        "      if(A.size(-2) >= A.size(-1),"
        "   " BEHIND_R(
            "g.Q + matmul(Q, " SYMMETRIC("-matmul(" T("Q") ", g.Q)") ")",
            "R") ","
                 "   " WIDER(BEHIND_R(
                     "matmul(Q, " SKEW("matmul(" T("Q") ", g.Q)") ")",
                     R_HEAD)) "));"
                              "A: if(complete and A.size(-2) > A.size(-1),"
                              "      error(\"mode complete has no gradient where rows outnumber "
                              "columns: shape %\", A.shape),"
                              "      if(A.size(-2) >= A.size(-1),"
                              "   " BEHIND_R(
                                  "matmul(Q, " SYMMETRIC("matmul(g.R, " T("R") ")") ")",
                                  "R") ","
                                       "   " WIDER(BEHIND_R(
                                           "matmul(Q, " SKEW("-matmul(g.R, " T("R") ")") ")",
                                           R_HEAD)) "    + matmul(Q, g.R)))",
    .flags = TD_OP_INTERNAL,
};

TD_OPERATOR(svd_parts) = {
    .schema = "(Tensor A, bool full) -> (Tensor U, Tensor S, Tensor Vh)",
    .doc = "Orthogonal U and Vh and descending S with U diag(S) Vh = A.",
    .rule = rule_svd,
    .kernel = kernel_three,
    .dtypes = REAL,
    /* S_j^2 - S_i^2 as a product, so that no square leaves the dtype; ones on the diagonals, where
     * nothing is divided. */
    .gradient = "u = slice(U, -1, 0, S.size(-1), 1); v = slice(Vh, -2, 0, S.size(-1), 1);"
                "a = slice(g.U, -1, 0, S.size(-1), 1); b = slice(g.Vh, -2, 0, S.size(-1), 1);"
                "row = unsqueeze(S, -2); column = unsqueeze(S, -1);"
                "ones = eye(S.size(-1), S.size(-1), dtype=S.dtype, device=S.device);"
                "gaps = row - column + ones; sums = row + column + ones;"
                "m = matmul(" T("u") ", a); n = matmul(v, " T(
                    "b") ");"
                         "A: matmul(matmul(u, (m - " T(
                             "m") ") / gaps * (row / sums)) +"
                                  "          if(A.size(-2) > A.size(-1),"
                                  "             a / row - matmul(u, matmul(" T(
                                      "u") ", a / row)), 0), v);"
                                           "A: matmul(u, matmul((n - " T(
                                               "n") ") / gaps * (column / sums), v) +"
                                                    "          if(A.size(-2) < A.size(-1),"
                                                    "             b / column - matmul(matmul(b / "
                                                    "column, " T(
                                                        "v") "), v), 0));"
                                                             "A: matmul(u * unsqueeze(g.S, -2), v)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(singular_values) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "Singular values, descending, without the vectors.",
    .rule = rule_singular_values,
    .kernel = kernel_singular_values,
    .dtypes = REAL,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(symmetric_values) = {
    .schema = "(Tensor A, bool upper) -> Tensor",
    .doc = "Ascending eigenvalues of symmetric matrices, without the vectors.",
    .rule = rule_symmetric_values,
    .kernel = kernel_one,
    .dtypes = REAL,
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
TD_OPERATOR(eigh_parts) = {
    .schema = "(Tensor A, bool upper) -> (Tensor L, Tensor V)",
    .doc = "Ascending L and orthogonal V with V diag(L) V^T = A, of symmetric matrices.",
    .rule = rule_eigh,
    .kernel = kernel_two,
    .dtypes = REAL,
    .gradient = "A: matmul(V * unsqueeze(g.L, -2), " T(
        "V") ");"
             "A: 0.5 * matmul(matmul(V, (matmul(" T("V") ", g.V) - " T(
                 "matmul(" T("V") ", g.V)") ") /"
                                            "   (unsqueeze(L, -2) - unsqueeze(L, -1) + " EYE(
                                                "V", "V.size(-1)") ")), " T("V") ")",
    .flags = TD_OP_INTERNAL,
};

/* ---- what people call ---- */

TD_OPERATOR(linalg_det) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "Determinant of square matrices.",
    .shapes = "A (..., n, n) -> (...)",
    .takes = "float32 and float64",
    .notes = "Matrices that are not square are an error.",
    .formula = "d = determinants(A, \"det\"); d.det",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(det) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "Determinant of square matrices: linalg_det.",
    .shapes = "A (..., n, n) -> (...)",
    .takes = "float32 and float64",
    .notes = "Matrices that are not square are an error.",
    .formula = "linalg_det(A)",
};
TD_OPERATOR(linalg_slogdet) = {
    .schema = "(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    .doc = "Sign of the determinant and logarithm of its absolute value.",
    .shapes = "A (..., n, n) -> (...), (...)",
    .takes = "float32 and float64",
    .notes = "Matrices that are not square are an error.",
    .formula = "d = determinants(A, \"linalg_slogdet\"); sign: d.sign; logabsdet: d.logabsdet",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(slogdet) = {
    .schema = "(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    .doc = "Sign of the determinant and logarithm of its absolute value: linalg_slogdet.",
    .shapes = "A (..., n, n) -> (...), (...)",
    .takes = "float32 and float64",
    .notes = "Matrices that are not square are an error.",
    .formula = "d = determinants(A, \"slogdet\"); sign: d.sign; logabsdet: d.logabsdet",
};
TD_OPERATOR(logdet) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "Logarithm of the determinant; NaN where that is negative.",
    .shapes = "A (..., n, n) -> (...)",
    .takes = "float32 and float64",
    .notes = "Matrices that are not square are an error.",
    .formula = "d = determinants(A, \"logdet\"); d.logabsdet + where(lt(d.sign, 0), nan, 0.0)",
};
TD_OPERATOR(inverse) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A) -> Tensor",
    .doc = "Inverse of square matrices: linalg_inv.",
    .shapes = "A (..., n, n) -> (..., n, n)",
    .takes = "float32 and float64",
    .notes = "Matrices that are not square are an error. A singular one is an error: linalg_inv_ex "
             "says so in info.",
    .formula = "linalg_inv(A)",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_solve) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, Tensor B, *, bool left=true) -> Tensor",
    .doc = "x with A x = B (left=false: x A = B), of vectors or matrices; batches broadcast.",
    .shapes = "A (..., n, n), B (..., n) -> (..., n) | A (*, n, n), B (*, n, k) -> (*, n, k) if "
              "left | A (*, n, n), B (*, k, n) -> (*, k, n)",
    .takes = "float32 and float64, one dtype",
    .run = run_solve,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_solve_triangular) = {
    .schema =
        "(Tensor A, Tensor B, *, bool upper, bool left=true, bool unitriangular=false) -> Tensor",
    .doc = "x with A x = B (left=false: x A = B) for triangular A; batches broadcast.",
    .shapes =
        "A (*, n, n), B (*, n, k) -> (*, n, k) if left | A (*, n, n), B (*, k, n) -> (*, k, n)",
    .takes = "float32 and float64, one dtype",
    .run = run_solve_triangular,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(cholesky_inverse) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor L, bool upper=false) -> Tensor",
    .doc = "Inverse of the matrices that have these Cholesky factors.",
    .shapes = "L (..., n, n) -> (..., n, n)",
    .takes = "float32 and float64",
    .formula = "i = linalg_solve_triangular(if(upper, " T("L") ", L), " EYE(
        "L", "L.size(-1)") ", upper=false);" T("matmul(" T("i") ", i)"),
    .gradient = "t = matmul(matmul(out, g + " T("g") "), out);"
                                                     "L: if(upper, -matmul(L, t), -matmul(t, L))",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(cholesky_solve) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor B, Tensor L, bool upper=false) -> Tensor",
    .doc = "x with A x = B, of A the Cholesky factors L; batches broadcast.",
    .shapes = "B (*, n, k), L (*, n, n) -> (*, n, k)",
    .takes = "float32 and float64, one dtype",
    .formula = "l = if(upper, " T(
        "L") ", L);"
             "linalg_solve_triangular(" T(
                 "l") ", linalg_solve_triangular(l, B, upper=false), upper=true)",
    .gradient = "b = cholesky_solve(g, L, upper); t = matmul(b, " T(
        "out") ");"
               "B: b; L: if(upper, -matmul(L, t + " T("t") "), -matmul(t + " T("t") ", L))",
    .flags = TD_OP_OUT,
};
TD_OPERATOR(linalg_qr) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
    .doc = "Orthogonal Q and upper triangular R with Q R = A; mode \"reduced\" or \"complete\".",
    .shapes = "A (..., n, m) -> (..., n, n), (..., n, m) if mode == 'complete' | -> (0), (..., k, "
              "m) if mode == 'r' | -> (..., n, k), (..., k, m); k = min(n, m)",
    .takes = "float32 and float64",
    .run = run_qr,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_svd) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, bool full_matrices=true) -> (Tensor U, Tensor S, Tensor Vh)",
    .doc = "Orthogonal U and Vh and descending S with U diag(S) Vh = A.",
    .shapes = "A (..., n, m) -> (..., n, n), (..., k), (..., m, m) if full_matrices | -> (..., n, "
              "k), (..., k), (..., k, m); k = min(n, m)",
    .takes = "float32 and float64",
    .notes = "Values in order, the largest first. Vectors are told up to their signs.",
    .formula = "p = svd_parts(A, full_matrices); U: p.U; S: p.S; Vh: p.Vh",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_svdvals) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A) -> Tensor",
    .doc = "Singular values, descending.",
    .shapes = "A (..., n, m) -> (..., min(n, m))",
    .takes = "float32 and float64",
    .run = run_svdvals,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_eigh) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, str UPLO=\"L\") -> (Tensor L, Tensor V)",
    .doc = "Ascending eigenvalues and eigenvectors (columns) of symmetric matrices; one triangle "
           "counts.",
    .shapes = "A (..., n, n) -> (..., n), (..., n, n)",
    .takes = "float32 and float64",
    .notes = "Values in order, the smallest first. One triangle is read. Vectors are told up to "
             "their signs.",
    .run = run_eigh,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_eigvalsh) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, str UPLO=\"L\") -> Tensor",
    .doc = "Ascending eigenvalues of symmetric matrices; one triangle counts.",
    .shapes = "A (..., n, n) -> (..., n)",
    .takes = "float32 and float64",
    .run = run_eigvalsh,
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT | TD_OP_OUT_EXACT,
};
TD_OPERATOR(linalg_pinv) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, *, Tensor|number? atol=nil, Tensor|number? rtol=nil, bool "
              "hermitian=false) -> Tensor",
    .doc = "Pseudoinverse, by singular values beyond max(atol, rtol times the largest).",
    .shapes = "A (..., n, m), atol to (...), rtol to (...) -> (..., m, n)",
    .takes = "float32 and float64",
    .formula = "if(hermitian, pinv_hermitian(A, atol, rtol), pinv_parts(A, atol, rtol))",
    .flags = TD_OP_FUNCTION_ONLY | TD_OP_OUT,
};
TD_OPERATOR(pinverse) = {
    .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
    .schema = "(Tensor A, number rcond=1e-15) -> Tensor",
    .doc = "Pseudoinverse: linalg_pinv with rtol.",
    .shapes = "A (..., n, m) -> (..., m, n)",
    .takes = "float32 and float64",
    .formula = "pinv_parts(A, nil, rcond)",
};
TD_OPERATOR(linalg_matrix_rank) = {
    .schema = "(Tensor A, *, Tensor|number? atol=nil, Tensor|number? rtol=nil, bool "
              "hermitian=false) -> Tensor",
    .doc = "Number of singular values beyond max(atol, rtol times the largest).",
    .shapes = "A (..., n, m), atol to (...), rtol to (...) -> (...)",
    .takes = "float32 and float64; the result is int64",
    .formula = "if(hermitian, values_beyond(abs(linalg_eigvalsh(A)), A.size(-1), atol, rtol),"
               "              values_beyond(linalg_svdvals(A),"
               "                            if(A.size(-2) > A.size(-1), A.size(-2), A.size(-1)), "
               "atol, rtol))",
    .flags = TD_OP_NONDIFF | TD_OP_OUT,
};
TD_OPERATOR(values_beyond) = {
    .schema =
        "(Tensor values, int size, Tensor|number? atol=nil, Tensor|number? rtol=nil) -> Tensor",
    .doc = "How many values lie beyond the limit.",
    .formula = "count_nonzero(if(values.numel == 0, values, gt(values, rank_limit(values, size, "
               "atol, rtol))), -1)",
    .flags = TD_OP_INTERNAL | TD_OP_NONDIFF,
};
/* Golub and Pereyra's derivative. */
#define PINV_SLOPE                                                                                 \
    "k = matmul(out, " T("g") "); q = matmul(" T(                                                  \
        "out") ", k);"                                                                             \
               "A: -" T("matmul(matmul(out, " T("g") "), out)") " + matmul(matmul(" T(             \
                   "g") " - matmul(A, k), out), " T("out") ")"                                     \
                                                           " + q - matmul(matmul(q, out), A)"

TD_OPERATOR(pinv_parts) = {
    .schema = "(Tensor A, Tensor|number? atol=nil, Tensor|number? rtol=nil) -> Tensor",
    .doc = "Pseudoinverse by singular values.",
    .formula = "s = svd_parts(A, false);"
               "if(A.numel == 0, contiguous(" T(
                   "A * 1") "),"
                            "matmul(" T("s.Vh") " * unsqueeze(where(gt(s.S, rank_limit(s.S,"
                                                "          if(A.size(-2) > A.size(-1), A.size(-2), "
                                                "A.size(-1)), atol, rtol)), 1 / s.S, 0.0), -2), " T(
                                                    "s.U") "))",
    .gradient = PINV_SLOPE,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(pinv_hermitian) = {
    .schema = "(Tensor A, Tensor|number? atol=nil, Tensor|number? rtol=nil) -> Tensor",
    .doc = "Pseudoinverse of symmetric matrices by their eigenvalues.",
    .formula = "p = eigh_parts(A, false);"
               "if(A.numel == 0, A * 1,"
               "matmul(p.V * unsqueeze(where(gt(abs(p.L), rank_limit(abs(detach(p.L)), A.size(-1), "
               "atol, rtol)),"
               "                             1 / p.L, 0.0), -2), " T("p.V") "))",
    .gradient = PINV_SLOPE,
    .flags = TD_OP_INTERNAL,
};
