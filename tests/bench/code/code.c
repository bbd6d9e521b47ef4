/* code.c: times pointwise programs as programs and as machine code (engine/cpu/code), one thread,
 * and what making the code costs.
 *
 *   bench_code            nanoseconds of a call, the two taking turns, the least of each
 *   bench_code groups     nanoseconds of five sums and products of one dtype, each of which is
 * rounded, operator by operator and as a group: as a program, as code, as fast code
 *   bench_code making     milliseconds of loading LLVM, of the first, the second code, of one from
 * a file (XDG_CACHE_HOME should name an empty folder)
 */
#include "engine/cpu/code/code.h"
#include "engine/cpu/code/llvm.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/pointwise/chain.h"
#include "engine/io/code_cache.h"
#include "engine/td.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_OPERANDS = 12, TURNS = 25, TURN = 400000 /* ns */ };

typedef struct bench {
    const char *name, *text; /* updates of the operands */
    const char *operands;
    int tensors; /* the first so many; the others are numbers */
    bool whole;  /* of integers, too */
} bench;

#define TEN                                                                                        \
    "out = x * y; out = out * x; out = out * y; out = out * x; out = out * y; out = out * x; "     \
    "out = out * y; out = out * x; out = out * y; out = out * x"
static const bench benches[] = {
    {"ten multiplications", TEN, "out x y", 3, true},
    {"gelu (tanh)", "out = 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))",
     "out x", 2, false},
    {"sigmoid chain", "out = x * sigmoid(x * y + z) + y * (1 - sigmoid(x))", "out x y z", 4, false},
    {"tanh exp chain", "out = tanh(x + y) * exp(0 - x * x) + y", "out x y", 3, false},
    {"Adam",
     "m = m + weight * (g - m); v = v * beta2 + keep * g * g; "
     "p = p + rate * m / (sqrt(v) + eps)",
     "p g m v rate weight beta2 keep eps", 4, false},
    {"Adam, clipped",
     "c = minimum(maximum(g, 0 - most), most); m = m + weight * (c - m); v = v * beta2 + keep * c "
     "* c; "
     "p = p * shrink + rate * m / (sqrt(v) + eps)",
     "p g m v rate weight beta2 keep eps most shrink", 4, false},
    {"comparison and choice", "out = where(x > y, x * 2, where(x < 0 - y, y - x, x + y)) * y",
     "out x y", 3, true},
};

static void must(td_status status) {
    if (status) {
        fprintf(stderr, "bench_code: %s\n", td_error_message());
        exit(1);
    }
}

static double read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double now(void) {
    return read_clock(CLOCK_MONOTONIC);
}

