/* test_ops_script_later.c: functions of large graphs, whose specialisations and gradients another
 * thread makes: nobody waits for it, values are the same bits before and behind, and functions may
 * go, processes fork and threads call meanwhile. Nothing here looks at a clock.
 */
#include "engine/autograd/autograd.h"
#include "engine/core/observer.h"
#include "engine/core/poison.h"
#include "engine/ops/op.h"
#include "engine/script/later.h"
#include "engine/script/scripted.h"
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const char text[] = "graph(%x : Tensor, %y : Tensor):\n"
                           "  %n : int = prim::Constant[value=50]()\n"
                           "  %t : bool = prim::Constant[value=1]()\n"
                           "  %one : int = prim::Constant[value=1]()\n"
                           "  %z : Tensor = prim::Loop(%n, %t, %x)\n"
                           "    block0(%k : int, %a : Tensor):\n"
                           "      %b : Tensor = aten::mul(%a, %y)\n"
                           "      %c : Tensor = aten::add(%b, %x, %one)\n"
                           "      %d : Tensor = aten::tanh(%c)\n"
                           "      -> (%t, %d)\n"
                           "  return (%z)\n";

static td_scripted *make_function(void) {
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    if (td_ir_parse(text, &g) || td_scripted_new(g, "large", &f))
        check_fail(__FILE__, __LINE__, "%s", td_error_message());
    td_ir_graph_release(g);
    return f;
}

static td_tensor *filled(int64_t n, float value) {
    td_tensor *x = NULL;
    if (td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x))
        return NULL;
    for (int64_t k = 0; k < n; k++)
        ((float *)x->data)[k] = value + (float)k / 64;
    return x;
}

static td_tensor *call(td_scripted *f, td_tensor *x, td_tensor *y) {
    td_value out = TD_NIL, inputs[2] = {TD_T(x), TD_T(y)};
    CHECK_INT(td_scripted_call(f, inputs, &out), TD_OK);
    return td_arg_tensor(out);
}

/* As the graph gives it that was written, bit for bit? */
static void check_call(td_scripted *f, td_scripted *eager, int64_t n) {
    td_tensor *x = filled(n, 0.25F), *y = filled(n, 0.5F);
    td_tensor *a = call(f, x, y), *b = call(eager, x, y);
    CHECK(a && b && a->numel == n && !memcmp(a->data, b->data, (size_t)n * sizeof(float)));
    td_release(a);
    td_release(b);
    td_release(x);
    td_release(y);
}

/* ---- who works ---- */

static int loads, others; /* events on this thread */

static void count(void *ctx, const td_event *event) {
    (void)ctx;
    loads += event->kind == TD_EVENT_LOAD && strcmp(event->name, "first touch of memory") != 0;
    others += event->kind == TD_EVENT_OP;
}

static void ignore(void *ctx, const td_event *event) {
    (void)ctx;
    (void)event;
}

static td_observer counter = {.kinds = 1u << TD_EVENT_LOAD | 1u << TD_EVENT_OP,
                              .begin = count,
                              .end = ignore,
                              .instant = ignore};

TEST(callers_of_large_graphs_never_run_the_passes) {
    td_scripted *f = make_function(), *eager = make_function();
    REQUIRE(f && eager);
    td_scripted_set_eager(eager, true);
    td_observer *before = td_observer_set(&counter);
    loads = others = 0;
    for (int64_t k = 1; k <= 300; k++) {
        check_call(f, eager, 1 + k * 7919 % 97);
        if (k % 100 == 0)
            td_later_finish();
    }
    CHECK_INT(loads, 0);
    td_observer_set(before);
    int64_t calls, ns, all = 0;
    CHECK_INT(td_scripted_nspecialisations(f), 2);
    for (int k = 0; k < 2; k++) {
        td_scripted_statistics(f, k, &calls, &ns);
        CHECK(ns > 0);
        all += calls;
    }
    CHECK(all >= 100); /* all behind the second wait */
    td_scripted_release(f);
    td_scripted_release(eager);
}

TEST(where_it_is_asked_for_now_callers_run_them) {
    td_scripted *f = make_function(), *eager = make_function();
    REQUIRE(f && eager);
    td_scripted_set_eager(eager, true);
    td_later_set(false);
    td_observer *before = td_observer_set(&counter);
    loads = 0;
    check_call(f, eager, 5);
    CHECK_INT(loads, 1);
    td_observer_set(before);
    CHECK_INT(td_scripted_nspecialisations(f), 1);
    td_later_set(true);
    td_scripted_release(f);
    td_scripted_release(eager);
}

/* ---- gradients ---- */

