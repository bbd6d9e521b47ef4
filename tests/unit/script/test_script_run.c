/* test_script_run.c: graphs from texts run: numbers as Lua 5.4 computes them, strings, lists by
 * reference, tuples, branches, loops, calls and recursion, errors with their places, forks, hosts,
 * interrupts, hostile texts, and memory that runs out. */
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- running a text ---- */

static td_scripted *make_function(const char *text) {
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    if (td_ir_parse(text, &g) || td_scripted_new(g, "test", &f))
        check_fail(__FILE__, __LINE__, "%s in\n%s", td_error_message(), text);
    td_ir_graph_release(g);
    return f;
}

/* The only output of a text; the caller's. */
static td_status run_text(const char *text, const td_value *inputs, td_value *out) {
    td_scripted *f = make_function(text);
    *out = TD_NIL;
    td_status status = f ? td_scripted_call(f, inputs, out) : TD_EINTERNAL;
    td_scripted_release(f);
    return status;
}

/* The result of one row on two values, whose types are named. */
static td_value row(const char *name, const char *types[3], td_value a, td_value b) {
    char text[400];
    td_value inputs[2] = {a, b}, out;
    bool two = types[1] != NULL;
    snprintf(text, sizeof text,
             "graph(%%a : %s%s%s):\n %%c : %s = aten::%s(%%a%s)\n return (%%c)\n", types[0],
             two ? ", %b : " : "", two ? types[1] : "", types[2], name, two ? ", %b" : "");
    if (run_text(text, inputs, &out))
        out = TD_NIL;
    return out;
}

static td_value on_ints(const char *name, int64_t a, int64_t b) {
    static const char *types[] = {"int", "int", "Any"};
    return row(name, types, TD_I(a), TD_I(b));
}

static td_value on_floats(const char *name, double a, double b) {
    static const char *types[] = {"float", "float", "Any"};
    return row(name, types, TD_F(a), TD_F(b));
}

static td_value on_mixed(const char *name, int64_t a, double b) {
    static const char *types[] = {"int", "float", "Any"};
    return row(name, types, TD_I(a), TD_F(b));
}

static td_value on_turned(const char *name, double a, int64_t b) {
    static const char *types[] = {"float", "int", "Any"};
    return row(name, types, TD_F(a), TD_I(b));
}

static void expect_int(int line, td_value v, int64_t wanted) {
    if (v.kind != TD_KIND_INT || v.i != wanted)
        check_fail(__FILE__, line, "kind %d, %lld instead of %lld", v.kind, (long long)v.i,
                   (long long)wanted);
}

static void expect_float(int line, td_value v, double wanted) {
    bool same = v.kind == TD_KIND_FLOAT &&
                (memcmp(&v.f, &wanted, sizeof wanted) == 0 || (isnan(v.f) && isnan(wanted)));
    if (!same)
        check_fail(__FILE__, line, "kind %d, %.17g instead of %.17g", v.kind, v.f, wanted);
}

static void expect_bool(int line, td_value v, bool wanted) {
    if (v.kind != TD_KIND_BOOL || v.b != wanted)
        check_fail(__FILE__, line, "kind %d, %d instead of %d", v.kind, v.b, wanted);
}

#define INT(v, wanted)   expect_int(__LINE__, v, wanted)
#define FLOAT(v, wanted) expect_float(__LINE__, v, wanted)
#define BOOL(v, wanted)  expect_bool(__LINE__, v, wanted)
#define FAILS(v, says)                                                                             \
    do {                                                                                           \
        CHECK(td_is_nil(v));                                                                       \
        CHECK_CONTAINS(td_error_message(), says);                                                  \
    } while (0)

/* ---- numbers: what lua5.4 prints for the same ---- */

