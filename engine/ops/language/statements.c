/* statements.c: takes the tree of a text apart: what names stand for, which argument goes where,
 * what statements are for. */
#include "engine/ops/language/draft.h"

#include <string.h>

static const td_syntax *node_at(const td_draft *d, int node) {
    return &d->tree->nodes[node];
}

/* ---- names ---- */

/* The last statement before this node that has given a name its value. */
static int find_binding(const td_draft *d, const char *name, int before) {
    int found = 0;
    for (int k = d->tree->first; k && k < before; k = node_at(d, k)->next)
        if (node_at(d, k)->type == TD_SYNTAX_BINDING && td_is_name(node_at(d, k)->word, name))
            found = k;
    return found;
}

static int variable(td_draft *d, int node) {
    const char *name = node_at(d, node)->word;
    int binding = find_binding(d, name, node);
    if (!binding)
        return td_draft_variable(d, name);
    d->tree->nodes[binding].read = true;
    return d->made[binding];
}

/* ---- calls and lists ---- */

/* The values of a node's operands; their number. */
static int take_entries(td_draft *d, const td_syntax *s) {
    int n = 0;
    for (int k = s->first; k; k = node_at(d, k)->next)
        d->entries[n++] = d->made[k];
    return n;
}

static int call(td_draft *d, const td_syntax *s) {
    const td_op *op = td_draft_find(d, s->word);
    int given[TD_MAX_PARAMS] = {0}, n = 0;
    for (int k = s->first; op && k; k = node_at(d, k)->next) {
        const td_syntax *argument = node_at(d, k);
        bool named = argument->type == TD_SYNTAX_ARGUMENT;
        int place = named ? td_op_find_param(op, argument->word) : n++;
        d->source.at = argument->at;
        if (place < 0)
            return td_source_fail(&d->source, "%s has no parameter '%s'", s->word, argument->word);
        if (place >= op->nparams)
            return td_source_fail(&d->source, "%s has only %d parameters", s->word, op->nparams);
        if (given[place])
            return td_source_fail(&d->source, "argument %d (%s) of %s is given twice", place + 1,
                                  op->params[place].name, s->word);
        given[place] = d->made[k];
    }
    d->source.at = s->at;
    return op ? td_draft_call(d, op, given) : 0;
}

static int choice(td_draft *d, const td_syntax *s) {
    int *parts = d->entries;
    return take_entries(d, s) == 3
               ? td_draft_choose(d, parts[0], parts[1], parts[2])
               : td_source_fail(&d->source, "three parts expected: if(condition, then, else)");
}

/* `a and b`: b where a is true, else false; `a or b` likewise. */
static int connect(td_draft *d, bool both, int a, int b) {
    int known = td_draft_constant(d, TD_B(!both));
    return known ? td_draft_choose(d, a, both ? b : known, both ? known : b) : 0;
}

/* ---- nodes ---- */

/* What steps that are primitives can't say of elements. */
static const char *const beyond_elements[] = {
    [TD_SYNTAX_MEMBER] = "there are no attributes",
    [TD_SYNTAX_IF] = "where(mask, then, else) chooses",
    [TD_SYNTAX_AND] = "logical_and and logical_or connect masks",
    [TD_SYNTAX_OR] = "logical_and and logical_or connect masks",
    [TD_SYNTAX_ERROR] = "nothing is refused",
    [TD_SYNTAX_LIST] = "there are no lists",
    [TD_SYNTAX_RESULT] = NULL,
};

/* The step of a node whose operands have theirs. */
static int meaning(td_draft *d, int node) {
    const td_syntax *s = node_at(d, node);
    int a = d->made[s->first], b = d->made[node_at(d, s->first)->next];
    d->source.at = s->at;
    if (d->names && beyond_elements[s->type])
        return td_source_fail(&d->source, "in one pass over elements %s", beyond_elements[s->type]);
    switch ((td_syntax_type)s->type) {
    case TD_SYNTAX_CONSTANT:
        return td_draft_constant(d, s->constant);
    case TD_SYNTAX_NAME:
        return variable(d, node);
    case TD_SYNTAX_SIGN:
        return td_draft_sign(d, (td_sign)s->sign, a, b);
    case TD_SYNTAX_AND:
    case TD_SYNTAX_OR:
        return connect(d, s->type == TD_SYNTAX_AND, a, b);
    case TD_SYNTAX_MEMBER:
        return td_draft_member(d, a, s->word, b);
    case TD_SYNTAX_CALL:
        return call(d, s);
    case TD_SYNTAX_IF:
        return choice(d, s);
    case TD_SYNTAX_ERROR:
        return td_draft_error(d, take_entries(d, s), d->entries);
    case TD_SYNTAX_LIST:
        return td_draft_list(d, take_entries(d, s), d->entries);
    case TD_SYNTAX_ARGUMENT:
    case TD_SYNTAX_LABEL:
    case TD_SYNTAX_BINDING:
    case TD_SYNTAX_RESULT:
        break;
    }
    return a;
}

/* ---- statements ---- */

/* A name that is given a value is new, but where updates give operands new ones. */
static bool check_binding(td_draft *d, int node) {
    const char *name = node_at(d, node)->word;
    const td_op *op = d->names ? NULL : d->source.op;
    bool taken = find_binding(d, name, node) || td_draft_find_name(d, name) >= 0;
    if (op)
        taken = taken || td_op_find_param(op, name) >= 0 || td_op_find_result(op, name) >= 0 ||
                !strcmp(name, "g");
    return !taken || d->source.kind == TD_SOURCE_UPDATES ||
           td_source_fail(&d->source, "the name '%s' is taken", name);
}

