/* test_profiler_threads.c: several threads in one recording, and recordings that come and go while
 * threads work. */
#include "tests/unit/profiler/profiler_work.h"

#include <pthread.h>

static atomic_bool threads_go_on;
static atomic_int threads_failed;
static td_observer *_Atomic shared; /* of the recording that all threads take part in */

static void *work(void *name) {
    do {
        td_observer_set(atomic_load(&shared));
        tide_range range = tide_range_begin(TD_EVENT_RANGE, name);
        atomic_fetch_add(&threads_failed, train() != TD_OK);
        tide_range_end(range);
    } while (atomic_load(&threads_go_on));
    return NULL;
}

TEST(each_thread_has_its_row) {
    static char names[3][8] = {"one", "two", "three"};
    pthread_t threads[3];
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(NULL);
    REQUIRE(recorder != NULL);
    atomic_store(&shared, tide_recorder_observer(recorder));
    for (int k = 0; k < 3; k++)
        REQUIRE(pthread_create(&threads[k], NULL, work, names[k]) == 0);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    REQUIRE(stop(recorder, &r));
    check_nesting(&r);
    bool seen[4] = {0};
    for (int k = 0; k < 3; k++) {
        const tide_event *range = find(&r, TD_EVENT_RANGE, names[k]);
        REQUIRE(range && range->thread >= 1 && range->thread <= 3);
        CHECK(!seen[range->thread]);
        seen[range->thread] = true;
        CHECK(range + 1 < r.events + r.count && range[1].thread == range->thread);
    }
    CHECK_INT(atomic_load(&threads_failed), 0);
    tide_recording_free(&r);
}

TEST(recordings_start_and_stop_while_others_work) {
    static char name[] = "others";
    pthread_t threads[3];
    atomic_store(&threads_go_on, true);
    for (int k = 0; k < 3; k++)
        REQUIRE(pthread_create(&threads[k], NULL, work, name) == 0);
    for (int round = 0; round < 50; round++) {
        tide_recording r;
        tide_recorder *recorder = tide_recorder_start(NULL);
        REQUIRE(recorder != NULL);
        atomic_store(&shared, tide_recorder_observer(recorder));
        CHECK_INT(train(), TD_OK);
        REQUIRE(stop(recorder, &r));
        check_nesting(&r);
        CHECK(find(&r, TD_EVENT_OP, "mul") != NULL);
        tide_recording_free(&r);
    }
    atomic_store(&threads_go_on, false);
    for (int k = 0; k < 3; k++)
        pthread_join(threads[k], NULL);
    CHECK_INT(atomic_load(&threads_failed), 0);
}

/* 20 recordings of one thread, which sees its own work and nothing else's. */
static void *record_alone(void *name) {
    for (int round = 0; round < 20; round++) {
        tide_recording r;
        tide_recorder *recorder = tide_recorder_start(NULL);
        if (!CHECK(recorder != NULL))
            return NULL;
        CHECK(tide_recorder_start(NULL) == NULL);
        for (int k = 0; k <= round; k++) {
            tide_range range = tide_range_begin(TD_EVENT_RANGE, name);
            CHECK_INT(train(), TD_OK);
            tide_range_end(range);
        }
        if (!stop(recorder, &r))
            return NULL;
        check_nesting(&r);
        int64_t ranges = 0;
        for (int64_t k = 0; k < r.count; k++) {
            CHECK_INT(r.events[k].thread, 1);
            if (r.events[k].kind == TD_EVENT_RANGE)
                ranges += strcmp(r.events[k].name, name) == 0 ? 1 : 1000;
        }
        CHECK_INT(ranges, round + 1);
        tide_recording_free(&r);
    }
    return NULL;
}

TEST(threads_record_at_the_same_time_each_for_itself) {
    static char names[4][8] = {"one", "two", "three", "four"};
    pthread_t threads[4];
    for (int k = 0; k < 4; k++)
        REQUIRE(pthread_create(&threads[k], NULL, record_alone, names[k]) == 0);
    for (int k = 0; k < 4; k++)
        pthread_join(threads[k], NULL);
}

TEST(one_thread_can_take_part_in_two_recordings_in_turn) {
    tide_recording r[2];
    tide_recorder *recorders[2];
    for (int k = 0; k < 2; k++) {
        recorders[k] = tide_recorder_start(NULL);
        REQUIRE(recorders[k] != NULL);
        td_observer_set(NULL);
    }
    for (int round = 0; round < 10; round++) {
        td_observer_set(tide_recorder_observer(recorders[round % 2]));
        CHECK_INT(train(), TD_OK);
        td_observer_set(NULL);
        CHECK_INT(train(), TD_OK);
    }
    for (int k = 0; k < 2; k++) {
        REQUIRE(stop(recorders[k], &r[k]));
        check_nesting(&r[k]);
    }
    CHECK_INT(r[0].count, r[1].count);
    CHECK(find(&r[0], TD_EVENT_OP, "mul") != NULL);
    for (int k = 0; k < 2; k++)
        tide_recording_free(&r[k]);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(threads_record_at_the_same_time_each_for_itself);
    RUN(one_thread_can_take_part_in_two_recordings_in_turn);
    RUN(each_thread_has_its_row);
    RUN(recordings_start_and_stop_while_others_work);
    return check_finish();
}
