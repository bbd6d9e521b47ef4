/* test_cpu_rows.c: rows of every length up to a few vectors, in every dtype: steps along broadcast
 * and strided ones, what follows their ends, softmax of them, their elements in reverse and in any
 * order, running sums, products and log-sum-exps of them. */
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_BF16, TD_I64,
                                  TD_I32, TD_I16, TD_I8,  TD_U8};
enum { DTYPES = (int)(sizeof dtypes / sizeof *dtypes), LONGEST = 70 };

static void must(td_status status) {
    if (status) {
        fprintf(stderr, "%s\n", td_error_message());
        exit(1);
    }
}

static double at(const td_tensor *x, int64_t k) {
    return td_load_double((td_dtype)x->dtype, (char *)x->data + k * (int64_t)td_tensor_itemsize(x));
}

static void put(td_tensor *x, int64_t k, double value) {
    td_store_double((td_dtype)x->dtype, (char *)x->data + k * (int64_t)td_tensor_itemsize(x),
                    value);
}

/* Whole numbers from 0 to 50, which every dtype has. */
static double value(int64_t k) {
    return (double)(k * 37 % 51);
}

static td_tensor *filled(td_dtype dtype, int ndim, const int64_t *sizes, int64_t seed) {
    td_tensor *x;
    must(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x));
    for (int64_t k = 0; k < x->numel; k++)
        put(x, k, value(k + seed));
    return x;
}

/* The greater and the comparison of [outer, 1, n] and [outer, middle, 1], or the other way round.
 */
static void check_broadcast(td_dtype dtype, int64_t outer, int64_t middle, int64_t n, bool swap) {
    td_tensor *run = filled(dtype, 3, (int64_t[]){outer, 1, n}, 3), *out = NULL, *less = NULL;
    td_tensor *one = filled(dtype, 3, (int64_t[]){outer, middle, 1}, 11);
    must(TD_APPLY(&out, maximum, TD_T(swap ? one : run), TD_T(swap ? run : one)));
    must(TD_APPLY(&less, lt, TD_T(swap ? one : run), TD_T(swap ? run : one)));
    for (int64_t k = 0; k < out->numel; k++) {
        double a = at(run, k / n / middle * n + k % n), b = at(one, k / n);
        if (at(out, k) != fmax(a, b) || at(less, k) != (swap ? b < a : a < b)) {
            check_fail(__FILE__, __LINE__, "%s [%d %d %d]: element %d is %g of %g and %g",
                       td_dtype_name(dtype), (int)outer, (int)middle, (int)n, (int)k, at(out, k), a,
                       b);
            break;
        }
    }
    td_release(run);
    td_release(one);
    td_release(out);
    td_release(less);
}

TEST(a_step_along_rows_takes_single_elements_of_the_other_operand) {
    static const int64_t lengths[] = {1, 2, 5, 6, 7, 15, 16, 17, 48, 63, 100, 255, 256, 300};
    for (int d = 0; d < DTYPES; d++)
        for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
            for (int swap = 0; swap < 2; swap++) {
                check_broadcast(dtypes[d], 2, 3, lengths[k], swap);
                check_broadcast(dtypes[d], 3, 50, lengths[k], swap);
            }
    int threads = td_get_num_threads();
    must(td_set_num_threads(3));
    check_broadcast(TD_F32, 7, 1001, 37, false);
    must(td_set_num_threads(threads));
}

TEST(a_choice_along_rows_takes_three_operands) {
    enum { R = 40, N = 29 };
    td_tensor *which = filled(TD_I32, 2, (int64_t[]){R, N}, 0), *out = NULL, *odd = NULL;
    td_tensor *a = filled(TD_F32, 2, (int64_t[]){R, 1}, 5);
    td_tensor *b = filled(TD_F32, 2, (int64_t[]){1, N}, 9);
    must(TD_APPLY(&odd, gt, TD_T(which), TD_I(20)));
    must(TD_APPLY(&out, where, TD_T(odd), TD_T(a), TD_T(b)));
    for (int64_t k = 0; k < R * N; k++)
        CHECK_CLOSE(at(out, k), at(which, k) > 20 ? at(a, k / N) : at(b, k % N), 0);
    td_release(which);
    td_release(odd);
    td_release(a);
    td_release(b);
    td_release(out);
}

