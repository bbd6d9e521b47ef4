/* test_ops_script_gradient_use.c: gradients of graphs in use: what is kept and computed again,
 * writes in place, hooks, histories, captured tensors, modes, refusals, threads. */
#include "engine/autograd/hooks.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/script/gradient/gradients.h"
#include "engine/script/trace.h"

#include "tests/unit/script/gradient_scenes.h"

#include <pthread.h>

/* ---- what is kept, and what becomes of it ---- */

TEST(what_is_cheap_is_computed_again_and_what_is_dear_is_kept) {
    static const struct {
        const char *line;
        int kept;
    } cases[] = {
        {"  %b : Tensor = aten::tanh(%a)\n", 1}, {"  %b : Tensor = aten::mul(%a, %a)\n", 0},
        {"  %b : Tensor = aten::exp(%a)\n", 1},  {"  %b : Tensor = aten::relu(%a)\n", 0},
        {"  %b : Tensor = aten::neg(%a)\n", 0},  {"  %b : Tensor = aten::matmul(%a, %x)\n", 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[512];
        scene c = {.s = NULL};
        snprintf(text, sizeof text,
                 "graph(%%x : Tensor, %%y : Tensor):\n"
                 "  %%a : Tensor = aten::mul(%%x, %%y)\n"
                 "%s"
                 "  %%c : Tensor = aten::mul(%%b, %%x)\n"
                 "  %%d : Tensor = aten::mul(%%c, %%y)\n"
                 "  return (%%d)\n",
                 cases[k].line);
        c.s = script_of(text);
        REQUIRE(c.s != NULL);
        static const int64_t square[3] = {4, 4};
        for (int j = 0; j < 2; j++) {
            c.x[j] = make(TD_F32, square);
            CHECK_INT(td_set_requires_grad(c.x[j], true), TD_OK);
        }
        c.d = derive(c.s, 2, c.x);
        REQUIRE(c.d != NULL);
        CHECK_INT(td_gradient_nkept(c.d), cases[k].kept);
        strike_scene(&c);
    }
}

TEST(backward_of_pointwise_calls_is_one_group) {
    scene c;
    REQUIRE(set_scene(&c, tanh_text));
    int groups = 0, others = 0;
    for (const td_ir_node *node = td_gradient_backward(c.d)->block->first; node;
         node = node->next) {
        groups += node->kind == TD_IR_FUSION_GROUP;
        others += node->kind == TD_IR_OPERATOR;
    }
    CHECK_INT(groups, 1);
    CHECK_INT(others, 0);
    strike_scene(&c);
}

/* Calls of operators, seen by an observer. */
static void count_begin(void *ctx, const td_event *event) {
    *(int *)ctx += event->kind == TD_EVENT_OP;
}
static void count_end(void *ctx, const td_event *event) {
    (void)ctx;
    (void)event;
}

TEST(gradients_that_nobody_wants_are_not_computed) {
    static const char text[] = "graph(%x : Tensor, %y : Tensor):\n"
                               "  %zero : int = prim::Constant[value=0]()\n"
                               "  %i : int = prim::Constant[value=1]()\n"
                               "  %t : Tensor = aten::transpose(%y, %zero, %i)\n"
                               "  %a : Tensor = aten::matmul(%x, %t)\n"
                               "  return (%a)\n";
    scene c;
    int counts[2] = {0, 0};
    REQUIRE(set_scene(&c, text));
    for (int both = 0; both < 2; both++)
        for (int again = 0; again < 2; again++) { /* it is derived at the first */
            td_tensor *out[MOST] = {NULL}, *sum = NULL, *grads[2] = {NULL}, *want[2] = {NULL};
            td_observer o = {.ctx = &counts[both],
                             .kinds = 1u << TD_EVENT_OP,
                             .begin = count_begin,
                             .end = count_end};
            CHECK_INT(call(c.s, c.d, 2, c.x, out), TD_OK);
            CHECK_INT(weigh(out[0], &sum), TD_OK);
            counts[both] = 0;
            td_observer *before = td_observer_set(&o);
            CHECK_INT(td_autograd_grad(1, &sum, NULL, 1 + both, c.x, (td_backward_options){0},
                                       false, grads),
                      TD_OK);
            td_observer_set(before);
            CHECK_INT(gradients(c.s, NULL, 2, c.x, -1, false, want), TD_OK);
            for (int k = 0; k <= both; k++)
                CHECK(same_bits(grads[k], want[k]));
            td_release(sum);
            drop(1, out);
            drop(2, grads);
            drop(2, want);
        }
    CHECK(counts[0] > 0 && counts[0] < counts[1]);
    strike_scene(&c);
}

/* The status of backward after one of the tensors was written in place behind the call. */
static td_status write_then_backward(const scene *c, bool derived, int which) {
    td_tensor *out[MOST] = {NULL}, *sum = NULL, *grads[2] = {NULL};
    td_status status = call(c->s, derived ? c->d : NULL, 2, c->x, out);
    bool before = td_set_grad_enabled(false);
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(add, TD_T(which < 2 ? c->x[which] : out[0]), TD_F(1));
    td_set_grad_enabled(before);
    if (status == TD_OK)
        status = weigh(out[0], &sum);
    if (status == TD_OK)
        status = td_autograd_grad(1, &sum, NULL, 2, c->x, (td_backward_options){0}, true, grads);
    td_release(sum);
    drop(1, out);
    drop(2, grads);
    return status;
}

TEST(a_write_to_what_backward_reads_is_the_error_of_eager_mode) {
    static const char *const texts[] = {
        tanh_text,
        "graph(%x : Tensor, %y : Tensor):\n" /* reads nothing but its result */
        "  %a : Tensor = aten::add(%x, %y, %one)\n"
        "  %b : Tensor = aten::exp(%a)\n"
        "  return (%b)\n",
        "graph(%x : Tensor, %y : Tensor):\n" /* reads nothing */
        "  %a : Tensor = aten::sub(%x, %y, %one)\n"
        "  return (%a)\n",
    };
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
        for (int which = 0; which < 3; which++) {
            scene c;
            REQUIRE(set_scene(&c, texts[t]));
            td_status eager = write_then_backward(&c, false, which);
            CHECK_INT(write_then_backward(&c, true, which), eager);
            if (eager) {
                CHECK_INT(eager, TD_EAUTOGRAD);
                CHECK_CONTAINS(td_error_message(), "ScriptFunctionBackward needs was changed in "
                                                   "place after it was saved");
            }
            strike_scene(&c);
        }
}

TEST(what_is_kept_goes_with_backward_unless_the_graph_is_retained) {
    scene c;
    td_tensor *out[MOST] = {NULL}, *grads[2] = {NULL};
    REQUIRE(set_scene(&c, tanh_text));
    int64_t before = td_memory_allocated(TD_DEVICE_CPU);
    CHECK_INT(call(c.s, c.d, 2, c.x, out), TD_OK);
    td_tensor *ones = NULL;
    CHECK_INT(TD_APPLY(&ones, ones_like, TD_T(out[0])), TD_OK);
    for (int round = 0; round < 3; round++) {
        td_status status = td_autograd_grad(
            1, out, &ones, 2, c.x, (td_backward_options){.retain_graph = round == 0}, true, grads);
        CHECK_INT(status, round < 2 ? TD_OK : TD_EAUTOGRAD);
        drop(2, grads);
    }
    CHECK_CONTAINS(td_error_message(), "backward a second time");
    td_release(ones);
    CHECK_INT(td_memory_allocated(TD_DEVICE_CPU) - before,
              (int64_t)td_tensor_itemsize(out[0]) * out[0]->numel);
    CHECK_STR(td_grad_fn_name(out[0]), "ScriptFunctionBackward");
    drop(1, out);
    CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), before);
    strike_scene(&c);
}

