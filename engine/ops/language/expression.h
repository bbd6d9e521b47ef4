/* expression.h: composites and gradients written as expressions over operators.
 *
 *     TD_OPERATOR(nanmean) = {
 *         .schema = "(Tensor x, dim[]? dim=nil, *, bool keepdim=false) -> Tensor",
 *         .doc = "Mean of what is not NaN.",
 *         .formula = "nansum(x, dim, keepdim) / sum(x == x, dim, keepdim)",
 *     };
 *     TD_OPERATOR(softmax) = { ..., .gradient = "x: softmax_backward(g, out, dim)" };
 *
 * `.formula` stands instead of `.run` (a composite: its operators record themselves, unless it has
 * a gradient of its own), `.gradient` instead of `.backward` and `.saves`. (Gradients of pointwise
 * operators are read by formula.c and run fused; they look alike.)
 *
 *   text       = { name "=" expression ";" } ( expression | { name ":" expression ";" } )
 *   expression = comparison { (and|or) comparison }        of numbers, not of tensors
 *   comparison = sum [ (== | ~= | < | <= | > | >=) sum ]   eq ne lt le gt ge
 *   sum        = product { (+|-) product }                 add sub
 *   product    = unary { (*|/) unary }                     mul div
 *   unary      = - unary | power                           neg
 *   power      = suffixed [ ^ unary ]                      pow
 *   suffixed   = primary { .name | .size(expression) }
 *   primary    = number | "text" | true | false | nil | inf | nan | (expression)
 *              | {expression, ...}                         a list of numbers or of tensors
 *              | name                                      parameter, result, g, or binding
 *              | if(condition, expression, expression)     only the chosen one is computed
 *              | error("text with %", expression, ...)     fails, showing numbers, texts, shapes
 *              | operator(expression, ..., option=expression)
 *
 * - A composite of several results, and every gradient, labels its expressions: results or
 *   parameters by name. Bindings `t = exp(y);` come before; equal subexpressions are computed once
 *   anyway, also among gradients, so a binding is there for the reader.
 * - A gradient reads parameters, `out` (several results: each by its name) and the gradient coming
 *   in: `g` (several results: g.NAME, one of them in each expression; where none comes in, none
 *   goes out; two expressions of one label are added). Shape and dtype need not be the
 *   parameter's: autograd sums, expands and casts.
 * - x.shape, x.ndim, x.numel, x.size(dim), x.dtype, x.floating save nothing of a parameter;
 * x.contiguous, x.device and any other reading of x or out keep the tensor until backward. A
 * result's shape is g.shape, which saves nothing either. `x == nil` asks whether an optional
 * argument was given. The results of an operator that has several are call.NAME.
 * - Everything counts from 0, as all of the engine.
 * - Numbers among themselves are computed on the spot; with a tensor among them the signs are the
 *   operators named above. Conditions depend on numbers and shapes only.
 *
 * Names, numbers of arguments and their kinds are checked when the engine starts; it does not start
 * with a text that is wrong, and says which operator and where.
 */
#ifndef TD_OPS_LANGUAGE_EXPRESSION_H
#define TD_OPS_LANGUAGE_EXPRESSION_H

#include "engine/ops/op.h"

enum { TD_EXPRESSION_STEPS = 96, TD_EXPRESSION_OPERANDS = 384, TD_EXPRESSION_LISTS = 16 };

typedef enum td_expression_type {
    TD_EX_CONSTANT,  /* a leaf, as the next four */
    TD_EX_ARGUMENT,  /* which: parameter */
    TD_EX_GIVEN,     /* is the argument `which` there? */
    TD_EX_RESULT,    /* which: result; gradients only, as the next */
    TD_EX_GRADIENT,  /* which: result */
    TD_EX_ATTRIBUTE, /* which: td_attribute; of an operand (size: and a dim) */
    TD_EX_CALL,      /* op; operands: all of its parameters */
    TD_EX_PICK,      /* which: result of the call that is the operand */
    TD_EX_LIST,
    TD_EX_CHOOSE, /* operands: condition, then, else */
    TD_EX_ERROR   /* operands: text, what is put into it */
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

/* What a call that is written as a sign does to numbers. */
typedef enum td_sign {
    TD_SIGN_NONE,
    TD_SIGN_ADD,
    TD_SIGN_SUB,
    TD_SIGN_MUL,
    TD_SIGN_DIV,
    TD_SIGN_POW,
    TD_SIGN_NEG,
    TD_SIGN_EQ,
    TD_SIGN_NE,
    TD_SIGN_LT,
    TD_SIGN_LE,
    TD_SIGN_GT,
    TD_SIGN_GE
} td_sign;

typedef struct td_expression_step {
    td_value constant;
    const td_op *op;
    uint8_t type, which, sign, noperands;
    uint16_t first; /* of its operands, in the expression's list of them */
} td_expression_step;

/* One value that an expression makes: a result, or a gradient. */
typedef struct td_expression_root {
    uint8_t slot; /* result or parameter */
    uint8_t step;
    int8_t gradient; /* gradients: the incoming one that it reads */
    uint8_t outs;    /* results that it reads */
    uint32_t args;   /* parameters whose tensors it reads */
} td_expression_root;

/* Leaves (constants, arguments, results and gradients) stand first, the other steps after those
 * that they read. One block of memory. */
typedef struct td_expression {
    int nsteps, nleaves, nroots;
    td_expression_root roots[TD_MAX_PARAMS];
    const td_expression_step *steps;
    const uint8_t *operands; /* numbers of steps */
} td_expression;

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
