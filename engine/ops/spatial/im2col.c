/* im2col.c: im2col lays the windows of images out as the columns of a matrix; col2im adds columns
 * up to images. Each is the gradient of the other. */
#include "engine/ops/index/index.h"
#include "engine/ops/spatial/spatial.h"

#include <string.h>

#define TD_FAMILY "im2col"

/* ---- geometry ---- */

typedef struct folding {
    int64_t n, c, size[2], kernel[2], dilation[2], padding[2], stride[2], windows[2];
} folding;

/* From the size of the images and arguments kernel_size, dilation, padding, stride. */
static td_status read_folding(const td_value *a, folding *f) {
    char size[TD_SHAPE_TEXT], kernel[TD_SHAPE_TEXT];
    td_status status = td_read_spatial("kernel_size", a[0], 2, 1, f->kernel);
    if (status == TD_OK)
        status = td_read_spatial("dilation", a[1], 2, 1, f->dilation);
    if (status == TD_OK)
        status = td_read_spatial("padding", a[2], 2, 0, f->padding);
    if (status == TD_OK)
        status = td_read_spatial("stride", a[3], 2, 1, f->stride);
    if (status == TD_OK)
        status = td_check_places("an image", 2, f->size);
    for (int d = 0; d < 2 && status == TD_OK; d++) {
        int64_t reach = f->dilation[d] * (f->kernel[d] - 1) + 1;
        int64_t room = f->size[d] + 2 * f->padding[d] - reach;
        if (room < 0)
            return td_fail(TD_ESHAPE, "a kernel of %s doesn't fit a padded image of %s",
                           td_shape_text(2, f->kernel, kernel, sizeof kernel),
                           td_shape_text(2, f->size, size, sizeof size));
        f->windows[d] = room / f->stride[d] + 1;
    }
    return status;
}

static td_status folding_of_images(const td_tensor *x, const td_value *args, folding *f) {
    td_status status = td_check_spatial(2, x->ndim, x->sizes);
    if (status)
        return status;
    const int64_t *sizes = x->sizes + x->ndim - 3;
    *f =
        (folding){.n = x->ndim == 4 ? x->sizes[0] : 1, .c = sizes[0], .size = {sizes[1], sizes[2]}};
    return read_folding(args, f);
}

/* (C kh kw, L) and, of batches, N before. */
static td_status folding_of_columns(const td_tensor *x, td_value size, const td_value *args,
                                    folding *f) {
    char text[TD_SHAPE_TEXT];
    if (x->ndim != 2 && x->ndim != 3)
        return td_fail(TD_ESHAPE, "input must have shape (N, C kh kw, L) or (C kh kw, L), got %s",
                       td_tensor_shape_text(x, text));
    *f = (folding){.n = x->ndim == 3 ? x->sizes[0] : 1};
    td_status status = td_read_spatial("output_size", size, 2, 1, f->size);
    if (status == TD_OK)
        status = read_folding(args, f);
    if (status)
        return status;
    int64_t rows = x->sizes[x->ndim - 2], columns = x->sizes[x->ndim - 1], window;
    if (__builtin_mul_overflow(f->kernel[0], f->kernel[1], &window) || rows % window)
        return td_fail(TD_ESHAPE, "%lld rows can't be divided by a kernel of %lld x %lld",
                       (long long)rows, (long long)f->kernel[0], (long long)f->kernel[1]);
    if (columns != f->windows[0] * f->windows[1])
        return td_fail(TD_ESHAPE,
                       "an image of %lld x %lld has %lld x %lld windows, input %s has "
                       "%lld",
                       (long long)f->size[0], (long long)f->size[1], (long long)f->windows[0],
                       (long long)f->windows[1], td_tensor_shape_text(x, text), (long long)columns);
    f->c = rows / window;
    return TD_OK;
}

/* ---- views ---- */

/* Room for the padded images, all zero, and what of it is the images. */
static td_status make_padded(const folding *f, td_dtype dtype, td_device device, td_tensor **padded,
                             td_tensor **inside) {
    const int64_t sizes[4] = {f->n, f->c, f->size[0] + 2 * f->padding[0],
                              f->size[1] + 2 * f->padding[1]};
    const int64_t part[4] = {f->n, f->c, f->size[0], f->size[1]};
    td_status status = td_tensor_empty(dtype, device, 4, sizes, padded);
    if (status == TD_OK)
        status = td_fill_int(*padded, 0);
    if (status)
        return status;
    return td_tensor_view(*padded, 4, part, (*padded)->strides,
                          f->padding[0] * sizes[3] + f->padding[1], inside);
}

/* Strides of (N, C, kh, kw, oh, ow) over padded images. */
static void window_strides(const folding *f, const td_tensor *padded, int64_t *strides) {
    const int64_t *s = padded->strides;
    const int64_t all[6] = {s[0],
                            s[1],
                            f->dilation[0] * s[2],
                            f->dilation[1] * s[3],
                            f->stride[0] * s[2],
                            f->stride[1] * s[3]};
    memcpy(strides, all, sizeof all);
}

/* Images or columns as a tensor of these dims, which their own strides allow. */
static td_status batched(td_tensor *x, bool is_batched, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS] = {1}, strides[TD_MAX_DIMS] = {0};
    int shift = is_batched ? 0 : 1;
    for (int d = 0; d < x->ndim; d++) {
        sizes[d + shift] = x->sizes[d];
        strides[d + shift] = x->strides[d];
    }
    return td_tensor_view(x, x->ndim + shift, sizes, strides, 0, out);
}

