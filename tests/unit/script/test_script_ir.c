/* test_script_ir.c: graphs: their printed form read and printed again, what is refused and where,
 * rewriting, what the verifier finds, and memory that runs out. */
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>

/* ---- texts ---- */

static const char *const texts[] = {
    "graph(%x.1 : Float(*),\n"
    "      %n : int):\n"
    "  %2 : float = prim::Constant[value=0.5]()\n"
    "  %3 : Float(*) = aten::mul(%x.1, %2) # cell.lua:2:9\n"
    "  return (%3)\n",

    "graph():\n"
    "  return ()\n",

    "graph(%0 : Tensor,\n"
    "      %1 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),\n"
    "      %2 : Half(..., requires_grad=1),\n"
    "      %3 : Long(requires_grad=0, device=cpu),\n"
    "      %4 : int[]?,\n"
    "      %5 : (int, Tensor[], str?),\n"
    "      %6 : Future(Tensor),\n"
    "      %7 : Bool(2, *, *)):\n"
    "  return (%0, %4)\n",

    "graph(%x : Tensor,\n"
    "      %c : bool):\n"
    "  %none : NoneType = prim::Constant()\n"
    "  %i : int = prim::Constant[value=-9223372036854775808]()\n"
    "  %t : bool = prim::Constant[value=1]()\n"
    "  %f : float = prim::Constant[value=0.1]()\n"
    "  %g : float = prim::Constant[value=3.]()\n"
    "  %h : float = prim::Constant[value=-inf]()\n"
    "  %e : float = prim::Constant[value=1e+300]()\n"
    "  %s : str = prim::Constant[value=\"a\\\"b\\\\ \\n\\001\"]()\n"
    "  %l : int[] = prim::Constant[value=[1, -2]]()\n"
    "  %m : float[] = prim::Constant[value=[]]()\n"
    "  %d : dtype = prim::Constant[value=\"bfloat16\"]()\n"
    "  %v : Device = prim::Constant[value=\"cpu\"]()\n"
    "  %u : Double(requires_grad=0, device=cpu) = prim::Constant[value={2.5}]()\n"
    "  %w : Long(requires_grad=0, device=cpu) = prim::Constant[value={7}]()\n"
    "  return (%u, %w)\n",

    "graph(%x.1 : Tensor,\n"
    "      %n.1 : int,\n"
    "      %c : bool):\n"
    "  %t : bool = prim::Constant[value=1]()\n"
    "  %y : Tensor = prim::Loop(%n.1, %t, %x.1) # f.lua:3\n"
    "    block0(%k : int, %y.1 : Tensor):\n"
    "      %z : Tensor = prim::If(%c) # f.lua:4:2\n"
    "        block0():\n"
    "          %a : Tensor = aten::exp(%y.1)\n"
    "          -> (%a)\n"
    "        block1():\n"
    "          -> (%x.1)\n"
    "      %b : Tensor = aten::relu_(%z)\n"
    "      -> (%t, %b)\n"
    "  %p : Tensor[] = prim::ListConstruct(%x.1, %y)\n"
    "  %d : int = prim::Constant[value=0]()\n"
    "  %q : Tensor = aten::cat(%p, %d)\n"
    "  %r : (Tensor, int) = prim::TupleConstruct(%q, %d)\n"
    "  %q1 : Tensor, %d1 : int = prim::TupleUnpack(%r)\n"
    "  return (%q1, %d1)\n",

    "graph(%x : Float(4),\n"
    "      %y : Float(4)):\n"
    "  %z : Float(4), %s : Float(4) = prim::FusionGroup_0(%x, %y)\n"
    "  %u : Float(4) = prim::FusionGroup_1(%z)\n"
    "  return (%u, %s)\n"
    "with prim::FusionGroup_0 = graph(%a : Float(4),\n"
    "                                 %b : Float(4)):\n"
    "  %c : Float(4) = aten::mul(%a, %b)\n"
    "  %d : Float(4) = aten::exp(%c)\n"
    "  return (%c, %d)\n"
    "with prim::FusionGroup_1 = graph(%a : Float(4)):\n"
    "  %c : Float(4) = aten::tanh(%a)\n"
    "  return (%c)\n",

    "graph(%l : int[],\n"
    "      %s : str,\n"
    "      %o : float?):\n"
    "  %n : int = aten::len(%l) # a.lua:3:1\n"
    "  %m : int = aten::add(%n, %n)\n"
    "  %b : bool = aten::lt(%n, %m)\n"
    "  %e : int = aten::__getitem__(%l, %n)\n"
    "  %k : int[] = aten::append(%l, %e)\n"
    "  %t : (int, str) = prim::TupleConstruct(%n, %s)\n"
    "  %i : int = prim::Constant[value=1]()\n"
    "  %p : str = prim::TupleIndex(%t, %i)\n"
    "  %q : float = prim::unchecked_cast(%o)\n"
    "  prim::Print(%p, %q)\n"
    "  prim::RaiseException(%p)\n"
    "  %f : Future(int) = prim::fork_0(%n, %m)\n"
    "  %w : int = aten::wait(%f)\n"
    "  %c : int = prim::CallFunction_1(%w)\n"
    "  %h : Any = prim::HostCall[id=3](%c)\n"
    "  return (%h)\n"
    "with prim::fork_0 = graph(%a : int,\n"
    "                          %b : int):\n"
    "  %c : int = aten::floordiv(%a, %b)\n"
    "  return (%c)\n"
    "with prim::CallFunction_1 = graph(%a : int):\n"
    "  %b : int = prim::CallFunction_1(%a)\n"
    "  return (%b)\n",
};
enum { TEXTS = sizeof texts / sizeof *texts };

