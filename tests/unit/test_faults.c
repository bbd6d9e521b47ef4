/* test_faults.c: work of every family with each allocation failing in turn: an error that says so,
 * and nothing left behind. */
#include "engine/td.h"

#include "tests/check.h"

typedef td_status (*work_fn)(void);

static td_status leaf(int ndim, const int64_t *sizes, td_tensor **out) {
    td_status status = TD_APPLY(out, ones, TD_INTS(ndim, sizes));
    if (status == TD_OK)
        status = td_set_requires_grad(*out, true);
    return status;
}

/* Sum y, go backward, and let go of everything. */
static td_status finish(td_status status, td_tensor *x, td_tensor *y) {
    td_tensor *sum = NULL;
    if (status == TD_OK)
        status = TD_APPLY(&sum, sum, TD_T(y));
    if (status == TD_OK)
        status = td_backward(1, &sum, NULL, (td_backward_options){0});
    td_release(sum);
    td_release(y);
    td_release(x);
    return status;
}

static td_status pointwise_and_shape(void) {
    td_tensor *x = NULL, *row = NULL, *y = NULL, *z = NULL;
    td_status status = leaf(2, (int64_t[]){30, 40}, &x);
    if (status == TD_OK)
        status = TD_APPLY(&row, select, TD_T(x), TD_I(0), TD_I(2));
    if (status == TD_OK)
        status = TD_APPLY(&y, mul, TD_T(x), TD_T(row));
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(tanh, TD_T(y));
    if (status == TD_OK)
        status = TD_APPLY(&z, cat, TD_TENSORS(2, ((td_tensor *[]){y, x})), TD_I(1));
    td_release(row);
    td_release(y);
    return finish(status, x, z);
}

static td_status products(void) {
    td_tensor *x = NULL, *turned = NULL, *y = NULL;
    td_status status = leaf(3, (int64_t[]){2, 40, 30}, &x);
    if (status == TD_OK)
        status = TD_APPLY(&turned, transpose, TD_T(x), TD_I(1), TD_I(2));
    if (status == TD_OK)
        status = TD_APPLY(&y, matmul, TD_T(x), TD_T(turned));
    td_release(turned);
    return finish(status, x, y);
}

static td_status convolution(void) {
    td_tensor *x = NULL, *weight = NULL, *y = NULL, *z[2] = {NULL, NULL}; /* and no places */
    td_status status = leaf(4, (int64_t[]){2, 3, 8, 8}, &x);
    if (status == TD_OK)
        status = TD_APPLY(&weight, ones, TD_INTS(4, ((int64_t[]){4, 3, 3, 3})));
    if (status == TD_OK)
        status = TD_APPLY(&y, conv2d, TD_T(x), TD_T(weight));
    if (status == TD_OK)
        status = TD_APPLY(z, max_pool2d, TD_T(y), TD_INTS(2, ((int64_t[]){2, 2})));
    td_release(weight);
    td_release(y);
    return finish(status, x, z[0]);
}

static td_status indexing(void) {
    td_tensor *x = NULL, *y = NULL, *mask = NULL, *z = NULL;
    td_status status = leaf(2, (int64_t[]){30, 40}, &x);
    if (status == TD_OK)
        status = TD_APPLY(&mask, gt, TD_T(x), TD_F(0.5));
    if (status == TD_OK)
        status = TD_APPLY(&y, advanced_index, TD_T(x), TD_TENSORS(1, &mask));
    if (status == TD_OK)
        status = TD_APPLY(&z, softmax, TD_T(y), TD_I(0));
    td_release(mask);
    td_release(y);
    return finish(status, x, z);
}

static td_status lists(void) {
    td_tensor *x = NULL, *y = NULL;
    const td_op *split = td_op_find("split");
    td_value args[] = {TD_NIL, TD_INTS(1, ((int64_t[]){7})), TD_I(0)};
    td_call call = {.op = split, .args = args};
    td_status status = leaf(1, (int64_t[]){30}, &x);
    args[0] = x ? TD_T(x) : TD_NIL;
    if (status == TD_OK)
        status = td_op_call(&call);
    if (status == TD_OK)
        status = TD_APPLY(&y, cat, TD_TENSORS(call.nlist, call.list), TD_I(0));
    for (int k = 0; k < call.nlist; k++)
        td_release(call.list[k]);
    td_free(call.list);
    return finish(status, x, y);
}

/* Fail the first allocation, the second, ... until the work gets through. */
static void try_every_failure(work_fn work) {
    int64_t before = td_memory_allocated(TD_DEVICE_CPU), failures = 0;
    if (!CHECK_INT(work(), TD_OK))
        return;
    for (int64_t n = 1; n < 2000; n++) {
        td_memory_fail_after(n);
        td_status status = work();
        td_memory_fail_after(0);
        CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), before);
        if (status == TD_OK)
            break;
        CHECK_INT(status, TD_ENOMEM);
        CHECK_CONTAINS(td_error_message(), "out of memory");
        failures++;
    }
    CHECK(failures > 5);
    CHECK_INT(work(), TD_OK);
}

TEST(pointwise_and_shape_survive_failing_allocations) {
    try_every_failure(pointwise_and_shape);
}
TEST(products_survive_failing_allocations) {
    try_every_failure(products);
}
TEST(convolution_survives_failing_allocations) {
    try_every_failure(convolution);
}
TEST(indexing_survives_failing_allocations) {
    try_every_failure(indexing);
}
TEST(lists_survive_failing_allocations) {
    try_every_failure(lists);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(pointwise_and_shape_survive_failing_allocations);
    RUN(products_survive_failing_allocations);
    RUN(convolution_survives_failing_allocations);
    RUN(indexing_survives_failing_allocations);
    RUN(lists_survive_failing_allocations);
    return check_finish();
}
