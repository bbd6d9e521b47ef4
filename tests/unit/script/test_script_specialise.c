/* test_script_specialise.c: what a function makes for which inputs: one graph for each kind of
 * inputs, unknown sizes from the second size on, a bounded number, and the values of the operators
 * themselves whatever was made. */
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>

/* (x * y + x) * y, pointwise: one group when it is known what x and y are. */
static const char text[] = "graph(%x : Tensor, %y : Tensor):\n"
                           "  %one : int = prim::Constant[value=1]()\n"
                           "  %a : Tensor = aten::mul(%x, %y)\n"
                           "  %b : Tensor = aten::add(%a, %x, %one)\n"
                           "  %c : Tensor = aten::mul(%b, %y)\n"
                           "  return (%c)\n";

static td_scripted *make_function(const char *source) {
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    if (td_ir_parse(source, &g) || td_scripted_new(g, "f", &f))
        check_fail(__FILE__, __LINE__, "%s in\n%s", td_error_message(), source);
    td_ir_graph_release(g);
    return f;
}

static td_tensor *filled(td_dtype dtype, int ndim, const int64_t *sizes, double value) {
    td_tensor *x = NULL;
    if (td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x))
        return NULL;
    for (int64_t k = 0; k < x->numel; k++)
        td_store_double(dtype, (char *)x->data + k * (int64_t)td_dtype_size(dtype),
                        value + (double)k / 8);
    return x;
}

/* The same by the operators. */
static td_status by_operators(td_tensor *x, td_tensor *y, td_tensor **out) {
    td_tensor *a = NULL, *b = NULL;
    td_status status = TD_APPLY(&a, mul, TD_T(x), TD_T(y));
    if (status == TD_OK)
        status = TD_APPLY(&b, add, TD_T(a), TD_T(x));
    if (status == TD_OK)
        status = TD_APPLY(out, mul, TD_T(b), TD_T(y));
    td_release(a);
    td_release(b);
    return status;
}

/* Both are the caller's, and gone afterwards. */
static void call_and_compare(td_scripted *f, td_tensor *x, td_tensor *y) {
    td_tensor *wanted = NULL;
    td_value out = TD_NIL, inputs[2] = {TD_T(x), TD_T(y)};
    td_status expected = by_operators(x, y, &wanted);
    CHECK_INT(td_scripted_call(f, inputs, &out), expected);
    td_tensor *got = td_arg_tensor(out);
    CHECK(!wanted == !got);
    if (wanted && got) {
        CHECK(wanted->dtype == got->dtype && td_tensor_same_shape(wanted, got));
        CHECK(!memcmp(wanted->data, got->data, (size_t)got->numel * td_tensor_itemsize(got)));
    }
    td_value_drop(&out);
    td_release(wanted);
    td_release(x);
    td_release(y);
}

static void call_with(td_scripted *f, td_dtype dtype, int64_t rows, int64_t columns) {
    int64_t sizes[2] = {rows, columns};
    call_and_compare(f, filled(dtype, 2, sizes, 1), filled(dtype, 2, sizes, 2));
}

static int count_groups(td_scripted *f, td_dtype dtype, int64_t rows, int64_t columns) {
    int64_t sizes[2] = {rows, columns};
    td_tensor *x = filled(dtype, 2, sizes, 1);
    td_value inputs[2] = {TD_T(x), TD_T(x)};
    td_ir_graph *g = NULL;
    int n = 0;
    if (td_scripted_graph_for(f, inputs, &g) == TD_OK)
        for (const td_ir_node *node = g->block->first; node; node = node->next)
            n += node->kind == TD_IR_FUSION_GROUP;
    td_ir_graph_release(g);
    td_release(x);
    return n;
}

