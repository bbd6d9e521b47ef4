/* formula.c: compiles formulas over pointwise primitives into programs.
 *
 *   sum     = product { (+|-) product }        product = unary { (*|/) unary }
 *   unary   = - unary | primary                primary = number | name | name(sum, ...) | (sum)
 *
 * Equal subexpressions are computed once; buffers are reused after their last reader.
 */
#include "engine/ops/pointwise.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const char *const primitive_names[TD_PRIMITIVES] = {
#define PRIMITIVE(name, arity) #name,
#include "engine/ops/primitives.def"
#undef PRIMITIVE
};

static const uint8_t primitive_arities[TD_PRIMITIVES] = {
#define PRIMITIVE(name, arity) arity,
#include "engine/ops/primitives.def"
#undef PRIMITIVE
};

static const uint8_t primitive_costs[TD_PRIMITIVES] = {
#define MATH(name, arity, formula)               10,
#define DIVIDE(name, arity, float_formula, lane) 6,
#define PRIMITIVE(name, arity)                   1,
#include "engine/ops/primitives.def"
#undef PRIMITIVE
};

const char *td_primitive_name(td_primitive primitive) {
    return primitive_names[primitive];
}
int td_primitive_arity(td_primitive primitive) {
    return primitive_arities[primitive];
}

int td_primitive_find(const char *name, size_t len) {
    for (int p = 0; p < TD_PRIMITIVES; p++)
        if (strlen(primitive_names[p]) == len && !memcmp(primitive_names[p], name, len))
            return p;
    return -1;
}

static td_program single[TD_PRIMITIVES];

__attribute__((constructor)) static void make_single_programs(void) {
    for (int p = 0; p < TD_PRIMITIVES; p++) {
        int arity = primitive_arities[p];
        single[p] = (td_program){.nsteps = 1,
                                 .noperands = arity,
                                 .used = (1u << arity) - 1,
                                 .cost = primitive_costs[p],
                                 .whole = -1};
        single[p].steps[0] =
            (td_step){.primitive = (int16_t)p, .arity = (uint8_t)arity, .src = {0, 1, 2}};
    }
}

const td_program *td_primitive_program(td_primitive primitive) {
    return &single[primitive];
}

/* ---- parsing ---- */

enum { VALUE_BASE = 64 }; /* while compiling, the result of step s is register VALUE_BASE + s */

typedef struct compiler {
    const char *text, *at;
    int noperands;
    const char *const *names;
    td_program *program;
    bool failed;
} compiler;

static int fail(compiler *c, const char *what) {
    if (!c->failed)
        td_fail(TD_EVALUE, "formula '%s', at %d: %s", c->text, (int)(c->at - c->text) + 1, what);
    c->failed = true;
    return 0;
}

static void skip_space(compiler *c) {
    while (isspace((unsigned char)*c->at))
        c->at++;
}

static bool accept(compiler *c, char wanted) {
    skip_space(c);
    if (*c->at != wanted)
        return false;
    c->at++;
    return true;
}

static int constant(compiler *c, double value) {
    td_program *p = c->program;
    for (int k = 0; k < p->nconstants; k++)
        if (!memcmp(&p->constants[k], &value, sizeof value))
            return TD_CONSTANT_BASE + k;
    if (p->nconstants == TD_PROGRAM_CONSTANTS)
        return fail(c, "too many constants");
    p->constants[p->nconstants] = value;
    return TD_CONSTANT_BASE + p->nconstants++;
}

static int emit(compiler *c, int primitive, const int *src) {
    td_program *p = c->program;
    td_step step = {.primitive = (int16_t)primitive, .arity = primitive_arities[primitive]};
    if (c->failed)
        return 0;
    for (int k = 0; k < 3; k++)
        step.src[k] = k < step.arity ? (uint8_t)src[k] : 0;
    for (int s = 0; s < p->nsteps; s++)
        if (p->steps[s].primitive == step.primitive &&
            !memcmp(p->steps[s].src, step.src, sizeof step.src))
            return VALUE_BASE + s;
    if (p->nsteps == TD_PROGRAM_STEPS)
        return fail(c, "too many steps");
    p->steps[p->nsteps] = step;
    return VALUE_BASE + p->nsteps++;
}

static int parse_sum(compiler *c);

static int parse_call(compiler *c, const char *name, size_t len) {
    int args[3] = {0}, n = 0;
    int primitive = td_primitive_find(name, len);
    if (primitive < 0)
        return fail(c, "no primitive of this name");
    do {
        int value = parse_sum(c);
        if (n == 3)
            return fail(c, "too many arguments");
        args[n++] = value;
    } while (accept(c, ','));
    if (!accept(c, ')') || n != primitive_arities[primitive])
        return fail(c, "wrong number of arguments");
    return emit(c, primitive, args);
}

