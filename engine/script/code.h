/* code.h: graphs made ready to run: what make.c works out once and steps read (run.c). */
#ifndef TD_SCRIPT_CODE_H
#define TD_SCRIPT_CODE_H

#include "engine/script/kernel.h"
#include "engine/script/run.h"
#include "engine/script/scalars.h"

enum { TD_CODE_MOST = 64 }; /* inputs or outputs of a fusion group */

/* What a script has while it runs. */
typedef struct td_code_frame {
    td_value *registers;
    const td_value *constants;
    td_shared_host *host; /* borrowed; NULL: none */
    bool placed;          /* the message of a failure has its place */
} td_code_frame;

typedef struct td_code_step td_code_step;
typedef td_status (*td_step_fn)(const td_code_step *step, td_code_frame *frame);

/* The nodes of a block. */
typedef struct td_code_block {
    int nsteps, ninputs, noutputs, nunread;
    td_code_step *steps;
    int *inputs, *outputs; /* registers; of outputs also constants */
    bool *moves;           /* outputs whose registers are handed over, not held once more */
    int *unread;           /* registers of inputs that nobody reads */
} td_code_block;

/* A node. Constants are no steps: they are read where they are, as ~k. */
struct td_code_step {
    td_step_fn run;
    const td_ir_node *node;
    int ninputs, noutputs, ndead;
    bool brief;            /* memory of its results goes back before the script ends */
    int *inputs, *outputs; /* registers, or constants as ~k */
    int *dead;             /* registers that nobody reads behind it */
    uint64_t *kinds;       /* a bit for each kind of value that an input is taken of as it is */
    td_code_block *blocks;
    td_script *script; /* of a node with a graph of its own */
};

struct td_script {
    atomic_int refs;
    td_ir_graph *graph;
    td_ir_graph *memory; /* of the code */
    td_code_block code;
    int nregisters; /* the graph's inputs first, which are the caller's */
    td_value *constants;
    bool takes; /* its inputs' references */
    /* The only step, where that is a pointwise group of all inputs, which gives all outputs, each
     * in order; NULL. */
    const td_code_step *whole;
    /* Of a group; where both are NULL, its nodes run one by one. */
    td_script_kernel *kernel;
    struct td_row_kernel *rows;
};

/* What the fast kernels of a script were found to differ in from their operators joins `error`. */
void td_script_measured(const td_script *s, td_kernel_error *error);

/* The function that runs nodes of a kind. */
td_step_fn td_step_of_kind(td_ir_kind kind);

static inline const td_value *td_frame_value(const td_code_frame *f, int index) {
    return index >= 0 ? &f->registers[index] : &f->constants[~index];
}

#endif
