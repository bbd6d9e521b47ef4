/* test_function_autocast.c: functions of one's own in C under autocast: what amp.custom_fwd and
 * amp.custom_bwd do in Lua, by the means of engine/autograd/function.h and engine/calls/autocast.h.
 */
#include "engine/td.h"

#include "tests/check.h"

static bool OK(td_status status) {
    if (status)
        fprintf(stderr, "%s\n", td_error_message());
    return status == TD_OK;
}

/* A 2x2 matrix whose elements are `value`, a leaf. */
static td_tensor *leaf(double value, td_dtype dtype) {
    int64_t sizes[] = {2, 2};
    td_tensor *x = NULL;
    if (!OK(TD_APPLY(&x, full, TD_INTS(2, sizes), TD_F(value), TD_DTYPE(dtype))) ||
        !OK(td_set_requires_grad(x, true)))
        return NULL;
    return x;
}

static td_modes autocast(td_dtype dtype) {
    td_modes modes = td_get_modes();
    modes.casting = dtype != TD_DTYPE_NONE;
    modes.cast[td_autocast_slot(TD_DEVICE_CPU)] = modes.casting ? (uint8_t)dtype : 0;
    return td_set_modes(modes);
}

/* ---- y = x mm w ---- */

/* How its forward ran, and what dtypes its parts met. */
typedef struct product {
    td_dtype cast_inputs; /* TD_DTYPE_NONE: the inputs as they are, under what autocast holds */
    td_modes forward;
    td_dtype *made, *came, *went;
} product;

static td_status product_backward(td_function *f, void *data, td_tensor *const *gout,
                                  td_tensor **in) {
    product *p = data;
    td_modes before = td_get_modes(), as_forward = before;
    td_tensor *x = NULL, *w = NULL, *turned = NULL;
    td_status status = TD_OK;
    *p->came = (td_dtype)gout[0]->dtype;
    as_forward.casting = p->forward.casting;
    memcpy(as_forward.cast, p->forward.cast, sizeof as_forward.cast);
    td_set_modes(as_forward);
    TD_TRY(td_function_saved(f, 0, &x));
    TD_TRY(td_function_saved(f, 1, &w));
    TD_TRY(TD_APPLY(&turned, transpose, TD_T(w), TD_I(0), TD_I(1)));
    TD_TRY(TD_APPLY(&in[0], mm, TD_T(gout[0]), TD_T(turned)));
    *p->went = (td_dtype)in[0]->dtype;
    td_release(turned);
    turned = NULL;
    TD_TRY(TD_APPLY(&turned, transpose, TD_T(x), TD_I(0), TD_I(1)));
    TD_TRY(TD_APPLY(&in[1], mm, TD_T(turned), TD_T(gout[0])));
done:
    td_set_modes(before);
    td_release(x);
    td_release(w);
    td_release(turned);
    return status;
}
static const td_function_class product_class = {"ProductBackward", product_backward, td_free};

/* The inputs as the forward gets them, new references. */
static td_status cast(td_dtype dtype, int n, td_tensor *const *inputs, td_tensor **cast) {
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++)
        if (dtype == TD_DTYPE_NONE || inputs[k]->dtype == TD_F64)
            cast[k] = td_retain(inputs[k]);
        else
            status = TD_APPLY(&cast[k], to, TD_T(inputs[k]), TD_DTYPE(dtype));
    return status;
}

static td_status forward(td_function *f, const product *p, td_tensor *const *inputs,
                         td_tensor **y) {
    td_tensor *own[2] = {NULL, NULL};
    td_modes before = td_set_modes(p->forward);
    td_status status = TD_OK;
    TD_TRY(cast(p->cast_inputs, 2, inputs, own));
    TD_TRY(TD_APPLY(y, mm, TD_T(own[0]), TD_T(own[1])));
    *p->made = (td_dtype)(*y)->dtype;
    TD_TRY(td_function_save(f, 2, own));
done:
    td_set_modes(before);
    td_release(own[0]);
    td_release(own[1]);
    return status;
}

/* seen: dtypes of the output, of the gradient that came in, of the one that went out. */
static td_status multiply(td_tensor *x, td_tensor *w, td_dtype cast_inputs, td_dtype *seen,
                          td_tensor **y) {
    bool holds = td_autocast_dtype(TD_DEVICE_CPU) != TD_DTYPE_NONE;
    product *p = td_malloc(sizeof *p);
    td_tensor *inputs[] = {x, w};
    td_function *f;
    if (!p)
        return td_fail(TD_ENOMEM, "out of memory");
    *p = (product){.cast_inputs = holds ? cast_inputs : TD_DTYPE_NONE,
                   .forward = td_get_modes(),
                   .made = &seen[0],
                   .came = &seen[1],
                   .went = &seen[2]};
    p->forward.grad_disabled = true;
    p->forward.casting &= p->cast_inputs == TD_DTYPE_NONE;
    td_status status = td_function_begin(&product_class, p, 2, inputs, &f);
    if (status)
        return status;
    status = forward(f, p, inputs, y);
    if (status == TD_OK)
        return td_function_end(f, 1, y);
    td_function_drop(f);
    return status;
}