/* ---- histories ---- */

static td_status count_hook(void *payload, const td_hook_call *call_) {
    ++*(int *)payload;
    return call_->n ? TD_APPLY(&call_->replacements[0], mul, TD_T(call_->values[0]), TD_F(2))
                    : TD_OK;
}
static void keep_payload(void *payload) {
    (void)payload;
}

TEST(hooks_and_retained_gradients_see_the_gradient_of_an_output) {
    static const td_hook_class doubles = {count_hook, keep_payload};
    scene c;
    td_tensor *out[MOST] = {NULL}, *sum = NULL, *want[2] = {NULL};
    td_hook *hook = NULL;
    int calls = 0;
    REQUIRE(set_scene(&c, tanh_text));
    CHECK_INT(gradients(c.s, NULL, 2, c.x, -1, false, want), TD_OK);
    CHECK_INT(call(c.s, c.d, 2, c.x, out), TD_OK);
    CHECK_INT(td_hook_gradient(out[0], &doubles, &calls, &hook), TD_OK);
    CHECK_INT(td_retain_grad(out[0]), TD_OK);
    CHECK_INT(weigh(out[0], &sum), TD_OK);
    CHECK_INT(td_backward(1, &sum, NULL, (td_backward_options){0}), TD_OK);
    CHECK_INT(calls, 1);
    CHECK(td_get_grad(out[0]) != NULL);
    for (int k = 0; k < 2; k++)
        for (int64_t i = 0; i < 12; i++)
            CHECK_CLOSE(element(td_get_grad(c.x[k]), i), 2 * element(want[k], i), 1e-14);
    td_hook_release(hook);
    td_release(sum);
    drop(1, out);
    drop(2, want);
    strike_scene(&c);
}

TEST(an_input_with_a_history_hands_its_gradient_on) {
    scene c;
    td_tensor *grads[2][2] = {{NULL}}, *out[MOST] = {NULL};
    REQUIRE(set_scene(&c, tanh_text));
    for (int derived = 0; derived < 2; derived++) {
        td_tensor *inputs[2] = {NULL}, *sum = NULL;
        CHECK_INT(TD_APPLY(&inputs[0], exp, TD_T(c.x[0])), TD_OK);
        CHECK_INT(TD_APPLY(&inputs[1], mul, TD_T(c.x[0]), TD_T(c.x[1])), TD_OK);
        CHECK_INT(call(c.s, derived ? c.d : NULL, 2, inputs, out), TD_OK);
        CHECK_INT(weigh(out[0], &sum), TD_OK);
        CHECK_INT(td_autograd_grad(1, &sum, NULL, 2, c.x, (td_backward_options){0}, false,
                                   grads[derived]),
                  TD_OK);
        td_release(sum);
        drop(1, out);
        drop(2, inputs);
    }
    for (int k = 0; k < 2; k++)
        CHECK(same_bits(grads[0][k], grads[1][k]));
    drop(2, grads[0]);
    drop(2, grads[1]);
    strike_scene(&c);
}

