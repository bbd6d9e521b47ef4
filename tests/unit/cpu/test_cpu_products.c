/* test_cpu_products.c: products, convolutions and pooling against naive sums in double, over sizes
 * that take each of the ways (plain loop, OpenBLAS, oneDNN), strides, and the cache of primitives.
 */
#include "engine/cpu/product/onednn.h"
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static uint64_t seed = 7;

static double uniform(void) { /* (-1, 1) */
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(seed >> 11) * 0x1p-52 - 1;
}

static td_tensor *make(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    if (!CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x), TD_OK))
        exit(1);
    for (int64_t k = 0; k < x->numel; k++)
        td_store_double(dtype, (char *)x->data + (size_t)k * td_tensor_itemsize(x),
                        td_dtype_is_float(dtype) ? uniform() : (double)(int64_t)(uniform() * 9));
    return x;
}

static double at(const td_tensor *x, const int64_t *index) {
    int64_t offset = 0;
    for (int d = 0; d < x->ndim; d++)
        offset += index[d] * x->strides[d];
    return td_load_double((td_dtype)x->dtype,
                          (const char *)x->data + offset * (int64_t)td_tensor_itemsize(x));
}

/* A view whose rows or columns lie apart, or turned. */
static td_tensor *arrange(td_dtype dtype, int how, int64_t rows, int64_t columns) {
    td_tensor *base, *view = NULL;
    if (how == 0)
        return make(dtype, 2, (int64_t[]){rows, columns});
    if (how == 1) { /* transposed */
        base = make(dtype, 2, (int64_t[]){columns, rows});
        CHECK_INT(
            td_tensor_view(base, 2, (int64_t[]){rows, columns}, (int64_t[]){1, rows}, 0, &view),
            TD_OK);
    } else if (how == 2) { /* rows apart */
        base = make(dtype, 2, (int64_t[]){rows, columns + 3});
        CHECK_INT(td_tensor_view(base, 2, (int64_t[]){rows, columns}, (int64_t[]){columns + 3, 1},
                                 2, &view),
                  TD_OK);
    } else { /* every second column */
        base = make(dtype, 2, (int64_t[]){rows, 2 * columns});
        CHECK_INT(td_tensor_view(base, 2, (int64_t[]){rows, columns}, (int64_t[]){2 * columns, 2},
                                 0, &view),
                  TD_OK);
    }
    td_release(base);
    return view;
}

static void check_mm(td_dtype dtype, int64_t m, int64_t n, int64_t k, int how) {
    td_tensor *a = arrange(dtype, how % 4, m, k), *b = arrange(dtype, how / 4, k, n), *c = NULL;
    if (CHECK_INT(TD_APPLY(&c, mm, TD_T(a), TD_T(b)), TD_OK)) {
        double worst = 0;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                double sum = 0;
                for (int64_t l = 0; l < k; l++)
                    sum += at(a, (int64_t[]){i, l}) * at(b, (int64_t[]){l, j});
                worst = fmax(worst, fabs(sum - at(c, (int64_t[]){i, j})));
            }
        CHECK_CLOSE(worst, 0, dtype == TD_F32 ? 1e-5 * (double)(k + 1) : 1e-12 * (double)(k + 1));
    }
    td_release(a);
    td_release(b);
    td_release(c);
}

TEST(products_of_all_sizes_and_layouts_match_naive_sums) {
    static const int64_t sizes[][3] = {{1, 1, 1},   {2, 3, 4},    {7, 5, 9},     {1, 40, 30},
                                       {40, 1, 30}, {33, 40, 50}, {70, 65, 130}, {5, 200, 300}};
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_I64, TD_I32};
    for (int d = 0; d < 4; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int how = 0; how < 16; how++)
                check_mm(dtypes[d], sizes[s][0], sizes[s][1], sizes[s][2], how);
}

