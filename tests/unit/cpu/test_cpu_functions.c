/* test_cpu_functions.c: mathematical functions at the ends of their domains, norms and variances of
 * numbers far from 1, and that an element's result does not depend on its neighbours.
 * tests/torture/ulp sweeps what lies between. */
#include "engine/cpu/isa/isa.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <string.h>

static td_tensor *tensor_of(td_dtype dtype, int n, const double *values) {
    const int64_t size = n;
    td_tensor *x = NULL;
    if (!CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &size, &x), TD_OK))
        return NULL;
    for (int k = 0; k < n; k++)
        td_store_double(dtype, (char *)x->data + (size_t)k * td_dtype_size(dtype), values[k]);
    return x;
}

static double element(const td_tensor *x, int64_t k) {
    return td_load_double((td_dtype)x->dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x));
}

/* One step from x in the dtype, or the smallest number there is. */
static double unit(td_dtype dtype, double x) {
    double up = dtype == TD_F32 ? (double)nextafterf((float)fabs(x), INFINITY)
                                : nextafter(fabs(x), INFINITY);
    return isinf(up) ? fabs(x) * 0x1p-23 : up - fabs(x);
}

static void check_unary(const char *name, td_dtype dtype, double x, double want) {
    td_tensor *in = tensor_of(dtype, 1, &x), *out = NULL;
    if (CHECK_INT(td_op_apply(td_op_find(name), &out, 1, (td_value[]){TD_T(in)}), TD_OK)) {
        double got = element(out, 0);
        if (isnan(want) ? !isnan(got)
                        : got != want && !(fabs(got - want) <= 2.5 * unit(dtype, want)))
            check_fail(__FILE__, __LINE__, "%s(%.9g) in %s is %.17g, not %.17g", name, x,
                       td_dtype_name(dtype), got, want);
    }
    td_release(in);
    td_release(out);
}

