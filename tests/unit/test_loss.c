/* test_loss.c: softmax and the losses against naive ones in double; their gradients and second
 * derivatives against finite differences; wrong targets. */
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>

#define OK(call) check_status(__FILE__, __LINE__, (call))

static bool check_status(const char *file, int line, td_status status) {
    if (status)
        check_fail(file, line, "%s: %s", td_status_text(status), td_error_message());
    return status == TD_OK;
}

static uint64_t seed = 7;

static double uniform(void) { /* (-1, 1) */
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 11) * 0x1p-52 - 1;
}

static td_tensor *of_shape(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    if (!OK(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x)))
        exit(1);
    return x;
}

static double get(const td_tensor *x, int64_t flat) {
    int64_t at = 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        at += flat % x->sizes[d] * x->strides[d];
        flat /= x->sizes[d];
    }
    return td_load_double(x->dtype, (char *)x->data + at * (int64_t)td_tensor_itemsize(x));
}

static void set(td_tensor *x, int64_t flat, double value) { /* row-major tensors */
    td_store_double(x->dtype, (char *)x->data + flat * (int64_t)td_tensor_itemsize(x), value);
}

static td_tensor *random_scores(td_dtype dtype, int ndim, const int64_t *sizes, double scale) {
    td_tensor *x = of_shape(dtype, ndim, sizes);
    for (int64_t k = 0; k < x->numel; k++)
        set(x, k, scale * uniform());
    return x;
}

static td_tensor *random_classes(int ndim, const int64_t *sizes, int64_t classes) {
    td_tensor *x = of_shape(TD_I64, ndim, sizes);
    for (int64_t k = 0; k < x->numel; k++)
        ((int64_t *)x->data)[k] = (int64_t)((uniform() + 1) / 2 * (double)classes);
    return x;
}

static td_tensor *with(td_dtype dtype, int64_t n, const double *values) {
    td_tensor *x = of_shape(dtype, 1, &n);
    for (int64_t k = 0; k < n; k++)
        set(x, k, values[k]);
    return x;
}
#define VECTOR(dtype, ...)                                                                         \
    with(dtype, (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)),                       \
         (double[]){__VA_ARGS__})

static double item(td_tensor *x) {
    double value = NAN;
    OK(td_tensor_item(x, &value));
    return value;
}

/* ---- softmax ---- */

/* Lines along `dim`: element k of line `line`. */
static int64_t along(const td_tensor *x, int dim, int64_t line, int64_t k) {
    int64_t inner = 1;
    for (int d = dim + 1; d < x->ndim; d++)
        inner *= x->sizes[d];
    return line / inner * inner * x->sizes[dim] + k * inner + line % inner;
}

static double log_sum(const td_tensor *x, int dim, int64_t line) {
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < x->sizes[dim]; k++)
        most = fmax(most, get(x, along(x, dim, line, k)));
    for (int64_t k = 0; k < x->sizes[dim]; k++)
        sum += exp(get(x, along(x, dim, line, k)) - most);
    return most + log(sum);
}

static void compare_softmax(td_tensor *x, int dim) {
    td_tensor *y = NULL, *logs = NULL;
    double tolerance = x->dtype == TD_F32 ? 3e-6 : 1e-13;
    REQUIRE(OK(TD_APPLY(&y, softmax, TD_T(x), TD_I(dim))));
    REQUIRE(OK(TD_APPLY(&logs, log_softmax, TD_T(x), TD_I(dim - x->ndim))));
    for (int64_t line = 0; line < x->numel / x->sizes[dim]; line++) {
        double lse = log_sum(x, dim, line);
        for (int64_t k = 0; k < x->sizes[dim]; k++) {
            int64_t at = along(x, dim, line, k);
            double want = get(x, at) - lse;
            if (!CHECK_CLOSE(get(y, at), exp(want), tolerance) ||
                !CHECK_CLOSE(get(logs, at), want, tolerance * (1 + fabs(want))))
                break;
        }
    }
    td_release(y);
    td_release(logs);
}

TEST(softmax_agrees_with_the_naive_one) {
    static const int64_t shapes[][3] = {{3, 10, 1}, {5, 1, 7},    {2, 33, 3},
                                        {1, 5, 70}, {4, 1000, 1}, {2, 600, 130}};
    for (int t = 0; t < 2; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int dim = 0; dim < 3; dim++) {
                td_tensor *x = random_scores(t ? TD_F64 : TD_F32, 3, shapes[s], 8);
                compare_softmax(x, dim);
                td_release(x);
            }
}

