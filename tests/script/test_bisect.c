/* test_bisect.c: a pass that changes values is found, and the node; where none does, none is. */
#include "engine/script/passes/bisect.h"
#include "engine/td.h"

#include "tests/check.h"
#include "tests/script/random_graph.h"

#include <stdlib.h>

static const char text[] =
    "graph(%x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n"
    "  %n : int = prim::Constant[value=1]()\n"
    "  %none : NoneType = prim::Constant()\n"
    "  %f : dtype = prim::Constant[value=\"float32\"]()\n"
    "  %s : int[] = prim::Constant[value=[3]]()\n"
    "  %r : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::rand(%s, %f, %none, %none)\n"
    "  %a : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::exp(%x) # cell.lua:3\n"
    "  %b : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::add(%a, %r, %n) # "
    "cell.lua:4:2\n"
    "  %w : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::neg_(%x)\n"
    "  %c : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::mul(%b, %b)\n"
    "  return (%c)\n";

/* Takes sums for differences. */
static td_status spoil(td_ir_graph *g, td_pass_note *note) {
    for (td_ir_node *node = g->block->first; node; node = node->next)
        if (node->kind == TD_IR_OPERATOR && node->op == TD_OP(add)) {
            node->op = TD_OP(sub);
            td_pass_say(note, node, "is a difference");
        }
    return td_ir_status(g);
}
static const td_pass spoiler = {"spoil", "Takes sums for differences.", false, spoil};

static td_tensor *three(void) {
    td_tensor *x = NULL;
    if (td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, (int64_t[]){3}, &x))
        return NULL;
    for (int k = 0; k < 3; k++)
        ((float *)x->data)[k] = (float)k / 2;
    return x;
}

TEST(the_pass_and_the_node_are_found) {
    const td_pass *passes[] = {td_pass_find("types"), td_pass_find("common"), &spoiler,
                               td_pass_find("dead")};
    td_ir_graph *g = NULL;
    td_bisect_result found;
    td_tensor *x = three();
    td_value input = TD_T(x);
    REQUIRE(x && td_ir_parse(text, &g) == TD_OK);
    CHECK_INT(td_bisect(g, &input, 4, passes, NULL, &found), TD_OK);
    CHECK(found.pass == &spoiler);
    CHECK_INT(found.step, 3);
    CHECK_CONTAINS(found.node, "%b : ");
    CHECK_CONTAINS(found.node, "aten::sub(%a, %r, %n)");
    CHECK_STR(found.place.file, "cell.lua");
    CHECK_INT(found.place.line, 4);
    CHECK_CONTAINS(found.why, "%b, element 1: ");
    CHECK_CONTAINS(found.before, "aten::add(%a, %r, %n)");
    CHECK_CONTAINS(found.after, "aten::sub(%a, %r, %n)");
    CHECK(((float *)x->data)[2] == 1.0f); /* runs write copies */
    char *printed = td_ir_print(g);
    CHECK_CONTAINS(printed, "aten::add(%a, %r, %n)");
    td_free(printed);
    td_bisect_result_clear(&found);
    td_ir_graph_release(g);
    td_release(x);
}

TEST(where_nothing_differs_nothing_is_found) {
    td_ir_graph *g = NULL;
    td_bisect_result found;
    td_tensor *x = three();
    td_value input = TD_T(x);
    REQUIRE(x && td_ir_parse(text, &g) == TD_OK);
    CHECK_INT(td_bisect(g, &input, 0, NULL, NULL, &found), TD_OK);
    CHECK(found.pass == NULL && found.node == NULL);
    td_bisect_result_clear(&found);
    td_ir_graph_release(g);
    td_release(x);
}

TEST(an_error_that_changes_is_a_difference) {
    static const char misfit[] = "graph(%x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n"
                                 "  %n : int = prim::Constant[value=1]()\n"
                                 "  %s : int[] = prim::Constant[value=[2]]()\n"
                                 "  %b : Tensor = aten::add(%x, %x, %n)\n"
                                 "  %c : Tensor = aten::view(%b, %s)\n"
                                 "  return (%b)\n";
    const td_pass *passes[] = {&spoiler};
    td_ir_graph *g = NULL;
    td_bisect_result found;
    td_tensor *x = three();
    td_value input = TD_T(x);
    REQUIRE(x && td_ir_parse(misfit, &g) == TD_OK);
    CHECK_INT(td_bisect(g, &input, 1, passes, NULL, &found), TD_OK);
    CHECK(found.pass == NULL); /* the same error, before the sum is seen */
    td_bisect_result_clear(&found);
    td_ir_graph_release(g);
    td_release(x);
}

TEST(memory_that_runs_out_is_said_and_nothing_leaks) {
    const td_pass *passes[] = {td_pass_find("types"), &spoiler};
    td_tensor *x = three();
    td_value input = TD_T(x);
    td_ir_graph *g = NULL;
    int whole = 0;
    REQUIRE(x && td_ir_parse(text, &g) == TD_OK);
    for (int64_t n = 1; whole < 20; n++) {
        td_bisect_result found;
        td_memory_fail_after(n);
        td_status status = td_bisect(g, &input, 2, passes, NULL, &found);
        td_memory_fail_after(0);
        CHECK(status == TD_OK || status == TD_ENOMEM);
        whole = status == TD_OK ? whole + 1 : 0;
        td_bisect_result_clear(&found);
    }
    CHECK_INT(atomic_load(&x->refs), 1);
    td_ir_graph_release(g);
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(the_pass_and_the_node_are_found);
    RUN(where_nothing_differs_nothing_is_found);
    RUN(an_error_that_changes_is_a_difference);
    RUN(memory_that_runs_out_is_said_and_nothing_leaks);
    return check_finish();
}
