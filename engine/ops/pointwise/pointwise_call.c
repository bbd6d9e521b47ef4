/* pointwise_call.c: calls of pointwise operators: dtype rule, shape rule, layout of the result.
 * Their gradients are in pointwise_grad.c. */
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/rule_helpers.h"

#include <string.h>

static inline td_status run(td_device device, const td_program *program, const td_operand *operands,
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
        d = p->number == TD_CAT_FLOAT ? (int)td_default_dtype()
            : p->number == TD_CAT_INT ? TD_I64
                                      : TD_BOOL;
    return (td_dtype)d;
}

static void add_operand(promotion *p, td_value v) {
    if (v.kind == TD_KIND_TENSOR) {
        if (v.tensor->ndim > 0)
            p->dtype = join(p->dtype, v.tensor->dtype);
        else
            p->zero = join(p->zero, v.tensor->dtype);
    } else if (v.kind == TD_KIND_INT || v.kind == TD_KIND_FLOAT || v.kind == TD_KIND_BOOL) {
        int category = v.kind == TD_KIND_BOOL  ? TD_CAT_BOOL
                       : v.kind == TD_KIND_INT ? TD_CAT_INT
                                               : TD_CAT_FLOAT;
        p->number = category > p->number ? category : p->number;
    }
}

td_dtype td_promote_operands(int n, const td_value *args) {
    promotion p = {-1, -1, -1};
    for (int k = 0; k < n; k++)
        add_operand(&p, args[k]);
    return promoted(&p);
}

static td_status check_same(int n, const td_value *args) {
    const td_tensor *first = NULL;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (x && first && x->dtype != first->dtype)
            return td_fail(TD_EDTYPE, "dtypes %s and %s differ: convert one with x:to(dtype)",
                           td_dtype_name((td_dtype)first->dtype),
                           td_dtype_name((td_dtype)x->dtype));
        first = x ? x : first;
    }
    return TD_OK;
}

/* EDTYPE where the operator is not for what its operands are promoted to. Numbers that can't be
 * tensors are options, and so is what follows two operands (the weight of lerp): they make no float
 * of an integer. */
static td_status check_dtype(const td_op *op, int n, const td_value *args) {
    promotion p = {-1, -1, -1};
    for (int k = 0; k < n; k++)
        if (args[k].kind == TD_KIND_TENSOR ||
            (k < 2 && op->params[k].type == TD_PARAM_TENSOR_OR_NUMBER))
            add_operand(&p, args[k]);
    td_dtype d = promoted(&p);
    return op->dtypes >> d & 1 ? TD_OK : td_op_refuse_dtype(op, d);
}

static td_status choose_dtypes(const td_op *op, int n, const td_value *args, td_dtype *compute,
                               td_dtype *result) {
    promotion p = {-1, -1, -1};
    const td_pointwise *pw = op->pointwise;
    if (TD_UNLIKELY(pw->same && check_same(n, args)))
        return TD_EDTYPE;
    const td_tensor *condition = pw->type == TD_PW_SELECT ? td_arg_tensor(args[0]) : NULL;
    if (condition && condition->dtype != TD_BOOL)
        return td_fail(TD_EDTYPE, "the condition must be bool, got %s: compare it, as x:ne(0)",
                       td_dtype_name((td_dtype)condition->dtype));
    for (int k = pw->type == TD_PW_SELECT ? 1 : 0; k < n; k++)
        if (!pw->keeps || args[k].kind == TD_KIND_TENSOR)
            add_operand(&p, args[k]);
    td_dtype d = promoted(&p);
    if (pw->no_bool && d == TD_BOOL)
        return td_fail(TD_EDTYPE, "not for bool: use logical_not, logical_xor or x:int()");
    if (op->dtypes != TD_DTYPES_ALL) {
        td_status status = check_dtype(op, n, args);
        if (status)
            return status;
    }
    if (pw->counts && d == TD_BOOL)
        d = TD_I64;
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
    case TD_PW_DOUBLES:
        *compute = *result = TD_F64;
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
    return TD_OK;
}