static td_ir_graph *read_graph(const char *text) {
    td_ir_graph *g = NULL;
    if (td_ir_parse(text, &g))
        check_fail(__FILE__, __LINE__, "%s in\n%s", td_error_message(), text);
    return g;
}

TEST(texts_that_are_read_are_printed_alike) {
    for (int k = 0; k < TEXTS; k++) {
        td_ir_graph *g = read_graph(texts[k]);
        REQUIRE(g != NULL);
        char *printed = td_ir_print(g);
        CHECK_STR(printed, texts[k]);
        td_free(printed);
        td_ir_graph_release(g);
    }
}

/* As PyTorch 2.x prints a traced function; spaces and places are its own. */
TEST(graphs_of_pytorch_are_read) {
    td_ir_graph *g = read_graph(
        "graph(%x : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu),\n"
        "      %w : Float(3, 3, strides=[3, 1], requires_grad=0, device=cpu)):\n"
        "  %2 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::matmul(%x, %w) "
        "# /tmp/a.py:4:0\n"
        "  %3 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::tanh(%2) # "
        "/tmp/a.py:4:0\n"
        "  %4 : Long(requires_grad=0, device=cpu) = prim::Constant[value={3}]() # /tmp/a.py:5:0\n"
        "  %5 : int = prim::Constant[value=1]() # /tmp/a.py:5:0\n"
        "  %6 : Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu) = aten::add(%3, %4, %5) # "
        "/tmp/a.py:5:0\n"
        "  return (%6)\n");
    REQUIRE(g != NULL);
    const td_ir_node *last = g->block->last;
    CHECK_STR(last->op->name, "add");
    CHECK_STR(last->place.file, "/tmp/a.py");
    CHECK_INT(last->place.line, 5);
    CHECK_INT(g->block->outputs[0]->type->sizes[1], 3);
    td_ir_graph_release(g);
}

TEST(constant_tensors_are_read_and_printed_by_number) {
    static const char text[] = "graph():\n"
                               "  %a : Tensor = prim::Constant[tensor=0]()\n"
                               "  %b : Tensor = prim::Constant[tensor=1]()\n"
                               "  %c : Tensor = prim::Constant[tensor=0]()\n"
                               "  return (%a, %b, %c)\n";
    td_tensor *table[2] = {NULL};
    td_ir_graph *g = NULL;
    td_list tensors = {0};
    for (int k = 0; k < 2; k++)
        REQUIRE(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, (int64_t[]){3}, &table[k]) == TD_OK);
    REQUIRE(td_ir_parse_with(text, 2, table, &g) == TD_OK);
    char *printed = td_ir_print_with(g, &tensors);
    CHECK_STR(printed, text);
    CHECK_INT(tensors.n, 2);
    for (int k = 0; k < 2 && tensors.n == 2; k++)
        CHECK(((td_tensor **)tensors.items)[k] == table[k]);
    td_free(printed);
    td_list_clear(&tensors);
    td_ir_graph_release(g);
    for (int k = 0; k < 2; k++) {
        CHECK_INT(atomic_load(&table[k]->refs), 1);
        td_release(table[k]);
    }
}

