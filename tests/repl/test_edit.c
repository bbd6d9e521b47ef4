/* test_edit.c: the line editor without a terminal, a behaviour at a time: keys, text, history, menu
 * and what stands on the screen. test_edit_model.c has the random keys.
 */
#include "tests/repl/rig.h"

static bool is_word(char c) {
    return (c && strchr("_0123456789", c)) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (unsigned char)c >= 0x80;
}

/* ---- keys ---- */

/* The codes that the bytes come to, one behind another; 0 ends them. */
static void check_keys(const char *sent, const uint32_t *want) {
    keys k = {0};
    key got;
    for (; *sent; sent++) {
        CHECK(keys_feed(&k, *sent));
        while (keys_next(&k, &got, !sent[1])) {
            CHECK_INT(got.code, *want);
            want += *want != 0;
        }
    }
    CHECK_INT(*want, 0);
    CHECK(!keys_wait(&k));
    keys_clear(&k);
}

TEST(sequences_of_all_terminals_are_keys) {
    check_keys("a\x01\x7f\n", (uint32_t[]){'a', 1, 0x7F, '\n', 0});
    check_keys("\x1b[A\x1bOB\x1b[1~\x1b[8~\x1b[3~",
               (uint32_t[]){KEY_UP, KEY_DOWN, KEY_HOME, KEY_END, KEY_DELETE, 0});
    check_keys("\x1b[1;5C\x1b[1;3D\x1b[3;5~\x1b[Z",
               (uint32_t[]){KEY_RIGHT | KEY_CTRL, KEY_LEFT | KEY_ALT, KEY_DELETE | KEY_CTRL,
                            KEY_BACK_TAB, 0});
    check_keys("\x1b"
               "f\x1b\r\x1b\x7f",
               (uint32_t[]){'f' | KEY_ALT, '\r' | KEY_ALT, 0x7F | KEY_ALT, 0});
    check_keys("\x1b[13;2u\x1b[27;3;13~\x1b[97;5u",
               (uint32_t[]){'\r' | KEY_SHIFT, '\r' | KEY_ALT, KEY_CONTROL('A'), 0});
    check_keys("\x1b[?1;2c\x1b[[A\x1b[15~q",
               (uint32_t[]){KEY_UNKNOWN, KEY_UNKNOWN, KEY_UNKNOWN, 'q', 0});
    check_keys("\x1b", (uint32_t[]){KEY_ESCAPE, 0});
    check_keys("\x1b\x1b[A", (uint32_t[]){KEY_ESCAPE, KEY_UP, 0});
}

TEST(bytes_that_are_no_utf8_are_keys_one_by_one) {
    check_keys("\xC3\xA4\xE6\x97\xA5", (uint32_t[]){0xE4, 0x65E5, 0});
    check_keys("\xC3(\xFF\x80", (uint32_t[]){KEY_BYTE, '(', KEY_BYTE, KEY_BYTE, 0});
    check_keys("\xED\xA0\x80", (uint32_t[]){KEY_BYTE, KEY_BYTE, KEY_BYTE, 0});
    check_keys("\xE2\x82", (uint32_t[]){KEY_BYTE, KEY_BYTE, 0});
}

TEST(any_bytes_end_in_keys_and_nothing_waits) {
    state = 77;
    keys k = {0};
    key got;
    for (int i = 0; i < 20000; i++) {
        static const char often[] = "\x1b[O;019~mAu\xE2\xCC";
        char byte = draw_number(2) ? often[draw_number(sizeof often - 1)] : (char)draw_number(256);
        CHECK(keys_feed(&k, byte));
        while (keys_next(&k, &got, i % 50 == 49))
            CHECK(got.len <= 4);
        if (i % 50 == 49)
            CHECK(!keys_wait(&k));
    }
    keys_clear(&k);
}

/* ---- what is put in ---- */

TEST(a_paste_is_put_in_as_it_is) {
    rig r;
    rig_open(&r, 40, 10);
    rig_send(&r, "\x1b[200~do\r\n\tx = 1\rend\n\x1b[201~!");
    CHECK_STR(rig_text(&r), "do\n\tx = 1\nend\n!");
    CHECK_STR(rig_row(&r, 1), "....>     x = 1");
    rig_send(&r, "\x1f\x1f");
    CHECK_STR(rig_text(&r), "");
    rig_close(&r);
}

