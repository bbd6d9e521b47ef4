/* test_ops_program.c: programs: what is made of formulas and steps, and what the CPU computes of
 * them: dtypes of registers, several outputs, sums, lists, operands that are written, devices. */
#include "engine/ops/pointwise/pointwise.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK(call) check_status(__FILE__, __LINE__, (call))

static bool check_status(const char *file, int line, td_status status) {
    if (status)
        check_fail(file, line, "%s: %s", td_status_text(status), td_error_message());
    return status == TD_OK;
}

/* Row-major, element k is first + k * step. */
static td_tensor *ramp(td_dtype dtype, int64_t n, double first, double step) {
    td_tensor *x;
    if (!OK(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x)))
        exit(1);
    for (int64_t k = 0; k < n; k++)
        td_store_double(dtype, (char *)x->data + k * (int64_t)td_dtype_size(dtype),
                        first + (double)k * step);
    return x;
}

static double at(const td_tensor *x, int64_t k) {
    return td_load_double((td_dtype)x->dtype,
                          (const char *)x->data + k * (int64_t)td_tensor_itemsize(x));
}

static const char *const names[] = {"a", "b", "c"};

static const td_program *compile(const char *formula) {
    const td_program *p;
    if (!OK(td_program_compile(formula, 3, names, &p)))
        exit(1);
    return p;
}

static td_status run(const td_program *p, const td_operand *operands, td_dtype compute,
                     td_tensor *const *outs) {
    td_pointwise_plan plan = {
        .program = p, .operands = operands, .compute = compute, .nlists = 1, .outs = outs};
    return TD_RUN(TD_DEVICE_CPU, pointwise, &plan);
}

TEST(every_primitive_has_a_text_and_a_loop_for_some_dtype) {
    for (int k = 0; k < TD_PRIMITIVES; k++) {
        const char *floating = td_primitive_text((td_primitive)k, true);
        const char *integer = td_primitive_text((td_primitive)k, false);
        CHECK(floating || integer);
        CHECK(strchr(floating ? floating : integer, 'a') != NULL);
        CHECK_INT(td_primitive_find(td_primitive_name((td_primitive)k),
                                    strlen(td_primitive_name((td_primitive)k))),
                  k);
    }
    CHECK_STR(td_primitive_text(TD_PW_add, true), "a + b");
    CHECK(td_primitive_text(TD_PW_exp, false) == NULL);
    CHECK(td_primitive_text(TD_PW_bitwise_and, true) == NULL);
}

TEST(values_of_primitives_for_numbers_are_those_of_their_loops) {
    const double args[3] = {2.25, -0.75, 1.5};
    for (int k = 0; k < TD_PRIMITIVES; k++) {
        td_primitive primitive = (td_primitive)k;
        bool integers = !td_primitive_text(primitive, true);
        td_dtype dtype = integers ? TD_I64 : TD_F64;
        double given[3] = {args[0], args[1], args[2]};
        if (td_primitive_signature(primitive) == TD_SIGNATURE_LOGIC ||
            td_primitive_signature(primitive) == TD_SIGNATURE_SELECT)
            given[0] = 1;
        td_operand operands[3];
        for (int j = 0; j < 3; j++)
            operands[j] = (td_operand){.f = given[j]};
        td_tensor *out = ramp(dtype, 1, 0, 0);
        OK(run(td_primitive_program(primitive), operands, dtype, &out));
        double want = td_primitive_evaluate(primitive, given), got = at(out, 0);
        if (td_primitive_is_special(primitive)) {
            CHECK(isnan(want));
            want = got;
        }
        bool same = (want != want && got != got) || fabs(want - got) <= 1e-14 * fabs(want);
        if (!same)
            check_fail(__FILE__, __LINE__, "%s: %g, its loop %g", td_primitive_name(primitive),
                       want, got);
        td_release(out);
    }
}

