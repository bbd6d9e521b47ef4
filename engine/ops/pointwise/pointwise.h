/* pointwise.h: what a pointwise operator is made of.
 *
 * A pointwise operator is a primitive or a formula over primitives, and so is every gradient; all
 * of them are programs (program.h), which cost one pass over memory however long they are.
 */
#ifndef TD_OPS_POINTWISE_POINTWISE_H
#define TD_OPS_POINTWISE_POINTWISE_H

#include "engine/ops/language/program.h"
#include "engine/ops/op.h"
#include "engine/ops/plan/plan.h"

/* How the dtype of computation and of the result follow from the operands'. */
typedef enum td_pointwise_type {
    TD_PW_ARITH,      /* promoted; result the same */
    TD_PW_FLOATS,     /* promoted, integers and bool to float32 */
    TD_PW_DOUBLES,    /* float64 */
    TD_PW_COMPARE,    /* promoted; result bool */
    TD_PW_LOGICAL,    /* any; result bool, computed on x != 0 */
    TD_PW_BITWISE,    /* integers and bool */
    TD_PW_FLOAT_TEST, /* isnan and such: computed in floats; result bool */
    TD_PW_SELECT      /* where: first operand bool, the others promoted */
} td_pointwise_type;

typedef struct td_pointwise {
    uint8_t type;        /* td_pointwise_type */
    bool no_bool;        /* refused for bool (sub, neg) */
    bool counts;         /* bool counts as int64 (square) */
    bool same;           /* tensors of one dtype only (heaviside) */
    bool keeps;          /* numbers take the dtype of the tensors (threshold) */
    bool numbers;        /* does without a tensor (add) */
    bool bounds;         /* numbers that an integer dtype doesn't hold count as its ends (clamp) */
    int16_t primitive;   /* td_primitive, or -1: `formula` says it */
    const char *formula; /* over parameter names */
} td_pointwise;

/* The call of a pointwise operator: dtype and shape rules, then the device's runner. */
td_status td_pointwise_call(td_call *call) TD_MUST_CHECK;

/* What a call with these arguments runs: the loop alone where options have their defaults; borrowed
 * from the operator. */
const td_program *td_pointwise_program(const td_op *op, const td_value *args);

/* What a call computes, apart from shapes and devices. */
typedef struct td_pointwise_work {
    const td_program *program; /* borrowed from the operator */
    td_dtype compute, result;
    bool divides; /* integers by the second operand, no element of which may be 0 */
    td_operand operands[TD_MAX_PARAMS]; /* numbers as the program reads them */
} td_pointwise_work;

/* The work of a call of an operator (of what its variant puts in its place) with these arguments.
 * Of tensors dtype and number of dims are read alone, so stand-ins will do. Refuses dtypes as the
 * call would. */
td_status td_pointwise_settle(const td_op *op, const td_value *args,
                              td_pointwise_work *w) TD_MUST_CHECK;

/* The operator that does the work of clamp with these arguments, and its own arguments, three at
 * most; NULL: no bound is given. */
const td_op *td_pointwise_clamp(const td_value *args, td_value *chosen);

/* Run another operator instead of a call's, in place where the call is; its first argument is the
 * call's. */
td_status td_pointwise_apply_as(td_call *call, const td_op *op, const td_value *args) TD_MUST_CHECK;

/* Gradients of a pointwise operator by its formulas; a td_backward_fn. */
td_status td_pointwise_backward(td_grad *grad);

static inline td_operand td_operand_of(td_value v) {
    td_operand o = {0};
    if (v.kind == TD_KIND_TENSOR)
        o.tensor = v.tensor;
    else if (v.kind == TD_KIND_INT)
        o = (td_operand){.is_int = true, .i = v.i, .f = (double)v.i};
    else if (v.kind == TD_KIND_FLOAT)
        o.f = v.f;
    else if (v.kind == TD_KIND_BOOL)
        o = (td_operand){.is_int = true, .i = v.b, .f = (double)v.b};
    return o;
}

/* An operand that a device can read: of the host's tensors single elements alone, as numbers.
 * EDEVICE for others. */
td_status td_operand_on(td_device device, td_value v, td_operand *out) TD_MUST_CHECK;

/* The operand whose strides the result takes: the first of the result's shape, if it is dense in
 * another order than row-major (channels_last, transposed); one that an expansion repeats says
 * nothing. NULL: row-major. */
const td_tensor *td_layout_model(int n, const td_value *args, int ndim, const int64_t *sizes);

/* The formulas of an operator, compiled at registration. */
typedef struct td_formula {
    const td_program *forward;                 /* NULL where there is no formula */
    const td_program *gradient[TD_MAX_PARAMS]; /* per parameter; NULL: none */
    uint32_t reads_args;                       /* what some gradient reads: bits of parameters, */
    bool reads_out;                            /* and the result */
    uint8_t ngradients;
    int8_t place[TD_MAX_PARAMS]; /* parameter -> number among those with a gradient, -1 */
    /* Several gradients in one program, by the bits of their places; 1 << ngradients entries, NULL
     * for fewer than two. */
    const td_program **joint;
} td_formula;

/* Compile the formulas of an operator. EVALUE where one does not compile or bears the name of no
 * parameter. */
td_status td_pointwise_prepare(td_op *op) TD_MUST_CHECK;

#endif
