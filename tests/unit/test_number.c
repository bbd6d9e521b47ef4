/* test_number.c: numbers as text and back. What a locale would change is tests/repl/test_locale.py.
 */
#include "engine/core/number.h"

#include "tests/check.h"

static int64_t read_int(const char *text, int length) {
    const char *end;
    int64_t value = td_number_read_int(text, &end);
    CHECK_INT(end - text, length);
    return value;
}

TEST(integers_are_read_to_the_last_digit) {
    CHECK_INT(read_int("9223372036854775807", 19), INT64_MAX);
    CHECK_INT(read_int("-9223372036854775808", 20), INT64_MIN);
    CHECK_INT(read_int("-9007199254740993x", 17), -9007199254740993);
    CHECK_INT(read_int("+07,", 3), 7);
}

TEST(integers_stop_at_the_ends) {
    CHECK_INT(read_int("9223372036854775808", 19), INT64_MAX);
    CHECK_INT(read_int("99999999999999999999999999", 26), INT64_MAX);
    CHECK_INT(read_int("-9223372036854775809", 20), INT64_MIN);
    CHECK_INT(read_int("-99999999999999999999999999", 27), INT64_MIN);
}

TEST(no_digits_are_no_integer) {
    CHECK_INT(read_int("", 0), 0);
    CHECK_INT(read_int("-", 0), 0);
    CHECK_INT(read_int(" 1", 0), 0);
    CHECK_INT(read_int("x1", 0), 0);
}

TEST(fractions_have_a_point) {
    char text[32], *end;
    td_number_print(text, sizeof text, "%g %.2f", 1.5, 0.25);
    CHECK_STR(text, "1.5 0.25");
    CHECK(td_number_read("2.5e-1,5", &end) == 0.25 && *end == ',');
    CHECK(td_number_read_single("1.00000005960464478", &end) == 1 + 0x1p-23f && !*end);
}

int main(int argc, char **argv) {
    (void)argc, (void)argv;
    RUN(integers_are_read_to_the_last_digit);
    RUN(integers_stop_at_the_ends);
    RUN(no_digits_are_no_integer);
    RUN(fractions_have_a_point);
    return check_finish();
}
