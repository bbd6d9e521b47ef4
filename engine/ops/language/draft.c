/* draft.c: the steps of a draft: checks the kinds of what they are given and adds them, equal ones
 * once. Knows no syntax. */
#include "engine/ops/language/draft.h"

#include "engine/ops/language/schema.h"

#include <math.h>
#include <string.h>

/* ---- a draft's life ---- */

void td_draft_init(td_draft *d, const td_op *op, td_source_kind kind, int nnames,
                   const char *const *names) {
    *d = (td_draft){.source = {.op = op, .kind = kind, .wrong = names ? TD_EVALUE : TD_EINTERNAL},
                    .names = names,
                    .nnames = nnames};
}

void td_draft_restart(td_draft *d) {
    d->steps.n = d->operands.n = d->roots.n = 0;
    memset(d->alike, 0, sizeof d->alike);
}

static void clear_tree(td_draft *d) {
    td_free(d->tree);
    td_free(d->made);
    d->tree = NULL;
    d->made = NULL;
}

void td_draft_clear(td_draft *d) {
    clear_tree(d);
    td_list_clear(&d->steps);
    td_list_clear(&d->operands);
    td_list_clear(&d->roots);
}

bool td_draft_parse(td_draft *d, const char *text) {
    clear_tree(d);
    d->source.text = text;
    if (!td_tree_parse(&d->source, &d->tree))
        return false;
    size_t n = (size_t)d->tree->nnodes;
    d->made = td_calloc(n, 2 * sizeof *d->made);
    d->entries = d->made ? d->made + n : NULL;
    return d->made || td_source_no_memory(&d->source);
}

/* ---- steps ---- */

/* Numbers are the same by their bits: 0 is not -0. */
static bool same_constant(td_value a, td_value b) {
    return a.kind == b.kind &&
           (a.kind == TD_KIND_FLOAT ? !memcmp(&a.f, &b.f, sizeof a.f) : td_value_equal(a, b));
}

static bool same_step(const td_draft *d, int k, const td_expression_step *b, const int *operands) {
    const td_expression_step *a = &td_draft_at(d, k)->step;
    if (a->type != b->type || a->op != b->op || a->which != b->which || a->sign != b->sign ||
        a->noperands != b->noperands)
        return false;
    for (int j = 0; j < b->noperands; j++)
        if (td_draft_operands(d, k)[j] != operands[j])
            return false;
    return a->type != TD_EX_CONSTANT || same_constant(a->constant, b->constant);
}

/* The list of steps among which those that are equal to this one stand. */
static uint16_t *alike(td_draft *d, const td_expression_step *step, const int *operands) {
    size_t key = step->type + 7u * step->which + ((uintptr_t)step->op >> 4);
    if (step->type == TD_EX_CONSTANT && step->constant.kind == TD_KIND_INT)
        key += (size_t)step->constant.i;
    for (int j = 0; j < step->noperands && j < 2; j++)
        key = 5 * key + (size_t)operands[j];
    return &d->alike[key % TD_DRAFT_LISTS];
}

/* Known before any operator has run: what is made of such values alone and holds no tensor. */
static bool is_host(const td_draft *d, const td_draft_step *put, const int *operands) {
    const td_expression_step *step = &put->step;
    bool host =
        step->type <= TD_EX_GRADIENT || (!(put->kinds & (TD_KINDS_TENSOR | TD_KINDS_TENSORS)) &&
                                         (step->type != TD_EX_CALL || step->sign));
    for (int j = 0; j < step->noperands; j++)
        host = host && td_draft_at(d, operands[j])->host;
    return host;
}

/* Add a step, or find its equal; what is random has none. */
static int put(td_draft *d, td_expression_step step, uint32_t kinds, int n, const int *operands) {
    enum { MOST = 60000 }; /* numbers of steps and operands have 16 bits */
    bool fresh = step.op && step.op->flags & TD_OP_RANDOM;
    if (d->steps.n == MOST || d->operands.n + n > MOST)
        return td_source_fail(&d->source, "more than %d steps or operands", MOST);
    step.noperands = (uint16_t)n;
    uint16_t *first = alike(d, &step, operands);
    for (int k = *first; k && !fresh; k = td_draft_at(d, k)->next)
        if (same_step(d, k, &step, operands))
            return k;
    step.first = (uint16_t)d->operands.n;
    td_draft_step made = {.step = step, .kinds = kinds, .next = *first}, *place;
    made.host = is_host(d, &made, operands);
    for (int j = 0; j < n; j++) {
        uint16_t *operand = td_list_add(&d->operands, sizeof *operand);
        if (!operand)
            return td_source_no_memory(&d->source);
        *operand = (uint16_t)operands[j];
    }
    place = td_list_add(&d->steps, sizeof *place);
    if (!place)
        return td_source_no_memory(&d->source);
    *place = made;
    *first = (uint16_t)d->steps.n;
    return d->steps.n;
}