TEST(line_ends_of_two_bytes_are_one_where_the_terminal_doubled_them) {
    rig r;
    rig_open(&r, 40, 10);
    rig_send(&r, "\x1b[200~do\n\nx = 1\n\n\n\nend\n\n\x1b[201~");
    CHECK_STR(rig_text(&r), "do\nx = 1\n\nend\n");
    rig_send(&r, "\x1f\x1b[200~do\n\nend\x1b[201~"); /* one empty line is one */
    CHECK_STR(rig_text(&r), "do\n\nend");
    rig_send(&r, "\x1f\x1b[200~do\n\nx()\nend\n\n\x1b[201~");
    CHECK_STR(rig_text(&r), "do\n\nx()\nend\n\n");
    rig_close(&r);
}

TEST(a_word_that_closes_a_block_moves_left_as_it_is_typed) {
    rig r;
    rig_open(&r, 40, 10);
    rig_send(&r, "while x do\ny()\nend");
    CHECK_STR(rig_text(&r), "while x do\n    y()\nend");
    rig_send(&r, "less");
    CHECK_STR(rig_text(&r), "while x do\n    y()\n    endless");
    rig_send(&r, "\x17"
                 "f{\n}");
    CHECK_STR(rig_text(&r), "while x do\n    y()\n    f{\n    }");
    rig_close(&r);
}

/* Text that comes in one burst, as a terminal without bracketed paste sends it. */
static void send_burst(rig *r, const char *text) {
    for (; *text; text++) {
        key k = text_key(text, 1);
        r->e.more = text[1] != '\0';
        editor_key(&r->e, &k, NULL);
    }
}

TEST(a_burst_of_lines_is_not_indented_twice) {
    rig r;
    rig_open(&r, 40, 10);
    send_burst(&r, "for i = 1, 2 do\n    if i then\n        f()\n    end\nend");
    CHECK_STR(rig_text(&r), "for i = 1, 2 do\n    if i then\n        f()\n    end\nend");
    editor_reset(&r.e);
    send_burst(&r, "do\n");
    send_burst(&r, "    f()\nend");
    CHECK_STR(rig_text(&r), "do\n    f()\nend");
    editor_reset(&r.e);
    send_burst(&r, "do\nf()\nend");
    CHECK_STR(rig_text(&r), "do\n    f()\nend");
    editor_reset(&r.e);
    send_burst(&r, "do\n\tif x then\n\t\tf()\n\tend\nend");
    CHECK_STR(rig_text(&r), "do\n\tif x then\n\t\tf()\n\tend\nend");
    rig_close(&r);
}

TEST(nothing_is_put_into_a_string_of_several_lines) {
    rig r;
    rig_open(&r, 40, 10);
    rig_send(&r, "f(function()\ns = [[a\nb]]\nx");
    CHECK_STR(rig_text(&r), "f(function()\n    s = [[a\nb]]\n    x");
    rig_close(&r);
}

TEST(undo_goes_by_words_and_can_be_undone) {
    rig r;
    rig_open(&r, 40, 10);
    rig_send(&r, "one two  three");
    const char *const steps[] = {"one two  ", "one ", ""};
    for (int i = 0; i < 3; i++) {
        rig_send(&r, "\x1f");
        CHECK_STR(rig_text(&r), steps[i]);
    }
    rig_send(&r, "\x1f\x1b_\x1b_");
    CHECK_STR(rig_text(&r), "one two  ");
    rig_send(&r, "x\x1b_");
    CHECK_STR(rig_text(&r), "one two  x");
    rig_close(&r);
}

TEST(ctrl_v_puts_a_key_in_as_it_is) {
    rig r;
    rig_open(&r, 40, 10);
    rig_send(&r, "x\x16\t\x16\x01");
    CHECK_STR(rig_text(&r), "x\t\x01");
    CHECK_STR(rig_row(&r, 0), "tide> x   ^A");
    rig_close(&r);
}

