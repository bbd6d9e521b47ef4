/* operands.h: values of graphs as arguments and results of operators. */
#ifndef TD_SCRIPT_OPERANDS_H
#define TD_SCRIPT_OPERANDS_H

#include "engine/script/boxes.h"

/* Kinds of values that a parameter takes as they are, a bit each. */
uint64_t td_argument_kinds(const td_param *p);

/* Room for arguments that are made from others: an int for a list of one, ints for floats. */
typedef struct td_argument_room {
    int64_t ints[TD_MAX_PARAMS];
    double floats[16];
} td_argument_room;

/* The first n arguments of an operator as its parameters take them; what is made anew lies in the
 * room. ETYPE: one can't be. */
td_status td_fit_arguments(const td_op *op, int n, td_argument_room *room,
                           td_value *args) TD_MUST_CHECK;

/* The result of a call that was made of an operator whose schema gives no Tensor or tuple of them,
 * taken out of it; nil where it gives nothing. ENOMEM. */
td_status td_take_result(td_call *call, td_value *result) TD_MUST_CHECK;

#endif
