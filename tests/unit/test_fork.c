/* test_fork.c: a child made by fork after its parent's teams of threads were at work: everything
 * goes on in one thread there, in the engine and in the libraries behind it. */
#include "engine/td.h"

#include "tests/check.h"

#include <sys/wait.h>
#include <unistd.h>

static double total(td_tensor *x) {
    td_tensor *sum = NULL;
    if (TD_APPLY(&sum, sum, TD_T(x)))
        return NAN;
    double value = sum->dtype == TD_F64 ? *(double *)sum->data : *(float *)sum->data;
    td_release(sum);
    return value;
}

/* A long loop, a product of each library, a convolution: sums that have one right value. */
static bool works(void) {
    td_tensor *long_one = NULL, *a = NULL, *b = NULL, *c = NULL, *d = NULL, *x = NULL, *w = NULL,
              *y = NULL;
    bool right = TD_APPLY(&long_one, ones, TD_INTS(1, ((int64_t[]){3000000}))) == TD_OK &&
                 total(long_one) == 3000000 &&
                 TD_APPLY(&a, ones, TD_INTS(2, ((int64_t[]){200, 200}))) == TD_OK &&
                 TD_APPLY(&b, matmul, TD_T(a), TD_T(a)) == TD_OK && total(b) == 8000000 &&
                 TD_APPLY(&c, to, TD_T(a), TD_DTYPE(TD_F64)) == TD_OK &&
                 TD_APPLY(&d, matmul, TD_T(c), TD_T(c)) == TD_OK && total(d) == 8000000 &&
                 TD_APPLY(&x, ones, TD_INTS(4, ((int64_t[]){4, 3, 32, 32}))) == TD_OK &&
                 TD_APPLY(&w, ones, TD_INTS(4, ((int64_t[]){8, 3, 3, 3}))) == TD_OK &&
                 TD_APPLY(&y, conv2d, TD_T(x), TD_T(w)) == TD_OK &&
                 total(y) == 4 * 8 * 30 * 30 * 27.0;
    td_tensor *all[] = {long_one, a, b, c, d, x, w, y};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        td_release(all[k]);
    return right;
}

/* Does the child's work end, and rightly? A child that hangs is ended by its alarm. */
static bool child_works(void) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        alarm(120);
        _exit(works() && works() ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

TEST(a_child_works_on_after_its_parent_used_threads) {
    CHECK_INT(td_set_num_threads(2), TD_OK);
    REQUIRE(works());
    CHECK(child_works());
    CHECK(works());
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(a_child_works_on_after_its_parent_used_threads);
    return check_finish();
}
