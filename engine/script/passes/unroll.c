/* unroll.c: loops whose number of trips is known, and whose condition never ends them earlier, are
 * written out: in full where they are short, else eight trips at a time, what is left behind them.
 */
#include "engine/script/passes/copy.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

enum {
    FULL_TRIPS = 64,  /* fewer than these are written out, */
    FULL_NODES = 512, /* if these are not exceeded */
    PART_TRIPS = 8,
    PART_NODES = 16 /* of a body that is written out in part */
};

static bool is_true(const td_ir_value *value) {
    const td_value *constant = td_ir_constant_of(value);
    return constant && constant->kind == TD_KIND_BOOL && constant->b;
}

/* One trip's nodes at the end of a block; `carried` goes in and comes out. */
static void write_trip(td_ir_graph *g, td_ir_block *block, const td_ir_node *loop,
                       td_ir_value *trip, td_ir_value **carried) {
    const td_ir_block *body = loop->blocks[0];
    td_copier c = {.graph = g};
    if (trip)
        td_copier_set(&c, body->inputs[0], trip);
    for (int k = 0; k < loop->noutputs; k++)
        td_copier_set(&c, body->inputs[k + 1], carried[k]);
    td_copier_copy_nodes(&c, block, body);
    for (int k = 0; k < loop->noutputs; k++)
        carried[k] = td_copier_get(&c, body->outputs[k + 1]);
    td_copier_clear(&c);
}

/* Trips from `first` on before the loop, in its own block. */
static void write_trips(td_ir_node *loop, int64_t first, int64_t n, td_ir_value **carried) {
    td_ir_block *block = loop->block;
    td_ir_node *before = block->last;
    td_ir_graph *g = block->graph;
    for (int64_t k = 0; k < n && !g->failed; k++)
        write_trip(g, block, loop, td_ir_add_constant(block, TD_I(first + k)), carried);
    for (td_ir_node *node = before->next, *next; node; node = next) {
        next = node->next;
        td_ir_move_before(node, loop);
    }
}

static td_ir_value **carried_of(td_ir_node *loop) {
    td_ir_value **carried =
        td_ir_alloc(loop->block->graph, sizeof *carried * (size_t)(loop->noutputs + 1));
    for (int k = 0; carried && k < loop->noutputs; k++)
        carried[k] = loop->inputs[k + 2];
    return carried;
}

static void unroll_fully(td_ir_node *loop, int64_t trips, td_pass_note *note) {
    td_ir_value **carried = carried_of(loop);
    if (!carried)
        return;
    td_pass_say(note, loop, "%d trips are written out", (int)trips);
    write_trips(loop, 0, trips, carried);
    if (loop->block->graph->failed)
        return;
    for (int k = 0; k < loop->noutputs; k++)
        td_ir_replace(loop->outputs[k], carried[k]);
    td_ir_remove(loop);
}

/* A loop of a block of eight trips each, and the rest behind it. Bodies that read their trip's
 * number stay. */
static void unroll_partly(td_ir_node *loop, int64_t trips, td_pass_note *note) {
    td_ir_block *block = loop->block;
    td_ir_graph *g = block->graph;
    const td_ir_block *body = loop->blocks[0];
    int n = loop->noutputs;
    td_ir_value **carried = carried_of(loop);
    td_ir_value **ends = td_ir_alloc(g, sizeof *ends * (size_t)(n + 2));
    const td_ir_type **types = td_ir_alloc(g, sizeof *types * (size_t)(n + 2));
    if (!carried || !ends || !types)
        return;
    td_pass_say(note, loop, "%d trips are written out at a time", PART_TRIPS);
    ends[0] = td_edit_constant_before(loop, TD_I(trips / PART_TRIPS));
    ends[1] = loop->inputs[1];
    for (int k = 0; k < n; k++) {
        ends[k + 2] = carried[k];
        types[k] = loop->outputs[k]->type;
    }
    td_ir_node *fewer = td_ir_append(block, TD_IR_LOOP, n + 2, ends, n, types);
    td_ir_block *inside = td_ir_add_block(fewer);
    if (!inside)
        return;
    fewer->place = loop->place;
    td_ir_add_input(inside, body->inputs[0]->type, body->inputs[0]->name);
    for (int k = 0; k < n; k++)
        carried[k] = td_ir_add_input(inside, body->inputs[k + 1]->type, body->inputs[k + 1]->name);
    for (int j = 0; j < PART_TRIPS && !g->failed; j++)
        write_trip(g, inside, loop, NULL, carried);
    ends[0] = loop->inputs[1];
    for (int k = 0; k < n; k++)
        ends[k + 1] = carried[k];
    if (g->failed)
        return;
    td_ir_set_outputs(inside, n + 1, ends);
    td_ir_move_before(fewer, loop);
    for (int k = 0; k < n; k++)
        carried[k] = fewer->outputs[k];
    write_trips(loop, 0, trips % PART_TRIPS, carried);
    for (int k = 0; k < n && !g->failed; k++)
        td_ir_replace(loop->outputs[k], carried[k]);
    td_ir_remove(loop);
}

static void unroll(td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->first, *next; node && !block->graph->failed; node = next) {
        next = node->next;
        for (int b = 0; b < node->nblocks; b++)
            unroll(node->blocks[b], note);
        const td_value *trips =
            node->kind == TD_IR_LOOP ? td_ir_constant_of(node->inputs[0]) : NULL;
        if (!trips || trips->kind != TD_KIND_INT || !is_true(node->inputs[1]) ||
            !is_true(node->blocks[0]->outputs[0]))
            continue;
        int64_t n = trips->i < 0 ? 0 : trips->i, size = td_edit_count(node->blocks[0]);
        if (n < FULL_TRIPS && n * size <= FULL_NODES)
            unroll_fully(node, n, note);
        else if (n >= 2 * PART_TRIPS && size <= PART_NODES && !node->blocks[0]->inputs[0]->uses &&
                 size > 0)
            unroll_partly(node, n, note);
    }
}

td_status td_pass_unroll(td_ir_graph *g, td_pass_note *note) {
    unroll(g->block, note);
    return td_ir_status(g);
}