TEST(formulas_have_no_size_that_is_too_large) {
    enum { TERMS = 300, OPERANDS = 100 };
    char text[TERMS * 40], operand_names[OPERANDS][8];
    const char *list[OPERANDS];
    size_t len = 0;
    double want = 0;
    for (int k = 0; k < OPERANDS; k++) {
        snprintf(operand_names[k], sizeof operand_names[k], "x%d", k);
        list[k] = operand_names[k];
    }
    for (int k = 0; k < TERMS; k++) /* nested to the right: all of them live at once */
        len += (size_t)snprintf(text + len, sizeof text - len, "x%d * %d + (", k % OPERANDS, k + 1);
    len += (size_t)snprintf(text + len, sizeof text - len, "0");
    for (int k = 0; k < TERMS; k++)
        len += (size_t)snprintf(text + len, sizeof text - len, ")");
    const td_program *p;
    OK(td_program_compile(text, OPERANDS, list, &p));
    CHECK(p->nbuffers > 100);
    td_operand operands[OPERANDS];
    td_tensor *x = ramp(TD_F64, 3000, 1, 0), *out = ramp(TD_F64, 3000, 0, 0);
    for (int k = 0; k < OPERANDS; k++)
        operands[k] = k % 2 ? (td_operand){.tensor = x} : (td_operand){.f = k};
    for (int k = 0; k < TERMS; k++)
        want += (k % OPERANDS % 2 ? 1 : k % OPERANDS) * (k + 1);
    OK(run(p, operands, TD_F64, &out));
    CHECK_CLOSE(at(out, 0), want, 0);
    CHECK_CLOSE(at(out, 2999), want, 0);
    td_release(x);
    td_release(out);
    td_program_release(p);
}

TEST(formulas_that_are_wrong_say_where) {
    const td_program *p;
    CHECK_INT(td_program_compile("a + ", 3, names, &p), TD_EVALUE);
    CHECK(p == NULL && strstr(td_error_message(), "at 5"));
    CHECK_INT(td_program_compile("nothing(a)", 3, names, &p), TD_EVALUE);
    CHECK_INT(td_program_compile("where(a, b)", 3, names, &p), TD_EVALUE);
    CHECK_INT(td_program_compile("a b", 3, names, &p), TD_EVALUE);
}

static td_status prepare(const char *formula, const char *gradient) {
    td_param params[2] = {{.name = (char *)"a"}, {.name = (char *)"b"}};
    td_pointwise pointwise = {.primitive = -1, .formula = formula};
    td_op op = {.name = "made_up",
                .params = params,
                .nparams = 2,
                .pointwise = &pointwise,
                .gradient = gradient};
    return td_pointwise_prepare(&op);
}

TEST(a_negative_zero_is_another_number) {
    const td_program *p = compile("copysign(a, 0.0) + copysign(a, -0.0)");
    CHECK_INT(p->nconstants, 2);
    CHECK_INT(p->nsteps, 3);
    td_program_release(p);
}

/* What is written with signs, names of values and named arguments is the same as with calls. */
TEST(formulas_of_elements_are_written_as_expressions_are) {
    const char *const pairs[][2] = {
        {"gt(a, b)", "a > b"},
        {"where(le(a, b), pow(a, 2), b)", "where(a <= b, a ^ 2, c=b)"},
        {"eq(a, b) - ne(a, c)", "(a == b) - (a ~= c)"},
        {"(a + b) * -a + (a + b)", "t = a + b; t * -a + t"},
        {"lt(a, 0) * copysign(b, -0.0)", "(a < 0) * copysign(b, - 0.0)"},
        {"lt(a, -1) + ge(b, inf)", "masks = (a < -1) + (b >= inf); masks;"},
    };
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
        const td_program *p = compile(pairs[k][0]), *q = compile(pairs[k][1]);
        CHECK(p->nsteps > 0 && p->nsteps == q->nsteps);
        CHECK(p->digest == q->digest);
        CHECK_INT(p->nconstants, q->nconstants);
        td_program_release(p);
        td_program_release(q);
    }
}

TEST(gradients_of_pointwise_operators_may_share_names_and_be_sums) {
    static td_param params[2] = {{.name = (char *)"a"}, {.name = (char *)"b"}};
    static const td_pointwise pointwise = {.primitive = -1, .formula = "s = a + b; s * s"};
    static td_op op = {.name = "made_up", /* lives for ever, as operators do */
                       .params = params,
                       .nparams = 2,
                       .pointwise = &pointwise,
                       .gradient = "t = exp(out); a: g * t; b: g; a: g * b"};
    REQUIRE(OK(td_pointwise_prepare(&op)));
    const td_formula *f = op.programs;
    CHECK_INT(f->forward->nsteps, 2);
    CHECK_INT(f->gradient[0]->nsteps, 4);
    CHECK_INT(f->gradient[1]->nsteps, 1); /* no exp: b's gradient does not read t */
    CHECK_INT(f->gradient[1]->whole, 3);
    CHECK_INT(f->joint[3]->noutputs, 2);
    CHECK(f->reads_out);
    CHECK_INT(f->reads_args, 2);
}

