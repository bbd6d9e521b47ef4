/* expression_draft.c: what the parts of an expression mean: checks their kinds and adds the steps
 * that compute them. Knows no syntax. */
#include "engine/ops/language/expression_draft.h"

#include "engine/ops/language/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fail(const td_draft *d, const char *at, const char *format, va_list args) {
    char what[320];
    vsnprintf(what, sizeof what, format, args);
    td_fail(TD_EINTERNAL, "operator '%s', %s, at %d%s%.20s%s: %s", d->op->name,
            d->backward ? "gradient" : "formula", (int)(at - d->text) + 1, *at ? " '" : "", at,
            *at ? "'" : " (the end)", what);
}

int td_draft_fail(const td_draft *d, const char *at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(d, at, format, args);
    va_end(args);
    return -1;
}

bool td_draft_refuse(const td_draft *d, const char *at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(d, at, format, args);
    va_end(args);
    return false;
}

/* ---- kinds ---- */

uint32_t td_param_kinds(const td_param *param) {
    static const uint16_t kinds[] = {
        [TD_PARAM_TENSOR] = TD_KINDS_TENSOR,
        [TD_PARAM_TENSORS] = TD_KINDS_TENSORS,
        [TD_PARAM_NUMBER] = TD_KINDS_NUMBER,
        [TD_PARAM_TENSOR_OR_NUMBER] = TD_KINDS_TENSOR | TD_KINDS_NUMBER,
        [TD_PARAM_INT] = TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_FLOAT] = TD_KINDS_NUMBER,
        [TD_PARAM_BOOL] = TD_KIND_BIT(TD_KIND_BOOL),
        [TD_PARAM_DIM] = TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_DIMS] = TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_INDEX] = TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_INTS] = TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_INT),
        [TD_PARAM_DTYPE] = TD_KIND_BIT(TD_KIND_DTYPE),
        [TD_PARAM_DEVICE] = TD_KIND_BIT(TD_KIND_DEVICE),
        [TD_PARAM_STRING] = TD_KIND_BIT(TD_KIND_STRING),
        [TD_PARAM_GENERATOR] = TD_KIND_BIT(TD_KIND_GENERATOR),
        [TD_PARAM_NUMBERS] = TD_KIND_BIT(TD_KIND_FLOATS),
    };
    bool words = param->word && td_param_has_words(param);
    return kinds[param->type] | (param->optional ? TD_KIND_BIT(TD_KIND_NIL) : 0) |
           (param->truth ? TD_KIND_BIT(TD_KIND_BOOL) : 0) |
           (words ? TD_KIND_BIT(TD_KIND_STRING) : 0);
}

const char *td_kinds_text(uint32_t kinds, char *buffer) {
    static const struct {
        uint32_t kinds;
        const char *text;
    } rows[] = {
        {TD_KINDS_TENSOR, "a tensor"},
        {TD_KINDS_NUMBER, "a number"},
        {TD_KIND_BIT(TD_KIND_BOOL), "a bool"},
        {TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_FLOATS), "a list of numbers"},
        {TD_KINDS_TENSORS, "a list of tensors"},
        {TD_KIND_BIT(TD_KIND_DTYPE), "a dtype"},
        {TD_KIND_BIT(TD_KIND_DEVICE), "a device"},
        {TD_KIND_BIT(TD_KIND_STRING), "a string"},
        {TD_KIND_BIT(TD_KIND_GENERATOR), "a generator"},
        {TD_KINDS_SEVERAL, "several results"},
        {TD_KIND_BIT(TD_KIND_NIL), "nil"},
    };
    size_t n = 0;
    buffer[0] = 0;
    for (size_t k = 0; k < sizeof rows / sizeof *rows && n < TD_KINDS_TEXT; k++)
        if (kinds & rows[k].kinds)
            n += (size_t)snprintf(buffer + n, TD_KINDS_TEXT - n, "%s%s", n ? " or " : "",
                                  rows[k].text);
    return n ? buffer : "an error";
}

uint32_t td_result_kinds(const td_op *op) {
    switch ((td_result_type)op->result_type) {
    case TD_RESULT_TENSOR:
        return op->nresults > 1 ? TD_KINDS_SEVERAL : TD_KINDS_TENSOR;
    case TD_RESULT_TENSORS:
        return TD_KINDS_TENSORS;
    case TD_RESULT_NUMBER:
        return TD_KINDS_NUMBER;
    case TD_RESULT_BOOL:
        return TD_KIND_BIT(TD_KIND_BOOL);
    case TD_RESULT_NOTHING:
        break;
    }
    return 0;
}

