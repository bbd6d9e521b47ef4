/* families.h: the tables of operators, one per family's file. Each ends with an empty row. */
#ifndef TD_OPS_FAMILIES_H
#define TD_OPS_FAMILIES_H

#include "engine/ops/op.h"

#define TD_FAMILY_TABLE(X)                                                                         \
    X(create)                                                                                      \
    X(copy)                                                                                        \
    X(pointwise)                                                                                   \
    X(reduce)                                                                                      \
    X(loss)                                                                                        \
    X(matmul)                                                                                      \
    X(conv)                                                                                        \
    X(pool)                                                                                        \
    X(shape)                                                                                       \
    X(join)                                                                                        \
    X(index)                                                                                       \
    X(gather)                                                                                      \
    X(random)

#define TD_FAMILY_DECLARE(name) extern td_op td_ops_##name[];
TD_FAMILY_TABLE(TD_FAMILY_DECLARE)
#undef TD_FAMILY_DECLARE

#endif