static uint32_t kinds_of(const td_draft *d, int step) {
    return td_draft_at(d, step)->kinds;
}

int td_draft_constant(td_draft *d, td_value v) {
    return put(d, (td_expression_step){.type = TD_EX_CONSTANT, .constant = v}, TD_KIND_BIT(v.kind),
               0, NULL);
}

/* ---- names ---- */

int td_draft_find_name(const td_draft *d, const char *name) {
    for (int k = 0; k < d->nnames; k++)
        if (td_is_name(d->names[k], name))
            return k;
    return -1;
}

/* A word that stands for a value, unless a parameter is called so. */
static int word(td_draft *d, const char *name) {
    const struct {
        const char *word;
        td_value value;
    } rows[] = {{"nil", TD_NIL},
                {"true", TD_B(true)},
                {"false", TD_B(false)},
                {"inf", TD_F((double)INFINITY)},
                {"nan", TD_F((double)NAN)}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (td_is_name(rows[k].word, name))
            return td_draft_constant(d, rows[k].value);
    return td_source_fail(
        &d->source, "'%s' is no %s%s", name, d->source.op ? "parameter" : "operand",
        d->source.kind == TD_SOURCE_GRADIENT ? ", result or binding" : " or binding");
}

int td_draft_variable(td_draft *d, const char *name) {
    const td_op *op = d->source.op;
    bool backward = !d->names && d->source.kind == TD_SOURCE_GRADIENT;
    int param = d->names ? td_draft_find_name(d, name) : td_op_find_param(op, name);
    int result = backward ? td_op_find_result(op, name) : -1;
    if (param >= 0)
        return put(d, (td_expression_step){.type = TD_EX_ARGUMENT, .which = (uint16_t)param},
                   d->names ? (uint32_t)TD_KINDS_ELEMENTS : td_param_kinds(&op->params[param]), 0,
                   NULL);
    if (backward && !strcmp(name, "g") && op->nresults > 1) /* a stand-in until one is named */
        return put(d, (td_expression_step){.type = TD_EX_GRADIENT, .which = TD_MAX_RESULTS},
                   TD_KINDS_SEVERAL, 0, NULL);
    if (backward && !strcmp(name, "g"))
        return put(d, (td_expression_step){.type = TD_EX_GRADIENT}, TD_KINDS_TENSOR, 0, NULL);
    if (result >= 0)
        return put(d, (td_expression_step){.type = TD_EX_RESULT, .which = (uint16_t)result},
                   TD_KINDS_TENSOR, 0, NULL);
    return word(d, name);
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

static int one_of_several(td_draft *d, int of, const char *name) {
    const td_expression_step *step = &td_draft_at(d, of)->step;
    bool gradient = step->type == TD_EX_GRADIENT;
    const td_op *op = gradient ? d->source.op : step->op;
    int result = td_op_find_result(op, name);
    if (result < 0)
        return td_source_fail(&d->source, "%s has no result '%s'", op->name, name);
    td_expression_step pick = {.type = gradient ? TD_EX_GRADIENT : TD_EX_PICK,
                               .which = (uint16_t)result};
    return put(d, pick, TD_KINDS_TENSOR, gradient ? 0 : 1, &of);
}

int td_draft_member(td_draft *d, int of, const char *name, int dim) {
    int which = 0, n = (int)(sizeof attributes / sizeof *attributes);
    if (kinds_of(d, of) & TD_KINDS_SEVERAL && !dim)
        return one_of_several(d, of, name);
    while (which < n && strcmp(attributes[which].name, name))
        which++;
    if (which == n)
        return td_source_fail(&d->source, "a tensor has no '%s'", name);
    if (!(kinds_of(d, of) & TD_KINDS_TENSOR))
        return td_source_fail(&d->source, "only a tensor has '%s'", name);
    if (dim && which != TD_ATTRIBUTE_SIZE)
        return td_source_fail(&d->source, "%s takes no dim", name);
    if (which == TD_ATTRIBUTE_SIZE && !(dim && kinds_of(d, dim) & TD_KIND_BIT(TD_KIND_INT)))
        return td_source_fail(&d->source, "size takes a dim: x.size(dim)");
    return put(d, (td_expression_step){.type = TD_EX_ATTRIBUTE, .which = (uint16_t)which},
               attributes[which].kinds, dim ? 2 : 1, (int[]){of, dim});
}

/* ---- lists and choices ---- */

int td_draft_list(td_draft *d, int n, const int *entries) {
    uint32_t kinds = TD_KIND_BIT(TD_KIND_INT) | TD_KINDS_TENSOR;
    for (int k = 0; k < n; k++)
        kinds &= kinds_of(d, entries[k]);
    if (!kinds)
        return td_source_fail(&d->source, "a list holds whole numbers, or tensors");
    return put(d, (td_expression_step){.type = TD_EX_LIST},
               (kinds & TD_KINDS_TENSOR ? TD_KINDS_TENSORS : 0) |
                   (kinds & TD_KIND_BIT(TD_KIND_INT) ? TD_KIND_BIT(TD_KIND_INTS) : 0),
               n, entries);
}

int td_draft_choose(td_draft *d, int condition, int then, int otherwise) {
    char have[TD_KINDS_TEXT];
    if (kinds_of(d, condition) != TD_KIND_BIT(TD_KIND_BOOL))
        return td_source_fail(&d->source, "a condition is a bool, got %s",
                              td_kinds_text(kinds_of(d, condition), have));
    if (!td_draft_at(d, condition)->host)
        return td_source_fail(&d->source, "a condition can't depend on what operators compute");
    return put(d, (td_expression_step){.type = TD_EX_CHOOSE},
               kinds_of(d, then) | kinds_of(d, otherwise), 3, (int[]){condition, then, otherwise});
}

int td_draft_error(td_draft *d, int n, const int *entries) {
    const uint32_t shown = TD_KIND_BIT(TD_KIND_INT) | TD_KIND_BIT(TD_KIND_FLOAT) |
                           TD_KIND_BIT(TD_KIND_INTS) | TD_KIND_BIT(TD_KIND_STRING);
    const td_expression_step *text = n ? &td_draft_at(d, entries[0])->step : NULL;
    int places = 1;
    if (!text || text->type != TD_EX_CONSTANT || text->constant.kind != TD_KIND_STRING)
        return td_source_fail(&d->source, "an error begins with its text");
    for (const char *p = text->constant.string; *p; p++)
        places += *p == '%';
    if (places != n)
        return td_source_fail(&d->source, "the text has %d places, %d values are given", places - 1,
                              n - 1);
    for (int k = 1; k < n; k++)
        if (!(kinds_of(d, entries[k]) & shown))
            return td_source_fail(&d->source, "value %d is no number, string or shape", k);
    return put(d, (td_expression_step){.type = TD_EX_ERROR}, 0, n, entries);
}

/* ---- calls ---- */

/* Primitives as operators, for those who look at names and parameters. */
static td_param elements[] = {{.name = (char *)"a", .type = TD_PARAM_TENSOR_OR_NUMBER},
                              {.name = (char *)"b", .type = TD_PARAM_TENSOR_OR_NUMBER},
                              {.name = (char *)"c", .type = TD_PARAM_TENSOR_OR_NUMBER}};
static const td_op primitives[] = {
#define PRIMITIVE(id, arity) {.name = #id, .params = elements, .nparams = arity, .nresults = 1},
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
};

static const td_op *find_operator(td_draft *d, const char *name) {
    const td_op *op = td_op_find(name);
    if (!op)
        td_source_fail(&d->source, "there is no operator '%s'%s", name,
                       td_primitive_find(name, strlen(name)) < 0
                           ? ""
                           : ", only a primitive of pointwise operators' formulas");
    else if (op->flags & TD_OP_INPLACE_ONLY)
        td_source_fail(&d->source, "%s writes in place, an expression makes new values", name);
    else if (op == d->source.op && d->source.kind == TD_SOURCE_FORMULA)
        td_source_fail(&d->source, "%s calls itself", name);
    else if (!td_result_kinds(op))
        td_source_fail(&d->source, "%s has no result", name);
    else
        return op;
    return NULL;
}

const td_op *td_draft_find(td_draft *d, const char *name) {
    if (!d->names)
        return find_operator(d, name);
    int primitive = td_primitive_find(name, strlen(name));
    if (primitive < 0)
        td_source_fail(&d->source, "there is no primitive '%s'", name);
    return primitive < 0 ? NULL : &primitives[primitive];
}

static int check_argument(td_draft *d, const td_op *op, int k, int step) {
    const td_param *p = &op->params[k];
    char have[TD_KINDS_TEXT], want[TD_PARAM_TEXT];
    if (!step && !p->has_default)
        return td_source_fail(&d->source, "argument %d (%s) of %s is missing", k + 1, p->name,
                              op->name);
    if (!step)
        return td_draft_constant(d, p->preset);
    if (td_param_kinds(p) & kinds_of(d, step))
        return step;
    td_param_type_text(p, want, sizeof want);
    return td_source_fail(&d->source, "argument %d (%s) of %s is %s, %s expected", k + 1, p->name,
                          op->name, td_kinds_text(kinds_of(d, step), have), want);
}

static int put_call(td_draft *d, const td_op *op, td_sign sign, uint32_t kinds, const int *given) {
    td_expression_step step = {.type = TD_EX_CALL, .op = op, .sign = (uint8_t)sign};
    int operands[TD_MAX_PARAMS];
    for (int k = 0; k < op->nparams; k++) {
        operands[k] = check_argument(d, op, k, given[k]);
        if (!operands[k])
            return 0;
    }
    return put(d, step, kinds, op->nparams, operands);
}

int td_draft_call(td_draft *d, const td_op *op, const int *given) {
    return put_call(d, op, TD_SIGN_NONE, td_result_kinds(op), given);
}

td_primitive td_draft_primitive(const td_expression_step *call) {
    return (td_primitive)(call->op - primitives);
}

/* ---- signs ---- */

static bool is_nil(const td_draft *d, int step) {
    return kinds_of(d, step) == TD_KIND_BIT(TD_KIND_NIL);
}

/* `argument == nil` does not read the argument, only whether it is there. */
static int is_given(td_draft *d, td_sign sign, int argument) {
    const td_draft_step *of = td_draft_at(d, argument);
    td_expression_step step = {.type = TD_EX_GIVEN, .which = of->step.which};
    if (of->step.type != TD_EX_ARGUMENT || !(of->kinds & TD_KIND_BIT(TD_KIND_NIL)))
        return td_source_fail(&d->source, "only an optional parameter can be nil");
    int there = put(d, step, TD_KIND_BIT(TD_KIND_BOOL), 0, NULL);
    if (!there || sign == TD_SIGN_NE)
        return there;
    int no = td_draft_constant(d, TD_B(false));
    return no ? td_draft_sign(d, TD_SIGN_EQ, there, no) : 0;
}

/* Neither is a tensor: arithmetic, or a comparison of any values of one kind. */
static int on_the_spot(td_draft *d, const td_op *op, td_sign sign, int a, int b) {
    char have[TD_KINDS_TEXT], other[TD_KINDS_TEXT];
    uint32_t first = kinds_of(d, a), second = kinds_of(d, b ? b : a);
    bool any = sign == TD_SIGN_EQ || sign == TD_SIGN_NE;
    bool numbers = first & TD_KINDS_NUMBER && second & TD_KINDS_NUMBER;
    if (any && !numbers && !(first & second))
        return td_source_fail(&d->source, "%s is never equal to %s", td_kinds_text(first, have),
                              td_kinds_text(second, other));
    if (!any && !numbers)
        return td_source_fail(&d->source, "%s takes tensors and numbers, got %s", op->name,
                              td_kinds_text(first & TD_KINDS_NUMBER ? second : first, have));
    return put(d, (td_expression_step){.type = TD_EX_CALL, .op = op, .sign = (uint8_t)sign},
               sign >= TD_SIGN_EQ ? TD_KIND_BIT(TD_KIND_BOOL) : TD_KINDS_NUMBER, b ? 2 : 1,
               (int[]){a, b});
}

int td_draft_sign(td_draft *d, td_sign sign, int a, int b) {
    static const uint8_t names[] = {
        [TD_SIGN_ADD] = TD_PW_add, [TD_SIGN_SUB] = TD_PW_sub, [TD_SIGN_MUL] = TD_PW_mul,
        [TD_SIGN_DIV] = TD_PW_div, [TD_SIGN_POW] = TD_PW_pow, [TD_SIGN_NEG] = TD_PW_neg,
        [TD_SIGN_EQ] = TD_PW_eq,   [TD_SIGN_NE] = TD_PW_ne,   [TD_SIGN_LT] = TD_PW_lt,
        [TD_SIGN_LE] = TD_PW_le,   [TD_SIGN_GT] = TD_PW_gt,   [TD_SIGN_GE] = TD_PW_ge};
    int given[TD_MAX_PARAMS] = {a, b};
    if ((sign == TD_SIGN_EQ || sign == TD_SIGN_NE) && (is_nil(d, a) || is_nil(d, b)))
        return is_given(d, sign, is_nil(d, a) ? b : a);
    const td_op *op = &primitives[names[sign]];
    if (d->names)
        return td_draft_call(d, op, given);
    uint32_t first = kinds_of(d, a), second = kinds_of(d, b ? b : a), kinds = TD_KINDS_TENSOR;
    op = find_operator(d, op->name);
    if (!op)
        return 0;
    if (!((first | second) & TD_KINDS_TENSOR))
        return on_the_spot(d, op, sign, a, b);
    if (first & TD_KINDS_NUMBER && second & TD_KINDS_NUMBER) /* both may be numbers, too */
        kinds |= sign >= TD_SIGN_EQ ? TD_KIND_BIT(TD_KIND_BOOL) : TD_KINDS_NUMBER;
    return put_call(d, op, sign, kinds, given);
}
