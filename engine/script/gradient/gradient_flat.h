/* gradient_flat.h: values with the entries of lists and the parts of tuples in a row, and back:
 * gradients know tensors and numbers alone. */
#ifndef TD_SCRIPT_GRADIENT_FLAT_H
#define TD_SCRIPT_GRADIENT_FLAT_H

#include "engine/script/boxes.h"

/* Values in a row, borrowed from where they were; and how they stood there. */
typedef struct td_flat {
    int n, nlayout;
    const td_value *values;
    int *layout; /* of each value, in their order: what it is, and how many it holds, which follow;
                    NULL: none is a list or tuple */
    td_value *own;
} td_flat;

/* Lists of tensors as operators give them (TD_KIND_TENSORS) are lists, too. EVALUE: too many.
 * td_flat_end afterwards, also after a failure. */
td_status td_flat_begin(int n, const td_value *values, td_flat *out) TD_MUST_CHECK;
void td_flat_end(td_flat *f);
/* Do both stand alike? */
bool td_flat_alike(int nlayout, const int *layout, const td_flat *f);
/* n values that stand so, new, of those in a row, which are shared. On failure none is left. */
td_status td_flat_rebuild(const int *layout, const td_value *row, int n,
                          td_value *out) TD_MUST_CHECK;

#endif
