/* replay.h: signatures that were seen already: a message that comes twice is served once.
 *
 * Whoever can listen to a port that is not encrypted can send what he heard again, rightly signed.
 * The set is bounded: it knows the latest sixteen thousand or so. Safe from every thread. */
#ifndef TIDE_KERNEL_REPLAY_H
#define TIDE_KERNEL_REPLAY_H

#include "jupyter-kernel/hmac.h"

typedef struct tk_replays tk_replays;

tk_replays *tk_replays_new(void); /* NULL: memory is out */
void tk_replays_free(tk_replays *replays);

/* Adds a good signature. False: it is there already. An empty one (nothing is signed) is always
 * new. */
bool tk_replays_add(tk_replays *replays, tk_frame signature);

#endif
