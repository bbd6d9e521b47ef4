/* test_check.c: checks of elements: a program that is true anywhere among broadcast operands fails
 * with its message, in whatever block it is. */
#include "engine/ops/pointwise/pointwise.h"
#include "engine/td.h"

#include "tests/check.h"

static td_tensor *filled(int ndim, const int64_t *sizes, double value) {
    td_tensor *x = NULL;
    CHECK_INT(TD_APPLY(&x, full, TD_INTS(ndim, sizes), TD_F(value)), TD_OK);
    return x;
}

/* Is a > b somewhere? */
static td_status greater(const td_tensor *a, const td_tensor *b) {
    const td_operand operands[2] = {{.tensor = a}, {.tensor = b, .f = 2}};
    td_check_plan plan = {.program = td_primitive_program(TD_PW_gt),
                          .operands = operands,
                          .compute = TD_F32,
                          .code = TD_EVALUE,
                          .message = "too large"};
    return TD_RUN(TD_DEVICE_CPU, check, &plan);
}

TEST(an_element_is_found_in_any_block) {
    const int64_t n = 200001;
    td_tensor *x = filled(1, &n, 1), *strided = NULL;
    const int64_t half = n / 2, two = 2;
    CHECK_INT(greater(x, NULL), TD_OK);
    for (int64_t at = 0; at < n; at += 65535) {
        ((float *)x->data)[at] = 3;
        CHECK_INT(greater(x, NULL), TD_EVALUE);
        CHECK_STR(td_error_message(), "too large");
        ((float *)x->data)[at] = 2;
    }
    CHECK_INT(td_tensor_view(x, 1, &half, &two, 1, &strided), TD_OK);
    ((float *)x->data)[n - 1] = 3; /* even: not in the view */
    CHECK_INT(greater(strided, NULL), TD_OK);
    ((float *)x->data)[n - 2] = 3;
    CHECK_INT(greater(strided, NULL), TD_EVALUE);
    td_release(strided);
    td_release(x);
}

TEST(operands_of_a_check_broadcast) {
    td_tensor *column = filled(2, (int64_t[]){700, 1}, 1), *row = filled(1, (int64_t[]){301}, 2);
    CHECK_INT(greater(column, row), TD_OK);
    ((float *)row->data)[300] = 0;
    CHECK_INT(greater(column, row), TD_EVALUE);
    ((float *)row->data)[300] = 2;
    ((float *)column->data)[699] = 3;
    CHECK_INT(greater(column, row), TD_EVALUE);
    td_release(column);
    td_release(row);
}

TEST(nothing_to_check_passes) {
    const int64_t none = 0;
    td_tensor *x = filled(1, &none, 5), *one = filled(0, NULL, 5);
    CHECK_INT(greater(x, NULL), TD_OK);
    CHECK_INT(greater(one, NULL), TD_EVALUE);
    td_release(x);
    td_release(one);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(an_element_is_found_in_any_block);
    RUN(operands_of_a_check_broadcast);
    RUN(nothing_to_check_passes);
    return check_finish();
}
