/* row_stages.c: which operators work along rows, and what a group of them is in stages. */
#include "engine/script/row_stages.h"

#include "engine/core/memory.h"
#include "engine/ops/language/program.h"
#include "engine/ops/plan/reduction.h"
#include "engine/script/group_name.h"

#include <string.h>

/* ---- operators along rows ---- */

/* Tensors are the first arguments; then places of others. */
typedef struct row_op {
    int tensors, dims, keepdim; /* keepdim -1: the result has the argument's shape */
    int cost;                   /* of an element, an addition being 1 */
} row_op;

/* NULL: it is none. All of them make of a row what they make of it among others. */
static const row_op *find_row_op(const td_op *op) {
    static const row_op fold = {1, 1, 2, 2}, spread = {1, 1, 3, 6}, softmax = {1, 1, -1, 16},
                        backward = {2, 2, -1, 8}, sum_to = {1, 1, 1, 2};
    if (op == TD_OP(sum) || op == TD_OP(mean) || op == TD_OP(amax) || op == TD_OP(amin) ||
        op == TD_OP(prod) || op == TD_OP(nansum))
        return &fold;
    if (op == TD_OP(sum_to))
        return &sum_to;
    if (op == TD_OP(var) || op == TD_OP(std))
        return &spread;
    if (op == TD_OP(softmax) || op == TD_OP(log_softmax))
        return &softmax;
    return op == TD_OP(softmax_backward) || op == TD_OP(log_softmax_backward) ? &backward : NULL;
}

static bool equal(const int64_t *a, const int64_t *b, int n) {
    return n == 0 || !memcmp(a, b, sizeof *a * (size_t)n);
}

static const td_value *constant_of(const td_ir_value *value) {
    return value->node && value->node->kind == TD_IR_CONSTANT ? &value->node->constant : NULL;
}

static bool is_float(const td_ir_type *type) {
    return type->kind == TD_IR_TENSOR && (type->dtype == TD_F32 || type->dtype == TD_F64);
}

/* Of what the last dims are reduced: how many; 0: others are. */
static int inner_dims(const td_value *dims, int ndim) {
    const bool alone = dims->kind == TD_KIND_INT;
    const int64_t *list = alone ? &dims->i : dims->ints;
    uint32_t mask = 0;
    int n = alone ? 1 : dims->kind == TD_KIND_INTS ? dims->n : 0, k = 0;
    if (n == 0 || td_reduce_dims(TD_INTS(n, list), ndim, &mask))
        return 0;
    while (k < ndim && mask >> (ndim - 1 - k) & 1)
        k++;
    return mask == (((uint32_t)1 << k) - 1) << (ndim - k) ? k : 0;
}

static bool same_sizes(const td_ir_type *a, const td_ir_type *b) {
    return a->dtype == b->dtype && a->n == b->n && a->sizes && b->sizes &&
           !memcmp(a->sizes, b->sizes, sizeof *a->sizes * (size_t)a->n);
}

/* Of what is summed to sizes: dims that come to one element behind all that stay; 0: others do. */
static int inner_of_sizes(const td_value *sizes, const td_ir_type *full) {
    int k = 0;
    if (sizes->kind != TD_KIND_INTS || sizes->n != full->n)
        return 0;
    while (k < full->n && sizes->ints[full->n - 1 - k] == 1)
        k++;
    return equal(sizes->ints, full->sizes, full->n - k) ? k : 0;
}

bool td_row_operator(const td_ir_node *node, td_row_shape *shape) {
    const row_op *row = node->kind == TD_IR_OPERATOR && !node->inplace && node->noutputs == 1
                            ? find_row_op(node->op)
                            : NULL;
    if (!row || !is_float(node->inputs[0]->type) || node->inputs[0]->type->n < 1 ||
        !node->inputs[0]->type->sizes)
        return false;
    shape->full = node->inputs[0]->type;
    for (int k = 0; k < row->tensors; k++)
        if (!is_float(node->inputs[k]->type) || !same_sizes(node->inputs[k]->type, shape->full))
            return false;
    for (int k = row->tensors; k < node->ninputs; k++) {
        const td_value *v = constant_of(node->inputs[k]);
        if (!v || v->kind == TD_KIND_TENSOR || v->kind == TD_KIND_DTYPE)
            return false;
    }
    const td_value *dims = constant_of(node->inputs[row->dims]);
    shape->inner = node->op == TD_OP(sum_to) ? inner_of_sizes(dims, shape->full)
                                             : inner_dims(dims, shape->full->n);
    return shape->inner > 0;
}

