/* test_script_dict.c: dicts of graphs: their order, what is taken out, copies, what is refused, and
 * memory that runs out. */
#include "engine/td.h"

#include "tests/check.h"

static td_value key(int k) {
    static char text[24];
    snprintf(text, sizeof text, "k%d", k);
    return TD_STRING(text);
}

/* The keys in their order, with spaces. */
static const char *keys_of(const td_box_dict *dict) {
    static char text[200];
    text[0] = 0;
    for (const td_dict_entry *e = dict->first; e; e = e->next)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", e->before ? " " : "",
                 td_value_text(e->key, NULL));
    return text;
}

TEST(entries_are_in_the_order_in_which_they_came) {
    td_value v;
    REQUIRE(td_box_dict_new(&v) == TD_OK);
    td_box_dict *dict = td_value_dict(v);
    for (int k = 0; k < 4; k++)
        REQUIRE(td_dict_set(dict, key(k), TD_I(k)) == TD_OK);
    REQUIRE(td_dict_set(dict, key(1), TD_I(10)) == TD_OK);
    CHECK_STR(keys_of(dict), "k0 k1 k2 k3");
    td_dict_delete(dict, key(0));
    td_dict_delete(dict, key(2));
    td_dict_delete(dict, key(9));
    CHECK_STR(keys_of(dict), "k1 k3");
    REQUIRE(td_dict_set(dict, key(0), TD_I(5)) == TD_OK);
    CHECK_STR(keys_of(dict), "k1 k3 k0");
    CHECK(dict->n == 3);
    CHECK(td_dict_find(dict, key(1))->value.i == 10);
    CHECK(!td_dict_find(dict, key(2)));
    td_value copy;
    REQUIRE(td_value_copy(v, &copy) == TD_OK);
    td_dict_clear(dict);
    CHECK(dict->n == 0 && !dict->first);
    CHECK_STR(keys_of(td_value_dict(copy)), "k1 k3 k0");
    td_value_drop(&copy);
    td_value_drop(&v);
}

TEST(what_comes_and_goes_takes_no_more_room) {
    td_value v;
    REQUIRE(td_box_dict_new(&v) == TD_OK);
    td_box_dict *dict = td_value_dict(v);
    for (int k = 0; k < 5000; k++) {
        REQUIRE(td_dict_set(dict, key(k), TD_I(k)) == TD_OK);
        if (k >= 3)
            td_dict_delete(dict, key(k - 3));
    }
    CHECK(dict->n == 3);
    CHECK(dict->map.count < 100);
    CHECK(td_dict_find(dict, key(4998))->value.i == 4998);
    td_value_drop(&v);
}

TEST(keys_may_hold_zeros) {
    td_value v, a, b;
    REQUIRE(td_box_dict_new(&v) == TD_OK && td_box_string_new("x\0a", 3, &a) == TD_OK &&
            td_box_string_new("x\0b", 3, &b) == TD_OK);
    REQUIRE(td_dict_set(td_value_dict(v), a, TD_I(1)) == TD_OK);
    CHECK(!td_dict_find(td_value_dict(v), b));
    CHECK(!td_dict_find(td_value_dict(v), TD_STRING("x")));
    CHECK(td_dict_find(td_value_dict(v), a)->value.i == 1);
    td_value_drop(&a);
    td_value_drop(&b);
    td_value_drop(&v);
}

/* ---- in graphs ---- */

static td_status run_text(const char *text, td_value *out) {
    td_ir_graph *g = NULL;
    td_scripted *f = NULL;
    *out = TD_NIL;
    td_status status = td_ir_parse(text, &g);
    if (status == TD_OK)
        status = td_scripted_new(g, "test", &f);
    for (int k = 0; k < 2 && status == TD_OK; k++) { /* the second time rewritten */
        td_value_drop(out);
        status = td_scripted_call(f, NULL, out);
    }
    td_scripted_release(f);
    td_ir_graph_release(g);
    return status;
}

