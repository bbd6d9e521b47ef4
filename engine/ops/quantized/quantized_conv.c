/* quantized_conv.c: convolutions of quint8 tensors with packed weights, whose results are rounded,
 * rectified and added to others in one step; and transposed convolutions, which are convolutions of
 * a stride of 1 for each place between two steps of their stride. */
#include "engine/ops/plan/quantized_pack.h"
#include "engine/ops/quantized/quantized.h"
#include "engine/ops/spatial/spatial.h"

#include <string.h>

#define TD_FAMILY "quantized"

/* ---- of integers ---- */

enum {
    X,
    PACKED,
    BIAS,
    RESIDUAL,
    X_SCALE,
    X_POINT,
    OUT_SCALE,
    OUT_POINT,
    RESIDUAL_SCALE,
    RESIDUAL_POINT,
    RELU,
    KERNEL,
    STRIDE,
    PADDING,
    DILATION
};

static int64_t count_places(td_value kernel) {
    int64_t places = 1;
    for (int d = 0; d < kernel.n; d++)
        if (kernel.ints[d] < 1 || __builtin_mul_overflow(places, kernel.ints[d], &places))
            return 0;
    return places;
}

/* The geometry of x (batched) with packed weights of a kernel of so many places. */
static td_status read_geometry(const td_value *a, const td_qweight *head, td_conv_geometry *g) {
    const td_tensor *x = a[X].tensor;
    const td_value kernel = a[KERNEL];
    int64_t places = count_places(kernel);
    if (kernel.n < 1 || kernel.n > TD_SPATIAL || x->ndim != kernel.n + 2 || places == 0 ||
        head->depth % places)
        return td_fail(TD_ESHAPE,
                       "packed weights of %lld by %lld don't have a kernel of %lld elements",
                       (long long)head->columns, (long long)head->depth, (long long)places);
    int64_t groups = head->depthwise ? x->sizes[x->ndim - kernel.n - 1] : head->groups;
    int64_t weight[TD_SPATIAL + 2] = {head->depthwise ? head->columns : groups * head->columns,
                                      head->depth / places};
    if (head->depthwise && (groups == 0 || head->columns % groups))
        return td_fail(TD_ESHAPE, "input has %lld channels, a depthwise weight has %lld",
                       (long long)groups, (long long)head->columns);
    memcpy(weight + 2, kernel.ints, sizeof(int64_t) * (size_t)kernel.n);
    const td_value how[] = {a[STRIDE], a[PADDING], a[DILATION], TD_I(groups)};
    td_status status =
        td_conv_geometry_make(kernel.n, x->ndim, x->sizes, kernel.n + 2, weight, how, g);
    g->channels_last = true;
    return status;
}

static td_status rule_conv_ints(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    td_quantized_conv_plan *plan = TD_PLAN(call, td_quantized_conv_plan);
    td_qweight head;
    int32_t point = (int32_t)a[OUT_POINT].i;
    *plan =
        (td_quantized_conv_plan){.to = {.x_scale = (float)td_arg_double(a[X_SCALE]),
                                        .out_scale = (float)td_arg_double(a[OUT_SCALE]),
                                        .x_zero_point = (int32_t)a[X_POINT].i,
                                        .out_zero_point = point,
                                        .low = a[RELU].b ? point : 0,
                                        .high = UINT8_MAX,
                                        .relu = a[RELU].b,
                                        .residual_scale = (float)td_arg_double(a[RESIDUAL_SCALE]),
                                        .residual_zero_point = (int32_t)a[RESIDUAL_POINT].i}};
    td_status status = td_qweight_read(a[PACKED].tensor, &head);
    if (status == TD_OK)
        status = read_geometry(a, &head, &plan->geometry);
    if (status)
        return status;
    for (int d = 0; d < TD_SPATIAL; d++) {
        plan->every[d] = 1;
        plan->whole[d] = plan->geometry.out[d];
    }
    td_conv_images_meta(&plan->geometry, false, TD_U8, out);
    return TD_OK;
}

TD_KERNEL(run_conv_ints, quantized_conv, td_quantized_conv_plan, 1, 4)

/* Integers that lie channels last, whatever they were. */
static td_status kernel_conv_ints(td_call *call) {
    const td_tensor *residual = td_arg_tensor(call->args[RESIDUAL]);
    char shape[TD_SHAPE_TEXT], other[TD_SHAPE_TEXT];
    if (residual && !td_tensor_same_shape(residual, call->out[0]))
        return td_fail(TD_ESHAPE, "residual has shape %s, the result %s",
                       td_tensor_shape_text(residual, shape),
                       td_tensor_shape_text(call->out[0], other));
    return call->out[0]->numel ? run_conv_ints(call) : TD_OK;
}