bool td_row_total(const td_ir_node *node) {
    if (node->kind != TD_IR_OPERATOR || node->inplace || node->noutputs != 1 ||
        (node->op != TD_OP(sum) && node->op != TD_OP(mean)) || !is_float(node->inputs[0]->type) ||
        node->inputs[0]->type->n < 2 || !node->inputs[0]->type->sizes)
        return false;
    const td_value *dims = constant_of(node->inputs[1]), *keepdim = constant_of(node->inputs[2]);
    const td_value *dtype = constant_of(node->inputs[3]);
    return dims && td_is_nil(*dims) && keepdim && !keepdim->b && dtype && td_is_nil(*dtype);
}

static bool is_gather(const td_op *op) {
    return op == TD_OP(embedding) || op == TD_OP(index_select);
}

/* Where a gather has its numbers of rows. */
static int index_place(const td_ir_node *node) {
    return node->op == TD_OP(embedding) ? 1 : 2;
}

/* All of an embedding's settings but these have their say in gradients alone. */
static bool has_plain_settings(const td_ir_node *node) {
    enum { DIM = 1, PADDING = 2, MAX_NORM = 5 };
    for (int k = 0; k < node->ninputs; k++)
        if (node->inputs[k]->type->kind != TD_IR_TENSOR && !constant_of(node->inputs[k]))
            return false;
    if (node->op == TD_OP(embedding))
        return td_is_nil(*constant_of(node->inputs[PADDING])) &&
               td_is_nil(*constant_of(node->inputs[MAX_NORM]));
    const td_value *dim = constant_of(node->inputs[DIM]);
    return dim->kind == TD_KIND_INT && dim->i == 0;
}

bool td_row_gather(const td_ir_node *node, td_row_shape *shape) {
    if (node->kind != TD_IR_OPERATOR || node->inplace || node->noutputs != 1 ||
        !is_gather(node->op) || !has_plain_settings(node))
        return false;
    const td_ir_type *table = node->inputs[0]->type, *made = node->outputs[0]->type;
    const td_ir_type *index = node->inputs[index_place(node)]->type;
    if (!is_float(table) || !is_float(made) || table->dtype != made->dtype || table->n < 2 ||
        index->kind != TD_IR_TENSOR || index->dtype != TD_I64 || index->n < 1 ||
        made->n != index->n + table->n - 1 || !made->sizes)
        return false;
    *shape = (td_row_shape){made, table->n - 1};
    return true;
}

const td_ir_node *td_row_cat_of(const td_ir_node *list) {
    const td_ir_use *use = list->kind == TD_IR_LIST_CONSTRUCT ? list->outputs[0]->uses : NULL;
    return use && !use->next && use->node && use->node->kind == TD_IR_OPERATOR &&
                   use->node->op == TD_OP(cat)
               ? use->node
               : NULL;
}

bool td_row_cat(const td_ir_node *node, td_row_shape *shape) {
    if (node->kind != TD_IR_OPERATOR || node->inplace || node->noutputs != 1 ||
        node->op != TD_OP(cat))
        return false;
    const td_ir_node *list = node->inputs[0]->node;
    const td_ir_type *made = node->outputs[0]->type;
    const td_value *dim = constant_of(node->inputs[1]);
    if (!list || td_row_cat_of(list) != node || !dim || dim->kind != TD_KIND_INT ||
        !is_float(made) || made->n < 2 || !made->sizes || (dim->i != made->n - 1 && dim->i != -1))
        return false;
    for (int k = 0; k < list->ninputs; k++) {
        const td_ir_type *part = list->inputs[k]->type;
        if (!is_float(part) || part->dtype != made->dtype || part->n != made->n)
            return false;
    }
    *shape = (td_row_shape){made, 1};
    return true;
}

