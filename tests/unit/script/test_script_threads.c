/* test_script_threads.c: one function called by eight threads at once while its specialisations
 * are made, and forks: their values, errors, nesting, lists, and those that nobody waits for. */
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>

static td_scripted *make_function(const char *text) {
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    if (td_ir_parse(text, &g) || td_scripted_new(g, "test", &f))
        check_fail(__FILE__, __LINE__, "%s in\n%s", td_error_message(), text);
    td_ir_graph_release(g);
    return f;
}

static td_tensor *filled(int64_t n, float value) {
    td_tensor *x = NULL;
    if (td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x))
        return NULL;
    for (int64_t k = 0; k < n; k++)
        ((float *)x->data)[k] = value;
    return x;
}

/* ---- one function, many threads ---- */

enum { THREADS = 8, CALLS = 300 };

static const char square_sum[] = "graph(%x : Tensor, %n : int):\n"
                                 "  %t : bool = prim::Constant[value=1]()\n"
                                 "  %one : int = prim::Constant[value=1]()\n"
                                 "  %y : Tensor = prim::Loop(%n, %t, %x)\n"
                                 "    block0(%k : int, %a : Tensor):\n"
                                 "      %b : Tensor = aten::mul(%a, %x)\n"
                                 "      %c : Tensor = aten::add(%b, %x, %one)\n"
                                 "      -> (%t, %c)\n"
                                 "  return (%y)\n";

static void *call_often(void *function) {
    for (int k = 0; k < CALLS; k++) {
        td_tensor *x = filled(1 + k % 7, 0.5F);
        td_value out = TD_NIL, inputs[2] = {TD_T(x), TD_I(k % 4)};
        float wanted = 0.5F;
        for (int j = 0; j < k % 4; j++)
            wanted = wanted * 0.5F + 0.5F;
        CHECK_INT(td_scripted_call(function, inputs, &out), TD_OK);
        td_tensor *y = td_arg_tensor(out);
        CHECK(y && y->numel == 1 + k % 7 && ((float *)y->data)[y->numel - 1] == wanted);
        td_value_drop(&out);
        td_release(x);
    }
    return NULL;
}

TEST(eight_threads_call_one_function) {
    pthread_t threads[THREADS];
    int64_t calls = 0, all = 0, ns;
    td_scripted *f = make_function(square_sum);
    REQUIRE(f != NULL);
    for (int k = 0; k < THREADS; k++)
        REQUIRE(pthread_create(&threads[k], NULL, call_often, f) == 0);
    for (int k = 0; k < THREADS; k++)
        pthread_join(threads[k], NULL);
    for (int k = 0; k < td_scripted_nspecialisations(f); k++) {
        td_scripted_statistics(f, k, &calls, &ns);
        all += calls;
    }
    CHECK_INT(all, THREADS * CALLS);
    CHECK_INT(td_scripted_nspecialisations(f), 2);
    td_scripted_release(f);
}

/* ---- forks ---- */

/* n + (n - 1) + ... + 1, each addend by a fork within the fork before it. */
static const char nested[] = "graph(%n : int):\n"
                             "  %r : int = prim::CallFunction_0(%n)\n"
                             "  return (%r)\n"
                             "with prim::CallFunction_0 = graph(%n : int):\n"
                             "  %zero : int = prim::Constant[value=0]()\n"
                             "  %one : int = prim::Constant[value=1]()\n"
                             "  %more : bool = aten::gt(%n, %zero)\n"
                             "  %r : int = prim::If(%more)\n"
                             "    block0():\n"
                             "      %m : int = aten::sub(%n, %one)\n"
                             "      %f : Future(int) = prim::fork_0(%m)\n"
                             "      %s : int = aten::wait(%f)\n"
                             "      %t : int = aten::add(%s, %n)\n"
                             "      -> (%t)\n"
                             "    block1():\n"
                             "      -> (%zero)\n"
                             "  return (%r)\n";

TEST(forks_within_forks_end) {
    td_scripted *f = make_function(nested);
    REQUIRE(f != NULL);
    for (int64_t n = 0; n <= 400; n = 3 * n + 1) {
        td_value out = TD_NIL, input = TD_I(n);
        CHECK_INT(td_scripted_call(f, &input, &out), TD_OK);
        CHECK(out.kind == TD_KIND_INT && out.i == n * (n + 1) / 2);
    }
    td_scripted_release(f);
}

