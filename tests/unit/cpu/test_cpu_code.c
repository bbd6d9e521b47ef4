/* test_cpu_code.c: machine code of pointwise programs does what the programs do, bit for bit: every
 * primitive in every dtype, all short lengths, operands that broadcast, have gaps, are misaligned
 * or are written in place; and a few functions against float64. Skipped where no LLVM is there. */
#include "engine/core/code_cache.h"
#include "engine/cpu/code/code.h"
#include "engine/cpu/code/llvm.h"
#include "engine/cpu/cpu.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 3, OUTPUTS = 3, LENGTHS = 68 };

static void must(td_status status) {
    if (status) {
        fprintf(stderr, "%s\n", td_error_message());
        exit(1);
    }
}

/* ---- elements ---- */

static uint64_t drawn(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 33;
}

static double special(uint64_t k) {
    static const double specials[] = {0.0,   -0.0,      1.0,   -1.0,  0.5,     2.0,    INFINITY,
                                      -INFINITY, NAN,   1e-40, -1e-40, 3e38,   -3e38,  1e-310,
                                      1.5,   2.5,       -2.5,  1e9,   65519.0, 65520.0};
    return specials[k % (sizeof specials / sizeof *specials)];
}

/* A quarter is what formulas have to look out for. */
static void fill(td_tensor *x, uint64_t seed) {
    const size_t size = td_tensor_itemsize(x);
    const td_dtype dtype = (td_dtype)x->dtype;
    for (int64_t k = 0; k < x->numel; k++) {
        char *at = (char *)x->data + (size_t)k * size;
        uint64_t draw = drawn(&seed), more = drawn(&seed);
        if (dtype == TD_BOOL)
            td_store_int(dtype, at, (int64_t)(draw & 1));
        else if (!td_dtype_is_float(dtype))
            td_store_int(dtype, at,
                         draw % 4 ? (int64_t)(more % 15) - 7
                                  : (int64_t)(more << 40 ^ more << 13 ^ draw << 3));
        else
            td_store_double(dtype, at,
                            draw % 4 ? ((double)more / 0x1p31 - 0.5) * (draw % 3 ? 4 : 100)
                                     : special(more));
    }
}

static bool is_nan(td_dtype dtype, const void *p) {
    return td_dtype_is_float(dtype) && isnan(td_load_double(dtype, p));
}

/* The first element that differs; NaNs are alike. -1: none. */
static int64_t find_difference(const td_tensor *a, const td_tensor *b) {
    const size_t size = td_tensor_itemsize(a);
    for (int64_t k = 0; k < a->numel; k++) {
        const char *x = (const char *)a->data + (size_t)k * size,
                   *y = (const char *)b->data + (size_t)k * size;
        if (memcmp(x, y, size) && !(is_nan((td_dtype)a->dtype, x) && is_nan((td_dtype)b->dtype, y)))
            return k;
    }
    return -1;
}

/* ---- programs ---- */

/* The primitive, and two steps that read what it makes: a mask is chosen by, a number computed
 * with. */
static const td_program *program_of(int primitive, bool bools) {
    const td_program *p = NULL;
    td_builder *b = td_builder_new(OPERANDS);
    int x = td_builder_operand(b, 0), y = td_builder_operand(b, 1), z = td_builder_operand(b, 2);
    int arity = td_primitive_arity((td_primitive)primitive);
    int made = td_builder_step(b, (td_primitive)primitive, x, arity > 1 ? y : 0, arity > 2 ? z : 0);
    int chosen = td_builder_step(b, TD_PW_where, made, y, x);
    int sum = td_builder_step(b, bools ? TD_PW_maximum : TD_PW_add, chosen, made, 0);
    td_builder_output(b, made, TD_OUTPUT_ELEMENTS);
    td_builder_output(b, chosen, TD_OUTPUT_ELEMENTS);
    td_builder_output(b, sum, TD_OUTPUT_ELEMENTS);
    return td_builder_finish(b, &p) ? NULL : p;
}

/* Outputs of a call, made anew; of dtypes that the program's are in memory. */
static void make_outs(const td_program *p, td_dtype memory, td_dtype compute, int ndim,
                      const int64_t *sizes, td_tensor **outs) {
    for (int k = 0; k < p->noutputs; k++) {
        td_dtype dtype = td_dtype_in_call(p->outputs[k].dtype, compute);
        must(td_tensor_empty(dtype == compute ? memory : dtype, TD_DEVICE_CPU, ndim, sizes,
                             &outs[k]));
        memset(outs[k]->data, 0x55, (size_t)outs[k]->numel * td_tensor_itemsize(outs[k]));
    }
}

