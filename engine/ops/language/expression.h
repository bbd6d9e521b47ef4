/* expression.h: the language of the texts in operators' rows, and the form that those become whose
 * steps are operators.
 *
 *     TD_OPERATOR(nanmean) = {
 *         .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
 *         .doc = "Mean of what is not NaN.",
 *         .formula = "nansum(x, dim, keepdim) / sum(x == x, dim, keepdim)",
 *     };
 *     TD_OPERATOR(softmax) = { ..., .gradient = "x: softmax_backward(g, out, dim)" };
 *     TD_OPERATOR(hypot)   = { ..., .pointwise = ..., .gradient = "a: g * a / out; b: g * b / out"
 * };
 *
 * `.formula` stands instead of `.run` (a composite: its operators record themselves, unless it has
 * a gradient of its own), `.gradient` instead of `.backward` and `.saves`. Their steps are
 * operators. In `.pointwise.formula`, the `.gradient` of a pointwise operator and the recipes of
 * optimizers (neural/optim.c) the steps are primitives (primitives.def), and all of them run in one
 * pass over elements. What such steps can't say is refused, as is whatever else is wrong, with the
 * operator, the place and the reason: the engine does not start with it.
 */
#ifndef TD_OPS_LANGUAGE_EXPRESSION_H
#define TD_OPS_LANGUAGE_EXPRESSION_H

#include "engine/ops/language/syntax.h"

/* clang-format off */
/* ---- the language ----
 *
 *   written                                       is                              with primitives
 *   text       = statement {; statement}
 *   statement  = expression                       the only result
 *              | name : expression                a result, a parameter's gradient
 *              | name = expression                a name for it from there on
 *   expression = comparison {(and|or) comparison} of numbers, not of tensors      logical_and(a, b)
 *   comparison = sum [(==|~=|<|<=|>|>=) sum]      eq ne lt le gt ge
 *   sum        = product {(+|-) product}          add sub
 *   product    = unary {(*|/) unary}              mul div
 *   unary      = - unary | suffixed [^ unary]     neg pow
 *   suffixed   = primary {.name [(expression)]}   x.shape, x.size(dim), call.NAME none
 *   primary    = number | inf | nan | (expression)
 *              | "text" | true | false | nil                                      none
 *              | {expression, ...}                a list of numbers or of tensors none
 *              | name                             parameter, result, g, operand
 *              | if(condition, then, else)        only the chosen one is computed where(mask, a, b)
 *              | error("text %", expression, ...) fails, showing the values       none
 *              | name([name =] expression, ...)   a call of an operator           of a primitive
 *
 * - A composite of several results, and every gradient, labels its expressions with names of
 *   results or parameters. Equal subexpressions are computed once anyway, also among gradients, so
 *   a name for a value is there for the reader; it is new, and read. (Of a recipe the operands that
 *   are given new values are the results, and a name may be given another value.)
 * - A gradient reads parameters, `out` (several results: each by its name) and the gradient coming
 *   in: `g` (several results: g.NAME, one of them in each expression; where none comes in, none
 *   goes out). Two expressions of one label are added. Shape and dtype need not be the parameter's:
 *   autograd sums, expands and casts.
 * - x.shape, x.ndim, x.numel, x.size(dim), x.dtype and x.floating save nothing of a parameter.
 *   x.contiguous, x.device and any other reading of x or out keep the tensor until backward. A
 *   result's shape is g.shape, which saves nothing either.
 * - `x == nil` asks whether an optional argument was given. The results of an operator that has
 *   several are call.NAME.
 * - Everything counts from 0, as all of the engine. A whole number beyond 64 bits is a float.
 * - Numbers among themselves are computed on the spot; with a tensor among them the signs are the
 *   operators named above. Conditions depend on arguments and shapes only.
 */
/* clang-format on */

