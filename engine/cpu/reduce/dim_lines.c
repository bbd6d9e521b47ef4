/* dim_lines.c: copies the lines of a tensor along a dim into contiguous memory and back, where they
 * don't lie so already. */
#include "engine/cpu/reduce/dim_lines.h"

#include "engine/ops/make/copy.h"

/* x seen with `dim` last. */
static td_status turned(td_tensor *x, int dim, td_tensor **out) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    int n = 0;
    for (int d = 0; d < x->ndim; d++) {
        if (d == dim)
            continue;
        sizes[n] = x->sizes[d];
        strides[n++] = x->strides[d];
    }
    sizes[n] = x->ndim ? x->sizes[dim] : 1;
    strides[n++] = x->ndim ? x->strides[dim] : 1;
    return td_tensor_view(x, n, sizes, strides, 0, out);
}

td_status td_lines_of(td_tensor *x, int dim, td_tensor **lines) {
    td_tensor *view = NULL;
    td_status status = turned(x, dim, &view);
    if (status == TD_OK)
        status = td_contiguous(view, lines);
    td_release(view);
    return status;
}

td_status td_lines_for(td_tensor *out, int dim, td_tensor **lines) {
    td_tensor *view = NULL;
    td_status status = TD_OK;
    *lines = NULL;
    if (!out)
        return TD_OK;
    status = turned(out, dim, &view);
    if (status == TD_OK && view->contiguous)
        *lines = td_retain(view);
    else if (status == TD_OK)
        status =
            td_tensor_empty((td_dtype)out->dtype, TD_DEVICE_CPU, view->ndim, view->sizes, lines);
    td_release(view);
    return status;
}

td_status td_lines_put(td_tensor *out, int dim, td_tensor *lines) {
    td_tensor *view = NULL;
    if (!out || lines->storage == out->storage)
        return TD_OK;
    td_status status = turned(out, dim, &view);
    if (status == TD_OK)
        status = td_copy_into(view, lines);
    td_release(view);
    return status;
}

td_status td_room(int64_t n, size_t size, td_tensor **room) {
    int64_t bytes;
    if (__builtin_mul_overflow(n, (int64_t)size, &bytes))
        return td_fail(TD_ENOMEM, "out of memory");
    return td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &bytes, room);
}

td_status td_for_lines(int64_t lines, int64_t cost, int64_t bytes, char **room, td_range_fn fn,
                       void *ctx) {
    int threads = td_get_num_threads(); /* others may set it while this runs */
    td_tensor *own = NULL;
    td_status status = td_room(threads, (size_t)bytes, &own);
    if (status == TD_OK) {
        *room = own->data;
        status = td_parallel_for_among(threads, lines, cost, fn, ctx);
    }
    td_release(own);
    return status;
}
