/* gradient_scenes.h: what the tests of gradients of graphs share: graphs from texts, inputs, calls
 * by a gradient or one by one, weighed sums. Included once by each test program. */
#ifndef TIDE_TESTS_GRADIENT_SCENES_H
#define TIDE_TESTS_GRADIENT_SCENES_H

#include "engine/autograd/autograd.h"
#include "engine/script/gradient/gradient.h"
#include "engine/td.h"

#include "tests/check.h"

enum { MOST = 4 }; /* inputs or outputs of a graph */

/* ---- graphs ---- */

/* Constants that the texts read, put behind their first line. */
static const char constants[] = "  %one : int = prim::Constant[value=1]()\n"
                                "  %three : float = prim::Constant[value=3.]()\n"
                                "  %yes : bool = prim::Constant[value=1]()\n"
                                "  %no : bool = prim::Constant[value=0]()\n"
                                "  %none : None = prim::Constant()\n";

CHECK_HELPER td_script *script_of(const char *text) {
    char whole[4096];
    td_ir_graph *g = NULL;
    td_script *s = NULL;
    const char *body = strchr(text, '\n') + 1;
    snprintf(whole, sizeof whole, "%.*s%s%s", (int)(body - text), text, constants, body);
    if (td_ir_parse(whole, &g) || td_script_new(g, &s))
        check_fail(__FILE__, __LINE__, "%s in\n%s", td_error_message(), whole);
    td_ir_graph_release(g);
    return s;
}

/* ---- tensors ---- */

static _Thread_local uint64_t random_state = 1;
CHECK_HELPER double draw(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return 0.4 + (double)(random_state >> 40) / (1 << 24);
}

CHECK_HELPER td_tensor *make(td_dtype dtype, const int64_t *sizes) {
    td_tensor *x = NULL;
    int n = 0;
    while (n < 3 && sizes[n])
        n++;
    if (td_tensor_empty(dtype, TD_DEVICE_CPU, n, sizes, &x))
        return NULL;
    for (int64_t k = 0; k < x->numel; k++)
        td_store_double(dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x), draw());
    return x;
}

CHECK_HELPER void drop(int n, td_tensor **list) {
    for (int k = 0; k < n; k++) {
        td_release(list[k]);
        list[k] = NULL;
    }
}

CHECK_HELPER bool same_bits(const td_tensor *a, const td_tensor *b) {
    td_tensor *p = NULL, *q = NULL;
    if (!a || !b)
        return a == b;
    bool same = a->dtype == b->dtype && td_tensor_same_shape(a, b) &&
                TD_APPLY(&p, contiguous, TD_T((td_tensor *)a)) == TD_OK &&
                TD_APPLY(&q, contiguous, TD_T((td_tensor *)b)) == TD_OK &&
                !memcmp(p->data, q->data, (size_t)p->numel * td_tensor_itemsize(p));
    td_release(p);
    td_release(q);
    return same;
}

/* The k-th of a float64 tensor, row-major. */
CHECK_HELPER double element(const td_tensor *x, int64_t k) {
    int64_t at = 0;
    for (int d = x->ndim - 1; d >= 0; k /= x->sizes[d--])
        at += k % x->sizes[d] * x->strides[d];
    return ((const double *)x->data)[at];
}

/* ---- calls ---- */

/* By `d`, or where that is NULL call by call. Outputs are new. */
CHECK_HELPER td_status call(const td_script *s, td_gradient *d, int n, td_tensor *const *x,
                            td_tensor **out) {
    td_value inputs[MOST], outputs[MOST];
    for (int k = 0; k < n; k++)
        inputs[k] = TD_T(x[k]);
    if (d && !td_gradient_fits(d, inputs))
        return td_fail(TD_EINTERNAL, "does not fit");
    td_status status = d ? td_gradient_call(d, inputs, outputs) : td_script_run(s, inputs, outputs);
    for (int k = 0; k < td_script_graph(s)->block->noutputs && status == TD_OK; k++)
        out[k] = td_arg_tensor(outputs[k]);
    return status;
}

