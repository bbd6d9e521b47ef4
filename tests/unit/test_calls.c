/* test_calls.c: the life of a call: what has happened when something fails, what an observer is
 * told, what history holds on to. */
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>

static td_tensor *filled(int64_t n, double value, bool requires_grad) {
    td_tensor *x = NULL;
    if (TD_APPLY(&x, full, TD_INTS(1, &n), TD_F(value)))
        return NULL;
    if (requires_grad && td_set_requires_grad(x, true))
        return NULL;
    return x;
}

static float first(const td_tensor *x) {
    return *(const float *)x->data;
}

/* ---- failing half way ---- */

/* In place with history, through a view or not; the n-th allocation fails. */
static td_status write_once(bool through_view, td_tensor **target, td_tensor **factor) {
    td_tensor *leaf = filled(100, 3, true), *view = NULL;
    td_status status = leaf ? TD_APPLY(target, mul, TD_T(leaf), TD_F(1)) : TD_ENOMEM;
    *factor = filled(100, 2, true);
    if (status == TD_OK && through_view)
        status = TD_APPLY(&view, slice, TD_T(*target), TD_I(0), TD_I(0), TD_I(100), TD_I(1));
    td_release(leaf);
    if (view) {
        td_release(*target);
        *target = view;
    }
    return *factor ? status : TD_ENOMEM;
}

static void never_half_written(bool through_view) {
    int failures = 0;
    for (int64_t n = 1; n < 200; n++) {
        td_tensor *target = NULL, *factor = NULL;
        REQUIRE(write_once(through_view, &target, &factor) == TD_OK);
        unsigned version = td_tensor_version(target);
        td_memory_fail_after(n);
        td_status status = TD_APPLY_INPLACE(mul, TD_T(target), TD_T(factor));
        td_memory_fail_after(0);
        CHECK_INT((int64_t)first(target), status ? 3 : 6);
        CHECK_INT(td_tensor_version(target), version + (status ? 0 : 1));
        if (status) {
            failures++;
            CHECK_INT(TD_APPLY_INPLACE(mul, TD_T(target), TD_T(factor)), TD_OK);
            CHECK_INT((int64_t)first(target), 6);
        }
        td_release(target);
        td_release(factor);
        if (status == TD_OK)
            break;
    }
    CHECK(failures >= 2);
}

TEST(a_write_that_runs_out_of_memory_can_be_made_again) {
    never_half_written(false);
    never_half_written(true);
}

TEST(a_failed_write_leaves_history_as_it_was) {
    td_tensor *target = NULL, *factor = NULL;
    REQUIRE(write_once(false, &target, &factor) == TD_OK);
    CHECK_STR(td_grad_fn_name(target), "MulBackward");
    td_memory_fail_after(1);
    CHECK_INT(TD_APPLY_INPLACE(add, TD_T(target), TD_T(factor)), TD_ENOMEM);
    td_memory_fail_after(0);
    CHECK_STR(td_grad_fn_name(target), "MulBackward");
    td_release(target);
    td_release(factor);
}

/* ---- nothing holds itself ---- */

static void check_no_leak(td_status (*work)(td_tensor *x)) {
    td_tensor *warm = filled(100000, 1, true);
    CHECK_INT(work(warm), TD_OK);
    int64_t before = td_memory_allocated(TD_DEVICE_CPU);
    for (int k = 0; k < 5; k++)
        CHECK_INT(work(warm), TD_OK);
    CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), before);
    td_release(warm);
}

static td_status sin_in_place(td_tensor *x) {
    td_tensor *y;
    td_status status = TD_APPLY(&y, mul, TD_T(x), TD_F(1));
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(sin, TD_T(y));
    td_release(y);
    return status;
}

static td_status pow_through_a_view(td_tensor *x) {
    td_tensor *y, *view = NULL;
    td_status status = TD_APPLY(&y, mul, TD_T(x), TD_F(1));
    if (status == TD_OK)
        status = TD_APPLY(&view, slice, TD_T(y), TD_I(0), TD_I(5), TD_I(500), TD_I(1));
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(pow, TD_T(view), TD_F(3));
    td_release(view);
    td_release(y);
    return status;
}

static td_status product_of_views_in_place(td_tensor *x) {
    td_tensor *y, *a = NULL, *b = NULL;
    td_status status = TD_APPLY(&y, mul, TD_T(x), TD_F(1));
    if (status == TD_OK)
        status = TD_APPLY(&a, slice, TD_T(y), TD_I(0), TD_I(0), TD_I(50), TD_I(1));
    if (status == TD_OK)
        status = TD_APPLY(&b, slice, TD_T(y), TD_I(0), TD_I(50), TD_I(100), TD_I(1));
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(mul, TD_T(a), TD_T(b));
    td_release(a);
    td_release(b);
    td_release(y);
    return status;
}

