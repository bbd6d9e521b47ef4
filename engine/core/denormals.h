/* denormals.h: whether floating-point arithmetic of this thread flushes denormals to zero. */
#ifndef TD_CORE_DENORMALS_H
#define TD_CORE_DENORMALS_H

#include <stdbool.h>

/* Shall arithmetic on this thread, of float32 and float64, take them for zero and give zero in
 * their place? It keeps them at first. Returns whether the processor can do that; where it cannot,
 * nothing changes. A thread begins with what its maker has; a parallel loop (core/threads.h) and a
 * library's team go by the thread that calls them. */
bool td_set_flush_denormal(bool on);
bool td_flush_denormal(void);

#endif
