/* index.c: indexing with tensors and masks.
 *
 * advanced_index and td_index_put bring their indices into one form (masks become places, tensors
 * are broadcast and int64) out of other operators; `index` and `index_write_` know that form alone.
 * The other operators on whole rows (index_select, take, embedding, index_add) are one of the two.
 */
#include "engine/ops/index/index.h"
#include "engine/ops/element_checks.h"

#include "engine/ops/make/copy.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#include <math.h>
#include <string.h>

#define TD_FAMILY "index"

/* ---- indices in one form ---- */

typedef struct index_list {
    int n;
    uint16_t from_one;               /* as td_value's */
    td_tensor *tensors[TD_MAX_DIMS]; /* owned; NULL: all of that dim */
} index_list;

static td_value list_value(const index_list *list) {
    td_value v = TD_TENSORS(list->n, list->tensors);
    v.from_one = list->from_one;
    return v;
}

static void release_list(index_list *list) {
    for (int k = 0; k < list->n; k++)
        td_release(list->tensors[k]);
    list->n = 0;
}

/* A mask over ndim dims becomes as many lists of places. */
static td_status add_mask(const td_tensor *x, td_tensor *mask, index_list *list) {
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    td_tensor *places = NULL, *column = NULL;
    td_status status = TD_OK;
    int first = list->n;
    bool fits = first + mask->ndim <= x->ndim;
    for (int d = 0; fits && d < mask->ndim; d++)
        fits = mask->sizes[d] == x->sizes[first + d];
    if (!fits)
        return td_fail(TD_EINDEX, "a mask of shape %s doesn't fit shape %s from dim %d on",
                       td_tensor_shape_text(mask, have), td_tensor_shape_text(x, want), first + 1);
    TD_TRY(TD_APPLY(&places, nonzero, TD_T(mask)));
    for (int d = 0; d < mask->ndim; d++) {
        TD_TRY(TD_APPLY(&column, select, TD_T(places), TD_I(1), TD_I(d)));
        status = td_contiguous(column, &list->tensors[list->n]);
        td_release(column);
        if (status)
            goto done;
        list->n++;
    }
done:
    td_release(places);
    return status;
}

static td_status add_index(const td_tensor *x, td_tensor *index, int from_one, index_list *list) {
    if (index && index->dtype == TD_BOOL)
        return add_mask(x, index, list);
    if (list->n >= x->ndim)
        return td_fail(TD_EINDEX, "too many indices for a tensor of %d dims", x->ndim);
    if (index && td_dtype_is_float((td_dtype)index->dtype))
        return td_fail(TD_EDTYPE, "an index tensor holds integers or bool, got %s",
                       td_dtype_name((td_dtype)index->dtype));
    td_tensor **place = &list->tensors[list->n];
    *place = NULL;
    td_status status = index ? td_contiguous_as(index, TD_I64, place) : TD_OK;
    if (status == TD_OK && index)
        status = td_take_apart(x, place);
    if (status == TD_OK)
        list->from_one |= (uint16_t)(from_one << list->n++);
    return status;
}

/* Bring the index tensors to one shape. */
static td_status broadcast_list(index_list *list) {
    int64_t sizes[TD_MAX_DIMS];
    int ndim = 0;
    for (int k = 0; k < list->n; k++) {
        td_tensor *index = list->tensors[k];
        if (!index)
            continue;
        td_status status = td_broadcast(ndim, sizes, index->ndim, index->sizes, &ndim, sizes);
        if (status)
            return status;
    }
    for (int k = 0; k < list->n; k++) {
        td_tensor *index = list->tensors[k], *wide = NULL, *packed = NULL;
        if (!index ||
            (index->ndim == ndim && !memcmp(index->sizes, sizes, sizeof(int64_t) * (size_t)ndim)))
            continue;
        td_status status = TD_APPLY(&wide, expand, TD_T(index), TD_INTS(ndim, sizes));
        if (status == TD_OK)
            status = td_contiguous(wide, &packed);
        td_release(wide);
        if (status)
            return status;
        td_release(index);
        list->tensors[k] = packed;
    }
    return TD_OK;
}

