/* reduce_grad.c: gradients of the reductions, written with operators so that they can be
 * differentiated again. Knows no kernels. */
#include "engine/ops/reduce_grad.h"

#include "engine/core/modes.h"
#include "engine/ops/compose.h"
#include "engine/ops/reduce.h"
#include "engine/ops/reduction.h"

#include <math.h>
#include <string.h>

/* ---- steps that the gradients are made of ---- */

/* Shape of the input with size 1 in place of the dims that the `dims` argument names. */
static td_status kept_shape(const td_grad *grad, td_value dims, int *ndim, int64_t *sizes,
                            int64_t *count) {
    uint32_t mask;
    const int64_t *shape = td_grad_shape(grad, 0, ndim);
    td_status status = td_reduce_dims(dims, *ndim, &mask);
    if (status)
        return status;
    *count = 1;
    for (int d = 0; d < *ndim; d++) {
        sizes[d] = mask >> d & 1 ? 1 : shape[d];
        if (mask >> d & 1)
            *count *= shape[d];
    }
    return TD_OK;
}

/* A result (or its gradient) with its reduced dims back, of size 1. New reference. */
static td_status with_dims(const td_grad *grad, td_tensor *y, td_value dims, td_tensor **out,
                           int64_t *count) {
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
    *out = NULL;
    td_status status = kept_shape(grad, dims, &ndim, sizes, count);
    if (status)
        return status;
    if (y->ndim == ndim) {
        *out = td_retain(y);
        return TD_OK;
    }
    return TD_APPLY(out, reshape, TD_T(y), TD_INTS(ndim, sizes));
}

/* Hand *g (stolen), expanded to the input's shape and in its dtype, to slot 0. */
static td_status hand_over(td_grad *grad, td_tensor *g) {
    td_status status = TD_OK;
    int ndim;
    const int64_t *shape = td_grad_shape(grad, 0, &ndim);
    td_dtype dtype = td_grad_dtype(grad, 0);
    if (g->dtype != dtype)
        TD_STEP(&g, to, TD_T(g), TD_DTYPE(dtype));
    if (g->ndim != ndim || memcmp(g->sizes, shape, sizeof(int64_t) * (size_t)ndim))
        TD_STEP(&g, expand, TD_T(g), TD_INTS(ndim, shape));
    grad->in[0] = g;
    g = NULL;
done:
    td_release(g);
    return status;
}

/* ---- sums ---- */

td_status td_grad_sum(td_grad *grad) {
    td_tensor *g;
    int64_t count;
    td_status status = with_dims(grad, grad->gout[0], grad->args[1], &g, &count);
    return status ? status : hand_over(grad, g);
}

td_status td_grad_sum_to_size(td_grad *grad) {
    return hand_over(grad, td_retain(grad->gout[0]));
}

td_status td_grad_mean(td_grad *grad) {
    td_tensor *g = NULL;
    int64_t count;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g, &count));
    TD_STEP(&g, div, TD_T(g), TD_F((double)count));
    return hand_over(grad, g);
done:
    td_release(g);
    return status;
}

td_status td_grad_nansum(td_grad *grad) {
    td_tensor *g = NULL, *real = NULL, *x = grad->args[0].tensor;
    int64_t count;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g, &count));
    TD_TRY(TD_APPLY(&real, eq, TD_T(x), TD_T(x)));
    TD_STEP(&g, where, TD_T(real), TD_T(g), TD_F(0));
    td_release(real);
    return hand_over(grad, g);
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
    if (g->dtype != td_grad_dtype(grad, 0))
        TD_STEP(&g, to, TD_T(g), TD_DTYPE(td_grad_dtype(grad, 0)));
    grad->in[0] = g;
    return TD_OK;
done:
    td_release(g);
    return status;
}

/* ---- products ---- */

