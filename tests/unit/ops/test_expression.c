/* test_expression.c: composites and gradients as expressions: what texts mean, what is refused and
 * how, what a gradient saves, how much is computed. */
#include "engine/ops/language/expression.h"
#include "engine/ops/language/schema.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>

#define OK(call) check_status(__FILE__, __LINE__, (call))

static bool check_status(const char *file, int line, td_status status) {
    if (status)
        check_fail(file, line, "%s: %s", td_status_text(status), td_error_message());
    return status == TD_OK;
}

static td_status prepare(td_op *op) {
    op->name = op->name ? op->name : "probe";
    td_status status = td_schema_parse(op);
    if (status == TD_OK)
        status = td_expression_check_row(op);
    return status ? status : td_expression_prepare(op);
}

/* Schemas and expressions live for ever in the engine; here they go. */
static void discard(td_op *op) {
    for (int k = 0; k < op->nparams; k++) {
        if (op->params[k].preset.kind == TD_KIND_STRING)
            td_free((void *)op->params[k].preset.string);
        td_free(op->params[k].name);
    }
    for (int k = 0; k < op->nresults; k++)
        td_free(op->result_names[k]);
    td_free(op->params);
    td_free((void *)op->backward_name);
    if (op->inplace_name && op->inplace_name != op->name)
        td_free((void *)op->inplace_name);
    td_free(op->composite);
    td_free(op->derivative);
}

static td_tensor *vector(int n, const double *values) {
    td_tensor *x;
    int64_t size = n;
    if (!OK(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, &size, &x)))
        exit(1);
    for (int k = 0; k < n; k++)
        ((double *)x->data)[k] = values[k];
    return x;
}
#define VECTOR(...)                                                                                \
    vector((int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})

static double element(const td_tensor *x, int k) {
    return ((const double *)x->data)[k];
}

/* The first element of a formula over x = {2, 3}, y = {5, 7} and the numbers n = 4 and t = 0.5. */
static double value_of(const char *formula) {
    td_op op = {.schema = "(Tensor x, Tensor y, int n, float t, dim[]? dim=nil, bool keep=true, "
                          "str mode=\"mean\") -> Tensor",
                .formula = formula};
    td_tensor *x = VECTOR(2, 3), *y = VECTOR(5, 7), *out = NULL, *flat = NULL;
    double value = NAN;
    if (OK(prepare(&op)) &&
        OK(td_op_apply(&op, &out, 4, (td_value[]){TD_T(x), TD_T(y), TD_I(4), TD_F(0.5)})) &&
        OK(td_contiguous_as(out, TD_F64, &flat)))
        value = element(flat, 0);
    td_release(out);
    td_release(flat);
    td_release(x);
    td_release(y);
    discard(&op);
    return value;
}

TEST(signs_bind_as_in_lua) {
    CHECK_CLOSE(value_of("x + y * x - x / y"), 2 + 5 * 2 - 0.4, 1e-12);
    CHECK_CLOSE(value_of("-x ^ 2"), -4, 1e-12);
    CHECK_CLOSE(value_of("x ^ -1 ^ 2"), 0.5, 1e-12);
    CHECK_CLOSE(value_of("(x - y) - x"), -5, 1e-12);
    CHECK_CLOSE(value_of("x - y - x"), -5, 1e-12);
}

TEST(comparisons_of_tensors_are_masks) {
    CHECK_CLOSE(value_of("(x < y) * 3"), 3, 0);
    CHECK_CLOSE(value_of("x == 2"), 1, 0);
    CHECK_CLOSE(value_of("x ~= x"), 0, 0);
    CHECK_CLOSE(value_of("(x >= 2) + (x <= 1) + (y > n)"), 1, 0);
    CHECK_CLOSE(value_of("ge(x, 2) + le(x, 1) + gt(y, n)"), 1, 0);
}

TEST(numbers_are_computed_on_the_spot) {
    CHECK_CLOSE(value_of("x * (n / 8 + t - -1)"), 4, 1e-12);
    CHECK_CLOSE(value_of("x * (2 * n - 1)"), 14, 1e-12);
    CHECK_CLOSE(value_of("x * n ^ t"), 4, 1e-12);
    CHECK_CLOSE(value_of("x * 1.5e1"), 30, 1e-12);
}

