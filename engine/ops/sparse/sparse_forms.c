/* sparse_forms.c: what operators of other families do where an argument is sparse (td_op.forms).
 * They work on the parts by operators, which record themselves; what is 0 stays 0, and what would
 * make zeros something else is refused. */
#include "engine/ops/rule_helpers.h"
#include "engine/ops/sparse/sparse.h"

#include <string.h>

/* x's parts with other values (stolen), as the call's result. */
static td_status finish(td_call *call, const td_tensor *x, td_parts *parts, td_tensor *values) {
    td_release(parts->values);
    parts->values = values;
    return td_parts_join(x, parts, &call->out[0]);
}

/* ---- copies ---- */

td_status td_sparse_clone(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_parts parts;
    if (strcmp(call->args[1].string, "preserve") != 0)
        return td_fail(TD_EVALUE, "a sparse tensor has no memory format");
    td_status status = td_parts_open(x, &parts);
    if (status)
        return status;
    TD_STEP(&parts.indices, clone, TD_T(parts.indices));
    TD_STEP(&parts.values, clone, TD_T(parts.values));
    status = td_parts_join(x, &parts, &call->out[0]);
done:
    td_parts_close(&parts);
    return status;
}

td_status td_sparse_to(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor;
    td_parts parts;
    if (strcmp(a[4].string, "preserve") != 0)
        return td_fail(TD_EVALUE, "a sparse tensor has no memory format");
    bool same = (td_is_nil(a[1]) || a[1].dtype == x->dtype) &&
                (td_is_nil(a[2]) || td_device_same(a[2].device, td_tensor_device(x)));
    if (same && !a[3].b) {
        call->out[0] = td_retain(x);
        return TD_OK;
    }
    td_status status = td_parts_open(x, &parts);
    if (status)
        return status;
    TD_STEP(&parts.indices, to, TD_T(parts.indices), TD_NIL, a[2], a[3]);
    TD_STEP(&parts.values, to, TD_T(parts.values), a[1], a[2], a[3]);
    status = td_parts_join(x, &parts, &call->out[0]);
done:
    td_parts_close(&parts);
    return status;
}

/* Parts that name no place, in x's shape and its sparse dims. */
static td_status empty_parts(const td_tensor *x, td_dtype dtype, td_device device,
                             td_parts *parts) {
    const td_sparse *s = td_sparse_of(x);
    int64_t sizes[TD_MAX_DIMS + 1];
    const int64_t places[2] = {td_sparse_dims(s), 0};
    *parts = (td_parts){NULL, NULL, true};
    memcpy(sizes, s->values->sizes, sizeof(int64_t) * s->values->ndim);
    sizes[0] = 0;
    td_status status = td_tensor_empty(TD_I64, device, 2, places, &parts->indices);
    if (status == TD_OK)
        status = td_tensor_empty(dtype, device, s->values->ndim, sizes, &parts->values);
    if (status)
        td_parts_close(parts);
    return status;
}

td_status td_sparse_zeros(td_call *call) {
    const td_tensor *x = call->args[0].tensor;
    td_dtype dtype = (td_dtype)x->dtype;
    td_device device = td_tensor_device(x);
    td_parts parts;
    for (int k = 1; k < call->op->nparams; k++) {
        if (call->args[k].kind == TD_KIND_DTYPE)
            dtype = call->args[k].dtype;
        if (call->args[k].kind == TD_KIND_DEVICE)
            device = call->args[k].device;
        if (call->args[k].kind == TD_KIND_STRING && strcmp(call->args[k].string, "preserve") != 0)
            return td_fail(TD_EVALUE, "a sparse tensor has no memory format");
    }
    td_status status = empty_parts(x, dtype, device, &parts);
    if (status == TD_OK)
        status = td_parts_join(x, &parts, &call->out[0]);
    td_parts_close(&parts);
    return status;
}

