/* quantized_weights.c: weights of linear layers and convolutions, packed once for their products.
 */
#include "engine/ops/make/copy.h"
#include "engine/ops/plan/plan.h"
#include "engine/ops/plan/quantized_pack.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/rule_helpers.h"

#define TD_FAMILY "quantized"

enum { WEIGHT, SCALES, ZERO_POINTS, PACKS, JOINED, DEPTHWISE };

static td_status rule_pack_ints(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *weight = a[WEIGHT].tensor;
    bool depthwise = a[DEPTHWISE].b;
    int64_t packs = depthwise ? 1 : a[PACKS].i;
    int64_t columns = weight->sizes[0] / packs, depth = weight->sizes[1];
    *TD_PLAN(call, td_quantized_pack_plan) = (td_quantized_pack_plan){.rows = weight->sizes[0],
                                                                      .depth = weight->sizes[1],
                                                                      .packs = packs,
                                                                      .joined = a[JOINED].i,
                                                                      .depthwise = depthwise};
    if (td_tensor_device(weight).type != TD_CPU) {
        td_qlines l = td_qlines_for(packs, columns, depth);
        td_meta_set(out, TD_U8, 3, (const int64_t[]){packs, columns, l.step});
        return TD_OK;
    }
    int64_t bytes = td_qpack_bytes((td_qpack_shape){columns, depth, depthwise});
    td_meta_set(out, TD_U8, packs > 1 ? 2 : 1,
                packs > 1 ? (const int64_t[]){packs, bytes} : (const int64_t[]){bytes});
    return TD_OK;
}

TD_KERNEL(kernel_pack_ints, quantized_pack, td_quantized_pack_plan, 1, 3)

static td_status check_weight(const td_tensor *weight, int64_t groups) {
    const td_quantized *q = td_quantized_of(weight);
    char shape[TD_SHAPE_TEXT];
    if (!q || weight->dtype != TD_I8)
        return td_fail(TD_ETYPE, "weight is %s: a qint8 tensor expected",
                       td_tensor_dtype_name(weight));
    if (q->scales && q->axis != 0)
        return td_fail(TD_EVALUE,
                       "weight is quantized along dim %d: its channels are its rows, dim 1",
                       q->axis + 1);
    if (weight->ndim < 2 || weight->ndim > TD_SPATIAL + 2 || weight->numel == 0)
        return td_fail(TD_ESHAPE,
                       "weight has shape (out, in) or (out, in / groups, kernel), none of it 0, "
                       "got %s",
                       td_tensor_shape_text(weight, shape));
    if (groups < 1 || weight->sizes[0] % groups || (weight->ndim == 2 && groups != 1))
        return td_fail(TD_EVALUE,
                       "the %lld channels of a weight of shape %s can't be divided into "
                       "%lld groups",
                       (long long)weight->sizes[0], td_tensor_shape_text(weight, shape),
                       (long long)groups);
    int64_t depth = weight->numel / weight->sizes[0];
    if (depth > TD_QPACK_DEPTH)
        return td_fail(TD_ESHAPE,
                       "weight has %lld columns: sums of more than %d products don't fit 32 bits",
                       (long long)depth, TD_QPACK_DEPTH);
    return TD_OK;
}

/* The parameters of each row of the weight. */
static td_status open_rows(const td_tensor *weight, td_tensor **scales, td_tensor **points) {
    const td_quantized *q = td_quantized_of(weight);
    const int64_t n = weight->sizes[0];
    td_status status = TD_OK;
    if (q->scales) {
        TD_TRY(TD_APPLY(scales, to, TD_T(q->scales), TD_DTYPE(TD_F32)));
        TD_TRY(TD_APPLY(points, to, TD_T(q->zero_points), TD_DTYPE(TD_I32)));
    } else {
        td_value device = TD_DEVICE(td_tensor_device(weight));
        TD_TRY(TD_APPLY(scales, full, TD_INTS(1, &n), TD_F(q->scale), TD_DTYPE(TD_F32), device));
        TD_TRY(
            TD_APPLY(points, full, TD_INTS(1, &n), TD_I(q->zero_point), TD_DTYPE(TD_I32), device));
    }
done:
    return status;
}

