/* fuse.c: pointwise operators that make one shape become groups (group.h), each one kernel. */
#include "engine/script/kernel.h"
#include "engine/script/passes/group.h"
#include "engine/script/passes/passes.h"

#include <string.h>

static bool equal_sizes(const td_ir_type *a, const td_ir_type *b) {
    return a->n == 0 ||
           (a->sizes && b->sizes && !memcmp(a->sizes, b->sizes, sizeof *a->sizes * (size_t)a->n));
}

static bool same_sizes(const td_ir_type *a, const td_ir_type *b) {
    return a->n >= 0 && a->n == b->n && equal_sizes(a, b);
}

static bool is_single(const td_ir_type *type) {
    for (int d = 0; d < type->n; d++)
        if (type->sizes[d] != 1)
            return false;
    return true;
}

enum { SHORT = 256 }; /* elements of a row up to which a row is too little for a call */

/* Is one of its inputs repeated along or across short rows? */
static bool spreads(const td_ir_node *node) {
    const td_ir_type *whole = node->outputs[0]->type;
    const bool elsewhere = whole->placed && whole->device.type != TD_CPU;
    const int64_t inner =
        !elsewhere && whole->n > 0 && whole->sizes ? whole->sizes[whole->n - 1] : 0;
    for (int k = 0; k < node->ninputs && inner > 1 && inner < SHORT; k++) {
        const td_ir_type *type = node->inputs[k]->type;
        if (type->kind == TD_IR_TENSOR && type->n > 0 && type->sizes &&
            !(type->n == whole->n && equal_sizes(type, whole)) && !is_single(type))
            return true;
    }
    return false;
}

/* Functions are called for many elements at a time, what is repeated is read row by row: both in
 * one program would be calls for each row. */
static bool parts(const td_group *g, const td_ir_node *node) {
    const bool calls = td_script_kernel_calls(node), spread = spreads(node);
    for (int k = 0; (calls || spread) && k < g->n; k++)
        if ((calls && spreads(g->nodes[k])) || (spread && td_script_kernel_calls(g->nodes[k])))
            return true;
    return false;
}

enum {
    LARGE = 8192, /* elements from which on memory counts for more than a call */
    AHEAD = 4     /* operators that lie at most between a value and the group's */
};

static bool is_large(const td_ir_type *type) {
    int64_t n = 1;
    for (int d = 0; d < type->n && n < LARGE; d++)
        n = type->sizes && type->sizes[d] >= 0 ? n * type->sizes[d] : 0;
    return n >= LARGE;
}

/* Is a value the group's: read or made by it, or made of such by other operators? */
static bool is_near(const td_group *g, const td_ir_value *value, int back) {
    const td_ir_node *node = value->node;
    if (td_group_reads(g, value) || td_group_makes(g, value))
        return true;
    bool near = false;
    for (int k = 0; node && node->kind == TD_IR_OPERATOR && node->op->pointwise && back > 0 &&
                    k < node->ninputs && !near;
         k++)
        near = is_near(g, node->inputs[k], back - 1);
    return near;
}

/* Does a value go with one of the group's into an operator, through others or at once? */
static bool meets(const td_group *g, const td_ir_value *value, int ahead) {
    for (const td_ir_use *use = value->uses; use; use = use->next) {
        const td_ir_node *node = use->node;
        if (!node || node->kind != TD_IR_OPERATOR || !node->op->pointwise)
            continue;
        for (int k = 0; k < node->ninputs; k++)
            if (node->inputs[k] != value && is_near(g, node->inputs[k], ahead))
                return true;
        if (ahead > 1 && meets(g, node->outputs[0], ahead - 1))
            return true;
    }
    return false;
}

/* Has a node to do with the group? One that has not would gain a call where it joins, while what
 * it makes would lie there so much earlier. */
static bool belongs(const td_group *g, const td_ir_node *node) {
    bool near = !is_large(node->outputs[0]->type);
    for (int k = 0; k < node->ninputs && !near; k++)
        near = td_group_reads(g, node->inputs[k]) || td_group_makes(g, node->inputs[k]);
    return near || meets(g, node->outputs[0], AHEAD);
}

static bool fits(const td_group *g, const td_ir_node *node, const void *ctx) {
    (void)ctx;
    return td_script_kernel_takes(node) &&
           (!g->n || (same_sizes(node->outputs[0]->type, g->nodes[0]->outputs[0]->type) &&
                      belongs(g, node))) &&
           !parts(g, node);
}

static td_status fuse_block(const td_alias_info *a, td_ir_block *block, td_pass_note *note) {
    td_status status = TD_OK;
    td_group group;
    td_raise_constants(block);
    for (td_ir_node *node = block->first, *next, *made; node && status == TD_OK; node = next) {
        for (int b = 0; b < node->nblocks && status == TD_OK; b++)
            status = fuse_block(a, node->blocks[b], note);
        td_group_gather(a, node, fits, NULL, false, &group);
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
