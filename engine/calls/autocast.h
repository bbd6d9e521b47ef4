/* autocast.h: while td_modes.casting holds, calls get their arguments in the dtype that the class
 * of their operator asks for (td_autocast_class). Calls that write in place or have out= keep
 * theirs.
 *
 * The casts are recorded, so gradients come back in the dtype of what was cast. Those of weights
 * (float32 leaves that require grad) are made once and kept for the outermost region, unless they
 * are written in it; on the CPU, while nothing is recorded, for later ones too. Knows nothing of
 * the kernels that run then.
 */
#ifndef TD_CALLS_AUTOCAST_H
#define TD_CALLS_AUTOCAST_H

#include "engine/core/modes.h"
#include "engine/ops/op.h"

/* The entry of td_modes.cast that speaks of a device: its type. */
static inline int td_autocast_slot(td_device device) {
    return td_device_real(device).type;
}

/* The low dtype of a device where autocast holds for it now; TD_DTYPE_NONE: it does not. */
td_dtype td_autocast_dtype(td_device device);

/* In these modes, calls on devices of a slot are cast to `low`; 0: no more. */
void td_autocast_set(td_modes *modes, int slot, td_dtype low);

/* ---- regions, for guards: casts of weights are kept under their number (td_modes.region) ---- */

/* Begin one: 1 to 2^24 - 1; 0: out of memory, nothing will be kept. */
uint32_t td_autocast_region_begin(void);
/* Has a region begun and not ended? */
bool td_autocast_region_holds(uint32_t region);
/* End it: what it kept is let go of. Of a region that has ended: does nothing. */
void td_autocast_region_end(uint32_t region);

/* ---- for dispatch ---- */

/* A call's arguments as they are cast. */
typedef struct td_autocast_args {
    const td_value *before; /* the call's own; NULL: nothing was cast */
    int n;                  /* casts */
    td_tensor **casts;      /* owned, with the list, behind which those of the arguments stand */
    td_value args[TD_MAX_PARAMS];
} td_autocast_args;

/* What holds for a call here and now, of its operator and device. */
td_autocast_class td_autocast_class_of(const td_call *call);
/* Let a call's arguments be their casts, as its class asks for; while td_modes.casting is off.
 * EDTYPE: the operator is refused under autocast. `casts` is to be ended also after an error. */
td_status td_autocast_begin(td_call *call, td_autocast_args *casts) TD_MUST_CHECK;
/* The call has its own arguments again. */
void td_autocast_end(td_call *call, td_autocast_args *casts);
/* The same for a dispatcher in force: `run` makes the call, with its casts for arguments, and the
 * calls that cast them have come to the dispatcher before. A composite of no class of its own is
 * run by `run` as it is, while autocast holds. */
td_status td_autocast_dispatch(td_call *call, td_status (*run)(void *ctx, td_call *call),
                               void *ctx) TD_MUST_CHECK;

#endif
