/* help.h: what an operator's help says of shapes, dtypes and use: the texts of its row, and what
 * follows from the kind of the row.
 *
 * A text of shapes (td_op.shapes) is for readers, and exact enough that tests/ops/test_shapes.lua
 * holds it against every sample of the operator:
 *
 *   x (*, in), weight (out, in), bias (out) -> (*, out)
 *
 *   text    = case { " | " case } { "; " name " = " formula | "; " name ": " words }
 *   case    = operands " -> " results [ " if " formula ]
 *   operand = name shape, name " to " shape (it is broadcast to that), name {shape} (of each in the
 *             list) ; several after commas
 *   result  = shape, {shape} (of each in the list), or number, bool, nothing
 *   shape   = "(" dims ")" [ " without " dim | " with " size " at " dim
 *                          | " with " size " inserted at " dim ]
 *   dims    = sizes after commas, among which may stand
 *             *        any dims; where several operands have them they are broadcast
 *             ...      any dims, the same wherever they stand
 *             name...  the same by a name; or the sizes of the argument, or definition, of that
 * name
 *
 * The first case that the arguments fit, and whose formula holds, is the call's; a case without
 * operands has those of the one before. Operands that are not given, or are numbers, and results
 * that are not asked for are left out. A size is a name, or a formula of names, options (as Lua
 * writes them) and numel(x), ndim(x). What a name followed by words is can't be told from the
 * arguments. "without dim": all of them where dim is nil; with keepdim they have size 1.
 *
 * A text of dtypes (td_op.takes) is held against calls in every dtype:
 *
 *   floating and integers, one dtype; integers count as float32; target integers
 *
 *   text   = set [", promoted" | ", one dtype"] { "; " clause } | clause { "; " clause }
 *   set    = any, or some of floating, integers and dtypes' names, after commas and "and"
 *   clause = set ("count as" | "counts as") dtype      where operands are of these the result has
 * it | "the result is" dtype | result's name dtype | operand's name set ...                    and
 * other words, for readers
 *
 * Without a clause results have the dtype of the operands. */
#ifndef TD_OPS_HELP_H
#define TD_OPS_HELP_H

#include "engine/ops/op.h"

#define TD_HELP_TEXT 1024

/* The shapes of an operator: its row's text, or one that is written into `text`; NULL where neither
 * says anything. */
const char *td_help_shapes(const td_op *op, char text[TD_HELP_TEXT]);

/* Which dtypes its tensors may have, in words, written into `text`. */
const char *td_help_dtypes(const td_op *op, char text[TD_HELP_TEXT]);

/* What its kind and its row say of how it is used, sentences written into `text`; NULL: nothing. */
const char *td_help_notes(const td_op *op, char text[TD_HELP_TEXT]);

#endif
