/* value_call.h: what the nodes of graphs do, on values: for graphs that run, and for C that was
 * made of one (tide.jit.emit_c).
 *
 * Arguments are borrowed; what is made is the caller's (td_value_drop), and nil on failure. Types
 * of graphs say less than what there is, so each of these looks at the kinds of what it is given.
 */
#ifndef TD_SCRIPT_VALUE_CALL_H
#define TD_SCRIPT_VALUE_CALL_H

#include "engine/script/boxes.h"
#include "engine/script/scalars.h"

/* Call an operator with all of its arguments, or its form in place, which writes the tensor
 * args[0]. Lists and strings may be boxed; an int stands for a float, or for a list of one.
 * `results`: as many as its schema has. EVALUE: it takes another number of arguments; ETYPE: one is
 * of another kind; and what the call says. */
td_status td_value_call(const td_op *op, bool inplace, int n, const td_value *args,
                        td_value *results) TD_MUST_CHECK;

/* Run a row of scalars.def. ETYPE: an argument is of another kind; and what the row says. */
td_status td_scalar_call(const td_scalar *row, int n, const td_value *args,
                         td_value *result) TD_MUST_CHECK;
/* The row of this name with these letters of parameters (scalars.def); NULL: there is none. */
const td_scalar *td_scalar_get_row(const char *name, const char *parameters);

/* New, of n entries, which are held. ETYPE, ENOMEM. */
td_status td_value_list_of(td_box_entries entries, int n, const td_value *values,
                           td_value *list) TD_MUST_CHECK;
/* New, of n parts, which are held. ENOMEM. */
td_status td_value_tuple_of(int n, const td_value *values, td_value *tuple) TD_MUST_CHECK;
/* The entries of a list that has n of them, each held once more. ETYPE, EVALUE. */
td_status td_value_entries(td_value list, int n, td_value *entries) TD_MUST_CHECK;
/* n parts of a tuple from the `first` on, counted from 0, each held once more. ETYPE: it has not as
 * many. */
td_status td_value_parts(td_value tuple, int first, int n, td_value *parts) TD_MUST_CHECK;

/* Is a value what a type says, its parts included? An int is made the float that is asked for.
 * ETYPE: "input x is int[], and nil was given". */
td_status td_value_check(const char *what, const char *name, const td_ir_type *type,
                         td_value *v) TD_MUST_CHECK;
/* What a condition is. ETYPE: no bool. */
td_status td_value_truth(td_value v, bool *truth) TD_MUST_CHECK;

#endif
