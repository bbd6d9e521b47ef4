/* peephole.c: rewrites that look at a node and what makes its arguments.
 *
 * Only what gives the same bits is rewritten: x + 0 is not x where x is -0, x * 1 is not x where
 * that makes another dtype. Where x stands for what was computed, it has the same shape, strides
 * and dtype, as far as types prove it; what the bits of a NaN are is not counted.
 */
#include "engine/ops/pointwise/pointwise.h"
#include "engine/script/passes/alias.h"
#include "engine/script/passes/edit.h"
#include "engine/script/passes/node_infer.h"
#include "engine/script/passes/passes.h"

#include <math.h>
#include <string.h>

typedef struct context {
    td_alias_info *alias;
    td_pass_note *note;
} context;

static bool is_op(const td_ir_node *node, const char *name) {
    return node && node->kind == TD_IR_OPERATOR && !node->inplace &&
           strcmp(node->op->name, name) == 0;
}

static bool is_one_of(const td_ir_node *node, int n, const char *const *names) {
    for (int k = 0; k < n; k++)
        if (is_op(node, names[k]))
            return true;
    return false;
}
#define IS_ONE_OF(node, names) is_one_of((node), (int)(sizeof(names) / sizeof *(names)), (names))

/* All is known of both, and it is the same. */
static bool look_alike(const td_ir_type *a, const td_ir_type *b) {
    return td_ir_type_is_whole(a) && td_ir_type_is_whole(b) && a->dtype == b->dtype &&
           a->n == b->n && td_device_same(a->device, b->device) &&
           (!a->n || (!memcmp(a->sizes, b->sizes, sizeof *a->sizes * (size_t)a->n) &&
                      !memcmp(a->strides, b->strides, sizeof *a->strides * (size_t)a->n)));
}

/* `x` stands for what a node makes; false: it may not. */
static bool replace_by(const context *c, td_ir_node *node, td_ir_value *x, bool view,
                       const char *why) {
    td_ir_value *made = node->outputs[0];
    if (!look_alike(made->type, x->type) || !td_alias_may_replace(c->alias, made, x, view) ||
        td_ir_with_around(made->block) != td_ir_with_around(x->block))
        return false;
    td_pass_say(c->note, node, "%s is %%%s", why, x->name);
    td_alias_join(c->alias, made, x);
    td_ir_replace(made, x);
    return true;
}

static bool replace(const context *c, td_ir_node *node, td_ir_value *x, const char *why) {
    return replace_by(c, node, x, false, why);
}

/* ---- numbers that change nothing ---- */

static bool is_number(const td_ir_value *value, double wanted) {
    double number;
    return td_ir_number_of(value, &number) && number == wanted &&
           signbit(number) == signbit(wanted);
}

static bool is_float(const td_ir_value *x) {
    return x->type->kind == TD_IR_TENSOR && x->type->dtype != TD_DTYPE_NONE &&
           td_dtype_is_float((td_dtype)x->type->dtype);
}

/* A tensor whose dtype is not known. */
static bool is_unknown(const td_ir_value *x) {
    return x->type->kind == TD_IR_TENSOR && x->type->dtype == TD_DTYPE_NONE;
}

/* The other argument of a binary operator that leaves its tensor as it is; NULL: none does. */
static td_ir_value *unchanged(const td_ir_node *node) {
    td_ir_value *a = node->inputs[0], *b = node->inputs[1];
    if (is_op(node, "mul"))
        return is_number(b, 1) ? a : is_number(a, 1) ? b : NULL;
    if (is_op(node, "div")) {
        const td_value *mode = td_ir_constant_of(node->inputs[2]);
        return is_number(b, 1) && mode && td_is_nil(*mode) ? a : NULL;
    }
    if (!is_op(node, "add") && !is_op(node, "sub"))
        return NULL;
    if (!is_number(node->inputs[2], 1) || is_unknown(a) || is_unknown(b))
        return NULL;
    bool add = is_op(node, "add");
    double zero = is_float(a) && add ? -0.0 : 0.0; /* -0 + 0 is 0, -0 + -0 and -0 - 0 are -0 */
    if (is_number(b, zero))
        return a;
    zero = is_float(b) ? -0.0 : 0.0;
    return add && is_number(a, zero) ? b : NULL;
}

static bool drop_number(const context *c, td_ir_node *node) {
    static const char *const names[] = {"mul", "div", "add", "sub"};
    if (!IS_ONE_OF(node, names))
        return false;
    td_ir_value *x = unchanged(node);
    return x && x->type->kind == TD_IR_TENSOR &&
           replace(c, node, x, "a number changes nothing: it");
}