/* Rows of n in a wider tensor: what lies between them is not touched. */
TEST(a_step_along_rows_ends_where_they_do) {
    enum { R = 9, WIDTH = LONGEST + 3 };
    for (int d = 0; d < DTYPES; d++)
        for (int64_t n = 1; n <= LONGEST; n++) {
            td_tensor *x = filled(dtypes[d], 2, (int64_t[]){R, WIDTH}, 0), *rows = NULL;
            td_tensor *y = filled(dtypes[d], 2, (int64_t[]){R, 1}, 1);
            const int64_t sizes[] = {R, n}, strides[] = {WIDTH, 1};
            must(td_tensor_view(x, 2, sizes, strides, 1, &rows));
            must(TD_APPLY_INPLACE(add, TD_T(rows), TD_T(y)));
            for (int64_t k = 0; k < R * WIDTH; k++) {
                bool inside = k % WIDTH >= 1 && k % WIDTH <= n;
                double want = value(k) + (inside ? value(k / WIDTH + 1) : 0);
                if (!CHECK_CLOSE(at(x, k), want, 0))
                    break;
            }
            td_release(x);
            td_release(rows);
            td_release(y);
        }
}

TEST(a_reversed_row_is_copied_from_its_end) {
    for (int d = 0; d < DTYPES; d++)
        for (int64_t n = 1; n < 2500; n += n < LONGEST ? 1 : 611) {
            td_tensor *x = filled(dtypes[d], 2, (int64_t[]){3, n}, 0), *rows = NULL, *all = NULL;
            const int64_t dims[] = {0, 1};
            must(TD_APPLY(&rows, flip, TD_T(x), TD_INTS(1, dims + 1)));
            must(TD_APPLY(&all, flip, TD_T(x), TD_INTS(2, dims)));
            for (int64_t k = 0; k < 3 * n; k++) {
                CHECK_CLOSE(at(rows, k), at(x, k / n * n + n - 1 - k % n), 0);
                CHECK_CLOSE(at(all, k), at(x, 3 * n - 1 - k), 0);
            }
            td_release(x);
            td_release(rows);
            td_release(all);
        }
}

/* Element k of n is the one at this place of the row: the first and the last are among them. */
static int64_t place_in(int64_t n, int64_t k) {
    return (k * 29 + n - 1) % n;
}

/* [2, n] gathered along its rows, whose every seventh index counts from the end if `odd`. */
static void check_gather(td_dtype dtype, int64_t n, bool odd) {
    td_tensor *x = filled(dtype, 2, (int64_t[]){2, n}, 5), *index, *out = NULL, *taken = NULL;
    must(td_tensor_empty(TD_I64, TD_DEVICE_CPU, 2, (int64_t[]){2, n}, &index));
    for (int64_t k = 0; k < 2 * n; k++)
        put(index, k, (double)(place_in(n, k) - (odd && k % 7 == 0 ? n : 0)));
    must(TD_APPLY(&out, gather, TD_T(x), TD_I(1), TD_T(index)));
    must(TD_APPLY(&taken, take, TD_T(x), TD_T(index)));
    for (int64_t k = 0; k < 2 * n; k++) {
        int64_t place = place_in(n, k), back = odd && k % 7 == 0 ? n : 0;
        if (at(out, k) != at(x, k / n * n + place) || at(taken, k) != at(x, place + back)) {
            check_fail(__FILE__, __LINE__, "%s [2 %d]: element %d is %g and %g",
                       td_dtype_name(dtype), (int)n, (int)k, at(out, k), at(taken, k));
            break;
        }
    }
    td_release(x);
    td_release(index);
    td_release(out);
    td_release(taken);
}

TEST(a_row_is_gathered_in_any_order) {
    for (int d = 0; d < DTYPES; d++)
        for (int64_t n = 1; n <= LONGEST; n++) {
            check_gather(dtypes[d], n, false);
            check_gather(dtypes[d], n, true);
        }
    check_gather(TD_F32, 2500, false); /* blocks */
    check_gather(TD_F32, 2500, true);
}

