/* row_kernel.h: a fusion group along rows, run block by block of rows.
 *
 * Its graph has operators along the last dims of one shape (reductions of rows, softmax), pointwise
 * groups on that shape and on what rows were reduced to, rows from tables or side by side, and sums
 * of all elements. Each is a stage, which runs the operator's own kernel on a block of rows that
 * stays in a core's cache; what nobody reads outside is nowhere else. The bits are those of the
 * operators one by one.
 */
#ifndef TD_SCRIPT_ROW_KERNEL_H
#define TD_SCRIPT_ROW_KERNEL_H

#include "engine/script/ir.h"

/* What a value is to a shape of rows, of which the last dims are the elements of a row. */
typedef enum td_row_class {
    TD_ROW_NONE,  /* none of these */
    TD_ROW_ONE,   /* one element, of no more dims than the shape has */
    TD_ROW_VEC,   /* an element for each place in a row, the same for all rows */
    TD_ROW_ROW,   /* one for each row, with dims of size 1 for the elements */
    TD_ROW_FLAT,  /* one for each row, without these dims */
    TD_ROW_FULL,  /* of the whole shape */
    TD_ROW_TABLE, /* rows that are taken by number, as many as there are */
    TD_ROW_PART,  /* rows of another length */
    TD_ROW_TOTAL  /* one element, which is there when all rows are done: none reads it in the group
                   */
} td_row_class;

/* The shape: of a tensor's type, of whose dims the last `inner` are a row's elements. */
typedef struct td_row_shape {
    const td_ir_type *full;
    int inner;
} td_row_shape;

/* Is a node an operator along the last dims of floats, whose other arguments are constants, as far
 * as types say? The shape that it works on. */
bool td_row_operator(const td_ir_node *node, td_row_shape *shape);

/* Is it a sum or mean of all elements of such a tensor? Any dims may be its shape's inner ones. */
bool td_row_total(const td_ir_node *node);

/* Does it take rows of a table (embedding, index_select along dim 0), and of what shape? */
bool td_row_gather(const td_ir_node *node, td_row_shape *shape);

/* Does it set rows side by side (cat along the last dim, of a list that is made for it), and of
 * what shape are they then? */
bool td_row_cat(const td_ir_node *node, td_row_shape *shape);
/* The cat that a list is made for, which alone reads it; NULL: it is for something else. */
const td_ir_node *td_row_cat_of(const td_ir_node *list);

/* Is a group's graph one along rows? */
bool td_is_row_group(const td_ir_graph *g);

/* What a type is to the shape; of what pointwise operators on two make (NONE: they don't fit). */
td_row_class td_row_class_of(const td_row_shape *shape, const td_ir_type *type);
td_row_class td_row_join(td_row_class a, td_row_class b);

typedef struct td_row_kernel td_row_kernel;

/* New, of a group's graph, which is borrowed for its life; EVALUE where it is no graph of operators
 * along rows and pointwise groups. */
td_status td_row_kernel_new(const td_ir_graph *g, td_row_kernel **out) TD_MUST_CHECK;
void td_row_kernel_free(td_row_kernel *k); /* NULL is fine */

/* Run it on inputs, borrowed; outputs are new. *taken is false, and nothing is done, where these
 * inputs need the operators themselves: other dtypes, layouts or shapes than types say, devices
 * whose rows are not to be parted, calls that are recorded or cast, or that a dispatcher is to see;
 * or where memory ran out, of which the operators may need less. */
td_status td_row_kernel_run(const td_row_kernel *k, const td_value *inputs, td_value *outputs,
                            bool *taken) TD_MUST_CHECK;

#endif