TEST(only_the_branch_that_is_chosen_is_computed) {
    CHECK_CLOSE(value_of("if(dim == nil, x, sum(x, dim))"), 2, 0);
    CHECK_CLOSE(value_of("if(n == 4 and t < 1, y, squeeze(x, 9))"), 5, 0);
    CHECK_CLOSE(value_of("if(keep == false or n > 5, squeeze(x, 9), y)"), 5, 0);
    CHECK_CLOSE(value_of("if(mode == \"mean\", x, y)"), 2, 0);
    CHECK_CLOSE(value_of("x * if(mode ~= \"sum\", if(x.ndim == 1, 10, 20), 30)"), 20, 0);
    CHECK_CLOSE(value_of("x * if(x.shape == y.shape, 1, 0)"), 2, 0);
}

TEST(attributes_and_lists) {
    CHECK_CLOSE(value_of("x * x.numel * x.size(-1) + y.ndim"), 9, 0);
    CHECK_CLOSE(value_of("x * zeros({2, 3}).size(1)"), 6, 0);
    CHECK_CLOSE(value_of("reshape(x, {x.size(0), 1})"), 2, 0);
    CHECK_CLOSE(value_of("cat({y, x}, 0)"), 5, 0);
    CHECK_CLOSE(value_of("zeros((x + y).shape) + x"), 2, 0);
    CHECK_CLOSE(value_of("to(x, dtype=y.dtype)"), 2, 0);
    CHECK_CLOSE(value_of("sum(x, 0, keepdim=keep)"), 5, 0);
    CHECK_CLOSE(value_of("cat(if(keep, split(y, 1), split(x, 1)))"), 5, 0);
}

TEST(bindings_and_results_by_name) {
    CHECK_CLOSE(value_of("s = x + y; q = s * s; q - s;"), 42, 0);
    CHECK_CLOSE(value_of("max_dim(y, 0).values"), 7, 0);
    CHECK_CLOSE(value_of("max_dim(y, 0).indices"), 1, 0);
}

/* More steps than numbers of 8 bits, more than what lies on the stack, names of any length. */
TEST(texts_have_no_size_that_is_too_large) {
    enum { TERMS = 400 };
    static char text[TERMS * 200];
    size_t n = 0;
    for (int k = 0; k < TERMS; k++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "a_name_that_is_so_long_that_no_room_of_one_size_would_hold_it_%d = "
                              "sum(cat({x * %d, x + %d}, 0)) + zeros({1, %d}).numel; ",
                              k, k, k, k);
    n += (size_t)snprintf(text + n, sizeof text - n, "stack({x");
    for (int k = 0; k < TERMS; k++)
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            ", x + a_name_that_is_so_long_that_no_room_of_one_size_would_hold_it_%d", k);
    snprintf(text + n, sizeof text - n, "}, 1)");
    td_op op = {.schema = "(Tensor x) -> Tensor", .formula = text};
    td_tensor *x = VECTOR(2, 3), *out = NULL;
    if (OK(prepare(&op)) && OK(td_op_apply(&op, &out, 1, (td_value[]){TD_T(x)}))) {
        CHECK_INT(out->sizes[1], TERMS + 1);
        CHECK_CLOSE(element(out, 0), 2, 0);
        for (int k = 0; k < TERMS; k += 57) /* x + the sum of x * k and x + k, + k */
            CHECK_CLOSE(element(out, k + 1), 2 + 5 * k + 5 + 2 * k + k, 0);
        CHECK_CLOSE(element(out, TERMS + 1 + TERMS), 3 + 8 * (TERMS - 1) + 5, 0);
    }
    td_release(x);
    td_release(out);
    discard(&op);
}