TEST(sizes_that_vary_become_unknown_at_the_second) {
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    for (int64_t k = 1; k < 40; k++)
        call_with(f, TD_F32, 3, k);
    CHECK_INT(td_scripted_nspecialisations(f), 2);
    for (int64_t k = 1; k < 40; k++)
        call_with(f, TD_F32, k, k % 5);
    CHECK_INT(td_scripted_nspecialisations(f), 3);
    CHECK_INT(count_groups(f, TD_F32, 7, 9), 1); /* and still one kernel */
    char *why = td_scripted_why(f);
    CHECK_CONTAINS(why, "f: 1 specialisation\n");
    CHECK_CONTAINS(why, "1: (Float(3, 1), Float(3, 1)): 1 calls");
    CHECK_CONTAINS(why, "(Float(3, *), Float(3, *)): 38 calls");
    CHECK_CONTAINS(why, "(Float(*, *), Float(*, *)): 39 calls");
    CHECK_CONTAINS(why, "sizes varied, a later one serves them");
    td_free(why);
    td_scripted_release(f);
}

/* With unknown sizes anything may be broadcast, and shapes may not fit. */
TEST(unknown_sizes_leave_broadcasting_to_the_call) {
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    static const int64_t shapes[][2] = {{2, 3}, {4, 5}, {1, 3}, {2, 1}, {0, 3}, {1, 1}, {4, 0}};
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    for (int a = 0; a < SHAPES; a++)
        for (int b = 0; b < SHAPES; b++)
            call_and_compare(f, filled(TD_F32, 2, shapes[a], 1), filled(TD_F32, 2, shapes[b], 2));
    td_scripted_release(f);
}

TEST(each_kind_of_inputs_has_its_own) {
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    call_with(f, TD_F32, 2, 3);
    call_with(f, TD_F64, 2, 3);
    call_with(f, TD_I64, 2, 3);
    CHECK_INT(td_scripted_nspecialisations(f), 3);
    bool before = td_set_grad_enabled(false);
    call_with(f, TD_F32, 2, 3);
    td_set_grad_enabled(before);
    CHECK_INT(td_scripted_nspecialisations(f), 4);
    call_with(f, TD_F64, 2, 3);
    CHECK_INT(td_scripted_nspecialisations(f), 4);
    char *why = td_scripted_why(f);
    CHECK_CONTAINS(why, "differs in %x, %y");
    CHECK_CONTAINS(why, "other modes");
    td_free(why);
    td_scripted_release(f);
}

TEST(there_are_no_more_than_a_bounded_number) {
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    for (int dims = 0; dims <= TD_MAX_DIMS; dims++)
        for (int half = 0; half < 2; half++) {
            int64_t sizes[TD_MAX_DIMS];
            for (int d = 0; d < dims; d++)
                sizes[d] = 1 + d % 2;
            td_dtype dtype = half ? TD_F64 : TD_F32;
            call_and_compare(f, filled(dtype, dims, sizes, 1), filled(dtype, dims, sizes, 2));
        }
    CHECK_INT(td_scripted_nspecialisations(f), TD_SCRIPTED_MOST);
    char *why = td_scripted_why(f);
    CHECK_CONTAINS(why, "no more than 16 are made");
    CHECK_CONTAINS(why, "18 calls ran the graph as written");
    td_free(why);
    td_scripted_release(f);
}

TEST(a_function_may_run_as_it_was_written) {
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    td_scripted_set_eager(f, true);
    call_with(f, TD_F32, 2, 3);
    CHECK_INT(td_scripted_nspecialisations(f), 0);
    td_scripted_set_eager(f, false);
    call_with(f, TD_F32, 2, 3);
    CHECK_INT(td_scripted_nspecialisations(f), 1);
    td_scripted_release(f);
}

/* d/dx of (x * y + x) * y, summed, is y * (y + 1). */
TEST(calls_are_recorded_for_backward) {
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    int64_t sizes[2] = {2, 3};
    td_tensor *x = filled(TD_F64, 2, sizes, 1), *y = filled(TD_F64, 2, sizes, 2), *sum = NULL;
    td_value out = TD_NIL, inputs[2] = {TD_T(x), TD_T(y)};
    CHECK_INT(td_scripted_call(f, inputs, &out), TD_OK); /* one that is not recorded before */
    td_value_drop(&out);
    CHECK_INT(td_set_requires_grad(x, true), TD_OK);
    CHECK_INT(td_scripted_call(f, inputs, &out), TD_OK);
    CHECK_INT(TD_APPLY(&sum, sum, out), TD_OK);
    CHECK_INT(td_backward(1, &sum, NULL, (td_backward_options){0}), TD_OK);
    const td_tensor *grad = td_get_grad(x);
    REQUIRE(grad != NULL);
    for (int64_t k = 0; k < 6; k++) {
        double v = ((double *)y->data)[k];
        CHECK_CLOSE(((double *)grad->data)[k], v * (v + 1), 1e-12);
    }
    td_value_drop(&out);
    td_release(sum);
    td_release(x);
    td_release(y);
    td_scripted_release(f);
}