/* x and what indexes it, with a dim of size 1 for each mask of no dims, which has that for its own:
 * true keeps it, false leaves nothing. */
typedef struct opened {
    td_tensor *x;
    td_value indices;
    int n;
    td_tensor *entries[TD_MAX_DIMS];
} opened;

static void release_opened(opened *o) {
    td_release(o->x);
    for (int k = 0; k < o->n; k++)
        td_release(o->entries[k]);
}

static td_status open_masks(td_tensor *x, td_value indices, opened *o) {
    int64_t one = 1;
    td_status status = TD_OK;
    *o = (opened){.x = td_retain(x), .indices = indices};
    for (int k = 0, dim = 0; k < indices.n && k < TD_MAX_DIMS; k++, o->n++) {
        td_tensor *index = o->entries[k] = td_retain(indices.tensors[k]);
        bool mask = index && index->dtype == TD_BOOL;
        if (mask && index->ndim == 0 && dim <= o->x->ndim) {
            TD_STEP(&o->entries[k], view, TD_T(index), TD_INTS(1, &one));
            TD_STEP(&o->x, unsqueeze, TD_T(o->x), TD_I(dim));
            o->indices.tensors = o->entries;
        }
        dim += mask && index->ndim ? index->ndim : 1;
    }
done:
    if (status) {
        o->n += o->n < TD_MAX_DIMS && o->n < indices.n; /* the one it stopped at */
        release_opened(o);
    }
    return status;
}

static td_status normalize(const td_tensor *x, td_value indices, index_list *list) {
    td_status status = TD_OK;
    *list = (index_list){.n = 0};
    for (int k = 0; k < indices.n && status == TD_OK; k++)
        status = add_index(x, indices.tensors[k], indices.from_one >> k & 1, list);
    if (status == TD_OK)
        status = broadcast_list(list);
    if (status)
        release_list(list);
    return status;
}

/* ---- index and index_write_ ---- */

static td_status run_advanced_index(td_call *call) {
    index_list list = {.n = 0};
    opened o;
    td_status status = open_masks(call->args[0].tensor, call->args[1], &o);
    if (status)
        return status;
    TD_TRY(normalize(o.x, o.indices, &list));
    TD_TRY(TD_APPLY(&call->out[0], index, TD_T(o.x), list_value(&list)));
done:
    release_list(&list);
    release_opened(&o);
    return status;
}

static td_status rule_index(const td_call *call, td_meta *out) {
    td_index_plan *plan = TD_PLAN(call, td_index_plan);
    const td_tensor *x = call->args[0].tensor;
    td_status status = td_index_plan_make(x, call->args[1], plan);
    if (status)
        return status;
    td_meta_set(out, (td_dtype)x->dtype, plan->ndim, plan->sizes);
    return TD_OK;
}

static td_status kernel_index(td_call *call) {
    td_index_plan *plan = TD_PLAN(call, td_index_plan);
    plan->out = call->out[0];
    plan->x = call->args[0].tensor;
    return TD_RUN(td_tensor_device(plan->out), index_read, plan);
}

/* Each element's gradient goes back where it was read; places read twice get the sum. */
static td_status grad_index(td_grad *grad) {
    int ndim;
    const int64_t *sizes = td_grad_shape(grad, 0, &ndim);
    td_tensor *g = grad->gout[0], *whole = NULL;
    td_status status = TD_APPLY(&whole, zeros, TD_INTS(ndim, sizes), TD_DTYPE((td_dtype)g->dtype),
                                TD_DEVICE(td_tensor_device(g)));
    if (status == TD_OK)
        status = TD_APPLY_INPLACE(index_write_, TD_T(whole), grad->args[1], TD_T(g), TD_B(true));
    if (status) {
        td_release(whole);
        return status;
    }
    grad->in[0] = whole;
    return TD_OK;
}

