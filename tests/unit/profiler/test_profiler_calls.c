/* test_profiler_calls.c: which calls of a recording are the script's, what they cost, and what of
 * them is alike; over recordings made by hand, event by event.
 */
#include "engine/core/interrupt.h"
#include "profiler/calls.h"
#include "profiler/loads.h"
#include "tests/unit/profiler/profiler_work.h"

enum { MOST = 32 };

typedef struct made {
    tide_recording recording;
    tide_event events[MOST];
} made;

/* An event behind those that are there, inside the one of this number (-1: none). */
static tide_event *add(made *m, int kind, const char *name, int parent, int64_t start,
                       int64_t end) {
    tide_event *e = &m->events[m->recording.count++];
    *e = (tide_event){.name = name,
                      .kind = (uint8_t)kind,
                      .parent = parent,
                      .start_ns = start,
                      .end_ns = end,
                      .self_ns = end - start,
                      .thread = 1};
    m->recording.events = m->events;
    return e;
}

TEST(calls_within_operators_and_backward_are_not_the_scripts) {
    made m = {0};
    tide_calls c;
    add(&m, TD_EVENT_OP, "matmul", -1, 0, 1000)->sequence = 5;
    add(&m, TD_EVENT_OP, "mm", 0, 100, 900);
    add(&m, TD_EVENT_KERNEL, "mm", 1, 200, 700);
    add(&m, TD_EVENT_BACKWARD, "MmBackward", -1, 1000, 3000)->sequence = 5;
    add(&m, TD_EVENT_OP, "mm", 3, 1100, 2000);
    add(&m, TD_EVENT_OP, "add_", -1, 3000, 3100); /* a gradient is added to */
    REQUIRE(tide_calls_find(&m.recording, &c) == TD_OK);
    REQUIRE(c.ncalls == 1);
    CHECK_STR((const char *)c.sites.list[c.calls[0].site - 1]->words, "matmul");
    CHECK_INT(c.calls[0].kernel_ns, 500);
    CHECK_INT(c.calls[0].backward_ns, 2000);
    CHECK(c.calls[0].recorded);
    CHECK(c.calls[0].used);
    tide_calls_free(&c);
}

TEST(a_short_pause_behind_a_call_is_its_cost_and_of_a_long_one_the_beginning) {
    made m = {0};
    tide_calls c;
    add(&m, TD_EVENT_OP, "a", -1, 0, 1000);
    add(&m, TD_EVENT_OP, "b", -1, 1500, 2000);
    add(&m, TD_EVENT_OP, "c", -1, 2000 + 1000000000, 2000 + 1000000100);
    REQUIRE(tide_calls_find(&m.recording, &c) == TD_OK);
    REQUIRE(c.ncalls == 3);
    CHECK_INT(c.calls[0].cost_ns, 1500);
    CHECK(c.calls[1].cost_ns > 500 && c.calls[1].cost_ns < 1000000000);
    CHECK_INT(c.calls[2].cost_ns, 100);
    tide_calls_free(&c);
}

TEST(a_pause_is_not_counted_from_one_thread_to_the_next) {
    made m = {0};
    tide_calls c;
    add(&m, TD_EVENT_OP, "a", -1, 0, 1000);
    add(&m, TD_EVENT_OP, "b", -1, 1200, 2000)->thread = 2;
    REQUIRE(tide_calls_find(&m.recording, &c) == TD_OK);
    CHECK_INT(c.calls[0].cost_ns, 1000);
    tide_calls_free(&c);
}

TEST(what_is_alike_is_told_once) {
    made m = {0};
    tide_calls c;
    int64_t words[] = {TD_F32 | 2 << 8 | TIDE_INPUT_DENSE, 3, 4,
                       TD_F32 | 2 << 8 | TIDE_INPUT_DENSE, 3, 5};
    const char *lines[] = {"x.lua:1", "x.lua:1", "x.lua:2"};
    for (int k = 0; k < 3; k++) {
        tide_event *e = add(&m, TD_EVENT_OP, "add", -1, k * 100, k * 100 + 50);
        e->line = lines[k];
        e->inputs = words;
        e->ninputs = 2;
    }
    REQUIRE(tide_calls_find(&m.recording, &c) == TD_OK);
    REQUIRE(c.ncalls == 3);
    CHECK_INT(c.sites.count, 2);
    CHECK_INT(c.calls[0].site, c.calls[1].site);
    CHECK(c.calls[2].site != c.calls[0].site);
    const char *site = (const char *)c.sites.list[c.calls[2].site - 1]->words;
    CHECK_STR(site, "add");
    CHECK_STR(site + 4, "x.lua:2");
    CHECK_INT(c.nseen, 6);
    CHECK_INT(c.layouts.count, 2);
    CHECK_INT(c.seen[c.calls[1].first].layout, c.seen[0].layout);
    CHECK(c.seen[0].layout != c.seen[1].layout);
    CHECK(!c.known);
    tide_calls_free(&c);
}

