/* test_session_history.c: the history's file as others read and write it: its form, which older
 * sessions wrote and newer ones must read, and where it lies. */
#include "repl/session/session.h"

#include "tests/check.h"

#include <stdlib.h>
#include <unistd.h>

static void ignore_output(void *ctx, tide_stream stream, const char *bytes, size_t len) {
    (void)ctx, (void)stream, (void)bytes, (void)len;
}

static tide_session *open_session(const char *path) {
    tide_frontend frontend = {.write = ignore_output};
    tide_session *s = tide_session_new(&frontend);
    if (s)
        tide_session_history_open(s, path);
    return s;
}

static void eval(tide_session *s, const char *code) {
    tide_result r = {0};
    tide_session_eval(s, code, strlen(code), false, &r);
    tide_result_clear(&r);
}

/* Makes a file of this text; its path is written into `path`. */
static bool make_file(char *path, const char *text) {
    snprintf(path, 64, "/tmp/tide_history_XXXXXX");
    int file = mkstemp(path);
    bool ok = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0)
        close(file);
    return ok;
}

static const char *read_file(const char *path, char *text, size_t size) {
    FILE *file = fopen(path, "r");
    size_t n = file ? fread(text, 1, size - 1, file) : 0;
    if (file)
        fclose(file);
    text[n] = '\0';
    return text;
}

TEST(a_file_of_the_documented_form_is_read) {
    char path[64];
    REQUIRE(
        make_file(path, "17.1\t1\tfor i = 1, 2 do\\n\\tx = i\\r\\nend\n17.1\t2\ts = '\\\\n'\n"));
    tide_session *s = open_session(path);
    REQUIRE(s);
    tide_history_list list;
    tide_session_history_tail(s, 5, &list);
    CHECK_INT(list.n, 2);
    if (list.n == 2) {
        CHECK_STR(list.entries[0].input, "for i = 1, 2 do\n\tx = i\r\nend");
        CHECK_STR(list.entries[1].input, "s = '\\n'");
    }
    tide_history_list_clear(&list);
    tide_session_free(s);
    unlink(path);
}

TEST(a_file_of_the_documented_form_is_written) {
    char path[64], text[256];
    REQUIRE(make_file(path, ""));
    tide_session *s = open_session(path);
    REQUIRE(s);
    eval(s, "x = [[a\n\tb\\]]");
    eval(s, "x = 1");
    tide_session_free(s);
    read_file(path, text, sizeof text);
    CHECK_CONTAINS(text, "\t1\tx = [[a\\n\\tb\\\\]]\n");
    CHECK_CONTAINS(text, "\t2\tx = 1\n");
    unlink(path);
}

TEST(the_first_entry_after_a_torn_one_has_a_line_of_its_own) {
    char path[64], text[256];
    REQUIRE(make_file(path, "17.1\t1\tx = "));
    tide_session *s = open_session(path);
    REQUIRE(s);
    eval(s, "y = 2");
    tide_session_free(s);
    CHECK_CONTAINS(read_file(path, text, sizeof text), "17.1\t1\tx = \n");
    CHECK_CONTAINS(text, "\t1\ty = 2\n");
    unlink(path);
}

TEST(the_file_lies_where_the_state_of_programs_lies) {
    setenv("HOME", "/home_of_nobody", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    CHECK_STR(tide_session_history_default_path(), "/state/tide/history");
    setenv("XDG_STATE_HOME", "not/absolute", 1);
    CHECK_STR(tide_session_history_default_path(), "/home_of_nobody/.local/state/tide/history");
    unsetenv("XDG_STATE_HOME");
    CHECK_STR(tide_session_history_default_path(), "/home_of_nobody/.local/state/tide/history");
    unsetenv("HOME");
    CHECK(tide_session_history_default_path() == NULL);
}

TEST(another_file_takes_the_place_of_the_first) {
    char one[64], two[64];
    tide_history_list list;
    REQUIRE(make_file(one, "17.1\t1\tx = 1\n") && make_file(two, "18.1\t1\ty = 1\n"));
    tide_session *s = open_session(one);
    REQUIRE(s);
    tide_session_history_tail(s, 10, &list);
    tide_history_list_clear(&list);
    tide_session_history_open(s, two);
    tide_session_history_tail(s, 10, &list);
    CHECK_INT(list.n, 1);
    CHECK_STR(list.entries[0].input, "y = 1");
    tide_history_list_clear(&list);
    tide_session_free(s);
    unlink(one);
    unlink(two);
}

int main(void) {
    RUN(another_file_takes_the_place_of_the_first);
    RUN(a_file_of_the_documented_form_is_read);
    RUN(a_file_of_the_documented_form_is_written);
    RUN(the_first_entry_after_a_torn_one_has_a_line_of_its_own);
    RUN(the_file_lies_where_the_state_of_programs_lies);
    return check_finish();
}
