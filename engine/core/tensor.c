/* tensor.c: birth and death of tensors and storages; views. Shapes are in shape.c. */
#include "engine/core/tensor.h"

#include "engine/core/allocator.h"
#include "engine/core/backend.h"
#include "engine/core/layout.h"
#include "engine/core/memory.h"
#include "engine/core/number.h"
#include "engine/core/observer.h"
#include "engine/core/worker.h"

#include <stdio.h>
#include <string.h>

/* Autograd sits on a higher floor and sets this when it first gives a tensor its part. */
void (*td_autograd_destroy_hook)(struct td_autograd *autograd);

static void report_memory(td_device device, int64_t bytes) {
    td_observer *o = td_observer_get(TD_EVENT_ALLOC);
    if (TD_LIKELY(!o))
        return;
    td_event event = {.kind = TD_EVENT_ALLOC,
                      .name = "[memory]",
                      .track = td_stream_current(device),
                      .bytes = bytes,
                      .total = td_memory_get_stats(device).allocated};
    o->instant(o->ctx, &event);
}

static const char *bytes_text(double bytes, char *buffer, size_t size) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 6; u++)
        bytes /= 1024;
    td_number_print(buffer, size,
                    bytes >= 1e6 ? "%.3g %s"
                    : u          ? "%.2f %s"
                                 : "%.0f %s",
                    bytes, units[u]);
    return buffer;
}

static td_status fail_memory(double bytes, td_device device) {
    char want[40], have[40];
    return td_fail(TD_ENOMEM, "out of memory: tried to allocate %s on %s (%s in use by tensors)",
                   bytes_text(bytes, want, sizeof want), td_device_name(device),
                   bytes_text((double)td_memory_get_stats(device).allocated, have, sizeof have));
}

static td_storage *storage_new(td_device device, size_t bytes) {
    td_storage *s = td_object_alloc(sizeof *s);
    if (!s)
        return NULL;
    atomic_init(&s->refs, 1);
    atomic_init(&s->version, 0);
    atomic_init(&s->serial, 0);
    s->device = device;
    s->bytes = bytes;
    s->inference = td_modes_current.inference;
    s->on_release = NULL;
    s->companion = NULL;
    s->inline_data = bytes <= sizeof s->small && device.type == TD_CPU;
    if (s->inline_data) {
        s->data = s->small;
        s->granted = 0;
        return s;
    }
    td_stream stream = td_stream_current(device);
    s->stream = stream.id;
    s->data = td_device_allocate(stream, bytes, &s->granted);
    if (!s->data) {
        td_object_free(s, sizeof *s);
        return NULL;
    }
    s->worker = td_worker_current;
    if (TD_UNLIKELY(s->worker != NULL))
        td_worker_hold(s->worker, device, (int64_t)s->granted);
    report_memory(device, (int64_t)s->granted);
    return s;
}

uint64_t td_storage_serial(td_storage *s) {
    static atomic_ullong last;
    unsigned long long known = atomic_load_explicit(&s->serial, memory_order_relaxed);
    if (known)
        return known;
    unsigned long long mine = atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
    return atomic_compare_exchange_strong(&s->serial, &known, mine) ? mine : known;
}

void td_storage_release(td_storage *s) {
    if (!td_was_last(&s->refs))
        return;
    if (TD_UNLIKELY(s->companion != NULL))
        s->companion->drop(s->companion);
    if (s->on_release) {
        s->on_release(s->owner, s->data);
    } else if (!s->inline_data) {
        if (TD_UNLIKELY(s->worker != NULL))
            td_worker_let_go(s->worker, s->device, (int64_t)s->granted);
        td_device_release((td_stream){s->device, s->stream}, s->data, s->granted);
        report_memory(s->device, -(int64_t)s->granted);
    }
    td_object_free(s, sizeof *s);
}

/* A header with room for ndim dims; refs 1, everything else but sizes and strides to be set. */
static td_tensor *header_new(int ndim) {
    td_tensor *x = td_object_alloc(sizeof *x);
    if (!x)
        return NULL;
    atomic_init(&x->refs, 1);
    x->ndim = (uint8_t)ndim;
    x->requires_grad = false;
    x->layout = TD_STRIDED;
    x->autograd = NULL;
    x->extra = NULL;
    x->base = NULL;
    x->view_version = 0;
    if (TD_LIKELY(ndim <= TD_INLINE_DIMS)) {
        x->sizes = x->inline_dims;
        x->strides = x->inline_dims + TD_INLINE_DIMS;
        return x;
    }
    x->sizes = td_malloc(2 * TD_MAX_DIMS * sizeof(int64_t));
    if (!x->sizes) {
        td_object_free(x, sizeof *x);
        return NULL;
    }
    x->strides = x->sizes + TD_MAX_DIMS;
    return x;
}