/* What functions give at the ends of what they take, and of what they give. */
static const struct {
    const char *name;
    td_dtype dtype;
    double x, want;
} ends[] = {
    {"log1p", TD_F32, 2e38, 88.19138068236225},
    {"log1p", TD_F64, 1.5e308, 709.6016737502742},
    {"log1p", TD_F32, INFINITY, INFINITY},
    {"sinh", TD_F32, 89, 2.2448064095871728e+38},
    {"sinh", TD_F32, -89, -2.2448064095871728e+38},
    {"cosh", TD_F32, 89.25, 2.882388485453482e+38},
    {"sinh", TD_F64, 710, 1.1169973830808557e+308},
    {"cosh", TD_F64, -710.25, 1.4342530302495124e+308},
    {"sinh", TD_F32, 90, INFINITY},
    {"cosh", TD_F64, 711, INFINITY},
    {"sigmoid", TD_F32, -90, 8.1940126239905153e-40},
    {"sigmoid", TD_F32, -103, 1.8521167695179754e-45},
    {"sigmoid", TD_F64, -745, 5e-324},
    {"sigmoid", TD_F32, -INFINITY, 0},
    {"sigmoid", TD_F32, INFINITY, 1},
    {"sigmoid", TD_F64, NAN, NAN},
    {"sigmoid", TD_F64, -699.5, 1.6255858439919858e-304}, /* where two ways meet */
    {"sigmoid", TD_F64, -700.5, 5.980196118639791e-305},
    {"sigmoid", TD_F64, 36.5, 0.9999999999999999},
    {"sigmoid", TD_F32, -86.5, 2.7134843e-38},
    {"sigmoid", TD_F32, -87.5, 9.9823509e-39},
    {"sigmoid", TD_F32, 88, 1},
    {"sigmoid", TD_F64, INFINITY, 1},
    {"sigmoid", TD_F64, -INFINITY, 0},
    {"silu", TD_F64, -699.5, -1.137097297872394e-301},
    {"silu", TD_F64, -700.5, -4.189127381107174e-302},
    {"silu", TD_F64, 1e300, 1e300},
    {"silu", TD_F64, INFINITY, INFINITY},
    {"silu", TD_F64, -INFINITY, NAN},
    {"silu", TD_F32, -90, -7.374611361591464e-38},
    {"silu", TD_F32, -INFINITY, NAN},
    {"gelu", TD_F32, -6, -5.9195258702261885e-09},
    {"gelu", TD_F32, -13, -7.9523137194148436e-38},
    {"gelu", TD_F32, -14.25, -3.194003881588437e-45},
    {"gelu", TD_F32, -40, -0.0},
    {"gelu", TD_F32, INFINITY, INFINITY},
    {"gelu", TD_F32, -INFINITY, NAN},
    {"gelu", TD_F32, NAN, NAN},
    {"silu", TD_F32, 3e38, 2.9999999e38},
    {"silu", TD_F32, -130, -0.0},
    {"silu", TD_F32, INFINITY, INFINITY},
    {"tanh", TD_F32, 12, 1},
    {"tanh", TD_F32, -INFINITY, -1},
    {"tanh", TD_F32, NAN, NAN},
    {"tanh", TD_F32, 1e-42, 1e-42},
    {"erf", TD_F32, 4, 1},
    {"erf", TD_F32, -INFINITY, -1},
    {"erf", TD_F32, NAN, NAN},
    {"exp", TD_F32, 88.75, INFINITY},
    {"exp", TD_F32, INFINITY, INFINITY},
    {"exp", TD_F32, -103, 1.8521167695179754e-45},
    {"exp", TD_F32, -104.5, 0},
    {"exp", TD_F32, -INFINITY, 0},
    {"exp", TD_F32, NAN, NAN},
    {"log", TD_F32, 1, 0},
    {"log", TD_F32, 0, -INFINITY},
    {"log", TD_F32, -1, NAN},
    {"log", TD_F32, NAN, NAN},
    {"log", TD_F32, INFINITY, INFINITY},
    {"log", TD_F32, 0x1p-149, -103.27892990343184},
    {"log", TD_F32, 0x1p-126, -87.33654475055311},
    {"log", TD_F32, 0x1.fffffep127, 88.72283905206835},
    {"silu", TD_F32, -87, -1.431855945041578e-36}, /* where two ways meet */
    {"silu", TD_F32, -87.25, -1.1183349293221143e-36},
    {"log2", TD_F32, 1, 0},
    {"log2", TD_F32, 0, -INFINITY},
    {"log2", TD_F32, -1, NAN},
    {"log2", TD_F32, NAN, NAN},
    {"log2", TD_F32, INFINITY, INFINITY},
    {"log2", TD_F32, 0x1p-149, -149},
    {"log2", TD_F32, 0x1p-126, -126},
    {"log2", TD_F32, 0x1p100, 100},
    {"log2", TD_F32, 0x1.fffffep127, 127.99999991400867},
    {"log2", TD_F32, 0x1.58adaap-1, -0.5708930218382848}, /* on either side of a power's end */
    {"log2", TD_F32, 0x1.58adacp-1, -0.570892894103098},
    {"log2", TD_F32, 0x1.000002p0, 1.7198264061184464e-07},
    {"log2", TD_F32, 0x1.fffffep-1, -8.5991327994145617e-08},
    {"erfc", TD_F32, -INFINITY, 2},
    {"erfc", TD_F32, NAN, NAN},
    {"expm1", TD_F32, 88.5, 2.72308782506811e+38},
    {"expm1", TD_F32, 88.7, 3.32597683015931e+38},
    {"expm1", TD_F32, 88.75, INFINITY},
    {"expm1", TD_F32, INFINITY, INFINITY},
    {"expm1", TD_F32, -30, -1},
    {"expm1", TD_F32, -INFINITY, -1},
    {"expm1", TD_F32, 1e-42, 1e-42},
    {"expm1", TD_F32, NAN, NAN},
    {"log1p", TD_F32, -1, -INFINITY},
    {"log1p", TD_F32, -2, NAN},
    {"log1p", TD_F32, NAN, NAN},
    {"log1p", TD_F32, -INFINITY, NAN},
    {"log1p", TD_F32, -1e-42, -1e-42},
    {"log1p", TD_F32, 1e30, 69.0775528048688},
    {"log1p", TD_F32, 1e31, 71.3801378676397},
    {"sigmoid", TD_F32, NAN, NAN},
    {"sigmoid", TD_F32, 7.75, 0.99956944291867544}, /* where two ways meet */
    {"sigmoid", TD_F32, -7.75, 0.00043055708132461493},
    {"silu", TD_F32, 15.5, 15.499997124143921},
    {"silu", TD_F32, -15.5, -2.8758560784709135e-06},
    {"erfc", TD_F32, 1.9375, 0.0061431936047867996},
    {"erfc", TD_F32, -1.9375, 1.9938568063952131},
    {"gelu", TD_F32, 3.625, 3.6244762573686806},
    {"gelu", TD_F32, -3.625, -0.0005237426313194801},
    {"gelu", TD_F64, -30, -1.472014178144456e-196},
    {"gelu", TD_F64, -INFINITY, NAN},
    {"erf", TD_F32, 2e-38, 2.2567583457243323e-38},
    {"erf", TD_F64, 1.5226838856105341e-308, 1.7181647745949731e-308},
    {"erfc", TD_F32, 9.5, 3.7692144856548797e-41},
    {"rsqrt", TD_F32, 1e-45, 2.671373890628154e+22},
    {"rsqrt", TD_F64, 5e-324, 4.4989137945431964e+161},
    {"rsqrt", TD_F32, -INFINITY, NAN},
    {"rsqrt", TD_F32, 0, INFINITY},
    {"exp", TD_F64, 709.78, 1.7928227943945155e+308},
    {"exp", TD_F64, 710, INFINITY},
    {"exp", TD_F64, -745, 5e-324},
    {"exp", TD_F64, -INFINITY, 0},
    {"exp", TD_F64, NAN, NAN},
    {"exp2", TD_F64, 1024, INFINITY},
    {"exp2", TD_F64, -1074, 5e-324},
    {"exp2", TD_F64, NAN, NAN},
    {"exp2", TD_F32, 128, INFINITY},
    {"exp2", TD_F32, -149, 0x1p-149},
    {"exp2", TD_F32, -INFINITY, 0},
    {"exp2", TD_F32, NAN, NAN},
    {"expm1", TD_F64, 709.78, 1.7928227943945155e+308},
    {"expm1", TD_F64, INFINITY, INFINITY},
    {"expm1", TD_F64, -INFINITY, -1},
    {"expm1", TD_F64, -5e-324, -5e-324},
    {"expm1", TD_F64, NAN, NAN},
    {"log", TD_F64, 1.7976931348623157e+308, 709.78271289338397},
    {"log", TD_F64, 5e-324, -744.44007192138127},
    {"log", TD_F64, 0, -INFINITY},
    {"log", TD_F64, -1, NAN},
    {"log", TD_F64, INFINITY, INFINITY},
    {"log1p", TD_F64, -1, -INFINITY},
    {"log1p", TD_F64, -2, NAN},
    {"log1p", TD_F64, 1e-300, 1e-300},
    {"erf", TD_F64, 6, 1},
    {"erf", TD_F64, -INFINITY, -1},
    {"erf", TD_F64, NAN, NAN},
    {"erfc", TD_F64, 27.2, 1.0189049142703155e-323},
    {"erfc", TD_F64, INFINITY, 0},
    {"erfc", TD_F64, -INFINITY, 2},
    {"erfc", TD_F64, NAN, NAN},
    {"gelu", TD_F64, -40, -0.0},
    {"gelu", TD_F64, INFINITY, INFINITY},
    {"gelu", TD_F64, NAN, NAN},
    {"erfinv", TD_F64, 1, INFINITY},
    {"erfinv", TD_F64, 1.5, NAN},
    {"ndtri", TD_F64, 0, -INFINITY},
    {"ndtri", TD_F64, 1, INFINITY},
    {"ndtri", TD_F64, 1e-30, -11.464024688443616},
    {"ndtri", TD_F64, 1e-300, -37.047096299361199},
    {"sin", TD_F32, INFINITY, NAN},
    {"sin", TD_F32, 32767, 0.18750655394138943}, /* where two ways meet */
    {"sin", TD_F32, 32768, 0.9278563334139247},
    {"sin", TD_F32, 0x1p127, 0.6233855129558702},
    {"cos", TD_F32, -INFINITY, NAN},
    {"cos", TD_F32, NAN, NAN},
    {"cos", TD_F32, 1e-42, 1},
    {"tan", TD_F32, NAN, NAN},
    {"tan", TD_F32, 0x1.921fb6p0, -22877332.42885646},
    {"tan", TD_F32, 1e-42, 1e-42},
    {"asin", TD_F32, -1, -1.5707963267948966},
    {"asin", TD_F32, 1.0000001, NAN},
    {"asin", TD_F32, -INFINITY, NAN},
    {"asin", TD_F32, NAN, NAN},
    {"acos", TD_F32, 1, 0},
    {"acos", TD_F32, -1, 3.1415926535897931},
    {"acos", TD_F32, -1.0000001, NAN},
    {"acos", TD_F32, INFINITY, NAN},
    {"atan", TD_F32, -INFINITY, -1.5707963267948966},
    {"atan", TD_F32, NAN, NAN},
    {"atan", TD_F32, 1e-42, 1e-42},
    {"log10", TD_F32, 0, -INFINITY},
    {"log10", TD_F32, -1, NAN},
    {"log10", TD_F32, INFINITY, INFINITY},
    {"log10", TD_F32, 0x1p-149, -44.8534693539332},
    {"log10", TD_F32, 1e6, 6},
    {"sin", TD_F64, 45.553093477052, 1}, /* next to a multiple of pi / 2 */
    {"sin", TD_F64, 91.106186954104, -1.2379612731767154e-18},
    {"cos", TD_F64, 45.553093477052, -6.189806365883577e-19},
    {"cos", TD_F64, 1.5707963267948966, 6.123233995736766e-17},
    {"tan", TD_F64, 45.553093477052, -1.6155594228467482e+18},
    {"tan", TD_F64, 1.5707963267948966, 1.633123935319537e+16},
    {"sin", TD_F64, 8191.5, -0.9794975520550289}, /* where two ways meet */
    {"sin", TD_F64, 8192, -0.9561731528431463},
    {"cos", TD_F64, -8191.5, -0.20145606349327386},
    {"cos", TD_F64, 8192, 0.2928018131467037},
    {"tan", TD_F64, -8191.5, -4.862090200068523},
    {"tan", TD_F64, 8192, -3.265598469378572},
    {"sin", TD_F64, 1e300, -0.8178819121159085},
    {"cos", TD_F64, 1e14, -0.9778282879685325},
    {"tan", TD_F64, -1e300, -1.4214488238747245},
    {"sin", TD_F64, INFINITY, NAN},
    {"cos", TD_F64, NAN, NAN},
    {"tan", TD_F64, -INFINITY, NAN},
    {"sin", TD_F64, -5e-324, -5e-324},
    {"tan", TD_F64, 1e-310, 1e-310},
    {"asin", TD_F64, 1, 1.5707963267948966},
    {"asin", TD_F64, -1.0000000000000002, NAN},
    {"asin", TD_F64, -5e-324, -5e-324},
    {"asin", TD_F64, NAN, NAN},
    {"acos", TD_F64, 1, 0},
    {"acos", TD_F64, -1, 3.141592653589793},
    {"acos", TD_F64, 0.9999999999999999, 1.4901161193847656e-08},
    {"acos", TD_F64, -0.0, 1.5707963267948966},
    {"acos", TD_F64, 1.0000000000000002, NAN},
    {"acos", TD_F64, -INFINITY, NAN},
    {"atan", TD_F64, INFINITY, 1.5707963267948966},
    {"atan", TD_F64, -1e308, -1.5707963267948966},
    {"atan", TD_F64, 1e16, 1.5707963267948966},
    {"atan", TD_F64, -5e-324, -5e-324},
    {"atan", TD_F64, NAN, NAN},
    {"tanh", TD_F64, 20, 1},
    {"tanh", TD_F64, -INFINITY, -1},
    {"tanh", TD_F64, NAN, NAN},
    {"tanh", TD_F64, 1e-310, 1e-310},
    {"erf", TD_F64, 1e-310, 1.1283791670955e-310},
    {"erfinv", TD_F64, 1e-310, 8.862269254527e-311},
    {"erfinv", TD_F64, 0.99609375, 2.0404520146056093}, /* where two ways meet */
    {"erfinv", TD_F64, -0.99609374999999989, -2.0404520146056027},
    {"erfinv", TD_F64, 0.999, 2.326753765513525},
    {"erfinv", TD_F64, NAN, NAN},
    {"erfinv", TD_F32, 0.99609375, 2.0404520146056093},
    {"erfinv", TD_F32, -0.9960937, -2.0404486},
    {"erfinv", TD_F32, 1, INFINITY},
    {"erfinv", TD_F32, -1.5, NAN},
    {"erfinv", TD_F32, NAN, NAN},
    {"log2", TD_F64, 5e-324, -1074},
    {"log2", TD_F64, 0, -INFINITY},
    {"log2", TD_F64, -0.0, -INFINITY},
    {"log2", TD_F64, -1, NAN},
    {"log2", TD_F64, NAN, NAN},
    {"log2", TD_F64, INFINITY, INFINITY},
    {"log10", TD_F64, 5e-324, -323.3062153431158},
    {"log10", TD_F64, 1e300, 300},
    {"log10", TD_F64, -INFINITY, NAN},
};

