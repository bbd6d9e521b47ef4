/* test_ops_script.c: traced functions and fused groups give what the calls themselves give, bit for
 * bit: values, writes, views, lists, gradients; on other sizes than they were traced with, from
 * several threads, and where memory runs out. */
#include "engine/autograd/autograd.h"
#include "engine/script/passes/passes.h"
#include "engine/script/run.h"
#include "engine/script/trace.h"
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- functions to be traced: of three tensors, one result ---- */

typedef td_status (*function)(td_tensor *const x[3], td_tensor **out);

#define STEP(out, name, ...)                                                                       \
    do {                                                                                           \
        if (TD_APPLY(out, name, __VA_ARGS__))                                                      \
            goto failed;                                                                           \
    } while (0)

static void drop(int n, td_tensor **list) {
    for (int k = 0; k < n; k++)
        td_release(list[k]);
}

/* ((a * b + c) * a).tanh() / 3 */
static td_status chain(td_tensor *const x[3], td_tensor **out) {
    td_tensor *t[4] = {NULL};
    STEP(&t[0], mul, TD_T(x[0]), TD_T(x[1]));
    STEP(&t[1], add, TD_T(t[0]), TD_T(x[2]));
    STEP(&t[2], mul, TD_T(t[1]), TD_T(x[0]));
    STEP(&t[3], tanh, TD_T(t[2]));
    STEP(out, div, TD_T(t[3]), TD_F(3));
    drop(4, t);
    return TD_OK;
failed:
    drop(4, t);
    return td_error_code();
}

/* Two results of one group, a matmul between groups, and a number with alpha. */
static td_status mixed(td_tensor *const x[3], td_tensor **out) {
    td_tensor *t[6] = {NULL};
    STEP(&t[0], sigmoid, TD_T(x[0]));
    STEP(&t[1], sub, TD_T(t[0]), TD_T(x[1]), TD_F(0.7));
    STEP(&t[2], t, TD_T(t[1]));
    STEP(&t[3], matmul, TD_T(t[2]), TD_T(t[0]));
    STEP(&t[4], exp, TD_T(t[3]));
    STEP(&t[5], neg, TD_T(t[4]));
    STEP(out, maximum, TD_T(t[5]), TD_T(t[3]));
    drop(6, t);
    return TD_OK;
failed:
    drop(6, t);
    return td_error_code();
}

/* Written in place, through a view too, and read before and after. */
static td_status writes(td_tensor *const x[3], td_tensor **out) {
    td_tensor *t[4] = {NULL};
    STEP(&t[0], mul, TD_T(x[0]), TD_F(2));
    STEP(&t[1], relu, TD_T(t[0]));
    if (TD_APPLY_INPLACE(add, TD_T(t[0]), TD_T(x[1])))
        goto failed;
    STEP(&t[2], select, TD_T(t[0]), TD_I(0), TD_I(0));
    if (TD_APPLY_INPLACE(mul, TD_T(t[2]), TD_F(5)))
        goto failed;
    STEP(&t[3], sub, TD_T(t[0]), TD_T(t[1]));
    STEP(out, exp, TD_T(t[3]));
    drop(4, t);
    return TD_OK;
failed:
    drop(4, t);
    return td_error_code();
}

/* A list in, a list out. */
static td_status lists(td_tensor *const x[3], td_tensor **out) {
    td_tensor *joined = NULL, *list[2] = {x[0], x[1]}, *half = NULL;
    td_value args[TD_MAX_PARAMS];
    const td_op *split = TD_OP(chunk);
    td_status status = TD_APPLY(&joined, cat, TD_TENSORS(2, list), TD_I(0));
    td_call call = {.op = split, .args = args};
    for (int k = 0; k < split->nparams; k++)
        args[k] = split->params[k].preset;
    args[0] = TD_T(joined);
    args[1] = TD_I(2);
    if (status == TD_OK)
        status = td_op_call(&call);
    if (status == TD_OK)
        status = TD_APPLY(&half, mul, TD_T(call.list[1]), TD_T(call.list[0]));
    if (status == TD_OK)
        status = TD_APPLY(out, add, TD_T(half), TD_T(x[2]));
    td_call_drop(&call);
    td_release(joined);
    td_release(half);
    return status;
}

/* An operator that is made of others, one with a variant, and a captured tensor. */
static td_tensor *captured;
static td_status composites(td_tensor *const x[3], td_tensor **out) {
    td_tensor *t[4] = {NULL};
    STEP(&t[0], gelu, TD_T(x[0]), TD_STRING("tanh"));
    STEP(&t[1], logaddexp, TD_T(t[0]), TD_T(x[1]));
    STEP(&t[2], mul, TD_T(t[1]), TD_T(captured));
    STEP(&t[3], pow, TD_T(t[2]), TD_F(2));
    STEP(out, add, TD_T(t[3]), TD_T(x[2]));
    drop(4, t);
    return TD_OK;
failed:
    drop(4, t);
    return td_error_code();
}

