/* row_stages.h: a group along rows as stages; for row_kernel.c, which runs them. */
#ifndef TD_SCRIPT_ROW_STAGES_H
#define TD_SCRIPT_ROW_STAGES_H

#include "engine/script/kernel.h"
#include "engine/script/row_kernel.h"

enum { TD_ROW_VALUES = 64, TD_ROW_STAGES = 32, TD_ROW_ENDS = 24 };

typedef struct td_row_value {
    uint8_t class; /* td_row_class */
    uint8_t dtype;
    int16_t output; /* which of the group's; -1: none */
    int16_t slot;   /* of what is neither output nor input: where it lies; -1 */
    bool summed;    /* a sum of all reads it */
} td_row_value;

/* An operator along rows, a pointwise group, or a sum of all; `in` and `out` are values. */
typedef struct td_row_stage {
    const td_ir_node *node;
    td_script_kernel *kernel; /* of a group; NULL: an operator, whose first arguments `in` are */
    bool total;
    bool cat;         /* of all that it reads, side by side */
    bool gather;      /* of a table (in) the rows of these numbers (in) */
    bool positive;    /* which are refused where they count from the end */
    td_dtype compute; /* of a kernel */
    int nin, nout;
    int16_t in[TD_ROW_ENDS], out[TD_ROW_ENDS];
} td_row_stage;

struct td_row_kernel {
    const td_ir_graph *graph;
    const char *name; /* of its events */
    int ninputs, noutputs, nvalues, nstages, nslots, ntotals;
    int ndim;  /* of the shape, */
    int inner; /* of which the last so many are a row */
    int full;  /* an input of the whole shape; -1: none, but the next two */
    int table, index;
    const td_row_stage *parts; /* NULL: or those of a cat */
    bool flat;                 /* some value has fewer dims than the shape */
    const int64_t *outer;      /* sizes that its other dims must have; NULL: any */
    int64_t cost;              /* of an element, an addition being 1 */
    int outputs[TD_ROW_ENDS];
    td_row_value values[TD_ROW_VALUES]; /* the inputs first */
    td_row_value slots[TD_ROW_VALUES];  /* of what class and dtype */
    td_row_stage stages[TD_ROW_STAGES];
};

/* The operator that does the same to a matrix, and its arguments: `inner` holds dim 1, and stays
 * valid as long as they do. Tensors, the first of them, are left out. */
const td_op *td_row_arguments(const td_ir_node *node, const int64_t *inner, td_value *args);

#endif
