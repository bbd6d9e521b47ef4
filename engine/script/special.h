/* special.h: specialisations: what a function's graph became for one kind of inputs. */
#ifndef TD_SCRIPT_SPECIAL_H
#define TD_SCRIPT_SPECIAL_H

#include "engine/autograd/autograd.h"
#include "engine/script/gradient/gradients.h"
#include "engine/script/later.h"
#include "engine/script/run.h"
#include "engine/script/scripted.h"

#include <pthread.h>

typedef struct td_special td_special;
struct td_special {
    _Atomic(td_special *) next; /* older */
    td_special *made;           /* the one made before it, replaced or not */
    td_script *script;
    uint64_t modes;
    uint64_t *keys; /* of the inputs that are looked at, of lists followed by their entries' */
    int64_t *sizes; /* of all tensors among them, one after the other; or TD_IR_UNKNOWN */
    int nkeys, nsizes;
    int64_t ns;
    atomic_llong calls;
    atomic_llong
        least_ns[2]; /* that a call took which was timed: as written, and rewritten; 0: none */
    bool replaced, failed; /* failed: the graph could not be rewritten, and runs as written */
};

struct td_scripted {
    atomic_int refs;
    atomic_bool eager, fast;
    bool untimed; /* who calls it measures by himself */
    td_ir_graph *graph;
    char *name;
    td_script *plain;        /* the graph as it was written */
    td_gradients *gradients; /* of that: calls that are recorded for backward */
    td_shared_host *host;
    int nlooks, *looks; /* inputs on whose kind a specialisation depends */
    bool lists;         /* some of them may be lists of tensors */
    bool has_tensors;   /* constants among the graph's, which may require grad */
    _Atomic(td_special *) first;
    pthread_mutex_t making; /* guards what follows */
    td_special *made;
    int nspecials; /* that are not replaced */
    bool full;     /* more were wanted than there may be */
    int work;      /* that the passes have with the graph (later.h) */
    struct {       /* the one that is being made on another thread */
        td_later_job job;
        atomic_bool there; /* set under the lock */
        td_special *special, *narrower;
        td_value *inputs; /* like those that it is for */
        td_status status;
    } pending;
    atomic_llong plain_calls;
};

/* Strides as they follow from the sizes, dims of one element included. */
static inline bool td_is_row_major(const td_tensor *x) {
    int64_t step = 1;
    for (int d = x->ndim - 1; d >= 0; d--) {
        if (x->strides[d] != step)
            return false;
        step *= x->sizes[d] ? x->sizes[d] : 1; /* as td_contiguous_strides has them */
    }
    return true;
}

/* The same of images or volumes with channels last, where these are not row-major as well. */
static inline bool td_is_channels_last(const td_tensor *x) {
    int64_t step = x->ndim > 1 ? x->sizes[1] : 0;
    if (x->layout != TD_STRIDED || x->ndim < 4 || x->strides[1] != 1)
        return false;
    for (int d = x->ndim - 1; d >= 2; d--) {
        if (x->strides[d] != step)
            return false;
        step *= x->sizes[d];
    }
    return x->ndim <= 5 && x->strides[0] == step && x->numel > 0;
}

enum { TD_SPECIAL_ENTRIES = 64 }; /* of a list that is looked into */

/* The entries of a list of tensors that is looked into, and how many; NULL: it is none. */
static inline td_tensor *const *td_special_entries(const td_value *v, int *n) {
    const td_box_list *list = td_value_list(*v);
    td_tensor *const *entries = v->kind == TD_KIND_TENSORS                    ? v->tensors
                                : list && list->entries == TD_ENTRIES_TENSORS ? list->tensors
                                                                              : NULL;
    *n = !entries ? 0 : list ? list->n : v->n;
    return *n > TD_SPECIAL_ENTRIES ? NULL : entries;
}

/* All that a specialisation may rely on of a value but a tensor's sizes. Here, for every call asks.
 */
static inline uint64_t td_special_key(const td_value *v) {
    int n;
    if (TD_UNLIKELY(v->kind != TD_KIND_TENSOR))
        return v->kind | (td_special_entries(v, &n) ? (uint64_t)n << 8 : 0);
    const td_tensor *x = v->tensor;
    td_device device = td_tensor_device(x);
    const bool row_major = x->contiguous && td_is_row_major(x);
    return v->kind | (uint64_t)x->dtype << 8 | (uint64_t)x->ndim << 16 | (uint64_t)x->layout << 24 |
           (uint64_t)td_is_followed(x) << 32 | (uint64_t)row_major << 33 |
           (uint64_t)(v->from_one & 1) << 34 |
           (uint64_t)(!row_major && td_is_channels_last(x)) << 35 | (uint64_t)device.type << 40 |
           (uint64_t)(uint8_t)device.index << 48;
}

/* What a key says: is it of a tensor, of which dtype, dims and further properties? */
static inline bool td_key_is_tensor(uint64_t key) {
    return (key & 255) == TD_KIND_TENSOR;
}
static inline td_dtype td_key_dtype(uint64_t key) {
    return (td_dtype)(key >> 8 & 255);
}
static inline int td_key_ndim(uint64_t key) {
    return td_key_is_tensor(key) ? (int)(key >> 16 & 255) : 0;
}
static inline bool td_key_is_followed(uint64_t key) {
    return key >> 32 & 1;
}
static inline bool td_key_is_row_major(uint64_t key) {
    return key >> 33 & 1;
}
static inline bool td_key_is_channels_last(uint64_t key) {
    return key >> 35 & 1;
}

/* How many keys the values behind this one's own are. */
static inline int td_key_entries(uint64_t key) {
    const uint64_t kind = key & 255;
    return kind == TD_KIND_TENSORS || kind == TD_BOX_LIST ? (int)(key >> 8) : 0;
}

/* New, of these inputs and modes, without a script; NULL: out of memory (no message is set). */
td_special *td_special_new(const td_scripted *f, uint64_t modes, const td_value *inputs);
void td_special_free(td_special *s); /* NULL is fine */
/* Its script: the function's graph with the types of these inputs, rewritten by the passes. Where
 * they can't rewrite it, it is the graph as written, and `failed` says so. ENOMEM. */
td_status td_special_rewrite(const td_scripted *f, td_special *s,
                             const td_value *inputs) TD_MUST_CHECK;

#endif
