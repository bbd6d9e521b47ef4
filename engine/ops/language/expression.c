/* expression.c: compiles the expressions of operators, once, at start: finds out what they read,
 * and checks what every operator must have. The text is read by expression_parse.c. */
#include "engine/ops/language/expression_draft.h"

#include "engine/core/memory.h"

#include <string.h>

/* ---- what is read ---- */

/* Must the value of this operand be there, or only its shape and dtype? */
static bool reads_value(const td_draft *d, const td_expression_step *step, int operand) {
    return step->type != TD_EX_ATTRIBUTE || step->which >= TD_ATTRIBUTE_CONTIGUOUS ||
           d->steps[operand].type != TD_EX_ARGUMENT;
}

/* Fill in which tensors a root reads of parameters and results; returns the incoming gradients, a
 * bit each. */
static uint32_t note_reads(const td_draft *d, td_expression_root *root) {
    bool reached[TD_EXPRESSION_STEPS] = {false};
    uint32_t gradients = 0;
    reached[root->step] = true;
    for (int k = root->step; k >= 0; k--) {
        const td_expression_step *step = &d->steps[k];
        for (int j = 0; reached[k] && j < step->noperands; j++) {
            int operand = d->operands[step->first + j];
            bool value = reads_value(d, step, operand);
            reached[operand] = reached[operand] || value;
        }
        bool tensor = d->kinds[k] & (TD_KINDS_TENSOR | TD_KINDS_TENSORS);
        if (reached[k] && step->type == TD_EX_ARGUMENT && tensor)
            root->args |= 1u << step->which;
        else if (reached[k] && step->type == TD_EX_RESULT)
            root->outs |= (uint8_t)(1u << step->which);
        else if (reached[k] && step->type == TD_EX_GRADIENT)
            gradients |= 1u << step->which;
    }
    return gradients;
}

static bool check_gradient(const td_draft *d, td_expression_root *root) {
    uint32_t gradients = note_reads(d, root);
    if (!gradients || gradients & (gradients - 1))
        return td_draft_refuse(d, d->text, "the gradient of '%s' reads %s, one expected",
                               d->op->params[root->slot].name,
                               gradients ? "several incoming gradients" : "no incoming gradient");
    root->gradient = (int8_t)__builtin_ctz(gradients);
    return true;
}

static bool check_roots(td_draft *d) {
    uint32_t labelled = 0;
    for (int k = 0; k < d->nbindings; k++)
        if (!d->bindings[k].read)
            return td_draft_refuse(d, d->bindings[k].at, "'%s' is never read", d->bindings[k].name);
    for (int k = 0; k < d->nroots; k++) {
        td_expression_root *root = &d->roots[k];
        if (!d->backward && labelled >> root->slot & 1)
            return td_draft_refuse(d, d->text, "a result is given twice");
        labelled |= 1u << root->slot;
        if (d->backward && !check_gradient(d, root))
            return false;
    }
    bool complete = d->backward || d->op->nresults <= 1 || labelled + 1 == 1u << d->op->nresults;
    return (d->nroots && complete) || td_draft_refuse(d, d->at, "an expression is missing");
}

/* ---- the whole ---- */

/* The order in which steps stand at last, leaves first; returns their number. */
static int order_steps(const td_draft *d, uint8_t *place) {
    int nleaves = 0, n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < d->nsteps; k++)
            if ((d->steps[k].type > TD_EX_GRADIENT) == pass)
                place[k] = (uint8_t)n++;
        nleaves = pass ? nleaves : n;
    }
    return nleaves;
}

/* A step in the sealed expression; its string, unless it is a parameter's default, moves along. */
static td_expression_step seal_step(const td_draft *d, int k, char *chars) {
    td_expression_step step = d->steps[k];
    const char *string = step.constant.string;
    if (step.type == TD_EX_CONSTANT && step.constant.kind == TD_KIND_STRING && string >= d->chars &&
        string < d->chars + d->nchars)
        step.constant.string = chars + (string - d->chars);
    return step;
}

/* The draft in one block of its own size. */
static td_expression *seal(const td_draft *d) {
    uint8_t place[TD_EXPRESSION_STEPS];
    size_t steps = sizeof(td_expression_step) * (size_t)d->nsteps;
    td_expression *e = td_malloc(sizeof *e + steps + (size_t)(d->noperands + d->nchars));
    if (!e)
        return NULL;
    td_expression_step *to = (td_expression_step *)(e + 1);
    uint8_t *operands = (uint8_t *)(to + d->nsteps);
    char *chars = (char *)(operands + d->noperands);
    *e = (td_expression){.nsteps = d->nsteps,
                         .nleaves = order_steps(d, place),
                         .nroots = d->nroots,
                         .steps = to,
                         .operands = operands};
    memcpy(chars, d->chars, (size_t)d->nchars);
    for (int k = 0; k < d->nsteps; k++)
        to[place[k]] = seal_step(d, k, chars);
    for (int k = 0; k < d->noperands; k++)
        operands[k] = place[d->operands[k]];
    for (int k = 0; k < d->nroots; k++) {
        e->roots[k] = d->roots[k];
        e->roots[k].step = place[d->roots[k].step];
    }
    return e;
}