TEST(one_tensor_may_be_both_inputs) {
    scene c;
    td_tensor *grads[2][1] = {{NULL}};
    REQUIRE(set_scene(&c, tanh_text));
    td_tensor *twice[2] = {c.x[0], c.x[0]};
    td_gradient *d = derive(c.s, 2, twice);
    REQUIRE(d != NULL);
    for (int derived = 0; derived < 2; derived++) {
        td_tensor *out[MOST] = {NULL}, *sum = NULL;
        CHECK_INT(call(c.s, derived ? d : NULL, 2, twice, out), TD_OK);
        CHECK_INT(weigh(out[0], &sum), TD_OK);
        CHECK_INT(td_autograd_grad(1, &sum, NULL, 1, c.x, (td_backward_options){0}, false,
                                   grads[derived]),
                  TD_OK);
        td_release(sum);
        drop(1, out);
    }
    for (int64_t i = 0; i < 12; i++) /* eager mode adds x's three gradients in its own order */
        CHECK_CLOSE(element(grads[0][0], i), element(grads[1][0], i), 1e-14);
    drop(1, grads[0]);
    drop(1, grads[1]);
    td_gradient_release(d);
    strike_scene(&c);
}

/* (x * w + y) * c, of which the graph holds w and c. */
static td_script *trace_held(td_tensor *const *x, td_tensor *const *held) {
    td_tensor *t[3] = {NULL};
    td_trace *trace = NULL;
    td_ir_graph *g = NULL;
    td_script *s = NULL;
    if (td_trace_begin(2, x, NULL, NULL, NULL, &trace))
        return NULL;
    bool made = TD_APPLY(&t[0], mul, TD_T(x[0]), TD_T(held[0])) == TD_OK &&
                TD_APPLY(&t[1], add, TD_T(t[0]), TD_T(x[1])) == TD_OK &&
                TD_APPLY(&t[2], mul, TD_T(t[1]), TD_T(held[1])) == TD_OK;
    if (made)
        made = td_trace_end(trace, 1, &t[2], &g) == TD_OK && td_script_new(g, &s) == TD_OK;
    else
        td_trace_abandon(trace);
    td_ir_graph_release(g);
    drop(3, t);
    return made ? s : NULL;
}

TEST(gradients_reach_tensors_that_the_graph_holds) {
    td_tensor *held[2] = {make(TD_F64, shape), make(TD_F64, shape)};
    td_tensor *x[2] = {make(TD_F64, shape), make(TD_F64, shape)};
    td_tensor *grads[2][2] = {{NULL}}, *one = NULL;
    CHECK_INT(td_set_requires_grad(x[0], true), TD_OK);
    CHECK_INT(td_set_requires_grad(held[0], true), TD_OK);
    td_script *s = trace_held(x, held);
    REQUIRE(s != NULL);
    td_gradient *d = derive(s, 2, x);
    REQUIRE(d != NULL);
    for (int derived = 0; derived < 2; derived++) {
        td_tensor *out[MOST] = {NULL}, *sum = NULL, *wanted[2] = {x[0], held[0]};
        CHECK_INT(call(s, derived ? d : NULL, 2, x, out), TD_OK);
        CHECK_INT(weigh(out[0], &sum), TD_OK);
        CHECK_INT(td_autograd_grad(1, &sum, NULL, 2, wanted, (td_backward_options){0}, false,
                                   grads[derived]),
                  TD_OK);
        td_release(sum);
        drop(1, out);
    }
    for (int k = 0; k < 2; k++)
        CHECK(same_bits(grads[0][k], grads[1][k]));
    td_value inputs[2] = {TD_T(x[0]), TD_T(x[1])};
    CHECK(td_gradient_fits(d, inputs));
    CHECK_INT(td_set_requires_grad(held[0], false), TD_OK); /* frozen: it is another gradient */
    CHECK(!td_gradient_fits(d, inputs));
    CHECK_INT(td_set_requires_grad(held[0], true), TD_OK);
    /* A constant that backward reads is kept with its version, too. */
    td_tensor *out[MOST] = {NULL};
    CHECK_INT(call(s, d, 2, x, out), TD_OK);
    CHECK_INT(TD_APPLY_INPLACE(add, TD_T(held[1]), TD_F(1)), TD_OK);
    drop(2, grads[1]);
    CHECK_INT(TD_APPLY(&one, ones_like, TD_T(out[0])), TD_OK);
    CHECK_INT(td_autograd_grad(1, out, &one, 1, x, (td_backward_options){0}, false, grads[1]),
              TD_EAUTOGRAD);
    td_release(one);
    drop(1, out);
    drop(2, grads[0]);
    drop(2, grads[1]);
    td_gradient_release(d);
    td_script_release(s);
    drop(2, x);
    drop(2, held);
}