TEST(wrong_gradients_fail_when_an_operator_is_registered) {
    CHECK_INT(prepare("a * b", "a: g * b; c: g * a"), TD_EVALUE);
    CHECK(strstr(td_error_message(), "made_up") && strstr(td_error_message(), "c"));
    CHECK_INT(prepare("a * b", "a: g *; b: g"), TD_EVALUE);
    CHECK_INT(prepare("a * b", "a g"), TD_EVALUE);
    CHECK_INT(prepare("a * ", "a: g"), TD_EVALUE);
    CHECK_INT(prepare("a * b", "t = g * a; a: g"), TD_EVALUE);
    CHECK(strstr(td_error_message(), "'t' is never read"));
}

TEST(memory_that_runs_out_while_a_text_is_compiled_leaves_nothing_behind) {
    const char *text = "t = a + b * -2; a = where(t > 0, t, c); b = t * t";
    const td_program *p = NULL;
    td_status status = TD_ENOMEM;
    uint32_t written;
    for (int n = 1; status == TD_ENOMEM && n < 100; n++) {
        td_memory_fail_after(n);
        status = td_program_compile_updates(text, 3, names, &written, &p);
        td_memory_fail_after(0);
        CHECK((status == TD_OK) == (p != NULL));
    }
    OK(status);
    CHECK_INT(written, 3);
    td_program_release(p);
}

