/* refuse.c: checks of elements: programs whose truth anywhere is an error. */
#include "engine/ops/refuse.h"

#include "engine/core/memory.h"

td_status td_lazy_program_get(td_lazy_program *lazy, const td_program **program) {
    static const char *const names[] = {"x"};
    td_program *there = atomic_load_explicit(&lazy->program, memory_order_acquire), *made;
    *program = there;
    if (TD_LIKELY(there != NULL))
        return TD_OK;
    made = td_malloc(sizeof *made);
    td_status status = made ? td_program_compile(lazy->formula, 1, names, made)
                            : td_fail(TD_ENOMEM, "out of memory");
    if (status == TD_OK && atomic_compare_exchange_strong(&lazy->program, &there, made))
        *program = made;
    else
        td_free(made); /* another thread was sooner */
    if (status == TD_OK && there)
        *program = there;
    return status;
}

td_status td_refuse(td_refusal *refusal, const td_tensor *x) {
    const td_operand operand = {.tensor = x};
    td_check_plan plan = {.operands = &operand,
                          .compute = (td_dtype)x->dtype,
                          .code = refusal->code,
                          .message = refusal->message};
    td_status status = td_lazy_program_get(&refusal->where, &plan.program);
    return status ? status : TD_RUN(td_tensor_device(x), check, &plan);
}
