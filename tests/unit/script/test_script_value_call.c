/* test_script_value_call.c: what nodes do, called one by one, as C that was made of a graph does:
 * arguments that fit in some way, those that don't, and what is left after a failure. */
#include "engine/td.h"

#include "tests/check.h"

static td_tensor *numbers(int64_t n) {
    td_tensor *x = NULL;
    if (td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x))
        return NULL;
    for (int64_t k = 0; k < n; k++)
        ((float *)x->data)[k] = (float)k;
    return x;
}

static double item(td_value v) {
    double value = -1;
    if (v.kind != TD_KIND_TENSOR || td_tensor_item(v.tensor, &value))
        return -1;
    return value;
}

TEST(operators_take_boxes_and_ints_for_what_they_want) {
    td_tensor *x = numbers(4);
    td_value dims, sum, all[] = {TD_T(x), TD_NIL, TD_B(false), TD_NIL};
    CHECK_INT(td_value_list_of(TD_ENTRIES_INTS, 1, &TD_I(0), &dims), TD_OK);
    all[1] = dims;
    CHECK_INT(td_value_call(TD_OP(sum), false, 4, all, &sum), TD_OK);
    CHECK(item(sum) == 6);
    td_value_drop(&sum);
    all[1] = TD_I(-1); /* for a list of one */
    CHECK_INT(td_value_call(TD_OP(sum), false, 4, all, &sum), TD_OK);
    CHECK(item(sum) == 6);
    td_value_drop(&sum);
    td_value written;
    const td_value twice[] = {TD_T(x), TD_I(2)};
    CHECK_INT(td_value_call(TD_OP(mul), true, 2, twice, &written), TD_OK);
    CHECK(written.tensor == x && ((float *)x->data)[3] == 6);
    td_value_drop(&written);
    td_value_drop(&dims);
    td_release(x);
}

TEST(operators_refuse_what_does_not_fit_and_leave_nothing) {
    td_tensor *x = numbers(4);
    td_value out = TD_I(7);
    const td_value wrong[] = {TD_T(x), TD_STRING("2")}, number[] = {TD_I(1), TD_I(2)};
    CHECK_INT(td_value_call(TD_OP(mul), false, 2, wrong, &out), TD_ETYPE);
    CHECK_STR(td_error_message(), "mul: b can't be a string");
    CHECK(td_is_nil(out));
    CHECK_INT(td_value_call(TD_OP(mul), true, 2, number, &out), TD_ETYPE);
    CHECK_INT(td_value_call(TD_OP(mul), false, 1, wrong, &out), TD_EVALUE);
    CHECK(strstr(td_error_message(), "1 arguments were given, and this version takes 2") != NULL);
    CHECK(td_is_nil(out));
    td_release(x);
}

TEST(rows_are_found_by_name_and_letters) {
    td_value out;
    const td_value args[] = {TD_I(7), TD_I(0)}, mixed[] = {TD_I(7), TD_STRING("x")};
    const td_scalar *row = td_scalar_get_row("floordiv", "nn");
    CHECK(row != NULL && td_scalar_get_row("floordiv", "ss") == NULL);
    CHECK(td_scalar_get_row("no such", "nn") == NULL);
    CHECK_INT(td_scalar_call(row, 2, args, &out), TD_EVALUE);
    CHECK_INT(td_scalar_call(row, 2, mixed, &out), TD_ETYPE);
    CHECK(td_is_nil(out));
    CHECK_INT(td_scalar_call(td_scalar_get_row("remainder", "nn"), 2,
                             (td_value[]){TD_I(-7), TD_I(3)}, &out),
              TD_OK);
    CHECK(out.kind == TD_KIND_INT && out.i == 2);
}

TEST(lists_and_tuples_come_apart_as_they_were_made) {
    td_tensor *x = numbers(1);
    td_value list, tuple, parts[3];
    const td_value values[] = {TD_T(x), TD_STRING("text"), TD_F(0.5)};
    CHECK_INT(td_value_list_of(TD_ENTRIES_TENSORS, 3, values, &list), TD_ETYPE);
    CHECK(td_is_nil(list));
    CHECK_INT(td_value_tuple_of(3, values, &tuple), TD_OK);
    CHECK_INT(td_value_parts(tuple, 1, 2, parts), TD_OK);
    CHECK(parts[0].kind == TD_BOX_STRING && parts[1].f == 0.5);
    td_value_drop(&parts[0]);
    CHECK_INT(td_value_parts(tuple, 2, 2, parts), TD_ETYPE);
    CHECK_INT(td_value_parts(TD_NIL, 0, 0, parts), TD_ETYPE);
    CHECK_INT(td_value_entries(tuple, 3, parts), TD_ETYPE);
    CHECK_INT(td_value_list_of(TD_ENTRIES_VALUES, 3, values, &list), TD_OK);
    CHECK_INT(td_value_entries(list, 3, parts), TD_OK);
    CHECK(parts[0].tensor == x);
    for (int k = 0; k < 3; k++)
        td_value_drop(&parts[k]);
    CHECK_INT(td_value_entries(list, 2, parts), TD_EVALUE);
    CHECK_INT(td_value_entries(TD_TENSORS(1, &x), 1, parts), TD_OK);
    td_value_drop(&parts[0]);
    td_value_drop(&list);
    td_value_drop(&tuple);
    td_release(x);
}

TEST(values_are_looked_at_by_types) {
    static const td_ir_type whole = {.kind = TD_IR_INT}, fraction = {.kind = TD_IR_FLOAT};
    static const td_ir_type *const parts[] = {&whole};
    static const td_ir_type list = {.kind = TD_IR_LIST, .n = 1, .parts = parts};
    const int64_t ints[] = {1, 2};
    td_value v = TD_I(3);
    bool truth = false;
    CHECK_INT(td_value_check("input", "x", &fraction, &v), TD_OK);
    CHECK(v.kind == TD_KIND_FLOAT && v.f == 3);
    CHECK_INT(td_value_check("input", "x", &whole, &v), TD_ETYPE);
    CHECK_STR(td_error_message(), "input x is int, and a float was given");
    v = TD_INTS(2, ints);
    CHECK_INT(td_value_check("input", "x", &list, &v), TD_OK);
    CHECK_INT(td_value_truth(TD_B(true), &truth), TD_OK);
    CHECK(truth);
    CHECK_INT(td_value_truth(TD_I(1), &truth), TD_ETYPE);
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    if (td_init())
        return 1;
    RUN(operators_take_boxes_and_ints_for_what_they_want);
    RUN(operators_refuse_what_does_not_fit_and_leave_nothing);
    RUN(rows_are_found_by_name_and_letters);
    RUN(lists_and_tuples_come_apart_as_they_were_made);
    RUN(values_are_looked_at_by_types);
    return check_finish();
}
