/* random.h: how many words of the generator a draw takes: operators reserve them, devices read
 * them.
 */
#ifndef TD_OPS_MAKE_RANDOM_H
#define TD_OPS_MAKE_RANDOM_H

#include "engine/ops/plan/plan.h"

/* 32-bit words that one number of a draw takes: 1 or 2. Number i is made of the words from i times
 * that on; normal numbers of those of a pair. */
static inline int td_draw_words(const td_draw_plan *p) {
    switch (p->distribution) {
    case TD_UNIFORM:
    case TD_NORMAL:
    case TD_LOG_NORMAL:
        return td_tensor_itemsize(p->out) > 4 ? 2 : 1;
    case TD_RANDINT:
        return p->count > 1u << 24 ? 2 : 1; /* so that no number is visibly likelier than another */
    case TD_EXPONENTIAL:
    case TD_CAUCHY:
    case TD_GEOMETRIC:
        return 2;
    case TD_BERNOULLI:
        break;
    }
    return 1;
}

#endif
