/* test_dispatcher.c: every call of an operator comes to the dispatcher that the thread's modes
 * hold: those that composites, lists of tensors, optimizers' steps and backward make among them; it
 * runs them, puts others in their place or makes their results itself. */
#include "engine/td.h"

#include "tests/check.h"

#include <stdio.h>
#include <string.h>

/* The names of the calls that came, with blanks between them. */
typedef struct listener {
    td_dispatcher dispatcher;
    char names[1000];
    bool inside; /* what a call makes is listened to as well */
} listener;

static td_status listen(const td_dispatcher *self, td_call *call) {
    listener *l = (listener *)self;
    size_t used = strlen(l->names);
    snprintf(l->names + used, sizeof l->names - used, "%s%s", used ? " " : "",
             call->inplace && call->op->inplace_name ? call->op->inplace_name : call->op->name);
    td_modes modes = td_get_modes();
    if (!l->inside)
        modes.dispatcher = NULL;
    modes = td_set_modes(modes);
    td_status status = td_op_run(call);
    td_set_modes(modes);
    return status;
}

static td_modes put_in_force(const td_dispatcher *d) {
    td_modes modes = td_get_modes();
    modes.dispatcher = d;
    return td_set_modes(modes);
}

static td_tensor *matrix(bool requires_grad) {
    td_tensor *x = NULL;
    const int64_t sizes[] = {3, 3};
    CHECK_INT(TD_APPLY(&x, ones, TD_INTS(2, sizes)), TD_OK);
    CHECK_INT(td_set_requires_grad(x, requires_grad), TD_OK);
    return x;
}

static double first(const td_tensor *x) {
    return ((const float *)x->data)[0];
}

TEST(a_call_comes_before_those_that_it_makes) {
    listener l = {.dispatcher.call = listen, .inside = true};
    td_tensor *x = matrix(false), *y = NULL;
    td_modes before = put_in_force(&l.dispatcher);
    CHECK_INT(TD_APPLY(&y, addcmul, TD_T(x), TD_T(x), TD_T(x)), TD_OK);
    td_release(y);
    CHECK_INT(TD_APPLY(&y, cartesian_prod, TD_TENSORS(0, NULL)), TD_EVALUE);
    td_set_modes(before);
    CHECK(y == NULL);
    CHECK(!strncmp(l.names, "addcmul cartesian_prod", 22));
    td_release(x);
}

TEST(a_composite_is_one_call_where_nobody_looks_inside) {
    listener all = {.dispatcher.call = listen, .inside = true}, alone = {.dispatcher.call = listen};
    td_tensor *x = matrix(false), *y = NULL;
    td_modes before = put_in_force(&alone.dispatcher);
    CHECK_INT(TD_APPLY(&y, matrix_exp, TD_T(x)), TD_OK);
    td_release(y);
    td_set_modes(before);
    CHECK_STR(alone.names, "matrix_exp");
    before = put_in_force(&all.dispatcher);
    CHECK_INT(TD_APPLY(&y, matrix_exp, TD_T(x)), TD_OK);
    td_release(y);
    td_set_modes(before);
    CHECK(strstr(all.names, "matrix_exp ") == all.names && strstr(all.names, " exp_of_small "));
    td_release(x);
}

TEST(calls_over_lists_come_one_by_one) {
    listener l = {.dispatcher.call = listen};
    td_tensor *x[3] = {matrix(false), matrix(false), matrix(false)}, *out[3];
    td_value args[9];
    int failed;
    for (int k = 0; k < 3; k++) {
        args[3 * k] = TD_T(x[k]);
        args[3 * k + 1] = TD_F(2);
        args[3 * k + 2] = TD_I(1);
    }
    td_foreach f = {.op = TD_OP(add), .n = 3, .args = args, .out = out};
    td_modes before = put_in_force(&l.dispatcher);
    CHECK_INT(td_foreach_call(&f), TD_OK);
    CHECK_STR(l.names, "add add add");
    for (int k = 0; k < 3; k++) {
        CHECK_CLOSE(first(out[k]), 3, 0);
        td_release(out[k]);
    }
    l.names[0] = '\0';
    f.op = TD_OP(add);
    f.inplace = true;
    CHECK_INT(td_foreach_call(&f), TD_OK);
    CHECK_STR(l.names, "add_ add_ add_");
    l.names[0] = '\0';
    CHECK_INT(td_foreach_norm(3, x, TD_F(2), out, &failed), TD_OK);
    td_set_modes(before);
    CHECK_STR(l.names, "norm norm norm");
    for (int k = 0; k < 3; k++) {
        td_release(out[k]);
        td_release(x[k]);
    }
}

TEST(backward_comes_call_by_call) {
    listener l = {.dispatcher.call = listen};
    td_tensor *x = matrix(true), *y = NULL, *z = NULL;
    CHECK_INT(TD_APPLY(&y, tanh, TD_T(x)), TD_OK);
    CHECK_INT(TD_APPLY(&z, sum, TD_T(y)), TD_OK);
    td_modes before = put_in_force(&l.dispatcher);
    CHECK_INT(td_backward(1, &z, NULL, (td_backward_options){.create_graph = false}), TD_OK);
    td_set_modes(before);
    CHECK(strstr(l.names, "mul") != NULL); /* the gradient of tanh, which is one kernel otherwise */
    td_tensor *g = td_get_grad(x);
    CHECK(g != NULL);
    if (g)
        CHECK_CLOSE(first(g), 0.41997434, 1e-6);
    td_release(x);
    td_release(y);
    td_release(z);
}

