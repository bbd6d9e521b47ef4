/* defer_path.h: the paths of calls that a function has made, as a tree. A step is a call together
 * with all before it: an operator, its arguments, and of the tensors among these either which
 * earlier result it is or which input of the path, of what kind. What calls gave is known by
 * stand-ins, tensors without elements.
 */
#ifndef TD_SCRIPT_DEFER_PATH_H
#define TD_SCRIPT_DEFER_PATH_H

#include "engine/ops/op.h"
#include "engine/script/ir.h"

/* What a tensor among a step's arguments is. */
typedef struct td_path_operand {
    td_tensor *stand_in; /* NULL: the entry is missing */
    int input;           /* number among the path's inputs, or -1 */
    int value;           /* number among the results before, or -1 */
    uint8_t traits;      /* of an input: td_path_traits */
} td_path_operand;

/* What a path came to once it was run: which results were held, and what runs then. */
typedef struct td_path_end {
    struct td_path_end *next;
    int n, *values; /* that were held */
    int count;      /* how often */
    bool failed;    /* no graph can do it */
    struct td_plan *plan;
} td_path_end;

typedef struct td_path_step td_path_step;
struct td_path_step {
    td_path_step *before, *next, *first; /* next: another that may follow `before` */
    const td_op *op;
    bool inplace;
    bool alone;  /* can't be put off: a path ends before it */
    bool idle;   /* gives its argument itself */
    bool view;   /* its results share memory with what it reads */
    bool hasty;  /* it may refuse elements, and is to do so where it is called */
    bool random; /* it or one before it draws */
    int ncalls;  /* with it */
    td_value *args;
    td_path_operand *operands; /* of the tensors among args, in order */
    int noperands, ninputs;    /* ninputs: of the path so far */
    td_tensor **outs;          /* stand-ins; NULL where there is no such result */
    int nouts, first_value;    /* number of the first among the path's results */
    td_ir_place place;
    td_path_end *ends;
};

/* Is it a stand-in? */
static inline bool td_is_stand_in(const td_tensor *x) {
    return TD_UNLIKELY(x->storage->device.type == TD_META && x->storage->device.index != 0);
}

/* All of a tensor's kind that is not dtype, shape, strides or device. */
uint8_t td_path_traits(const td_tensor *x);

/* Is the call this step? `inputs` are the path's, those of the steps before being bound; what the
 * step sees first is written behind them, without a reference. */
bool td_path_matches(const td_path_step *s, const td_call *call, td_tensor **inputs);

/* New stand-in of a strided tensor. */
td_status td_path_stand_in(const td_tensor *x, td_tensor **out) TD_MUST_CHECK;

/* New step behind `before`, in the memory of a graph, with copies of the call's arguments, of which
 * the tensors are these operands' (their stand-ins pass to the step). NULL: out of memory. */
td_path_step *td_path_add(td_ir_graph *memory, td_path_step *before, const td_call *call,
                          int noperands, const td_path_operand *operands);
/* Let go of the tensors of a step and its kin, and of all behind them; drop(end) of their ends. */
void td_path_drop(td_path_step *s, void (*drop)(td_path_end *end));

/* The steps from the first to this one into a list of s->ncalls. */
void td_path_list(td_path_step *s, td_path_step **steps);

#endif
