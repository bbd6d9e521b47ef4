/* pointwise_call.c: calls of pointwise operators: dtype rule, shape rule, layout of the result; and
 * their gradients, run as fused programs or, when backward is itself recorded, as operators. */
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/observer.h"
#include "engine/ops/copy.h"
#include "engine/ops/pointwise.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static td_status run(td_device device, const td_program *program, const td_operand *operands,
                     td_dtype compute, td_tensor *out) {
    td_pointwise_plan plan = {
        .program = program, .operands = operands, .compute = compute, .out = out};
    return TD_RUN(device, pointwise, &plan);
}

/* ---- dtypes ---- */

typedef struct promotion {
    int dtype;  /* of tensors with dims; -1: none yet */
    int zero;   /* of 0-dim tensors */
    int number; /* category of Lua numbers; -1: none */
} promotion;

static int join(int have, td_dtype d) {
    return have < 0 ? (int)d : (int)td_dtype_promote((td_dtype)have, d);
}

/* Tensors with dims decide; 0-dim tensors and numbers count only where their category is higher. */
static td_dtype promoted(const promotion *p) {
    int d = p->dtype;
    if (p->zero >= 0 && (d < 0 || td_dtypes[p->zero].category > td_dtypes[d].category))
        d = join(d, (td_dtype)p->zero);
    if (p->number >= 0 && (d < 0 || p->number > td_dtypes[d].category))
        d = p->number == TD_CAT_FLOAT ? (int)td_default_dtype() : TD_I64;
    return (td_dtype)d;
}

static void add_operand(promotion *p, td_value v) {
    if (v.kind == TD_KIND_TENSOR) {
        if (v.tensor->ndim > 0)
            p->dtype = join(p->dtype, v.tensor->dtype);
        else
            p->zero = join(p->zero, v.tensor->dtype);
    } else if (v.kind == TD_KIND_INT || v.kind == TD_KIND_FLOAT) {
        int category = v.kind == TD_KIND_INT ? TD_CAT_INT : TD_CAT_FLOAT;
        p->number = category > p->number ? category : p->number;
    }
}

static td_status choose_dtypes(const td_pointwise *pw, int n, const td_value *args,
                               td_dtype *compute, td_dtype *result) {
    promotion p = {-1, -1, -1};
    for (int k = pw->type == TD_PW_SELECT ? 1 : 0; k < n; k++)
        add_operand(&p, args[k]);
    td_dtype d = promoted(&p);
    *compute = d;
    *result = d;
    switch ((td_pointwise_type)pw->type) {
    case TD_PW_ARITH:
    case TD_PW_SELECT:
        break;
    case TD_PW_FLOATS:
    case TD_PW_FLOAT_TEST:
        *compute = td_dtype_is_float(d) ? d : td_default_dtype();
        *result = pw->type == TD_PW_FLOATS ? *compute : TD_BOOL;
        break;
    case TD_PW_COMPARE:
        *result = TD_BOOL;
        break;
    case TD_PW_LOGICAL:
        *compute = *result = TD_BOOL;
        break;
    case TD_PW_BITWISE:
        if (td_dtype_is_float(d))
            return td_fail(TD_EDTYPE, "integers or bool expected, got %s", td_dtype_name(d));
    }
    if (pw->no_bool && d == TD_BOOL)
        return td_fail(TD_EDTYPE, "not for bool: use logical_not, logical_xor or x:int()");
    return TD_OK;
}

/* ---- rounding and division of integers ---- */

static bool refuses_zero(int primitive) {
    return primitive == TD_PW_fmod || primitive == TD_PW_remainder ||
           primitive == TD_PW_floor_divide || primitive == TD_PW_trunc_divide;
}

static td_status check_divisor(td_value b) {
    bool zero = false;
    if (b.kind == TD_KIND_INT || b.kind == TD_KIND_FLOAT) {
        zero = td_arg_double(b) == 0;
    } else {
        td_tensor *flat;
        td_status status = td_contiguous_as(b.tensor, TD_I64, &flat);
        if (status)
            return status;
        const int64_t *p = flat->data;
        for (int64_t i = 0; i < flat->numel && !zero; i++)
            zero = p[i] == 0;
        td_release(flat);
    }
    return zero ? td_fail(TD_EVALUE, "integer division by zero") : TD_OK;
}

/* ---- shape and layout of the result ---- */

/* Strides of the result: those of the first operand of the result's shape that is dense in another
 * order (channels_last, transposed), else row-major. */
static const td_tensor *layout_model(int n, const td_value *args, int ndim, const int64_t *sizes) {
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (!x || x->ndim != ndim || memcmp(x->sizes, sizes, sizeof(int64_t) * (size_t)ndim))
            continue;
        return !x->contiguous && td_tensor_is_dense(x) ? x : NULL;
    }
    return NULL;
}

