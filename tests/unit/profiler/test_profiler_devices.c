/* test_profiler_devices.c: what a source of activities tells becomes rows of the recording,
 * whatever its clock, its order and its lies; a source of the test's own says what devices did.
 */
#include "profiler/chrome_trace.h"
#include "profiler/table.h"
#include "tests/unit/profiler/profiler_work.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 64 };

/* The source's clock runs from another zero, and half as fast again as ours. */
static struct {
    td_activity list[MOST];
    int n, begun, ended, waited;
    int64_t most, lost;
    const char *note;
} told;

static uint64_t host_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t source_now(void) {
    return host_ns() / 2 * 3 + 1577836800000000000u;
}

static const char *source_begin(int64_t most) {
    told.begun++;
    told.most = most;
    return told.note;
}

static void source_wait(void) {
    told.waited++;
}

static int64_t source_collect(td_activity_fn take, void *ctx) {
    for (int k = told.n; k-- > 0;)
        take(ctx, &told.list[k]);
    told.n = 0;
    return told.lost;
}

static void source_end(void) {
    told.ended++;
}

static const td_activity_source source = {.now = source_now,
                                          .begin = source_begin,
                                          .wait = source_wait,
                                          .collect = source_collect,
                                          .end = source_end};

static uint32_t me(void) {
    return (uint32_t)syscall(SYS_gettid);
}

/* Between two moments of the source's clock on a stream. */
static td_activity *tell(const char *name, int stream, uint64_t start, uint64_t end) {
    td_activity *a = &told.list[told.n++];
    *a = (td_activity){.name = name,
                       .thread = me(),
                       .track = {{TD_CUDA, 0}, (uint16_t)stream},
                       .start_ns = start,
                       .end_ns = end};
    return a;
}

static void pass(int64_t ns) {
    for (uint64_t from = host_ns(); host_ns() - from < (uint64_t)ns;)
        ;
}

static tide_recorder *begin(void) {
    memset(&told, 0, sizeof told);
    return tide_recorder_start(NULL);
}

static const char *row_of(const tide_recording *r, const tide_event *e) {
    return r->tracks ? r->tracks[e->thread - 1].name : "(no names)";
}

TEST(an_activity_is_where_and_when_it_was_and_knows_who_asked) {
    tide_recording r;
    tide_recorder *recorder = begin();
    REQUIRE(recorder != NULL);
    tide_range outer = tide_range_begin(TD_EVENT_RANGE, "outer");
    tide_range range = tide_range_begin(TD_EVENT_RANGE, "asks");
    pass(10000);
    uint64_t asked = source_now();
    pass(20000);
    tide_range_end(range);
    tide_range_end(outer);
    uint64_t start = source_now();
    pass(300000);
    td_activity *a = tell("kernel", 3, start, source_now());
    a->launch_ns = asked;
    a = tell("copy", 3, start - 30000, start - 1500);
    a->kind = TD_ACTIVITY_COPY;
    a->bytes = 4096;
    REQUIRE(stop(recorder, &r));
    CHECK_INT(told.begun, 1);
    CHECK_INT(told.waited, 1);
    CHECK_INT(told.ended, 1);
    check_nesting(&r);
    const tide_event *kernel = find(&r, TD_EVENT_ACTIVITY, "kernel");
    const tide_event *copy = find(&r, TIDE_EVENT_TRANSFER, "copy");
    const tide_event *asks = find(&r, TD_EVENT_RANGE, "asks");
    REQUIRE(kernel && copy && asks);
    CHECK_STR(row_of(&r, kernel), "cuda:0 stream 3");
    CHECK_STR(row_of(&r, asks), "thread 1");
    CHECK_INT(kernel->launcher, asks - r.events + 1);
    CHECK_INT(copy->launcher, 0);
    CHECK_INT(copy->bytes, 4096);
    /* 300 µs of the host's clock, though the source counted 450 */
    CHECK(kernel->end_ns - kernel->start_ns >= 299000);
    CHECK(kernel->end_ns <= r.wall_ns);
    CHECK(copy < kernel && copy->end_ns < kernel->start_ns);
    CHECK(kernel->start_ns >= asks->end_ns - 1000);
    tide_recording_free(&r);
}

TEST(what_overlaps_on_a_stream_lies_on_further_rows) {
    tide_recording r;
    tide_recorder *recorder = begin();
    REQUIRE(recorder != NULL);
    pass(400000);
    uint64_t end = source_now(), unit = 60000;
    tell("a", 1, end - 8 * unit, end - 4 * unit);
    tell("b", 1, end - 6 * unit, end - 2 * unit);
    tell("c", 1, end - 4 * unit, end - 3 * unit);
    tell("d", 0, end - 8 * unit, end);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    CHECK_INT(r.count, 4);
    CHECK_STR(row_of(&r, find(&r, TD_EVENT_ACTIVITY, "a")), "cuda:0 stream 1");
    CHECK_STR(row_of(&r, find(&r, TD_EVENT_ACTIVITY, "b")), "cuda:0 stream 1 (2)");
    CHECK_STR(row_of(&r, find(&r, TD_EVENT_ACTIVITY, "c")), "cuda:0 stream 1");
    CHECK_STR(row_of(&r, find(&r, TD_EVENT_ACTIVITY, "d")), "cuda:0 stream 0");
    int64_t wall = r.events[0].end_ns - r.events[0].start_ns, busy = tide_busy_ns(&r);
    CHECK(busy >= wall - 10 && busy <= wall + 10); /* d lasts as long as all others together */
    tide_recording_free(&r);
}