TEST(functions_are_right_at_both_ends) {
    for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
        check_unary(ends[k].name, ends[k].dtype, ends[k].x, ends[k].want);
}

TEST(angles_keep_the_sign_of_zero) {
    const char *names[] = {"sin", "tan", "asin", "atan"};
    const double zeros[] = {-0.0, 0.0};
    for (size_t k = 0; k < 2 * sizeof names / sizeof *names; k++) {
        td_dtype dtype = k % 2 ? TD_F64 : TD_F32;
        td_tensor *in = tensor_of(dtype, 2, zeros), *out = NULL;
        const td_op *op = td_op_find(names[k / 2]);
        if (CHECK_INT(td_op_apply(op, &out, 1, (td_value[]){TD_T(in)}), TD_OK))
            CHECK_INT(memcmp(out->data, in->data, 2 * td_dtype_size(dtype)), 0);
        td_release(in);
        td_release(out);
    }
}

static double exact_silu(double x) {
    return x / (1 + exp(-x));
}
static double exact_gelu(double x) {
    return x * erfc(-x * M_SQRT1_2) / 2;
}

static double exact_sigmoid(double x) {
    return 1 / (1 + exp(-x));
}

typedef struct swept {
    const char *name;
    double (*exact)(double x);
    double limit;      /* in units of the last place */
    float most, least; /* where the sweep ends */
} swept;