/* x:copy_(src): both sparse. */
td_status td_sparse_copy(td_call *call) {
    td_tensor *x = call->args[0].tensor, *src = call->args[1].tensor;
    if (x->layout != src->layout)
        return td_fail(TD_ETYPE, "a sparse and a strided tensor can't be copied into one another: "
                                 "convert one with :to_dense() or :to_sparse()");
    td_status status = td_check_same_shape(x, "x", src, "src");
    return status ? status
                  : TD_APPLY(&call->out[0], to, TD_T(src), TD_DTYPE((td_dtype)x->dtype),
                             TD_DEVICE(td_tensor_device(x)), TD_B(true));
}

/* ---- sums ---- */

static td_status fail_order(const td_call *call) {
    return td_fail(TD_ETYPE,
                   "%s(sparse, dense) would be dense: write %s(dense, sparse), or convert "
                   "with :to_dense()",
                   call->op->name, call->op->name);
}

/* b's parts in the sum's dtype, times the factor that the call gives them. */
static td_status open_scaled(const td_call *call, td_dtype dtype, td_parts *parts) {
    td_value alpha = call->args[2];
    bool minus = call->op == TD_OP(sub);
    td_status status = td_parts_open(call->args[1].tensor, parts);
    if (status)
        return status;
    if (alpha.kind == TD_KIND_FLOAT && !td_dtype_is_float(dtype)) {
        status =
            td_fail(TD_EDTYPE, "alpha of a sum of %s must be an integer", td_dtype_name(dtype));
        goto done;
    }
    TD_STEP(&parts->values, to, TD_T(parts->values), TD_DTYPE(dtype));
    if (td_arg_double(alpha) != 1)
        TD_STEP(&parts->values, mul, TD_T(parts->values), alpha);
    if (minus)
        TD_STEP(&parts->values, neg, TD_T(parts->values));
done:
    if (status)
        td_parts_close(parts);
    return status;
}

/* dense + alpha * sparse, in place where the call is. */
static td_status add_to_dense(td_call *call, td_dtype dtype) {
    td_tensor *a = call->args[0].tensor, *sum = NULL;
    td_parts parts = {NULL, NULL, false};
    td_status status = TD_OK;
    if (call->inplace) {
        td_meta meta;
        td_meta_set(&meta, dtype, a->ndim, a->sizes);
        TD_TRY(td_check_given(call, 1, &meta));
        sum = td_retain(a);
    } else {
        TD_TRY(TD_APPLY(&sum, to, TD_T(a), TD_DTYPE(dtype), TD_NIL, TD_B(true)));
    }
    TD_TRY(open_scaled(call, (td_dtype)sum->dtype, &parts));
    TD_TRY(td_parts_add_to(sum, &parts));
    call->out[0] = td_retain(sum);
done:
    td_release(sum);
    td_parts_close(&parts);
    return status;
}

/* What both have, a's first; in order where both were. */
static td_status add_sparse(td_call *call, td_dtype dtype) {
    td_tensor *a = call->args[0].tensor, *whole = NULL;
    td_parts left = {NULL, NULL, false}, right = {NULL, NULL, false}, both = {NULL, NULL, false};
    td_status status = TD_OK;
    TD_TRY(td_parts_open(a, &left));
    TD_TRY(open_scaled(call, dtype, &right));
    if (left.indices->sizes[0] != right.indices->sizes[0]) {
        status = td_fail(TD_ESHAPE, "a is sparse in %lld dims, b in %lld",
                         (long long)left.indices->sizes[0], (long long)right.indices->sizes[0]);
        goto done;
    }
    TD_STEP(&left.values, to, TD_T(left.values), TD_DTYPE(dtype));
    TD_TRY(TD_APPLY(&both.indices, cat,
                    TD_TENSORS(2, ((td_tensor *[]){left.indices, right.indices})), TD_I(1)));
    TD_TRY(TD_APPLY(&both.values, cat, TD_TENSORS(2, ((td_tensor *[]){left.values, right.values})),
                    TD_I(0)));
    TD_TRY(td_parts_join(a, &both, &whole));
    /* more elements than there are places are too many */
    if ((left.coalesced && right.coalesced) || both.values->numel > a->numel)
        status = TD_APPLY(&call->out[0], coalesce, TD_T(whole));
    else
        call->out[0] = td_retain(whole);
done:
    td_parts_close(&left);
    td_parts_close(&right);
    td_parts_close(&both);
    td_release(whole);
    return status;
}

