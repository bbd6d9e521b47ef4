/* test_profiler.c: what the recorder keeps, however deep; its sums, its trace, and memory that runs
 * out meanwhile. */
#include "engine/core/interrupt.h"
#include "profiler/chrome_trace.h"
#include "profiler/lane.h"
#include "profiler/table.h"
#include "tests/unit/profiler/profiler_work.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

TEST(operators_hold_kernels_and_share_their_number_with_backward) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
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
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    REQUIRE(stop(recorder, &r));
    CHECK_INT(r.count, 0);
    CHECK(td_observer_get(TD_EVENT_OP) == NULL);
    CHECK_INT(tide_range_begin(TD_EVENT_RANGE, "outside").generation, 0);
    tide_recording_free(&r);
}

TEST(one_recorder_at_a_time) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    CHECK(tide_recorder_start(NULL) == NULL);
    CHECK_CONTAINS(td_error_message(), "already");
    REQUIRE(stop(recorder, &r));
    tide_recording_free(&r);
}

TEST(ranges_nest_as_deep_as_they_like) {
    enum { DEPTH = 3000 };
    static tide_range ranges[DEPTH];
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    for (int k = 0; k < DEPTH; k++)
        ranges[k] = tide_range_begin(TD_EVENT_RANGE, "deep");
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
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    char name[] = "outer";
    tide_range outer = tide_range_begin(TD_EVENT_RANGE, name);
    name[0] = 'X'; /* the name was copied */
    tide_range left = tide_range_begin(TD_EVENT_RANGE, "left");
    tide_range_end(outer);
    tide_range after = tide_range_begin(TD_EVENT_RANGE, "after");
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
    recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    tide_range mine = tide_range_begin(TD_EVENT_RANGE, "mine");
    tide_range_end(after); /* of another recording */
    CHECK_INT(train(), TD_OK);
    tide_range_end(mine);
    REQUIRE(stop(recorder, &r));
    mul = find(&r, TD_EVENT_OP, "mul");
    CHECK(mul && mul->parent == 0);
    tide_recording_free(&r);
}

/* ---- what is recorded ---- */

/* n times exp of a tensor of `size` elements. */
static td_status repeat_exp(int n, int64_t size) {
    td_tensor *x = NULL;
    td_status status = TD_APPLY(&x, ones, TD_INTS(1, &size));
    for (int k = 0; k < n && status == TD_OK; k++) {
        td_tensor *y = NULL;
        status = TD_APPLY(&y, exp, TD_T(x));
        td_release(y);
    }
    td_release(x);
    return status;
}

static int64_t count_of(const tide_recording *r, int kind, const char *name) {
    int64_t n = 0;
    for (int64_t k = 0; k < r->count; k++)
        n += r->events[k].kind == kind && strcmp(r->events[k].name, name) == 0;
    return n;
}

TEST(kernels_of_many_tiny_calls_are_sampled_and_counted_and_others_never_left_out) {
    enum { CALLS = 3000 };
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    CHECK_INT(repeat_exp(CALLS, 64), TD_OK);
    CHECK_INT(repeat_exp(CALLS, 65), TD_OK);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    CHECK_INT(count_of(&r, TD_EVENT_OP, "exp"), 2 * CALLS);
    int64_t kernels = count_of(&r, TD_EVENT_KERNEL, "exp") - CALLS;
    CHECK_INT(kernels + r.untimed, CALLS);
    CHECK(kernels >= 1000 && kernels < 1100);
    tide_recording_free(&r);
    recorder = tide_recorder_start(&(tide_record_options){.all_kernels = true});
    REQUIRE(recorder != NULL);
    CHECK_INT(repeat_exp(CALLS, 1), TD_OK);
    REQUIRE(stop(recorder, &r));
    CHECK_INT(count_of(&r, TD_EVENT_KERNEL, "exp"), CALLS);
    CHECK_INT(r.untimed, 0);
    tide_recording_free(&r);
}