/* A text that is cut anywhere, or in which a byte is another, is read or refused in one line. */
TEST(texts_that_are_damaged_are_refused_or_read) {
    for (int k = 0; k < TEXTS; k++) {
        size_t n = strlen(texts[k]);
        char *text = malloc(n + 1);
        REQUIRE(text != NULL);
        for (size_t at = 0; at < 2 * n; at++) {
            td_ir_graph *g = NULL;
            memcpy(text, texts[k], n + 1);
            if (at < n)
                text[at] = 0;
            else
                text[at - n] = (char)(text[at - n] ^ (1 + (int)at % 7));
            if (td_ir_parse(text, &g) == TD_OK) {
                CHECK(at >= n || at + 1 == n);
                char *printed = td_ir_print(g);
                CHECK(printed != NULL);
                td_free(printed);
            } else {
                CHECK(g == NULL && strlen(td_error_message()) > 0);
                CHECK(!strchr(td_error_message(), '\n'));
            }
            td_ir_graph_release(g);
        }
        free(text);
    }
}

TEST(errors_say_where_and_what) {
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"graph(%x : Tensor):\n  %y : Tensor = aten::expp(%x)\n  return (%y)\n",
         "line 2, column 23 of the graph: there is no operator 'expp'"},
        {"graph(%x : Tensor):\n  return (%y)\n", "%y has not been made"},
        {"graph(%x : Tensor,\n  %x : int):\n  return ()\n", "%x is made twice"},
        {"graph(%x : Tensr):\n  return ()\n", "a type expected"},
        {"graph(%x : Tensor):\n  %y : Tensor = aten::exp(%x, %x)\n  return (%y)\n",
         "exp that makes %y: 2 arguments, where it has 1 parameters"},
        {"graph(%x : int):\n  %y : Tensor = aten::tanh(%x)\n  return (%y)\n",
         "x is given %x, which is int"},
        {"graph(%x : int):\n  %y : Tensor = aten::exp(%x)\n  return (%y)\n",
         "exp that makes %y: x is given %x, which is int"},
        {"graph(%x : int):\n  %y : str = aten::exp(%x)\n  return (%y)\n",
         "exp that makes %y: %y is str, which it does not make"},
        {"graph(%x : str, %y : int):\n  %z : str = aten::glue(%x, %y)\n  return (%z)\n",
         "there is no operator 'glue'"},
        {"graph(%x : str, %y : int):\n  %z : str = aten::len(%x, %y)\n  return (%z)\n",
         "line 2, column 20 of the graph: 'len' does not take (str, int)"},
        {"graph():\n  %y : Tensor = prim::Constant[tensor=0]()\n  return ()\n",
         "there is no tensor 0"},
        {"graph(%x : Any[], %y : int[]):\n  %z : Any[] = aten::append(%x, %y)\n  return ()\n",
         "'append' does not take (Any[], int[])"},
        {"graph():\n  = prim::CallFunction_0()\n  return ()\n", "'prim::' expected"},
        {"graph():\n  prim::CallFunction_0()\n  return ()\n"
         "with prim::CallFunction_0 = graph():\n  prim::CallFunction_1()\n  return ()\n"
         "with prim::CallFunction_1 = graph():\n  prim::CallFunction_0()\n  return ()\n",
         "call one another in a circle"},
        {"graph(%t : (int, str)):\n  %i : int = prim::Constant[value=2]()\n"
         "  %z : Any = prim::TupleIndex(%t, %i)\n  return ()\n",
         "there is no part 2"},
        {"graph(%x : Tensor):\n  %y : Tensor = prim::If(%x)\n  return (%y)\n",
         "it has a condition and two blocks"},
        {"graph(%x : Tensor):\n  %y : Tensor = prim::FusionGroup_3(%x)\n  return (%y)\n",
         "the graph of group 3 is missing"},
        {"graph(%x : Float(1, 2, strides=[1])):\n  return ()\n", "1 strides of 2 dims"},
        {"graph():\n  %y : Tensor = prim::Constant[value=<Tensor>]()\n  return ()\n",
         "the elements of this tensor are not in the text"},
        {"graph():\n  return ()\nmore", "the text goes on behind the graph"},
        {"graph():\n  %a : Tensor = prim::Nothing()\n", "there is no node 'prim::Nothing'"},
        {"graph(%c : bool):\n  %a : int = prim::If(%c)\n    block0():\n      %i : int = "
         "prim::Constant[value=1]()\n      -> (%i)\n    block1():\n      -> (%i)\n  return (%a)\n",
         "is not made in it"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        td_ir_graph *g = NULL;
        CHECK(td_ir_parse(wrong[k].text, &g) != TD_OK);
        CHECK_CONTAINS(td_error_message(), wrong[k].says);
    }
}

