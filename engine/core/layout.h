/* layout.h: what is to be known of a way to keep elements that is not strided memory.
 *
 * A layout is a value of td_layout (tensor.h), a struct of parts that begins with td_extra, these
 * traits of it, and what operators do with its tensors: rows name a function by layout
 * (td_op.forms), all others refuse them. How it is printed is the front end's business
 * (lua-bindings/tensor/format.c), how it is saved that of lua/files/checkpoint.lua.
 */
#ifndef TD_CORE_LAYOUT_H
#define TD_CORE_LAYOUT_H

#include "engine/core/tensor.h"

typedef struct td_layout_traits {
    const char *name;    /* what x.layout says */
    const char *noun;    /* in messages: "not for sparse tensors" */
    const char *convert; /* the method that makes the same elements strided */
    /* Let go of the parts and of their struct, which nobody holds any more. */
    void (*destroy)(td_extra *extra);
    /* The strided tensor of all elements that are kept, borrowed. */
    td_tensor *(*elements)(const td_tensor *x);
    /* What printing says of a tensor beside dtype, shape and device: "nnz=3". */
    void (*describe)(const td_tensor *x, char *text, size_t size);
    /* Let x, which is written in place, have the parts of y, of the same layout, shape and dtype;
     * the version is the caller's to bump. NULL: such tensors are not written. */
    void (*become)(td_tensor *x, const td_tensor *y);
} td_layout_traits;

/* Of a tensor that is not strided. */
static inline const td_layout_traits *td_layout_of(const td_tensor *x) {
    return x->extra->layout;
}

/* The strided tensor where all of x's elements lie: x itself, or a quantized one's integers. NULL
 * for a sparse one, which keeps some of them alone. */
static inline const td_tensor *td_strided_of(const td_tensor *x) {
    if (TD_LIKELY(x->layout == TD_STRIDED))
        return x;
    return x->layout == TD_QUANTIZED ? td_layout_of(x)->elements(x) : NULL;
}

#endif
