/* kernel_ways.h: whether a group runs as one kernel or operator by operator, by what either took.
 *
 * Groups of 16-bit floats round after every operator, and single operators do so for pairs of
 * vectors: which is faster depends on the processor, on whether there is machine code, on the
 * operators and on the size. Both give the same bits, so calls of some size are timed both ways now
 * and then. Where everything is made at once (TIDE_SCRIPT=now) nothing is timed, and groups run as
 * kernels.
 */
#ifndef TD_SCRIPT_KERNEL_WAYS_H
#define TD_SCRIPT_KERNEL_WAYS_H

#include "engine/core/tensor.h"

typedef struct td_kernel_ways td_kernel_ways;

/* A call that is being timed; {0}: it is not. */
typedef struct td_kernel_trial {
    atomic_llong *least;
    int64_t began;
} td_kernel_trial;

/* New; NULL: out of memory (no message is set). */
td_kernel_ways *td_kernel_ways_new(void);
void td_kernel_ways_free(td_kernel_ways *w); /* NULL is fine */
/* Is a call of so many elements to run operator by operator? Any thread. */
bool td_kernel_ways_apart(td_kernel_ways *w, int64_t elements, td_kernel_trial *trial);
/* The call has run. */
void td_kernel_trial_end(const td_kernel_trial *trial);

#endif
