/* test_cpu_sorts.c: many short lines in order, of every length and dtype, against an order found
 * one element at a time: equal elements and zeros of both signs stay as they are, NaN is greatest.
 */
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>

static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_BF16, TD_I64,
                                  TD_I32, TD_I16, TD_I8,  TD_U8,   TD_BOOL};
enum { DTYPES = (int)(sizeof dtypes / sizeof *dtypes), LONGEST = 50 };

static void must(td_status status) {
    if (status) {
        fprintf(stderr, "%s\n", td_error_message());
        exit(1);
    }
}

static double at(const td_tensor *x, int64_t k) {
    return td_load_double((td_dtype)x->dtype, (char *)x->data + k * (int64_t)td_tensor_itemsize(x));
}

/* Few values, so that many are equal; of floats some are -0, 0, infinite or NaN. */
static td_tensor *drawn(td_dtype dtype, int64_t lines, int64_t n) {
    static const double odd[] = {-0.0, 0.0, NAN, INFINITY, -INFINITY};
    td_tensor *x;
    uint64_t state = 88172645463325252u + (uint64_t)(n * 64 + (int)dtype);
    must(td_tensor_empty(dtype, TD_DEVICE_CPU, 2, (int64_t[]){lines, n}, &x));
    for (int64_t k = 0; k < x->numel; k++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        double value = (double)(state >> 33 & 31) - (td_dtype_is_float(dtype) ? 16 : 0);
        if (td_dtype_is_float(dtype) && (state >> 40 & 7) == 0)
            value = odd[(state >> 45) % 5];
        td_store_double(dtype, (char *)x->data + k * (int64_t)td_tensor_itemsize(x),
                        dtype == TD_BOOL ? value > 15 : value);
    }
    return x;
}

static bool goes_before(double a, double b, bool descending) {
    if (descending)
        return isnan(a) ? !isnan(b) : a > b;
    return isnan(b) ? !isnan(a) : a < b;
}

/* How many elements of the line go before the one at k. */
static int64_t rank_of(const td_tensor *x, int64_t line, int64_t k, bool descending) {
    int64_t n = x->sizes[1], rank = 0;
    double own = at(x, line * n + k);
    for (int64_t i = 0; i < n; i++) {
        double other = at(x, line * n + i);
        rank +=
            goes_before(other, own, descending) || (i < k && !goes_before(own, other, descending));
    }
    return rank;
}

static bool is_same(double a, double b) {
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

/* The first results of each line of x. */
static void check_order(const td_tensor *x, td_tensor *const *out, bool descending) {
    int64_t n = x->sizes[1], first = out[0]->sizes[1];
    for (int64_t line = 0; line < x->sizes[0]; line++)
        for (int64_t k = 0; k < n; k++) {
            int64_t rank = rank_of(x, line, k, descending), to = line * first + rank;
            if (rank >= first)
                continue;
            if (((int64_t *)out[1]->data)[to] == k && is_same(at(out[0], to), at(x, line * n + k)))
                continue;
            check_fail(__FILE__, __LINE__, "%s [%d %d] %s: element %d of line %d is not at %d",
                       td_dtype_name((td_dtype)x->dtype), (int)x->sizes[0], (int)n,
                       descending ? "descending" : "ascending", (int)k, (int)line, (int)rank);
            return;
        }
}

static void check_sort(td_dtype dtype, int64_t lines, int64_t n, bool descending) {
    td_tensor *x = drawn(dtype, lines, n), *out[2] = {NULL, NULL};
    must(td_op_apply(TD_OP(sort), out, 3, (td_value[]){TD_T(x), TD_I(1), TD_B(descending)}));
    check_order(x, out, descending);
    td_release(out[0]);
    td_release(out[1]);
    td_release(x);
}

TEST(short_lines_are_sorted) {
    for (int d = 0; d < DTYPES; d++)
        for (int64_t n = 1; n <= LONGEST; n++)
            check_sort(dtypes[d], n % 3 == 0 ? 150 : n % 3 == 1 ? 17 : 64, n, n % 2);
}

TEST(the_first_of_short_lines_are_found) {
    for (int d = 0; d < DTYPES - 1; d++) /* topk refuses bool */
        for (int64_t n = 1; n <= LONGEST; n += 3) {
            td_tensor *x = drawn(dtypes[d], 70, n), *out[2] = {NULL, NULL};
            must(td_op_apply(TD_OP(topk), out, 4,
                             (td_value[]){TD_T(x), TD_I((n + 1) / 2), TD_I(1), TD_B(n % 2)}));
            check_order(x, out, n % 2);
            td_release(out[0]);
            td_release(out[1]);
            td_release(x);
        }
}

/* Medians are of what is not NaN, or the first NaN; other ranks count it. */
static void check_ranks(td_dtype dtype, int64_t n) {
    td_tensor *x = drawn(dtype, 40, n), *median[2] = {NULL}, *nanmedian[2] = {NULL},
              *own[2] = {NULL};
    must(td_op_apply(TD_OP(median), median, 2, (td_value[]){TD_T(x), TD_I(1)}));
    must(td_op_apply(TD_OP(nanmedian), nanmedian, 2, (td_value[]){TD_T(x), TD_I(1)}));
    must(td_op_apply(TD_OP(kthvalue), own, 3, (td_value[]){TD_T(x), TD_I((n + 1) / 2), TD_I(1)}));
    for (int64_t line = 0; line < 40; line++) {
        int64_t nans = 0;
        for (int64_t k = 0; k < n; k++)
            nans += isnan(at(x, line * n + k));
        const int64_t want[] = {nans ? n - nans : (n - 1) / 2, nans < n ? (n - nans - 1) / 2 : 0,
                                (n + 1) / 2 - 1};
        td_tensor *const *const all[] = {median, nanmedian, own};
        for (int k = 0; k < 3; k++) {
            int64_t place = ((int64_t *)all[k][1]->data)[line];
            if (!CHECK_INT(rank_of(x, line, place, false), want[k]) ||
                !CHECK(is_same(at(all[k][0], line), at(x, line * n + place))))
                return;
        }
    }
    for (int k = 0; k < 2; k++) {
        td_release(median[k]);
        td_release(nanmedian[k]);
        td_release(own[k]);
    }
    td_release(x);
}

TEST(ranks_of_short_lines_are_found) {
    for (int d = 0; d < DTYPES - 1; d++)
        for (int64_t n = 1; n <= LONGEST; n += 3)
            check_ranks(dtypes[d], n);
}

int main(void) {
    must(td_init());
    RUN(short_lines_are_sorted);
    RUN(the_first_of_short_lines_are_found);
    RUN(ranks_of_short_lines_are_found);
    return check_finish();
}
