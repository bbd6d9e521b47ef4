/* gradient_variant.h: what gradients are made of, and backward for each choice of gradients that
 * come in and are wanted. For gradient.c and gradient_variant.c alone.
 */
#ifndef TD_SCRIPT_GRADIENT_VARIANT_H
#define TD_SCRIPT_GRADIENT_VARIANT_H

#include "engine/autograd/function.h"
#include "engine/script/gradient/gradient.h"
#include "engine/script/gradient/gradient_sizes.h"
#include "engine/script/gradient/gradient_split.h"

#include <pthread.h>

/* Backward for one choice of gradients that come in and gradients that are wanted. One that is to
 * be recorded itself is neither rewritten nor fused. */
typedef struct td_variant {
    struct td_variant *next;
    td_script *script; /* NULL: no gradient comes out */
    bool recorded;
    bool strict;     /* reads strides: gradients come in row-major, as their stand-ins did */
    bool *comes;     /* by result of the node */
    bool *wanted;    /* by input of the node; those of which there is one, which is 0 otherwise */
    bool *gives;     /* likewise: an output of the script */
    td_sized *sized; /* its numbers are for all sizes; the gradient's own, or owned; NULL: none */
} td_variant;

/* What an output is. */
typedef struct td_gradient_output {
    int result; /* of the node; -1: it has no history of the node's */
    int input;  /* it is this input; -1: none */
} td_gradient_output;

struct td_gradient {
    atomic_int refs;
    td_script *whole;   /* as it was given */
    td_script *forward; /* gives the outputs, then what is kept and was made */
    int ninputs, noutputs, ncaptured, nkept, nmade, nresults;
    int nlayout, *layout; /* how the inputs stand in the script's (gradient_flat.h) */
    int *layout_out;      /* likewise for the outputs; of either NULL: each is one */
    td_value *inputs;     /* numbers, and stand-ins of tensors, which are owned */
    td_modes modes;       /* of the call that it was derived for, whose casts are in the graph */
    td_varying *varying;  /* sizes of the inputs that vary; NULL: none, and `sized` is NULL, too */
    td_sized *sized;
    bool *wanted;         /* by input */
    td_tensor **captured; /* owned */
    td_gradient_output *outputs;
    td_kept *kept;
    int *results;         /* of the node: numbers of values (gradient_record.h) */
    int *places;          /* of the node's results: among what forward gives */
    pthread_mutex_t lock; /* of the list of variants, which only grows */
    td_variant *variants;
    int nvariants;
};

/* The graph of a part of a joint graph, rewritten. */
td_status td_gradient_rewrite(td_ir_graph *g) TD_MUST_CHECK;

/* New, without a script, for gradients that come and are wanted; NULL: out of memory. */
td_variant *td_variant_new(const td_gradient *d, const bool *comes, const bool *wanted,
                           bool recorded);
void td_variant_free(const td_gradient *d, td_variant *v); /* NULL is fine */
/* The backward part of a joint graph, which may lose gradients that nobody wants. */
td_status td_variant_fill(const td_gradient *d, td_joint *joint, td_variant *v) TD_MUST_CHECK;

/* Backward of a call for sizes that vary (NULL: none do), as td_function_class has it. */
td_status td_gradient_backward_run(td_gradient *d, const int64_t *sizes, td_function *f,
                                   td_tensor *const *gout, td_tensor **in) TD_MUST_CHECK;

/* The graph and its gradient as `request` says, for the sizes given; one joint graph for all sizes.
 */
td_status td_gradient_record_at(const td_gradient *d, const int64_t *sizes,
                                td_joint_request request, td_joint *joint) TD_MUST_CHECK;
td_status td_gradient_record_sized(const td_gradient *d, td_joint_request request,
                                   td_sized **out) TD_MUST_CHECK;
/* The numbers that a script takes besides, behind its other inputs; *room is the caller's to free.
 */
td_status td_gradient_numbers(const td_sized *sized, const int64_t *sizes, int64_t **room,
                              td_value *inputs) TD_MUST_CHECK;

#endif
