/* axis_windows.h: which places of the input each place of a result sees along one dim, and with
 * what weights: a td_axis expanded.
 */
#ifndef TD_OPS_PLAN_AXIS_WINDOWS_H
#define TD_OPS_PLAN_AXIS_WINDOWS_H

#include "engine/ops/plan/plan.h"

typedef struct td_taps {
    int64_t in, out, step;
    int64_t stride, padding, kernel; /* of windows that slide; else 0 */
    int32_t *begin, *end;            /* `out` each: places [begin, end), `step` apart */
    double *weight;                  /* NULL: all 1 */
    int64_t *first;                  /* where in `weight` those of a place begin */
    double *divisor;                 /* `out` of them; NULL: all 1 */
    int64_t few;                     /* 2 or 4: every place sees at most so many, weighted; or 0 */
    int32_t *near;                   /* few x out: first, second, ... of every place; `in`: none */
    double *share;                   /* their weights */
    bool single;                     /* every place sees one, of weight 1 and undivided */
    bool single_place;               /* every place sees one, of weight 1 */
    bool pairs;                      /* place k sees 2k and 2k + 1 */
} td_taps;

static inline double td_tap_weight(const td_taps *t, int64_t k, int64_t at) {
    return t->weight ? t->weight[t->first[k] + at] : 1;
}
static inline double td_tap_divisor(const td_taps *t, int64_t k) {
    return t->divisor ? t->divisor[k] : 1;
}

/* One block of memory. ENOMEM leaves nothing. */
td_status td_taps_init(td_taps *taps, const td_axis *axis) TD_MUST_CHECK;
void td_taps_clear(td_taps *taps);

/* Those of all axes. */
td_status td_taps_init_all(td_taps *taps, const td_axis *axes) TD_MUST_CHECK;
void td_taps_clear_all(td_taps *taps);

#endif
