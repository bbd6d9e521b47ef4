/* suspects.c: the tensors whose gradient may lead back to them, for cycles.c. */
#include "engine/autograd/node.h"
#include "engine/core/memory.h"

#include <pthread.h>

typedef struct suspect {
    td_autograd *autograd;
    pthread_t thread;
} suspect;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static suspect *suspects;
static uint32_t nsuspects, capacity;

static bool may_lead_somewhere(const td_tensor *grad) {
    return grad && (grad->requires_grad || grad->autograd || grad->base);
}

/* Without room it is no suspect: the circle, if it is one, stays. */
static void add(td_autograd *a) {
    if (nsuspects == capacity) {
        uint32_t more = capacity ? 2 * capacity : 64;
        suspect *grown = td_realloc(suspects, more * sizeof *grown);
        if (!grown)
            return;
        suspects = grown;
        capacity = more;
    }
    suspects[nsuspects] = (suspect){a, pthread_self()};
    a->suspect = ++nsuspects;
}

static void take_out(td_autograd *a) {
    suspect last = suspects[--nsuspects];
    suspects[a->suspect - 1] = last;
    last.autograd->suspect = a->suspect;
    a->suspect = 0;
}

void td_autograd_suspect(td_autograd *a) {
    bool is = may_lead_somewhere(a->grad);
    if (TD_LIKELY(is == (a->suspect != 0)))
        return;
    pthread_mutex_lock(&lock);
    if (is)
        add(a);
    else
        take_out(a);
    pthread_mutex_unlock(&lock);
}

void td_suspects_walk(void (*see)(void *ctx, const td_autograd *a), void *ctx) {
    pthread_mutex_lock(&lock);
    for (uint32_t k = 0; k < nsuspects; k++)
        if (pthread_equal(suspects[k].thread, pthread_self()))
            see(ctx, suspects[k].autograd);
    pthread_mutex_unlock(&lock);
}
