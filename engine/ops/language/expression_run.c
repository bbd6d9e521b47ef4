/* expression_run.c: evaluates expressions: one pass backwards over the steps finds what is wanted,
 * one forwards computes it and lets every temporary go after its last reader. Knows operators by
 * their calls alone, so that what it does is recorded, observed and cast as if written in C. */
#include "engine/ops/language/expression.h"

#include "engine/core/memory.h"
#include "engine/core/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A step that is no leaf, how far it has come and its value. */
typedef struct slot {
    td_value value;
    uint16_t readers; /* that have not read yet; 0: not wanted */
    uint16_t chosen;  /* of a choice: the step whose value it takes */
    bool done, owned; /* owned: the value's tensors are ours to release */
} slot;

/* Lies on the stack, unless an expression is longer than those of the engine. */
typedef struct evaluation {
    const td_op *op;
    const td_expression *expression;
    const td_value *args;
    const td_grad *grad; /* NULL: a composite */
    int64_t *ints;       /* of lists and shapes, behind the slots */
    int nints;
    slot slots[]; /* by step; those of leaves are never used */
} evaluation;
enum { ROOM = 4096 };

static const td_expression_step *step_of(const evaluation *v, int step) {
    return &v->expression->steps[step];
}

static int operand_of(const evaluation *v, int step, int k) {
    return td_expression_operand(v->expression, step, k);
}

static bool is_leaf(const evaluation *v, int step) {
    return step < v->expression->nleaves;
}

static td_value value_of(const evaluation *v, int step) {
    const td_expression_step *s = step_of(v, step);
    switch ((td_expression_type)s->type) {
    case TD_EX_CONSTANT:
        return s->constant;
    case TD_EX_ARGUMENT:
        return v->args[s->which];
    case TD_EX_GIVEN:
        return TD_B(v->args[s->which].kind != TD_KIND_NIL);
    case TD_EX_RESULT:
        return TD_T(v->grad->out[s->which]);
    case TD_EX_GRADIENT:
        return TD_T(v->grad->gout[s->which]);
    case TD_EX_ATTRIBUTE: /* computed */
    case TD_EX_CALL:
    case TD_EX_PICK:
    case TD_EX_LIST:
    case TD_EX_CHOOSE:
    case TD_EX_ERROR:
        break;
    }
    return v->slots[step].value;
}

/* The value of a step's k-th operand. */
static td_value operand_value(const evaluation *v, int step, int k) {
    return value_of(v, operand_of(v, step, k));
}

static td_status wrong_kind(const evaluation *v, const char *where) {
    return td_fail(TD_EINTERNAL, "%s: a value in its expression is of a kind that %s doesn't take",
                   v->op->name, where);
}

/* ---- ownership ---- */

static void drop(evaluation *v, int step) {
    td_value *value = &v->slots[step].value;
    v->slots[step].owned = false;
    if (value->kind == TD_KIND_TENSOR) {
        td_release(value->tensor);
        return;
    }
    for (int k = 0; k < value->n; k++)
        td_release(value->tensors[k]);
    td_free((void *)value->tensors);
}

static void read_by_one(evaluation *v, int step) {
    if (!is_leaf(v, step) && --v->slots[step].readers == 0 && v->slots[step].owned)
        drop(v, step);
}

