/* element_checks.c: the CPU's `check`: counts where a program's value is true, and fails with the
 * plan's message if it is anywhere. */
#include "engine/core/memory.h"
#include "engine/cpu/cpu.h"
#include "engine/ops/language/program.h"

#include <string.h>

/* A program whose mask is counted instead of written: one pass, nothing to keep. New. */
static td_program *counting(const td_program *p) {
    static const td_output sum = {.kind = TD_OUTPUT_SUM, .dtype = TD_BOOL};
    size_t steps = sizeof *p->steps * (size_t)p->nsteps;
    td_program *copy = td_malloc(sizeof *p + sizeof sum + steps);
    if (!copy)
        return NULL;
    *copy = *p;
    copy->refs = 0;
    copy->reduces = true;
    memcpy(copy->steps, p->steps, steps);
    td_output *output = memcpy((char *)copy->steps + steps, &sum, sizeof sum);
    output->step = p->outputs[0].step;
    copy->outputs = output;
    return copy;
}

/* Of the values that are no mask: those that differ from 0, written and looked through. */
static td_status find_value(const td_check_plan *plan, int64_t *truth) {
    int64_t sizes[TD_MAX_DIMS];
    int ndim = 0;
    td_tensor *values = NULL;
    td_status status = TD_OK;
    for (int k = 0; k < plan->program->noperands; k++) {
        const td_tensor *x = plan->operands[k].tensor;
        if (x)
            TD_TRY(td_broadcast(ndim, sizes, x->ndim, x->sizes, &ndim, sizes));
    }
    TD_TRY(td_tensor_empty(TD_BOOL, TD_DEVICE_CPU, ndim, sizes, &values));
    TD_TRY(td_cpu_pointwise(&(td_pointwise_plan){.program = plan->program,
                                                 .operands = plan->operands,
                                                 .compute = plan->compute,
                                                 .out = values}));
    *truth = values->numel > 0 && memchr(values->data, 1, (size_t)values->numel);
done:
    td_release(values);
    return status;
}

static td_status count_mask(const td_check_plan *plan, int64_t *truth) {
    td_tensor *count = NULL;
    td_program *program = counting(plan->program);
    td_status status = TD_OK;
    if (!program)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory"));
    TD_TRY(td_tensor_empty(TD_I64, TD_DEVICE_CPU, 0, NULL, &count));
    TD_TRY(td_cpu_pointwise(&(td_pointwise_plan){
        .program = program, .operands = plan->operands, .compute = plan->compute, .out = count}));
    *truth = *(const int64_t *)count->data;
done:
    td_release(count);
    td_free(program);
    return status;
}

td_status td_cpu_check(const td_check_plan *plan) {
    int64_t truth = 0;
    td_status status = plan->program->outputs[0].dtype == TD_BOOL ? count_mask(plan, &truth)
                                                                  : find_value(plan, &truth);
    return status == TD_OK && truth ? td_fail(plan->code, "%s", plan->message) : status;
}