/* The weight's integers, row by row: the kernel's elements, and in each of them the channels. */
static td_status open_ints(const td_tensor *weight, td_tensor **ints) {
    const int64_t flat[2] = {weight->sizes[0], weight->numel / weight->sizes[0]};
    td_status status = TD_APPLY(ints, movedim, TD_T(td_quantized_of(weight)->ints),
                                TD_INTS(1, (int64_t[]){1}), TD_INTS(1, (int64_t[]){-1}));
    if (status)
        return status;
    TD_STEP(ints, contiguous, TD_T(*ints));
    TD_STEP(ints, view, TD_T(*ints), TD_INTS(2, flat));
done:
    return status;
}

/* How many neighbouring groups of a convolution have columns in one panel of which each reads bytes
 * of its own group (ops/plan/quantized_pack.h); 1 where they can't. */
static int64_t count_lanes(const td_tensor *weight, const td_tensor *points, int64_t groups) {
    const int64_t channels = weight->sizes[1], n = TD_QPACK_COLUMNS / channels;
    if ((n != 2 && n != 4) || channels * n != TD_QPACK_COLUMNS ||
        weight->sizes[0] != groups * channels || groups % n)
        return 1;
    for (int64_t k = 0; k < points->numel; k++)
        if (((const int32_t *)points->data)[k * points->strides[0]] != 0)
            return 1;
    return n;
}

/* How many neighbouring groups of a convolution are packed as one: as many as a panel has columns
 * for. */
static int64_t count_joined(const td_tensor *weight, int64_t groups) {
    int64_t depth = weight->numel / weight->sizes[0];
    int64_t n = TD_QPACK_COLUMNS / (weight->sizes[0] / groups);
    while (n > 1 && (groups % n || depth * n > TD_QPACK_DEPTH))
        n--;
    return n > 1 ? n : 1;
}

/* The integers (rows by places and channels) of `groups` groups as those of groups that have the
 * channels of `n` of them: those of other groups meet weights that stand for 0. */
static td_status join_groups(td_tensor **ints, const td_tensor *points, int64_t groups, int64_t n,
                             int64_t channels) {
    const int64_t rows = (*ints)->sizes[0], places = (*ints)->sizes[1] / channels;
    const int64_t apart[] = {groups / n, n, rows / groups, places, channels};
    const int64_t wide[] = {groups / n, n, rows / groups, places, n, channels};
    const int64_t alike[] = {groups / n, n, rows / groups, 1, 1, 1};
    const int64_t flat[] = {rows, places * n * channels};
    td_tensor *joined = NULL, *to = NULL, *from = NULL;
    td_status status = TD_APPLY(&joined, to, TD_T((td_tensor *)(uintptr_t)points), TD_DTYPE(TD_I8));
    if (status)
        return status;
    TD_STEP(&joined, view, TD_T(joined), TD_INTS(6, alike));
    TD_STEP(&joined, expand, TD_T(joined), TD_INTS(6, wide));
    TD_STEP(&joined, contiguous, TD_T(joined));
    TD_STEP(ints, view, TD_T(*ints), TD_INTS(5, apart));
    for (int64_t k = 0; k < n; k++) {
        TD_TRY(TD_APPLY(&to, select, TD_T(joined), TD_I(4), TD_I(k)));
        TD_STEP(&to, select, TD_T(to), TD_I(1), TD_I(k));
        TD_TRY(TD_APPLY(&from, select, TD_T(*ints), TD_I(1), TD_I(k)));
        TD_TRY(td_copy_into(to, from));
        td_release(to);
        td_release(from);
        to = from = NULL;
    }
    TD_STEP(&joined, view, TD_T(joined), TD_INTS(2, flat));
    td_release(*ints);
    *ints = joined;
    joined = NULL;
done:
    td_release(joined);
    td_release(to);
    td_release(from);
    return status;
}