/* ---- rounding and division of integers ---- */

static bool refuses_zero(int primitive) {
    return primitive == TD_PW_fmod || primitive == TD_PW_remainder ||
           primitive == TD_PW_floor_divide || primitive == TD_PW_trunc_divide;
}

/* EVALUE where a divisor is zero, in the dtype that it is divided in. */
static td_status check_divisor(td_device device, td_dtype compute, td_operand b) {
    static const char message[] = "integer division by zero";
    if (!b.tensor)
        return b.f == 0 ? td_fail(TD_EVALUE, "%s", message) : TD_OK;
    td_operand operands[2] = {b, {.is_int = true}};
    td_check_plan plan = {.program = td_primitive_program(TD_PW_eq),
                          .operands = operands,
                          .compute = compute,
                          .code = TD_EVALUE,
                          .message = message};
    return TD_RUN(device, check, &plan);
}

/* ---- shape and layout of the result ---- */

static bool repeats(const td_tensor *x) {
    for (int d = 0; d < x->ndim; d++)
        if (x->strides[d] == 0 && x->sizes[d] > 1)
            return true;
    return false;
}

const td_tensor *td_layout_model(int n, const td_value *args, int ndim, const int64_t *sizes) {
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (!x || x->ndim != ndim || memcmp(x->sizes, sizes, sizeof(int64_t) * (size_t)ndim))
            continue;
        if (x->contiguous)
            return NULL;
        if (td_tensor_is_dense(x))
            return x;
        if (!repeats(x))
            return NULL;
    }
    return NULL;
}

static td_status broadcast_all(const td_pointwise *pw, int n, const td_value *args, int *ndim,
                               int64_t *sizes) {
    bool any = pw->numbers;
    *ndim = 0;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (!x)
            continue;
        if (!any || *ndim == 0 ||
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

/* Tensors with dims decide; among single elements those of a device, since a number can go there.
 */
static td_device result_device(int n, const td_value *args) {
    td_device device = TD_DEVICE_CPU;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(args[k]);
        if (x && x->ndim > 0)
            return td_tensor_device(x);
        if (x && td_device_real(device).type == TD_CPU)
            device = td_tensor_device(x);
    }
    return device;
}

static td_status make_result(const td_call *call, int n, td_dtype dtype, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS];
    int ndim;
    td_status status = broadcast_all(call->op->pointwise, n, call->args, &ndim, sizes);
    if (TD_UNLIKELY(status))
        return status;
    if (TD_LIKELY(!call->ngiven)) {
        status = td_tensor_empty(dtype, result_device(n, call->args), ndim, sizes, out);
        const td_tensor *model = td_layout_model(n, call->args, ndim, sizes);
        if (TD_UNLIKELY(model && status == TD_OK))
            status = td_tensor_set_shape(*out, ndim, sizes, model->strides);
        return status;
    }
    td_meta meta;
    td_meta_set(&meta, dtype, ndim, sizes);
    status = td_check_given(call, 1, &meta);
    if (status == TD_OK)
        status = td_fit_given(call, 0, &meta);
    if (status)
        return status;
    *out = td_retain(call->given[0]);
    return TD_OK;
}

/* ---- calling ---- */

td_status td_operand_on(td_device device, td_value v, td_operand *out) {
    *out = td_operand_of(v);
    const td_tensor *x = out->tensor;
    if (TD_LIKELY(!x || td_device_same(td_tensor_device(x), device)))
        return TD_OK;
    if (x->ndim > 0 || td_device_real(td_tensor_device(x)).type != TD_CPU)
        return td_fail(TD_EDEVICE, "tensors on %s and %s don't mix: move one with x:to(device)",
                       td_device_name(device), td_device_name(td_tensor_device(x)));
    out->tensor = NULL;
    out->is_int = !td_dtype_is_float((td_dtype)x->dtype);
    if (device.type == TD_META) /* nobody will read it */
        return TD_OK;
    td_status status = td_tensor_item(x, &out->f);
    return status || !out->is_int ? status : td_tensor_item_int(x, &out->i);
}