static void header_free(td_tensor *x) {
    if (x->sizes != x->inline_dims)
        td_free(x->sizes);
    td_object_free(x, sizeof *x);
}

static void extra_release(td_extra *extra) {
    if (td_was_last(&extra->refs))
        extra->layout->destroy(extra);
}

void td_tensor_destroy(td_tensor *x) {
    if (x->autograd)
        td_autograd_destroy_hook(x->autograd);
    if (x->extra)
        extra_release(x->extra);
    td_storage_release(x->storage);
    td_release(x->base);
    header_free(x);
}

static td_status fail_count(int ndim, const int64_t *sizes) {
    char text[TD_SHAPE_TEXT];
    return td_fail(TD_ESHAPE, "shape %s has too many elements",
                   td_shape_text(ndim, sizes, text, sizeof text));
}

/* More bytes than int64 counts. */
static td_status fail_bytes(int ndim, const int64_t *sizes, size_t itemsize, td_device device) {
    double bytes = (double)itemsize;
    for (int d = 0; d < ndim; d++)
        bytes *= (double)sizes[d];
    return bytes == 0 ? fail_count(ndim, sizes) : fail_memory(bytes, device);
}

/* Elements of a shape, after checking it: its sizes, those of 0 taken for 1, times the size of an
 * element, stay within int64; where there are no elements, of the largest, so that all dtypes have
 * the same shapes. */
static td_status check_shape(int ndim, const int64_t *sizes, size_t itemsize, td_device device,
                             int64_t *numel) {
    char text[TD_SHAPE_TEXT];
    if (ndim > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "a tensor has at most %d dims, got %d", TD_MAX_DIMS, ndim);
    bool fits = true, none = false;
    int64_t bytes = (int64_t)itemsize;
    uint64_t n = 1;
    for (int d = 0; d < ndim; d++) {
        if (sizes[d] < 0)
            return td_fail(TD_ESHAPE, "size %lld of dimension %d is negative in shape %s",
                           (long long)sizes[d], d + 1,
                           td_shape_text(ndim, sizes, text, sizeof text));
        fits &= !__builtin_mul_overflow(bytes, sizes[d] ? sizes[d] : 1, &bytes);
        n *= (uint64_t)sizes[d];
        none |= sizes[d] == 0;
    }
    if (TD_UNLIKELY(none))
        fits &= bytes <= INT64_MAX / 8 * (int64_t)itemsize;
    *numel = (int64_t)n;
    return TD_LIKELY(fits) ? TD_OK : fail_bytes(ndim, sizes, itemsize, device);
}

td_status td_tensor_empty(td_dtype dtype, td_device device, int ndim, const int64_t *sizes,
                          td_tensor **out) {
    *out = NULL;
    int64_t n;
    size_t itemsize = td_dtype_size(dtype);
    td_status status = check_shape(ndim, sizes, itemsize, device, &n);
    if (TD_UNLIKELY(status))
        return status;
    td_tensor *x = header_new(ndim);
    if (!x)
        return fail_memory(sizeof *x, TD_DEVICE_CPU);
    x->storage = storage_new(device, (size_t)n * itemsize);
    if (TD_UNLIKELY(!x->storage)) {
        header_free(x);
        return fail_memory((double)n * (double)itemsize, device);
    }
    x->dtype = (uint8_t)dtype;
    x->numel = n;
    x->contiguous = true;
    x->data = x->storage->data;
    int64_t stride = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        x->sizes[d] = sizes[d];
        x->strides[d] = stride;
        stride *= sizes[d] > 1 ? sizes[d] : 1;
    }
    *out = x;
    return TD_OK;
}