TEST(what_is_loaded_once_in_a_process_is_no_calls_cost) {
    made m = {0};
    tide_calls c;
    tide_loads loads;
    m.recording.wall_ns = 20000;
    add(&m, TD_EVENT_LOAD, "nn", -1, 0, 1000);
    add(&m, TD_EVENT_OP, "linear", -1, 1500, 10000)->sequence = 3; /* 8500, of which 7000 */
    add(&m, TD_EVENT_KERNEL, "linear", 1, 1600, 9800)->self_ns = 1200;
    add(&m, TD_EVENT_LOAD, "oneDNN", 2, 2000, 6000);
    add(&m, TD_EVENT_LOAD, "inner", 3, 3000, 5000); /* is counted once */
    add(&m, TD_EVENT_LOAD, "kernels", 2, 6000, 9000);
    add(&m, TD_EVENT_LOAD, "between", -1, 10000, 10400);
    add(&m, TD_EVENT_OP, "exp", -1, 10500, 11000);
    tide_event *beside = add(&m, TD_EVENT_OP, "far", -1, 2000, 6000);
    beside->thread = 2; /* another thread's clock goes on */
    REQUIRE(tide_calls_find(&m.recording, &c) == TD_OK);
    REQUIRE(c.ncalls == 3 && c.nspans == 0);
    CHECK_INT(c.calls[0].start_ns, 500);
    CHECK_INT(c.calls[0].end_ns, 2000);
    CHECK_INT(c.calls[0].cost_ns,
              1600); /* and the pause behind it, without what was loaded there */
    CHECK_INT(c.calls[0].kernel_ns, 1200);
    CHECK_INT(c.calls[1].start_ns, 2100);
    CHECK_INT(c.calls[1].cost_ns, 500);
    CHECK_INT(c.calls[2].start_ns, 2000);
    CHECK_INT(c.calls[2].cost_ns, 4000);
    CHECK_INT(c.wall_ns, 20000 - 8400);
    tide_calls_free(&c);
    REQUIRE(tide_loads_find(&m.recording, &loads) == TD_OK);
    CHECK_INT(loads.n, 4);
    CHECK_INT(loads.total_ns, 8400);
    CHECK_INT(tide_loads_moment(&loads, 1, 0), 0);
    CHECK_INT(tide_loads_moment(&loads, 1, 500), 0);
    CHECK_INT(tide_loads_moment(&loads, 1, 1000), 0);
    CHECK_INT(tide_loads_moment(&loads, 1, 1001), 1);
    CHECK_INT(tide_loads_moment(&loads, 1, 9000), 1000);
    CHECK_INT(tide_loads_moment(&loads, 2, 9000), 9000);
    CHECK_INT(tide_loads_moment(&loads, 0, 77), 77);
    CHECK_INT(tide_loads_duration(&loads, &m.events[3]), 4000);
    tide_loads_clear(&loads);
}

TEST(ranges_and_steps_are_spans_and_what_devices_did_is_none) {
    made m = {0};
    tide_calls c;
    add(&m, TIDE_EVENT_STEP, "step 1", -1, 0, 1000);
    add(&m, TD_EVENT_RANGE, "mine", 0, 100, 900);
    add(&m, TD_EVENT_OP, "exp", 1, 200, 300);
    add(&m, TD_EVENT_ALLOC, "[memory]", 1, 400, 400)->bytes = 64;
    add(&m, TD_EVENT_OP, "log", -1, 1100, 1200);
    tide_event *kernel = add(&m, TD_EVENT_ACTIVITY, "kernel", -1, 1150, 1300);
    kernel->thread = 2;
    kernel->launcher = 5;
    kernel = add(&m, TIDE_EVENT_TRANSFER, "copy", -1, 1400, 1500);
    kernel->thread = 2;
    REQUIRE(tide_calls_find(&m.recording, &c) == TD_OK);
    REQUIRE(c.ncalls == 2 && c.nspans == 2);
    CHECK_INT(c.spans[1].outer, 1);
    CHECK_INT(c.calls[0].outer, 2);
    CHECK_INT(c.calls[1].outer, 0);
    CHECK_INT(c.spans[0].before, 0);
    CHECK_INT(c.calls[1].cost_ns, 100);
    tide_calls_free(&c);
}

