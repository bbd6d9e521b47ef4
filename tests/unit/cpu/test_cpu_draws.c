/* test_cpu_draws.c: draws that are worked on many at a time are what core/draw_math.h makes of the
 * generator's words one by one, bit by bit, on every instruction set. */
#include "engine/td.h"

#include "engine/core/draw_math.h"

#include "tests/check.h"

#include <string.h>

enum { MOST = 2500 };

/* Word k of the draw that is about to be made. */
static uint32_t word_at(td_generator g, int64_t k) {
    uint32_t words[4];
    td_philox(g.seed, g.offset + (uint64_t)k / 4, words);
    return words[k % 4];
}

static double open_at(td_generator g, int64_t k) {
    const uint32_t words[2] = {word_at(g, 2 * k), word_at(g, 2 * k + 1)};
    return td_draw_open(words);
}

static td_tensor *empty(td_dtype dtype, int64_t n) {
    td_tensor *x = NULL;
    CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x), TD_OK);
    return x;
}

/* Is element k of x the number, as a draw stores it? */
static void check_number(const char *what, const td_tensor *x, int64_t k, double want) {
    size_t size = td_tensor_itemsize(x);
    unsigned char there[8];
    td_store_double((td_dtype)x->dtype, there, want);
    if (memcmp(there, (const char *)x->data + (size_t)k * size, size))
        check_fail(__FILE__, __LINE__, "%s of %s, %lld of %lld: %.17g, not %.17g", what,
                   td_dtype_name((td_dtype)x->dtype), (long long)k, (long long)x->numel,
                   td_load_double((td_dtype)x->dtype, (const char *)x->data + (size_t)k * size),
                   want);
}

static const int64_t lengths[] = {1, 2, 3, 4, 5, 8, 31, 33, 64, 511, 512, 513, 1027, MOST};
enum { LENGTHS = (int)(sizeof lengths / sizeof *lengths) };

static void check_shapes(td_dtype dtype, int64_t n) {
    td_tensor *x = empty(dtype, n);
    double sine, cosine, p = 0.3;
    td_generator g = td_get_default_generator();
    CHECK_INT(TD_APPLY_INPLACE(geometric_, TD_T(x), TD_F(p)), TD_OK);
    for (int64_t k = 0; k < n; k++)
        check_number("geometric_", x, k, ceil(td_draw_log(open_at(g, k)) / td_draw_log_rest(p)));
    for (int64_t k = 0; k < n && td_dtype_is_float(dtype); k++) {
        if (k == 0) {
            g = td_get_default_generator();
            CHECK_INT(TD_APPLY_INPLACE(exponential_, TD_T(x), TD_F(1.7)), TD_OK);
        }
        check_number("exponential_", x, k, -td_draw_log(open_at(g, k)) / 1.7);
    }
    for (int64_t k = 0; k < n && td_dtype_is_float(dtype); k++) {
        if (k == 0) {
            g = td_get_default_generator();
            CHECK_INT(TD_APPLY_INPLACE(cauchy_, TD_T(x), TD_F(2), TD_F(0.3)), TD_OK);
        }
        cosine = td_draw_turn(open_at(g, k) / 2, &sine);
        check_number("cauchy_", x, k, 2 - 0.3 * (cosine / sine));
    }
    td_release(x);
}

TEST(shapes_are_those_of_single_numbers) {
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_BF16, TD_I64, TD_I32, TD_U8};
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int l = 0; l < LENGTHS; l++)
            check_shapes(dtypes[d], lengths[l]);
}