TEST(integers_pass_and_outputs_without_a_gradient_have_none) {
    static const char text[] = "graph(%x : Tensor, %i : Tensor):\n"
                               "  %dim : int = prim::Constant[value=1]()\n"
                               "  %a : Tensor = aten::exp(%x)\n"
                               "  %b : Tensor = aten::gather(%a, %dim, %i, %no)\n"
                               "  %c : Tensor = aten::detach(%a)\n"
                               "  %d : Tensor = aten::mul(%b, %b)\n"
                               "  return (%d, %c, %i, %x)\n";
    td_tensor *x[2] = {make(TD_F64, shape), NULL}, *out[2][MOST] = {{NULL}};
    td_tensor *grads[2][1] = {{NULL}};
    static const int64_t small[3] = {3, 2};
    x[1] = make(TD_I64, small);
    REQUIRE(x[0] && x[1]);
    for (int k = 0; k < 6; k++)
        ((int64_t *)x[1]->data)[k] = k % 4;
    CHECK_INT(td_set_requires_grad(x[0], true), TD_OK);
    td_script *s = script_of(text);
    REQUIRE(s != NULL);
    td_gradient *d = derive(s, 2, x);
    REQUIRE(d != NULL);
    for (int derived = 0; derived < 2; derived++) {
        td_tensor *sum = NULL;
        CHECK_INT(call(s, derived ? d : NULL, 2, x, out[derived]), TD_OK);
        CHECK_INT(weigh(out[derived][0], &sum), TD_OK);
        CHECK_INT(
            td_autograd_grad(1, &sum, NULL, 1, x, (td_backward_options){0}, false, grads[derived]),
            TD_OK);
        td_release(sum);
    }
    CHECK(same_bits(grads[0][0], grads[1][0]));
    for (int k = 0; k < 4; k++) {
        CHECK(same_bits(out[0][k], out[1][k]));
        CHECK_INT(out[0][k]->requires_grad, out[1][k]->requires_grad);
    }
    CHECK(out[1][2] == x[1] && out[1][3] == x[0]);
    drop(4, out[0]);
    drop(4, out[1]);
    drop(1, grads[0]);
    drop(1, grads[1]);
    td_gradient_release(d);
    td_script_release(s);
    drop(2, x);
}

/* ---- modes within a traced function ---- */

/* tanh(x * y) in no_grad, times x, by y in autocast to bfloat16. */
static td_status with_modes(td_tensor *const *x, td_tensor **out) {
    td_tensor *t[4] = {NULL};
    bool before = td_set_grad_enabled(false);
    td_status status = TD_APPLY(&t[0], mul, TD_T(x[0]), TD_T(x[1]));
    if (status == TD_OK)
        status = TD_APPLY(&t[1], tanh, TD_T(t[0]));
    td_set_grad_enabled(before);
    if (status == TD_OK)
        status = TD_APPLY(&t[2], mul, TD_T(t[1]), TD_T(x[0]));
    td_modes cast = td_get_modes();
    cast.casting = cast.uncached = true;
    cast.cast[TD_CPU] = TD_BF16;
    cast = td_set_modes(cast);
    if (status == TD_OK)
        status = TD_APPLY(&t[3], matmul, TD_T(t[2]), TD_T(x[1]));
    td_set_modes(cast);
    if (status == TD_OK)
        status = TD_APPLY(out, to, TD_T(t[3]), TD_DTYPE(TD_F32));
    drop(4, t);
    return status;
}

TEST(no_grad_and_autocast_in_a_traced_function_keep_their_meaning) {
    static const int64_t square[3] = {4, 4};
    td_tensor *x[2] = {make(TD_F32, square), make(TD_F32, square)}, *out = NULL;
    td_tensor *grads[3][2] = {{NULL}};
    td_trace *trace = NULL;
    td_ir_graph *g = NULL;
    td_script *s = NULL;
    for (int k = 0; k < 2; k++)
        CHECK_INT(td_set_requires_grad(x[k], true), TD_OK);
    REQUIRE(td_trace_begin(2, x, NULL, NULL, NULL, &trace) == TD_OK);
    CHECK_INT(with_modes(x, &out), TD_OK);
    REQUIRE(td_trace_end(trace, 1, &out, &g) == TD_OK && td_script_new(g, &s) == TD_OK);
    drop(1, &out);
    td_gradient *d = derive(s, 2, x);
    REQUIRE(d != NULL);
    for (int way = 0; way < 3; way++) { /* the function itself, its graph, with the gradient's */
        td_tensor *sum = NULL;
        CHECK_INT(way ? call(s, way > 1 ? d : NULL, 2, x, &out) : with_modes(x, &out), TD_OK);
        CHECK_INT(weigh(out, &sum), TD_OK);
        CHECK_INT(
            td_autograd_grad(1, &sum, NULL, 2, x, (td_backward_options){0}, false, grads[way]),
            TD_OK);
        td_release(sum);
        drop(1, &out);
    }
    for (int k = 0; k < 2; k++)
        CHECK(same_bits(grads[0][k], grads[1][k]) && same_bits(grads[0][k], grads[2][k]));
    for (int way = 0; way < 3; way++)
        drop(2, grads[way]);
    td_gradient_release(d);
    td_script_release(s);
    td_ir_graph_release(g);
    drop(2, x);
}