TEST(ctrl_d_deletes_or_ends) {
    rig r;
    rig_open(&r, 40, 10);
    CHECK_INT(rig_send(&r, "\x04"), EDIT_ENDED);
    CHECK_INT(rig_send(&r, "do\x02\x04"), EDIT_ON);
    CHECK_STR(rig_text(&r), "d");
    CHECK_INT(rig_send(&r, "\x05o\n"), EDIT_ON);
    CHECK_STR(rig_text(&r), "do\n    ");
    CHECK_INT(rig_send(&r, "\x04"), EDIT_ENDED);
    rig_close(&r);
}

/* ---- history ---- */

static void remember(rig *r, const char *const *inputs) {
    for (; *inputs; inputs++)
        CHECK(past_add(&r->e.past, *inputs, strlen(*inputs)));
    past_reset(&r->e.past);
}

static const char *const inputs[] = {"alpha = 1", "beta = 2",     "for i = 1, 2 do\n    f(i)\nend",
                                     "alpha = 3", "print(Gamma)", NULL};

TEST(up_finds_what_begins_as_what_is_written) {
    rig r;
    rig_open(&r, 40, 10);
    remember(&r, inputs);
    rig_send(&r, "al\x1b[A");
    CHECK_STR(rig_text(&r), "alpha = 3");
    rig_send(&r, "\x1b[A");
    CHECK_STR(rig_text(&r), "alpha = 1");
    rig_send(&r, "\x1b[A\x1b[B\x1b[B");
    CHECK_STR(rig_text(&r), "al");
    rig_close(&r);
}

TEST(up_and_down_move_within_an_input_before_they_leave_it) {
    rig r;
    rig_open(&r, 40, 10);
    remember(&r, inputs);
    rig_send(&r, "\x1b[A\x1b[A\x1b[A");
    CHECK_STR(rig_text(&r), inputs[2]);
    CHECK_INT(r.t->row, 2); /* at the end of the last line */
    CHECK_INT(r.t->col, 6 + 3);
    rig_send(&r, "\x1b[A\x1b[A");
    CHECK_STR(rig_text(&r), inputs[2]);
    CHECK_INT(r.t->row, 0);
    rig_send(&r, "\x1b[B\x1b[B");
    CHECK_INT(r.t->row, 2);
    CHECK_STR(rig_text(&r), inputs[2]);
    rig_send(&r, "\x1b[B");
    CHECK_STR(rig_text(&r), "alpha = 3");
    rig_close(&r);
}

TEST(what_was_changed_in_the_history_is_still_there) {
    rig r;
    rig_open(&r, 40, 10);
    remember(&r, inputs);
    rig_send(&r, "draft\x1b[5~!\x1b[5~\x1b[6~");
    CHECK_STR(rig_text(&r), "print(Gamma)!");
    rig_send(&r, "\x1b[6~");
    CHECK_STR(rig_text(&r), "draft");
    editor_reset(&r.e);
    rig_send(&r, "\x1b[5~");
    CHECK_STR(rig_text(&r), "print(Gamma)");
    rig_close(&r);
}

TEST(an_input_that_was_repeated_is_one_step_back) {
    static const char *const repeated[] = {"one()", "two()", "two()", "two()", "one()", NULL};
    static const char *const wanted[] = {"one()", "two()", "one()"};
    rig r;
    rig_open(&r, 40, 10);
    remember(&r, repeated);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        rig_send(&r, "\x1b[5~");
        CHECK_STR(rig_text(&r), wanted[i]);
    }
    rig_send(&r, "\x12"
                 "()");
    CHECK_STR(rig_row(&r, 2), "> one()");
    CHECK_STR(rig_row(&r, 3), "  two()");
    CHECK_STR(rig_row(&r, 4), ""); /* each once */
    rig_close(&r);
}

