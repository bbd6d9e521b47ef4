/* test_cpu_panels.c: products of large matrices by our own packing (cpu/product/product.h), and
 * triangles solved by the same tiles, called directly, so that they run whatever library a machine
 * prefers: against sums in double, over every row and column that a tile can end at, over layouts,
 * batches and depths. */
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/product/blas.h"
#include "engine/cpu/product/product.h"
#include "engine/td.h"

#include "tests/check.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 1 << 21, GAP = 3 };

static char left[MOST * 8], right[MOST * 8], result[MOST * 8], again[MOST * 8], bias[4096 * 8];
static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_BF16};

static void fill(td_dtype dtype, void *to, int64_t n) {
    static uint64_t seed = 5;
    for (int64_t k = 0; k < n; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        td_store_double(dtype, (char *)to + k * (int64_t)td_dtype_size(dtype),
                        (double)(int64_t)(seed >> 53) / 1024 - 1);
    }
}

/* Matrices whose lines, of rows or of columns, lie GAP elements further apart than they are long.
 */
static td_product_block block_of(int64_t m, int64_t n, int64_t k, bool a_turned, bool b_turned) {
    return (td_product_block){.a = left,
                              .b = right,
                              .c = result,
                              .rows = m,
                              .columns = n,
                              .depth = k,
                              .a_row = a_turned ? 1 : k + GAP,
                              .a_column = a_turned ? m + GAP : 1,
                              .b_row = b_turned ? 1 : n + GAP,
                              .b_column = b_turned ? k + GAP : 1,
                              .c_row = n + GAP,
                              .c_column = 1};
}

static double of(td_dtype dtype, const char *x, int64_t at) {
    return td_load_double(dtype, x + at * (int64_t)td_dtype_size(dtype));
}

/* What rounding may cost beside the sum of the terms' sizes: that of the sums, and of the result.
 */
static int64_t count_wrong(td_dtype dtype, const td_product_block *p,
                           const td_product_batch *batch) {
    double sums = dtype == TD_F64 ? 1e-14 : 3e-6;
    double rounded = dtype == TD_F16 ? 0x1p-11 : dtype == TD_BF16 ? 0x1p-8 : 0;
    int64_t wrong = 0;
    for (int64_t b = 0; b < batch->n; b++)
        for (int64_t i = 0; i < p->rows; i++)
            for (int64_t j = 0; j < p->columns; j++) {
                double sum = p->bias ? of(dtype, p->bias, j) : 0, size = fabs(sum);
                for (int64_t l = 0; l < p->depth; l++) {
                    double term = of(dtype, p->a, b * batch->a + i * p->a_row + l * p->a_column) *
                                  of(dtype, p->b, b * batch->b + l * p->b_row + j * p->b_column);
                    sum += term;
                    size += fabs(term);
                }
                double got = of(dtype, p->c, b * batch->c + i * p->c_row + j);
                wrong += !(fabs(got - sum) <= sums * size + rounded * fabs(sum));
            }
    return wrong;
}

static void check(td_dtype dtype, td_product_block p, const td_product_batch *batch) {
    const int64_t size = (int64_t)td_dtype_size(dtype), ends = p.columns;
    memset(result, 0x5a, (size_t)MOST);
    CHECK(td_product_has_panels(dtype, &p));
    CHECK_INT(td_product_by_panels(dtype, &p, batch), TD_OK);
    CHECK_INT(count_wrong(dtype, &p, batch), 0);
    for (int64_t k = 0; k < GAP * size; k++) /* nothing is written between rows */
        CHECK_INT(result[ends * size + k], 0x5a);
}

static const td_product_batch single = {.n = 1};

TEST(every_end_of_a_tile_is_right) {
    int64_t rows = td_cpu->product->tile_rows;
    for (int d = 0; d < 4; d++) {
        int64_t width = td_cpu->product->tile_bytes / (dtypes[d] == TD_F64 ? 8 : 4);
        fill(dtypes[d], left, MOST / 8);
        fill(dtypes[d], right, MOST / 8);
        fill(dtypes[d], bias, 4096);
        for (int64_t m = 1; m <= 2 * rows + 1; m++)
            for (int64_t n = 1; n <= width + 2; n += n < width / 2 ? 3 : 1) {
                td_product_block p = block_of(m, n, 9, m & 1, n & 1);
                p.bias = (m + n) % 3 ? bias : NULL;
                check(dtypes[d], p, &single);
            }
    }
}

/* Blocks of rows, panels that are packed together, and pieces along depth: whole ones and some
 * over. */
TEST(blocks_panels_and_pieces_are_right) {
    static const int64_t sizes[][3] = {{121, 40, 30}, {250, 130, 20}, {5, 530, 70},
                                       {30, 20, 511}, {30, 20, 512},  {30, 70, 513},
                                       {7, 70, 1025}, {3, 1100, 600}, {126, 66, 1040}};
    for (int d = 0; d < 4; d++) {
        fill(dtypes[d], left, MOST / 2);
        fill(dtypes[d], right, MOST / 2);
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int layout = 0; layout < 4; layout++) {
                td_product_block p =
                    block_of(sizes[s][0], sizes[s][1], sizes[s][2], layout & 1, layout & 2);
                p.bias = layout == 1 ? bias : NULL;
                check(dtypes[d], p, &single);
            }
    }
}