/* What fits neither 16 bits nor the depth of the parser is refused. */
TEST(texts_beyond_all_measure_are_refused) {
    enum { TERMS = 70000 };
    static char text[TERMS * 10] = "x";
    size_t n = 1;
    for (int k = 0; k < TERMS; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, " * %d", k);
    td_op op = {.schema = "(Tensor x) -> Tensor", .formula = text};
    CHECK_INT(prepare(&op), TD_EINTERNAL);
    CHECK_CONTAINS(td_error_message(), "more than 60000 steps or operands");
    discard(&op);
    memset(text, '(', TERMS);
    text[TERMS] = 0;
    op = (td_op){.schema = "(Tensor x) -> Tensor", .formula = text};
    CHECK_INT(prepare(&op), TD_EINTERNAL);
    CHECK_CONTAINS(td_error_message(), "too deep");
    discard(&op);
}

TEST(a_formula_of_several_results_labels_them) {
    td_op op = {.schema = "(Tensor x) -> (Tensor twice, Tensor half)",
                .formula = "half: x / 2; twice: x * 2"};
    td_tensor *x = VECTOR(6), *out[2] = {NULL};
    if (OK(prepare(&op)) && OK(td_op_apply(&op, out, 1, (td_value[]){TD_T(x)}))) {
        CHECK_CLOSE(element(out[0], 0), 12, 0);
        CHECK_CLOSE(element(out[1], 0), 3, 0);
    }
    td_release(out[0]);
    td_release(out[1]);
    td_release(x);
    discard(&op);
}

TEST(random_numbers_are_drawn_anew_each_time) {
    CHECK(value_of("rand_like(x) - rand_like(x)") != 0);
    CHECK_CLOSE(value_of("r = rand_like(x); r - r"), 0, 0);
}

static void note_peak(void *ctx, const td_event *event) {
    int64_t *peak = ctx;
    *peak = event->total > *peak ? event->total : *peak;
}

TEST(temporaries_go_after_their_last_reader) {
    td_op op = {.schema = "(Tensor x) -> Tensor",
                .formula = "exp(exp(exp(exp(exp(exp(exp(exp(x))))))))"};
    int64_t size = 100000, bytes = size * 8, peak = 0, before = 0;
    td_tensor *x = NULL, *out = NULL;
    td_observer o = {.ctx = &before, .kinds = 1u << TD_EVENT_ALLOC, .instant = note_peak};
    REQUIRE(OK(prepare(&op)));
    td_observer_set(&o);
    OK(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, &size, &x));
    OK(td_fill(x, 0.1));
    o.ctx = &peak;
    OK(td_op_apply(&op, &out, 1, (td_value[]){TD_T(x)}));
    td_observer_set(NULL);
    CHECK(before > 0);
    CHECK(peak - before >= bytes);
    CHECK(peak - before < 3 * bytes);
    td_release(out);
    td_release(x);
    discard(&op);
}

/* ---- what is refused ---- */

typedef struct bad_row {
    const char *schema, *formula, *gradient, *message;
} bad_row;

#define UNARY "(Tensor x, int n=1, Tensor? m=nil) -> Tensor"
#define PAIR  "(Tensor x, index Tensor i, Tensor[] list=nil) -> (Tensor a, Tensor b)"

