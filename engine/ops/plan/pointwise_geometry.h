/* pointwise_geometry.h: how the tensors of a pointwise plan lie to one another: the shape that is
 * walked and in which order, whether all are one run of memory, what overlaps. For who lays a plan
 * out on a device. */
#ifndef TD_OPS_PLAN_POINTWISE_GEOMETRY_H
#define TD_OPS_PLAN_POINTWISE_GEOMETRY_H

#include "engine/ops/language/program.h"
#include "engine/ops/plan/plan.h"

/* The shape that a list's elements have, and strides, in elements, that say in which order they are
 * best walked. */
typedef struct td_frame {
    int ndim;
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
} td_frame;

/* The results' (outs NULL: there are none), or where all of these are sums the operands' common
 * one. ESHAPE where results differ, operands don't broadcast, or a sum has several elements. */
td_status td_frame_choose(td_frame *f, const td_program *program, const td_operand *operands,
                          td_tensor *const *outs) TD_MUST_CHECK;

/* Dims with strides from large to small, those of size 1 left out; returns how many. */
int td_frame_order(const td_frame *f, int *order);

/* Strides in bytes of x seen in the frame, in that order of n dims: 0 where it is broadcast. */
void td_frame_strides(const td_frame *f, const td_tensor *x, const int *order, int n,
                      int64_t *strides);

/* Are all tensors of a list, of which n operands, of one shape and row-major, but for single
 * elements that are read? */
bool td_frame_is_flat(const td_program *program, int n, const td_operand *operands,
                      td_tensor *const *outs);

/* The operands of all lists of a plan, those that lists share repeated for each: new, or NULL where
 * memory is out. For who is in no hurry. */
td_operand *td_operands_repeated(const td_pointwise_plan *plan);

/* Does x share memory with out, in the same storage, other than element by element? */
bool td_frame_overlaps(const td_tensor *x, const td_tensor *out);
static inline bool td_frame_clashes(const td_tensor *x, const td_tensor *out) {
    return x != out && x->storage == out->storage && td_frame_overlaps(x, out);
}

#endif
