/* program_uses.h: who reads what a step of a program makes. */
#ifndef TD_OPS_LANGUAGE_PROGRAM_USES_H
#define TD_OPS_LANGUAGE_PROGRAM_USES_H

#include "engine/ops/language/program.h"

/* Fill in `passed`, `waits` and `by` of the steps of a program whose registers are assigned. */
void td_program_note_flow(td_program *p);

#endif
