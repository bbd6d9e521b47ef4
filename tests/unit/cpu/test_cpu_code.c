/* test_cpu_code.c: machine code of pointwise programs does what the programs do, bit for bit: every
 * primitive in every dtype, all short lengths, operands that broadcast, have gaps, are misaligned
 * or are written in place; and a few functions against float64. Skipped where no LLVM is there. */
#include "engine/cpu/code/code.h"
#include "engine/cpu/code/llvm.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/io/code_cache.h"
#include "engine/td.h"

#include "tests/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

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
    static const double specials[] = {0.0,       -0.0, 1.0,   -1.0,   0.5,     2.0,    INFINITY,
                                      -INFINITY, NAN,  1e-40, -1e-40, 3e38,    -3e38,  1e-310,
                                      1.5,       2.5,  -2.5,  1e9,    65519.0, 65520.0};
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
    td_status status = td_cpu_pointwise(&(td_pointwise_plan){
        .program = p, .operands = operands, .compute = compute, .nlists = 1, .outs = outs});
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
            check_fail(__FILE__, __LINE__,
                       "%s of %s: output %d, element %d of %d: %.17g, not %.17g", what,
                       td_dtype_name(memory), k, (int)at, (int)by_code[k]->numel,
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
        if (n == 1 && dtype != TD_F32)
            continue; /* single elements are numbers, for which code is made anew */
        int64_t size = n < LENGTHS ? n : n == LENGTHS ? 255 : n == LENGTHS + 1 ? 1031 : 4099;
        td_tensor *x[OPERANDS];
        td_operand operands[OPERANDS];
        for (int k = 0; k < OPERANDS; k++) {
            must(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &size, &x[k]));
            fill(x[k], (uint64_t)(n * 7 + k + primitive * 31));
            operands[k] = (td_operand){.tensor = x[k]};
        }
        *code |=
            check_alike(td_primitive_name((td_primitive)primitive), p, dtype, operands, 1, &size);
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

/* ---- conversions ---- */

/* To another dtype and back, each fixed. */
static const td_program *round_trip(td_dtype from, td_dtype to) {
    const td_program *p = NULL;
    td_builder *b = td_builder_new(1);
    int x = td_builder_convert(b, td_builder_operand(b, 0), (uint8_t)from);
    int there = td_builder_convert(b, x, (uint8_t)to);
    td_builder_output(b, there, TD_OUTPUT_ELEMENTS);
    td_builder_output(b, td_builder_convert(b, there, (uint8_t)from), TD_OUTPUT_ELEMENTS);
    return td_builder_finish(b, &p) ? NULL : p;
}

TEST(every_conversion_has_the_same_bits) {
    const int64_t size = 1031;
    const int n = (int)(sizeof dtypes / sizeof *dtypes);
    for (int pair = 0; pair < n * n; pair++) {
        const td_dtype from = dtypes[pair / n], to = dtypes[pair % n];
        char what[64];
        td_tensor *x;
        if (from == to)
            continue;
        const td_program *p = round_trip(from, to);
        REQUIRE(p != NULL);
        must(td_tensor_empty(from, TD_DEVICE_CPU, 1, &size, &x));
        fill(x, (uint64_t)pair);
        snprintf(what, sizeof what, "to %s and back", td_dtype_name(to));
        if (!check_alike(what, p, from, &(td_operand){.tensor = x}, 1, &size))
            check_fail(__FILE__, __LINE__, "%s of %s stays a program", what, td_dtype_name(from));
        td_release(x);
        td_program_release(p);
    }
}

/* A product and a choice (which leaves NaNs as they are), each rounded to a 16-bit float. */
static const td_program *rounded_twice(td_dtype narrow) {
    const td_program *p = NULL;
    td_builder *b = td_builder_new(OPERANDS);
    int x = td_builder_convert(b, td_builder_operand(b, 0), TD_F32),
        y = td_builder_convert(b, td_builder_operand(b, 1), TD_F32);
    int product = td_builder_step_as(b, TD_PW_mul, TD_F32, x, y, 0);
    product = td_builder_convert(b, td_builder_convert(b, product, (uint8_t)narrow), TD_F32);
    int larger = td_builder_step_as(b, TD_PW_gt, TD_F32, product, y, 0);
    int chosen = td_builder_step_as(b, TD_PW_where, TD_F32, larger, product, x);
    chosen = td_builder_convert(b, chosen, (uint8_t)narrow);
    int wide = td_builder_convert(b, chosen, TD_F32);
    td_builder_output(b, chosen, TD_OUTPUT_ELEMENTS);
    td_builder_output(b, td_builder_step_as(b, TD_PW_add, TD_F32, wide, wide, 0),
                      TD_OUTPUT_ELEMENTS);
    return td_builder_finish(b, &p) ? NULL : p;
}