TEST(a_missing_input_is_known_to_be_none) {
    td_scripted *f = make_function("graph(%x : Tensor, %b : Tensor?):\n"
                                   "  %n : NoneType = prim::Constant()\n"
                                   "  %one : int = prim::Constant[value=1]()\n"
                                   "  %c : bool = aten::__is__(%b, %n)\n"
                                   "  %y : Tensor = prim::If(%c)\n"
                                   "    block0():\n"
                                   "      -> (%x)\n"
                                   "    block1():\n"
                                   "      %t : Tensor = prim::unchecked_cast(%b)\n"
                                   "      %z : Tensor = aten::add(%x, %t, %one)\n"
                                   "      -> (%z)\n"
                                   "  return (%y)\n");
    REQUIRE(f != NULL);
    int64_t sizes[1] = {3};
    td_tensor *x = filled(TD_F32, 1, sizes, 1);
    td_value out = TD_NIL, inputs[2] = {TD_T(x), TD_NIL};
    CHECK_INT(td_scripted_call(f, inputs, &out), TD_OK);
    CHECK(td_arg_tensor(out) == x);
    td_value_drop(&out);
    inputs[1] = TD_T(x);
    CHECK_INT(td_scripted_call(f, inputs, &out), TD_OK);
    CHECK(td_arg_tensor(out) && ((float *)out.tensor->data)[0] == 2);
    td_value_drop(&out);
    inputs[0] = TD_I(1);
    CHECK_INT(td_scripted_call(f, inputs, &out), TD_ETYPE);
    CHECK_CONTAINS(td_error_message(), "input 1 (x) is a tensor");
    td_release(x);
    td_scripted_release(f);
}

/* What a fork runs is rewritten for what it is given; the first graph of all stays as it is. */
TEST(graphs_of_forks_are_rewritten_too) {
    td_scripted *f = make_function("graph(%x : Tensor):\n"
                                   "  %f : Future(Tensor) = prim::fork_0(%x)\n"
                                   "  %y : Tensor = aten::wait(%f)\n"
                                   "  return (%y)\n"
                                   "with prim::fork_0 = graph(%x : Tensor):\n"
                                   "  %a : Tensor = aten::mul(%x, %x)\n"
                                   "  %b : Tensor = aten::mul(%a, %x)\n"
                                   "  return (%b)\n");
    REQUIRE(f != NULL);
    int64_t sizes[1] = {3};
    td_tensor *x = filled(TD_F32, 1, sizes, 2);
    td_value out = TD_NIL, input = TD_T(x);
    td_ir_graph *g = NULL;
    CHECK_INT(td_scripted_call(f, &input, &out), TD_OK);
    CHECK(td_arg_tensor(out) && ((float *)out.tensor->data)[0] == 8);
    td_value_drop(&out);
    CHECK_INT(td_scripted_graph_for(f, &input, &g), TD_OK);
    char *printed = td_ir_print(g), *written = td_ir_print(td_scripted_graph(f));
    CHECK_CONTAINS(printed, "prim::FusionGroup_1");
    CHECK(!strstr(written, "FusionGroup"));
    td_free(printed);
    td_free(written);
    td_ir_graph_release(g);
    td_release(x);
    td_scripted_release(f);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(sizes_that_vary_become_unknown_at_the_second);
    RUN(unknown_sizes_leave_broadcasting_to_the_call);
    RUN(each_kind_of_inputs_has_its_own);
    RUN(there_are_no_more_than_a_bounded_number);
    RUN(a_function_may_run_as_it_was_written);
    RUN(calls_are_recorded_for_backward);
    RUN(a_missing_input_is_known_to_be_none);
    RUN(graphs_of_forks_are_rewritten_too);
    return check_finish();
}
