/* test_reduce.c: the reductions against naive sums in double, over dtypes, layouts and dims; edge
 * cases, precision, errors, and gradients where they are special. */
#include "engine/core/denormals.h"
#include "engine/ops/plan/plan.h"
#include "engine/td.h"

#include "tests/check.h"

#include <stdlib.h>

#define OK(call) check_status(__FILE__, __LINE__, (call))

static bool check_status(const char *file, int line, td_status status) {
    if (status)
        check_fail(file, line, "%s: %s", td_status_text(status), td_error_message());
    return status == TD_OK;
}

static uint64_t seed = 1;

static double uniform(void) { /* (-1, 1) */
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 11) * 0x1p-52 - 1;
}

static void fill_random(td_tensor *x) {
    for (int64_t k = 0; k < x->numel; k++) {
        char *p = (char *)x->data + k * (int64_t)td_tensor_itemsize(x);
        double v = uniform();
        if (td_dtype_is_float(x->dtype))
            td_store_double(x->dtype, p, v);
        else
            td_store_int(x->dtype, p, x->dtype == TD_BOOL ? v > 0.3 : (int64_t)(4 + 4 * v));
    }
}

static void expect_error(td_status got, td_status want, const char *part) {
    CHECK_INT(got, want);
    if (got)
        CHECK_CONTAINS(td_error_message(), part);
}

typedef enum layout { ROW_MAJOR, REVERSED, SLICED, EXPANDED, LAYOUTS } layout;

/* A random tensor of this shape whose memory lies in one of several ways. */
static td_tensor *make(td_dtype dtype, layout how, int ndim, const int64_t *sizes) {
    td_tensor *base = NULL, *x = NULL;
    int64_t real[TD_MAX_DIMS] = {0}, strides[TD_MAX_DIMS], reversed[TD_MAX_DIMS];
    for (int d = 0; d < ndim; d++) {
        reversed[ndim - 1 - d] = sizes[d];
        real[d] = sizes[d] * (how == SLICED && d == ndim - 1 ? 2 : 1);
        if (how == EXPANDED && d == 0)
            real[d] = 1;
    }
    if (!OK(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, how == REVERSED ? reversed : real, &base)))
        exit(1);
    fill_random(base);
    for (int d = 0; d < ndim; d++) {
        strides[d] = how == REVERSED ? base->strides[ndim - 1 - d] : base->strides[d];
        if (how == SLICED && d == ndim - 1)
            strides[d] *= 2;
        if (how == EXPANDED && d == 0)
            strides[d] = 0;
    }
    if (!OK(td_tensor_view(base, ndim, sizes, strides, 0, &x)))
        exit(1);
    td_release(base);
    return x;
}

static td_tensor *of_values(td_dtype dtype, int ndim, const int64_t *sizes, const double *values) {
    td_tensor *x = NULL;
    if (!OK(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x)))
        exit(1);
    for (int64_t k = 0; k < x->numel; k++)
        td_store_double(dtype, (char *)x->data + k * (int64_t)td_tensor_itemsize(x), values[k]);
    return x;
}
#define VECTOR(dtype, ...)                                                                         \
    of_values(dtype, 1, (int64_t[]){(int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))},  \
              (double[]){__VA_ARGS__})

static double element(const td_tensor *x, int64_t flat) {
    int64_t at = 0;
    for (int d = x->ndim - 1; d >= 0; d--) {
        at += flat % x->sizes[d] * x->strides[d];
        flat /= x->sizes[d];
    }
    return td_load_double(x->dtype, (char *)x->data + at * (int64_t)td_tensor_itemsize(x));
}

/* ---- naive reductions of n values ---- */

static double naive(const char *op, const double *v, int64_t n) {
    double sum = 0, product = 1, largest = -INFINITY, least = INFINITY, squares = 0, sizes = 0;
    int64_t at_largest = 0, at_least = 0, nonzero = 0;
    for (int64_t k = 0; k < n; k++) {
        sum += v[k];
        product *= v[k];
        squares += v[k] * v[k];
        sizes += fabs(v[k]);
        nonzero += v[k] != 0;
        if (v[k] > largest) {
            largest = v[k];
            at_largest = k;
        }
        if (v[k] < least) {
            least = v[k];
            at_least = k;
        }
    }
    double mean = sum / (double)n, spread = 0, powers = 0, exps = 0, big = 0;
    for (int64_t k = 0; k < n; k++) {
        spread += (v[k] - mean) * (v[k] - mean);
        powers += pow(fabs(v[k]), 3);
        exps += exp(v[k] - largest);
        big = fmax(big, fabs(v[k]));
    }
    struct {
        const char *name;
        double value;
    } results[] = {{"sum", sum},
                   {"nansum", sum},
                   {"mean", mean},
                   {"prod", product},
                   {"amax", largest},
                   {"amin", least},
                   {"max_dim", largest},
                   {"min_dim", least},
                   {"argmax", (double)at_largest},
                   {"argmin", (double)at_least},
                   {"any", nonzero > 0},
                   {"all", nonzero == n},
                   {"count_nonzero", (double)nonzero},
                   {"var", spread / (double)(n - 1)},
                   {"std", sqrt(spread / (double)(n - 1))},
                   {"norm2", sqrt(squares)},
                   {"norm1", sizes},
                   {"norm0", (double)nonzero},
                   {"norm3", cbrt(powers)},
                   {"norminf", big},
                   {"logsumexp", log(exps) + largest}};
    for (size_t k = 0; k < sizeof results / sizeof *results; k++)
        if (!strcmp(results[k].name, op))
            return results[k].value;
    return NAN;
}

/* ---- an operator over dims, compared with the naive one ---- */

