/* rungs.c: times every way to a product (product_ways.h) over a grid of shapes, layouts and dtypes.
 *
 *   bench_rungs [threads ...]     (1 and 2, where nothing is said)
 *
 * Writes a JSON line for each case: what it is, the way that product_choice.c chooses, and the
 * least time of each way in nanoseconds. The ways of a case take turns, so that what else the
 * machine does falls on all of them. table.py makes a table of the lines. */
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/product/product_ways.h"
#include "engine/td.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    MOST = 2048 * 2048,
    WAYS = TD_WAY_WIDE + 1,
    TURN = 40000, /* nanoseconds that a way's turn takes at least */
    TURNS = 10,   /* of each way, or as many as fit into */
    ENOUGH = 8000000,
    FEWEST = 2,
    HOPELESS = 3,          /* times as long as the best: timed once */
    PLAIN_MOST = 200000,   /* multiplications, for which a plain loop is still timed, */
    SHARED_MOST = 100000,  /* which are one thread's whatever there are, */
    LARGE = 200 * 1000000, /* and of which one layout is enough */
};

static const char *const way_names[WAYS] = {
    [TD_WAY_PLAIN] = "plain",       [TD_WAY_VECTORS] = "vectors",
    [TD_WAY_BLOCKS] = "blocks",     [TD_WAY_PANELS] = "panels",
    [TD_WAY_FEW] = "few",           [TD_WAY_FEW_KEPT] = "few_kept",
    [TD_WAY_OPENBLAS] = "openblas", [TD_WAY_ONEDNN_SGEMM] = "onednn_sgemm",
    [TD_WAY_ONEDNN] = "onednn",     [TD_WAY_ONEDNN_PACKED] = "onednn_packed",
    [TD_WAY_WIDE] = "wide",
};

typedef struct shape {
    int64_t batch, m, n, k;
} shape;

typedef struct operands {
    td_dtype dtype;
    td_tensor *a, *b, *c;
} operands;

static void must(td_status status) {
    if (status) {
        fprintf(stderr, "bench_rungs: %s\n", td_error_message());
        exit(1);
    }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static td_tensor *filled(td_dtype dtype) {
    td_tensor *x = NULL;
    must(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, (int64_t[]){MOST}, &x));
    for (int64_t k = 0; k < MOST; k++)
        td_store_double(dtype, (char *)x->data + (size_t)k * td_dtype_size(dtype),
                        td_dtype_is_float(dtype) ? (double)(k * 7919 % 1009) / 1009 - 0.5
                                                 : (double)(k % 7));
    return x;
}

static td_product_plan plan_of(const operands *o, const shape *s, bool ta, bool tb) {
    td_product_plan p = {.batch = s->batch, .m = s->m, .n = s->n, .k = s->k};
    p.out = o->c;
    p.a = o->a;
    p.b = o->b;
    p.as_a = (td_matrices){s->m * s->k, ta ? 1 : s->k, ta ? s->m : 1};
    p.as_b = (td_matrices){s->k * s->n, tb ? 1 : s->n, tb ? s->k : 1};
    p.as_out = (td_matrices){s->m * s->n, s->n, 1};
    return p;
}

static td_product_block block_of(const td_product_plan *p) {
    return (td_product_block){.rows = p->m,
                              .columns = p->n,
                              .depth = p->k,
                              .a_row = p->as_a.row_stride,
                              .a_column = p->as_a.column_stride,
                              .b_row = p->as_b.row_stride,
                              .b_column = p->as_b.column_stride,
                              .c_row = p->as_out.row_stride,
                              .c_column = 1};
}

/* One turn of a way: nanoseconds of a product. */
static double turn(const td_product_plan *p, td_product_way way, int64_t times) {
    double begin = now();
    for (int64_t k = 0; k < times; k++)
        must(td_cpu_product_by(p, way));
    return (now() - begin) / (double)times;
}

/* Least times of the ways that can be gone; 0: it can't. */
static void time_ways(const td_product_plan *p, td_dtype dtype, double *times) {
    const td_product_block block = block_of(p);
    int64_t repeats[WAYS];
    double best = 1e30, work = (double)p->batch * (double)p->m * (double)p->n * (double)p->k;
    for (int way = TD_WAY_PLAIN; way < WAYS; way++) {
        times[way] = 0;
        if (!td_product_can((td_product_way)way, dtype, &block, p->batch) ||
            (way == TD_WAY_PLAIN && work > PLAIN_MOST))
            continue;
        times[way] = turn(p, (td_product_way)way, 1); /* loads, plans, warms */
        if (times[way] < ENOUGH)
            times[way] = turn(p, (td_product_way)way, 1);
        repeats[way] = 1 + (int64_t)(TURN / times[way]);
        best = times[way] < best ? times[way] : best;
    }
    double begin = now();
    for (int k = 0; k < TURNS && (k < FEWEST || now() - begin < ENOUGH); k++)
        for (int way = TD_WAY_PLAIN; way < WAYS; way++) {
            if (times[way] == 0 || (k > 0 && times[way] > HOPELESS * best))
                continue;
            double t = turn(p, (td_product_way)way, repeats[way]);
            times[way] = t < times[way] ? t : times[way];
            best = t < best ? t : best;
        }
}

