/* test_cpu_factors.c: LU, Cholesky's decomposition and systems of their factors by blocks
 * (cpu/factor/factor_blocks.h), called directly: multiplied out again in double, over sizes around
 * every edge of a leaf, a half and a block, over layouts, and with pivots that are missing, tiny or
 * NaN.
 */
#include "engine/core/interrupt.h"
#include "engine/cpu/factor/factor_blocks.h"
#include "engine/cpu/isa/isa.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 640, WIDE = 200 };

static char a[SIDE * SIDE * 8], kept[SIDE * SIDE * 8], again[SIDE * SIDE * 8];
static char b[SIDE * WIDE * 8], x[SIDE * WIDE * 8], room[8 << 20];
static int places[SIDE], as_before[SIDE];
static int64_t order[SIDE];
static double row_of[SIDE];
static const td_dtype dtypes[] = {TD_F32, TD_F64};
static const double eps_of[] = {0x1p-24, 0x1p-53};
static const int64_t sizes[] = {1,  2,  3,  7,  8,  15, 16, 17,  31,  32,  33,  47,  48,
                                49, 63, 64, 65, 95, 96, 97, 150, 191, 192, 193, 208, 390};
enum { SIZES = sizeof sizes / sizeof *sizes };

static void fill(td_dtype dtype, char *to, int64_t n) {
    static uint64_t seed = 11;
    for (int64_t k = 0; k < n; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        td_store_double(dtype, to + k * (int64_t)td_dtype_size(dtype),
                        (double)(int64_t)(seed >> 43) / (1 << 20) - 1);
    }
}

static double of(td_dtype dtype, const char *from, int64_t at) {
    return td_load_double(dtype, from + at * (int64_t)td_dtype_size(dtype));
}

static void put(td_dtype dtype, char *to, int64_t at, double value) {
    td_store_double(dtype, to + at * (int64_t)td_dtype_size(dtype), value);
}

/* How far l times u is from the rows that were exchanged, beside the sizes of the terms; and the
 * largest element of l. */
static double lu_off(td_dtype dtype, int64_t n, double *largest) {
    double worst = 0;
    *largest = 0;
    for (int64_t i = 0; i < n; i++)
        order[i] = i;
    for (int64_t i = 0; i < n; i++) {
        int64_t other = places[i], one = order[i];
        if (!CHECK(other >= i && other < n))
            return INFINITY;
        order[i] = order[other];
        order[other] = one;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double want = of(dtype, kept, order[i] * n + j), sum = -want, terms = fabs(want);
            for (int64_t l = 0; l <= (i < j ? i : j); l++) {
                double term = (l == i ? 1 : of(dtype, a, i * n + l)) * of(dtype, a, l * n + j);
                sum += term;
                terms += fabs(term);
            }
            double off = terms > 0 ? fabs(sum) / terms : fabs(sum);
            worst = off <= worst ? worst : off; /* NaN is worse than all */
            if (j < i)
                *largest = fmax(*largest, fabs(of(dtype, a, i * n + j)));
        }
    return worst;
}

static int decompose(td_dtype dtype, int64_t n) {
    if (!CHECK(td_factor_room(dtype, n) <= sizeof room))
        exit(1);
    memcpy(kept, a, (size_t)(n * n) * td_dtype_size(dtype));
    memset(room, 0xff, sizeof room); /* NaN, which must reach nothing */
    memset(places, 0x7f, sizeof places);
    return td_factor_lu(dtype, n, a, places, room);
}

TEST(lower_times_upper_is_the_matrix) {
    for (int d = 0; d < 2; d++)
        for (int s = 0; s < SIZES; s++) {
            int64_t n = sizes[s];
            double largest;
            fill(dtypes[d], a, n * n);
            CHECK_INT(decompose(dtypes[d], n), 0);
            CHECK(lu_off(dtypes[d], n, &largest) <= (double)(4 + n) * eps_of[d]);
            CHECK(largest <= 1 + 4 * eps_of[d]); /* each pivot is the largest of its column */
        }
}

