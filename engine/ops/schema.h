/* schema.h: from the text of a schema to parameters. */
#ifndef TD_OPS_SCHEMA_H
#define TD_OPS_SCHEMA_H

#include "engine/ops/op.h"

/* Fill the derived part of an operator from its schema. EVALUE names the schema and the place. */
td_status td_schema_parse(td_op *op) TD_MUST_CHECK;

/* "int[]", "dim?", "class Tensor": a parameter's type as a schema writes it. */
void td_param_type_text(const td_param *param, char *buffer, size_t size);

#endif
