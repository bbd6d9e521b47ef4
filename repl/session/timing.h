/* timing.h: the magics %time and %timeit. */
#ifndef TIDE_SESSION_TIMING_H
#define TIDE_SESSION_TIMING_H

#include "repl/session/magic.h"

extern const magic magic_time, magic_timeit;

#endif
