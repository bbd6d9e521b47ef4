/* mode.h: the most frequent element of each line. */
#ifndef TD_CPU_MODE_H
#define TD_CPU_MODE_H

#include "engine/core/tensor.h"

/* Of each line of x (row-major, lines along its last dim, which has elements) the most frequent
 * element, the least of several, and where it stands last (index may be NULL). -0 is 0; each NaN is
 * met once and greater than all. EINTR, EMEMORY. */
td_status td_modes(td_tensor *x, char *values, int64_t *index) TD_MUST_CHECK;

#endif