static td_status broadcast_all(int n, const td_value *args, int *ndim, int64_t *sizes) {
    bool any = false;
    *ndim = 0;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (!x)
            continue;
        if (!any ||
            (*ndim == x->ndim && !memcmp(sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim))) {
            *ndim = x->ndim;
            memcpy(sizes, x->sizes, sizeof(int64_t) * (size_t)x->ndim);
            any = true;
            continue;
        }
        td_status status = td_broadcast(*ndim, sizes, x->ndim, x->sizes, ndim, sizes);
        if (status)
            return status;
    }
    return any ? TD_OK : td_fail(TD_ETYPE, "one argument at least must be a tensor");
}

static td_status make_result(const td_call *call, int n, td_dtype dtype, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    int ndim;
    td_status status = broadcast_all(n, call->args, &ndim, sizes);
    if (TD_UNLIKELY(status))
        return status;
    td_tensor *given = td_call_given(call, 0);
    if (TD_LIKELY(!given)) {
        td_device device = TD_DEVICE_CPU;
        for (int k = 0; k < n; k++)
            if (td_arg_tensor(call->args[k]) &&
                call->args[k].tensor->storage->device.type != TD_CPU)
                device = td_tensor_device(call->args[k].tensor);
        status = td_tensor_empty(dtype, device, ndim, sizes, out);
        const td_tensor *model = layout_model(n, call->args, ndim, sizes);
        if (TD_UNLIKELY(model && status == TD_OK))
            status = td_tensor_set_shape(*out, ndim, sizes, model->strides);
        return status;
    }
    status = td_call_fit(call, given, dtype, ndim, sizes);
    if (status)
        return status;
    *out = td_retain(given);
    return TD_OK;
}

/* ---- calling ---- */

static td_operand operand_of(td_value v) {
    td_operand o = {0};
    if (v.kind == TD_KIND_TENSOR)
        o.tensor = v.tensor;
    else if (v.kind == TD_KIND_INT)
        o = (td_operand){.is_int = true, .i = v.i, .f = (double)v.i};
    else if (v.kind == TD_KIND_FLOAT)
        o.f = v.f;
    return o;
}

/* The loop alone will do when the parameters beyond its operands have their defaults. */
static const td_program *choose_program(const td_op *op, const td_value *args) {
    const td_pointwise *pw = op->pointwise;
    if (pw->primitive < 0)
        return op->programs->forward;
    const td_program *simple = td_primitive_program((td_primitive)pw->primitive);
    for (int k = simple->noperands; k < op->nparams; k++)
        if (!(args[k].kind == TD_KIND_INT && op->params[k].preset.kind == TD_KIND_INT &&
              args[k].i == op->params[k].preset.i))
            return op->programs->forward;
    return simple;
}

static td_status check_devices(int n, const td_value *args, td_device device) {
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (x && x->ndim > 0 && !td_device_same(td_tensor_device(x), device))
            return td_fail(TD_EDEVICE, "tensors on %s and %s don't mix: move one with x:to(device)",
                           td_device_name(device), td_device_name(td_tensor_device(x)));
    }
    return TD_OK;
}

/* The call that a prompt makes most: row-major tensors of one shape and one dtype, or such a tensor
 * and a number that does not change its dtype. Returns the tensor that says what the result is
 * like, NULL when it is another call. */
static const td_tensor *plain_model(const td_call *call, int n) {
    const td_pointwise *pw = call->op->pointwise;
    const td_tensor *model = NULL;
    if (call->ngiven || (pw->type != TD_PW_ARITH && pw->type != TD_PW_FLOATS))
        return NULL;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(call->args[k]);
        if (!x)
            continue;
        if (!x->contiguous || !td_dtype_is_float((td_dtype)x->dtype) ||
            x->storage->device.type != TD_CPU)
            return NULL;
        if (!model)
            model = x;
        else if (x->dtype != model->dtype || !td_tensor_same_shape(x, model))
            return NULL;
    }
    return model;
}

static td_status call_plain(td_call *call, const td_program *program, const td_tensor *model) {
    td_operand operands[TD_PROGRAM_OPERANDS];
    for (int k = 0; k < program->noperands; k++)
        operands[k] = operand_of(call->args[k]);
    td_status status = td_tensor_empty_like(model, (td_dtype)model->dtype, &call->out[0]);
    if (TD_UNLIKELY(status))
        return status;
    status = td_call_ready(call);
    if (status == TD_OK)
        status = run(TD_DEVICE_CPU, program, operands, (td_dtype)model->dtype, call->out[0]);
    return status;
}