/* (..., n) -> the product of the elements before each one along the last dim, by doubling. */
static td_status products_before(td_tensor *x, td_tensor **out) {
    td_tensor *y = td_retain(x), *ones = NULL, *head = NULL, *tail = NULL;
    int64_t n = x->sizes[x->ndim - 1];
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&ones, ones_like, TD_T(x)));
    for (int64_t shift = 0; shift < n; shift = shift ? 2 * shift : 1) {
        int64_t by = shift ? shift : 1; /* the first step moves, the others multiply */
        TD_TRY(TD_APPLY(&head, narrow, TD_T(ones), TD_I(-1), TD_I(0), TD_I(by)));
        TD_TRY(TD_APPLY(&tail, narrow, TD_T(y), TD_I(-1), TD_I(0), TD_I(n - by)));
        TD_STEP(&tail, cat, TD_TENSORS(2, ((td_tensor *[]){head, tail})), TD_I(-1));
        if (shift)
            TD_STEP(&y, mul, TD_T(y), TD_T(tail));
        else
            TD_STEP(&y, clone, TD_T(tail));
        td_release(head);
        td_release(tail);
        head = tail = NULL;
    }
    *out = y;
    y = NULL;
done:
    td_release(y);
    td_release(ones);
    td_release(head);
    td_release(tail);
    return status;
}

/* The same for the elements after each one. */
static td_status products_after(td_tensor *x, td_tensor **out) {
    td_tensor *y = td_retain(x), *products = NULL;
    int64_t last = -1;
    td_status status = TD_OK;
    TD_STEP(&y, flip, TD_T(y), TD_INTS(1, &last));
    TD_TRY(products_before(y, &products));
    TD_TRY(TD_APPLY(out, flip, TD_T(products), TD_INTS(1, &last)));
done:
    td_release(y);
    td_release(products);
    return status;
}

/* Product of the other elements of each one's group: right where there are zeros. */
static td_status products_of_others(td_tensor *x, uint32_t mask, td_tensor **out) {
    td_tensor *y = td_retain(x), *before = NULL, *after = NULL;
    int64_t order[TD_MAX_DIMS], back[TD_MAX_DIMS], flat[TD_MAX_DIMS], moved[TD_MAX_DIMS];
    int n = 0, kept;
    td_status status = TD_OK;
    for (int d = 0; d < x->ndim; d++)
        if (!(mask >> d & 1))
            order[n++] = d;
    kept = n;
    for (int d = 0; d < x->ndim; d++)
        if (mask >> d & 1)
            order[n++] = d;
    int64_t group = 1;
    for (int k = 0; k < n; k++) {
        back[order[k]] = k;
        moved[k] = x->sizes[order[k]];
        if (k < kept)
            flat[k] = moved[k];
        else
            group *= moved[k];
    }
    flat[kept] = group;
    TD_STEP(&y, permute, TD_T(y), TD_INTS(n, order));
    TD_STEP(&y, reshape, TD_T(y), TD_INTS(kept + 1, flat));
    TD_TRY(products_before(y, &before));
    TD_TRY(products_after(y, &after));
    TD_STEP(&y, mul, TD_T(before), TD_T(after));
    TD_STEP(&y, reshape, TD_T(y), TD_INTS(n, moved));
    TD_TRY(TD_APPLY(out, permute, TD_T(y), TD_INTS(n, back)));
done:
    td_release(y);
    td_release(before);
    td_release(after);
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
    int64_t count;
    uint32_t mask;
    td_status status = TD_OK;
    TD_TRY(td_reduce_dims(grad->args[1], x->ndim, &mask));
    if (x->dtype != grad->gout[0]->dtype)
        TD_STEP(&x, to, TD_T(x), TD_DTYPE(grad->gout[0]->dtype));
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g, &count));
    if (mask) {
        TD_TRY(td_grad_enabled() ? products_of_others(x, mask, &others)
                                 : quotients(x, grad->args[1], &others));
        TD_STEP(&g, mul, TD_T(g), TD_T(others));
    }
    status = hand_over(grad, g);
    g = NULL;
done:
    td_release(g);
    td_release(others);
    td_release(x);
    return status;
}

/* ---- variance ---- */