/* Of n floats, which lie a stride apart from `first` on; the same of all but the first of them. */
static void check_floats(const swept *f, uint32_t first, uint32_t stride, int64_t n) {
    td_tensor *x = NULL, *tail = NULL, *out = NULL, *again = NULL;
    const td_op *op = td_op_find(f->name);
    if (!CHECK_INT(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x), TD_OK))
        return;
    for (int64_t k = 0; k < n; k++) {
        uint32_t bits = first + (uint32_t)k * stride;
        memcpy((char *)x->data + 4 * k, &bits, sizeof bits);
    }
    if (CHECK_INT(TD_APPLY(&tail, narrow, TD_T(x), TD_I(0), TD_I(1), TD_I(n - 1)), TD_OK) &&
        CHECK_INT(td_op_apply(op, &out, 1, (td_value[]){TD_T(x)}), TD_OK) &&
        CHECK_INT(td_op_apply(op, &again, 1, (td_value[]){TD_T(tail)}), TD_OK)) {
        CHECK_INT(memcmp((char *)out->data + 4, again->data, 4 * (size_t)(n - 1)), 0);
        for (int64_t k = 0; k < n; k++) {
            double at = element(x, k), want = f->exact(at), got = element(out, k);
            double one = ldexp(1, ilogb(fmax(fabs(want), 0x1p-126)) - 23);
            if (!(fabs(got - want) <= f->limit * one))
                check_fail(__FILE__, __LINE__, "%s(%.9g) is %.9g, not %.9g", f->name, at, got,
                           want);
        }
    }
    td_release(x);
    td_release(tail);
    td_release(out);
    td_release(again);
}

