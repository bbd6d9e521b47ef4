/* test_function.c: functions with a gradient of their own, hooks and keepers of saved tensors, used
 * from C: the example of engine/autograd/function.h, and what those headers promise. */
#include "engine/td.h"

#include "tests/check.h"

static bool OK(td_status status) {
    if (status)
        fprintf(stderr, "%s\n", td_error_message());
    return status == TD_OK;
}

static td_tensor *leaf(double value) {
    int64_t n = 2;
    td_tensor *x = NULL;
    if (TD_APPLY(&x, full, TD_INTS(1, &n), TD_F(value)) || td_set_requires_grad(x, true))
        return NULL;
    return x;
}

static float first(const td_tensor *x) {
    return x ? *(const float *)x->data : -1;
}

/* ---- the example of the header ---- */

static td_status scale_backward(td_function *f, void *data, td_tensor *const *gout,
                                td_tensor **in) {
    (void)f;
    return TD_APPLY(&in[0], mul, TD_T(gout[0]), TD_F(*(double *)data));
}
static const td_function_class scale_class = {"ScaleBackward", scale_backward, td_free};

static td_status scale(td_tensor *x, double factor, td_tensor **y) {
    double *data = td_malloc(sizeof *data);
    if (!data)
        return td_fail(TD_ENOMEM, "out of memory");
    *data = factor;
    td_function *f;
    td_status status = td_function_begin(&scale_class, data, 1, &x, &f);
    if (status)
        return status;
    bool before = td_set_grad_enabled(false);
    status = TD_APPLY(y, mul, TD_T(x), TD_F(factor));
    td_set_grad_enabled(before);
    if (status == TD_OK)
        return td_function_end(f, 1, y);
    td_function_drop(f);
    return status;
}

TEST(a_function_in_c_has_a_gradient_of_its_own) {
    td_tensor *x = leaf(2), *y = NULL, *ones = NULL, *g = NULL;
    REQUIRE(x && OK(scale(x, 5, &y)));
    CHECK_STR(td_grad_fn_name(y), "ScaleBackward");
    REQUIRE(OK(TD_APPLY(&ones, ones_like, TD_T(y))));
    REQUIRE(OK(td_autograd_grad(1, &y, &ones, 1, &x, (td_backward_options){.create_graph = true},
                                false, &g)));
    CHECK(first(g) == 5);
    td_release(g);
    td_release(y);
    y = NULL;
    REQUIRE(OK(td_set_requires_grad(x, false)));
    REQUIRE(OK(scale(x, 5, &y)));
    CHECK(!y->requires_grad && first(y) == 10);
    td_release(y);
    td_release(ones);
    td_release(x);
}

/* ---- out of memory at any place ---- */

TEST(a_function_that_finds_no_memory_leaves_nothing) {
    int failures = 0;
    for (int64_t n = 1; n < 100; n++) {
        td_tensor *x = leaf(2), *y = NULL, *g = NULL;
        REQUIRE(x != NULL);
        td_memory_fail_after(n);
        td_status status = scale(x, 5, &y);
        if (status == TD_OK) {
            td_tensor *sum = NULL;
            status = TD_APPLY(&sum, sum, TD_T(y));
            if (status == TD_OK)
                status =
                    td_autograd_grad(1, &sum, NULL, 1, &x, (td_backward_options){0}, false, &g);
            td_release(sum);
        }
        td_memory_fail_after(0);
        CHECK(status == TD_OK || status == TD_ENOMEM);
        CHECK(status != TD_OK || first(g) == 5);
        failures += status != TD_OK;
        td_release(g);
        td_release(y);
        td_release(x);
        if (status == TD_OK)
            break;
    }
    CHECK(failures >= 5);
}

/* ---- saved tensors ---- */

