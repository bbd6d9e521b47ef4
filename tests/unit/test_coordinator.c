/* test_coordinator.c: what the coordinator of a rehearsal makes of what ranks say, played here by
 * the other ends of their pipes: answers, verdicts, messages that make no sense, failing
 * allocations. */
#include "engine/td.h"

#include "engine/distributed/rehearsal.h"
#include "tests/check.h"

#include <fcntl.h>
#include <unistd.h>

enum { RANKS = 2 };

typedef struct job {
    td_coordinator *c;
    int in[RANKS], out[RANKS]; /* the ranks' ends */
} job;

static bool open_job(job *j) {
    int up[2], down[2];
    if (td_coordinator_new(RANKS, 60, &j->c))
        return false;
    for (int r = 0; r < RANKS; r++) {
        if (pipe(up) || pipe(down) || td_coordinator_connect(j->c, r, up[0], down[1]))
            return false;
        j->in[r] = down[0];
        j->out[r] = up[1];
        fcntl(j->in[r], F_SETFL, O_NONBLOCK);
    }
    return true;
}

static void close_job(job *j) {
    td_coordinator_release(j->c);
    for (int r = 0; r < RANKS; r++) {
        close(j->in[r]);
        close(j->out[r]);
    }
}

static void say(const job *j, int rank, td_rehearsal_word word, const void *bytes) {
    CHECK(write(j->out[rank], &word, sizeof word) == (ssize_t)sizeof word);
    if (bytes)
        CHECK(write(j->out[rank], bytes, word.bytes) == (ssize_t)word.bytes);
}

static td_rehearsal_word join(void) {
    return (td_rehearsal_word){.word = TD_REHEARSAL_JOIN};
}

static td_rehearsal_word wait_for(uint32_t token) {
    return (td_rehearsal_word){.word = TD_REHEARSAL_WAIT, .token = token};
}

static td_rehearsal_word sum_of(uint32_t token, int64_t n, const char *place) {
    td_rehearsal_word word = {.word = TD_REHEARSAL_TRANSFER,
                              .token = token,
                              .count = n,
                              .takes = 1,
                              .bytes = (uint64_t)n * sizeof(float)};
    word.record = (td_flight_record){.number = token,
                                     .sequence = token,
                                     .kind = TD_ALL_REDUCE,
                                     .op = TD_ACROSS_SUM,
                                     .dtype = TD_F32,
                                     .count = n,
                                     .ndim = 1,
                                     .sizes = {n}};
    snprintf(word.record.place, sizeof word.record.place, "%s", place);
    return word;
}

static td_status turn(job *j) {
    td_status status = TD_OK;
    for (int k = 0; k < 3 && !status; k++)
        status = td_coordinator_turn(j->c, 0);
    return status;
}

TEST(a_sum_is_answered_once_all_have_come) {
    job j;
    float one[3] = {1, 2, 3}, two[3] = {10, 20, 30}, sum[3];
    td_rehearsal_answer answer;
    REQUIRE(open_job(&j));
    say(&j, 0, join(), NULL);
    say(&j, 1, join(), NULL);
    say(&j, 0, sum_of(1, 3, "a.lua:1"), one);
    say(&j, 0, wait_for(1), NULL);
    CHECK_INT(turn(&j), TD_OK);
    CHECK(read(j.in[0], &answer, sizeof answer) < 0);
    CHECK(td_coordinator_verdict(j.c) == NULL); /* rank 1 computes */
    say(&j, 1, sum_of(1, 3, "a.lua:1"), two);
    CHECK_INT(turn(&j), TD_OK);
    for (int r = 0; r < RANKS; r++) {
        REQUIRE(read(j.in[r], &answer, sizeof answer) == (ssize_t)sizeof answer);
        CHECK_INT(answer.token, 1);
        REQUIRE(answer.bytes == sizeof sum &&
                read(j.in[r], sum, sizeof sum) == (ssize_t)sizeof sum);
        CHECK(sum[0] == 11 && sum[1] == 22 && sum[2] == 33);
    }
    CHECK_INT(td_coordinator_transfers(j.c), 1);
    say(&j, 1, wait_for(1), NULL); /* for what has arrived: it does not wait */
    CHECK_INT(turn(&j), TD_OK);
    CHECK(td_coordinator_verdict(j.c) == NULL);
    CHECK_INT(td_coordinator_ended(j.c, 0, NULL), TD_OK);
    CHECK_INT(td_coordinator_ended(j.c, 1, NULL), TD_OK);
    CHECK(td_coordinator_is_over(j.c) && td_coordinator_verdict(j.c) == NULL);
    close_job(&j);
}