TEST(arithmetic_is_that_of_lua) {
    INT(on_ints("add", INT64_MAX, 1), INT64_MIN);
    INT(on_ints("sub", INT64_MIN, 1), INT64_MAX);
    INT(on_ints("mul", INT64_MAX, 2), -2);
    FLOAT(on_ints("div", 7, 2), 3.5);
    FLOAT(on_ints("div", 1, 0), INFINITY);
    FLOAT(on_ints("pow", 2, 10), 1024.0);
    FLOAT(on_mixed("add", 1, 0.5), 1.5);
    FLOAT(on_mixed("mul", INT64_MAX, 1.0), 9223372036854775807.0);
    INT(on_ints("floordiv", 7, 2), 3);
    INT(on_ints("floordiv", -7, 2), -4);
    INT(on_ints("floordiv", 7, -2), -4);
    INT(on_ints("floordiv", -7, -2), 3);
    INT(on_ints("floordiv", INT64_MIN, -1), INT64_MIN);
    INT(on_ints("remainder", -7, 2), 1);
    INT(on_ints("remainder", 7, -2), -1);
    INT(on_ints("remainder", INT64_MIN, -1), 0);
    FLOAT(on_floats("floordiv", -7.5, 2), -4.0);
    FLOAT(on_floats("floordiv", 1, 0.0), INFINITY);
    FLOAT(on_floats("remainder", -5.5, 2), 0.5);
    FLOAT(on_floats("remainder", 5.5, -2), -0.5);
    FLOAT(on_floats("remainder", 5, INFINITY), 5);
    FLOAT(on_floats("remainder", -5, INFINITY), INFINITY);
    FLOAT(on_floats("remainder", 5, 0.0), NAN);
    INT(on_ints("fmod", -7, 2), -1);
    FLOAT(on_floats("fmod", -5.5, 2), -1.5);
    INT(on_ints("max", 3, 5), 5);
    INT(on_mixed("max", 3, 2.5), 3);
    FLOAT(on_mixed("min", 3, 2.5), 2.5);
    FAILS(on_ints("floordiv", 1, 0), "attempt to perform 'n//0'");
    FAILS(on_ints("remainder", 1, 0), "attempt to perform 'n%%0'");
    FAILS(on_ints("fmod", 1, 0), "bad argument #2 to 'fmod' (zero)");
}

TEST(bits_are_those_of_lua) {
    INT(on_ints("__and__", 12, 10), 8);
    INT(on_ints("__or__", 12, 10), 14);
    INT(on_ints("__xor__", 12, 10), 6);
    INT(on_ints("__lshift__", 1, 63), INT64_MIN);
    INT(on_ints("__lshift__", 1, 64), 0);
    INT(on_ints("__lshift__", -1, -60), 15);
    INT(on_ints("__rshift__", -1, 60), 15);
    INT(on_ints("__rshift__", 1, -3), 8);
    INT(on_ints("__rshift__", 1, INT64_MIN), 0);
}

/* 2^53 + 1 is no float; 2^63 is no int. */
TEST(ints_and_floats_compare_by_their_values) {
    const int64_t odd = ((int64_t)1 << 53) + 1;
    BOOL(on_mixed("eq", odd, 9007199254740992.0), false);
    BOOL(on_mixed("gt", odd, 9007199254740992.0), true);
    BOOL(on_mixed("le", odd, 9007199254740992.0), false);
    BOOL(on_mixed("lt", INT64_MAX, 9223372036854775808.0), true);
    BOOL(on_mixed("ge", INT64_MAX, 9223372036854775808.0), false);
    BOOL(on_mixed("eq", INT64_MIN, -9223372036854775808.0), true);
    BOOL(on_mixed("lt", 1, 1.5), true);
    BOOL(on_mixed("le", 2, 1.5), false);
    BOOL(on_mixed("le", -1, -1.5), false);
    BOOL(on_mixed("lt", 0, NAN), false);
    BOOL(on_mixed("ge", 0, NAN), false);
    BOOL(on_mixed("ne", 0, NAN), true);
    BOOL(on_turned("lt", 1.5, 2), true);
    BOOL(on_turned("lt", 9007199254740992.0, odd), true);
    BOOL(on_turned("le", -INFINITY, INT64_MIN), true);
    BOOL(on_turned("lt", NAN, 1), false);
    BOOL(on_floats("eq", NAN, NAN), false);
}

