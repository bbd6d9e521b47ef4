/* kept_forms.h: other forms of tensors on the CPU (packed for products, cast to another dtype),
 * kept beside the storages that they are forms of: weights of layers, which stay as they are from
 * call to call. Knows nothing of what a form looks like. */
#ifndef TD_OPS_MAKE_KEPT_FORMS_H
#define TD_OPS_MAKE_KEPT_FORMS_H

#include "engine/core/tensor.h"

typedef enum td_form_kind {
    TD_FORM_PANELS,
    TD_FORM_PAIRS,
    TD_FORM_WIDE,
    TD_FORM_CAST
} td_form_kind;

enum { TD_FORM_WORDS = 12 };

/* A form of a storage: its kind, where what it is of begins, and sizes, strides, dtypes, as whoever
 * makes forms of that kind counts them; words that are not used are zero. */
typedef struct td_form_key {
    td_form_kind kind;
    const void *data;
    int64_t word[TD_FORM_WORDS];
} td_form_key;

/* Makes the form, new; what fails is not reported. */
typedef td_status (*td_form_maker)(const void *ctx, td_tensor **out);

/* The form of `storage`, which is the CPU's: new, or NULL where it isn't kept. It is made and kept
 * when it is asked for the second time of the storage as it was, while operators are recorded for
 * backward the fourth: a step of training writes what most products have met once. It goes when the
 * storage is asked for a form after it has been written, or dies. Where memory is short, and beyond
 * a bound of all that is kept, nothing is. */
td_tensor *td_kept_form(td_storage *storage, const td_form_key *key, td_form_maker make,
                        const void *ctx);

#endif