/* Of the largest the first one moves, as in LAPACK. */
TEST(the_first_of_equal_pivots_is_taken) {
    for (int d = 0; d < 2; d++) {
        enum { N = 40 };
        for (int64_t k = 0; k < N * N; k++)
            put(dtypes[d], a, k, k / N == k % N ? 2 : 0);
        put(dtypes[d], a, 20 * N, -3);
        put(dtypes[d], a, 35 * N, 3);
        CHECK_INT(decompose(dtypes[d], N), 0);
        CHECK_INT(places[0], 20);
        CHECK_INT(places[1], 1);
    }
}

/* A column that the ones before it make: what is left of it is 0, and the rest goes on. */
TEST(a_missing_pivot_is_told_and_left_out) {
    static const int64_t at[] = {0, 5, 15, 16, 40, 63, 64, 191, 192, 199};
    enum { N = 200 };
    for (int d = 0; d < 2; d++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            double largest;
            fill(dtypes[d], a, N * N);
            for (int64_t i = 0; i < N; i++)
                put(dtypes[d], a, i * N + at[k], 0);
            CHECK_INT(decompose(dtypes[d], N), at[k] + 1);
            CHECK(lu_off(dtypes[d], N, &largest) <= (4 + N) * eps_of[d]);
            CHECK(of(dtypes[d], a, at[k] * N + at[k]) == 0);
        }
    memset(a, 0, sizeof a);
    CHECK_INT(decompose(TD_F32, 100), 1);
}

/* The reciprocal of a denormal pivot may be infinite. */
TEST(tiny_pivots_divide) {
    static const double tiny[] = {0x1p-140, 0x1p-1060};
    enum { N = 37 };
    for (int d = 0; d < 2; d++) {
        double largest;
        fill(dtypes[d], a, N * N);
        for (int64_t i = 0; i < N; i++)
            put(dtypes[d], a, i * N, (double)(i + 1) * tiny[d]);
        CHECK_INT(decompose(dtypes[d], N), 0);
        CHECK_INT(places[0], N - 1);
        lu_off(dtypes[d], N, &largest);
        for (int64_t i = 1; i < N; i++)
            CHECK_CLOSE(of(dtypes[d], a, i * N), (double)(order[i] + 1) / N, 1e-6);
        CHECK(largest <= 1 + 4 * eps_of[d]);
    }
}

TEST(nan_is_no_pivot_and_spreads) {
    enum { N = 70 };
    for (int d = 0; d < 2; d++) {
        fill(dtypes[d], a, N * N);
        put(dtypes[d], a, 3 * N + 50, NAN);
        CHECK_INT(decompose(dtypes[d], N), 0);
        CHECK(isfinite(of(dtypes[d], a, 49 * N + 49)));
        CHECK(isnan(of(dtypes[d], a, N * N - 1)));
        for (int64_t k = 0; k < N * N; k++)
            put(dtypes[d], a, k, NAN);
        CHECK_INT(decompose(dtypes[d], N), 0);
        CHECK_INT(places[N - 1], N - 1);
    }
}

/* ---- Cholesky ---- */

/* A matrix with a wide diagonal; NaN below it. */
static void fill_positive(td_dtype dtype, int64_t n) {
    fill(dtype, a, n * n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++)
            put(dtype, a, i * n + j, i == j ? (double)n + 1 + of(dtype, a, i * n + i) : NAN);
    memcpy(kept, a, (size_t)(n * n) * td_dtype_size(dtype));
    memset(room, 0xff, sizeof room);
}

