/* primitive.c: what is known of the primitives: names, texts, costs, values for numbers, and the
 * program of each. All of it is made of primitives.def. */
#include "engine/ops/language/integers.h"
#include "engine/ops/language/program.h"

#include <math.h>
#include <string.h>

typedef struct primitive_row {
    const char *name;
    const char *floating, *integer; /* texts; NULL: not for these dtypes */
    uint8_t arity, cost, signature;
} primitive_row;

enum { SPECIAL_COST = 40 }; /* of these, and of no others */

#define ROW(name, arity, cost, signature, floating, integer)                                       \
    {#name, floating, integer, arity, cost, TD_SIGNATURE_##signature},
static const primitive_row rows[TD_PRIMITIVES] = {
#define COPY(name, arity, formula)           ROW(name, arity, 1, SAME, #formula, #formula)
#define ARITH(name, arity, formula)          ROW(name, arity, 1, SAME, #formula, #formula)
#define COMPARE(name, arity, formula)        ROW(name, arity, 1, COMPARE, #formula, #formula)
#define LOGIC(name, arity, formula)          ROW(name, arity, 1, LOGIC, #formula, #formula)
#define SELECT(name, arity, formula)         ROW(name, arity, 1, SELECT, #formula, #formula)
#define FLOAT(name, arity, formula)          ROW(name, arity, 1, SAME, #formula, NULL)
#define MATH(name, arity, formula)           ROW(name, arity, 10, SAME, #formula, NULL)
#define SPECIAL(name, arity, formula)        ROW(name, arity, SPECIAL_COST, SAME, #formula, NULL)
#define INTEGER(name, arity, formula)        ROW(name, arity, 1, SAME, NULL, #formula)
#define LANES(name, arity, lane)             ROW(name, arity, 6, SAME, NULL, #lane)
#define EITHER(name, arity, floating, whole) ROW(name, arity, 1, SAME, #floating, #whole)
#define DIVIDE(name, arity, floating, lane)  ROW(name, arity, 6, SAME, #floating, #lane)
#include "engine/ops/language/primitives.def"
};

const char *td_primitive_name(td_primitive primitive) {
    return rows[primitive].name;
}

int td_primitive_arity(td_primitive primitive) {
    return rows[primitive].arity;
}

int td_primitive_cost(td_primitive primitive) {
    return rows[primitive].cost;
}

bool td_primitive_is_special(td_primitive primitive) {
    return rows[primitive].cost == SPECIAL_COST;
}

td_signature td_primitive_signature(td_primitive primitive) {
    return (td_signature)rows[primitive].signature;
}

const char *td_primitive_text(td_primitive primitive, bool floating) {
    return floating ? rows[primitive].floating : rows[primitive].integer;
}

int td_primitive_find(const char *name, size_t len) {
    for (int p = 0; p < TD_PRIMITIVES; p++)
        if (*rows[p].name == *name && !strncmp(rows[p].name, name, len) && !rows[p].name[len])
            return p;
    return -1;
}

/* ---- values for numbers ---- */

#define K(x)            (x)
#define SPLAT(x)        (x)
#define SEL(mask, x, y) ((mask) ? (x) : (y))
#define ONE(mask)       ((mask) ? 1.0 : 0.0)
#define ABS(x)          fabs(x)
#define MAX(x, y)       ((x) >= (y) || (x) != (x) ? (x) : (y))
#define MIN(x, y)       ((x) <= (y) || (x) != (x) ? (x) : (y))
#define SQRT(x)         sqrt(x)
#define RSQRT(x)        (1 / sqrt(x))
#define FLOOR(x)        floor(x)
#define CEIL(x)         ceil(x)
#define RINT(x)         rint(x)
#define TRUNC(x)        trunc(x)
#define EXP(x)          exp(x)
#define EXP2(x)         exp2(x)
#define EXPM1(x)        expm1(x)
#define LOG(x)          log(x)
#define LOG2(x)         log2(x)
#define LOG10(x)        log10(x)
#define LOG1P(x)        log1p(x)
#define SIN(x)          sin(x)
#define COS(x)          cos(x)
#define TAN(x)          tan(x)
#define ASIN(x)         asin(x)
#define ACOS(x)         acos(x)
#define ATAN(x)         atan(x)
#define SINH(x)         sinh(x)
#define COSH(x)         cosh(x)
#define TANH(x)         tanh(x)
#define ERF(x)          erf(x)
#define ERFC(x)         erfc(x)
#define SIGMOID(x)      sigmoid(x)
#define SILU(x)         ((x)*sigmoid(x))
#define GELU(x)         (0.5 * (x)*erfc((x) * -M_SQRT1_2))
#define ASINH(x)        asinh(x)
#define ACOSH(x)        acosh(x)
#define ATANH(x)        atanh(x)
#define LGAMMA(x)       log_gamma(x)
#define HYPOT(x, y)     hypot(x, y)
#define COPYSIGN(x, y)  copysign(x, y)
#define NEXTAFTER(x, y) nextafter(x, y)
#define POW(x, y)       pow(x, y)
#define ATAN2(x, y)     atan2(x, y)
#define FMOD(x, y)      fmod(x, y)
#define FLOOR_MOD(x, y) floor_mod(x, y)
#define FLOOR_DIV(x, y) floor_div(x, y)

static double sigmoid(double x) {
    double e = exp(-fabs(x));
    return x < 0 ? e / (1 + e) : 1 / (1 + e);
}

/* lgamma writes the sign for all threads. */
static double log_gamma(double x) {
    int sign;
    return lgamma_r(x, &sign);
}

static double floor_mod(double x, double y) {
    double m = fmod(x, y);
    return m != 0 && (y < 0) != (m < 0) ? m + y : m;
}

static double floor_div(double x, double y) {
    double m = fmod(x, y), q = rint((x - m) / y) - (m != 0 && (y < 0) != (m < 0));
    return y == 0 ? x / y : q == 0 ? copysign(q, x / y) : q;
}

#define VALUE(name, type, formula)                                                                 \
    case TD_PW_##name: {                                                                           \
        type a = (type)args[0], b = (type)args[1], c = (type)args[2];                              \
        (void)a, (void)b, (void)c;                                                                 \
        return (double)(formula);                                                                  \
    }