/* ---- modes of blocks ---- */

/* clang-format off */
static const char *const blocks[] = {
    "graph(%x : Tensor, %y : Tensor):\n"
    "  %a : Tensor = aten::mul(%x, %y)\n"
    "  %t : Tensor, %v : Tensor = prim::With[mode=\"no_grad\"]()\n"
    "    block0():\n"
    "      %b : Tensor = aten::tanh(%a)\n"
    "      %r : Tensor = prim::With[mode=\"enable_grad\"]()\n"
    "        block0():\n"
    "          %c : Tensor = aten::exp(%a)\n"
    "          -> (%c)\n"
    "      %d : Tensor = aten::mul(%b, %r)\n"
    "      -> (%d, %r)\n"
    "  %e : Tensor = aten::mul(%t, %x)\n"
    "  %f : Tensor = aten::mul(%e, %v)\n"
    "  return (%f)\n",
    /* the weight %y is cast once for the region: its gradients are added up in bfloat16 */
    "graph(%x : Tensor, %y : Tensor):\n"
    "  %t : Tensor, %u : Tensor = prim::With[mode=\"autocast\"]()\n"
    "    block0():\n"
    "      %b : Tensor = aten::matmul(%x, %y)\n"
    "      %c : Tensor = aten::matmul(%b, %y)\n"
    "      %d : Tensor = prim::With[mode=\"autocast\", enabled=0]()\n"
    "        block0():\n"
    "          %m : Tensor = aten::matmul(%x, %y)\n"
    "          -> (%m)\n"
    "      %f : Tensor = aten::matmul(%c, %y)\n"
    "      -> (%f, %d)\n"
    "  %e : Tensor = aten::mul(%t, %u)\n"
    "  %k : Tensor = aten::matmul(%x, %y)\n"
    "  %g : Tensor = aten::add(%e, %k, %one)\n"
    "  return (%g)\n",
    "graph(%x : Tensor, %y : Tensor):\n"
    "  %n : int = prim::Constant[value=3]()\n"
    "  %z : Tensor = prim::Loop(%n, %yes, %x)\n"
    "    block0(%k : int, %a : Tensor):\n"
    "      %s : Tensor = prim::With[mode=\"no_grad\"]()\n"
    "        block0():\n"
    "          %b : Tensor = aten::mul(%a, %y)\n"
    "          -> (%b)\n"
    "      %t : Tensor = prim::With[mode=\"autocast\", dtype=\"float16\", cached=0]()\n"
    "        block0():\n"
    "          %c : Tensor = aten::matmul(%a, %y)\n"
    "          -> (%c)\n"
    "      %d : Tensor = aten::mul(%s, %t)\n"
    "      -> (%yes, %d)\n"
    "  return (%z)\n"};
/* clang-format on */
enum { BLOCKS = sizeof blocks / sizeof *blocks };

TEST(modes_of_blocks_hold_in_gradients) {
    static const int64_t square[3] = {4, 4};
    for (int b = 0; b < BLOCKS; b++) {
        td_tensor *x[2] = {make(TD_F32, square), make(TD_F32, square)};
        td_tensor *grads[2][2] = {{NULL}};
        td_script *s = script_of(blocks[b]);
        td_modes before = td_get_modes();
        for (int k = 0; k < 2; k++)
            CHECK_INT(td_set_requires_grad(x[k], true), TD_OK);
        td_gradient *d = s ? derive(s, 2, x) : NULL;
        REQUIRE(d != NULL);
        for (int way = 0; way < 2; way++)
            CHECK_INT(gradients(s, way ? d : NULL, 2, x, -1, false, grads[way]), TD_OK);
        for (int k = 0; k < 2; k++)
            if (!grads[0][k] || !same_bits(grads[0][k], grads[1][k]))
                check_fail(__FILE__, __LINE__, "graph %d: gradient %d: other bits", b, k);
        td_modes after = td_get_modes();
        CHECK(!memcmp(&before, &after, sizeof before));
        drop(2, grads[0]);
        drop(2, grads[1]);
        td_gradient_release(d);
        td_script_release(s);
        drop(2, x);
    }
}

TEST(a_failure_in_a_block_leaves_its_mode) {
    static const int64_t square[3] = {4, 4}, other[3] = {3, 3};
    td_tensor *x[2] = {make(TD_F32, square), make(TD_F32, other)}, *out[MOST] = {NULL};
    td_script *s = script_of(blocks[1]);
    REQUIRE(s != NULL && x[0] && x[1]);
    td_modes before = td_get_modes();
    CHECK(call(s, NULL, 2, x, out) != TD_OK);
    td_modes after = td_get_modes();
    CHECK(!memcmp(&before, &after, sizeof before));
    td_script_release(s);
    drop(2, x);
}

