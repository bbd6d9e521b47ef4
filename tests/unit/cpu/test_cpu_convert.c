/* test_cpu_convert.c: conversions between dtypes: all 16-bit floats there and back, rounding at and
 * beside every tie, and every pair of dtypes against the conversion of single elements. */
#include "engine/cpu/isa/isa.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALL = 65536 };

/* A 16-bit format: bits of the fraction, exponent of the smallest normal number. */
typedef struct format {
    td_dtype dtype;
    int fraction, least;
} format;

static const format formats[2] = {{TD_F16, 10, -14}, {TD_BF16, 7, -126}};

/* The value of some bits, from the format's definition. */
static double value_of(const format *f, unsigned bits) {
    int exponents = 1 << (15 - f->fraction);
    int exponent = (int)(bits >> f->fraction) % exponents;
    double fraction = bits % (1u << f->fraction), sign = bits >> 15 ? -1 : 1;
    if (exponent == exponents - 1)
        return fraction != 0 ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, f->least - f->fraction);
    return sign * ldexp(fraction + (1 << f->fraction), f->least + exponent - 1 - f->fraction);
}

/* The nearest value of the format, ties to the even one. */
static double nearest(const format *f, double v) {
    int exponent;
    if (v != v || isinf(v) || v == 0)
        return v;
    frexp(v, &exponent);
    exponent = exponent - 1 < f->least ? f->least : exponent - 1;
    double unit = ldexp(1, exponent - f->fraction), rounded = rint(v / unit) * unit;
    return fabs(rounded) >= ldexp(1, 2 - f->least) ? copysign(INFINITY, v) : rounded;
}

static bool same(double a, double b) {
    return (a != a && b != b) || (a == b && signbit(a) == signbit(b));
}

TEST(all_16_bit_floats_become_their_value) {
    uint16_t *bits = malloc(ALL * sizeof *bits);
    float *wide = malloc(ALL * sizeof *wide);
    for (int k = 0; k < ALL; k++)
        bits[k] = (uint16_t)k;
    for (int f = 0; f < 2; f++) {
        int wrong = 0;
        for (int from = 0; from < 3; from++) { /* another place in the vectors, another tail */
            td_cpu->convert->convert[TD_F32][formats[f].dtype](ALL - from, wide, bits + from);
            for (int k = from; k < ALL; k++) {
                double want = value_of(&formats[f], (unsigned)k);
                wrong += !same((double)wide[k - from], want);
                wrong += !same(td_load_double(formats[f].dtype, &bits[k]), want);
            }
        }
        CHECK_INT(wrong, 0);
    }
    free(bits);
    free(wide);
}

TEST(all_16_bit_floats_come_back) {
    uint16_t *bits = malloc(ALL * sizeof *bits), *back = malloc(ALL * sizeof *back);
    float *wide = malloc(ALL * sizeof *wide);
    for (int k = 0; k < ALL; k++)
        bits[k] = (uint16_t)k;
    for (int f = 0; f < 2; f++) {
        int wrong = 0;
        td_cpu->convert->convert[TD_F32][formats[f].dtype](ALL, wide, bits);
        td_cpu->convert->convert[formats[f].dtype][TD_F32](ALL, back, wide);
        for (int k = 0; k < ALL; k++) {
            double v = value_of(&formats[f], (unsigned)k);
            wrong += v != v ? value_of(&formats[f], back[k]) == value_of(&formats[f], back[k])
                            : back[k] != k;
        }
        CHECK_INT(wrong, 0);
    }
    free(bits);
    free(back);
    free(wide);
}

/* Round n numbers with the loop and one by one; how many come out wrong. */
static int count_wrong(const format *f, int n, const float *v) {
    uint16_t rounded[64], single;
    int wrong = 0;
    td_cpu->convert->convert[f->dtype][TD_F32](n, rounded, v);
    for (int k = 0; k < n; k++) {
        double want = nearest(f, (double)v[k]);
        td_store_double(f->dtype, &single, (double)v[k]);
        wrong += !same(td_load_double(f->dtype, &rounded[k]), want);
        wrong += !same(td_load_double(f->dtype, &single), want);
    }
    return wrong;
}

TEST(numbers_round_to_the_nearest_and_ties_to_even) {
    for (int f = 0; f < 2; f++) {
        int wrong = 0;
        for (unsigned k = 0; k < 0x7FFF; k++) {
            double low = value_of(&formats[f], k), high = value_of(&formats[f], k + 1);
            if (!(low < INFINITY))
                break;
            if (isinf(high)) /* where the next number would be */
                high = ldexp(1, 2 - formats[f].least);
            float tie = (float)((low + high) / 2);
            float v[18] = {tie, nextafterf(tie, 0), nextafterf(tie, INFINITY), (float)low};
            for (int j = 0; j < 9; j++) {
                v[j] = v[j % 4];
                v[9 + j] = -v[j];
            }
            wrong += count_wrong(&formats[f], 18, v);
        }
        CHECK_INT(wrong, 0);
    }
}

/* Of float64 and integers what float32 can't hold counts too. */
static int count_wrong_doubles(const format *f, int n, const double *v) {
    uint16_t rounded[64], single;
    int wrong = 0;
    td_cpu->convert->convert[f->dtype][TD_F64](n, rounded, v);
    for (int k = 0; k < n; k++) {
        td_store_double(f->dtype, &single, v[k]);
        wrong += !same(td_load_double(f->dtype, &rounded[k]), nearest(f, v[k]));
        wrong += !same(td_load_double(f->dtype, &single), nearest(f, v[k]));
    }
    return wrong;
}

