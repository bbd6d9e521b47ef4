/* reduce_grad.c: gradients of the reductions, written with operators so that they can be
 * differentiated again. Knows no kernels. */
#include "engine/ops/reduce_grad.h"

#include "engine/core/modes.h"
#include "engine/ops/family.h"
#include "engine/ops/reduce.h"
#include "engine/ops/reduction.h"

#include <math.h>
#include <string.h>

/* ---- steps that the gradients are made of ---- */

/* A result (or its gradient) with the dims back that `dims` names, of size 1. New reference. */
static td_status with_dims(const td_grad *grad, td_tensor *y, td_value dims, td_tensor **out) {
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
    uint32_t mask;
    const int64_t *shape = td_grad_shape(grad, 0, &ndim);
    *out = NULL;
    td_status status = td_reduce_dims(dims, ndim, &mask);
    if (status)
        return status;
    for (int d = 0; d < ndim; d++)
        sizes[d] = mask >> d & 1 ? 1 : shape[d];
    if (y->ndim != ndim)
        return TD_APPLY(out, reshape, TD_T(y), TD_INTS(ndim, sizes));
    *out = td_retain(y);
    return TD_OK;
}

/* Elements of the input behind each of the result's. */
static double count_behind(const td_grad *grad) {
    int ndim;
    int64_t n = 1;
    const int64_t *shape = td_grad_shape(grad, 0, &ndim);
    for (int d = 0; d < ndim; d++)
        n *= shape[d];
    return grad->gout[0]->numel ? (double)(n / grad->gout[0]->numel) : 0;
}

td_status td_grad_hand_over(td_grad *grad, td_tensor **g) {
    td_status status = TD_OK;
    int ndim;
    const int64_t *shape = td_grad_shape(grad, 0, &ndim);
    td_dtype dtype = td_grad_dtype(grad, 0);
    if ((*g)->dtype != dtype)
        TD_STEP(g, to, TD_T(*g), TD_DTYPE(dtype));
    if ((*g)->ndim != ndim || memcmp((*g)->sizes, shape, sizeof(int64_t) * (size_t)ndim))
        TD_STEP(g, expand, TD_T(*g), TD_INTS(ndim, shape));
    grad->in[0] = td_retain(*g);
done:
    td_release(*g);
    *g = NULL;
    return status;
}

/* ---- sums ---- */

td_status td_grad_sum(td_grad *grad) {
    td_tensor *g;
    td_status status = with_dims(grad, grad->gout[0], grad->args[1], &g);
    return status ? status : td_grad_hand_over(grad, &g);
}

td_status td_grad_sum_to_size(td_grad *grad) {
    td_tensor *g = td_retain(grad->gout[0]);
    return td_grad_hand_over(grad, &g);
}

td_status td_grad_mean(td_grad *grad) {
    td_tensor *g = NULL;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g));
    TD_STEP(&g, div, TD_T(g), TD_F(count_behind(grad)));
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    return status;
}

td_status td_grad_nansum(td_grad *grad) {
    td_tensor *g = NULL, *real = NULL, *x = grad->args[0].tensor;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g));
    TD_TRY(TD_APPLY(&real, eq, TD_T(x), TD_T(x)));
    TD_STEP(&g, where, TD_T(real), TD_T(g), TD_F(0));
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    td_release(real);
    return status;
}

td_status td_grad_cumsum(td_grad *grad) {
    td_tensor *g = td_retain(grad->gout[0]);
    int64_t dim = grad->args[1].i;
    td_status status = TD_OK;
    TD_STEP(&g, flip, TD_T(g), TD_INTS(1, &dim));
    TD_STEP(&g, cumsum, TD_T(g), TD_I(dim));
    TD_STEP(&g, flip, TD_T(g), TD_INTS(1, &dim));
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    return status;
}

/* ---- products ---- */

/* Replace *y by the products of the elements before each one along a dim, by doubling. */
static td_status products_before(td_tensor **y, int64_t dim) {
    td_tensor *ones = NULL, *head = NULL, *tail = NULL;
    int64_t n = (*y)->sizes[dim];
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&ones, ones_like, TD_T(*y)));
    for (int64_t shift = 0; shift < n; shift = shift ? 2 * shift : 1) {
        int64_t by = shift ? shift : 1; /* the first step moves, the others multiply */
        TD_STEP(&head, narrow, TD_T(ones), TD_I(dim), TD_I(0), TD_I(by));
        TD_STEP(&tail, narrow, TD_T(*y), TD_I(dim), TD_I(0), TD_I(n - by));
        TD_STEP(&tail, cat, TD_TENSORS(2, ((td_tensor *[]){head, tail})), TD_I(dim));
        if (shift)
            TD_STEP(&tail, mul, TD_T(*y), TD_T(tail));
        td_release(*y);
        *y = td_retain(tail);
    }
done:
    td_release(ones);
    td_release(head);
    td_release(tail);
    return status;
}

/* Product of the other elements of each one's group, a recorded formula that is right where there
 * are zeros: dim by dim, those before it, those after it, and the products of whole lines. */
