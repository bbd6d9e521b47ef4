/* epilogue.c: a convolution pads its images itself, and adds to its result and limits it before
 * that leaves the cache: one operator for a padding with zeros, the convolution, the addition of a
 * tensor and an activation. Of float32 on the CPU, where all shapes are known. */
#include "engine/ops/plan/plan.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

#include <math.h>
#include <string.h>

enum {
    INPUT,
    WEIGHT,
    BIAS,
    STRIDE,
    PADDING,
    DILATION,
    GROUPS,
    ADDED,
    CURVE,
    LEAST,
    MOST,
    ARGUMENTS
};

/* A convolution, what stands before and behind it, and what comes of them. */
typedef struct chain {
    td_ir_node *pad, *convolution, *add, *activation; /* NULL: there is none */
    td_ir_node *last;                                 /* that makes what is read of them */
    int64_t padding[2 * TD_SPATIAL];
    td_ir_value *added;
    const char *curve;
    double least, most;
} chain;

static bool is_plain(const td_ir_type *type) {
    return td_ir_type_is_whole(type) && type->dtype == TD_F32 && type->device.type == TD_CPU &&
           type->requires_grad != 1;
}

static bool same_layout(const td_ir_type *a, const td_ir_type *b) {
    const size_t bytes = sizeof *a->sizes * (size_t)a->n;
    return is_plain(a) && is_plain(b) && a->n == b->n && a->n > 0 &&
           !memcmp(a->sizes, b->sizes, bytes) && !memcmp(a->strides, b->strides, bytes);
}

static bool is_nil(const td_ir_value *value) {
    const td_value *v = td_ir_constant_of(value);
    return v && td_is_nil(*v);
}

static bool is_convolution(const td_ir_node *node) {
    return node && node->kind == TD_IR_OPERATOR && !node->inplace &&
           (node->op == TD_OP(conv1d) || node->op == TD_OP(conv2d) || node->op == TD_OP(conv3d)) &&
           is_plain(node->outputs[0]->type) && is_plain(node->inputs[INPUT]->type) &&
           is_plain(node->inputs[WEIGHT]->type);
}

/* The node that alone reads a value; NULL: there are others, or it leaves. */
static td_ir_node *only_reader(const td_ir_value *value) {
    const td_ir_use *use = value->uses;
    return use && !use->next && use->node && use->node->kind == TD_IR_OPERATOR &&
                   use->node->block == value->block
               ? use->node
               : NULL;
}

/* ---- what stands before ---- */

/* Adds the zeros of a padding of the last dims to those of the convolution; false: it has others.
 */
static bool add_padding(const td_ir_node *pad, int spatial, int64_t *padding) {
    const td_value *pairs = td_ir_constant_of(pad->inputs[1]);
    const td_value *mode = td_ir_constant_of(pad->inputs[2]);
    double value = 0;
    if (!pairs || pairs->kind != TD_KIND_INTS || pairs->n % 2 || pairs->n > 2 * spatial || !mode ||
        mode->kind != TD_KIND_STRING || strcmp(mode->string, "constant") ||
        (!is_nil(pad->inputs[3]) && (!td_ir_number_of(pad->inputs[3], &value) || value != 0)))
        return false;
    for (int k = 0; k < pairs->n; k++) {
        const int d = spatial - 1 - k / 2;
        if (pairs->ints[k] < 0)
            return false;
        padding[2 * d + k % 2] += pairs->ints[k];
    }
    return true;
}

static void find_pad(const td_alias_info *a, chain *c) {
    const td_ir_node *conv = c->convolution;
    td_ir_value *x = conv->inputs[INPUT];
    td_ir_node *pad = x->node;
    const td_value *padding = td_ir_constant_of(conv->inputs[PADDING]);
    const int spatial = conv->inputs[WEIGHT]->type->n - 2;
    if (!pad || pad->kind != TD_IR_OPERATOR || pad->op != TD_OP(pad) || only_reader(x) != conv ||
        pad->block != conv->block || !is_plain(pad->inputs[0]->type) ||
        td_alias_is_written(a, pad->inputs[0]) || !padding || padding->kind != TD_KIND_INTS ||
        (padding->n != spatial && padding->n != 1))
        return;
    for (int d = 0; d < spatial; d++)
        c->padding[2 * d] = c->padding[2 * d + 1] = padding->ints[padding->n == 1 ? 0 : d];
    if (add_padding(pad, spatial, c->padding))
        c->pad = pad;
}

/* ---- what stands behind ---- */

/* An addition of a tensor that is there when the convolution is, and lies as its result. */
static void find_add(const td_alias_info *a, chain *c) {
    td_ir_value *made = c->last->outputs[0];
    td_ir_node *add = only_reader(made);
    double alpha;
    if (!add || add->op != TD_OP(add) || !td_ir_number_of(add->inputs[2], &alpha) || alpha != 1)
        return;
    td_ir_value *other = add->inputs[add->inputs[0] == made];
    if ((add->inplace && add->inputs[0] != made) || !same_layout(other->type, made->type) ||
        !same_layout(add->outputs[0]->type, made->type) || !td_ir_sees(c->convolution, other) ||
        td_alias_is_written(a, other))
        return;
    c->add = c->last = add;
    c->added = other;
}

