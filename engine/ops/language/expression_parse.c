/* expression_parse.c: reads the text of an expression; the grammar is in expression.h. Knows no
 * kinds. */
#include "engine/ops/language/expression_draft.h"

#include "engine/core/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- words ---- */

static const char *skip_space(td_draft *d) {
    while (td_is_space(*d->at))
        d->at++;
    return d->at;
}

static bool accept(td_draft *d, const char *token) {
    size_t length = strlen(token);
    if (strncmp(skip_space(d), token, length))
        return false;
    d->at += length;
    return true;
}

static bool accept_word(td_draft *d, const char *word) {
    size_t length = strlen(word);
    if (strncmp(skip_space(d), word, length) || td_is_word(d->at[length]))
        return false;
    d->at += length;
    return true;
}

/* A name, or false and nothing read. */
static bool accept_name(td_draft *d, char *name) {
    size_t n = 0;
    if (!td_is_word(*skip_space(d)) || td_is_digit(*d->at))
        return false;
    for (; td_is_word(*d->at); d->at++)
        if (n + 1 < TD_DRAFT_NAME)
            name[n++] = *d->at;
    name[n] = 0;
    return true;
}

/* ---- calls, choices, lists, errors ---- */

static int expression(td_draft *d);

/* One argument: `expression` or `option=expression`. */
static bool argument(td_draft *d, const td_op *op, int *given, int *npositional) {
    char name[TD_DRAFT_NAME];
    const char *at = skip_space(d);
    int place;
    if (accept_name(d, name) && accept(d, "=") && *d->at != '=') {
        place = td_op_find_param(op, name);
        if (place < 0)
            return td_draft_refuse(d, at, "%s has no parameter '%s'", op->name, name);
    } else {
        d->at = at;
        place = (*npositional)++;
        if (place >= op->nparams)
            return td_draft_refuse(d, at, "%s has only %d parameters", op->name, op->nparams);
    }
    if (given[place] >= 0)
        return td_draft_refuse(d, at, "argument %d (%s) of %s is given twice", place + 1,
                               op->params[place].name, op->name);
    given[place] = expression(d);
    return given[place] >= 0;
}

static int call(td_draft *d, const char *at, const char *name) {
    int given[TD_MAX_PARAMS], npositional = 0;
    const td_op *op = td_draft_find_op(d, at, name);
    if (!op)
        return -1;
    for (int k = 0; k < op->nparams; k++)
        given[k] = -1;
    bool more = !accept(d, ")");
    while (more) {
        if (!argument(d, op, given, &npositional))
            return -1;
        more = accept(d, ",");
        if (!more && !accept(d, ")"))
            return td_draft_fail(d, d->at, "',' or ')' expected");
    }
    return td_draft_call(d, at, op, given);
}

static int choice(td_draft *d, const char *at) {
    int parts[3];
    for (int k = 0; k < 3; k++) {
        parts[k] = expression(d);
        if (parts[k] < 0)
            return -1;
        if (!accept(d, k < 2 ? "," : ")"))
            return td_draft_fail(d, d->at, "'%s' expected: if(condition, then, else)",
                                 k < 2 ? "," : ")");
    }
    return td_draft_choose(d, at, parts[0], parts[1], parts[2]);
}

/* Values up to `close`; their number, or -1. */
static int entries(td_draft *d, const char *close, int *steps) {
    int n = 0;
    while (!accept(d, close)) {
        if (n && !accept(d, ","))
            return td_draft_fail(d, d->at, "',' or '%s' expected", close);
        if (n == TD_MAX_DIMS)
            return td_draft_fail(d, d->at, "%d entries at most", TD_MAX_DIMS);
        steps[n] = expression(d);
        if (steps[n++] < 0)
            return -1;
    }
    return n;
}

static int list(td_draft *d, const char *at) {
    int steps[TD_MAX_DIMS], n = entries(d, "}", steps);
    return n < 0 ? -1 : td_draft_list(d, at, n, steps);
}

static int error(td_draft *d, const char *at) {
    int steps[TD_MAX_DIMS], n = entries(d, ")", steps);
    return n < 0 ? -1 : td_draft_error(d, at, n, steps);
}

/* ---- values ---- */

static int string_constant(td_draft *d, const char *at) {
    char *string = d->chars + d->nchars;
    while (*d->at && *d->at != '"')
        d->chars[d->nchars++] = *d->at++;
    if (!*d->at)
        return td_draft_fail(d, at, "the string has no end");
    d->at++;
    d->chars[d->nchars++] = 0;
    return td_draft_constant(d, at, TD_STRING(string));
}

