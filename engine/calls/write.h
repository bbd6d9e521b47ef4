/* write.h: the rules of writing into tensors that are there already. */
#ifndef TD_CALLS_WRITE_H
#define TD_CALLS_WRITE_H

#include "engine/ops/op.h"

/* May the call write the tensors that were given to it? Refuses expanded memory (EVALUE), leaves
 * that require grad and views of them while recording is on, out= of a recorded call (EAUTOGRAD),
 * one tensor twice (EVALUE). */
td_status td_check_writes(const td_call *call) TD_MUST_CHECK;

#endif
