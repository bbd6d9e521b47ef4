/* test_threads_limit.c: parallel loops where OpenMP gives fewer threads than were asked for (the
 * test runs with OMP_THREAD_LIMIT=1, as containers and clusters do), and loops that are
 * interrupted. */
#include "engine/td.h"

#include "tests/check.h"

static void count(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)worker;
    atomic_fetch_add((atomic_llong *)ctx, end - begin);
}

TEST(every_part_of_a_loop_runs) {
    for (int threads = 1; threads <= 8; threads++) {
        atomic_llong done = 0;
        REQUIRE(td_set_num_threads(threads) == TD_OK);
        CHECK_INT(td_parallel_for(4000003, 64, count, &done), TD_OK);
        CHECK_INT(done, 4000003);
    }
}

TEST(a_sum_is_whole) {
    int64_t n = 4000000;
    double value = 0;
    td_tensor *x = NULL, *sum = NULL;
    REQUIRE(td_set_num_threads(4) == TD_OK);
    REQUIRE(TD_APPLY(&x, full, TD_INTS(1, &n), TD_F(3)) == TD_OK);
    REQUIRE(TD_APPLY(&sum, sum, TD_T(x)) == TD_OK);
    CHECK_INT(td_tensor_item(sum, &value), TD_OK);
    CHECK_CLOSE(value, 12e6, 0);
    td_release(sum);
    td_release(x);
}

static void interrupt_first(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)end;
    (void)worker;
    atomic_int *calls = ctx;
    if (begin == 0)
        td_interrupt_request();
    atomic_fetch_add(calls, 1);
}

TEST(a_loop_that_was_cut_says_so) {
    atomic_int calls = 0;
    REQUIRE(td_set_num_threads(1) == TD_OK);
    CHECK_INT(td_parallel_for(1000000, 6000, interrupt_first, &calls), TD_EINTR);
    CHECK_INT(calls, 1);
    td_interrupt_clear();
}

static void request_at_the_end(void *ctx, int64_t begin, int64_t end, int worker) {
    (void)begin;
    (void)worker;
    if (end == *(int64_t *)ctx)
        td_interrupt_request();
}

/* For one a part may leave early: it is not known to be whole. */
TEST(a_request_within_the_last_part_cuts_the_loop) {
    int64_t n = 1000000;
    REQUIRE(td_set_num_threads(1) == TD_OK);
    CHECK_INT(td_parallel_for(n, 6000, request_at_the_end, &n), TD_EINTR);
    td_interrupt_clear();
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(every_part_of_a_loop_runs);
    RUN(a_sum_is_whole);
    RUN(a_loop_that_was_cut_says_so);
    RUN(a_request_within_the_last_part_cuts_the_loop);
    return check_finish();
}
