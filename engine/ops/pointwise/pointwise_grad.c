/* pointwise_grad.c: the formulas of pointwise operators and their gradients: compiled when the
 * operator is registered, run as fused programs or, when backward is itself recorded, as operators.
 * Gradients that are wanted together are one program, so that what they share is read once. */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/ops/language/draft.h"
#include "engine/ops/pointwise/pointwise.h"

#include <string.h>

enum { MOST_GRADIENTS = 6 /* the table of joint programs doubles with each */ };

/* ---- formulas of an operator ---- */

/* Number the parameters that have a gradient. */
static td_status number_gradients(const td_op *op, const td_draft *d, td_formula *f) {
    for (int k = 0; k < op->nparams; k++)
        f->place[k] = -1;
    if (d->roots.n > MOST_GRADIENTS)
        return td_fail(TD_EVALUE, "operator '%s': more than %d gradients", op->name,
                       MOST_GRADIENTS);
    for (int k = 0; k < d->roots.n; k++)
        f->place[td_draft_root(d, k)->slot] = (int8_t)k;
    f->ngradients = (uint8_t)d->roots.n;
    f->joint = td_calloc((size_t)1 << f->ngradients, sizeof *f->joint);
    return f->joint ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
}

/* The gradients at these places as one program; the draft that comes has all of them. */
static td_status compile_gradients(const td_op *op, td_draft *d, td_formula *f, unsigned places) {
    uint32_t params = 0;
    for (int k = 0; k < op->nparams; k++)
        if (f->place[k] >= 0 && places >> f->place[k] & 1)
            params |= 1u << k;
    if (places + 1 != 1u << f->ngradients) {
        td_draft_restart(d);
        if (!td_draft_compile(d, params))
            return d->source.status;
    }
    if (places & (places - 1))
        return td_draft_program(d, &f->joint[places]);
    const td_program **alone = &f->gradient[__builtin_ctz(params)];
    td_status status = td_draft_program(d, alone);
    if (status == TD_OK) {
        f->reads_args |= (*alone)->used & ((1u << op->nparams) - 1);
        f->reads_out |= (*alone)->used >> op->nparams & 1;
    }
    return status;
}

/* Operands of gradient programs: the parameters, then `out`, then `g`. */
static td_status compile_all(const td_op *op, td_formula *f) {
    const char *names[TD_MAX_PARAMS + 2], *formula = op->pointwise->formula;
    td_draft d;
    td_status status = TD_OK;
    for (int k = 0; k < op->nparams; k++)
        names[k] = op->params[k].name;
    names[op->nparams] = "out";
    names[op->nparams + 1] = "g";
    td_draft_init(&d, op, TD_SOURCE_FORMULA, op->nparams, names);
    if (formula && td_draft_parse(&d, formula) && td_draft_compile(&d, TD_ALL_LABELS))
        TD_TRY(td_draft_program(&d, &f->forward));
    TD_TRY(d.source.status);
    if (!op->gradient)
        goto done;
    td_draft_restart(&d);
    d.source.kind = TD_SOURCE_GRADIENT;
    d.nnames += 2;
    if (td_draft_parse(&d, op->gradient) && td_draft_compile(&d, TD_ALL_LABELS))
        TD_TRY(number_gradients(op, &d, f));
    TD_TRY(d.source.status);
    for (unsigned places = (1u << f->ngradients) - 1; places; places--)
        TD_TRY(compile_gradients(op, &d, f, places));
done:
    td_draft_clear(&d);
    return status;
}

static void free_formula(td_formula *f) {
    td_program_release(f->forward);
    for (int k = 0; k < TD_MAX_PARAMS; k++)
        td_program_release(f->gradient[k]);
    for (int mask = 0; f->joint && mask < 1 << f->ngradients; mask++)
        td_program_release(f->joint[mask]);
    td_free(f->joint);
    td_free(f);
}

td_status td_pointwise_prepare(td_op *op) {
    td_formula *f = td_calloc(1, sizeof *f);
    if (!f)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status = compile_all(op, f);
    if (status)
        free_formula(f);
    else
        op->programs = f;
    return status;
}