static td_status apply(const char *op, td_tensor *x, td_value dims, bool keepdim, td_tensor **out) {
    td_value keep = TD_B(keepdim);
    if (!strncmp(op, "norm", 4)) {
        double p = strcmp(op, "norminf") ? op[4] - '0' : INFINITY;
        return td_op_apply(td_op_find("norm"), out, 4, (td_value[]){TD_T(x), TD_F(p), dims, keep});
    }
    const td_op *found = td_op_find(op);
    if (!strcmp(op, "var") || !strcmp(op, "std"))
        return td_op_apply(found, out, 4, (td_value[]){TD_T(x), dims, TD_I(1), keep});
    return td_op_apply(found, out, 3, (td_value[]){TD_T(x), dims, keep});
}

static void compare(const char *op, td_tensor *x, uint32_t mask, td_value dims, bool keepdim) {
    td_tensor *out[TD_MAX_RESULTS] = {NULL};
    if (!OK(apply(op, x, dims, keepdim, out)))
        return;
    int64_t outputs = 1, count = 1;
    for (int d = 0; d < x->ndim; d++)
        *(mask >> d & 1 ? &count : &outputs) *= x->sizes[d];
    CHECK_INT(out[0]->numel, outputs);
    CHECK_INT(out[0]->ndim, keepdim ? x->ndim : x->ndim - __builtin_popcount(mask));
    double *groups = malloc(sizeof *groups * (size_t)(outputs * count + 1));
    int64_t *filled = calloc((size_t)outputs + 1, sizeof *filled);
    for (int64_t flat = 0; flat < x->numel; flat++) {
        int64_t rest = flat, output = 0, scale = 1;
        for (int d = x->ndim - 1; d >= 0; d--) {
            if (!(mask >> d & 1)) {
                output += rest % x->sizes[d] * scale;
                scale *= x->sizes[d];
            }
            rest /= x->sizes[d];
        }
        groups[output * count + filled[output]++] = element(x, flat);
    }
    double tolerance = out[0]->dtype == TD_F32 ? 4e-6 : 1e-11;
    for (int64_t k = 0; k < outputs; k++) {
        double want = naive(op, groups + k * count, count), got = element(out[0], k);
        if (!CHECK_CLOSE(got, want, tolerance * (1 + fabs(want)) * sqrt((double)count + 1)))
            fprintf(stderr, "  %s of %s, mask %u, output %lld of %lld\n", op,
                    td_dtype_name(x->dtype), mask, (long long)k, (long long)outputs);
        if (out[1])
            CHECK_CLOSE(groups[k * count + (int64_t)element(out[1], k)], want, 0);
    }
    free(groups);
    free(filled);
    td_release(out[0]);
    td_release(out[1]);
}

static void compare_all_masks(const char *op, td_tensor *x, bool one_dim) {
    for (uint32_t mask = 1; mask < 1u << x->ndim; mask++) {
        int64_t dims[TD_MAX_DIMS];
        int n = 0;
        for (int d = 0; d < x->ndim; d++)
            if (mask >> d & 1)
                dims[n++] = d % 2 ? d : d - x->ndim; /* some counted from the end */
        bool all = n == x->ndim;
        if (one_dim && n > 1 && !all)
            continue;
        td_value value = all ? TD_NIL : one_dim ? TD_I(dims[0]) : TD_INTS(n, dims);
        if (all && !strcmp(op + 3, "_dim"))
            value = TD_I(0);
        if (x->ndim > 1 || !all || value.kind == TD_KIND_NIL || x->ndim == 1)
            if (!(all && x->ndim > 1 && !strcmp(op + 3, "_dim")))
                compare(op, x, mask, value, mask % 2);
    }
}

static const int64_t shapes[][4] = {{5, 1, 1, 1},  {3, 70, 1, 1},  {70, 3, 1, 1},  {4, 33, 37, 1},
                                    {2, 3, 40, 5}, {600, 2, 3, 1}, {2, 1300, 1, 1}};
static const int ranks[] = {1, 2, 2, 3, 4, 3, 2};

static void compare_everywhere(const char *op, const td_dtype *dtypes, int ndtypes, bool one_dim) {
    for (int t = 0; t < ndtypes; t++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int how = 0; how < LAYOUTS; how++) {
                td_tensor *x = make(dtypes[t], (layout)how, ranks[s], shapes[s]);
                compare_all_masks(op, x, one_dim);
                td_release(x);
            }
}

static const td_dtype every[] = {TD_F32, TD_F64, TD_I64, TD_I32, TD_U8, TD_BOOL};
static const td_dtype floats[] = {TD_F32, TD_F64};

TEST(sums_agree_with_naive_ones) {
    compare_everywhere("sum", every, 6, false);
    compare_everywhere("nansum", floats, 2, false);
    compare_everywhere("mean", floats, 2, false);
    compare_everywhere("count_nonzero", every, 6, false);
}

TEST(products_agree_with_naive_ones) {
    compare_everywhere("prod", floats, 2, false);
}

TEST(extremes_agree_with_naive_ones) {
    compare_everywhere("amax", every, 6, false);
    compare_everywhere("amin", every, 6, false);
    compare_everywhere("any", every, 6, false);
    compare_everywhere("all", every, 6, false);
}

TEST(places_of_extremes_agree_with_naive_ones) {
    compare_everywhere("argmax", every, 6, true);
    compare_everywhere("argmin", every, 6, true);
    compare_everywhere("max_dim", every, 6, true);
    compare_everywhere("min_dim", every, 6, true);
}