CHECK_HELPER td_gradient *derive(td_script *s, int n, td_tensor *const *x) {
    td_value inputs[MOST];
    td_gradient *d = NULL;
    for (int k = 0; k < n; k++)
        inputs[k] = TD_T(x[k]);
    if (td_gradient_new(s, inputs, &d))
        check_fail(__FILE__, __LINE__, "%s", td_error_message());
    return d;
}

/* sum(out[0] * weight), recorded: the weights are the numbers sin(0), sin(1), ... */
CHECK_HELPER td_status weigh(td_tensor *out, td_tensor **sum) {
    td_tensor *weights = NULL, *product = NULL;
    td_status status = td_tensor_empty_like(out, (td_dtype)out->dtype, &weights);
    for (int64_t k = 0; k < out->numel && status == TD_OK; k++)
        td_store_double((td_dtype)out->dtype,
                        (char *)weights->data + (size_t)k * td_tensor_itemsize(weights),
                        sin((double)k));
    if (status == TD_OK)
        status = TD_APPLY(&product, mul, TD_T(out), TD_T(weights));
    if (status == TD_OK)
        status = TD_APPLY(sum, sum, TD_T(product));
    td_release(weights);
    td_release(product);
    return status;
}

/* Gradients of the weighed sum of output `which` (-1: of all of them). */
CHECK_HELPER td_status gradients(const td_script *s, td_gradient *d, int n, td_tensor *const *x,
                                 int which, bool create_graph, td_tensor **grads) {
    td_tensor *out[MOST] = {NULL}, *sums[MOST] = {NULL};
    int nout = td_script_graph(s)->block->noutputs, nsums = 0;
    td_status status = call(s, d, n, x, out);
    for (int k = 0; k < nout && status == TD_OK; k++)
        if (which < 0 || which == k)
            status = weigh(out[k], &sums[nsums++]);
    if (status == TD_OK)
        status = td_autograd_grad(nsums, sums, NULL, n, x,
                                  (td_backward_options){.create_graph = create_graph}, true, grads);
    drop(nout, out);
    drop(nsums, sums);
    return status;
}

/* The weighed sum of all outputs, as a number. */
CHECK_HELPER double value_of(const td_script *s, int n, td_tensor *const *x) {
    td_tensor *out[MOST] = {NULL}, *sum = NULL;
    double total = 0, one = 0;
    bool before = td_set_grad_enabled(false);
    if (call(s, NULL, n, x, out))
        total = NAN;
    for (int k = 0; k < td_script_graph(s)->block->noutputs; k++) {
        if (!out[k] || weigh(out[k], &sum) || td_tensor_item(sum, &one))
            one = NAN;
        total += one;
        td_release(sum);
        sum = NULL;
    }
    td_set_grad_enabled(before);
    drop(MOST, out);
    return total;
}

/* ---- scenes ---- */

static const char tanh_text[] = "graph(%x : Tensor, %y : Tensor):\n"
                                "  %a : Tensor = aten::mul(%x, %y)\n"
                                "  %b : Tensor = aten::tanh(%a)\n"
                                "  %c : Tensor = aten::mul(%b, %y)\n"
                                "  return (%c)\n";
static const int64_t shape[3] = {3, 4};

/* Two inputs that require grad, and a graph with its gradient. */
typedef struct scene {
    td_tensor *x[MOST];
    td_script *s;
    td_gradient *d;
} scene;

CHECK_HELPER bool set_scene(scene *c, const char *text) {
    *c = (scene){.s = script_of(text)};
    for (int k = 0; k < 2; k++) {
        c->x[k] = make(TD_F64, shape);
        if (!c->x[k] || td_set_requires_grad(c->x[k], true))
            return false;
    }
    c->d = c->s ? derive(c->s, 2, c->x) : NULL;
    return c->d != NULL;
}

CHECK_HELPER void strike_scene(scene *c) {
    drop(2, c->x);
    td_gradient_release(c->d);
    td_script_release(c->s);
}

#endif