td_status td_sparse_add(td_call *call) {
    const td_tensor *a = td_arg_tensor(call->args[0]), *b = td_arg_tensor(call->args[1]);
    char x[TD_SHAPE_TEXT], y[TD_SHAPE_TEXT];
    if (!a || !b || (td_sparse_of(a) && !td_sparse_of(b)))
        return fail_order(call);
    if (!td_tensor_same_shape(a, b))
        return td_fail(TD_ESHAPE, "shapes %s and %s must be the same where a tensor is sparse",
                       td_tensor_shape_text(a, x), td_tensor_shape_text(b, y));
    if (!td_device_same(td_tensor_device(a), td_tensor_device(b)))
        return td_fail(TD_EDEVICE, "tensors on %s and %s don't mix: move one with x:to(device)",
                       td_device_name(td_tensor_device(a)), td_device_name(td_tensor_device(b)));
    td_dtype dtype = td_promote_operands(2, call->args);
    if (call->op == TD_OP(sub) && dtype == TD_BOOL)
        return td_op_refuse_dtype(call->op, dtype);
    return td_sparse_of(a) ? add_sparse(call, dtype) : add_to_dense(call, dtype);
}

/* ---- products of elements ---- */

static bool is_single(td_value v) {
    return v.kind != TD_KIND_TENSOR || (v.tensor->layout == TD_STRIDED && v.tensor->ndim == 0);
}

td_status td_sparse_mul(td_call *call) {
    const td_value *a = call->args;
    bool first = a[0].kind == TD_KIND_TENSOR && td_sparse_of(a[0].tensor);
    td_value with = first ? a[1] : a[0];
    td_tensor *x = first ? a[0].tensor : a[1].tensor, *factor = NULL, *values = NULL;
    char s[TD_SHAPE_TEXT], y[TD_SHAPE_TEXT];
    td_parts parts;
    if (!is_single(with) && !td_tensor_same_shape(x, with.tensor))
        return td_fail(TD_ESHAPE, "shapes %s and %s must be the same where a tensor is sparse",
                       td_tensor_shape_text(x, s), td_tensor_shape_text(with.tensor, y));
    td_status status = td_parts_open(x, &parts);
    if (status)
        return status;
    if (is_single(with)) {
        TD_TRY(TD_APPLY(&values, mul, TD_T(parts.values), with));
    } else {
        TD_TRY(TD_APPLY(&factor, sparse_pick, with, TD_T(parts.indices)));
        TD_TRY(TD_APPLY(&values, mul, TD_T(parts.values), TD_T(factor)));
    }
    status = finish(call, x, &parts, values);
done:
    td_release(factor);
    td_parts_close(&parts);
    return status;
}

td_status td_sparse_div(td_call *call) {
    td_value x = call->args[0], by = call->args[1];
    td_tensor *values = NULL;
    td_parts parts;
    if (x.kind != TD_KIND_TENSOR || !td_sparse_of(x.tensor) || !is_single(by))
        return td_fail(TD_ETYPE, "a sparse tensor is divided by one number: for others make it "
                                 "dense with :to_dense()");
    td_status status = td_parts_open(x.tensor, &parts);
    if (status)
        return status;
    TD_TRY(TD_APPLY(&values, div, TD_T(parts.values), by));
    status = finish(call, x.tensor, &parts, values);
done:
    td_parts_close(&parts);
    return status;
}

/* ---- of one element ---- */

static td_status each(td_call *call, td_parts *parts) {
    td_tensor *values = NULL;
    td_value x = TD_T(parts->values);
    td_status status = td_op_apply(call->op, &values, 1, &x);
    if (status == TD_OK)
        status = finish(call, call->args[0].tensor, parts, values);
    td_parts_close(parts);
    return status;
}

td_status td_sparse_linear(td_call *call) {
    td_parts parts;
    td_status status = td_parts_open(call->args[0].tensor, &parts);
    return status ? status : each(call, &parts);
}

td_status td_sparse_each(td_call *call) {
    td_parts parts;
    td_status status = td_parts_open_coalesced(call->args[0].tensor, &parts);
    return status ? status : each(call, &parts);
}

/* ---- reductions ---- */

