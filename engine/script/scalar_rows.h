/* scalar_rows.h: the functions that rows of scalars.def name; scalar_numbers.c, scalar_texts.c and
 * scalar_lists.c have them. Arguments are of the kinds that the row says. */
#ifndef TD_SCRIPT_SCALAR_ROWS_H
#define TD_SCRIPT_SCALAR_ROWS_H

#include "engine/script/boxes.h"

#define SCALAR(name, parameters, result, acts, function, doc)                                      \
    td_status td_scalar_##function(int n, const td_value *args, td_value *out);
#include "engine/script/scalars.def"
#undef SCALAR

#endif