/* ---- steps ---- */

static bool same_ints(td_value a, td_value b) {
    return a.n == b.n && !memcmp(a.ints, b.ints, sizeof(int64_t) * (size_t)a.n);
}

bool td_value_equal(td_value a, td_value b) {
    if (a.kind != b.kind) {
        bool numbers =
            TD_KIND_BIT(a.kind) & TD_KINDS_NUMBER && TD_KIND_BIT(b.kind) & TD_KINDS_NUMBER;
        return numbers && td_arg_double(a) == td_arg_double(b);
    }
    switch ((td_kind)a.kind) {
    case TD_KIND_NIL:
        return true;
    case TD_KIND_INT:
        return a.i == b.i;
    case TD_KIND_FLOAT:
        return a.f == b.f;
    case TD_KIND_BOOL:
        return a.b == b.b;
    case TD_KIND_STRING:
        return !strcmp(a.string, b.string);
    case TD_KIND_DTYPE:
        return a.dtype == b.dtype;
    case TD_KIND_DEVICE:
        return td_device_same(a.device, b.device);
    case TD_KIND_INTS:
        return same_ints(a, b);
    case TD_KIND_FLOATS:
        return a.n == b.n && !memcmp(a.floats, b.floats, sizeof(double) * (size_t)a.n);
    case TD_KIND_TENSOR: /* whose elements no expression compares */
    case TD_KIND_TENSORS:
    case TD_KIND_GENERATOR:
        break;
    }
    return false;
}

static bool same_step(const td_draft *d, const td_expression_step *a, const td_expression_step *b,
                      const uint8_t *operands) {
    if (a->type != b->type || a->op != b->op || a->which != b->which || a->sign != b->sign ||
        a->noperands != b->noperands)
        return false;
    if (a->type == TD_EX_CONSTANT)
        return a->constant.kind == b->constant.kind && td_value_equal(a->constant, b->constant);
    return !memcmp(d->operands + a->first, operands, b->noperands);
}

static const uint8_t no_operands[1];

/* Add a step, or find its equal; what is random has none. */
static int put(td_draft *d, const char *at, td_expression_step step, uint32_t kinds, bool host,
               int n, const uint8_t *operands) {
    bool fresh = step.type == TD_EX_CALL && step.op->flags & TD_OP_RANDOM;
    step.noperands = (uint8_t)n;
    for (int k = 0; k < d->nsteps && !fresh; k++)
        if (same_step(d, &d->steps[k], &step, operands))
            return k;
    d->nlists += step.type == TD_EX_LIST ||
                 (step.type == TD_EX_ATTRIBUTE && step.which == TD_ATTRIBUTE_SHAPE);
    if (d->nsteps == TD_EXPRESSION_STEPS || d->noperands + n > TD_EXPRESSION_OPERANDS ||
        d->nlists > TD_EXPRESSION_LISTS)
        return td_draft_fail(d, at, "the text is too long");
    step.first = (uint16_t)d->noperands;
    memcpy(d->operands + d->noperands, operands, (size_t)n);
    d->noperands += n;
    d->steps[d->nsteps] = step;
    d->kinds[d->nsteps] = kinds;
    d->host[d->nsteps] = host;
    return d->nsteps++;
}

int td_draft_constant(td_draft *d, const char *at, td_value v) {
    return put(d, at, (td_expression_step){.type = TD_EX_CONSTANT, .constant = v},
               TD_KIND_BIT(v.kind), true, 0, no_operands);
}

/* ---- names ---- */

int td_op_find_param(const td_op *op, const char *name) {
    for (int k = 0; k < op->nparams; k++)
        if (!strcmp(op->params[k].name, name))
            return k;
    return -1;
}

int td_op_find_result(const td_op *op, const char *name) {
    for (int k = 0; k < op->nresults; k++)
        if (!strcmp(op->result_names[k] ? op->result_names[k] : "out", name))
            return k;
    return -1;
}

td_binding *td_draft_find_binding(td_draft *d, const char *name) {
    for (int k = 0; k < d->nbindings; k++)
        if (!strcmp(d->bindings[k].name, name))
            return &d->bindings[k];
    return NULL;
}

