/* tensor.h: tensors, their storage, shapes and strides.
 *
 * Ownership words, used in every header: a "new" reference is the caller's to release; a "borrowed"
 * pointer is not; a "stolen" argument belongs to the callee from the call on, whether it fails or
 * not. Reference counts are atomic: distinct threads may hold and drop the same tensor.
 *
 * Sizes and strides count elements. A tensor's `data` already includes its offset.
 */
#ifndef TD_CORE_TENSOR_H
#define TD_CORE_TENSOR_H

#include <stdatomic.h>

#include "engine/core/device.h"
#include "engine/core/dtype.h"

#define TD_MAX_DIMS    16
#define TD_INLINE_DIMS 5

/* What a device keeps beside a storage for as long as that lives: other forms of its elements. */
typedef struct td_companion {
    void (*drop)(struct td_companion *self); /* the storage is dying */
} td_companion;

typedef struct td_storage {
    atomic_int refs;
    atomic_uint version;  /* counts writes in place; shared by all views */
    atomic_ullong serial; /* td_storage_serial; 0: nobody has asked */
    td_device device;
    bool inline_data; /* data lies in `small` */
    bool inference;   /* made under that mode: of no use in what is recorded */
    uint16_t stream;  /* in whose order the memory is used and given back */
    void *data;
    size_t bytes;            /* asked for */
    size_t granted;          /* what the allocator gave; 0 for borrowed memory */
    td_companion *companion; /* NULL: none; set under a lock of the device's */
    void (*on_release)(void *owner, void *data); /* for memory that is not the allocator's */
    union {
        void *owner;
        struct td_worker *worker; /* of the allocator's memory: a reference to who holds it
                                     (worker.h); NULL: nobody */
    };
    _Alignas(16) unsigned char small[64];
} td_storage;

struct td_autograd; /* autograd/autograd.h: grad, grad_fn, ... of one tensor */

/* How a tensor's elements are kept: in strided memory, or in a way of which `extra` has the parts
 * (core/layout.h). Operators refuse all but the first unless they say what they do with others. */
typedef enum td_layout { TD_STRIDED, TD_SPARSE_COO, TD_QUANTIZED, TD_LAYOUTS } td_layout;

/* The parts of another layout, which aliases share as they share a storage, begin so. */
typedef struct td_extra {
    atomic_int refs;
    const struct td_layout_traits *layout;
} td_extra;

typedef struct td_tensor {
    atomic_int refs;
    uint8_t dtype;
    uint8_t ndim;
    bool requires_grad;    /* leaf with requires_grad or result of a recorded operator */
    bool contiguous;       /* row-major without gaps (cached; set by td_tensor_set_shape) */
    unsigned view_version; /* of a view: storage version when its grad_fn was made */
    uint8_t layout;        /* td_layout */
    int64_t numel;
    void *data;
    td_storage *storage;
    struct td_autograd *autograd; /* NULL until needed */
    td_extra *extra;              /* a reference; NULL for strided tensors */
    struct td_tensor *base;       /* of a view: the tensor it looks into (no view itself); owned */
    int64_t *sizes;               /* inline_dims, or a heap block when ndim > TD_INLINE_DIMS */
    int64_t *strides;
    int64_t inline_dims[2 * TD_INLINE_DIMS];
} td_tensor;

/* Shape and dtype of a tensor to be made, written by shape rules. */
typedef struct td_meta {
    td_dtype dtype;
    td_device device;
    int ndim;
    int64_t sizes[TD_MAX_DIMS];
    int64_t strides[TD_MAX_DIMS]; /* used when `strided`; else row-major */
    bool strided;
} td_meta;

/* ---- making and releasing ---- */

/* New tensor with uninitialised elements, row-major. ESHAPE (a negative size, too many dims),
 * ENOMEM. *out is NULL on failure. */
td_status td_tensor_empty(td_dtype dtype, td_device device, int ndim, const int64_t *sizes,
                          td_tensor **out) TD_MUST_CHECK;
/* The same in the shape and on the device of a tensor that is there already: nothing to check. */
td_status td_tensor_empty_like(const td_tensor *model, td_dtype dtype,
                               td_tensor **out) TD_MUST_CHECK;
td_status td_tensor_from_meta(const td_meta *meta, td_tensor **out) TD_MUST_CHECK;

/* New view: shares storage and version; `offset` in elements from x's first element. Does not
 * record autograd (operators do). EINDEX unless every element lies within x's storage. Dims that
 * take no step (a size of 0 or 1, no elements) may be given any stride: one that could not be of a
 * step within the storage becomes that of row-major, so that strides multiply with sizes. */
td_status td_tensor_view(td_tensor *x, int ndim, const int64_t *sizes, const int64_t *strides,
                         int64_t offset, td_tensor **out) TD_MUST_CHECK;

/* New view of the same shape without autograd history (detach). */
td_status td_tensor_alias(td_tensor *x, td_tensor **out) TD_MUST_CHECK;

/* New CPU tensor on memory that the caller lends; on_release(owner, data) runs when the last view
 * dies. */
td_status td_tensor_from_memory(td_dtype dtype, int ndim, const int64_t *sizes, void *data,
                                void (*on_release)(void *owner, void *data), void *owner,
                                td_tensor **out) TD_MUST_CHECK;

/* New strided tensor of x's dtype, shape, strides and place in its storage, whose elements are
 * those of another storage, as large as x's. */
td_status td_tensor_over(const td_tensor *x, td_storage *storage, td_tensor **out) TD_MUST_CHECK;

/* New storage on a device; uninitialised. ENOMEM. For td_tensor_over. */
td_status td_storage_empty(td_device device, size_t bytes, td_storage **out) TD_MUST_CHECK;
void td_storage_release(td_storage *storage);