td_status td_pointwise_call(td_call *call) {
    const td_op *op = call->op;
    td_dtype compute, result;
    const td_program *program = choose_program(op, call->args);
    int n = program->noperands;
    const td_tensor *model = plain_model(call, n);
    if (TD_LIKELY(model != NULL))
        return call_plain(call, program, model);
    td_status status = choose_dtypes(op->pointwise, n, call->args, &compute, &result);
    if (TD_UNLIKELY(status))
        return status;
    if (TD_UNLIKELY(refuses_zero(op->pointwise->primitive) && !td_dtype_is_float(compute))) {
        status = check_divisor(call->args[1]);
        if (status)
            return status;
    }
    td_tensor *out;
    status = make_result(call, n, result, &out);
    if (TD_UNLIKELY(status))
        return status;
    td_operand operands[TD_PROGRAM_OPERANDS];
    for (int k = 0; k < n; k++)
        operands[k] = operand_of(call->args[k]);
    td_device device = td_tensor_device(out);
    status = check_devices(n, call->args, device);
    bool whole_numbers =
        op->pointwise->type == TD_PW_ARITH && !td_dtype_is_float(compute) &&
        (op->pointwise->primitive == TD_PW_floor || op->pointwise->primitive == TD_PW_ceil ||
         op->pointwise->primitive == TD_PW_round || op->pointwise->primitive == TD_PW_trunc);
    if (whole_numbers) /* integers are rounded already */
        program = td_primitive_program(TD_PW_copy);
    call->out[0] = out;
    if (status == TD_OK)
        status = td_call_ready(call);
    return status ? status : run(device, program, operands, compute, out);
}

/* ---- formulas of an operator ---- */

static pthread_mutex_t prepare_lock = PTHREAD_MUTEX_INITIALIZER;

/* Copy the formula of `param` out of "a: ...; b: ..."; false when there is none. */
static bool find_gradient(const char *gradient, const char *param, char *text, size_t size) {
    size_t len = strlen(param);
    for (const char *at = gradient; at; at = strchr(at, ';') ? strchr(at, ';') + 1 : NULL) {
        while (*at == ' ')
            at++;
        if (strncmp(at, param, len) || at[len] != ':')
            continue;
        const char *from = at + len + 1, *end = strchr(from, ';');
        size_t n = end ? (size_t)(end - from) : strlen(from);
        if (n >= size)
            return false;
        memcpy(text, from, n);
        text[n] = 0;
        return true;
    }
    return false;
}

static td_status compile(const char *text, int n, const char *const *names, td_program **out) {
    td_program *p = td_malloc(sizeof *p);
    if (!p)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status = td_program_compile(text, n, names, p);
    if (status) {
        td_free(p);
        return status;
    }
    *out = p;
    return TD_OK;
}

/* Operands of gradient programs: the parameters, then `out`, then `g`. */
static td_status compile_all(const td_op *op, td_formula *f) {
    const char *names[TD_MAX_PARAMS + 2];
    int n = op->nparams;
    for (int k = 0; k < n; k++)
        names[k] = op->params[k].name;
    names[n] = "out";
    names[n + 1] = "g";
    if (op->pointwise->formula) {
        td_status status = compile(op->pointwise->formula, n, names, &f->forward);
        if (status)
            return status;
    }
    for (int k = 0; op->gradient && k < n; k++) {
        char text[512];
        if (!find_gradient(op->gradient, op->params[k].name, text, sizeof text))
            continue;
        td_status status = compile(text, n + 2, names, &f->gradient[k]);
        if (status)
            return status;
        f->reads_args |= f->gradient[k]->used & ((1u << n) - 1);
        f->reads_out |= f->gradient[k]->used >> n & 1;
    }
    return TD_OK;
}

td_status td_pointwise_prepare(const td_op *op) {
    td_status status = TD_OK;
    pthread_mutex_lock(&prepare_lock);
    if (!op->programs) {
        td_formula *f = td_calloc(1, sizeof *f);
        status = f ? compile_all(op, f) : td_fail(TD_ENOMEM, "out of memory");
        if (status == TD_OK)
            ((td_op *)op)->programs = f;
        else
            td_free(f);
    }
    pthread_mutex_unlock(&prepare_lock);
    return status;
}

/* ---- gradients ---- */

