/* kept_inputs.h: inputs that outlive their call, for another thread to ask what they are. */
#ifndef TD_SCRIPT_KEPT_INPUTS_H
#define TD_SCRIPT_KEPT_INPUTS_H

#include "engine/script/boxes.h"

/* A list of n values like these: tensors are aliases, which what becomes of the originals' shapes
 * and histories doesn't touch, and require grad where these are followed; all else is copied. Freed
 * by td_kept_inputs_free. ENOMEM. */
td_status td_kept_inputs_new(int n, const td_value *inputs, td_value **out) TD_MUST_CHECK;
void td_kept_inputs_free(int n, td_value *list); /* NULL is fine */

#endif
