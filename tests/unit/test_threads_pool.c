/* test_threads_pool.c: parallel loops of several threads at once, their workers, and how those
 * wait: the test runs with OMP_WAIT_POLICY=active, which asks for waiting awake. */
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N = 1000003, CALLERS = 6, WORKERS = 4 };

/* ---- several callers ---- */

static void add_one(void *ctx, int64_t begin, int64_t end, int worker) {
    unsigned char *seen = ctx;
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        seen[k]++;
}

static void *call_many(void *failures) {
    unsigned char *seen = calloc(N, 1);
    if (!seen)
        return NULL;
    for (int round = 1; round <= 60; round++) {
        int64_t n = N - round * 1000;
        if (td_parallel_for(n, 64, add_one, seen) != TD_OK)
            atomic_fetch_add((atomic_int *)failures, 1);
        for (int64_t k = 0; k < N; k++)
            if (seen[k] != (k < n))
                atomic_fetch_add((atomic_int *)failures, 1);
        memset(seen, 0, N);
    }
    free(seen);
    return NULL;
}

/* More callers than the pool has places for. */
TEST(each_item_of_each_caller_is_run_once) {
    enum { MANY = 20 };
    pthread_t threads[MANY];
    atomic_int failures = 0;
    REQUIRE(td_set_num_threads(WORKERS) == TD_OK);
    for (int k = 0; k < MANY; k++)
        REQUIRE(pthread_create(&threads[k], NULL, call_many, &failures) == 0);
    for (int k = 0; k < MANY; k++)
        pthread_join(threads[k], NULL);
    CHECK_INT(atomic_load(&failures), 0);
}

/* ---- helpers that are no help ---- */

typedef struct visits {
    atomic_int came;
    bool slow;
} visits;

/* The caller takes long enough over an item for others to come; those who come may take far longer.
 */
static void be_visited(void *ctx, int64_t begin, int64_t end, int worker) {
    visits *v = ctx;
    if (worker > 0)
        atomic_fetch_add(&v->came, 1);
    if (worker > 0 && v->slow)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    for (int64_t k = begin; k < end; k++)
        for (volatile int spin = 0; spin < 20000; spin = spin + 1) {
        }
}

TEST(helpers_that_hold_calls_up_are_not_called_for_a_while) {
    enum { CALLS = 300 };
    visits v = {.slow = true};
    REQUIRE(td_set_num_threads(2) == TD_OK);
    for (int k = 0; k < CALLS; k++)
        CHECK(td_parallel_for(2, TD_GRAIN, be_visited, &v) == TD_OK);
    CHECK(atomic_load(&v.came) < CALLS / 4);
    /* and then they are again */
    v = (visits){.slow = false};
    for (int k = 0; k < 100000 && !atomic_load(&v.came); k++)
        CHECK(td_parallel_for(2, TD_GRAIN, be_visited, &v) == TD_OK);
    CHECK(atomic_load(&v.came) > 0);
}

/* ---- workers ---- */

typedef struct seats {
    atomic_int taken[WORKERS];
    atomic_int failures;
} seats;

static void sit_down(void *ctx, int64_t begin, int64_t end, int worker) {
    seats *s = ctx;
    (void)begin;
    (void)end;
    if (worker < 0 || worker >= WORKERS) {
        atomic_fetch_add(&s->failures, 1);
        return;
    }
    atomic_fetch_add(&s->failures, atomic_exchange(&s->taken[worker], 1));
    for (volatile int k = 0; k < 2000; k = k + 1) {
    }
    atomic_store(&s->taken[worker], 0);
}

static atomic_bool change;

static void *change_threads(void *ctx) {
    (void)ctx;
    for (int k = 0; atomic_load(&change); k++)
        (void)!td_set_num_threads(1 + k % 16);
    return NULL;
}

/* What a loop has memory for by worker, it may rely on: whatever others do with the number. */
TEST(workers_differ_and_stay_below_the_number_asked_for) {
    seats s = {.failures = 0};
    pthread_t changer;
    atomic_store(&change, true);
    REQUIRE(pthread_create(&changer, NULL, change_threads, NULL) == 0);
    for (int round = 0; round < 300; round++)
        CHECK_INT(td_parallel_for_among(WORKERS, 200, TD_GRAIN, sit_down, &s), TD_OK);
    atomic_store(&change, false);
    pthread_join(changer, NULL);
    CHECK_INT(atomic_load(&s.failures), 0);
}

static void count_inside(void *ctx, int64_t begin, int64_t end, int worker) {
    if (worker == 0)
        atomic_fetch_add((atomic_llong *)ctx, end - begin);
}

static void loop_inside(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t k = begin; k < end; k++)
        (void)!td_parallel_for(100000, TD_GRAIN / 1000, count_inside, ctx);
}

TEST(a_loop_within_a_loop_runs_on_its_thread) {
    atomic_llong done = 0;
    REQUIRE(td_set_num_threads(WORKERS) == TD_OK);
    CHECK_INT(td_parallel_for(40, TD_GRAIN, loop_inside, &done), TD_OK);
    CHECK_INT(done, 40 * 100000);
}

/* ---- one that does not come ---- */

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool held, open; /* a worker other than the caller waits; it may go on */
} gate;

