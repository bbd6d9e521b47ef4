/* registry.h: how rows get into the table of operators (op.h says how they are found in it). */
#ifndef TD_OPS_REGISTRY_H
#define TD_OPS_REGISTRY_H

#include "engine/ops/op.h"

/* An operator whose parts are all there becomes the next of the table; its id is set. EINTERNAL:
 * the name is taken, or the table is full; ENOMEM. */
td_status td_registry_add(td_op *op) TD_MUST_CHECK;

/* The operators of the start are all there: what is added from now on is a library's, and may be
 * withdrawn again by its registration, down to a count. */
void td_registry_seal(void);
void td_registry_withdraw(int count);

#endif