TEST(a_product_with_itself_as_result_is_right) {
    td_tensor *a = make(TD_F32, 2, (int64_t[]){70, 70}), *want = NULL;
    CHECK_INT(TD_APPLY(&want, mm, TD_T(a), TD_T(a)), TD_OK);
    td_value args[] = {TD_T(a), TD_T(a)};
    td_call call = {.op = td_op_find("mm"), .args = args, .given = &a, .ngiven = 1};
    CHECK_INT(td_op_call(&call), TD_OK);
    CHECK(!memcmp(a->data, want->data, (size_t)a->numel * sizeof(float)));
    td_release(call.out[0]);
    td_release(want);
    td_release(a);
}

/* A convolution of 8 channels to 8 with kernels of 3 x 3, by oneDNN on every processor. */
static void convolve(int64_t rows) {
    td_tensor *x = make(TD_F32, 4, (int64_t[]){1, 8, rows, 12}), *y = NULL;
    td_tensor *weight = make(TD_F32, 4, (int64_t[]){8, 8, 3, 3});
    CHECK_INT(TD_APPLY(&y, conv2d, TD_T(x), TD_T(weight)), TD_OK);
    td_release(x);
    td_release(weight);
    td_release(y);
}

TEST(primitives_are_made_once_per_shape) {
    int64_t before = td_dnn_primitives_made();
    convolve(9);
    int64_t made = td_dnn_primitives_made();
    CHECK(made > before);
    for (int k = 0; k < 5; k++)
        convolve(9);
    CHECK_INT(td_dnn_primitives_made(), made);
}

TEST(the_cache_of_primitives_is_bounded) {
    int64_t before = td_dnn_primitives_made();
    for (int64_t rows = 3; rows <= 602; rows++) /* more shapes than it holds */
        convolve(rows);
    int64_t made = td_dnn_primitives_made();
    CHECK(made >= before + 599);
    convolve(602); /* the newest are kept */
    CHECK_INT(td_dnn_primitives_made(), made);
    convolve(3); /* the oldest are not */
    CHECK_INT(td_dnn_primitives_made(), made + 1);
}

typedef struct conv_case {
    int64_t n, c, h, w, o, kh, kw, stride[2], padding[2], dilation[2], groups;
} conv_case;

static double naive_conv(const conv_case *s, const td_tensor *x, const td_tensor *weight, int64_t n,
                         int64_t o, int64_t y, int64_t z) {
    int64_t inputs = s->c / s->groups, group = o / (s->o / s->groups);
    double sum = 0;
    for (int64_t c = 0; c < inputs; c++)
        for (int64_t i = 0; i < s->kh; i++)
            for (int64_t j = 0; j < s->kw; j++) {
                int64_t row = y * s->stride[0] - s->padding[0] + i * s->dilation[0];
                int64_t column = z * s->stride[1] - s->padding[1] + j * s->dilation[1];
                if (row >= 0 && row < s->h && column >= 0 && column < s->w)
                    sum += at(x, (int64_t[]){n, group * inputs + c, row, column}) *
                           at(weight, (int64_t[]){o, c, i, j});
            }
    return sum;
}

static void check_conv(const conv_case *s, td_dtype dtype) {
    td_tensor *x = make(dtype, 4, (int64_t[]){s->n, s->c, s->h, s->w});
    td_tensor *weight = make(dtype, 4, (int64_t[]){s->o, s->c / s->groups, s->kh, s->kw});
    td_tensor *bias = make(dtype, 1, &s->o), *y = NULL;
    td_status status =
        TD_APPLY(&y, conv2d, TD_T(x), TD_T(weight), TD_T(bias), TD_INTS(2, s->stride),
                 TD_INTS(2, s->padding), TD_INTS(2, s->dilation), TD_I(s->groups));
    if (CHECK_INT(status, TD_OK)) {
        double worst = 0;
        for (int64_t n = 0; n < s->n; n++)
            for (int64_t o = 0; o < s->o; o++)
                for (int64_t i = 0; i < y->sizes[2]; i++)
                    for (int64_t j = 0; j < y->sizes[3]; j++) {
                        double want = naive_conv(s, x, weight, n, o, i, j) + at(bias, &o);
                        worst = fmax(worst, fabs(want - at(y, (int64_t[]){n, o, i, j})));
                    }
        CHECK_CLOSE(worst, 0, dtype == TD_F32 ? 2e-5 : 1e-12);
    }
    td_release(x);
    td_release(weight);
    td_release(bias);
    td_release(y);
}