static void wait_at(void *ctx, int64_t begin, int64_t end, int worker) {
    gate *g = ctx;
    (void)begin;
    (void)end;
    pthread_mutex_lock(&g->lock);
    if (worker == 0) {
        while (!g->held)
            pthread_cond_wait(&g->changed, &g->lock);
    } else {
        g->held = true;
        pthread_cond_broadcast(&g->changed);
        while (!g->open)
            pthread_cond_wait(&g->changed, &g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}

static void *hold_worker(void *ctx) {
    (void)!td_parallel_for_among(2, 64, TD_GRAIN, wait_at, ctx);
    return NULL;
}

/* The pool's one worker is held up in another's loop: this one is done without it. */
TEST(a_worker_that_does_not_come_holds_nobody_up) {
    gate g = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, false};
    pthread_t holder;
    atomic_llong done = 0;
    REQUIRE(pthread_create(&holder, NULL, hold_worker, &g) == 0);
    pthread_mutex_lock(&g.lock);
    while (!g.held)
        pthread_cond_wait(&g.changed, &g.lock);
    pthread_mutex_unlock(&g.lock);
    CHECK_INT(td_parallel_for_among(2, 100000, TD_GRAIN / 1000, count_inside, &done), TD_OK);
    CHECK_INT(done, 100000);
    pthread_mutex_lock(&g.lock);
    g.open = true;
    pthread_cond_broadcast(&g.changed);
    pthread_mutex_unlock(&g.lock);
    pthread_join(holder, NULL);
}

/* ---- waiting ---- */

static double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Processor time, of which a machine under load gives less and never more. */
static double cpu_of_a_pause(void) {
    double before = cpu_seconds();
    nanosleep(&(struct timespec){0, 400000000}, NULL);
    return cpu_seconds() - before;
}

TEST(workers_without_work_sleep) {
    atomic_llong done = 0;
    REQUIRE(td_set_num_threads(WORKERS) == TD_OK);
    for (int round = 0; round < 5; round++)
        CHECK_INT(td_parallel_for(200, TD_GRAIN, count_inside, &done), TD_OK);
    CHECK(cpu_of_a_pause() < 0.1);
}

/* The libraries' threads too. */
TEST(threads_of_libraries_sleep) {
    int64_t sizes[2] = {400, 400};
    td_tensor *a = NULL, *c = NULL;
    REQUIRE(td_set_num_threads(WORKERS) == TD_OK);
    REQUIRE(TD_APPLY(&a, ones, TD_INTS(2, sizes)) == TD_OK);
    CHECK_INT(TD_APPLY(&c, matmul, TD_T(a), TD_T(a)), TD_OK);
    CHECK(cpu_of_a_pause() < 0.1);
    td_release(c);
    td_release(a);
}

/* ---- fork ---- */

/* Only the thread that forks is there in the child; a pool that counts on the others hangs. */
TEST(a_child_runs_its_loops) {
    atomic_llong done = 0;
    REQUIRE(td_set_num_threads(WORKERS) == TD_OK);
    CHECK_INT(td_parallel_for(100000, 64, count_inside, &done), TD_OK);
    for (int round = 0; round < 5; round++) {
        pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            unsigned char *seen = calloc(N, 1);
            bool ok = seen && td_parallel_for(N, 64, add_one, seen) == TD_OK;
            for (int64_t k = 0; ok && k < N; k++)
                ok = seen[k] == 1;
            _exit(ok ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        CHECK_INT(status, 0);
    }
}

/* ---- interrupts ---- */

/* Leaves early, as bodies with long items do; nobody is asked again while the request stands. */
static void leave_early(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)ctx, (void)begin, (void)worker;
    if (end == N)
        td_interrupt_request();
    if (td_interrupt_requested())
        td_interrupt_clear();
}

TEST(a_loop_whose_part_left_early_is_interrupted) {
    for (int threads = 1; threads <= WORKERS; threads++)
        CHECK_INT(td_parallel_for_among(threads, N, 64, leave_early, NULL), TD_EINTR);
    CHECK_INT(td_parallel_for(1, N, leave_early, NULL), TD_OK);
    td_interrupt_request();
    CHECK_INT(td_parallel_for(1, 1, leave_early, NULL), TD_EINTR);
    CHECK_INT(td_serial_for(N, 64, leave_early, NULL), TD_EINTR);
    CHECK_INT(td_serial_for(N - 1, 64, leave_early, NULL), TD_OK);
}

/* The thread sanitizer wants no threads after a fork. */
static bool can_fork(void) {
#if defined(__SANITIZE_THREAD__)
    return false;
#else
    return true;
#endif
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(each_item_of_each_caller_is_run_once);
    RUN(helpers_that_hold_calls_up_are_not_called_for_a_while);
    RUN(workers_differ_and_stay_below_the_number_asked_for);
    RUN(a_loop_within_a_loop_runs_on_its_thread);
    RUN(a_worker_that_does_not_come_holds_nobody_up);
    RUN(workers_without_work_sleep);
    RUN(threads_of_libraries_sleep);
    RUN(a_loop_whose_part_left_early_is_interrupted);
    if (can_fork())
        RUN(a_child_runs_its_loops);
    return check_finish();
}