/* More terms than are packed at a time; of those 16-bit floats say that they are too deep. */
TEST(deep_sums_go_on_where_they_were) {
    enum { DEPTH = 16 * 1024 * 2 + 5 };
    for (int d = 0; d < 2; d++) {
        fill(dtypes[d], left, MOST);
        fill(dtypes[d], right, MOST);
        check(dtypes[d], block_of(7, 19, DEPTH, false, false), &single);
        check(dtypes[d], block_of(7, 19, DEPTH, true, true), &single);
    }
    td_product_block p = block_of(7, 19, DEPTH, false, false);
    CHECK(!td_product_has_panels(TD_F16, &p));
    CHECK(!td_product_has_panels(TD_I32, &p));
    p.a_row = p.a_column = 2;
    CHECK(!td_product_has_panels(TD_F32, &p));
}

TEST(batches_are_right_and_may_share_a_side) {
    for (int d = 0; d < 4; d++) {
        fill(dtypes[d], left, MOST / 4);
        fill(dtypes[d], right, MOST / 4);
        td_product_block p = block_of(31, 45, 52, false, true);
        check(dtypes[d], p, &(td_product_batch){9, 3000, 4000, 31 * (45 + GAP)});
        check(dtypes[d], p, &(td_product_batch){5, 3000, 0, 31 * (45 + GAP)});
    }
}

/* Cut for threads and among neighbours: the same bits, with any number of threads. */
TEST(an_element_is_the_same_wherever_it_lies) {
    enum { M = 203, N = 190, K = 700 };
    int threads = td_get_num_threads();
    for (int d = 0; d < 4; d++) {
        int64_t size = (int64_t)td_dtype_size(dtypes[d]);
        td_product_block p = block_of(M, N, K, false, false), one;
        fill(dtypes[d], left, MOST / 4);
        fill(dtypes[d], right, MOST / 4);
        CHECK_INT(td_set_num_threads(1), TD_OK);
        CHECK_INT(td_product_by_panels(dtypes[d], &p, &single), TD_OK);
        memcpy(again, result, sizeof again);
        CHECK_INT(td_set_num_threads(4), TD_OK);
        CHECK_INT(td_product_by_panels(dtypes[d], &p, &single), TD_OK);
        for (int64_t i = 0; i < M; i++)
            CHECK(memcmp(result + i * p.c_row * size, again + i * p.c_row * size,
                         (size_t)(N * size)) == 0);
        CHECK_INT(td_set_num_threads(threads), TD_OK);
        one = p;
        one.a += 101 * p.a_row * size;
        one.b += 77 * size;
        one.c = again;
        one.rows = 1;
        one.columns = 5;
        CHECK_INT(td_product_by_panels(dtypes[d], &one, &single), TD_OK);
        CHECK(memcmp(again, result + (101 * p.c_row + 77) * size, (size_t)(5 * size)) == 0);
    }
}

/* Infinity and NaN stay in the rows and columns that have them, also where a tile is not full. */
TEST(what_is_beyond_a_matrix_reaches_nothing) {
    enum { M = 13, N = 37, K = 40 };
    static const float bad[] = {INFINITY, NAN};
    for (int b = 0; b < 2; b++) {
        float *x = (float *)(void *)left, *y = (float *)(void *)right, *z = (float *)(void *)result;
        td_product_block p = block_of(M, N, K, false, false);
        for (int64_t k = 0; k < 4096; k++)
            x[k] = y[k] = bad[b];
        for (int64_t i = 0; i < M; i++)
            for (int64_t l = 0; l < K; l++)
                x[i * p.a_row + l] = 1;
        for (int64_t l = 0; l < K; l++)
            for (int64_t j = 0; j < N; j++)
                y[l * p.b_row + j] = 1;
        CHECK_INT(td_product_by_panels(TD_F32, &p, &single), TD_OK);
        for (int64_t i = 0; i < M; i++)
            for (int64_t j = 0; j < N; j++)
                CHECK(z[i * p.c_row + j] == K);
        x[5 * p.a_row + 7] = bad[b];
        CHECK_INT(td_product_by_panels(TD_F32, &p, &single), TD_OK);
        for (int64_t i = 0; i < M; i++)
            CHECK(isfinite(z[i * p.c_row + N - 1]) == (i != 5));
    }
}

static void *interrupt_soon(void *unused) {
    struct timespec pause = {.tv_nsec = 20000000};
    nanosleep(&pause, NULL);
    td_interrupt_request();
    return unused;
}

