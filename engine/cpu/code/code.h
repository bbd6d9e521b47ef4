/* code.h: machine code for pointwise programs, made while the programs themselves do the work.
 *
 * TIDE_CODE=never|now|later says when: not at all, before a program runs first (for tests), or on a
 * thread of its own when the program has done some work (as if nothing is said). Code does what the
 * program does, bit for bit.
 */
#ifndef TD_CPU_CODE_CODE_H
#define TD_CPU_CODE_CODE_H

#include "engine/cpu/code/code_text.h"
#include "engine/cpu/pointwise/fused_kernels.h"

typedef struct td_code {
    void (*run)(int64_t rows, int64_t n, const td_run *runs, const void *const *functions);
    bool calls; /* loops of steps, tile by tile: not for short rows */
    const void *functions[TD_CODE_CALLS];
} td_code;

/* A program's code for a form, which stays for ever; NULL: there is none, or none yet. `elements`:
 * how many are going to be run. Never waits, but where TIDE_CODE=now. Any thread. */
const td_code *td_code_find(const td_code_form *form, int64_t elements);

/* Is code to be asked for where so many elements are going to be run? (Of 0: always.) */
bool td_code_wanted(int64_t elements);

/* Was code refused to the program, or to one with the same few bits of digest? Quicker to ask than
 * td_code_find. */
bool td_code_is_refused(const td_program *program, td_dtype compute, bool rows);

typedef enum td_code_when { TD_CODE_NEVER, TD_CODE_NOW, TD_CODE_LATER } td_code_when;
/* As if TIDE_CODE said so, from here on: for tests and benches. */
void td_code_set_when(td_code_when when);
/* For tests, before any code is made: code for another set of instructions ("avx2") than that of
 * the kernels. NULL: for that again. */
void td_code_set_isa(const char *isa);

/* When the backend starts, on the main thread if it can be: an exit waits for the thread that makes
 * code. */
void td_code_start(void);

/* End the thread that makes code, when it has made what it is at; it begins again when it is wanted
 * again. */
void td_code_stop(void);

/* For tests: what waits has been made when this returns. */
void td_code_finish(void);

#endif
