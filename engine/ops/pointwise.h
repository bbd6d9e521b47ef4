/* pointwise.h: what a pointwise operator is made of.
 *
 * Primitives are loops that each device has (pointwise.def lists them with their formula); every
 * other pointwise operator, and every gradient, is a formula over primitives, evaluated in blocks
 * that stay in the first-level cache, so that a formula costs one pass over memory.
 */
#ifndef TD_OPS_POINTWISE_H
#define TD_OPS_POINTWISE_H

#include "engine/ops/op.h"
#include "engine/ops/plan.h"

typedef enum td_primitive {
#define PRIMITIVE(name, ...) TD_PW_##name,
#include "engine/ops/primitives.def"
#undef PRIMITIVE
    TD_PRIMITIVES
} td_primitive;

/* How the dtype of computation and of the result follow from the operands'. */
typedef enum td_pointwise_type {
    TD_PW_ARITH,      /* promoted; result the same */
    TD_PW_FLOATS,     /* promoted, integers and bool to float32 */
    TD_PW_COMPARE,    /* promoted; result bool */
    TD_PW_LOGICAL,    /* any; result bool, computed on x != 0 */
    TD_PW_BITWISE,    /* integers and bool */
    TD_PW_FLOAT_TEST, /* isnan and such: computed in floats; result bool */
    TD_PW_SELECT      /* where: first operand bool, the others promoted */
} td_pointwise_type;

typedef struct td_pointwise {
    uint8_t type;        /* td_pointwise_type */
    bool no_bool;        /* refused for bool (sub, neg) */
    int16_t primitive;   /* td_primitive, or -1: `formula` says it */
    const char *formula; /* over parameter names */
} td_pointwise;

/* ---- programs: what a formula compiles to ---- */

enum { TD_PROGRAM_OPERANDS = 12, TD_PROGRAM_STEPS = 48, TD_PROGRAM_BUFFERS = 8 };

/* Sources and destination of a step number registers: operands first, then constants (at
 * TD_PROGRAM_OPERANDS), then buffers (at TD_BUFFER_BASE). */
enum {
    TD_CONSTANT_BASE = TD_PROGRAM_OPERANDS,
    TD_PROGRAM_CONSTANTS = 12,
    TD_BUFFER_BASE = TD_CONSTANT_BASE + TD_PROGRAM_CONSTANTS
};

typedef struct td_step {
    int16_t primitive;
    uint8_t arity, dst, src[3];
} td_step;

typedef struct td_program {
    int nsteps, noperands, nconstants, nbuffers;
    uint32_t used; /* bit per operand that some step reads */
    int cost;      /* of an element, an addition being 1 */
    int whole;     /* operand that is the result as it stands (no steps), or -1 */
    double constants[TD_PROGRAM_CONSTANTS];
    td_step steps[TD_PROGRAM_STEPS];
} td_program;

/* Compile a formula: + - * /, unary minus, numbers, parentheses, names of operands and calls of
 * primitives. EVALUE names what is wrong and where (a mistake of ours: formulas are in the
 * source). */
td_status td_program_compile(const char *formula, int noperands, const char *const *names,
                             td_program *program) TD_MUST_CHECK;

/* The one-step program of a primitive. */
const td_program *td_primitive_program(td_primitive primitive);
const char *td_primitive_name(td_primitive primitive);
int td_primitive_arity(td_primitive primitive);
int td_primitive_find(const char *name, size_t len); /* -1: none */

/* ---- running them ---- */

/* The call of a pointwise operator: dtype and shape rules, then the device's runner. */
td_status td_pointwise_call(td_call *call) TD_MUST_CHECK;

/* Gradients of a pointwise operator by its formulas; a td_backward_fn. */
td_status td_pointwise_backward(td_grad *grad);

/* Compile the formulas of an operator (once, thread-safe) and say what they read: bits of
 * parameters and whether the result. */
td_status td_pointwise_prepare(const td_op *op);
typedef struct td_formula {
    td_program *forward;                 /* NULL for a primitive */
    td_program *gradient[TD_MAX_PARAMS]; /* per parameter; NULL: none */
    uint32_t reads_args;
    bool reads_out;
} td_formula;

#endif