TEST(convolutions_match_naive_sums) {
    static const conv_case cases[] = {
        {2, 1, 8, 8, 6, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},
        {1, 3, 9, 7, 4, 3, 2, {2, 1}, {1, 0}, {1, 1}, 1},
        {2, 4, 8, 8, 6, 3, 3, {1, 2}, {2, 2}, {2, 1}, 2},
        {1, 6, 5, 5, 6, 1, 1, {1, 1}, {0, 0}, {1, 1}, 6},
        {3, 16, 13, 13, 16, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1},
        {1, 2, 3, 3, 2, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        check_conv(&cases[k], TD_F32);
        check_conv(&cases[k], TD_F64);
    }
}

/* Sums of nothing: the bias, or zero. */
TEST(sums_over_no_elements_are_the_bias) {
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_I64};
    for (int d = 0; d < 3; d++) {
        td_tensor *x = make(dtypes[d], 2, (int64_t[]){2, 0}), *y = NULL;
        td_tensor *weight = make(dtypes[d], 2, (int64_t[]){3, 0});
        td_tensor *bias = make(dtypes[d], 1, (int64_t[]){3});
        CHECK_INT(TD_APPLY(&y, linear, TD_T(x), TD_T(weight), TD_T(bias)), TD_OK);
        for (int64_t k = 0; k < 6; k++)
            CHECK_CLOSE(at(y, (int64_t[]){k / 3, k % 3}), at(bias, (int64_t[]){k % 3}), 0);
        td_release(y);
        CHECK_INT(TD_APPLY(&y, linear, TD_T(x), TD_T(weight)), TD_OK);
        for (int64_t k = 0; k < 6; k++)
            CHECK_CLOSE(at(y, (int64_t[]){k / 3, k % 3}), 0, 0);
        td_release(y);
        td_release(x);
        td_release(weight);
        td_release(bias);
    }
}

/* Batches of rows that can and can't be seen as one matrix, with a strided weight and bias. */
TEST(linear_takes_any_strides) {
    static const int64_t orders[][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_I32};
    const int64_t sizes[3] = {4, 6, 40}, two = 2, n = 20;
    for (int k = 0; k < 9; k++) {
        td_dtype dtype = dtypes[k / 3];
        td_tensor *base = make(dtype, 3, sizes), *x = NULL, *y = NULL, *b = NULL;
        CHECK_INT(TD_APPLY(&x, permute, TD_T(base), TD_INTS(3, orders[k % 3])), TD_OK);
        int64_t features = x->sizes[2];
        td_tensor *weight = arrange(dtype, 3, n, features);
        td_tensor *wide = make(dtype, 1, (int64_t[]){2 * n});
        CHECK_INT(td_tensor_view(wide, 1, &n, &two, 0, &b), TD_OK);
        if (CHECK_INT(TD_APPLY(&y, linear, TD_T(x), TD_T(weight), TD_T(b)), TD_OK)) {
            double worst = 0;
            for (int64_t i = 0; i < y->numel; i++) {
                int64_t place[3] = {i / n / x->sizes[1], i / n % x->sizes[1], i % n};
                double sum = at(b, &place[2]);
                for (int64_t l = 0; l < features; l++)
                    sum += at(x, (int64_t[]){place[0], place[1], l}) *
                           at(weight, (int64_t[]){place[2], l});
                worst = fmax(worst, fabs(sum - at(y, place)));
            }
            CHECK_CLOSE(worst, 0, 1e-4);
        }
        td_release(base);
        td_release(x);
        td_release(y);
        td_release(b);
        td_release(wide);
        td_release(weight);
    }
}

