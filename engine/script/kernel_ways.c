/* kernel_ways.c: groups that are timed as one kernel and operator by operator. */
#include "engine/script/kernel_ways.h"

#include "engine/core/activity.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/script/later.h"

#include <limits.h>

enum {
    LEAST = 2048, /* elements; fewer take less as a kernel, whatever they are */
    CLASSES = 16, /* of sizes, each twice the one before */
    ROUND = 512,  /* calls of a size, the first of which are timed: */
    TIMED = 6,    /* so many, both ways in turns */
    MARGIN = 32   /* one part in so many is to be saved where operators run by themselves */
};

typedef struct size_class {
    atomic_uint calls;
    atomic_llong least[2]; /* nanoseconds: as a kernel, apart; 0: not known */
} size_class;

struct td_kernel_ways {
    size_class classes[CLASSES];
};

td_kernel_ways *td_kernel_ways_new(void) {
    return td_calloc(1, sizeof(td_kernel_ways));
}

void td_kernel_ways_free(td_kernel_ways *w) {
    td_free(w);
}

static int class_of(int64_t elements) {
    int c = 0;
    for (; elements >= 2 * LEAST && c < CLASSES - 1; elements /= 2)
        c++;
    return c;
}

bool td_kernel_ways_apart(td_kernel_ways *w, int64_t elements, td_kernel_trial *trial) {
    *trial = (td_kernel_trial){NULL, 0};
    if (elements < LEAST || !td_later_wanted(INT_MAX))
        return false;
    size_class *c = &w->classes[class_of(elements)];
    const unsigned call = atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed) % ROUND;
    if (call >= TIMED) {
        const long long whole = atomic_load_explicit(&c->least[0], memory_order_relaxed);
        const long long apart = atomic_load_explicit(&c->least[1], memory_order_relaxed);
        return apart && apart < whole - whole / MARGIN;
    }
    if (call < 2) /* each way anew: machine code may have come */
        atomic_store_explicit(&c->least[call], 0, memory_order_relaxed);
    *trial = (td_kernel_trial){&c->least[call % 2], td_clock_ns()};
    return call % 2;
}

void td_kernel_trial_end(const td_kernel_trial *trial) {
    if (!trial->least)
        return;
    const long long took = td_clock_ns() - trial->began;
    long long before = atomic_load_explicit(trial->least, memory_order_relaxed);
    while ((!before || took < before) &&
           !atomic_compare_exchange_weak(trial->least, &before, took)) {
    }
}
