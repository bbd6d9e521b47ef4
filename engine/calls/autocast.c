/* autocast.c: the arguments of calls under autocast, and the casts of weights that are kept: for a
 * region, or, where nothing is recorded, for as long as the weight stays as it is. */
#include "engine/calls/autocast.h"

#include "engine/autograd/autograd.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/ops/given.h"
#include "engine/ops/make/kept_forms.h"

#include <pthread.h>
#include <string.h>

td_dtype td_autocast_dtype(td_device device) {
    uint8_t dtype = td_modes_current.cast[td_autocast_slot(device)];
    return td_modes_current.casting && dtype ? (td_dtype)dtype : TD_DTYPE_NONE;
}

void td_autocast_set(td_modes *modes, int slot, td_dtype low) {
    modes->cast[slot] = (uint8_t)low;
    modes->casting = false;
    for (int k = 0; k < TD_DEVICE_TYPES; k++)
        modes->casting |= modes->cast[k] != 0;
}

/* ---- regions ---- */

/* A weight and its cast; both owned. */
typedef struct kept {
    td_tensor *leaf, *cast;
    const td_storage *storage; /* the leaf's when it was cast, and its version then */
    unsigned version;
    struct kept *next;
} kept;

typedef struct region {
    uint32_t number;
    td_map casts;
    kept *first;
    struct region *next;
} region;

/* Of all threads, since a state may move from one to another. A handful at most. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static region *regions;
static uint32_t newest;

static region **find_region(uint32_t number) {
    region **at = &regions;
    while (*at && (*at)->number != number)
        at = &(*at)->next;
    return at;
}

uint32_t td_autocast_region_begin(void) {
    region *r = td_calloc(1, sizeof *r);
    if (!r)
        return 0;
    pthread_mutex_lock(&lock);
    do
        newest = newest % 0xffffff + 1;
    while (*find_region(newest));
    r->number = newest;
    r->next = regions;
    regions = r;
    uint32_t number = r->number;
    pthread_mutex_unlock(&lock);
    return number;
}

bool td_autocast_region_holds(uint32_t number) {
    pthread_mutex_lock(&lock);
    bool holds = number && *find_region(number);
    pthread_mutex_unlock(&lock);
    return holds;
}

void td_autocast_region_end(uint32_t number) {
    pthread_mutex_lock(&lock);
    region **at = find_region(number), *r = *at;
    if (r)
        *at = r->next;
    pthread_mutex_unlock(&lock);
    for (kept *k = r ? r->first : NULL, *next; k; k = next) {
        next = k->next;
        td_release(k->cast);
        td_release(k->leaf);
        td_free(k);
    }
    if (r)
        td_map_clear(&r->casts);
    td_free(r);
}

static bool is_of(const void *entry, const void *leaf) {
    return ((const kept *)entry)->leaf == leaf;
}

/* The cast that a region keeps of a leaf as it is now: new, or NULL. */
static td_tensor *find_kept(td_tensor *leaf, td_dtype dtype) {
    td_tensor *cast = NULL;
    pthread_mutex_lock(&lock);
    region *r = *find_region(td_modes_current.region);
    kept *k = r ? td_map_find(&r->casts, td_hash_address(leaf), is_of, leaf) : NULL;
    if (k && k->storage == leaf->storage && k->version == td_tensor_version(leaf) &&
        k->cast->dtype == dtype)
        cast = td_retain(k->cast);
    pthread_mutex_unlock(&lock);
    return cast;
}

static kept *add_kept(region *r, td_tensor *leaf) {
    kept *k = td_calloc(1, sizeof *k);
    if (!k || td_map_add(&r->casts, td_hash_address(leaf), k)) {
        td_free(k);
        return NULL;
    }
    k->leaf = td_retain(leaf);
    k->next = r->first;
    r->first = k;
    return k;
}

/* In place of an older one. Where memory runs out nothing is kept. */
static void keep(td_tensor *leaf, td_tensor *cast) {
    td_tensor *former = NULL;
    pthread_mutex_lock(&lock);
    region *r = *find_region(td_modes_current.region);
    kept *k = r ? td_map_find(&r->casts, td_hash_address(leaf), is_of, leaf) : NULL;
    if (r && !k)
        k = add_kept(r, leaf);
    if (k) {
        former = k->cast;
        k->cast = td_retain(cast);
        k->storage = leaf->storage;
        k->version = td_tensor_version(leaf);
    }
    pthread_mutex_unlock(&lock);
    td_release(former);
}

