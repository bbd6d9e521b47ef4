/* conv.c: convolution on the CPU: float32 by oneDNN, with a kernel of one place as products,
 * depthwise by conv_depthwise.c and conv_depthwise_last.c; bfloat16 too where the machine
 * multiplies it, the other 16-bit floats by way of float32; float64 and integers by conv_columns.c,
 * thin ones by conv_direct.c, both row-major. Long ones are cut along the batch, with a look at the
 * interrupt flag between. */
#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/core/modes.h"
#include "engine/core/threads.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/pointwise/strided_convert.h"
#include "engine/cpu/product/library_parts.h"
#include "engine/cpu/product/onednn.h"
#include "engine/cpu/spatial/conv_columns.h"
#include "engine/cpu/spatial/conv_depthwise.h"
#include "engine/cpu/spatial/conv_depthwise_last.h"
#include "engine/cpu/spatial/conv_direct.h"
#include "engine/cpu/spatial/conv_epilogue.h"
#include "engine/cpu/spatial/conv_lines.h"
#include "engine/cpu/spatial/conv_places.h"
#include "engine/cpu/spatial/conv_product.h"
#include "engine/ops/make/copy.h"

#include <string.h>

#define PANEL 2e9 /* multiplications done without a look at the interrupt flag */
enum {
    PARTS = 16,        /* of a batch */
    MOVE = 16,         /* multiplications in the time of moving an element */
    PARTIAL = 16 << 20 /* elements of gradients of parts */
};

/* Multiplications for one image. */
static double work_of(const td_conv_geometry *g) {
    return (double)g->o * (double)td_conv_places(g->out) * (double)(g->c / g->groups) *
           (double)td_conv_places(g->kernel);
}

/* Images that fit between two looks at the flag. */
static int64_t images_at_once(const td_conv_geometry *g) {
    double n = PANEL / (work_of(g) + 1);
    return n < 1 ? 1 : n > (double)g->n ? g->n : (int64_t)n;
}

/* ---- by oneDNN ---- */

static void add_to(float *total, const float *part, int64_t n) {
    for (int64_t k = 0; k < n; k++)
        total[k] += part[k];
}

/* Images [begin, end) as many at a time as leave room for a look at the interrupt flag; parts of
 * the weight's gradient, which is float32, are added up. `out` is for the whole batch but where it
 * is that gradient. */
static td_status convolve_images(const td_convolution_plan *p, int64_t begin, int64_t end,
                                 char *out) {
    const td_conv_geometry *g = &p->geometry;
    td_dtype dtype = (td_dtype)p->a->dtype;
    int64_t size = (int64_t)td_dtype_size(dtype); /* of elements; steps are bytes */
    int64_t image = g->c * td_conv_places(g->in) * size;
    int64_t output = g->o * td_conv_places(g->out) * size;
    int64_t at_once = images_at_once(g);
    int64_t a_step = p->direction == TD_CONV_INPUT ? output : image;
    int64_t b_step = p->direction == TD_CONV_WEIGHT ? output : 0;
    int64_t out_step = p->direction == TD_CONV_FORWARD ? output : image;
    bool adds = p->direction == TD_CONV_WEIGHT;
    td_conv_product product = td_conv_product_of(p);
    td_conv_geometry s = *g;
    td_tensor *part = NULL;
    td_status status = TD_OK;
    for (int64_t n = begin; n < end; n += s.n) {
        s.n = end - n < at_once ? end - n : at_once;
        TD_TRY(td_interrupt_check());
        if (adds && n > begin && !part)
            TD_TRY(td_tensor_empty(TD_F32, TD_DEVICE_CPU, 1, &p->out->numel, &part));
        char *to = part ? part->data : adds ? out : out + n * out_step;
        char *a = (char *)p->a->data + n * a_step, *b = (char *)p->b->data + n * b_step;
        if (product)
            TD_TRY(product(p, n, s.n));
        else
            TD_TRY(td_dnn_conv(p->direction, dtype, &s, a, b, p->bias ? p->bias->data : NULL, to));
        if (!product && p->direction == TD_CONV_FORWARD)
            td_conv_finish(p, to, n * output / size, s.n * output / size);
        if (part)
            add_to((float *)out, part->data, p->out->numel);
    }
done:
    td_release(part);
    return status;
}

/* The batch in parts, each on one thread; a weight's gradient for each, and, where one image is a
 * part and the cut must follow from the shape alone, for slices of the output channels. */
typedef struct parts {
    const td_convolution_plan *plan;
    int64_t images, slices, channels; /* of a part: images; how many slices, and their channels */
    int64_t numel;                    /* of the weight's gradient */
    int64_t count;                    /* parts of the batch */
    float *partial;                   /* their gradients after the first, which is the result */
} parts;

