/* quantized_embedding.c: tables whose rows have a scale and an offset each and 8 or 4 bits for an
 * element: packed as PyTorch packs them, and their rows added up by bags. */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/rule_helpers.h"

#define TD_FAMILY "quantized"

/* Bytes of a row of so many elements. */
static int64_t row_bytes(int64_t features, int bits) {
    return bits == 8 ? features + 8 : features / 2 + 4;
}

static td_status check_row(int64_t features, int64_t bits) {
    if (bits != 4 && bits != 8)
        return td_fail(TD_EVALUE, "rows have 4 or 8 bits for an element, not %lld",
                       (long long)bits);
    if (features < 1 || (bits == 4 && features % 2))
        return td_fail(TD_ESHAPE, "rows of %d bits have an even number of elements, not %lld",
                       (int)bits, (long long)features);
    return TD_OK;
}

static td_status check_matrix(const td_tensor *x, td_dtype dtype) {
    if (x->dtype != dtype || x->ndim != 2)
        return td_fail(TD_ETYPE, "weight: a %s tensor of 2 dims expected", td_dtype_name(dtype));
    return TD_OK;
}

/* ---- packing ---- */

static td_status rule_pack_rows(const td_call *call, td_meta *out) {
    const td_tensor *x = call->args[0].tensor;
    int64_t bits = call->args[1].i;
    td_status status = check_matrix(x, TD_F32);
    if (status == TD_OK)
        status = check_row(x->sizes[1], bits);
    if (status)
        return status;
    *TD_PLAN(call, td_pack_rows_plan) = (td_pack_rows_plan){.bits = (int)bits};
    td_meta_set(out, TD_U8, 2, (const int64_t[]){x->sizes[0], row_bytes(x->sizes[1], (int)bits)});
    return TD_OK;
}

static td_status kernel_pack_rows(td_call *call) {
    td_pack_rows_plan *plan = TD_PLAN(call, td_pack_rows_plan);
    td_tensor *x = NULL;
    td_status status = td_contiguous(call->args[0].tensor, &x);
    if (status)
        return status;
    plan->out = call->out[0];
    plan->x = x;
    status = TD_RUN(td_tensor_device(x), pack_rows, plan);
    td_release(x);
    return status;
}

/* ---- bags ---- */

enum { TABLE, INDEX, OFFSETS, SAMPLES, FEATURES, BITS, MEAN, LAST, PADDING };

static td_status check_bags(const td_value *a) {
    const td_tensor *index = a[INDEX].tensor, *samples = td_arg_tensor(a[SAMPLES]);
    td_status status = td_check_index(index);
    if (status == TD_OK && !td_is_nil(a[OFFSETS]))
        status = td_check_index(a[OFFSETS].tensor);
    if (status)
        return status;
    if (index->ndim != (td_is_nil(a[OFFSETS]) ? 2 : 1))
        return td_fail(TD_ESHAPE, "index has 2 dims, or 1 with offsets, not %d", index->ndim);
    if (!td_is_nil(a[OFFSETS]) && a[OFFSETS].tensor->ndim != 1)
        return td_fail(TD_ESHAPE, "offsets have 1 dim, not %d", a[OFFSETS].tensor->ndim);
    if (!td_is_nil(a[OFFSETS]) && a[LAST].b && a[OFFSETS].tensor->numel == 0)
        return td_fail(TD_EVALUE, "include_last_offset needs at least one offset");
    if (samples && (samples->dtype != TD_F32 || samples->numel != index->numel))
        return td_fail(TD_ESHAPE, "per_sample_weights: float32, one for each index, expected");
    return TD_OK;
}

static td_status rule_add_rows(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *table = a[TABLE].tensor;
    td_status status = check_matrix(table, TD_U8);
    if (status == TD_OK)
        status = check_row(a[FEATURES].i, a[BITS].i);
    if (status == TD_OK)
        status = check_bags(a);
    if (status)
        return status;
    if (table->sizes[1] != row_bytes(a[FEATURES].i, (int)a[BITS].i))
        return td_fail(TD_ESHAPE, "rows of %lld elements of %d bits have %lld bytes, not %lld",
                       (long long)a[FEATURES].i, (int)a[BITS].i,
                       (long long)row_bytes(a[FEATURES].i, (int)a[BITS].i),
                       (long long)table->sizes[1]);
    int64_t padding = td_is_nil(a[PADDING]) ? -1 : a[PADDING].i;
    if (!td_is_nil(a[PADDING]) && padding < 0)
        padding += table->sizes[0];
    if (!td_is_nil(a[PADDING]) && (padding < 0 || padding >= table->sizes[0]))
        return td_fail(TD_EINDEX, "padding_idx is not a row from 1 to %lld",
                       (long long)table->sizes[0]);
    *TD_PLAN(call, td_add_rows_plan) =
        (td_add_rows_plan){.padding = padding,
                           .length = td_is_nil(a[OFFSETS]) ? a[INDEX].tensor->sizes[1] : 0,
                           .bits = (int)a[BITS].i,
                           .mean = a[MEAN].b};
    int64_t bags =
        td_is_nil(a[OFFSETS]) ? a[INDEX].tensor->sizes[0] : a[OFFSETS].tensor->numel - a[LAST].b;
    td_meta_set(out, TD_F32, 2, (const int64_t[]){bags, a[FEATURES].i});
    return TD_OK;
}

static td_status kernel_add_rows(td_call *call) {
    const td_value *a = call->args;
    td_add_rows_plan *plan = TD_PLAN(call, td_add_rows_plan);
    td_tensor *made[4] = {NULL};
    td_status status = TD_OK;
    TD_TRY(td_contiguous(a[TABLE].tensor, &made[0]));
    TD_TRY(td_contiguous_as(a[INDEX].tensor, TD_I64, &made[1]));
    TD_TRY(td_contiguous_or_none(td_arg_tensor(a[OFFSETS]), TD_I64, &made[2]));
    TD_TRY(td_contiguous_or_none(td_arg_tensor(a[SAMPLES]), TD_F32, &made[3]));
    plan->out = call->out[0];
    for (int k = 0; k < 4; k++)
        plan->tensors[1 + k] = made[k];
    status = TD_RUN(td_tensor_device(made[0]), add_rows, plan);
done:
    for (int k = 0; k < 4; k++)
        td_release(made[k]);
    return status;
}

/* ---- the table ---- */

TD_OPERATOR(pack_rows) = {
    .schema = "(Tensor weight, int bits) -> Tensor",
    .doc = "A table of float32 with rows of 8 or 4 bits (td_pack_rows_plan says how they lie).",
    .rule = rule_pack_rows,
    .kernel = kernel_pack_rows,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
TD_OPERATOR(add_rows) = {
    .schema = "(Tensor table, index Tensor index, index Tensor? offsets, "
              "Tensor? per_sample_weights, int features, int bits, bool mean, "
              "bool include_last_offset, index? padding_idx) -> Tensor",
    .doc = "Sums or means of such rows by bags: those of a row of index, or from one offset to the "
           "next.",
    .rule = rule_add_rows,
    .kernel = kernel_add_rows,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY,
};