/* ---- as recorded operators ---- */

/* A value that an operator takes which reads tensors alone. */
static td_status as_mask(td_value v, td_value *out, td_tensor **made) {
    *out = v;
    if (v.kind == TD_KIND_TENSOR)
        return TD_OK;
    td_status status = td_tensor_scalar(TD_BOOL, td_arg_double(v), made);
    if (status == TD_OK)
        *out = TD_T(*made);
    return status;
}

static td_status apply_primitive(td_primitive primitive, td_value *args, td_tensor **out) {
    td_tensor *made[3] = {NULL, NULL, NULL};
    td_status status = TD_OK;
    int arity = td_primitive_arity(primitive);
    if (td_primitive_signature(primitive) == TD_SIGNATURE_LOGIC)
        for (int k = 0; k < arity; k++)
            TD_TRY(as_mask(args[k], &args[k], &made[k]));
    status = td_op_apply(td_op_find(td_primitive_name(primitive)), out, arity, args);
done:
    for (int k = 0; k < 3; k++)
        td_release(made[k]);
    return status;
}

/* One step; a number where all that it reads are numbers. `like` says the dtype of the call. */
static td_status record_step(const td_step *step, td_value *args, const td_tensor *like,
                             td_value *out) {
    td_primitive primitive = (td_primitive)step->primitive;
    td_tensor *made = NULL;
    td_status status;
    double numbers[3] = {0, 0, 0};
    int nnumbers = 0;
    for (int k = 0; k < step->arity; k++)
        if (args[k].kind != TD_KIND_TENSOR) {
            numbers[k] = td_arg_double(args[k]);
            nnumbers++;
        }
    if (primitive == TD_PW_where && args[0].kind != TD_KIND_TENSOR) {
        *out = args[numbers[0] != 0 ? 1 : 2];
        if (out->kind == TD_KIND_TENSOR)
            td_retain(out->tensor);
        return TD_OK;
    }
    if (nnumbers == step->arity && td_primitive_is_special(primitive)) {
        td_tensor *number = NULL;
        status = td_tensor_scalar(TD_F64, numbers[0], &number);
        if (status == TD_OK) {
            args[0] = TD_T(number);
            status = apply_primitive(primitive, args, &made);
        }
        td_release(number);
        *out = made ? TD_T(made) : TD_NIL;
        return status;
    }
    if (nnumbers == step->arity) {
        double value = td_primitive_evaluate(primitive, numbers);
        *out = TD_F(step->to == TD_BOOL ? (double)(value != 0) : value);
        return TD_OK;
    }
    if (primitive != TD_PW_copy)
        status = apply_primitive(primitive, args, &made);
    else if (step->from == step->to)
        status = TD_APPLY(&made, clone, args[0]);
    else
        status = TD_APPLY(&made, to_copy, args[0],
                          TD_DTYPE(td_dtype_in_call(step->to, (td_dtype)like->dtype)));
    *out = made ? TD_T(made) : TD_NIL;
    return status;
}

/* A program of one output as calls of operators, so that it is recorded itself. */
static td_status run_recorded(const td_program *p, const td_value *operands, td_tensor *like,
                              td_tensor **out) {
    int first = p->nloads + p->nconstants, n = first + p->noutputs + p->nbuffers;
    td_value *registers = td_calloc((size_t)n, sizeof *registers);
    td_status status = TD_OK;
    *out = NULL;
    if (!registers)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < p->nloads; k++)
        registers[k] = operands[p->loads[k].operand];
    for (int c = 0; c < p->nconstants; c++)
        registers[p->nloads + c] = TD_F(p->constants[c].value);
    for (int s = 0; s < p->nsteps; s++) {
        const td_step *step = &p->steps[s];
        td_value args[3], value;
        for (int k = 0; k < step->arity; k++)
            args[k] = registers[step->src[k]];
        TD_TRY(record_step(step, args, like, &value));
        td_release(td_arg_tensor(registers[step->dst]));
        registers[step->dst] = value;
    }
    td_value result = registers[first];
    if (result.kind == TD_KIND_TENSOR)
        *out = td_retain(result.tensor);
    else
        status = TD_APPLY(out, full_like, TD_T(like), result);