/* Bounds of a clamp; those that are not there limit nothing. */
static bool has_bounds(const td_ir_value *least, const td_ir_value *most, chain *c) {
    c->least = -INFINITY;
    c->most = INFINITY;
    return (!least || is_nil(least) || td_ir_number_of(least, &c->least)) &&
           (!most || is_nil(most) || td_ir_number_of(most, &c->most));
}

static bool is_limit(const td_ir_node *node, chain *c) {
    c->least = 0;
    c->most = node->op == TD_OP(relu6) ? 6 : INFINITY;
    if (node->op == TD_OP(relu) || node->op == TD_OP(relu6))
        return true;
    if (node->op == TD_OP(clamp) || node->op == TD_OP(hardtanh))
        return has_bounds(node->inputs[1], node->inputs[2], c);
    if (node->op == TD_OP(clamp_min))
        return has_bounds(node->inputs[1], NULL, c);
    return node->op == TD_OP(clamp_max) && has_bounds(NULL, node->inputs[1], c);
}

static void find_activation(chain *c) {
    td_ir_value *made = c->last->outputs[0];
    td_ir_node *node = only_reader(made);
    if (!node || node->noutputs != 1 || !same_layout(node->outputs[0]->type, made->type))
        return;
    if (is_limit(node, c))
        c->curve = "limited";
    else if (node->op == TD_OP(hardswish))
        c->curve = "hardswish";
    else
        return;
    c->activation = c->last = node;
}

/* ---- */

/* An argument of the one operator. */
static td_ir_value *argument(const chain *c, int k) {
    td_ir_node *conv = c->convolution;
    const int spatial = conv->inputs[WEIGHT]->type->n - 2;
    if (k == INPUT && c->pad)
        return c->pad->inputs[0];
    if (k == PADDING && c->pad)
        return td_edit_constant_before(conv, TD_INTS(2 * spatial, c->padding));
    if (k < ADDED)
        return conv->inputs[k];
    if (k == ADDED)
        return c->added ? c->added : td_edit_constant_before(conv, TD_NIL);
    if (k == CURVE)
        return td_edit_constant_before(conv, TD_STRING(c->curve));
    return td_edit_constant_before(conv, TD_F(k == LEAST ? c->least : c->most));
}

static void make_one(td_alias_info *a, const chain *c, td_pass_note *note) {
    td_ir_node *const gone[] = {c->activation, c->add, c->convolution, c->pad};
    td_ir_value *inputs[ARGUMENTS], *made = c->last->outputs[0];
    for (int k = 0; k < ARGUMENTS; k++)
        if (!(inputs[k] = argument(c, k)))
            return;
    td_ir_node *node =
        td_ir_append(c->convolution->block, TD_IR_OPERATOR, ARGUMENTS, inputs, 1, &made->type);
    if (!node)
        return;
    node->op = TD_OP(fused_convolution);
    node->place = c->convolution->place;
    td_ir_move_before(node, c->convolution);
    td_pass_say(note, node, "%s%s%s%s%s", c->pad ? "pads" : "",
                c->pad && c->last != c->convolution ? ", " : "", c->add ? "adds" : "",
                c->add && c->activation ? ", " : "", c->activation ? c->activation->op->name : "");
    td_alias_join(a, made, node->outputs[0]);
    td_ir_replace(made, node->outputs[0]);
    const char *name = made->name;
    td_ir_set_name(node->block->graph, made, NULL);
    td_ir_set_name(node->block->graph, node->outputs[0], name);
    for (int k = 0; k < (int)(sizeof gone / sizeof *gone); k++)
        if (gone[k])
            td_ir_remove(gone[k]);
}

static void find_chains(td_alias_info *a, td_ir_block *block, td_pass_note *note) {
    for (td_ir_node *node = block->first, *next; node; node = next) {
        for (int b = 0; b < node->nblocks; b++)
            find_chains(a, node->blocks[b], note);
        next = node->next;
        if (!is_convolution(node))
            continue;
        chain c = {.convolution = node, .last = node, .curve = "none"};
        find_pad(a, &c);
        find_add(a, &c);
        find_activation(&c);
        while (next && (next == c.add || next == c.activation))
            next = next->next;
        if (c.pad || c.last != node)
            make_one(a, &c, note);
    }
}

td_status td_pass_epilogue(td_ir_graph *g, td_pass_note *note) {
    td_alias_info *a;
    td_status status = td_alias_new(g, &a);
    if (status == TD_OK)
        find_chains(a, g->block, note);
    td_alias_free(a);
    return status ? status : td_ir_status(g);
}