static double cholesky_off(td_dtype dtype, int64_t n) {
    double worst = 0;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < i; j++)
            CHECK(isnan(of(dtype, a, i * n + j)));
        for (int64_t j = i; j < n; j++) {
            double want = of(dtype, kept, i * n + j), sum = -want, terms = fabs(want);
            for (int64_t l = 0; l <= i; l++) {
                double term = of(dtype, a, l * n + i) * of(dtype, a, l * n + j);
                sum += term;
                terms += fabs(term);
            }
            double off = fabs(sum) / terms;
            worst = off <= worst ? worst : off;
        }
    }
    return worst;
}

TEST(upper_times_itself_is_the_matrix) {
    for (int d = 0; d < 2; d++)
        for (int s = 0; s < SIZES; s++) {
            int64_t n = sizes[s];
            fill_positive(dtypes[d], n);
            CHECK_INT(td_factor_cholesky(dtypes[d], n, a, room), 0);
            CHECK(cholesky_off(dtypes[d], n) <= (double)(8 + n) * eps_of[d]);
        }
}

TEST(a_pivot_that_is_not_positive_is_told) {
    static const int64_t at[] = {0, 5, 15, 16, 40, 63, 64, 191, 192, 199};
    static const double pivots[] = {0, -1, NAN};
    enum { N = 200 };
    for (int d = 0; d < 2; d++)
        for (size_t k = 0; k < sizeof at / sizeof *at; k++) {
            fill_positive(dtypes[d], N);
            put(dtypes[d], a, at[k] * (N + 1), pivots[k % 3]);
            CHECK_INT(td_factor_cholesky(dtypes[d], N, a, room), at[k] + 1);
        }
}

/* ---- systems ---- */

static td_factor_lines lines(char *p, int64_t n, int64_t k, int way) {
    return way == 0   ? (td_factor_lines){p, k, 1}
           : way == 1 ? (td_factor_lines){p, 1, n}
                      : (td_factor_lines){p, 2 * k, 2};
}

static double at(td_dtype dtype, const td_factor_lines *m, int64_t row, int64_t column) {
    return of(dtype, m->p, row * m->row + column * m->column);
}

/* How far a times the solution is from b, of which row i stands for row order[i]. */
static double system_off(const td_factor_system *s) {
    double worst = 0;
    for (int64_t c = 0; c < s->k; c++) {
        for (int64_t i = 0; i < s->n; i++)
            row_of[i] = at(s->dtype, &s->out, i, c);
        for (int f = s->count - 1; f >= 0; f--) {
            const td_product_triangle *t = &s->factors[f];
            for (int64_t k = 0; k < s->n; k++) {
                int64_t i = t->upper ? k : s->n - 1 - k;
                double sum = t->unit ? row_of[i] : 0;
                for (int64_t j = t->upper ? i + t->unit : 0; j < (t->upper ? s->n : i + !t->unit);
                     j++)
                    sum += of(s->dtype, t->a, i * t->a_row + j * t->a_column) * row_of[j];
                row_of[i] = sum;
            }
        }
        for (int64_t i = 0; i < s->n; i++) {
            double want = s->b.p ? at(s->dtype, &s->b, order[i], c) : order[i] == c;
            double off = fabs(row_of[i] - want);
            worst = off <= worst ? worst : off;
        }
    }
    return worst;
}

static void solve(td_factor_system *s) {
    REQUIRE(td_factor_system_room(s->dtype, s->n, s->k) <= sizeof room);
    memset(room, 0xff, sizeof room);
    memset(x, 0xff, sizeof x);
    td_factor_solve(s);
}

