/* test_cpu_same_results.c: results are the same, bit by bit, for every number of threads, and
 * random numbers on every instruction set. tests/torture/digests asks it of all operators. */
#include "engine/td.h"

#include "tests/check.h"

#include <string.h>

static const int counts[] = {1, 2, 3, 8};
enum { COUNTS = (int)(sizeof counts / sizeof *counts) };

static td_tensor *drawn(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    CHECK_INT(TD_APPLY(&x, randn, TD_INTS(ndim, sizes), TD_DTYPE(dtype)), TD_OK);
    return x;
}

static uint64_t hash_of(const td_tensor *x) {
    const unsigned char *p = x->data;
    uint64_t h = 1469598103934665603u;
    for (size_t k = 0; k < (size_t)x->numel * td_tensor_itemsize(x); k++)
        h = (h ^ p[k]) * 1099511628211u;
    return h;
}

/* Run the operator with each number of threads and compare with what one gave. */
static void check_threads(const char *what, const td_op *op, int nargs, const td_value *args) {
    uint64_t want = 0;
    for (int k = 0; k < COUNTS; k++) {
        td_tensor *out = NULL;
        CHECK_INT(td_set_num_threads(counts[k]), TD_OK);
        if (!CHECK_INT(td_op_apply(op, &out, nargs, args), TD_OK))
            return;
        if (k == 0)
            want = hash_of(out);
        else if (hash_of(out) != want)
            check_fail(__FILE__, __LINE__, "%s differs with %d threads", what, counts[k]);
        td_release(out);
    }
}

TEST(products_do_not_depend_on_the_number_of_threads) {
    static const int64_t shapes[][3] = {{65, 127, 33},  {500, 700, 300}, {16, 1000, 1000},
                                        {8, 20000, 8},  {4, 70000, 5},   {1, 600, 900},
                                        {1, 300000, 1}, {3, 900, 1100},  {1, 70000, 2}};
    int threads = td_get_num_threads();
    for (int d = 0; d < 2; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            td_dtype dtype = d ? TD_F64 : TD_F32;
            const int64_t m = shapes[s][0], k = shapes[s][1], n = shapes[s][2];
            td_tensor *a = drawn(dtype, 2, (int64_t[]){m, k}),
                      *flat = drawn(dtype, 2, (int64_t[]){k, m});
            td_tensor *b = drawn(dtype, 2, (int64_t[]){k, n}), *at = NULL;
            CHECK_INT(TD_APPLY(&at, transpose, TD_T(flat), TD_I(0), TD_I(1)), TD_OK);
            check_threads("a b", TD_OP(matmul), 2, (td_value[]){TD_T(a), TD_T(b)});
            check_threads("a^T b", TD_OP(matmul), 2, (td_value[]){TD_T(at), TD_T(b)});
            td_release(a);
            td_release(flat);
            td_release(b);
            td_release(at);
        }
    CHECK_INT(td_set_num_threads(threads), TD_OK);
}

/* n, channels in and out, size, kernel, padding, groups */
static const int64_t convolutions[][7] = {
    {8, 3, 8, 16, 3, 1, 1},   {32, 16, 32, 14, 3, 1, 1}, {16, 32, 64, 7, 1, 0, 1},
    {3, 8, 16, 9, 3, 1, 4},   {1, 64, 128, 10, 3, 1, 1}, {5, 3, 64, 20, 7, 3, 1},
    {40, 6, 16, 12, 5, 0, 1}, {1, 64, 3, 9, 3, 1, 1},    {2, 8, 1, 9, 3, 1, 1}};

