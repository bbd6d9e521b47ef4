/* test_cpu_special.c: the error function's relatives, Bessel's functions and the incomplete gamma
 * functions: at their ends, and in every interval and region that has a formula of its own.
 * tests/torture/ulp sweeps what lies between. */
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

static td_tensor *tensor_of(td_dtype dtype, double value) {
    const int64_t size = 1;
    td_tensor *x = NULL;
    if (CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &size, &x), TD_OK))
        td_store_double(dtype, x->data, value);
    return x;
}

static double element(const td_tensor *x, int64_t k) {
    return td_load_double((td_dtype)x->dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x));
}

/* One step from x in the dtype. */
static double unit(td_dtype dtype, double x) {
    double least = dtype == TD_F32 ? 0x1p-126 : 0x1p-1022;
    return ldexp(1, ilogb(fmax(fabs(x), least)) - (dtype == TD_F32 ? 23 : 52));
}

/* `off`: how many steps there may be. */
static void check_call(const char *name, td_dtype dtype, int n, const double *operands, double want,
                       double off) {
    td_tensor *x = tensor_of(dtype, operands[0]), *out = NULL;
    td_tensor *y = n == 2 ? tensor_of(dtype, operands[1]) : NULL;
    td_value args[] = {TD_T(x), y ? TD_T(y) : TD_NIL};
    if (CHECK_INT(td_op_apply(td_op_find(name), &out, n, args), TD_OK)) {
        double got = element(out, 0);
        if (isnan(want) ? !isnan(got)
                        : got != want && !(fabs(got - want) <= off * unit(dtype, want)))
            check_fail(__FILE__, __LINE__, "%s(%.9g, ...) in %s is %.17g, not %.17g", name,
                       operands[0], td_dtype_name(dtype), got, want);
    }
    td_release(x);
    td_release(y);
    td_release(out);
}