static const bad_row bad_rows[] = {
    {UNARY, "nansun(x)", NULL, "formula, at 1 'nansun(x)': there is no operator 'nansun'"},
    {UNARY, "muladd(x, x, x)", NULL, "there is no operator 'muladd', only a primitive of"},
    {UNARY, "sum(x, 99999999999999999999)", NULL, "(dim) of sum is a number, dim[]? expected"},
    {UNARY, "x.ndim(0) * x", NULL, "ndim takes no dim"},
    {UNARY, "x + z", NULL, "at 5 'z': 'z' is no parameter or binding"},
    {UNARY, "x + ", NULL, "at 5 (the end): a value expected"},
    {UNARY, "(x + n", NULL, "')' expected"},
    {UNARY, "sum(x, 0", NULL, "',' or ')' expected"},
    {UNARY, "sum(x, dims=0)", NULL, "sum has no parameter 'dims'"},
    {UNARY, "sum(x, 0, dim=1)", NULL, "argument 2 (dim) of sum is given twice"},
    {UNARY, "exp(x, n)", NULL, "exp has only 1 parameters"},
    {UNARY, "transpose(x, 0)", NULL, "argument 3 (dim1) of transpose is missing"},
    {UNARY, "transpose(x, x, 0)", NULL, "argument 2 (dim0) of transpose is a tensor, dim expected"},
    {UNARY, "sum(x, \"all\")", NULL, "argument 2 (dim) of sum is a string, dim[]? expected"},
    {UNARY, "sum(x, \"all)", NULL, "the string has no end"},
    {UNARY, "n + 1", NULL, "this is a number, a tensor expected"},
    {UNARY, "x * true", NULL, "mul is a bool, Tensor|number expected"},
    {UNARY, "x * -\"a\"", NULL, "neg takes tensors and numbers, got a string"},
    {UNARY, "if(n == \"a\", x, x)", NULL, "a number is never equal to a string"},
    {UNARY, "if(n, x, x)", NULL, "a condition is a bool, got a number"},
    {UNARY, "if((x + x).ndim == 1, x, x)", NULL, "can't depend on what operators compute"},
    {UNARY, "if(n == 1, x)", NULL, "three parts expected: if(condition, then, else)"},
    {UNARY, "if(x == nil, x, x)", NULL, "only an optional parameter can be nil"},
    {UNARY, "x.color", NULL, "at 3 'color': a tensor has no 'color'"},
    {UNARY, "x * n.ndim", NULL, "only a tensor has 'ndim'"},
    {UNARY, "x * x.size", NULL, "size takes a dim: x.size(dim)"},
    {UNARY, "reshape(x, {1, 0.5})", NULL, "a list holds whole numbers, or tensors"},
    {UNARY, "error(\"no\")", NULL, "this is an error, a tensor expected"},
    {UNARY, "if(n == 1, x, error(n))", NULL, "an error begins with its text"},
    {UNARY, "if(n == 1, x, error(\"% %\", n))", NULL, "has 2 places, 1 values are given"},
    {UNARY, "if(n == 1, x, error(\"%\", x))", NULL, "value 1 is no number, string or shape"},
    {UNARY, "copy_(x, x)", NULL, "copy_ writes in place"},
    {UNARY, "max_dim(x, 0)", NULL, "this is several results, a tensor expected"},
    {UNARY, "max_dim(x, 0).value", NULL, "max_dim has no result 'value'"},
    {UNARY, "t = exp(x); x", NULL, "'t' is never read"},
    {UNARY, "n = 2; x * n", NULL, "the name 'n' is taken"},
    {UNARY, "x x", NULL, "an operator or the end expected"},
    {UNARY, "t = exp(x);", NULL, "'t' is never read"},
    {UNARY, "out: x; out: x", NULL, "a result is given twice"},
    {PAIR, "a: x", NULL, "an expression is missing"},
    {PAIR, "x", NULL, "'RESULT:' expected"},
    {UNARY, NULL, "g", "gradient, at 1 'g': 'PARAMETER:' expected"},
    {UNARY, NULL, "y: g", "'y' is no parameter"},
    {UNARY, NULL, "n: g", "'n' has no gradient, being no tensor of numbers"},
    {UNARY, NULL, "x: x", "the gradient of 'x' reads no incoming gradient, one expected"},
    {UNARY, NULL, "x: 2", "this is a number, a tensor expected"},
    {PAIR, NULL, "x: g", "this is several results, a tensor expected"},
    {PAIR, NULL, "x: g.c", "probe has no result 'c'"},
    {PAIR, NULL, "x: g.a + g.b", "reads several incoming gradients, one expected"},
    {PAIR, NULL, "i: g.a", "'i' has no gradient, being no tensor of numbers"},
    {PAIR, NULL, "list: g.a", "'list' is a list: its gradients need a C function"},
    {"(Tensor g) -> Tensor", NULL, "g: g", "no parameter may be called g"},
};

TEST(texts_that_are_wrong_are_refused_with_operator_and_place) {
    for (size_t k = 0; k < sizeof bad_rows / sizeof *bad_rows; k++) {
        const bad_row *row = &bad_rows[k];
        td_op op = {.schema = row->schema, .formula = row->formula, .gradient = row->gradient};
        if (prepare(&op) == TD_OK)
            check_fail(__FILE__, __LINE__, "accepted: %s",
                       row->formula ? row->formula : row->gradient);
        else {
            CHECK_INT(td_error_code(), TD_EINTERNAL);
            CHECK_CONTAINS(td_error_message(), "operator 'probe'");
            CHECK_CONTAINS(td_error_message(), row->message);
        }
        discard(&op);
    }
}

