/* test_profiler.c: what the recorder keeps, however deep; its sums, its trace, and memory that runs
 * out meanwhile. */
#include "engine/core/interrupt.h"
#include "profiler/chrome_trace.h"
#include "profiler/table.h"
#include "tests/unit/profiler_work.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(operators_hold_kernels_and_share_their_number_with_backward) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL, NULL);
    REQUIRE(recorder != NULL);
    CHECK_INT(train(), TD_OK);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    const tide_event *mul = find(&r, TD_EVENT_OP, "mul");
    const tide_event *kernel = find(&r, TD_EVENT_KERNEL, "mul");
    const tide_event *backward = find(&r, TD_EVENT_BACKWARD, "MulBackward");
    REQUIRE(mul && kernel && backward);
    CHECK(&r.events[kernel->parent] == mul);
    CHECK(mul->sequence > 0);
    CHECK_INT(backward->sequence, mul->sequence);
    CHECK_INT(mul->ninputs, 2);
    const int64_t *at = mul->inputs;
    for (int k = 0; k < 2; k++) {
        tide_input in = tide_input_next(&at);
        CHECK_INT(in.dtype, TD_F32);
        REQUIRE(in.ndim == 2);
        CHECK_INT(in.sizes[0], 3);
        CHECK_INT(in.sizes[1], 4);
    }
    CHECK_INT(r.dropped, 0);
    tide_recording_free(&r);
}

TEST(nothing_is_recorded_before_and_after) {
    tide_recording r;
    CHECK_INT(train(), TD_OK);
    tide_recorder *recorder = tide_recorder_start(NULL, NULL);
    REQUIRE(recorder != NULL);
    REQUIRE(stop(recorder, &r));
    CHECK_INT(r.count, 0);
    CHECK(td_observer_get(TD_EVENT_OP) == NULL);
    CHECK_INT(tide_range_begin("outside").generation, 0);
    tide_recording_free(&r);
}

TEST(one_recorder_at_a_time) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL, NULL);
    REQUIRE(recorder != NULL);
    CHECK(tide_recorder_start(NULL, NULL) == NULL);
    CHECK_CONTAINS(td_error_message(), "already");
    REQUIRE(stop(recorder, &r));
    tide_recording_free(&r);
}

TEST(ranges_nest_as_deep_as_they_like) {
    enum { DEPTH = 3000 };
    static tide_range ranges[DEPTH];
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL, NULL);
    REQUIRE(recorder != NULL);
    for (int k = 0; k < DEPTH; k++)
        ranges[k] = tide_range_begin("deep");
    CHECK_INT(train(), TD_OK);
    for (int k = DEPTH - 1; k >= 0; k--)
        tide_range_end(ranges[k]);
    CHECK_INT(train(), TD_OK);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    CHECK_INT(r.events[DEPTH - 1].parent, DEPTH - 2);
    CHECK_INT(r.events[r.count - 1].thread, 1);
    CHECK(r.events[0].end_ns < r.events[r.count - 1].start_ns);
    tide_recording_free(&r);
}

TEST(a_range_ends_what_was_left_open_inside_and_nothing_else) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL, NULL);
    REQUIRE(recorder != NULL);
    char name[] = "outer";
    tide_range outer = tide_range_begin(name);
    name[0] = 'X'; /* the name was copied */
    tide_range left = tide_range_begin("left");
    tide_range_end(outer);
    tide_range after = tide_range_begin("after");
    tide_range_end(left); /* both have ended: `after` goes on */
    tide_range_end(outer);
    CHECK_INT(train(), TD_OK);
    tide_range_end(after);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    const tide_event *first = find(&r, TD_EVENT_RANGE, "outer");
    const tide_event *second = find(&r, TD_EVENT_RANGE, "after"),
                     *mul = find(&r, TD_EVENT_OP, "mul");
    REQUIRE(first && second && mul);
    CHECK_INT(second->parent, -1);
    CHECK(&r.events[mul->parent] == second);
    tide_recording_free(&r);
    recorder = tide_recorder_start(NULL, NULL);
    REQUIRE(recorder != NULL);
    tide_range mine = tide_range_begin("mine");
    tide_range_end(after); /* of another recording */
    CHECK_INT(train(), TD_OK);
    tide_range_end(mine);
    REQUIRE(stop(recorder, &r));
    mul = find(&r, TD_EVENT_OP, "mul");
    CHECK(mul && mul->parent == 0);
    tide_recording_free(&r);
}

