/* pointwise_walk.h: the order in which a pointwise program visits the elements of its operands and
 * results, and where these lie.
 *
 * The dims of a list of tensors are sorted by the results' strides and merged where they can be;
 * what is left is walked in one order, elements numbered from 0. Long inner dims make rows: a block
 * then never crosses a row, so what is constant along a row is a single element there and what runs
 * along it is read in place.
 */
#ifndef TD_CPU_POINTWISE_POINTWISE_WALK_H
#define TD_CPU_POINTWISE_POINTWISE_WALK_H

#include "engine/ops/plan/pointwise_geometry.h"

enum { TD_WALK_BLOCK = 1024 }; /* elements of a buffer of 8 bytes each */

/* An operand or a result. */
typedef struct td_side {
    char *data;
    uint8_t dtype; /* in memory */
    uint8_t as;    /* of its register */
    bool scalar;   /* one element for all; `value` holds it as `as` */
    bool dense;    /* lies in the order of the walk, as `as` */
    bool apart;    /* result: made in a buffer, because steps after it read what lies there */
    bool streamed; /* result: made in a buffer, and written past the caches */
    int64_t strides[TD_MAX_DIMS]; /* bytes, in the order of the walk */
    _Alignas(8) unsigned char value[8];
} td_side;

typedef struct td_walk {
    int ndim;
    bool rows;        /* inner dims are long */
    bool direct;      /* a single step reads and writes in place: blocks may have any length */
    bool direct_rows; /* not simple: a single step goes through each inner dim in place */
    bool streams;     /* some result is streamed */
    bool simple;      /* every side is a scalar or dense: no place is asked for */
    bool in_place;    /* simple, and every result is made where it will lie */
    bool flat;        /* td_walk_next: the list is, and the next one may differ in little */
    int64_t numel;
    int64_t sizes[TD_MAX_DIMS]; /* innermost last */
    td_side *loads, *outs;      /* room that the caller gives, nloads and noutputs of them */
    const td_operand *operands; /* td_walk_next: of the list */
    uint64_t moving;            /* bit per load that is elements; all where the list is not flat */
    uint64_t aliases;           /* the same: which result lies where which operand does */
} td_walk;

void td_store_operand(td_dtype dtype, void *p, const td_operand *o);

/* Lay out one list. ESHAPE where operands and results don't broadcast. */
td_status td_walk_init(td_walk *w, const td_program *program, td_dtype compute,
                       const td_operand *operands, td_tensor *const *outs) TD_MUST_CHECK;
/* Lay out one list after another of a plan (at first w is zero but for its room), all of which can
 * be laid out. `flat`: td_frame_is_flat says so; `nown`: operands from there on are the same as in
 * the list before. True: only the number of elements and the addresses of results and of the loads
 * in `moving` have changed. */
bool td_walk_next(td_walk *w, const td_program *program, td_dtype compute,
                  const td_operand *operands, td_tensor *const *outs, bool flat, int nown);

/* Where element `at` lies: its index in each dim. */
void td_walk_place(const td_walk *w, int64_t at, int64_t *index);

/* The address of one element of side x. */
static inline char *td_walk_element(const td_walk *w, const td_side *x, const int64_t *index) {
    char *p = x->data;
    for (int d = 0; d < w->ndim; d++)
        p += index[d] * x->strides[d];
    return p;
}

/* The address of side x's elements from `at` on where they lie one after the other as `as` for the
 * whole block, else NULL. `index`: of `at`. */
char *td_walk_address(const td_walk *w, const td_side *x, int64_t at, const int64_t *index);

/* Elements [at, at + n) of x into a buffer, as they are in memory, or from it. */
void td_walk_gather(const td_walk *w, const td_side *x, const int64_t *index, int64_t n,
                    void *buffer);
void td_walk_scatter(const td_walk *w, const td_side *x, const int64_t *index, int64_t n,
                     const void *buffer);

#endif