TEST(what_a_block_makes_under_inference_is_recorded_by_nobody) {
    static const char text[] = "graph(%x : Tensor, %y : Tensor):\n"
                               "  %t : Tensor = prim::With[mode=\"inference_mode\"]()\n"
                               "    block0():\n"
                               "      %b : Tensor = aten::mul(%x, %y)\n"
                               "      -> (%b)\n"
                               "  return (%t)\n";
    td_tensor *x[2] = {make(TD_F32, shape), make(TD_F32, shape)}, *out[MOST] = {NULL};
    td_script *s = script_of(text);
    REQUIRE(s != NULL && td_set_requires_grad(x[0], true) == TD_OK);
    CHECK_INT(call(s, NULL, 2, x, out), TD_OK);
    CHECK(out[0] && !out[0]->requires_grad && out[0]->storage->inference);
    td_value inputs[2] = {TD_T(x[0]), TD_T(x[1])};
    td_gradient *d = NULL;
    CHECK_INT(td_gradient_new(s, inputs, &d), TD_EVALUE);
    CHECK_CONTAINS(td_error_message(), "inference_mode");
    drop(1, out);
    td_script_release(s);
    drop(2, x);
}

/* ---- where there is none ---- */

static void check_refused(const char *text, const char *why) {
    td_tensor *x[2] = {make(TD_F64, shape), make(TD_F64, shape)};
    td_value inputs[2] = {TD_T(x[0]), TD_T(x[1])};
    td_gradient *d = NULL;
    CHECK_INT(td_set_requires_grad(x[0], true), TD_OK);
    td_script *s = script_of(text);
    REQUIRE(s != NULL);
    CHECK(td_gradient_new(s, inputs, &d) != TD_OK);
    CHECK(d == NULL);
    CHECK_CONTAINS(td_error_message(), why);
    CHECK(td_get_modes().dispatcher == NULL && td_grad_enabled());
    td_script_release(s);
    drop(2, x);
}

TEST(graphs_without_a_gradient_say_why) {
    check_refused("graph(%x : Tensor, %y : Tensor):\n"
                  "  %a : Tensor = aten::argmax(%x, %none, %yes)\n"
                  "  return (%a)\n",
                  "no output has a gradient");
    check_refused("graph(%x : Tensor, %y : Tensor):\n"
                  "  %a : Tensor = aten::nonzero(%x, %no)\n"
                  "  %b : Tensor = aten::exp(%x)\n"
                  "  return (%b, %a)\n",
                  "elements");
    check_refused("graph(%x : Tensor, %y : Tensor):\n"
                  "  %a : Tensor = aten::exp(%x)\n"
                  "  %b : Tensor = aten::mul(%y, %three)\n"
                  "  %c : Tensor = aten::mul_(%b, %a)\n"
                  "  return (%c)\n",
                  "a write in place destroys");
    check_refused("graph(%x : Tensor, %y : Tensor):\n"
                  "  %a : Tensor = aten::exp(%x)\n"
                  "  %b : Tensor = aten::add_(%y, %a, %one)\n"
                  "  return (%b)\n",
                  "not made in the graph is written in place");
    check_refused("graph(%x : Tensor, %y : Tensor):\n"
                  "  %a : Tensor = aten::add_(%x, %y, %one)\n"
                  "  return (%a)\n",
                  "requires grad");
}

TEST(a_gradient_is_for_inputs_like_those_it_was_derived_for) {
    static const int64_t other[3] = {4, 3};
    scene c;
    REQUIRE(set_scene(&c, tanh_text));
    td_tensor *misfit = make(TD_F64, other), *single = make(TD_F32, shape), *turned = NULL;
    td_tensor *plain = make(TD_F64, shape);
    CHECK_INT(TD_APPLY(&turned, transpose, TD_T(misfit), TD_I(0), TD_I(1)), TD_OK);
    td_value inputs[2] = {TD_T(c.x[0]), TD_T(c.x[1])};
    CHECK(td_gradient_fits(c.d, inputs));
    td_tensor *const others[] = {misfit, single, turned, plain};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        inputs[1] = TD_T(others[k]);
        CHECK(!td_gradient_fits(c.d, inputs));
    }
    inputs[1] = TD_F(1);
    CHECK(!td_gradient_fits(c.d, inputs));
    inputs[1] = TD_T(c.x[1]);
    bool before = td_set_grad_enabled(false);
    CHECK(!td_gradient_fits(c.d, inputs));
    td_set_grad_enabled(before);
    drop(1, &misfit);
    drop(1, &single);
    drop(1, &turned);
    drop(1, &plain);
    strike_scene(&c);
}

TEST(an_anomaly_is_found_behind_the_graph) {
    static const char text[] = "graph(%x : Tensor, %y : Tensor):\n"
                               "  %a : Tensor = aten::sub(%x, %x, %one)\n"
                               "  %b : Tensor = aten::sqrt(%a)\n"
                               "  %c : Tensor = aten::mul(%b, %a)\n"
                               "  return (%c)\n";
    scene c;
    td_tensor *grads[2] = {NULL};
    REQUIRE(set_scene(&c, text));
    td_modes modes = td_get_modes();
    modes.anomaly = true;
    td_modes before = td_set_modes(modes);
    CHECK_INT(gradients(c.s, c.d, 2, c.x, -1, false, grads), TD_EAUTOGRAD);
    td_set_modes(before);
    CHECK_CONTAINS(td_error_message(), "ScriptFunctionBackward gave nan");
    strike_scene(&c);
}