static const struct {
    const char *name;
    function fn;
} functions[] = {{"chain", chain},
                 {"mixed", mixed},
                 {"writes", writes},
                 {"lists", lists},
                 {"composites", composites}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* ---- inputs ---- */

static uint64_t random_state = 1;
static double draw(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 40) / (1 << 23) - 1;
}

static td_tensor *make(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    if (td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x))
        return NULL;
    for (int64_t k = 0; k < x->numel; k++)
        td_store_double(dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x), draw());
    return x;
}

static void make_three(td_dtype dtype, int64_t rows, int64_t columns, td_tensor *x[3]) {
    for (int k = 0; k < 3; k++)
        x[k] = make(dtype, 2, (int64_t[]){rows, columns});
}

static void drop_three(td_tensor *x[3]) {
    drop(3, x);
}

static bool same_bits(const td_tensor *a, const td_tensor *b) {
    return a->dtype == b->dtype && td_tensor_same_shape(a, b) && a->contiguous && b->contiguous &&
           !memcmp(a->data, b->data, (size_t)a->numel * td_tensor_itemsize(a));
}

/* ---- from a function to a script ---- */

static td_ir_graph *trace(function fn, td_tensor *x[3]) {
    static const char *const names[] = {"x", "y", "z"};
    td_trace *t = NULL;
    td_tensor *out = NULL;
    td_ir_graph *g = NULL;
    if (td_trace_begin(3, x, names, NULL, NULL, &t))
        return NULL;
    td_status status = fn(x, &out);
    if (status)
        td_trace_abandon(t);
    else if (td_trace_end(t, 1, &out, &g))
        g = NULL;
    td_release(out);
    return g;
}

static td_script *make_script(function fn, td_tensor *x[3], bool fuse) {
    td_script *s = NULL;
    td_ir_graph *g = trace(fn, x);
    td_status status = g ? TD_OK : td_error_code();
    if (status == TD_OK && fuse)
        status = td_pass_run(g, td_pass_find("fuse"), NULL, NULL);
    if (status == TD_OK)
        status = td_pass_run(g, td_pass_find("dead"), NULL, NULL);
    if (status == TD_OK)
        status = td_script_new(g, &s);
    td_ir_graph_release(g);
    return s;
}

static td_status run(const td_script *s, td_tensor *const x[3], td_tensor **out) {
    td_value inputs[3] = {TD_T(x[0]), TD_T(x[1]), TD_T(x[2])}, output;
    td_status status = td_script_run(s, inputs, &output);
    *out = status ? NULL : td_arg_tensor(output);
    return status;
}

static void compare(const char *name, const td_script *s, function fn, td_tensor *const x[3]) {
    td_tensor *want = NULL, *got = NULL;
    td_status expected = fn(x, &want), status = run(s, x, &got);
    if (expected != status || (want && !same_bits(want, got)))
        check_fail(__FILE__, __LINE__, "%s differs (%s)", name,
                   status ? td_error_message() : "bits");
    td_release(want);
    td_release(got);
}

static int count_groups(const td_ir_block *block) {
    int n = 0;
    for (const td_ir_node *node = block->first; node; node = node->next)
        n += node->kind == TD_IR_FUSION_GROUP;
    return n;
}

/* ---- tests ---- */

TEST(scripts_give_the_bits_of_the_calls) {
    static const int64_t shapes[][2] = {{3, 4}, {1, 1}, {4, 0}, {7, 33}, {64, 64}};
    for (int f = 0; f < FUNCTIONS; f++)
        for (int d = 0; d < 2; d++)
            for (int fuse = 0; fuse < 2; fuse++) {
                td_tensor *x[3];
                td_dtype dtype = d ? TD_F64 : TD_F32;
                make_three(dtype, 3, 4, x);
                td_release(captured);
                captured = make(dtype, 0, NULL);
                td_script *s = make_script(functions[f].fn, x, fuse);
                if (!s)
                    check_fail(__FILE__, __LINE__, "%s: %s", functions[f].name, td_error_message());
                for (size_t k = 0; s && k < sizeof shapes / sizeof *shapes; k++) {
                    td_tensor *y[3];
                    make_three(dtype, shapes[k][0], shapes[k][1], y);
                    compare(functions[f].name, s, functions[f].fn, y);
                    drop_three(y);
                }
                td_script_release(s);
                drop_three(x);
            }
}

TEST(groups_stand_where_they_should) {
    static const int groups[FUNCTIONS] = {1, 2, 2, 1, 1};
    td_tensor *x[3];
    make_three(TD_F32, 3, 4, x);
    td_release(captured);
    captured = make(TD_F32, 0, NULL);
    for (int f = 0; f < FUNCTIONS; f++) {
        td_script *s = make_script(functions[f].fn, x, true);
        REQUIRE(s != NULL);
        CHECK_INT(count_groups(td_script_graph(s)->block), groups[f]);
        td_script_release(s);
    }
    drop_three(x);
}