TEST(variances_agree_with_naive_ones) {
    for (size_t s = 1; s < sizeof shapes / sizeof *shapes; s++) /* of one element: NaN */
        for (int how = 0; how < LAYOUTS; how++)
            for (int t = 0; t < 2; t++) {
                td_tensor *x = make(floats[t], (layout)how, ranks[s], shapes[s]);
                compare_all_masks("var", x, false);
                compare_all_masks("std", x, false);
                td_release(x);
            }
}

TEST(norms_agree_with_naive_ones) {
    compare_everywhere("norm2", floats, 2, false);
    compare_everywhere("norm1", floats, 2, false);
    compare_everywhere("norm0", floats, 2, false);
    compare_everywhere("norm3", floats, 2, false);
    compare_everywhere("norminf", floats, 2, false);
    compare_everywhere("logsumexp", floats, 2, false);
}

/* ---- sizes that are cut into pieces ---- */

TEST(large_inputs_agree_with_naive_ones) {
    static const char *const ops[] = {"sum", "prod",  "amax", "amin",   "mean",
                                      "var", "norm2", "any",  "argmax", "argmin"};
    static const int64_t large[][2] = {{300000, 1}, {60001, 7}, {3, 200001}};
    for (size_t s = 0; s < 3; s++)
        for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
            td_tensor *x = make(TD_F64, ROW_MAJOR, 2, large[s]);
            bool find = !strncmp(ops[k], "arg", 3);
            int64_t zero = 0, one = 1;
            compare(ops[k], x, 3, TD_NIL, false);
            compare(ops[k], x, 1, find ? TD_I(0) : TD_INTS(1, &zero), false);
            if (large[s][1] > 1)
                compare(ops[k], x, 2, find ? TD_I(1) : TD_INTS(1, &one), true);
            td_release(x);
        }
}

static double full(const char *op, td_tensor *x) {
    td_tensor *out[TD_MAX_RESULTS] = {NULL};
    double value = NAN;
    if (OK(apply(op, x, TD_NIL, false, out)))
        OK(td_tensor_item(out[0], &value));
    td_release(out[0]);
    return value;
}

/* Rows of a few elements are taken several at a time. */
TEST(short_rows_are_the_same_as_each_alone) {
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_BF16, TD_I64, TD_I16, TD_U8};
    const td_op *ops[] = {TD_OP(sum), TD_OP(amax), TD_OP(amin), TD_OP(count_nonzero)};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int64_t n = 1; n <= 40; n += n < 6 ? 1 : 5)
            for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
                td_tensor *x = make(dtypes[d], ROW_MAJOR, 2, (int64_t[]){37, n}), *all = NULL;
                if (td_dtype_is_float(dtypes[d]))
                    td_store_double(dtypes[d], x->data, NAN);
                if (!OK(td_op_apply(ops[o], &all, 2,
                                    (td_value[]){TD_T(x), TD_INTS(1, (int64_t[]){1})})))
                    return;
                for (int64_t r = 0; r < 37; r++) {
                    td_tensor *row = NULL, *one = NULL;
                    OK(TD_APPLY(&row, select, TD_T(x), TD_I(0), TD_I(r)));
                    OK(td_op_apply(ops[o], &one, 2,
                                   (td_value[]){TD_T(row), TD_INTS(1, (int64_t[]){0})}));
                    size_t size = td_tensor_itemsize(one);
                    double a = td_load_double((td_dtype)one->dtype, one->data);
                    double b =
                        td_load_double((td_dtype)all->dtype, (char *)all->data + (size_t)r * size);
                    CHECK(a == b || (a != a && b != b));
                    td_release(row);
                    td_release(one);
                }
                td_release(x);
                td_release(all);
            }
}

TEST(results_do_not_depend_on_threads) {
    td_tensor *x = make(TD_F32, ROW_MAJOR, 2, (int64_t[]){5000, 77});
    static const char *const ops[] = {"sum", "var", "norm2", "prod"};
    int before = td_get_num_threads();
    for (size_t k = 0; k < 4; k++) {
        td_tensor *a, *b;
        int64_t dims[2] = {0, 1};
        for (int n = 1; n <= 2; n++) {
            REQUIRE(OK(td_set_num_threads(1)));
            REQUIRE(OK(apply(ops[k], x, TD_INTS(n, dims), false, &a)));
            REQUIRE(OK(td_set_num_threads(3)));
            REQUIRE(OK(apply(ops[k], x, TD_INTS(n, dims), false, &b)));
            CHECK(!memcmp(a->data, b->data, (size_t)a->numel * sizeof(float)));
            td_release(a);
            td_release(b);
        }
    }
    OK(td_set_num_threads(before));
    td_release(x);
}

TEST(a_hundred_million_ones_sum_exactly) {
    td_tensor *x = NULL, *wide = NULL, *y = NULL;
    float one = 1;
    int64_t sizes[] = {10000, 10000}, strides[] = {0, 1}, zero = 0;
    REQUIRE(OK(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &sizes[0], &x)));
    for (int64_t k = 0; k < x->numel; k++)
        ((float *)x->data)[k] = one;
    REQUIRE(OK(td_tensor_view(x, 2, sizes, strides, 0, &wide)));
    CHECK_CLOSE(full("sum", wide), 1e8, 0);
    REQUIRE(OK(apply("sum", wide, TD_INTS(1, &zero), false, &y)));
    CHECK_CLOSE(element(y, 17), 1e4, 0);
    td_release(x);
    td_release(wide);
    td_release(y);
}

TEST(sums_of_float32_keep_small_terms) {
    int64_t n = 1 << 20;
    td_tensor *x = NULL;
    REQUIRE(OK(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x)));
    double exact = 0;
    for (int64_t k = 0; k < n; k++) {
        float v = 0.1f + (float)(k % 7) * 1e-3f;
        ((float *)x->data)[k] = v;
        exact += (double)v;
    }
    CHECK_CLOSE(full("sum", x) / exact, 1, 1e-7);
    td_release(x);
}

