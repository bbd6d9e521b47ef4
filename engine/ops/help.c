/* help.c: what the kind of a row says of shapes, dtypes and use, put into words. */
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

/* The tensors among its parameters; -1 where there are lists of them, which the row must explain.
 */
static int count_tensors(const td_op *op) {
    int n = 0;
    for (int k = 0; k < op->nparams; k++) {
        if (op->params[k].type == TD_PARAM_TENSORS)
            return -1;
        n += is_tensor(&op->params[k]);
    }
    return n;
}

/* The tensors whose dtypes a row speaks of: neither indices nor classes. */
static int count_plain(const td_op *op) {
    int n = 0;
    for (int k = 0; k < op->nparams; k++) {
        const td_param *p = &op->params[k];
        if (p->base == TD_BASE_NONE)
            n += p->type == TD_PARAM_TENSORS ? 2 : is_tensor(p);
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
    static const char *const others[] = {
        [TD_RESULT_NUMBER] = "number", [TD_RESULT_BOOL] = "bool", [TD_RESULT_NOTHING] = "nothing"};
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

/* Does it make a tensor of its first argument's shape: element by element, by the rule that says
 * so, in place, or afresh? */
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
    } else if (one && (op->result_type != TD_RESULT_TENSOR || (!sized && is_like_first(op)))) {
        add_operands(&w, op, " (...)");
        add_results(&w, op, "(...)");
    } else
        return NULL;
    return text;
}

/* ---- dtypes ---- */

/* "integers and bool", "float32 and float64", "floating, int64 and bool". */
static void add_dtypes(words *w, uint64_t dtypes) {
    const struct {
        uint64_t dtypes;
        const char *name;
    } sets[] = {{TD_DTYPES_FLOATS, "floating"}, {TD_DTYPES_INTS, "integers"}};
    const char *names[TD_DTYPE_COUNT + 2];
    int n = 0;
    if (dtypes == TD_DTYPES_ALL) {
        add(w, "any");
        return;
    }
    for (size_t k = 0; k < sizeof sets / sizeof *sets; k++)
        if ((dtypes & sets[k].dtypes) == sets[k].dtypes) {
            names[n++] = sets[k].name;
            dtypes &= ~sets[k].dtypes;
        }
    for (int d = 0; d < TD_DTYPE_COUNT; d++)
        if (dtypes >> d & 1)
            names[n++] = td_dtype_name((td_dtype)d);
    for (int k = 0; k < n; k++) {
        add(w, !k ? "" : k < n - 1 ? ", " : " and ");
        add(w, names[k]);
    }
}

/* What becomes of the operands' dtypes. */
static const char *promotion_of(const td_pointwise *pw, bool several) {
    switch ((td_pointwise_type)pw->type) {
    case TD_PW_LOGICAL:
    case TD_PW_FLOAT_TEST:
        return "";
    case TD_PW_SELECT:
        return ", promoted, but the first, which is bool";
    case TD_PW_FLOATS:
    case TD_PW_DOUBLES:
    case TD_PW_COMPARE:
    case TD_PW_ARITH:
    case TD_PW_BITWISE:
        break;
    }
    return !several ? "" : pw->same ? ", one dtype" : ", promoted";
}

/* Which dtype a result has where it is not that of the operands. */
static void add_result_dtype(words *w, const td_pointwise *pw, uint64_t dtypes) {
    uint64_t others = dtypes & ~(uint64_t)TD_DTYPES_FLOATS;
    switch ((td_pointwise_type)pw->type) {
    case TD_PW_FLOATS:
        if (others) {
            add(w, "; ");
            add_dtypes(w, others);
            add(w, " count as float32");
        }
        break;
    case TD_PW_DOUBLES:
        add(w, "; the result is float64");
        break;
    case TD_PW_COMPARE:
    case TD_PW_LOGICAL:
    case TD_PW_FLOAT_TEST:
        add(w, "; the result is bool");
        break;
    case TD_PW_SELECT:
    case TD_PW_ARITH:
    case TD_PW_BITWISE:
        break;
    }
    add(w, pw->counts ? "; bool counts as int64" : "");
}

