/* gradients.h: all gradients of one graph, a td_gradient for each kind of inputs that it was called
 * with (gradient.h), made when they are first needed. */
#ifndef TD_SCRIPT_GRADIENTS_H
#define TD_SCRIPT_GRADIENTS_H

#include "engine/script/gradient/gradient.h"

typedef struct td_gradients td_gradients; /* of one graph; used by any number of threads */

enum { TD_GRADIENTS_MOST = 8 }; /* kinds of inputs that have one */

/* New, of a script whose graph was not fused, which is held; `name` is borrowed. */
td_status td_gradients_new(td_script *s, const char *name, td_gradients **out) TD_MUST_CHECK;
void td_gradients_free(td_gradients *all); /* NULL is fine */

/* Make a call that is to be recorded for backward by the gradient that fits, as td_gradient_call.
 * *taken is false, and nothing is done, where the call is not recorded (nothing requires grad, the
 * thread's modes), or is to be recorded operator by operator: its graph has no gradient
 * (td_gradients_why), inputs of this kind came for the first time after others had a gradient, or
 * TD_GRADIENTS_MOST kinds have one. Where nothing but sizes is new, one gradient is derived for all
 * of them (td_gradient_for_sizes), so that sizes that change with every call cost no derivations.
 */
td_status td_gradients_call(td_gradients *all, const td_value *inputs, td_value *outputs,
                            bool *taken) TD_MUST_CHECK;

/* Is one being derived on another thread (later.h)? Calls are recorded operator by operator then.
 */
bool td_gradients_are_made(const td_gradients *all);

/* Why there was none the last time that there was none; "" where that never was. Copied into the
 * buffer, which is returned. */
const char *td_gradients_why(td_gradients *all, char *buffer, size_t size);
/* How many there are, and the k-th, borrowed. */
int td_gradients_count(const td_gradients *all);
td_gradient *td_gradients_get(const td_gradients *all, int k);

#endif
