/* ready.c: the step between a call's results and its kernel: the node of a recorded call is
 * prepared, and a call that is only checked ends. */
#include "engine/autograd/autograd.h"
#include "engine/ops/op.h"

bool td_op_records(const td_tensor *x) {
    return td_is_recording() && td_is_followed(x);
}

td_status td_call_record(td_call *call) {
    if (call->mode == TD_CALL_RECORD)
        return td_autograd_prepare(call, call->record);
    call->mode = TD_CALL_CHECKED;
    return TD_EINTERNAL;
}
