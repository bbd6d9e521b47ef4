/* test_utf8.c: cursors between code points and bytes, and broken text made whole. */
#include "jupyter-kernel/utf8.h"
#include "tests/check.h"

#include <stdlib.h>

static const char mixed[] = "aé€😀b"; /* 1, 2, 3, 4 and 1 bytes */

TEST(offset_counts_bytes_before_a_code_point) {
    const size_t expected[] = {0, 1, 3, 6, 10, 11, 11};
    for (size_t point = 0; point < 7; point++)
        CHECK_INT(tk_utf8_offset(mixed, strlen(mixed), point), expected[point]);
    CHECK_INT(tk_utf8_offset("", 0, 3), 0);
}

TEST(points_counts_code_points_before_an_offset) {
    const size_t offsets[] = {0, 1, 3, 6, 10, 11, 99}, expected[] = {0, 1, 2, 3, 4, 5, 5};
    for (size_t i = 0; i < 7; i++)
        CHECK_INT(tk_utf8_points(mixed, strlen(mixed), offsets[i]), expected[i]);
}

TEST(points_and_offset_are_inverse) {
    for (size_t point = 0; point <= 5; point++) {
        size_t offset = tk_utf8_offset(mixed, strlen(mixed), point);
        CHECK_INT(tk_utf8_points(mixed, strlen(mixed), offset), point);
    }
}

/* What `bytes` become when they come in pieces of `piece` bytes. */
static char *repaired(const char *bytes, size_t len, size_t piece) {
    tk_buffer out = {0};
    tk_utf8_rest rest = {0};
    bool ok = true;
    for (size_t i = 0; i < len; i += piece)
        ok = ok && tk_utf8_repair(&rest, bytes + i, len - i < piece ? len - i : piece, &out);
    ok = ok && tk_utf8_finish(&rest, &out) && tk_buffer_add(&out, "", 1);
    if (ok)
        return out.data;
    tk_buffer_clear(&out);
    return NULL;
}

#define BAD "\xEF\xBF\xBD"

/* Broken text and what the Unicode Standard recommends for it (chapter 3, "U+FFFD Substitution of
 * Maximal Subparts"). */
static const struct {
    const char *bytes, *expected;
} samples[] = {
    {"", ""},
    {"plain", "plain"},
    {mixed, mixed},
    {"\xff", BAD},
    {"a\x80z", "a" BAD "z"},
    {"\xc3", BAD},
    {"\xc3z", BAD "z"},
    {"\xe2\x82z", BAD "z"},
    {"\xf0\x9f\x98", BAD},
    {"\xc0\xaf", BAD BAD},                 /* overlong */
    {"\xe0\x80\xaf", BAD BAD BAD},         /* overlong */
    {"\xed\xa0\x80", BAD BAD BAD},         /* a surrogate */
    {"\xf4\x90\x80\x80", BAD BAD BAD BAD}, /* beyond U+10FFFF */
    {"\xf8\x88\x80\x80", BAD BAD BAD BAD},
    {"\xf1\x80\x80\xe1\x80\xc2\x62\x80\x63", BAD BAD BAD "b" BAD "c"},
    {"\xe1\xe1\x80\x80", BAD "\xe1\x80\x80"},
};

TEST(repair_replaces_each_maximal_broken_sequence) {
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        char *whole = repaired(samples[i].bytes, strlen(samples[i].bytes), 99);
        CHECK_STR(whole, samples[i].expected);
        free(whole);
    }
}

TEST(repair_does_not_depend_on_where_text_is_cut) {
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        for (size_t piece = 1; piece <= 4; piece++) {
            char *cut = repaired(samples[i].bytes, strlen(samples[i].bytes), piece);
            CHECK_STR(cut, samples[i].expected);
            free(cut);
        }
}

TEST(repair_gives_the_same_for_random_bytes_however_cut) {
    unsigned seed = 7;
    for (int round = 0; round < 20000; round++) {
        char bytes[24];
        size_t len = (size_t)rand_r(&seed) % sizeof bytes;
        for (size_t i = 0; i < len; i++) /* leads and continuations are likely, NUL is left out */
            bytes[i] = (char)(rand_r(&seed) % 4 ? 0x80 | rand_r(&seed) % 128 : 'a');
        char *whole = repaired(bytes, len, sizeof bytes);
        char *cut = repaired(bytes, len, 1 + (size_t)rand_r(&seed) % 5);
        CHECK_STR(cut, whole);
        char *again = repaired(whole, strlen(whole), 99);
        CHECK_STR(again, whole); /* what was mended needs no mending */
        free(whole);
        free(cut);
        free(again);
    }
}

TEST(repair_keeps_nul_bytes) {
    tk_buffer out = {0};
    tk_utf8_rest rest = {0};
    CHECK(tk_utf8_repair(&rest, "a\0b", 3, &out));
    CHECK_INT(out.len, 3);
    tk_buffer_clear(&out);
}

TEST(unfinished_character_waits_for_its_end) {
    tk_buffer out = {0};
    tk_utf8_rest rest = {0};
    CHECK(tk_utf8_repair(&rest, "x\xe2\x82", 3, &out));
    CHECK_INT(out.len, 1);
    CHECK(tk_utf8_repair(&rest, "\xac", 1, &out));
    CHECK_INT(out.len, 4);
    CHECK(memcmp(out.data, "x€", 4) == 0);
    tk_buffer_clear(&out);
}

int main(void) {
    RUN(offset_counts_bytes_before_a_code_point);
    RUN(points_counts_code_points_before_an_offset);
    RUN(points_and_offset_are_inverse);
    RUN(repair_replaces_each_maximal_broken_sequence);
    RUN(repair_does_not_depend_on_where_text_is_cut);
    RUN(repair_gives_the_same_for_random_bytes_however_cut);
    RUN(repair_keeps_nul_bytes);
    RUN(unfinished_character_waits_for_its_end);
    return check_finish();
}
