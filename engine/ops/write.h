/* write.h: the rules of writing into tensors that are there already. */
#ifndef TD_OPS_WRITE_H
#define TD_OPS_WRITE_H

#include "engine/ops/op.h"

/* May the call write the tensors that were given to it? Refuses expanded memory (EVALUE), leaves
 * that require grad and views of them while recording is on, out= of a recorded call (EAUTOGRAD),
 * one tensor twice (EVALUE). */
td_status td_check_writes(const td_call *call) TD_MUST_CHECK;

/* Does a tensor to be written share memory with an argument of the call? */
bool td_writes_argument(const td_call *call, const td_tensor *given);

#endif