/* ---- the same twice ---- */

static bool drop_pair(const context *c, td_ir_node *node) {
    static const char *const idempotent[] = {"abs", "relu", "floor", "ceil", "trunc", "sign"};
    td_ir_node *before = node->ninputs ? node->inputs[0]->node : NULL;
    if (!before || before->kind != TD_IR_OPERATOR || before->inplace || node->op != before->op)
        return false;
    if (is_op(node, "neg"))
        return replace(c, node, before->inputs[0], "neg of neg");
    return IS_ONE_OF(node, idempotent) && replace(c, node, node->inputs[0], "a second time");
}

/* ---- conversions ---- */

/* Does every value of one dtype have its own in another? */
static bool holds_all(td_dtype wide, td_dtype narrow) {
    static const struct {
        uint8_t narrow, wide;
    } pairs[] = {{TD_F16, TD_F32},  {TD_F16, TD_F64},  {TD_BF16, TD_F32}, {TD_BF16, TD_F64},
                 {TD_F32, TD_F64},  {TD_U8, TD_I16},   {TD_U8, TD_I32},   {TD_U8, TD_I64},
                 {TD_I8, TD_I16},   {TD_I8, TD_I32},   {TD_I8, TD_I64},   {TD_I16, TD_I32},
                 {TD_I16, TD_I64},  {TD_I32, TD_I64},  {TD_I32, TD_F64},  {TD_I16, TD_F32},
                 {TD_I8, TD_F32},   {TD_U8, TD_F32},   {TD_BOOL, TD_U8},  {TD_BOOL, TD_I32},
                 {TD_BOOL, TD_I64}, {TD_BOOL, TD_F32}, {TD_BOOL, TD_F64}};
    for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
        if (pairs[k].narrow == narrow && pairs[k].wide == wide)
            return true;
    return false;
}

/* A conversion of dtype and nothing else. */
static bool converts(const td_ir_node *node) {
    if (!is_op(node, "to"))
        return false;
    const td_value *device = td_ir_constant_of(node->inputs[2]);
    const td_value *copy = td_ir_constant_of(node->inputs[3]);
    const td_value *format = td_ir_constant_of(node->inputs[4]);
    return device && td_is_nil(*device) && copy && copy->kind == TD_KIND_BOOL && !copy->b &&
           format && format->kind == TD_KIND_STRING && !strcmp(format->string, "preserve") &&
           node->inputs[0]->type->kind == TD_IR_TENSOR &&
           node->inputs[0]->type->dtype != TD_DTYPE_NONE &&
           node->outputs[0]->type->kind == TD_IR_TENSOR &&
           node->outputs[0]->type->dtype != TD_DTYPE_NONE;
}

static bool drop_conversion(const context *c, td_ir_node *node) {
    td_ir_node *before = node->ninputs ? node->inputs[0]->node : NULL;
    if (!converts(node) || !before || !converts(before))
        return false;
    td_ir_value *x = before->inputs[0];
    td_dtype from = (td_dtype)x->type->dtype, middle = (td_dtype)before->outputs[0]->type->dtype;
    td_dtype to = (td_dtype)node->outputs[0]->type->dtype;
    if (!holds_all(middle, from))
        return false;
    if (from == to)
        return replace(c, node, x, "there and back again");
    bool alike = td_dtype_is_float(from) == td_dtype_is_float(middle) &&
                 td_dtype_is_float(middle) == td_dtype_is_float(to) && from != TD_BOOL &&
                 to != TD_BOOL;
    if (!alike || !td_ir_type_is_whole(x->type) || !td_ir_type_is_contiguous(x->type) ||
        td_alias_is_written(c->alias, x))
        return false;
    td_pass_say(c->note, node, "is converted from %%%s at once", x->name);
    td_ir_set_input(node, 0, x);
    return true;
}

/* ---- views ---- */

/* A view of all of its argument's elements from the first on. */
static bool is_whole_view(const td_ir_node *node) {
    static const char *const names[] = {"t",       "transpose", "permute", "unsqueeze",
                                        "squeeze", "view",      "expand",  "movedim"};
    static const char *const where_contiguous[] = {"reshape", "flatten", "unflatten"};
    if (!node || node->kind != TD_IR_OPERATOR || node->inplace)
        return false;
    if (IS_ONE_OF(node, names))
        return true;
    const td_ir_type *type = node->inputs[0]->type;
    bool itself = td_ir_type_is_whole(type) && td_ir_type_is_contiguous(type);
    return itself && (IS_ONE_OF(node, where_contiguous) || is_op(node, "contiguous"));
}

