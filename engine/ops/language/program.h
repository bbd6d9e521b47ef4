/* program.h: programs of pointwise work: what formulas compile to, and what every device runs.
 *
 * A program is a list of steps over registers. Each step is a primitive (primitives.def), a loop
 * that every device has; what it reads and what it makes has a dtype: one that the program fixes,
 * or that of the call (TD_DTYPE_CALL), which is filled in when a plan runs. Comparisons make bool
 * registers, `where` and logic read them. A program has any number of operands, steps and outputs;
 * it lies in one block and is not changed once made, so threads and devices may share it.
 */
#ifndef TD_OPS_LANGUAGE_PROGRAM_H
#define TD_OPS_LANGUAGE_PROGRAM_H

#include "engine/core/dtype.h"

/* ---- primitives ---- */

typedef enum td_primitive {
#define PRIMITIVE(name, ...) TD_PW_##name,
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
    TD_PRIMITIVES
} td_primitive;

/* What a primitive reads and makes; T is the dtype that its step computes in. */
typedef enum td_signature {
    TD_SIGNATURE_SAME,    /* T... -> T */
    TD_SIGNATURE_COMPARE, /* T, T -> bool */
    TD_SIGNATURE_LOGIC,   /* bool... -> bool */
    TD_SIGNATURE_SELECT   /* bool, T, T -> T */
} td_signature;

const char *td_primitive_name(td_primitive primitive);
int td_primitive_arity(td_primitive primitive);
int td_primitive_cost(td_primitive primitive); /* of an element, an addition being 1 */
td_signature td_primitive_signature(td_primitive primitive);
int td_primitive_find(const char *name, size_t len); /* -1: none */

/* Its formula over a, b, c in the vocabulary of primitives.def, for floats or for integers: source
 * for a device that compiles. NULL where the primitive is not for them. Static. */
const char *td_primitive_text(td_primitive primitive, bool floating);

/* Has it no value for single numbers, only for tensors? */
bool td_primitive_is_special(td_primitive primitive);

/* Its value for numbers; NaN where it has none. */
double td_primitive_evaluate(td_primitive primitive, const double args[3]);

/* ---- programs ---- */

/* In the place of a td_dtype: that of the call. */
enum { TD_DTYPE_CALL = 254 };
static inline td_dtype td_dtype_in_call(uint8_t dtype, td_dtype call) {
    return dtype == TD_DTYPE_CALL ? call : (td_dtype)dtype;
}

/* Registers are numbered: loads, then constants, then outputs, then buffers. */
typedef struct td_step {
    int16_t primitive; /* TD_PW_copy with from != to is a conversion */
    uint8_t arity;
    uint8_t from, to; /* dtypes: of what it reads (select: its last two), of what it makes */
    uint16_t dst, src[3];
    bool passed; /* what it makes is read by the next step, once, and by no other */
    bool waits;  /* a comparison for one choice alone, which can compare as well as it */
    uint16_t by; /* a choice: the step that waits for it, plus 1; 0: none */
} td_step;

/* Registers from 0: the operand that is read, and as which dtype. */
typedef struct td_load {
    uint16_t operand;
    uint8_t dtype;
} td_load;

typedef struct td_constant {
    double value;
    uint8_t dtype;
} td_constant;

/* What becomes of an output's elements. */
typedef enum td_output_kind {
    TD_OUTPUT_ELEMENTS, /* they are written, each in its place */
    TD_OUTPUT_SUM,      /* their sum is: one element */
    TD_OUTPUT_MEAN      /* their mean */
} td_output_kind;

typedef struct td_output {
    uint8_t kind;  /* td_output_kind */
    uint8_t dtype; /* of its register; the tensor's may differ */
    uint16_t step; /* that makes it */
} td_output;