TEST(rounding_on_the_way_has_the_same_bits) {
    for (int64_t size = 2; size < 4200; size += size < 70 ? 1 : 1031)
        for (int k = 0; k < 2; k++) {
            const td_program *p = rounded_twice(k ? TD_BF16 : TD_F16);
            td_tensor *x[2];
            REQUIRE(p != NULL);
            for (int j = 0; j < 2; j++) {
                must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &size, &x[j]));
                fill(x[j], (uint64_t)(size * 3 + j));
            }
            ((uint32_t *)x[0]->data)[size / 2] = 0x7f800001; /* a NaN by its last bit alone */
            const td_operand operands[OPERANDS] = {{.tensor = x[0]}, {.tensor = x[1]}};
            CHECK(check_alike("rounding", p, TD_F32, operands, 1, &size));
            td_release(x[0]);
            td_release(x[1]);
            td_program_release(p);
        }
}

/* ---- layouts ---- */

static const char *const formulas[] = {
    "x * y + z * x - y",
    "where(x > y, tanh(x) * z, exp(0 - abs(y)) + sqrt(abs(z)))", /* two passages */
    "exp(tanh(x * y) + sigmoid(z)) * x",                         /* three */
    "floor(x * 3) + round(y) * trunc(z)",
};
static const td_dtype floats[] = {TD_F32, TD_F64, TD_F16, TD_BF16};
enum { FORMULAS = (int)(sizeof formulas / sizeof *formulas) };

static const td_program *compiled(const char *formula) {
    static const char *const names[] = {"x", "y", "z"};
    const td_program *p;
    must(td_program_compile(formula, OPERANDS, names, &p));
    return p;
}

/* A view that begins `first` elements on and takes each `step`th, of new elements. */
static td_tensor *laid_out(td_dtype dtype, int64_t rows, int64_t n, int64_t first, int64_t step,
                           bool turned, uint64_t seed) {
    td_tensor *whole = NULL, *part = NULL, *view = NULL;
    const int64_t sizes[] = {turned ? first + n * step : rows, turned ? rows : first + n * step};
    must(td_tensor_empty(dtype, TD_DEVICE_CPU, 2, sizes, &whole));
    fill(whole, seed);
    must(TD_APPLY(&part, slice, TD_T(whole), TD_I(turned ? 0 : 1), TD_I(first),
                  TD_I(first + n * step), TD_I(step)));
    if (turned) {
        must(TD_APPLY(&view, transpose, TD_T(part), TD_I(0), TD_I(1)));
        td_release(part);
    } else {
        view = part;
    }
    td_release(whole);
    return view;
}

static void check_layout(const char *what, const td_program *p, td_dtype dtype, int64_t rows,
                         int64_t n, td_tensor *x, td_tensor *y, td_tensor *z) {
    const td_operand operands[] = {{.tensor = x}, {.tensor = y}, {.tensor = z}};
    const int64_t sizes[] = {rows, n};
    check_alike(what, p, dtype, operands, 2, sizes);
    td_release(x);
    td_release(y);
    td_release(z);
}