int td_draft_variable(td_draft *d, const char *at, const char *name) {
    td_binding *b = td_draft_find_binding(d, name);
    td_expression_step step = {0};
    uint32_t kinds = TD_KINDS_TENSOR;
    int param = td_op_find_param(d->op, name);
    int result = d->backward ? td_op_find_result(d->op, name) : -1;
    if (b) {
        b->read = true;
        return b->step;
    }
    if (param >= 0) {
        step = (td_expression_step){.type = TD_EX_ARGUMENT, .which = (uint8_t)param};
        kinds = td_param_kinds(&d->op->params[param]);
    } else if (d->backward && !strcmp(name, "g")) {
        step = (td_expression_step){.type = TD_EX_GRADIENT};
        if (d->op->nresults > 1) { /* a stand-in until one is named */
            step.which = TD_MAX_RESULTS;
            kinds = TD_KINDS_SEVERAL;
        }
    } else if (result >= 0) {
        step = (td_expression_step){.type = TD_EX_RESULT, .which = (uint8_t)result};
    } else {
        return td_draft_fail(d, at, "'%s' is no parameter%s", name,
                             d->backward ? ", result or binding" : " or binding");
    }
    return put(d, at, step, kinds, true, 0, no_operands);
}

/* ---- members ---- */

static const struct {
    const char *name;
    uint32_t kinds;
} attributes[] = {
    [TD_ATTRIBUTE_SHAPE] = {"shape", TD_KIND_BIT(TD_KIND_INTS)},
    [TD_ATTRIBUTE_NDIM] = {"ndim", TD_KIND_BIT(TD_KIND_INT)},
    [TD_ATTRIBUTE_NUMEL] = {"numel", TD_KIND_BIT(TD_KIND_INT)},
    [TD_ATTRIBUTE_SIZE] = {"size", TD_KIND_BIT(TD_KIND_INT)},
    [TD_ATTRIBUTE_DTYPE] = {"dtype", TD_KIND_BIT(TD_KIND_DTYPE)},
    [TD_ATTRIBUTE_FLOATING] = {"floating", TD_KIND_BIT(TD_KIND_BOOL)},
    [TD_ATTRIBUTE_CONTIGUOUS] = {"contiguous", TD_KIND_BIT(TD_KIND_BOOL)},
    [TD_ATTRIBUTE_DEVICE] = {"device", TD_KIND_BIT(TD_KIND_DEVICE)},
};

static int one_of_several(td_draft *d, const char *at, int of, const char *name) {
    const td_expression_step *step = &d->steps[of];
    bool gradient = step->type == TD_EX_GRADIENT;
    const td_op *op = gradient ? d->op : step->op;
    int result = td_op_find_result(op, name);
    if (result < 0)
        return td_draft_fail(d, at, "%s has no result '%s'", op->name, name);
    td_expression_step pick = {.type = gradient ? TD_EX_GRADIENT : TD_EX_PICK,
                               .which = (uint8_t)result};
    return put(d, at, pick, TD_KINDS_TENSOR, gradient, gradient ? 0 : 1, (uint8_t[]){(uint8_t)of});
}

int td_draft_member(td_draft *d, const char *at, int of, const char *name, int dim) {
    int which = 0, n = (int)(sizeof attributes / sizeof *attributes);
    if (d->kinds[of] & TD_KINDS_SEVERAL)
        return one_of_several(d, at, of, name);
    while (which < n && strcmp(attributes[which].name, name))
        which++;
    if (which == n)
        return td_draft_fail(d, at, "a tensor has no '%s'", name);
    if (!(d->kinds[of] & TD_KINDS_TENSOR))
        return td_draft_fail(d, at, "only a tensor has '%s'", name);
    bool sized = dim >= 0 && d->kinds[dim] & TD_KIND_BIT(TD_KIND_INT);
    if (which == TD_ATTRIBUTE_SIZE && !sized)
        return td_draft_fail(d, at, "size takes a dim: x.size(dim)");
    return put(d, at, (td_expression_step){.type = TD_EX_ATTRIBUTE, .which = (uint8_t)which},
               attributes[which].kinds, d->host[of] && (dim < 0 || d->host[dim]), dim < 0 ? 1 : 2,
               (uint8_t[]){(uint8_t)of, (uint8_t)(dim < 0 ? 0 : dim)});
}

/* ---- lists and choices ---- */