static bool names_masks(td_value indices) {
    for (int k = 0; k < indices.n; k++)
        if (indices.tensors[k] && indices.tensors[k]->dtype == TD_BOOL)
            return true;
    return false;
}

td_status td_index_put(td_tensor *x, td_value indices, td_tensor *values, bool accumulate) {
    index_list list = {.n = 0};
    opened o;
    td_tensor *there = NULL; /* a number's tensor may lie on the host */
    td_status status = open_masks(x, indices, &o);
    if (status)
        return status;
    if (names_masks(indices) && !td_may_look(x)) /* how many places they name is unknown */
        goto done;
    TD_TRY(normalize(o.x, o.indices, &list));
    if (values->ndim == 0)
        TD_TRY(TD_APPLY(&there, to, TD_T(values), TD_NIL, TD_DEVICE(td_tensor_device(x))));
    TD_TRY(TD_APPLY_INPLACE(index_write_, TD_T(o.x), list_value(&list),
                            TD_T(there ? there : values), TD_B(accumulate)));
done:
    td_release(there);
    release_list(&list);
    release_opened(&o);
    return status;
}

static td_status rule_index_write(const td_call *call, td_meta *out) {
    td_index_plan *plan = TD_PLAN(call, td_index_plan);
    const td_tensor *x = call->args[0].tensor, *values = call->args[2].tensor;
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    td_status status = td_index_plan_make(x, call->args[1], plan);
    if (status)
        return status;
    int lead = plan->ndim - values->ndim;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < values->ndim; d++)
        fits = values->sizes[d] == 1 || values->sizes[d] == plan->sizes[lead + d];
    if (!fits)
        return td_fail(TD_ESHAPE, "values of shape %s don't broadcast to %s, what is written",
                       td_tensor_shape_text(values, have),
                       td_shape_text(plan->ndim, plan->sizes, want, sizeof want));
    return td_rule_same(call, out);
}

/* Do all places get the same row, so that one will do? */
static bool are_one_row(const td_index_plan *plan, const td_tensor *values) {
    int lead = values->ndim - plan->nafter;
    bool one = plan->after > 1 && td_tensor_device(plan->out).type == TD_CPU;
    for (int d = 0; one && d < lead; d++)
        one = values->sizes[d] == 1;
    return one;
}

/* That row, in the dtype of what is written. */
static td_status pack_row(const td_index_plan *plan, td_tensor *values, td_tensor **packed) {
    int lead = values->ndim > plan->nafter ? values->ndim - plan->nafter : 0;
    td_tensor *row = NULL;
    td_status status = td_tensor_empty((td_dtype)plan->out->dtype, td_tensor_device(plan->out),
                                       plan->nafter, plan->after_sizes, packed);
    if (status == TD_OK)
        status = td_tensor_view(values, values->ndim - lead, values->sizes + lead,
                                values->strides + lead, 0, &row);
    if (status == TD_OK)
        status = td_copy_into(*packed, row);
    td_release(row);
    return status;
}

/* Values as a device takes them: row-major, of the plan's shape and out's dtype, apart from out. */
static td_status pack_values(td_index_plan *plan, td_tensor *values, td_tensor **packed) {
    const td_tensor *out = plan->out;
    if (values->contiguous && values->dtype == out->dtype && values->storage != out->storage &&
        values->ndim == plan->ndim &&
        td_device_same(td_tensor_device(values), td_tensor_device(out)) &&
        !memcmp(values->sizes, plan->sizes, sizeof(int64_t) * (size_t)plan->ndim)) {
        *packed = td_retain(values);
        return TD_OK;
    }
    plan->one_row = are_one_row(plan, values);
    if (plan->one_row)
        return pack_row(plan, values, packed);
    td_status status = td_tensor_empty((td_dtype)out->dtype, td_tensor_device(out), plan->ndim,
                                       plan->sizes, packed);
    return status ? status : td_copy_into(*packed, values);
}