TEST(softmax_takes_strided_input) {
    td_tensor *base = random_scores(TD_F64, 2, (int64_t[]){6, 9}, 3), *x = NULL;
    REQUIRE(OK(td_tensor_view(base, 2, (int64_t[]){9, 6}, (int64_t[]){1, 9}, 0, &x)));
    compare_softmax(x, 0);
    compare_softmax(x, 1);
    td_release(x);
    td_release(base);
}

TEST(softmax_does_not_overflow) {
    td_tensor *x = VECTOR(TD_F32, 1000, 999, -INFINITY), *y = NULL;
    REQUIRE(OK(TD_APPLY(&y, softmax, TD_T(x), TD_I(0))));
    CHECK_CLOSE(get(y, 0), 1 / (1 + exp(-1)), 1e-6);
    CHECK_CLOSE(get(y, 2), 0, 0);
    td_release(y);
    REQUIRE(OK(TD_APPLY(&y, log_softmax, TD_T(x), TD_I(0))));
    CHECK_CLOSE(get(y, 1), -1 - log(1 + exp(-1)), 1e-6);
    CHECK_CLOSE(get(y, 2), -INFINITY, 0);
    td_release(y);
    td_release(x);
}

TEST(softmax_of_nothing_and_of_one) {
    td_tensor *x = of_shape(TD_F32, 2, (int64_t[]){3, 0}), *y = NULL;
    REQUIRE(OK(TD_APPLY(&y, softmax, TD_T(x), TD_I(1))));
    CHECK_INT(y->numel, 0);
    td_release(y);
    td_release(x);
    REQUIRE(OK(td_tensor_scalar(TD_F64, 3, &x)));
    REQUIRE(OK(TD_APPLY(&y, softmax, TD_T(x), TD_I(0))));
    CHECK_CLOSE(item(y), 1, 0);
    td_release(y);
    td_release(x);
}

TEST(softmax_with_a_dtype_converts_first) {
    td_tensor *x = VECTOR(TD_I64, 1, 2), *y = NULL;
    CHECK_INT(TD_APPLY(&y, softmax, TD_T(x), TD_I(0)), TD_EDTYPE);
    REQUIRE(OK(TD_APPLY(&y, softmax, TD_T(x), TD_I(0), TD_DTYPE(TD_F64))));
    CHECK_CLOSE(get(y, 1), 1 / (1 + exp(-1)), 1e-12);
    td_release(y);
    td_release(x);
}

/* ---- cross entropy ---- */

typedef struct options {
    td_tensor *weight;
    bool ignores;
    int64_t ignore;
    const char *reduction;
    double smoothing;
} options;

static td_status cross_entropy(td_tensor *x, td_tensor *target, options o, td_tensor **out) {
    return TD_APPLY(out, cross_entropy, TD_T(x), TD_T(target), td_tensor_or_nil(o.weight),
                    o.ignores ? TD_I(o.ignore) : TD_I(-100), TD_STRING(o.reduction),
                    TD_F(o.smoothing));
}

/* Loss of each line and its weight. */
static double line_loss(td_tensor *x, td_tensor *target, options o, int64_t line, double *weight) {
    int dim = x->ndim > 1;
    int64_t class = ((int64_t *)target->data)[line], classes = x->sizes[dim];
    double lse = log_sum(x, dim, line), uniform_loss = 0;
    *weight = 0;
    if (o.ignores && class == o.ignore)
        return 0;
    *weight = o.weight ? get(o.weight, class) : 1;
    for (int64_t k = 0; k < classes; k++)
        uniform_loss += (lse - get(x, along(x, dim, line, k))) * (o.weight ? get(o.weight, k) : 1);
    return (1 - o.smoothing) * *weight * (lse - get(x, along(x, dim, line, class))) +
           o.smoothing / (double)classes * uniform_loss;
}