static void *interrupt_soon(void *unused) {
    struct timespec pause = {.tv_nsec = 50000000};
    nanosleep(&pause, NULL);
    td_interrupt_request();
    return unused;
}

TEST(a_long_product_is_interrupted) {
    pthread_t thread;
    td_tensor *a = make(TD_F32, 2, (int64_t[]){64, 64}), *big = NULL, *c = NULL;
    int64_t sizes[] = {16384, 16384}; /* some minutes of work on a row of zeros */
    CHECK_INT(TD_APPLY(&big, zeros, TD_INTS(2, sizes)), TD_OK);
    pthread_create(&thread, NULL, interrupt_soon, NULL);
    td_status status = TD_APPLY(&c, mm, TD_T(big), TD_T(big));
    pthread_join(thread, NULL);
    CHECK_INT(status, TD_EINTR);
    td_interrupt_clear();
    CHECK_INT(TD_APPLY(&c, mm, TD_T(a), TD_T(a)), TD_OK);
    td_release(c);
    td_release(a);
    td_release(big);
}

static volatile sig_atomic_t signals, astray;
static const char *stack; /* of this thread */

/* A handler's frame is written where the stack pointer points: is that the stack? */
static void look_at_stack(int number) {
    char here = (char)number;
    ptrdiff_t apart = stack - &here;
    signals = signals + 1;
    if (apart > 1 << 22 || apart < -(1 << 22))
        astray = astray + 1;
}

static void multiply_meanwhile(int64_t m, int64_t n, int64_t k, int times) {
    td_tensor *a = make(TD_F32, 2, (int64_t[]){m, k}), *half = NULL, *want = NULL;
    td_tensor *b = make(TD_F32, 2, (int64_t[]){k, 2 * n});
    CHECK_INT(td_tensor_view(b, 2, (int64_t[]){k, n}, (int64_t[]){2 * n, 1}, 0, &half), TD_OK);
    CHECK_INT(TD_APPLY(&want, mm, TD_T(a), TD_T(half)), TD_OK);
    for (int i = 0; i < times; i++) {
        td_tensor *c = NULL;
        CHECK_INT(TD_APPLY(&c, mm, TD_T(a), TD_T(half)), TD_OK);
        CHECK(memcmp(c->data, want->data, (size_t)c->numel * sizeof(float)) == 0);
        td_release(c);
    }
    td_release(a);
    td_release(b);
    td_release(half);
    td_release(want);
}

TEST(signals_meanwhile_harm_nothing) {
    struct sigaction act = {.sa_handler = look_at_stack, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    int threads = td_get_num_threads();
    char here = 0;
    stack = &here;
    CHECK_INT(td_set_num_threads(1), TD_OK); /* the pool's threads take no signals */
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    multiply_meanwhile(256, 1504, 3000, 10); /* of sizes for which operands are copied, */
    multiply_meanwhile(40, 90, 700, 300);    /* and not, deep ones */
    multiply_meanwhile(400, 90, 250, 2000);  /* and shallow ones, */
    multiply_meanwhile(40, 256, 700, 100);   /* and with rows that lie 2 KB apart */
    setitimer(ITIMER_REAL, &never, NULL);
    CHECK(signals > 0);
    CHECK_INT(astray, 0);
    CHECK_INT(td_set_num_threads(threads), TD_OK);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(products_of_all_sizes_and_layouts_match_naive_sums);
    RUN(a_product_with_itself_as_result_is_right);
    RUN(primitives_are_made_once_per_shape);
    RUN(the_cache_of_primitives_is_bounded);
    RUN(convolutions_match_naive_sums);
    RUN(sums_over_no_elements_are_the_bias);
    RUN(linear_takes_any_strides);
    RUN(a_long_product_is_interrupted);
    RUN(signals_meanwhile_harm_nothing);
    return check_finish();
}
