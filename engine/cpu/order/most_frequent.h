/* most_frequent.h: the most frequent element of each line. */
#ifndef TD_CPU_ORDER_MOST_FREQUENT_H
#define TD_CPU_ORDER_MOST_FREQUENT_H

#include "engine/cpu/reduce/dim_lines.h"

/* Of each line of x, which has elements and whose memory `lines` is along its last dim, the most
 * frequent element, the least of several, and where it stands last. -0 is 0; each NaN is met once
 * and greater than all. EINTR, ENOMEM. */
td_status td_most_frequent(td_tensor *x, const td_picked_lines *lines) TD_MUST_CHECK;

#endif