TEST(functions_are_right_at_both_ends) {
    static const struct {
        const char *name;
        td_dtype dtype;
        double x, want;
    } cases[] = {
        {"erfc", TD_F32, 10, 2.0884875837625448e-45},
        {"erfc", TD_F32, -INFINITY, 2},
        {"erfc", TD_F32, 30, 0},
        {"erfc", TD_F32, NAN, NAN},
        {"erfinv", TD_F32, 1, INFINITY},
        {"erfinv", TD_F32, -1, -INFINITY},
        {"erfinv", TD_F32, 1.5, NAN},
        {"erfinv", TD_F32, -INFINITY, NAN},
        {"erfinv", TD_F32, NAN, NAN},
        {"erfinv", TD_F32, 1e-42, 8.86226925452758e-43},
        {"erfinv", TD_F64, 1, INFINITY},
        {"erfinv", TD_F64, -2, NAN},
        {"erfinv", TD_F64, 0.99999999999999989, 5.8635847487551679},
        {"ndtri", TD_F32, 0, -INFINITY},
        {"ndtri", TD_F32, 1, INFINITY},
        {"ndtri", TD_F32, 0.5, 0},
        {"ndtri", TD_F32, 1e-45, -14.121426613350499},
        {"ndtri", TD_F32, -1, NAN},
        {"ndtri", TD_F32, 2, NAN},
        {"ndtri", TD_F64, 1e-300, -37.0470962993612},
        {"ndtri", TD_F64, 1e-40, -13.31092137142517},
        {"ndtri", TD_F64, 0.5, 0},
        {"ndtri", TD_F64, NAN, NAN},
        {"erfcx", TD_F32, INFINITY, 0},
        {"erfcx", TD_F32, -10, INFINITY},
        {"erfinv", TD_F64, -4.9260651380375043e-308, -4.3656115618629933e-308},
        {"erfinv", TD_F64, 4.4611998440236281e-308, 3.9536354215993834e-308},
        {"erfcx", TD_F64, -26, 7.657724931490568e+293},
        {"erfcx", TD_F64, 1e200, 5.641895835477563e-201},
        {"erfcx", TD_F64, 3.7, 0.1474349975371851},
        {"erfcx", TD_F64, -INFINITY, INFINITY},
        {"i0e", TD_F32, -INFINITY, 0},
        {"i1e", TD_F32, -INFINITY, 0},
        {"i1e", TD_F32, 1e-42, 5e-43},
        {"i1e", TD_F32, 3e38, 2.303294329808903e-20},
        {"i0", TD_F32, 92.5, INFINITY},
        {"i0", TD_F64, 712, 2.4684110577627523e+307},
        {"i1", TD_F64, -712, -2.4666770135246153e+307},
        {"i1", TD_F64, -INFINITY, -INFINITY},
        {"i0e", TD_F64, NAN, NAN},
        {"i0e", TD_F64, 50, 0.05656162664745419},
        {"i1e", TD_F64, -1.5, -0.21903938742092569},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_call(cases[k].name, cases[k].dtype, 1, &cases[k].x, cases[k].want, 3);
}

/* ---- in every interval ---- */

/* y of which erf is a and erfc is `rest`, by Newton's steps. */
static double exact_erfinv_of(double a, double rest) {
    double y = a < 0.5 ? a * 0.886226925452758 : sqrt(-log(rest));
    for (int k = 0; k < 60; k++) {
        double c = erfc(y), slope = M_2_SQRTPI * exp(-y * y);
        double step = a < 0.5 ? (erf(y) - a) / slope : (log(rest) - log(c)) * c / slope;
        y -= step;
        if (fabs(step) < y * 1e-16)
            break;
    }
    return y;
}
static double exact_erfinv(double x) {
    return copysign(exact_erfinv_of(fabs(x), 1 - fabs(x)), x);
}
static double exact_ndtri(double p) {
    return p > 0.5 ? M_SQRT2 * exact_erfinv_of(1 - 2 * (1 - p), 2 * (1 - p))
                   : -M_SQRT2 * exact_erfinv_of(1 - 2 * p, 2 * p);
}
static double exact_erfcx(double x) {
    double z = 1 / (2 * x * x);
    return x < 26 ? exp(x * x) * erfc(x)
                  : (1 - z * (1 - z * (3 - z * (15 - z * 105)))) / (x * sqrt(M_PI));
}
/* Means over half a circle, which so many angles give to the last digit; of order 1 they cancel
 * near 0, where the power series is quick. */
static double mean_over_angles(double x, bool cosine) {
    int n = 32 + (int)fabs(x);
    double sum = 0;
    for (int k = 0; k <= n; k++) {
        double c = cos(M_PI * k / n), share = k == 0 || k == n ? 0.5 : 1;
        sum += share * (cosine ? c : 1) * exp(x * c - fabs(x));
    }
    return sum / n;
}
static double exact_i0e(double x) {
    return mean_over_angles(x, false);
}
static double exact_i1e(double x) {
    double sum = 0;
    if (fabs(x) > 1)
        return mean_over_angles(x, true);
    for (int k = 20; k > 0; k--)
        sum = (sum + 1) * (x * x / 4) / (k * (k + 1));
    return (sum + 1) * x / 2 * exp(-fabs(x));
}
static double exact_i0(double x) {
    return exact_i0e(x) * exp(fabs(x));
}
static double exact_i1(double x) {
    return exact_i1e(x) * exp(fabs(x));
}

typedef struct swept {
    const char *name;
    double (*exact)(double x);
    float low, high;
    uint32_t stride;
} swept;

static td_tensor *floats_of(const swept *f) {
    uint32_t first, last;
    memcpy(&first, &f->low, sizeof first);
    memcpy(&last, &f->high, sizeof last);
    const int64_t n = (last - first) / f->stride;
    td_tensor *x = NULL;
    if (CHECK_INT(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x), TD_OK))
        for (int64_t k = 0; k < n; k++) {
            uint32_t bits = first + (uint32_t)k * f->stride;
            memcpy((char *)x->data + 4 * k, &bits, sizeof bits);
        }
    return x;
}

/* Rounded once from a double, of which the last digits are in doubt. */
static void check_rounding(const swept *f, const td_tensor *x, const td_tensor *out) {
    for (int64_t k = 0; k < x->numel; k++) {
        double at = element(x, k), want = f->exact(at), got = element(out, k);
        if (fabs(got - want) <= 0.501 * unit(TD_F32, want))
            continue;
        check_fail(__FILE__, __LINE__, "%s(%.9g) is %.9g, not %.9g", f->name, at, got, want);
        return;
    }
}

/* As it is, and with each element in another lane. */
static void check_swept(const swept *f) {
    td_tensor *x = floats_of(f), *tail = NULL, *out = NULL, *again = NULL;
    const td_op *op = td_op_find(f->name);
    if (x &&
        CHECK_INT(TD_APPLY(&tail, narrow, TD_T(x), TD_I(0), TD_I(1), TD_I(x->numel - 1)), TD_OK) &&
        CHECK_INT(td_op_apply(op, &out, 1, (td_value[]){TD_T(x)}), TD_OK) &&
        CHECK_INT(td_op_apply(op, &again, 1, (td_value[]){TD_T(tail)}), TD_OK)) {
        CHECK_INT(memcmp((char *)out->data + 4, again->data, 4 * (size_t)(x->numel - 1)), 0);
        check_rounding(f, x, out);
    }
    td_release(x);
    td_release(tail);
    td_release(out);
    td_release(again);
}