static td_status products_of_others(td_tensor *x, uint32_t mask, td_tensor **out) {
    td_tensor *y = td_retain(x), *side = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(out, ones_like, TD_T(x)));
    for (int64_t d = 0; d < x->ndim; d++) {
        if (!(mask >> d & 1))
            continue;
        td_release(side);
        side = td_retain(y);
        TD_TRY(products_before(&side, d));
        TD_STEP(out, mul, TD_T(*out), TD_T(side));
        TD_STEP(&side, flip, TD_T(y), TD_INTS(1, &d));
        TD_TRY(products_before(&side, d));
        TD_STEP(&side, flip, TD_T(side), TD_INTS(1, &d));
        TD_STEP(out, mul, TD_T(*out), TD_T(side));
        TD_STEP(&y, prod, TD_T(y), TD_INTS(1, &d), TD_B(true));
    }
done:
    td_release(y);
    td_release(side);
    return status;
}

/* The same as a formula that has no derivative of its own: the product without zeros, over each
 * element that is not 0, where no other element is 0. */
static td_status quotients(td_tensor *x, td_value dims, td_tensor **out) {
    td_tensor *zero = NULL, *real = NULL, *zeros = NULL, *y = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&zero, eq, TD_T(x), TD_F(0)));
    TD_TRY(TD_APPLY(&zeros, sum, TD_T(zero), dims, TD_B(true)));
    TD_STEP(&zeros, eq, TD_T(zeros), TD_T(zero)); /* no other one is zero */
    TD_TRY(TD_APPLY(&real, where, TD_T(zero), TD_F(1), TD_T(x)));
    TD_TRY(TD_APPLY(&y, prod, TD_T(real), dims, TD_B(true)));
    TD_STEP(&y, div, TD_T(y), TD_T(real));
    TD_TRY(TD_APPLY(out, where, TD_T(zeros), TD_T(y), TD_F(0)));
done:
    td_release(zero);
    td_release(real);
    td_release(zeros);
    td_release(y);
    return status;
}

td_status td_grad_prod(td_grad *grad) {
    td_tensor *g = NULL, *others = NULL, *x = td_retain(grad->args[0].tensor);
    uint32_t mask;
    td_status status = TD_OK;
    TD_TRY(td_reduce_dims(grad->args[1], x->ndim, &mask));
    if (x->dtype != grad->gout[0]->dtype)
        TD_STEP(&x, to, TD_T(x), TD_DTYPE(grad->gout[0]->dtype));
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g));
    if (mask) {
        TD_TRY(td_grad_enabled() ? products_of_others(x, mask, &others)
                                 : quotients(x, grad->args[1], &others));
        TD_STEP(&g, mul, TD_T(g), TD_T(others));
    }
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    td_release(others);
    td_release(x);
    return status;
}

/* ---- variance ---- */

/* g (stolen, with its reduced dims) times 2 / divisor times the deviations from the mean. */
static td_status spread_variance(td_grad *grad, td_tensor *g) {
    td_tensor *deviation = NULL, *mean = NULL, *x = grad->args[0].tensor;
    double divisor = count_behind(grad) - td_var_correction(grad->args[2], grad->args[4]);
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&mean, mean, TD_T(x), grad->args[1], TD_B(true)));
    TD_TRY(TD_APPLY(&deviation, sub, TD_T(x), TD_T(mean)));
    TD_STEP(&g, mul, TD_T(g), TD_F(divisor > 0 ? 2 / divisor : NAN));
    TD_STEP(&g, mul, TD_T(g), TD_T(deviation));
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    td_release(deviation);
    td_release(mean);
    return status;
}

td_status td_grad_var(td_grad *grad) {
    td_tensor *g;
    td_status status = with_dims(grad, grad->gout[0], grad->args[1], &g);
    return status ? status : spread_variance(grad, g);
}

/* g / (2 std), and 0 where std is 0, as PyTorch has it. */
td_status td_grad_std(td_grad *grad) {
    td_tensor *g = NULL, *zero = NULL, *twice = NULL, *kept, *out = grad->out[0];
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&zero, eq, TD_T(out), TD_F(0)));
    TD_TRY(TD_APPLY(&twice, mul, TD_T(out), TD_F(2)));
    TD_TRY(TD_APPLY(&g, div, TD_T(grad->gout[0]), TD_T(twice)));
    TD_STEP(&g, where, TD_T(zero), TD_F(0), TD_T(g));
    TD_TRY(with_dims(grad, g, grad->args[1], &kept));
    status = spread_variance(grad, kept);
done:
    td_release(g);
    td_release(zero);
    td_release(twice);
    return status;
}

/* ---- extremes ---- */

/* g among the elements of |x| or x that equal the result, which has its dims back. */
static td_status share_among_equals(td_tensor *x, td_tensor *out, td_value dims, td_tensor **g) {
    td_tensor *equal = NULL, *count = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&equal, eq, TD_T(x), TD_T(out)));
    TD_TRY(TD_APPLY(&count, sum, TD_T(equal), dims, TD_B(true)));
    TD_STEP(g, div, TD_T(*g), TD_T(count));
    TD_STEP(g, where, TD_T(equal), TD_T(*g), TD_F(0));
