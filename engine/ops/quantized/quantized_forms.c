/* quantized_forms.c: what operators of other families do where an argument is quantized. They work
 * on its integers. What puts elements elsewhere keeps their parameters; what would calculate with
 * them is refused. */
#include "engine/ops/quantized/quantized.h"

#include "engine/core/memory.h"
#include "engine/ops/rule_helpers.h"

#include <stdio.h>
#include <string.h>

/* ---- what is refused ---- */

static void add_text(char *text, size_t size, const char *name, const td_tensor *x) {
    size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s is %s", used ? ", " : "", name,
             td_tensor_dtype_name(x));
}

/* The first quantized argument has this name; `text` says the dtypes of all. */
static const char *describe(const td_call *call, char *text, size_t size) {
    const char *first = NULL;
    *text = '\0';
    for (int k = 0; k < call->op->nlooks; k++) {
        const td_value *v = &call->args[k];
        const char *name = call->op->params[k].name;
        for (int j = 0; j < (v->kind == TD_KIND_TENSORS ? v->n : 1); j++) {
            const td_tensor *x = v->kind == TD_KIND_TENSORS ? v->tensors[j] : td_arg_tensor(*v);
            if (!x || (v->kind == TD_KIND_TENSORS && j > 1))
                continue;
            add_text(text, size, name, x);
            first = first || x->layout != TD_QUANTIZED ? first : name;
        }
    }
    return first ? first : "x";
}

static td_status refuse(const td_call *call) {
    char text[200];
    const char *name = describe(call, text, sizeof text);
    return td_fail(TD_ETYPE, "not for quantized tensors (%s): give %s:dequantize() instead of %s",
                   text, name, name);
}

/* ---- moved elements ---- */

/* A tensor of x's shape that holds the place along the axis: strides of 0 but there, so that the
 * axis can be found in a view of it. */
static td_status open_probe(const td_tensor *x, int axis, td_tensor **out) {
    int64_t strides[TD_MAX_DIMS] = {0};
    td_tensor *places = NULL;
    strides[axis] = 1;
    td_status status =
        TD_APPLY(&places, arange, TD_I(0), TD_I(x->sizes[axis]), TD_I(1), TD_DTYPE(TD_I64));
    if (status == TD_OK)
        status = td_tensor_view(places, x->ndim, x->sizes, strides, 0, out);
    td_release(places);
    return status;
}

/* The dim of a view of the probe that goes along the axis: -1: none; -2: that can't be said. */
static int find_axis(const td_tensor *view, const td_tensor *probe) {
    int axis = -1;
    if (view->storage != probe->storage)
        return -2;
    for (int d = 0; d < view->ndim; d++)
        if (view->sizes[d] > 1 && view->strides[d] != 0) {
            if (axis >= 0)
                return -2;
            axis = d;
        }
    return axis;
}

/* Integers with the parameters of the places that `view` shows. */
static td_status wrap_channels(const td_tensor *x, td_tensor *ints, const td_tensor *view,
                               const td_tensor *probe, td_tensor **out) {
    const td_quantized *q = td_quantized_of(x);
    int axis = find_axis(view, probe);
    td_tensor *scales = NULL, *points = NULL;
    double scale = 1;
    int64_t point = 0;
    td_status status = TD_OK;
    if (axis == -2)
        return td_fail(TD_EVALUE,
                       "the axis of a tensor quantized by channel (dim %d) can't follow: give "
                       "x:dequantize() instead of x",
                       q->axis + 1);
    int64_t first = view->numel ? *(const int64_t *)view->data : 0;
    int64_t n = axis < 0 ? 1 : view->sizes[axis], step = axis < 0 ? 1 : view->strides[axis];
    if (view->numel == 0 || q->scales->numel == 0)
        return td_quantized_new(ints, 1, 0, out);
    TD_TRY(TD_APPLY(&scales, slice, TD_T(q->scales), TD_I(0), TD_I(first),
                    TD_I(first + (n - 1) * step + 1), TD_I(step)));
    TD_TRY(TD_APPLY(&points, slice, TD_T(q->zero_points), TD_I(0), TD_I(first),
                    TD_I(first + (n - 1) * step + 1), TD_I(step)));
    if (axis >= 0) {
        TD_STEP(&scales, contiguous, TD_T(scales));
        TD_STEP(&points, contiguous, TD_T(points));
        status = td_quantized_new_by_channel(ints, scales, points, axis, out);
        goto done;
    }
    if (td_has_elements(x)) {
        TD_TRY(td_tensor_item(scales, &scale));
        TD_TRY(td_tensor_item_int(points, &point));
    }
    status = td_quantized_new(ints, scale, point, out);
done:
    td_release(scales);
    td_release(points);
    return status;
}