/* y = x * x, by its saved output and input: dy/dx = 2 y / x. */
static td_status square_backward(td_function *f, void *data, td_tensor *const *gout,
                                 td_tensor **in) {
    td_tensor *x = NULL, *y = NULL, *q = NULL, *d = NULL;
    td_status status = TD_OK;
    (void)data;
    TD_TRY(td_function_saved(f, 0, &x));
    TD_TRY(td_function_saved(f, 1, &y));
    TD_TRY(TD_APPLY(&q, div, TD_T(y), TD_T(x)));
    TD_TRY(TD_APPLY(&d, mul, TD_T(q), TD_F(2)));
    TD_TRY(TD_APPLY(&in[0], mul, TD_T(d), TD_T(gout[0])));
done:
    td_release(x);
    td_release(y);
    td_release(q);
    td_release(d);
    return status;
}
static const td_function_class square_class = {"SquareBackward", square_backward, NULL};

static td_status square(td_tensor *x, td_tensor **y) {
    td_function *f;
    td_status status = td_function_begin(&square_class, NULL, 1, &x, &f);
    if (status)
        return status;
    bool before = td_set_grad_enabled(false);
    status = TD_APPLY(y, mul, TD_T(x), TD_T(x));
    td_set_grad_enabled(before);
    if (status == TD_OK)
        status = td_function_save(f, 2, (td_tensor *[]){x, *y});
    if (status == TD_OK)
        return td_function_end(f, 1, y);
    td_function_drop(f);
    return status;
}

TEST(saved_inputs_and_outputs_can_be_differentiated) {
    td_tensor *x = leaf(3), *h = NULL, *y = NULL, *sum = NULL, *g = NULL, *g2 = NULL, *gsum = NULL;
    REQUIRE(x && OK(TD_APPLY(&h, mul, TD_T(x), TD_F(1))) && OK(square(h, &y)));
    REQUIRE(OK(TD_APPLY(&sum, sum, TD_T(y))));
    REQUIRE(OK(td_autograd_grad(1, &sum, NULL, 1, &x, (td_backward_options){.create_graph = true},
                                false, &g)));
    CHECK(first(g) == 6);
    REQUIRE(OK(TD_APPLY(&gsum, sum, TD_T(g))));
    REQUIRE(OK(td_autograd_grad(1, &gsum, NULL, 1, &x, (td_backward_options){0}, false, &g2)));
    CHECK(fabsf(first(g2) - 2) < 1e-5f);
    td_tensor *all[] = {x, h, y, sum, g, g2, gsum};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        td_release(all[k]);
}

TEST(what_was_saved_is_gone_after_a_backward) {
    td_tensor *x = leaf(3), *y = NULL, *ones = NULL;
    REQUIRE(x && OK(square(x, &y)) && OK(TD_APPLY(&ones, ones_like, TD_T(y))));
    REQUIRE(OK(td_backward(1, &y, &ones, (td_backward_options){0})));
    CHECK_INT(td_backward(1, &y, &ones, (td_backward_options){0}), TD_EAUTOGRAD);
    CHECK(strstr(td_error_message(), "(SquareBackward)") != NULL);
    CHECK_INT(atomic_load(&x->refs), 2); /* ours, and the node's edge */
    td_release(ones);
    td_release(y);
    CHECK_INT(atomic_load(&x->refs), 1);
    td_release(x);
}

/* ---- hooks ---- */

typedef struct seen {
    int calls, destroyed;
} seen;

static td_status double_it(void *payload, const td_hook_call *call) {
    ((seen *)payload)->calls++;
    return TD_APPLY(&call->replacements[0], mul, TD_T(call->values[0]), TD_F(2));
}
static td_status refuse(void *payload, const td_hook_call *call) {
    (void)call;
    ((seen *)payload)->calls++;
    return td_fail(TD_EVALUE, "not this one");
}
static void count_destroyed(void *payload) {
    ((seen *)payload)->destroyed++;
}