TEST(conversions_refuse_what_has_no_int) {
    static const char *one[] = {"float", NULL, "Any"}, *text[] = {"str", NULL, "Any"};
    INT(row("Int", one, TD_F(-3.0), TD_NIL), -3);
    INT(row("floor", one, TD_F(-3.5), TD_NIL), -4);
    INT(row("ceil", one, TD_F(-3.5), TD_NIL), -3);
    FAILS(row("Int", one, TD_F(2.5), TD_NIL), "no integer representation");
    FAILS(row("floor", one, TD_F(1e300), TD_NIL), "no integer representation");
    FAILS(row("Int", one, TD_F(NAN), TD_NIL), "no integer representation");
    INT(row("Int", text, TD_STRING(" 42 "), TD_NIL), 42);
    FLOAT(row("Float", text, TD_STRING("2.5e1"), TD_NIL), 25.0);
    FAILS(row("Int", text, TD_STRING("4x"), TD_NIL), "'4x' is no integer");
    FAILS(row("Float", text, TD_STRING("inf"), TD_NIL), "'inf' is no number");
}

static void expect_text(int line, td_value v, const char *wanted) {
    const char *text = td_value_text(v, NULL);
    if (!text || strcmp(text, wanted) != 0)
        check_fail(__FILE__, line, "'%s' instead of '%s'", text ? text : "no text", wanted);
    td_value_drop(&v);
}
#define TEXT(v, wanted) expect_text(__LINE__, v, wanted)

TEST(strings_are_those_of_lua) {
    static const char *texts[] = {"str", "str", "Any"}, *one[] = {"float", NULL, "Any"};
    static const char *format[] = {"str", "float", "Any"}, *whole[] = {"str", "int", "Any"};
    TEXT(row("add", texts, TD_STRING("ab"), TD_STRING("c")), "abc");
    BOOL(row("lt", texts, TD_STRING("a"), TD_STRING("ab")), true);
    BOOL(row("ge", texts, TD_STRING("a"), TD_STRING("ab")), false);
    BOOL(row("eq", texts, TD_STRING("ab"), TD_STRING("ab")), true);
    TEXT(row("str", one, TD_F(3), TD_NIL), "3.0");
    TEXT(row("str", one, TD_F(0.1), TD_NIL), "0.1");
    TEXT(row("str", one, TD_F(1e100), TD_NIL), "1e+100");
    TEXT(row("str", one, TD_F(INFINITY), TD_NIL), "inf");
    TEXT(row("format", format, TD_STRING("%5.2f|%%"), TD_F(2.345)), " 2.35|%");
    TEXT(row("format", whole, TD_STRING("<%03d>"), TD_I(7)), "<007>");
    TEXT(row("format", whole, TD_STRING("%s-"), TD_I(7)), "7-");
    TEXT(row("format", format, TD_STRING("%d"), TD_F(3.0)), "3");
    FAILS(row("format", format, TD_STRING("%d"), TD_F(2.5)), "no integer representation");
    FAILS(row("format", whole, TD_STRING("%d %d"), TD_I(1)), "argument 3 is missing");
    FAILS(row("format", whole, TD_STRING("%n"), TD_I(1)), "is no conversion");
    FAILS(row("format", whole, TD_STRING("%999d"), TD_I(1)), "is no conversion");
}

TEST(parts_of_strings_are_those_of_lua) {
    static const char *one[] = {"str", NULL, "Any"}, *whole[] = {"str", "int", "Any"};
    TEXT(row("upper", one, TD_STRING("aZ1"), TD_NIL), "AZ1");
    TEXT(row("lower", one, TD_STRING("aZ1"), TD_NIL), "az1");
    TEXT(row("reversed", one, TD_STRING("abc"), TD_NIL), "cba");
    TEXT(row("mul", whole, TD_STRING("ab"), TD_I(3)), "ababab");
    TEXT(row("mul", whole, TD_STRING("ab"), TD_I(-1)), "");
    TEXT(row("mul", whole, TD_STRING(""), TD_I(INT64_MAX)), "");
    FAILS(row("mul", whole, TD_STRING("ab"), TD_I(INT64_MAX)), "out of memory");
    INT(row("byte", whole, TD_STRING("abc"), TD_I(-1)), 'c');
    CHECK(td_is_nil(row("byte", whole, TD_STRING("abc"), TD_I(4))));
    CHECK(td_is_nil(row("byte", whole, TD_STRING("abc"), TD_I(INT64_MIN))));
}

