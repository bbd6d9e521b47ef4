/* check.c: conditions that elements must not meet. */
#include "engine/cpu/cpu.h"
#include "engine/ops/program.h"

#include <string.h>

td_status td_cpu_check(const td_check_plan *plan) {
    int64_t sizes[TD_MAX_DIMS];
    int ndim = 0;
    td_tensor *truth = NULL;
    td_status status = TD_OK;
    for (int k = 0; k < plan->program->noperands; k++) {
        const td_tensor *x = plan->operands[k].tensor;
        if (x)
            TD_TRY(td_broadcast(ndim, sizes, x->ndim, x->sizes, &ndim, sizes));
    }
    TD_TRY(td_tensor_empty(TD_BOOL, TD_DEVICE_CPU, ndim, sizes, &truth));
    TD_TRY(td_cpu_pointwise(&(td_pointwise_plan){.program = plan->program,
                                                 .operands = plan->operands,
                                                 .compute = plan->compute,
                                                 .out = truth}));
    if (truth->numel > 0 && memchr(truth->data, 1, (size_t)truth->numel))
        status = td_fail(plan->code, "%s", plan->message);
done:
    td_release(truth);
    return status;
}