TEST(a_graph_prints_as_torchscript_does) {
    td_tensor *x[3];
    make_three(TD_F32, 2, 3, x);
    td_ir_graph *g = trace(chain, x);
    REQUIRE(g != NULL && td_pass_run(g, td_pass_find("fuse"), NULL, NULL) == TD_OK);
    char *text = td_ir_print(g);
    CHECK_CONTAINS(text, "prim::FusionGroup_0(%x, %y, %z)");
    CHECK_CONTAINS(text, "with prim::FusionGroup_0 = graph(%x : Float(2, 3, strides=[3, 1], "
                         "requires_grad=0, device=cpu)");
    CHECK_CONTAINS(text, "aten::tanh(");
    td_ir_graph *again = NULL;
    CHECK_INT(td_ir_parse(text, &again), TD_OK);
    char *printed = again ? td_ir_print(again) : NULL;
    CHECK_STR(printed, text);
    td_free(printed);
    td_free(text);
    td_ir_graph_release(again);
    td_ir_graph_release(g);
    drop_three(x);
}

/* Other dtypes, broadcast inputs, transposed ones: groups give way to the operators. */
TEST(inputs_that_a_kernel_does_not_take_run_as_calls) {
    td_tensor *x[3], *y[3];
    make_three(TD_F32, 3, 4, x);
    td_script *s = make_script(chain, x, true);
    REQUIRE(s != NULL);
    static const td_dtype dtypes[] = {TD_F64, TD_F16, TD_BF16, TD_I64};
    for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
        make_three(dtypes[k], 5, 6, y);
        compare("another dtype", s, chain, y);
        drop_three(y);
    }
    y[0] = make(TD_F32, 2, (int64_t[]){5, 1});
    y[1] = make(TD_F32, 1, (int64_t[]){6});
    y[2] = make(TD_F32, 0, NULL);
    compare("broadcast", s, chain, y);
    td_tensor *turned = NULL;
    REQUIRE(TD_APPLY(&turned, transpose, TD_T(y[0]), TD_I(0), TD_I(1)) == TD_OK);
    td_tensor *z[3] = {y[0], turned, y[0]};
    compare("transposed", s, chain, z);
    td_tensor *misfit[3] = {x[0], y[0], x[0]};
    td_tensor *none = NULL;
    CHECK_INT(run(s, misfit, &none), TD_ESHAPE);
    CHECK(none == NULL);
    td_release(turned);
    drop_three(y);
    drop_three(x);
    td_script_release(s);
}

TEST(gradients_flow_through_a_script) {
    for (int f = 0; f < FUNCTIONS; f++) {
        td_tensor *x[3], *grads[2] = {NULL};
        make_three(TD_F64, 3, 4, x);
        td_release(captured);
        captured = make(TD_F64, 0, NULL);
        td_script *s = make_script(functions[f].fn, x, true);
        REQUIRE(s != NULL);
        CHECK_INT(td_set_requires_grad(x[0], true), TD_OK);
        for (int k = 0; k < 2; k++) {
            td_tensor *y = NULL, *sum = NULL;
            CHECK_INT(k ? run(s, x, &y) : functions[f].fn(x, &y), TD_OK);
            CHECK_INT(TD_APPLY(&sum, sum, TD_T(y)), TD_OK);
            CHECK_INT(td_backward(1, &sum, NULL, (td_backward_options){0}), TD_OK);
            grads[k] = td_retain(td_get_grad(x[0]));
            CHECK_INT(td_set_grad(x[0], NULL), TD_OK);
            td_release(y);
            td_release(sum);
        }
        CHECK(grads[0] && grads[1] && same_bits(grads[0], grads[1]));
        drop(2, grads);
        td_script_release(s);
        drop_three(x);
    }
}

static void *run_often(void *script) {
    td_tensor *x[3], *got = NULL;
    for (int k = 0; k < 200; k++) {
        x[0] = x[1] = x[2] = NULL;
        td_tensor *want = NULL;
        int64_t sizes[2] = {1 + k % 5, 3};
        for (int j = 0; j < 3; j++)
            if (td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, sizes, &x[j]) == TD_OK)
                for (int64_t e = 0; e < x[j]->numel; e++)
                    ((float *)x[j]->data)[e] = (float)(k + j + e) / 1000;
        CHECK_INT(chain(x, &want), TD_OK);
        CHECK_INT(run(script, x, &got), TD_OK);
        CHECK(want && got && same_bits(want, got));
        td_release(want);
        td_release(got);
        drop_three(x);
    }
    return NULL;
}