/* ---- lists and tuples ---- */

TEST(lists_are_by_reference) {
    static const char text[] = "graph(%n : int):\n"
                               "  %a : int = prim::Constant[value=5]()\n"
                               "  %z : int = prim::Constant[value=0]()\n"
                               "  %l : int[] = prim::ListConstruct(%n, %a)\n"
                               "  %same : int[] = aten::append(%l, %a)\n"
                               "  %o : int[][] = prim::ListConstruct(%l)\n"
                               "  %t : int[] = aten::_set_item(%same, %z, %a)\n"
                               "  %i : int[] = aten::__getitem__(%o, %z)\n"
                               "  %p : int = aten::pop(%i)\n"
                               "  %c : int = aten::len(%l)\n"
                               "  %f : int = aten::__getitem__(%l, %z)\n"
                               "  %r : (int, int, int) = prim::TupleConstruct(%p, %c, %f)\n"
                               "  return (%r)\n";
    td_value out, n = TD_I(1);
    REQUIRE(run_text(text, &n, &out) == TD_OK);
    const td_box_tuple *t = td_value_tuple(out);
    REQUIRE(t && t->n == 3);
    INT(t->parts[0], 5);
    INT(t->parts[1], 2);
    INT(t->parts[2], 5);
    td_value_drop(&out);
}

TEST(indices_of_lists_are_checked) {
    static const char *get[] = {"int[]", "int", "Any"};
    static const int64_t entries[] = {10, 20, 30};
    td_value list = TD_INTS(3, entries);
    INT(row("__getitem__", get, list, TD_I(-1)), 30);
    INT(row("__getitem__", get, list, TD_I(0)), 10);
    INT(row("get_entry", get, list, TD_I(3)), 30);
    FAILS(row("__getitem__", get, list, TD_I(3)), "index 3 of a list of 3");
    FAILS(row("__getitem__", get, list, TD_I(-4)), "index -4 of a list of 3");
    FAILS(row("get_entry", get, list, TD_I(0)), "index 0 of a list of 3");
    FAILS(row("append", get, list, TD_I(1)), "is not written: copy it first");
}

/* ---- control flow ---- */

/* fib by recursion, in a graph that calls itself. */
static const char fib[] = "graph(%n : int):\n"
                          "  %r : int = prim::CallFunction_0(%n)\n"
                          "  return (%r)\n"
                          "with prim::CallFunction_0 = graph(%n : int):\n"
                          "  %two : int = prim::Constant[value=2]()\n"
                          "  %one : int = prim::Constant[value=1]()\n"
                          "  %small : bool = aten::lt(%n, %two)\n"
                          "  %r : int = prim::If(%small)\n"
                          "    block0():\n"
                          "      -> (%n)\n"
                          "    block1():\n"
                          "      %a : int = aten::sub(%n, %one)\n"
                          "      %b : int = aten::sub(%n, %two)\n"
                          "      %x : int = prim::CallFunction_0(%a)\n"
                          "      %y : int = prim::CallFunction_0(%b)\n"
                          "      %z : int = aten::add(%x, %y)\n"
                          "      -> (%z)\n"
                          "  return (%r)\n";

TEST(a_graph_may_call_itself) {
    td_value out, n = TD_I(15);
    CHECK_INT(run_text(fib, &n, &out), TD_OK);
    INT(out, 610);
}

TEST(recursion_without_end_is_an_error) {
    static const char text[] = "graph(%n : int):\n"
                               "  %r : int = prim::CallFunction_0(%n)\n"
                               "  return (%r)\n"
                               "with prim::CallFunction_0 = graph(%n : int):\n"
                               "  %r : int = prim::CallFunction_0(%n) # loop.lua:7:3\n"
                               "  return (%r)\n";
    td_value out, n = TD_I(1);
    CHECK_INT(run_text(text, &n, &out), TD_EVALUE);
    CHECK_CONTAINS(td_error_message(), "loop.lua:7: calls nest deeper than 200");
    CHECK_INT(run_text(fib, &n, &out), TD_OK); /* and the next call begins anew */
}