static void compare_cross_entropy(td_tensor *x, td_tensor *target, options o) {
    double sum = 0, total = 0, tolerance = x->dtype == TD_F32 ? 1e-5 : 1e-12;
    static const char *const reductions[] = {"none", "sum", "mean"};
    for (int64_t line = 0; line < target->numel; line++) {
        double weight;
        sum += line_loss(x, target, o, line, &weight);
        total += weight;
    }
    for (int r = 0; r < 3; r++) {
        td_tensor *y = NULL;
        double weight;
        o.reduction = reductions[r];
        REQUIRE(OK(cross_entropy(x, target, o, &y)));
        if (r == 0) {
            REQUIRE(CHECK(td_tensor_same_shape(y, target)));
            for (int64_t line = 0; line < target->numel; line++)
                CHECK_CLOSE(get(y, line), line_loss(x, target, o, line, &weight), tolerance);
        } else {
            double want = r == 1 ? sum : sum / total;
            CHECK_INT(y->ndim, 0);
            CHECK_CLOSE(item(y), want, tolerance * (1 + fabs(want)));
        }
        td_release(y);
    }
}

static const struct {
    int ndim;
    int64_t sizes[4];
} scores[] = {{1, {6}}, {2, {5, 10}}, {2, {1, 100}}, {3, {2, 4, 7}}, {4, {3, 5, 2, 33}}};

/* The target's shape of scores[s]. */
static int lines_of(size_t s, int64_t *sizes) {
    int n = 0;
    for (int d = 0; d < scores[s].ndim; d++)
        if (d != (scores[s].ndim > 1))
            sizes[n++] = scores[s].sizes[d];
    return n;
}

static void for_each_scores(void (*check)(td_tensor *x, td_tensor *target), td_dtype dtype) {
    for (size_t s = 0; s < sizeof scores / sizeof *scores; s++) {
        int64_t sizes[4], classes = scores[s].sizes[scores[s].ndim > 1];
        int n = lines_of(s, sizes);
        td_tensor *x = random_scores(dtype, scores[s].ndim, scores[s].sizes, 4);
        td_tensor *target = random_classes(n, sizes, classes);
        check(x, target);
        td_release(x);
        td_release(target);
    }
}

static td_tensor *class_weight(const td_tensor *x) {
    td_tensor *weight = random_scores((td_dtype)x->dtype, 1, &x->sizes[x->ndim > 1], 0.5);
    for (int64_t k = 0; k < weight->numel; k++)
        set(weight, k, get(weight, k) + 1);
    return weight;
}

static void check_all_options(td_tensor *x, td_tensor *target) {
    td_tensor *weight = class_weight(x);
    compare_cross_entropy(x, target, (options){0});
    compare_cross_entropy(x, target, (options){.weight = weight});
    compare_cross_entropy(x, target, (options){.smoothing = 0.1});
    compare_cross_entropy(x, target, (options){.weight = weight, .smoothing = 0.3});
    if (target->numel > 1) {
        ((int64_t *)target->data)[1] = -100;
        options o = {.ignores = true, .ignore = -100};
        compare_cross_entropy(x, target, o);
        o.weight = weight;
        compare_cross_entropy(x, target, o);
        o.smoothing = 0.2;
        compare_cross_entropy(x, target, o);
    }
    td_release(weight);
}

TEST(cross_entropy_agrees_with_the_naive_one) {
    for_each_scores(check_all_options, TD_F64);
    for_each_scores(check_all_options, TD_F32);
}

static void check_nll(td_tensor *x, td_tensor *target) {
    td_tensor *logs = NULL, *a = NULL, *b = NULL, *weight = class_weight(x);
    REQUIRE(OK(TD_APPLY(&logs, log_softmax, TD_T(x), TD_I(x->ndim > 1))));
    static const char *const reductions[] = {"none", "sum", "mean"};
    for (int r = 0; r < 3; r++) {
        options o = {.weight = weight, .reduction = reductions[r]};
        REQUIRE(OK(cross_entropy(x, target, o, &a)));
        REQUIRE(OK(TD_APPLY(&b, nll_loss, TD_T(logs), TD_T(target), TD_T(weight), TD_I(-100),
                            TD_STRING(reductions[r]))));
        REQUIRE(CHECK(td_tensor_same_shape(a, b)));
        for (int64_t k = 0; k < a->numel; k++)
            CHECK_CLOSE(get(a, k), get(b, k), 1e-11 * (1 + fabs(get(a, k))));
        td_release(a);
        td_release(b);
    }
    td_release(logs);
    td_release(weight);
}

