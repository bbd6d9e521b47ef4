/* test_safetensors.c: writing and reading files of tensors with each allocation failing, on a full
 * disk, by several writers at once, and interrupted. */
#include "engine/td.h"

#include "tests/check.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static char folder[] = "/tmp/tide-safetensors-XXXXXX", path[sizeof folder + 8];

static td_status save_filled(double value, int64_t n) {
    td_tensor *x = NULL, *flags = NULL;
    td_status status = TD_APPLY(&x, full, TD_INTS(1, &n), TD_F(value));
    if (status == TD_OK)
        status = TD_APPLY(&flags, gt, TD_T(x), TD_F(0));
    if (status == TD_OK) {
        td_named tensors[] = {{{"flags", 5}, flags}, {{"x", 1}, x}};
        td_note note = {{"k\"\n", 3}, {"v", 1}};
        status = td_safetensors_write(path, 2, tensors, 1, &note);
    }
    td_release(flags);
    td_release(x);
    return status;
}

/* The file's first element, after all of it was checked. */
static td_status load(bool map, double *value, int64_t *n) {
    td_safetensors *file = NULL;
    td_tensor *x = NULL, *flags = NULL;
    td_status status = td_safetensors_open(path, map, &file);
    if (status == TD_OK)
        status = td_safetensors_get(file, 0, &x);
    if (status == TD_OK)
        status = td_safetensors_get(file, 1, &flags);
    td_safetensors_close(file); /* tensors stay */
    if (status == TD_OK) {
        *value = td_load_double(TD_F32, x->data);
        *n = x->numel;
    }
    td_release(flags);
    td_release(x);
    return status;
}

static int count_files(void) {
    int n = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.' || strlen(e->d_name) > 2;
    if (d)
        closedir(d);
    return n;
}

static td_status work(bool map) {
    double value = 0;
    int64_t n = 0;
    td_status status = save_filled(2, 1000);
    if (status == TD_OK)
        status = load(map, &value, &n);
    CHECK(status != TD_OK || (value == 2 && n == 1000));
    return status;
}

static void fail_each(bool map) {
    int64_t before = td_memory_allocated(TD_DEVICE_CPU), failures = 0;
    REQUIRE(work(map) == TD_OK);
    for (int64_t n = 1; n < 500; n++) {
        td_memory_fail_after(n);
        td_status status = work(map);
        td_memory_fail_after(0);
        CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), before);
        CHECK_INT(count_files(), 1);
        if (status == TD_OK)
            break;
        CHECK_INT(status, TD_ENOMEM);
        failures++;
    }
    CHECK(failures > 10);
}

TEST(failing_allocations_leave_nothing_behind) {
    fail_each(true);
    fail_each(false);
}

TEST(a_full_disk_leaves_the_old_file) {
    struct rlimit limit = {65536, RLIM_INFINITY}, before;
    double value = 0;
    int64_t n = 0;
    REQUIRE(save_filled(3, 1000) == TD_OK);
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_INT(save_filled(4, 100000), TD_EIO);
    CHECK_CONTAINS(td_error_message(), path);
    limit.rlim_cur = before.rlim_cur;
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_INT(count_files(), 1);
    CHECK_INT(load(true, &value, &n), TD_OK);
    CHECK(value == 3 && n == 1000);
}

TEST(an_interrupt_leaves_the_old_file) {
    double value = 0;
    int64_t n = 0;
    td_draft *draft = NULL;
    REQUIRE(save_filled(5, 1000) == TD_OK);
    REQUIRE(td_draft_open(path, &draft) == TD_OK);
    CHECK_INT(td_draft_write(draft, "abc", 3), TD_OK);
    td_interrupt_request();
    CHECK_INT(td_draft_write(draft, "abc", 3), TD_EINTR);
    td_interrupt_clear();
    td_draft_close(draft);
    CHECK_INT(count_files(), 1);
    td_interrupt_request();
    CHECK_INT(load(true, &value, &n), TD_EINTR);
    td_interrupt_clear();
    CHECK_INT(load(true, &value, &n), TD_OK);
    CHECK(value == 5);
}