/* All layouts of b and of what becomes of it, few columns and many; b of a unit matrix. */
TEST(systems_of_factors_are_solved) {
    static const int64_t wide[] = {1, 3, 16, 33, 64, 65, 96};
    for (int d = 0; d < 2; d++)
        for (int s = 0; s < SIZES; s += 3) {
            int64_t n = sizes[s];
            double largest;
            fill(dtypes[d], a, n * n);
            for (int64_t i = 0; i < n; i++)
                put(dtypes[d], a, i * n + (i + n / 2) % n, 2 + (double)n);
            decompose(dtypes[d], n);
            lu_off(dtypes[d], n, &largest); /* for the order of rows */
            fill(dtypes[d], b, SIDE * WIDE);
            for (int way = 0; way < 10; way++) {
                int64_t k = wide[(size_t)(way + s) % (sizeof wide / sizeof *wide)];
                if (way == 9)
                    k = n < WIDE ? n : WIDE;
                td_factor_system system = {
                    .dtype = dtypes[d],
                    .n = n,
                    .k = k,
                    .factors = {{.a = a, .a_row = n, .a_column = 1, .unit = true},
                                {.a = a, .a_row = n, .a_column = 1, .upper = true}},
                    .count = 2,
                    .places = places,
                    .b = lines(b, n, k, way % 3),
                    .out = lines(x, n, k, way / 3 % 3),
                    .room = room};
                if (way == 9)
                    system.b.p = NULL;
                solve(&system);
                CHECK(system_off(&system) <= (double)(20 + 4 * n) * eps_of[d]);
            }
        }
}

/* Larger than a block, in rows and in columns, of which left sides are copied. */
TEST(triangles_of_several_blocks_are_solved) {
    enum { N = 450 };
    for (int64_t i = 0; i < N; i++)
        order[i] = i;
    for (int d = 0; d < 2; d++)
        for (int way = 0; way < 16; way++) {
            bool turned = way & 1, upper = way & 2, unit = way & 4;
            td_factor_system s = {.dtype = dtypes[d],
                                  .n = N,
                                  .k = way & 8 ? 1 : 195,
                                  .factors = {{.a = a,
                                               .a_row = turned ? 1 : N,
                                               .a_column = turned ? N : 1,
                                               .upper = upper,
                                               .unit = unit}},
                                  .count = 1,
                                  .room = room};
            s.b = lines(b, N, s.k, 0);
            s.out = lines(x, N, s.k, 0);
            fill(dtypes[d], a, N * N);
            fill(dtypes[d], b, N * s.k);
            for (int64_t i = 0; i < N; i++)
                for (int64_t j = 0; j < N; j++) {
                    int64_t where = i * s.factors[0].a_row + j * s.factors[0].a_column;
                    if (i == j ? unit : (j > i) != upper)
                        put(dtypes[d], a, where, NAN);
                    else
                        put(dtypes[d], a, where, i == j ? 2 : of(dtypes[d], a, where) / N);
                }
            solve(&s);
            CHECK(system_off(&s) <= 40 * eps_of[d]);
        }
}

TEST(no_factors_leave_what_is_given) {
    td_factor_system s = {.dtype = TD_F32, .n = 5, .k = 3, .room = room};
    s.b = lines(b, 5, 3, 1);
    s.out = lines(x, 5, 3, 0);
    fill(TD_F32, b, 15);
    solve(&s);
    for (int64_t i = 0; i < 5; i++)
        for (int64_t c = 0; c < 3; c++)
            CHECK(at(TD_F32, &s.out, i, c) == at(TD_F32, &s.b, i, c));
}

/* ---- few rows, side by side ---- */

/* How far a times x is from b in lane i, whose diagonal is far from the largest of its columns. */
static double few_off(td_dtype dtype, int64_t n, int64_t k, int64_t lanes, int64_t i) {
    double worst = 0;
    for (int64_t r = 0; r < n; r++)
        for (int64_t c = 0; c < k; c++) {
            double sum = -of(dtype, again, (r * k + c) * lanes + i);
            for (int64_t l = 0; l < n; l++)
                sum += of(dtype, kept, (r * n + l) * lanes + i) *
                       of(dtype, b, (l * k + c) * lanes + i);
            worst = fabs(sum) <= worst ? worst : fabs(sum);
        }
    return worst;
}