TEST(variance_survives_a_large_mean) {
    int64_t n = 10000;
    td_tensor *x = NULL;
    REQUIRE(OK(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x)));
    for (int64_t k = 0; k < n; k++)
        ((float *)x->data)[k] = 100000.0f + (float)(k % 2);
    CHECK_CLOSE(full("var", x), 0.25 * (double)n / (double)(n - 1), 1e-6);
    td_release(x);
}

/* The mean lies between two neighbouring float32: what its rounding adds is taken off again. */
TEST(variance_is_exact_where_float32_cannot_hold_the_mean) {
    for (int64_t n = 2; n < 8; n += 2) { /* few enough that the mean itself is exact */
        td_tensor *x = make(TD_F32, ROW_MAJOR, 1, &n);
        for (int64_t k = 0; k < n; k++)
            ((float *)x->data)[k] = 16777216.0f + (float)(2 * (k % 2));
        CHECK_CLOSE(full("var", x), (double)n / (double)(n - 1), 1e-6);
        td_release(x);
    }
}

/* ---- special values ---- */

TEST(nan_wins_in_extremes) {
    for (int t = 0; t < 2; t++)
        for (int64_t n = 3; n < 300; n += 60)
            for (int64_t at = 0; at < n; at += n / 3) {
                td_tensor *x = make(floats[t], ROW_MAJOR, 1, &n);
                char *data = x->data;
                size_t size = td_tensor_itemsize(x);
                td_store_double(floats[t], data + (size_t)at * size, NAN);
                td_store_double(floats[t], data + (size_t)(n - 1) * size, NAN);
                CHECK(isnan(full("amax", x)));
                CHECK(isnan(full("amin", x)));
                CHECK_INT(full("argmax", x), at);
                CHECK_INT(full("argmin", x), at);
                CHECK(isnan(full("sum", x)));
                CHECK(!isnan(full("nansum", x)));
                td_release(x);
            }
}

/* Cut into pieces, of which one alone has the NaN. */
TEST(nan_wins_wherever_it_is_in_a_long_row) {
    const int64_t n = 300000;
    for (int64_t at = 0; at < n; at += 99999) {
        td_tensor *x = make(TD_F32, ROW_MAJOR, 1, &n);
        ((float *)x->data)[at] = NAN;
        CHECK(isnan(full("amax", x)));
        CHECK(isnan(full("amin", x)));
        CHECK_INT(full("argmax", x), at);
        CHECK_INT(full("argmin", x), at);
        td_release(x);
    }
}

TEST(nan_wins_in_columns) {
    td_tensor *x = make(TD_F32, ROW_MAJOR, 2, (int64_t[]){4, 40}), *out[2] = {NULL};
    float *v = x->data;
    v[2 * 40 + 5] = NAN;
    v[3 * 40 + 5] = NAN;
    REQUIRE(OK(apply("max_dim", x, TD_I(0), false, out)));
    CHECK(isnan(element(out[0], 5)));
    CHECK_INT(element(out[1], 5), 2);
    CHECK(!isnan(element(out[0], 6)));
    td_release(out[0]);
    td_release(out[1]);
    td_release(x);
}

TEST(the_first_of_equals_is_found) {
    td_tensor *x = VECTOR(TD_F32, 1, 3, 3, 1, 3);
    CHECK_INT(full("argmax", x), 1);
    CHECK_INT(full("argmin", x), 0);
    td_release(x);
    x = VECTOR(TD_I64, 7, 7, 2, 2);
    CHECK_INT(full("argmax", x), 0);
    CHECK_INT(full("argmin", x), 2);
    td_release(x);
}

TEST(infinities_pass_through) {
    td_tensor *x = VECTOR(TD_F64, -INFINITY, -INFINITY);
    CHECK_CLOSE(full("amax", x), -INFINITY, 0);
    CHECK_CLOSE(full("logsumexp", x), -INFINITY, 0);
    CHECK_INT(full("argmax", x), 0);
    td_release(x);
    x = VECTOR(TD_F64, INFINITY, 1);
    CHECK_CLOSE(full("logsumexp", x), INFINITY, 0);
    CHECK_CLOSE(full("sum", x), INFINITY, 0);
    td_release(x);
}

TEST(integer_sums_are_int64) {
    td_tensor *x = VECTOR(TD_I32, 2147483647, 2147483647), *y = NULL;
    REQUIRE(OK(apply("sum", x, TD_NIL, false, &y)));
    CHECK_INT(y->dtype, TD_I64);
    CHECK_INT(*(int64_t *)y->data, 4294967294);
    td_release(y);
    td_release(x);
    x = VECTOR(TD_BOOL, 1, 1, 0);
    REQUIRE(OK(apply("sum", x, TD_NIL, false, &y)));
    CHECK_INT(y->dtype, TD_I64);
    CHECK_INT(*(int64_t *)y->data, 2);
    td_release(y);
    td_release(x);
}

TEST(dtype_is_converted_before_the_sum) {
    td_tensor *x = VECTOR(TD_F32, 1.7, 1.7), *y = NULL;
    REQUIRE(OK(TD_APPLY(&y, sum, TD_T(x), TD_NIL, TD_B(false), TD_DTYPE(TD_I64))));
    CHECK_INT(*(int64_t *)y->data, 2);
    td_release(y);
    REQUIRE(OK(TD_APPLY(&y, sum, TD_T(x), TD_NIL, TD_B(false), TD_DTYPE(TD_F64))));
    CHECK_CLOSE(*(double *)y->data, 2 * (double)1.7f, 0);
    td_release(y);
    td_release(x);
    x = VECTOR(TD_I64, 1, 2);
    REQUIRE(OK(TD_APPLY(&y, mean, TD_T(x), TD_NIL, TD_B(false), TD_DTYPE(TD_F32))));
    CHECK_CLOSE(*(float *)y->data, 1.5, 0);
    td_release(y);
    td_release(x);
}