TEST(nll_of_log_softmax_is_cross_entropy) {
    for_each_scores(check_nll, TD_F64);
}

TEST(int32_targets_do_as_well) {
    td_tensor *x = random_scores(TD_F32, 2, (int64_t[]){3, 4}, 1), *y = NULL, *z = NULL;
    td_tensor *wide = VECTOR(TD_I64, 0, 3, 2), *narrow = VECTOR(TD_I32, 0, 3, 2);
    options o = {.reduction = "mean"};
    REQUIRE(OK(cross_entropy(x, wide, o, &y)));
    REQUIRE(OK(cross_entropy(x, narrow, o, &z)));
    CHECK_CLOSE(item(y), item(z), 0);
    td_release(x);
    td_release(y);
    td_release(z);
    td_release(wide);
    td_release(narrow);
}

TEST(probabilities_may_be_the_target) {
    td_tensor *x = random_scores(TD_F64, 2, (int64_t[]){3, 4}, 2), *y = NULL;
    td_tensor *target = of_shape(TD_F64, 2, (int64_t[]){3, 4}), *weight = class_weight(x);
    for (int64_t k = 0; k < 12; k++)
        set(target, k, (uniform() + 1) / 4);
    options o = {.weight = weight, .reduction = "mean", .smoothing = 0.25};
    double want = 0;
    for (int64_t line = 0; line < 3; line++)
        for (int64_t k = 0; k < 4; k++)
            want += (log_sum(x, 1, line) - get(x, line * 4 + k)) * get(weight, k) *
                    (0.75 * get(target, line * 4 + k) + 0.0625);
    REQUIRE(OK(cross_entropy(x, target, o, &y)));
    CHECK_CLOSE(item(y), want / 3, 1e-12);
    td_release(y);
    td_release(target);
    td_release(weight);
    td_release(x);
}

TEST(a_mean_over_ignored_lines_alone_is_nan) {
    td_tensor *x = random_scores(TD_F32, 2, (int64_t[]){2, 3}, 1), *y = NULL;
    td_tensor *target = VECTOR(TD_I64, 1, 1);
    REQUIRE(OK(cross_entropy(x, target,
                             (options){.ignores = true, .ignore = 1, .reduction = "mean"}, &y)));
    CHECK(isnan(item(y)));
    td_release(y);
    td_release(target);
    td_release(x);
}

/* ---- errors ---- */

static void expect_error(td_status got, td_status want, const char *part) {
    CHECK_INT(got, want);
    if (got)
        CHECK_CONTAINS(td_error_message(), part);
}

TEST(wrong_targets_are_named_counting_from_1) {
    td_tensor *x = random_scores(TD_F32, 2, (int64_t[]){4, 10}, 1), *y = NULL;
    td_tensor *high = VECTOR(TD_I64, 3, 9, 10, 1), *low = VECTOR(TD_I64, 3, -1, 0, 1);
    td_tensor *few = VECTOR(TD_I64, 1, 2), *real = VECTOR(TD_F32, 1, 2, 3, 4);
    td_tensor *weight = VECTOR(TD_F32, 1, 2, 3);
    options o = {.reduction = "mean"};
    expect_error(cross_entropy(x, high, o, &y), TD_EINDEX,
                 "target 11 at position 3 is not a class from 1 to 10");
    expect_error(cross_entropy(x, low, o, &y), TD_EINDEX, "at position 2 is not a class from 1");
    expect_error(cross_entropy(x, few, o, &y), TD_ESHAPE,
                 "cross_entropy: target of shape (2) doesn't fit x of shape (4, 10): expected (4)");
    expect_error(cross_entropy(x, real, o, &y), TD_ESHAPE, "probabilities");
    ((int64_t *)high->data)[2] = 2;
    o.reduction = "average";
    expect_error(cross_entropy(x, high, o, &y), TD_EVALUE,
                 "reduction is mean, sum or none, got average");
    o.reduction = "mean";
    o.weight = weight;
    expect_error(cross_entropy(x, high, o, &y), TD_ESHAPE, "weight of shape (3)");
    td_release(x);
    td_release(high);
    td_release(low);
    td_release(few);
    td_release(real);
    td_release(weight);
}

