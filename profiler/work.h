/* work.h: how much an operator's call had to do: by its name and the shapes that were recorded. */
#ifndef TIDE_PROFILER_WORK_H
#define TIDE_PROFILER_WORK_H

#include "profiler/event.h"

typedef struct tide_work {
    double flops; /* additions and multiplications; 0: not known for this operator */
    double bytes; /* of all that it was given and gave; 0: not known */
} tide_work;

/* Of an operator. Products and convolutions count two for each multiplication with its addition,
 * +, -, * and / one for each element. Traces of others have no results: what can't be known without
 * them is 0. */
tide_work tide_work_of(const tide_event *event);

#endif