done:
    for (int k = first; k < n; k++)
        td_release(td_arg_tensor(registers[k]));
    td_free(registers);
    return status;
}

/* ---- fused ---- */

/* In one pass over memory: results of g's shape and layout (of an operand's where g is expanded),
 * of a dtype. */
static td_status run_fused(const td_program *p, const td_value *values, td_tensor *g,
                           td_dtype dtype, td_tensor **outs) {
    td_operand operands[TD_MAX_PARAMS + 2];
    td_status status = TD_OK;
    td_meta meta = {.dtype = dtype, .device = td_tensor_device(g), .ndim = g->ndim};
    memset(outs, 0, sizeof *outs * (size_t)p->noutputs);
    for (int k = 0; k < p->noperands; k++) {
        operands[k] = (td_operand){0};
        if (p->used >> k & 1)
            TD_TRY(td_operand_on(meta.device, values[k], &operands[k]));
    }
    memcpy(meta.sizes, g->sizes, sizeof(int64_t) * (size_t)g->ndim);
    if (!g->contiguous) {
        td_value all[TD_MAX_PARAMS + 3] = {TD_T(g)};
        int n = 1;
        for (int k = 0; k < p->noperands; k++)
            if (p->used >> k & 1)
                all[n++] = values[k];
        const td_tensor *model = td_layout_model(n, all, g->ndim, g->sizes);
        meta.strided = model != NULL;
        if (model)
            memcpy(meta.strides, model->strides, sizeof(int64_t) * (size_t)g->ndim);
    }
    for (int k = 0; k < p->noutputs; k++)
        TD_TRY(td_tensor_from_meta(&meta, &outs[k]));
    td_pointwise_plan plan = {
        .program = p, .operands = operands, .compute = meta.dtype, .nlists = 1, .outs = outs};
    if (p->noutputs == 1)
        plan.out = outs[0];
    TD_TRY(TD_RUN(meta.device, pointwise, &plan));
    return TD_OK;
done:
    for (int k = 0; k < p->noutputs; k++) {
        td_release(outs[k]);
        outs[k] = NULL;
    }
    return status;
}

/* A fused gradient is a kernel, though no operator stands around it. */
static td_status run_observed(const td_op *op, const td_program *p, const td_value *operands,
                              td_tensor *g, td_dtype dtype, td_tensor **outs) {
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    if (TD_LIKELY(!o))
        return run_fused(p, operands, g, dtype, outs);
    td_event event = {.kind = TD_EVENT_KERNEL,
                      .name = op->backward_name,
                      .track = td_stream_current(td_tensor_device(g))};
    o->begin(o->ctx, &event);
    event.status = run_fused(p, operands, g, dtype, outs);
    o->end(o->ctx, &event);
    return event.status;
}

/* Of 16 bits, what is summed to an operand's shape stays in float32 until then: rounded once. */
static td_dtype dtype_of_gradients(const td_grad *grad, const int *params, int n) {
    const td_tensor *g = grad->gout[0];
    for (int k = 0; k < n && (g->dtype == TD_F16 || g->dtype == TD_BF16); k++) {
        int ndim;
        const int64_t *sizes = td_grad_shape(grad, params[k], &ndim);
        if (ndim != g->ndim || memcmp(sizes, g->sizes, sizeof(int64_t) * (size_t)ndim))
            return TD_F32;
    }
    return (td_dtype)g->dtype;
}