TEST(shapes_that_change_from_call_to_call_are_each_calls_own) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    for (int k = 1; k <= 9; k++)
        CHECK_INT(repeat_exp(2, 1 + k % 3), TD_OK);
    REQUIRE(stop(recorder, &r));
    int seen = 0;
    for (int64_t k = 0; k < r.count; k++) {
        if (r.events[k].kind != TD_EVENT_OP || strcmp(r.events[k].name, "exp") != 0)
            continue;
        const int64_t *at = r.events[k].inputs;
        REQUIRE(r.events[k].ninputs == 1);
        tide_input in = tide_input_next(&at);
        CHECK(in.ndim == 1 && in.dense && !in.known);
        CHECK_INT(in.sizes[0], 1 + (seen / 2 + 1) % 3);
        seen++;
    }
    CHECK_INT(seen, 18);
    tide_recording_free(&r);
    recorder = tide_recorder_start(&(tide_record_options){.shapes = false});
    REQUIRE(recorder != NULL);
    CHECK_INT(train(), TD_OK);
    REQUIRE(stop(recorder, &r));
    CHECK_INT(find(&r, TD_EVENT_OP, "mul")->ninputs, 0);
    tide_recording_free(&r);
}

TEST(identity_tells_tensors_of_one_shape_apart_and_what_was_written) {
    tide_recording r;
    td_tensor *x = NULL, *y = NULL, *z = NULL;
    int64_t size = 3;
    REQUIRE(TD_APPLY(&x, ones, TD_INTS(1, &size)) == TD_OK);
    tide_recorder *recorder = tide_recorder_start(&(tide_record_options){.identity = true});
    REQUIRE(recorder != NULL);
    CHECK_INT(TD_APPLY(&y, exp, TD_T(x)), TD_OK);
    td_tensor_bump_version(x);
    CHECK_INT(TD_APPLY(&z, mul, TD_T(x), TD_T(y)), TD_OK);
    REQUIRE(stop(recorder, &r));
    const tide_event *exp = find(&r, TD_EVENT_OP, "exp"), *mul = find(&r, TD_EVENT_OP, "mul");
    REQUIRE(exp && mul && exp->ninputs == 1 && exp->nresults == 1 && mul->ninputs == 2);
    const int64_t *at = exp->inputs, *made = exp->results, *used = mul->inputs;
    tide_input first = tide_input_next(&at), result = tide_input_next(&made);
    tide_input left = tide_input_next(&used), right = tide_input_next(&used);
    CHECK(first.known && result.known && left.known && right.known);
    CHECK(left.storage == first.storage && left.version == first.version + 1);
    CHECK(right.storage == result.storage && right.storage != left.storage);
    CHECK(right.version == result.version);
    tide_recording_free(&r);
    td_release(x);
    td_release(y);
    td_release(z);
}

TEST(memory_is_taken_and_given_back) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(&(tide_record_options){.memory = true});
    REQUIRE(recorder != NULL);
    CHECK_INT(repeat_exp(1, 100000), TD_OK);
    REQUIRE(stop(recorder, &r));
    int64_t in_use = 0, most = 0;
    for (int64_t k = 0; k < r.count; k++)
        if (r.events[k].kind == TD_EVENT_ALLOC) {
            in_use += r.events[k].bytes;
            most = in_use > most ? in_use : most;
            CHECK(r.events[k].start_ns == r.events[k].end_ns && r.events[k].total >= in_use);
        }
    CHECK_INT(in_use, 0);
    CHECK(most >= 800000);
    tide_recording_free(&r);
}

/* ---- the clock ---- */