/* A program as calls of operators, so that it is recorded itself. */
static td_status run_recorded(const td_program *p, const td_value *operands, td_tensor *like,
                              td_tensor **out) {
    td_value registers[TD_BUFFER_BASE + TD_PROGRAM_BUFFERS];
    td_tensor *buffers[TD_PROGRAM_BUFFERS] = {NULL};
    td_status status = TD_OK;
    for (int k = 0; k < p->noperands; k++)
        registers[k] = operands[k];
    for (int c = 0; c < p->nconstants; c++)
        registers[TD_CONSTANT_BASE + c] = TD_F(p->constants[c]);
    *out = NULL;
    for (int s = 0; s < p->nsteps; s++) {
        const td_step *step = &p->steps[s];
        td_value args[3];
        td_tensor *value = NULL;
        bool numbers = true;
        for (int k = 0; k < step->arity; k++) {
            args[k] = registers[step->src[k]];
            numbers = numbers && args[k].kind != TD_KIND_TENSOR;
        }
        if (numbers) {
            /* numbers alone (1 - weight): a tensor of one element carries them */
            td_tensor *zero;
            TD_TRY(td_tensor_scalar(like->dtype, 0, &zero));
            td_operand o[3];
            for (int k = 0; k < step->arity; k++)
                o[k] = operand_of(args[k]);
            status = run(TD_DEVICE_CPU, td_primitive_program((td_primitive)step->primitive), o,
                         TD_F64 == like->dtype ? TD_F64 : TD_F32, zero);
            value = zero;
        } else if (step->primitive == TD_PW_copy) {
            status = TD_APPLY(&value, clone, args[0]);
        } else {
            status = td_op_apply(td_op_find(td_primitive_name((td_primitive)step->primitive)),
                                 &value, step->arity, args);
        }
        if (status) {
            td_release(value);
            goto done;
        }
        int b = step->dst - TD_BUFFER_BASE;
        td_release(buffers[b]);
        buffers[b] = value;
        registers[step->dst] = TD_T(value);
        if (s == p->nsteps - 1)
            *out = td_retain(value);
    }
done:
    for (int b = 0; b < TD_PROGRAM_BUFFERS; b++)
        td_release(buffers[b]);
    return status;
}

/* The same in one pass over memory. */
static td_status run_fused(const td_program *p, const td_value *values, td_tensor *g,
                           td_tensor **out) {
    td_operand operands[TD_PROGRAM_OPERANDS];
    td_status status = TD_OK;
    for (int k = 0; k < p->noperands; k++)
        operands[k] = p->used >> k & 1 ? operand_of(values[k]) : (td_operand){0};
    td_meta meta = {.dtype = (td_dtype)g->dtype, .device = td_tensor_device(g), .ndim = g->ndim};
    memcpy(meta.sizes, g->sizes, sizeof(int64_t) * (size_t)g->ndim);
    if (!g->contiguous && td_tensor_is_dense(g)) {
        meta.strided = true;
        memcpy(meta.strides, g->strides, sizeof(int64_t) * (size_t)g->ndim);
    }
    TD_TRY(td_tensor_from_meta(&meta, out));
    TD_TRY(run(meta.device, p, operands, meta.dtype, *out));
    return TD_OK;
done:
    td_release(*out);
    *out = NULL;
    return status;
}

/* The operand that a program hands on unchanged: a bare name, or a product with the number 1. */
static int whole_operand(const td_program *p, const td_value *operands) {
    if (p->whole >= 0)
        return p->whole;
    if (p->nsteps != 1 || p->steps[0].primitive != TD_PW_mul)
        return -1;
    for (int k = 0; k < 2; k++) {
        int number = p->steps[0].src[k], other = p->steps[0].src[1 - k];
        if (number < p->noperands && other < p->noperands && operands[number].kind == TD_KIND_INT &&
            operands[number].i == 1)
            return other;
    }
    return -1;
}

/* A fused gradient is a kernel, though no operator stands around it. */
static td_status run_observed(const td_op *op, const td_program *p, const td_value *operands,
                              td_tensor *g, td_tensor **out) {
    td_observer *o = td_observer_get(TD_EVENT_KERNEL);
    if (TD_LIKELY(!o))
        return run_fused(p, operands, g, out);
    td_event event = {.kind = TD_EVENT_KERNEL,
                      .name = op->backward_name,
                      .track = td_stream_current(td_tensor_device(g))};
    o->begin(o->ctx, &event);
    event.status = run_fused(p, operands, g, out);
    o->end(o->ctx, &event);
    return event.status;
}

td_status td_pointwise_backward(td_grad *grad) {
    const td_op *op = grad->op;
    td_value operands[TD_PROGRAM_OPERANDS];
    td_tensor *g = grad->gout[0];
    int n = op->nparams;
    for (int k = 0; k < n; k++)
        operands[k] = grad->args[k];
    operands[n] = td_tensor_or_nil(grad->out[0]);
    operands[n + 1] = TD_T(g);
    for (int k = 0; k < n; k++) {
        const td_program *p = op->programs->gradient[k];
        if (!p || !td_grad_needs(grad, k))
            continue;
        int whole = whole_operand(p, operands);
        td_status status = TD_OK;
        if (whole >= 0)
            grad->in[k] = td_retain(operands[whole].tensor);
        else if (td_grad_enabled())
            status = run_recorded(p, operands, g, &grad->in[k]);
        else
            status = run_observed(op, p, operands, g, &grad->in[k]);
        if (status)
            return status;
    }
    return TD_OK;
}