static td_status no_backward(td_grad *grad) {
    (void)grad;
    return TD_OK;
}
static td_status no_kernel(td_call *call) {
    (void)call;
    return TD_OK;
}

TEST(rows_that_do_not_hold_together_are_refused) {
    const struct {
        td_op op;
        const char *message;
    } rows[] = {
        {{.kernel = no_kernel}, "has no gradient"},
        {{.run = no_kernel, .flags = TD_OP_VIEW}, "has no gradient"},
        {{.run = no_kernel, .flags = TD_OP_INPLACE_ONLY}, "has no gradient"},
        {{.run = no_kernel, .formula = "x"}, "more than one of .run, .formula and .kernel"},
        {{.kernel = no_kernel, .formula = "x"}, "more than one of .run, .formula and .kernel"},
        {{.kernel = no_kernel, .backward = no_backward, .gradient = "x: g"}, "both .backward and"},
        {{.kernel = no_kernel, .gradient = "x: g * x", .saves = "x"},
         "what .gradient reads is saved"},
        {{.kernel = no_kernel, .gradient = "x: g", .flags = TD_OP_NONDIFF}, "says TD_OP_NONDIFF"},
        {{.kernel = no_kernel, .flags = TD_OP_NONDIFF}, NULL},
        {{.run = no_kernel}, NULL},
        {{.run = no_kernel, .autocast = {[TD_CUDA] = TD_AUTOCAST_CLASSES}},
         "an autocast class that there is not"},
        {{.run = no_kernel, .autocast = {[TD_CPU] = TD_AUTOCAST_FP32_RESULT}},
         "but no option dtype"},
        {{.kernel = no_kernel,
          .autocast = {[TD_CPU] = TD_AUTOCAST_FP32},
          .flags = TD_OP_INPLACE_ONLY | TD_OP_NONDIFF},
         "no tensors that could be cast"},
        {{.run = no_kernel,
          .autocast = {[TD_CPU] = TD_AUTOCAST_FP32, [TD_CUDA] = TD_AUTOCAST_BANNED}},
         NULL},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        td_op op = rows[k].op;
        op.name = "probe";
        op.schema = "(Tensor x) -> Tensor";
        REQUIRE(OK(td_schema_parse(&op)));
        td_status status = td_expression_check_row(&op);
        CHECK_INT(status, rows[k].message ? TD_EINTERNAL : TD_OK);
        if (status && rows[k].message)
            CHECK_CONTAINS(td_error_message(), rows[k].message);
        discard(&op);
    }
}

TEST(an_error_inside_bears_the_name_of_the_whole) {
    td_op op = {.name = "outermost", .schema = "(Tensor x) -> Tensor", .formula = "squeeze(x, 5)"};
    td_tensor *x = VECTOR(1), *out = NULL;
    if (OK(prepare(&op))) {
        CHECK_INT(td_op_apply(&op, &out, 1, (td_value[]){TD_T(x)}), TD_EINDEX);
        CHECK_CONTAINS(td_error_message(), "outermost: ");
    }
    CHECK(out == NULL);
    td_release(x);
    discard(&op);
}

TEST(errors_are_raised_where_they_are_chosen) {
    td_op op = {.name = "picky",
                .schema = "(Tensor x, int n) -> Tensor",
                .formula = "if(n >= 0, x, error(\"n is %, the shape %\", n, x.shape))"};
    td_tensor *x = VECTOR(1, 2), *out = NULL;
    if (OK(prepare(&op))) {
        OK(td_op_apply(&op, &out, 2, (td_value[]){TD_T(x), TD_I(3)}));
        CHECK(out == x);
        td_release(out);
        CHECK_INT(td_op_apply(&op, &out, 2, (td_value[]){TD_T(x), TD_I(-3)}), TD_EVALUE);
        CHECK_STR(td_error_message(), "picky: n is -3, the shape (2)");
    }
    td_release(x);
    discard(&op);
}