static void run_case(const operands *o, const shape *s, const char *layout, int threads) {
    double times[WAYS];
    td_product_plan p = plan_of(o, s, layout[0] == 't', layout[1] == 't');
    const td_product_block block = block_of(&p);
    const char *comma = "";
    time_ways(&p, o->dtype, times);
    printf("{\"isa\": \"%s\", \"threads\": %d, \"dtype\": \"%s\", \"batch\": %lld, \"m\": %lld, "
           "\"n\": %lld, \"k\": %lld, \"layout\": \"%s\", \"chosen\": \"%s\", \"ns\": {",
           td_cpu->name, threads, td_dtype_name(o->dtype), (long long)s->batch, (long long)s->m,
           (long long)s->n, (long long)s->k, layout,
           way_names[td_product_choose(o->dtype, &block, s->batch)]);
    for (int way = TD_WAY_PLAIN; way < WAYS; way++)
        if (times[way] > 0) {
            printf("%s\"%s\": %.0f", comma, way_names[way], times[way]);
            comma = ", ";
        }
    printf("}}\n");
}

static void run_shape(const operands *o, shape s, int threads) {
    static const char *const layouts[] = {"nn", "nt", "tn"};
    double work = (double)s.batch * (double)s.m * (double)s.n * (double)s.k;
    if (threads > 1 && work < SHARED_MOST)
        return;
    for (int l = 0; l < (work > LARGE ? 1 : 3); l++)
        run_case(o, &s, layouts[l], threads);
    fflush(stdout);
}

static void run_dtype(const operands *o, int threads) {
    static const int16_t cubes[] = {1,   2,   3,   4,   6,   8,   10,  12,   16,  20,
                                    24,  32,  40,  48,  64,  80,  96,  100,  128, 160,
                                    200, 256, 320, 384, 500, 512, 768, 1024, 2048};
    static const int16_t sides[] = {8, 16, 64, 128, 256, 512, 1024, 2048};
    static const int16_t few[] = {5, 8, 16, 32, 64}, thin[] = {1, 2, 4, 8, 16, 64};
    static const int16_t small[] = {2, 3, 4, 8, 10, 16, 24, 32, 48, 64};
    for (size_t k = 0; k < sizeof cubes / sizeof *cubes; k++)
        run_shape(o, (shape){1, cubes[k], cubes[k], cubes[k]}, threads);
    for (int m = 1; m <= 4; m++)
        for (size_t k = 0; k < sizeof sides / sizeof *sides; k++) {
            run_shape(o, (shape){1, m, sides[k], sides[k]}, threads);
            run_shape(o, (shape){1, sides[k], m, sides[k]}, threads);
            run_shape(o, (shape){1, m, 64, sides[k]}, threads);
            run_shape(o, (shape){1, m, sides[k], 64}, threads);
        }
    for (size_t m = 0; m < sizeof few / sizeof *few; m++)
        for (int64_t side = 64; side <= 2048; side *= 2) {
            run_shape(o, (shape){1, few[m], side, side}, threads);
            run_shape(o, (shape){1, side, few[m], side}, threads);
        }
    for (size_t k = 0; k < sizeof thin / sizeof *thin; k++)
        for (int64_t side = 32; side <= 1024; side *= 2)
            run_shape(o, (shape){1, side, side, thin[k]}, threads);
    for (size_t k = 0; k < sizeof small / sizeof *small; k++)
        run_shape(o, (shape){100, small[k], small[k], small[k]}, threads);
    run_shape(o, (shape){16, 128, 128, 64}, threads);
    run_shape(o, (shape){16, 512, 64, 512}, threads);
    run_shape(o, (shape){100, 64, 64, 4}, threads);
    run_shape(o, (shape){100, 16, 8, 64}, threads);
}

int main(int argc, char **argv) {
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_BF16, TD_F16};
    must(td_init());
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        operands o = {dtypes[d], filled(dtypes[d]), filled(dtypes[d]), filled(dtypes[d])};
        for (int k = 1; k < (argc > 1 ? argc : 3); k++) {
            int threads = argc > 1 ? (int)strtol(argv[k], NULL, 10) : k;
            must(td_set_num_threads(threads));
            run_dtype(&o, threads);
        }
        td_release(o.a);
        td_release(o.b);
        td_release(o.c);
    }
    return 0;
}
