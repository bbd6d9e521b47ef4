/* test_lenient.c: JSON that C can't hold is read as near to it as can be; other text is refused. */
#include "jupyter-kernel/lenient.h"
#include "tests/check.h"

#include <stdlib.h>

/* {"a": VALUE} read, and written again; NULL: refused. */
static char *read_value(const char *value) {
    char text[512], problem[TK_PROBLEM_SIZE];
    int len = snprintf(text, sizeof text, "{\"a\": %s}", value);
    json_t *object = tk_json_read_object(text, (size_t)len, problem);
    CHECK((object == NULL) == (problem[0] != '\0'));
    char *written = json_dumps(json_object_get(object, "a"), JSON_ENCODE_ANY);
    json_decref(object);
    return written;
}

static void check_reads(const char *value, const char *as) {
    char *written = read_value(value);
    CHECK_STR(written ? written : "refused", as);
    free(written);
}

TEST(integers_stay_whole_as_long_as_they_fit) {
    check_reads("[9223372036854775807, -9223372036854775808, 1e999]",
                "[9223372036854775807, -9223372036854775808, 1.7976931348623157e308]");
    check_reads("9223372036854775808", "9.2233720368547758e18");
    check_reads("-9223372036854775809", "-9.2233720368547758e18");
    check_reads("[0, -0, 10000000000000000000000]", "[0, 0, 1e22]");
}

TEST(reals_beyond_a_double_are_the_largest_of_their_sign) {
    const char *most = "1.7976931348623157e308";
    check_reads("1e309", most);
    check_reads("17.976931348623159e307", most);
    check_reads("0.00017976931348623159e312", most);
    check_reads("1797693134862315900000e287", most);
    check_reads("1.7976931348623157e308", most);
    check_reads("-1e99999999999999999999", "-1.7976931348623157e308");
    check_reads("[1e400, 0e999, 0.0e99999, 1e-999, 12.5e2]",
                "[1.7976931348623157e308, 0.0, 0.0, 0.0, 1250.0]");
}

TEST(a_long_integer_is_a_real) {
    char digits[401] = "";
    memset(digits, '9', 400);
    check_reads(digits, "1.7976931348623157e308");
    digits[300] = '\0';
    check_reads(digits, "1.0000000000000001e300");
}

TEST(words_for_no_number_are_null) {
    check_reads("[NaN, Infinity, -Infinity, \"NaN\"]", "[null, null, null, \"NaN\"]");
}

TEST(half_a_pair_is_a_replacement) {
    check_reads("\"\\ud83d\"", "\"\xEF\xBF\xBD\"");
    check_reads("\"\\ude00\\ud83d!\"", "\"\xEF\xBF\xBD\xEF\xBF\xBD!\"");
    check_reads("\"\\ud83d\\ud83d\\ude00\"", "\"\xEF\xBF\xBD\xF0\x9F\x98\x80\"");
    check_reads("\"\\\\ud83d \\ud83d\"", "\"\\\\ud83d \xEF\xBF\xBD\"");
}

TEST(nul_in_a_key_is_a_replacement_and_in_a_text_it_stays) {
    check_reads("{\"b\\u0000\" : \"\\u0000\"}", "{\"b\xEF\xBF\xBD\": \"\\u0000\"}");
}

TEST(what_is_no_json_is_refused_with_a_reason) {
    const char *bad[] = {"",       "1e",        "[1,",           "tru",  "\"",         "\"\\u12\"",
                         "01e999", "\"\\ud83d", "{\"a\" 1e999}", "NaN1", "-Infinitys", "\"\xff\""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check_reads(bad[i], "refused");
    char problem[TK_PROBLEM_SIZE];
    CHECK(!tk_json_read_object("[]", 2, problem));
    CHECK_STR(problem, "it is no object");
    CHECK(!tk_json_read_object("", 0, problem));
    CHECK(!tk_json_read_object(NULL, 0, problem));
}

int main(void) {
    RUN(integers_stay_whole_as_long_as_they_fit);
    RUN(reals_beyond_a_double_are_the_largest_of_their_sign);
    RUN(a_long_integer_is_a_real);
    RUN(words_for_no_number_are_null);
    RUN(half_a_pair_is_a_replacement);
    RUN(nul_in_a_key_is_a_replacement_and_in_a_text_it_stays);
    RUN(what_is_no_json_is_refused_with_a_reason);
    return check_finish();
}
