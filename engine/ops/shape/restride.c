/* restride.c: as_strided and its gradient. The gradient is written into a stretch of memory by the
 * strides of the result, added where elements meet, and read from there by the strides of x.
 */
#include "engine/ops/index/index.h"
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"
#include "engine/ops/shape/shape.h"

#define TD_FAMILY "shape"

/* ---- the operator ---- */

static int64_t storage_offset(const td_tensor *x) {
    return ((char *)x->data - (char *)x->storage->data) / (int64_t)td_tensor_itemsize(x);
}

static td_status run_as_strided(td_call *call) {
    td_tensor *x = call->args[0].tensor;
    td_value size = call->args[1], stride = call->args[2], offset = call->args[3];
    if (size.n != stride.n || size.n > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "%d sizes and %d strides given", size.n, stride.n);
    for (int d = 0; d < size.n; d++)
        if (size.ints[d] < 0 || stride.ints[d] < 0)
            return td_fail(TD_ESHAPE, "sizes and strides must not be negative");
    if (!td_is_nil(offset) && offset.i < 0)
        return td_fail(TD_EINDEX, "storage_offset must not be negative, got %lld",
                       (long long)offset.i);
    int64_t from = td_is_nil(offset) ? 0 : offset.i - storage_offset(x);
    return TD_APPLY(&call->out[0], strided, TD_T(x), size, stride, TD_I(from),
                    TD_INTS(x->ndim, x->strides), TD_B(td_tensor_overlaps(x)));
}

/* ---- memory between two layouts ---- */

/* The last place that sizes and strides, none of them negative, reach. */
static int64_t reach(int64_t offset, int ndim, const int64_t *sizes, const int64_t *strides) {
    for (int d = 0; d < ndim; d++)
        offset += sizes[d] ? (sizes[d] - 1) * strides[d] : 0;
    return offset;
}

static td_status rule_restride(const td_call *call, td_meta *out) {
    td_value size = call->args[3];
    td_meta_set(out, (td_dtype)call->args[0].tensor->dtype, size.n, size.ints);
    return TD_OK;
}

/* May several elements lie at one place? Where each dim's step is beyond all that the smaller ones
 * reach they do not. */
static bool meets_itself(int ndim, const int64_t *sizes, const int64_t *strides) {
    int64_t within = 0, reached = -1;
    for (int k = 0; k < ndim; k++) { /* dims by their strides, from the smallest on */
        int64_t least = INT64_MAX, more = 0;
        int equals = 0;
        for (int d = 0; d < ndim; d++)
            if (sizes[d] > 1 && strides[d] > reached && strides[d] < least)
                least = strides[d];
        for (int d = 0; d < ndim; d++)
            if (sizes[d] > 1 && strides[d] == least) {
                more = (sizes[d] - 1) * least;
                equals++;
            }
        if (equals > 1 || (equals && least <= within))
            return true;
        within += more;
        reached = least;
    }
    return false;
}

static td_status kernel_restride(td_call *call) {
    const td_value *a = call->args;
    td_tensor *part = td_retain(a[0].tensor);
    td_tensor *out = call->out[0], *memory = NULL, *seen = NULL;
    int64_t low = a[2].i < a[5].i ? a[2].i : a[5].i;
    int64_t high = reach(a[2].i, part->ndim, part->sizes, a[1].ints);
    int64_t far = reach(a[5].i, out->ndim, out->sizes, a[4].ints);
    int64_t length = (high > far ? high : far) - low + 1;
    td_status status = TD_OK;
    if (part->numel == 0 || out->numel == 0) {
        status = td_fill_int(out, 0);
        goto done;
    }
    TD_TRY(td_tensor_empty((td_dtype)out->dtype, td_tensor_device(out), 1, &length, &memory));
    td_add_strided_plan plan = {.out = memory, .x = part, .offset = a[2].i - low};
    for (int d = 0; d < part->ndim; d++)
        plan.strides[d] = a[1].ints[d];
    const bool meets = meets_itself(part->ndim, part->sizes, a[1].ints);
    TD_TRY(td_add_meeting(&plan, meets ? part->numel : 1));
    TD_TRY(td_tensor_view(memory, out->ndim, out->sizes, a[4].ints, a[5].i - low, &seen));
    status = td_copy_into(out, seen);
done:
    td_release(part);
    td_release(memory);
    td_release(seen);
    return status;
}

static td_status run_laid_out(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *memory = NULL;
    td_status status = TD_OK;
    TD_TRY(td_tensor_empty((td_dtype)x->dtype, td_tensor_device(x), 1, &a[2].i, &memory));
    if (a[2].i > x->numel)
        TD_TRY(td_fill_int(memory, 0));
    TD_TRY(td_tensor_view(memory, x->ndim, x->sizes, a[1].ints, 0, &call->out[0]));
    status = td_copy_into(call->out[0], x);
done:
    td_release(memory);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(as_strided) = {
    .schema = "(Tensor x, int[] size, int[] stride, int? storage_offset=nil) -> Tensor",
    .doc = "Any sizes and strides over x's storage; storage_offset counts elements from the "
           "storage's first (nil: x's own).",
    .shapes = "x (...) -> (size...)",
    .run = run_as_strided,
    .flags = TD_OP_INPLACE | TD_OP_TURNS,
};
TD_OPERATOR(strided) = {
    .schema = "(Tensor x, int[] size, int[] stride, int offset, int[] own_stride, "
              "bool overlaps) -> Tensor",
    .doc = "as_strided whose offset counts from x's first element; own_stride is x's.",
    .run = td_run_strided,
    .gradient = "part = restride(g, stride, offset, x.shape, own_stride, 0);"
                "x: if(overlaps,"
                "      part / restride(ones(x.shape, dtype=g.dtype, device=g.device),"
                "                      own_stride, 0, x.shape, own_stride, 0), part)",
    .backward_name = "AsStridedBackward",
    .flags = TD_OP_VIEW | TD_OP_INTERNAL,
};
TD_OPERATOR(restride) = {
    .schema = "(Tensor part, int[] from_stride, int from_offset, int[] size, int[] to_stride, "
              "int to_offset) -> Tensor",
    .doc = "What of memory lies at one layout when the part is added to zeros at another.",
    .rule = rule_restride,
    .kernel = kernel_restride,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "part: restride(g, to_stride, to_offset, part.shape, from_stride, from_offset)",
    .flags = TD_OP_INTERNAL,
};
TD_OPERATOR(laid_out) = {
    .schema = "(Tensor x, int[] stride, int length) -> Tensor",
    .doc = "A copy of x with these strides in memory of so many elements, zeros between them.",
    .run = run_laid_out,
    .gradient = "x: g",
    .flags = TD_OP_INTERNAL,
};
