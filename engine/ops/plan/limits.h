/* limits.h: makes names of a room's table of limits: sizes at which one way of doing the same thing
 * becomes quicker than another. Both ways give right results, so a limit is a matter of speed
 * alone; where the ways round differently, of bits too. What is a loop's or a kernel's own (a tile,
 * a block on the stack) stands beside it.
 *
 * A table is a macro of rows, of which a file sees one room's:
 *
 *   X(name, value, unit, what, processor that it was measured on ("": not noted), when it was set)
 *
 * TD_LIMIT(name) is the value: a constant, or, with TD_LIMITS_VARIABLE, a place of
 * td_limits, which the room defines. */
#ifndef TD_OPS_PLAN_LIMITS_H
#define TD_OPS_PLAN_LIMITS_H

#include <stdint.h>

#define TD_LIMIT_PLACE(name, ...)        TD_LIMIT_AT_##name,
#define TD_LIMIT_VALUE(name, value, ...) TD_LIMIT_##name = (value),

/* clang-format off */
#if defined(TD_LIMITS_VARIABLE)
#define TD_LIMITS_DECLARE(table)                       \
    enum { table(TD_LIMIT_PLACE) TD_LIMIT_COUNT };     \
    extern int64_t td_limits[TD_LIMIT_COUNT]
#define TD_LIMIT(name) td_limits[TD_LIMIT_AT_##name]
#else
#define TD_LIMITS_DECLARE(table) enum { table(TD_LIMIT_VALUE) }
#define TD_LIMIT(name) TD_LIMIT_##name
#endif
/* clang-format on */

#endif
