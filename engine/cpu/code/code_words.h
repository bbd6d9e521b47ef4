/* code_words.h: writes LLVM's intermediate language: types, numbers, and the operations that the
 * primitives are. Knows vectors of some lanes and nothing of loops. */
#ifndef TD_CPU_CODE_CODE_WORDS_H
#define TD_CPU_CODE_CODE_WORDS_H

#include "engine/ops/language/program.h"

/* A text that grows. Names of values are numbers: %v7. */
typedef struct td_code_writer {
    char *text;
    size_t length, room;
    bool failed;       /* out of memory */
    int names;         /* given so far */
    int lanes;         /* of vectors; 1: single elements */
    uint64_t declared; /* intrinsics that were used, by bits */
    bool masks;        /* the set has masks of all elements */
    bool fast;         /* sums and products of floats may be joined and reordered */
} td_code_writer;

void __attribute__((format(printf, 2, 3))) td_code_say(td_code_writer *w, const char *format, ...);

/* "float", or "<16 x float>" of vectors: of elements in registers (masks are of i1), in memory
 * (of i8), and the integers as wide. The text is good until eight more were asked for, on a
 * thread. */
typedef struct td_code_type {
    char text[24];
} td_code_type;
td_code_type td_code_element(td_dtype dtype);           /* i1 for bool */
td_code_type td_code_memory(td_dtype dtype);            /* i8 for bool */
td_code_type td_code_vector(int lanes, td_code_type t); /* as it is where lanes is 1 */

/* A register of the step's result: the primitive (-1: a conversion) of `from` over operands that
 * are registers. */
int td_code_operation(td_code_writer *w, int primitive, td_dtype from, td_dtype to, const int *src);

/* The same number in all lanes: a register. `register_of_one`: of a single element. */
int td_code_splat(td_code_writer *w, td_code_type element, int register_of_one);

/* Floats out of 16-bit floats as they are in memory (i16), and back. */
int td_code_widen(td_code_writer *w, td_dtype narrow, int reg);
int td_code_narrow(td_code_writer *w, td_dtype narrow, int reg);
/* Both, one behind the other: floats rounded to what the 16-bit float holds. */
int td_code_round(td_code_writer *w, td_dtype narrow, int reg);

/* Behind the functions: what they used. */
void td_code_declare(td_code_writer *w);

#endif