/* ---- of quantized tensors ---- */

static td_status check_bytes(const char *name, const td_tensor *x) {
    const td_quantized *q = td_quantized_of(x);
    if (q && !q->scales && x->dtype == TD_U8)
        return TD_OK;
    return td_fail(TD_ETYPE, "%s is %s%s: a quint8 tensor of one scale expected", name,
                   td_tensor_dtype_name(x), q && q->scales ? ", quantized by channel" : "");
}

/* The integers of a quantized tensor, with a batch (of one where it has none), channels last. */
static td_status open_images(const td_tensor *x, bool batched, td_tensor **out) {
    td_tensor *ints = NULL;
    td_status status = TD_APPLY(&ints, detach, TD_T(td_quantized_of(x)->ints));
    if (status)
        return status;
    if (!batched)
        TD_STEP(&ints, unsqueeze, TD_T(ints), TD_I(0));
    status = td_pack_spatial(ints, true, out);
done:
    td_release(ints);
    return status;
}

enum { SCALE = 3, ZERO_POINT, SIZES, RECTIFY = 9, ADDED };

static td_status check_call(const td_value *a, const td_tensor *residual) {
    const td_tensor *x = a[X].tensor;
    td_qweight head;
    td_status status = check_bytes("x", x);
    if (status == TD_OK && residual)
        status = check_bytes("residual", residual);
    if (status == TD_OK)
        status = td_check_spatial(a[SIZES].n, x->ndim, x->sizes);
    if (status == TD_OK && residual && residual->ndim != x->ndim)
        status = td_fail(TD_ESHAPE, "residual has %d dims, x has %d", residual->ndim, x->ndim);
    if (status == TD_OK)
        status = td_quantized_check_packed(x, a[PACKED].tensor, &head);
    if (status == TD_OK)
        status = td_quantized_check_bias(td_arg_tensor(a[BIAS]), head.groups * head.columns);
    if (status == TD_OK)
        status = td_check_scale(td_arg_double(a[SCALE]));
    return status ? status : td_check_zero_point(a[ZERO_POINT].i, TD_U8);
}

static td_status run_quantized_conv(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[X].tensor, *residual = td_arg_tensor(a[ADDED]), *bias = td_arg_tensor(a[BIAS]);
    td_tensor *images = NULL, *added = NULL, *addends = NULL, *made = NULL;
    td_status status = check_call(a, residual);
    if (status)
        return status;
    const td_quantized *q = td_quantized_of(x), *r = residual ? td_quantized_of(residual) : NULL;
    bool batched = x->ndim == a[SIZES].n + 2;
    TD_TRY(open_images(x, batched, &images));
    if (residual)
        TD_TRY(open_images(residual, batched, &added));
    if (bias) {
        TD_TRY(TD_APPLY(&addends, detach, TD_T(bias)));
        TD_STEP(&addends, contiguous, TD_T(addends));
    }
    TD_TRY(TD_APPLY(&made, conv_ints, TD_T(images), a[PACKED], td_tensor_or_nil(addends),
                    td_tensor_or_nil(added), TD_F(q->scale), TD_I(q->zero_point), a[SCALE],
                    a[ZERO_POINT], TD_F(r ? r->scale : 0), TD_I(r ? r->zero_point : 0), a[RECTIFY],
                    a[SIZES], a[SIZES + 1], a[SIZES + 2], a[SIZES + 3]));
    if (!batched)
        TD_STEP(&made, squeeze, TD_T(made), TD_INTS(1, (int64_t[]){0}));
    status = td_quantized_new(made, td_arg_double(a[SCALE]), a[ZERO_POINT].i, &call->out[0]);
done:
    td_release(images);
    td_release(added);
    td_release(addends);
    td_release(made);
    return status;
}

/* ---- transposed ---- */

/* Along a dim, places of the result that are a stride apart meet the same elements of the kernel:
 * those whose distance, k * dilation, leaves the remainder (place + padding) % stride. The result's
 * places of such a phase are a convolution of x with these elements in the other order. Weights are
 * packed by remainder, row-major where there are several dims; where no element leaves one, with
 * one element that is the weight's zero point. */

enum {
    PACKS = 1,
    TURNED_BIAS,
    FROM_SCALE,
    FROM_POINT,
    TO_SCALE,
    TO_POINT,
    TURNED_RELU,
    TURNED_KERNEL
};
enum { TURNED_STRIDE = TURNED_KERNEL + 1, TURNED_PADDING, EXTRA, TURNED_DILATION };