TEST(what_was_done_before_the_recording_is_left_out_and_ends_are_clipped) {
    uint64_t before = source_now();
    tide_recording r;
    pass(50000);
    tide_recorder *recorder = begin();
    REQUIRE(recorder != NULL);
    pass(50000);
    tell("earlier", 0, before, before + 1000);
    tell("across", 0, before, source_now());
    tell("later", 0, source_now(), source_now() + 3000000000u);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    CHECK(find(&r, TD_EVENT_ACTIVITY, "earlier") == NULL);
    const tide_event *across = find(&r, TD_EVENT_ACTIVITY, "across");
    const tide_event *later = find(&r, TD_EVENT_ACTIVITY, "later");
    REQUIRE(across && later);
    CHECK_INT(across->start_ns, 0);
    CHECK(later->end_ns <= r.wall_ns);
    tide_recording_free(&r);
}

/* Another thread with a recording of its own. */
static void *record_elsewhere(void *unused) {
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    (void)unused;
    if (CHECK(recorder != NULL) && CHECK_INT(train(), TD_OK) && stop(recorder, &r)) {
        CHECK(find(&r, TD_EVENT_ACTIVITY, "mine") == NULL);
        CHECK(find(&r, TD_EVENT_ACTIVITY, "nobody's") != NULL);
        tide_recording_free(&r);
    }
    return NULL;
}

TEST(recordings_at_once_take_what_their_own_threads_asked_for) {
    tide_recording r;
    pthread_t thread;
    tide_recorder *recorder = begin();
    REQUIRE(recorder != NULL);
    CHECK_INT(train(), TD_OK);
    const uint64_t from = source_now(),
                   late = from + 3600000000000u; /* an hour: ends are clipped */
    pass(20000);
    tell("mine", 0, from, late); /* so that it lies in the other's time too */
    tell("nobody's", 1, from, late)->thread = 0;
    tell("theirs", 2, from, late)->thread = 1;
    REQUIRE(pthread_create(&thread, NULL, record_elsewhere, NULL) == 0);
    pthread_join(thread, NULL);
    CHECK_INT(told.begun, 1);
    CHECK_INT(told.ended, 0);
    REQUIRE(stop(recorder, &r));
    CHECK_INT(told.ended, 1);
    CHECK(find(&r, TD_EVENT_ACTIVITY, "mine") != NULL);
    CHECK(find(&r, TD_EVENT_ACTIVITY, "nobody's") != NULL);
    CHECK(find(&r, TD_EVENT_ACTIVITY, "theirs") == NULL);
    tide_recording_free(&r);
}

TEST(a_source_says_what_is_wrong_and_what_it_lost) {
    tide_recording r;
    tide_recorder *recorder;
    memset(&told, 0, sizeof told);
    told.note = "times are guesses";
    told.lost = 7;
    recorder = tide_recorder_start(&(tide_record_options){.max_events = 5000});
    REQUIRE(recorder != NULL);
    CHECK_INT(told.most, 5000);
    pass(20000);
    tell("kernel", 0, source_now() - 1000, source_now());
    REQUIRE(stop(recorder, &r));
    CHECK_INT(r.evicted, 7);
    char *table = tide_table(&r, &(tide_table_options){.limit = 0});
    CHECK_CONTAINS(table, "times are guesses");
    CHECK_CONTAINS(table, "devices busy for");
    td_free(table);
    tide_recording_free(&r);
}

TEST(without_work_of_devices_a_recording_has_no_rows_of_theirs) {
    tide_recording r;
    tide_recorder *recorder = begin();
    REQUIRE(recorder != NULL);
    CHECK_INT(train(), TD_OK);
    REQUIRE(stop(recorder, &r));
    CHECK(r.tracks == NULL);
    CHECK(r.note == NULL);
    CHECK_INT(tide_busy_ns(&r), 0);
    tide_recording_free(&r);
}

TEST(memory_that_runs_out_leaves_a_whole_recording_or_none) {
    int whole = 0;
    for (int n = 1; n < 200 && !whole; n++) {
        tide_recording r;
        tide_recorder *recorder = begin();
        REQUIRE(recorder != NULL);
        pass(10000);
        tell("kernel", 0, source_now() - 1000, source_now());
        tide_raw *raw = tide_recorder_halt(recorder);
        REQUIRE(raw != NULL);
        td_memory_fail_after(n);
        td_status status = tide_raw_gather(raw, &r);
        td_memory_fail_after(0);
        whole = status == TD_OK;
        CHECK(status == TD_OK || status == TD_ENOMEM);
        CHECK(status == TD_OK || (!r.events && !r.tracks && !r.words));
        if (whole)
            CHECK(find(&r, TD_EVENT_ACTIVITY, "kernel") != NULL);
        tide_recording_free(&r);
    }
    CHECK(whole);
}

int main(void) {
    if (td_init())
        return 1;
    td_activity_register(TD_CUDA, &source);
    RUN(an_activity_is_where_and_when_it_was_and_knows_who_asked);
    RUN(what_overlaps_on_a_stream_lies_on_further_rows);
    RUN(what_was_done_before_the_recording_is_left_out_and_ends_are_clipped);
    RUN(recordings_at_once_take_what_their_own_threads_asked_for);
    RUN(a_source_says_what_is_wrong_and_what_it_lost);
    RUN(without_work_of_devices_a_recording_has_no_rows_of_theirs);
    RUN(memory_that_runs_out_leaves_a_whole_recording_or_none);
    return check_finish();
}
