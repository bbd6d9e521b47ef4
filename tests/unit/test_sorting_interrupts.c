/* test_sorting_interrupts.c: sorts, ranks, scans and searches of one long line are left when an
 * interrupt is requested. */
#include "engine/core/interrupt.h"
#include "engine/td.h"
#include "tests/check.h"

enum { LONG = 1 << 20 };

static td_tensor *numbers(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL, *y = NULL;
    if (TD_APPLY(&x, randn, TD_INTS(ndim, sizes)) == TD_OK)
        CHECK_INT(TD_APPLY(&y, to, TD_T(x), TD_DTYPE(dtype)), TD_OK);
    td_release(x);
    return y;
}

/* The call is refused while a request stands, and runs when there is none. */
#define CHECK_LEFT(nresults, ...)                                                                  \
    do {                                                                                           \
        td_tensor *out_[4] = {NULL};                                                               \
        td_interrupt_request();                                                                    \
        CHECK_INT(TD_APPLY(out_, __VA_ARGS__), TD_EINTR);                                          \
        td_interrupt_clear();                                                                      \
        CHECK_INT(TD_APPLY(out_, __VA_ARGS__), TD_OK);                                             \
        for (int k_ = 0; k_ < (nresults); k_++)                                                    \
            td_release(out_[k_]);                                                                  \
    } while (0)

TEST(one_long_line_is_left_when_interrupted) {
    const int64_t n = LONG;
    td_tensor *x = numbers(TD_F32, 1, &n);
    REQUIRE(x);
    CHECK_LEFT(2, sort, TD_T(x), TD_I(0));
    CHECK_LEFT(2, topk, TD_T(x), TD_I(10));
    CHECK_LEFT(2, topk, TD_T(x), TD_I(LONG / 5));
    CHECK_LEFT(2, kthvalue, TD_T(x), TD_I(1000));
    CHECK_LEFT(2, median, TD_T(x), TD_I(0));
    CHECK_LEFT(1, cumprod, TD_T(x), TD_I(0));
    CHECK_LEFT(2, cummax, TD_T(x), TD_I(0));
    CHECK_LEFT(1, logcumsumexp, TD_T(x), TD_I(0));
    CHECK_LEFT(1, searchsorted, TD_T(x), TD_T(x));
    td_release(x);
}

TEST(many_rows_are_left_when_interrupted) {
    const int64_t sizes[] = {LONG / 8, 8};
    td_tensor *x = numbers(TD_I8, 2, sizes);
    REQUIRE(x);
    CHECK_LEFT(1, row_order, TD_T(x));
    CHECK_LEFT(2, sort, TD_T(x), TD_I(1));
    CHECK_LEFT(2, kthvalue, TD_T(x), TD_I(3), TD_I(1));
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(one_long_line_is_left_when_interrupted);
    RUN(many_rows_are_left_when_interrupted);
    return check_finish();
}