static int count_wrong_integers(const format *f, int n, const int64_t *v) {
    uint16_t rounded[64], single;
    int wrong = 0;
    td_cpu->convert->convert[f->dtype][TD_I64](n, rounded, v);
    for (int k = 0; k < n; k++) {
        double want = nearest(f, (double)v[k]); /* exact: see below */
        td_store_int(f->dtype, &single, v[k]);
        wrong += !same(td_load_double(f->dtype, &rounded[k]), want);
        wrong += !same(td_load_double(f->dtype, &single), want);
        if (v[k] == (int32_t)v[k]) {
            int32_t narrow = (int32_t)v[k];
            td_cpu->convert->convert[f->dtype][TD_I32](1, &single, &narrow);
            wrong += !same(td_load_double(f->dtype, &single), want);
        }
    }
    return wrong;
}

TEST(doubles_and_integers_are_rounded_once) {
    for (int f = 0; f < 2; f++) {
        int wrong = 0;
        for (unsigned k = 0; k < 0x7FFF; k++) {
            double low = value_of(&formats[f], k), high = value_of(&formats[f], k + 1);
            if (!(low < INFINITY))
                break;
            if (isinf(high))
                high = ldexp(1, 2 - formats[f].least);
            double tie = (low + high) / 2;
            double v[6] = {tie, nextafter(tie, 0), nextafter(tie, INFINITY)};
            for (int j = 0; j < 3; j++)
                v[3 + j] = -v[j];
            wrong += count_wrong_doubles(&formats[f], 6, v);
            if (tie > 0x1p26 && tie < 0x1p52) { /* numbers beside the tie are doubles too */
                int64_t i = (int64_t)tie, whole[6] = {i, i - 1, i + 1, -i, 1 - i, -1 - i};
                wrong += count_wrong_integers(&formats[f], 6, whole);
            }
        }
        CHECK_INT(wrong, 0);
    }
    const double ends[] = {65519.99999, 65520,  0x1p-1074, -0x1p-1074, 0x1p-150,
                           1e300,       -1e300, NAN,       INFINITY};
    for (int f = 0; f < 2; f++)
        CHECK_INT(count_wrong_doubles(&formats[f], sizeof ends / sizeof *ends, ends), 0);
    /* beyond 2^53, where a double rounds as well: 2^62 and half a unit of bfloat16, and one more */
    uint16_t up, even;
    const int64_t tie = (1ll << 62) + (1ll << 54), above = tie + 1;
    td_cpu->convert->convert[TD_BF16][TD_I64](1, &even, &tie);
    td_cpu->convert->convert[TD_BF16][TD_I64](1, &up, &above);
    CHECK(td_load_double(TD_BF16, &even) == 0x1p62);
    CHECK(td_load_double(TD_BF16, &up) == 0x1p62 + 0x1p55);
}

TEST(what_is_not_finite_or_too_small_is_kept_or_rounded) {
    const float v[] = {INFINITY,   -INFINITY,       NAN,        -NAN,     0x1p-149f,
                       -0x1p-149f, 0x1p-25f,        0x1.8p-25f, 0x1p-24f, 65519.99f,
                       65520,      0x1.fffffep127f, 0,          -0.0f};
    for (int f = 0; f < 2; f++)
        CHECK_INT(count_wrong(&formats[f], sizeof v / sizeof *v, v), 0);
}

TEST(every_pair_of_dtypes_converts_as_single_elements_do) {
    enum { N = 1037 };
    char from[N * 8], to[N * 8], want[8];
    uint64_t seed = 1;
    for (int s = 0; s < TD_DTYPE_COUNT; s++) {
        size_t size = td_dtype_size((td_dtype)s);
        for (int k = 0; k < N; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            double v = ldexp((double)(int64_t)seed, -63 + (int)(seed >> 7 & 31) - 8);
            if (td_dtype_is_float((td_dtype)s))
                td_store_double((td_dtype)s, from + (size_t)k * size, v);
            else
                td_store_int((td_dtype)s, from + (size_t)k * size, (int64_t)seed >> (seed & 63));
        }
        for (int d = 0; d < TD_DTYPE_COUNT; d++) {
            int wrong = 0;
            size_t width = td_dtype_size((td_dtype)d);
            td_cpu->convert->convert[d][s](N, to, from);
            for (int k = 0; k < N; k++) {
                td_convert((td_dtype)d, want, 0, (td_dtype)s, from + (size_t)k * size, 0, 1);
                wrong += memcmp(want, to + (size_t)k * width, width) != 0;
            }
            if (wrong)
                check_fail(__FILE__, __LINE__, "%s to %s: %d of %d differ",
                           td_dtype_name((td_dtype)s), td_dtype_name((td_dtype)d), wrong, N);
        }
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(all_16_bit_floats_become_their_value);
    RUN(all_16_bit_floats_come_back);
    RUN(numbers_round_to_the_nearest_and_ties_to_even);
    RUN(doubles_and_integers_are_rounded_once);
    RUN(what_is_not_finite_or_too_small_is_kept_or_rounded);
    RUN(every_pair_of_dtypes_converts_as_single_elements_do);
    return check_finish();
}