/* ---- tests ---- */

/* x mm w under autocast to `low`, its sum backwards outside of it: dtypes as they were seen, and
 * the gradients are those of a product by hand. */
static void check(td_dtype low, td_dtype cast_inputs, td_dtype own, const td_dtype *expected) {
    td_dtype seen[3] = {TD_DTYPE_NONE, TD_DTYPE_NONE, TD_DTYPE_NONE};
    td_tensor *x = leaf(2, own), *w = leaf(3, own), *y = NULL, *sum = NULL, *g[2] = {NULL, NULL};
    REQUIRE(x && w);
    td_modes before = autocast(low);
    bool made = OK(multiply(x, w, cast_inputs, seen, &y));
    td_set_modes(before);
    REQUIRE(made && OK(TD_APPLY(&sum, sum, TD_T(y))));
    REQUIRE(OK(td_autograd_grad(1, &sum, NULL, 2, (td_tensor *[]){x, w}, (td_backward_options){0},
                                false, g)));
    for (int k = 0; k < 3; k++)
        CHECK_STR(td_dtype_name(seen[k]), td_dtype_name(expected[k]));
    for (int k = 0; k < 2; k++) {
        CHECK_STR(td_dtype_name((td_dtype)g[k]->dtype), td_dtype_name(own));
        CHECK(td_load_double(own, g[k]->data) == (k == 0 ? 6 : 4));
    }
    td_tensor *all[] = {x, w, y, sum, g[0], g[1]};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        td_release(all[k]);
}

TEST(a_forward_that_casts_nothing_runs_under_autocast_and_so_does_its_backward) {
    check(TD_BF16, TD_DTYPE_NONE, TD_F32, (td_dtype[]){TD_BF16, TD_BF16, TD_BF16});
}

TEST(cast_inputs_are_computed_without_autocast_there_and_back) {
    check(TD_BF16, TD_F32, TD_F32, (td_dtype[]){TD_F32, TD_F32, TD_F32});
    check(TD_BF16, TD_F16, TD_F32, (td_dtype[]){TD_F16, TD_F16, TD_F16});
}

TEST(outside_autocast_and_for_float64_nothing_is_cast) {
    check(TD_DTYPE_NONE, TD_F16, TD_F32, (td_dtype[]){TD_F32, TD_F32, TD_F32});
    check(TD_BF16, TD_F32, TD_F64, (td_dtype[]){TD_F64, TD_F64, TD_F64});
    check(TD_BF16, TD_DTYPE_NONE, TD_F64, (td_dtype[]){TD_F64, TD_F64, TD_F64});
}

/* The gradient is of no matter: what it is made by, autocast would cast. */
static td_status any_backward(td_function *f, void *data, td_tensor *const *gout, td_tensor **in) {
    td_dtype *went = data;
    (void)f;
    td_status status = TD_APPLY(&in[0], mm, TD_T(gout[0]), TD_T(gout[0]));
    if (status == TD_OK)
        *went = (td_dtype)in[0]->dtype;
    return status;
}
static const td_function_class any_class = {"AnyBackward", any_backward, NULL};

TEST(a_backward_that_asks_for_nothing_runs_without_autocast) {
    td_dtype went = TD_DTYPE_NONE;
    td_tensor *x = leaf(2, TD_F32), *y = NULL, *sum = NULL, *g = NULL;
    td_function *f;
    REQUIRE(x && OK(td_function_begin(&any_class, &went, 1, &x, &f)));
    bool recorded = td_set_grad_enabled(false);
    bool made = OK(TD_APPLY(&y, sin, TD_T(x)));
    td_set_grad_enabled(recorded);
    REQUIRE(made && OK(td_function_end(f, 1, &y)) && OK(TD_APPLY(&sum, sum, TD_T(y))));
    td_modes before = autocast(TD_BF16);
    bool done = OK(td_autograd_grad(1, &sum, NULL, 1, &x, (td_backward_options){0}, false, &g));
    td_set_modes(before);
    CHECK(done);
    CHECK_STR(td_dtype_name(went), "float32");
    td_tensor *all[] = {x, y, sum, g};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        td_release(all[k]);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(a_forward_that_casts_nothing_runs_under_autocast_and_so_does_its_backward);
    RUN(cast_inputs_are_computed_without_autocast_there_and_back);
    RUN(outside_autocast_and_for_float64_nothing_is_cast);
    RUN(a_backward_that_asks_for_nothing_runs_without_autocast);
    return check_finish();
}