/* A polynomial for each interval, of which a wrong digit shows in that one alone. */
TEST(float_functions_are_right_in_every_interval) {
    static const swept functions[] = {{"exp", exp, 0.8, 88.7f, -256},
                                      {"expm1", expm1, 1, 88.7f, -256},
                                      {"log1p", log1p, 0.9, 256, -0.999f},
                                      {"log", log, 0.9, 256, 0},
                                      {"erfc", erfc, 1.1, 9, -256},
                                      {"tanh", tanh, 1, 256, -256},
                                      {"erf", erf, 0.9, 256, -256},
                                      {"sigmoid", exact_sigmoid, 1, 256, -100},
                                      {"silu", exact_silu, 2.5, 256, -256},
                                      {"gelu", exact_gelu, 2.1, 256, -256},
                                      {"sin", sin, 1, 1e6f, -1e6f},
                                      {"cos", cos, 1, 1e6f, -1e6f},
                                      {"tan", tan, 1, 1e6f, -1e6f},
                                      {"asin", asin, 1, 1, -1},
                                      {"acos", acos, 1, 1, -1},
                                      {"atan", atan, 1, 1e9f, -1e9f},
                                      {"log10", log10, 1, 1e38f, 0},
                                      {"log2", log2, 1.03, 1e38f, 0}};
    enum { STRIDE = 997 };
    const uint32_t first[] = {0x33800000, 0xB3800000}; /* 2^-24 and its negative */
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        for (int negative = 0; negative < 2; negative++) {
            uint32_t end;
            if (negative && functions[k].least == 0)
                continue;
            memcpy(&end, negative ? &functions[k].least : &functions[k].most, sizeof end);
            check_floats(&functions[k], first[negative], STRIDE, (end - first[negative]) / STRIDE);
        }
}

static long double exact_gelul(long double x) {
    return x * erfcl(-x * sqrtl(0.5L)) / 2;
}
/* Through its inverse, which is right to more digits: one Newton step. */
static long double exact_erfinvl(long double x) {
    long double y = 0, step;
    for (int k = 0; k < 100; k++) {
        long double slope = 1.1283791670955125739L * expl(-y * y);
        long double error = x < 0.5L ? erfl(y) - x : (1 - x) - erfcl(y);
        step = error / slope;
        y -= step / (1 + y * step);
    }
    return y;
}

typedef struct swept_double {
    const char *name;
    long double (*exact)(long double x);
    double limit, least, most; /* in units of the last place; the ends */
} swept_double;

/* Of n numbers between the ends, as many in each part of an octave. */
static void check_doubles(const swept_double *f, int64_t n) {
    td_tensor *x = NULL, *out = NULL;
    if (!CHECK_INT(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, &n, &x), TD_OK))
        return;
    for (int64_t k = 0; k < n; k++) {
        double part = ((double)k + 0.37) / (double)n, from = f->least == 0 ? 1e-9 : f->least;
        ((double *)x->data)[k] =
            from > 0 ? from * pow(f->most / from, part) : from + (f->most - from) * part;
    }
    if (CHECK_INT(td_op_apply(td_op_find(f->name), &out, 1, (td_value[]){TD_T(x)}), TD_OK))
        for (int64_t k = 0; k < n; k++) {
            double at = element(x, k), got = element(out, k);
            long double want = f->exact(at), one = ldexpl(1, ilogbl(want) - 52);
            if (!(fabsl((long double)got - want) <= f->limit * one))
                check_fail(__FILE__, __LINE__, "%s(%.17g) is %.17g, not %.17Lg", f->name, at, got,
                           want);
        }
    td_release(x);
    td_release(out);
}