typedef struct td_program {
    int refs; /* atomic; 0: it lives for one call, and nobody may keep it */
    int noperands, nloads, nconstants, noutputs, nbuffers, nsteps;
    uint32_t used;   /* bit per operand that some step reads; bit 31 stands for all from there on */
    int cost;        /* of an element, an addition being 1 */
    uint64_t digest; /* of its steps and of how many registers there are of each kind */
    int whole;       /* the operand that the only output hands on as it stands, or -1 */
    bool reduces;    /* some output is a sum or a mean */
    bool fast;       /* a compiler may join products and sums, and reorder sums and products */
    const char *label; /* where it is from, for people: "cell.lua:3", "gelu"; NULL: not known */
    const td_load *loads;
    const td_constant *constants;
    const td_output *outputs;
    td_step steps[];
} td_program;

/* The dtype that steps of TD_DTYPE_CALL are computed in: float32 for the 16-bit floats, unless the
 * program only moves elements. Results are rounded to their own dtype once, at the end. */
td_dtype td_program_compute(const td_program *p, td_dtype call);

/* One reference more (returns p); one less. release(NULL) does nothing. */
const td_program *td_program_retain(const td_program *p);
void td_program_release(const td_program *p);

/* The one-step program of a primitive; borrowed, lives for ever. */
const td_program *td_primitive_program(td_primitive primitive);

/* ---- making programs ---- */

/* Compile a formula: + - * /, unary minus, numbers, inf, parentheses, names of operands and calls
 * of primitives. *out is new. EVALUE names what is wrong and where. */
td_status td_program_compile(const char *formula, int noperands, const char *const *names,
                             const td_program **out) TD_MUST_CHECK;
/* Several formulas over the same operands, an output each; what they have in common is computed
 * once. */
td_status td_program_compile_all(int nformulas, const char *const *formulas, int noperands,
                                 const char *const *names, const td_program **out) TD_MUST_CHECK;
/* Statements `name = value; ...`: a name may be read from there on. What an operand's name is given
 * last is an output, in the operands' order; bits of *written say of which operands. */
td_status td_program_compile_updates(const char *text, int noperands, const char *const *names,
                                     uint32_t *written, const td_program **out) TD_MUST_CHECK;

/* A program step by step. Values are small numbers that the functions return; mistakes and lack of
 * memory are remembered and come back from td_builder_finish. Equal steps are made once; masks that
 * are computed with become 0 and 1, values that are used as masks are compared with 0. */
typedef struct td_builder td_builder;

td_builder *td_builder_new(int noperands); /* new; NULL: out of memory (no message is set) */
int td_builder_operand(td_builder *b, int operand);
int td_builder_number(td_builder *b, double value);
/* A step in the dtype of the call. */
int td_builder_step(td_builder *b, td_primitive primitive, int x, int y, int z);
/* A step computed in a dtype, or TD_DTYPE_CALL, to which values are converted (masks that it
 * chooses by, or joins, stay masks). */
int td_builder_step_as(td_builder *b, td_primitive primitive, uint8_t dtype, int x, int y, int z);
/* The value in a dtype of its own (or TD_DTYPE_CALL): steps over values of one fixed dtype and
 * numbers are computed in it; mixed ones in the call's. */
int td_builder_convert(td_builder *b, int value, uint8_t dtype);
void td_builder_output(td_builder *b, int value, td_output_kind kind);
/* Where it is from, for people ("cell.lua:3"): the last TD_PROGRAM_LABEL bytes are kept. */
enum { TD_PROGRAM_LABEL = 120 };
void td_builder_label(td_builder *b, const char *text);
/* The program may be computed otherwise than step by step, where that is quicker; without this it
 * has the same bits everywhere. */
void td_builder_set_fast(td_builder *b);
/* *out is new; the builder is gone, also when it fails. */
td_status td_builder_finish(td_builder *b, const td_program **out) TD_MUST_CHECK;
/* Without a program; NULL does nothing. */
void td_builder_release(td_builder *b);

#endif