TEST(a_call_is_used_where_backward_goes_through_any_operator_inside) {
    made m = {0};
    tide_calls c;
    add(&m, TD_EVENT_OP, "outer", -1, 0, 1000);
    add(&m, TD_EVENT_OP, "inner", 0, 100, 500)->sequence = 7;
    add(&m, TD_EVENT_OP, "unused", -1, 1000, 2000)->sequence = 8;
    add(&m, TD_EVENT_BACKWARD, "InnerBackward", -1, 2000, 2500)->sequence = 7;
    add(&m, TD_EVENT_BACKWARD, "OfNobody", -1, 2500, 2600)->sequence = 99;
    REQUIRE(tide_calls_find(&m.recording, &c) == TD_OK);
    REQUIRE(c.ncalls == 2);
    CHECK(c.calls[0].recorded && c.calls[0].used);
    CHECK(c.calls[1].recorded && !c.calls[1].used);
    tide_calls_free(&c);
}

TEST(identities_and_arguments_come_from_a_recorder) {
    tide_recording r;
    tide_calls c;
    td_tensor *x = NULL, *y = NULL;
    tide_recorder *recorder = tide_recorder_start(&(tide_record_options){.identity = true});
    REQUIRE(recorder != NULL);
    CHECK_INT(TD_APPLY(&x, ones, TD_INTS(1, ((int64_t[]){100}))), TD_OK);
    CHECK_INT(TD_APPLY(&y, add, TD_T(x), TD_T(x)), TD_OK);
    td_release(y);
    CHECK_INT(TD_APPLY(&y, add, TD_T(x), TD_T(x)), TD_OK);
    REQUIRE(stop(recorder, &r));
    REQUIRE(tide_calls_find(&r, &c) == TD_OK);
    REQUIRE(c.ncalls == 3);
    CHECK(c.known);
    const tide_seen *first = &c.seen[c.calls[1].first];
    CHECK(first->storage != 0);
    CHECK(first[0].storage == first[1].storage);
    CHECK(first[2].storage != first[0].storage);
    CHECK_INT(c.calls[1].arguments, c.calls[2].arguments);
    CHECK(c.calls[0].arguments != c.calls[1].arguments);
    tide_calls_free(&c);
    tide_recording_free(&r);
    td_release(x);
    td_release(y);
}

TEST(memory_that_runs_out_leaves_nothing) {
    made m = {0};
    td_status status = TD_ENOMEM;
    for (int k = 0; k < MOST; k++)
        add(&m, k % 2 ? TD_EVENT_RANGE : TD_EVENT_OP, k % 2 ? "range" : "add", -1, k * 10,
            k * 10 + 5);
    for (int n = 1; n < 100 && status == TD_ENOMEM; n++) {
        tide_calls c;
        td_memory_fail_after(n);
        status = tide_calls_find(&m.recording, &c);
        td_memory_fail_after(0);
        CHECK(status == TD_OK || (status == TD_ENOMEM && !c.calls && !c.words && !c.ncalls));
        if (status == TD_OK)
            CHECK_INT(c.ncalls, MOST / 2);
        tide_calls_free(&c);
    }
    CHECK_INT(status, TD_OK);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(calls_within_operators_and_backward_are_not_the_scripts);
    RUN(a_short_pause_behind_a_call_is_its_cost_and_of_a_long_one_the_beginning);
    RUN(a_pause_is_not_counted_from_one_thread_to_the_next);
    RUN(what_is_alike_is_told_once);
    RUN(what_is_loaded_once_in_a_process_is_no_calls_cost);
    RUN(ranges_and_steps_are_spans_and_what_devices_did_is_none);
    RUN(a_call_is_used_where_backward_goes_through_any_operator_inside);
    RUN(identities_and_arguments_come_from_a_recorder);
    RUN(memory_that_runs_out_leaves_nothing);
    return check_finish();
}
