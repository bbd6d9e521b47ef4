/* formula.c: compiles formulas over pointwise primitives into programs.
 *
 *   sum     = product { (+|-) product }        product = unary { (*|/) unary }
 *   unary   = - unary | primary                primary = number | name | name(sum, ...) | (sum)
 *   updates = name = sum { ; name = sum }
 *
 * Whatever it says is a step of a program (program.h), so equal subexpressions are computed once.
 */
#include "engine/ops/language/program.h"

#include "engine/core/number.h"

#include <string.h>

enum { BINDINGS = 32 };

/* A name that a statement has given a value. */
typedef struct binding {
    const char *name;
    size_t len;
    int value;
} binding;

typedef struct compiler {
    const char *text, *at;
    int noperands;
    const char *const *names;
    td_builder *builder;
    binding bindings[BINDINGS];
    int nbindings;
    int depth; /* of brackets and signs within one another */
    bool failed;
} compiler;

static int fail(compiler *c, const char *what) {
    if (!c->failed)
        td_fail(TD_EVALUE, "formula '%s', at %d: %s", c->text, (int)(c->at - c->text) + 1, what);
    c->failed = true;
    return 0;
}

static void skip_space(compiler *c) {
    while (td_is_space(*c->at))
        c->at++;
}

static bool accept(compiler *c, char wanted) {
    skip_space(c);
    if (*c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* ---- names ---- */

static binding *find_binding(compiler *c, const char *name, size_t len) {
    for (int k = 0; k < c->nbindings; k++)
        if (c->bindings[k].len == len && !memcmp(c->bindings[k].name, name, len))
            return &c->bindings[k];
    return NULL;
}

static int find_operand(const compiler *c, const char *name, size_t len) {
    for (int k = 0; k < c->noperands; k++)
        if (strlen(c->names[k]) == len && !memcmp(c->names[k], name, len))
            return k;
    return -1;
}

static void bind(compiler *c, const char *name, size_t len, int value) {
    binding *b = find_binding(c, name, len);
    if (!b && c->nbindings == BINDINGS) {
        fail(c, "too many names");
        return;
    }
    if (!b)
        b = &c->bindings[c->nbindings++];
    *b = (binding){name, len, value};
}

/* ---- values ---- */

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
    if (!accept(c, ')') || n != td_primitive_arity((td_primitive)primitive))
        return fail(c, "wrong number of arguments");
    return td_builder_step(c->builder, (td_primitive)primitive, args[0], args[1], args[2]);
}

static int parse_primary(compiler *c) {
    skip_space(c);
    if (accept(c, '(')) {
        int value = parse_sum(c);
        return accept(c, ')') ? value : fail(c, "')' expected");
    }
    if (td_is_digit(*c->at)) {
        char *end;
        double value = td_number_read(c->at, &end);
        c->at = end;
        return td_builder_number(c->builder, value);
    }
    const char *name = c->at;
    while (td_is_word(*c->at))
        c->at++;
    size_t len = (size_t)(c->at - name);
    if (len == 0)
        return fail(c, "a value expected");
    if (accept(c, '('))
        return parse_call(c, name, len);
    const binding *b = find_binding(c, name, len);
    if (b)
        return b->value;
    int operand = find_operand(c, name, len);
    if (operand >= 0)
        return td_builder_operand(c->builder, operand);
    if (len == 3 && !memcmp(name, "inf", 3))
        return td_builder_number(c->builder, __builtin_inf());
    if (len == 3 && !memcmp(name, "nan", 3))
        return td_builder_number(c->builder, __builtin_nan(""));
    return fail(c, "no operand of this name");
}

static int parse_unary(compiler *c);

static int parse_negated(compiler *c) {
    skip_space(c);
    if (td_is_digit(*c->at)) {
        char *end;
        double value = td_number_read(c->at, &end);
        c->at = end;
        return td_builder_number(c->builder, -value);
    }
    return td_builder_step(c->builder, TD_PW_neg, parse_unary(c), 0, 0);
}

/* Whatever stands within something else is read through here. */
static int parse_unary(compiler *c) {
    enum { DEEPEST = 1000 };
    if (c->depth == DEEPEST)
        return fail(c, "too deep");
    c->depth++;
    int value = accept(c, '-') ? parse_negated(c) : parse_primary(c);
    c->depth--;
    return value;
}

static int parse_product(compiler *c) {
    int left = parse_unary(c);
    for (;;) {
        int primitive = accept(c, '*') ? TD_PW_mul : accept(c, '/') ? TD_PW_div : -1;
        if (primitive < 0 || c->failed)
            return left;
        int right = parse_unary(c);
        left = td_builder_step(c->builder, (td_primitive)primitive, left, right, 0);
    }
}

static int parse_sum(compiler *c) {
    int left = parse_product(c);
    for (;;) {
        int primitive = accept(c, '+') ? TD_PW_add : accept(c, '-') ? TD_PW_sub : -1;
        if (primitive < 0 || c->failed)
            return left;
        int right = parse_product(c);
        left = td_builder_step(c->builder, (td_primitive)primitive, left, right, 0);
    }
}

static td_status parse_formula(compiler *c, const char *formula) {
    c->text = c->at = formula;
    int value = parse_sum(c);
    skip_space(c);
    if (!c->failed && *c->at)
        fail(c, "end expected");
    td_builder_output(c->builder, value, TD_OUTPUT_ELEMENTS);
    return c->failed ? TD_EVALUE : TD_OK;
}

td_status td_program_compile_all(int nformulas, const char *const *formulas, int noperands,
                                 const char *const *names, const td_program **out) {
    *out = NULL;
    compiler c = {.noperands = noperands, .names = names, .builder = td_builder_new(noperands)};
    if (!c.builder)
        return td_fail(TD_ENOMEM, "out of memory for a program");
    for (int k = 0; k < nformulas; k++) {
        td_status status = parse_formula(&c, formulas[k]);
        if (status) {
            td_builder_release(c.builder);
            return status;
        }
    }
    return td_builder_finish(c.builder, out);
}

/* ---- statements ---- */

static void parse_statement(compiler *c) {
    skip_space(c);
    const char *name = c->at;
    while (td_is_word(*c->at))
        c->at++;
    size_t len = (size_t)(c->at - name);
    if (len == 0 || td_is_digit(*name) || !accept(c, '=')) {
        fail(c, "name = value expected");
        return;
    }
    bind(c, name, len, parse_sum(c));
}

td_status td_program_compile_updates(const char *text, int noperands, const char *const *names,
                                     uint32_t *written, const td_program **out) {
    *out = NULL;
    *written = 0;
    compiler c = {.text = text, .at = text, .noperands = noperands, .names = names};
    c.builder = td_builder_new(noperands);
    if (!c.builder)
        return td_fail(TD_ENOMEM, "out of memory for a program");
    do
        parse_statement(&c);
    while (!c.failed && accept(&c, ';'));
    if (!c.failed && *c.at)
        fail(&c, "end expected");
    if (c.failed) {
        td_builder_release(c.builder);
        return TD_EVALUE;
    }
    for (int k = 0; k < noperands && k < 32; k++) {
        const binding *b = find_binding(&c, names[k], strlen(names[k]));
        if (!b)
            continue;
        td_builder_output(c.builder, b->value, TD_OUTPUT_ELEMENTS);
        *written |= 1u << k;
    }
    return td_builder_finish(c.builder, out);
}

td_status td_program_compile(const char *formula, int noperands, const char *const *names,
                             const td_program **out) {
    return td_program_compile_all(1, &formula, noperands, names, out);
}
