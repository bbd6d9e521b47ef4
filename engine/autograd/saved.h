/* saved.h: who keeps the tensors that nodes save for backward.
 *
 * Nodes do, or while a td_keeper is in force (td_modes.keeper) somebody else: what a call saves is
 * handed to `pack` when the call is done, and `unpack` is asked for it when backward needs it, as
 * often as that is. (To keep it elsewhere or smaller, or to work it out again.) Both run without
 * recording and without a td_keeper.
 */
#ifndef TD_AUTOGRAD_SAVED_H
#define TD_AUTOGRAD_SAVED_H

#include "engine/autograd/autograd.h"

typedef struct td_keeper {
    /* *packed will stand for x (borrowed, without history), which may not be written. */
    td_status (*pack)(void *ctx, td_tensor *x, void **packed);
    /* A new reference to a tensor of x's shape, dtype and device. */
    td_status (*unpack)(void *packed, td_tensor **out);
    /* Nobody will ask again. On any thread, within a sweep of a collector: calls nobody. */
    void (*destroy)(void *packed);
    void *ctx;
} td_keeper;

/* ---- private to autograd ---- */

/* A saved tensor in somebody's custody. */
typedef struct td_packed td_packed;
/* By the td_keeper in force. */
td_status td_pack_saved(td_tensor *x, td_packed **out) TD_MUST_CHECK;
td_status td_unpack(const td_packed *packed, td_tensor **out) TD_MUST_CHECK;
void td_packed_free(td_packed *packed);                 /* NULL is fine */
const void *td_packed_payload(const td_packed *packed); /* what pack made of it */

#endif