/* The parameter or result that an expression is for: *slot. */
static bool find_slot(td_draft *d, const td_syntax *s, int *slot) {
    td_source *t = &d->source;
    const td_op *op = t->op;
    bool backward = t->kind == TD_SOURCE_GRADIENT;
    *slot = 0;
    if (t->kind == TD_SOURCE_UPDATES)
        return td_source_fail(t, "name = value expected");
    if (s->type == TD_SYNTAX_RESULT)
        return (!backward && (!op || op->nresults <= 1)) ||
               td_source_fail(t, "'%s:' expected", backward ? "PARAMETER" : "RESULT");
    if (!op)
        return td_source_fail(t, "a formula by itself does not name its result");
    *slot = backward ? td_op_find_param(op, s->word) : td_op_find_result(op, s->word);
    if (*slot < 0)
        return td_source_fail(t, "'%s' is no %s", s->word, backward ? "parameter" : "result");
    const td_param *param = &op->params[*slot];
    if (!backward || d->names)
        return true;
    if (param->type == TD_PARAM_TENSORS)
        return td_source_fail(t, "'%s' is a list: its gradients need a C function", s->word);
    return (td_param_kinds(param) & TD_KINDS_TENSOR && !param->base) ||
           td_source_fail(t, "'%s' has no gradient, being no tensor of numbers", s->word);
}

static bool add_root(td_draft *d, int slot, int step) {
    td_expression_root *root = td_list_add(&d->roots, sizeof *root);
    if (!root)
        return td_source_no_memory(&d->source);
    *root = (td_expression_root){.slot = (uint16_t)slot, .step = (uint16_t)step, .gradient = -1};
    return true;
}

/* A program has one output for a parameter: a second gradient is added to the first. */
static bool add_gradient(td_draft *d, int slot, int step) {
    for (int k = 0; d->names && k < d->roots.n; k++)
        if (td_draft_root(d, k)->slot == slot) {
            int sum = td_draft_sign(d, TD_SIGN_ADD, td_draft_root(d, k)->step, step);
            td_draft_root(d, k)->step = (uint16_t)sum;
            return sum;
        }
    return add_root(d, slot, step);
}

static bool finish_root(td_draft *d, const td_syntax *s, int slot) {
    char have[TD_KINDS_TEXT], want[TD_KINDS_TEXT];
    bool formula = d->source.kind == TD_SOURCE_FORMULA;
    int step = d->made[s->first];
    uint32_t kinds = td_draft_at(d, step)->kinds, wanted = TD_KINDS_TENSOR;
    if (d->names)
        wanted = TD_KINDS_ELEMENTS;
    else if (formula && !(td_result_kinds(d->source.op) & TD_KINDS_SEVERAL))
        wanted = td_result_kinds(d->source.op);
    d->source.at = node_at(d, s->first)->at;
    if (!(kinds & wanted))
        return td_source_fail(&d->source, "this is %s, %s expected", td_kinds_text(kinds, have),
                              td_kinds_text(wanted, want));
    return formula ? add_root(d, slot, step) : add_gradient(d, slot, step);
}

/* A statement's nodes are those behind the statement before it. */
static bool compile_statement(td_draft *d, int from, int node, uint32_t labels) {
    const td_syntax *s = node_at(d, node);
    bool binds = s->type == TD_SYNTAX_BINDING;
    int slot = 0;
    d->source.at = s->at;
    if (binds ? !check_binding(d, node) : !find_slot(d, s, &slot))
        return false;
    if (!binds && !(labels >> slot & 1))
        return true;
    for (int k = from; k <= node; k++) {
        d->made[k] = meaning(d, k);
        if (!d->made[k])
            return false;
    }
    return binds || finish_root(d, s, slot);
}

/* ---- the whole ---- */

/* The operands that statements have given a new value are the results. */
static bool add_updates(td_draft *d) {
    for (int k = 0; k < d->nnames; k++) {
        int binding = find_binding(d, d->names[k], d->tree->nnodes);
        if (binding && !add_root(d, k, d->made[binding]))
            return false;
    }
    return true;
}

/* Is all that this text says read, and all said that must be? */
static bool check_whole(td_draft *d, int first_root) {
    td_source *t = &d->source;
    uint32_t labelled = 0;
    for (int k = d->tree->first; k; k = node_at(d, k)->next)
        if (node_at(d, k)->type == TD_SYNTAX_BINDING && !node_at(d, k)->read) {
            t->at = node_at(d, k)->at;
            return td_source_fail(t, "'%s' is never read", node_at(d, k)->word);
        }
    t->at = t->text;
    for (int k = first_root; k < d->roots.n; k++) {
        uint32_t bit = 1u << td_draft_root(d, k)->slot;
        if (labelled & bit && t->kind == TD_SOURCE_FORMULA)
            return td_source_fail(t, "a result is given twice");
        labelled |= bit;
    }
    bool all = t->kind == TD_SOURCE_GRADIENT || !t->op || t->op->nresults <= 1 ||
               labelled + 1 == 1u << t->op->nresults;
    t->at = t->text + strlen(t->text);
    return (labelled && all) || td_source_fail(t, "an expression is missing");
}

bool td_draft_compile(td_draft *d, uint32_t labels) {
    int from = 1, first_root = d->roots.n;
    for (int k = d->tree->first; k; from = k + 1, k = node_at(d, k)->next)
        if (!compile_statement(d, from, k, labels))
            return false;
    if (d->source.kind == TD_SOURCE_UPDATES)
        return add_updates(d);
    return labels != TD_ALL_LABELS || check_whole(d, first_root);
}
