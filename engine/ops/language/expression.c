/* expression.c: compiles the expressions of operators, once, at start: finds out what they read,
 * and checks what every operator must have. The text is read by expression_parse.c. */
#include "engine/ops/language/draft.h"

#include "engine/core/memory.h"

#include <string.h>

/* ---- what is read ---- */

/* Must the value of this operand be there, or only its shape and dtype? */
static bool reads_value(const td_draft *d, const td_expression_step *step, int operand) {
    return step->type != TD_EX_ATTRIBUTE || step->which >= TD_ATTRIBUTE_CONTIGUOUS ||
           td_draft_at(d, operand)->step.type != TD_EX_ARGUMENT;
}

/* Fill in which tensors a root reads of parameters and results; returns the incoming gradients, a
 * bit each. `reached`: room for all steps. */
static uint32_t note_reads(const td_draft *d, td_expression_root *root, uint16_t *reached) {
    uint32_t gradients = 0;
    memset(reached, 0, sizeof *reached * (size_t)(d->steps.n + 1));
    reached[root->step] = true;
    for (int k = root->step; k > 0; k--) {
        const td_expression_step *step = &td_draft_at(d, k)->step;
        if (!reached[k])
            continue;
        for (int j = 0; j < step->noperands; j++) {
            int operand = td_draft_operands(d, k)[j];
            reached[operand] |= reads_value(d, step, operand);
        }
        bool tensor = td_draft_at(d, k)->kinds & (TD_KINDS_TENSOR | TD_KINDS_TENSORS);
        if (step->type == TD_EX_ARGUMENT && tensor)
            root->args |= 1u << step->which;
        else if (step->type == TD_EX_RESULT)
            root->outs |= (uint8_t)(1u << step->which);
        else if (step->type == TD_EX_GRADIENT)
            gradients |= 1u << step->which;
    }
    return gradients;
}

static bool check_gradients(td_draft *d, uint16_t *room) {
    d->source.at = d->source.text;
    for (int k = 0; k < d->roots.n; k++) {
        td_expression_root *root = td_draft_root(d, k);
        uint32_t gradients = note_reads(d, root, room);
        if (!gradients || gradients & (gradients - 1))
            return td_source_fail(&d->source, "the gradient of '%s' reads %s, one expected",
                                  d->source.op->params[root->slot].name,
                                  gradients ? "several incoming gradients"
                                            : "no incoming gradient");
        root->gradient = (int8_t)__builtin_ctz(gradients);
    }
    return true;
}

/* ---- the whole ---- */

/* The order in which steps stand at last, leaves first; returns their number. */
static int order_steps(const td_draft *d, uint16_t *place) {
    int nleaves = 0, n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 1; k <= d->steps.n; k++)
            if ((td_draft_at(d, k)->step.type > TD_EX_GRADIENT) == pass)
                place[k] = (uint16_t)n++;
        nleaves = pass ? nleaves : n;
    }
    return nleaves;
}

/* What a step takes of the room for numbers of lists and shapes. */
static int count_ints(const td_expression_step *step) {
    bool shape = step->type == TD_EX_ATTRIBUTE && step->which == TD_ATTRIBUTE_SHAPE;
    return shape ? TD_MAX_DIMS : step->type == TD_EX_LIST ? step->noperands : 0;
}

/* A step in the sealed expression; its string, unless it is a parameter's default, moves along. */
static td_expression_step seal_step(const td_draft *d, int k, char *words) {
    td_expression_step step = td_draft_at(d, k)->step;
    const char *string = step.constant.string;
    if (step.type == TD_EX_CONSTANT && step.constant.kind == TD_KIND_STRING &&
        string >= d->tree->words && string < d->tree->end)
        step.constant.string = words + (string - d->tree->words);
    return step;
}

/* The draft in one block of its own size; NULL: out of memory. `place`: room for all steps. */
static td_expression *seal(const td_draft *d, uint16_t *place) {
    size_t steps = sizeof(td_expression_step) * (size_t)d->steps.n;
    size_t roots = sizeof(td_expression_root) * (size_t)d->roots.n;
    size_t operands = sizeof(uint16_t) * (size_t)d->operands.n;
    size_t words = (size_t)(d->tree->end - d->tree->words);
    td_expression *e = td_malloc(sizeof *e + steps + roots + operands + words);
    if (!e)
        return NULL;
    td_expression_step *step = (td_expression_step *)(e + 1);
    td_expression_root *root = (td_expression_root *)(step + d->steps.n);
    uint16_t *operand = (uint16_t *)(root + d->roots.n);
    char *word = memcpy(operand + d->operands.n, d->tree->words, words);
    *e = (td_expression){.nsteps = d->steps.n,
                         .nleaves = order_steps(d, place),
                         .nroots = d->roots.n,
                         .roots = root,
                         .steps = step,
                         .operands = operand};
    for (int k = 1; k <= d->steps.n; k++) {
        step[place[k]] = seal_step(d, k, word);
        e->nints += count_ints(&step[place[k]]);
    }
    for (int k = 0; k < d->operands.n; k++)
        operand[k] = place[((const uint16_t *)d->operands.items)[k]];
    for (int k = 0; k < d->roots.n; k++) {
        root[k] = *td_draft_root(d, k);
        root[k].step = place[root[k].step];
    }
    return e;
}

static td_status compile(const td_op *op, const char *text, td_source_kind kind,
                         td_expression **out) {
    td_draft d;
    bool backward = kind == TD_SOURCE_GRADIENT;
    uint16_t *room = NULL;
    td_draft_init(&d, op, kind, 0, NULL);
    d.source.at = d.source.text = text;
    *out = NULL;
    bool right =
        !backward || td_op_find_param(op, "g") < 0 ||
        td_source_fail(&d.source, "g is the incoming gradient: no parameter may be called g");
    right = right && td_draft_parse(&d, text) && td_draft_compile(&d, TD_ALL_LABELS);
    if (right) {
        room = td_malloc(sizeof *room * (size_t)(d.steps.n + 1));
        right = room ? !backward || check_gradients(&d, room) : td_source_no_memory(&d.source);
    }
    *out = right ? seal(&d, room) : NULL;
    if (right && !*out)
        td_source_no_memory(&d.source);
    td_free(room);
    td_draft_clear(&d);
    return d.source.status;
}

td_status td_expression_prepare(td_op *op) {
    td_status status = TD_OK;
    if (op->pointwise)
        return TD_OK;
    if (op->formula && !op->composite)
        status = compile(op, op->formula, TD_SOURCE_FORMULA, &op->composite);
    if (status == TD_OK && op->gradient)
        status = compile(op, op->gradient, TD_SOURCE_GRADIENT, &op->derivative);
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
