/* loss_grad.c: gradients of softmax and cross entropy, written with operators so that they can be
 * differentiated again. Knows no kernels. */
#include "engine/ops/loss_grad.h"

#include "engine/ops/family.h"
#include "engine/ops/loss.h"
#include "engine/ops/reduce_grad.h"

#include <string.h>

td_status td_with_class_dim(td_tensor *lines, const td_tensor *scores, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    memcpy(sizes, scores->sizes, sizeof(int64_t) * (size_t)scores->ndim);
    sizes[td_class_dim(scores)] = 1;
    return TD_APPLY(out, reshape, TD_T(lines), TD_INTS(scores->ndim, sizes));
}

td_status td_grad_softmax(td_grad *grad) {
    td_tensor *g;
    td_status status =
        TD_APPLY(&g, softmax_backward, TD_T(grad->out[0]), TD_T(grad->gout[0]), grad->args[1]);
    return status ? status : td_grad_hand_over(grad, &g);
}

td_status td_grad_log_softmax(td_grad *grad) {
    td_tensor *g;
    td_status status =
        TD_APPLY(&g, log_softmax_backward, TD_T(grad->out[0]), TD_T(grad->gout[0]), grad->args[1]);
    return status ? status : td_grad_hand_over(grad, &g);
}

/* sum(a * b) along a dim, which stays with size 1. New reference. */
static td_status sum_of_product(td_tensor *a, td_tensor *b, int64_t dim, td_tensor **out) {
    td_tensor *product;
    td_status status = TD_APPLY(&product, mul, TD_T(a), TD_T(b));
    if (status)
        return status;
    status = TD_APPLY(out, sum, TD_T(product), TD_INTS(1, &dim), TD_B(true));
    td_release(product);
    return status;
}

/* Of y (g - sum(g y)), with h coming in: to g as softmax itself, y (h - sum(h y)); to y
 * h (g - sum(g y)) - g sum(h y). */
td_status td_grad_softmax_backward(td_grad *grad) {
    td_tensor *h = grad->gout[0], *y = grad->args[0].tensor, *g = grad->args[1].tensor;
    td_tensor *gy = NULL, *hy = NULL, *left = NULL, *right = NULL, *centered = NULL;
    int64_t dim = grad->args[2].i;
    td_status status = TD_OK;
    if (td_grad_needs(grad, 1))
        TD_TRY(TD_APPLY(&grad->in[1], softmax_backward, TD_T(y), TD_T(h), TD_I(dim)));
    if (!td_grad_needs(grad, 0))
        return TD_OK;
    TD_TRY(sum_of_product(g, y, dim, &gy));
    TD_TRY(sum_of_product(h, y, dim, &hy));
    TD_TRY(TD_APPLY(&centered, sub, TD_T(g), TD_T(gy)));
    TD_TRY(TD_APPLY(&left, mul, TD_T(h), TD_T(centered)));
    TD_TRY(TD_APPLY(&right, mul, TD_T(g), TD_T(hy)));
    TD_TRY(TD_APPLY(&grad->in[0], sub, TD_T(left), TD_T(right)));
done:
    td_release(gy);
    td_release(hy);
    td_release(left);
    td_release(right);
    td_release(centered);
    return status;
}

/* Of g - exp(y) sum(g), with h coming in: to g h - sum(h exp(y)), to y -h exp(y) sum(g). */
td_status td_grad_log_softmax_backward(td_grad *grad) {
    td_tensor *h = grad->gout[0], *y = grad->args[0].tensor, *g = grad->args[1].tensor;
    td_tensor *p = NULL, *hp = NULL, *sum = NULL;
    int64_t dim = grad->args[2].i;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&p, exp, TD_T(y)));
    TD_TRY(TD_APPLY(&hp, mul, TD_T(h), TD_T(p)));
    if (td_grad_needs(grad, 1)) {
        TD_TRY(TD_APPLY(&sum, sum, TD_T(hp), TD_INTS(1, &dim), TD_B(true)));
        TD_TRY(TD_APPLY(&grad->in[1], sub, TD_T(h), TD_T(sum)));
    }
    if (td_grad_needs(grad, 0)) {
        TD_STEP(&sum, sum, TD_T(g), TD_INTS(1, &dim), TD_B(true));
        TD_STEP(&hp, neg, TD_T(hp));
        TD_TRY(TD_APPLY(&grad->in[0], mul, TD_T(hp), TD_T(sum)));
    }
done:
    td_release(p);
    td_release(hp);
    td_release(sum);
    return status;
}

/* cross_entropy_classes(x, classes, weights, reduction) -> (loss, lse, total) */
td_status td_grad_cross_entropy_classes(td_grad *grad) {
    const td_value *a = grad->args;
    if (!grad->gout[0])
        return TD_OK;
    return TD_APPLY(&grad->in[0], cross_entropy_backward, TD_T(grad->gout[0]), a[0], a[1], a[2],
                    TD_T(grad->out[1]), TD_T(grad->out[2]), a[3]);
}

/* How much the loss of each line counts: weights * g, over their total for the mean; shaped to
 * broadcast to x. Differentiable in g. */
static td_status line_scales(const td_value *a, td_tensor **out) {
    td_tensor *scale = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&scale, mul, a[3], a[0]));
    if (!strcmp(a[6].string, "mean"))
        TD_STEP(&scale, div, TD_T(scale), a[5]);
    TD_TRY(td_with_class_dim(scale, a[1].tensor, out));
done:
    td_release(scale);
    return status;
}

/* cross_entropy_backward(g, x, classes, weights, lse, total, reduction), linear in g; with h coming
 * in, to x softmax_backward(h * scale, softmax(x)). */
td_status td_grad_cross_entropy_backward(td_grad *grad) {
    const td_value *a = grad->args;
    td_tensor *h = grad->gout[0], *unit = NULL, *per_unit = NULL, *product = NULL;
    td_tensor *scale = NULL, *p = NULL, *hs = NULL;
    int64_t dim = td_class_dim(a[1].tensor);
    bool each = !strcmp(a[6].string, "none");
    td_status status = TD_OK;
    if (td_grad_needs(grad, 0)) {
        TD_TRY(TD_APPLY(&unit, ones_like, a[0]));
        TD_TRY(TD_APPLY(&per_unit, cross_entropy_backward, TD_T(unit), a[1], a[2], a[3], a[4], a[5],
                        a[6]));
        TD_TRY(TD_APPLY(&product, mul, TD_T(h), TD_T(per_unit)));
        TD_TRY(TD_APPLY(&grad->in[0], sum, TD_T(product), each ? TD_INTS(1, &dim) : TD_NIL));
    }
    if (td_grad_needs(grad, 1)) {
        TD_TRY(line_scales(a, &scale));
        TD_TRY(TD_APPLY(&p, softmax, a[1], TD_I(dim)));
        TD_TRY(TD_APPLY(&hs, mul, TD_T(h), TD_T(scale)));
        TD_TRY(TD_APPLY(&grad->in[1], softmax_backward, TD_T(p), TD_T(hs), TD_I(dim)));
    }
done:
    td_release(unit);
    td_release(per_unit);
    td_release(product);
    td_release(scale);
    td_release(p);
    td_release(hs);
    return status;
}