static td_status check_whole(const td_call *call, int dim, int keepdim) {
    if (td_is_nil(call->args[dim]) && !call->args[keepdim].b)
        return TD_OK;
    return td_fail(TD_EVALUE,
                   "of a sparse tensor is taken over all elements: for single dims make it "
                   "dense with x:to_dense()");
}

td_status td_sparse_sum(td_call *call) {
    td_parts parts;
    td_status status = check_whole(call, 1, 2);
    if (status == TD_OK)
        status = td_parts_open(call->args[0].tensor, &parts);
    if (status)
        return status;
    status = TD_APPLY(&call->out[0], sum, TD_T(parts.values), TD_NIL, TD_B(false), call->args[3]);
    td_parts_close(&parts);
    return status;
}

td_status td_sparse_norm(td_call *call) {
    const td_value *a = call->args;
    td_parts parts;
    td_status status = check_whole(call, 2, 3);
    if (status == TD_OK)
        status = td_parts_open_coalesced(a[0].tensor, &parts);
    if (status)
        return status;
    status = TD_APPLY(&call->out[0], norm, TD_T(parts.values), a[1], TD_NIL, TD_B(false), a[4]);
    td_parts_close(&parts);
    return status;
}

/* ---- products of matrices ---- */

static td_status check_product(const td_tensor *x, const td_tensor *y) {
    const td_sparse *s = td_sparse_of(x);
    char a[TD_SHAPE_TEXT], b[TD_SHAPE_TEXT];
    if (!s || td_sparse_of(y))
        return td_fail(TD_ETYPE,
                       "is for a sparse and a dense factor, in this order: make the second "
                       "dense with :to_dense()");
    if (x->dtype == TD_BOOL)
        return td_op_refuse_dtype(TD_OP(mm), TD_BOOL);
    if (x->ndim != 2 || td_sparse_dims(s) != 2)
        return td_fail(TD_ESHAPE, "needs a matrix sparse in both dims, got shape %s sparse in %d",
                       td_tensor_shape_text(x, a), td_sparse_dims(s));
    if (y->ndim < 1 || y->ndim > 2 || y->sizes[0] != x->sizes[1])
        return td_fail(TD_ESHAPE, "shapes %s and %s don't fit a product",
                       td_tensor_shape_text(x, a), td_tensor_shape_text(y, b));
    return td_check_pair(x, y);
}

/* Rows of y, times the values, added up in the rows of the result. */
static td_status multiply(const td_parts *parts, td_tensor *y, td_tensor *out) {
    td_tensor *rows = NULL, *columns = NULL, *terms = NULL, *values = NULL;
    td_status status = TD_OK;
    TD_TRY(TD_APPLY(&rows, select, TD_T(parts->indices), TD_I(0), TD_I(0)));
    TD_TRY(TD_APPLY(&columns, select, TD_T(parts->indices), TD_I(0), TD_I(1)));
    TD_TRY(TD_APPLY(&terms, index_select, TD_T(y), TD_I(0), TD_T(columns)));
    if (y->ndim == 2)
        TD_TRY(TD_APPLY(&values, unsqueeze, TD_T(parts->values), TD_I(1)));
    else
        values = td_retain(parts->values);
    TD_STEP(&terms, mul, TD_T(terms), TD_T(values));
    status = TD_APPLY_INPLACE(index_add, TD_T(out), TD_I(0), TD_T(rows), TD_T(terms));
done:
    td_release(rows);
    td_release(columns);
    td_release(terms);
    td_release(values);
    return status;
}

td_status td_sparse_product(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = call->args[1].tensor;
    td_parts parts = {NULL, NULL, false};
    td_status status = check_product(x, y);
    if (status)
        return status;
    const int64_t sizes[2] = {x->sizes[0], y->sizes[y->ndim - 1]};
    TD_TRY(td_parts_open(x, &parts));
    TD_TRY(TD_APPLY(&call->out[0], zeros, TD_INTS(y->ndim, sizes), TD_DTYPE((td_dtype)y->dtype),
                    TD_DEVICE(td_tensor_device(y))));
    status = multiply(&parts, y, call->out[0]);
done:
    td_parts_close(&parts);
    return status;
}