/* sum(x, dtype) of each layout against the sum of x converted first. */
static void compare_converted(td_dtype from, td_dtype to, double tolerance) {
    static const int64_t sizes[][2] = {{1500, 3}, {3, 1500}, {40, 50}, {300, 500}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int how = 0; how < LAYOUTS; how++)
            for (int64_t dim = -1; dim < 2; dim++) {
                td_tensor *x = make(from, (layout)how, 2, sizes[s]), *as = NULL, *want = NULL;
                td_tensor *got = NULL;
                td_value dims = dim < 0 ? TD_NIL : TD_INTS(1, &dim);
                REQUIRE(OK(TD_APPLY(&as, to, TD_T(x), TD_DTYPE(to))));
                REQUIRE(OK(TD_APPLY(&want, sum, TD_T(as), dims)));
                REQUIRE(OK(TD_APPLY(&got, sum, TD_T(x), dims, TD_B(false), TD_DTYPE(to))));
                CHECK_INT(got->dtype, to);
                for (int64_t k = 0; k < got->numel; k++)
                    CHECK_CLOSE(element(got, k), element(want, k), tolerance);
                td_release(x);
                td_release(as);
                td_release(want);
                td_release(got);
            }
}

TEST(elements_are_converted_as_they_are_read) {
    compare_converted(TD_I32, TD_F32, 0);
    compare_converted(TD_U8, TD_F64, 0);
    compare_converted(TD_F64, TD_I64, 0);
    compare_converted(TD_F32, TD_F64, 1e-9);
    compare_converted(TD_BOOL, TD_I32, 0);
}

TEST(a_reducer_that_a_dtype_lacks_is_refused) {
    td_tensor *x = VECTOR(TD_I64, 1, 2), *y = VECTOR(TD_I64, 0);
    td_reduce_plan plan = {.x = x, .out = y, .mask = 1, .compute = TD_I64};
    plan.reducer = TD_REDUCE_ABS_SUM;
    expect_error(TD_RUN(TD_DEVICE_CPU, reduce, &plan), TD_EDTYPE, "not implemented for int64");
    td_release(x);
    td_release(y);
}

TEST(empty_inputs_give_the_neutral_element) {
    td_tensor *x = NULL, *y = NULL;
    int64_t sizes[] = {0, 3}, zero = 0;
    REQUIRE(OK(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, sizes, &x)));
    CHECK_CLOSE(full("sum", x), 0, 0);
    CHECK_CLOSE(full("prod", x), 1, 0);
    CHECK(isnan(full("mean", x)));
    CHECK(isnan(full("var", x)));
    CHECK_CLOSE(full("any", x), 0, 0);
    CHECK_CLOSE(full("all", x), 1, 0);
    CHECK_CLOSE(full("norm2", x), 0, 0);
    CHECK_CLOSE(full("logsumexp", x), -INFINITY, 0);
    REQUIRE(OK(apply("sum", x, TD_INTS(1, &zero), false, &y)));
    CHECK_INT(y->numel, 3);
    CHECK_CLOSE(element(y, 2), 0, 0);
    td_release(y);
    int64_t one = 1;
    REQUIRE(OK(apply("amax", x, TD_INTS(1, &one), false, &y)));
    CHECK_INT(y->numel, 0);
    td_release(y);
    td_release(x);
}

TEST(zero_dims_reduce_to_themselves) {
    td_tensor *x = NULL, *y = NULL;
    int64_t last = -1;
    REQUIRE(OK(td_tensor_scalar(TD_F64, 2.5, &x)));
    CHECK_CLOSE(full("sum", x), 2.5, 0);
    CHECK_CLOSE(full("amax", x), 2.5, 0);
    CHECK_INT(full("argmax", x), 0);
    REQUIRE(OK(apply("prod", x, TD_INTS(1, &last), true, &y)));
    CHECK_INT(y->ndim, 0);
    td_release(y);
    td_release(x);
}

TEST(variance_with_too_little_is_nan) {
    td_tensor *x = VECTOR(TD_F32, 3), *y = NULL;
    CHECK(isnan(full("var", x)));
    CHECK(isnan(full("std", x)));
    REQUIRE(OK(TD_APPLY(&y, var, TD_T(x), TD_NIL, TD_I(0))));
    CHECK_CLOSE(element(y, 0), 0, 0);
    td_release(y);
    REQUIRE(OK(TD_APPLY(&y, var, TD_T(x), TD_NIL, TD_I(1), TD_B(false), TD_B(false))));
    CHECK_CLOSE(element(y, 0), 0, 0);
    td_release(y);
    td_release(x);
}

TEST(max_returns_indices_only_with_a_dim) {
    td_tensor *x = make(TD_F32, ROW_MAJOR, 2, (int64_t[]){3, 4}), *out[2];
    REQUIRE(OK(TD_APPLY(out, max, TD_T(x))));
    CHECK_INT(out[0]->numel, 1);
    CHECK(out[1] == NULL);
    td_release(out[0]);
    REQUIRE(OK(TD_APPLY(out, min, TD_T(x), TD_I(-1), TD_B(true))));
    CHECK_INT(out[0]->ndim, 2);
    REQUIRE(CHECK(out[1] != NULL));
    CHECK_INT(out[1]->dtype, TD_I64);
    td_release(out[0]);
    td_release(out[1]);
    td_release(x);
}

/* ---- running sums ---- */