static void check_clock(void) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    uint64_t before = tide_clock_ns();
    tide_range range = tide_range_begin(TD_EVENT_RANGE, "sleep");
    uint64_t begun = tide_clock_ns();
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    uint64_t over = tide_clock_ns();
    tide_range_end(range);
    uint64_t after = tide_clock_ns();
    REQUIRE(stop(recorder, &r) && r.count == 1);
    double ns = (double)(r.events[0].end_ns - r.events[0].start_ns);
    CHECK(ns >= 0.999 * (double)(over - begun) && ns <= 1.001 * (double)(after - before));
    tide_recording_free(&r);
}

TEST(times_are_those_of_the_monotonic_clock_whichever_is_read) {
    check_clock();
    tide_ticks_force_clock(true);
    CHECK(!tide_ticks_counted);
    check_clock();
    tide_ticks_force_clock(false);
    check_clock();
}

/* ---- bounded memory, steps ---- */

TEST(when_it_is_full_the_oldest_steps_go_whole) {
    enum { STEPS = 50, CALLS = 100 };
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(
        &(tide_record_options){.max_events = 3000, .all_kernels = true, .shapes = true});
    REQUIRE(recorder != NULL);
    tide_range all = tide_range_begin(TD_EVENT_RANGE, "all of it");
    for (int k = 0; k < STEPS; k++) {
        CHECK_INT(tide_recorder_step(recorder), TD_OK);
        CHECK_INT(repeat_exp(CALLS, 3), TD_OK);
    }
    tide_range_end(all);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    CHECK(r.count <= 3000 && r.count > 3000 - 2 * (3 + 2 * CALLS));
    CHECK_INT(r.steps, STEPS);
    CHECK(r.steps_lost > 30 && r.steps_lost < STEPS);
    CHECK_INT(r.count + r.evicted, 1 + STEPS * (3 + 2 * CALLS));
    CHECK_STR(r.events[0].name, "all of it");
    CHECK_INT(r.events[0].parent, -1);
    int64_t calls[STEPS + 1] = {0};
    for (int64_t k = 0; k < r.count; k++)
        calls[r.events[k].step] +=
            r.events[k].kind == TD_EVENT_OP && strcmp(r.events[k].name, "exp") == 0;
    for (int k = 1; k <= STEPS; k++)
        CHECK_INT(calls[k], k <= r.steps_lost ? 0 : CALLS);
    CHECK_INT(count_of(&r, TIDE_EVENT_STEP, "ProfilerStep#50"), 1);
    CHECK_INT(count_of(&r, TIDE_EVENT_STEP, "ProfilerStep#1"), 0);
    tide_recording_free(&r);
}

TEST(without_steps_the_oldest_events_go) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(&(tide_record_options){.max_events = 100});
    REQUIRE(recorder != NULL);
    char name[16];
    tide_range outer[3];
    for (int k = 0; k < 3; k++)
        outer[k] = tide_range_begin(TD_EVENT_RANGE, "outer");
    for (int k = 0; k < 10000; k++) {
        snprintf(name, sizeof name, "%d", k);
        tide_range_end(tide_range_begin(TD_EVENT_RANGE, name));
        if (k == 5000)
            tide_range_end(outer[2]);
    }
    tide_range_end(outer[0]);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    CHECK_INT(r.count + r.evicted, 10003);
    CHECK_INT(r.count, 100); /* of chunks that hold more */
    CHECK(r.kept_from_ns > 0 && r.kept_from_ns < r.wall_ns);
    for (int64_t k = 0; k < r.count; k++) /* what was open before has its part alone */
        CHECK(r.events[k].start_ns >= r.kept_from_ns);
    CHECK_INT(count_of(&r, TD_EVENT_RANGE, "outer"), 2);
    CHECK_STR(r.events[r.count - 1].name, "9999");
    tide_recording_free(&r);
}