/* 0 + 1 + ... + n - 1, by a while that carries two values which change places. */
static const char sum_loop[] = "graph(%n : int):\n"
                               "  %t : bool = prim::Constant[value=1]()\n"
                               "  %z : int = prim::Constant[value=0]()\n"
                               "  %s : int, %u : int = prim::Loop(%n, %t, %z, %z)\n"
                               "    block0(%k : int, %a : int, %b : int):\n"
                               "      %c : int = aten::add(%a, %k)\n"
                               "      -> (%t, %c, %a)\n"
                               "  return (%s)\n";

TEST(loops_carry_numbers) {
    for (int64_t n = -1; n < 200; n = 2 * n + 3) {
        td_value out, trips = TD_I(n);
        CHECK_INT(run_text(sum_loop, &trips, &out), TD_OK);
        INT(out, n < 0 ? 0 : n * (n - 1) / 2);
    }
}

TEST(carried_values_may_change_places) {
    static const char text[] = "graph(%n : int, %x : str, %y : str):\n"
                               "  %t : bool = prim::Constant[value=1]()\n"
                               "  %s : str, %u : str = prim::Loop(%n, %t, %x, %y)\n"
                               "    block0(%k : int, %a : str, %b : str):\n"
                               "      %c : str = aten::add(%a, %b)\n"
                               "      -> (%t, %b, %c)\n"
                               "  return (%u)\n";
    td_value out, inputs[3] = {TD_I(4), TD_STRING("a"), TD_STRING("b")};
    REQUIRE(run_text(text, inputs, &out) == TD_OK);
    TEXT(out, "bababbab");
}

static void *interrupt_soon(void *unused) {
    (void)unused;
    td_interrupt_request();
    return NULL;
}

TEST(an_interrupt_ends_a_loop) {
    pthread_t thread;
    td_value out, trips = TD_I(INT64_MAX);
    REQUIRE(pthread_create(&thread, NULL, interrupt_soon, NULL) == 0);
    CHECK_INT(run_text(sum_loop, &trips, &out), TD_EINTR);
    pthread_join(thread, NULL);
    td_interrupt_clear();
}

TEST(errors_carry_the_place_of_their_node) {
    static const char text[] = "graph(%s : str, %c : bool):\n"
                               "  prim::If(%c)\n"
                               "    block0():\n"
                               "      prim::RaiseException(%s) # cell.lua:12:5\n"
                               "      -> ()\n"
                               "    block1():\n"
                               "      -> ()\n"
                               "  return (%s)\n";
    td_value out, inputs[2] = {TD_STRING("no luck"), TD_B(true)};
    CHECK_INT(run_text(text, inputs, &out), TD_ESCRIPT);
    CHECK_STR(td_error_message(), "cell.lua:12: no luck");
    inputs[1] = TD_B(false);
    REQUIRE(run_text(text, inputs, &out) == TD_OK);
    TEXT(out, "no luck");
    inputs[1] = TD_I(1);
    CHECK_INT(run_text(text, inputs, &out), TD_ETYPE);
    CHECK_STR(td_error_message(), "input c is bool, and an int was given");
}

TEST(operators_take_boxes) {
    static const char text[] = "graph(%x : Tensor, %n : int):\n"
                               "  %k : int = prim::Constant[value=0]()\n"
                               "  %m : int = prim::Constant[value=-1]()\n"
                               "  %l : int[] = prim::ListConstruct(%n, %m)\n"
                               "  %y : Tensor = aten::reshape(%x, %l)\n"
                               "  %t : Tensor[] = prim::ListConstruct(%y, %y)\n"
                               "  %u : Tensor[] = aten::append(%t, %y)\n"
                               "  %z : Tensor = aten::cat(%u, %k)\n"
                               "  %s : int[] = aten::size(%z)\n"
                               "  return (%s)\n";
    td_tensor *x = NULL;
    REQUIRE(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, (int64_t[]){6}, &x) == TD_OK);
    td_value out, inputs[2] = {TD_T(x), TD_I(2)};
    REQUIRE(run_text(text, inputs, &out) == TD_OK);
    const td_box_list *sizes = td_value_list(out);
    REQUIRE(sizes && sizes->n == 2 && sizes->entries == TD_ENTRIES_INTS);
    CHECK_INT(sizes->ints[0], 6);
    CHECK_INT(sizes->ints[1], 3);
    td_value_drop(&out);
    CHECK_INT(atomic_load(&x->refs), 1);
    td_release(x);
}