const td_op *td_row_arguments(const td_ir_node *node, const int64_t *inner, td_value *args) {
    const row_op *row = find_row_op(node->op);
    if (node->op == TD_OP(sum_to)) {
        args[0] = (td_value){.kind = TD_KIND_TENSOR};
        args[1] = TD_INTS(1, inner);
        args[2] = TD_B(true);
        args[3] = TD_NIL;
        return TD_OP(sum);
    }
    for (int k = 0; k < node->ninputs; k++)
        args[k] =
            k < row->tensors ? (td_value){.kind = TD_KIND_TENSOR} : node->inputs[k]->node->constant;
    args[row->dims] = row->keepdim < 0 ? TD_I(*inner) : TD_INTS(1, inner);
    if (row->keepdim >= 0)
        args[row->keepdim] = TD_B(true);
    return node->op;
}

static td_row_class made_by(const td_ir_node *node) {
    const row_op *row = find_row_op(node->op);
    return node->op == TD_OP(sum_to)                    ? TD_ROW_ROW
           : row->keepdim < 0                           ? TD_ROW_FULL
           : constant_of(node->inputs[row->keepdim])->b ? TD_ROW_ROW
                                                        : TD_ROW_FLAT;
}

/* ---- classes ---- */

static bool are_ones(const int64_t *sizes, int n) {
    for (int d = 0; d < n; d++)
        if (sizes[d] != 1)
            return false;
    return true;
}

td_row_class td_row_class_of(const td_row_shape *shape, const td_ir_type *type) {
    static const int64_t none[1];
    const td_ir_type *full = shape->full;
    const int n = type->n, inner = shape->inner, outer = full->n - inner;
    if (type->kind != TD_IR_TENSOR || n < 0 || n > full->n || (n && !type->sizes))
        return TD_ROW_NONE;
    const int64_t *sizes = n ? type->sizes : none;
    if (n == full->n && equal(sizes, full->sizes, n))
        return TD_ROW_FULL;
    if (n == full->n && equal(sizes, full->sizes, outer) && are_ones(sizes + outer, inner))
        return TD_ROW_ROW;
    if (are_ones(sizes, n))
        return TD_ROW_ONE;
    if (n >= inner && are_ones(sizes, n - inner) &&
        equal(sizes + n - inner, full->sizes + outer, inner))
        return TD_ROW_VEC;
    return n == outer && equal(sizes, full->sizes, n) ? TD_ROW_FLAT : TD_ROW_NONE;
}

td_row_class td_row_join(td_row_class a, td_row_class b) {
    if (a == TD_ROW_NONE || b == TD_ROW_NONE || a > TD_ROW_FULL || b > TD_ROW_FULL)
        return TD_ROW_NONE;
    if (a == b)
        return a;
    if (a == TD_ROW_ONE || b == TD_ROW_ONE)
        return a == TD_ROW_ONE ? b : a;
    return a == TD_ROW_FLAT || b == TD_ROW_FLAT ? TD_ROW_NONE : TD_ROW_FULL;
}

/* ---- stages ---- */

typedef struct maker {
    td_row_kernel *k;
    td_row_shape shape;
    const td_ir_value *values[TD_ROW_VALUES];
} maker;

static int find_value(const maker *m, const td_ir_value *value) {
    for (int j = 0; j < m->k->nvalues; j++)
        if (m->values[j] == value)
            return j;
    return -1;
}

static td_status refuse(const char *why) {
    return td_fail(TD_EVALUE, "no group along rows: %s", why);
}

static td_status add_value(maker *m, const td_ir_value *value, td_row_class class) {
    const td_ir_type *type = value->type;
    const bool number = class == TD_ROW_FLAT && type->dtype == TD_I64;
    if (m->k->nvalues == TD_ROW_VALUES)
        return refuse("too many values");
    if (class == TD_ROW_NONE || (!is_float(type) && type->dtype != TD_BOOL && !number))
        return refuse("a value of another shape or dtype");
    m->k->flat |= class == TD_ROW_FLAT;
    m->values[m->k->nvalues] = value;
    m->k->values[m->k->nvalues++] = (td_row_value){
        .class = (uint8_t) class, .dtype = (uint8_t)type->dtype, .output = -1, .slot = -1};
    return TD_OK;
}

