/* sweep.c: sweeps the functions of functions.def over their operands, in every floating dtype, and
 * compares with references in double (float32 and narrower) or quadruple precision (float64).
 *
 *   sweep SECONDS SEED [FUNCTION [DTYPE]]
 *
 * Takes rounds until the time is over, at least one. In a round a function sees the edges, all
 * values of a 16-bit dtype, and of a wider one as many as the round has room for: each float32 of a
 * stride over all 2^32, moved by the round, and float64s of every size, most of them between 2^-30
 * and 2^11. Prints a figure for each function and dtype, and findings: an error beyond the limit,
 * NaN or a sign where none is due, a result that depends on the elements beside it. */
#include "engine/td.h"

#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CHUNK = 8192, SHOWN = 3 };
enum { LANES = 16 }; /* of a vector, at most */

enum {
#define FUNCTION(name, arity, float32, float64, narrow, kind) F_##name,
#include "functions.def"
#undef FUNCTION
    FUNCTIONS
};

typedef enum unit_kind { PLAIN, LARGEST, EXPONENT } unit_kind;

typedef struct function {
    const char *name;
    int arity;
    double limits[3]; /* float32, float64, 16-bit types */
    unit_kind kind;
} function;

static const function functions[FUNCTIONS] = {
#define FUNCTION(name, arity, float32, float64, narrow, kind)                                      \
    {#name, arity, {float32, float64, narrow}, kind},
#include "functions.def"
#undef FUNCTION
};

#define R        double
#define M(name)  name
#define FN(name) wide_##name
#include "references.h"

#define R        __float128
#define M(name)  name##q
#define FN(name) quad_##name
#include "references.h"

typedef struct format {
    td_dtype dtype;
    const char *name;
    int bits, least, most; /* of the mantissa; exponents of the least and largest normal number */
    int limit;             /* which of a function's */
} format;

static const format formats[] = {
    {TD_F32, "float32", 24, -126, 127, 0},
    {TD_F64, "float64", 53, -1022, 1023, 1},
    {TD_F16, "float16", 11, -14, 15, 2},
    {TD_BF16, "bfloat16", 8, -126, 127, 2},
};

typedef struct tally {
    double worst;
    double at[2];
    long samples;
    int shown;
} tally;

static uint64_t state;
static long findings;

static uint64_t draw(void) {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- operands ---- */

static const double edges[] = {0,
                               0x1p-1074,
                               0x1p-1022,
                               0x1p-149,
                               0x1p-126,
                               0x1p-27,
                               0x1p-25,
                               1e-3,
                               0.5,
                               1,
                               1.25,
                               2,
                               3.5,
                               4,
                               6,
                               8,
                               9.5,
                               10,
                               13.2,
                               20,
                               26.5,
                               37.5,
                               38,
                               64,
                               87.3,
                               88.72,
                               88.8,
                               89.41,
                               89.42,
                               103.97,
                               104,
                               127,
                               128,
                               149,
                               150,
                               708.3,
                               709.78,
                               710,
                               710.47,
                               710.48,
                               744.4,
                               745.13,
                               746,
                               1023,
                               1024,
                               1075,
                               0x1p24,
                               0x1p31,
                               0x1p53,
                               1e18,
                               1e30,
                               1e37,
                               1e38,
                               0x1p127,
                               0x1p128,
                               1e154,
                               1e300,
                               1e307,
                               0x1p1023,
                               1.7e308,
                               INFINITY,
                               0.78539816339744831,
                               1.5707963267948966,
                               3.1415926535897931,
                               6.2831853071795862,
                               355,
                               1e5,
                               0.70710678118654752};
enum { EDGES = (int)(sizeof edges / sizeof *edges) };

/* Edge k with its neighbours in the dtype and both signs; then NaN. */
static double edge(const format *f, int k) {
    double x = edges[k / 6 % EDGES];
    if (k >= 6 * EDGES)
        return NAN;
    unsigned char cell[8];
    td_store_double(f->dtype, cell, x);
    x = td_load_double(f->dtype, cell);
    int step = k % 3 - 1;
    if (f->dtype == TD_F64)
        x = step ? nextafter(x, step * INFINITY) : x;
    else if (f->dtype == TD_F32)
        x = step ? (double)nextafterf((float)x, (float)step * INFINITY) : x;
    return k / 3 % 2 ? -x : x;
}

static double float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static double any_double(void) {
    uint64_t bits = draw();
    double x;
    uint64_t kind = draw() % 16;
    if (kind == 0)
        bits &= 0x800FFFFFFFFFFFFFu; /* a denormal */
    else if (kind < 12)
        bits = (bits & 0x800FFFFFFFFFFFFFu) | (1023 - 30 + draw() % 42) << 52;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The 16-bit pattern's value. */
static double narrow(const format *f, uint32_t bits) {
    uint16_t cell = (uint16_t)bits;
    return td_load_double(f->dtype, &cell);
}

/* Operand of sample k of n: the first sweep, the second are drawn. */
static double operand(const format *f, int which, long k, long n) {
    long around = 6 * EDGES + 1;
    if (which == 0 && k < around)
        return edge(f, (int)k);
    if (which == 1 && draw() % 4 == 0)
        return edge(f, (int)(draw() % (uint64_t)around));
    if (f->dtype == TD_F64)
        return any_double();
    if (f->dtype != TD_F32)
        return narrow(f, which ? (uint32_t)draw() : (uint32_t)(k - around));
    if (which && draw() % 2)
        return float_of(((uint32_t)draw() & 0x807FFFFFu) | (uint32_t)(127 - 20 + draw() % 28)
                                                               << 23);
    uint64_t stride = (1ull << 32) / (uint64_t)n + 1;
    return float_of((uint32_t)((uint64_t)k * stride + draw() % stride));
}

/* ---- comparison ---- */

/* Error of `got` in units of the last place of the dtype; infinity counts as the number after the
 * largest. -1: not a number, or a sign, where another was due. */
#define DEFINE_ERROR(R, fn)                                                                        \
    static double fn##_error(const format *f, const function *what, R exact, double x, double y,   \
                             double got) {                                                         \
        R top = fn##_ldexp(1, f->most + 1), value = got, size = exact < 0 ? -exact : exact;        \
        if (exact != exact || got != got)                                                          \
            return exact != exact && got != got ? 0 : -1;                                          \
        if (exact == 0 && got == 0)                                                                \
            return signbit((double)exact) == signbit(got) || what->kind == LARGEST ? 0 : -1;       \
        if (size >= top)                                                                           \
            exact = exact < 0 ? -top : top;                                                        \
        if (isinf(got))                                                                            \
            value = got < 0 ? -top : top;                                                          \
        size = size > top / 2 ? top / 2 : size;                                                    \
        if (what->kind == LARGEST) {                                                               \
            R other = fmax(1, fmax(isinf(x) ? 1 : fabs(x), isinf(y) ? 1 : fabs(y)));               \
            size = size > other ? size : other;                                                    \
        }                                                                                          \
        int e = size > 0 ? fn##_exponent(size) : f->least;                                         \
        R unit = fn##_ldexp(1, (e < f->least ? f->least : e) - f->bits + 1);                       \
        R off = value > exact ? value - exact : exact - value;                                     \
        return (double)(off / unit);                                                               \
    }
DEFINE_ERROR(double, wide)
DEFINE_ERROR(__float128, quad)

static double error_of(const format *f, int which, double x, double y, double got) {
    const function *what = &functions[which];
    if (f->dtype == TD_F64)
        return quad_error(f, what, quad_references[which](x, y), x, y, got);
    return wide_error(f, what, wide_references[which](x, y), x, y, got);
}

static double limit_of(const format *f, const function *what, double x, double y) {
    double more = what->kind == EXPONENT && f->bits >= 24 ? fmin(fabs(x - y), 800) : 0;
    return what->limits[f->limit] + more;
}

static void judge(const format *f, int which, double x, double y, double got, tally *t) {
    const function *what = &functions[which];
    double error = error_of(f, which, x, y, got);
    t->samples++;
    if (error > t->worst) {
        t->worst = error;
        t->at[0] = x;
        t->at[1] = y;
    }
    if (error >= 0 && error <= limit_of(f, what, x, y))
        return;
    findings++;
    if (t->shown++ < SHOWN)
        printf("finding: %s %s(%.17g%s%.17g%s is %.17g, should be %.17g%s (%.3f ulp)\n", f->name,
               what->name, x, what->arity == 2 ? ", " : ") [", y, what->arity == 2 ? ")" : "]", got,
               f->dtype == TD_F64 ? (double)quad_references[which](x, y)
                                  : wide_references[which](x, y),
               error < 0 ? " (kind or sign)" : "", error);
}

/* ---- calls ---- */

static void check(td_status status) {
    if (status) {
        fprintf(stderr, "sweep: %s\n", td_error_message());
        exit(2);
    }
}

static bool along_rows(int which) {
    return which == F_norm || which == F_softmax || which == F_log_softmax || which == F_logsumexp;
}

/* The operator over a chunk; the result's element k is at step * k. */
static td_tensor *call(int which, td_tensor *const *x, int64_t *step) {
    const td_op *op = td_op_find(functions[which].name);
    const int64_t last = 1;
    td_tensor *out = NULL;
    *step = which == F_softmax || which == F_log_softmax ? 2 : 1;
    if (which == F_norm)
        check(td_op_apply(op, &out, 3, (td_value[]){TD_T(x[0]), TD_I(2), TD_INTS(1, &last)}));
    else if (which == F_logsumexp)
        check(td_op_apply(op, &out, 2, (td_value[]){TD_T(x[0]), TD_INTS(1, &last)}));
    else if (along_rows(which))
        check(td_op_apply(op, &out, 2, (td_value[]){TD_T(x[0]), TD_I(1)}));
    else
        check(td_op_apply(op, &out, functions[which].arity,
                          (td_value[]){TD_T(x[0]), x[1] ? TD_T(x[1]) : TD_NIL}));
    return out;
}

static td_tensor *empty(td_dtype dtype, int64_t n, int64_t columns) {
    const int64_t sizes[] = {n, columns};
    td_tensor *x = NULL;
    check(td_tensor_empty(dtype, TD_DEVICE_CPU, columns > 1 ? 2 : 1, sizes, &x));
    return x;
}

/* What many functions do apart, and the rest of a vector with it where that goes wrong. */
static double one_apart(void) {
    static const double apart[] = {0,         -0.0, INFINITY, -INFINITY, NAN,   -1,
                                   0x1p-1074, 1,    0x1p-149, 1e300,     -1e30, 0x1p-24};
    return apart[draw() % (sizeof apart / sizeof *apart)];
}

/* x with all rows but those of a phase replaced, by what few functions do apart or many. */
static td_tensor *lonely(const format *f, const td_tensor *x, int64_t phase, bool plain) {
    int64_t n = x->sizes[0], row = x->numel / n;
    td_tensor *to = empty(f->dtype, n, row);
    size_t size = td_tensor_itemsize(x);
    memcpy(to->data, x->data, size * (size_t)x->numel);
    for (int64_t k = 0; k < x->numel; k++)
        if (k / row % LANES != phase)
            td_store_double(f->dtype, (char *)to->data + (size_t)k * size,
                            plain ? 0.5 : one_apart());
    return to;
}

/* Does the operator say the same of elements when each has other neighbours, as far as a vector
 * reaches? */
static void judge_neighbours(const format *f, int which, td_tensor *const *x, const td_tensor *out,
                             int64_t step, tally *t) {
    int64_t n = x[0]->sizes[0], phase = (int64_t)(draw() % LANES), again;
    size_t size = td_tensor_itemsize(out);
    for (int plain = 0; plain < 2; plain++) {
        td_tensor *with[2] = {lonely(f, x[0], phase, plain),
                              x[1] ? lonely(f, x[1], phase, plain) : NULL};
        td_tensor *other = call(which, with, &again);
        for (int64_t k = phase; k < n; k += LANES) {
            const char *p = (char *)out->data + (size_t)(k * step) * size;
            const char *q = (char *)other->data + (size_t)(k * again) * size;
            double one = td_load_double(f->dtype, p), two = td_load_double(f->dtype, q);
            if (memcmp(p, q, size) == 0 || (one != one && two != two))
                continue;
            findings++;
            if (t->shown++ < SHOWN)
                printf("finding: %s %s of element %lld of a tensor is %.17g or, with other "
                       "neighbours, %.17g\n",
                       f->name, functions[which].name, (long long)k, one, two);
        }
        td_release(other);
        td_release(with[0]);
        td_release(with[1]);
    }
}

static void sweep_chunk(const format *f, int which, long from, long count, long n, tally *t) {
    int arity = functions[which].arity;
    bool rows = along_rows(which);
    size_t size = td_dtype_size(f->dtype);
    td_tensor *x[2] = {empty(f->dtype, count, rows ? 2 : 1),
                       arity == 2 && !rows ? empty(f->dtype, count, 1) : NULL};
    static double given[2][CHUNK];
    for (long k = 0; k < count; k++)
        for (int a = 0; a < arity; a++) {
            char *to = rows ? (char *)x[0]->data + (size_t)(2 * k + a) * size
                            : (char *)x[a]->data + (size_t)k * size;
            td_store_double(f->dtype, to, operand(f, a, from + k, n));
            given[a][k] = td_load_double(f->dtype, to);
        }
    int64_t step;
    td_tensor *out = call(which, x, &step);
    for (long k = 0; k < count; k++)
        judge(f, which, given[0][k], arity == 2 ? given[1][k] : 0,
              td_load_double(f->dtype, (char *)out->data + (size_t)(k * step) * size), t);
    judge_neighbours(f, which, x, out, step, t);
    td_release(out);
    td_release(x[0]);
    td_release(x[1]);
}

static long samples_of(const format *f, int round) {
    if (f->bits < 24)
        return round ? 0 : 65536 + 6 * EDGES + 1; /* all there are */
    return f->dtype == TD_F64 ? 3 * CHUNK : 16 * CHUNK;
}

static void sweep(const format *f, int which, int round, tally *t) {
    long n = samples_of(f, round);
    for (long from = 0; from < n; from += CHUNK)
        sweep_chunk(f, which, from, n - from < CHUNK ? n - from : CHUNK, n, t);
}

int main(int argc, char **argv) {
    static tally tallies[4][FUNCTIONS];
    double end = seconds() + (argc > 1 ? strtod(argv[1], NULL) : 0);
    const char *only = argc > 3 ? argv[3] : "", *dtype = argc > 4 ? argv[4] : "";
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    check(td_init());
    for (int round = 0; round == 0 || seconds() < end; round++)
        for (int which = 0; which < FUNCTIONS; which++)
            for (int f = 0; f < 4; f++)
                if ((!*only || !strcmp(only, functions[which].name)) &&
                    (!*dtype || !strcmp(dtype, formats[f].name)))
                    sweep(&formats[f], which, round, &tallies[f][which]);
    const char *isa = getenv("TIDE_CPU");
    for (int which = 0; which < FUNCTIONS; which++)
        for (int f = 0; f < 4; f++) {
            const tally *t = &tallies[f][which];
            if (t->samples)
                printf("figure: %s.%s.%s %.3f ulp\n", functions[which].name, formats[f].name,
                       isa ? isa : "chosen", t->worst);
        }
    return findings > 0;
}