/* A chain of futures, each of which waits for the one before it; the last is waited for. */
TEST(futures_may_wait_for_futures) {
    enum { LENGTH = 300 };
    td_scripted *f = make_function("graph(%x : Any):\n"
                                   "  %w : Future(int) = prim::unchecked_cast(%x)\n"
                                   "  %n : int = aten::wait(%w)\n"
                                   "  %one : int = prim::Constant[value=1]()\n"
                                   "  %m : int = aten::add(%n, %one)\n"
                                   "  return (%m)\n");
    td_scripted *first = make_function("graph():\n"
                                       "  %one : int = prim::Constant[value=1]()\n"
                                       "  return (%one)\n");
    REQUIRE(f && first);
    td_value chain[LENGTH], out = TD_NIL;
    CHECK_INT(td_scripted_fork(first, NULL, &chain[0]), TD_OK);
    for (int k = 1; k < LENGTH; k++)
        CHECK_INT(td_scripted_fork(f, &chain[k - 1], &chain[k]), TD_OK);
    if (td_future_wait(chain[LENGTH - 1], &out))
        check_fail(__FILE__, __LINE__, "%s", td_error_message());
    CHECK(out.kind == TD_KIND_INT && out.i == LENGTH);
    for (int k = 0; k < LENGTH; k++)
        td_value_drop(&chain[k]);
    td_scripted_release(f);
    td_scripted_release(first);
}

TEST(errors_of_forks_arrive_where_they_are_waited_for) {
    td_scripted *f = make_function("graph(%s : str):\n"
                                   "  prim::RaiseException(%s) # far.lua:4:2\n"
                                   "  return (%s)\n");
    REQUIRE(f != NULL);
    td_value future = TD_NIL, out = TD_NIL, text = TD_STRING("gone wrong");
    CHECK_INT(td_scripted_fork(f, &text, &future), TD_OK);
    for (int k = 0; k < 2; k++) {
        CHECK_INT(td_future_wait(future, &out), TD_ESCRIPT);
        CHECK_STR(td_error_message(), "far.lua:4: gone wrong");
    }
    td_value_drop(&future);
    CHECK_INT(td_scripted_fork(f, &text, &future), TD_OK); /* and nobody waits */
    td_value_drop(&future);
    CHECK_INT(td_future_wait(TD_I(1), &out), TD_ETYPE);
    td_scripted_release(f);
}

/* A list that is written on both sides at once: each has its own. */
TEST(a_fork_has_lists_of_its_own) {
    static const char text[] = "graph(%n : int):\n"
                               "  %t : bool = prim::Constant[value=1]()\n"
                               "  %l : int[] = prim::ListConstruct()\n"
                               "  %f : Future(int[]) = prim::fork_0(%n, %l)\n"
                               "  prim::Loop(%n, %t)\n"
                               "    block0(%k : int):\n"
                               "      %m : int[] = aten::append(%l, %k)\n"
                               "      -> (%t)\n"
                               "  %w : int[] = aten::wait(%f)\n"
                               "  %j : int[] = aten::extend(%l, %w)\n"
                               "  %c : int = aten::len(%l)\n"
                               "  return (%c)\n"
                               "with prim::fork_0 = graph(%n : int, %l : int[]):\n"
                               "  %t : bool = prim::Constant[value=1]()\n"
                               "  prim::Loop(%n, %t)\n"
                               "    block0(%k : int):\n"
                               "      %m : int[] = aten::append(%l, %k)\n"
                               "      -> (%t)\n"
                               "  return (%l)\n";
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    td_value out = TD_NIL, n = TD_I(2000);
    CHECK_INT(td_scripted_call(f, &n, &out), TD_OK);
    CHECK(out.kind == TD_KIND_INT && out.i == 4000);
    td_scripted_release(f);
}

TEST(a_function_that_runs_elsewhere_outlives_its_release) {
    td_tensor *x = filled(64, 0.5F);
    for (int k = 0; k < 20; k++) {
        td_scripted *f = make_function(square_sum);
        REQUIRE(f != NULL);
        td_value future = TD_NIL, out = TD_NIL, inputs[2] = {TD_T(x), TD_I(50)};
        CHECK_INT(td_scripted_fork(f, inputs, &future), TD_OK);
        td_scripted_release(f);
        CHECK_INT(td_future_wait(future, &out), TD_OK);
        CHECK(td_arg_tensor(out) != NULL);
        td_value_drop(&out);
        td_value_drop(&future);
    }
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(eight_threads_call_one_function);
    RUN(forks_within_forks_end);
    RUN(futures_may_wait_for_futures);
    RUN(errors_of_forks_arrive_where_they_are_waited_for);
    RUN(a_fork_has_lists_of_its_own);
    RUN(a_function_that_runs_elsewhere_outlives_its_release);
    return check_finish();
}