/* Operator, place and reason. */
TEST(what_one_pass_over_elements_cannot_say_is_refused) {
    const char *const rows[][2] = {
        {"a + b.ndim", "formula, at 7 'ndim': in one pass over elements there are no attributes"},
        {"if(a > 0, a, b)", "formula, at 1 'if(a > 0, a, b)': in one pass over elements where("},
        {"where(a > 0 and b > 0, a, b)",
         "at 13 'and b > 0, a, b)': in one pass over elements logi"},
        {"error(a)", "nothing is refused"},
        {"a + {1}", "there are no lists"},
        {"a * true", "argument 2 (b) of mul is a bool, Tensor|number expected"},
        {"softmax(a, 0)", "at 1 'softmax(a, 0)': there is no primitive 'softmax'"},
        {"where(a, b)", "argument 3 (c) of where is missing"},
        {"exp(a, b)", "exp has only 1 parameters"},
        {"a = b + 1; a", "the name 'a' is taken"},
        {"a == nil", "only an optional parameter can be nil"},
        {"a; b", "a result is given twice"},
        {"a < b < c", "at 7 '< c': an operator or the end expected"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        CHECK_INT(prepare(rows[k][0], NULL), TD_EVALUE);
        CHECK_CONTAINS(td_error_message(), "operator 'made_up'");
        CHECK_CONTAINS(td_error_message(), rows[k][1]);
    }
}

TEST(gradients_that_are_wanted_together_read_what_they_share_once) {
    const td_formula *f = TD_OP(mul)->programs;
    const td_program *both = f->joint[3];
    REQUIRE(both && !f->joint[1] && !f->joint[2]);
    CHECK_INT(both->noutputs, 2);
    CHECK_INT(both->nloads, 3); /* a, b, g */
    CHECK_INT(both->nsteps, 2);
    CHECK_INT(TD_OP(lerp)->programs->joint[7]->noutputs, 3);
}

TEST(masks_are_bytes_and_become_numbers_where_they_are_computed_with) {
    const td_program *mask = compile("lt(a, b)"), *sum = compile("lt(a, b) + 0.5 * eq(a, b)");
    const td_program *choice = compile("where(a, b, 7)");
    CHECK_INT(mask->outputs[0].dtype, TD_BOOL);
    CHECK_INT(choice->loads[0].dtype, TD_BOOL);
    td_dtype dtypes[] = {TD_F32, TD_F64, TD_I32, TD_I64, TD_U8};
    for (int d = 0; d < 5; d++) {
        enum { N = 1500 };
        td_tensor *a = ramp(dtypes[d], N, 0, 1), *truth = ramp(TD_BOOL, N, 0, 0);
        td_tensor *out = ramp(TD_F64, N, 0, 0);
        td_operand operands[3] = {{.tensor = a}, {.is_int = true, .i = 3, .f = 3}, {0}};
        OK(run(mask, operands, dtypes[d], &truth));
        CHECK(at(truth, 2) == 1 && at(truth, 3) == 0 && at(truth, 255) == 0);
        OK(run(sum, operands, TD_F64, &out));
        CHECK(at(out, 2) == 1 && at(out, 3) == 0.5 && at(out, 4) == 0);
        operands[0].tensor = truth;
        operands[1] = (td_operand){.tensor = a};
        OK(run(choice, operands, TD_F64, &out));
        CHECK(at(out, 1) == 1 && at(out, 2) == 2 && at(out, 3) == 7);
        td_release(a);
        td_release(truth);
        td_release(out);
    }
    td_program_release(mask);
    td_program_release(sum);
    td_program_release(choice);
}

TEST(registers_may_have_a_dtype_of_their_own) {
    /* a as float32 times itself, as int32 and back, beside the call's float64 */
    td_builder *b = td_builder_new(1);
    int a = td_builder_operand(b, 0), narrow = td_builder_convert(b, a, TD_F32);
    int square = td_builder_step(b, TD_PW_mul, narrow, narrow, 0);
    int whole = td_builder_convert(b, a, TD_I32);
    int wide = td_builder_convert(b, square, TD_DTYPE_CALL);
    td_builder_output(b, square, TD_OUTPUT_ELEMENTS);
    td_builder_output(b, td_builder_step(b, TD_PW_add, whole, td_builder_number(b, 1), 0),
                      TD_OUTPUT_ELEMENTS);
    td_builder_output(b, td_builder_step(b, TD_PW_add, wide, a, 0), TD_OUTPUT_ELEMENTS);
    const td_program *p;
    OK(td_builder_finish(b, &p));
    CHECK_INT(p->outputs[0].dtype, TD_F32);
    CHECK_INT(p->outputs[1].dtype, TD_I32);
    CHECK_INT(p->outputs[2].dtype, TD_DTYPE_CALL);
    td_tensor *x = ramp(TD_F64, 5000, 0.1, 1);
    td_tensor *outs[3] = {ramp(TD_F32, 5000, 0, 0), ramp(TD_I64, 5000, 0, 0),
                          ramp(TD_F64, 5000, 0, 0)};
    OK(run(p, &(td_operand){.tensor = x}, TD_F64, outs));
    float f = 4000.1f;
    CHECK_CLOSE(at(outs[0], 4000), f * f, 0);
    CHECK_CLOSE(at(outs[1], 4000), 4001, 0);
    CHECK_CLOSE(at(outs[2], 4000), (double)(f * f) + 4000.1, 0);
    for (int k = 0; k < 3; k++)
        td_release(outs[k]);
    td_release(x);
    td_program_release(p);
}

/* p + a, p * a over p itself and beside it, in all orders: what is written is not read again. */
TEST(results_may_be_operands_though_steps_after_them_read) {
    const char *const formulas[2] = {"a + b", "a * b"};
    const td_program *p;
    OK(td_program_compile_all(2, formulas, 3, names, &p));
    CHECK_INT(p->noutputs, 2);
    for (int n = 1; n < 6000; n = 3 * n + 1) {
        td_tensor *a = ramp(TD_F32, n, 1, 1), *b = ramp(TD_F32, n, 2, 1);
        td_operand operands[3] = {{.tensor = a}, {.tensor = b}, {0}};
        td_tensor *outs[2] = {a, b};
        OK(run(p, operands, TD_F32, outs));
        double x = n, y = n + 1;
        CHECK_CLOSE(at(a, n - 1), x + y, 0);
        CHECK_CLOSE(at(b, n - 1), (float)(x * y), 0);
        td_release(a);
        td_release(b);
    }
    td_program_release(p);
}

TEST(outputs_of_one_value_are_all_written) {
    const char *const formulas[3] = {"a * b", "a * b", "a"};
    const td_program *p;
    OK(td_program_compile_all(3, formulas, 3, names, &p));
    td_tensor *a = ramp(TD_F64, 700, 1, 1), *outs[3];
    td_operand operands[3] = {{.tensor = a}, {.f = 3}, {0}};
    for (int k = 0; k < 3; k++)
        outs[k] = ramp(TD_F64, 700, 0, 0);
    OK(run(p, operands, TD_F64, outs));
    for (int64_t k = 0; k < 700; k += 233) {
        CHECK_CLOSE(at(outs[0], k), 3.0 * (double)(k + 1), 0);
        CHECK_CLOSE(at(outs[1], k), 3.0 * (double)(k + 1), 0);
        CHECK_CLOSE(at(outs[2], k), (double)(k + 1), 0);
    }
    for (int k = 0; k < 3; k++)
        td_release(outs[k]);
    td_release(a);
    td_program_release(p);
}

static const td_program *sum_of_squares(td_output_kind kind) {
    td_builder *b = td_builder_new(2);
    int x = td_builder_operand(b, 0), y = td_builder_operand(b, 1);
    int difference = td_builder_step(b, TD_PW_sub, x, y, 0);
    const td_program *p;
    td_builder_output(b, td_builder_step(b, TD_PW_square, difference, 0, 0), kind);
    td_builder_output(b, difference, TD_OUTPUT_SUM);
    OK(td_builder_finish(b, &p));
    return p;
}

TEST(sums_are_accurate_and_the_same_for_any_number_of_threads) {
    enum { N = 1000003 };
    const td_program *p = sum_of_squares(TD_OUTPUT_MEAN);
    td_tensor *x = ramp(TD_F32, N, 0.1, 1e-3);
    td_operand operands[2] = {{.tensor = x}, {.f = 0.25}};
    double squares = 0, differences = 0, first[2];
    for (int64_t k = 0; k < N; k++) {
        float d = (float)at(x, k) - 0.25f;
        squares += (double)(d * d);
        differences += (double)d;
    }
    int threads = td_get_num_threads();
    for (int t = 1; t <= 4; t++) {
        td_tensor *outs[2] = {ramp(TD_F64, 1, 0, 0), ramp(TD_F64, 1, 0, 0)};
        OK(td_set_num_threads(t));
        OK(run(p, operands, TD_F32, outs));
        for (int k = 0; k < 2; k++) {
            first[k] = t == 1 ? at(outs[k], 0) : first[k];
            CHECK(at(outs[k], 0) == first[k]);
            td_release(outs[k]);
        }
    }
    OK(td_set_num_threads(threads));
    CHECK_CLOSE(first[0], squares / N, 1e-6 * squares / N);
    CHECK_CLOSE(first[1], differences, 1e-6 * differences);
    td_release(x);
    td_program_release(p);
}

TEST(sums_of_nothing_and_of_what_broadcasts) {
    const td_program *p = sum_of_squares(TD_OUTPUT_SUM), *mean = sum_of_squares(TD_OUTPUT_MEAN);
    td_tensor *outs[2] = {ramp(TD_F32, 1, 5, 0), ramp(TD_F32, 1, 5, 0)};
    td_tensor *none = ramp(TD_F32, 0, 0, 0), *row = ramp(TD_F32, 3, 0, 1), *column = NULL;
    td_operand operands[2] = {{.tensor = none}, {.f = 1}};
    OK(run(p, operands, TD_F32, outs));
    CHECK(at(outs[0], 0) == 0 && at(outs[1], 0) == 0);
    OK(run(mean, operands, TD_F32, outs));
    CHECK(isnan(at(outs[0], 0)));
    OK(td_tensor_view(row, 2, (int64_t[]){3, 1}, (int64_t[]){1, 1}, 0, &column));
    operands[0].tensor = row;
    operands[1] = (td_operand){.tensor = column};
    OK(run(p, operands, TD_F32, outs));
    CHECK_CLOSE(at(outs[0], 0), 12, 0); /* differences 0, 1, 2 of each sign */
    CHECK_CLOSE(at(outs[1], 0), 0, 0);
    CHECK_INT(run(p, operands, TD_F32, (td_tensor *[]){row, outs[1]}), TD_ESHAPE);
    td_release(column);
    td_release(row);
    td_release(none);
    td_release(outs[0]);
    td_release(outs[1]);
    td_program_release(p);
    td_program_release(mean);
}

TEST(lists_of_any_shapes_run_together) {
    enum { LISTS = 150 };
    const char *const formulas[2] = {"a * c + b", "a - b"};
    const td_program *p;
    OK(td_program_compile_all(2, formulas, 3, names, &p));
    td_operand operands[LISTS * 3];
    td_tensor *outs[LISTS * 2];
    for (int k = 0; k < LISTS; k++) {
        int64_t n = k % 7 == 3 ? 0 : k % 11 == 5 ? 100000 : 3 * k + 1;
        operands[3 * k] = (td_operand){.tensor = ramp(TD_F64, n, k, 1)};
        operands[3 * k + 1] =
            k % 2 ? (td_operand){.tensor = ramp(TD_F32, n, 1, 1)} : (td_operand){.f = 2};
        operands[3 * k + 2] = (td_operand){.f = k};
        outs[2 * k] = (td_tensor *)operands[3 * k].tensor; /* in place */
        outs[2 * k + 1] = ramp(TD_F32, n, 0, 0);
    }
    td_pointwise_plan plan = {
        .program = p, .operands = operands, .compute = TD_F64, .nlists = LISTS, .outs = outs};
    OK(TD_RUN(TD_DEVICE_CPU, pointwise, &plan));
    for (int k = 0; k < LISTS; k++) {
        int64_t n = outs[2 * k]->numel;
        for (int64_t i = 0; i<n; i += n> 1 ? n - 1 : 1) {
            double a = k + (double)i, b = k % 2 ? 1 + (double)i : 2;
            CHECK_CLOSE(at(outs[2 * k], i), a * k + b, 0);
            CHECK_CLOSE(at(outs[2 * k + 1], i), (float)(a - b), 0);
        }
        td_release(outs[2 * k]);
        td_release(outs[2 * k + 1]);
        if (k % 2)
            td_release((td_tensor *)operands[3 * k + 1].tensor);
    }
    td_program_release(p);
}

/* Results that are large go past the caches, whatever their alignment. */
TEST(large_results_are_written_whole) {
    enum { N = 20000003 };
    td_tensor *x = ramp(TD_F32, N, 1, 0), *base, *out;
    int64_t n = N + 3, m = N;
    OK(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &base));
    ((float *)base->data)[0] = ((float *)base->data)[N + 1] = -1;
    OK(td_tensor_view(base, 1, &m, (int64_t[]){1}, 1, &out));
    const td_program *p = compile("a + b * 2");
    td_operand operands[3] = {{.tensor = x}, {.f = 3}, {0}};
    OK(run(p, operands, TD_F32, &out));
    const float *got = base->data;
    int64_t wrong = got[0] != -1 || got[N + 1] != -1;
    for (int64_t k = 0; k < N; k++)
        wrong += got[k + 1] != 7;
    CHECK_INT(wrong, 0);
    td_release(out);
    td_release(base);
    td_release(x);
    td_program_release(p);
}

