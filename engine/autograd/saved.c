/* saved.c: calls a keeper of saved tensors (saved.h): packs what a node saves, unpacks it for
 * backward, and checks that dtype, shape and device are those of what was packed. Neither call is
 * recorded. */
#include "engine/autograd/saved.h"

#include "engine/core/memory.h"

#include <string.h>

struct td_packed {
    td_status (*unpack)(void *packed, td_tensor **out);
    void (*destroy)(void *packed);
    void *packed;
    td_device device;
    uint8_t dtype, layout;
    int ndim;
    int64_t sizes[]; /* of what was packed */
};

/* What pack and unpack do is nobody's graph, and is not packed in turn. */
static td_modes enter(void) {
    td_modes modes = td_get_modes();
    modes.grad_disabled = true;
    modes.keeper = NULL;
    return td_set_modes(modes);
}

td_status td_pack_saved(td_tensor *x, td_packed **out) {
    const td_keeper *keeper = td_modes_current.keeper;
    td_packed *p = td_malloc(sizeof *p + sizeof(int64_t) * x->ndim);
    if (!p)
        return td_fail(TD_ENOMEM, "out of memory for a saved tensor");
    *p = (td_packed){.unpack = keeper->unpack,
                     .destroy = keeper->destroy,
                     .device = td_tensor_device(x),
                     .dtype = x->dtype,
                     .layout = x->layout,
                     .ndim = x->ndim};
    memcpy(p->sizes, x->sizes, sizeof(int64_t) * x->ndim);
    unsigned version = td_tensor_version(x);
    td_modes before = enter();
    td_status status = keeper->pack(keeper->ctx, x, &p->packed);
    td_set_modes(before);
    if (status) {
        td_free(p);
        return status;
    }
    *out = p;
    if (td_tensor_version(x) == version)
        return TD_OK;
    return td_fail(TD_EAUTOGRAD, "a pack hook changed the saved tensor in place");
}

static td_status check_unpacked(const td_packed *p, const td_tensor *x) {
    char want[TD_SHAPE_TEXT], have[TD_SHAPE_TEXT];
    bool same = x->dtype == p->dtype && x->ndim == p->ndim &&
                td_device_same(td_tensor_device(x), p->device) && x->layout == p->layout;
    for (int d = 0; d < p->ndim && same; d++)
        same = x->sizes[d] == p->sizes[d];
    if (same)
        return TD_OK;
    return td_fail(TD_EAUTOGRAD,
                   "unpacking gave a %s tensor of shape %s on %s, where a %s tensor "
                   "of shape %s on %s was saved",
                   td_dtype_name((td_dtype)x->dtype), td_tensor_shape_text(x, have),
                   td_device_name(td_tensor_device(x)), td_dtype_name((td_dtype)p->dtype),
                   td_shape_text(p->ndim, p->sizes, want, sizeof want), td_device_name(p->device));
}

/* What came is seen without the history that it may have: that of the tensor saved counts. */
td_status td_unpack(const td_packed *p, td_tensor **out) {
    td_tensor *x = NULL;
    td_modes before = enter();
    td_status status = p->unpack(p->packed, &x);
    td_set_modes(before);
    if (status == TD_OK)
        status = check_unpacked(p, x);
    if (status == TD_OK)
        status = td_tensor_alias(x, out);
    td_release(x);
    return status;
}

void td_packed_free(td_packed *p) {
    if (!p)
        return;
    p->destroy(p->packed);
    td_free(p);
}

const void *td_packed_payload(const td_packed *p) {
    return p->packed;
}