done:
    td_release(equal);
    td_release(count);
    return status;
}

td_status td_grad_extreme(td_grad *grad) {
    td_tensor *g = NULL, *out = NULL;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g));
    TD_TRY(with_dims(grad, grad->out[0], grad->args[1], &out));
    TD_TRY(share_among_equals(grad->args[0].tensor, out, grad->args[1], &g));
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    td_release(out);
    return status;
}

td_status td_grad_extreme_dim(td_grad *grad) {
    td_tensor *g = NULL, *index = NULL, *zeros = NULL;
    int ndim;
    const int64_t *shape = td_grad_shape(grad, 0, &ndim);
    td_value dim = grad->args[1];
    td_status status = TD_OK;
    if (!grad->gout[0])
        return TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], dim, &g));
    TD_TRY(with_dims(grad, grad->out[1], dim, &index));
    if (ndim == 0) {
        grad->in[0] = td_retain(g);
        goto done;
    }
    TD_TRY(TD_APPLY(&zeros, zeros_like, TD_T(g)));
    TD_STEP(&zeros, expand, TD_T(zeros), TD_INTS(ndim, shape));
    TD_TRY(TD_APPLY(&grad->in[0], scatter, TD_T(zeros), dim, TD_T(index), TD_T(g)));
done:
    td_release(g);
    td_release(index);
    td_release(zeros);
    return status;
}

/* ---- norms ---- */

/* Derivative of the norm by x where p is neither 0 nor infinite, without the factor g: for p = 2
 * x / norm, else sign(x) |x|^(p-1) / norm^(p-1); 0 where the norm is. */
static td_status norm_slope(td_tensor *x, td_tensor *norm, double p, td_tensor **out) {
    td_tensor *slope = NULL, *size = NULL, *divisor = NULL, *zero = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&zero, eq, TD_T(norm), TD_F(0)));
    TD_TRY(TD_APPLY(&divisor, where, TD_T(zero), TD_F(1), TD_T(norm)));
    if (p == 2) {
        slope = td_retain(x);
    } else {
        TD_TRY(TD_APPLY(&slope, sign, TD_T(x)));
        TD_TRY(TD_APPLY(&size, abs, TD_T(x)));
        if (p != 1) {
            TD_STEP(&size, pow, TD_T(size), TD_F(p - 1));
            TD_STEP(&slope, mul, TD_T(slope), TD_T(size));
            TD_STEP(&divisor, pow, TD_T(divisor), TD_F(p - 1));
        }
    }
    if (p < 1) { /* 0 * inf where x is 0 */
        TD_STEP(&zero, eq, TD_T(x), TD_F(0));
        TD_STEP(&slope, where, TD_T(zero), TD_F(0), TD_T(slope));
    }
    if (p == 1)
        *out = td_retain(slope);
    else
        TD_TRY(TD_APPLY(out, div, TD_T(slope), TD_T(divisor)));
done:
    td_release(slope);
    td_release(size);
    td_release(divisor);
    td_release(zero);
    return status;
}

td_status td_grad_norm(td_grad *grad) {
    td_tensor *g = NULL, *out = NULL, *slope = NULL, *x = td_retain(grad->args[0].tensor);
    double p = td_arg_double(grad->args[1]);
    td_status status = TD_OK;
    if (x->dtype != grad->out[0]->dtype)
        TD_STEP(&x, to, TD_T(x), TD_DTYPE(grad->out[0]->dtype));
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[2], &g));
    TD_TRY(with_dims(grad, grad->out[0], grad->args[2], &out));
    if (isinf(p)) {
        TD_TRY(TD_APPLY(&slope, abs, TD_T(x)));
        TD_TRY(share_among_equals(slope, out, grad->args[2], &g));
        TD_STEP(&slope, sign, TD_T(x));
        TD_STEP(&g, mul, TD_T(g), TD_T(slope));
    } else if (p == 0) {
        TD_STEP(&g, zeros_like, TD_T(g));
    } else {
        TD_TRY(norm_slope(x, out, p, &slope));
        TD_STEP(&g, mul, TD_T(g), TD_T(slope));
    }
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    td_release(out);
    td_release(slope);
    td_release(x);
    return status;
}

td_status td_grad_logsumexp(td_grad *grad) {
    td_tensor *g = NULL, *share = NULL, *x = grad->args[0].tensor;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g));
    TD_TRY(with_dims(grad, grad->out[0], grad->args[1], &share));
    TD_STEP(&share, sub, TD_T(x), TD_T(share));
    TD_STEP(&share, exp, TD_T(share));
    TD_STEP(&g, mul, TD_T(g), TD_T(share));
    status = td_grad_hand_over(grad, &g);
done:
    td_release(g);
    td_release(share);
    return status;
}
