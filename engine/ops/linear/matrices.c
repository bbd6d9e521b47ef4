/* matrices.c: functions of matrices that are composed of products and solutions, and matrices made
 * of vectors. Decompositions are linalg.c's. */
#include "engine/ops/element_checks.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "matrices"

/* ---- the exponential ---- */

/* How often A is halved so that Padé's approximation of degree 13 is good to the last bit (Higham,
 * 2005); -1 where a norm is not finite. */
static td_status count_halvings(td_tensor *a, int *count) {
    const int64_t rows = -2;
    td_tensor *norm = NULL;
    double most = 0;
    td_status status = TD_OK;
    *count = 0;
    if (!td_may_look(a))
        return TD_OK;
    TD_TRY(TD_APPLY(&norm, detach, TD_T(a)));
    TD_STEP(&norm, abs, TD_T(norm));
    TD_STEP(&norm, sum, TD_T(norm), TD_INTS(1, &rows));
    TD_STEP(&norm, amax, TD_T(norm));
    TD_TRY(td_tensor_item(norm, &most));
    if (!isfinite(most))
        *count = -1;
    else
        *count = most > 5.371920351148152 ? (int)ceil(log2(most / 5.371920351148152)) : 0;
done:
    td_release(norm);
    return status;
}

static td_status run_matrix_exp(td_call *call) {
    td_tensor *a = call->args[0].tensor, *y = NULL;
    char text[TD_SHAPE_TEXT];
    int halvings = 0;
    td_status status = td_check_float((td_dtype)a->dtype);
    if (status == TD_OK && (a->ndim < 2 || a->sizes[a->ndim - 1] != a->sizes[a->ndim - 2]))
        return td_fail(TD_ESHAPE, "needs square matrices, got shape %s",
                       td_tensor_shape_text(a, text));
    if (status || a->numel == 0)
        return status ? status : TD_APPLY(&call->out[0], mul, TD_T(a), TD_F(1));
    if (a->sizes[a->ndim - 1] == 1)
        return TD_APPLY(&call->out[0], exp, TD_T(a));
    TD_TRY(count_halvings(a, &halvings));
    if (halvings < 0) {
        TD_TRY(TD_APPLY(&y, mul, TD_T(a), TD_F(NAN)));
        status = TD_APPLY(&call->out[0], contiguous, TD_T(y));
        goto done;
    }
    TD_TRY(TD_APPLY(&y, to, TD_T(a), TD_DTYPE(TD_F64))); /* as decompositions are */
    TD_STEP(&y, mul, TD_T(y), TD_F(ldexp(1, -halvings)));
    TD_STEP(&y, exp_of_small, TD_T(y));
    for (; halvings > 0; halvings--)
        TD_STEP(&y, matmul, TD_T(y), TD_T(y));
    TD_STEP(&y, contiguous, TD_T(y)); /* row-major, whatever the elements are */
    status = TD_APPLY(&call->out[0], to, TD_T(y), TD_DTYPE((td_dtype)a->dtype));
done:
    td_release(y);
    return status;
}

/* ---- powers ---- */

/* Each is the one before times x. */
static td_status run_powers_of(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = NULL;
    int64_t n = call->args[1].i, sizes[TD_MAX_DIMS];
    const int64_t before[2] = {n > 0, 0};
    td_status status = TD_OK;
    if (x->ndim == TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "at most %d dims are possible", TD_MAX_DIMS - 1);
    memcpy(sizes, x->sizes, sizeof *sizes * (size_t)x->ndim);
    sizes[x->ndim] = n > 1 ? n - 1 : 0;
    TD_TRY(TD_APPLY(&y, unsqueeze, TD_T(x), TD_I(-1)));
    TD_STEP(&y, expand, TD_T(y), TD_INTS(x->ndim + 1, sizes));
    TD_STEP(&y, cumprod, TD_T(y), TD_I(-1));
    TD_TRY(TD_APPLY(&call->out[0], constant_pad, TD_T(y), TD_INTS(2, before), TD_I(1)));
done:
    td_release(y);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(linalg_matrix_exp) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "Exponential of square matrices, by squaring that of smaller ones.",
    .shapes = "A (..., n, n) -> (..., n, n)",
    .takes = "floating",
    .run = run_matrix_exp,
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(matrix_exp) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "Exponential of square matrices: linalg_matrix_exp.",
    .shapes = "A (..., n, n) -> (..., n, n)",
    .takes = "floating",
    .formula = "linalg_matrix_exp(A)",
};
TD_OPERATOR(exp_of_small) = {
    .schema = "(Tensor A) -> Tensor",
    .doc = "Exponential of matrices of norms up to 5.37: Padé's quotient of degree 13.",
    .formula = "one = eye(A.size(A.ndim - 1), A.size(A.ndim - 1), dtype=A.dtype, device=A.device);"
               "b = matmul(A, A); d = matmul(b, b); f = matmul(d, b);"
               "odd = matmul(A, matmul(f, f * 1.5440497506703088e-17 + d * 2.529153491597966e-13 +"
               "      b * 6.306022705717595e-10) + f * 5.175983436853002e-07 + d * "
               "0.00016304347826086958 +"
               "      b * 0.018333333333333333 + one * 0.5);"
               "even = matmul(f, f * 2.8101705462199623e-15 + d * 1.48377004840414e-11 +"
               "      b * 2.0431513566525008e-08) + f * 1.0351966873706003e-05 + d * "
               "0.0019927536231884057 +"
               "      b * 0.12 + one;"
               "linalg_solve(even - odd, even + odd)",
    .flags = TD_OP_INTERNAL,
};

/* ---- diagonals and powers ---- */

TD_OPERATOR(linalg_diagonal) = {
    .schema = "(Tensor A, *, int offset=0, dim dim1=-2, dim dim2=-1) -> Tensor",
    .doc = "The diagonals of matrices, a view: diagonal of the last two dims.",
    .shapes = "A (...) -> (others(A, dim1, dim2)..., n); n = max(0, min(A[dim1] + min(offset, 0), "
              "A[dim2] - max(offset, 0)))",
    .formula = "diagonal(A, offset, dim1, dim2)",
    .flags = TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(powers_of) = {
    .schema = "(Tensor x, int n) -> Tensor",
    .doc = "The powers from 0 below n of each element, as a last dim.",
    .run = run_powers_of,
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(linalg_vander) = {
    .schema = "(Tensor x, *, int? N=nil) -> Tensor",
    .doc = "The powers from 0 below N (by default as many as there are) of each element, as rows.",
    .shapes = "x (..., n) -> (..., n, n if N == nil else N)",
    .takes = "any; integers and bool count as int64",
    .formula = "n = if(N == nil, if(x.ndim == 0, 1, x.size(x.ndim - 1)), N);"
               "y = if(x.ndim == 0, reshape(x, 1), x);"
               "if(n > 1, powers_of(y, n),"
               "   error(\"needs N beyond 1, got %\", n))",
    .flags = TD_OP_FUNCTION_ONLY,
};