static inline bool is_preset(const td_param *p, const td_value *v) {
    return TD_LIKELY(v->kind == TD_KIND_INT && v->i == p->preset.i &&
                     p->preset.kind == TD_KIND_INT);
}

/* The loop alone will do when the parameters beyond its operands have their defaults. */
static const td_program *choose_program(const td_op *op, const td_value *args) {
    const td_pointwise *pw = op->pointwise;
    if (pw->primitive < 0)
        return op->programs->forward;
    const td_program *simple = td_primitive_program((td_primitive)pw->primitive);
    for (int k = simple->noperands; k < op->nparams; k++)
        if (!is_preset(&op->params[k], &args[k]) && !td_is_nil(args[k]) && op->programs->forward)
            return op->programs->forward;
    return simple;
}

const td_program *td_pointwise_program(const td_op *op, const td_value *args) {
    return choose_program(op, args);
}

/* The call that a prompt makes most: row-major tensors of one shape and one dtype, or such a tensor
 * and a number that does not change its dtype; afresh or in place. Returns the tensor that says
 * what the result is like, NULL when it is another call. */
static const td_tensor *plain_model(const td_call *call, int n) {
    const td_pointwise *pw = call->op->pointwise;
    const td_tensor *model = NULL;
    uint64_t floats = call->op->dtypes & TD_DTYPES_FLOATS;
    if ((call->ngiven && !(call->inplace && call->given[0] == td_arg_tensor(call->args[0]))) ||
        (pw->type != TD_PW_ARITH && pw->type != TD_PW_FLOATS))
        return NULL;
    for (int k = 0; k < n; k++) {
        const td_tensor *x = td_arg_tensor(call->args[k]);
        if (!x)
            continue;
        if (!x->contiguous || !(floats >> x->dtype & 1) || x->storage->device.type != TD_CPU)
            return NULL;
        if (!model)
            model = x;
        else if (x->dtype != model->dtype || !td_tensor_same_shape(x, model))
            return NULL;
    }
    return model;
}

/* The rest: dtypes and shapes that differ, given results, devices. */
static td_status call_general(td_call *call, const td_program *program);

td_status td_pointwise_call(td_call *call) {
    const td_program *program = choose_program(call->op, call->args);
    const td_tensor *model = plain_model(call, program->noperands);
    if (TD_UNLIKELY(!model))
        return call_general(call, program);
    td_operand operands[TD_MAX_PARAMS];
    for (int k = 0; k < program->noperands; k++) {
        if (TD_LIKELY(call->args[k].kind == TD_KIND_TENSOR))
            operands[k].tensor = call->args[k].tensor;
        else
            operands[k] = td_operand_of(call->args[k]);
    }
    td_status status = TD_OK;
    if (TD_UNLIKELY(call->ngiven))
        call->out[0] = td_retain(call->given[0]);
    else
        status = td_tensor_empty_like(model, (td_dtype)model->dtype, &call->out[0]);
    if (TD_LIKELY(status == TD_OK))
        status = td_call_ready(call);
    if (TD_UNLIKELY(status))
        return status;
    return run(TD_DEVICE_CPU, program, operands, (td_dtype)model->dtype, call->out[0]);
}

td_status td_pointwise_apply_as(td_call *call, const td_op *op, const td_value *args) {
    if (!call->inplace)
        return td_op_apply(op, call->out, op->nparams, args);
    td_status status = td_op_apply_inplace(op, op->nparams, args);
    if (status == TD_OK)
        call->out[0] = td_retain(args[0].tensor);
    return status;
}

/* Integers are rounded already. */
static bool is_rounding_of_integers(const td_pointwise *pw, td_dtype compute) {
    return pw->type == TD_PW_ARITH && !td_dtype_is_float(compute) &&
           (pw->primitive == TD_PW_floor || pw->primitive == TD_PW_ceil ||
            pw->primitive == TD_PW_round || pw->primitive == TD_PW_trunc);
}