int td_draft_list(td_draft *d, const char *at, int n, const int *entries) {
    uint8_t operands[TD_MAX_DIMS];
    uint32_t kinds = TD_KIND_BIT(TD_KIND_INT) | TD_KINDS_TENSOR;
    bool host = true;
    for (int k = 0; k < n; k++) {
        kinds &= d->kinds[entries[k]];
        host = host && d->host[entries[k]];
        operands[k] = (uint8_t)entries[k];
    }
    if (!kinds)
        return td_draft_fail(d, at, "a list holds whole numbers, or tensors");
    bool tensors = kinds & TD_KINDS_TENSOR, ints = kinds & TD_KIND_BIT(TD_KIND_INT);
    uint32_t whole = (tensors ? TD_KINDS_TENSORS : 0) | (ints ? TD_KIND_BIT(TD_KIND_INTS) : 0);
    return put(d, at, (td_expression_step){.type = TD_EX_LIST}, whole, host && !tensors, n,
               operands);
}

int td_draft_choose(td_draft *d, const char *at, int condition, int then, int otherwise) {
    char have[TD_KINDS_TEXT];
    if (d->kinds[condition] != TD_KIND_BIT(TD_KIND_BOOL))
        return td_draft_fail(d, at, "a condition is a bool, got %s",
                             td_kinds_text(d->kinds[condition], have));
    if (!d->host[condition])
        return td_draft_fail(d, at, "a condition can't depend on what operators compute");
    uint32_t kinds = d->kinds[then] | d->kinds[otherwise];
    bool tensors = kinds & (TD_KINDS_TENSOR | TD_KINDS_TENSORS);
    return put(d, at, (td_expression_step){.type = TD_EX_CHOOSE}, kinds,
               d->host[then] && d->host[otherwise] && !tensors, 3,
               (uint8_t[]){(uint8_t)condition, (uint8_t)then, (uint8_t)otherwise});
}

int td_draft_error(td_draft *d, const char *at, int n, const int *entries) {
    const uint32_t shown = TD_KIND_BIT(TD_KIND_INT) | TD_KIND_BIT(TD_KIND_FLOAT) |
                           TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_STRING);
    uint8_t operands[TD_MAX_DIMS];
    const td_expression_step *text = n ? &d->steps[entries[0]] : NULL;
    int places = 1;
    if (!text || text->type != TD_EX_CONSTANT || text->constant.kind != TD_KIND_STRING)
        return td_draft_fail(d, at, "an error begins with its text");
    for (const char *p = text->constant.string; *p; p++)
        places += *p == '%';
    if (places != n)
        return td_draft_fail(d, at, "the text has %d places, %d values are given", places - 1,
                             n - 1);
    for (int k = 0; k < n; k++) {
        operands[k] = (uint8_t)entries[k];
        if (k && !(d->kinds[entries[k]] & shown))
            return td_draft_fail(d, at, "value %d is no number, string or shape", k);
    }
    return put(d, at, (td_expression_step){.type = TD_EX_ERROR}, 0, true, n, operands);
}

/* ---- calls ---- */

const td_op *td_draft_find_op(const td_draft *d, const char *at, const char *name) {
    const td_op *op = td_op_find(name);
    if (!op)
        td_draft_fail(d, at, "there is no operator '%s'", name);
    else if (op->flags & TD_OP_INPLACE_ONLY)
        td_draft_fail(d, at, "%s writes in place, an expression makes new values", name);
    else if (op == d->op && !d->backward)
        td_draft_fail(d, at, "%s calls itself", name);
    else if (td_result_kinds(op) == 0)
        td_draft_fail(d, at, "%s has no result", name);
    else
        return op;
    return NULL;
}

static int check_argument(td_draft *d, const char *at, const td_op *op, int k, int step) {
    const td_param *p = &op->params[k];
    char have[TD_KINDS_TEXT], want[32];
    if (step < 0 && !p->has_default)
        return td_draft_fail(d, at, "argument %d (%s) of %s is missing", k + 1, p->name, op->name);
    if (step < 0)
        return td_draft_constant(d, at, p->preset);
    if (td_param_kinds(p) & d->kinds[step])
        return step;
    td_param_type_text(p, want, sizeof want);
    return td_draft_fail(d, at, "argument %d (%s) of %s is %s, %s expected", k + 1, p->name,
                         op->name, td_kinds_text(d->kinds[step], have), want);
}

static int put_call(td_draft *d, const char *at, const td_op *op, td_sign sign, uint32_t kinds,
                    const int *given) {
    td_expression_step step = {.type = TD_EX_CALL, .op = op, .sign = (uint8_t)sign};
    uint8_t operands[TD_MAX_PARAMS];
    for (int k = 0; k < op->nparams; k++) {
        int operand = check_argument(d, at, op, k, given[k]);
        if (operand < 0)
            return -1;
        operands[k] = (uint8_t)operand;
    }
    return put(d, at, step, kinds, false, op->nparams, operands);
}