TEST(a_rank_that_waits_for_one_that_ended_is_told) {
    job j;
    float x[1] = {1};
    REQUIRE(open_job(&j));
    say(&j, 0, join(), NULL);
    say(&j, 0, sum_of(1, 1, "a.lua:7"), x);
    say(&j, 0, wait_for(1), NULL);
    CHECK_INT(turn(&j), TD_OK);
    CHECK(td_coordinator_verdict(j.c) == NULL);
    CHECK_INT(td_coordinator_ended(j.c, 1, NULL), TD_OK);
    const char *why = td_coordinator_verdict(j.c);
    REQUIRE(why != NULL);
    CHECK_STR(why, "no rank can go on:\n  rank 0: waiting in all_reduce #1, a.lua:7\n  rank 1: "
                   "ended without tide.distributed.init");
    close_job(&j);
}

TEST(ranks_that_differ_are_named) {
    job j;
    float x[2] = {1, 2};
    REQUIRE(open_job(&j));
    say(&j, 1, sum_of(1, 2, "a.lua:9"), x);
    CHECK_INT(turn(&j), TD_OK);
    say(&j, 0, sum_of(1, 1, "a.lua:8"), x);
    CHECK_INT(turn(&j), TD_OK);
    const char *why = td_coordinator_verdict(j.c);
    REQUIRE(why != NULL);
    CHECK_STR(why, "ranks differ in collective #1: rank 1 is in all_reduce of 2 float32 (sum), "
                   "a.lua:9; rank 0 is in all_reduce of 1 float32 (sum), a.lua:8");
    close_job(&j);
}

TEST(what_makes_no_sense_is_refused) {
    float x[1] = {1};
    td_rehearsal_word words[4] = {sum_of(1, 1, ""), sum_of(1, 1, ""), sum_of(1, 1, ""),
                                  sum_of(1, 1, "")};
    words[0].ncounts = -5;
    words[1].record.kind = 200;
    words[2].record.group = 17;
    words[3].record.peer = -1;
    for (int k = 0; k < 4; k++) {
        job j;
        REQUIRE(open_job(&j));
        say(&j, 0, words[k], x);
        CHECK(turn(&j) != TD_OK);
        close_job(&j);
    }
}

TEST(memory_that_is_out_is_an_error) {
    float x[3] = {1, 2, 3};
    int failed = 0;
    for (int n = 1; n < 40; n++) {
        job j;
        REQUIRE(open_job(&j));
        for (int r = 0; r < RANKS; r++)
            say(&j, r, sum_of(1, 3, ""), x);
        td_memory_fail_after(n);
        td_status status = turn(&j);
        td_memory_fail_after(0);
        CHECK(status == TD_OK || status == TD_ENOMEM);
        failed += status == TD_ENOMEM;
        close_job(&j);
    }
    CHECK(failed > 3);
}

int main(int argc, char **argv) {
    (void)argc;
    (void)argv;
    RUN(a_sum_is_answered_once_all_have_come);
    RUN(a_rank_that_waits_for_one_that_ended_is_told);
    RUN(ranks_that_differ_are_named);
    RUN(what_makes_no_sense_is_refused);
    RUN(memory_that_is_out_is_an_error);
    return check_finish();
}
