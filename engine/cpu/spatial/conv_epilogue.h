/* conv_epilogue.h: the last step of a convolution, where the loop that made its result left it. */
#ifndef TD_CPU_SPATIAL_CONV_EPILOGUE_H
#define TD_CPU_SPATIAL_CONV_EPILOGUE_H

#include "engine/cpu/isa/isa.h"
#include "engine/ops/plan/plan.h"

static inline bool td_conv_has_epilogue(const td_convolution_plan *p) {
    return p->added || p->epilogue.curve != TD_CURVE_NONE;
}

/* Of n elements of the plan's result from place `at` on, which lie at y. */
static inline void td_conv_finish(const td_convolution_plan *p, void *y, int64_t at, int64_t n) {
    if (td_conv_has_epilogue(p))
        td_cpu->spatial->epilogue(y, p->added ? (const float *)p->added->data + at : NULL, n,
                                  &p->epilogue);
}

#endif
