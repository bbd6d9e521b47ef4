/* element_checks.h: refusals by value (a negative count, no probability): the device looks. */
#ifndef TD_OPS_ELEMENT_CHECKS_H
#define TD_OPS_ELEMENT_CHECKS_H

#include "engine/ops/pointwise/pointwise.h"

/* A formula over one operand, x, compiled when it is first asked for. */
typedef struct td_lazy_program {
    const char *formula;
    _Atomic(const td_program *) program;
} td_lazy_program;

td_status td_lazy_program_get(td_lazy_program *lazy, const td_program **program) TD_MUST_CHECK;

typedef struct td_refusal {
    td_lazy_program where; /* true where an element is refused */
    td_status code;
    const char *message;
} td_refusal;

/* Fails where an element of x is refused: at once, or at the latest when its device is waited for.
 */
td_status td_refuse(td_refusal *refusal, const td_tensor *x) TD_MUST_CHECK;

#endif