/* ---- hosts ---- */

static td_status double_it(void *ctx, int id, int ninputs, const td_value *inputs, int noutputs,
                           td_value *outputs) {
    ++*(int *)ctx;
    if (id != 3 || ninputs != 1 || noutputs != 1)
        return td_fail(TD_EVALUE, "no such function");
    outputs[0] = inputs[0].i == 13 ? TD_F(0.5) : TD_I(2 * inputs[0].i);
    return TD_OK;
}

static td_status count_prints(void *ctx, int n, const td_value *values) {
    *(int *)ctx += 100 * n * (values[0].kind == TD_KIND_INT);
    return TD_OK;
}

static void say_gone(void *ctx) {
    *(int *)ctx += 10000;
}

TEST(a_host_is_called_and_let_go_of) {
    static const char text[] = "graph(%n : int):\n"
                               "  %r : int = prim::HostCall[id=3](%n)\n"
                               "  prim::Print(%r, %n)\n"
                               "  return (%r)\n";
    int calls = 0;
    td_script_host host = {
        .ctx = &calls, .call = double_it, .print = count_prints, .release = say_gone};
    td_scripted *f = make_function(text);
    REQUIRE(f != NULL);
    td_value out, n = TD_I(21);
    CHECK_INT(td_scripted_call(f, &n, &out), TD_EVALUE);
    CHECK_CONTAINS(td_error_message(), "a call of function 3 of the host, which is not there");
    CHECK_INT(td_scripted_set_host(f, &host), TD_OK);
    CHECK_INT(td_scripted_call(f, &n, &out), TD_OK);
    INT(out, 42);
    CHECK_INT(calls, 201);
    n = TD_I(13); /* it gives a float */
    CHECK_INT(td_scripted_call(f, &n, &out), TD_ETYPE);
    td_scripted_release(f);
    CHECK_INT(calls, 10202);
}

/* ---- hostile texts ---- */

/* Any type lets any value through, and nothing is taken for what it is not. */
TEST(values_are_what_they_are_whatever_types_say) {
    static const char *const wrong[] = {
        "graph(%a : Any):\n %y : Tensor = aten::exp(%a)\n return (%y)\n",
        "graph(%a : Any):\n %t : Tensor = prim::unchecked_cast(%a)\n return (%t)\n",
        "graph(%a : Any):\n %t : (int, int) = prim::unchecked_cast(%a)\n return (%t)\n",
        "graph(%a : Any):\n %t : int[] = prim::unchecked_cast(%a)\n return (%t)\n",
        "graph(%a : Any):\n %x : Tensor = prim::If(%a)\n block0():\n -> (%a)\n block1():\n -> "
        "(%a)\n "
        "%y : Tensor = aten::exp(%x)\n return (%y)\n",
    };
    td_value out, values[] = {TD_I(1), TD_F(1), TD_STRING("s"), TD_NIL, TD_DTYPE(TD_F32)};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            CHECK_INT(run_text(wrong[k], &values[v], &out), TD_ETYPE);
            CHECK(td_is_nil(out));
        }
}

TEST(damaged_texts_are_refused_or_run) {
    static const char *const texts[] = {fib, sum_loop};
    for (int k = 0; k < 2; k++) {
        size_t n = strlen(texts[k]);
        char *text = malloc(n + 1);
        REQUIRE(text != NULL);
        for (size_t at = 0; at < n; at++) {
            td_ir_graph *g = NULL;
            td_scripted *f = NULL;
            memcpy(text, texts[k], n + 1);
            text[at] = (char)(text[at] ^ (1 + (int)at % 7));
            td_value out = TD_NIL, few = TD_I(3);
            if (td_ir_parse(text, &g) == TD_OK && td_scripted_new(g, "damaged", &f) == TD_OK &&
                td_scripted_ninputs(f) == 1 && td_scripted_noutputs(f) == 1 &&
                td_scripted_call(f, &few, &out))
                CHECK(strlen(td_error_message()) > 0);
            td_value_drop(&out);
            td_scripted_release(f);
            td_ir_graph_release(g);
        }
        free(text);
    }
}

