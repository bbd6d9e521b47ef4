/* help.c: what the kind of a row says of shapes and dtypes, put into words. */
#include "engine/ops/help.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rule_helpers.h"

#include <stdio.h>
#include <string.h>

/* A text that grows in a buffer of TD_HELP_TEXT bytes, and is cut there. */
typedef struct words {
    char *text;
    size_t length;
} words;

static void add(words *w, const char *text) {
    int n = snprintf(w->text + w->length, TD_HELP_TEXT - w->length, "%s", text);
    w->length += (size_t)n;
    if (w->length >= TD_HELP_TEXT)
        w->length = TD_HELP_TEXT - 1;
}

/* ---- shapes ---- */

static bool is_tensor(const td_param *p) {
    return p->type == TD_PARAM_TENSOR || p->type == TD_PARAM_TENSOR_OR_NUMBER;
}

static const td_param *find_param(const td_op *op, const char *name, td_param_type type) {
    for (int k = 0; k < op->nparams; k++)
        if (!strcmp(op->params[k].name, name) && op->params[k].type == type)
            return &op->params[k];
    return NULL;
}

/* The tensors among its parameters; -1 where there are lists of them, which the row must explain. */
static int count_tensors(const td_op *op) {
    int n = 0;
    for (int k = 0; k < op->nparams; k++) {
        if (op->params[k].type == TD_PARAM_TENSORS)
            return -1;
        n += is_tensor(&op->params[k]);
    }
    return n;
}

static void add_operands(words *w, const td_op *op, const char *shape) {
    bool any = false;
    for (int k = 0; k < op->nparams; k++) {
        if (!is_tensor(&op->params[k]))
            continue;
        add(w, any ? ", " : "");
        add(w, op->params[k].name);
        add(w, shape);
        any = true;
    }
}

static void add_results(words *w, const td_op *op, const char *shape) {
    static const char *const others[] = {[TD_RESULT_NUMBER] = "number",
                                         [TD_RESULT_BOOL] = "bool",
                                         [TD_RESULT_NOTHING] = "nothing"};
    add(w, " -> ");
    if (op->result_type != TD_RESULT_TENSOR) {
        add(w, others[op->result_type]);
        return;
    }
    for (int k = 0; k < op->nresults; k++) {
        add(w, k ? ", " : "");
        add(w, shape);
    }
}

/* Does it make a tensor of its first argument's shape: element by element, by the rule that says so,
 * in place, or afresh? */
static bool is_like_first(const td_op *op) {
    bool writes = op->inplace_name || op->flags & TD_OP_INPLACE_ONLY;
    return op->pointwise || op->rule == td_rule_same || writes ||
           (op->flags & TD_OP_NONDIFF && find_param(op, "dtype", TD_PARAM_DTYPE));
}

static bool is_reduction(const td_op *op) {
    return (find_param(op, "dim", TD_PARAM_DIMS) || find_param(op, "dim", TD_PARAM_DIM)) &&
           find_param(op, "keepdim", TD_PARAM_BOOL);
}

const char *td_help_shapes(const td_op *op, char text[TD_HELP_TEXT]) {
    if (op->shapes)
        return op->shapes;
    words w = {.text = text};
    int tensors = count_tensors(op);
    bool sized = find_param(op, "size", TD_PARAM_INTS) != NULL;
    bool one = tensors == 1 && op->result_type != TD_RESULT_TENSORS && !(op->flags & TD_OP_TURNS);
    if (tensors > 1 && find_param(op, "reduction", TD_PARAM_STRING)) { /* a loss */
        add_operands(&w, op, " (*)");
        add(&w, " -> (*) if reduction == 'none' | -> ()");
    } else if (op->pointwise && tensors > 1) {
        add_operands(&w, op, " (*)");
        add_results(&w, op, "(*)");
    } else if (one && is_reduction(op)) {
        add_operands(&w, op, " (...)");
        add_results(&w, op, "(...) without dim");
    } else if (sized && op->flags & TD_OP_NONDIFF && (one || !tensors)) { /* makes a tensor */
        add_operands(&w, op, " (...)");
        add_results(&w, op, "(size...)");
    } else if (one && !sized && is_like_first(op)) {
        add_operands(&w, op, " (...)");
        add_results(&w, op, "(...)");
    } else
        return NULL;
    return text;
}

/* ---- dtypes ---- */

static void add_dtypes(words *w, uint64_t dtypes) {
    switch (dtypes) {
    case TD_DTYPES_ALL:
        add(w, "any");
        return;
    case TD_DTYPES_FLOATS:
        add(w, "floating");
        return;
    case TD_DTYPES_INTS:
        add(w, "integers");
        return;
    case TD_DTYPES_NUMBERS:
        add(w, "floating and integers");
        return;
    case TD_DTYPES_INTS | TD_DTYPES_BOOL:
        add(w, "integers and bool");
        return;
    default:
        break;
    }
    bool any = false;
    for (int d = 0; d < TD_DTYPE_COUNT; d++) {
        if (!(dtypes >> d & 1))
            continue;
        add(w, any ? ", " : "");
        add(w, td_dtype_name((td_dtype)d));
        any = true;
    }
}

/* What becomes of the operands' dtypes. */
static const char *promotion_of(const td_pointwise *pw, bool several) {
    switch ((td_pointwise_type)pw->type) {
    case TD_PW_FLOATS:
        return several ? ", promoted; integers and bool count as float32"
                       : "; integers and bool count as float32";
    case TD_PW_DOUBLES:
        return "; computed in float64, which the result has";
    case TD_PW_COMPARE:
        return several ? ", promoted; the result is bool" : "; the result is bool";
    case TD_PW_LOGICAL:
    case TD_PW_FLOAT_TEST:
        return "; the result is bool";
    case TD_PW_SELECT:
        return ", promoted, but the first, which is bool";
    case TD_PW_ARITH:
    case TD_PW_BITWISE:
        break;
    }
    return several && !pw->same ? ", promoted" : "";
}

static void add_pointwise(words *w, const td_op *op) {
    const td_pointwise *pw = op->pointwise;
    uint64_t dtypes = op->dtypes;
    if (pw->no_bool)
        dtypes &= ~(uint64_t)TD_DTYPES_BOOL;
    if (pw->type == TD_PW_BITWISE)
        dtypes &= TD_DTYPES_INTS | TD_DTYPES_BOOL;
    add_dtypes(w, dtypes);
    add(w, pw->same ? ", the same of all tensors" : "");
    add(w, promotion_of(pw, count_tensors(op) > 1));
    add(w, pw->counts ? "; bool counts as int64" : "");
}

const char *td_help_dtypes(const td_op *op, char text[TD_HELP_TEXT]) {
    words w = {.text = text};
    bool indices = false, tensors = false;
    text[0] = 0;
    for (int k = 0; k < op->nparams; k++) {
        const td_param *p = &op->params[k];
        indices |= p->base != TD_BASE_NONE;
        tensors |= (is_tensor(p) || p->type == TD_PARAM_TENSORS) && p->base == TD_BASE_NONE;
    }
    if (op->pointwise)
        add_pointwise(&w, op);
    else if (tensors)
        add_dtypes(&w, op->dtypes ? op->dtypes : TD_DTYPES_ALL);
    for (int k = 0; k < op->nparams && indices; k++) {
        if (op->params[k].base == TD_BASE_NONE)
            continue;
        add(&w, w.length ? "; " : "");
        add(&w, op->params[k].name);
        add(&w, " integers");
    }
    return w.length ? text : NULL;
}