static td_row_class class_of(const maker *m, const td_ir_value *value) {
    int j = find_value(m, value);
    return j < 0 ? TD_ROW_NONE : (td_row_class)m->k->values[j].class;
}

/* Every node of a pointwise group makes what its inputs together are, and that is one shape; the
 * class of it. */
static td_row_class class_of_group(const maker *m, const td_ir_node *node) {
    const td_ir_block *block = node->subgraph->block;
    td_row_class whole = TD_ROW_ONE;
    for (int k = 0; k < node->ninputs; k++)
        whole = td_row_join(whole, class_of(m, node->inputs[k]));
    for (const td_ir_node *inner = block->first; inner; inner = inner->next) {
        td_row_class made = TD_ROW_ONE;
        for (int k = 0; k < inner->ninputs; k++) {
            const td_ir_value *x = inner->inputs[k];
            if (constant_of(x))
                continue;
            int input = 0;
            while (input < block->ninputs && block->inputs[input] != x)
                input++;
            made = td_row_join(made,
                               input < block->ninputs ? class_of(m, node->inputs[input]) : whole);
        }
        if (inner->kind != TD_IR_CONSTANT && made != whole)
            return TD_ROW_NONE;
    }
    return whole;
}

static td_status add_stage(maker *m, const td_ir_node *node, int ntensors, td_row_class class,
                           td_row_stage **out) {
    td_row_kernel *k = m->k;
    if (k->nstages == TD_ROW_STAGES || ntensors > TD_ROW_ENDS || node->noutputs > TD_ROW_ENDS)
        return refuse("too many stages");
    td_row_stage *s = &k->stages[k->nstages];
    *s = (td_row_stage){.node = node, .nin = ntensors, .nout = node->noutputs};
    for (int j = 0; j < ntensors; j++)
        s->in[j] = (int16_t)find_value(m, node->inputs[j]);
    td_status status = TD_OK;
    for (int j = 0; j < node->noutputs && status == TD_OK; j++) {
        s->out[j] = (int16_t)k->nvalues;
        status = add_value(m, node->outputs[j], class);
    }
    k->nstages += status == TD_OK;
    *out = s;
    return status;
}

static td_status add_group(maker *m, const td_ir_node *node) {
    td_row_class class = class_of_group(m, node);
    td_row_stage *s = NULL;
    if (class < TD_ROW_ROW)
        return refuse("a pointwise group of another shape");
    td_status status = add_stage(m, node, node->ninputs, class, &s);
    if (status)
        return status;
    for (int j = 0; j < s->nin; j++)
        if (m->k->values[s->in[j]].dtype == TD_I64)
            return refuse("numbers of rows that are computed with");
    status = td_script_kernel_new(node->subgraph, &s->kernel);
    if (status == TD_OK) {
        s->compute = td_script_kernel_compute(s->kernel);
        m->k->cost += td_script_kernel_program(s->kernel)->cost;
    }
    return status;
}

static td_status add_operator(maker *m, const td_ir_node *node) {
    const row_op *row = find_row_op(node->op);
    td_row_shape shape;
    td_row_stage *s = NULL;
    if (!td_row_operator(node, &shape) || shape.inner != m->shape.inner)
        return refuse("an operator along other dims");
    for (int k = 0; k < row->tensors; k++)
        if (class_of(m, node->inputs[k]) != TD_ROW_FULL)
            return refuse("an operator along other rows");
    if (node->op == TD_OP(sum_to)) /* for these sizes alone */
        m->k->outer = constant_of(node->inputs[1])->ints;
    m->k->cost += row->cost;
    return add_stage(m, node, row->tensors, made_by(node), &s);
}

static td_status add_gather(maker *m, const td_ir_node *node) {
    const td_ir_value *index = node->inputs[index_place(node)];
    td_row_shape shape;
    td_row_stage *s = NULL;
    if (!td_row_gather(node, &shape) || shape.inner != m->shape.inner ||
        class_of(m, node->inputs[0]) != TD_ROW_TABLE || class_of(m, index) != TD_ROW_FLAT)
        return refuse("rows of something else");
    td_status status = add_stage(m, node, 1, TD_ROW_FULL, &s);
    if (status)
        return status;
    s->gather = true;
    s->positive = node->op == TD_OP(embedding);
    s->nin = 2;
    s->in[1] = (int16_t)find_value(m, index);
    m->k->table = s->in[0];
    m->k->index = s->in[1];
    m->k->cost += 2;
    return TD_OK;
}