TEST(calls_of_backward_have_the_place_of_the_forward_call) {
    static const char text[] = "graph(%x : Tensor, %y : Tensor):\n"
                               "  %a : Tensor = aten::mul(%x, %y) # cell.lua:3:5\n"
                               "  %b : Tensor = aten::matmul(%a, %y) # cell.lua:4\n"
                               "  return (%b)\n";
    static const int64_t square[3] = {4, 4};
    td_tensor *x[2] = {make(TD_F64, square), make(TD_F64, square)};
    td_script *s = script_of(text);
    REQUIRE(s && td_set_requires_grad(x[0], true) == TD_OK);
    td_gradient *d = derive(s, 2, x);
    REQUIRE(d != NULL);
    int places[2] = {0};
    const td_ir_graph *g = td_gradient_backward(d);
    for (const td_ir_node *node = g->block->first; node; node = node->next)
        if (node->op) {
            int line = node->op == TD_OP(mul) ? 3 : 4;
            CHECK_STR(node->place.file, "cell.lua");
            CHECK_INT(node->place.line, line);
            places[line - 3]++;
        }
    CHECK(places[0] && places[1]);
    td_gradient_release(d);
    td_script_release(s);
    drop(2, x);
}

/* ---- threads ---- */

static void *run_often(void *ctx) {
    scene *shared = ctx;
    td_tensor *x[2] = {NULL}, *want[2] = {NULL}, *got[2] = {NULL};
    for (int k = 0; k < 2; k++)
        if (TD_APPLY(&x[k], clone, TD_T(shared->x[k])) || td_detach(x[k]) ||
            td_set_requires_grad(x[k], true))
            return NULL;
    CHECK_INT(gradients(shared->s, NULL, 2, x, -1, false, want), TD_OK);
    for (int k = 0; k < 60; k++) {
        int n = 1 + k % 2; /* another variant of backward */
        td_tensor *out[MOST] = {NULL}, *sum = NULL;
        CHECK_INT(call(shared->s, shared->d, 2, x, out), TD_OK);
        CHECK_INT(weigh(out[0], &sum), TD_OK);
        CHECK_INT(td_autograd_grad(1, &sum, NULL, n, x, (td_backward_options){0}, false, got),
                  TD_OK);
        for (int j = 0; j < n; j++)
            CHECK(same_bits(got[j], want[j]));
        td_release(sum);
        drop(1, out);
        drop(n, got);
    }
    drop(2, want);
    drop(2, x);
    return NULL;
}

TEST(several_threads_use_one_gradient) {
    scene c;
    pthread_t threads[4];
    REQUIRE(set_scene(&c, tanh_text));
    for (int k = 0; k < 4; k++)
        REQUIRE(pthread_create(&threads[k], NULL, run_often, &c) == 0);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    strike_scene(&c);
}

/* ---- by kind of inputs ---- */

static bool is_taken(td_gradients *all, td_tensor *const *x) {
    td_value inputs[2] = {TD_T(x[0]), TD_T(x[1])}, output = TD_NIL;
    bool taken = false;
    CHECK_INT(td_gradients_call(all, inputs, &output, &taken), TD_OK);
    if (taken)
        CHECK_STR(td_grad_fn_name(td_arg_tensor(output)), "ScriptFunctionBackward");
    td_script_drop(&output);
    return taken;
}

TEST(sizes_that_change_with_every_call_have_one_gradient) {
    scene c;
    char why[200];
    td_gradients *all = NULL;
    REQUIRE(set_scene(&c, tanh_text));
    REQUIRE(td_gradients_new(c.s, "scene", &all) == TD_OK);
    CHECK(is_taken(all, c.x)); /* the first at once */
    for (int round = 0; round < 3; round++)
        for (int64_t n = 1; n <= TD_GRADIENTS_MOST; n++) {
            int64_t sizes[3] = {n, 5};
            td_tensor *x[2] = {make(TD_F64, sizes), make(TD_F64, sizes)};
            for (int k = 0; k < 2; k++)
                CHECK_INT(td_set_requires_grad(x[k], true), TD_OK);
            CHECK_INT(is_taken(all, x), round > 0 || n > 1); /* 1 is a size of its own */
            drop(2, x);
        }
    CHECK_INT(td_gradients_count(all), 3);
    CHECK(td_gradient_is_sized(td_gradients_get(all, 1)));
    CHECK_STR(td_gradients_why(all, why, sizeof why), "");
    bool before = td_set_grad_enabled(false);
    CHECK(!is_taken(all, c.x));
    td_set_grad_enabled(before);
    td_gradients_free(all);
    strike_scene(&c);
}

