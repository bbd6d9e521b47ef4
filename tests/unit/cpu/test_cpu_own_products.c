/* test_cpu_own_products.c: products by our own loops (cpu/product/product.h): of integers, which
 * wrap around, of vectors, and of small matrices, against sums of their own; an element is the same
 * wherever it lies in a result. */
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/product/product.h"
#include "engine/td.h"

#include "tests/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t seed = 11;

static uint64_t next(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 17;
}

static td_tensor *make(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    if (!CHECK_INT(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x), TD_OK))
        exit(1);
    for (int64_t k = 0; k < x->numel; k++) {
        char *to = (char *)x->data + (size_t)k * td_tensor_itemsize(x);
        if (td_dtype_is_float(dtype))
            td_store_double(dtype, to, (double)(int64_t)(next() % 2001) / 1000 - 1);
        else
            memcpy(to, &(uint64_t){next() * 0x9e3779b97f4a7c15u}, td_tensor_itemsize(x));
    }
    return x;
}

static td_tensor *turned(td_tensor *x) {
    td_tensor *y = NULL;
    CHECK_INT(TD_APPLY(&y, transpose, TD_T(x), TD_I(-2), TD_I(-1)), TD_OK);
    return y;
}

static td_tensor *product(td_tensor *a, td_tensor *b) {
    td_tensor *c = NULL;
    if (!CHECK_INT(TD_APPLY(&c, matmul, TD_T(a), TD_T(b)), TD_OK))
        exit(1);
    return c;
}

static const void *place(const td_tensor *x, int64_t batch, int64_t row, int64_t column) {
    const int64_t *s = x->strides + x->ndim - 2;
    int64_t at = row * s[0] + column * s[1] + (x->ndim == 3 ? batch * x->strides[0] : 0);
    return (const char *)x->data + at * (int64_t)td_tensor_itemsize(x);
}

/* ---- integers ---- */

static uint64_t sum_of(const td_tensor *a, const td_tensor *b, int64_t batch, int64_t i,
                       int64_t j) {
    uint64_t sum = 0;
    for (int64_t l = 0; l < a->sizes[a->ndim - 1]; l++)
        sum += (uint64_t)td_load_int((td_dtype)a->dtype, place(a, batch, i, l)) *
               (uint64_t)td_load_int((td_dtype)b->dtype, place(b, batch, l, j));
    return sum;
}

static void check_integers(td_tensor *a, td_tensor *b) {
    td_tensor *c = product(a, b);
    size_t size = td_tensor_itemsize(c);
    const int64_t *sizes = c->sizes + c->ndim - 2;
    int64_t batches = c->ndim == 3 ? c->sizes[0] : 1, wrong = 0;
    for (int64_t k = 0; k < batches * sizes[0] * sizes[1]; k++) {
        int64_t batch = k / sizes[1] / sizes[0], i = k / sizes[1] % sizes[0], j = k % sizes[1];
        uint64_t want = sum_of(a, b, batch, i, j);
        wrong += memcmp(place(c, batch, i, j), &want, size) != 0; /* the low bytes */
    }
    CHECK_INT(wrong, 0);
    td_release(c);
}

TEST(products_of_integers_wrap_around_in_every_layout) {
    static const td_dtype dtypes[] = {TD_U8, TD_I8, TD_I16, TD_I32, TD_I64};
    static const int64_t sizes[][3] = {{6, 64, 64},  {7, 129, 257}, {100, 3, 300}, {3, 70, 300},
                                       {97, 66, 33}, {40, 1, 50},   {1, 40, 600},  {130, 20, 5}};
    for (int d = 0; d < 5; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            td_tensor *a = make(dtypes[d], 2, (int64_t[]){m, k});
            td_tensor *b = make(dtypes[d], 2, (int64_t[]){k, n});
            td_tensor *at = make(dtypes[d], 2, (int64_t[]){k, m}), *bt = NULL, *ta = turned(at);
            bt = make(dtypes[d], 2, (int64_t[]){n, k});
            td_tensor *tb = turned(bt);
            check_integers(a, b);
            check_integers(ta, b);
            check_integers(a, tb);
            check_integers(ta, tb);
            td_tensor *all[] = {a, b, at, bt, ta, tb};
            for (int r = 0; r < 6; r++)
                td_release(all[r]);
        }
}