/* Normal numbers of wide deviations, so that their exponentials overflow and vanish. */
TEST(log_normal_numbers_are_exponentials_of_normal_ones) {
    static const double deviations[] = {0.5, 20, 300, 700, 1e4};
    for (int l = 0; l < LENGTHS; l++)
        for (size_t s = 0; s < sizeof deviations / sizeof *deviations; s++)
            for (int wide = 0; wide < 2; wide++) {
                td_dtype dtype = wide ? TD_F64 : TD_F32;
                td_tensor *normal = empty(dtype, lengths[l]), *x = empty(dtype, lengths[l]);
                td_generator g = td_get_default_generator();
                CHECK_INT(TD_APPLY_INPLACE(normal_, TD_T(normal), TD_F(1), TD_F(deviations[s])),
                          TD_OK);
                td_set_default_generator(g);
                CHECK_INT(TD_APPLY_INPLACE(log_normal_, TD_T(x), TD_F(1), TD_F(deviations[s])),
                          TD_OK);
                for (int64_t k = 0; k < lengths[l]; k++)
                    check_number("log_normal_", x, k,
                                 td_draw_exp(wide ? ((double *)normal->data)[k]
                                                  : (double)((float *)normal->data)[k]));
                td_release(normal);
                td_release(x);
            }
}

static void check_range(td_dtype dtype, int64_t n, int64_t low, int64_t high) {
    td_tensor *x = empty(dtype, n);
    uint64_t count = (uint64_t)high - (uint64_t)low;
    int words = count > 1u << 24 ? 2 : 1;
    td_generator g = td_get_default_generator();
    CHECK_INT(TD_APPLY_INPLACE(random_, TD_T(x), TD_I(low), TD_I(high)), TD_OK);
    for (int64_t k = 0; k < n; k++) {
        uint64_t r = word_at(g, words * k);
        r = words == 1 ? r << 32 : r << 32 | word_at(g, 2 * k + 1);
        int64_t want = (int64_t)((uint64_t)low + (uint64_t)(((unsigned __int128)r * count) >> 64));
        if (dtype == TD_I64)
            CHECK_INT(((const int64_t *)x->data)[k], want);
        else
            check_number("random_", x, k, (double)want);
    }
    td_release(x);
}

TEST(integers_are_those_of_single_numbers) {
    for (int l = 0; l < LENGTHS; l++) {
        check_range(TD_F32, lengths[l], 0, (1 << 24) + 1);
        check_range(TD_F32, lengths[l], -3, 1 << 24);
        check_range(TD_I64, lengths[l], INT64_MIN, INT64_MAX);
        check_range(TD_I64, lengths[l], -5, 1ll << 32);
        check_range(TD_I64, lengths[l], 1ll << 40, (1ll << 40) + (1ll << 32) - 1);
        check_range(TD_I32, lengths[l], INT32_MIN, INT32_MAX);
        check_range(TD_U8, lengths[l], 3, 200);
        check_range(TD_BOOL, lengths[l], 0, 2);
        check_range(TD_F16, lengths[l], -100, 2000);
        check_range(TD_BF16, lengths[l], 0, 100);
    }
}

/* Means of one kind, of the other, and both side by side. */
static double mean_of(int64_t k, int how) {
    static const double edges[] = {0, 1e-300, 9.999, 10, 1e8, 1e30, (double)INFINITY, 0.5};
    if (how == 0)
        return edges[k % 8];
    return how == 1 ? 0.01 * (double)(k % 999) : 10 + 0.37 * (double)k;
}

TEST(poisson_numbers_are_those_of_single_ones) {
    for (int how = 0; how < 3; how++)
        for (int l = 0; l < LENGTHS; l++) {
            td_tensor *means = empty(TD_F64, lengths[l]), *y = NULL;
            double *mean = means->data;
            for (int64_t k = 0; k < lengths[l]; k++)
                mean[k] = mean_of(k, how);
            td_generator g = td_get_default_generator();
            if (CHECK_INT(TD_APPLY(&y, poisson, TD_T(means)), TD_OK))
                for (int64_t k = 0; k < lengths[l]; k++)
                    check_number("poisson", y, k,
                                 td_draw_poisson(mean[k], g.seed, g.offset + (uint64_t)k * 32, 32));
            td_release(means);
            td_release(y);
        }
}