/* New tensor of another layout, whose elements are all in `extra` (stolen); its own storage holds
 * nothing but device and version. ESHAPE unless the sizes can be counted. */
td_status td_tensor_from_extra(td_dtype dtype, td_device device, td_layout layout, int ndim,
                               const int64_t *sizes, td_extra *extra,
                               td_tensor **out) TD_MUST_CHECK;

/* New 0-dim CPU tensor of a number. */
td_status td_tensor_scalar(td_dtype dtype, double value, td_tensor **out) TD_MUST_CHECK;
td_status td_tensor_scalar_int(td_dtype dtype, int64_t value, td_tensor **out) TD_MUST_CHECK;

static inline td_tensor *td_retain(td_tensor *x) {
    if (x)
        atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
    return x;
}
/* One reference less; was it the last? Who holds the only one need not write that it is gone, which
 * would take as long as the rest of the release. */
static inline bool td_was_last(atomic_int *refs) {
    return atomic_load_explicit(refs, memory_order_acquire) == 1 ||
           atomic_fetch_sub_explicit(refs, 1, memory_order_acq_rel) == 1;
}
void td_tensor_destroy(td_tensor *x);                                  /* for td_release only */
extern void (*td_autograd_destroy_hook)(struct td_autograd *autograd); /* autograd sets it */
static inline void td_release(td_tensor *x) {                          /* NULL is fine */
    if (x && td_was_last(&x->refs))
        td_tensor_destroy(x);
}

/* ---- reading ---- */

static inline td_device td_tensor_device(const td_tensor *x) {
    return x->storage->device;
}
/* False on meta: whoever would look at elements to choose a way takes the one that is right for
 * all.
 */
static inline bool td_has_elements(const td_tensor *x) {
    return x->storage->device.type != TD_META;
}
static inline size_t td_tensor_itemsize(const td_tensor *x) {
    return td_dtype_size(x->dtype);
}
static inline unsigned td_tensor_version(const td_tensor *x) {
    return atomic_load_explicit(&x->storage->version, memory_order_relaxed);
}
/* Of two threads that write at once one may count for both: it is another version all the same. */
static inline void td_tensor_bump_version(td_tensor *x) {
    atomic_store_explicit(&x->storage->version, td_tensor_version(x) + 1, memory_order_relaxed);
}

/* A number that no other storage of the process has or had. */
uint64_t td_storage_serial(td_storage *storage);

/* The bytes of a one-element tensor, copied to the host (16 are always enough), or its value.
 * ESHAPE when numel is not 1. */
td_status td_tensor_fetch(const td_tensor *x, void *bytes) TD_MUST_CHECK;
td_status td_tensor_item(const td_tensor *x, double *value) TD_MUST_CHECK;
td_status td_tensor_item_int(const td_tensor *x, int64_t *value) TD_MUST_CHECK;

static inline bool td_tensor_same_shape(const td_tensor *a, const td_tensor *b) {
    if (a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->sizes[d] != b->sizes[d])
            return false;
    return true;
}

/* Elements lie without gaps or overlaps in some order of dims (a permuted row-major tensor). */
bool td_tensor_is_dense(const td_tensor *x);
/* Two indices may reach the same element (an expanded tensor): writing in place is refused. */
bool td_tensor_overlaps(const td_tensor *x);

/* ---- shapes ---- */

/* Elements of a shape; -1 where int64 can't count them, a size of 0 taken for 1: of the sizes of
 * a tensor, empty or not, any may be multiplied with one another. */
int64_t td_numel(int ndim, const int64_t *sizes);
void td_contiguous_strides(int ndim, const int64_t *sizes, int64_t *strides);
bool td_is_contiguous(int ndim, const int64_t *sizes, const int64_t *strides);

/* Shape that a and b broadcast to. ESHAPE names both shapes. ndim <= TD_MAX_DIMS. */
td_status td_broadcast(int a_ndim, const int64_t *a, int b_ndim, const int64_t *b, int *ndim,
                       int64_t *sizes) TD_MUST_CHECK;

/* "(2, 3)" into a buffer that the caller gives; returns the buffer. 160 bytes always suffice for
 * reading; longer shapes are cut with "...". */
#define TD_SHAPE_TEXT 160
const char *td_shape_text(int ndim, const int64_t *sizes, char *buffer, size_t size);
#define td_tensor_shape_text(x, buffer)                                                            \
    td_shape_text((x)->ndim, (x)->sizes, (buffer), sizeof(buffer))

/* Dim counted from 0, negative from the end, into [0, ndim) (a 0-dim tensor takes 0 and -1).
 * EINDEX. Messages speak to Lua users and count from 1. */
td_status td_wrap_dim(int64_t dim, int ndim, int *out) TD_MUST_CHECK;

/* Replace shape and strides of a tensor that nobody else sees yet (ndim <= TD_MAX_DIMS, sizes that
 * td_numel counts). ENOMEM; EINDEX unless every element lies within its storage. */
td_status td_tensor_set_shape(td_tensor *x, int ndim, const int64_t *sizes,
                              const int64_t *strides) TD_MUST_CHECK;

/* Let x, in place, be what `view`, another tensor over its storage, is: shape, strides and place.
 * ENOMEM. */
td_status td_tensor_turn(td_tensor *x, const td_tensor *view) TD_MUST_CHECK;

/* Make room for a shape in a result tensor given by the caller (out=): reallocates its storage if
 * too small. Bumps the version. */
td_status td_tensor_resize(td_tensor *x, int ndim, const int64_t *sizes) TD_MUST_CHECK;

#endif
