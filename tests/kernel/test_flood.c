/* test_flood.c: what of a flood is shown at once, held, shown when it rests, and left out. */
#include "jupyter-kernel/flood.h"
#include "tests/check.h"

#include <stdlib.h>

static char text[2 << 20];

static void fill(char c, size_t line) {
    memset(text, c, sizeof text);
    for (size_t i = line; line && i < sizeof text; i += line + 1)
        text[i] = '\n';
}

/* All of the first part has been shown. */
static tk_flood after_head(void) {
    tk_flood flood = {0};
    fill('x', 0);
    CHECK_INT(tk_flood_pass(&flood, text, TK_FLOOD_HEAD), TK_FLOOD_HEAD);
    return flood;
}

static char *taken(tk_flood *flood, int stream) {
    tk_buffer out = {0};
    tk_flood_take(flood, stream, &out);
    CHECK(tk_buffer_add(&out, "", 1));
    return out.data;
}

static void check_taken(tk_flood *flood, int stream, const char *want) {
    char *got = taken(flood, stream);
    CHECK_STR(got, want);
    free(got);
}

TEST(the_first_part_passes_and_the_rest_does_not) {
    tk_flood flood = {0};
    fill('x', 0);
    CHECK_INT(tk_flood_pass(&flood, text, 1000), 1000);
    CHECK_INT(tk_flood_pass(&flood, text, sizeof text), TK_FLOOD_HEAD - 1000);
    CHECK_INT(tk_flood_pass(&flood, text, 1), 0);
    flood.off = true;
    CHECK_INT(tk_flood_pass(&flood, text, sizeof text), sizeof text);
}

TEST(the_cut_is_behind_a_line) {
    tk_flood flood = {0};
    fill('x', 99);
    CHECK_INT(tk_flood_pass(&flood, text, sizeof text), TK_FLOOD_HEAD / 100 * 100);
}

TEST(the_cut_is_behind_a_character) {
    tk_flood flood = {0};
    for (size_t i = 0; i + 3 <= sizeof text; i += 3)
        memcpy(text + i, "\xE2\x82\xAC", 3);
    CHECK_INT(tk_flood_pass(&flood, text, sizeof text), TK_FLOOD_HEAD / 3 * 3);
}

TEST(little_that_is_held_is_shown_whole) {
    tk_flood flood = after_head();
    tk_flood_hold(&flood, 0, "one\n", 4);
    tk_flood_hold(&flood, 1, "error\n", 6);
    tk_flood_hold(&flood, 0, "two", 3);
    CHECK(tk_flood_holds(&flood) && tk_flood_rests(&flood));
    check_taken(&flood, 0, "one\ntwo");
    check_taken(&flood, 1, "error\n");
    CHECK(!tk_flood_holds(&flood));
    check_taken(&flood, 0, "");
    tk_flood_clear(&flood);
}

TEST(what_falls_out_is_counted_in_bytes_and_lines) {
    tk_flood flood = after_head();
    fill('y', 9);
    for (int i = 0; i < 10; i++)
        tk_flood_hold(&flood, 0, text, 100000); /* 10,000 lines of 10 bytes each */
    CHECK(!tk_flood_rests(&flood));
    CHECK(tk_flood_rests(&flood)); /* nothing came since */
    char *got = taken(&flood, 0);
    const char *note =
        "\n… 934,470 bytes in 93,447 lines are left out here; %flood off shows all …\n";
    CHECK(strncmp(got, note, strlen(note)) == 0);
    CHECK_INT(strlen(got) - strlen(note), 1000000 - 934470);
    CHECK(strncmp(got + strlen(note), "yyyyyyyyy\n", 10) == 0);
    free(got);
    tk_flood_clear(&flood);
}

TEST(a_piece_larger_than_all_that_is_held) {
    tk_flood flood = after_head();
    tk_flood_hold(&flood, 0, "before\n", 7);
    fill('z', 0);
    memcpy(text + sizeof text - 4, "end\n", 4);
    tk_flood_hold(&flood, 0, text, sizeof text);
    char *got = taken(&flood, 0);
    CHECK(strstr(got, " bytes in 1 lines") && strcmp(got + strlen(got) - 5, "zend\n") == 0);
    free(got);
    tk_flood_clear(&flood);
}

TEST(what_rests_is_shown_up_to_a_limit) {
    tk_flood flood = after_head();
    fill('l', 99);
    size_t shown = 0;
    for (int i = 0; i < 1000; i++) {
        tk_flood_hold(&flood, 0, text, 10000);
        if (!tk_flood_rests(&flood))
            continue;
        shown += 10000;
        free(taken(&flood, 0));
    }
    CHECK(shown > TK_FLOOD_LATER - 20000 && shown <= TK_FLOOD_LATER);
    tk_flood_reset(&flood);
    CHECK(!tk_flood_holds(&flood));
    CHECK_INT(tk_flood_pass(&flood, text, 1000), 1000);
    tk_flood_clear(&flood);
}

int main(void) {
    RUN(the_first_part_passes_and_the_rest_does_not);
    RUN(the_cut_is_behind_a_line);
    RUN(the_cut_is_behind_a_character);
    RUN(little_that_is_held_is_shown_whole);
    RUN(what_falls_out_is_counted_in_bytes_and_lines);
    RUN(a_piece_larger_than_all_that_is_held);
    RUN(what_rests_is_shown_up_to_a_limit);
    return check_finish();
}
