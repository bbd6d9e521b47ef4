/* quantized_tensor.c: the layout of quantized tensors, whose parts are integers and parameters. */
#include "engine/ops/quantized/quantized_tensor.h"

#include "engine/core/layout.h"
#include "engine/core/memory.h"

#include <stdio.h>
#include <string.h>

/* ---- dtypes ---- */

static const struct {
    td_dtype dtype;
    const char *name;
    int64_t low, high;
} dtypes[] = {{TD_U8, "quint8", 0, UINT8_MAX},
              {TD_I8, "qint8", INT8_MIN, INT8_MAX},
              {TD_I32, "qint32", INT32_MIN, INT32_MAX}};

enum { DTYPES = sizeof dtypes / sizeof *dtypes };

bool td_quantized_range(td_dtype ints, int64_t *low, int64_t *high) {
    for (int k = 0; k < DTYPES; k++)
        if (dtypes[k].dtype == ints) {
            *low = dtypes[k].low;
            *high = dtypes[k].high;
            return true;
        }
    return false;
}

const char *td_quantized_name(td_dtype ints) {
    for (int k = 0; k < DTYPES; k++)
        if (dtypes[k].dtype == ints)
            return dtypes[k].name;
    return NULL;
}

td_dtype td_quantized_find(const char *name) {
    for (int k = 0; k < DTYPES; k++)
        if (!strcmp(dtypes[k].name, name))
            return dtypes[k].dtype;
    return TD_DTYPE_NONE;
}

const char *td_tensor_dtype_name(const td_tensor *x) {
    return x->layout == TD_QUANTIZED ? td_quantized_name((td_dtype)x->dtype)
                                     : td_dtype_name((td_dtype)x->dtype);
}

const char *td_quantized_scheme(const td_quantized *q) {
    return q->scales ? "per_channel_affine" : "per_tensor_affine";
}

/* ---- the layout ---- */

static void destroy(td_extra *extra) {
    td_quantized *q = (td_quantized *)extra;
    td_release(q->ints);
    td_release(q->scales);
    td_release(q->zero_points);
    td_object_free(q, sizeof *q);
}

static td_tensor *elements(const td_tensor *x) {
    return td_quantized_of(x)->ints;
}

static void describe(const td_tensor *x, char *text, size_t size) {
    const td_quantized *q = td_quantized_of(x);
    if (q->scales)
        snprintf(text, size, "per_channel_affine axis=%d", q->axis + 1);
    else
        snprintf(text, size, "per_tensor_affine scale=%.7g zero_point=%lld", q->scale,
                 (long long)q->zero_point);
}

static const td_layout_traits quantized = {.name = "quantized",
                                           .noun = "quantized",
                                           .convert = "dequantize",
                                           .destroy = destroy,
                                           .elements = elements,
                                           .describe = describe};

static td_status finish(const td_quantized *parts, td_tensor **out) {
    *out = NULL;
    td_quantized *q = td_object_alloc(sizeof *q);
    if (!q)
        return td_fail(TD_ENOMEM, "out of memory for a quantized tensor");
    *q = *parts;
    atomic_init(&q->extra.refs, 1);
    q->extra.layout = &quantized;
    td_retain(q->ints);
    td_retain(q->scales);
    td_retain(q->zero_points);
    const td_tensor *ints = q->ints;
    return td_tensor_from_extra((td_dtype)ints->dtype, td_tensor_device(ints), TD_QUANTIZED,
                                ints->ndim, ints->sizes, &q->extra, out);
}

td_status td_quantized_new(td_tensor *ints, double scale, int64_t zero_point, td_tensor **out) {
    return finish(&(td_quantized){.ints = ints, .scale = scale, .zero_point = zero_point}, out);
}

td_status td_quantized_new_by_channel(td_tensor *ints, td_tensor *scales, td_tensor *zero_points,
                                      int axis, td_tensor **out) {
    return finish(
        &(td_quantized){.ints = ints, .scales = scales, .zero_points = zero_points, .axis = axis},
        out);
}

td_status td_quantized_like(const td_tensor *x, td_tensor *ints, td_tensor **out) {
    const td_quantized *q = td_quantized_of(x);
    return q->scales ? td_quantized_new_by_channel(ints, q->scales, q->zero_points, q->axis, out)
                     : td_quantized_new(ints, q->scale, q->zero_point, out);
}