/* ---- memory that runs out ---- */

TEST(events_without_memory_are_counted_and_the_rest_stays_whole) {
    enum { RANGES = 3000 };
    int without_list = 0, with_loss = 0;
    for (int n = 1; n <= 24; n++) {
        tide_recording r;
        tide_recorder *recorder = tide_recorder_start(NULL, NULL);
        REQUIRE(recorder != NULL);
        td_memory_fail_after(n);
        for (int k = 0; k < RANGES; k++) {
            tide_range outer = tide_range_begin("outer"), inner = tide_range_begin("inner");
            tide_range_end(inner);
            tide_range_end(outer);
        }
        td_status status = tide_recorder_stop(recorder, &r);
        td_memory_fail_after(0);
        if (status) {
            CHECK_INT(status, TD_ENOMEM);
            CHECK(r.events == NULL);
            without_list++;
            continue;
        }
        check_nesting(&r);
        CHECK_INT(r.count + r.dropped, 2 * RANGES);
        CHECK(r.dropped <= 2);
        with_loss += r.dropped > 0;
        for (int64_t k = 0; k < r.count; k++)
            if (strcmp(r.events[k].name, "outer") == 0)
                CHECK_INT(r.events[k].parent, -1);
        tide_recording_free(&r);
    }
    CHECK(without_list == 1 && with_loss > 5);
}

/* ---- table and trace ---- */

TEST(rows_count_recursive_time_once) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL, NULL);
    REQUIRE(recorder != NULL);
    tide_range outer = tide_range_begin("again"), inner = tide_range_begin("again");
    char name[16];
    for (int k = 0; k < 200; k++) { /* more names than the first table has room for */
        snprintf(name, sizeof name, "name %d", k);
        tide_range_end(tide_range_begin(name));
    }
    tide_range_end(inner);
    tide_range_end(outer);
    REQUIRE(stop(recorder, &r));
    int n;
    tide_row *rows = tide_rows(&r, TIDE_SORT_TOTAL, &n);
    REQUIRE(rows != NULL);
    CHECK_INT(n, 201);
    CHECK_STR(rows[0].name, "again");
    CHECK_INT(rows[0].calls, 2);
    CHECK_INT(rows[0].total_ns, r.events[0].end_ns - r.events[0].start_ns);
    CHECK_INT(rows[0].self_ns, r.events[0].self_ns + r.events[1].self_ns);
    td_free(rows);
    rows = tide_rows(&r, TIDE_SORT_SELF, &n);
    REQUIRE(rows != NULL);
    for (int k = 1; k < n; k++)
        CHECK(rows[k - 1].self_ns >= rows[k].self_ns);
    td_free(rows);
    char *text = tide_table(&r, TIDE_SORT_CALLS, 1);
    REQUIRE(text != NULL);
    CHECK_CONTAINS(text, "\nagain  range ");
    CHECK_CONTAINS(text, "... 200 more\n202 events, ");
    td_free(text);
    tide_recording_free(&r);
}

/* A folder of its own with trace.json ("old") in it, and the paths. */
typedef struct scratch {
    char folder[32], file[64], other[64];
} scratch;

static bool scratch_make(scratch *s, const char *other) {
    snprintf(s->folder, sizeof s->folder, "/tmp/tide-trace-XXXXXX");
    if (!mkdtemp(s->folder))
        return false;
    snprintf(s->file, sizeof s->file, "%s/trace.json", s->folder);
    snprintf(s->other, sizeof s->other, "%s/%s", s->folder, other);
    FILE *f = fopen(s->file, "w");
    return f && fputs("old", f) >= 0 && fclose(f) == 0;
}

