/* test_cpu_roots.c: square roots are rounded correctly: every float between 1 and 4, which has all
 * roots but for a power of two; the doubles whose roots lie nearest to the middle between two
 * others, where a step too few would show; and the ends, alone and among other numbers. */
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 1 << 16 };

static td_tensor *make(td_dtype dtype, int64_t n) {
    td_tensor *x = NULL;
    if (!CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x), TD_OK))
        exit(1);
    return x;
}

static td_tensor *root(td_tensor *x) {
    td_tensor *y = NULL;
    if (!CHECK_INT(TD_APPLY(&y, sqrt, TD_T(x)), TD_OK))
        exit(1);
    return y;
}

TEST(every_float_has_the_nearest_root) {
    td_tensor *x = make(TD_F32, BATCH);
    int64_t wrong = 0;
    for (uint32_t from = 0x3F800000; from < 0x40800000; from += BATCH) {
        float *v = x->data;
        for (uint32_t k = 0; k < BATCH; k++)
            memcpy(v + k, &(uint32_t){from + k}, sizeof *v);
        td_tensor *y = root(x);
        const float *r = y->data;
        for (int k = 0; k < BATCH; k++)
            wrong += r[k] != (float)sqrt((double)v[k]); /* rounding twice is harmless here */
        td_release(y);
    }
    CHECK_INT(wrong, 0);
    td_release(x);
}

/* Roots of k modulo 2^bits, for k = 1 modulo 8: a bit more at a time. */
static uint64_t root_modulo(int64_t k, int bits) {
    uint64_t m = 1;
    for (int b = 3; b < bits; b++)
        if ((m * m - (uint64_t)k) >> b & 1)
            m += 1ull << (b - 1);
    return m & ((1ull << bits) - 1);
}

/* x = (m^2 - k) / 4 for an odd m of 54 bits: its root lies k / 4m from the middle between two
 * doubles. Returns how many have been put into x. */
static int near_middles(double *x, int64_t k, int bits) {
    const uint64_t one = root_modulo(k, bits), half = 1ull << (bits - 1), all = 2 * half - 1;
    const uint64_t roots[] = {one, (0 - one) & all, (one + half) & all, (half - one) & all};
    int n = 0;
    for (int r = 0; r < 4; r++)
        for (uint64_t m = roots[r]; m < 1ull << 54; m += all + 1) {
            unsigned __int128 whole = (unsigned __int128)m * m - (unsigned __int128)(__int128)k;
            int shift = 0;
            for (; m >= 1ull << 53 && !(whole & 1); shift++)
                whole >>= 1;
            if (m >= 1ull << 53 && !(whole >> 53))
                x[n++] = ldexp((double)(uint64_t)whole, shift - 2);
        }
    return n;
}

/* Against the C library's, whose root is an instruction. */
static int64_t count_wrong(td_tensor *x, int64_t n) {
    td_tensor *y = root(x);
    int64_t wrong = 0;
    for (int64_t k = 0; k < n; k++)
        wrong += ((double *)y->data)[k] != sqrt(((double *)x->data)[k]);
    td_release(y);
    return wrong;
}

TEST(doubles_near_a_middle_have_the_nearest_root) {
    static const int powers[] = {-700, -612, -610, -100, 0, 1, 500, 900};
    td_tensor *x = make(TD_F64, BATCH);
    double *v = x->data;
    int n = 0;
    for (int64_t k = -8191; k < 8192 && n < BATCH - 16; k += 8)
        for (int bits = 54; bits <= 55; bits++)
            n += near_middles(v + n, k, bits);
    CHECK(n > 2000);
    for (int k = n; k < BATCH; k++)
        v[k] = 2;
    for (size_t p = 0; p < sizeof powers / sizeof *powers; p++) {
        for (int k = 0; k < n; k++)
            v[k] = ldexp(v[k], powers[p] - (p ? powers[p - 1] : 0));
        CHECK_INT(count_wrong(x, n), 0);
    }
    td_release(x);
}

static const double ends[] = {0,        -0.0,     1,       INFINITY, -INFINITY, NAN,      -1,
                              0x1p-149, 0x1p-126, 0x1p-61, 0x1p-60,  3.4e38,    0x1p-140, 4};

TEST(ends_are_right_in_any_lane) {
    enum { N = 64 };
    const int count = sizeof ends / sizeof *ends;
    td_tensor *x = make(TD_F32, N), *z = make(TD_F64, N);
    for (int k = 0; k < count; k++)
        for (int lane = 0; lane < 20; lane++) {
            for (int i = 0; i < N; i++) {
                ((float *)x->data)[i] = i % 20 == lane ? (float)ends[k] : 9;
                ((double *)z->data)[i] = i % 20 == lane ? ends[k] * 0x1p-900 : 9;
            }
            td_tensor *y = root(x), *w = root(z);
            for (int i = 0; i < N; i++) {
                float want = sqrtf(((float *)x->data)[i]);
                double more = sqrt(((double *)z->data)[i]);
                CHECK(isnan(want) ? isnan(((float *)y->data)[i])
                                  : memcmp((float *)y->data + i, &want, sizeof want) == 0);
                CHECK(isnan(more) ? isnan(((double *)w->data)[i])
                                  : memcmp((double *)w->data + i, &more, sizeof more) == 0);
            }
            td_release(y);
            td_release(w);
        }
    td_release(x);
    td_release(z);
}

/* Where denormal numbers are taken for zero no step becomes one. */
TEST(small_numbers_are_right_where_denormal_ones_are_flushed) {
    td_tensor *x = make(TD_F64, BATCH);
    double *v = x->data;
    int n = near_middles(v, 1, 54);
    for (int k = n; k < BATCH; k++)
        v[k] = v[k % n] + k;
    for (int k = 0; k < BATCH; k++)
        v[k] = ldexp(v[k], -612 - ilogb(v[k]));
    CHECK(td_set_flush_denormal(true));
    CHECK_INT(count_wrong(x, BATCH), 0);
    td_set_flush_denormal(false);
    td_release(x);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(every_float_has_the_nearest_root);
    RUN(doubles_near_a_middle_have_the_nearest_root);
    RUN(ends_are_right_in_any_lane);
    RUN(small_numbers_are_right_where_denormal_ones_are_flushed);
    return check_finish();
}