/* Says of packs on the CPU that their sums are to saturate. */
static td_status set_saturating(td_tensor *packed) {
    const td_qpack *head;
    if (td_tensor_device(packed).type != TD_CPU)
        return td_fail(TD_EDEVICE, "sums saturate on the CPU alone, the weight lies on %s",
                       td_device_name(td_tensor_device(packed)));
    td_status status = td_qpack_check(packed, &head);
    if (status)
        return status;
    if (head->depthwise)
        return td_fail(TD_EVALUE, "sums that saturate are those of linear layers and of "
                                  "convolutions that are not depthwise");
    for (int64_t k = 0; k < td_qpack_count(packed); k++)
        ((td_qpack *)(void *)((char *)packed->data + k * head->bytes))->saturates = true;
    return TD_OK;
}

/* The memory of lines as the tensor whose shape says what they are. */
static td_status name_lines(td_tensor **packed, int64_t groups, int64_t columns, int64_t depth) {
    td_qlines l = td_qlines_for(groups, columns, depth);
    td_tensor *lines = NULL;
    td_status status =
        td_tensor_view(*packed, 3, (const int64_t[]){groups, columns, TD_QLINE_HEAD + depth},
                       (const int64_t[]){columns * l.step, l.step, 1}, 0, &lines);
    if (status)
        return status;
    td_release(*packed);
    *packed = lines;
    return TD_OK;
}

static td_status run_quantized_pack(td_call *call) {
    td_tensor *weight = call->args[0].tensor, *ints = NULL, *scales = NULL, *points = NULL;
    int64_t groups = call->args[1].i;
    td_status status = check_weight(weight, groups);
    if (status)
        return status;
    bool lines = td_tensor_device(weight).type != TD_CPU;
    bool depthwise = !lines && groups > 1 && weight->sizes[1] == 1;
    bool joins = !lines && !depthwise && !call->args[2].b;
    TD_TRY(open_ints(weight, &ints));
    TD_TRY(open_rows(weight, &scales, &points));
    int64_t lanes = joins ? count_lanes(weight, points, groups) : 1;
    int64_t joined = joins && lanes == 1 ? count_joined(weight, groups) : 1;
    if (joined > 1)
        TD_TRY(join_groups(&ints, points, groups, joined, weight->sizes[1]));
    status = TD_APPLY(&call->out[0], pack_ints, TD_T(ints), TD_T(scales), TD_T(points),
                      TD_I(groups / joined / lanes), TD_I(lanes), TD_B(depthwise));
    if (status == TD_OK && lines)
        status = name_lines(&call->out[0], groups, ints->sizes[0] / groups, ints->sizes[1]);
    if (status == TD_OK && call->args[2].b)
        status = set_saturating(call->out[0]);
done:
    td_release(ints);
    td_release(scales);
    td_release(points);
    return status;
}

TD_OPERATOR(pack_ints) = {
    .schema = "(Tensor weight, Tensor scales, Tensor zero_points, int packs, int joined, "
              "bool depthwise) -> "
              "Tensor",
    .doc = "The integers of a weight with the parameters of its rows, in the order in which "
           "products read them (ops/plan/quantized_pack.h): packs, or lines for each group.",
    .rule = rule_pack_ints,
    .kernel = kernel_pack_ints,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(quantized_pack) = {
    .schema = "(Tensor weight, int groups=1, bool saturate=false) -> Tensor",
    .doc = "A qint8 weight (out, in) packed for quantized_linear, or (out, in / groups, kernel) "
           "for quantized_conv; with saturate for sums in pairs of 16 bits that saturate.",
    .run = run_quantized_pack,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_ANY_LAYOUT,
};