static td_status kernel_index_write(td_call *call) {
    td_index_plan *plan = TD_PLAN(call, td_index_plan);
    const td_tensor *x = call->args[0].tensor;
    td_tensor *packed = NULL, *out = call->out[0], *written = td_retain(out);
    const bool add = call->args[3].b;
    td_status status = TD_OK;
    td_dtype dtype = (td_dtype)out->dtype;
    if (add)
        dtype = td_meeting_dtype(dtype, plan->places, plan->before * plan->places * plan->after,
                                 out->numel);
    if (dtype != (td_dtype)out->dtype) {
        td_release(written);
        written = NULL;
        TD_TRY(td_contiguous_as((td_tensor *)x, dtype, &written));
    } else if (out != x) { /* what is not written is x's */
        TD_TRY(td_copy_into(out, x));
    }
    if (written != x) /* the geometry is that of what is written */
        TD_TRY(td_index_plan_make(written, call->args[1], plan));
    plan->out = written;
    TD_TRY(pack_values(plan, call->args[2].tensor, &packed));
    plan->x = packed;
    plan->accumulate = add;
    TD_TRY(TD_RUN(td_tensor_device(out), index_write, plan));
    if (written != out)
        status = td_copy_into(out, written);
done:
    td_release(packed);
    td_release(written);
    return status;
}

static td_status grad_index_write(td_grad *grad) {
    td_tensor *g = grad->gout[0], *zero = NULL, *rest = NULL;
    td_status status = TD_OK;
    if (td_grad_needs(grad, 2))
        TD_TRY(TD_APPLY(&grad->in[2], index, TD_T(g), grad->args[1]));
    if (!td_grad_needs(grad, 0))
        return TD_OK;
    if (grad->args[3].b) {
        grad->in[0] = td_retain(g);
        return TD_OK;
    }
    TD_TRY(TD_APPLY(&rest, clone, TD_T(g)));
    TD_TRY(TD_APPLY(&zero, zeros, TD_INTS(0, NULL), TD_DTYPE((td_dtype)g->dtype),
                    TD_DEVICE(td_tensor_device(g))));
    TD_TRY(TD_APPLY_INPLACE(index_write_, TD_T(rest), grad->args[1], TD_T(zero)));
    grad->in[0] = td_retain(rest);
done:
    td_release(rest);
    td_release(zero);
    return status;
}

/* ---- on whole rows ---- */

/* The arguments x, dim, index as the entries of x[..., index, ...], of which the last, the index as
 * one row, is a new reference. `x` is the first argument, seen with one dim where it has none. */
typedef struct row_entries {
    int n, dim;
    uint16_t from_one; /* the index's */
    td_tensor *x;
    td_tensor *entries[TD_MAX_DIMS];
} row_entries;

static td_value rows_value(const row_entries *rows) {
    td_value v = TD_TENSORS(rows->n, rows->entries);
    v.from_one = (uint16_t)(rows->from_one << rows->dim);
    return v;
}

static void release_rows(row_entries *rows) {
    td_release(rows->x);
    td_release(rows->entries[rows->dim]);
}

static td_status read_rows(const td_call *call, td_tensor *x, row_entries *rows) {
    td_tensor *index = call->args[2].tensor;
    int64_t one = 1, flat = -1;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &rows->dim);
    rows->x = NULL;
    rows->from_one = call->args[2].from_one;
    if (status)
        return status;
    if (index->ndim > 1)
        return td_check_ndim(index, "index", 1);
    for (int d = 0; d <= rows->dim; d++)
        rows->entries[d] = NULL;
    rows->n = rows->dim + 1;
    TD_TRY(td_check_index(index));
    TD_TRY(TD_APPLY(&rows->entries[rows->dim], reshape, TD_T(index), TD_INTS(1, &flat)));
    if (x->ndim)
        rows->x = td_retain(x);
    else
        TD_TRY(TD_APPLY(&rows->x, view, TD_T(x), TD_INTS(1, &one)));
    return TD_OK;