TEST(checks_find_a_true_element_wherever_it_is) {
    td_tensor *x = ramp(TD_I32, 70000, 1, 1);
    td_operand operands[3] = {{.tensor = x}, {.is_int = true, .i = 70000, .f = 70000}, {0}};
    td_check_plan plan = {.program = td_primitive_program(TD_PW_gt),
                          .operands = operands,
                          .compute = TD_I32,
                          .code = TD_EINDEX,
                          .message = "too large"};
    CHECK_INT(TD_RUN(TD_DEVICE_CPU, check, &plan), TD_OK);
    operands[1].i = 69999;
    CHECK_INT(TD_RUN(TD_DEVICE_CPU, check, &plan), TD_EINDEX);
    CHECK_STR(td_error_message(), "too large");
    plan.program = td_primitive_program(TD_PW_sub);
    CHECK_INT(TD_RUN(TD_DEVICE_CPU, check, &plan), TD_EINDEX);
    plan.program = compile("a * 0");
    CHECK_INT(TD_RUN(TD_DEVICE_CPU, check, &plan), TD_OK);
    td_program_release(plan.program);
    td_release(x);
}

TEST(integer_division_by_zero_leaves_the_tensor_as_it_was) {
    td_tensor *x = ramp(TD_I64, 5, 1, 1), *zeros = ramp(TD_I64, 5, -2, 1);
    CHECK_INT(TD_APPLY_INPLACE(floor_divide, TD_T(x), TD_T(zeros)), TD_EVALUE);
    CHECK(strstr(td_error_message(), "division by zero"));
    CHECK_CLOSE(at(x, 4), 5, 0);
    td_release(x);
    td_release(zeros);
}