TEST(double_functions_are_right_in_every_interval) {
    static const swept_double functions[] = {
        {"exp", expl, 1, -700, 700},      {"exp2", exp2l, 1, -1000, 1000},
        {"expm1", expm1l, 1.01, -37, 40}, {"expm1", expm1l, 1.01, 0, 1},
        {"log", logl, 1, 0, 1e6},         {"log", logl, 1, 0.5, 2},
        {"log1p", log1pl, 1.01, 0, 1e6},  {"log1p", log1pl, 1.01, -0.999, 1},
        {"erf", erfl, 1, 0, 6},           {"erf", erfl, 1, -6, 6},
        {"erfc", erfcl, 1.3, -6, 26},     {"gelu", exact_gelul, 2, -20, 10},
        {"gelu", exact_gelul, 2, 0, 10},  {"erfinv", exact_erfinvl, 1.2, 0, 0.99},
        {"sin", sinl, 1, -9000, 9000},    {"sin", sinl, 1, 0, 4},
        {"cos", cosl, 1, -9000, 9000},    {"cos", cosl, 1, 0, 4},
        {"tan", tanl, 1, -9000, 9000},    {"tan", tanl, 1, 0, 4},
        {"asin", asinl, 1, -1, 1},        {"asin", asinl, 1, 0, 1},
        {"acos", acosl, 1, -1, 1},        {"acos", acosl, 1, 0.9, 1},
        {"atan", atanl, 1, -40, 40},      {"atan", atanl, 1, 0, 1e20},
        {"tanh", tanhl, 1, 0, 30},        {"tanh", tanhl, 1, -3, 3},
        {"log2", log2l, 1, 0, 1e290},     {"log2", log2l, 1, 0.9, 1.1},
        {"log10", log10l, 1, 0, 1e290},   {"log10", log10l, 1, 0.9, 1.1},
        {"log", logl, 1, 0.9, 1.1},       {"erfinv", exact_erfinvl, 1.2, 0.9, 0.9999},
    };
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
        check_doubles(&functions[k], functions[k].exact == exact_erfinvl ? 500 : 20000);
}

TEST(the_sign_of_zero_passes_through_odd_functions) {
    static const char *const names[] = {"expm1", "log1p", "tanh", "erf", "silu", "gelu"};
    enum { NAMES = (int)(sizeof names / sizeof *names) };
    for (int f = 0; f < 2 * NAMES; f++) {
        int k = f % NAMES;
        td_tensor *x = tensor_of(f < NAMES ? TD_F32 : TD_F64, 2, (double[]){0.0, -0.0}),
                  *out = NULL;
        if (CHECK_INT(td_op_apply(td_op_find(names[k]), &out, 1, (td_value[]){TD_T(x)}), TD_OK)) {
            CHECK(element(out, 0) == 0 && !signbit(element(out, 0)));
            CHECK(element(out, 1) == 0 && signbit(element(out, 1)));
        }
        td_release(x);
        td_release(out);
    }
}

/* Powers by a number that have a loop of their own, over all exponents of x, whose result goes from
 * 0 to infinity: to a step between numbers; one and a half where a square is rounded, as the cube's
 * is of tiny numbers; two and a half where 1 / x is, since the square is no normal number. */
TEST(powers_by_a_number_are_right) {
    static const double exponents[] = {3, 2, 1, 0.5, -0.5, -1, -2};
    static const td_dtype dtypes[] = {TD_F32, TD_F64};
    enum { MANY = 4203 };
    double values[MANY];
    for (int d = 0; d < 2; d++) {
        for (int k = 0; k < MANY; k++) {
            double x = (1 + k * 7919 % 4001 / 4001.0) *
                       pow(2, (k / (double)MANY - 0.5) * (d ? 2040 : 250));
            values[k] = k % 2 ? -x : x;
        }
        values[5] = 0, values[6] = INFINITY, values[7] = NAN;
        td_tensor *x = tensor_of(dtypes[d], MANY, values);
        for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
            td_tensor *y = NULL;
            CHECK_INT(TD_APPLY(&y, pow, TD_T(x), TD_F(exponents[e])), TD_OK);
            for (int k = 0; y && k < MANY; k++) {
                const double v = element(x, k), got = element(y, k);
                const long double want = powl(v, (long double)exponents[e]);
                const double nearest = d ? (double)want : (double)(float)want;
                const bool tiny = fabs(nearest) < (d ? 0x1p-900 : 0x1p-90);
                const bool squares = exponents[e] == -2 || (exponents[e] == 3 && tiny);
                const bool far = exponents[e] == -2 && fabs(log2(fabs(nearest))) > (d ? 1019 : 124);
                const double steps = far ? 2.51 : squares ? 1.51 : 1.01;
                if (isnan(nearest) || isinf(nearest)
                        ? got != nearest && !(isnan(got) && isnan(nearest))
                        : fabsl(got - want) > steps * unit(dtypes[d], nearest))
                    check_fail(__FILE__, __LINE__, "%.9g ^ %g in %s is %.17g, not %.17Lg", v,
                               exponents[e], td_dtype_name(dtypes[d]), got, want);
            }
            td_release(y);
        }
        td_release(x);
    }
}