/* ---- casts ---- */

/* Float64 is what somebody asked for: it stays. */
static bool is_eligible(const td_tensor *x, const td_call *call) {
    return x && td_dtype_is_float((td_dtype)x->dtype) && x->dtype != TD_F64 &&
           td_tensor_device(x).type == call->device.type;
}

static bool is_weight(const td_tensor *x, td_dtype to) {
    return x->dtype == TD_F32 && to != TD_F32 && x->requires_grad && td_is_leaf(x) && !x->base &&
           !td_modes_current.uncached;
}

typedef struct weight_cast {
    td_tensor *x;
    td_dtype to;
} weight_cast;

/* Of use in every mode that records nothing. */
static td_status make_unrecorded(const void *ctx, td_tensor **out) {
    const weight_cast *c = ctx;
    const td_modes before = td_get_modes();
    td_modes_current.grad_disabled = true;
    td_modes_current.inference = false;
    td_status status = TD_APPLY(out, to, TD_T(c->x), TD_DTYPE(c->to));
    td_set_modes(before);
    return status;
}

/* The cast that is kept beside a weight's storage from region to region, as long as nothing is
 * recorded: new, or NULL. It is asked for while operators are recorded as well, so that casts of
 * what has been written since go. */
static td_tensor *find_unrecorded(td_tensor *x, td_dtype to) {
    td_form_key key = {TD_FORM_CAST, x->data, {to, x->ndim}};
    const weight_cast c = {x, to};
    if (x->layout != TD_STRIDED || x->ndim > TD_INLINE_DIMS || x->storage->device.type != TD_CPU ||
        td_modes_current.dispatcher)
        return NULL;
    memcpy(key.word + 2, x->sizes, sizeof(int64_t) * x->ndim);
    memcpy(key.word + 2 + TD_INLINE_DIMS, x->strides, sizeof(int64_t) * x->ndim);
    td_tensor *found = td_kept_form(x->storage, &key, make_unrecorded, &c);
    if (found && td_is_recording()) {
        td_release(found);
        found = NULL;
    }
    return found;
}

/* A cast that a region keeps is recorded, though it be made under no_grad: the next call may need
 * it. */
static td_status cast_weight(td_tensor *x, td_dtype to, td_tensor **out) {
    *out = find_kept(x, to);
    if (!*out)
        *out = find_unrecorded(x, to);
    if (*out)
        return TD_OK;
    if (td_modes_current.inference || !td_modes_current.region)
        return TD_APPLY(out, to, TD_T(x), TD_DTYPE(to));
    bool before = td_set_grad_enabled(true);
    td_status status = TD_APPLY(out, to, TD_T(x), TD_DTYPE(to));
    td_set_grad_enabled(before);
    if (status == TD_OK)
        keep(x, *out);
    return status;
}

typedef struct casting {
    const td_call *call;
    td_autocast_args *casts;
    td_dtype to;
} casting;

/* *x becomes its cast, which `casts` owns. */
static td_status cast(void *ctx, td_tensor **x) {
    const casting *c = ctx;
    td_tensor *y = NULL;
    if (!is_eligible(*x, c->call) || (*x)->dtype == c->to)
        return TD_OK;
    td_status status = is_weight(*x, c->to) ? cast_weight(*x, c->to, &y)
                                            : TD_APPLY(&y, to, TD_T(*x), TD_DTYPE(c->to));
    if (status == TD_OK)
        *x = c->casts->casts[c->casts->n++] = y;
    return status;
}

static td_status cast_all(td_call *call, td_autocast_args *casts, td_dtype to) {
    size_t n = (size_t)td_call_count_tensors(call);
    casting c = {call, casts, to};
    casts->casts = td_malloc((2 * n + 1) * sizeof *casts->casts);
    if (!casts->casts)
        return td_fail(TD_ENOMEM, "out of memory for autocast");
    td_status status = td_call_map_tensors(call, casts->args, casts->casts + n, cast, &c);
    casts->before = call->args;
    call->args = casts->args;
    return status;
}

/* ---- classes ---- */

static void widen(const td_call *call, const td_tensor *x, td_dtype *widest) {
    if (is_eligible(x, call))
        *widest = *widest == TD_DTYPE_NONE ? (td_dtype)x->dtype
                                           : td_dtype_promote(*widest, (td_dtype)x->dtype);
}