td_status td_tensor_empty_like(const td_tensor *model, td_dtype dtype, td_tensor **out) {
    td_device device = td_tensor_device(model);
    size_t bytes = (size_t)model->numel * td_dtype_size(dtype);
    int ndim = model->ndim;
    if (TD_UNLIKELY(!model->contiguous || dtype != model->dtype)) /* it may have no such memory */
        return td_tensor_empty(dtype, device, ndim, model->sizes, out);
    *out = NULL;
    td_tensor *x = header_new(ndim);
    if (!x)
        return fail_memory(sizeof *x, TD_DEVICE_CPU);
    x->storage = storage_new(device, bytes);
    if (TD_UNLIKELY(!x->storage)) {
        header_free(x);
        return fail_memory((double)bytes, device);
    }
    x->dtype = (uint8_t)dtype;
    x->numel = model->numel;
    x->contiguous = true;
    x->data = x->storage->data;
    for (int d = 0; d < ndim; d++) {
        x->sizes[d] = model->sizes[d];
        x->strides[d] = model->strides[d];
    }
    *out = x;
    return TD_OK;
}

/* ---- what lies where ---- */

static long long counted_from_1(int64_t at) {
    return at < INT64_MAX ? at + 1 : at;
}

static td_status fail_range(const td_tensor *x, int64_t first, int64_t last) {
    int64_t item = (int64_t)td_tensor_itemsize(x), room = (int64_t)x->storage->bytes / item;
    if (first == INT64_MIN)
        return td_fail(TD_EINDEX, "elements lie outside the storage of %lld elements",
                       (long long)room);
    return td_fail(TD_EINDEX, "elements %lld to %lld lie outside the storage of %lld elements",
                   counted_from_1(first / item), counted_from_1(last / item), (long long)room);
}

/* Of no elements: whatever the strides are, they must multiply with the sizes. */
static td_status lay_out_nothing(td_tensor *x) {
    int64_t numel, row_major = 1, product;
    for (int d = x->ndim - 1; d >= 0; d--) {
        int64_t stride = x->strides[d];
        if ((uint64_t)stride > x->storage->bytes ||
            __builtin_mul_overflow(stride, x->sizes[d], &product))
            x->strides[d] = row_major;
        row_major *= x->sizes[d] ? x->sizes[d] : 1;
    }
    return check_shape(x->ndim, x->sizes, td_tensor_itemsize(x), td_tensor_device(x), &numel);
}

/* The one place that says what a tensor over a storage may be: sizes and strides into x, whose
 * first element lies `at` bytes behind the storage's first (out of range where that is no number).
 * Sizes are the caller's to check: none is negative. */
static td_status lay_out(td_tensor *x, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t at) {
    int64_t item = (int64_t)td_tensor_itemsize(x), bytes = (int64_t)x->storage->bytes;
    int64_t low = at, high = at, row = 1, reach;
    bool empty = false, row_major = true, counts = true, fits = true;
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t size = sizes[d], stride = strides[d];
        x->sizes[d] = size;
        x->strides[d] = stride;
        if (size <= 1) { /* no step: a stride that could be none must not spoil arithmetic */
            empty |= size == 0;
            if (TD_UNLIKELY((uint64_t)stride > (uint64_t)bytes))
                x->strides[d] = row < INT64_MAX / 16 ? row : 0;
            continue;
        }
        row_major &= stride == row;
        counts &= !__builtin_mul_overflow(row, size, &row);
        fits &= !__builtin_mul_overflow(size - 1, stride, &reach) &&
                !__builtin_mul_overflow(reach, item, &reach);
        if (stride < 0)
            fits &= !__builtin_add_overflow(low, reach, &low);
        else
            fits &= !__builtin_add_overflow(high, reach, &high);
    }
    x->ndim = (uint8_t)ndim;
    x->numel = empty ? 0 : row;
    x->contiguous = empty || row_major;
    if (TD_UNLIKELY(!counts)) /* an expanded tensor needs no memory, but must be countable */
        return fail_count(ndim, sizes);
    if (TD_UNLIKELY(empty))
        return lay_out_nothing(x);
    if (TD_LIKELY(fits && low >= 0 && high <= bytes - item))
        return TD_OK;
    return fail_range(x, fits ? low : INT64_MIN, high);
}

td_status td_tensor_from_meta(const td_meta *meta, td_tensor **out) {
    td_status status = td_tensor_empty(meta->dtype, meta->device, meta->ndim, meta->sizes, out);
    if (status == TD_OK && meta->strided)
        status = td_tensor_set_shape(*out, meta->ndim, meta->sizes, meta->strides);
    if (TD_UNLIKELY(status)) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}