TEST(a_step_ends_within_what_went_on_around_it) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    CHECK_INT(tide_recorder_step(recorder), TD_OK);
    tide_range epoch = tide_range_begin(TD_EVENT_RANGE, "epoch");
    for (int k = 0; k < 3; k++) {
        CHECK_INT(train(), TD_OK);
        CHECK_INT(tide_recorder_step(recorder), TD_OK);
    }
    tide_range_end(epoch);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    CHECK_INT(count_of(&r, TIDE_EVENT_STEP, "ProfilerStep#1"),
              0); /* it would cut through the epoch */
    const tide_event *second = find(&r, TIDE_EVENT_STEP, "ProfilerStep#2");
    REQUIRE(second && second->parent == 0);
    CHECK_STR(r.events[0].name, "epoch");
    CHECK_INT(r.steps, 4);
    tide_recording_free(&r);
}

/* ---- memory that runs out ---- */

TEST(events_without_memory_are_counted_and_the_rest_stays_whole) {
    enum { RANGES = 3000 };
    int without_list = 0, with_loss = 0;
    for (int n = 1; n <= 20; n++) {
        tide_recording r;
        tide_recorder *recorder = tide_recorder_start(NULL);
        REQUIRE(recorder != NULL);
        td_memory_fail_after(n);
        for (int k = 0; k < RANGES; k++) {
            tide_range outer = tide_range_begin(TD_EVENT_RANGE, "outer"),
                       inner = tide_range_begin(TD_EVENT_RANGE, "inner");
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
    CHECK(without_list == 3 && with_loss > 5);
}

/* ---- table and trace ---- */

TEST(rows_count_recursive_time_once) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    tide_range outer = tide_range_begin(TD_EVENT_RANGE, "again"),
               inner = tide_range_begin(TD_EVENT_RANGE, "again");
    char name[16];
    for (int k = 0; k < 200; k++) { /* more names than the first table has room for */
        snprintf(name, sizeof name, "name %d", k);
        tide_range_end(tide_range_begin(TD_EVENT_RANGE, name));
    }
    tide_range_end(inner);
    tide_range_end(outer);
    REQUIRE(stop(recorder, &r));
    int n;
    tide_row *rows = tide_rows(&r, &(tide_table_options){.sort = TIDE_SORT_TOTAL}, &n);
    REQUIRE(rows != NULL);
    CHECK_INT(n, 201);
    CHECK_STR(rows[0].name, "again");
    CHECK_INT(rows[0].calls, 2);
    CHECK_INT(rows[0].total_ns, r.events[0].end_ns - r.events[0].start_ns);
    CHECK_INT(rows[0].self_ns, r.events[0].self_ns + r.events[1].self_ns);
    td_free(rows);
    rows = tide_rows(&r, &(tide_table_options){.sort = TIDE_SORT_SELF}, &n);
    REQUIRE(rows != NULL);
    for (int k = 1; k < n; k++)
        CHECK(rows[k - 1].self_ns >= rows[k].self_ns);
    td_free(rows);
    char *text = tide_table(&r, &(tide_table_options){.sort = TIDE_SORT_CALLS, .limit = 1});
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
    tide_recorder *recorder = tide_recorder_start(NULL);
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
    RUN(kernels_of_many_tiny_calls_are_sampled_and_counted_and_others_never_left_out);
    RUN(shapes_that_change_from_call_to_call_are_each_calls_own);
    RUN(identity_tells_tensors_of_one_shape_apart_and_what_was_written);
    RUN(memory_is_taken_and_given_back);
    RUN(times_are_those_of_the_monotonic_clock_whichever_is_read);
    RUN(when_it_is_full_the_oldest_steps_go_whole);
    RUN(without_steps_the_oldest_events_go);
    RUN(a_step_ends_within_what_went_on_around_it);
    RUN(events_without_memory_are_counted_and_the_rest_stays_whole);
    RUN(rows_count_recursive_time_once);
    RUN(a_trace_replaces_the_file_behind_a_link);
    RUN(a_trace_goes_into_what_is_no_file_and_leaves_it_there);
    RUN(a_trace_that_cannot_be_finished_leaves_what_was_there);
    RUN(a_trace_that_is_interrupted_leaves_what_was_there);
    return check_finish();
}
