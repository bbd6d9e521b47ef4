/* kept_inputs.c: see kept_inputs.h. */
#include "engine/script/kept_inputs.h"

#include "engine/autograd/autograd.h"
#include "engine/core/memory.h"

static td_status keep(td_value v, td_value *out) {
    td_tensor *x = NULL;
    if (v.kind != TD_KIND_TENSOR)
        return td_value_copy(v, out);
    td_status status = td_tensor_alias(v.tensor, &x);
    if (status == TD_OK && td_is_followed(v.tensor))
        status = td_set_requires_grad(x, true);
    if (!x)
        return status;
    *out = v;
    out->tensor = x;
    return status;
}

td_status td_kept_inputs_new(int n, const td_value *inputs, td_value **out) {
    td_value *list = td_calloc((size_t)(n ? n : 1), sizeof *list);
    td_status status = list ? TD_OK : td_fail(TD_ENOMEM, "out of memory for a function");
    for (int k = 0; k < n && status == TD_OK; k++)
        status = keep(inputs[k], &list[k]);
    if (status)
        td_kept_inputs_free(n, list);
    *out = status ? NULL : list;
    return status;
}

void td_kept_inputs_free(int n, td_value *list) {
    for (int k = 0; k < n && list; k++)
        td_value_drop(&list[k]);
    td_free(list);
}
