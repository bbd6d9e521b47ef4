/* test_cpu_halves.c: the 16-bit floats, all 65,536 of each: what is cheap to compute of them is
 * rounded once, wherever an element lies in a tensor, and conversions are the nearest. */
#include "engine/ops/make/copy.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

enum { ALL = 1 << 16, SHORT = 70 };

static const td_dtype dtypes[] = {TD_F16, TD_BF16};

static td_tensor *empty(td_dtype dtype, int64_t n) {
    td_tensor *x = NULL;
    CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x), TD_OK);
    return x;
}

/* Every one of them. */
static td_tensor *every(td_dtype dtype) {
    td_tensor *x = empty(dtype, ALL);
    for (int k = 0; k < ALL; k++)
        ((uint16_t *)x->data)[k] = (uint16_t)k;
    return x;
}

static double element(const td_tensor *x, int64_t k) {
    return td_load_double((td_dtype)x->dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x));
}

/* What a value is when it has been rounded to the dtype by way of float. */
static double rounded(td_dtype dtype, double value) {
    uint16_t bits;
    td_store_double(dtype, &bits, (double)(float)value);
    return td_load_double(dtype, &bits);
}

static bool same(double a, double b) {
    return a == b ? signbit(a) == signbit(b) : a != a && b != b;
}

static double plain_square(double x) {
    return x * x;
}
static double plain_reciprocal(double x) {
    return 1 / x;
}
static double plain_rsqrt(double x) {
    return 1 / sqrt(x);
}
static const struct {
    const char *name;
    double (*f)(double);
} functions[] = {{"square", plain_square},
                 {"reciprocal", plain_reciprocal},
                 {"sqrt", sqrt},
                 {"rsqrt", plain_rsqrt},
                 {"floor", floor}};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void check_function(int f, td_tensor *x) {
    td_tensor *y = NULL;
    td_value in = TD_T(x);
    if (!CHECK_INT(td_op_apply(td_op_find(functions[f].name), &y, 1, &in), TD_OK))
        return;
    for (int64_t k = 0; k < x->numel; k++) {
        double want = rounded((td_dtype)x->dtype, functions[f].f(element(x, k)));
        if (!same(element(y, k), want)) {
            check_fail(__FILE__, __LINE__, "%s(%.9g) in %s is %.9g, not %.9g", functions[f].name,
                       element(x, k), td_dtype_name((td_dtype)x->dtype), element(y, k), want);
            break;
        }
    }
    td_release(y);
}

TEST(functions_of_every_number_are_rounded_once) {
    for (int d = 0; d < 2; d++) {
        td_tensor *x = every(dtypes[d]);
        for (int f = 0; f < FUNCTIONS; f++)
            check_function(f, x);
        td_release(x);
    }
}

/* Right to more digits than 16 bits have, however far the angle. */
TEST(angles_of_every_number_are_right) {
    static const struct {
        const char *name;
        double (*f)(double);
    } angles[] = {{"sin", sin}, {"cos", cos}, {"tan", tan}};
    for (int d = 0; d < 2; d++) {
        td_tensor *x = every(dtypes[d]);
        for (int f = 0; f < 3; f++) {
            td_tensor *y = NULL;
            td_value in = TD_T(x);
            if (!CHECK_INT(td_op_apply(td_op_find(angles[f].name), &y, 1, &in), TD_OK))
                continue;
            for (int64_t k = 0; k < x->numel; k++) {
                double at = element(x, k), want = angles[f].f(at), got = element(y, k);
                double less = rounded(dtypes[d], want * (1 - 5e-7));
                double more = rounded(dtypes[d], want * (1 + 5e-7));
                if (!same(got, less) && !same(got, more)) {
                    check_fail(__FILE__, __LINE__, "%s(%.9g) in %s is %.9g, not %.9g",
                               angles[f].name, at, td_dtype_name(dtypes[d]), got, want);
                    break;
                }
            }
            td_release(y);
        }
        td_release(x);
    }
}

/* Lengths around those of one vector and of two. */
TEST(an_element_is_the_same_at_every_place) {
    for (int d = 0; d < 2; d++)
        for (int n = 1; n <= SHORT; n++) {
            td_tensor *x = empty(dtypes[d], n), *y = empty(dtypes[d], n), *z = NULL;
            for (int k = 0; k < n; k++) {
                ((uint16_t *)x->data)[k] = (uint16_t)(0x3C01 + 37 * k);
                ((uint16_t *)y->data)[k] = (uint16_t)(0xBD13 + 11 * k);
            }
            for (int f = 0; f < FUNCTIONS; f++)
                check_function(f, x);
            if (CHECK_INT(TD_APPLY(&z, mul, TD_T(x), TD_T(y)), TD_OK))
                for (int k = 0; k < n; k++)
                    CHECK(same(element(z, k), rounded(dtypes[d], element(x, k) * element(y, k))));
            td_release(x);
            td_release(y);
            td_release(z);
        }
}

TEST(every_number_goes_to_wider_floats_and_back) {
    static const td_dtype wider[] = {TD_F32, TD_F64};
    for (int d = 0; d < 2; d++)
        for (int w = 0; w < 2; w++) {
            td_tensor *x = every(dtypes[d]), *y = empty(wider[w], ALL), *z = empty(dtypes[d], ALL);
            CHECK_INT(td_copy_into(y, x), TD_OK);
            CHECK_INT(td_copy_into(z, y), TD_OK);
            for (int k = 0; k < ALL; k++)
                if (!same(element(y, k), element(x, k)) || !same(element(z, k), element(x, k))) {
                    check_fail(__FILE__, __LINE__, "%04x of %s becomes %.9g and %.9g", k,
                               td_dtype_name(dtypes[d]), element(y, k), element(z, k));
                    break;
                }
            td_release(x);
            td_release(y);
            td_release(z);
        }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(functions_of_every_number_are_rounded_once);
    RUN(angles_of_every_number_are_right);
    RUN(an_element_is_the_same_at_every_place);
    RUN(every_number_goes_to_wider_floats_and_back);
    return check_finish();
}
