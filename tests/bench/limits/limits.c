/* limits.c: times both ways around the limits of engine/cpu/limits.h and prints where one overtakes
 * the other on this machine, beside the table's values.
 *
 *   bench_limits [NAME ...]     those limits, or all that have a case
 *
 * A case is a call of an operator for a size. It is timed with the limit moved below all sizes and
 * above all; the two take turns, and the least time of each counts. Limits without a case are those
 * of products, which tests/bench/rungs covers way by way, or ask for two sizes at once. */
#include "engine/cpu/limits.h"
#include "engine/cpu/isa/isa.h"
#include "engine/td.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 15, TURN = 50000 /* nanoseconds */, SIZES = 24, TOTAL = 1 << 18 };
#define CLEAR 1.03
#define FAR   ((int64_t)1 << 40)

typedef struct row {
    const char *name, *unit, *what, *processor, *since;
    int64_t value;
} row;
#define ROW(name, value, unit, what, processor, since) {#name, unit, what, processor, since, value},
static const row table[] = {TD_CPU_LIMITS(ROW)};

/* A call for a size; amount: the size as the limit counts it. */
typedef struct call {
    const char *op;
    td_tensor *x[2];
    td_value args[4];
    int nargs;
    int64_t amount;
} call;

typedef struct bench_case {
    int limit;
    void (*make)(int64_t n, call *c);
    int64_t least, most;              /* sizes, of which each is some 1.4 times the one before */
    enum { ANY, AT_BEST, ALONE } set; /* of instructions that the limit is for: AVX-512, others */
    int threads;
} bench_case;