TEST(the_search_shows_what_it_finds) {
    rig r;
    rig_open(&r, 40, 10);
    remember(&r, inputs);
    rig_send(&r, "x\x12"
                 "alph");
    CHECK_STR(rig_row(&r, 0), "tide> alpha = 3");
    CHECK_STR(rig_row(&r, 1), "search: alph");
    CHECK_STR(rig_row(&r, 2), "> alpha = 3");
    CHECK_STR(rig_row(&r, 3), "  alpha = 1");
    CHECK_INT(r.t->row, 1);
    rig_send(&r, "\x12");
    CHECK_STR(rig_row(&r, 0), "tide> alpha = 1");
    rig_send(&r, "\x07");
    CHECK_STR(rig_text(&r), "x");
    rig_send(&r, "\x12"
                 "gam\x1b");
    CHECK_STR(rig_text(&r), "print(Gamma)");
    CHECK_INT(r.e.buf.cursor, 6);
    rig_send(&r, "\x12"
                 "Alpha");
    CHECK_STR(rig_row(&r, 1), "search: Alpha  (nothing)");
    rig_send(&r, "\x7f\x7f\x7f\x7f\x7f"
                 "f(i\x05");
    CHECK_STR(rig_text(&r), inputs[2]);
    rig_close(&r);
}

TEST(a_suggestion_is_taken_as_a_whole_or_word_by_word) {
    rig r;
    rig_open(&r, 40, 10);
    r.e.suggests = true;
    remember(&r, inputs);
    rig_send(&r, "be");
    CHECK_STR(rig_row(&r, 0), "tide> beta = 2");
    CHECK_INT(r.t->col, 8);
    rig_send(&r, "\x1b[1;5C");
    CHECK_STR(rig_text(&r), "beta");
    rig_send(&r, "\x1b[C");
    CHECK_STR(rig_text(&r), "beta = 2");
    rig_send(&r, "\x15"
                 "for");
    CHECK_STR(rig_row(&r, 0), "tide> for i = 1, 2 do …");
    rig_send(&r, "\x05");
    CHECK_STR(rig_text(&r), inputs[2]);
    rig_send(&r, "\x15\x15\x15\x15\x15\x15"
                 "be\x02");
    CHECK_STR(rig_row(&r, 0), "tide> be");
    rig_close(&r);
}

/* ---- the menu ---- */

static void offer_names(void *ctx, const char *code, size_t len, size_t cursor, edit_choices *out) {
    static const char *const names[] = {"zebra", "zeros", "zeros_like", "zoo"};
    (void)ctx;
    (void)len;
    size_t start = cursor;
    while (start > 0 && is_word(code[start - 1]))
        start--;
    *out = (edit_choices){.items = calloc(4, sizeof *out->items), .start = start, .end = cursor};
    for (int i = 0; i < 4; i++)
        if (strncmp(names[i], code + start, cursor - start) == 0)
            out->items[out->n++] = (edit_choice){strdup(names[i]), strdup("function"), NULL};
}

static char *note_name(void *ctx, const char *code, size_t len, size_t cursor) {
    (void)ctx;
    (void)cursor;
    char *note = malloc(len + 8);
    snprintf(note, len + 8, "about %.*s", (int)len, code);
    return note;
}

static void rig_open_menu(rig *r, int columns, int rows) {
    rig_open(r, columns, rows);
    r->e.host.complete = offer_names;
    r->e.host.note = note_name;
}

TEST(tab_completes_as_far_as_it_can_and_lists_the_rest) {
    rig r;
    rig_open_menu(&r, 50, 10);
    rig_send(&r, "zer\t");
    CHECK_STR(rig_text(&r), "zeros");
    CHECK_STR(rig_row(&r, 1), "  zeros       function  about zeros");
    CHECK_STR(rig_row(&r, 2), "  zeros_like  function  about zeros_like");
    rig_send(&r, "\t\t");
    CHECK_STR(rig_text(&r), "zeros_like");
    CHECK_STR(rig_row(&r, 2), "> zeros_like  function  about zeros_like");
    rig_send(&r, "\t");
    CHECK_STR(rig_text(&r), "zeros");
    rig_send(&r, "\x1b[A\n");
    CHECK_STR(rig_text(&r), "zeros_like");
    CHECK_STR(rig_row(&r, 1), "");
    rig_send(&r, "\x15zo\t");
    CHECK_STR(rig_text(&r), "zoo");
    rig_close(&r);
}