/* Calls with sizes that others may meet first, and their gradients. */
static void *run_sizes(void *ctx) {
    td_gradients *all = ctx;
    td_script *s = script_of(tanh_text);
    for (int64_t k = 0; k < 40 && s; k++) {
        int64_t sizes[3] = {2 + k % 9, 5};
        td_tensor *x[2] = {make(TD_F64, sizes), make(TD_F64, sizes)};
        td_tensor *want[2] = {NULL}, *got[2] = {NULL}, *sum = NULL;
        td_value inputs[2] = {TD_T(x[0]), TD_T(x[1])}, output = TD_NIL;
        bool taken = false;
        for (int j = 0; j < 2; j++)
            CHECK_INT(td_set_requires_grad(x[j], true), TD_OK);
        CHECK_INT(gradients(s, NULL, 2, x, -1, false, want), TD_OK);
        CHECK_INT(td_gradients_call(all, inputs, &output, &taken), TD_OK);
        if (taken) {
            CHECK_INT(weigh(td_arg_tensor(output), &sum), TD_OK);
            CHECK_INT(td_autograd_grad(1, &sum, NULL, 2, x, (td_backward_options){0}, false, got),
                      TD_OK);
            CHECK(same_bits(want[0], got[0]) && same_bits(want[1], got[1]));
        }
        td_release(sum);
        td_script_drop(&output);
        drop(2, want);
        drop(2, got);
        drop(2, x);
    }
    td_script_release(s);
    return NULL;
}

TEST(several_threads_meet_new_sizes) {
    pthread_t threads[4];
    td_gradients *all = NULL;
    td_script *s = script_of(tanh_text);
    REQUIRE(s != NULL && td_gradients_new(s, "g", &all) == TD_OK);
    for (int k = 0; k < 4; k++)
        REQUIRE(pthread_create(&threads[k], NULL, run_sizes, all) == 0);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    CHECK_INT(td_gradients_count(all), 2);
    td_gradients_free(all);
    td_script_release(s);
}

TEST(dtypes_that_change_are_derived_when_they_come_again) {
    scene c;
    td_gradients *all = NULL;
    REQUIRE(set_scene(&c, tanh_text));
    REQUIRE(td_gradients_new(c.s, "scene", &all) == TD_OK);
    CHECK(is_taken(all, c.x));
    for (int round = 0; round < 3; round++) {
        td_tensor *x[2] = {make(TD_F32, shape), make(TD_F32, shape)};
        CHECK_INT(td_set_requires_grad(x[0], true), TD_OK);
        CHECK_INT(is_taken(all, x), round > 0);
        drop(2, x);
    }
    CHECK_INT(td_gradients_count(all), 2);
    td_gradients_free(all);
    strike_scene(&c);
}

TEST(a_graph_without_a_gradient_is_asked_once) {
    scene c = {.s = script_of("graph(%x : Tensor, %y : Tensor):\n"
                              "  %a : Tensor = aten::masked_select(%x, %y)\n"
                              "  return (%a)\n")};
    char why[200];
    td_gradients *all = NULL;
    REQUIRE(c.s != NULL && td_gradients_new(c.s, "scene", &all) == TD_OK);
    c.x[0] = make(TD_F64, shape);
    REQUIRE(TD_APPLY(&c.x[1], gt, TD_T(c.x[0]), TD_F(1)) == TD_OK);
    CHECK_INT(td_set_requires_grad(c.x[0], true), TD_OK);
    for (int round = 0; round < 3; round++)
        CHECK(!is_taken(all, c.x));
    CHECK_CONTAINS(td_gradients_why(all, why, sizeof why), "no elements to read");
    td_gradients_free(all);
    strike_scene(&c);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(what_is_cheap_is_computed_again_and_what_is_dear_is_kept);
    RUN(backward_of_pointwise_calls_is_one_group);
    RUN(gradients_that_nobody_wants_are_not_computed);
    RUN(a_write_to_what_backward_reads_is_the_error_of_eager_mode);
    RUN(what_is_kept_goes_with_backward_unless_the_graph_is_retained);
    RUN(hooks_and_retained_gradients_see_the_gradient_of_an_output);
    RUN(an_input_with_a_history_hands_its_gradient_on);
    RUN(one_tensor_may_be_both_inputs);
    RUN(gradients_reach_tensors_that_the_graph_holds);
    RUN(integers_pass_and_outputs_without_a_gradient_have_none);
    RUN(no_grad_and_autocast_in_a_traced_function_keep_their_meaning);
    RUN(modes_of_blocks_hold_in_gradients);
    RUN(a_failure_in_a_block_leaves_its_mode);
    RUN(what_a_block_makes_under_inference_is_recorded_by_nobody);
    RUN(graphs_without_a_gradient_say_why);
    RUN(a_gradient_is_for_inputs_like_those_it_was_derived_for);
    RUN(an_anomaly_is_found_behind_the_graph);
    RUN(calls_of_backward_have_the_place_of_the_forward_call);
    RUN(several_threads_use_one_gradient);
    RUN(sizes_that_change_with_every_call_have_one_gradient);
    RUN(several_threads_meet_new_sizes);
    RUN(dtypes_that_change_are_derived_when_they_come_again);
    RUN(a_graph_without_a_gradient_is_asked_once);
    return check_finish();
}