/* An uninitialised array of n tensors as a step's value; NULL: out of memory, which is said. */
static td_tensor **own_list(evaluation *v, int step, int n) {
    td_tensor **list = td_malloc(sizeof *list * (size_t)(n ? n : 1));
    if (!list) {
        td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    v->slots[step].value = TD_TENSORS(n, list);
    v->slots[step].owned = true;
    return list;
}

/* Another step's value as this one's. */
static td_status share(evaluation *v, int step, td_value value) {
    v->slots[step].value = value;
    if (value.kind == TD_KIND_TENSOR) {
        td_retain(value.tensor);
        v->slots[step].owned = true;
    } else if (value.kind == TD_KIND_TENSORS) {
        td_tensor **list = own_list(v, step, value.n);
        if (!list)
            return TD_ENOMEM;
        for (int k = 0; k < value.n; k++)
            list[k] = td_retain(value.tensors[k]);
    }
    return TD_OK;
}

/* ---- numbers ---- */

static bool compare(td_sign sign, td_value a, td_value b) {
    bool ints = a.kind == TD_KIND_INT && b.kind == TD_KIND_INT;
    double x = td_arg_double(a), y = td_arg_double(b);
    bool less = ints ? a.i < b.i : x < y, more = ints ? a.i > b.i : x > y;
    bool same = ints ? a.i == b.i : x == y;
    return (less && (sign == TD_SIGN_LT || sign == TD_SIGN_LE)) ||
           (more && (sign == TD_SIGN_GT || sign == TD_SIGN_GE)) ||
           (same && (sign == TD_SIGN_LE || sign == TD_SIGN_GE));
}

static td_value on_ints(td_sign sign, int64_t a, int64_t b) {
    uint64_t x = (uint64_t)a, y = (uint64_t)b; /* overflow wraps */
    return TD_I((int64_t)(sign == TD_SIGN_ADD   ? x + y
                          : sign == TD_SIGN_SUB ? x - y
                          : sign == TD_SIGN_MUL ? x * y
                                                : 0 - x));
}

static td_value on_floats(td_sign sign, double a, double b) {
    return TD_F(sign == TD_SIGN_ADD   ? a + b
                : sign == TD_SIGN_SUB ? a - b
                : sign == TD_SIGN_MUL ? a * b
                : sign == TD_SIGN_DIV ? a / b
                : sign == TD_SIGN_POW ? pow(a, b)
                                      : -a);
}

static bool is_number(td_value v) {
    return v.kind == TD_KIND_INT || v.kind == TD_KIND_FLOAT;
}

static td_status on_the_spot(evaluation *v, int step) {
    td_sign sign = (td_sign)step_of(v, step)->sign;
    td_value a = operand_value(v, step, 0), b = a;
    if (sign != TD_SIGN_NEG)
        b = operand_value(v, step, 1);
    if (sign == TD_SIGN_EQ || sign == TD_SIGN_NE) {
        v->slots[step].value = TD_B(td_value_equal(a, b) == (sign == TD_SIGN_EQ));
        return TD_OK;
    }
    if (!is_number(a) || !is_number(b))
        return wrong_kind(v, "arithmetic");
    if (sign > TD_SIGN_NE)
        v->slots[step].value = TD_B(compare(sign, a, b));
    else if (a.kind == TD_KIND_INT && b.kind == TD_KIND_INT && sign != TD_SIGN_DIV &&
             sign != TD_SIGN_POW)
        v->slots[step].value = on_ints(sign, a.i, b.i);
    else
        v->slots[step].value = on_floats(sign, td_arg_double(a), td_arg_double(b));
    return TD_OK;
}

/* ---- shapes ---- */

static td_status read_attribute(evaluation *v, int step) {
    const td_expression_step *s = step_of(v, step), *of = step_of(v, operand_of(v, step, 0));
    const td_tensor *x = td_arg_tensor(operand_value(v, step, 0));
    bool noted = v->grad && of->type == TD_EX_ARGUMENT; /* the node knows, though x is not saved */
    int ndim = x ? x->ndim : 0, dim;
    const int64_t *sizes = x ? x->sizes : NULL;
    td_value *out = &v->slots[step].value;
    int64_t numel = 1;
    if (noted)
        sizes = td_grad_shape(v->grad, of->which, &ndim);
    if (!noted && !x)
        return wrong_kind(v, "an attribute");
    td_dtype dtype = noted ? td_grad_dtype(v->grad, of->which) : (td_dtype)x->dtype;
    switch ((td_attribute)s->which) {
    case TD_ATTRIBUTE_SHAPE: /* a copy: x may go before its shape is read */
        if (ndim)
            memcpy(v->ints + v->nints, sizes, sizeof(int64_t) * (size_t)ndim);
        *out = TD_INTS(ndim, v->ints + v->nints);
        v->nints += ndim;
        break;
    case TD_ATTRIBUTE_NDIM:
        *out = TD_I(ndim);
        break;
    case TD_ATTRIBUTE_NUMEL:
        for (int d = 0; d < ndim; d++)
            numel *= sizes[d];
        *out = TD_I(numel);
        break;
    case TD_ATTRIBUTE_SIZE: {
        td_status status = td_wrap_dim(operand_value(v, step, 1).i, ndim, &dim);
        if (status)
            return status;
        *out = TD_I(ndim ? sizes[dim] : 1);
        break;
    }
    case TD_ATTRIBUTE_DTYPE: /* that of its integers is not what the expression means */
        if (x && x->layout == TD_QUANTIZED)
            return td_fail(TD_EDTYPE, "not for quantized tensors: give x:dequantize() instead");
        *out = TD_DTYPE(dtype);
        break;
    case TD_ATTRIBUTE_FLOATING:
        *out = TD_B(td_dtype_is_float(dtype));
        break;
    case TD_ATTRIBUTE_CONTIGUOUS:
        *out = TD_B(x->contiguous);
        break;
    case TD_ATTRIBUTE_DEVICE:
        *out = TD_DEVICE(td_tensor_device(x));
        break;
    }
    return TD_OK;
}

static td_status make_list(evaluation *v, int step) {
    int n = step_of(v, step)->noperands;
    bool ints = true, all = true;
    for (int k = 0; k < n; k++) {
        td_value entry = operand_value(v, step, k);
        ints = ints && entry.kind == TD_KIND_INT;
        all = all && entry.kind == TD_KIND_TENSOR;
    }
    if (!ints && !all)
        return wrong_kind(v, "a list");
    if (ints) {
        for (int k = 0; k < n; k++)
            v->ints[v->nints + k] = operand_value(v, step, k).i;
        v->slots[step].value = TD_INTS(n, v->ints + v->nints);
        v->nints += n;
        return TD_OK;
    }
    td_tensor **list = own_list(v, step, n);
    uint16_t from_one = 0;
    for (int k = 0; k < n && list; k++) {
        td_value entry = operand_value(v, step, k);
        list[k] = td_retain(entry.tensor);
        from_one |= (uint16_t)(k < TD_MAX_DIMS ? (entry.from_one & 1) << k : 0);
    }
    v->slots[step].value.from_one = from_one;
    return list ? TD_OK : TD_ENOMEM;
}

/* What stands in an error for a value. */
static const char *show(td_value value, char *room, size_t size) {
    if (value.kind == TD_KIND_STRING)
        return value.string;
    if (value.kind == TD_KIND_INTS)
        return td_shape_text(value.n, value.ints, room, size);
    if (value.kind == TD_KIND_FLOAT)
        td_number_print(room, size, "%g", value.f);
    else
        snprintf(room, size, "%lld", (long long)value.i);
    return room;
}

/* Its text, with values in the places of %. */
static td_status raise_error(const evaluation *v, int step) {
    char text[512], room[TD_SHAPE_TEXT];
    size_t n = 0;
    int next = 1;
    for (const char *p = operand_value(v, step, 0).string; *p && n + 1 < sizeof text; p++) {
        if (*p != '%') {
            text[n++] = *p;
            continue;
        }
        const char *c = show(operand_value(v, step, next++), room, sizeof room);
        for (; *c && n + 1 < sizeof text; c++)
            text[n++] = *c;
    }
    text[n] = 0;
    return td_fail(TD_EVALUE, "%s", text);
}

/* ---- calls ---- */

/* A value as a parameter takes it; `room` holds a list that is made of one number. */
static bool convert(const td_param *p, td_value v, int64_t *room, td_value *out) {
    *out = v;
    if (v.kind == TD_KIND_INT && p->type == TD_PARAM_FLOAT) {
        *out = TD_F((double)v.i);
    } else if (v.kind == TD_KIND_INT && !p->alone &&
               (p->type == TD_PARAM_INTS || p->type == TD_PARAM_DIMS)) {
        int n = p->length == 2 ? 2 : 1;
        room[0] = room[1] = v.i;
        *out = TD_INTS(n, room);
    }
    return td_param_kinds(p) >> v.kind & 1;
}

/* The references are taken also on failure. */
static td_status take_several(evaluation *v, int step, int n, td_tensor *const *out) {
    td_tensor **list = own_list(v, step, n);
    if (list)
        memcpy(list, out, sizeof *list * (size_t)n);
    for (int k = 0; k < n && !list; k++)
        td_release(out[k]);
    return list ? TD_OK : TD_ENOMEM;
}

static td_status take_results(evaluation *v, int step, td_call *call) {
    const td_op *op = call->op;
    switch ((td_result_type)op->result_type) {
    case TD_RESULT_TENSOR:
        if (op->nresults > 1)
            return take_several(v, step, op->nresults, call->out);
        v->slots[step].value = td_tensor_or_nil(call->out[0]);
        v->slots[step].owned = call->out[0] != NULL;
        return TD_OK;
    case TD_RESULT_TENSORS:
        v->slots[step].value = TD_TENSORS(call->nlist, call->list);
        v->slots[step].owned = true;
        return TD_OK;
    case TD_RESULT_NUMBER:
    case TD_RESULT_BOOL:
    case TD_RESULT_NOTHING:
        v->slots[step].value = call->result;
    }
    return TD_OK;
}

static td_status call_operator(evaluation *v, int step) {
    const td_expression_step *s = step_of(v, step);
    td_value args[TD_MAX_PARAMS];
    int64_t room[TD_MAX_PARAMS][2];
    bool tensors = false;
    for (int k = 0; k < s->noperands; k++)
        tensors = tensors || operand_value(v, step, k).kind == TD_KIND_TENSOR;
    if (s->sign && !tensors)
        return on_the_spot(v, step);
    for (int k = 0; k < s->noperands; k++)
        if (!convert(&s->op->params[k], operand_value(v, step, k), room[k], &args[k]))
            return wrong_kind(v, s->op->name);
    td_call call = {.op = s->op, .args = args};
    td_status status = td_op_call(&call);
    return status ? status : take_results(v, step, &call);
}

/* ---- the two passes ---- */

static td_status evaluate(evaluation *v, int step) {
    const td_expression_step *s = step_of(v, step);
    v->slots[step].done = true;
    switch ((td_expression_type)s->type) {
    case TD_EX_ATTRIBUTE:
        return read_attribute(v, step);
    case TD_EX_CALL:
        return call_operator(v, step);
    case TD_EX_PICK:
        return share(v, step, td_tensor_or_nil(operand_value(v, step, 0).tensors[s->which]));
    case TD_EX_LIST:
        return make_list(v, step);
    case TD_EX_CHOOSE:
        return share(v, step, value_of(v, v->slots[step].chosen));
    case TD_EX_ERROR:
        return raise_error(v, step);
    case TD_EX_CONSTANT: /* leaves */
    case TD_EX_ARGUMENT:
    case TD_EX_GIVEN:
    case TD_EX_RESULT:
    case TD_EX_GRADIENT:
        break;
    }
    return TD_OK;
}

static td_status decide(evaluation *v, int step);

/* Compute a step on which a condition depends; these call no operators and nest a few deep. */
static td_status force(evaluation *v, int step) {
    td_status status = TD_OK;
    if (is_leaf(v, step) || v->slots[step].done)
        return TD_OK;
    if (step_of(v, step)->type == TD_EX_CHOOSE) {
        status = decide(v, step);
        if (status == TD_OK)
            status = force(v, v->slots[step].chosen);
    } else {
        for (int k = 0; k < step_of(v, step)->noperands && status == TD_OK; k++)
            status = force(v, operand_of(v, step, k));
    }
    return status ? status : evaluate(v, step);
}

static td_status decide(evaluation *v, int step) {
    td_status status = force(v, operand_of(v, step, 0));
    td_value condition = operand_value(v, step, 0);
    if (status)
        return status;
    if (condition.kind != TD_KIND_BOOL)
        return wrong_kind(v, "a condition");
    v->slots[step].chosen = (uint16_t)operand_of(v, step, condition.b ? 1 : 2);
    return TD_OK;
}

static void want(evaluation *v, int step) {
    if (!is_leaf(v, step))
        v->slots[step].readers++;
}

/* Count the readers of every step behind those that are wanted. */
static td_status count_readers(evaluation *v) {
    for (int k = v->expression->nsteps - 1; k >= v->expression->nleaves; k--) {
        const td_expression_step *s = step_of(v, k);
        if (!v->slots[k].readers)
            continue;
        if (s->type == TD_EX_CHOOSE) {
            td_status status = decide(v, k);
            if (status)
                return status;
            want(v, v->slots[k].chosen);
            continue;
        }
        for (int j = 0; j < s->noperands; j++)
            want(v, operand_of(v, k, j));
    }
    return TD_OK;
}

static td_status compute(evaluation *v) {
    for (int k = v->expression->nleaves; k < v->expression->nsteps; k++) {
        const td_expression_step *s = step_of(v, k);
        if (!v->slots[k].readers)
            continue;
        td_status status = v->slots[k].done ? TD_OK : evaluate(v, k);
        if (status)
            return status;
        if (s->type == TD_EX_CHOOSE) {
            read_by_one(v, v->slots[k].chosen);
            continue;
        }
        for (int j = 0; j < s->noperands; j++)
            read_by_one(v, operand_of(v, k, j));
    }
    return TD_OK;
}

/* In `room`, of ROOM bytes, if that is enough; NULL: out of memory, which is said. */
static evaluation *begin(void *room, const td_op *op, const td_value *args, const td_grad *grad) {
    const td_expression *e = grad ? op->derivative : op->composite;
    size_t slots = sizeof(evaluation) + sizeof(slot) * (size_t)e->nsteps;
    size_t bytes = slots + sizeof(int64_t) * (size_t)e->nints;
    evaluation *v = TD_LIKELY(bytes <= ROOM) ? room : td_malloc(bytes);
    if (!v) {
        td_fail(TD_ENOMEM, "out of memory");
        return NULL;
    }
    *v = (evaluation){op, e, args, grad, (int64_t *)((char *)v + slots), 0};
    for (int k = e->nleaves; k < e->nsteps; k++) {
        v->slots[k].readers = v->slots[k].chosen = 0;
        v->slots[k].done = v->slots[k].owned = false;
    }
    return v;
}

static void end(evaluation *v, const void *room) {
    for (int k = v->expression->nleaves; k < v->expression->nsteps; k++)
        if (v->slots[k].owned)
            drop(v, k);
    if (v != room)
        td_free(v);
}

/* ---- composites ---- */

/* A new reference to the tensor that a root has come to: for the last of its roots the one that the
 * step owns. */
static td_tensor *take_tensor(evaluation *v, int step) {
    td_tensor *x = value_of(v, step).tensor;
    if (is_leaf(v, step) || !v->slots[step].owned || --v->slots[step].readers > 0)
        return td_retain(x);
    v->slots[step].owned = false;
    return x;
}

static td_status deliver_list(evaluation *v, int step, td_call *call) {
    td_value value = value_of(v, step);
    call->list = td_malloc(sizeof *call->list * (size_t)(value.n ? value.n : 1));
    if (!call->list)
        return td_fail(TD_ENOMEM, "out of memory");
    for (int k = 0; k < value.n; k++)
        call->list[k] = td_retain(value.tensors[k]);
    call->nlist = value.n;
    return TD_OK;
}

static td_status deliver(evaluation *v, const td_expression_root *root, td_call *call) {
    td_value value = value_of(v, root->step);
    switch ((td_result_type)v->op->result_type) {
    case TD_RESULT_TENSOR:
        if (value.kind != TD_KIND_TENSOR)
            return wrong_kind(v, "a result");
        call->out[root->slot] = take_tensor(v, root->step);
        return TD_OK;
    case TD_RESULT_TENSORS:
        return value.kind == TD_KIND_TENSORS ? deliver_list(v, root->step, call)
                                             : wrong_kind(v, "a result");
    case TD_RESULT_NUMBER:
    case TD_RESULT_BOOL:
    case TD_RESULT_NOTHING:
        call->result = value;
    }
    return TD_OK;
}

td_status td_expression_run(td_call *call) {
    _Alignas(evaluation) char room[ROOM];
    evaluation *v = begin(room, call->op, call->args, NULL);
    td_status status = TD_OK;
    if (!v)
        return TD_ENOMEM;
    const td_expression *e = v->expression;
    for (int k = 0; k < e->nroots; k++)
        want(v, e->roots[k].step);
    TD_TRY(count_readers(v));
    TD_TRY(compute(v));
    for (int k = 0; k < e->nroots; k++)
        TD_TRY(deliver(v, &e->roots[k], call));
done:
    end(v, room);
    return status;
}

/* ---- gradients ---- */

static bool is_wanted(const td_grad *grad, const td_expression_root *root) {
    return td_grad_needs(grad, root->slot) && grad->gout[root->gradient];
}

static td_status hand_over(evaluation *v, const td_expression_root *root, td_tensor **in) {
    td_value value = value_of(v, root->step);
    td_tensor *sum;
    if (value.kind != TD_KIND_TENSOR)
        return wrong_kind(v, "a gradient");
    if (!in[root->slot]) {
        in[root->slot] = take_tensor(v, root->step);
        return TD_OK;
    }
    td_status status = TD_APPLY(&sum, add, TD_T(in[root->slot]), value);
    if (status)
        return status;
    td_release(in[root->slot]);
    in[root->slot] = sum;
    return TD_OK;
}

td_status td_expression_backward(td_grad *grad) {
    _Alignas(evaluation) char room[ROOM];
    evaluation *v = begin(room, grad->op, grad->args, grad);
    td_status status = TD_OK;
    if (!v)
        return TD_ENOMEM;
    const td_expression *e = v->expression;
    for (int k = 0; k < e->nroots; k++)
        if (is_wanted(grad, &e->roots[k]))
            want(v, e->roots[k].step);
    TD_TRY(count_readers(v));
    TD_TRY(compute(v));
    for (int k = 0; k < e->nroots; k++)
        if (is_wanted(grad, &e->roots[k]))
            TD_TRY(hand_over(v, &e->roots[k], grad->in));
done:
    end(v, room);
    return status;
}