TEST(cumsum_runs_along_any_dim) {
    for (int how = 0; how < LAYOUTS; how++)
        for (int dim = 0; dim < 3; dim++) {
            int64_t sizes[] = {3, 5, 300};
            td_tensor *x = make(TD_F64, (layout)how, 3, sizes), *y = NULL;
            REQUIRE(OK(TD_APPLY(&y, cumsum, TD_T(x), TD_I(dim))));
            int64_t step = dim == 0 ? 1500 : dim == 1 ? 300 : 1;
            for (int64_t flat = 0; flat < x->numel; flat++) {
                bool first = flat / step % sizes[dim] == 0;
                double before = first ? 0 : element(y, flat - step);
                if (!CHECK_CLOSE(element(y, flat), before + element(x, flat), 1e-12))
                    break;
            }
            td_release(y);
            td_release(x);
        }
}

TEST(cumsum_reads_and_writes_any_layout) {
    for (int how = 0; how < LAYOUTS; how++)
        for (int given_how = 0; given_how < EXPANDED; given_how++)
            for (int64_t dim = 0; dim < 2; dim++) {
                td_tensor *x = make(TD_I32, (layout)how, 2, (int64_t[]){1100, 30});
                td_tensor *y = make(TD_F64, (layout)given_how, 2, (int64_t[]){1100, 30});
                td_scan_plan plan = {.x = x, .out = y, .dim = (int)dim};
                int64_t step = dim == 0 ? 30 : 1;
                REQUIRE(OK(TD_RUN(TD_DEVICE_CPU, scan, &plan)));
                for (int64_t k = 0; k < x->numel; k++) {
                    bool first = dim == 0 ? k < 30 : k % 30 == 0;
                    double before = first ? 0 : element(y, k - step);
                    if (element(y, k) != before + element(x, k))
                        CHECK_CLOSE(element(y, k), before + element(x, k), 0);
                }
                td_release(x);
                td_release(y);
            }
}

TEST(cumsum_of_integers_is_int64) {
    td_tensor *x = VECTOR(TD_U8, 200, 100), *y = NULL;
    REQUIRE(OK(TD_APPLY(&y, cumsum, TD_T(x), TD_I(0))));
    CHECK_INT(y->dtype, TD_I64);
    CHECK_INT(((int64_t *)y->data)[1], 300);
    td_release(y);
    td_release(x);
}

/* ---- sum_to ---- */

TEST(sum_to_size_undoes_broadcasting) {
    static const struct {
        int ndim;
        int64_t sizes[4];
        uint32_t mask;
    } cases[] = {{2, {4, 5}, 3},        {1, {5}, 7},       {0, {0}, 15},
                 {4, {1, 3, 1, 1}, 13}, {3, {3, 4, 1}, 9}, {4, {2, 3, 4, 5}, 0}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int how = 0; how < LAYOUTS; how++) {
            td_tensor *x = make(TD_F64, (layout)how, 4, (int64_t[]){2, 3, 4, 5}), *y = NULL,
                      *want = NULL;
            int64_t dims[4];
            int n = 0;
            for (int d = 0; d < 4; d++)
                if (cases[k].mask >> d & 1)
                    dims[n++] = d;
            REQUIRE(OK(TD_APPLY(&y, sum_to, TD_T(x), TD_INTS(cases[k].ndim, cases[k].sizes))));
            CHECK_INT(y->ndim, cases[k].ndim);
            if (n > 0)
                REQUIRE(OK(apply("sum", x, TD_INTS(n, dims), false, &want)));
            else
                want = td_retain(x);
            REQUIRE(CHECK_INT(y->numel, want->numel));
            for (int64_t j = 0; j < y->numel; j++)
                CHECK_CLOSE(element(y, j), element(want, j), 1e-12);
            td_release(x);
            td_release(y);
            td_release(want);
        }
}

/* ---- results given by the user ---- */

TEST(results_are_written_in_place_of_any_layout) {
    td_tensor *x = make(TD_F32, ROW_MAJOR, 2, (int64_t[]){30, 20}), *y = NULL;
    td_tensor *given = make(TD_F32, SLICED, 1, (int64_t[]){20});
    const td_op *sum = td_op_find("sum");
    int64_t zero = 0;
    td_value args[] = {TD_T(x), TD_INTS(1, &zero), TD_B(false), TD_NIL};
    td_call call = {.op = sum, .args = args, .given = &given, .ngiven = 1};
    REQUIRE(OK(td_op_call(&call)));
    REQUIRE(OK(apply("sum", x, TD_INTS(1, &zero), false, &y)));
    for (int64_t k = 0; k < 20; k++)
        CHECK_CLOSE(element(given, k), element(y, k), 0);
    td_release(call.out[0]);
    td_release(given);
    td_release(x);
    td_release(y);
}

/* ---- errors ---- */

TEST(wrong_calls_say_what_is_wrong) {
    td_tensor *x = make(TD_F32, ROW_MAJOR, 2, (int64_t[]){2, 3}), *y[2] = {NULL};
    td_tensor *ints = VECTOR(TD_I64, 1, 2), *empty = NULL;
    int64_t twice[] = {0, -2}, far[] = {2}, one = 1;
    REQUIRE(OK(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 2, (int64_t[]){0, 3}, &empty)));
    expect_error(TD_APPLY(y, sum, TD_T(x), TD_INTS(2, twice)), TD_EVALUE,
                 "sum: dim 1 is named twice");
    expect_error(TD_APPLY(y, sum, TD_T(x), TD_INTS(1, far)), TD_EINDEX, "dim 3 is out of range");
    expect_error(TD_APPLY(y, mean, TD_T(ints)), TD_EDTYPE, "x:float()");
    expect_error(TD_APPLY(y, std, TD_T(ints)), TD_EDTYPE, "int64");
    expect_error(TD_APPLY(y, amax, TD_T(empty)), TD_ESHAPE, "max of an empty tensor");
    expect_error(TD_APPLY(y, max, TD_T(empty)), TD_ESHAPE,
                 "max: cannot take max of an empty tensor of shape (0, 3)");
    expect_error(TD_APPLY(y, argmin, TD_T(empty), TD_I(0)), TD_ESHAPE,
                 "cannot take min over dim 1");
    expect_error(TD_APPLY(y, sum_to, TD_T(x), TD_INTS(1, &one)), TD_OK, "");
    td_release(y[0]);
    expect_error(TD_APPLY(y, sum_to, TD_T(x), TD_INTS(1, far)), TD_ESHAPE, "does not broadcast");
    td_release(x);
    td_release(ints);
    td_release(empty);
}