TEST(losses_refuse_shapes_that_differ) {
    td_tensor *x = random_scores(TD_F32, 2, (int64_t[]){4, 1}, 1), *y = NULL;
    td_tensor *target = VECTOR(TD_F32, 1, 2, 3, 4), *big = VECTOR(TD_F32, 0.5, 2, 0, 1);
    td_tensor *three = VECTOR(TD_F32, 1, 2, 3);
    expect_error(TD_APPLY(&y, mse_loss, TD_T(target), TD_T(three)), TD_ESHAPE, "(4) and (3)");
    td_release(three);
    expect_error(TD_APPLY(&y, binary_cross_entropy, TD_T(big), TD_T(target)), TD_EVALUE,
                 "between 0 and 1");
    td_release(x);
    td_release(big);
    td_release(target);
}

/* ---- element by element ---- */

static double naive_element(const char *op, double x, double t) {
    double d = x - t;
    if (!strcmp(op, "mse_loss"))
        return d * d;
    if (!strcmp(op, "l1_loss"))
        return fabs(d);
    if (!strcmp(op, "smooth_l1_loss"))
        return fabs(d) < 0.5 ? 0.5 * d * d / 0.5 : fabs(d) - 0.25;
    if (!strcmp(op, "huber_loss"))
        return fabs(d) < 0.5 ? 0.5 * d * d : 0.5 * (fabs(d) - 0.25);
    if (!strcmp(op, "binary_cross_entropy"))
        return -(t * fmax(log(x), -100) + (1 - t) * fmax(log1p(-x), -100));
    return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
}

static td_status apply_loss(const char *op, td_tensor *x, td_tensor *target, const char *reduction,
                            td_tensor **out) {
    td_value args[5] = {TD_T(x), TD_T(target), TD_STRING(reduction), TD_F(0.5)};
    bool beta = !strcmp(op, "smooth_l1_loss") || !strcmp(op, "huber_loss");
    int n = beta ? 4 : 3;
    if (!strcmp(op, "binary_cross_entropy")) {
        args[2] = TD_NIL;
        args[3] = TD_STRING(reduction);
        n = 4;
    } else if (!strcmp(op, "binary_cross_entropy_with_logits")) {
        args[2] = args[3] = TD_NIL;
        args[4] = TD_STRING(reduction);
        n = 5;
    }
    return td_op_apply(td_op_find(op), out, n, args);
}

static const char *const losses[] = {"mse_loss",
                                     "l1_loss",
                                     "smooth_l1_loss",
                                     "huber_loss",
                                     "binary_cross_entropy",
                                     "binary_cross_entropy_with_logits"};

TEST(elementwise_losses_agree_with_naive_ones) {
    for (size_t k = 0; k < sizeof losses / sizeof *losses; k++) {
        td_tensor *x = random_scores(TD_F64, 2, (int64_t[]){3, 7}, 1), *y = NULL;
        td_tensor *target = random_scores(TD_F64, 2, (int64_t[]){3, 7}, 1);
        bool unit = !strncmp(losses[k], "binary", 6);
        double sum = 0;
        for (int64_t j = 0; j < 21; j++) {
            if (unit) {
                set(target, j, (get(target, j) + 1) / 2);
                if (!strcmp(losses[k], "binary_cross_entropy"))
                    set(x, j, j == 0 ? 0 : j == 1 ? 1 : (get(x, j) + 1) / 2);
            }
            sum += naive_element(losses[k], get(x, j), get(target, j));
        }
        REQUIRE(OK(apply_loss(losses[k], x, target, "none", &y)));
        for (int64_t j = 0; j < 21; j++)
            CHECK_CLOSE(get(y, j), naive_element(losses[k], get(x, j), get(target, j)), 1e-12);
        td_release(y);
        REQUIRE(OK(apply_loss(losses[k], x, target, "sum", &y)));
        CHECK_CLOSE(item(y), sum, 1e-10);
        td_release(y);
        REQUIRE(OK(apply_loss(losses[k], x, target, "mean", &y)));
        CHECK_CLOSE(item(y), sum / 21, 1e-11);
        td_release(y);
        td_release(x);
        td_release(target);
    }
}