TEST(typing_narrows_the_menu_and_escape_leaves_it) {
    rig r;
    rig_open_menu(&r, 50, 10);
    rig_send(&r, "z\t");
    CHECK_STR(rig_row(&r, 4), "  zoo         function  about zoo");
    rig_send(&r, "\x1b[Z");
    CHECK_STR(rig_text(&r), "zoo");
    rig_send(&r, "\t");
    CHECK_STR(rig_text(&r), "z");
    rig_send(&r, "e");
    CHECK_STR(rig_row(&r, 4), "");
    rig_send(&r, "\t");
    rig_send(&r, "\x1b");
    CHECK_STR(rig_text(&r), "ze");
    CHECK_STR(rig_row(&r, 1), "");
    rig_send(&r, "\t\t(");
    CHECK_STR(rig_text(&r), "zebra(");
    CHECK_STR(rig_row(&r, 1), "");
    rig_close(&r);
}

TEST(a_menu_fits_a_small_window) {
    rig r;
    rig_open_menu(&r, 17, 3);
    rig_send(&r, "z\t");
    CHECK_STR(rig_row(&r, 0), "tide> z");
    CHECK_STR(rig_row(&r, 1), "  zebra  function");
    CHECK_STR(rig_row(&r, 2), "  1-1 of 4");
    rig_send(&r, "\t\t\t");
    CHECK_STR(rig_row(&r, 0), "tide> zeros_like");
    CHECK_STR(rig_row(&r, 1), "> zeros_like");
    rig_send(&r, "\n");
    CHECK_STR(rig_row(&r, 1), "");
    rig_close(&r);
}

/* ---- the screen ---- */

static char *say_signature(void *ctx, const char *code, size_t len, size_t cursor) {
    (void)ctx;
    (void)len;
    return memchr(code, '(', cursor) ? strdup("call(int a, int b, *, bool flag=false) -> Tensor")
                                     : NULL;
}

TEST(the_signature_stands_below_while_a_call_is_written) {
    rig r;
    rig_open(&r, 30, 5);
    r.e.host.signature = say_signature;
    rig_send(&r, "call(");
    CHECK_STR(rig_row(&r, 0), "tide> call(");
    CHECK_STR(rig_row(&r, 1), "call(int a, int b, *, bool fl…");
    CHECK_INT(r.t->row, 0);
    rig_send(&r, "\x7f");
    CHECK_STR(rig_row(&r, 1), "");
    rig_close(&r);
}

static char *say_marked(void *ctx, const char *code, size_t len, size_t cursor) {
    (void)ctx, (void)code, (void)len, (void)cursor;
    return strdup("call(int a, \2int b\3, int c)");
}

TEST(the_parameter_that_is_written_stands_out) {
    rig r;
    rig_open(&r, 30, 5);
    r.e.host.signature = say_marked;
    rig_send(&r, "call(1, ");
    CHECK_STR(rig_row(&r, 1), "call(int a, int b, int c)");
    rig_close(&r);
    rig_open(&r, 20, 5);
    r.e.host.signature = say_marked;
    rig_send(&r, "call(");
    CHECK_STR(rig_row(&r, 1), "call(int a, int b, …");
    rig_close(&r);
}

TEST(a_tall_input_scrolls_and_stands_there_whole_in_the_end) {
    rig r;
    rig_open(&r, 30, 4);
    vt_write(r.t, "before\r\n", 8);
    for (int i = 1; i <= 9; i++) {
        char line[16];
        snprintf(line, sizeof line, "f(%d)\n", i);
        rig_send(&r, line);
    }
    CHECK_STR(rig_row(&r, 0), "....> f(7)");
    CHECK_STR(rig_row(&r, 3), "....>");
    rig_send(&r, "\x1b[1;5H");
    CHECK_STR(rig_row(&r, 0), "tide> f(1)");
    CHECK_STR(rig_row(&r, 3), "....> f(4)");
    free(r.t);
    r.t = vt_new(30, 16); /* a taller one, to see all that is written in the end */
    screen_forget(&r.s);
    r.v.done = true;
    rig_draw(&r);
    CHECK_STR(rig_row(&r, 0), "tide> f(1)");
    CHECK_STR(rig_row(&r, 8), "....> f(9)");
    rig_close(&r);
}