/* The call with another tensor in the place of its first. */
static td_status call_with(const td_call *call, td_tensor *first, td_call *made) {
    td_value args[TD_MAX_PARAMS];
    memcpy(args, call->args, sizeof *args * call->op->nparams);
    args[0] = TD_T(first);
    *made = (td_call){.op = call->op, .args = args};
    td_status status = td_op_call(made);
    made->args = NULL;
    return status;
}

td_status td_quantized_move(td_call *call) {
    td_tensor *x = td_arg_tensor(call->args[0]), *probe = NULL;
    td_quantized *q = x ? td_quantized_of(x) : NULL;
    td_call moved = {.op = NULL}, shown = {.op = NULL};
    if (!q || call->ngiven || call->op->result_type != TD_RESULT_TENSOR)
        return refuse(call);
    td_status status = TD_OK;
    TD_TRY(call_with(call, q->ints, &moved));
    if (!q->scales) {
        status = td_quantized_new(moved.out[0], q->scale, q->zero_point, &call->out[0]);
        goto done;
    }
    TD_TRY(open_probe(x, q->axis, &probe));
    TD_TRY(call_with(call, probe, &shown));
    status = wrap_channels(x, moved.out[0], shown.out[0], probe, &call->out[0]);
done:
    if (moved.op)
        td_call_drop(&moved);
    if (shown.op)
        td_call_drop(&shown);
    td_release(probe);
    return status;
}

td_status td_quantized_composite(td_call *call) {
    return call->ngiven ? refuse(call) : call->op->run(call);
}

td_status td_quantized_otherwise(td_call *call) {
    if (call->op->flags & TD_OP_VIEW)
        return td_quantized_move(call);
    return call->op->composite ? td_quantized_composite(call) : refuse(call);
}

/* ---- copies ---- */