TEST(logits_take_weights) {
    td_tensor *x = VECTOR(TD_F64, 0.5, -2, 3), *target = VECTOR(TD_F64, 1, 0, 0.25), *y = NULL;
    td_tensor *weight = VECTOR(TD_F64, 1, 2, 3), *positive = VECTOR(TD_F64, 2, 3, 4);
    REQUIRE(OK(TD_APPLY(&y, binary_cross_entropy_with_logits, TD_T(x), TD_T(target), TD_T(weight),
                        TD_T(positive), TD_STRING("none"))));
    for (int64_t k = 0; k < 3; k++) {
        double v = get(x, k), t = get(target, k);
        CHECK_CLOSE(get(y, k),
                    get(weight, k) *
                        (get(positive, k) * t * log1p(exp(-v)) + (1 - t) * log1p(exp(v))),
                    1e-12);
    }
    td_release(x);
    td_release(y);
    td_release(target);
    td_release(weight);
    td_release(positive);
}

/* ---- gradients against finite differences ---- */

typedef td_status (*function)(td_tensor *x, td_tensor *extra, td_tensor **y);

/* sum(f(x) * c), with c = 1, 1.5, 2, ... so that no direction is special */
static td_status weighed(function f, td_tensor *x, td_tensor *extra, td_tensor **out) {
    td_tensor *y = NULL, *c = NULL, *product = NULL;
    td_status status = f(x, extra, &y);
    if (status)
        return status;
    c = of_shape((td_dtype)y->dtype, y->ndim, y->sizes);
    for (int64_t k = 0; k < c->numel; k++)
        set(c, k, 1 + 0.5 * (double)(k % 5));
    status = TD_APPLY(&product, mul, TD_T(y), TD_T(c));
    if (status == TD_OK)
        status = TD_APPLY(out, sum, TD_T(product));
    td_release(y);
    td_release(c);
    td_release(product);
    return status;
}

/* Gradient of `weighed`. */
static td_status gradient(function f, td_tensor *x, td_tensor *extra, bool create_graph,
                          td_tensor **g) {
    td_tensor *y = NULL;
    td_status status = weighed(f, x, extra, &y);
    if (status == TD_OK)
        status = td_autograd_grad(1, &y, NULL, 1, &x,
                                  (td_backward_options){.create_graph = create_graph}, false, g);
    td_release(y);
    return status;
}

/* sum(gradient^2), whose gradient is a second derivative */
static td_status squared_gradient(function f, td_tensor *x, td_tensor *extra, td_tensor **out) {
    td_tensor *g = NULL, *squares = NULL;
    td_status status = gradient(f, x, extra, true, &g);
    if (status == TD_OK)
        status = TD_APPLY(&squares, square, TD_T(g));
    if (status == TD_OK)
        status = TD_APPLY(out, sum, TD_T(squares));
    td_release(g);
    td_release(squares);
    return status;
}

static double value_at(function f, td_tensor *x, td_tensor *extra, bool second) {
    td_tensor *y = NULL;
    double value = NAN;
    if (OK(second ? squared_gradient(f, x, extra, &y) : weighed(f, x, extra, &y)))
        value = item(y);
    td_release(y);
    return value;
}

static void check_slopes(function f, td_tensor *x, td_tensor *extra, bool second) {
    td_tensor *g = NULL, *y = NULL;
    REQUIRE(OK(td_set_requires_grad(x, true)));
    if (second) {
        REQUIRE(OK(squared_gradient(f, x, extra, &y)));
        REQUIRE(OK(td_autograd_grad(1, &y, NULL, 1, &x, (td_backward_options){0}, false, &g)));
        td_release(y);
    } else {
        REQUIRE(OK(gradient(f, x, extra, false, &g)));
    }
    for (int64_t k = 0; k < x->numel; k++) {
        double v = get(x, k), step = 1e-5;
        set(x, k, v + step);
        double above = value_at(f, x, extra, second);
        set(x, k, v - step);
        double below = value_at(f, x, extra, second);
        set(x, k, v);
        double want = (above - below) / (2 * step);
        CHECK_CLOSE(get(g, k), want, 1e-6 * (1 + fabs(want)));
    }
    td_release(g);
}