/* ---- one that does something else ---- */

static td_status swap(const td_dispatcher *self, td_call *call) {
    (void)self;
    if (call->op == TD_OP(sin))
        call->op = TD_OP(cos);
    return td_op_run(call);
}

static td_status refuse(const td_dispatcher *self, td_call *call) {
    (void)self;
    call->out[0] = td_retain(call->args[0].tensor); /* left behind by a failure: not leaked */
    return td_fail(TD_EVALUE, "not now");
}

TEST(another_operator_may_take_its_place) {
    const td_dispatcher d = {.call = swap};
    td_tensor *x = NULL, *y = NULL;
    CHECK_INT(td_tensor_scalar(TD_F32, 0, &x), TD_OK);
    td_modes before = put_in_force(&d);
    CHECK_INT(TD_APPLY(&y, sin, TD_T(x)), TD_OK);
    td_set_modes(before);
    CHECK_CLOSE(first(y), 1, 0);
    td_release(x);
    td_release(y);
}

TEST(a_failure_leaves_nothing) {
    const td_dispatcher d = {.call = refuse};
    td_tensor *x = matrix(false), *y = NULL;
    td_modes before = put_in_force(&d);
    CHECK_INT(TD_APPLY(&y, sin, TD_T(x)), TD_EVALUE);
    td_set_modes(before);
    CHECK(y == NULL);
    CHECK_STR(td_error_message(), "not now");
    CHECK_INT(x->refs, 1);
    td_release(x);
}

/* ---- what is inferred ---- */

TEST(a_call_is_inferred_without_being_made) {
    td_tensor *x = matrix(true), *half = NULL;
    const unsigned version = td_tensor_version(x);
    CHECK_INT(TD_APPLY(&half, to, TD_T(x), TD_DTYPE(TD_F16)), TD_OK);
    td_value args[TD_MAX_PARAMS] = {TD_T(half), TD_T(x), TD_I(1)};
    td_call call = {.op = TD_OP(add), .args = args};
    CHECK_INT(td_op_infer(&call), TD_OK);
    td_tensor *y = call.out[0];
    CHECK_INT(y->dtype, TD_F32);
    CHECK_INT(y->ndim, 2);
    CHECK_INT(td_tensor_device(y).type, TD_META);
    CHECK_INT(td_device_real(td_tensor_device(y)).type, TD_CPU);
    CHECK_STR(td_device_name(td_tensor_device(y)), "cpu");
    CHECK(!td_has_elements(y) && !y->requires_grad);
    td_value more[TD_MAX_PARAMS] = {TD_T(y), TD_T(x)}; /* a result takes part in the next */
    td_call next = {.op = TD_OP(matmul), .args = more};
    CHECK_INT(td_op_infer(&next), TD_OK);
    CHECK_INT(next.out[0]->sizes[1], 3);
    td_call inplace = {.op = TD_OP(add),
                       .args = (td_value[TD_MAX_PARAMS]){TD_T(half), TD_F(1), TD_I(1)}};
    inplace.inplace = true;
    inplace.given = &half;
    inplace.ngiven = 1;
    CHECK_INT(td_op_infer(&inplace), TD_OK);
    CHECK_INT(inplace.out[0]->dtype, TD_F16);
    CHECK_INT(td_tensor_version(half), 0);
    CHECK_INT(td_tensor_version(x), version);
    td_release(inplace.out[0]);
    td_release(next.out[0]);
    td_release(y);
    td_release(half);
    td_release(x);
}

TEST(what_can_not_be_inferred_says_so) {
    td_tensor *x = matrix(false);
    td_value args[TD_MAX_PARAMS] = {TD_T(x), TD_B(false)};
    td_call call = {.op = TD_OP(nonzero), .args = args};
    CHECK_INT(td_op_infer(&call), TD_EDEVICE);
    CHECK(TD_OP(nonzero)->flags & TD_OP_BY_ELEMENTS);
    td_call wrong = {.op = TD_OP(matmul), .args = args};
    td_tensor *row = NULL;
    CHECK_INT(TD_APPLY(&row, ones, TD_INTS(1, ((int64_t[]){4}))), TD_OK);
    wrong.args = (td_value[TD_MAX_PARAMS]){TD_T(x), TD_T(row)};
    CHECK_INT(td_op_infer(&wrong), TD_ESHAPE);
    td_release(row);
    td_release(x);
}

int main(void) {
    CHECK_INT(td_init(), TD_OK);
    RUN(a_call_comes_before_those_that_it_makes);
    RUN(a_composite_is_one_call_where_nobody_looks_inside);
    RUN(calls_over_lists_come_one_by_one);
    RUN(backward_comes_call_by_call);
    RUN(another_operator_may_take_its_place);
    RUN(a_failure_leaves_nothing);
    RUN(a_call_is_inferred_without_being_made);
    RUN(what_can_not_be_inferred_says_so);
    return check_finish();
}
