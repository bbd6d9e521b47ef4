/* test_cpu_softmax_interrupt.c: loops over one huge row look for an interrupt on the way. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/cpu/isa/isa.h"
#include "engine/ops/op.h"

#include "tests/check.h"

enum { ELEMENTS = 1 << 20 };

static float *filled(float value) {
    float *x = td_malloc(ELEMENTS * sizeof *x);
    for (int k = 0; k < ELEMENTS; k++)
        x[k] = value;
    return x;
}

static const td_softmax_functions *functions(void) {
    return td_cpu->softmax->of[TD_F32];
}

TEST(softmax_of_one_row_stops_when_interrupted) {
    const td_softmax_functions *fns = functions();
    float *x = filled(1), *y = filled(-7);
    for (int log = 0; log < 2; log++) {
        td_interrupt_request();
        fns->rows(y, x, 1, ELEMENTS, log);
        td_interrupt_clear();
        CHECK(y[ELEMENTS - 1] == -7);
    }
    td_free(x);
    td_free(y);
}

TEST(softmax_of_columns_stops_when_interrupted) {
    const td_softmax_functions *fns = functions();
    float *x = filled(1), *y = filled(-7);
    td_interrupt_request();
    fns->columns(y, x, ELEMENTS / 4, 4, 4, false);
    td_interrupt_clear();
    CHECK(y[ELEMENTS - 1] == -7);
    td_free(x);
    td_free(y);
}

TEST(softmax_gradient_of_one_row_stops_when_interrupted) {
    const td_softmax_functions *fns = functions();
    float *x = filled(1), *y = filled(-7);
    td_interrupt_request();
    fns->backward_rows(y, x, x, 1, ELEMENTS, false);
    td_interrupt_clear();
    CHECK(y[ELEMENTS - 1] == -7);
    td_free(x);
    td_free(y);
}

TEST(losses_of_many_lines_stop_when_interrupted) {
    const td_softmax_functions *fns = functions();
    float *x = filled(1), *losses = filled(-7);
    int64_t *classes = td_calloc(ELEMENTS, sizeof *classes);
    double total;
    td_interrupt_request();
    fns->pick(losses, &total, x, x, x, classes, &(td_class_lines){1, ELEMENTS, ELEMENTS, ELEMENTS});
    td_interrupt_clear();
    CHECK(losses[ELEMENTS - 1] == -7);
    td_free(x);
    td_free(losses);
    td_free(classes);
}

TEST(rows_that_nobody_interrupts_are_whole) {
    const td_softmax_functions *fns = functions();
    float *x = filled(1), *y = filled(-7);
    fns->rows(y, x, 1, ELEMENTS, false);
    CHECK(y[0] == 1.0f / ELEMENTS && y[ELEMENTS - 1] == 1.0f / ELEMENTS);
    td_free(x);
    td_free(y);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(softmax_of_one_row_stops_when_interrupted);
    RUN(softmax_of_columns_stops_when_interrupted);
    RUN(softmax_gradient_of_one_row_stops_when_interrupted);
    RUN(losses_of_many_lines_stop_when_interrupted);
    RUN(rows_that_nobody_interrupts_are_whole);
    return check_finish();
}