TEST(batches_of_integers_and_biases_are_right) {
    td_tensor *a = make(TD_I32, 3, (int64_t[]){5, 30, 40});
    td_tensor *b = make(TD_I32, 3, (int64_t[]){5, 40, 70});
    check_integers(a, b);
    td_tensor *x = make(TD_I16, 2, (int64_t[]){20, 600}), *w = make(TD_I16, 2, (int64_t[]){9, 600});
    td_tensor *bias = make(TD_I16, 1, (int64_t[]){9}), *y = NULL, *wt = turned(w), *plain = NULL;
    CHECK_INT(TD_APPLY(&y, linear, TD_T(x), TD_T(w), TD_T(bias)), TD_OK);
    plain = product(x, wt);
    for (int64_t k = 0; k < y->numel; k++)
        CHECK_INT(((int16_t *)y->data)[k],
                  (int16_t)(((int16_t *)plain->data)[k] + ((int16_t *)bias->data)[k % 9]));
    td_tensor *all[] = {a, b, x, w, bias, y, wt, plain};
    for (int r = 0; r < 8; r++)
        td_release(all[r]);
}

/* ---- bytes ---- */

static void check_bytes(td_tensor *a, td_tensor *b) {
    td_tensor *c = NULL;
    int64_t wrong = 0;
    if (!CHECK_INT(TD_APPLY(&c, int_mm, TD_T(a), TD_T(b)), TD_OK))
        exit(1);
    CHECK_INT(c->dtype, TD_I32);
    for (int64_t i = 0; i < c->sizes[0]; i++)
        for (int64_t j = 0; j < c->sizes[1]; j++)
            wrong += *(const int32_t *)place(c, 0, i, j) != (int32_t)sum_of(a, b, 0, i, j);
    CHECK_INT(wrong, 0);
    td_release(c);
}

static const int64_t byte_sizes[][3] = {{1, 1, 1},    {3, 4, 5},      {2, 2, 700},   {6, 64, 64},
                                        {7, 65, 515}, {97, 66, 33},   {100, 3, 301}, {3, 130, 258},
                                        {130, 20, 5}, {98, 70, 1027}, {1, 40, 600},  {40, 1, 514}};

TEST(products_of_bytes_are_sums_of_int32_in_every_layout) {
    for (size_t s = 0; s < sizeof byte_sizes / sizeof *byte_sizes; s++) {
        int64_t m = byte_sizes[s][0], n = byte_sizes[s][1], k = byte_sizes[s][2];
        td_tensor *a = make(TD_I8, 2, (int64_t[]){m, k}), *b = make(TD_I8, 2, (int64_t[]){k, n});
        td_tensor *at = make(TD_I8, 2, (int64_t[]){k, m}), *bt = make(TD_I8, 2, (int64_t[]){n, k});
        td_tensor *ta = turned(at), *tb = turned(bt), *wide = NULL, *part = NULL;
        CHECK_INT(TD_APPLY(&wide, cat, TD_TENSORS(2, ((td_tensor *[]){a, a})), TD_I(1)), TD_OK);
        CHECK_INT(td_tensor_view(wide, 2, (int64_t[]){m, k}, (int64_t[]){2 * k, 2}, 0, &part),
                  TD_OK);
        check_bytes(a, b);
        check_bytes(ta, b);
        check_bytes(a, tb);
        check_bytes(ta, tb);
        check_bytes(part, b);
        td_tensor *all[] = {a, b, at, bt, ta, tb, wide, part};
        for (int r = 0; r < 8; r++)
            td_release(all[r]);
    }
}

/* Sums at the limits, and beyond those of int32: every term the same. */
TEST(sums_of_bytes_wrap_around) {
    static const int8_t ends[][2] = {{-128, -128}, {-128, 127}, {127, 127}};
    enum { LONG = 140000, FEW = 5, MANY = 67 };
    for (int e = 0; e < 3; e++) {
        td_tensor *a = make(TD_I8, 2, (int64_t[]){FEW, LONG});
        td_tensor *b = make(TD_I8, 2, (int64_t[]){LONG, MANY}), *c = NULL;
        memset(a->data, ends[e][0], FEW * LONG);
        memset(b->data, ends[e][1], (size_t)LONG * MANY);
        CHECK_INT(TD_APPLY(&c, int_mm, TD_T(a), TD_T(b)), TD_OK);
        for (int64_t k = 0; k < FEW * MANY; k++)
            CHECK_INT(((int32_t *)c->data)[k],
                      (int32_t)(uint32_t)((int64_t)ends[e][0] * ends[e][1] * LONG));
        td_release(a);
        td_release(b);
        td_release(c);
    }
}