/* The numbers of a transposed convolution by dim, those that are not there 1 or 0. */
typedef struct turned {
    int64_t in[TD_SPATIAL], kernel[TD_SPATIAL], stride[TD_SPATIAL], padding[TD_SPATIAL];
    int64_t extra[TD_SPATIAL], dilation[TD_SPATIAL], out[TD_SPATIAL];
} turned;

static td_status read_turned(const td_value *a, turned *t) {
    const td_tensor *x = a[X].tensor;
    const int n = a[TURNED_KERNEL].n, none = TD_SPATIAL - n;
    if (n < 1 || n > TD_SPATIAL || x->ndim != n + 2)
        return td_fail(TD_ESHAPE, "a kernel of %d dims doesn't fit an input of %d", n, x->ndim);
    for (int d = 0; d < TD_SPATIAL; d++) {
        t->in[d] = t->kernel[d] = t->stride[d] = t->dilation[d] = t->out[d] = 1;
        t->padding[d] = t->extra[d] = 0;
    }
    td_status status = td_read_spatial("kernel_size", a[TURNED_KERNEL], n, 1, t->kernel + none);
    if (status == TD_OK)
        status = td_read_spatial("stride", a[TURNED_STRIDE], n, 1, t->stride + none);
    if (status == TD_OK)
        status = td_read_spatial("padding", a[TURNED_PADDING], n, 0, t->padding + none);
    if (status == TD_OK)
        status = td_read_spatial("output_padding", a[EXTRA], n, 0, t->extra + none);
    if (status == TD_OK)
        status = td_read_spatial("dilation", a[TURNED_DILATION], n, 1, t->dilation + none);
    if (status == TD_OK)
        status = td_check_places("an input", n, x->sizes + 2);
    for (int d = none; d < TD_SPATIAL && status == TD_OK; d++) {
        t->in[d] = x->sizes[d - none + 2];
        t->out[d] = (t->in[d] - 1) * t->stride[d] - 2 * t->padding[d] +
                    t->dilation[d] * (t->kernel[d] - 1) + t->extra[d] + 1;
        if (t->extra[d] >= t->stride[d] && t->extra[d] >= t->dilation[d])
            status = td_fail(TD_EVALUE, "output_padding %lld is not below the stride or dilation",
                             (long long)t->extra[d]);
        else if (t->in[d] < 1 || t->out[d] < 1)
            status = td_fail(TD_ESHAPE, "an input of size %lld has a result of size %lld",
                             (long long)t->in[d], (long long)t->out[d]);
    }
    return status ? status : td_check_places("the result", TD_SPATIAL, t->out);
}

static int64_t divisor_of(int64_t a, int64_t b) {
    return b ? divisor_of(b, a % b) : a;
}

/* The elements of the kernel that leave a remainder along a dim: the first (-1: none), how many
 * there are or (none) 1, and from one to the next. */
typedef struct elements {
    int64_t first, count, step;
} elements;

static elements find_elements(const turned *t, int d, int64_t remainder) {
    elements e = {-1, 1, t->stride[d] / divisor_of(t->dilation[d], t->stride[d])};
    for (int64_t k = 0; k < t->kernel[d] && k < e.step && e.first < 0; k++)
        if (k * t->dilation[d] % t->stride[d] == remainder)
            e.first = k;
    if (e.first >= 0)
        e.count = (t->kernel[d] - 1 - e.first) / e.step + 1;
    return e;
}

/* The plan of the places `phase` of the result; which pack it takes. */
static int64_t plan_phase(const turned *t, const int64_t *phase, td_quantized_conv_plan *plan) {
    td_conv_geometry *g = &plan->geometry;
    int64_t pack = 0;
    for (int d = 0; d < TD_SPATIAL; d++) {
        int64_t at = phase[d] + t->padding[d], remainder = at % t->stride[d];
        const elements e = find_elements(t, d, remainder);
        pack = pack * t->stride[d] + remainder;
        plan->first[d] = phase[d];
        plan->every[d] = t->stride[d];
        plan->whole[d] = t->out[d];
        g->in[d] = t->in[d];
        g->out[d] = (t->out[d] - phase[d] + t->stride[d] - 1) / t->stride[d];
        g->kernel[d] = e.count;
        g->stride[d] = 1;
        g->dilation[d] = t->dilation[d] * e.step / t->stride[d];
        g->padding[d] = e.first < 0 ? 0
                                    : (e.count - 1) * g->dilation[d] -
                                          (at - e.first * t->dilation[d]) / t->stride[d];
    }
    return pack;
}