enum { A = 5, B = 40, C = 6, FEWER_A = 4, FEWER_B = 37 };

/* What [5, 40, 6] is reached through along a dim, at fewer places than it has; of more lines than
 * are looked at together. */
static td_tensor *places_along(int dim, bool odd) {
    const int64_t sizes[] = {A, B, C};
    td_tensor *index;
    must(td_tensor_empty(TD_I64, TD_DEVICE_CPU, 3, (int64_t[]){FEWER_A, FEWER_B, C}, &index));
    for (int64_t k = 0; k < index->numel; k++)
        put(index, k, (double)(place_in(sizes[dim], k) - (odd && k % 97 == 0 ? sizes[dim] : 0)));
    return index;
}

/* The element that the index's k-th one leads to, in a tensor with these strides. */
static int64_t reached(int dim, int64_t k, const int64_t *strides) {
    const int64_t sizes[] = {A, B, C};
    int64_t i[] = {k / (FEWER_B * C), k / C % FEWER_B, k % C};
    i[dim] = place_in(sizes[dim], k);
    return i[0] * strides[0] + i[1] * strides[1] + i[2] * strides[2];
}

/* [5, 40, 6], whose outer dims may lie the other way round: its memory and the view of it. */
static td_tensor *outer_dims(bool turned, td_tensor **view) {
    td_tensor *x = filled(TD_F32, 3, turned ? (int64_t[]){B, A, C} : (int64_t[]){A, B, C}, 5);
    *view = NULL;
    must(TD_APPLY(view, transpose, TD_T(x), TD_I(0), TD_I(turned ? 1 : 0)));
    return x;
}

static void check_gather_in(int dim, bool turned, bool odd) {
    td_tensor *view, *x = outer_dims(turned, &view), *index = places_along(dim, odd), *out = NULL;
    must(TD_APPLY(&out, gather, TD_T(view), TD_I(dim), TD_T(index)));
    for (int64_t k = 0; k < out->numel; k++)
        if (!CHECK_INT((int64_t)at(out, k), (int64_t)at(x, reached(dim, k, view->strides))))
            break;
    td_release(x);
    td_release(view);
    td_release(index);
    td_release(out);
}

TEST(short_lines_are_gathered_along_any_dim) {
    for (int k = 0; k < 12; k++)
        check_gather_in(k % 3, k / 3 % 2, k / 6);
}

/* The last of several elements for one place stays; all of them are added. */
static void check_scatter_in(int dim, bool turned, bool add) {
    td_tensor *view, *x = outer_dims(turned, &view), *index = places_along(dim, turned);
    td_tensor *from = filled(TD_F32, 3, (int64_t[]){FEWER_A, FEWER_B, C}, 11), *want = NULL;
    must(TD_APPLY(&want, clone, TD_T(x)));
    for (int64_t k = 0; k < from->numel; k++) {
        int64_t to = reached(dim, k, view->strides);
        put(want, to, at(from, k) + (add ? at(want, to) : 0));
    }
    const td_op *op = add ? TD_OP(scatter_add) : TD_OP(scatter);
    td_tensor *out = NULL;
    must(td_op_apply(op, &out, 4, (td_value[]){TD_T(view), TD_I(dim), TD_T(index), TD_T(from)}));
    for (int64_t k = 0; k < x->numel; k++) {
        const int64_t i[] = {k / (B * C), k / C % B, k % C}, *l = out->strides, *r = view->strides;
        if (!CHECK_INT((int64_t)at(out, i[0] * l[0] + i[1] * l[1] + i[2] * l[2]),
                       (int64_t)at(want, i[0] * r[0] + i[1] * r[1] + i[2] * r[2])))
            break;
    }
    td_release(x);
    td_release(view);
    td_release(index);
    td_release(from);
    td_release(want);
    td_release(out);
}

TEST(short_lines_are_scattered_along_any_dim) {
    for (int k = 0; k < 12; k++)
        check_scatter_in(k % 3, k / 3 % 2, k / 6);
}

/* ---- softmax ---- */

enum { ROWS = 4 };

