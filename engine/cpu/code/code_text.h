/* code_text.h: a pointwise program as a function in the text of LLVM's intermediate language.
 *
 * Each step is written as the operation that its loop does (primitives.def), so results have the
 * same bits: nothing is fused into multiply-adds, nothing is reordered, unless the program is fast.
 * A step that has no such operation is a call of its own loop on a tile of elements, through a
 * table of functions that the caller passes, so the code has no symbol to be resolved. Knows
 * neither LLVM nor when code is made.
 */
#ifndef TD_CPU_CODE_CODE_TEXT_H
#define TD_CPU_CODE_CODE_TEXT_H

#include "engine/ops/language/program.h"

/* What code is made for. Programs that differ in constants alone share it: constants are read when
 * it runs. */
typedef struct td_code_form {
    const td_program *program;
    td_dtype compute; /* of the steps of TD_DTYPE_CALL */
    uint64_t numbers; /* bit per load that is a single number */
    td_dtype narrow;  /* the 16-bit float that all other loads and all outputs are in memory;
                         TD_DTYPE_NONE: all are as the program computes them */
    bool rows;        /* loads that are no numbers may still be one in a row (moves of td_run) */
} td_code_form;

/* A function of the table: the loop of a step, or where `primitive` is -1 a conversion. */
typedef struct td_code_call {
    int16_t primitive;
    uint8_t from, to;
} td_code_call;

enum { TD_CODE_CALLS = 24 };

typedef struct td_code_text {
    char *text; /* ends in 0; td_free gives it back */
    size_t length;
    int ncalls;
    td_code_call calls[TD_CODE_CALLS];
} td_code_text;

/* Can it be written? Otherwise why not, in a few words. Fills in `text` unless that is NULL; NULL
 * text->text then: out of memory. `isa`: the name of the set of kernels that runs ("avx2"). */
const char *td_code_write(const td_code_form *form, const char *isa, td_code_text *text);

#endif