TEST(hooks_replace_gradients_and_go_with_their_tensor) {
    static const td_hook_class doubling = {double_it, count_destroyed};
    static const td_hook_class refusing = {refuse, count_destroyed};
    td_tensor *x = leaf(3), *y = NULL, *sum = NULL;
    seen on_x = {0}, on_y = {0};
    td_hook *hx, *hy;
    td_backward_options keep = {.retain_graph = true};
    REQUIRE(x && OK(TD_APPLY(&y, mul, TD_T(x), TD_F(1))) && OK(TD_APPLY(&sum, sum, TD_T(y))));
    REQUIRE(OK(td_hook_gradient(x, &doubling, &on_x, &hx)));
    REQUIRE(OK(td_hook_gradient(y, &refusing, &on_y, &hy)));
    CHECK_INT(td_backward(1, &sum, NULL, keep), TD_EVALUE);
    CHECK_STR(td_error_message(), "backward: not this one");
    CHECK(td_get_grad(x) == NULL);
    td_hook_remove(hy);
    CHECK_INT(on_y.destroyed, 0);
    td_hook_release(hy);
    CHECK_INT(on_y.destroyed, 1);
    REQUIRE(OK(td_backward(1, &sum, NULL, keep)));
    CHECK(first(td_get_grad(x)) == 2);
    CHECK_INT(on_x.calls, 1);
    td_hook_release(hx);
    CHECK_INT(on_x.destroyed, 0);
    td_release(sum);
    td_release(y);
    td_release(x);
    CHECK_INT(on_x.destroyed, 1);
}

TEST(a_hook_where_there_can_be_none_is_destroyed) {
    static const td_hook_class doubling = {double_it, count_destroyed};
    int64_t n = 2;
    td_tensor *x = NULL;
    seen s = {0};
    td_hook *h;
    REQUIRE(OK(TD_APPLY(&x, full, TD_INTS(1, &n), TD_F(1))));
    CHECK_INT(td_hook_gradient(x, &doubling, &s, &h), TD_EAUTOGRAD);
    CHECK_INT(td_hook_accumulated(x, &doubling, &s, &h), TD_EAUTOGRAD);
    CHECK_INT(s.destroyed, 2);
    td_release(x);
}

/* ---- keepers ---- */

static int packs, unpacks, drops;

static td_status keep_it(void *ctx, td_tensor *x, void **packed) {
    (void)ctx;
    packs++;
    return TD_APPLY((td_tensor **)packed, clone, TD_T(x));
}
static td_status give_it(void *packed, td_tensor **out) {
    unpacks++;
    *out = td_retain(packed);
    return TD_OK;
}
static void drop_it(void *packed) {
    drops++;
    td_release(packed);
}

TEST(a_keeper_has_what_nodes_save) {
    static const td_keeper keeper = {keep_it, give_it, drop_it, NULL};
    td_tensor *x = leaf(3), *y = NULL, *z = NULL, *sum = NULL;
    td_modes modes = td_get_modes();
    modes.keeper = &keeper;
    td_modes before = td_set_modes(modes);
    REQUIRE(x && OK(TD_APPLY(&y, exp, TD_T(x))) && OK(square(y, &z)));
    td_set_modes(before);
    CHECK_INT(packs, 3); /* exp's result; square's input and output */
    REQUIRE(OK(TD_APPLY(&sum, sum, TD_T(z))));
    REQUIRE(OK(td_backward(1, &sum, NULL, (td_backward_options){0})));
    CHECK_INT(unpacks, 3);
    CHECK_INT(drops, 3);
    CHECK(fabsf(first(td_get_grad(x)) / (2 * expf(6)) - 1) < 1e-5f);
    td_release(sum);
    td_release(z);
    td_release(y);
    td_release(x);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(a_function_in_c_has_a_gradient_of_its_own);
    RUN(a_function_that_finds_no_memory_leaves_nothing);
    RUN(saved_inputs_and_outputs_can_be_differentiated);
    RUN(what_was_saved_is_gone_after_a_backward);
    RUN(hooks_replace_gradients_and_go_with_their_tensor);
    RUN(a_hook_where_there_can_be_none_is_destroyed);
    RUN(a_keeper_has_what_nodes_save);
    return check_finish();
}
