/* test_elements.c: reductions of elements in a row: a row's bits are those of its elements by
 * themselves. */
#include "engine/distributed/elements.h"
#include "tests/check.h"

enum { HALVES = 1 << 16 };
static td_half row[HALVES + 3], one[HALVES + 3], other[HALVES + 3];

static bool is_nan(td_half h) {
    return (h.bits & 0x7FFF) > 0x7C00;
}

/* Every float16 with partners of all kinds: normal, subnormal, infinite, NaN, of both signs. */
TEST(sums_of_float16_in_a_row_are_those_one_by_one) {
    for (uint32_t step = 1; step < HALVES; step = step * 5 + 2) {
        for (uint32_t k = 0; k < HALVES + 3; k++) {
            row[k].bits = one[k].bits = (uint16_t)k;
            other[k].bits = (uint16_t)(k * step + (k >> 3));
        }
        td_elements_reduce(TD_ACROSS_SUM, TD_F16, row, other, HALVES + 3);
        int differ = 0;
        for (uint32_t k = 0; k < HALVES + 3; k++) {
            td_half expected =
                td_float_to_half(td_half_to_float(one[k]) + td_half_to_float(other[k]));
            td_elements_reduce(TD_ACROSS_SUM, TD_F16, &one[k], &other[k], 1);
            differ += one[k].bits != expected.bits && !is_nan(expected);
            differ += one[k].bits != row[k].bits && !(is_nan(one[k]) && is_nan(row[k]));
        }
        CHECK_INT(differ, 0);
    }
}

TEST(an_operation_on_float16_does_not_become_a_sum) {
    td_half products[16], with[16];
    for (int k = 0; k < 16; k++) {
        products[k] = td_float_to_half((float)k);
        with[k] = td_float_to_half(3.0f);
    }
    td_elements_reduce(TD_ACROSS_PRODUCT, TD_F16, products, with, 16);
    for (int k = 0; k < 16; k++)
        CHECK(td_half_to_float(products[k]) == 3.0f * (float)k);
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    RUN(sums_of_float16_in_a_row_are_those_one_by_one);
    RUN(an_operation_on_float16_does_not_become_a_sum);
    return check_finish();
}
