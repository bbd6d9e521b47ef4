/* kinds.h: values beside the types of graphs. */
#ifndef TD_SCRIPT_KINDS_H
#define TD_SCRIPT_KINDS_H

#include "engine/script/boxes.h"
#include "engine/script/ir.h"

/* "a tensor", "nil": static. */
const char *td_kind_noun(uint8_t kind);

/* Is a value of the kind that a type says, parts included? Of tensors nothing else is asked. */
bool td_value_is(td_value v, const td_ir_type *type);
/* The same, where an int may stand for a float: it is made one. */
bool td_value_fit(td_value *v, const td_ir_type *type);

/* ETYPE: "input x is int[], and nil was given". */
td_status td_fail_kind(const char *what, const char *name, const td_ir_type *type, td_value v);

#endif