static td_status add_cat(maker *m, const td_ir_node *node) {
    const td_ir_node *list = node->inputs[0]->node;
    td_row_shape shape;
    td_row_stage *s = NULL;
    if (!td_row_cat(node, &shape) || m->shape.inner != 1 || list->ninputs > TD_ROW_ENDS)
        return refuse("a list of something else");
    for (int k = 0; k < list->ninputs; k++)
        if (class_of(m, list->inputs[k]) != TD_ROW_PART)
            return refuse("a part of other rows");
    td_status status = add_stage(m, node, 0, TD_ROW_FULL, &s);
    if (status)
        return status;
    s->cat = true;
    s->nin = list->ninputs;
    for (int k = 0; k < list->ninputs; k++)
        s->in[k] = (int16_t)find_value(m, list->inputs[k]);
    m->k->parts = s;
    m->k->cost += 2;
    return TD_OK;
}

static td_status add_total(maker *m, const td_ir_node *node) {
    td_row_stage *s = NULL;
    if (!td_row_total(node) || class_of(m, node->inputs[0]) != TD_ROW_FULL)
        return refuse("a sum of something else");
    td_status status = add_stage(m, node, 1, TD_ROW_TOTAL, &s);
    if (status)
        return status;
    s->total = true;
    m->k->ntotals++;
    m->k->cost++;
    return TD_OK;
}

/* The shape of the first operator along rows; where there is none, of the last dim of what is
 * summed up. */
static bool find_shape(const td_ir_block *block, td_row_shape *shape) {
    bool total = false;
    for (const td_ir_node *node = block->first; node; node = node->next)
        if (td_row_operator(node, shape) || td_row_gather(node, shape) || td_row_cat(node, shape))
            return true;
    for (const td_ir_node *node = block->first; node && !total; node = node->next)
        if ((total = td_row_total(node)))
            *shape = (td_row_shape){node->inputs[0]->type, 1};
    return total;
}

bool td_is_row_group(const td_ir_graph *g) {
    td_row_shape shape;
    return find_shape(g->block, &shape);
}

/* What an input is: what it is read as, else what its type says. */
static td_row_class class_of_input(const maker *m, const td_ir_value *input) {
    td_row_shape shape;
    for (const td_ir_use *use = input->uses; use; use = use->next) {
        if (use->node && td_row_cat_of(use->node))
            return input->type->n == m->shape.full->n ? TD_ROW_PART : TD_ROW_NONE;
        if (!use->node || !td_row_gather(use->node, &shape))
            continue;
        if (use->index == 0)
            return TD_ROW_TABLE;
        if (use->index == index_place(use->node))
            return input->type->n == m->shape.full->n - m->shape.inner ? TD_ROW_FLAT : TD_ROW_NONE;
    }
    return td_row_class_of(&m->shape, input->type);
}

static td_status add_inputs(maker *m, const td_ir_block *block) {
    td_row_kernel *k = m->k;
    td_status status = TD_OK;
    for (int j = 0; j < block->ninputs && status == TD_OK; j++)
        status = add_value(m, block->inputs[j], class_of_input(m, block->inputs[j]));
    k->ninputs = block->ninputs;
    k->full = k->table = k->index = -1;
    for (int j = 0; j < k->ninputs && k->full < 0; j++)
        if (k->values[j].class == TD_ROW_FULL)
            k->full = j;
    return status;
}

static td_status add_outputs(maker *m, const td_ir_block *block) {
    td_row_kernel *k = m->k;
    if (block->noutputs > TD_ROW_ENDS)
        return refuse("too many outputs");
    for (int j = 0; j < block->noutputs; j++) {
        int at = find_value(m, block->outputs[j]);
        if (at < k->ninputs || k->values[at].output >= 0)
            return refuse("an output that it does not make");
        k->values[at].output = (int16_t)j;
        k->outputs[j] = at;
    }
    for (int j = 0; j < k->nvalues; j++)
        if (k->values[j].class == TD_ROW_TOTAL && k->values[j].output < 0)
            return refuse("a sum that nobody reads");
    k->noutputs = block->noutputs;
    return TD_OK;
}

