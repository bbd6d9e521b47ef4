/* vec_epilogue.h: what becomes of results of products and convolutions last of all. */
#ifndef TD_CPU_VECTORS_VEC_EPILOGUE_H
#define TD_CPU_VECTORS_VEC_EPILOGUE_H

#include "engine/cpu/vectors/vec_native.h"
#include "engine/ops/plan/plan.h"

/* The bits of the operators that the epilogue stands for. */
static inline vf vf_epilogue(const td_epilogue *e, vf v) {
    switch (e->curve) {
    case TD_CURVE_LIMITED:
        return vf_min(vf_max(v, vf_set(e->least)), vf_set(e->most));
    case TD_CURVE_HARDSWISH:
        return v * vf_min(vf_max(v + vf_set(3), vf_set(0)), vf_set(6)) / vf_set(6);
    case TD_CURVE_NONE:
        break;
    }
    return v;
}

#endif