/* The gradients of the parameters at these places, in one program. */
static td_status run_wanted(td_grad *grad, const td_value *operands, unsigned places) {
    const td_formula *f = grad->op->programs;
    const td_program *p = f->joint[places];
    td_tensor *outs[MOST_GRADIENTS];
    int params[MOST_GRADIENTS] = {0}, n = 0;
    for (int place = 0; place < f->ngradients; place++)
        for (int k = 0; places >> place & 1 && k < grad->op->nparams; k++)
            if (f->place[k] == place)
                params[n++] = k;
    if (!p)
        p = f->gradient[params[0]];
    td_dtype dtype = dtype_of_gradients(grad, params, n);
    td_status status = run_observed(grad->op, p, operands, grad->gout[0], dtype, outs);
    for (int k = 0; k < n && status == TD_OK; k++)
        grad->in[params[k]] = outs[k];
    return status;
}

/* The operand that a program hands on unchanged: a bare name, or a product with the number 1. */
static int whole_operand(const td_program *p, const td_value *operands) {
    if (p->whole >= 0)
        return p->whole;
    if (p->nsteps != 1 || p->steps[0].primitive != TD_PW_mul || p->nloads != 2)
        return -1;
    for (int k = 0; k < 2; k++) {
        int number = p->loads[k].operand, other = p->loads[1 - k].operand;
        if (operands[number].kind == TD_KIND_INT && operands[number].i == 1)
            return other;
    }
    return -1;
}

/* ---- of a gradient that is not strided ---- */

/* Products with what has g's shape, or is one number, leave zeros as they are: no more is done. */
static bool keeps_zeros(const td_program *p, const td_value *operands, const td_tensor *g) {
    for (int s = 0; s < p->nsteps; s++) {
        int primitive = p->steps[s].primitive;
        if (primitive != TD_PW_mul && primitive != TD_PW_neg)
            return false;
    }
    for (int k = 0; k < p->nloads; k++) {
        const td_tensor *x = td_arg_tensor(operands[p->loads[k].operand]);
        if (x && x->ndim && !td_tensor_same_shape(x, g))
            return false;
    }
    return p->nsteps > 0;
}

/* Operator by operator, as where it is recorded; on a dense gradient where it would not stay
 * sparse. */
static td_status run_operators(td_grad *grad, td_value *operands) {
    td_tensor *g = grad->gout[0], *dense = NULL;
    td_status status = TD_OK;
    int n = grad->op->nparams;
    for (int k = 0; k < n && status == TD_OK; k++) {
        const td_program *p = grad->op->programs->gradient[k];
        if (!p || !td_grad_needs(grad, k))
            continue;
        operands[n + 1] = TD_T(g);
        int whole = whole_operand(p, operands);
        if (whole >= 0) {
            grad->in[k] = td_retain(operands[whole].tensor);
            continue;
        }
        if (!keeps_zeros(p, operands, g)) {
            status = dense ? TD_OK : TD_APPLY(&dense, to_dense, TD_T(g));
            if (status == TD_OK)
                operands[n + 1] = TD_T(dense);
        }
        if (status == TD_OK)
            status = run_recorded(p, operands, td_arg_tensor(operands[n + 1]), &grad->in[k]);
    }
    td_release(dense);
    return status;
}

td_status td_pointwise_backward(td_grad *grad) {
    const td_op *op = grad->op;
    const td_formula *f = op->programs;
    td_value operands[TD_MAX_PARAMS + 2];
    td_tensor *g = grad->gout[0];
    int n = op->nparams;
    unsigned wanted = 0;
    for (int k = 0; k < n; k++)
        operands[k] = grad->args[k];
    operands[n] = td_tensor_or_nil(grad->out[0]);
    operands[n + 1] = TD_T(g);
    if (TD_UNLIKELY(g->layout != TD_STRIDED))
        return run_operators(grad, operands);
    for (int k = 0; k < n; k++) {
        const td_program *p = f->gradient[k];
        if (!p || !td_grad_needs(grad, k))
            continue;
        int whole = whole_operand(p, operands);
        td_status status = TD_OK;
        if (whole >= 0)
            grad->in[k] = td_retain(operands[whole].tensor);
        else if (td_grad_enabled() || td_modes_current.dispatcher)
            status = run_recorded(p, operands, g, &grad->in[k]);
        else
            wanted |= 1u << f->place[k];
        if (status)
            return status;
    }
    return wanted ? run_wanted(grad, operands, wanted) : TD_OK;
}
