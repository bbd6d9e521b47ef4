/* test_start.c: the engine's start with each allocation failing in turn: an error that says so, and
 * a second attempt that goes on. Each in a process of its own. */
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STARTED, FAILED_WELL, FAILED_BADLY };

static bool adds(void) {
    td_tensor *x = NULL, *y = NULL;
    bool right = TD_APPLY(&x, full, TD_INTS(1, (int64_t[]){3}), TD_F(2)) == TD_OK &&
                 TD_APPLY(&y, softmax, TD_T(x), TD_I(0)) == TD_OK &&
                 TD_APPLY(&y, add, TD_T(x), TD_T(x)) == TD_OK && *(const float *)y->data == 4;
    return right;
}

static int start_with_failure(int64_t n) {
    td_memory_fail_after(n);
    td_status status = td_init();
    td_memory_fail_after(0);
    if (status == TD_OK)
        return STARTED;
    if (status != TD_ENOMEM || !strstr(td_error_message(), "out of memory")) {
        fprintf(stderr, "allocation %lld: %s\n", (long long)n, td_error_message());
        return FAILED_BADLY;
    }
    if (td_init() == TD_OK && adds())
        return FAILED_WELL;
    fprintf(stderr, "allocation %lld, second attempt: %s\n", (long long)n, td_error_message());
    return FAILED_BADLY;
}

static int in_child(int64_t n) {
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(start_with_failure(n));
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status)
               ? WEXITSTATUS(status)
               : FAILED_BADLY;
}

TEST(a_start_that_runs_out_of_memory_can_be_made_again) {
    int64_t step = 1, failures = 0;
    for (int64_t n = 1; n < 1000000; n += step, step = 1 + n / 30, failures++) {
        int outcome = in_child(n);
        if (outcome == STARTED)
            break;
        CHECK_INT(outcome, FAILED_WELL);
    }
    CHECK(failures > 50);
}

int main(void) {
    RUN(a_start_that_runs_out_of_memory_can_be_made_again);
    return check_finish();
}