static bool check_names(const td_draft *d) {
    return !d->backward || td_op_find_param(d->op, "g") < 0 ||
           td_draft_refuse(d, d->text, "g is the incoming gradient: no parameter may be called g");
}

static td_status compile(const td_op *op, const char *text, bool backward, td_expression **out) {
    bool right = true;
    td_draft *d = td_calloc(1, sizeof *d);
    char *chars = td_malloc(strlen(text) + 1);
    *out = NULL;
    if (d && chars) {
        d->op = op;
        d->backward = backward;
        d->text = d->at = text;
        d->chars = chars;
        right = check_names(d) && td_draft_parse(d) && check_roots(d);
        *out = right ? seal(d) : NULL;
    }
    td_status status = *out ? TD_OK : right ? td_fail(TD_ENOMEM, "out of memory") : TD_EINTERNAL;
    td_free(chars);
    td_free(d);
    return status;
}

td_status td_expression_prepare(td_op *op) {
    td_status status = TD_OK;
    if (op->pointwise)
        return TD_OK;
    if (op->formula && !op->composite)
        status = compile(op, op->formula, false, &op->composite);
    if (status == TD_OK && op->gradient)
        status = compile(op, op->gradient, true, &op->derivative);
    if (status) /* the row stays as it is written, for another attempt */
        return status;
    for (int k = 0; op->gradient && k < op->derivative->nroots; k++) {
        op->save_args |= op->derivative->roots[k].args;
        op->save_outs |= op->derivative->roots[k].outs;
    }
    if (op->formula)
        op->run = td_expression_run;
    if (op->gradient)
        op->backward = td_expression_backward;
    return TD_OK;
}

/* ---- rows ---- */

static bool takes_tensors(const td_op *op) {
    for (int k = 0; k < op->nparams; k++)
        if (td_param_kinds(&op->params[k]) & (TD_KINDS_TENSOR | TD_KINDS_TENSORS) &&
            !op->params[k].base)
            return true;
    return false;
}

static const char *wrong_autocast(const td_op *op, uint8_t class) {
    int dtype = td_op_find_param(op, "dtype");
    if (class >= TD_AUTOCAST_CLASSES)
        return "has an autocast class that there is not";
    if (class && (!takes_tensors(op) || op->flags & TD_OP_INPLACE_ONLY))
        return "has an autocast class, but no tensors that could be cast for a new result";
    if (class == TD_AUTOCAST_FP32_RESULT &&
        (dtype < 0 || op->params[dtype].type != TD_PARAM_DTYPE || !op->params[dtype].optional))
        return "has the autocast class FP32_RESULT, but no option dtype";
    return NULL;
}

td_status td_expression_check_row(const td_op *op) {
    bool backward = op->backward || op->gradient, run = op->run || op->formula;
    bool both = op->backward && op->gradient && !op->pointwise;
    bool composite = run && !backward && !(op->flags & (TD_OP_VIEW | TD_OP_INPLACE_ONLY));
    bool differentiable =
        td_result_kinds(op) & (TD_KINDS_TENSOR | TD_KINDS_TENSORS | TD_KINDS_SEVERAL) &&
        takes_tensors(op) && !(op->flags & TD_OP_NONDIFF);
    const char *wrong = NULL;
    if ((op->run && op->formula) || (run && op->kernel))
        wrong = "has more than one of .run, .formula and .kernel";
    else if (both)
        wrong = "has both .backward and .gradient";
    else if (op->gradient && op->saves)
        wrong = "has .saves, but what .gradient reads is saved";
    else if (backward && op->flags & TD_OP_NONDIFF)
        wrong = "says TD_OP_NONDIFF and has a gradient";
    else if (differentiable && !backward && !composite)
        wrong = "has no gradient: .gradient, .backward, .formula or TD_OP_NONDIFF expected";
    for (int type = TD_CPU; type <= TD_CUDA && !wrong; type++)
        wrong = wrong_autocast(op, op->autocast[type]);
    return wrong ? td_fail(TD_EINTERNAL, "operator '%s' %s", op->name, wrong) : TD_OK;
}