/* Are the elements of two tensors the same? False where they can't be seen. */
static bool same_elements(td_tensor *x, td_tensor *y) {
    td_tensor *a = NULL, *b = NULL;
    td_status status = TD_OK;
    bool same = false;
    if (x == y)
        return true;
    if (!td_has_elements(x) || !td_has_elements(y))
        return false;
    TD_TRY(TD_APPLY(&a, to, TD_T(x), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
    TD_TRY(TD_APPLY(&b, to, TD_T(y), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
    same = !memcmp(a->data, b->data, (size_t)a->numel * td_tensor_itemsize(a));
done:
    td_release(a);
    td_release(b);
    return status == TD_OK && same;
}

bool td_quantized_agree(const td_tensor *a, const td_tensor *b) {
    const td_quantized *p = td_quantized_of(a), *q = td_quantized_of(b);
    if (!p || !q || a->dtype != b->dtype || !p->scales != !q->scales)
        return false;
    if (!p->scales)
        return p->scale == q->scale && p->zero_point == q->zero_point;
    if (p->axis != q->axis || p->scales->numel != q->scales->numel)
        return false;
    return same_elements(p->scales, q->scales) && same_elements(p->zero_points, q->zero_points);
}

td_status td_quantized_clone(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_call copied = {.op = NULL};
    td_status status = call_with(call, td_quantized_of(x)->ints, &copied);
    if (status == TD_OK)
        status = td_quantized_like(x, copied.out[0], &call->out[0]);
    td_call_drop(&copied);
    return status;
}

/* To another device; floats are dequantize's. */
td_status td_quantized_to(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *ints = NULL, *scales = NULL, *points = NULL;
    td_quantized *q = td_quantized_of(x);
    td_status status = TD_OK;
    if (!q || !td_is_nil(a[1]))
        return td_fail(TD_ETYPE,
                       "x is %s, which has no other dtype%s%s: x:dequantize() gives float32, "
                       "x:int_repr() the integers",
                       td_tensor_dtype_name(x), td_is_nil(a[1]) ? "" : " such as ",
                       td_is_nil(a[1]) ? "" : td_dtype_name(a[1].dtype));
    if ((td_is_nil(a[2]) || td_device_same(a[2].device, td_tensor_device(x))) && !a[3].b) {
        call->out[0] = td_retain(x);
        return TD_OK;
    }
    TD_TRY(TD_APPLY(&ints, to, TD_T(q->ints), TD_NIL, a[2], a[3], a[4], a[5]));
    if (!q->scales) {
        status = td_quantized_new(ints, q->scale, q->zero_point, &call->out[0]);
        goto done;
    }
    TD_TRY(TD_APPLY(&scales, to, TD_T(q->scales), TD_NIL, a[2]));
    TD_TRY(TD_APPLY(&points, to, TD_T(q->zero_points), TD_NIL, a[2]));
    status = td_quantized_new_by_channel(ints, scales, points, q->axis, &call->out[0]);
done:
    td_release(ints);
    td_release(scales);
    td_release(points);
    return status;
}

/* May x have the parameters of src? Not where other tensors read its integers by its own. */
static bool may_take(const td_tensor *x, const td_tensor *src) {
    const td_storage *storage = td_quantized_of(x)->ints->storage;
    return x->dtype == src->dtype && td_tensor_same_shape(x, src) &&
           atomic_load_explicit(&storage->refs, memory_order_acquire) == 1;
}

/* The parameters of src, from its device to x's. */
static td_status open_parameters(const td_tensor *x, const td_quantized *src, td_tensor **scales,
                                 td_tensor **points) {
    td_value where = TD_DEVICE(td_tensor_device(x));
    td_status status = TD_OK;
    if (!src->scales)
        return TD_OK;
    TD_TRY(TD_APPLY(scales, to, TD_T(src->scales), TD_NIL, where));
    TD_TRY(TD_APPLY(points, to, TD_T(src->zero_points), TD_NIL, where));
done:
    return status;
}

/* scales and points: as open_parameters gave them; they and those there were change places. */
static void take_parameters(td_quantized *to, const td_quantized *from, td_tensor **scales,
                            td_tensor **points) {
    td_tensor *old_scales = to->scales, *old_points = to->zero_points;
    to->scales = *scales;
    to->zero_points = *points;
    to->scale = from->scale;
    to->zero_point = from->zero_point;
    to->axis = from->axis;
    *scales = old_scales;
    *points = old_points;
}

/* x:copy_(src) into the integers of x: floats are quantized with x's parameters; of another
 * quantized tensor it gets the parameters too, unless it is a view or has some. */
td_status td_quantized_copy(td_call *call) {
    td_tensor *x = call->args[0].tensor, *src = call->args[1].tensor, *ints = NULL, *wide = NULL;
    td_tensor *scales = NULL, *points = NULL;
    td_quantized *q = td_quantized_of(x), *p = td_quantized_of(src);
    td_status status = TD_OK;
    if (!q)
        return refuse(call);
    bool agree = p && td_quantized_agree(x, src);
    if (p && !agree && !may_take(x, src))
        return td_fail(TD_EVALUE,
                       "x is %s, src is %s with other parameters, and x is a view, has views or "
                       "is of another shape: give src:dequantize() to round it anew",
                       td_tensor_dtype_name(x), td_tensor_dtype_name(src));
    if (p) {
        if (!agree)
            TD_TRY(open_parameters(x, p, &scales, &points));
        TD_TRY(TD_APPLY_INPLACE(copy_, TD_T(q->ints), TD_T(p->ints)));
        if (!agree)
            take_parameters(q, p, &scales, &points);
    } else {
        TD_TRY(TD_APPLY(&wide, expand, TD_T(src), TD_INTS(x->ndim, x->sizes)));
        TD_TRY(td_quantize_ints_as(wide, x, &ints));
        TD_TRY(TD_APPLY_INPLACE(copy_, TD_T(q->ints), TD_T(ints)));
    }
    td_tensor_bump_version(x);
    call->out[0] = td_retain(x);
done:
    td_release(ints);
    td_release(wide);
    td_release(scales);
    td_release(points);
    return status;
}

/* ---- several tensors ---- */

/* The integers of each tensor with the parameters of the first: others are rounded anew. */
static td_status gather_ints(td_value list, td_tensor **ints) {
    const td_tensor *first = list.tensors[0];
    for (int k = 0; k < list.n; k++) {
        td_tensor *x = list.tensors[k], *floats = NULL;
        td_quantized *q = td_quantized_of(x);
        if (td_quantized_agree(x, first)) {
            ints[k] = td_retain(q->ints);
            continue;
        }
        td_status status = TD_APPLY(&floats, dequantize, TD_T(x));
        if (status == TD_OK)
            status = td_quantize_ints_as(floats, first, &ints[k]);
        td_release(floats);
        if (status)
            return status;
    }
    return TD_OK;
}

static bool can_join(td_value list, int dim) {
    for (int k = 0; k < list.n; k++) {
        const td_quantized *q = list.tensors[k] ? td_quantized_of(list.tensors[k]) : NULL;
        if (!q || list.tensors[k]->dtype != list.tensors[0]->dtype)
            return false;
        if (q->scales && (q->axis == dim || !td_quantized_agree(list.tensors[k], list.tensors[0])))
            return false;
    }
    return true;
}

td_status td_quantized_cat(td_call *call) {
    td_value list = call->args[0];
    td_tensor *made = NULL, **ints = NULL;
    int dim = -1;
    td_status status = list.n ? td_wrap_dim(call->args[1].i, list.tensors[0]->ndim, &dim) : TD_OK;
    if (status || call->ngiven || !can_join(list, dim))
        return status ? status : refuse(call);
    if (!(ints = td_calloc((size_t)list.n, sizeof *ints)))
        return td_fail(TD_ENOMEM, "out of memory for a list of tensors");
    TD_TRY(gather_ints(list, ints));
    TD_TRY(TD_APPLY(&made, cat, TD_TENSORS(list.n, ints), TD_I(dim)));
    status = td_quantized_like(list.tensors[0], made, &call->out[0]);
done:
    for (int k = 0; k < list.n; k++)
        td_release(ints[k]);
    td_free(ints);
    td_release(made);
    return status;
}

/* Equal are quantized tensors of the same dtype, parameters and integers. */
td_status td_quantized_equal(td_call *call) {
    td_tensor *a = call->args[0].tensor, *b = call->args[1].tensor;
    if (a->layout != b->layout)
        return refuse(call);
    if (!td_quantized_agree(a, b)) {
        call->result = TD_B(false);
        return TD_OK;
    }
    td_value args[TD_MAX_PARAMS];
    memcpy(args, call->args, sizeof *args * call->op->nparams);
    args[0] = TD_T(td_quantized_of(a)->ints);
    args[1] = TD_T(td_quantized_of(b)->ints);
    td_call ints = {.op = call->op, .args = args};
    td_status status = td_op_call(&ints);
    call->result = ints.result;
    return status;
}