static int style_at(const char *code, size_t cursor, size_t at) {
    bytes styles = {0};
    CHECK(paint(&styles, code, strlen(code), cursor));
    int s = styles.at[at];
    bytes_clear(&styles);
    return s;
}

TEST(words_of_a_block_are_partners) {
    const char *code = "for i = 1, 2 do if x then f(function() end) end end";
    const size_t words[][2] = {{13, 48}, {16, 44}, {28, 39}}; /* do if function, and their ends */
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            CHECK_INT(style_at(code, words[i][j] + 1, words[i][0]), STYLE_MATCH);
            CHECK_INT(style_at(code, words[i][j] + 1, words[i][1]), STYLE_MATCH);
            CHECK_INT(style_at(code, words[(i + 1) % 3][j] + 1, words[i][0]), STYLE_KEYWORD);
        }
    CHECK_INT(style_at(code, 51, 50), STYLE_MATCH); /* behind the last end */
    CHECK_INT(style_at(code, 4, 13), STYLE_KEYWORD);
    CHECK_INT(style_at("repeat x() until y", 2, 11), STYLE_MATCH);
    CHECK_INT(style_at("repeat x() end", 2, 11), STYLE_KEYWORD);
    CHECK_INT(style_at("do x() until y", 1, 7), STYLE_KEYWORD);
    CHECK_INT(style_at("end", 1, 0), STYLE_KEYWORD); /* lines above may come yet */
    CHECK_INT(style_at("f(do end)", 8, 1), STYLE_MATCH);
    CHECK_INT(style_at("x = 'do' end", 10, 9), STYLE_KEYWORD);
}

TEST(text_is_painted_by_its_tokens) {
    const char *code = "local x = nil -- f(1)";
    CHECK_INT(style_at(code, 99, 0), STYLE_KEYWORD);
    CHECK_INT(style_at(code, 99, 6), STYLE_PLAIN);
    CHECK_INT(style_at(code, 99, 10), STYLE_CONSTANT);
    CHECK_INT(style_at(code, 99, 17), STYLE_COMMENT);
    CHECK_INT(style_at("print('a', 1)", 99, 0), STYLE_CALL);
    CHECK_INT(style_at("print('a', 1)", 99, 7), STYLE_STRING);
    CHECK_INT(style_at("print('a', 1)", 99, 11), STYLE_NUMBER);
    CHECK_INT(style_at("%time f(x)", 99, 2), STYLE_MAGIC);
    CHECK_INT(style_at("%time f(x)", 99, 6), STYLE_CALL);
}

TEST(the_bracket_at_the_cursor_shows_its_partner) {
    const char *code = "f(a[1], ')')";
    CHECK_INT(style_at(code, 12, 1), STYLE_MATCH);
    CHECK_INT(style_at(code, 12, 11), STYLE_MATCH);
    CHECK_INT(style_at(code, 12, 3), STYLE_PLAIN);
    CHECK_INT(style_at(code, 3, 5), STYLE_MATCH);
    CHECK_INT(style_at(code, 9, 9), STYLE_STRING);
    CHECK_INT(style_at("f(]", 99, 2), STYLE_ODD);
}

TEST(colours_are_sent_where_they_may_be_and_nowhere_else) {
    rig r;
    rig_open(&r, 30, 4);
    rig_send(&r, "local x");
    view_frame(&r.v, &r.e, &r.next);
    screen_forget(&r.s);
    screen_draw(&r.s, &r.next, &r.out);
    CHECK(r.out.len > 0 && !memmem(r.out.at, r.out.len, "\x1b[3", 3));
    r.v.color = true;
    screen_forget(&r.s);
    rig_draw(&r);
    view_frame(&r.v, &r.e, &r.next);
    CHECK_INT(frame_cell(&r.next, 0, 6)->style, STYLE_KEYWORD);
    rig_close(&r);
}

TEST(a_letter_costs_few_bytes) {
    rig r;
    rig_open(&r, 80, 24);
    rig_send(&r, "print(1, 2, 3)\nprint(4)\nx");
    key k = text_key("y", 1);
    editor_key(&r.e, &k, NULL);
    view_frame(&r.v, &r.e, &r.next);
    screen_draw(&r.s, &r.next, &r.out);
    CHECK_INT(r.out.len, 1);
    rig_close(&r);
}