TEST(several_threads_run_one_script) {
    td_tensor *x[3];
    pthread_t threads[4];
    make_three(TD_F32, 2, 3, x);
    td_script *s = make_script(chain, x, true);
    REQUIRE(s != NULL);
    for (int k = 0; k < 4; k++)
        REQUIRE(pthread_create(&threads[k], NULL, run_often, s) == 0);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    td_script_release(s);
    drop_three(x);
}

static td_tensor *filled(float value) {
    td_tensor *x = NULL;
    if (td_tensor_scalar(TD_F32, value, &x))
        return NULL;
    return x;
}

static double run_text(const char *text, td_value a, td_value b) {
    td_ir_graph *g = NULL;
    td_script *s = NULL;
    td_value inputs[2] = {a, b}, output = TD_NIL;
    double value = NAN;
    if (td_ir_parse(text, &g) || td_script_new(g, &s) || td_script_run(s, inputs, &output))
        check_fail(__FILE__, __LINE__, "%s", td_error_message());
    else if (td_tensor_item(output.tensor, &value))
        value = NAN;
    td_value_drop(&output);
    td_script_release(s);
    td_ir_graph_release(g);
    return value;
}

TEST(branches_and_loops_run) {
    static const char branch[] = "graph(%x : Tensor, %c : bool):\n"
                                 "  %y : Tensor = prim::If(%c)\n"
                                 "    block0():\n"
                                 "      %a : Tensor = aten::exp(%x)\n"
                                 "      -> (%a)\n"
                                 "    block1():\n"
                                 "      -> (%x)\n"
                                 "  return (%y)\n";
    static const char loop[] = "graph(%x : Tensor, %n : int):\n"
                               "  %t : bool = prim::Constant[value=1]()\n"
                               "  %y : Tensor, %w : Tensor = prim::Loop(%n, %t, %x, %x)\n"
                               "    block0(%k : int, %a : Tensor, %b : Tensor):\n"
                               "      %c : Tensor = aten::mul(%a, %b)\n"
                               "      %d : Tensor = aten::sqrt(%c)\n"
                               "      -> (%t, %c, %x)\n"
                               "  return (%y)\n";
    td_tensor *x = filled(2);
    CHECK_CLOSE(run_text(branch, TD_T(x), TD_B(true)), exp(2.0), 1e-6);
    CHECK_CLOSE(run_text(branch, TD_T(x), TD_B(false)), 2, 0);
    for (int n = 0; n < 5; n++)
        CHECK_CLOSE(run_text(loop, TD_T(x), TD_I(n)), ldexp(2, n), 0);
    CHECK_INT(atomic_load(&x->refs), 1);
    td_release(x);
}

TEST(what_a_trace_refuses) {
    td_tensor *x[3];
    td_trace *t = NULL, *second = NULL;
    make_three(TD_F32, 2, 2, x);
    td_tensor *twice[2] = {x[0], x[0]};
    CHECK_INT(td_trace_begin(2, twice, NULL, NULL, NULL, &t), TD_EVALUE);
    CHECK_INT(td_trace_begin(3, x, NULL, NULL, NULL, &t), TD_OK);
    CHECK_INT(td_trace_begin(3, x, NULL, NULL, NULL, &second), TD_EVALUE);
    CHECK(second == NULL);
    td_trace_abandon(t);
    CHECK(td_get_modes().dispatcher == NULL);
    drop_three(x);
}

TEST(memory_that_runs_out_is_said_and_nothing_leaks) {
    for (int f = 0; f < FUNCTIONS; f++) {
        td_tensor *x[3];
        make_three(TD_F32, 2, 3, x);
        td_release(captured);
        captured = make(TD_F32, 0, NULL);
        for (int64_t n = 1;; n++) {
            td_tensor *got = NULL;
            td_memory_fail_after(n);
            td_script *s = make_script(functions[f].fn, x, true);
            td_status status = s ? run(s, x, &got) : td_error_code();
            td_memory_fail_after(0);
            CHECK(status == TD_OK || status == TD_ENOMEM);
            CHECK(td_get_modes().dispatcher == NULL);
            td_release(got);
            td_script_release(s);
            if (status == TD_OK)
                break;
        }
        for (int k = 0; k < 3; k++)
            CHECK_INT(atomic_load(&x[k]->refs), 1);
        drop_three(x);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(scripts_give_the_bits_of_the_calls);
    RUN(groups_stand_where_they_should);
    RUN(a_graph_prints_as_torchscript_does);
    RUN(inputs_that_a_kernel_does_not_take_run_as_calls);
    RUN(gradients_flow_through_a_script);
    RUN(several_threads_run_one_script);
    RUN(branches_and_loops_run);
    RUN(what_a_trace_refuses);
    RUN(memory_that_runs_out_is_said_and_nothing_leaks);
    td_release(captured);
    return check_finish();
}