TEST(a_long_product_is_interrupted) {
    pthread_t thread;
    td_tensor *x = NULL;
    enum { SIDE = 8000 }; /* seconds of work */
    if (!CHECK_INT(td_tensor_empty(TD_F64, TD_DEVICE_CPU, 1, (int64_t[]){SIDE * SIDE}, &x), TD_OK))
        exit(1);
    memset(x->data, 0, (size_t)SIDE * SIDE * 8);
    td_product_block p = {.a = x->data,
                          .b = x->data,
                          .c = x->data,
                          .rows = SIDE,
                          .columns = SIDE,
                          .depth = SIDE,
                          .a_row = SIDE,
                          .a_column = 1,
                          .b_row = SIDE,
                          .b_column = 1,
                          .c_row = SIDE,
                          .c_column = 1};
    pthread_create(&thread, NULL, interrupt_soon, NULL);
    td_status status = td_product_by_panels(TD_F64, &p, &single);
    pthread_join(thread, NULL);
    CHECK_INT(status, TD_EINTR);
    td_interrupt_clear();
    td_release(x);
}

/* ---- triangles ---- */

/* Of a (n x n, far from singular, NaN where it is not to be read) and x (n rows of a tile): how
 * far a times the solution, which comes negated, is from x, beside the sizes of the terms. */
static double solve_once(td_dtype dtype, int64_t n, int64_t columns, bool turned, bool upper,
                         bool unit) {
    int64_t size = (int64_t)td_dtype_size(dtype), width = td_cpu->product->tile_bytes / size;
    td_product_triangle t = {.a = left,
                             .x = right,
                             .n = n,
                             .columns = columns,
                             .a_row = turned ? 1 : n + GAP,
                             .a_column = turned ? n + GAP : 1,
                             .upper = upper,
                             .unit = unit};
    double worst = 0;
    fill(dtype, left, (n + GAP) * (n + GAP));
    fill(dtype, right, n * width);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            char *at = left + (i * t.a_row + j * t.a_column) * size;
            if (i == j ? unit : (j > i) != upper)
                td_store_double(dtype, at, NAN);
            else
                td_store_double(dtype, at,
                                i == j ? 2 + of(dtype, at, 0) : of(dtype, at, 0) / (double)n);
        }
    memcpy(again, right, (size_t)(n * width * size));
    td_cpu->product->solve[dtype](&t);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < columns; c++) {
            double want = of(dtype, again, i * width + c), sum = want, terms = fabs(want) + 1e-300;
            for (int64_t j = upper ? i : 0; j < (upper ? n : i + 1); j++) {
                double a = i == j && unit ? 1 : of(dtype, left, i * t.a_row + j * t.a_column);
                sum += a * of(dtype, right, j * width + c);
                terms += fabs(a * of(dtype, right, j * width + c));
            }
            double off = fabs(sum) / terms;
            worst = off <= worst ? worst : off; /* NaN is worse than all */
        }
    return worst;
}

TEST(triangles_of_all_sizes_are_solved) {
    static const int64_t sizes[] = {1, 2, 5, 6, 7, 11, 12, 13, 29, 64, 130};
    for (int d = 0; d < 2; d++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            for (int way = 0; way < 8; way++) {
                int64_t width = td_cpu->product->tile_bytes / (int64_t)td_dtype_size(dtypes[d]);
                for (int64_t columns = 1; columns <= width; columns += 1 + columns / 3)
                    CHECK(solve_once(dtypes[d], sizes[s], columns, way & 1, way & 2, way & 4) <=
                          (double)(8 + sizes[s]) * (d ? 0x1p-53 : 0x1p-24));
            }
}

/* OpenBLAS goes by a list of models, on which a processor newer than itself is not. In a program
 * that has it from the start, as those with a sanitizer do, it has chosen before it can be told. */
TEST(openblas_takes_the_loops_that_the_processor_has) {
    char name[80];
    td_blas_version(name, sizeof name);
    CHECK(strstr(name, " for "));
    if (dlsym(RTLD_DEFAULT, "openblas_get_corename"))
        return;
#if defined(__x86_64__)
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool wide = strstr(name, "SkylakeX") || strstr(name, "Cooperlake") || strstr(name, "Sapphire");
    if (avx512)
        CHECK(wide);
    else if (avx2)
        CHECK(strstr(name, "Haswell") || strstr(name, "Zen"));
#endif
}

/* The answer is measured once, and holds. */
TEST(pairs_of_bfloat16_are_quick_or_not_for_good) {
    bool first = td_cpu_pairs_bfloats();
    for (int k = 0; k < 100; k++)
        CHECK_INT(td_cpu_pairs_bfloats(), first);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(every_end_of_a_tile_is_right);
    RUN(blocks_panels_and_pieces_are_right);
    RUN(deep_sums_go_on_where_they_were);
    RUN(batches_are_right_and_may_share_a_side);
    RUN(an_element_is_the_same_wherever_it_lies);
    RUN(what_is_beyond_a_matrix_reaches_nothing);
    RUN(a_long_product_is_interrupted);
    RUN(triangles_of_all_sizes_are_solved);
    RUN(openblas_takes_the_loops_that_the_processor_has);
    RUN(pairs_of_bfloat16_are_quick_or_not_for_good);
    return check_finish();
}
