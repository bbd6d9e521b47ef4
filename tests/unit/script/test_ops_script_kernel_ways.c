/* test_ops_script_kernel_ways.c: groups of 16-bit floats run the way that took less, call after
 * call with the same bits; small ones, and where nothing is timed, as kernels. */
#include "engine/script/kernel_ways.h"
#include "engine/script/later.h"
#include "engine/td.h"

#include "tests/check.h"

/* The first calls of a round are timed both ways, as if one took a second longer; then how many of
 * the others run apart. */
static int count_apart(td_kernel_ways *w, int64_t elements, bool apart_is_slow) {
    int n = 0;
    for (int call = 0; call < 512; call++) {
        td_kernel_trial trial;
        bool apart = td_kernel_ways_apart(w, elements, &trial);
        CHECK(!trial.least == (call >= 6));
        if (call < 6)
            CHECK(apart == (call % 2 == 1));
        else
            n += apart;
        if (apart == apart_is_slow)
            trial.began -= 1000000000;
        td_kernel_trial_end(&trial);
    }
    return n;
}

TEST(the_way_that_took_less_is_taken) {
    td_kernel_ways *w = td_kernel_ways_new();
    td_kernel_trial trial;
    td_later_set(true);
    CHECK_INT(count_apart(w, 4096, false), 506);
    CHECK_INT(count_apart(w, 100000, true), 0); /* sizes are apart */
    CHECK_INT(count_apart(w, 4096, true), 0);   /* and looked at again */
    CHECK_INT(count_apart(w, 4096, false), 506);
    for (int call = 0; call < 10; call++) {
        CHECK(!td_kernel_ways_apart(w, 100, &trial));
        CHECK(!trial.least);
    }
    td_later_set(false);
    CHECK(!td_kernel_ways_apart(w, 4096, &trial));
    CHECK(!trial.least);
    td_kernel_ways_free(w);
}

/* Both ways, and whatever is chosen then. */
TEST(both_ways_have_the_same_bits) {
    static const char text[] = "graph(%x : Tensor, %y : Tensor):\n"
                               "  %one : int = prim::Constant[value=1]()\n"
                               "  %a : Tensor = aten::mul(%x, %y)\n"
                               "  %b : Tensor = aten::add(%a, %x, %one)\n"
                               "  %c : Tensor = aten::mul(%b, %y)\n"
                               "  return (%c)\n";
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    td_tensor *x = NULL, *a = NULL, *b = NULL, *wanted = NULL;
    const int64_t n = 3000;
    td_later_set(true);
    REQUIRE(td_ir_parse(text, &g) == TD_OK);
    REQUIRE(td_scripted_new(g, "f", &f) == TD_OK);
    REQUIRE(td_tensor_empty(TD_BF16, TD_DEVICE_CPU, 1, &n, &x) == TD_OK);
    for (int64_t k = 0; k < n; k++)
        td_store_double(TD_BF16, (char *)x->data + 2 * k, 0.5 + (double)k / 777);
    REQUIRE(TD_APPLY(&a, mul, TD_T(x), TD_T(x)) == TD_OK);
    REQUIRE(TD_APPLY(&b, add, TD_T(a), TD_T(x)) == TD_OK);
    REQUIRE(TD_APPLY(&wanted, mul, TD_T(b), TD_T(x)) == TD_OK);
    for (int call = 0; call < 40; call++) {
        td_value out = TD_NIL, inputs[2] = {TD_T(x), TD_T(x)};
        REQUIRE(td_scripted_call(f, inputs, &out) == TD_OK);
        td_tensor *got = td_arg_tensor(out);
        CHECK(got && got->numel == n && !memcmp(got->data, wanted->data, 2 * (size_t)n));
        td_value_drop(&out);
    }
    td_later_set(false);
    td_release(x);
    td_release(a);
    td_release(b);
    td_release(wanted);
    td_scripted_release(f);
    td_ir_graph_release(g);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(the_way_that_took_less_is_taken);
    RUN(both_ways_have_the_same_bits);
    return check_finish();
}