td_status td_tensor_view(td_tensor *base, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset, td_tensor **out) {
    *out = NULL;
    if (ndim > TD_MAX_DIMS)
        return td_fail(TD_ESHAPE, "a tensor has at most %d dims, got %d", TD_MAX_DIMS, ndim);
    td_tensor *x = header_new(ndim);
    if (!x)
        return fail_memory(sizeof *x, TD_DEVICE_CPU);
    td_storage *s = base->storage;
    int64_t at, before = (char *)base->data - (char *)s->data;
    if (TD_UNLIKELY(__builtin_mul_overflow(offset, (int64_t)td_tensor_itemsize(base), &at) ||
                    __builtin_add_overflow(at, before, &at)))
        at = INT64_MIN;
    x->storage = s;
    x->dtype = base->dtype;
    td_status status = lay_out(x, ndim, sizes, strides, at);
    if (TD_UNLIKELY(status)) {
        header_free(x);
        return status;
    }
    if (TD_UNLIKELY(!x->numel && (at < 0 || (size_t)at > s->bytes)))
        at = before; /* nothing lies there: no pointer leads out of the storage */
    x->data = (char *)s->data + at;
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    *out = x;
    return TD_OK;
}

td_status td_tensor_over(const td_tensor *x, td_storage *storage, td_tensor **out) {
    td_tensor *y = *out = header_new(x->ndim);
    if (!y)
        return fail_memory(sizeof *y, TD_DEVICE_CPU);
    atomic_fetch_add_explicit(&storage->refs, 1, memory_order_relaxed);
    y->storage = storage;
    y->dtype = x->dtype;
    y->numel = x->numel;
    y->contiguous = x->contiguous;
    y->data = (char *)storage->data + ((char *)x->data - (char *)x->storage->data);
    memcpy(y->sizes, x->sizes, sizeof(int64_t) * x->ndim);
    memcpy(y->strides, x->strides, sizeof(int64_t) * x->ndim);
    return TD_OK;
}

td_status td_tensor_alias(td_tensor *x, td_tensor **out) {
    td_status status = td_tensor_over(x, x->storage, out);
    if (TD_UNLIKELY(status == TD_OK && x->extra)) {
        atomic_fetch_add_explicit(&x->extra->refs, 1, memory_order_relaxed);
        (*out)->extra = x->extra;
        (*out)->layout = x->layout;
    }
    return status;
}

td_status td_storage_empty(td_device device, size_t bytes, td_storage **out) {
    *out = storage_new(device, bytes);
    return *out ? TD_OK : fail_memory((double)bytes, device);
}

td_status td_tensor_from_extra(td_dtype dtype, td_device device, td_layout layout, int ndim,
                               const int64_t *sizes, td_extra *extra, td_tensor **out) {
    int64_t n;
    td_tensor *x = NULL;
    *out = NULL;
    td_status status = check_shape(ndim, sizes, 0, device, &n);
    if (status == TD_OK && td_numel(ndim, sizes) < 0)
        status = fail_count(ndim, sizes);
    if (status == TD_OK && (!(x = header_new(ndim)) || !(x->storage = storage_new(device, 0)))) {
        if (x)
            header_free(x);
        status = fail_memory(sizeof *x + sizeof *x->storage, TD_DEVICE_CPU);
    }
    if (status) {
        extra_release(extra);
        return status;
    }
    x->dtype = (uint8_t)dtype;
    x->layout = (uint8_t)layout;
    x->numel = n;
    x->contiguous = true;
    x->data = x->storage->data;
    x->extra = extra;
    memcpy(x->sizes, sizes, sizeof(int64_t) * (size_t)ndim);
    td_contiguous_strides(ndim, sizes, x->strides);
    *out = x;
    return TD_OK;
}

td_status td_tensor_from_memory(td_dtype dtype, int ndim, const int64_t *sizes, void *data,
                                void (*on_release)(void *owner, void *data), void *owner,
                                td_tensor **out) {
    *out = NULL;
    int64_t n;
    td_status status = check_shape(ndim, sizes, td_dtype_size(dtype), TD_DEVICE_CPU, &n);
    if (status)
        return status;
    td_tensor *x = header_new(ndim);
    td_storage *s = x ? storage_new(TD_DEVICE_CPU, 0) : NULL;
    if (!s) {
        if (x)
            header_free(x);
        return fail_memory(sizeof *x + sizeof *s, TD_DEVICE_CPU);
    }
    s->inline_data = false;
    s->data = data;
    s->bytes = (size_t)n * td_dtype_size(dtype);
    s->on_release = on_release;
    s->owner = owner;
    x->storage = s;
    x->dtype = (uint8_t)dtype;
    x->numel = n;
    x->contiguous = true;
    x->data = data;
    memcpy(x->sizes, sizes, sizeof(int64_t) * (size_t)ndim);
    td_contiguous_strides(ndim, sizes, x->strides);
    *out = x;
    return TD_OK;
}