TEST(writes_in_place_with_history_leak_nothing) {
    check_no_leak(sin_in_place);
    check_no_leak(pow_through_a_view);
    check_no_leak(product_of_views_in_place);
}

/* ---- what an observer is told ---- */

typedef struct told {
    uint64_t sequence, outer;
    td_status status;
    int results, depth;
    bool meddled;
} told;

static void *record_elsewhere(void *unused) {
    (void)unused;
    td_tensor *x = filled(2, 1, true), *y = NULL;
    for (int k = 0; k < 3; k++) {
        CHECK_INT(TD_APPLY(&y, sin, TD_T(x)), TD_OK);
        td_release(y);
    }
    td_release(x);
    return NULL;
}

static _Thread_local bool mine;

/* Between the beginning of a call and its node, another thread records. */
static void on_begin(void *ctx, const td_event *event) {
    told *t = ctx;
    if (!mine || t->meddled || strcmp(event->name, "mul"))
        return;
    t->meddled = true;
    pthread_t thread;
    if (pthread_create(&thread, NULL, record_elsewhere, NULL) == 0)
        pthread_join(thread, NULL);
}

static void on_end(void *ctx, const td_event *event) {
    told *t = ctx;
    if (!mine)
        return;
    if (event->kind == TD_EVENT_BACKWARD && !strcmp(event->name, "MulBackward"))
        t->outer = event->sequence;
    if (event->kind != TD_EVENT_OP || strcmp(event->name, "mul"))
        return;
    if (event->sequence)
        t->sequence = event->sequence;
    t->status = event->status;
    t->results += event->nresults == 1 && event->results[0] != NULL;
}

TEST(an_operator_ends_with_its_results_status_and_the_number_of_its_node) {
    told t = {0};
    td_observer observer = {.ctx = &t,
                            .kinds = 1u << TD_EVENT_OP | 1u << TD_EVENT_BACKWARD,
                            .begin = on_begin,
                            .end = on_end};
    td_tensor *x = filled(1, 3, true), *y = NULL, *wrong = filled(7, 1, false), *three = NULL;
    mine = true;
    td_observer_set(&observer);
    CHECK_INT(TD_APPLY(&y, mul, TD_T(x), TD_F(2)), TD_OK);
    CHECK(t.meddled);
    CHECK_INT(t.results, 1);
    CHECK_INT(t.status, TD_OK);
    CHECK_INT(td_backward(1, &y, NULL, (td_backward_options){0}), TD_OK);
    three = filled(3, 1, false);
    td_tensor *none = NULL;
    CHECK_INT(TD_APPLY(&none, mul, TD_T(wrong), TD_T(three)), TD_ESHAPE);
    td_observer_set(NULL);
    mine = false;
    CHECK_INT(t.status, TD_ESHAPE);
    CHECK(t.sequence != 0);
    CHECK_INT(t.outer, t.sequence);
    td_release(three);
    td_release(wrong);
    td_release(y);
    td_release(x);
}

/* ---- gradients ---- */

TEST(create_graph_gives_every_gradient_memory_of_its_own) {
    int64_t n = 3;
    td_tensor *x = filled(3, 1, true), *y = filled(3, 1, true), *sum = NULL, *g = NULL;
    REQUIRE(TD_APPLY(&sum, add, TD_T(x), TD_T(y)) == TD_OK);
    REQUIRE(TD_APPLY(&g, ones, TD_INTS(1, &n)) == TD_OK);
    td_backward_options options = {.create_graph = true};
    REQUIRE(td_backward(1, &sum, &g, options) == TD_OK);
    td_tensor *gx = td_get_grad(x), *gy = td_get_grad(y);
    REQUIRE(gx && gy);
    CHECK(gx->storage != gy->storage);
    CHECK(gx->storage != g->storage);
    CHECK(!td_tensor_overlaps(gx));
    CHECK_INT(TD_APPLY_INPLACE(zero_, TD_T(g)), TD_OK);
    CHECK_INT((int64_t)first(gx), 1);
    td_release(g);
    td_release(sum);
    td_release(x);
    td_release(y);
}

typedef struct order {
    const td_tensor *leaf;
    bool had_gradient;
} order;

/* Is the leaf's gradient there when the node behind the other branch runs? */
static void on_node(void *ctx, const td_event *event) {
    order *o = ctx;
    if (!strcmp(event->name, "SinBackward"))
        o->had_gradient = td_get_grad(o->leaf) != NULL;
}

