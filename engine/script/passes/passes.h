/* passes.h: rewritings of graphs; a file each. A graph that held its promises (td_ir_verify) holds
 * them afterwards. ENOMEM leaves it of no use. */
#ifndef TD_SCRIPT_PASSES_H
#define TD_SCRIPT_PASSES_H

#include "engine/script/ir.h"

/* fuse.c: neighbouring pointwise operators whose results have one shape, as far as types say,
 * become a prim::FusionGroup. */
td_status td_pass_fuse(td_ir_graph *g) TD_MUST_CHECK;

/* dead.c: nodes are taken out that nobody reads and that write and draw nothing. */
td_status td_pass_dead(td_ir_graph *g) TD_MUST_CHECK;

#endif
