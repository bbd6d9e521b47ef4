/* parts.c: a sum of parts, each in its place of a tensor of zeros, becomes one tensor that they are
 * put into. Backward makes such sums of what a function takes apart, step by step of a sequence
 * say: added up one by one, they take as many passes over the whole as there are parts.
 */
#include "engine/core/memory.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

#include <stdlib.h>
#include <string.h>

enum { PART, SIZE, DIM, START, STOP, STEP }; /* of slice_backward */

/* A part, and the places [start, stop) that it takes along the dim. */
typedef struct term {
    td_ir_node *node;
    int64_t start, stop;
} term;

/* The sum that is looked at. */
typedef struct sum {
    const td_alias_info *alias;
    td_ir_node *last;
    const td_value *size; /* of the whole; NULL: no part has been met */
    int dim;
    term *terms;
    td_ir_node **adds; /* all additions, the last one first */
    int nterms, nadds, room;
} sum;

static bool is_op(const td_ir_node *node, const td_op *op) {
    return node && node->kind == TD_IR_OPERATOR && node->op == op && !node->inplace;
}

static bool is_read_once(const td_ir_value *value) {
    return value->uses && !value->uses->next && value->uses->node;
}

/* A sum of two tensors as they are. */
static bool is_plain_add(const td_ir_node *node) {
    double alpha;
    return is_op(node, TD_OP(add)) && td_ir_number_of(node->inputs[2], &alpha) && alpha == 1;
}

/* The first place of a slice of a dim of n, and the one behind its last: negative ones count from
 * the end, where -1 is the last. */
static int64_t start_of(const td_value *v, int64_t n) {
    return td_is_nil(*v) ? 0 : v->i < 0 ? v->i + n : v->i;
}
static int64_t stop_of(const td_value *v, int64_t n) {
    return td_is_nil(*v) ? n : v->i < 0 ? v->i + n + 1 : v->i < n ? v->i : n;
}

static bool is_int(const td_value *v) {
    return v && (v->kind == TD_KIND_INT || td_is_nil(*v));
}

/* Is the node a part in its place of a whole like that of the others? */
static bool read_part(sum *s, td_ir_node *node, term *t) {
    if (!is_op(node, TD_OP(slice_backward)) || node->block != s->last->block ||
        td_alias_is_written(s->alias, node->inputs[PART]))
        return false;
    const td_value *size = td_ir_constant_of(node->inputs[SIZE]);
    const td_value *dim = td_ir_constant_of(node->inputs[DIM]);
    const td_value *start = td_ir_constant_of(node->inputs[START]);
    const td_value *stop = td_ir_constant_of(node->inputs[STOP]);
    const td_value *step = td_ir_constant_of(node->inputs[STEP]);
    if (!size || size->kind != TD_KIND_INTS || !dim || dim->kind != TD_KIND_INT || !is_int(start) ||
        !is_int(stop) || !step || step->kind != TD_KIND_INT || step->i != 1)
        return false;
    int d = (int)(dim->i < 0 ? dim->i + size->n : dim->i);
    if (d < 0 || d >= size->n ||
        (s->size && (d != s->dim || size->n != s->size->n ||
                     memcmp(size->ints, s->size->ints, sizeof *size->ints * (size_t)size->n) != 0)))
        return false;
    s->size = size;
    s->dim = d;
    const td_ir_type *part = node->inputs[PART]->type;
    *t = (term){node, start_of(start, size->ints[d]), stop_of(stop, size->ints[d])};
    return t->start >= 0 && td_ir_type_is_whole(part) &&
           part->dtype == s->last->outputs[0]->type->dtype && part->n == size->n &&
           part->sizes[d] == t->stop - t->start;
}

static bool grow(sum *s) {
    int room = s->room ? 2 * s->room : 16;
    term *terms = td_realloc(s->terms, sizeof *terms * (size_t)room);
    s->terms = terms ? terms : s->terms;
    td_ir_node **adds = td_realloc(s->adds, sizeof(td_ir_node *) * (size_t)room);
    s->adds = adds ? adds : s->adds;
    s->room = terms && adds ? room : s->room;
    return terms && adds;
}

/* Takes an argument of an addition: a part, or a sum that nobody else reads. */
static bool take(sum *s, const td_ir_value *value) {
    td_ir_node *node = value->node;
    if (!node || !is_read_once(value) ||
        ((s->nterms + 1 > s->room || s->nadds + 1 > s->room) && !grow(s)))
        return false;
    if (is_plain_add(node) && node->block == s->last->block) {
        s->adds[s->nadds++] = node;
        return true;
    }
    return read_part(s, node, &s->terms[s->nterms]) && ++s->nterms;
}