double td_primitive_evaluate(td_primitive primitive, const double args[3]) {
    switch (primitive) {
#define COPY(name, arity, formula)    VALUE(name, double, formula)
#define ARITH(name, arity, formula)   VALUE(name, double, formula)
#define COMPARE(name, arity, formula) VALUE(name, double, formula)
#define LOGIC(name, arity, formula)   VALUE(name, bool, ((formula)&1))
#define SELECT(name, arity, formula)  VALUE(name, double, formula)
#define FLOAT(name, arity, formula)   VALUE(name, double, formula)
#define MATH(name, arity, formula)    VALUE(name, double, formula)
#define SPECIAL(name, arity, formula)                                                              \
    case TD_PW_##name:                                                                             \
        return (double)NAN;
#define INTEGER(name, arity, formula)        VALUE(name, int64_t, formula)
#define LANES(name, arity, lane)             VALUE(name, int64_t, lane)
#define EITHER(name, arity, floating, whole) VALUE(name, double, floating)
#define DIVIDE(name, arity, floating, lane)  VALUE(name, double, floating)
#include "engine/ops/language/primitives.def"
    case TD_PRIMITIVES:
        break;
    }
    return NAN;
}

/* ---- programs ---- */

/* A program of one step in static memory; its reference is never given back. */
typedef struct single_program {
    _Alignas(td_program) unsigned char block[sizeof(td_program) + sizeof(td_step)];
    td_load loads[3];
    td_output output;
} single_program;

static single_program singles[TD_PRIMITIVES];

__attribute__((constructor)) static void make_single_programs(void) {
    for (int p = 0; p < TD_PRIMITIVES; p++) {
        single_program *s = &singles[p];
        td_signature signature = (td_signature)rows[p].signature;
        uint8_t reads = signature == TD_SIGNATURE_LOGIC ? TD_BOOL : TD_DTYPE_CALL;
        uint8_t makes = signature == TD_SIGNATURE_COMPARE ? TD_BOOL : reads;
        int arity = rows[p].arity;
        for (int k = 0; k < arity; k++)
            s->loads[k] = (td_load){(uint16_t)k, reads};
        if (signature == TD_SIGNATURE_SELECT)
            s->loads[0].dtype = TD_BOOL;
        s->output = (td_output){.dtype = makes};
        td_program *program = (td_program *)s->block;
        *program = (td_program){.refs = 1,
                                .noperands = arity,
                                .nloads = arity,
                                .noutputs = 1,
                                .nsteps = 1,
                                .used = (1u << arity) - 1,
                                .cost = rows[p].cost,
                                .whole = -1,
                                .loads = s->loads,
                                .outputs = &s->output};
        program->steps[0] = (td_step){.primitive = (int16_t)p,
                                      .arity = (uint8_t)arity,
                                      .from = reads,
                                      .to = makes,
                                      .dst = (uint16_t)arity,
                                      .src = {0, 1, 2}};
    }
}

const td_program *td_primitive_program(td_primitive primitive) {
    return (const td_program *)singles[primitive].block;
}
