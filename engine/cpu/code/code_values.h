/* code_values.h: a program as values instead of registers, and in which passage over a tile each
 * of them is made.
 *
 * Values are numbered: loads, then constants, then what each step makes. A step is written in place
 * (an operation of vectors), or it calls its loop for a whole tile. What needs the result of a call
 * is made in a later passage than the call; values that live from one passage to another, and what
 * calls read and make, have a buffer of a tile.
 */
#ifndef TD_CPU_CODE_CODE_VALUES_H
#define TD_CPU_CODE_CODE_VALUES_H

#include "engine/cpu/code/code_text.h"

enum { TD_CODE_VALUES = 256, TD_CODE_BUFFERS = 24, TD_CODE_TILE = 256 };

typedef enum td_code_kind {
    TD_CODE_NUMBER, /* one for all elements, read when the code begins */
    TD_CODE_LOAD,
    TD_CODE_IN_PLACE,
    TD_CODE_CALLED
} td_code_kind;

typedef struct td_code_value {
    uint8_t kind, dtype;
    bool single;   /* numbers alone go into it */
    bool needed;   /* something reads it */
    int passage;   /* in which it is made */
    int buffer;    /* -1: none */
    int call;      /* of the table; -1 */
    int primitive; /* -1: a conversion */
    uint8_t from;  /* the dtype that it is computed in */
    int arity, src[3];
} td_code_value;

typedef struct td_code_values {
    int n, nloads, nconstants, nbuffers, passages;
    int outputs[TD_CODE_VALUES];
    td_code_value values[TD_CODE_VALUES];
} td_code_values;

/* Can vectors do it in place, and alike in all sets? */
bool td_code_in_place(int primitive, td_dtype from, td_dtype to, bool rounds);

/* NULL, or why the program can't be compiled. `rounds`: the set has instructions that round to
 * whole numbers. Calls are added to the text's table. */
const char *td_code_values_make(const td_code_form *form, bool rounds, td_code_values *v,
                                td_code_text *text);

#endif
