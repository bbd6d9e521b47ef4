/* schema.h: from the text of a schema to parameters. */
#ifndef TD_OPS_LANGUAGE_SCHEMA_H
#define TD_OPS_LANGUAGE_SCHEMA_H

#include "engine/ops/op.h"

/* Fill the derived part of an operator from its schema. EVALUE names the schema and the place. */
td_status td_schema_parse(td_op *op) TD_MUST_CHECK;

/* A function of a front end that is no operator: from "name(PARAMETERS) -> TEXT" to name and
 * parameters; what follows the arrow is for people (result_names[0]). EVALUE as above. */
td_status td_schema_parse_function(td_op *function) TD_MUST_CHECK;
/* Free what td_schema_parse_function made. */
void td_schema_clear(td_op *function);

/* May strings be among its values, as in int[2]|"same"? */
bool td_param_has_words(const td_param *param);

/* "int[]", "dim?", "class Tensor": a parameter's type as a schema writes it. */
#define TD_PARAM_TEXT 192 /* room for the longest */
void td_param_type_text(const td_param *param, char *buffer, size_t size);

#endif