static td_tensor *gradient_of(td_scripted *f, int64_t n) {
    td_tensor *x = filled(n, 0.25F), *y = filled(n, 0.5F), *sum = NULL, *gradient = NULL;
    CHECK_INT(td_set_requires_grad(x, true), TD_OK);
    td_tensor *z = call(f, x, y);
    CHECK_INT(TD_APPLY(&sum, sum, TD_T(z)), TD_OK);
    CHECK_INT(td_backward(1, &sum, NULL, (td_backward_options){0}), TD_OK);
    gradient = td_retain(td_get_grad(x));
    td_release(sum);
    td_release(z);
    td_release(x);
    td_release(y);
    return gradient;
}

static void check_gradient(td_scripted *f, td_scripted *eager, int64_t n) {
    td_tensor *a = gradient_of(f, n), *b = gradient_of(eager, n);
    CHECK(a && b && !memcmp(a->data, b->data, (size_t)n * sizeof(float)));
    td_release(a);
    td_release(b);
}

TEST(nor_do_they_derive_gradients) {
    td_scripted *f = make_function(), *eager = make_function();
    REQUIRE(f && eager);
    td_scripted_set_eager(eager, true);
    td_observer *before = td_observer_set(&counter);
    loads = 0;
    for (int round = 0; round < 3; round++) {
        for (int64_t n = 5; n < 8; n++)
            check_gradient(f, eager, n);
        td_later_finish();
    }
    CHECK_INT(loads, 0);
    td_observer_set(before);
    char *why = td_scripted_why(f);
    CHECK_CONTAINS(why, "backward is a graph for");
    td_free(why);
    td_scripted_release(f);
    td_scripted_release(eager);
}

/* ---- functions that go, processes that fork, threads ---- */

TEST(a_function_may_go_while_it_is_specialised) {
    for (int k = 0; k < 60; k++) {
        td_scripted *f = make_function();
        REQUIRE(f != NULL);
        td_tensor *x = filled(8, 0.25F), *y = filled(8, 0.5F);
        if (k % 2)
            CHECK_INT(td_set_requires_grad(x, true), TD_OK);
        td_release(call(f, x, y));
        td_release(x);
        td_release(y);
        if (k % 3 == 0)
            usleep((useconds_t)(k % 10) * 50);
        td_scripted_release(f);
    }
    td_later_finish();
}

TEST(a_child_makes_what_was_being_made) {
    for (int k = 0; k < 8; k++) {
        td_scripted *f = make_function(), *eager = make_function(), *other = make_function();
        REQUIRE(f && eager && other);
        td_scripted_set_eager(eager, true);
        check_call(f, eager, 9);
        if (TD_SANITIZED) /* whose allocator a fork may leave locked by a thread that the child has
                             not */
            td_later_finish();
        pid_t child = fork();
        if (child == 0) {
            check_call(other, eager, 9); /* wakes a thread of the child's own */
            td_later_finish();
            check_call(f, eager, 9);
            int made = td_scripted_nspecialisations(f) + td_scripted_nspecialisations(other);
            td_scripted_release(other);
            td_scripted_release(f);
            _exit(made == 2 ? 0 : 1);
        }
        int how = -1;
        REQUIRE(child > 0 && waitpid(child, &how, 0) == child);
        CHECK_INT(how, 0);
        td_later_finish();
        CHECK_INT(td_scripted_nspecialisations(f), 1);
        td_scripted_release(f);
        td_scripted_release(eager);
        td_scripted_release(other);
    }
}

typedef struct both {
    td_scripted *f, *eager;
} both;

static void *call_often(void *ctx) {
    const both *b = ctx;
    for (int64_t k = 0; k < 60; k++)
        check_call(b->f, b->eager, 1 + k % 7);
    return NULL;
}

TEST(eight_threads_call_while_it_is_specialised) {
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    both b = {make_function(), make_function()};
    REQUIRE(b.f && b.eager);
    td_scripted_set_eager(b.eager, true);
    for (int k = 0; k < THREADS; k++)
        REQUIRE(pthread_create(&threads[k], NULL, call_often, &b) == 0);
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    td_later_finish();
    CHECK(td_scripted_nspecialisations(b.f) <= 2);
    td_scripted_release(b.f);
    td_scripted_release(b.eager);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    td_later_set(true);
    RUN(callers_of_large_graphs_never_run_the_passes);
    RUN(where_it_is_asked_for_now_callers_run_them);
    RUN(nor_do_they_derive_gradients);
    RUN(a_function_may_go_while_it_is_specialised);
    RUN(a_child_makes_what_was_being_made);
    RUN(eight_threads_call_while_it_is_specialised);
    return check_finish();
}
