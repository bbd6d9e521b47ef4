/* element_checks.h: refusals by value (a negative count, no probability), for which the device
 * looks; and elements that choose the way of a call. */
#ifndef TD_OPS_ELEMENT_CHECKS_H
#define TD_OPS_ELEMENT_CHECKS_H

#include "engine/ops/pointwise/pointwise.h"

/* A text that is compiled when it is first asked for: a formula over one operand, x, or updates of
 * several operands (td_program_compile_updates), whose names are the same at every call. */
typedef struct td_lazy_program {
    const char *formula;
    _Atomic(const td_program *) program;
} td_lazy_program;

td_status td_lazy_program_get(td_lazy_program *lazy, const td_program **program) TD_MUST_CHECK;
td_status td_lazy_updates_get(td_lazy_program *lazy, int noperands, const char *const *names,
                              const td_program **program) TD_MUST_CHECK;

typedef struct td_refusal {
    td_lazy_program where; /* true where an element is refused */
    td_status code;
    const char *message;
} td_refusal;

/* Fails where an element of x is refused: at once, or at the latest when its device is waited for.
 */
td_status td_refuse(td_refusal *refusal, const td_tensor *x) TD_MUST_CHECK;

/* ---- elements that choose the way of a call ---- */

/* td_has_elements, asked before elements choose a way; a "no" is counted. On the device meta a call
 * goes the way that gives the right shapes, and whoever runs calls on stand-ins to learn what they
 * are made of must know that with elements it might have been another. (What is only checked is the
 * same with and without elements: that asks td_has_elements.) */
bool td_may_look(const td_tensor *x);
/* How often the thread was told no; and back to a former count, behind calls that will be made
 * again when there are elements. */
unsigned td_looks_missed(void);
void td_looks_forget(unsigned missed);

#endif