static void check_layouts(const char *formula, td_dtype dtype, int64_t rows, int64_t n) {
    const td_program *p = compiled(formula);
#define OF(r, m, first, step, turned) laid_out(dtype, r, m, first, step, turned, (uint64_t)(r + m))
#define FULL                          OF(rows, n, 0, 1, false)
    check_layout("as they lie", p, dtype, rows, n, FULL, FULL, FULL);
    check_layout("misaligned", p, dtype, rows, n, OF(rows, n, 1, 1, false), FULL,
                 OF(rows, n, 3, 1, false));
    check_layout("with gaps", p, dtype, rows, n, OF(rows, n, 0, 2, false), FULL,
                 OF(rows, n, 1, 3, false));
    check_layout("turned", p, dtype, rows, n, FULL, OF(rows, n, 0, 1, true), FULL);
    check_layout("a row for all", p, dtype, rows, n, FULL, OF(1, n, 0, 1, false), FULL);
    check_layout("a column for all", p, dtype, rows, n, OF(rows, 1, 0, 1, false), FULL,
                 OF(1, n, 0, 1, false));
    check_layout("one for all", p, dtype, rows, n, FULL, OF(1, 1, 0, 1, false),
                 OF(rows, 1, 0, 1, false));
    check_layout("columns alone", p, dtype, rows, n, OF(rows, 1, 0, 1, false),
                 OF(rows, 1, 1, 2, false), OF(1, n, 0, 1, false));
#undef OF
#undef FULL
    td_program_release(p);
}

TEST(operands_that_broadcast_or_have_gaps_give_the_same_bits) {
    static const int64_t shapes[][2] = {{3, 5},  {2, 67},   {7, 256}, {3, 300},
                                        {50, 9}, {5, 1030}, {1, 40},  {300, 33}};
    for (int f = 0; f < FORMULAS; f++)
        for (size_t d = 0; d < sizeof floats / sizeof *floats; d++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                check_layouts(formulas[f], floats[d], shapes[s][0], shapes[s][1]);
}

TEST(threads_give_the_same_bits) {
    int threads = td_get_num_threads();
    must(td_set_num_threads(3));
    for (int f = 0; f < FORMULAS; f++) {
        check_layouts(formulas[f], TD_F32, 1, 300001);
        check_layouts(formulas[f], TD_F32, 700, 301);
    }
    must(td_set_num_threads(threads));
}

/* Elements that are written where they were read. */
static void check_in_place(td_dtype dtype, int64_t n) {
    static const char *const names[] = {"x", "y"};
    const td_program *p;
    uint32_t written;
    td_tensor *got[2][2];
    must(td_program_compile_updates("t = tanh(x) + y; y = y * 0.5 + x * t; x = x - exp(0 - t) * y",
                                    2, names, &written, &p));
    CHECK_INT(written, 3);
    for (int way = 0; way < 2; way++) {
        for (int k = 0; k < 2; k++) {
            must(td_tensor_empty(dtype, TD_DEVICE_CPU, 1, &n, &got[way][k]));
            fill(got[way][k], (uint64_t)(n + k));
        }
        const td_operand operands[] = {{.tensor = got[way][0]}, {.tensor = got[way][1]}};
        must(run(p, dtype, operands, got[way], way ? TD_CODE_NOW : TD_CODE_NEVER));
    }
    for (int k = 0; k < 2; k++) {
        if (find_difference(got[0][k], got[1][k]) >= 0)
            check_fail(__FILE__, __LINE__, "%s, %d in place: operand %d differs",
                       td_dtype_name(dtype), (int)n, k);
        td_release(got[0][k]);
        td_release(got[1][k]);
    }
    td_program_release(p);
}

TEST(results_may_lie_where_operands_do) {
    const long long before = runs();
    for (size_t d = 0; d < sizeof floats / sizeof *floats; d++) {
        for (int64_t n = 1; n < LENGTHS; n++)
            check_in_place(floats[d], n);
        check_in_place(floats[d], 5000);
        check_in_place(floats[d], 100000);
    }
    CHECK(runs() > before + LENGTHS);
}

/* Lists of different lengths in one plan, some of one element; sums over their elements. */
TEST(lists_and_sums_give_the_same_bits) {
    static const int64_t lengths[] = {1, 5, 64, 1, 700, 33, 9000};
    enum { LISTS = (int)(sizeof lengths / sizeof *lengths) };
    const td_program *p = compiled("tanh(x) * y - z * x");
    td_operand operands[LISTS * OPERANDS];
    td_tensor *outs[2][LISTS];
    for (int l = 0; l < LISTS; l++) {
        for (int k = 0; k < OPERANDS; k++) {
            td_tensor *x;
            must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &lengths[l], &x));
            fill(x, (uint64_t)(l * 3 + k));
            operands[l * OPERANDS + k] = (td_operand){.tensor = x};
        }
        for (int way = 0; way < 2; way++)
            must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &lengths[l], &outs[way][l]));
    }
    const long long before = runs();
    for (int way = 0; way < 2; way++) {
        td_code_set_when(way ? TD_CODE_NOW : TD_CODE_NEVER);
        must(td_cpu_pointwise(&(td_pointwise_plan){.program = p,
                                                   .operands = operands,
                                                   .compute = TD_F32,
                                                   .nlists = LISTS,
                                                   .outs = outs[way]}));
    }
    CHECK(runs() > before);
    for (int l = 0; l < LISTS; l++) {
        CHECK_INT(find_difference(outs[0][l], outs[1][l]), -1);
        td_release(outs[0][l]);
        td_release(outs[1][l]);
        for (int k = 0; k < OPERANDS; k++)
            td_release((td_tensor *)operands[l * OPERANDS + k].tensor);
    }
    td_program_release(p);
}

