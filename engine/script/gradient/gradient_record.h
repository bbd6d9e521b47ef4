/* gradient_record.h: a graph's calls, and behind them those of its gradients, in one graph.
 *
 * The graph runs on stand-ins (calls/infer.h), operator by operator and recorded for backward as
 * any call is; then backward runs on stand-ins too. So the gradients are those of the operators'
 * rows, in the order and with the sums that eager mode has, and no element is read or written.
 */
#ifndef TD_SCRIPT_GRADIENT_RECORD_H
#define TD_SCRIPT_GRADIENT_RECORD_H

#include "engine/script/run.h"

/* What is to be recorded. A value of the forward part goes by a number: the outputs of its nodes
 * from 0, in the order in which they run, the same for the same script and inputs. */
typedef struct td_joint_request {
    const td_script *script;
    int ninputs;                /* the entries of lists and tuples in a row (gradient_flat.h): */
    const td_value *inputs;     /* of tensors only what they are is read */
    const int *layout;          /* how they stand in the script's inputs; NULL: each is one */
    const bool *wanted;         /* of which inputs the gradient is wanted */
    int ncaptured;              /* the tensors that the graph holds whose gradients are wanted; */
    td_tensor *const *captured; /* NULL: those that require grad now, of which there are any */
    int nends; /* values whose gradients come in; -1: those outputs that have one */
    const int *ends;
    bool recorded; /* backward is to be recorded itself: rows may have another way then */
    const td_modes
        *cast; /* those of the call, whose autocast holds in the forward part; NULL: none */
} td_joint_request;

/* All lists are in the graph's memory. */
typedef struct td_joint {
    td_ir_graph *graph;   /* owned; its inputs: the script's, the captured, gradients, numbers */
    td_ir_node *last;     /* of the forward part; NULL: it has no node */
    int ninputs;          /* of the script */
    int ncaptured;        /* tensors that the script's graph holds, whose gradients are wanted: */
    td_tensor **captured; /* owned */
    int nlayout,
        *layout;  /* how those stand in the script's that follow in a row; NULL: each is one */
    int noutputs; /* of the script: */
    td_ir_value **outputs; /* their values */
    bool *differentiable;  /* does a gradient of it lead anywhere? */
    int nends;             /* gradients that come in */
    int *ends;
    td_ir_value **gradients; /* of the inputs, then of the captured; NULL: none is wanted, or 0 */
    int nnumbers;            /* that follow from sizes (gradient_sizes.h) */
    bool writes;             /* memory of the forward part is written in place */
} td_joint;

/* Record it. Whatever calls fail by is returned: among that what no stand-in can do (reading an
 * element), calls on other layouts, and what backward reads that no call of the graph made. */
td_status td_joint_record(const td_joint_request *request, td_joint *out) TD_MUST_CHECK;
void td_joint_clear(td_joint *joint);

/* The number of a value of the forward part; -1: an input or a constant. And back. */
int td_joint_number(const td_joint *joint, const td_ir_value *value);
td_ir_value *td_joint_value(const td_joint *joint, int number);

#endif
