/* infer.h: what a call would make, without making it.
 *
 * The call runs on the stand-ins for its devices (core/device.h), where operators' rules give
 * results their dtype, shape and strides and no element is read or written.
 */
#ifndef TD_CALLS_INFER_H
#define TD_CALLS_INFER_H

#include "engine/ops/op.h"

/* Make a call of which the results (out[], list) are tensors on stand-ins: dtype, shape and strides
 * are what td_op_call's would be, td_device_real(td_tensor_device(out)) is their device. Nothing of
 * the arguments is changed, recorded or drawn, and what the call is given to write is not written:
 * out[] holds what it would be. Arguments may be such results themselves. Operators that never
 * read an element give their other results (numbers, bools) too.
 *
 * Refuses what td_op_call refuses, but for what only elements and histories show. EDEVICE where the
 * result depends on elements (TD_OP_BY_ELEMENTS); ETYPE for arguments that are not strided. */
td_status td_op_infer(td_call *call) TD_MUST_CHECK;

#endif