/* ---- gradients ---- */

/* Gradient of sum(op(x)) as numbers; `y` is op(x). */
static void check_gradient(td_tensor *x, td_tensor *y, const double *want) {
    td_tensor *sum = NULL, *g = NULL;
    REQUIRE(OK(TD_APPLY(&sum, sum, TD_T(y))));
    REQUIRE(OK(td_autograd_grad(1, &sum, NULL, 1, &x, (td_backward_options){0}, false, &g)));
    CHECK_INT(g->numel, x->numel);
    for (int64_t k = 0; k < g->numel; k++)
        CHECK_CLOSE(element(g, k), want[k], 1e-9);
    td_release(sum);
    td_release(g);
}

static void check_special(const char *op, td_tensor *x, const double *want) {
    td_tensor *y[TD_MAX_RESULTS] = {NULL};
    REQUIRE(OK(td_set_requires_grad(x, true)));
    REQUIRE(OK(apply(op, x, TD_NIL, false, y)));
    check_gradient(x, y[0], want);
    td_release(y[0]);
    td_release(x);
}

TEST(gradients_at_special_points) {
    check_special("amax", VECTOR(TD_F64, 3, 1, 3), (double[]){0.5, 0, 0.5});
    check_special("amin", VECTOR(TD_F64, 3, 1, 3), (double[]){0, 1, 0});
    check_special("prod", VECTOR(TD_F64, 2, 3, 4), (double[]){12, 8, 6});
    check_special("prod", VECTOR(TD_F64, 2, 0, 4), (double[]){0, 8, 0});
    check_special("prod", VECTOR(TD_F64, 0, 0, 4), (double[]){0, 0, 0});
    check_special("std", VECTOR(TD_F64, 2, 2, 2), (double[]){0, 0, 0});
    check_special("norm2", VECTOR(TD_F64, 3, 4), (double[]){0.6, 0.8});
    check_special("norm2", VECTOR(TD_F64, 0, 0), (double[]){0, 0});
    check_special("norm1", VECTOR(TD_F64, 3, -4, 0), (double[]){1, -1, 0});
    check_special("norm0", VECTOR(TD_F64, 3, -4), (double[]){0, 0});
    check_special("norminf", VECTOR(TD_F64, 4, -4, 1), (double[]){0.5, -0.5, 0});
    check_special("nansum", VECTOR(TD_F64, 4, NAN, 1), (double[]){1, 0, 1});
    check_special("mean", VECTOR(TD_F64, 1, 2, 3, 4), (double[]){0.25, 0.25, 0.25, 0.25});
    check_special("var", VECTOR(TD_F64, 1, 2, 3), (double[]){-1, 0, 1});
}

TEST(max_along_a_dim_gives_its_gradient_to_what_it_took) {
    td_tensor *x = of_values(TD_F64, 2, (int64_t[]){2, 3}, (double[]){1, 5, 5, 7, 2, 3});
    td_tensor *y[2] = {NULL};
    REQUIRE(OK(td_set_requires_grad(x, true)));
    REQUIRE(OK(TD_APPLY(y, max, TD_T(x), TD_I(1))));
    check_gradient(x, y[0], (double[]){0, 1, 0, 1, 0, 0});
    td_release(y[0]);
    td_release(y[1]);
    td_release(x);
}

TEST(products_over_dims_with_zeros_have_gradients) {
    double v[] = {1, 0, 3, 4, 5, 6, 0, 0, 2, 3, 1, 2}, want[12];
    td_tensor *x = of_values(TD_F64, 3, (int64_t[]){2, 3, 2}, v), *y = NULL;
    int64_t dims[] = {0, 2};
    for (int64_t k = 0; k < 12; k++) {
        want[k] = 1;
        for (int64_t j = 0; j < 12; j++)
            if (j != k && j / 2 % 3 == k / 2 % 3)
                want[k] *= v[j];
    }
    REQUIRE(OK(td_set_requires_grad(x, true)));
    REQUIRE(OK(TD_APPLY(&y, prod, TD_T(x), TD_INTS(2, dims))));
    check_gradient(x, y, want);
    td_release(y);
    td_release(x);
}

/* Second derivatives of the product of n numbers against the products of the n - 2 others. */
static void check_curvature(int64_t n, const double *v) {
    td_tensor *x = of_values(TD_F64, 1, &n, v), *y = NULL, *g = NULL, *at = NULL, *row = NULL;
    td_backward_options recorded = {.create_graph = true};
    REQUIRE(OK(td_set_requires_grad(x, true)));
    REQUIRE(OK(TD_APPLY(&y, prod, TD_T(x))));
    REQUIRE(OK(td_autograd_grad(1, &y, NULL, 1, &x, recorded, false, &g)));
    for (int64_t i = 0; i < n; i++) {
        REQUIRE(OK(TD_APPLY(&at, select, TD_T(g), TD_I(0), TD_I(i))));
        REQUIRE(OK(td_autograd_grad(1, &at, NULL, 1, &x, recorded, false, &row)));
        for (int64_t j = 0; j < n; j++) {
            double want = i != j;
            for (int64_t k = 0; k < n; k++)
                want *= k == i || k == j ? 1 : v[k];
            CHECK_CLOSE(element(row, j), want, 1e-12);
        }
        td_release(at);
        td_release(row);
    }
    td_release(y);
    td_release(g);
    td_release(x);
}