static int parse_primary(compiler *c) {
    skip_space(c);
    if (accept(c, '(')) {
        int value = parse_sum(c);
        return accept(c, ')') ? value : fail(c, "')' expected");
    }
    if (isdigit((unsigned char)*c->at)) {
        char *end;
        double value = strtod(c->at, &end);
        c->at = end;
        return constant(c, value);
    }
    const char *name = c->at;
    while (isalnum((unsigned char)*c->at) || *c->at == '_')
        c->at++;
    size_t len = (size_t)(c->at - name);
    if (len == 0)
        return fail(c, "a value expected");
    if (accept(c, '('))
        return parse_call(c, name, len);
    for (int k = 0; k < c->noperands; k++)
        if (strlen(c->names[k]) == len && !memcmp(c->names[k], name, len)) {
            c->program->used |= 1u << k;
            return k;
        }
    if (len == 3 && !memcmp(name, "inf", 3))
        return constant(c, __builtin_inf());
    return fail(c, "no operand of this name");
}

static int parse_unary(compiler *c) {
    if (accept(c, '-')) {
        int value = parse_unary(c);
        if (value >= TD_CONSTANT_BASE && value < TD_BUFFER_BASE)
            return constant(c, -c->program->constants[value - TD_CONSTANT_BASE]);
        return emit(c, TD_PW_neg, (int[3]){value});
    }
    return parse_primary(c);
}

static int parse_product(compiler *c) {
    int left = parse_unary(c);
    for (;;) {
        int primitive = accept(c, '*') ? TD_PW_mul : accept(c, '/') ? TD_PW_div : -1;
        if (primitive < 0 || c->failed)
            return left;
        int args[3] = {left, parse_unary(c), 0};
        left = emit(c, primitive, args);
    }
}

static int parse_sum(compiler *c) {
    int left = parse_product(c);
    for (;;) {
        int primitive = accept(c, '+') ? TD_PW_add : accept(c, '-') ? TD_PW_sub : -1;
        if (primitive < 0 || c->failed)
            return left;
        int args[3] = {left, parse_product(c), 0};
        left = emit(c, primitive, args);
    }
}

/* ---- buffers ---- */

/* Give every step's value a buffer that no living value holds, its operands' among them: a loop
 * reads a single-element operand anew for each vector it writes. */
static td_status assign_buffers(compiler *c) {
    td_program *p = c->program;
    int last_use[TD_PROGRAM_STEPS], buffer_of[TD_PROGRAM_STEPS];
    int busy_until[TD_PROGRAM_BUFFERS];
    for (int b = 0; b < TD_PROGRAM_BUFFERS; b++)
        busy_until[b] = -1;
    for (int s = 0; s < p->nsteps; s++) {
        last_use[s] = s;
        for (int k = 0; k < p->steps[s].arity; k++)
            if (p->steps[s].src[k] >= VALUE_BASE)
                last_use[p->steps[s].src[k] - VALUE_BASE] = s;
    }
    for (int s = 0; s < p->nsteps; s++) {
        td_step *step = &p->steps[s];
        int b = 0;
        while (b < TD_PROGRAM_BUFFERS && busy_until[b] >= s)
            b++;
        if (b == TD_PROGRAM_BUFFERS)
            return td_fail(TD_EVALUE, "formula '%s' needs too many buffers", c->text);
        for (int k = 0; k < step->arity; k++)
            if (step->src[k] >= VALUE_BASE)
                step->src[k] = (uint8_t)(TD_BUFFER_BASE + buffer_of[step->src[k] - VALUE_BASE]);
        buffer_of[s] = b;
        busy_until[b] = last_use[s];
        step->dst = (uint8_t)(TD_BUFFER_BASE + b);
        p->cost += primitive_costs[step->primitive];
        if (b >= p->nbuffers)
            p->nbuffers = b + 1;
    }
    return TD_OK;
}

td_status td_program_compile(const char *formula, int noperands, const char *const *names,
                             td_program *program) {
    compiler c = {
        .text = formula, .at = formula, .noperands = noperands, .names = names, .program = program};
    *program = (td_program){.noperands = noperands, .whole = -1};
    int value = parse_sum(&c);
    skip_space(&c);
    if (!c.failed && *c.at)
        fail(&c, "end expected");
    if (c.failed)
        return TD_EVALUE;
    if (value < noperands) {
        program->whole = value;
    } else if (value < TD_BUFFER_BASE) { /* a constant */
        int args[3] = {value};
        emit(&c, TD_PW_copy, args);
    } else if (value != VALUE_BASE + program->nsteps - 1) {
        return td_fail(TD_EVALUE, "formula '%s': its last step is not its value", formula);
    }
    return assign_buffers(&c);
}