/* One step of the dtype from x. */
static double unit(td_dtype dtype, double x) {
    int digits = dtype == TD_F64 ? 53 : dtype == TD_F32 ? 24 : dtype == TD_F16 ? 11 : 8;
    return ldexp(1, ilogb(fmax(fabs(x), 1e-5)) - digits + 1);
}

static void check_softmax_row(const td_tensor *x, const td_tensor *y, const td_tensor *log_y,
                              int64_t row, int64_t n) {
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < n; k++)
        most = fmax(most, at(x, row * n + k));
    for (int64_t k = 0; k < n; k++)
        sum += exp(at(x, row * n + k) - most);
    for (int64_t k = row * n; k < (row + 1) * n; k++) {
        double want = exp(at(x, k) - most) / sum, log_want = at(x, k) - most - log(sum);
        double by = (x->dtype == TD_F64 ? 40 : 8) * unit((td_dtype)x->dtype, want);
        double log_by = 4 * unit((td_dtype)x->dtype, fmax(fabs(log_want), 1));
        if (isnan(sum)) {
            CHECK(isnan(at(y, k)) && isnan(at(log_y, k)));
        } else {
            CHECK_CLOSE(at(y, k), want, by);
            CHECK(isinf(log_want) ? at(log_y, k) == log_want
                                  : fabs(at(log_y, k) - log_want) <= log_by);
        }
    }
}

/* The last row holds `edge` where that is not 0. */
static void check_softmax(td_dtype dtype, int64_t n, double edge) {
    td_tensor *x = filled(dtype, 2, (int64_t[]){ROWS, n}, 0), *y = NULL, *log_y = NULL;
    for (int64_t k = 0; k < ROWS * n; k++)
        put(x, k, value(k) / 8 - 4);
    if (edge != 0)
        put(x, ROWS * n - 1 - n / 3, edge);
    must(TD_APPLY(&y, softmax, TD_T(x), TD_I(1)));
    must(TD_APPLY(&log_y, log_softmax, TD_T(x), TD_I(1)));
    for (int64_t row = 0; row < ROWS; row++)
        check_softmax_row(x, y, log_y, row, n);
    td_release(x);
    td_release(y);
    td_release(log_y);
}

TEST(softmax_is_right_for_rows_of_every_length) {
    for (int d = 0; d < 4; d++)
        for (int64_t n = 1; n < 1000; n += n < LONGEST ? 1 : 211) {
            check_softmax(dtypes[d], n, 0);
            check_softmax(dtypes[d], n, NAN);
            check_softmax(dtypes[d], n, INFINITY);
            check_softmax(dtypes[d], n, -INFINITY);
        }
}

TEST(gradients_of_softmax_are_right_for_rows_of_every_length) {
    for (int d = 0; d < 2; d++)
        for (int64_t n = 1; n < 600; n += n < LONGEST ? 1 : 211) {
            td_tensor *x = filled(dtypes[d], 2, (int64_t[]){ROWS, n}, 0), *y = NULL, *dx = NULL;
            td_tensor *g = filled(dtypes[d], 2, (int64_t[]){ROWS, n}, 7);
            for (int64_t k = 0; k < ROWS * n; k++)
                put(x, k, value(k) / 8);
            must(TD_APPLY(&y, softmax, TD_T(x), TD_I(1)));
            must(TD_APPLY(&dx, softmax_backward, TD_T(y), TD_T(g), TD_I(1)));
            for (int64_t k = 0; k < ROWS * n; k++) {
                double sum = 0;
                for (int64_t i = k / n * n; i < (k / n + 1) * n; i++)
                    sum += at(g, i) * at(y, i);
                CHECK_CLOSE(at(dx, k), at(y, k) * (at(g, k) - sum), 64 * unit(dtypes[d], 1));
            }
            td_release(x);
            td_release(y);
            td_release(g);
            td_release(dx);
        }
}