TEST(deep_texts_are_refused) {
    char text[1024] = "graph(%x : ";
    size_t n = strlen(text);
    memset(text + n, '(', sizeof text - 1 - n);
    text[sizeof text - 1] = 0;
    td_ir_graph *g = NULL;
    CHECK_INT(td_ir_parse(text, &g), TD_EVALUE);
    CHECK_CONTAINS(td_error_message(), "nested deeper");
}

/* ---- making and rewriting ---- */

/* (exp(x) + exp(x)) with each exp a node of its own. */
static td_ir_graph *make_sum(void) {
    td_ir_graph *g = td_ir_graph_new();
    const td_ir_type *tensor = td_ir_simple_type(TD_IR_TENSOR);
    td_ir_value *x = td_ir_add_input(g->block, tensor, "x");
    td_ir_value *one = td_ir_add_constant(g->block, TD_I(1)), *terms[3];
    for (int k = 0; k < 2; k++) {
        td_ir_node *exp = td_ir_append(g->block, TD_IR_OPERATOR, 1, &x, 1, &tensor);
        exp->op = TD_OP(exp);
        terms[k] = exp->outputs[0];
    }
    terms[2] = one;
    td_ir_node *add = td_ir_append(g->block, TD_IR_OPERATOR, 3, terms, 1, &tensor);
    add->op = TD_OP(add);
    td_ir_set_outputs(g->block, 1, add->outputs);
    return g;
}

static int count_uses(const td_ir_value *value) {
    int n = 0;
    for (const td_ir_use *use = value->uses; use; use = use->next)
        n++;
    return n;
}

TEST(rewriting_keeps_a_graph_whole) {
    td_ir_graph *g = make_sum();
    td_ir_value *x = g->block->inputs[0];
    td_ir_node *add = g->block->last, *second = add->previous, *first = second->previous;
    CHECK_INT(td_ir_verify(g), TD_OK);
    CHECK_INT(count_uses(x), 2);
    td_ir_replace(second->outputs[0], first->outputs[0]);
    td_ir_remove(second);
    CHECK_INT(td_ir_verify(g), TD_OK);
    CHECK_INT(count_uses(x), 1);
    CHECK_INT(count_uses(first->outputs[0]), 2);
    CHECK(add->inputs[0] == add->inputs[1]);
    td_ir_set_input(add, 1, x);
    CHECK_INT(count_uses(x), 2);
    CHECK_INT(td_ir_verify(g), TD_OK);
    td_ir_move_before(add->inputs[2]->node, add);
    CHECK(add->previous->kind == TD_IR_CONSTANT);
    CHECK_INT(td_ir_verify(g), TD_OK);
    CHECK(td_ir_sees(add, first->outputs[0]) && !td_ir_sees(first, add->outputs[0]));
    td_ir_graph_release(g);
}

