/* group_name.h: how a fusion group is called by those who record. */
#ifndef TD_SCRIPT_GROUP_NAME_H
#define TD_SCRIPT_GROUP_NAME_H

#include "engine/script/ir.h"

/* "fused mul*10 tanh": a name for events, kept for ever, whose parts (calls/event_parts.h) are the
 * group's operators with their places. */
const char *td_script_group_name(const td_ir_graph *g);

#endif