int td_draft_call(td_draft *d, const char *at, const td_op *op, const int *given) {
    return put_call(d, at, op, TD_SIGN_NONE, td_result_kinds(op), given);
}

/* ---- signs ---- */

static bool is_nil(const td_draft *d, int step) {
    return d->kinds[step] == TD_KIND_BIT(TD_KIND_NIL);
}

/* `argument == nil` does not read the argument, only whether it is there. */
static int is_given(td_draft *d, const char *at, td_sign sign, int argument) {
    td_expression_step step = {.type = TD_EX_GIVEN, .which = d->steps[argument].which};
    if (d->steps[argument].type != TD_EX_ARGUMENT ||
        !(d->kinds[argument] & TD_KIND_BIT(TD_KIND_NIL)))
        return td_draft_fail(d, at, "only an optional parameter can be nil");
    int there = put(d, at, step, TD_KIND_BIT(TD_KIND_BOOL), true, 0, no_operands);
    if (there < 0 || sign == TD_SIGN_NE)
        return there;
    int no = td_draft_constant(d, at, TD_B(false));
    return no < 0 ? -1 : td_draft_sign(d, at, TD_SIGN_EQ, there, no);
}

/* Neither is a tensor: arithmetic, or a comparison of any values of one kind. */
static int on_the_spot(td_draft *d, const char *at, const td_op *op, td_sign sign, int a, int b) {
    char have[TD_KINDS_TEXT];
    uint32_t kinds = sign >= TD_SIGN_EQ ? TD_KIND_BIT(TD_KIND_BOOL) : TD_KINDS_NUMBER;
    bool any = sign == TD_SIGN_EQ || sign == TD_SIGN_NE;
    bool numbers = d->kinds[a] & TD_KINDS_NUMBER && (b < 0 || d->kinds[b] & TD_KINDS_NUMBER);
    if (any && !numbers && !(d->kinds[a] & d->kinds[b]))
        return td_draft_fail(d, at, "%s is never equal to %s", td_kinds_text(d->kinds[a], have),
                             td_kinds_text(d->kinds[b], (char[TD_KINDS_TEXT]){0}));
    if (!any && !numbers)
        return td_draft_fail(d, at, "%s takes tensors and numbers, got %s", op->name,
                             td_kinds_text(d->kinds[d->kinds[a] & TD_KINDS_NUMBER ? b : a], have));
    return put(d, at, (td_expression_step){.type = TD_EX_CALL, .op = op, .sign = (uint8_t)sign},
               kinds, d->host[a] && (b < 0 || d->host[b]), b < 0 ? 1 : 2,
               (uint8_t[]){(uint8_t)a, (uint8_t)(b < 0 ? 0 : b)});
}

int td_draft_sign(td_draft *d, const char *at, td_sign sign, int a, int b) {
    static const char *const names[] = {
        [TD_SIGN_ADD] = "add", [TD_SIGN_SUB] = "sub", [TD_SIGN_MUL] = "mul", [TD_SIGN_DIV] = "div",
        [TD_SIGN_POW] = "pow", [TD_SIGN_NEG] = "neg", [TD_SIGN_EQ] = "eq",   [TD_SIGN_NE] = "ne",
        [TD_SIGN_LT] = "lt",   [TD_SIGN_LE] = "le",   [TD_SIGN_GT] = "gt",   [TD_SIGN_GE] = "ge"};
    int given[TD_MAX_PARAMS];
    if ((sign == TD_SIGN_EQ || sign == TD_SIGN_NE) && (is_nil(d, a) || is_nil(d, b)))
        return is_given(d, at, sign, is_nil(d, a) ? b : a);
    const td_op *op = td_draft_find_op(d, at, names[sign]);
    if (!op)
        return -1;
    uint32_t first = d->kinds[a], second = b < 0 ? first : d->kinds[b];
    if (!((first | second) & TD_KINDS_TENSOR))
        return on_the_spot(d, at, op, sign, a, b);
    uint32_t kinds = TD_KINDS_TENSOR; /* two that may be tensors may also be numbers */
    if (first & TD_KINDS_NUMBER && second & TD_KINDS_NUMBER)
        kinds |= sign >= TD_SIGN_EQ ? TD_KIND_BIT(TD_KIND_BOOL) : TD_KINDS_NUMBER;
    for (int k = 0; k < op->nparams; k++)
        given[k] = k == 0 ? a : k == 1 ? b : -1;
    return put_call(d, at, op, sign, kinds, given);
}