done:
    release_rows(rows);
    return status;
}

static td_status run_index_select(td_call *call) {
    td_tensor *x = call->args[0].tensor, *y = NULL;
    row_entries rows;
    td_status status = read_rows(call, x, &rows);
    if (status)
        return status;
    int64_t picked = rows.entries[rows.dim]->numel;
    if (x->ndim == 0 && picked != 1) {
        status = td_fail(TD_ESHAPE, "index must name one place of a 0-dim tensor, got %lld",
                         (long long)picked);
        goto done;
    }
    TD_TRY(TD_APPLY(&y, advanced_index, TD_T(rows.x), rows_value(&rows)));
    if (x->ndim == 0)
        TD_STEP(&y, view, TD_T(y), TD_INTS(0, &picked));
    call->out[0] = td_retain(y);
done:
    td_release(y);
    release_rows(&rows);
    return status;
}

/* Out of place on a copy, in place on x itself; `how` writes. */
static td_status written(td_call *call, td_status (*how)(td_call *call, td_tensor *x)) {
    td_tensor *x = NULL;
    td_status status = TD_OK;
    if (call->inplace)
        x = td_retain(call->args[0].tensor);
    else
        status = TD_APPLY(&x, clone, call->args[0]);
    if (status == TD_OK)
        status = how(call, x);
    if (status == TD_OK)
        call->out[0] = td_retain(x);
    td_release(x);
    return status;
}

static td_status put_rows(td_call *call, td_tensor *x, td_tensor *values, bool accumulate) {
    row_entries rows;
    td_status status = read_rows(call, x, &rows);
    if (status)
        return status;
    status = td_index_put(rows.x, rows_value(&rows), values, accumulate);
    release_rows(&rows);
    return status;
}

/* source has x's shape but along the dim, where it has a row for each index. What index_copy copies
 * may have one dim where x has none, and none where x has one, when it is one element. */
static td_status check_source(const td_call *call, bool copies) {
    const td_tensor *x = call->args[0].tensor, *index = call->args[2].tensor;
    const td_tensor *source = call->args[3].tensor;
    char have[TD_SHAPE_TEXT], want[TD_SHAPE_TEXT];
    int64_t sizes[TD_MAX_DIMS];
    int dim;
    td_status status = td_wrap_dim(call->args[1].i, x->ndim, &dim);
    if (status)
        return status;
    if (source->dtype != x->dtype)
        return td_fail(TD_EDTYPE, "source must have x's dtype %s, got %s",
                       td_dtype_name((td_dtype)x->dtype), td_dtype_name((td_dtype)source->dtype));
    int ndim = x->ndim;
    if (ndim == 0 && source->ndim == 1 && copies)
        ndim = 1;
    if (x->ndim)
        memcpy(sizes, x->sizes, sizeof(int64_t) * x->ndim);
    if (ndim)
        sizes[dim] = index->numel;
    bool fits =
        source->ndim == ndim && !memcmp(source->sizes, sizes, sizeof(int64_t) * (size_t)ndim);
    fits |= copies && source->ndim == 0 && x->ndim <= 1 && index->numel == 1;
    if (ndim == 0)
        fits &= index->numel == 1;
    if (fits)
        return TD_OK;
    return td_fail(TD_ESHAPE, "source of shape %s, expected %s: a row for each of %lld indices",
                   td_tensor_shape_text(source, have),
                   td_shape_text(ndim, sizes, want, sizeof want), (long long)index->numel);
}

/* A number as a tensor of this dtype takes it: integers take the whole part. */
static td_value number_for(td_dtype dtype, td_value v) {
    return v.kind == TD_KIND_FLOAT && !td_dtype_is_float(dtype) && fabs(v.f) < 0x1p63
               ? TD_I((int64_t)v.f)
               : v;
}