/* Whether nothing else, such as a draft, was left. */
static bool scratch_remove(scratch *s) {
    unlink(s->other);
    return unlink(s->file) == 0 && rmdir(s->folder) == 0;
}

static bool begins_with(const char *path, const char *start) {
    char text[40] = "";
    FILE *f = fopen(path, "r");
    bool read = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    return read && strncmp(text, start, strlen(start)) == 0;
}

static bool record(tide_recording *r) {
    tide_recorder *recorder = tide_recorder_start(NULL, NULL);
    return CHECK(recorder != NULL) && CHECK(train() == TD_OK) && stop(recorder, r);
}

TEST(a_trace_replaces_the_file_behind_a_link) {
    scratch s;
    tide_recording r;
    char target[64] = "";
    REQUIRE(scratch_make(&s, "link.json") && symlink(s.file, s.other) == 0 && record(&r));
    CHECK_INT(tide_write_chrome_trace(&r, s.other), TD_OK);
    CHECK(readlink(s.other, target, sizeof target - 1) > 0);
    CHECK(begins_with(s.file, "{\"schemaVersion\":1,"));
    CHECK(scratch_remove(&s));
    tide_recording_free(&r);
}

TEST(a_trace_goes_into_what_is_no_file_and_leaves_it_there) {
    scratch s;
    tide_recording r;
    struct stat there;
    char text[40] = "";
    REQUIRE(scratch_make(&s, "pipe") && mkfifo(s.other, 0600) == 0 && record(&r));
    int fd = open(s.other, O_RDWR); /* a reader, so that writing doesn't wait for one */
    REQUIRE(fd >= 0);
    CHECK_INT(tide_write_chrome_trace(&r, s.other), TD_OK);
    CHECK(read(fd, text, 19) == 19);
    CHECK_STR(text, "{\"schemaVersion\":1,");
    CHECK(stat(s.other, &there) == 0 && S_ISFIFO(there.st_mode));
    close(fd);
    CHECK_INT(tide_write_chrome_trace(&r, s.folder), TD_EIO);
    CHECK_CONTAINS(td_error_message(), "directory");
    CHECK(scratch_remove(&s));
    tide_recording_free(&r);
}

TEST(a_trace_that_cannot_be_finished_leaves_what_was_there) {
    scratch s;
    tide_recording r;
    struct rlimit before, small;
    REQUIRE(scratch_make(&s, "none") && record(&r) && getrlimit(RLIMIT_FSIZE, &before) == 0);
    small = before;
    small.rlim_cur = 100;
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    td_status status = tide_write_chrome_trace(&r, s.file);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
    CHECK_INT(status, TD_EIO);
    CHECK_CONTAINS(td_error_message(), "trace.json: File too large");
    CHECK(begins_with(s.file, "old"));
    CHECK(scratch_remove(&s));
    tide_recording_free(&r);
}

TEST(a_trace_that_is_interrupted_leaves_what_was_there) {
    scratch s;
    tide_recording r;
    REQUIRE(scratch_make(&s, "none") && record(&r));
    td_interrupt_request();
    CHECK_INT(tide_write_chrome_trace(&r, s.file), TD_EINTR);
    td_interrupt_clear();
    CHECK(begins_with(s.file, "old"));
    CHECK(scratch_remove(&s));
    tide_recording_free(&r);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(operators_hold_kernels_and_share_their_number_with_backward);
    RUN(nothing_is_recorded_before_and_after);
    RUN(one_recorder_at_a_time);
    RUN(ranges_nest_as_deep_as_they_like);
    RUN(a_range_ends_what_was_left_open_inside_and_nothing_else);
    RUN(events_without_memory_are_counted_and_the_rest_stays_whole);
    RUN(rows_count_recursive_time_once);
    RUN(a_trace_replaces_the_file_behind_a_link);
    RUN(a_trace_goes_into_what_is_no_file_and_leaves_it_there);
    RUN(a_trace_that_cannot_be_finished_leaves_what_was_there);
    RUN(a_trace_that_is_interrupted_leaves_what_was_there);
    return check_finish();
}