static td_status convolve_slice(const parts *j, int64_t image, int64_t slice, float *out) {
    const td_conv_geometry *g = &j->plan->geometry;
    td_dtype dtype = (td_dtype)j->plan->a->dtype;
    int64_t size = (int64_t)td_dtype_size(dtype);
    td_conv_geometry s = *g;
    int64_t first = slice * j->channels, row = g->c / g->groups * td_conv_places(g->kernel);
    int64_t in = td_conv_places(g->in), out_places = td_conv_places(g->out);
    s.n = 1;
    s.o = g->o - first < j->channels ? g->o - first : j->channels;
    return td_dnn_conv(TD_CONV_WEIGHT, dtype, &s,
                       (char *)j->plan->a->data + image * g->c * in * size,
                       (char *)j->plan->b->data + (image * g->o + first) * out_places * size, NULL,
                       out + first * row);
}

static td_status convolve_part(const void *ctx, int64_t part) {
    const parts *j = ctx;
    int64_t k = part / j->slices, begin = k * j->images, end = begin + j->images;
    void *out = j->plan->out->data;
    if (j->plan->direction == TD_CONV_WEIGHT && k > 0)
        out = j->partial + (k - 1) * j->numel;
    if (j->slices > 1)
        return convolve_slice(j, k, part % j->slices, out);
    return convolve_images(j->plan, begin, end < j->plan->geometry.n ? end : j->plan->geometry.n,
                           out);
}

static void add_parts(void *ctx, int64_t begin, int64_t end, int worker) {
    const parts *j = ctx;
    (void)worker;
    for (int64_t k = 1; k < j->count; k++)
        add_to((float *)j->plan->out->data + begin, j->partial + (k - 1) * j->numel + begin,
               end - begin);
}

static td_status convolve_parts(const td_convolution_plan *p, int64_t most) {
    const td_conv_geometry *g = &p->geometry;
    bool adds = p->direction == TD_CONV_WEIGHT;
    parts j = {.plan = p, .slices = 1, .channels = g->o, .numel = p->out->numel};
    j.images = (g->n + most - 1) / most;
    j.count = (g->n + j.images - 1) / j.images;
    if (td_deterministic() && adds && j.images == 1 && g->groups == 1 && !g->channels_last &&
        j.count < PARTS / 2) {
        int64_t each = (g->o * j.count + PARTS / 2 - 1) / (PARTS / 2);
        j.channels = (each + 15) / 16 * 16;
        j.slices = (g->o + j.channels - 1) / j.channels;
    }
    if (adds && j.count > 1)
        j.partial = td_malloc((size_t)(j.count - 1) * (size_t)j.numel * sizeof *j.partial);
    if (adds && j.count > 1 && !j.partial)
        return td_fail(TD_ENOMEM, "out of memory for parts of a gradient");
    td_status status = td_run_parts(j.count * j.slices, TD_GRAIN, convolve_part, &j);
    if (status == TD_OK && adds && j.count > 1)
        status = td_parallel_for(j.numel, j.count, add_parts, &j);
    td_free(j.partial);
    return status;
}

/* Parts of the batch under td_deterministic. */
static int64_t fixed_parts(const td_convolution_plan *p) {
    int64_t most = p->direction == TD_CONV_WEIGHT ? PARTIAL / (p->out->numel + 1) : PARTS;
    return most < 4 ? 4 : most > PARTS ? PARTS : most;
}

/* What the batch costs in multiplications; oneDNN moves every element into a layout of its own and
 * back. */
static double cost_of(const td_conv_geometry *g) {
    double moved = (double)(g->c * td_conv_places(g->in)) + (double)(g->o * td_conv_places(g->out));
    return (double)g->n * (work_of(g) + MOVE * moved);
}

/* A batch smaller than the number of threads goes to oneDNN as it is, and so does a gradient so
 * large that one for every thread would cost more than they save. */
static td_status convolve_by_library(const td_convolution_plan *p) {
    int64_t n = p->geometry.n, most = td_parts_of(cost_of(&p->geometry));
    bool adds = p->direction == TD_CONV_WEIGHT;
    if (n == 0)
        return TD_OK;
    if (td_deterministic())
        return convolve_parts(p, fixed_parts(p));
    if (n < most || (adds && most * p->out->numel > PARTIAL))
        return convolve_images(p, 0, n, p->out->data);
    return convolve_parts(p, most);
}