static td_status add_rows(td_call *call, td_tensor *x) {
    td_tensor *source = td_retain(call->args[3].tensor);
    td_value alpha = number_for((td_dtype)x->dtype, call->args[4]);
    td_status status = check_source(call, false);
    if (status == TD_OK && td_arg_double(alpha) != 1) {
        td_tensor *scaled = NULL;
        status = TD_APPLY(&scaled, mul, TD_T(source), alpha);
        td_release(source);
        source = scaled;
    }
    if (status == TD_OK)
        status = put_rows(call, x, source, true);
    td_release(source);
    return status;
}

static td_status fill_rows(td_call *call, td_tensor *x) {
    td_value v = call->args[3];
    td_tensor *value = NULL;
    td_status status = TD_OK;
    if (v.kind == TD_KIND_TENSOR)
        return v.tensor->ndim == 0
                   ? put_rows(call, x, v.tensor, false)
                   : td_fail(TD_ESHAPE, "the value must be a number or a 0-dim tensor");
    TD_TRY(td_check_holds((td_dtype)x->dtype, v));
    if (v.kind == TD_KIND_INT)
        TD_TRY(td_tensor_scalar_int((td_dtype)x->dtype, v.i, &value));
    else
        TD_TRY(td_tensor_scalar((td_dtype)x->dtype, td_arg_double(v), &value));
    status = put_rows(call, x, value, false);
done:
    td_release(value);
    return status;
}

static td_status copy_rows(td_call *call, td_tensor *x) {
    td_status status = check_source(call, true);
    return status ? status : put_rows(call, x, call->args[3].tensor, false);
}

static td_status run_index_add(td_call *call) {
    return written(call, add_rows);
}
/* By a mask, so that the gradient of the value counts each place once, however often it is named.
 */
static td_status fill_rows_with_tensor(td_call *call, td_tensor *x) {
    const td_value *a = call->args;
    td_tensor *mask = NULL;
    int64_t line[TD_MAX_DIMS];
    int dim;
    td_status status = td_wrap_dim(a[1].i, x->ndim, &dim);
    if (status)
        return status;
    if (a[3].tensor->ndim)
        return td_fail(TD_ESHAPE, "the value must be a number or a 0-dim tensor");
    for (int d = 0; d < x->ndim; d++)
        line[d] = d == dim ? x->sizes[d] : 1;
    const int64_t size = x->ndim ? x->sizes[dim] : 1;
    TD_TRY(TD_APPLY(&mask, zeros, TD_INTS(1, &size), TD_DTYPE(TD_BOOL),
                    TD_DEVICE(td_tensor_device(x))));
    TD_TRY(TD_APPLY_INPLACE(index_fill, TD_T(mask), TD_I(0), a[2], TD_I(1)));
    TD_STEP(&mask, view, TD_T(mask), TD_INTS(x->ndim, line));
    TD_TRY(TD_APPLY_INPLACE(masked_fill, TD_T(x), TD_T(mask), a[3]));
done:
    td_release(mask);
    return status;
}

static td_status run_index_fill(td_call *call) {
    return written(call, call->args[3].kind == TD_KIND_TENSOR ? fill_rows_with_tensor : fill_rows);
}
static td_status run_index_copy(td_call *call) {
    return written(call, copy_rows);
}

/* ---- masks ---- */

static td_status check_mask(const td_tensor *mask) {
    return mask->dtype == TD_BOOL ? TD_OK
                                  : td_fail(TD_EDTYPE, "the mask must be bool, got %s",
                                            td_dtype_name((td_dtype)mask->dtype));
}