static td_status run(const td_program *p, td_dtype compute, const td_operand *operands,
                     td_tensor **outs, td_code_when when) {
    td_code_set_when(when);
    td_status status = td_cpu_pointwise(&(td_pointwise_plan){.program = p,
                                                             .operands = operands,
                                                             .compute = compute,
                                                             .nlists = 1,
                                                             .outs = outs});
    td_code_set_when(TD_CODE_NEVER);
    return status;
}

static long long runs(void) {
    return atomic_load(&td_code_counts.runs);
}

/* Code against program over operands of one dtype; true: it ran as code. */
static bool check_alike(const char *what, const td_program *p, td_dtype memory,
                        const td_operand *operands, int ndim, const int64_t *sizes) {
    td_tensor *by_program[OUTPUTS] = {NULL}, *by_code[OUTPUTS] = {NULL};
    const long long before = runs();
    const td_dtype compute = td_program_compute(p, memory);
    make_outs(p, memory, compute, ndim, sizes, by_program);
    make_outs(p, memory, compute, ndim, sizes, by_code);
    td_status status = run(p, memory, operands, by_program, TD_CODE_NEVER);
    if (status == TD_OK)
        must(run(p, memory, operands, by_code, TD_CODE_NOW));
    for (int k = 0; status == TD_OK && k < p->noutputs; k++) {
        int64_t at = find_difference(by_program[k], by_code[k]);
        const size_t size = td_tensor_itemsize(by_code[k]);
        const td_dtype dtype = (td_dtype)by_code[k]->dtype;
        if (at >= 0)
            check_fail(__FILE__, __LINE__, "%s of %s: output %d, element %d of %d: %.17g, not %.17g",
                       what, td_dtype_name(memory), k, (int)at, (int)by_code[k]->numel,
                       td_load_double(dtype, (char *)by_code[k]->data + (size_t)at * size),
                       td_load_double(dtype, (char *)by_program[k]->data + (size_t)at * size));
    }
    for (int k = 0; k < OUTPUTS; k++) {
        td_release(by_program[k]);
        td_release(by_code[k]);
    }
    return runs() > before;
}

/* ---- every primitive ---- */

static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_BF16, TD_I32,
                                  TD_I64, TD_I16, TD_I8,  TD_U8,   TD_BOOL};

static void check_lengths(int primitive, td_dtype dtype, bool *code) {
    const td_program *p = program_of(primitive, dtype == TD_BOOL);
    if (!p)
        return;
    for (int64_t n = 0; n < LENGTHS + 3; n++) {
        int64_t size = n < LENGTHS ? n : n == LENGTHS ? 255 : n == LENGTHS + 1 ? 1031 : 4099;
        td_tensor *x[OPERANDS];
        td_operand operands[OPERANDS];
        for (int k = 0; k < OPERANDS; k++) {
            must(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &size, &x[k]));
            fill(x[k], (uint64_t)(n * 7 + k + primitive * 31));
            operands[k] = (td_operand){.tensor = x[k]};
        }
        *code |= check_alike(td_primitive_name((td_primitive)primitive), p, dtype, operands, 1,
                             &size);
        for (int k = 0; k < OPERANDS; k++)
            td_release(x[k]);
        if (n > 20 && n < LENGTHS && !*code)
            break; /* it has none in this dtype */
    }
    td_program_release(p);
}

TEST(every_primitive_in_every_dtype_has_the_same_bits) {
    int compiled = 0;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int primitive = 0; primitive < TD_PRIMITIVES; primitive++) {
            bool code = false;
            check_lengths(primitive, dtypes[d], &code);
            compiled += code;
            if (!code && (dtypes[d] == TD_F32 || dtypes[d] == TD_F64) &&
                td_primitive_text((td_primitive)primitive, true))
                check_fail(__FILE__, __LINE__, "%s of %s stays a program",
                           td_primitive_name((td_primitive)primitive), td_dtype_name(dtypes[d]));
        }
    CHECK(compiled > 250);
}

int main(void) {
    if (td_llvm_load()) {
        printf("skipped: %s\n", td_llvm_load());
        return CHECK_SKIP_CODE;
    }
    must(td_init());
    RUN(every_primitive_in_every_dtype_has_the_same_bits);
    return check_finish();
}