TEST(errors_show_numbers_and_texts) {
    td_op op = {.name = "picky",
                .schema = "(Tensor x, float p, str mode) -> Tensor",
                .formula = "if(x.floating, x, error(\"p is %, mode %\", p, mode))"};
    td_tensor *x = VECTOR(1, 2), *whole = NULL, *out = NULL;
    td_value args[] = {TD_T(x), TD_F(0.25), TD_STRING("fast")};
    if (OK(prepare(&op)) && OK(TD_APPLY(&whole, to, TD_T(x), TD_DTYPE(TD_I64)))) {
        OK(td_op_apply(&op, &out, 3, args));
        CHECK(out == x);
        td_release(out);
        args[0] = TD_T(whole);
        CHECK_INT(td_op_apply(&op, &out, 3, args), TD_EVALUE);
        CHECK_STR(td_error_message(), "picky: p is 0.25, mode fast");
    }
    td_release(x);
    td_release(whole);
    discard(&op);
}

/* As one with `run` and `backward`: the parts of the formula leave no nodes behind. */
TEST(a_formula_with_a_gradient_is_one_node) {
    td_op op = {.name = "twice",
                .schema = "(Tensor x) -> Tensor",
                .formula = "x + x",
                .gradient = "x: g * 7"};
    td_tensor *x = VECTOR(1, 2), *y = NULL, *sum = NULL;
    OK(td_set_requires_grad(x, true));
    if (OK(prepare(&op)) && OK(td_op_apply(&op, &y, 1, (td_value[]){TD_T(x)})) &&
        OK(TD_APPLY(&sum, sum, TD_T(y))) &&
        OK(td_backward(1, &sum, NULL, (td_backward_options){0}))) {
        CHECK_CLOSE(element(y, 1), 4, 0);
        CHECK_CLOSE(element(td_get_grad(x), 1), 7, 0);
    }
    td_release(x);
    td_release(y);
    td_release(sum);
    discard(&op);
}

TEST(memory_that_runs_out_leaves_nothing_behind) {
    td_op op = {.schema = "(Tensor x, Tensor y) -> Tensor",
                .formula = "t = max_dim(cat({x, y}, 0), 0).values; cat(split(t * x + y, 1))"};
    td_tensor *x = VECTOR(1, 2), *y = VECTOR(3, 4), *out = NULL;
    td_status status = TD_ENOMEM;
    op.name = "probe";
    REQUIRE(OK(td_schema_parse(&op)));
    for (int n = 1; status == TD_ENOMEM && n < 200; n++) {
        td_memory_fail_after(n);
        status = td_expression_prepare(&op);
        td_memory_fail_after(0);
    }
    REQUIRE(OK(status));
    status = TD_ENOMEM;
    for (int n = 1; status == TD_ENOMEM && n < 200; n++) {
        td_memory_fail_after(n);
        status = td_op_apply(&op, &out, 2, (td_value[]){TD_T(x), TD_T(y)});
        td_memory_fail_after(0);
    }
    if (OK(status))
        CHECK_CLOSE(element(out, 1), 12, 0);
    td_release(out);
    td_release(x);
    td_release(y);
    discard(&op);
}

/* ---- gradients ---- */

typedef struct count {
    int calls;
    char names[256];
} count;

static void note(void *ctx, const td_event *event) {
    count *c = ctx;
    c->calls++;
    size_t n = strlen(c->names);
    snprintf(c->names + n, sizeof c->names - n, "%s ", event->name);
}
static void ignore_end(void *ctx, const td_event *event) {
    (void)ctx;
    (void)event;
}

static td_status kernel_second(td_call *call) {
    return td_copy_into(call->out[0], call->args[1].tensor);
}

static td_op copy_second = {
    .name = "copy_second",
    .schema = "(Tensor x, Tensor y, int n=3) -> Tensor",
    .rule = td_rule_same,
    .kernel = kernel_second,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "s = exp(x.ndim * g); x: s * x; y: s * out; y: g",
};