static td_status run_masked_fill(td_call *call) {
    const td_tensor *x = call->args[0].tensor;
    td_value value = call->args[2];
    td_tensor *filled = NULL;
    td_status status = check_mask(call->args[1].tensor);
    if (status)
        return status;
    if (value.kind == TD_KIND_TENSOR && value.tensor->ndim > 0)
        return td_fail(TD_ESHAPE, "the value must be a number or a 0-dim tensor");
    if (value.kind != TD_KIND_TENSOR)
        TD_TRY(td_check_holds((td_dtype)x->dtype, value));
    TD_TRY(TD_APPLY(&filled, where, call->args[1], value, call->args[0]));
    TD_TRY(TD_APPLY(&call->out[0], to, TD_T(filled), TD_DTYPE((td_dtype)x->dtype)));
done:
    td_release(filled);
    return status;
}

static td_status run_masked_select(td_call *call) {
    td_tensor *x = call->args[0].tensor, *mask = call->args[1].tensor;
    td_tensor *wide = NULL, *wide_mask = NULL;
    int64_t sizes[TD_MAX_DIMS];
    int ndim;
    td_status status = check_mask(mask);
    if (status)
        return status;
    TD_TRY(td_broadcast(x->ndim, x->sizes, mask->ndim, mask->sizes, &ndim, sizes));
    if (ndim == 0) /* a mask of no dims selects nothing to index: give it one */
        sizes[ndim++] = 1;
    TD_TRY(TD_APPLY(&wide, expand, TD_T(x), TD_INTS(ndim, sizes)));
    TD_TRY(TD_APPLY(&wide_mask, expand, TD_T(mask), TD_INTS(ndim, sizes)));
    TD_TRY(TD_APPLY(&call->out[0], advanced_index, TD_T(wide), TD_TENSORS(1, &wide_mask)));
done:
    td_release(wide);
    td_release(wide_mask);
    return status;
}

