/* given.h: what a call reads, and what it is given to write (td_check_given, td_fit_given: op.h).
 */
#ifndef TD_OPS_GIVEN_H
#define TD_OPS_GIVEN_H

#include "engine/ops/op.h"

typedef bool (*td_read_test)(const td_tensor *read, const void *what);
/* Does the test hold of an argument, from the first-th on, or of what one was made from? */
bool td_call_any_read(const td_call *call, int first, td_read_test test, const void *what);

/* Does a tensor to be written share memory with an argument of the call? */
bool td_writes_argument(const td_call *call, const td_tensor *given);

#endif