TEST(the_verifier_finds_what_is_broken) {
    td_ir_graph *g = make_sum();
    td_ir_node *add = g->block->last, *exp = add->previous;
    td_ir_move_before(add, exp);
    CHECK_INT(td_ir_verify(g), TD_EINTERNAL);
    CHECK_CONTAINS(td_error_message(), "is not made before it");
    td_ir_graph_release(g);
    g = make_sum();
    g->block->last->inputs[0] = g->block->inputs[0]; /* behind its back */
    CHECK_INT(td_ir_verify(g), TD_EINTERNAL);
    td_ir_graph_release(g);
    g = make_sum();
    g->block->last->inplace = true;
    g->block->last->op = TD_OP(equal);
    CHECK_INT(td_ir_verify(g), TD_EINTERNAL);
    td_ir_graph_release(g);
}

TEST(names_stay_unique) {
    td_ir_graph *g = td_ir_graph_new();
    const td_ir_type *tensor = td_ir_simple_type(TD_IR_TENSOR);
    static const char *const wanted[] = {"x", "x", "x", "x.7", "x.7", "0", NULL};
    static const char *const given[] = {"x", "x.1", "x.2", "x.7", "x.3", "0", "1"};
    for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++)
        CHECK_STR(td_ir_add_input(g->block, tensor, wanted[k])->name, given[k]);
    td_ir_graph_release(g);
}

TEST(what_is_not_known_fits_everything) {
    static const struct {
        const char *from, *to;
        bool fits;
    } cases[] = {
        {"Float(2, 3)", "Tensor", true},
        {"Tensor", "Float(2, 3)", true},
        {"Float(2, 3)", "Float(2, *)", true},
        {"Float(2, 3)", "Float(2, 4)", false},
        {"Float(2)", "Float(2, 3)", false},
        {"Float(2)", "Double(2)", false},
        {"int", "Scalar", true},
        {"str", "Scalar", false},
        {"NoneType", "int?", true},
        {"int", "int?", true},
        {"int?", "int", false},
        {"int[]", "float[]", false},
        {"(int, Tensor)", "(int, Any)", true},
        {"(int, Tensor)", "(int)", false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char text[128];
        snprintf(text, sizeof text, "graph(%%a : %s, %%b : %s):\n return ()", cases[k].from,
                 cases[k].to);
        td_ir_graph *g = read_graph(text);
        REQUIRE(g != NULL);
        if (td_ir_type_fits(g->block->inputs[0]->type, g->block->inputs[1]->type) != cases[k].fits)
            check_fail(__FILE__, __LINE__, "%s for %s", cases[k].from, cases[k].to);
        CHECK(td_ir_type_equal(g->block->inputs[0]->type, g->block->inputs[0]->type));
        CHECK(!td_ir_type_equal(g->block->inputs[0]->type, g->block->inputs[1]->type));
        td_ir_graph_release(g);
    }
}

/* ---- memory ---- */

TEST(memory_that_runs_out_is_said_and_nothing_leaks) {
    for (int k = 0; k < TEXTS; k++)
        for (int64_t n = 1;; n++) {
            td_ir_graph *g = NULL;
            td_memory_fail_after(n);
            td_status status = td_ir_parse(texts[k], &g);
            char *printed = status == TD_OK ? td_ir_print(g) : NULL;
            td_memory_fail_after(0);
            CHECK(status == TD_OK || status == TD_ENOMEM);
            if (printed)
                CHECK_STR(printed, texts[k]);
            bool whole = printed != NULL;
            td_free(printed);
            td_ir_graph_release(g);
            if (whole)
                break;
        }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(texts_that_are_read_are_printed_alike);
    RUN(graphs_of_pytorch_are_read);
    RUN(constant_tensors_are_read_and_printed_by_number);
    RUN(texts_that_are_damaged_are_refused_or_read);
    RUN(errors_say_where_and_what);
    RUN(deep_texts_are_refused);
    RUN(rewriting_keeps_a_graph_whole);
    RUN(the_verifier_finds_what_is_broken);
    RUN(names_stay_unique);
    RUN(what_is_not_known_fits_everything);
    RUN(memory_that_runs_out_is_said_and_nothing_leaks);
    return check_finish();
}