/* A number is compared as the tensor's dtype holds it, so that bfloat16's 1.1 equals 1.1. */
static void round_numbers(td_dtype dtype, int n, td_operand *operands) {
    unsigned char rounded[8];
    for (int k = 0; k < n; k++) {
        if (operands[k].tensor)
            continue;
        td_store_double(dtype, rounded, operands[k].f);
        operands[k] = (td_operand){.f = td_load_double(dtype, rounded)};
    }
}

/* A number beyond what an integer dtype holds is its end on that side. */
static void hold_within(td_dtype dtype, int n, td_operand *operands) {
    bool is_signed = dtype != TD_BOOL && dtype != TD_U8;
    int bits = dtype == TD_BOOL ? 1 : 8 * (int)td_dtype_size(dtype) - is_signed;
    int64_t high = (int64_t)(((uint64_t)1 << bits) - 1), low = is_signed ? -high - 1 : 0;
    for (int k = 0; k < n; k++) {
        td_operand *o = &operands[k];
        if (!o->tensor && o->is_int)
            o->i = o->i < low ? low : o->i > high ? high : o->i;
    }
}

/* What the dtype of computation changes: numbers, and the program where integers are rounded. */
static const td_program *fit_numbers(const td_pointwise *pw, const td_program *program,
                                     td_dtype compute, td_operand *operands) {
    int n = program->noperands;
    if (pw->type == TD_PW_COMPARE && td_dtype_compute(compute) != compute)
        round_numbers(compute, n, operands);
    if (TD_UNLIKELY(pw->bounds && !td_dtype_is_float(compute)))
        hold_within(compute, n, operands);
    return TD_UNLIKELY(is_rounding_of_integers(pw, compute)) ? td_primitive_program(TD_PW_copy)
                                                             : program;
}

static bool divides_integers(const td_pointwise *pw, td_dtype compute) {
    return refuses_zero(pw->primitive) && !td_dtype_is_float(compute);
}

td_status td_pointwise_settle(const td_op *op, const td_value *args, td_pointwise_work *w) {
    const td_program *program = choose_program(op, args);
    td_status status = choose_dtypes(op, program->noperands, args, &w->compute, &w->result);
    for (int k = 0; k < program->noperands; k++)
        w->operands[k] = td_operand_of(args[k]);
    if (status)
        return status;
    w->divides = divides_integers(op->pointwise, w->compute);
    w->program = fit_numbers(op->pointwise, program, w->compute, w->operands);
    return TD_OK;
}

static td_status call_general(td_call *call, const td_program *program) {
    const td_pointwise *pw = call->op->pointwise;
    td_dtype compute = TD_F32, result = TD_F32;
    td_operand operands[TD_MAX_PARAMS];
    int n = program->noperands;
    td_status status = choose_dtypes(call->op, n, call->args, &compute, &result);
    const td_tensor *given = td_call_given(call, 0);
    if (pw->type == TD_PW_DOUBLES && call->inplace && given->dtype != TD_F64)
        return td_fail(TD_EDTYPE, "a float64 result can't be written into a %s tensor",
                       td_dtype_name((td_dtype)given->dtype));
    td_device device = given ? td_tensor_device(given) : result_device(n, call->args);
    if (status == TD_OK && TD_LIKELY(!given))
        status = make_result(call, n, result, &call->out[0]);
    for (int k = 0; k < n && status == TD_OK; k++)
        status = td_operand_on(device, call->args[k], &operands[k]);
    if (TD_UNLIKELY(status))
        return status;
    program = fit_numbers(pw, program, compute, operands);
    if (TD_UNLIKELY(divides_integers(pw, compute)))
        status = check_divisor(device, compute, operands[1]);
    if (status == TD_OK && TD_UNLIKELY(given)) /* last of what may fail: it is resized */
        status = make_result(call, n, result, &call->out[0]);
    if (status == TD_OK)
        status = td_call_ready(call);
    if (TD_UNLIKELY(status))
        return status;
    return run(device, program, operands, compute, call->out[0]);
}