/* What the process worked, on all of its threads. */
static double worked(void) {
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

typedef struct made {
    const td_program *program;
    int noperands, nouts;
    td_operand operands[MOST_OPERANDS];
    td_tensor *outs[MOST_OPERANDS];
} made;

static made make(const bench *b, td_dtype dtype, int64_t n) {
    made m = {.noperands = 0};
    char names[200];
    const char *list[MOST_OPERANDS];
    uint32_t written;
    snprintf(names, sizeof names, "%s", b->operands);
    char *rest;
    for (char *word = strtok_r(names, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        list[m.noperands++] = word;
    must(td_program_compile_updates(b->text, m.noperands, list, &written, &m.program));
    for (int k = 0; k < m.noperands; k++) {
        if (k >= b->tensors) {
            m.operands[k].f = 0.25 + 0.125 * k;
            continue;
        }
        td_tensor *x;
        must(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x));
        for (int64_t i = 0; i < n; i++)
            td_store_double(dtype, (char *)x->data + i * (int64_t)td_tensor_itemsize(x),
                            0.9 + 0.2 * (double)((i * 37 + k) % 101) / 101);
        m.operands[k].tensor = x;
        if (written >> k & 1)
            m.outs[m.nouts++] = x;
    }
    return m;
}

static void run(const made *m, td_dtype dtype) {
    must(td_cpu_pointwise(&(td_pointwise_plan){.program = m->program,
                                               .operands = m->operands,
                                               .compute = dtype,
                                               .nlists = 1,
                                               .outs = m->outs}));
}

static double time_of(const made *m, td_dtype dtype, td_code_when when, int64_t times) {
    td_code_set_when(when);
    double begin = now();
    for (int64_t k = 0; k < times; k++)
        run(m, dtype);
    return (now() - begin) / (double)times;
}

static void compare(const bench *b, td_dtype dtype, int64_t n) {
    made m = make(b, dtype, n);
    double program = 1e30, code = 1e30;
    td_code_set_when(TD_CODE_NOW);
    run(&m, dtype);
    double once = time_of(&m, dtype, TD_CODE_NEVER, 3);
    int64_t times = 1 + (int64_t)(TURN / once);
    for (int turn = 0; turn < TURNS; turn++) {
        double a = time_of(&m, dtype, TD_CODE_NEVER, times);
        double c = time_of(&m, dtype, TD_CODE_NOW, times);
        program = a < program ? a : program;
        code = c < code ? c : code;
    }
    printf("%-24s %-9s %8d %12.1f %12.1f %6.2f %s\n", b->name, td_dtype_name(dtype), (int)n,
           program, code, program / code,
           td_chain_takes(m.program, dtype) &&
                   td_chain_fused(m.program, dtype, ~(uint64_t)0, (td_narrow){0})
               ? "compiled with Tide"
               : "");
    fflush(stdout);
    for (int k = 0; k < m.noperands; k++)
        td_release((td_tensor *)m.operands[k].tensor);
    td_program_release(m.program);
}

/* ---- groups ---- */

enum { STEPS = 5, WAYS = 4 };

/* As engine/script makes it of (((x * y + y) * y + y) * y): results are rounded to the dtype. */
static const td_program *make_group(td_dtype dtype, bool fast) {
    const td_dtype compute = td_dtype_compute(dtype);
    const td_program *p = NULL;
    td_builder *b = td_builder_new(2);
    int x = td_builder_convert(b, td_builder_operand(b, 0), (uint8_t)dtype),
        y = td_builder_convert(b, td_builder_operand(b, 1), (uint8_t)dtype);
    for (int k = 0; k < STEPS; k++) {
        x = td_builder_step_as(b, k % 2 ? TD_PW_add : TD_PW_mul, (uint8_t)compute, x, y, 0);
        if (!fast || k == STEPS - 1)
            x = td_builder_convert(b, x, (uint8_t)dtype);
    }
    td_builder_output(b, x, TD_OUTPUT_ELEMENTS);
    if (fast)
        td_builder_set_fast(b);
    must(td_builder_finish(b, &p));
    return p;
}

static void run_group(int way, const td_program *const *programs, td_dtype dtype, td_tensor *x,
                      td_tensor *y, td_tensor *out) {
    td_operand operands[2] = {{.tensor = x}, {.tensor = y}};
    td_pointwise_plan plan = {.operands = operands, .compute = dtype, .out = out};
    td_code_set_when(way == 1 ? TD_CODE_NEVER : TD_CODE_NOW);
    for (int k = 0; way == 0 && k < STEPS; k++) {
        plan.program = td_primitive_program(k % 2 ? TD_PW_add : TD_PW_mul);
        must(td_cpu_pointwise(&plan));
        operands[0].tensor = out;
    }
    if (way == 0)
        return;
    plan.program = programs[way == 3];
    plan.compute = td_dtype_compute(dtype);
    must(td_cpu_pointwise(&plan));
}

static void compare_group(td_dtype dtype, int64_t n) {
    const td_program *programs[2] = {make_group(dtype, false), make_group(dtype, true)};
    td_tensor *x[3];
    double least[WAYS] = {1e30, 1e30, 1e30, 1e30};
    for (int k = 0; k < 3; k++) {
        must(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &x[k]));
        for (int64_t i = 0; i < n; i++)
            td_store_double(dtype, (char *)x[k]->data + i * (int64_t)td_tensor_itemsize(x[k]),
                            1 + (double)((i * 37 + k) % 101) / 50);
    }
    const int64_t times = 1 + 400000 / (n + 100);
    for (int turn = 0; turn < TURNS; turn++)
        for (int way = 0; way < WAYS; way++) {
            double begin = now();
            for (int64_t k = 0; k < times; k++)
                run_group(way, programs, dtype, x[0], x[1], x[2]);
            double each = (now() - begin) / (double)times;
            least[way] = each < least[way] ? each : least[way];
        }
    printf("%-9s %8d %12.0f %12.0f %12.0f %12.0f\n", td_dtype_name(dtype), (int)n, least[0],
           least[1], least[2], least[3]);
    for (int k = 0; k < 3; k++)
        td_release(x[k]);
    td_program_release(programs[0]);
    td_program_release(programs[1]);
}

static void compare_groups(void) {
    static const td_dtype kinds[] = {TD_F32, TD_F64, TD_BF16, TD_F16, TD_I64, TD_I32, TD_I8};
    static const int64_t sizes[] = {100, 1000, 10000, 1000000};
    printf("%-9s %8s %12s %12s %12s %12s\n", "", "elements", "operators", "program", "code",
           "fast code");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
            compare_group(kinds[k], sizes[s]);
}

/* ---- making code ---- */

static void time_first_run(const bench *b, td_dtype dtype) {
    made m = make(b, dtype, 1000);
    td_code_set_when(TD_CODE_NOW);
    double begin = now(), before = worked();
    run(&m, dtype);
    double waited = (now() - begin) / 1e6, work = (worked() - before) / 1e6;
    td_code_tally tally = td_code_tally_now();
    printf("%-24s %-9s first run %.2f ms, %.2f of work (compiled %d, from files %d)\n", b->name,
           td_dtype_name(dtype), waited, work, (int)tally.compiled, (int)tally.loaded);
}

static void time_making(void) {
    double begin = now(), before = worked();
    const char *why = td_llvm_load();
    double waited = (now() - begin) / 1e6, work = (worked() - before) / 1e6;
    printf("LLVM %s: loaded in %.2f ms, %.2f of work %s\n",
           td_llvm_version() ? td_llvm_version() : "", waited, work, why ? why : "");
    for (size_t k = 0; k < sizeof benches / sizeof *benches; k++) {
        time_first_run(&benches[k], TD_F32);
        time_first_run(&benches[k], TD_F64);
    }
}

int main(int argc, char **argv) {
    static const int64_t sizes[] = {20, 100, 1000, 10000, 1000000};
    static const td_dtype kinds[] = {TD_F32, TD_F64, TD_BF16, TD_F16, TD_I32, TD_I64};
    must(td_init());
    must(td_set_num_threads(1));
    if (argc > 1 && !strcmp(argv[1], "making")) {
        time_making();
        return 0;
    }
    if (argc > 1 && !strcmp(argv[1], "groups")) {
        compare_groups();
        return 0;
    }
    printf("%-24s %-9s %8s %12s %12s %6s\n", "", "", "elements", "program, ns", "code, ns",
           "ratio");
    for (size_t k = 0; k < sizeof benches / sizeof *benches; k++)
        for (int d = 0; d < (benches[k].whole ? 6 : 4); d++)
            for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
                compare(&benches[k], kinds[d], sizes[s]);
    return 0;
}