TEST(a_gradient_saves_what_it_reads) {
    const struct {
        const char *text;
        uint32_t args;
        uint8_t outs;
    } rows[] = {
        {"x: expand_back(g, x.shape, n, false)", 0, 0},
        {"x: g * x", 1, 0},
        {"x: reshape(g, x.shape) * x.numel * x.size(0) * out", 0, 1},
        {"x: if(y == nil, g, sum_to(g, x.shape))", 0, 0},
        {"x: to(g, x.dtype); y: g * x", 1, 0},
        {"x: if(y == nil, g, g * y)", 2, 0},
        {"x: zeros(x.shape, device=x.device) + g", 1, 0},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        td_op op = {.schema = "(Tensor x, Tensor? y=nil, int n=0) -> Tensor",
                    .kernel = no_kernel,
                    .gradient = rows[k].text};
        if (OK(prepare(&op))) {
            CHECK_INT(op.save_args, rows[k].args);
            CHECK_INT(op.save_outs, rows[k].outs);
        }
        discard(&op);
    }
}

static td_tensor *copy_second_of(td_tensor *x, td_tensor *y) {
    td_tensor *out = NULL;
    OK(td_op_apply(&copy_second, &out, 2, (td_value[]){TD_T(x), TD_T(y)}));
    return out;
}

TEST(what_two_gradients_share_is_computed_once) {
    td_tensor *x = VECTOR(2), *y = VECTOR(3), *one = VECTOR(1), *grads[2] = {NULL};
    count c = {0};
    OK(td_set_requires_grad(x, true));
    OK(td_set_requires_grad(y, true));
    td_tensor *out = copy_second_of(x, y);
    td_observer o = {.ctx = &c, .kinds = 1u << TD_EVENT_OP, .begin = note, .end = ignore_end};
    td_observer_set(&o);
    OK(td_autograd_grad(1, &out, &one, 2, (td_tensor *[]){x, y},
                        (td_backward_options){.retain_graph = true}, false, grads));
    td_observer_set(NULL);
    CHECK_STR(c.names, "mul exp mul mul add ");
    if (grads[0] && grads[1]) {
        CHECK_CLOSE(element(grads[0], 0), exp(1) * 2, 1e-12);
        CHECK_CLOSE(element(grads[1], 0), exp(1) * 3 + 1, 1e-12);
    }
    td_release(grads[0]);
    td_release(grads[1]);
    td_release(out);
    td_release(x);
    td_release(y);
    td_release(one);
}

TEST(gradients_that_nobody_wants_are_not_computed) {
    td_tensor *x = VECTOR(2), *y = VECTOR(3), *one = VECTOR(1), *grad = NULL;
    count c = {0};
    OK(td_set_requires_grad(x, true));
    td_tensor *out = copy_second_of(x, y);
    td_observer o = {.ctx = &c, .kinds = 1u << TD_EVENT_OP, .begin = note, .end = ignore_end};
    td_observer_set(&o);
    OK(td_autograd_grad(1, &out, &one, 1, &x, (td_backward_options){0}, false, &grad));
    td_observer_set(NULL);
    CHECK_STR(c.names, "mul exp mul ");
    td_release(grad);
    td_release(out);
    td_release(x);
    td_release(y);
    td_release(one);
}

TEST(what_only_the_gradient_of_a_constant_reads_is_not_saved) {
    td_tensor *x = VECTOR(2), *y = VECTOR(3), *one = VECTOR(1), *grad = NULL;
    OK(td_set_requires_grad(y, true));
    td_tensor *out = copy_second_of(x, y);
    OK(TD_APPLY_INPLACE(zero_, TD_T(x)));
    if (OK(td_autograd_grad(1, &out, &one, 1, &y, (td_backward_options){0}, false, &grad)))
        CHECK_CLOSE(element(grad, 0), exp(1) * 3 + 1, 1e-12);
    td_release(grad);
    td_release(out);
    td_release(x);
    td_release(y);
    td_release(one);
}