/* By pairs and, where the machine has that, by fours: strides of their own, and a c with gaps. */
TEST(both_ways_of_bytes_give_the_same) {
    enum { ROWS = 100, COLUMNS = 70, DEPTH = 1030 };
    static int32_t one[ROWS * COLUMNS * 2], other[ROWS * COLUMNS * 2];
    td_tensor *a = make(TD_I8, 1, (int64_t[]){ROWS * DEPTH * 2});
    td_tensor *b = make(TD_I8, 1, (int64_t[]){COLUMNS * DEPTH * 2});
    const td_product_kernels *k = td_cpu->product;
    td_product_block p = {.a = a->data,
                          .b = b->data,
                          .c = (char *)one,
                          .rows = ROWS,
                          .columns = COLUMNS,
                          .depth = DEPTH,
                          .a_row = 2,
                          .a_column = ROWS * 2,
                          .b_row = 2,
                          .b_column = DEPTH * 2,
                          .c_row = COLUMNS * 2,
                          .c_column = 2};
    memset(one, 77, sizeof one);
    memset(other, 77, sizeof other);
    k->pairs(&p);
    p.c = (char *)other;
    if (k->quads && td_cpu_has_vnni())
        k->quads(&p);
    else
        k->pairs(&p);
    CHECK(memcmp(one, other, sizeof one) == 0);
    CHECK_INT(one[1], 0x4d4d4d4d);
    int32_t sum = 0;
    for (int64_t l = 0; l < DEPTH; l++)
        sum += ((int8_t *)a->data)[(ROWS - 1) * 2 + l * ROWS * 2] *
               ((int8_t *)b->data)[(COLUMNS - 1) * DEPTH * 2 + l * 2];
    CHECK_INT(one[(ROWS - 1) * COLUMNS * 2 + (COLUMNS - 1) * 2], sum);
    td_release(a);
    td_release(b);
}

/* ---- floats ---- */

/* The largest distance to the sum in double, over the sum of the terms' sizes. */
static double distance(const td_tensor *a, const td_tensor *b, const td_tensor *c) {
    td_dtype dtype = (td_dtype)c->dtype;
    double worst = 0;
    for (int64_t i = 0; i < c->sizes[0]; i++)
        for (int64_t j = 0; j < c->sizes[1]; j++) {
            double sum = 0, size = 1e-300;
            for (int64_t l = 0; l < a->sizes[1]; l++) {
                double term = td_load_double(dtype, place(a, 0, i, l)) *
                              td_load_double(dtype, place(b, 0, l, j));
                sum += term;
                size += fabs(term);
            }
            worst = fmax(worst, fabs(td_load_double(dtype, place(c, 0, i, j)) - sum) / size);
        }
    return worst;
}

static void check_floats(td_tensor *a, td_tensor *b) {
    td_tensor *c = product(a, b);
    CHECK_CLOSE(distance(a, b, c), 0, c->dtype == TD_F32 ? 3e-6 : 1e-14);
    td_release(c);
}

TEST(vectors_times_matrices_and_small_matrices_match_sums_in_double) {
    static const int64_t sizes[][3] = {{1, 1, 513},   {1, 1, 70001}, {1, 300, 515}, {300, 1, 1031},
                                       {2, 301, 700}, {3, 97, 4099}, {4, 200, 999}, {1, 3, 40000},
                                       {1, 1000, 7},  {48, 64, 48},  {63, 64, 63},  {50, 60, 40}};
    for (int d = 0; d < 2; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            td_dtype dtype = d ? TD_F64 : TD_F32;
            int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
            td_tensor *a = make(dtype, 2, (int64_t[]){m, k}),
                      *b = make(dtype, 2, (int64_t[]){k, n});
            td_tensor *at = make(dtype, 2, (int64_t[]){k, m}),
                      *bt = make(dtype, 2, (int64_t[]){n, k});
            td_tensor *ta = turned(at), *tb = turned(bt);
            check_floats(a, b);
            check_floats(a, tb);
            check_floats(ta, b);
            check_floats(ta, tb);
            td_tensor *all[] = {a, b, at, bt, ta, tb};
            for (int r = 0; r < 6; r++)
                td_release(all[r]);
        }
}

TEST(a_column_of_biases_is_added_once) {
    td_tensor *x = make(TD_F64, 2, (int64_t[]){2, 900}),
              *w = make(TD_F64, 2, (int64_t[]){700, 900});
    td_tensor *bias = make(TD_F64, 1, (int64_t[]){700}), *one = make(TD_F64, 1, (int64_t[]){1});
    td_tensor *tall = make(TD_F64, 2, (int64_t[]){800, 900}),
              *row = make(TD_F64, 2, (int64_t[]){1, 900});
    td_tensor *y = NULL, *z = NULL, *wt = turned(w), *rt = turned(row);
    CHECK_INT(TD_APPLY(&y, linear, TD_T(x), TD_T(w), TD_T(bias)), TD_OK);
    CHECK_INT(TD_APPLY(&z, linear, TD_T(tall), TD_T(row), TD_T(one)), TD_OK);
    td_tensor *want = product(x, wt), *column = product(tall, rt);
    for (int64_t k = 0; k < y->numel; k++)
        CHECK_CLOSE(((double *)y->data)[k],
                    ((double *)want->data)[k] + ((double *)bias->data)[k % 700], 1e-12);
    for (int64_t k = 0; k < z->numel; k++)
        CHECK_CLOSE(((double *)z->data)[k], ((double *)column->data)[k] + *(double *)one->data,
                    1e-12);
    td_tensor *all[] = {x, w, bias, one, tall, row, y, z, wt, rt, want, column};
    for (int r = 0; r < 12; r++)
        td_release(all[r]);
}