/* The four operations of [outer, middle, n] and [outer, middle, 1] or [outer, 1, n]. */
static void check_operations(td_dtype dtype, int64_t n, bool column, bool swap) {
    enum { OUTER = 3, MIDDLE = 5 };
    td_tensor *x = filled(dtype, 3, (int64_t[]){OUTER, MIDDLE, n}, 3);
    td_tensor *y = column ? filled(dtype, 3, (int64_t[]){OUTER, MIDDLE, 1}, 11)
                          : filled(dtype, 3, (int64_t[]){OUTER, 1, n}, 11);
    const td_op *ops[] = {TD_OP(add), TD_OP(sub), TD_OP(mul), TD_OP(div)};
    for (int o = 0; o < 4; o++) {
        td_tensor *out = NULL;
        must(td_op_apply(ops[o], &out, 2, (td_value[]){TD_T(swap ? y : x), TD_T(swap ? x : y)}));
        for (int64_t k = 0; k < out->numel; k++) {
            double a = at(x, k), b = at(y, column ? k / n : k / n / MIDDLE * n + k % n);
            double l = swap ? b : a, r = swap ? a : b;
            double want = o == 0 ? l + r : o == 1 ? l - r : o == 2 ? l * r : l / r;
            if (!(isnan(want) && isnan(at(out, k))) &&
                !CHECK(at(out, k) == (dtype == TD_F32 ? (double)(float)want : want)))
                break;
        }
        td_release(out);
    }
    td_release(x);
    td_release(y);
}

TEST(short_rows_are_combined_many_at_once) {
    for (int64_t n = 2; n <= LONGEST; n++)
        for (int k = 0; k < 8; k++)
            check_operations(k / 4 ? TD_F64 : TD_F32, n, k & 1, k & 2);
}

/* [rows, n] beside [rows, m]: rows that are copied to where others lie between them. */
static void check_joined(td_dtype dtype, int64_t rows, int64_t n, int64_t m) {
    td_tensor *x = filled(dtype, 2, (int64_t[]){rows, n}, 3), *out = NULL;
    td_tensor *y = filled(dtype, 2, (int64_t[]){rows, m}, 17);
    td_tensor *both[] = {x, y};
    must(TD_APPLY(&out, cat, TD_TENSORS(2, both), TD_I(1)));
    for (int64_t k = 0; k < out->numel; k++) {
        int64_t r = k / (n + m), c = k % (n + m);
        if (!CHECK_INT((int64_t)at(out, k),
                       (int64_t)(c < n ? at(x, r * n + c) : at(y, r * m + c - n))))
            break;
    }
    td_release(x);
    td_release(y);
    td_release(out);
}

TEST(rows_of_every_length_are_copied_side_by_side) {
    static const td_dtype sizes[] = {TD_U8, TD_F16, TD_F32, TD_F64};
    for (int d = 0; d < 4; d++)
        for (int64_t n = 1; n <= 270; n += n < 35 ? 1 : 13)
            check_joined(sizes[d], 5, n, n % 7 + 1);
    check_joined(TD_F32, 9000, 37, 2); /* parts that end within a row */
}

/* Running sums or products of `lines` lines of n, that lie side by side or one behind the other. */
static void check_scan(td_dtype dtype, int64_t lines, int64_t n, bool beside, bool product) {
    td_tensor *x = filled(dtype, 2, beside ? (int64_t[]){n, lines} : (int64_t[]){lines, n}, 7);
    td_tensor *out = NULL;
    const int64_t step = beside ? lines : 1, apart = beside ? 1 : n;
    for (int64_t k = 0; k < x->numel; k++)
        put(x, k, product ? 1 + (value(k) < 12) : value(k) / 2);
    if (product)
        must(TD_APPLY(&out, cumprod, TD_T(x), TD_I(beside ? 0 : 1)));
    else
        must(TD_APPLY(&out, cumsum, TD_T(x), TD_I(beside ? 0 : 1)));
    for (int64_t line = 0; line < lines; line++) {
        double want = product ? 1 : 0;
        for (int64_t k = 0; k < n; k++) {
            int64_t i = line * apart + k * step;
            want = product ? want * at(x, i) : want + at(x, i);
            if (!CHECK_CLOSE(at(out, i), want, unit((td_dtype)out->dtype, want)))
                return;
        }
    }
    td_release(x);
    td_release(out);
}