/* x in another dtype, of the same strides, which leave no gaps. */
static td_status convert(const td_tensor *x, td_dtype dtype, bool copies, td_tensor **out) {
    td_status status = td_tensor_empty(dtype, TD_DEVICE_CPU, x->ndim, x->sizes, out);
    if (status == TD_OK)
        status = td_tensor_set_shape(*out, x->ndim, x->sizes, x->strides);
    return status || !copies ? status : td_copy_into(*out, x);
}

/* In float32, rounded once at the end. */
static td_status convolve_wide(const td_convolution_plan *plan) {
    td_convolution_plan p = *plan;
    td_tensor *a = NULL, *b = NULL, *bias = NULL, *out = NULL;
    td_status status = TD_OK;
    TD_TRY(convert(plan->a, TD_F32, true, &a));
    TD_TRY(convert(plan->b, TD_F32, true, &b));
    if (plan->bias)
        TD_TRY(convert(plan->bias, TD_F32, true, &bias));
    TD_TRY(convert(plan->out, TD_F32, false, &out));
    p.a = a;
    p.b = b;
    p.bias = bias;
    p.out = out;
    TD_TRY(convolve_by_library(&p));
    status = td_copy_into(plan->out, out);
done:
    td_release(a);
    td_release(b);
    td_release(bias);
    td_release(out);
    return status;
}

/* A weight's gradient is made in float32. */
static td_status convolve_bfloat(const td_convolution_plan *plan) {
    td_convolution_plan p = *plan;
    if (p.direction != TD_CONV_WEIGHT)
        return convolve_by_library(plan);
    p.out = NULL;
    td_status status = convert(plan->out, TD_F32, false, &p.out);
    if (status == TD_OK)
        status = convolve_by_library(&p);
    if (status == TD_OK)
        status = td_copy_into(plan->out, p.out);
    td_release(p.out);
    return status;
}

/* Row-major, in a dtype, by `run`; the result goes where it is to lie. */
static td_status convolve_packed(const td_convolution_plan *plan, td_dtype dtype,
                                 td_status (*run)(const td_convolution_plan *p)) {
    td_convolution_plan p = *plan;
    td_tensor *a = NULL, *b = NULL, *bias = NULL, *out = NULL;
    td_status status = TD_OK;
    p.geometry.channels_last = p.geometry.weight_last = false;
    TD_TRY(td_contiguous_as(plan->a, dtype, &a));
    TD_TRY(td_contiguous_as(plan->b, dtype, &b));
    if (plan->bias)
        TD_TRY(td_contiguous_as(plan->bias, dtype, &bias));
    if (plan->out->contiguous && plan->out->dtype == dtype)
        out = td_retain(plan->out);
    else
        TD_TRY(td_tensor_empty(dtype, TD_DEVICE_CPU, plan->out->ndim, plan->out->sizes, &out));
    p.a = a;
    p.b = b;
    p.bias = bias;
    p.out = out;
    TD_TRY(run(&p));
    if (out != plan->out)
        status = td_copy_into(plan->out, out);
done:
    td_release(a);
    td_release(b);
    td_release(bias);
    td_release(out);
    return status;
}

td_status td_cpu_convolution(const td_convolution_plan *p) {
    td_dtype dtype = (td_dtype)p->out->dtype;
    bool thin = p->geometry.groups == 1 && td_conv_is_thin(&p->geometry);
    td_status status;
    switch (dtype) {
    case TD_F32:
        if (td_conv_is_depthwise(p))
            return td_conv_depthwise(p);
        if (td_conv_is_depthwise_last(p))
            return td_conv_depthwise_last(p);
        if (!td_conv_product_of(p) && td_conv_is_by_places(p))
            return td_conv_by_places(p);
        if (!thin)
            return convolve_by_library(p);
        status = convolve_packed(p, TD_F32, td_conv_direct);
        if (status == TD_OK)
            td_conv_finish(p, p->out->data, 0, p->out->numel);
        return status;
    case TD_F64:
        return convolve_packed(p, TD_F64, thin ? td_conv_direct : td_conv_columns);
    case TD_BF16:
        if (td_dnn_bfloat_gain())
            return convolve_bfloat(p);
        return convolve_wide(p);
    case TD_F16:
        return convolve_wide(p);
    case TD_U8:
    case TD_I8:
    case TD_I16:
    case TD_I32:
    case TD_I64:
        thin = td_conv_is_thin(&p->geometry) || p->direction == TD_CONV_WEIGHT;
        return convolve_packed(p, TD_I64, thin ? td_conv_direct : td_conv_columns);
    case TD_BOOL:
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        break;
    }
    return td_cpu_lacks(dtype);
}