/* The first place whose sum of weights lies above the number. */
static int64_t place_of(const double *weights, int64_t n, double number) {
    double all = 0, sum = 0;
    int64_t place = 0, last = 0;
    for (int64_t k = 0; k < n; k++) {
        last = weights[k] > 0 ? k : last;
        all += weights[k];
    }
    for (sum = weights[0]; place < last && !(sum > number * all);)
        sum += weights[++place];
    return place;
}

static void check_choices(int64_t rows, int64_t n, int64_t draws) {
    const int64_t sizes[2] = {rows, n};
    td_tensor *x = NULL, *y = NULL;
    CHECK_INT(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 2, sizes, &x), TD_OK);
    double *weights = x->data;
    for (int64_t k = 0; k < rows * n; k++)
        weights[k] = k % n == n / 2 ? 1 : k * 7 % 5 < 2 ? 0 : 0.1 * (double)(k * 3 % 7);
    td_generator g = td_get_default_generator();
    if (CHECK_INT(TD_APPLY(&y, multinomial, TD_T(x), TD_I(draws), TD_B(true)), TD_OK))
        for (int64_t k = 0; k < rows * draws; k++) {
            td_generator row = {g.seed, g.offset + (uint64_t)(k / draws * ((draws + 1) / 2))};
            CHECK_INT(((const int64_t *)y->data)[k],
                      place_of(weights + k / draws * n, n, open_at(row, k % draws)));
        }
    td_release(x);
    td_release(y);
}

TEST(choices_with_weights_are_those_of_single_ones) {
    for (int64_t rows = 1; rows < 10; rows++)
        for (int64_t n = 1; n < 40; n += 3)
            for (int64_t draws = 1; draws < 8; draws += 2)
                check_choices(rows, n, draws);
}

/* `name` of as many numbers as are drawn in several parts, in order and turned round. */
static void check_turned(const char *name, td_dtype dtype, int nargs, const td_value *more) {
    const int64_t sizes[] = {701, 403}, turned[] = {1, 701}, count = 701 * 403;
    td_tensor *x = empty(dtype, count), *room = empty(dtype, count), *y = NULL;
    td_generator g = td_get_default_generator();
    td_value args[3];
    for (int k = 0; k < nargs; k++)
        args[k + 1] = more[k];
    args[0] = TD_T(x);
    CHECK_INT(td_op_apply_inplace(td_op_find(name), nargs + 1, args), TD_OK);
    td_set_default_generator(g);
    if (CHECK_INT(td_tensor_view(room, 2, sizes, turned, 0, &y), TD_OK)) {
        args[0] = TD_T(y);
        CHECK_INT(td_op_apply_inplace(td_op_find(name), nargs + 1, args), TD_OK);
        int64_t wrong = 0;
        size_t size = td_dtype_size(dtype);
        for (int64_t k = 0; k < count; k++)
            wrong += memcmp((char *)room->data + (size_t)(k / 403 + k % 403 * 701) * size,
                            (char *)x->data + (size_t)k * size, size) != 0;
        CHECK_INT(wrong, 0);
    }
    td_release(x);
    td_release(room);
    td_release(y);
}

TEST(how_a_tensor_lies_does_not_show_in_its_numbers) {
    const td_value wide[] = {TD_I(0), TD_I(1ll << 40)}, few[] = {TD_I(0), TD_I(10)};
    check_turned("uniform_", TD_F32, 0, NULL);
    check_turned("normal_", TD_F32, 0, NULL);
    check_turned("normal_", TD_F64, 0, NULL);
    check_turned("exponential_", TD_BF16, 0, NULL);
    check_turned("random_", TD_I64, 2, wide);
    check_turned("random_", TD_U8, 2, few);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    td_manual_seed(77);
    RUN(shapes_are_those_of_single_numbers);
    RUN(log_normal_numbers_are_exponentials_of_normal_ones);
    RUN(integers_are_those_of_single_numbers);
    RUN(how_a_tensor_lies_does_not_show_in_its_numbers);
    RUN(poisson_numbers_are_those_of_single_ones);
    RUN(choices_with_weights_are_those_of_single_ones);
    return check_finish();
}
