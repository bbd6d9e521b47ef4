/* given.h: the tensors that a call reads, and those given to it to write (out=, in place).
 */
#ifndef TD_OPS_GIVEN_H
#define TD_OPS_GIVEN_H

#include "engine/ops/op.h"

typedef bool (*td_read_test)(const td_tensor *read, const void *what);
/* Does the test hold of an argument, from the first-th on, or of what one was made from? */
bool td_call_any_read(const td_call *call, int first, td_read_test test, const void *what);

/* How many tensors there are among the arguments, places in lists that are left out among them. */
int td_call_count_tensors(const td_call *call);
/* A call's arguments into `args`, each tensor replaced by map(ctx, &tensor); lists stand in `room`,
 * which has a place for each tensor. Ends at the first failure. */
td_status td_call_map_tensors(const td_call *call, td_value *args, td_tensor **room,
                              td_status (*map)(void *ctx, td_tensor **x), void *ctx) TD_MUST_CHECK;

/* Does a tensor to be written share memory with an argument of the call? */
bool td_writes_argument(const td_call *call, const td_tensor *given);

#endif