static td_dtype find_widest(const td_call *call) {
    td_dtype widest = TD_DTYPE_NONE;
    for (int k = 0; k < call->op->nparams; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR)
            widen(call, v->tensor, &widest);
        for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++)
            widen(call, v->tensors[j], &widest);
    }
    return widest;
}

/* The option dtype of a call of a low dtype, where it was not given. */
static void ask_for_float32(td_call *call, td_autocast_args *casts) {
    const td_value *first = &call->args[0];
    int dtype = 0;
    while (strcmp(call->op->params[dtype].name, "dtype") != 0) /* there is one: expression.c */
        dtype++;
    if (!td_is_nil(call->args[dtype]) || !is_eligible(td_arg_tensor(*first), call))
        return;
    memcpy(casts->args, call->args, sizeof(td_value) * call->op->nparams);
    casts->args[dtype] = TD_DTYPE(TD_F32);
    casts->before = call->args;
    call->args = casts->args;
}

static td_status refuse(void) {
    return td_fail(TD_EDTYPE,
                   "not safe under autocast: its gradients leave the range of low dtypes. Give "
                   "binary_cross_entropy_with_logits what stands before the sigmoid, or call it "
                   "with float32 in tide.autocast{enabled = false}");
}

td_autocast_class td_autocast_class_of(const td_call *call) {
    int slot = td_autocast_slot(call->device);
    if (!td_modes_current.cast[slot])
        return TD_AUTOCAST_NONE;
    return (td_autocast_class)call->op->autocast[slot < TD_CUDA ? slot : TD_CUDA];
}

td_status td_autocast_begin(td_call *call, td_autocast_args *casts) {
    td_dtype widest;
    casts->before = NULL;
    casts->n = 0;
    casts->casts = NULL;
    if (call->ngiven)
        return TD_OK;
    switch (td_autocast_class_of(call)) {
    case TD_AUTOCAST_LOWER:
        return cast_all(call, casts,
                        (td_dtype)td_modes_current.cast[td_autocast_slot(call->device)]);
    case TD_AUTOCAST_FP32:
        return cast_all(call, casts, TD_F32);
    case TD_AUTOCAST_FP32_RESULT:
        ask_for_float32(call, casts);
        return TD_OK;
    case TD_AUTOCAST_PROMOTE:
        widest = find_widest(call);
        return widest == TD_DTYPE_NONE ? TD_OK : cast_all(call, casts, widest);
    case TD_AUTOCAST_BANNED:
        return refuse();
    case TD_AUTOCAST_NONE:
    case TD_AUTOCAST_CLASSES:
        break;
    }
    return TD_OK;
}

void td_autocast_end(td_call *call, td_autocast_args *casts) {
    if (casts->before)
        call->args = casts->before;
    for (int k = 0; k < casts->n; k++)
        td_release(casts->casts[k]);
    td_free(casts->casts);
}

/* ---- for dispatchers ---- */

/* The device of a call's first tensor. */
static td_device device_of(const td_call *call) {
    for (int k = 0; k < call->op->nparams; k++) {
        const td_value *v = &call->args[k];
        if (v->kind == TD_KIND_TENSOR)
            return td_tensor_device(v->tensor);
        for (int j = 0; v->kind == TD_KIND_TENSORS && j < v->n; j++)
            if (v->tensors[j])
                return td_tensor_device(v->tensors[j]);
    }
    return TD_DEVICE_CPU;
}

td_status td_autocast_dispatch(td_call *call, td_status (*run)(void *ctx, td_call *call),
                               void *ctx) {
    td_autocast_args casts;
    td_status status = call->op->variant ? call->op->variant(call->args, &call->op) : TD_OK;
    if (status)
        return status;
    const td_op *op = call->op;
    call->device = device_of(call);
    bool composite = op->run && !op->backward && !(op->flags & (TD_OP_NONDIFF | TD_OP_VIEW));
    if (composite && !call->ngiven && td_autocast_class_of(call) == TD_AUTOCAST_NONE)
        return run(ctx, call);
    td_modes_current.casting = false;
    status = td_autocast_begin(call, &casts);
    if (status == TD_OK)
        status = run(ctx, call);
    td_autocast_end(call, &casts);
    td_modes_current.casting = true;
    return status;
}