/* Counted first, which waits for the device: the shape of the result depends on it. */
static td_status run_nonzero(td_call *call) {
    td_tensor *x = call->args[0].tensor, *count = NULL, *places = NULL;
    td_device device = td_tensor_device(x);
    int64_t sizes[2] = {0, x->ndim};
    td_status status = TD_OK;
    TD_TRY(td_tensor_empty(TD_I64, device, 0, NULL, &count));
    td_nonzero_plan plan = {.out = count, .x = x};
    TD_TRY(TD_RUN(device, nonzero, &plan));
    TD_TRY(td_tensor_item_int(count, &sizes[0]));
    const int64_t columns[2] = {sizes[1], sizes[0]}, strides[2] = {1, sizes[0]};
    TD_TRY(td_tensor_empty(TD_I64, device, 2, columns, &places));
    TD_TRY(td_tensor_view(places, 2, sizes, strides, 0, &call->out[0]));
    plan.out = call->out[0];
    plan.places = true;
    if (plan.out->numel)
        status = TD_RUN(device, nonzero, &plan);
done:
    td_release(places);
    td_release(count);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(advanced_index) = {
    .schema = "(Tensor x, Tensor?[] indices) -> Tensor",
    .doc = "The elements at the places that tensors and masks name, one per dim.",
    .run = run_advanced_index,
    .forms[TD_QUANTIZED] = td_quantized_move,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_INTERNAL | TD_OP_ANY_BASE,
};
TD_OPERATOR(index) = {
    .schema = "(Tensor x, Tensor?[] indices) -> Tensor",
    .doc = "advanced_index with int64 tensors of one shape.",
    .rule = rule_index,
    .kernel = kernel_index,
    .dtypes = TD_DTYPES_ALL,
    .backward = grad_index,
    .saves = "indices",
    .flags = TD_OP_BY_ELEMENTS | TD_OP_INTERNAL | TD_OP_ANY_BASE,
};
TD_OPERATOR(index_write_) = {
    .schema = "(Tensor x, Tensor?[] indices, Tensor values, bool accumulate=false) "
              "-> Tensor",
    .doc = "Write values to the places that int64 tensors of one shape name, or add them there.",
    .rule = rule_index_write,
    .kernel = kernel_index_write,
    .dtypes = TD_DTYPES_ALL,
    .backward = grad_index_write,
    .saves = "indices",
    .flags = TD_OP_INTERNAL | TD_OP_INPLACE_ONLY | TD_OP_WRITES_SELF | TD_OP_ANY_BASE,
};
TD_OPERATOR(index_select) = {
    .schema = "(Tensor x, dim dim, index Tensor index) -> Tensor",
    .doc = "The places along a dim that index names.",
    .shapes =
        "x (...), index (n) -> (...) with n at dim | x (...), index () -> (...) with 1 at dim",
    .notes = "A copy. index has one dim; outside of x it is an error, 0 too.",
    .run = run_index_select,
    .forms[TD_QUANTIZED] = td_quantized_move,
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART | TD_OP_ANY_BASE,
};
TD_OPERATOR(index_add) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor source, *, "
              "number alpha=1) -> Tensor",
    .doc = "Add alpha * source to the places along a dim that index names.",
    .shapes = "x (...), index (n), source (...) with n at dim -> (...)",
    .takes = "any, one dtype; index integers",
    .notes = "All elements for one place are added. An index outside of x is an error, 0 too.",
    .run = run_index_add,
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART | TD_OP_ANY_BASE,
};
TD_OPERATOR(index_copy) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor source) -> Tensor",
    .doc = "Write source to the places along a dim that index names.",
    .shapes = "x (...), index (n), source (...) with n at dim -> (...)",
    .takes = "any, one dtype; index integers",
    .run = run_index_copy,
    .autocast = {[TD_CPU] = TD_AUTOCAST_PROMOTE},
    .flags = TD_OP_INPLACE | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART | TD_OP_ANY_BASE,
};
TD_OPERATOR(index_fill) = {
    .schema = "(Tensor x, dim dim, index Tensor index, Tensor|number value) -> Tensor",
    .doc = "Write one value to the places along a dim that index names.",
    .shapes = "x (...), index (n), value () -> (...)",
    .run = run_index_fill,
    .flags = TD_OP_INPLACE | TD_OP_ANY_BASE,
};
TD_OPERATOR(take) = {
    .schema = "(Tensor x, index Tensor index) -> Tensor",
    .doc = "Elements by their places in row-major order.",
    .shapes = "x (...), index (places...) -> (places...)",
    .notes = "An index outside of the dim is an error, 0 too; negative ones count from the end.",
    .formula = "advanced_index(reshape(x, -1), {index})",
    .flags = TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART | TD_OP_ANY_BASE,
};
TD_OPERATOR(masked_fill) = {
    .schema = "(Tensor x, Tensor mask, Tensor|number value) -> Tensor",
    .doc = "One value where the mask is true, x elsewhere.",
    .shapes = "x (*), mask (*), value () -> (*)",
    .notes = "The mask must be bool. In place x is not broadcast to it.",
    .run = run_masked_fill,
    .flags = TD_OP_INPLACE,
};
TD_OPERATOR(masked_select) = {
    .schema = "(Tensor x, Tensor mask) -> Tensor",
    .doc = "The elements where the mask is true, as one row.",
    .shapes = "x (*), mask (*) -> (n); n: how often mask is true",
    .notes = "The mask must be bool.",
    .run = run_masked_select,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
TD_OPERATOR(nonzero) = {
    .schema = "(Tensor x, *, bool as_tuple=false) -> index Tensor",
    .doc =
        "Places of the elements different from zero, one row of indices each; as_tuple: a list of "
        "the indices along each dim.",
    .shapes = "x (...) -> {(n)} if as_tuple | -> (n, #x); n: how many elements are not 0",
    .run = run_nonzero,
    .flags = TD_OP_BY_ELEMENTS | TD_OP_NONDIFF | TD_OP_OUT | TD_OP_OUT_EXACT | TD_OP_OUT_APART,
};