static void fill_few(td_dtype dtype, int64_t n, int64_t k, int64_t lanes) {
    fill(dtype, a, n * n * lanes);
    fill(dtype, b, n * k * lanes);
    for (int64_t i = 0; i < lanes; i++) /* each has its large elements elsewhere */
        for (int64_t r = 0; r < n; r++)
            put(dtype, a, (r * n + (r + i) % n) * lanes + i, (i % 2 ? -2 : 2) * (double)n);
    memcpy(kept, a, (size_t)(n * n * lanes) * td_dtype_size(dtype));
    memcpy(again, b, (size_t)(n * k * lanes) * td_dtype_size(dtype));
}

/* The determinant of the matrix that was in lane i, by the blocks that larger ones take. */
static double det_of(td_dtype dtype, int64_t n, int64_t lanes, int64_t i) {
    double det = 1;
    for (int64_t e = 0; e < n * n; e++)
        put(dtype, a, e, of(dtype, kept, e * lanes + i));
    td_factor_lu(dtype, n, a, places, room);
    for (int64_t r = 0; r < n; r++)
        det *= of(dtype, a, r * (n + 1)) * (places[r] == r ? 1 : -1);
    return det;
}

TEST(few_rows_are_solved_side_by_side) {
    for (int d = 0; d < 2; d++)
        for (int64_t n = 1; n <= TD_FACTOR_FEW; n++)
            for (int64_t k = 0; k <= TD_FACTOR_FEW; k++) {
                int64_t lanes = td_cpu->factor->lanes[dtypes[d]];
                double dets[TD_FACTOR_LANES];
                int first[TD_FACTOR_LANES];
                fill_few(dtypes[d], n, k, lanes);
                td_cpu->factor->solve_few[dtypes[d]](a, b, n, k, first);
                for (int64_t i = 0; i < lanes; i++) {
                    CHECK_INT(first[i], 0);
                    CHECK(few_off(dtypes[d], n, k, lanes, i) <= (double)(8 * n) * eps_of[d]);
                    dets[i] = 1;
                    for (int64_t r = 0; r < n; r++)
                        dets[i] *= of(dtypes[d], a, r * (n + 1) * lanes + i);
                }
                for (int64_t i = 0; k == 0 && i < lanes; i++)
                    CHECK_CLOSE(dets[i] / det_of(dtypes[d], n, lanes, i), 1, 64 * eps_of[d]);
            }
}

/* Singular in one lane, NaN in another one: the rest is what it is without them. */
TEST(few_rows_know_nothing_of_those_beside_them) {
    enum { N = 5, K = 3 };
    for (int d = 0; d < 2; d++) {
        int64_t lanes = td_cpu->factor->lanes[dtypes[d]];
        int first[TD_FACTOR_LANES];
        size_t size = td_dtype_size(dtypes[d]);
        fill_few(dtypes[d], N, K, lanes);
        td_cpu->factor->solve_few[dtypes[d]](a, b, N, K, first);
        memcpy(x, b, (size_t)(N * K * lanes) * size);
        memcpy(a, kept, (size_t)(N * N * lanes) * size);
        memcpy(b, again, (size_t)(N * K * lanes) * size);
        for (int64_t r = 0; r < N; r++)
            put(dtypes[d], a, (r * N + 2) * lanes, 0);
        put(dtypes[d], a, (2 * N + 1) * lanes + 1, NAN);
        td_cpu->factor->solve_few[dtypes[d]](a, b, N, K, first);
        CHECK_INT(first[0], 3);
        CHECK(isnan(of(dtypes[d], b, 1)));
        for (int64_t e = 0; e < N * K; e++)
            for (int64_t i = 2; i < lanes; i++)
                CHECK(of(dtypes[d], b, e * lanes + i) == of(dtypes[d], x, e * lanes + i));
        for (int64_t i = 1; i < lanes; i++)
            CHECK_INT(first[i], 0);
    }
}