TEST(scans_are_right_for_lines_of_every_length) {
    static const int64_t many[] = {1, 2, 3, 4, 5, 9, 40};
    for (int d = 0; d < DTYPES; d++)
        for (size_t m = 0; m < sizeof many / sizeof *many; m++)
            for (int64_t n = 1; n <= LONGEST; n += n < 9 ? 1 : 11)
                for (int k = 0; k < 4; k++)
                    if (k < 2 || dtypes[d] != TD_F16) /* products that it doesn't have */
                        check_scan(dtypes[d], many[m], n, k % 2, k > 1);
    check_scan(TD_F32, 3, 10000, true, false);
    check_scan(TD_F64, 5, 10000, false, false);
    check_scan(TD_I64, 3, 10001, false, false);
}

/* A transposed x is turned round first: what comes of it is what comes of a copy. */
static void check_across(td_dtype dtype, int64_t lines, int64_t n) {
    td_tensor *base = filled(dtype, 2, (int64_t[]){n, lines}, 7), *x = NULL, *copy = NULL;
    must(TD_APPLY(&x, transpose, TD_T(base), TD_I(0), TD_I(1)));
    must(TD_APPLY(&copy, contiguous, TD_T(x)));
    for (int64_t dim = 0; dim < 2; dim++) {
        td_tensor *out = NULL, *want = NULL;
        int64_t wrong = 0;
        must(TD_APPLY(&out, cumsum, TD_T(x), TD_I(dim)));
        must(TD_APPLY(&want, cumsum, TD_T(copy), TD_I(dim)));
        CHECK(out->contiguous);
        for (int64_t k = 0; k < out->numel; k++)
            wrong += !(at(out, k) == at(want, k) || isnan(at(want, k)));
        CHECK_INT(wrong, 0);
        td_release(out);
        td_release(want);
    }
    td_release(base);
    td_release(x);
    td_release(copy);
}

TEST(scans_across_what_lies_transposed_are_those_of_a_copy) {
    static const int64_t sides[] = {1, 3, 15, 16, 17, 70, 300};
    for (int d = 0; d < DTYPES; d++)
        for (int a = 0; a < 7; a++)
            for (int b = 0; b < 7; b++)
                check_across(dtypes[d], sides[a], sides[b]);
}

TEST(log_sum_exps_run_along_lines_side_by_side) {
    enum { LINES = 11, N = 7 };
    td_tensor *x = filled(TD_F64, 2, (int64_t[]){LINES, N}, 7), *out = NULL;
    const double odd[] = {INFINITY, -INFINITY, NAN};
    for (int64_t k = 0; k < x->numel; k++)
        put(x, k, k % 9 < 6 ? (double)(k % 13) - 20 : odd[k / 9 % 3]);
    put(x, 0, -INFINITY);
    must(TD_APPLY(&out, logcumsumexp, TD_T(x), TD_I(1)));
    for (int64_t line = 0; line < LINES; line++) {
        double sum = 0;
        for (int64_t k = 0; k < N; k++) {
            double want = log(sum += exp(at(x, line * N + k))), got = at(out, line * N + k);
            if (isfinite(want))
                CHECK_CLOSE(got, want, 1e-14 * (1 + fabs(want)));
            else
                CHECK(isnan(want) ? isnan(got) : got == want);
        }
    }
    td_release(x);
    td_release(out);
}

int main(void) {
    must(td_init());
    RUN(a_step_along_rows_takes_single_elements_of_the_other_operand);
    RUN(a_choice_along_rows_takes_three_operands);
    RUN(a_step_along_rows_ends_where_they_do);
    RUN(a_reversed_row_is_copied_from_its_end);
    RUN(a_row_is_gathered_in_any_order);
    RUN(short_lines_are_gathered_along_any_dim);
    RUN(short_lines_are_scattered_along_any_dim);
    RUN(softmax_is_right_for_rows_of_every_length);
    RUN(gradients_of_softmax_are_right_for_rows_of_every_length);
    RUN(short_rows_are_combined_many_at_once);
    RUN(rows_of_every_length_are_copied_side_by_side);
    RUN(scans_are_right_for_lines_of_every_length);
    RUN(scans_across_what_lies_transposed_are_those_of_a_copy);
    RUN(log_sum_exps_run_along_lines_side_by_side);
    return check_finish();
}