/* ---- a device of our own: the host's memory under another name ---- */

static int64_t foreign; /* operands seen by the device that do not lie on it */

static int count(void) {
    return 1;
}
static void *allocate(td_stream stream, size_t bytes, size_t *granted) {
    (void)stream;
    *granted = (bytes + 63) & ~(size_t)63;
    return aligned_alloc(64, *granted ? *granted : 64);
}
static void release_block(td_stream stream, void *block, size_t granted) {
    (void)stream, (void)granted;
    free(block);
}
static td_status copy(td_stream stream, void *dst, const void *src, size_t bytes) {
    (void)stream;
    memcpy(dst, src, bytes);
    return TD_OK;
}
static td_status synchronize(td_stream stream) {
    (void)stream;
    return TD_OK;
}
static td_status pointwise(const td_pointwise_plan *plan) {
    for (int k = 0; k < plan->program->noperands; k++) {
        const td_tensor *x = plan->operands[k].tensor;
        foreign += x && x->storage->device.type == TD_CPU;
    }
    return td_backend_of(TD_DEVICE_CPU)->pointwise(plan);
}
static const td_backend other = {.name = "other",
                                 .count = count,
                                 .allocate = allocate,
                                 .release = release_block,
                                 .copy = copy,
                                 .upload = copy,
                                 .download = copy,
                                 .synchronize = synchronize,
                                 .pointwise = pointwise};