/* Row-major columns as (N, C, kh, kw, oh, ow). */
static td_status columns_view(const folding *f, td_tensor *x, td_tensor **out) {
    const int64_t sizes[6] = {f->n, f->c, f->kernel[0], f->kernel[1], f->windows[0], f->windows[1]};
    int64_t strides[6];
    td_contiguous_strides(6, sizes, strides);
    return td_tensor_view(x, 6, sizes, strides, 0, out);
}

/* ---- im2col(input, kernel_size, dilation, padding, stride) ---- */

static td_status rule_im2col(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    folding f;
    int64_t rows;
    td_status status = folding_of_images(x, a + 1, &f);
    if (status)
        return status;
    if (__builtin_mul_overflow(f.kernel[0] * f.kernel[1], f.c, &rows))
        return td_fail(TD_ESHAPE, "a result of so many rows is too large");
    const int64_t sizes[3] = {f.n, rows, f.windows[0] * f.windows[1]};
    td_meta_set(out, (td_dtype)x->dtype, x->ndim - 1, sizes + 4 - x->ndim);
    return TD_OK;
}

static td_status kernel_im2col(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *images = NULL, *padded = NULL, *inside = NULL, *from = NULL;
    td_tensor *to = NULL;
    folding f;
    int64_t strides[6];
    td_status status = TD_OK;
    if (call->out[0]->numel == 0)
        return TD_OK;
    TD_TRY(folding_of_images(x, a + 1, &f));
    TD_TRY(batched(x, x->ndim == 4, &images));
    TD_TRY(make_padded(&f, (td_dtype)x->dtype, td_tensor_device(x), &padded, &inside));
    TD_TRY(td_copy_into(inside, images));
    TD_TRY(columns_view(&f, call->out[0], &to));
    window_strides(&f, padded, strides);
    TD_TRY(td_tensor_view(padded, 6, to->sizes, strides, 0, &from));
    status = td_copy_into(to, from);
done:
    td_release(images);
    td_release(padded);
    td_release(inside);
    td_release(from);
    td_release(to);
    return status;
}

/* ---- col2im(input, output_size, kernel_size, dilation, padding, stride) ---- */

static td_status rule_col2im(const td_call *call, td_meta *out) {
    const td_value *a = call->args;
    const td_tensor *x = a[0].tensor;
    folding f;
    td_status status = folding_of_columns(x, a[1], a + 2, &f);
    if (status)
        return status;
    const int64_t sizes[4] = {f.n, f.c, f.size[0], f.size[1]};
    td_meta_set(out, (td_dtype)x->dtype, x->ndim + 1, sizes + 3 - x->ndim);
    return TD_OK;
}

static td_status kernel_col2im(td_call *call) {
    const td_value *a = call->args;
    td_tensor *x = a[0].tensor, *packed = NULL, *padded = NULL, *inside = NULL, *images = NULL;
    td_tensor *columns = NULL;
    td_add_strided_plan plan = {.offset = 0};
    folding f;
    td_status status = TD_OK;
    TD_TRY(folding_of_columns(x, a[1], a + 2, &f));
    if (call->out[0]->numel == 0)
        goto done;
    TD_TRY(make_padded(&f, (td_dtype)x->dtype, td_tensor_device(x), &padded, &inside));
    TD_TRY(td_contiguous(x, &packed));
    TD_TRY(columns_view(&f, packed, &columns));
    plan.out = padded;
    plan.x = columns;
    window_strides(&f, padded, plan.strides);
    TD_TRY(td_add_meeting(&plan, f.kernel[0] * f.kernel[1]));
    TD_TRY(batched(call->out[0], x->ndim == 3, &images));
    status = td_copy_into(images, inside);
done:
    td_release(packed);
    td_release(padded);
    td_release(inside);
    td_release(images);
    td_release(columns);
    return status;
}

/* ---- the table ---- */

#define HOW "kernel_size, dilation, padding, stride"

TD_OPERATOR(im2col) = {
    .schema = "(Tensor input, int[2] kernel_size, int[2] dilation={1, 1}, int[2] padding={0, 0}, "
              "int[2] stride={1, 1}) -> Tensor",
    .doc = "The windows of images (N, C, H, W) or (C, H, W) as columns (N, C kh kw, L): "
           "nn.functional.unfold.",
    .shapes = "input (N?, C, H, W) -> (N?, C*kernel_size[1]*kernel_size[2], l(H, 1)*l(W, 2)); l(n, "
              "d) = (n + 2*padding[d] - dilation[d]*(kernel_size[d] - 1) - 1)//stride[d] + 1",
    .rule = rule_im2col,
    .kernel = kernel_im2col,
    .dtypes = TD_DTYPES_ALL,
    .gradient = "input: col2im(g, {input.size(-2), input.size(-1)}, " HOW ")",
};
TD_OPERATOR(col2im) = {
    .schema = "(Tensor input, int[2] output_size, int[2] kernel_size, int[2] dilation={1, 1}, "
              "int[2] padding={0, 0}, int[2] stride={1, 1}) -> Tensor",
    .doc = "Columns (N, C kh kw, L) or (C kh kw, L) added up to images of output_size: "
           "nn.functional.fold.",
    .shapes = "input (N?, K, L) -> (N?, K//(kernel_size[1]*kernel_size[2]), output_size[1], "
              "output_size[2])",
    .rule = rule_col2im,
    .kernel = kernel_col2im,
    .dtypes = TD_DTYPES_FLOATS,
    .gradient = "input: im2col(g, " HOW ")",
};