/* Views of views that come back to where they began. */
static bool drop_views(const context *c, td_ir_node *node) {
    if (!is_whole_view(node))
        return false;
    for (td_ir_node *first = node; is_whole_view(first); first = first->inputs[0]->node)
        if (look_alike(first->inputs[0]->type, node->outputs[0]->type))
            return replace_by(c, node, first->inputs[0], true, "the view");
    return false;
}

/* view(view(x)) is a view of x, where that lies without gaps; likewise reshape. */
static bool shorten_views(const context *c, td_ir_node *node) {
    static const char *const names[] = {"view", "reshape"};
    static const char *const before[] = {"view",    "reshape",   "flatten",
                                         "squeeze", "unsqueeze", "unflatten"};
    td_ir_node *inner = node->ninputs ? node->inputs[0]->node : NULL;
    if (!IS_ONE_OF(node, names) || !inner || !IS_ONE_OF(inner, before))
        return false;
    td_ir_value *x = inner->inputs[0];
    const td_ir_type *type = node->outputs[0]->type;
    if (!td_ir_type_is_whole(x->type) || !td_ir_type_is_contiguous(x->type) ||
        !td_ir_type_is_whole(type) || td_alias_is_written(c->alias, x))
        return false;
    td_ir_value *sizes = td_edit_constant_before(node, TD_INTS(type->n, type->sizes));
    if (!sizes)
        return false;
    td_pass_say(c->note, node, "is a view of %%%s", x->name);
    td_ir_set_input(node, 0, x);
    td_ir_set_input(node, 1, sizes);
    return true;
}

/* Does a pointwise operator broadcast its k-th argument to the shape of its result without an
 * expansion, and make the same dtype of it? */
static bool broadcasts(const td_ir_node *node, int k) {
    const td_ir_type *made = node->outputs[0]->type, *own = node->inputs[k]->type;
    for (int j = 0; j < node->ninputs; j++) {
        const td_ir_type *type = node->inputs[j]->type;
        const bool mask = j == 0 && node->op->pointwise->type == TD_PW_SELECT;
        if (j != k && type->kind == TD_IR_TENSOR && (mask || type->dtype == own->dtype) &&
            td_ir_type_is_whole(type) && type->n == made->n && made->n > 0 &&
            !memcmp(type->sizes, made->sizes, sizeof *made->sizes * (size_t)made->n))
            return true;
    }
    return false;
}

/* Strides that an expansion makes say nothing to who reads it, but where another tensor has them.
 */
static bool drop_expansion(const context *c, td_ir_node *node) {
    for (int k = 0; node->op->pointwise && k < node->ninputs; k++) {
        const td_ir_node *before = node->inputs[k]->node;
        if (!is_op(before, "expand") || !td_ir_type_is_whole(node->inputs[k]->type) ||
            !td_ir_type_is_whole(before->inputs[0]->type) ||
            !td_ir_type_is_whole(node->outputs[0]->type) || !broadcasts(node, k) ||
            look_alike(node->inputs[k]->type, before->inputs[0]->type))
            continue;
        td_pass_say(c->note, node, "broadcasts %%%s itself", before->inputs[0]->name);
        td_ir_set_input(node, k, before->inputs[0]);
        return true;
    }
    return false;
}

/* ---- */

static bool rewrite(const context *c, td_ir_node *node) {
    if (node->kind != TD_IR_OPERATOR || node->inplace || node->noutputs != 1 ||
        !node->outputs[0]->uses)
        return false;
    return drop_number(c, node) || drop_pair(c, node) || drop_conversion(c, node) ||
           drop_views(c, node) || shorten_views(c, node) || drop_expansion(c, node);
}

static void rewrite_block(const context *c, td_ir_block *block) {
    for (td_ir_node *node = block->first; node; node = node->next) {
        for (int b = 0; b < node->nblocks; b++)
            rewrite_block(c, node->blocks[b]);
        for (int k = 0; k < 8 && rewrite(c, node); k++)
            continue;
    }
}

td_status td_pass_peephole(td_ir_graph *g, td_pass_note *note) {
    context c = {.note = note};
    td_status status = td_alias_new(g, &c.alias);
    if (status == TD_OK)
        rewrite_block(&c, g->block);
    td_alias_free(c.alias);
    return status ? status : td_ir_status(g);
}