static void *save_many(void *value) {
    for (int k = 0; k < 25; k++)
        CHECK_INT(save_filled(*(double *)value, (int64_t)(1000 * *(double *)value)), TD_OK);
    return NULL;
}

TEST(writers_at_once_leave_one_whole_file) {
    pthread_t threads[4];
    double values[4] = {1, 2, 3, 4}, value = 0;
    int64_t n = 0;
    REQUIRE(save_filled(1, 1000) == TD_OK);
    for (int k = 0; k < 4; k++)
        REQUIRE(pthread_create(&threads[k], NULL, save_many, &values[k]) == 0);
    for (int k = 0; k < 50; k++) {
        CHECK_INT(load(k % 2, &value, &n), TD_OK);
        CHECK(n == (int64_t)(1000 * value));
    }
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
    CHECK_INT(count_files(), 1);
}

static td_status read_text(const char *text, td_json_number *number) {
    char copy[64];
    td_json json;
    snprintf(copy, sizeof copy, "%s", text);
    td_json_begin(&json, copy, strlen(copy));
    td_status status = td_json_read_number(&json, number);
    return status ? status : td_json_finish(&json);
}

TEST(json_numbers_keep_all_bits) {
    td_json_number n;
    CHECK_INT(read_text("-9223372036854775808", &n), TD_OK);
    CHECK(n.is_int && n.i == INT64_MIN);
    CHECK_INT(read_text(" 9223372036854775807 ", &n), TD_OK);
    CHECK(n.is_int && n.i == INT64_MAX);
    CHECK_INT(read_text("9223372036854775808", &n), TD_EVALUE);
    CHECK_INT(read_text("-0.0", &n), TD_OK);
    CHECK(!n.is_int && n.d == 0 && signbit(n.d));
    CHECK_INT(read_text("4.9406564584124654e-324", &n), TD_OK);
    CHECK(n.d == 0x1p-1074);
    static const char *const wrong[] = {"",   "-",   "+1",  "01",  "1.", ".5",
                                        "1e", "1e+", "0x1", "nan", "1 2"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        CHECK_INT(read_text(wrong[k], &n), TD_EVALUE);
}

static void put(void *to, const char *bytes, size_t n) {
    strncat(to, bytes, n);
}

TEST(json_strings_are_ascii_where_they_must) {
    static const struct {
        const char *text;
        size_t len;
        const char *json;
    } cases[] = {
        {"", 0, "\"\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\"\\\n\r\t", 5, "\"\\\"\\\\\\n\\r\\t\""},
        {"\b\f\x1f\x7f/", 5, "\"\\u0008\\u000c\\u001f\\u007f/\""},
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8a", 9, "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\x8a\""},
        {"\xff"
         "a\xc3",
         3, "\"\\ufffda\\ufffd\""},
        {"\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xf0\x9f\x8c", 3, "\"\\ufffd\\ufffd\\ufffd\""},
        {"a < b</p><!--<", 14, "\"a < b<\\/p>\\u003c!--<\""},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char got[128] = "", copy[128];
        const char *back;
        size_t len;
        td_json json;
        td_json_quote(put, got, cases[k].text, cases[k].len);
        CHECK_STR(got, cases[k].json);
        memcpy(copy, got, sizeof copy);
        td_json_begin(&json, copy, strlen(copy));
        CHECK_INT(td_json_read_string(&json, &back, &len), TD_OK);
        if (!strstr(cases[k].json, "ufffd")) {
            CHECK_INT((int64_t)len, (int64_t)cases[k].len);
            CHECK(!memcmp(back, cases[k].text, len));
        }
    }
}

int main(void) {
    if (td_init() || !mkdtemp(folder)) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    snprintf(path, sizeof path, "%s/x", folder);
    RUN(failing_allocations_leave_nothing_behind);
    RUN(a_full_disk_leaves_the_old_file);
    RUN(an_interrupt_leaves_the_old_file);
    RUN(writers_at_once_leave_one_whole_file);
    RUN(json_numbers_keep_all_bits);
    RUN(json_strings_are_ascii_where_they_must);
    unlink(path);
    rmdir(folder);
    return check_finish();
}