static double sum_of(td_dtype dtype, td_tensor *x, td_code_when when) {
    td_builder *b = td_builder_new(1);
    const td_program *p;
    td_tensor *out;
    int at = td_builder_operand(b, 0);
    int twice = td_builder_step(b, TD_PW_add, at, at, 0);
    td_builder_output(b, td_builder_step(b, TD_PW_mul, twice, at, 0), TD_OUTPUT_SUM);
    must(td_builder_finish(b, &p));
    must(td_tensor_empty(dtype, TD_DEVICE_CPU, 0, NULL, &out));
    must(run(p, dtype, &(td_operand){.tensor = x}, &out, when));
    double sum = td_load_double(dtype, out->data);
    td_release(out);
    td_program_release(p);
    return sum;
}

TEST(sums_of_what_code_makes_are_the_same) {
    const int64_t n = 70001;
    for (int d = 0; d < 2; d++) {
        td_tensor *x;
        must(td_tensor_empty(floats[d], TD_DEVICE_CPU, 1, &n, &x));
        for (int64_t k = 0; k < n; k++)
            td_store_double(floats[d], (char *)x->data + k * (int64_t)td_tensor_itemsize(x),
                            sin((double)k));
        double by_program = sum_of(floats[d], x, TD_CODE_NEVER);
        CHECK(by_program == sum_of(floats[d], x, TD_CODE_NOW) && by_program > 1000);
        td_release(x);
    }
}

/* A power by 2, 0.5 and so on is another function where the exponent is a number
 * (td_cheaper_power).
 */
TEST(powers_by_numbers_are_the_programs) {
    static const double exponents[] = {2, 0.5, -0.5, -1, 1, 3, -2, 0, 2.5, NAN};
    const td_program *p = compiled("pow(x, y) + pow(abs(z), y) * x");
    const int64_t n = 1000;
    for (int d = 0; d < 2; d++)
        for (size_t e = 0; e < sizeof exponents / sizeof *exponents; e++) {
            td_tensor *x, *z;
            must(td_tensor_empty(floats[d], TD_DEVICE_CPU, 1, &n, &x));
            must(td_tensor_empty(floats[d], TD_DEVICE_CPU, 1, &n, &z));
            fill(x, e);
            fill(z, e + 9);
            const td_operand operands[] = {{.tensor = x}, {.f = exponents[e]}, {.tensor = z}};
            CHECK(check_alike("power", p, floats[d], operands, 1, &n));
            td_release(x);
            td_release(z);
        }
    td_program_release(p);
}

/* ---- against float64 ---- */

typedef struct reference {
    const char *formula;
    double (*of)(double x, double y, double z);
    double ulps; /* of float32, by which a result may be off */
} reference;