TEST(single_elements_of_the_host_are_numbers_on_a_device) {
    td_device device;
    OK(td_backend_register(&other));
    OK(td_device_parse("other", &device));
    td_tensor *host = ramp(TD_F32, 4, 1, 1), *there = NULL, *single, *y = NULL;
    OK(td_tensor_empty(TD_F32, device, 1, (int64_t[]){4}, &there));
    memcpy(there->data, host->data, 16);
    OK(td_tensor_scalar(TD_F32, 10, &single));
    OK(TD_APPLY(&y, mul, TD_T(single), TD_T(there)));
    CHECK(td_device_same(td_tensor_device(y), device));
    CHECK_CLOSE(at(y, 3), 40, 0);
    CHECK_INT(foreign, 0);
    td_release(y);
    CHECK_INT(TD_APPLY(&y, mul, TD_T(host), TD_T(there)), TD_EDEVICE);
    td_tensor *single_there;
    OK(td_tensor_empty(TD_F32, device, 0, NULL, &single_there));
    *(float *)single_there->data = 2;
    CHECK_INT(TD_APPLY(&y, mul, TD_T(host), TD_T(single_there)), TD_EDEVICE);
    CHECK(strstr(td_error_message(), "other"));
    OK(TD_APPLY(&y, mul, TD_T(single), TD_T(single_there)));
    CHECK(td_device_same(td_tensor_device(y), device));
    CHECK_INT(foreign, 0);
    td_release(y);
    td_release(single_there);
    td_release(single);
    td_release(there);
    td_release(host);
}

int main(void) {
    if (!OK(td_init()))
        return 1;
    RUN(every_primitive_has_a_text_and_a_loop_for_some_dtype);
    RUN(values_of_primitives_for_numbers_are_those_of_their_loops);
    RUN(formulas_have_no_size_that_is_too_large);
    RUN(formulas_that_are_wrong_say_where);
    RUN(wrong_gradients_fail_when_an_operator_is_registered);
    RUN(memory_that_runs_out_while_a_text_is_compiled_leaves_nothing_behind);
    RUN(what_one_pass_over_elements_cannot_say_is_refused);
    RUN(a_negative_zero_is_another_number);
    RUN(formulas_of_elements_are_written_as_expressions_are);
    RUN(gradients_of_pointwise_operators_may_share_names_and_be_sums);
    RUN(gradients_that_are_wanted_together_read_what_they_share_once);
    RUN(masks_are_bytes_and_become_numbers_where_they_are_computed_with);
    RUN(registers_may_have_a_dtype_of_their_own);
    RUN(results_may_be_operands_though_steps_after_them_read);
    RUN(outputs_of_one_value_are_all_written);
    RUN(sums_are_accurate_and_the_same_for_any_number_of_threads);
    RUN(sums_of_nothing_and_of_what_broadcasts);
    RUN(lists_of_any_shapes_run_together);
    RUN(large_results_are_written_whole);
    RUN(checks_find_a_true_element_wherever_it_is);
    RUN(integer_division_by_zero_leaves_the_tensor_as_it_was);
    RUN(single_elements_of_the_host_are_numbers_on_a_device);
    return check_finish();
}