static int number_constant(td_draft *d) {
    const char *at = d->at;
    char *end;
    const char *int_end;
    int64_t i = td_number_read_int(at, &int_end);
    double value = td_number_read(at, &end);
    if (int_end == end && (double)i != value)
        return td_draft_fail(d, at, "this integer does not fit into 64 bits");
    d->at = end;
    return td_draft_constant(d, at, int_end == end ? TD_I(i) : TD_F(value));
}

static bool accept_constant(td_draft *d, td_value *value) {
    const struct {
        const char *word;
        td_value value;
    } rows[] = {{"true", TD_B(true)},
                {"false", TD_B(false)},
                {"nil", TD_NIL},
                {"inf", TD_F((double)INFINITY)},
                {"nan", TD_F((double)NAN)}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (accept_word(d, rows[k].word)) {
            *value = rows[k].value;
            return true;
        }
    return false;
}

static int primary(td_draft *d) {
    char name[TD_DRAFT_NAME];
    td_value value;
    const char *at = skip_space(d);
    if (td_is_digit(*at))
        return number_constant(d);
    if (accept(d, "\""))
        return string_constant(d, at);
    if (accept(d, "{"))
        return list(d, at);
    if (accept(d, "(")) {
        int inner = expression(d);
        return inner < 0 || accept(d, ")") ? inner : td_draft_fail(d, d->at, "')' expected");
    }
    if (accept_constant(d, &value))
        return td_draft_constant(d, at, value);
    if (!accept_name(d, name))
        return td_draft_fail(d, at, "a value expected");
    if (!accept(d, "("))
        return td_draft_variable(d, at, name);
    return !strcmp(name, "if")      ? choice(d, at)
           : !strcmp(name, "error") ? error(d, at)
                                    : call(d, at, name);
}

static int suffixed(td_draft *d) {
    char name[TD_DRAFT_NAME];
    int value = primary(d);
    while (value >= 0 && accept(d, ".")) {
        const char *at = skip_space(d);
        int dim = -1;
        if (!accept_name(d, name))
            return td_draft_fail(d, at, "a name expected");
        if (!strcmp(name, "size") && accept(d, "(")) {
            dim = expression(d);
            if (dim < 0)
                return -1;
            if (!accept(d, ")"))
                return td_draft_fail(d, d->at, "')' expected");
        }
        value = td_draft_member(d, at, value, name, dim);
    }
    return value;
}

/* ---- signs ---- */

static int unary(td_draft *d);

static int power(td_draft *d) {
    int a = suffixed(d);
    const char *at = skip_space(d);
    if (a < 0 || !accept(d, "^"))
        return a;
    int b = unary(d);
    return b < 0 ? -1 : td_draft_sign(d, at, TD_SIGN_POW, a, b);
}

static int negated(td_draft *d, const char *at) {
    int a = unary(d);
    return a < 0 ? -1 : td_draft_sign(d, at, TD_SIGN_NEG, a, -1);
}

/* Whatever stands within something else is read through here. */
static int unary(td_draft *d) {
    enum { DEEPEST = 1000 };
    const char *at = skip_space(d);
    if (d->depth == DEEPEST)
        return td_draft_fail(d, at, "too deep");
    d->depth++;
    int a = accept(d, "-") ? negated(d, at) : power(d);
    d->depth--;
    return a;
}

typedef struct sign_row {
    const char *text;
    td_sign sign;
} sign_row;

/* Values that `part` reads with these signs between, from the left; at most so many signs. */
static int chain(td_draft *d, int (*part)(td_draft *), int n, const sign_row *rows, int most) {
    int a = part(d);
    for (int count = 0; a >= 0 && count < most; count++) {
        const char *at = skip_space(d);
        int k = 0;
        while (k < n && !accept(d, rows[k].text))
            k++;
        if (k == n)
            return a;
        int b = part(d);
        a = b < 0 ? -1 : td_draft_sign(d, at, rows[k].sign, a, b);
    }
    return a;
}

static int product(td_draft *d) {
    static const sign_row rows[] = {{"*", TD_SIGN_MUL}, {"/", TD_SIGN_DIV}};
    return chain(d, unary, 2, rows, TD_EXPRESSION_STEPS);
}

static int sum(td_draft *d) {
    static const sign_row rows[] = {{"+", TD_SIGN_ADD}, {"-", TD_SIGN_SUB}};
    return chain(d, product, 2, rows, TD_EXPRESSION_STEPS);
}

static int comparison(td_draft *d) {
    static const sign_row rows[] = {{"==", TD_SIGN_EQ}, {"~=", TD_SIGN_NE}, {"<=", TD_SIGN_LE},
                                    {">=", TD_SIGN_GE}, {"<", TD_SIGN_LT},  {">", TD_SIGN_GT}};
    return chain(d, sum, 6, rows, 1);
}

static int expression(td_draft *d) {
    int a = comparison(d);
    while (a >= 0) {
        const char *at = skip_space(d);
        bool both = accept_word(d, "and");
        if (!both && !accept_word(d, "or"))
            return a;
        int b = comparison(d);
        int known = b < 0 ? -1 : td_draft_constant(d, at, TD_B(!both));
        if (known < 0)
            return -1;
        a = both ? td_draft_choose(d, at, a, b, known) : td_draft_choose(d, at, a, known, b);
    }
    return -1;
}

/* ---- statements ---- */

static bool bind(td_draft *d, const char *at, const char *name) {
    if (td_draft_find_binding(d, name) || td_op_find_param(d->op, name) >= 0 ||
        td_op_find_result(d->op, name) >= 0 || !strcmp(name, "g"))
        return td_draft_refuse(d, at, "the name '%s' is taken", name);
    if (d->nbindings == TD_DRAFT_BINDINGS)
        return td_draft_refuse(d, at, "too many bindings");
    int step = expression(d);
    td_binding *b = &d->bindings[d->nbindings++];
    *b = (td_binding){.at = at, .step = step};
    snprintf(b->name, sizeof b->name, "%s", name);
    return step >= 0;
}

/* The parameter or result that a label names. */
static int find_label(td_draft *d, const char *at, const char *name) {
    const td_op *op = d->op;
    int slot = d->backward ? td_op_find_param(op, name) : td_op_find_result(op, name);
    if (slot < 0)
        return td_draft_fail(d, at, "'%s' is no %s", name, d->backward ? "parameter" : "result");
    if (d->backward && op->params[slot].type == TD_PARAM_TENSORS)
        return td_draft_fail(d, at, "'%s' is a list: its gradients need a C function", name);
    if (d->backward &&
        (!(td_param_kinds(&op->params[slot]) & TD_KINDS_TENSOR) || op->params[slot].base))
        return td_draft_fail(d, at, "'%s' has no gradient, being no tensor of numbers", name);
    return slot;
}

static bool root(td_draft *d, int slot) {
    char have[TD_KINDS_TEXT], want[TD_KINDS_TEXT];
    const char *at = skip_space(d);
    uint32_t results = td_result_kinds(d->op);
    bool tensor = d->backward || results & TD_KINDS_SEVERAL;
    uint32_t wanted = tensor ? (uint32_t)TD_KINDS_TENSOR : results;
    int step = slot < 0 ? -1 : expression(d);
    if (step < 0)
        return false;
    if (!(d->kinds[step] & wanted))
        return td_draft_refuse(d, at, "this is %s, %s expected",
                               td_kinds_text(d->kinds[step], have), td_kinds_text(wanted, want));
    if (d->nroots == TD_MAX_PARAMS)
        return td_draft_refuse(d, at, "too many expressions");
    d->roots[d->nroots++] =
        (td_expression_root){.slot = (uint8_t)slot, .step = (uint8_t)step, .gradient = -1};
    return true;
}

/* name = expression, name: expression, or an expression alone; false when it failed. */
static bool statement(td_draft *d) {
    char name[TD_DRAFT_NAME];
    const char *at = skip_space(d);
    bool named = accept_name(d, name);
    if (named && accept(d, ":"))
        return root(d, find_label(d, at, name));
    if (named && accept(d, "=") && *d->at != '=')
        return bind(d, at, name);
    d->at = at;
    if (!d->backward && d->op->nresults <= 1)
        return root(d, 0);
    return td_draft_refuse(d, at, "'%s:' expected", d->backward ? "PARAMETER" : "RESULT");
}

bool td_draft_parse(td_draft *d) {
    do {
        if (!statement(d))
            return false;
        if (*skip_space(d) && *d->at != ';')
            return td_draft_refuse(d, d->at, "an operator or the end expected");
    } while (accept(d, ";") && *skip_space(d));
    return true;
}