/* ---- where values lie ---- */

/* The last stage that reads each value. */
static void find_last(const td_row_kernel *k, int *last) {
    for (int j = 0; j < k->nstages; j++) {
        for (int i = 0; i < k->stages[j].nout; i++)
            last[k->stages[j].out[i]] = j;
        for (int i = 0; i < k->stages[j].nin; i++)
            last[k->stages[j].in[i]] = j;
    }
}

/* A slot of that class and dtype whose value nobody reads any more, or a new one. */
static int take_slot(td_row_kernel *k, int *busy, const td_row_value *v) {
    const bool full = v->class == TD_ROW_FULL;
    int j = 0;
    while (j < k->nslots && (busy[j] || k->slots[j].summed || k->slots[j].dtype != v->dtype ||
                             (k->slots[j].class == TD_ROW_FULL) != full))
        j++;
    if (j == k->nslots)
        k->slots[k->nslots++] = *v;
    busy[j] = true;
    return j;
}

/* What is summed up is not there block by block alone: its slot is none of others. */
static void keep_whole(td_row_kernel *k, int value) {
    td_row_value *v = &k->values[value];
    v->summed = true;
    if (value >= k->ninputs && v->output < 0 && v->slot < 0) {
        v->slot = (int16_t)k->nslots;
        k->slots[k->nslots++] = *v;
    }
}

static void place_values(td_row_kernel *k) {
    int last[TD_ROW_VALUES], busy[TD_ROW_VALUES] = {0};
    find_last(k, last);
    for (int j = 0; j < k->nstages; j++)
        if (k->stages[j].total)
            keep_whole(k, k->stages[j].in[0]);
    for (int j = 0; j < k->nstages; j++) {
        const td_row_stage *s = &k->stages[j];
        for (int i = 0; i < s->nout; i++) {
            td_row_value *v = &k->values[s->out[i]];
            if (v->output < 0 && !s->total && !v->summed)
                v->slot = (int16_t)take_slot(k, busy, v);
        }
        for (int i = 0; i < k->nvalues; i++)
            if (k->values[i].slot >= 0 && last[i] == j && !k->values[i].summed)
                busy[k->values[i].slot] = false;
    }
}

td_status td_row_kernel_new(const td_ir_graph *g, td_row_kernel **out) {
    maker m = {.k = td_calloc(1, sizeof *m.k)};
    td_status status = TD_OK;
    *out = NULL;
    if (!m.k)
        return td_fail(TD_ENOMEM, "out of memory for a kernel");
    m.k->graph = g;
    m.k->name = td_script_group_name(g);
    if (!find_shape(g->block, &m.shape))
        TD_TRY(refuse("no operator along rows"));
    m.k->ndim = m.shape.full->n;
    m.k->inner = m.shape.inner;
    TD_TRY(add_inputs(&m, g->block));
    for (const td_ir_node *node = g->block->first; node; node = node->next) {
        if (node->kind == TD_IR_OPERATOR && is_gather(node->op))
            TD_TRY(add_gather(&m, node));
        else if (node->kind == TD_IR_OPERATOR && node->op == TD_OP(cat))
            TD_TRY(add_cat(&m, node));
        else if (node->kind == TD_IR_FUSION_GROUP)
            TD_TRY(add_group(&m, node));
        else if (td_row_total(node))
            TD_TRY(add_total(&m, node));
        else if (node->kind == TD_IR_OPERATOR && find_row_op(node->op))
            TD_TRY(add_operator(&m, node));
        else if (node->kind != TD_IR_CONSTANT && !td_row_cat_of(node))
            TD_TRY(refuse("a node of another kind"));
    }
    if (m.k->full < 0 && m.k->table < 0 && !m.k->parts)
        TD_TRY(refuse("no input of the whole shape"));
    TD_TRY(add_outputs(&m, g->block));
    place_values(m.k);
done:
    if (status)
        td_row_kernel_free(m.k);
    else
        *out = m.k;
    return status;
}

void td_row_kernel_free(td_row_kernel *k) {
    for (int j = 0; k && j < k->nstages; j++)
        td_script_kernel_free(k->stages[j].kernel);
    td_free(k);
}
