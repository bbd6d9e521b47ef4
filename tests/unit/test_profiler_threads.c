/* test_profiler_threads.c: several threads in one recording, and recordings that come and go while
 * threads work. */
#include "tests/unit/profiler_work.h"

#include <pthread.h>

static atomic_bool threads_go_on;
static atomic_int threads_failed;

static void *work(void *name) {
    do {
        tide_range range = tide_range_begin(name);
        atomic_fetch_add(&threads_failed, train() != TD_OK);
        tide_range_end(range);
    } while (atomic_load(&threads_go_on));
    return NULL;
}

TEST(each_thread_has_its_row) {
    static char names[3][8] = {"one", "two", "three"};
    pthread_t threads[3];
    tide_recording r;
    tide_recorder *recorder = tide_recorder_start(false);
    REQUIRE(recorder != NULL);
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
        tide_recorder *recorder = tide_recorder_start(false);
        REQUIRE(recorder != NULL);
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

int main(void) {
    if (td_init())
        return 1;
    RUN(each_thread_has_its_row);
    RUN(recordings_start_and_stop_while_others_work);
    return check_finish();
}