/* The next phase of those whose places are in the result, row-major; false behind the last. */
static bool next_phase(const turned *t, int64_t *phase) {
    for (int d = TD_SPATIAL - 1; d >= 0; d--) {
        if (++phase[d] < t->stride[d] && phase[d] < t->out[d])
            return true;
        phase[d] = 0;
    }
    return false;
}

/* Packs for all remainders, each of which takes x's channels and has as many columns. */
static td_status check_packs(const td_value *a, const turned *t, td_qweight *first) {
    const td_value packs = a[PACKS];
    const int64_t phases = t->stride[0] * t->stride[1] * t->stride[2];
    int64_t remainder[TD_SPATIAL] = {0}, channels = a[X].tensor->sizes[1];
    if (packs.n != phases)
        return td_fail(TD_EVALUE, "there are %d packed weights for %lld remainders of the stride",
                       packs.n, (long long)phases);
    for (int k = 0; k < packs.n; k++) {
        td_qweight head;
        int64_t places = 1, rest = k;
        td_status status = td_quantized_check_packed(a[X].tensor, packs.tensors[k], &head);
        if (status)
            return status;
        for (int d = TD_SPATIAL - 1; d >= 0; rest /= t->stride[d--]) {
            remainder[d] = rest % t->stride[d];
            places *= find_elements(t, d, remainder[d]).count;
        }
        *first = k ? *first : head;
        int64_t takes = head.depthwise ? channels : head.depth / places * head.groups;
        if (head.depth % places || takes != channels || head.columns != first->columns ||
            head.depthwise != first->depthwise || head.groups != first->groups ||
            (head.depthwise && (head.depth != places || head.columns % channels)))
            return td_fail(TD_ESHAPE,
                           "packed weights of %lld by %lld don't take %lld channels and %lld "
                           "elements of the kernel",
                           (long long)head.columns, (long long)head.depth, (long long)channels,
                           (long long)places);
    }
    return TD_OK;
}

static td_status rule_conv_transpose_ints(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[X].tensor;
    td_quantized_conv_plan *plan = TD_PLAN(call, td_quantized_conv_plan);
    td_qweight head = {0};
    int32_t point = (int32_t)a[TO_POINT].i;
    turned t;
    td_status status = read_turned(a, &t);
    if (status == TD_OK)
        status = check_packs(a, &t, &head);
    if (status)
        return status;
    const int64_t columns = head.groups * head.columns;
    status = td_quantized_check_bias(td_arg_tensor(a[TURNED_BIAS]), columns);
    if (status)
        return status;
    *plan =
        (td_quantized_conv_plan){.geometry = {.n = x->sizes[0],
                                              .c = x->sizes[1],
                                              .o = columns,
                                              .groups = head.depthwise ? x->sizes[1] : head.groups,
                                              .channels_last = true},
                                 .to = {.x_scale = (float)td_arg_double(a[FROM_SCALE]),
                                        .out_scale = (float)td_arg_double(a[TO_SCALE]),
                                        .x_zero_point = (int32_t)a[FROM_POINT].i,
                                        .out_zero_point = point,
                                        .low = a[TURNED_RELU].b ? point : 0,
                                        .high = UINT8_MAX,
                                        .relu = a[TURNED_RELU].b}};
    int64_t sizes[TD_SPATIAL + 2] = {x->sizes[0], plan->geometry.o};
    memcpy(sizes + 2, t.out + TD_SPATIAL + 2 - x->ndim, sizeof(int64_t) * (size_t)(x->ndim - 2));
    td_meta_set(out, TD_U8, x->ndim, sizes);
    td_meta_lay_spatial(out, true);
    return TD_OK;
}

static td_status kernel_conv_transpose_ints(td_call *call) {
    const td_value *a = call->args;
    td_quantized_conv_plan *plan = TD_PLAN(call, td_quantized_conv_plan);
    int64_t phase[TD_SPATIAL] = {0};
    turned t;
    td_status status = read_turned(a, &t);
    if (status || call->out[0]->numel == 0)
        return status;
    plan->out = call->out[0];
    plan->x = a[X].tensor;
    plan->bias = td_arg_tensor(a[TURNED_BIAS]);
    plan->residual = NULL;
    do {
        plan->packed = a[PACKS].tensors[plan_phase(&t, phase, plan)];
        status = TD_RUN(td_tensor_device(plan->out), quantized_conv, plan);
    } while (status == TD_OK && next_phase(&t, phase));
    return status;
}

enum { SPREAD_SCALE = 3, SPREAD_POINT, SPREAD_SIZES, SPREAD_RELU = 10 };