TEST(remainders_by_the_smallest_numbers_are_numbers) {
    static const struct {
        td_dtype dtype;
        double x, y;
    } cases[] = {{TD_F32, 1, 0x1.5p-128}, {TD_F64, 1.25, 5e-324}, {TD_F64, 1e300, 3e-320}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        td_tensor *x = tensor_of(cases[k].dtype, 1, &cases[k].x), *out = NULL;
        td_tensor *y = tensor_of(cases[k].dtype, 1, &cases[k].y);
        if (CHECK_INT(TD_APPLY(&out, fmod, TD_T(x), TD_T(y)), TD_OK))
            CHECK_CLOSE(element(out, 0), fmod(element(x, 0), element(y, 0)), 0);
        td_release(out);
        td_release(x);
        td_release(y);
    }
}

/* A whole vector goes another way where one lane is large: by SLEEF, or because ours does. */
/* Rounded once, from 300 bits: what lies half-way between two numbers goes to the nearer. */
TEST(hypotenuses_of_the_smallest_numbers_are_rounded_once) {
    static const double cases[][3] = {
        {2.06132868464808e-309, -8.030630616513e-312, 2.06134432766122e-309},
        {6.033833e-317, 7.1110997e-317, 9.3260325e-317},
        {-8.542052240761321e-308, -3.242299235161226e-309, 8.548203409325188e-308},
        {1.4587187487142104e-308, 4.417320492759784e-309, 1.524135030503501e-308},
        {-1.5505090266810203e-308, 5.975992e-317, 1.5505090266810203e-308},
        {1.5719842619725465e-308, -2.225073858507201e-308, 2.7243509677905844e-308},
        {5e-324, 5e-324, 5e-324},
        {1.5e-323, 2e-323, 2.5e-323},
        {-1.7439269758951227e-308, 1.583281082736317e-309, 1.751099393844968e-308},
        {3.169637504788198e-308, 2.6618824080419563e-308, 4.1391085834999785e-308},
        {1.074514665524543e-308, 1.1397977651093145e-308, 1.5664356711258554e-308},
        {1.5707532355189344e-308, 3.044968924841897e-309, 1.5999950263753104e-308},
        {1.7960428319291923e-308, 8.37336123055478e-309, 1.981641147407323e-308},
        {8.4143099618161e-309, 3.670139708973744e-309, 9.179898562451737e-309},
        {1.2496436246019685e-308, 5.828577930490196e-309, 1.378888101125802e-308}};
    enum { CASES = (int)(sizeof cases / sizeof *cases) };
    for (int c = 0; c < CASES; c++)
        for (int turned = 0; turned < 2; turned++) {
            double pair[2][9];
            for (int k = 0; k < 9; k++)
                for (int a = 0; a < 2; a++)
                    pair[a][k] = cases[c][a ^ turned];
            td_tensor *x = tensor_of(TD_F64, 9, pair[0]), *y = tensor_of(TD_F64, 9, pair[1]);
            td_tensor *out = NULL;
            const td_op *op = td_op_find("hypot");
            if (CHECK_INT(td_op_apply(op, &out, 2, (td_value[]){TD_T(x), TD_T(y)}), TD_OK))
                for (int k = 0; k < 9; k++)
                    CHECK_CLOSE(element(out, k), cases[c][2], 0);
            td_release(x);
            td_release(y);
            td_release(out);
        }
}

/* Are results of n values those that every second one of `mixed` has? */
static void check_neighbours(const char *name, td_dtype dtype, int n, const double *values,
                             const double *mixed) {
    td_tensor *x = tensor_of(dtype, n, values), *one = NULL, *other = NULL;
    td_tensor *y = tensor_of(dtype, 2 * n, mixed);
    const td_op *op = td_op_find(name);
    if (CHECK_INT(td_op_apply(op, &one, 1, (td_value[]){TD_T(x)}), TD_OK) &&
        CHECK_INT(td_op_apply(op, &other, 1, (td_value[]){TD_T(y)}), TD_OK))
        for (int k = 0; k < n; k++)
            CHECK_CLOSE(element(other, 2 * k), element(one, k), 0);
    td_release(x);
    td_release(y);
    td_release(one);
    td_release(other);
}

TEST(an_elements_result_does_not_depend_on_its_neighbours) {
    static const char *const names[] = {"sin",  "cos",   "tan",   "gelu", "erfc", "log", "sigmoid",
                                        "silu", "expm1", "log1p", "exp",  "exp2", "erf", "atan"};
    enum { N = 64, NAMES = (int)(sizeof names / sizeof *names) };
    double values[N], mixed[2 * N];
    for (int k = 0; k < N; k++) {
        values[k] = 0.37 * k - 11;
        mixed[2 * k] = values[k];
        mixed[2 * k + 1] = k % 4 == 0 ? 1e20 : k % 4 == 1 ? 300.5 : k % 4 == 2 ? -720 : NAN;
    }
    for (int d = 0; d < 2; d++)
        for (int f = 0; f < NAMES; f++)
            check_neighbours(names[f], d ? TD_F64 : TD_F32, N, values, mixed);
}

