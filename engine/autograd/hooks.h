/* hooks.h: functions of others that see, and may replace, what flows backward.
 *
 * A hook sits on a tensor (its gradient, or the moment when that was added to a leaf's .grad) or on
 * a node (before it runs: the gradients of its results; after: those of its inputs). It runs on the
 * thread that runs backward, in the modes of backward: operators it calls are recorded under
 * create_graph alone. A hook that fails ends the backward with its status and message; what ran
 * before has run, and nothing else is left behind.
 */
#ifndef TD_AUTOGRAD_HOOKS_H
#define TD_AUTOGRAD_HOOKS_H

#include "engine/autograd/autograd.h"

/* What a hook is told. */
typedef struct td_hook_call {
    const td_node *node;      /* that it is on; NULL: it is on a leaf */
    int n;                    /* how many it may replace */
    td_tensor *const *values; /* these: borrowed, NULL where nothing flows */
    td_tensor **replacements; /* n places, NULL: new references here take the values' places */
    int nothers;              /* besides, to be read: */
    td_tensor *const *others; /* after a node ran, the gradients of its results; the leaf whose
                                 gradient was accumulated */
} td_hook_call;

typedef struct td_hook_class {
    td_status (*call)(void *payload, const td_hook_call *call);
    void (*destroy)(void *payload); /* on any thread, within a sweep of a collector: calls nobody */
} td_hook_class;

typedef struct td_hook td_hook;

/* All take `payload` over, also when they fail (destroy is called). *out is a new reference by
 * which the hook can be removed; td_hook_release lets go of it, and the hook stays. */

/* For the gradient of x, before anything is done with it. EAUTOGRAD where x requires none. */
td_status td_hook_gradient(td_tensor *x, const td_hook_class *hook_class, void *payload,
                           td_hook **out) TD_MUST_CHECK;
/* After a backward has added to the .grad of the leaf x. EAUTOGRAD where x is no leaf. */
td_status td_hook_accumulated(td_tensor *x, const td_hook_class *hook_class, void *payload,
                              td_hook **out) TD_MUST_CHECK;
/* Before a node runs, or after. */
td_status td_hook_node(td_node *node, bool before, const td_hook_class *hook_class, void *payload,
                       td_hook **out) TD_MUST_CHECK;

/* Once or often; a removed hook is not called again, not even by a backward that is under way. */
void td_hook_remove(td_hook *hook);
void td_hook_release(td_hook *hook);

/* ---- private to autograd ---- */

typedef enum td_hook_kind {
    TD_HOOK_GRADIENT,
    TD_HOOK_ACCUMULATED,
    TD_HOOK_BEFORE,
    TD_HOOK_AFTER
} td_hook_kind;

typedef struct td_hooks td_hooks; /* those of a node, or of a leaf */

void td_hooks_free(td_hooks *hooks);
/* The payload of the k-th, from 0; false: there is none. */
bool td_hooks_payload(const td_hooks *hooks, int k, const void **payload);
/* Run those of a kind (and, for gradients, of one result of the node) in the order of their
 * registration over values, which they may replace by others of the same shape and dtype. NULL has
 * none. */
td_status td_hooks_run(td_hooks *hooks, const td_node *node, td_hook_kind kind, uint32_t result,
                       int n, td_tensor **values, int nothers,
                       td_tensor *const *others) TD_MUST_CHECK;

#endif
