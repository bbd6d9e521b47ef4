/* fuse.c: pointwise operators that make one shape become groups (group.h), each one kernel. */
#include "engine/script/kernel.h"
#include "engine/script/passes/group.h"
#include "engine/script/passes/passes.h"

#include <string.h>

static bool same_sizes(const td_ir_type *a, const td_ir_type *b) {
    bool mask = a->dtype == TD_BOOL || b->dtype == TD_BOOL; /* of what is computed beside it */
    return a->n >= 0 && a->n == b->n && (mask || a->dtype == b->dtype) &&
           (a->n == 0 ||
            (a->sizes && b->sizes && !memcmp(a->sizes, b->sizes, sizeof *a->sizes * (size_t)a->n)));
}

static bool fits(const td_group *g, const td_ir_node *node, const void *ctx) {
    (void)ctx;
    return td_script_kernel_takes(node) &&
           (!g->n || same_sizes(node->outputs[0]->type, g->nodes[0]->outputs[0]->type));
}

static td_status fuse_block(const td_alias_info *a, td_ir_block *block, td_pass_note *note) {
    td_status status = TD_OK;
    td_group group;
    td_raise_constants(block);
    for (td_ir_node *node = block->first, *next, *made; node && status == TD_OK; node = next) {
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = fuse_block(a, node->blocks[b], note);
        td_group_gather(a, node, fits, NULL, &group);
        next = group.n > 1 ? group.nodes[group.n - 1]->next : node->next;
        if (group.n < 2 || status)
            continue;
        status = td_group_make(&group, &made);
        if (made)
            td_pass_say(note, made, "%d operators are one kernel", group.n);
    }
    return status;
}

td_status td_pass_fuse(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    if (status == TD_OK)
        status = fuse_block(a, g->block, note);
    td_alias_free(a);
    return status ? status : td_ir_status(g);
}