/* SLEEF, to which zeros go, has others of these and of few numbers more. */
TEST(logarithms_of_the_smallest_numbers_do_not_depend_on_zeros) {
    static const char *const names[] = {"log", "log2", "log10"};
    static const double small[] = {0x3b4377p-1074, 0xba0fbd4dp-1074, 0x2eab75fb05304p-1074};
    enum { N = 64, NAMES = (int)(sizeof names / sizeof *names) }; /* whole vectors */
    double values[N], mixed[2 * N];
    for (int k = 0; k < N; k++) {
        values[k] = small[k % 3];
        mixed[2 * k] = values[k];
        mixed[2 * k + 1] = k % 2 ? 0 : INFINITY;
    }
    for (int f = 0; f < NAMES; f++)
        check_neighbours(names[f], TD_F64, N, values, mixed);
}

static double norm_of(td_dtype dtype, int n, const double *values) {
    td_tensor *x = tensor_of(dtype, n, values), *out = NULL;
    double norm = NAN;
    if (CHECK_INT(TD_APPLY(&out, norm, TD_T(x)), TD_OK))
        norm = element(out, 0);
    td_release(x);
    td_release(out);
    return norm;
}

TEST(norms_neither_overflow_nor_vanish_on_the_way) {
    CHECK_CLOSE(norm_of(TD_F32, 2, (double[]){1e30, 1e30}), sqrt(2) * 1e30, 1e23);
    CHECK_CLOSE(norm_of(TD_F32, 2, (double[]){1e-30, 1e-30}), sqrt(2) * 1e-30, 1e-37);
    CHECK_CLOSE(norm_of(TD_F32, 2, (double[]){0x3p-149, 0x4p-149}), 0x5p-149, 0);
    CHECK_CLOSE(norm_of(TD_F64, 2, (double[]){3e300, 4e300}), 5e300, 1e285);
    CHECK_CLOSE(norm_of(TD_F64, 2, (double[]){3e-300, 4e-300}), 5e-300, 1e-315);
    CHECK_CLOSE(norm_of(TD_F64, 2, (double[]){0x3p-1074, 0x4p-1074}), 0x5p-1074, 0);
    CHECK_CLOSE(norm_of(TD_BF16, 2, (double[]){0x3p-100, 0x4p-100}), 0x5p-100, 0);
    CHECK_CLOSE(norm_of(TD_F32, 2, (double[]){0, 0}), 0, 0);
    CHECK_CLOSE(norm_of(TD_F32, 2, (double[]){-INFINITY, 1}), INFINITY, 0);
    CHECK(isnan(norm_of(TD_F64, 2, (double[]){NAN, 1e300})));
}

TEST(norms_over_a_dim_are_scaled_one_by_one) {
    const int64_t sizes[] = {2, 3};
    const double values[] = {3e200, 3e-200, 3, 4e200, 4e-200, 4};
    td_tensor *x = tensor_of(TD_F64, 6, values), *m = NULL, *out = NULL;
    const int64_t dim = 0;
    if (CHECK_INT(TD_APPLY(&m, reshape, TD_T(x), TD_INTS(2, sizes)), TD_OK) &&
        CHECK_INT(TD_APPLY(&out, norm, TD_T(m), TD_I(2), TD_INTS(1, &dim)), TD_OK)) {
        CHECK_CLOSE(element(out, 0), 5e200, 1e185);
        CHECK_CLOSE(element(out, 1), 5e-200, 1e-215);
        CHECK_CLOSE(element(out, 2), 5, 1e-15);
    }
    td_release(x);
    td_release(m);
    td_release(out);
}

/* The variance of `base` and the numbers up to 6 above it, over and over: 4. */
TEST(a_variance_of_close_numbers_is_theirs) {
    enum { N = 7 * 1000 };
    static double values[N];
    static const struct {
        td_dtype dtype;
        double base;
    } cases[] = {{TD_F32, 0x1p24 - 8}, {TD_F32, 1e7}, {TD_F64, 0x1p53 - 8}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        for (int k = 0; k < N; k++)
            values[k] = cases[c].base + k % 7;
        td_tensor *x = tensor_of(cases[c].dtype, N, values), *out = NULL;
        if (CHECK_INT(TD_APPLY(&out, var, TD_T(x), TD_NIL, TD_I(0)), TD_OK))
            CHECK_CLOSE(element(out, 0), 4, 1e-6);
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
    RUN(angles_keep_the_sign_of_zero);
    RUN(float_functions_are_right_in_every_interval);
    RUN(double_functions_are_right_in_every_interval);
    RUN(the_sign_of_zero_passes_through_odd_functions);
    RUN(powers_by_a_number_are_right);
    RUN(remainders_by_the_smallest_numbers_are_numbers);
    RUN(hypotenuses_of_the_smallest_numbers_are_rounded_once);
    RUN(an_elements_result_does_not_depend_on_its_neighbours);
    RUN(logarithms_of_the_smallest_numbers_do_not_depend_on_zeros);
    RUN(norms_neither_overflow_nor_vanish_on_the_way);
    RUN(norms_over_a_dim_are_scaled_one_by_one);
    RUN(a_variance_of_close_numbers_is_theirs);
    return check_finish();
}