TEST(floats_are_rounded_once_in_every_interval) {
    static const swept cases[] = {
        {"erfc", erfc, 1.94f, 10.2f, 97},
        {"erfc", erfc, -1.94f, -10.2f, 97},
        {"erfinv", exact_erfinv, 0x1p-24f, 0.875f, 997},
        {"erfinv", exact_erfinv, -0.875f, -0x1.fffffep-1f, 7},
        {"ndtri", exact_ndtri, 0x1p-126f, 0.499f, 9973},
        {"ndtri", exact_ndtri, 0.501f, 0x1.fffffep-1f, 97},
        {"erfcx", exact_erfcx, 0x1p-24f, 1e18f, 997},
        {"erfcx", exact_erfcx, -0x1p-24f, -9.3f, 997},
        {"i0e", exact_i0e, 0x1p-24f, 300, 19997},
        {"i1e", exact_i1e, -0x1p-24f, -300, 19997},
        {"i0", exact_i0, -0x1p-4f, -91.8f, 9973},
        {"i1", exact_i1, 0x1p-24f, 91.8f, 9973},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_swept(&cases[k]);
}

/* ---- incomplete gamma functions ---- */

/* By series, fraction and what is near 0, and at the ends; values by mpmath. */
TEST(incomplete_gammas_are_right_in_every_region) {
    static const struct {
        double a, x, lower, upper;
    } cases[] = {
        {0.0625, 0.03125, 0.8307082735998599, 0.16929172640014015},
        {0.0625, 1, 0.9854249167789172, 0.014575083221082814},
        {0.25, 1.0625, 0.9380888140454896, 0.0619111859545104},
        {0.25, 1.125, 0.9434907075698543, 0.05650929243014564},
        {0.0009765625, 0.5, 0.999453066606331, 0.000546933393669003},
        {0.5, 0.25, 0.5204998778130465, 0.4795001221869535},
        {1, 0.5, 0.3934693402873666, 0.6065306597126334},
        {1, 3, 0.950212931632136, 0.049787068367863944},
        {3, 2.5, 0.45618688411667047, 0.5438131158833295},
        {3, 5.5, 0.9116235676432145, 0.08837643235678545},
        {12, 4, 0.000915229147270063, 0.99908477085273},
        {12, 30, 0.9999361229746008, 6.387702539927337e-05},
        {19.5, 20, 0.5744405983560632, 0.4255594016439368},
        {20, 20, 0.52974273316076, 0.47025726683923996},
        {24, 20.25, 0.22953478315874193, 0.770465216841258},
        {40, 55, 0.9853028204736023, 0.01469717952639774},
        {100, 80, 0.017108313035133115, 0.9828916869648668},
        {300, 290, 0.2861755102943037, 0.7138244897056962},
        {300, 330, 0.955109776129987, 0.044890223870012964},
        {5000, 5100, 0.9206711189223811, 0.07932888107761897},
        {0, 0, NAN, NAN},
        {INFINITY, INFINITY, NAN, NAN},
        {-1, 1, NAN, NAN},
        {1, -1, NAN, NAN},
        {NAN, 1, NAN, NAN},
        {0, 2, 1, 0},
        {2, 0, 0, 1},
        {2, INFINITY, 1, 0},
        {INFINITY, 2, 0, 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int d = 0; d < 2; d++) {
            td_dtype dtype = d ? TD_F64 : TD_F32;
            double off = d ? 500 : 0.501; /* powers lose digits; the series are the same */
            check_call("igamma", dtype, 2, &cases[k].a, cases[k].lower, off);
            check_call("igammac", dtype, 2, &cases[k].a, cases[k].upper, off);
        }
}

/* What a lane needs must not go on in another that has had enough. */
TEST(an_incomplete_gamma_does_not_depend_on_its_neighbours) {
    enum { N = 48 };
    const int64_t size = N;
    for (int d = 0; d < 2; d++)
        for (int upper = 0; upper < 2; upper++) {
            td_dtype dtype = d ? TD_F64 : TD_F32;
            const td_op *op = td_op_find(upper ? "igammac" : "igamma");
            td_tensor *a = NULL, *x = NULL, *out = NULL;
            CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &size, &a), TD_OK);
            CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &size, &x), TD_OK);
            for (int k = 0; k < N; k++) {
                double order = k % 4 == 3 ? 900 : 0.125 * (k + 1), at = order * (0.25 + k % 5);
                td_store_double(dtype, (char *)a->data + (size_t)k * td_tensor_itemsize(a), order);
                td_store_double(dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x), at);
            }
            if (CHECK_INT(td_op_apply(op, &out, 2, (td_value[]){TD_T(a), TD_T(x)}), TD_OK))
                for (int k = 0; k < N; k++)
                    check_call(op->name, dtype, 2, (double[]){element(a, k), element(x, k)},
                               element(out, k), 0);
            td_release(a);
            td_release(x);
            td_release(out);
        }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(functions_are_right_at_both_ends);
    RUN(floats_are_rounded_once_in_every_interval);
    RUN(incomplete_gammas_are_right_in_every_region);
    RUN(an_incomplete_gamma_does_not_depend_on_its_neighbours);
    return check_finish();
}
