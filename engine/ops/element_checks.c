/* element_checks.c: compiles the conditions of refusals (element_checks.h) and hands them to the
 * device as `check` plans. */
#include "engine/ops/element_checks.h"

/* `names` NULL: a formula over x. */
static td_status get(td_lazy_program *lazy, int noperands, const char *const *names,
                     const td_program **program) {
    const td_program *there = atomic_load_explicit(&lazy->program, memory_order_acquire), *made;
    uint32_t written;
    *program = there;
    if (TD_LIKELY(there != NULL))
        return TD_OK;
    td_status status =
        names ? td_program_compile_updates(lazy->formula, noperands, names, &written, &made)
              : td_program_compile(lazy->formula, 1, (const char *const[]){"x"}, &made);
    if (status)
        return status;
    *program = made;
    if (!atomic_compare_exchange_strong(&lazy->program, &there, made)) {
        td_program_release(made); /* another thread was sooner */
        *program = there;
    }
    return TD_OK;
}

td_status td_lazy_program_get(td_lazy_program *lazy, const td_program **program) {
    return get(lazy, 1, NULL, program);
}

td_status td_lazy_updates_get(td_lazy_program *lazy, int noperands, const char *const *names,
                              const td_program **program) {
    return get(lazy, noperands, names, program);
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

/* ---- elements that choose the way of a call ---- */

static _Thread_local unsigned looks_missed;

bool td_may_look(const td_tensor *x) {
    bool there = td_has_elements(x);
    looks_missed += !there;
    return there;
}

unsigned td_looks_missed(void) {
    return looks_missed;
}

void td_looks_forget(unsigned missed) {
    looks_missed = missed;
}
