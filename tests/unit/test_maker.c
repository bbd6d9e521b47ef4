/* test_maker.c: a thread for jobs: their order, taking them back, its end, and what a fork makes of
 * it. */
#include "engine/core/jobs/maker.h"
#include "tests/check.h"

#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 8 };

typedef struct job {
    td_maker_job place; /* first: a job's place is the job */
    int number;
} job;

static atomic_int made[JOBS], given, nmade;
static atomic_bool held; /* what is being made waits */

static void make(td_maker_job *place) {
    while (atomic_load(&held))
        usleep(100);
    atomic_store(&made[atomic_fetch_add(&nmade, 1) % JOBS], ((job *)place)->number);
}

static void give(td_maker_job *place) {
    (void)place;
    atomic_fetch_add(&given, 1);
}

static td_maker maker = {.name = "tide test", .make = make, .give = give, TD_MAKER_LOCK};
static job jobs[JOBS];

static bool begin(int k) {
    pthread_mutex_lock(&maker.lock);
    bool there = td_maker_has_thread(&maker);
    if (there)
        td_maker_add(&maker, &jobs[k].place);
    pthread_mutex_unlock(&maker.lock);
    return there;
}

static void finish(void) {
    pthread_mutex_lock(&maker.lock);
    td_maker_finish(&maker);
    pthread_mutex_unlock(&maker.lock);
}

static void cancel(int k) {
    pthread_mutex_lock(&maker.lock);
    td_maker_cancel(&maker, &jobs[k].place);
    pthread_mutex_unlock(&maker.lock);
}

static void begin_anew(void) {
    atomic_store(&nmade, 0);
    atomic_store(&given, 0);
    for (int k = 0; k < JOBS; k++)
        jobs[k].number = k;
}

/* Until the first job is being made, and the others wait. */
static void await_making(void) {
    for (bool is = false; !is; usleep(100)) {
        pthread_mutex_lock(&maker.lock);
        is = maker.making != NULL;
        pthread_mutex_unlock(&maker.lock);
    }
}

TEST(jobs_are_made_in_order) {
    begin_anew();
    for (int k = 0; k < JOBS; k++)
        CHECK(begin(k));
    finish();
    CHECK_INT(atomic_load(&given), JOBS);
    for (int k = 0; k < JOBS; k++) {
        CHECK_INT(atomic_load(&made[k]), k);
        CHECK(!jobs[k].place.queued);
    }
}

TEST(what_waits_can_be_taken_back_from_anywhere) {
    begin_anew();
    atomic_store(&held, true);
    for (int k = 0; k < 5; k++)
        CHECK(begin(k));
    await_making();
    cancel(1);
    cancel(4);
    cancel(1); /* once more, and one that was never begun */
    cancel(6);
    CHECK(begin(5)); /* behind what is the last now */
    atomic_store(&held, false);
    cancel(0); /* is waited for */
    CHECK(!jobs[0].place.queued);
    finish();
    CHECK_INT(atomic_load(&nmade), 4);
    CHECK_INT(atomic_load(&made[1]), 2);
    CHECK_INT(atomic_load(&made[2]), 3);
    CHECK_INT(atomic_load(&made[3]), 5);
}

TEST(what_waits_when_the_thread_ends_waits_for_the_next) {
    begin_anew();
    atomic_store(&held, true);
    for (int k = 0; k < 3; k++)
        CHECK(begin(k));
    await_making();
    atomic_store(&held, false);
    td_maker_stop(&maker, false);
    int before = atomic_load(&nmade);
    CHECK(before >= 1);
    CHECK(begin(3));
    finish();
    CHECK_INT(atomic_load(&nmade), 4);
}

TEST(a_child_makes_what_was_being_made_and_what_waited) {
    begin_anew();
    atomic_store(&held, true);
    for (int k = 0; k < 3; k++)
        CHECK(begin(k));
    await_making();
    pid_t child = fork();
    if (child == 0) {
        atomic_store(&held, false);
        bool right = !maker.works && begin(3);
        finish();
        for (int k = 0; k < 4; k++)
            right = right && atomic_load(&made[k]) == k;
        _exit(right && atomic_load(&nmade) == 4 ? 0 : 1);
    }
    int how = -1;
    atomic_store(&held, false);
    REQUIRE(child > 0 && waitpid(child, &how, 0) == child);
    CHECK_INT(how, 0);
    finish();
    CHECK_INT(atomic_load(&nmade), 3);
}

TEST(one_that_ends_for_good_takes_no_jobs) {
    td_maker_stop(&maker, true);
    CHECK(!begin(0));
    CHECK(!jobs[0].place.queued);
    td_maker_stop(&maker, true);
}

int main(void) {
    RUN(jobs_are_made_in_order);
    RUN(what_waits_can_be_taken_back_from_anywhere);
    RUN(what_waits_when_the_thread_ends_waits_for_the_next);
    RUN(a_child_makes_what_was_being_made_and_what_waited);
    RUN(one_that_ends_for_good_takes_no_jobs);
    return check_finish();
}