/* Two expressions of one label are added; a value may be the gradient of several parameters. */
TEST(gradients_are_shared_and_added) {
    static td_op op = {.name = "probe",
                       .schema = "(Tensor x, Tensor y) -> Tensor",
                       .rule = td_rule_same,
                       .kernel = kernel_second,
                       .dtypes = TD_DTYPES_ALL,
                       .gradient = "t = g * 2; x: t; x: g * x; y: t; y: t"};
    td_tensor *x = VECTOR(5), *y = VECTOR(3), *one = VECTOR(1), *out = NULL, *grads[2] = {NULL};
    OK(td_set_requires_grad(x, true));
    OK(td_set_requires_grad(y, true));
    REQUIRE(OK(prepare(&op)));
    OK(td_op_apply(&op, &out, 2, (td_value[]){TD_T(x), TD_T(y)}));
    if (OK(td_autograd_grad(1, &out, &one, 2, (td_tensor *[]){x, y}, (td_backward_options){0},
                            false, grads))) {
        CHECK_CLOSE(element(grads[0], 0), 7, 0);
        CHECK_CLOSE(element(grads[1], 0), 4, 0);
    }
    td_release(grads[0]);
    td_release(grads[1]);
    td_release(out);
    td_release(x);
    td_release(y);
    td_release(one);
    discard(&op);
}

/* Of x * g * e^g by x: the expression records itself. */
TEST(gradients_of_gradients_come_by_themselves) {
    td_tensor *x = VECTOR(2), *y = VECTOR(3), *g = VECTOR(0.5), *grad = NULL, *second = NULL;
    OK(td_set_requires_grad(x, true));
    OK(td_set_requires_grad(g, true));
    td_tensor *out = copy_second_of(x, y);
    OK(td_autograd_grad(1, &out, &g, 1, &x, (td_backward_options){.create_graph = true}, false,
                        &grad));
    OK(td_autograd_grad(1, &grad, NULL, 1, &g, (td_backward_options){0}, false, &second));
    if (second)
        CHECK_CLOSE(element(second, 0), 2 * exp(0.5), 1e-12);
    td_release(second);
    td_release(grad);
    td_release(out);
    td_release(x);
    td_release(y);
    td_release(g);
}

TEST(what_was_reduced_is_expanded_back) {
    td_tensor *x = VECTOR(1, 2), *out = NULL;
    int64_t size[3] = {2, 3, 1}, dims[2] = {1, -1};
    OK(TD_APPLY(&out, expand_back, TD_T(x), TD_INTS(3, size), TD_INTS(2, dims), TD_B(false)));
    if (out) {
        CHECK_INT(out->ndim, 3);
        CHECK_INT(out->sizes[1], 3);
        CHECK_INT(out->strides[0], 1);
        CHECK_INT(out->strides[1], 0);
    }
    td_release(out);
    td_release(x);
}

int main(void) {
    if (!OK(td_init()) || !OK(prepare(&copy_second)))
        return 1;
    RUN(signs_bind_as_in_lua);
    RUN(comparisons_of_tensors_are_masks);
    RUN(numbers_are_computed_on_the_spot);
    RUN(only_the_branch_that_is_chosen_is_computed);
    RUN(attributes_and_lists);
    RUN(bindings_and_results_by_name);
    RUN(texts_have_no_size_that_is_too_large);
    RUN(texts_beyond_all_measure_are_refused);
    RUN(a_formula_of_several_results_labels_them);
    RUN(random_numbers_are_drawn_anew_each_time);
    RUN(temporaries_go_after_their_last_reader);
    RUN(texts_that_are_wrong_are_refused_with_operator_and_place);
    RUN(rows_that_do_not_hold_together_are_refused);
    RUN(an_error_inside_bears_the_name_of_the_whole);
    RUN(errors_are_raised_where_they_are_chosen);
    RUN(errors_show_numbers_and_texts);
    RUN(a_formula_with_a_gradient_is_one_node);
    RUN(memory_that_runs_out_leaves_nothing_behind);
    RUN(a_gradient_saves_what_it_reads);
    RUN(what_two_gradients_share_is_computed_once);
    RUN(gradients_that_nobody_wants_are_not_computed);
    RUN(what_only_the_gradient_of_a_constant_reads_is_not_saved);
    RUN(gradients_are_shared_and_added);
    RUN(gradients_of_gradients_come_by_themselves);
    RUN(what_was_reduced_is_expanded_back);
    int status = check_finish();
    discard(&copy_second);
    return status;
}