/* ---- letters ---- */

TEST(columns_and_groups_of_letters) {
    CHECK_INT(glyph_width('a'), 1);
    CHECK_INT(glyph_width(0x65E5), 2);
    CHECK_INT(glyph_width(0x1F319), 2);
    CHECK_INT(glyph_width(0x301), 0);
    CHECK_INT(glyph_width(0x10FFFF), 1);
    const char *text = "e\xCC\x81\xCC\xA7"
                       "日x";
    CHECK_INT(glyph_next(text, strlen(text), 0), 5);
    CHECK_INT(glyph_before(text, 5), 0);
    CHECK_INT(glyph_before(text, 8), 5);
    CHECK_INT(glyph_columns(text, strlen(text)), 4);
}

TEST(letters_that_turn_text_around_are_shown_as_odd) {
    rig r;
    rig_open(&r, 30, 4);
    rig_send(&r, "a\xE2\x80\xAE"
                 "b\xC2\x9B"
                 "c\xFF");
    CHECK_STR(rig_row(&r, 0), "tide> a\xEF\xBF\xBD"
                              "b\xEF\xBF\xBD"
                              "c\xEF\xBF\xBD");
    rig_close(&r);
}

TEST(a_megabyte_on_one_line_is_edited) {
    rig r;
    rig_open(&r, 80, 24);
    bytes text = {0};
    for (int i = 0; i < 1 << 18; i++)
        REQUIRE(bytes_add(&text, "x+1+", 4));
    editor_key(&r.e, &(key){.code = KEY_PASTE}, &text);
    CHECK_INT(r.e.buf.text.len, 1 << 20);
    rig_send(&r, "y\x01z\x1f");
    CHECK_INT(r.e.buf.text.len, (1 << 20) + 1);
    CHECK_INT(r.t->row, 0);
    bytes_clear(&text);
    rig_close(&r);
}

int main(void) {
    RUN(sequences_of_all_terminals_are_keys);
    RUN(bytes_that_are_no_utf8_are_keys_one_by_one);
    RUN(any_bytes_end_in_keys_and_nothing_waits);
    RUN(a_paste_is_put_in_as_it_is);
    RUN(line_ends_of_two_bytes_are_one_where_the_terminal_doubled_them);
    RUN(a_word_that_closes_a_block_moves_left_as_it_is_typed);
    RUN(a_burst_of_lines_is_not_indented_twice);
    RUN(nothing_is_put_into_a_string_of_several_lines);
    RUN(undo_goes_by_words_and_can_be_undone);
    RUN(ctrl_v_puts_a_key_in_as_it_is);
    RUN(ctrl_d_deletes_or_ends);
    RUN(up_finds_what_begins_as_what_is_written);
    RUN(up_and_down_move_within_an_input_before_they_leave_it);
    RUN(what_was_changed_in_the_history_is_still_there);
    RUN(an_input_that_was_repeated_is_one_step_back);
    RUN(the_search_shows_what_it_finds);
    RUN(a_suggestion_is_taken_as_a_whole_or_word_by_word);
    RUN(tab_completes_as_far_as_it_can_and_lists_the_rest);
    RUN(typing_narrows_the_menu_and_escape_leaves_it);
    RUN(a_menu_fits_a_small_window);
    RUN(the_signature_stands_below_while_a_call_is_written);
    RUN(the_parameter_that_is_written_stands_out);
    RUN(words_of_a_block_are_partners);
    RUN(a_tall_input_scrolls_and_stands_there_whole_in_the_end);
    RUN(text_is_painted_by_its_tokens);
    RUN(the_bracket_at_the_cursor_shows_its_partner);
    RUN(colours_are_sent_where_they_may_be_and_nowhere_else);
    RUN(a_letter_costs_few_bytes);
    RUN(columns_and_groups_of_letters);
    RUN(letters_that_turn_text_around_are_shown_as_odd);
    RUN(a_megabyte_on_one_line_is_edited);
    return check_finish();
}
