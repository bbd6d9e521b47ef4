/* test_gather.c: output on its way into a widget: what becomes of each message, and of what there
 * was. */
#include "jupyter-kernel/gather.h"
#include "tests/check.h"

#include <stdlib.h>

/* A message of that type; `content` is JSON text, NULL: memory was out. */
static bool add(tk_gather *gather, const char *type, const char *content) {
    json_t *given = content ? json_loads(content, 0, NULL) : NULL;
    bool taken = tk_gather_add(gather, type, given);
    json_decref(given);
    return taken;
}

static void check_outputs(tk_gather *gather, const char *want) {
    json_t *update = tk_gather_update(gather), *expected = json_loads(want, 0, NULL);
    json_t *state = json_object_get(json_object_get(update, "data"), "state");
    REQUIRE(expected != NULL);
    CHECK(json_equal(json_object_get(state, "outputs"), expected));
    CHECK(!gather->dirty);
    json_decref(update);
    json_decref(expected);
}

#define STREAM(name, text) "{\"name\":\"" name "\",\"text\":\"" text "\"}"
#define STREAMED(name, text)                                                                       \
    "{\"output_type\":\"stream\",\"name\":\"" name "\",\"text\":\"" text "\"}"
#define DISPLAY(text)                                                                              \
    "{\"data\":{\"text/plain\":\"" text "\"},\"metadata\":{},\"transient\":{\"display_id\":\"k\"}" \
    "}"
#define DISPLAYED(text)                                                                            \
    "{\"output_type\":\"display_data\",\"data\":{\"text/plain\":\"" text "\"},\"metadata\":{}}"

TEST(streams_go_on_where_they_are_the_last) {
    tk_gather *g = tk_gather_new("id", json_loads("[" STREAMED("stdout", "a") "]", 0, NULL), NULL);
    CHECK(add(g, "stream", STREAM("stdout", "b")));
    CHECK(add(g, "stream", STREAM("stderr", "c")));
    CHECK(add(g, "stream", STREAM("stdout", "d")));
    check_outputs(g, "[" STREAMED("stdout", "ab") "," STREAMED("stderr", "c") "," STREAMED(
                         "stdout", "d") "]");
    CHECK(tk_gather_free(g) == NULL);
}

TEST(displays_are_replaced_in_all_widgets_around) {
    tk_gather *outer = tk_gather_new("outer", NULL, NULL);
    CHECK(add(outer, "display_data", DISPLAY("1")));
    tk_gather *inner = tk_gather_new("inner", NULL, outer);
    CHECK(add(inner, "display_data", DISPLAY("2")));
    CHECK(!add(inner, "update_display_data", DISPLAY("3"))); /* others may show it too */
    check_outputs(inner, "[" DISPLAYED("3") "]");
    CHECK(tk_gather_free(inner) == outer);
    check_outputs(outer, "[" DISPLAYED("3") "]");
    tk_gather_free(outer);
}

TEST(what_is_cleared_goes_now_or_with_the_next) {
    tk_gather *g = tk_gather_new("id", NULL, NULL);
    add(g, "stream", STREAM("stdout", "a"));
    CHECK(add(g, "clear_output", "{\"wait\":true}"));
    check_outputs(g, "[" STREAMED("stdout", "a") "]");
    add(g, "stream", STREAM("stdout", "b"));
    check_outputs(g, "[" STREAMED("stdout", "b") "]");
    CHECK(add(g, "clear_output", "{\"wait\":false}"));
    check_outputs(g, "[]");
    tk_gather_free(g);
}

TEST(what_is_no_output_is_not_taken) {
    static const char *const types[] = {"status", "comm_msg", "comm_open", "execute_input",
                                        "error"};
    tk_gather *g = tk_gather_new("id", NULL, NULL);
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        CHECK(!add(g, types[k], "{}"));
    CHECK(add(g, "stream", NULL)); /* memory was out: it is lost */
    check_outputs(g, "[]");
    tk_gather_free(g);
}

int main(void) {
    RUN(streams_go_on_where_they_are_the_last);
    RUN(displays_are_replaced_in_all_widgets_around);
    RUN(what_is_cleared_goes_now_or_with_the_next);
    RUN(what_is_no_output_is_not_taken);
    return check_finish();
}