static int by_start(const void *a, const void *b) {
    const term *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* Is the sum one of parts that don't overlap, with a zero added to each? Then none of its zeros is
 * a negative one, as none is in what parts were put into. */
static bool is_of_parts(sum *s) {
    s->nterms = s->nadds = 0;
    s->size = NULL;
    if (!s->room && !grow(s))
        return false;
    s->adds[s->nadds++] = s->last;
    for (int k = 0; k < s->nadds; k++) /* the second argument is what came last */
        if (!take(s, s->adds[k]->inputs[1]) || !take(s, s->adds[k]->inputs[0]))
            return false;
    qsort(s->terms, (size_t)s->nterms, sizeof *s->terms, by_start);
    for (int k = 1; k < s->nterms; k++)
        if (s->terms[k].start < s->terms[k - 1].stop)
            return false;
    return true;
}

static td_ir_value *list_of(const sum *s, td_ir_value **parts) {
    td_ir_graph *g = s->last->block->graph;
    const td_ir_type *part = td_ir_simple_type(TD_IR_TENSOR);
    const td_ir_type *list = td_ir_type_of_parts(g, TD_IR_LIST, 1, &part);
    td_ir_node *node =
        list ? td_ir_append(s->last->block, TD_IR_LIST_CONSTRUCT, s->nterms, parts, 1, &list)
             : NULL;
    if (!node)
        return NULL;
    node->place = s->last->place;
    td_ir_move_before(node, s->last);
    return node->outputs[0];
}

/* One node in place of all: where the last one stood. NULL: out of memory, and all stand. */
static td_ir_node *make_one(td_alias_info *a, const sum *s, td_ir_value **parts, int64_t *starts,
                            td_pass_note *note) {
    td_ir_value *made = s->last->outputs[0];
    for (int k = 0; k < s->nterms; k++) {
        parts[k] = s->terms[k].node->inputs[PART];
        starts[k] = s->terms[k].start;
    }
    td_ir_value *inputs[] = {list_of(s, parts), s->terms[0].node->inputs[SIZE],
                             td_edit_constant_before(s->last, TD_I(s->dim)),
                             td_edit_constant_before(s->last, TD_INTS(s->nterms, starts))};
    if (!inputs[0] || !inputs[2] || !inputs[3])
        return NULL;
    td_ir_node *node = td_ir_append(s->last->block, TD_IR_OPERATOR, 4, inputs, 1, &made->type);
    if (!node)
        return NULL;
    node->op = TD_OP(slices_backward);
    node->place = s->last->place;
    td_ir_move_before(node, s->last);
    td_pass_say(note, node, "puts %d parts in their places", s->nterms);
    td_alias_join(a, made, node->outputs[0]);
    td_ir_replace(made, node->outputs[0]);
    const char *name = made->name;
    td_ir_set_name(node->block->graph, made, NULL);
    td_ir_set_name(node->block->graph, node->outputs[0], name);
    for (int k = 0; k < s->nadds; k++)
        td_ir_remove(s->adds[k]);
    for (int k = 0; k < s->nterms; k++)
        td_ir_remove(s->terms[k].node);
    return node;
}

static td_ir_node *rewrite(td_alias_info *a, const sum *s, td_pass_note *note) {
    td_ir_value **parts = td_malloc(sizeof(td_ir_value *) * (size_t)s->nterms);
    int64_t *starts = td_malloc(sizeof *starts * (size_t)s->nterms);
    td_ir_node *made = parts && starts ? make_one(a, s, parts, starts, note) : NULL;
    td_free(parts);
    td_free(starts);
    return made;
}

/* The last additions first: what they are of goes with them. */
static td_status find_sums(td_alias_info *a, td_ir_block *block, sum *s, td_pass_note *note) {
    for (td_ir_node *node = block->last; node; node = node->previous) {
        for (int b = 0; b < node->nblocks; b++) {
            td_status status = find_sums(a, node->blocks[b], s, note);
            if (status)
                return status;
        }
        s->last = node;
        if (is_plain_add(node) && is_of_parts(s) && !(node = rewrite(a, s, note)))
            return td_fail(TD_ENOMEM, "out of memory for a graph");
    }
    return TD_OK;
}

td_status td_pass_parts(td_ir_graph *g, td_pass_note *note) {
    sum s = {.last = NULL};
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    s.alias = a;
    if (status == TD_OK)
        status = find_sums(a, g->block, &s, note);
    td_alias_free(a);
    td_free(s.terms);
    td_free(s.adds);
    return status ? status : td_ir_status(g);
}