static void must(td_status status) {
    if (status) {
        fprintf(stderr, "bench_limits: %s\n", td_error_message());
        exit(1);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- calls ---- */

static td_tensor *filled(td_dtype dtype, int ndim, const int64_t *sizes) {
    td_tensor *x = NULL;
    uint64_t seed = 7;
    must(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, &x));
    for (int64_t k = 0; k < x->numel; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        td_store_double(dtype, (char *)x->data + (size_t)k * td_dtype_size(dtype),
                        (double)(seed >> 40));
    }
    return x;
}

static td_tensor *matrix(td_dtype dtype, int64_t rows, int64_t columns) {
    return filled(dtype, 2, (int64_t[]){rows, columns});
}

/* The first columns of a matrix that is wider by one: rows lie apart. */
static td_tensor *apart(int64_t rows, int64_t columns) {
    td_tensor *whole = matrix(TD_F32, rows, columns + 1), *view = NULL;
    must(td_tensor_view(whole, 2, (int64_t[]){rows, columns}, (int64_t[]){columns + 1, 1}, 0,
                        &view));
    td_release(whole);
    return view;
}

static td_tensor *turned(int64_t rows, int64_t columns) {
    td_tensor *whole = matrix(TD_F32, columns, rows), *view = NULL;
    must(td_tensor_view(whole, 2, (int64_t[]){rows, columns}, (int64_t[]){1, rows}, 0, &view));
    td_release(whole);
    return view;
}

static void unary(call *c, const char *op, td_tensor *x, int64_t amount) {
    *c = (call){.op = op, .x = {x}, .args = {TD_T(x)}, .nargs = 1, .amount = amount};
}

static void along(call *c, const char *op, td_tensor *x, int64_t dim, int64_t amount) {
    unary(c, op, x, amount);
    c->args[c->nargs++] = TD_I(dim);
}

static void product(call *c, td_tensor *a, td_tensor *b, int64_t amount) {
    *c = (call){.op = "mm", .x = {a, b}, .args = {TD_T(a), TD_T(b)}, .nargs = 2, .amount = amount};
}

static void cube_f32(int64_t n, call *c) {
    product(c, matrix(TD_F32, n, n), matrix(TD_F32, n, n), n * n * n);
}
static void cube_f64(int64_t n, call *c) {
    product(c, matrix(TD_F64, n, n), matrix(TD_F64, n, n), n * n * n);
}
static void row_by_columns(int64_t n, call *c) {
    product(c, matrix(TD_F32, 1, n), turned(n, n), n * n);
}
static void rows_by_columns(int64_t n, call *c) {
    product(c, matrix(TD_F32, 4, n), turned(n, n), 4 * n * n);
}
static void cube_i64(int64_t n, call *c) {
    product(c, matrix(TD_I64, n, n), matrix(TD_I64, n, n), n * n * n);
}
static void sort_line(int64_t n, call *c) {
    along(c, "sort", matrix(TD_F32, 1, n), -1, n);
}
static void sort_wide_keys(int64_t n, call *c) {
    along(c, "sort", matrix(TD_F64, TOTAL / n, n), -1, n);
}
static void sort_few_lines(int64_t n, call *c) {
    along(c, "sort", matrix(TD_F32, n, 24), -1, n);
}
static void median_lines(int64_t n, call *c) {
    along(c, "median", matrix(TD_F32, TOTAL / n, n), -1, n);
}
static void median_line(int64_t n, call *c) {
    along(c, "median", matrix(TD_F32, 1, n), -1, n);
}
static void mode_lines(int64_t n, call *c) {
    along(c, "mode", matrix(TD_I32, TOTAL / n, n), -1, n);
}
static void rows_apart(int64_t n, call *c) {
    unary(c, "exp2", apart(TOTAL / n, n), n);
}
static void copy_rows_apart(int64_t n, call *c) {
    unary(c, "contiguous", apart(TOTAL / n, n), n);
}
static void neg_rows_apart(int64_t n, call *c) {
    unary(c, "neg", apart(TOTAL / n, n), n);
}
static void negate_bytes(int64_t n, call *c) {
    unary(c, "neg", matrix(TD_F32, 1, n / 4), n);
}
static void argmax_rows(int64_t n, call *c) {
    along(c, "argmax", matrix(TD_F32, TOTAL / n, n), -1, n);
}
static void cumsum_columns(int64_t n, call *c) {
    along(c, "cumsum", matrix(TD_F32, TOTAL / n, n), 0, n);
}
static void cummax_lines(int64_t n, call *c) {
    along(c, "cummax", matrix(TD_F32, TOTAL / n, n), 1, n);
}
static void softmax_columns(int64_t n, call *c) {
    along(c, "softmax", matrix(TD_F32, 4096, n), 0, n);
}
static void sum_columns(int64_t n, call *c) {
    along(c, "sum", matrix(TD_F32, 4 * TOTAL / n, n), 0, n);
}
static void sum_rows(int64_t n, call *c) {
    along(c, "sum", matrix(TD_F32, n, 4 * TOTAL / n), 1, n);
}
static void eigenvalues(int64_t n, call *c) {
    unary(c, "linalg_eigvalsh", matrix(TD_F64, n, n), n * n * n);
}

#define AT(name) TD_LIMIT_AT_##name
static const bench_case cases[] = {
    {AT(PRODUCT_PLAIN), cube_f32, 1, 16, ANY, 1},
    {AT(PRODUCT_OPENBLAS), cube_f32, 8, 128, AT_BEST, 1},
    {AT(PRODUCT_BLOCKS), cube_f32, 40, 128, AT_BEST, 1},
    {AT(PRODUCT_BLOCKS_ALONE), cube_f32, 6, 96, ALONE, 1},
    {AT(PRODUCT_PANELS), cube_f32, 128, 1024, AT_BEST, 1},
    {AT(PRODUCT_PANELS_F64), cube_f64, 32, 512, AT_BEST, 1},
    {AT(PRODUCT_DOTS_F32), row_by_columns, 16, 1024, AT_BEST, 1},
    {AT(PRODUCT_DOTS_1), row_by_columns, 6, 512, ALONE, 1},
    {AT(PRODUCT_DOTS_4), rows_by_columns, 6, 512, ALONE, 1},
    {AT(PRODUCT_PLAIN_WHOLE), cube_i64, 2, 48, ANY, 1},
    {AT(PRODUCT_THREAD), cube_f32, 32, 512, AT_BEST, 2},
    {AT(PRODUCT_THREAD_ALONE), cube_f32, 32, 512, ALONE, 2},
    {AT(FACTOR_TEAM), eigenvalues, 32, 256, ANY, 2},
    {AT(RANK_SORTED), median_lines, 8, 1024, ANY, 1},
    {AT(RANK_SAMPLED), median_lines, 256, 64 * 1024, ANY, 1},
    {AT(SELECT_LONG), median_line, 8 * 1024, 1024 * 1024, ANY, 2},
    {AT(SELECT_SORTED), median_lines, 4, 48, ANY, 1},
    {AT(SORT_LONG), sort_line, 8 * 1024, 1024 * 1024, ANY, 2},
    {AT(SORT_TWICE), sort_wide_keys, 64, 64 * 1024, ANY, 1},
    {AT(SORT_NETWORK_LINES), sort_few_lines, 2, 128, ANY, 1},
    {AT(MODE_COUNTED), mode_lines, 64, 256 * 1024, ANY, 1},
    {AT(WALK_ROW), rows_apart, 16, 2048, ANY, 1},
    {AT(WALK_DIRECT_ROW), neg_rows_apart, 2, 64, ANY, 1},
    {AT(WALK_COPIED_ROW), copy_rows_apart, 2, 64, ANY, 1},
    {AT(WALK_COLUMNS), copy_rows_apart, 2, 64, ANY, 1},
    {AT(WALK_STREAM), negate_bytes, 4 << 20, 256 << 20, ANY, 1},
    {AT(REDUCE_ROWS_CUT), sum_rows, 2, 512, ANY, 2},
    {AT(REDUCE_COLUMNS_CUT), sum_columns, 2, 8192, ANY, 2},
    {AT(FIND_SHORT), argmax_rows, 8, 1024, ANY, 1},
    {AT(SCAN_ROWS), cumsum_columns, 2, 512, ANY, 1},
    {AT(SCAN_TURNED), cummax_lines, 4, 512, ANY, 1},
    {AT(SOFTMAX_COLUMNS), softmax_columns, 2, 64, ANY, 1},
};

/* ---- timing ---- */

static double turn(const call *c, int64_t times) {
    const td_op *op = td_op_find(c->op);
    must(op ? TD_OK : td_fail(TD_EVALUE, "no operator '%s'", c->op));
    double begin = now();
    for (int64_t k = 0; k < times; k++) {
        td_tensor *out[4] = {NULL};
        must(td_op_apply(op, out, c->nargs, c->args));
        for (int r = 0; r < 4; r++)
            td_release(out[r]);
    }
    return (now() - begin) / (double)times;
}

/* Least times with the limit below the size and above it. */
static void time_sides(const call *c, int limit, double times[2]) {
    const int64_t was = td_limits[limit];
    int64_t repeats[2];
    for (int side = 0; side < 2; side++) {
        td_limits[limit] = side ? FAR : 0;
        (void)turn(c, 1);
        times[side] = turn(c, 1);
        repeats[side] = 1 + (int64_t)(TURN / times[side]);
    }
    for (int k = 0; k < 2 * TURNS; k++) {
        td_limits[limit] = k & 1 ? FAR : 0;
        double t = turn(c, repeats[k & 1]);
        times[k & 1] = t < times[k & 1] ? t : times[k & 1];
    }
    td_limits[limit] = was;
}

typedef struct point {
    int64_t amount;
    double beyond, within; /* times of the way behind the limit, and of the one before it */
} point;

static int measure(const bench_case *b, point *points) {
    int n = 0;
    for (int64_t size = b->least; size <= b->most && n < SIZES;
         size = size + (size * 2 / 5 > 0 ? size * 2 / 5 : 1)) {
        call c;
        double times[2];
        b->make(size, &c);
        time_sides(&c, b->limit, times);
        points[n++] = (point){c.amount, times[0], times[1]};
        td_release(c.x[0]);
        td_release(c.x[1]);
    }
    return n;
}

/* The place that costs least in all, as times of a call over the quicker way's; -1: the ways are
 * one and the same here. */
static int best_place(const point *points, int n) {
    int best = 0;
    double least = 1e300;
    bool differ = false;
    for (int k = 0; k <= n; k++) { /* points from k on go beyond */
        double cost = 0;
        for (int i = 0; i < n; i++) {
            double t = i < k ? points[i].within : points[i].beyond;
            double quickest =
                points[i].within < points[i].beyond ? points[i].within : points[i].beyond;
            cost += t / quickest;
            differ = differ || points[i].within > CLEAR * points[i].beyond ||
                     points[i].beyond > CLEAR * points[i].within;
        }
        if (cost < least) {
            least = cost;
            best = k;
        }
    }
    return differ ? best : -1;
}

static void show(const bench_case *b, bool all) {
    point points[SIZES];
    const row *r = &table[b->limit];
    must(td_set_num_threads(b->threads));
    int n = measure(b, points), place = best_place(points, n), worst = 0;
    double most = 1;
    char found[40] = "no difference";
    if (place == n)
        snprintf(found, sizeof found, "> %lld", (long long)points[n - 1].amount);
    else if (place >= 0)
        snprintf(found, sizeof found, "%s%lld",
                 place ? "" : "<= ", (long long)points[place].amount);
    for (int k = 0; k < n; k++) {
        bool beyond = points[k].amount > r->value;
        double here = beyond ? points[k].beyond : points[k].within;
        double other = beyond ? points[k].within : points[k].beyond;
        if (here / other > most) {
            most = here / other;
            worst = k;
        }
    }
    printf("%-26s %12lld %16s  %5.2f at %-10lld %s: %s (%s, %s)\n", r->name, (long long)r->value,
           found, most, (long long)points[worst].amount, r->unit, r->what,
           *r->processor ? r->processor : "not noted", r->since);
    for (int k = 0; all && k < n; k++)
        printf("    %12lld: within %10.2f us, beyond %10.2f us\n", (long long)points[k].amount,
               points[k].within / 1000, points[k].beyond / 1000);
    fflush(stdout);
}

static bool is_wanted(const char *name, int argc, char **argv) {
    for (int k = 1; k < argc; k++)
        if (!strcmp(argv[k], name))
            return true;
    return argc == 1;
}

int main(int argc, char **argv) {
    must(td_init());
    printf("%s. Limit, its value, where the ways cross here, the most that the value costs\n",
           td_cpu->name);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (is_wanted(table[cases[k].limit].name, argc, argv) &&
            cases[k].set != (td_cpu->product->libraries_at_best ? ALONE : AT_BEST))
            show(&cases[k], argc > 1);
    return 0;
}