static const char counts[] =
    "graph():\n"
    "  %a : str = prim::Constant[value=\"a\"]()\n"
    "  %b : str = prim::Constant[value=\"b\"]()\n"
    "  %one : int = prim::Constant[value=1]()\n"
    "  %t : bool = prim::Constant[value=1]()\n"
    "  %n : int = prim::Constant[value=5]()\n"
    "  %d : Dict(str, int) = prim::DictConstruct(%a, %one)\n"
    "  %e : Dict(str, int) = prim::DictConstruct(%a, %one)\n"
    "  prim::Loop(%n, %t)\n"
    "    block0(%k : int):\n"
    "      %s : str = aten::str(%k)\n"
    "      %m : str = aten::add(%b, %s)\n"
    "      %1 : Dict(str, int) = aten::_set_item(%d, %m, %k)\n"
    "      -> (%t)\n"
    "  %2 : Dict(str, int) = aten::Delete(%d, %a)\n"
    "  %l : str[] = aten::keys(%d)\n"
    "  %gap : str = prim::Constant[value=\" \"]()\n"
    "  %text : str = aten::concat(%l, %gap)\n"
    "  %left : int = aten::len(%e)\n"
    "  %gone : int? = aten::get(%d, %a)\n"
    "  %is : bool = aten::__contains__(%e, %a)\n"
    "  %r : (str, int, int?, bool) = prim::TupleConstruct(%text, %left, %gone, %is)\n"
    "  return (%r)\n";

TEST(two_dicts_of_the_same_entries_are_two) {
    td_value out;
    REQUIRE(run_text(counts, &out) == TD_OK);
    const td_box_tuple *t = td_value_tuple(out);
    CHECK_STR(td_value_text(t->parts[0], NULL), "b0 b1 b2 b3 b4");
    CHECK(t->parts[1].i == 1);
    CHECK(td_is_nil(t->parts[2]));
    CHECK(t->parts[3].b);
    td_value_drop(&out);
}

TEST(what_is_no_dict_is_refused) {
    static const char *const texts[][2] = {
        {"graph(%d : Dict(int, str)):\n  return (%d)\n", "a dict has strings as keys"},
        {"graph(%d : Dict(str)):\n  return (%d)\n", "a dict has strings as keys"},
        {"graph(%x : Tensor):\n  %d : Dict(str, int) = prim::DictConstruct(%x)\n  return (%d)\n",
         "it is a dict of keys and values"},
        {"graph(%s : str, %x : Tensor):\n"
         "  %d : Dict(str, int) = prim::DictConstruct(%s, %x)\n  return (%d)\n",
         "%x does not fit it"},
        {"graph(%s : str, %d : Dict(str, Any)):\n"
         "  %e : Dict(str, Any) = aten::_set_item(%d, %s, %d)\n  return (%e)\n",
         "_set_item"}};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        td_ir_graph *g = NULL;
        td_scripted *f = NULL;
        td_status status = td_ir_parse(texts[k][0], &g);
        if (status == TD_OK)
            status = td_scripted_new(g, "test", &f);
        CHECK(status != TD_OK);
        CHECK_CONTAINS(td_error_message(), texts[k][1]);
        td_scripted_release(f);
        td_ir_graph_release(g);
    }
    td_value out;
    CHECK(run_text("graph():\n  %s : str = prim::Constant[value=\"a\"]()\n"
                   "  %d : Dict(str, int) = prim::DictConstruct()\n"
                   "  %v : int = aten::__getitem__(%d, %s)\n  return (%v)\n",
                   &out) == TD_EINDEX);
    CHECK_CONTAINS(td_error_message(), "there is nothing under 'a'");
}

TEST(memory_that_runs_out_is_said_and_nothing_leaks) {
    for (int64_t n = 1;; n++) {
        td_value out;
        td_memory_fail_after(n);
        td_status status = run_text(counts, &out);
        td_memory_fail_after(0);
        CHECK(status == TD_OK || status == TD_ENOMEM);
        td_value_drop(&out);
        if (status == TD_OK)
            break;
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(entries_are_in_the_order_in_which_they_came);
    RUN(what_comes_and_goes_takes_no_more_room);
    RUN(keys_may_hold_zeros);
    RUN(two_dicts_of_the_same_entries_are_two);
    RUN(what_is_no_dict_is_refused);
    RUN(memory_that_runs_out_is_said_and_nothing_leaks);
    return check_finish();
}