static void check_convolution(td_dtype dtype, const int64_t *c) {
    td_tensor *x = drawn(dtype, 4, (int64_t[]){c[0], c[1], c[3], c[3]}), *y = NULL, *g = NULL;
    td_tensor *w = drawn(dtype, 4, (int64_t[]){c[2], c[1] / c[6], c[4], c[4]});
    const int64_t one[] = {1, 1}, padding[] = {c[5], c[5]};
    const td_value rest[] = {TD_INTS(2, one), TD_INTS(2, padding), TD_INTS(2, one), TD_I(c[6])};
    const td_value args[] = {TD_T(x), TD_T(w), TD_NIL, rest[0], rest[1], rest[2], rest[3]};
    check_threads("conv2d", TD_OP(conv2d), 7, args);
    if (CHECK_INT(td_op_apply(TD_OP(conv2d), &y, 7, args), TD_OK)) {
        g = drawn(dtype, 4, y->sizes);
        check_threads("the weight's gradient", TD_OP(conv_weight), 7,
                      (td_value[]){TD_T(x), TD_INTS(4, w->sizes), TD_T(g), rest[0], rest[1],
                                   rest[2], rest[3]});
        check_threads("the input's gradient", TD_OP(conv_input), 7,
                      (td_value[]){TD_INTS(4, x->sizes), TD_T(w), TD_T(g), rest[0], rest[1],
                                   rest[2], rest[3]});
    }
    td_release(x);
    td_release(w);
    td_release(y);
    td_release(g);
}

TEST(convolutions_do_not_depend_on_the_number_of_threads) {
    int threads = td_get_num_threads();
    for (size_t k = 0; k < sizeof convolutions / sizeof *convolutions; k++) {
        check_convolution(TD_F32, convolutions[k]);
        check_convolution(TD_F64, convolutions[k]);
        check_convolution(TD_BF16, convolutions[k]);
    }
    CHECK_INT(td_set_num_threads(threads), TD_OK);
}

TEST(functions_of_large_angles_do_not_depend_on_the_number_of_threads) {
    int threads = td_get_num_threads();
    td_tensor *x = drawn(TD_F32, 1, (int64_t[]){200003}), *large = NULL;
    if (CHECK_INT(TD_APPLY(&large, mul, TD_T(x), TD_F(100)), TD_OK)) {
        check_threads("sin", TD_OP(sin), 1, (td_value[]){TD_T(large)});
        check_threads("cos", TD_OP(cos), 1, (td_value[]){TD_T(large)});
        check_threads("tan", TD_OP(tan), 1, (td_value[]){TD_T(large)});
    }
    td_release(x);
    td_release(large);
    CHECK_INT(td_set_num_threads(threads), TD_OK);
}

/* This test runs under every instruction set, and the numbers are the same. */
TEST(random_numbers_are_the_same_bits_on_every_instruction_set) {
    static const struct {
        td_dtype dtype;
        uint64_t uniform, normal;
    } cases[] = {
        {TD_F32, 0x10abc2e68a44f621u, 0x2020e33134280484u},
        {TD_F64, 0x9c01140558841079u, 0x32ed4ddf3df444d3u},
        {TD_F16, 0xea4b7cdbfaa0e2adu, 0xac1ee00bb60a7b4fu},
        {TD_BF16, 0xee208e3a14f69ffau, 0x8e004b500266c6bfu},
    };
    const int64_t n = 5001;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        td_tensor *u = NULL;
        td_manual_seed(11);
        CHECK_INT(TD_APPLY(&u, rand, TD_INTS(1, &n), TD_DTYPE(cases[k].dtype)), TD_OK);
        td_tensor *x = drawn(cases[k].dtype, 1, &n);
        if (hash_of(u) != cases[k].uniform || hash_of(x) != cases[k].normal)
            check_fail(__FILE__, __LINE__, "%s: 0x%llx, 0x%llx", td_dtype_name(cases[k].dtype),
                       (unsigned long long)hash_of(u), (unsigned long long)hash_of(x));
        td_release(u);
        td_release(x);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    td_set_deterministic(true);
    RUN(products_do_not_depend_on_the_number_of_threads);
    RUN(convolutions_do_not_depend_on_the_number_of_threads);
    RUN(functions_of_large_angles_do_not_depend_on_the_number_of_threads);
    RUN(random_numbers_are_the_same_bits_on_every_instruction_set);
    return check_finish();
}