/* ---- the loops themselves ---- */

#define DEFINE_SAME(type, dtype)                                                                   \
    static void check_same_##type(void) {                                                          \
        enum { ROWS = 9, LONG = 131 };                                                             \
        const td_product_kernels *k = td_cpu->product;                                             \
        td_tensor *x = make(dtype, 1, (int64_t[]){LONG});                                          \
        td_tensor *w = make(dtype, 2, (int64_t[]){ROWS, LONG});                                    \
        const type *rows = w->data, *vector = x->data;                                             \
        type sums[LONG] = {0}, part[LONG];                                                         \
        k->combine[dtype](sums, vector, rows, LONG, LONG, ROWS);                                   \
        for (int c = 0; c < LONG; c++) {                                                           \
            memset(part, 0, sizeof part);                                                          \
            k->combine[dtype](part, vector, rows + c, LONG, LONG - c, ROWS);                       \
            CHECK(memcmp(part, sums + c, (size_t)(LONG - c) * sizeof(type)) == 0);                 \
        }                                                                                          \
        td_release(x);                                                                             \
        td_release(w);                                                                             \
    }
DEFINE_SAME(float, TD_F32)
DEFINE_SAME(double, TD_F64)

/* Each term once, of rows that end anywhere in a vector, whatever is beside them. */
static void check_dots(td_dtype dtype) {
    enum { VECTORS = 3, ROWS = 9, LONG = 211 };
    td_product_dots_fn dots = td_cpu->product->dots[dtype];
    td_tensor *x = make(dtype, 2, (int64_t[]){VECTORS, LONG});
    td_tensor *w = make(dtype, 2, (int64_t[]){ROWS, LONG});
    const int64_t size = (int64_t)td_dtype_size(dtype);
    double all[VECTORS][ROWS], one;
    for (int64_t n = 1; n <= LONG; n++) {
        td_product_dots d = {x->data, w->data, *all, LONG, LONG, ROWS, VECTORS, ROWS, n};
        dots(&d);
        for (int64_t i = 0; i < VECTORS; i++)
            for (int64_t r = 0; r < ROWS; r++) {
                const char *left = (char *)x->data + i * LONG * size;
                const char *right = (char *)w->data + r * LONG * size;
                double sum = 0, most = 0;
                for (int64_t k = 0; k < n; k++) {
                    double term = td_load_double(dtype, left + k * size) *
                                  td_load_double(dtype, right + k * size);
                    sum += term;
                    most += fabs(term);
                }
                dots(&(td_product_dots){left, right, &one, LONG, LONG, 1, 1, 1, n});
                CHECK(one == all[i][r]);
                CHECK(fabs(one - sum) <= (size == 8 ? 1e-14 : 1e-6) * most);
            }
    }
    td_release(x);
    td_release(w);
}

TEST(a_sum_is_the_same_whatever_is_beside_it) {
    check_same_float();
    check_same_double();
    check_dots(TD_F16);
    check_dots(TD_BF16);
    check_dots(TD_F32);
    check_dots(TD_F64);
}

/* ---- interrupts ---- */

static void *interrupt_soon(void *unused) {
    struct timespec pause = {.tv_nsec = 50000000};
    nanosleep(&pause, NULL);
    td_interrupt_request();
    return unused;
}

TEST(a_long_product_of_integers_is_interrupted) {
    pthread_t thread;
    td_tensor *big = NULL, *c = NULL;
    const int64_t sizes[] = {6000, 6000}; /* some ten seconds of work */
    CHECK_INT(TD_APPLY(&big, zeros, TD_INTS(2, sizes), TD_DTYPE(TD_I64)), TD_OK);
    pthread_create(&thread, NULL, interrupt_soon, NULL);
    td_status status = TD_APPLY(&c, mm, TD_T(big), TD_T(big));
    pthread_join(thread, NULL);
    CHECK_INT(status, TD_EINTR);
    td_interrupt_clear();
    td_release(c);
    td_release(big);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(products_of_integers_wrap_around_in_every_layout);
    RUN(batches_of_integers_and_biases_are_right);
    RUN(products_of_bytes_are_sums_of_int32_in_every_layout);
    RUN(sums_of_bytes_wrap_around);
    RUN(both_ways_of_bytes_give_the_same);
    RUN(vectors_times_matrices_and_small_matrices_match_sums_in_double);
    RUN(a_column_of_biases_is_added_once);
    RUN(a_sum_is_the_same_whatever_is_beside_it);
    RUN(a_long_product_of_integers_is_interrupted);
    return check_finish();
}
