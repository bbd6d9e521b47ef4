/* test_worker.c: what workers have of their own (engine/core/worker.h): seeds, threads, requests to
 * stop, and the bytes of their storages, whoever frees them. */
#include "engine/td.h"
#include "tests/check.h"

#include <pthread.h>

enum { N = 1 << 16 };

static td_tensor *make(int64_t n) {
    td_tensor *x = NULL;
    return td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x) == TD_OK ? x : NULL;
}

static void run(void *(*fn)(void *), void *ctx) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, fn, ctx) == 0);
    pthread_join(thread, NULL);
}

/* ---- generators ---- */

static void *draw_seeded(void *ctx) {
    td_worker_enter(ctx);
    td_manual_seed(5);
    uint64_t seed, offset;
    td_generator_reserve(NULL, 10, &seed, &offset);
    CHECK_INT((int64_t)seed, 5);
    CHECK_INT((int64_t)offset, 0);
    CHECK_INT((int64_t)td_get_default_generator().offset, 10);
    return NULL;
}

TEST(a_worker_seeds_its_own_generator_alone) {
    td_generator before = td_get_default_generator();
    td_worker *worker = td_worker_new(99);
    REQUIRE(worker);
    CHECK_INT((int64_t)worker->generator.seed, 99);
    run(draw_seeded, worker);
    td_generator after = td_get_default_generator();
    CHECK(before.seed == after.seed && before.offset == after.offset);
    td_worker_release(worker);
}

/* ---- threads ---- */

static void *set_threads(void *ctx) {
    td_worker_enter(ctx);
    CHECK_INT(td_get_num_threads(), 1);
    CHECK_INT(td_set_num_threads(3), TD_OK);
    CHECK_INT(td_get_num_threads(), 3);
    return NULL;
}

TEST(a_worker_has_a_number_of_threads_of_its_own) {
    int before = td_get_num_threads();
    td_worker *worker = td_worker_new(0);
    REQUIRE(worker);
    run(set_threads, worker);
    CHECK_INT(td_get_num_threads(), before);
    td_worker_release(worker);
}

/* The pool's threads work under the worker whose loop they help with. */
typedef struct looked {
    td_worker *worker;
    atomic_llong seen;
} looked;

static void see_worker(void *ctx, int64_t begin, int64_t end, int k) {
    looked *all = ctx;
    (void)k;
    if (td_worker_current == all->worker && begin < end)
        atomic_fetch_add(&all->seen, end - begin);
}

static void *loop(void *ctx) {
    td_worker_enter(((looked *)ctx)->worker);
    CHECK_INT(td_set_num_threads(4), TD_OK);
    CHECK_INT(td_parallel_for(1000, TD_GRAIN, see_worker, ctx), TD_OK);
    return NULL;
}

TEST(the_pool_works_under_the_caller_s_worker) {
    looked all = {.worker = td_worker_new(0)};
    REQUIRE(all.worker);
    run(loop, &all);
    CHECK_INT(atomic_load(&all.seen), 1000);
    all.seen = 0;
    td_worker *none = all.worker;
    all.worker = NULL;
    CHECK_INT(td_parallel_for(1000, TD_GRAIN, see_worker, &all), TD_OK);
    CHECK_INT(atomic_load(&all.seen), 1000);
    td_worker_release(none);
}

/* ---- requests to stop ---- */

static void *stopped(void *ctx) {
    td_worker_enter(ctx);
    CHECK(td_interrupt_requested());
    CHECK_INT(td_interrupt_check(), TD_EINTR);
    looked all = {.worker = ctx};
    CHECK_INT(td_parallel_for(10, 1, see_worker, &all), TD_EINTR);
    td_interrupt_clear();
    CHECK(!td_interrupt_requested());
    unsigned mark = td_interrupt_mark();
    td_interrupt_request(); /* of the process: everybody's */
    CHECK(td_interrupt_since(mark) && td_interrupt_requested());
    td_interrupt_clear(); /* the worker's own, which doesn't take the process's back */
    CHECK(td_interrupt_requested());
    return NULL;
}

TEST(a_request_to_a_worker_stops_nobody_else) {
    td_worker *worker = td_worker_new(0);
    REQUIRE(worker);
    td_interrupt_raise(&worker->interrupt);
    CHECK(!td_interrupt_requested());
    run(stopped, worker);
    CHECK(td_interrupt_requested());
    td_interrupt_clear();
    CHECK(!td_interrupt_requested());
    td_worker_release(worker);
}

TEST(a_mark_knows_of_requests_that_have_been_cleared) {
    td_worker *worker = td_worker_new(0);
    REQUIRE(worker);
    td_worker_enter(worker);
    for (int k = 0; k < 4; k++) {
        unsigned mark = td_interrupt_mark();
        CHECK(!td_interrupt_since(mark));
        td_interrupt_raise(&worker->interrupt);
        td_interrupt_clear();
        CHECK(!td_interrupt_requested() && td_interrupt_since(mark));
    }
    td_worker_enter(NULL);
    td_worker_release(worker);
}

/* ---- memory ---- */

static void *make_some(void *ctx) {
    td_tensor **made = ctx;
    td_worker *worker = td_worker_new(0);
    if (!CHECK(worker))
        return NULL;
    td_worker_enter(worker);
    CHECK_INT(td_memory_held(TD_DEVICE_CPU), 0);
    *made = make(N);
    CHECK_INT(td_memory_held(TD_DEVICE_CPU), N * 4);
    td_tensor *gone = make(N);
    CHECK_INT(td_memory_held(TD_DEVICE_CPU), 2 * N * 4);
    td_release(gone);
    CHECK_INT(td_memory_held(TD_DEVICE_CPU), N * 4);
    td_worker_enter(NULL);
    td_worker_release(worker); /* the tensor holds it */
    return NULL;
}

TEST(bytes_are_held_by_who_made_them_whoever_frees_them) {
    int64_t held = td_memory_held(TD_DEVICE_CPU), all = td_memory_allocated(TD_DEVICE_CPU);
    td_tensor *made = NULL;
    run(make_some, &made);
    REQUIRE(made);
    CHECK_INT(td_memory_held(TD_DEVICE_CPU), held);
    CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), all + N * 4);
    td_tensor *own = make(N);
    CHECK_INT(td_memory_held(TD_DEVICE_CPU), held + N * 4);
    td_release(own);
    td_release(made);
    CHECK_INT(td_memory_held(TD_DEVICE_CPU), held);
    CHECK_INT(td_memory_allocated(TD_DEVICE_CPU), all);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(a_worker_seeds_its_own_generator_alone);
    RUN(a_worker_has_a_number_of_threads_of_its_own);
    RUN(the_pool_works_under_the_caller_s_worker);
    RUN(a_request_to_a_worker_stops_nobody_else);
    RUN(a_mark_knows_of_requests_that_have_been_cleared);
    RUN(bytes_are_held_by_who_made_them_whoever_frees_them);
    return check_finish();
}