TEST(few_rows_have_their_cholesky) {
    for (int d = 0; d < 2; d++)
        for (int64_t n = 1; n <= TD_FACTOR_FEW; n++) {
            int64_t lanes = td_cpu->factor->lanes[dtypes[d]];
            int first[TD_FACTOR_LANES];
            fill(dtypes[d], a, n * n * lanes);
            for (int64_t r = 0; r < n; r++)
                for (int64_t i = 0; i < lanes; i++) /* the second is not positive at its end */
                    put(dtypes[d], a, r * (n + 1) * lanes + i,
                        i == 1 && r == n - 1 ? -1 : 2 * (double)n);
            memcpy(kept, a, sizeof kept);
            td_cpu->factor->cholesky_few[dtypes[d]](a, n, first);
            for (int64_t i = 0; i < lanes; i++)
                CHECK_INT(first[i], i == 1 ? n : 0);
            for (int64_t i = 0; i < lanes; i++)
                for (int64_t r = 0; r < n && i != 1; r++)
                    for (int64_t c = r; c < n; c++) {
                        double sum = -of(dtypes[d], kept, (r * n + c) * lanes + i);
                        for (int64_t l = 0; l <= r; l++)
                            sum += of(dtypes[d], a, (l * n + r) * lanes + i) *
                                   of(dtypes[d], a, (l * n + c) * lanes + i);
                        CHECK(fabs(sum) <= (double)(16 * n) * eps_of[d]);
                    }
        }
}

/* ---- threads and interrupts ---- */

TEST(threads_change_nothing) {
    enum { N = 600 };
    for (int d = 0; d < 2; d++)
        for (int kind = 0; kind < 2; kind++) {
            size_t bytes = N * N * td_dtype_size(dtypes[d]);
            for (int threads = 1; threads <= 3; threads++) {
                REQUIRE(td_set_num_threads(threads) == TD_OK);
                if (threads == 1 && kind == 0)
                    fill(dtypes[d], kept, N * N);
                if (threads == 1 && kind == 1)
                    for (int64_t i = 0; i < N; i++)
                        put(dtypes[d], kept, i * (N + 1), N);
                memcpy(a, kept, bytes);
                CHECK_INT(kind ? td_factor_cholesky(dtypes[d], N, a, room)
                               : td_factor_lu(dtypes[d], N, a, places, room),
                          0);
                if (threads == 1) {
                    memcpy(again, a, bytes);
                    memcpy(as_before, places, sizeof places);
                }
                CHECK(memcmp(again, a, bytes) == 0);
                CHECK(kind || memcmp(as_before, places, N * sizeof *places) == 0);
            }
        }
    REQUIRE(td_set_num_threads(2) == TD_OK);
}

/* What is left out must not send rows anywhere. */
TEST(an_interrupt_leaves_rows_within) {
    enum { N = 500 };
    fill(TD_F32, a, N * N);
    td_interrupt_request();
    decompose(TD_F32, N);
    td_interrupt_clear();
    for (int64_t k = 0; k < N; k++)
        CHECK(places[k] >= k && places[k] < N);
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(lower_times_upper_is_the_matrix);
    RUN(the_first_of_equal_pivots_is_taken);
    RUN(a_missing_pivot_is_told_and_left_out);
    RUN(tiny_pivots_divide);
    RUN(nan_is_no_pivot_and_spreads);
    RUN(upper_times_itself_is_the_matrix);
    RUN(a_pivot_that_is_not_positive_is_told);
    RUN(systems_of_factors_are_solved);
    RUN(triangles_of_several_blocks_are_solved);
    RUN(no_factors_leave_what_is_given);
    RUN(few_rows_are_solved_side_by_side);
    RUN(few_rows_know_nothing_of_those_beside_them);
    RUN(few_rows_have_their_cholesky);
    RUN(threads_change_nothing);
    RUN(an_interrupt_leaves_rows_within);
    return check_finish();
}
