/* unroll.c: loops that no condition ends earlier are written out: in full where they are known to
 * be short, else eight trips at a time, and what is left behind them. */
#include "engine/script/passes/copy.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"
#include "engine/script/scalars.h"

#include <string.h>

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

/* ---- eight at a time ---- */

/* An operator on two ints at the end of a block. */
static td_ir_value *calculate(td_ir_block *block, const char *name, td_ir_value *a,
                              td_ir_value *b) {
    td_ir_value *inputs[2] = {a, b};
    const td_ir_type *type = td_ir_simple_type(TD_IR_INT);
    td_ir_node *node = a && b ? td_ir_append(block, TD_IR_SCALAR, 2, inputs, 1, &type) : NULL;
    if (!node)
        return NULL;
    node->scalar = td_scalar_find(name, strlen(name), 2, inputs);
    return node->outputs[0];
}

/* The same before a node. */
static td_ir_value *calculate_before(td_ir_node *at, const char *name, td_ir_value *a, int64_t b) {
    td_ir_value *value = calculate(at->block, name, a, td_edit_constant_before(at, TD_I(b)));
    if (value)
        td_ir_move_before(value->node, at);
    return value;
}

/* A loop of an eighth of the trips, before the loop, whose body is eight trips; carried values go
 * in and come out. NULL: out of memory. */
static td_ir_node *write_eighths(td_ir_node *loop, td_ir_value *eighths, td_ir_value **carried) {
    td_ir_graph *g = loop->block->graph;
    const td_ir_block *body = loop->blocks[0];
    int n = loop->noutputs;
    td_ir_value **ends = td_ir_alloc(g, sizeof *ends * (size_t)(n + 2));
    const td_ir_type **types = td_ir_alloc(g, sizeof *types * (size_t)(n + 2));
    if (!ends || !types)
        return NULL;
    ends[0] = eighths;
    ends[1] = loop->inputs[1];
    for (int k = 0; k < n; k++) {
        ends[k + 2] = carried[k];
        types[k] = loop->outputs[k]->type;
    }
    td_ir_node *fewer = td_ir_append(loop->block, TD_IR_LOOP, n + 2, ends, n, types);
    td_ir_block *inside = td_ir_add_block(fewer);
    if (!inside)
        return NULL;
    fewer->place = loop->place;
    td_ir_value *trip = td_ir_add_input(inside, body->inputs[0]->type, body->inputs[0]->name);
    for (int k = 0; k < n; k++)
        carried[k] = td_ir_add_input(inside, body->inputs[k + 1]->type, body->inputs[k + 1]->name);
    bool counts = body->inputs[0]->uses != NULL;
    td_ir_value *first =
        counts ? calculate(inside, "mul", trip, td_ir_add_constant(inside, TD_I(PART_TRIPS)))
               : trip;
    for (int j = 0; j < PART_TRIPS && !g->failed; j++) {
        td_ir_value *number =
            counts && j ? calculate(inside, "add", first, td_ir_add_constant(inside, TD_I(j)))
                        : first;
        write_trip(g, inside, loop, number, carried);
    }
    ends[0] = loop->inputs[1];
    for (int k = 0; k < n; k++)
        ends[k + 1] = carried[k];
    if (g->failed)
        return NULL;
    td_ir_set_outputs(inside, n + 1, ends);
    td_ir_move_before(fewer, loop);
    for (int k = 0; k < n; k++)
        carried[k] = fewer->outputs[k];
    return fewer;
}

/* The loop itself runs the trips that are left. */
static void leave_rest(td_ir_node *loop, td_ir_value *rest, td_ir_value *done,
                       td_ir_value **carried) {
    td_ir_block *body = loop->blocks[0];
    td_ir_set_input(loop, 0, rest);
    for (int k = 0; k < loop->noutputs; k++)
        td_ir_set_input(loop, k + 2, carried[k]);
    if (!body->inputs[0]->uses)
        return;
    td_ir_node *first = body->first;
    td_ir_value *number = calculate(body, "add", done, done);
    if (!number)
        return;
    td_ir_replace(body->inputs[0], number);
    td_ir_set_input(number->node, 0, body->inputs[0]);
    if (first)
        td_ir_move_before(number->node, first);
}

static void unroll_partly(td_ir_node *loop, td_pass_note *note) {
    const td_value *trips = td_ir_constant_of(loop->inputs[0]);
    td_ir_value **carried = carried_of(loop);
    if (!carried)
        return;
    td_pass_say(note, loop, "%d trips are written out at a time", PART_TRIPS);
    if (trips) {
        int64_t rest = trips->i % PART_TRIPS, done = trips->i - rest;
        if (!write_eighths(loop, td_edit_constant_before(loop, TD_I(done / PART_TRIPS)), carried))
            return;
        write_trips(loop, done, rest, carried);
        if (loop->block->graph->failed)
            return;
        for (int k = 0; k < loop->noutputs; k++)
            td_ir_replace(loop->outputs[k], carried[k]);
        td_ir_remove(loop);
        return;
    }
    td_ir_value *n = calculate_before(loop, "max", loop->inputs[0], 0);
    td_ir_value *eighths = calculate_before(loop, "floordiv", n, PART_TRIPS);
    td_ir_value *rest = calculate_before(loop, "remainder", n, PART_TRIPS);
    td_ir_value *done = calculate_before(loop, "mul", eighths, PART_TRIPS);
    if (done && rest && write_eighths(loop, eighths, carried))
        leave_rest(loop, rest, done, carried);
}

/* Of a loop that ends with its number of trips: how it is written out. */
static void unroll_loop(td_ir_node *loop, td_pass_note *note) {
    const td_value *trips = td_ir_constant_of(loop->inputs[0]);
    int64_t n = trips && trips->i > 0 ? trips->i : 0, size = td_edit_count(loop->blocks[0]);
    if (trips && n < FULL_TRIPS && n * size <= FULL_NODES)
        unroll_fully(loop, n, note);
    else if (size > 0 && size <= PART_NODES && (!trips || n >= 2 * PART_TRIPS))
        unroll_partly(loop, note);
}

static void unroll(td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->first, *next; node && !block->graph->failed; node = next) {
        next = node->next;
        for (int b = 0; b < node->nblocks; b++)
            unroll(node->blocks[b], note);
        if (node->kind == TD_IR_LOOP && is_true(node->inputs[1]) &&
            is_true(node->blocks[0]->outputs[0]))
            unroll_loop(node, note);
    }
}

td_status td_pass_unroll(td_ir_graph *g, td_pass_note *note) {
    unroll(g->block, note);
    return td_ir_status(g);
}