static td_status f_softmax(td_tensor *x, td_tensor *extra, td_tensor **y) {
    (void)extra;
    return TD_APPLY(y, softmax, TD_T(x), TD_I(1));
}
static td_status f_log_softmax(td_tensor *x, td_tensor *extra, td_tensor **y) {
    (void)extra;
    return TD_APPLY(y, log_softmax, TD_T(x), TD_I(0));
}
static td_status f_cross_entropy(td_tensor *x, td_tensor *extra, td_tensor **y) {
    return cross_entropy(x, extra, (options){.reduction = "mean"}, y);
}
static td_status f_each_cross_entropy(td_tensor *x, td_tensor *extra, td_tensor **y) {
    return cross_entropy(x, extra, (options){.reduction = "none", .ignores = true, .ignore = 1}, y);
}
static td_status f_smoothed(td_tensor *x, td_tensor *extra, td_tensor **y) {
    return cross_entropy(x, extra, (options){.reduction = "sum", .smoothing = 0.2}, y);
}
static td_status f_nll(td_tensor *x, td_tensor *extra, td_tensor **y) {
    return TD_APPLY(y, nll_loss, TD_T(x), TD_T(extra));
}
static td_status f_logits(td_tensor *x, td_tensor *extra, td_tensor **y) {
    return apply_loss("binary_cross_entropy_with_logits", x, extra, "mean", y);
}
static td_status f_huber(td_tensor *x, td_tensor *extra, td_tensor **y) {
    return apply_loss("huber_loss", x, extra, "sum", y);
}

TEST(gradients_agree_with_finite_differences) {
    int64_t shape[] = {3, 4, 2}, lines[] = {3, 2};
    td_tensor *classes = random_classes(2, lines, 4);
    ((int64_t *)classes->data)[2] = 1;
    td_tensor *values = random_scores(TD_F64, 3, shape, 0.5);
    struct {
        function f;
        td_tensor *extra;
    } cases[] = {{f_softmax, NULL},          {f_log_softmax, NULL},
                 {f_cross_entropy, classes}, {f_each_cross_entropy, classes},
                 {f_smoothed, classes},      {f_nll, classes},
                 {f_logits, values},         {f_huber, values}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        td_tensor *x = random_scores(TD_F64, 3, shape, 1);
        check_slopes(cases[k].f, x, cases[k].extra, false);
        if (cases[k].f != f_nll) /* its slope is constant */
            check_slopes(cases[k].f, x, cases[k].extra, true);
        td_release(x);
    }
    td_release(classes);
    td_release(values);
}

TEST(cross_entropy_by_rows_has_the_same_gradient) {
    td_tensor *x = random_scores(TD_F64, 2, (int64_t[]){3, 17}, 2);
    td_tensor *classes = random_classes(1, (int64_t[]){3}, 17);
    check_slopes(f_cross_entropy, x, classes, false);
    check_slopes(f_cross_entropy, x, classes, true);
    td_release(x);
    td_release(classes);
}

TEST(logits_at_zero_have_a_gradient) {
    td_tensor *x = VECTOR(TD_F64, 0, 0), *target = VECTOR(TD_F64, 1, 0), *y = NULL, *g = NULL;
    REQUIRE(OK(td_set_requires_grad(x, true)));
    REQUIRE(OK(apply_loss("binary_cross_entropy_with_logits", x, target, "sum", &y)));
    REQUIRE(OK(td_autograd_grad(1, &y, NULL, 1, &x, (td_backward_options){0}, false, &g)));
    CHECK_CLOSE(get(g, 0), -0.5, 1e-15);
    CHECK_CLOSE(get(g, 1), 0.5, 1e-15);
    td_release(x);
    td_release(y);
    td_release(g);
    td_release(target);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(softmax_agrees_with_the_naive_one);
    RUN(softmax_takes_strided_input);
    RUN(softmax_does_not_overflow);
    RUN(softmax_of_nothing_and_of_one);
    RUN(softmax_with_a_dtype_converts_first);
    RUN(cross_entropy_agrees_with_the_naive_one);
    RUN(nll_of_log_softmax_is_cross_entropy);
    RUN(int32_targets_do_as_well);
    RUN(probabilities_may_be_the_target);
    RUN(a_mean_over_ignored_lines_alone_is_nan);
    RUN(wrong_targets_are_named_counting_from_1);
    RUN(losses_refuse_shapes_that_differ);
    RUN(elementwise_losses_agree_with_naive_ones);
    RUN(logits_take_weights);
    RUN(gradients_agree_with_finite_differences);
    RUN(cross_entropy_by_rows_has_the_same_gradient);
    RUN(logits_at_zero_have_a_gradient);
    return check_finish();
}