/* g (stolen, with its reduced dims) times 2 / divisor times the deviations from the mean. */
static td_status spread_variance(td_grad *grad, td_tensor *g, int64_t count) {
    td_tensor *deviation = NULL, *mean = NULL, *x = grad->args[0].tensor;
    double divisor = (double)count - td_var_correction(grad->args[2], grad->args[4]);
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&mean, mean, TD_T(x), grad->args[1], TD_B(true)));
    TD_TRY(TD_APPLY(&deviation, sub, TD_T(x), TD_T(mean)));
    TD_STEP(&g, mul, TD_T(g), TD_F(divisor > 0 ? 2 / divisor : NAN));
    TD_STEP(&g, mul, TD_T(g), TD_T(deviation));
    td_release(deviation);
    td_release(mean);
    return hand_over(grad, g);
done:
    td_release(g);
    td_release(deviation);
    td_release(mean);
    return status;
}

td_status td_grad_var(td_grad *grad) {
    td_tensor *g;
    int64_t count;
    td_status status = with_dims(grad, grad->gout[0], grad->args[1], &g, &count);
    return status ? status : spread_variance(grad, g, count);
}

/* g / (2 std), and 0 where std is 0, as PyTorch has it. */
td_status td_grad_std(td_grad *grad) {
    td_tensor *g = NULL, *zero = NULL, *twice = NULL, *out = grad->out[0];
    int64_t count;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&zero, eq, TD_T(out), TD_F(0)));
    TD_TRY(TD_APPLY(&twice, mul, TD_T(out), TD_F(2)));
    TD_TRY(TD_APPLY(&g, div, TD_T(grad->gout[0]), TD_T(twice)));
    TD_STEP(&g, where, TD_T(zero), TD_F(0), TD_T(g));
    td_tensor *kept;
    TD_TRY(with_dims(grad, g, grad->args[1], &kept, &count));
    td_release(g);
    g = NULL;
    status = spread_variance(grad, kept, count);
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
    int64_t count;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g, &count));
    TD_TRY(with_dims(grad, grad->out[0], grad->args[1], &out, &count));
    TD_TRY(share_among_equals(grad->args[0].tensor, out, grad->args[1], &g));
    td_release(out);
    return hand_over(grad, g);
done:
    td_release(g);
    td_release(out);
    return status;
}

td_status td_grad_extreme_dim(td_grad *grad) {
    td_tensor *g = NULL, *index = NULL, *zeros = NULL;
    int64_t count;
    int ndim;
    const int64_t *shape = td_grad_shape(grad, 0, &ndim);
    td_value dim = grad->args[1];
    td_status status = TD_OK;
    if (!grad->gout[0])
        return TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], dim, &g, &count));
    TD_TRY(with_dims(grad, grad->out[1], dim, &index, &count));
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
        td_release(zero);
        zero = NULL;
        TD_TRY(TD_APPLY(&zero, eq, TD_T(x), TD_F(0)));
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
    int64_t count;
    td_status status = TD_OK;
    if (x->dtype != grad->out[0]->dtype)
        TD_STEP(&x, to, TD_T(x), TD_DTYPE(grad->out[0]->dtype));
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[2], &g, &count));
    TD_TRY(with_dims(grad, grad->out[0], grad->args[2], &out, &count));
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
    status = hand_over(grad, g);
    g = NULL;
done:
    td_release(g);
    td_release(out);
    td_release(slope);
    td_release(x);
    return status;
}

td_status td_grad_logsumexp(td_grad *grad) {
    td_tensor *g = NULL, *share = NULL, *x = grad->args[0].tensor;
    int64_t count;
    td_status status = TD_OK;
    TD_TRY(with_dims(grad, grad->gout[0], grad->args[1], &g, &count));
    TD_TRY(with_dims(grad, grad->out[0], grad->args[1], &share, &count));
    TD_STEP(&share, sub, TD_T(x), TD_T(share));
    TD_STEP(&share, exp, TD_T(share));
    TD_STEP(&g, mul, TD_T(g), TD_T(share));
    td_release(share);
    return hand_over(grad, g);
done:
    td_release(g);
    td_release(share);
    return status;
}
