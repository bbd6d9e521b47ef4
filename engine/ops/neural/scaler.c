/* scaler.c: what a GradScaler does to gradients: all of them are divided by the scale and looked at
 * for inf and NaN in one pass. When they are is not known here (lua/amp.lua). */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/storage_overlap.h"

#include <pthread.h>

#define TD_FAMILY "optim"

/* gradient, inverse -> gradient * inverse, and the sum of gradient * 0: NaN unless all are finite
 */
static const td_program *program;
static td_status made;

static void make_program(void) {
    td_builder *b = td_builder_new(2);
    if (!b) {
        made = TD_ENOMEM;
        return;
    }
    int g = td_builder_operand(b, 0);
    int zero = td_builder_step(b, TD_PW_mul, g, td_builder_number(b, 0), 0);
    td_builder_output(b, td_builder_step(b, TD_PW_mul, g, td_builder_operand(b, 1), 0),
                      TD_OUTPUT_ELEMENTS);
    td_builder_output(b, zero, TD_OUTPUT_SUM);
    made = td_builder_finish(b, &program);
}

static td_status check_gradient(const td_tensor *g, const td_tensor *first, int k) {
    if (!td_dtype_is_float((td_dtype)g->dtype))
        return td_fail(TD_EDTYPE, "gradient %d: floats expected, got %s", k + 1,
                       td_dtype_name((td_dtype)g->dtype));
    if (!td_device_same(td_tensor_device(g), td_tensor_device(first)) || g->dtype != first->dtype)
        return td_fail(TD_EVALUE, "gradient %d is %s on %s, the first %s on %s", k + 1,
                       td_dtype_name((td_dtype)g->dtype), td_device_name(td_tensor_device(g)),
                       td_dtype_name((td_dtype)first->dtype),
                       td_device_name(td_tensor_device(first)));
    return td_tensor_overlaps(g)
               ? td_fail(TD_EVALUE, "several elements of gradient %d share one place in memory",
                         k + 1)
               : TD_OK;
}

/* Gradients that share memory are scaled one after the other. */
static td_status may_run_together(int n, td_tensor *const *grads, bool *together) {
    td_storages set;
    td_status status = td_storages_init(&set, n);
    *together = true;
    for (int k = 0; k < n && status == TD_OK; k++) {
        status = check_gradient(grads[k], grads[0], k);
        *together &= td_storages_put(&set, grads[k]->storage, k) < 0;
    }
    td_storages_clear(&set);
    return status;
}

static td_status run_lists(int n, td_operand *operands, td_tensor **outs, bool together) {
    const td_tensor *first = outs[0];
    td_status status = TD_OK;
    for (int k = 0, m; k < n && status == TD_OK; k += m) {
        m = together ? n : 1;
        td_pointwise_plan plan = {.program = program,
                                  .operands = operands + 2 * k,
                                  .compute = (td_dtype)first->dtype,
                                  .nlists = m,
                                  .outs = outs + 2 * k};
        status = TD_RUN(td_tensor_device(first), pointwise, &plan);
    }
    for (int k = 0; k < n && (status == TD_OK || status == TD_EINTR); k++)
        td_tensor_bump_version(outs[2 * k]);
    return status;
}

/* outs: gradient k, then the place of its sum, a new view of `sums`. */
static td_status fill_lists(int n, td_tensor *const *grads, double inverse, td_tensor *sums,
                            td_operand *operands, td_tensor **outs) {
    td_status status = TD_OK;
    for (int k = 0; k < n && status == TD_OK; k++) {
        operands[2 * k].tensor = outs[2 * k] = grads[k];
        operands[2 * k + 1].f = inverse;
        status = TD_APPLY(&outs[2 * k + 1], select, TD_T(sums), TD_I(0), TD_I(k));
    }
    return status;
}

static td_status unscale(int n, td_tensor *const *grads, double inverse, td_tensor *sums) {
    td_operand *operands = td_calloc((size_t)n * 2, sizeof *operands);
    td_tensor **outs = td_calloc((size_t)n * 2, sizeof *outs);
    bool together;
    td_status status = TD_OK;
    if (!operands || !outs)
        TD_TRY(td_fail(TD_ENOMEM, "out of memory for %d gradients", n));
    TD_TRY(may_run_together(n, grads, &together));
    TD_TRY(fill_lists(n, grads, inverse, sums, operands, outs));
    status = run_lists(n, operands, outs, together);
done:
    for (int k = 0; outs && k < n; k++)
        td_release(outs[2 * k + 1]);
    td_free(operands);
    td_free(outs);
    return status;
}

static td_status run_unscale(td_call *call) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int64_t n = call->args[0].n;
    td_tensor *sums = NULL;
    pthread_once(&once, make_program);
    if (made)
        return td_fail(made, "out of memory");
    td_status status =
        TD_APPLY(&sums, zeros, TD_INTS(1, &n), TD_DTYPE(TD_F32), TD_DEVICE(call->device));
    if (status == TD_OK && n > 0)
        status = unscale((int)n, call->args[0].tensors, td_arg_double(call->args[1]), sums);
    if (status == TD_OK)
        status = TD_APPLY(&call->out[0], sum, TD_T(sums));
    td_release(sums);
    return status;
}

TD_OPERATOR(unscale_gradients) = {
    .schema = "(Tensor[] grads, number inverse) -> Tensor",
    .doc = "Gradients of one dtype become themselves times inverse; the result is 0 where all were "
           "finite, NaN otherwise.",
    .run = run_unscale,
    .flags = TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_NONDIFF,
};