static void add_pointwise(words *w, const td_op *op) {
    const td_pointwise *pw = op->pointwise;
    uint64_t dtypes = op->dtypes;
    if (pw->no_bool)
        dtypes &= ~(uint64_t)TD_DTYPES_BOOL;
    if (pw->type == TD_PW_BITWISE)
        dtypes &= TD_DTYPES_INTS | TD_DTYPES_BOOL;
    add_dtypes(w, dtypes);
    add(w, promotion_of(pw, count_tensors(op) > 1));
    add_result_dtype(w, pw, dtypes);
}

const char *td_help_dtypes(const td_op *op, char text[TD_HELP_TEXT]) {
    words w = {.text = text};
    int plain = count_plain(op);
    text[0] = 0;
    if (op->takes)
        add(&w, op->takes);
    else if (op->pointwise)
        add_pointwise(&w, op);
    else if (plain) {
        add_dtypes(&w, op->dtypes ? op->dtypes : TD_DTYPES_ALL);
        add(&w, plain > 1 && op->kernel ? ", one dtype" : "");
    }
    for (int k = 0; k < op->nparams && !op->takes; k++) {
        if (op->params[k].base == TD_BASE_NONE)
            continue;
        add(&w, w.length ? "; " : "");
        add(&w, op->params[k].name);
        add(&w, " integers");
    }
    for (int k = 0; k < op->nresults && (plain || w.length); k++) {
        if (!op->result_base[k])
            continue;
        add(&w, w.length ? "; " : "");
        add(&w, op->result_names[k] ? op->result_names[k] : "the result is");
        add(&w, " int64");
    }
    return w.length ? text : NULL;
}

/* ---- use ---- */

/* Names after commas, the last after "and". */
typedef struct names {
    const char *name[TD_MAX_RESULTS + 16];
    int n;
} names;

static void add_name(names *list, const char *name) {
    if (list->n < (int)(sizeof list->name / sizeof *list->name))
        list->name[list->n++] = name;
}

/* What counts from 1 in Lua: dims, indices, classes. */
static void add_counted(words *w, const td_op *op) {
    names list = {.n = 0};
    for (int k = 0; k < op->nparams; k++) {
        const td_param *p = &op->params[k];
        if (p->base != TD_BASE_NONE || p->type == TD_PARAM_DIM || p->type == TD_PARAM_DIMS ||
            p->type == TD_PARAM_INDEX)
            add_name(&list, p->name);
    }
    for (int k = 0; k < op->nresults; k++)
        if (op->result_base[k])
            add_name(&list, op->result_names[k] ? op->result_names[k] : "the result");
    for (int k = 0; k < list.n; k++) {
        add(w, !k ? " Counted from 1, in PyTorch from 0: " : k < list.n - 1 ? ", " : " and ");
        add(w, list.name[k]);
    }
    add(w, list.n ? "." : "");
}

const char *td_help_notes(const td_op *op, char text[TD_HELP_TEXT]) {
    words w = {.text = text};
    const char *first = op->nparams ? op->params[0].name : "";
    text[0] = 0;
    if (op->flags & TD_OP_VIEW) {
        add(&w, " A view, which shares memory with ");
        add(&w, first);
        add(&w, ".");
    }
    if (op->inplace_name) {
        add(&w, " In place: x:");
        add(&w, op->inplace_name);
        add(&w, ".");
    }
    if (op->flags & TD_OP_NONDIFF && count_plain(op))
        add(&w, " No gradient.");
    if (op->flags & TD_OP_ALIKE)
        add(&w, " Warns where the first two differ in shape.");
    if (op->flags & TD_OP_BY_ELEMENTS)
        add(&w, " Reads elements to know its result, so it is not for the device meta.");
    add_counted(&w, op);
    add(&w, op->notes ? " " : "");
    add(&w, op->notes ? op->notes : "");
    return w.length ? text + 1 : NULL;
}