/* They are made 0 in one of the processor's modes, which must end with them and spare operands. */
TEST(products_below_all_floats_are_0_and_spare_denormals) {
    static const td_dtype dtypes[] = {TD_F32, TD_BF16, TD_F64};
    const int64_t sizes[] = {5000, 40}, rows = 0, columns = 1;
    for (int k = 0; k < 3; k++) {
        td_tensor *x = NULL, *y = NULL;
        REQUIRE(OK(td_tensor_empty(dtypes[k], TD_DEVICE_CPU, 2, sizes, &x)));
        for (int64_t e = 0; e < x->numel; e++)
            td_store_double(dtypes[k], (char *)x->data + e * (int64_t)td_tensor_itemsize(x), 0.5);
        REQUIRE(OK(TD_APPLY(&y, prod, TD_T(x))));
        CHECK_CLOSE(element(y, 0), 0, 0);
        td_release(y);
        REQUIRE(OK(TD_APPLY(&y, prod, TD_T(x), TD_INTS(1, &rows))));
        CHECK_CLOSE(element(y, 39), 0, 0);
        td_release(y);
        REQUIRE(OK(TD_APPLY(&y, prod, TD_T(x), TD_INTS(1, &columns))));
        CHECK_CLOSE(element(y, 4999), 0x1p-40, 0);
        td_release(y);
        td_release(x);
        CHECK(!td_flush_denormal());
    }
    td_tensor *x = VECTOR(TD_F32, 0x1p-140, 0x1p100, 0x1p30);
    CHECK_CLOSE(full("prod", x), 0x1p-10, 0);
    td_release(x);
    x = VECTOR(TD_F64, 0x1p-1050, 0.5, 2);
    CHECK_CLOSE(full("prod", x), 0x1p-1050, 0);
    td_release(x);
}

TEST(products_have_second_derivatives_at_zeros) {
    check_curvature(4, (double[]){2, 3, -4, 5});
    check_curvature(4, (double[]){2, 0, -4, 5});
    check_curvature(4, (double[]){2, 0, -4, 0});
    check_curvature(5, (double[]){0, 3, 0, 5, 0});
}

TEST(the_product_of_a_single_zero_has_gradient_1) {
    double zero = 0;
    td_tensor *x = of_values(TD_F64, 0, NULL, &zero), *y = NULL;
    REQUIRE(OK(td_set_requires_grad(x, true)));
    REQUIRE(OK(TD_APPLY(&y, prod, TD_T(x))));
    check_gradient(x, y, (double[]){1});
    td_release(y);
    td_release(x);
}

TEST(cumsum_has_the_running_sum_from_the_end_as_gradient) {
    td_tensor *x = VECTOR(TD_F64, 1, 2, 3), *y = NULL;
    REQUIRE(OK(td_set_requires_grad(x, true)));
    REQUIRE(OK(TD_APPLY(&y, cumsum, TD_T(x), TD_I(0))));
    check_gradient(x, y, (double[]){3, 2, 1});
    td_release(y);
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(sums_agree_with_naive_ones);
    RUN(products_agree_with_naive_ones);
    RUN(extremes_agree_with_naive_ones);
    RUN(places_of_extremes_agree_with_naive_ones);
    RUN(variances_agree_with_naive_ones);
    RUN(norms_agree_with_naive_ones);
    RUN(large_inputs_agree_with_naive_ones);
    RUN(short_rows_are_the_same_as_each_alone);
    RUN(results_do_not_depend_on_threads);
    RUN(a_hundred_million_ones_sum_exactly);
    RUN(sums_of_float32_keep_small_terms);
    RUN(variance_survives_a_large_mean);
    RUN(variance_is_exact_where_float32_cannot_hold_the_mean);
    RUN(nan_wins_in_extremes);
    RUN(nan_wins_wherever_it_is_in_a_long_row);
    RUN(nan_wins_in_columns);
    RUN(the_first_of_equals_is_found);
    RUN(infinities_pass_through);
    RUN(integer_sums_are_int64);
    RUN(dtype_is_converted_before_the_sum);
    RUN(elements_are_converted_as_they_are_read);
    RUN(a_reducer_that_a_dtype_lacks_is_refused);
    RUN(empty_inputs_give_the_neutral_element);
    RUN(zero_dims_reduce_to_themselves);
    RUN(variance_with_too_little_is_nan);
    RUN(max_returns_indices_only_with_a_dim);
    RUN(cumsum_runs_along_any_dim);
    RUN(cumsum_reads_and_writes_any_layout);
    RUN(cumsum_of_integers_is_int64);
    RUN(sum_to_size_undoes_broadcasting);
    RUN(results_are_written_in_place_of_any_layout);
    RUN(wrong_calls_say_what_is_wrong);
    RUN(gradients_at_special_points);
    RUN(max_along_a_dim_gives_its_gradient_to_what_it_took);
    RUN(products_over_dims_with_zeros_have_gradients);
    RUN(products_below_all_floats_are_0_and_spare_denormals);
    RUN(products_have_second_derivatives_at_zeros);
    RUN(the_product_of_a_single_zero_has_gradient_1);
    RUN(cumsum_has_the_running_sum_from_the_end_as_gradient);
    return check_finish();
}