/* ---- memory ---- */

static const char busy[] = "graph(%n : int, %x : Tensor):\n"
                           "  %t : bool = prim::Constant[value=1]()\n"
                           "  %s : str = prim::Constant[value=\"s\"]()\n"
                           "  %one : int = prim::Constant[value=1]()\n"
                           "  %l : Tensor[] = prim::ListConstruct(%x)\n"
                           "  %p : str = prim::Loop(%n, %t, %s)\n"
                           "    block0(%k : int, %a : str):\n"
                           "      %b : str = aten::add(%a, %s)\n"
                           "      %y : Tensor = aten::exp(%x)\n"
                           "      %m : Tensor[] = aten::append(%l, %y)\n"
                           "      -> (%t, %b)\n"
                           "  %f : Future((str, Tensor[])) = prim::fork_0(%p, %l)\n"
                           "  %w : (str, Tensor[]) = aten::wait(%f)\n"
                           "  %g : str, %h : Tensor[] = prim::TupleUnpack(%w)\n"
                           "  %c : int = aten::len(%h)\n"
                           "  %r : (str, int) = prim::TupleConstruct(%g, %c)\n"
                           "  return (%r)\n"
                           "with prim::fork_0 = graph(%p : str, %l : Tensor[]):\n"
                           "  %q : str = aten::add(%p, %p)\n"
                           "  return (%q, %l)\n";

TEST(memory_that_runs_out_is_said_and_nothing_leaks) {
    td_tensor *x = NULL;
    REQUIRE(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, (int64_t[]){6}, &x) == TD_OK);
    memset(x->data, 0, 24);
    for (int64_t n = 1;; n++) {
        td_ir_graph *g = NULL;
        td_scripted *f = NULL;
        td_value out = TD_NIL, inputs[2] = {TD_I(3), TD_T(x)};
        td_memory_fail_after(n);
        td_status status = td_ir_parse(busy, &g);
        if (status == TD_OK)
            status = td_scripted_new(g, "busy", &f);
        for (int k = 0; k < 2 && status == TD_OK; k++) {
            td_value_drop(&out);
            status = td_scripted_call(f, inputs, &out);
        }
        td_memory_fail_after(0);
        CHECK(status == TD_OK || status == TD_ENOMEM);
        if (status == TD_OK) {
            const td_box_tuple *t = td_value_tuple(out);
            CHECK_STR(td_value_text(t->parts[0], NULL), "ssssssss");
            INT(t->parts[1], 4);
        }
        td_value_drop(&out);
        td_scripted_release(f);
        td_ir_graph_release(g);
        if (status == TD_OK)
            break;
    }
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(arithmetic_is_that_of_lua);
    RUN(bits_are_those_of_lua);
    RUN(ints_and_floats_compare_by_their_values);
    RUN(conversions_refuse_what_has_no_int);
    RUN(strings_are_those_of_lua);
    RUN(parts_of_strings_are_those_of_lua);
    RUN(lists_are_by_reference);
    RUN(indices_of_lists_are_checked);
    RUN(a_graph_may_call_itself);
    RUN(recursion_without_end_is_an_error);
    RUN(loops_carry_numbers);
    RUN(carried_values_may_change_places);
    RUN(an_interrupt_ends_a_loop);
    RUN(errors_carry_the_place_of_their_node);
    RUN(operators_take_boxes);
    RUN(a_host_is_called_and_let_go_of);
    RUN(values_are_what_they_are_whatever_types_say);
    RUN(damaged_texts_are_refused_or_run);
    RUN(memory_that_runs_out_is_said_and_nothing_leaks);
    return check_finish();
}