static void ignore_end(void *ctx, const td_event *event) {
    (void)ctx;
    (void)event;
}

TEST(a_leaf_takes_its_gradient_when_its_last_edge_has_been_served) {
    td_tensor *early = filled(1, 1, true), *late = filled(1, 1, true);
    td_tensor *a = NULL, *b = NULL, *c = NULL;
    REQUIRE(TD_APPLY(&a, sin, TD_T(late)) == TD_OK);
    REQUIRE(TD_APPLY(&b, exp, TD_T(early)) == TD_OK);
    REQUIRE(TD_APPLY(&c, mul, TD_T(a), TD_T(b)) == TD_OK);
    order o = {.leaf = early};
    td_observer observer = {
        .ctx = &o, .kinds = 1u << TD_EVENT_BACKWARD, .begin = on_node, .end = ignore_end};
    td_observer_set(&observer);
    CHECK_INT(td_backward(1, &c, NULL, (td_backward_options){0}), TD_OK);
    td_observer_set(NULL);
    CHECK(o.had_gradient);
    CHECK(td_get_grad(late) != NULL);
    td_release(a);
    td_release(b);
    td_release(c);
    td_release(early);
    td_release(late);
}

/* ---- interrupts ---- */

TEST(a_write_that_is_cut_short_is_noticed_by_backward) {
    td_tensor *x = filled(1 << 20, 1, true), *y = NULL, *total = NULL;
    REQUIRE(x && TD_APPLY(&y, exp, TD_T(x)) == TD_OK && TD_APPLY(&total, sum, TD_T(y)) == TD_OK);
    td_tensor *alias = NULL;
    REQUIRE(td_tensor_alias(y, &alias) == TD_OK);
    unsigned version = td_tensor_version(y);
    td_interrupt_request();
    CHECK_INT(TD_APPLY_INPLACE(mul, TD_T(alias), TD_F(2)), TD_EINTR);
    td_interrupt_clear();
    CHECK_INT(td_tensor_version(y), version + 1);
    CHECK_INT(td_backward(1, &total, NULL, (td_backward_options){0}), TD_EAUTOGRAD);
    td_release(x);
    td_release(y);
    td_release(alias);
    td_release(total);
}

/* ---- layouts ---- */

static void destroy_nothing(td_extra *extra) {
    (void)extra;
}

TEST(operators_refuse_tensors_that_are_not_strided) {
    static const td_layout_traits boxed = {
        .name = "boxed", .noun = "boxed", .convert = "unbox", .destroy = destroy_nothing};
    static td_extra extra = {1, &boxed};
    td_tensor *x = filled(2, 1, false), *y = NULL;
    x->layout = TD_SPARSE_COO;
    x->extra = &extra;
    CHECK_INT(TD_APPLY(&y, exp, TD_T(x)), TD_ETYPE);
    CHECK_CONTAINS(td_error_message(), "exp: not for boxed tensors: give x:unbox() instead of x");
    td_release(x);
}

/* ---- interrupts that another state's hook has cleared before a call ends ---- */

static void request(void *ctx, const td_event *event) {
    (void)ctx, (void)event;
    td_interrupt_request();
}

static void clear(void *ctx, const td_event *event) {
    (void)ctx, (void)event;
    td_interrupt_clear();
}

TEST(a_call_within_which_an_interrupt_came_and_went_is_interrupted) {
    td_observer passing = {.kinds = 1u << TD_EVENT_KERNEL, .begin = request, .end = clear};
    td_tensor *x = filled(100, 1, false), *y = NULL;
    td_observer *before = td_observer_set(&passing);
    CHECK_INT(TD_APPLY(&y, cumsum, TD_T(x), TD_I(0)), TD_EINTR);
    CHECK(!y);
    td_observer_set(before);
    CHECK_INT(TD_APPLY(&y, cumsum, TD_T(x), TD_I(0)), TD_OK);
    td_release(y);
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(a_write_that_runs_out_of_memory_can_be_made_again);
    RUN(a_failed_write_leaves_history_as_it_was);
    RUN(writes_in_place_with_history_leak_nothing);
    RUN(an_operator_ends_with_its_results_status_and_the_number_of_its_node);
    RUN(create_graph_gives_every_gradient_memory_of_its_own);
    RUN(a_leaf_takes_its_gradient_when_its_last_edge_has_been_served);
    RUN(a_write_that_is_cut_short_is_noticed_by_backward);
    RUN(operators_refuse_tensors_that_are_not_strided);
    RUN(a_call_within_which_an_interrupt_came_and_went_is_interrupted);
    return check_finish();
}
