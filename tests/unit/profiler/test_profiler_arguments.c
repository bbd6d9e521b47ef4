/* test_profiler_arguments.c: what an operator was called with, as words: each kind as it is read
 * back, and what has no room.
 */
#include "engine/ops/op.h"
#include "profiler/arguments.h"
#include "tests/unit/profiler/profiler_work.h"

static size_t write(int n, const td_value *args, int64_t words[TIDE_ARGUMENT_WORDS]) {
    td_event event = {.kind = TD_EVENT_OP, .name = "test", .args = args, .nargs = n};
    memset(words, 0x55, TIDE_ARGUMENT_WORDS * sizeof *words);
    return tide_arguments_write(&event, words);
}

static int64_t head(int kind, int64_t entries) {
    return kind | entries << 8;
}

TEST(each_kind_has_its_words) {
    int64_t words[TIDE_ARGUMENT_WORDS], ints[] = {-1, INT64_MAX};
    double floats[] = {0.5}, number;
    const td_value args[] = {
        TD_I(-7),         TD_F(2.5),        TD_B(true),           TD_NIL,
        TD_DTYPE(TD_F16), TD_INTS(2, ints), TD_FLOATS(1, floats), TD_STRING("mean")};
    const int64_t heads[] = {head(TD_KIND_INT, 1), head(TD_KIND_FLOAT, 1), head(TD_KIND_BOOL, 1)};
    CHECK_INT(write(8, args, words), 1 + 2 + 2 + 2 + 1 + 2 + 3 + 2 + 3);
    CHECK_INT(words[0], 17);
    CHECK_INT(words[1], heads[0]);
    CHECK_INT(words[2], -7);
    CHECK_INT(words[3], heads[1]);
    memcpy(&number, &words[4], sizeof number);
    CHECK(number == 2.5);
    CHECK_INT(words[5], heads[2]);
    CHECK_INT(words[6], 1);
    CHECK_INT(words[7], head(TD_KIND_NIL, 1));
    CHECK_INT(words[8], head(TD_KIND_DTYPE, 1));
    CHECK_INT(words[9], TD_F16);
    CHECK_INT(words[10], head(TD_KIND_INTS, 2));
    CHECK_INT(words[11], -1);
    CHECK_INT(words[12], INT64_MAX);
    CHECK_INT(words[13], head(TD_KIND_FLOATS, 1));
    memcpy(&number, &words[14], sizeof number);
    CHECK(number == 0.5);
    CHECK_INT(words[15], head(TD_KIND_STRING, 1));
    CHECK_INT(words[16], 4);
    CHECK(memcmp(&words[17], "mean\0\0\0\0", 8) == 0);
}

TEST(tensors_are_counted_and_not_written) {
    int64_t words[TIDE_ARGUMENT_WORDS];
    td_tensor *x = NULL;
    CHECK_INT(TD_APPLY(&x, ones, TD_INTS(1, ((int64_t[]){2}))), TD_OK);
    td_tensor *list[] = {x, x, NULL};
    const td_value args[] = {TD_T(x), TD_TENSORS(3, list)};
    CHECK_INT(write(2, args, words), 3);
    CHECK_INT(words[1], head(TD_KIND_TENSOR, 1));
    CHECK_INT(words[2], head(TD_KIND_TENSORS, 3));
    td_release(x);
}

TEST(what_has_no_room_is_cut_off_and_long_texts_are) {
    int64_t words[TIDE_ARGUMENT_WORDS + 1], many[100];
    char text[200];
    for (int k = 0; k < 100; k++)
        many[k] = k;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    words[TIDE_ARGUMENT_WORDS] = 42;
    CHECK_INT(write(2, (const td_value[]){TD_INTS(100, many), TD_I(5)}, words),
              TIDE_ARGUMENT_WORDS);
    CHECK_INT(words[0], TIDE_ARGUMENT_WORDS - 1);
    CHECK_INT(words[TIDE_ARGUMENT_WORDS - 1], TIDE_ARGUMENT_WORDS - 3);
    CHECK_INT(words[TIDE_ARGUMENT_WORDS], 42);
    CHECK_INT(write(1, &TD_STRING(text), words), 1 + 1 + 1 + 8);
    CHECK_INT(words[2], 64);
    CHECK_INT(write(1, &TD_STRING(""), words), 3);
    CHECK_INT(words[2], 0);
}

TEST(a_call_without_arguments_has_none) {
    int64_t words[TIDE_ARGUMENT_WORDS];
    CHECK_INT(write(0, NULL, words), 1);
    CHECK_INT(words[0], 0);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(each_kind_has_its_words);
    RUN(tensors_are_counted_and_not_written);
    RUN(what_has_no_room_is_cut_off_and_long_texts_are);
    RUN(a_call_without_arguments_has_none);
    return check_finish();
}