static double gelu(double x, double y, double z) {
    (void)y, (void)z;
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
static double logistic(double x, double y, double z) {
    return x / (1 + exp(-(x * y + z)));
}
static double choice(double x, double y, double z) {
    return x > y ? x * z : y - z;
}

TEST(functions_are_what_float64_says) {
    static const reference references[] = {
        {"0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))", gelu, 16},
        {"x * sigmoid(x * y + z)", logistic, 16},
        {"where(x > y, x * z, y - z)", choice, 2},
    };
    const int64_t n = 1003;
    for (size_t r = 0; r < sizeof references / sizeof *references; r++) {
        const td_program *p = compiled(references[r].formula);
        td_tensor *x[OPERANDS], *out;
        td_operand operands[OPERANDS];
        for (int k = 0; k < OPERANDS; k++) {
            must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x[k]));
            for (int64_t i = 0; i < n; i++)
                ((float *)x[k]->data)[i] = (float)(3 * cos((double)(i * (k + 2) + k)));
            operands[k] = (td_operand){.tensor = x[k]};
        }
        must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &out));
        const long long before = runs();
        must(run(p, TD_F32, operands, &out, TD_CODE_NOW));
        CHECK(runs() > before);
        for (int64_t i = 0; i < n; i++) {
            const float *a = x[0]->data, *b = x[1]->data, *c = x[2]->data;
            double want = references[r].of(a[i], b[i], c[i]), got = ((float *)out->data)[i];
            double room = references[r].ulps * ldexp(fmax(fabs(want), 0.25), -23);
            if (!(fabs(got - want) <= room)) {
                check_fail(__FILE__, __LINE__, "%s: element %d is %.9g, not %.17g",
                           references[r].formula, (int)i, got, want);
                break;
            }
        }
        for (int k = 0; k < OPERANDS; k++)
            td_release(x[k]);
        td_release(out);
        td_program_release(p);
    }
}

/* ---- while the program runs ---- */

TEST(a_program_works_until_its_code_is_there) {
    const td_program *p = compiled("x * y - z * 0.125 + x * x * z");
    const int64_t n = 300;
    td_tensor *x[OPERANDS], *first, *out;
    td_operand operands[OPERANDS];
    for (int k = 0; k < OPERANDS; k++) {
        must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &x[k]));
        fill(x[k], (uint64_t)k);
        operands[k] = (td_operand){.tensor = x[k]};
    }
    must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &first));
    must(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &n, &out));
    must(run(p, TD_F32, operands, &first, TD_CODE_NEVER));
    const long long before = runs();
    must(run(p, TD_F32, operands, &out, TD_CODE_LATER));
    CHECK_INT(runs(), before);
    for (int k = 0; k < 3000; k++) {
        must(run(p, TD_F32, operands, &out, TD_CODE_LATER));
        if (find_difference(first, out) >= 0) {
            check_fail(__FILE__, __LINE__, "run %d differs", k);
            break;
        }
    }
    td_code_finish();
    must(run(p, TD_F32, operands, &out, TD_CODE_LATER));
    CHECK(runs() > before);
    CHECK_INT(find_difference(first, out), -1);
    for (int k = 0; k < OPERANDS; k++)
        td_release(x[k]);
    td_release(first);
    td_release(out);
    td_program_release(p);
}

/* ---- other sets of instructions ---- */

static const char *self;

/* Code for AVX2 where the kernels are for AVX-512, in a process of its own. */
TEST(code_for_avx2_gives_the_same_bits) {
    int status = -1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", self, "avx2", (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
    CHECK_INT(status, 0);
}

/* `isa`: NULL, or for which code is made in place of the kernels' set. */
static int run_all(const char *isa) {
    td_code_set_isa(isa);
    if (!isa)
        RUN(every_primitive_in_every_dtype_has_the_same_bits);
    RUN(every_conversion_has_the_same_bits);
    RUN(rounding_on_the_way_has_the_same_bits);
    RUN(operands_that_broadcast_or_have_gaps_give_the_same_bits);
    RUN(results_may_lie_where_operands_do);
    RUN(lists_and_sums_give_the_same_bits);
    RUN(sums_of_what_code_makes_are_the_same);
    RUN(powers_by_numbers_are_the_programs);
    RUN(functions_are_what_float64_says);
    if (isa)
        return check_finish();
    RUN(threads_give_the_same_bits);
    RUN(a_program_works_until_its_code_is_there);
    if (!strcmp(td_cpu->name, "avx512"))
        RUN(code_for_avx2_gives_the_same_bits);
    return check_finish();
}

int main(int argc, char **argv) {
    self = argv[0];
    setenv("XDG_CACHE_HOME", "/dev/null/none", 1); /* all is compiled */
    if (td_llvm_load()) {
        printf("skipped: %s\n", td_llvm_load());
        return CHECK_SKIP_CODE;
    }
    must(td_init());
    return run_all(argc > 1 ? argv[1] : NULL);
}