td_status td_tensor_scalar(td_dtype dtype, double value, td_tensor **out) {
    td_status status = td_tensor_empty(dtype, TD_DEVICE_CPU, 0, NULL, out);
    if (status == TD_OK)
        td_store_double(dtype, (*out)->data, value);
    return status;
}

td_status td_tensor_scalar_int(td_dtype dtype, int64_t value, td_tensor **out) {
    td_status status = td_tensor_empty(dtype, TD_DEVICE_CPU, 0, NULL, out);
    if (status == TD_OK)
        td_store_int(dtype, (*out)->data, value);
    return status;
}

td_status td_tensor_fetch(const td_tensor *x, void *bytes) {
    char text[TD_SHAPE_TEXT];
    if (TD_UNLIKELY(x->layout != TD_STRIDED))
        return td_fail(TD_ETYPE,
                       "a %s tensor's elements can't be read one by one: take x:%s() first",
                       td_layout_of(x)->noun, td_layout_of(x)->convert);
    if (x->numel != 1)
        return td_fail(TD_ESHAPE, "a tensor of one element is needed, got shape %s",
                       td_tensor_shape_text(x, text));
    td_device device = td_tensor_device(x);
    if (device.type == TD_CPU) {
        memcpy(bytes, x->data, td_tensor_itemsize(x));
        return TD_OK;
    }
    return td_backend_of(device)->download(td_stream_current(device), bytes, x->data,
                                           td_tensor_itemsize(x));
}

td_status td_tensor_item(const td_tensor *x, double *value) {
    unsigned char bytes[16];
    td_status status = td_tensor_fetch(x, bytes);
    if (status == TD_OK)
        *value = td_load_double(x->dtype, bytes);
    return status;
}

td_status td_tensor_item_int(const td_tensor *x, int64_t *value) {
    unsigned char bytes[16];
    td_status status = td_tensor_fetch(x, bytes);
    if (status == TD_OK)
        *value = td_load_int(x->dtype, bytes);
    return status;
}

td_status td_tensor_set_shape(td_tensor *x, int ndim, const int64_t *sizes,
                              const int64_t *strides) {
    if (ndim > TD_INLINE_DIMS && x->sizes == x->inline_dims) {
        int64_t *dims = td_malloc(2 * TD_MAX_DIMS * sizeof(int64_t));
        if (!dims)
            return fail_memory(2 * TD_MAX_DIMS * sizeof(int64_t), TD_DEVICE_CPU);
        x->sizes = dims;
        x->strides = dims + TD_MAX_DIMS;
    }
    return lay_out(x, ndim, sizes, strides, (char *)x->data - (char *)x->storage->data);
}

td_status td_tensor_turn(td_tensor *x, const td_tensor *view) {
    void *before = x->data;
    x->data = view->data;
    td_status status = td_tensor_set_shape(x, view->ndim, view->sizes, view->strides);
    if (status)
        x->data = before;
    return status;
}

td_status td_tensor_resize(td_tensor *x, int ndim, const int64_t *sizes) {
    int64_t n;
    td_status status = check_shape(ndim, sizes, td_tensor_itemsize(x), td_tensor_device(x), &n);
    if (status)
        return status;
    int64_t strides[TD_MAX_DIMS];
    td_contiguous_strides(ndim, sizes, strides);
    size_t offset = (size_t)((char *)x->data - (char *)x->storage->data);
    size_t bytes = (size_t)n * td_tensor_itemsize(x);
    if (offset + bytes > x->storage->bytes) {
        td_storage *s = storage_new(td_tensor_device(x), bytes);
        if (!s)
            return fail_memory((double)bytes, td_tensor_device(x));
        s->inference = x->storage->inference;
        td_storage_release(x->storage);
        x->storage = s;
        x->data = s->data;
    }
    td_tensor_bump_version(x);
    return td_tensor_set_shape(x, ndim, sizes, strides);
}