static td_status run_quantized_conv_transpose(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[X].tensor, *bias = td_arg_tensor(a[BIAS]);
    td_tensor *images = NULL, *addends = NULL, *made = NULL;
    td_status status = check_bytes("x", x);
    if (status == TD_OK)
        status = td_check_spatial(a[SPREAD_SIZES].n, x->ndim, x->sizes);
    if (status == TD_OK)
        status = td_check_scale(td_arg_double(a[SPREAD_SCALE]));
    if (status == TD_OK)
        status = td_check_zero_point(a[SPREAD_POINT].i, TD_U8);
    if (status)
        return status;
    const td_quantized *q = td_quantized_of(x);
    bool batched = x->ndim == a[SPREAD_SIZES].n + 2;
    TD_TRY(open_images(x, batched, &images));
    if (bias) {
        TD_TRY(TD_APPLY(&addends, detach, TD_T(bias)));
        TD_STEP(&addends, contiguous, TD_T(addends));
    }
    TD_TRY(TD_APPLY(&made, conv_transpose_ints, TD_T(images), a[PACKS], td_tensor_or_nil(addends),
                    TD_F(q->scale), TD_I(q->zero_point), a[SPREAD_SCALE], a[SPREAD_POINT],
                    a[SPREAD_RELU], a[SPREAD_SIZES], a[SPREAD_SIZES + 1], a[SPREAD_SIZES + 2],
                    a[SPREAD_SIZES + 3], a[SPREAD_SIZES + 4]));
    if (!batched)
        TD_STEP(&made, squeeze, TD_T(made), TD_INTS(1, (int64_t[]){0}));
    status =
        td_quantized_new(made, td_arg_double(a[SPREAD_SCALE]), a[SPREAD_POINT].i, &call->out[0]);
done:
    td_release(images);
    td_release(addends);
    td_release(made);
    return status;
}

/* ---- the table ---- */

#define TURNED_SIZES                                                                               \
    "int[] kernel_size, int[] stride, int[] padding, int[] output_padding, int[] dilation"
#define PADDING_TYPE "int[]|\"same\"|\"valid\" padding, "

TD_OPERATOR(conv_ints) = {
    .schema = "(Tensor x, Tensor packed, Tensor? bias, Tensor? residual, number x_scale, "
              "int x_zero_point, number scale, int zero_point, number residual_scale, "
              "int residual_zero_point, bool relu, int[] kernel_size, int[] stride, " PADDING_TYPE
              "int[] dilation) -> Tensor",
    .doc = "A convolution of bytes (N, C, ...), channels last, with packed weights, plus a bias "
           "and bytes of the result's shape, as uint8.",
    .rule = rule_conv_ints,
    .kernel = kernel_conv_ints,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(quantized_conv) = {
    .schema = "(Tensor x, Tensor packed, Tensor? bias, number scale, int zero_point, "
              "int[] kernel_size, int[] stride, " PADDING_TYPE
              "int[] dilation, bool relu=false, Tensor? residual=nil) -> Tensor",
    .doc = "Convolution of quint8 x (N, C, ...) or (C, ...) with packed weights, plus bias and "
           "residual, as quint8 of a scale and a zero point; a batch lies channels last.",
    .run = run_quantized_conv,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_ANY_LAYOUT,
};
TD_OPERATOR(conv_transpose_ints) = {
    .schema = "(Tensor x, Tensor[] packs, Tensor? bias, number x_scale, int x_zero_point, "
              "number scale, int zero_point, bool relu, " TURNED_SIZES ") -> Tensor",
    .doc = "A transposed convolution of bytes (N, C, ...), channels last, with weights packed by "
           "the remainders of its stride, plus a bias, as uint8.",
    .rule = rule_conv_transpose_ints,
    .kernel = kernel_conv_transpose_ints,
    .dtypes = TD_DTYPES_ALL,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL,
};
TD_OPERATOR(quantized_conv_transpose) = {
    .schema = "(Tensor x, Tensor[] packs, Tensor? bias, number scale, int zero_point, " TURNED_SIZES
              ", bool relu=false) -> Tensor",
    .doc = "Transposed convolution of quint8 x (N, C, ...) or (C, ...) with weights packed by the "
           "remainders of its stride, plus bias, as quint8 of a scale and a zero point; a batch "
           "lies channels last.",
    .run = run_quantized_conv_transpose,
    .flags = TD_OP_NONDIFF | TD_OP_INTERNAL | TD_OP_FUNCTION_ONLY | TD_OP_ANY_LAYOUT,
};