/* ---- the sealed form ----
 *
 * Of an operator `op->composite` and `op->derivative` are expressions, or NULL. To take one over
 * into another graph, go through its steps in their order, of which each reads earlier ones only:
 *
 *     for (int k = 0; k < e->nsteps; k++)
 *         for (int j = 0; j < e->steps[k].noperands; j++)
 *             (the value of step td_expression_operand(e, k, j) is the j-th that step k reads)
 *     for (int r = 0; r < e->nroots; r++)
 *         (the value of step e->roots[r].step is result or gradient number e->roots[r].slot)
 *
 * A step is wanted when a root that is wanted reads it, or another step that is; of a choice
 * (TD_EX_CHOOSE) only the operand that its condition chooses. A call with a sign whose operands are
 * all numbers computes a number, without its operator. Operands of calls are the operator's
 * parameters, all of them; an int stands for a list of one, and for a float.
 *
 * Texts whose steps are primitives become programs (td_program, program.h), which have registers
 * instead of values, and dtypes: `op->programs->forward`, `->gradient[parameter]` and several
 * gradients at once, `->joint[bits of places]`. Steps stand in their order there, too; each writes
 * its register `dst` from its registers `src`: loads, constants, outputs and buffers.
 */

typedef enum td_expression_type {
    TD_EX_CONSTANT,  /* a leaf, as the next four */
    TD_EX_ARGUMENT,  /* which: parameter */
    TD_EX_GIVEN,     /* is the argument `which` there? */
    TD_EX_RESULT,    /* which: result; gradients only, as the next */
    TD_EX_GRADIENT,  /* which: result */
    TD_EX_ATTRIBUTE, /* which: td_attribute; of an operand (size: and a dim) */
    TD_EX_CALL,      /* op; operands: all of its parameters */
    TD_EX_PICK,      /* which: result of the call that is the operand */
    TD_EX_LIST,      /* operands: entries */
    TD_EX_CHOOSE,    /* operands: condition, then, else */
    TD_EX_ERROR      /* operands: text, what is put into it */
} td_expression_type;

typedef enum td_attribute {
    TD_ATTRIBUTE_SHAPE,
    TD_ATTRIBUTE_NDIM,
    TD_ATTRIBUTE_NUMEL,
    TD_ATTRIBUTE_SIZE,
    TD_ATTRIBUTE_DTYPE,
    TD_ATTRIBUTE_FLOATING,
    TD_ATTRIBUTE_CONTIGUOUS, /* this and the next need the tensor itself */
    TD_ATTRIBUTE_DEVICE
} td_attribute;

typedef struct td_expression_step {
    td_value constant;
    const td_op *op;
    uint8_t type, sign; /* td_expression_type, td_sign: what a call does to numbers */
    uint16_t which;
    uint16_t noperands, first; /* in the expression's list of operands */
} td_expression_step;

/* One value that an expression makes: a result, or a gradient. */
typedef struct td_expression_root {
    uint16_t slot; /* result or parameter */
    uint16_t step;
    int8_t gradient; /* gradients: the incoming one that it reads */
    uint8_t outs;    /* results that it reads */
    uint32_t args;   /* parameters whose tensors it reads */
} td_expression_root;

/* Leaves (constants, arguments, results and gradients) stand first, the other steps after those
 * that they read. One block of memory, which is not changed once made. */
typedef struct td_expression {
    int nsteps, nleaves, nroots;
    int nints; /* room that its lists of numbers and its shapes take */
    const td_expression_root *roots;
    const td_expression_step *steps;
    const uint16_t *operands; /* numbers of steps */
} td_expression;

/* The step that is the k-th operand of another. */
static inline int td_expression_operand(const td_expression *e, int step, int k) {
    return e->operands[e->steps[step].first + k];
}

/* Compile the texts of an operator whose schema has been read and whose fellows are registered, and
 * fill what follows from them: run, backward, save_args, save_outs. Does nothing for pointwise
 * operators. EINTERNAL names the operator and the place. */
td_status td_expression_prepare(td_op *op) TD_MUST_CHECK;

/* Every operator has a derivative, or says NONDIFF, or is made of operators, and one of these only;
 * its autocast classes are ones that it can follow. EINTERNAL otherwise. */
td_status td_expression_check_row(const td_op *op) TD_MUST_CHECK;

/* The td_kinds that a parameter takes, a bit each. An int is taken for a list of one, and for a
 * float. */
uint32_t td_param_kinds(const td_param *param);

/* Are two values, none of them a tensor or list, the same? Numbers compare as numbers. */
bool td_value_equal(td_value a, td_value b);

/* expression_run.c: what run and backward of such operators are. */
td_status td_expression_run(td_call *call) TD_MUST_CHECK;
td_status td_expression_backward(td_grad *grad) TD_MUST_CHECK;

#endif
