/* node_infer.c: operators are called on stand-ins for their arguments. */
#include "engine/script/passes/node_infer.h"

#include "engine/calls/infer.h"
#include "engine/core/memory.h"

#include <string.h>

bool td_ir_type_is_whole(const td_ir_type *type) {
    if (type->kind != TD_IR_TENSOR || type->dtype == TD_DTYPE_NONE || !type->placed ||
        type->n < 0 || type->n > TD_MAX_DIMS || !type->strides || (type->n && !type->sizes))
        return false;
    for (int d = 0; d < type->n; d++)
        if (type->sizes[d] == TD_IR_UNKNOWN || type->strides[d] == TD_IR_UNKNOWN)
            return false;
    return true;
}

bool td_ir_type_is_contiguous(const td_ir_type *type) {
    return td_is_contiguous(type->n, type->sizes, type->strides);
}

int64_t td_ir_type_elements(const td_ir_type *type) {
    int64_t n = 1;
    for (int d = 0; d < type->n; d++)
        n *= type->sizes[d];
    return n;
}

int64_t td_ir_type_bytes(const td_ir_type *type) {
    return td_ir_type_elements(type) * (int64_t)td_dtype_size((td_dtype)type->dtype);
}

const td_value *td_ir_constant_of(const td_ir_value *value) {
    return value->node && value->node->kind == TD_IR_CONSTANT ? &value->node->constant : NULL;
}

bool td_ir_number_of(const td_ir_value *value, double *number) {
    const td_value *v = td_ir_constant_of(value);
    if (!v || (v->kind != TD_KIND_INT && v->kind != TD_KIND_FLOAT))
        return false;
    *number = td_arg_double(*v);
    return true;
}

/* ---- arguments ---- */

/* What is taken for a size, and for a number of dims, that is not known. */
typedef struct guess {
    int64_t size;
    int dims[2]; /* of every other tensor */
} guess;

static const guess guesses[] = {
    {1, {0, 0}}, {3, {2, 2}}, {17, {2, 0}}, {4099, {0, 2}}, {4099, {3, 3}}};
enum { GUESSES = sizeof guesses / sizeof *guesses, MOST_TENSORS = 64 };

typedef struct arguments {
    td_value values[TD_MAX_PARAMS];
    td_tensor *tensors[MOST_TENSORS]; /* owned */
    int ntensors;
    void *list[TD_MAX_PARAMS]; /* owned: arrays of borrowed tensors, or of ints */
    bool guessed;              /* some size or dim is not known */
    bool whole;                /* nothing of any tensor is guessed */
    bool exact;                /* nor stands a number in for another */
} arguments;

static void clear(arguments *a) {
    for (int k = 0; k < a->ntensors; k++)
        td_release(a->tensors[k]);
    for (int k = 0; k < TD_MAX_PARAMS; k++)
        td_free(a->list[k]);
}

/* Uninitialised; with strides in as much memory as they reach. */
static td_status make_tensor(const td_meta *meta, td_tensor **out) {
    td_tensor *memory;
    int64_t span = 1;
    if (!meta->strided)
        return td_tensor_from_meta(meta, out);
    for (int d = 0; d < meta->ndim; d++)
        span = meta->sizes[d] ? span + (meta->sizes[d] - 1) * meta->strides[d] : span;
    td_status status = td_tensor_empty(meta->dtype, meta->device, 1, &span, &memory);
    if (status)
        return status;
    status = td_tensor_view(memory, meta->ndim, meta->sizes, meta->strides, 0, out);
    td_release(memory);
    return status;
}

static td_tensor *stand_in(arguments *a, const td_ir_type *type, const guess *with) {
    if (type->kind != TD_IR_TENSOR || type->dtype == TD_DTYPE_NONE || type->n > TD_MAX_DIMS ||
        a->ntensors == MOST_TENSORS)
        return NULL;
    bool whole = td_ir_type_is_whole(type);
    td_meta meta = {.dtype = (td_dtype)type->dtype,
                    .device = td_device_stand_in(type->placed ? type->device : TD_DEVICE_CPU),
                    .ndim = type->n < 0 ? with->dims[a->ntensors & 1] : type->n,
                    .strided = whole};
    a->whole &= whole;
    for (int d = 0; d < meta.ndim; d++) {
        int64_t size = type->n < 0 || !type->sizes ? TD_IR_UNKNOWN : type->sizes[d];
        a->guessed |= size == TD_IR_UNKNOWN;
        meta.sizes[d] = size == TD_IR_UNKNOWN ? with->size : size;
        meta.strides[d] = whole ? type->strides[d] : 0;
    }
    a->guessed |= type->n < 0;
    td_tensor *made = NULL;
    if (make_tensor(&meta, &made))
        return NULL;
    return a->tensors[a->ntensors++] = made;
}

static bool set_list(arguments *a, int k, const td_ir_node *list, const guess *with) {
    if (!list || list->kind != TD_IR_LIST_CONSTRUCT)
        return false;
    td_tensor **tensors = a->list[k] = td_calloc((size_t)list->ninputs + 1, sizeof(td_tensor *));
    if (!tensors)
        return false;
    for (int j = 0; j < list->ninputs; j++) {
        const td_value *constant = td_ir_constant_of(list->inputs[j]);
        if (constant && td_is_nil(*constant))
            continue;
        tensors[j] = stand_in(a, list->inputs[j]->type, with);
        if (!tensors[j])
            return false;
    }
    a->values[k] = TD_TENSORS(list->ninputs, tensors);
    return true;
}

/* The sizes that a list of ints asks for; those that are worked out are guessed. */
static bool set_sizes(arguments *a, int k, const td_ir_node *list, const guess *with) {
    if (!list || list->kind != TD_IR_LIST_CONSTRUCT)
        return false;
    int64_t *sizes = a->list[k] = td_calloc((size_t)list->ninputs + 1, sizeof *sizes);
    if (!sizes)
        return false;
    for (int j = 0; j < list->ninputs; j++) {
        const td_value *constant = td_ir_constant_of(list->inputs[j]);
        bool known = constant && constant->kind == TD_KIND_INT;
        sizes[j] = known ? constant->i : with->size;
        a->guessed |= !known;
        a->whole &= known;
    }
    a->values[k] = TD_INTS(list->ninputs, sizes);
    return true;
}

static bool asks_sizes(const td_op *op, int k) {
    return op->params[k].type == TD_PARAM_INTS && strcmp(op->params[k].name, "size") == 0;
}

/* A number that is not known, where none of its values changes what is made. */
static bool set_number(arguments *a, int k, const td_op *op, td_ir_type_kind kind) {
    uint8_t type = op->params[k].type;
    if (!op->pointwise ||
        (type != TD_PARAM_TENSOR_OR_NUMBER && type != TD_PARAM_NUMBER && type != TD_PARAM_FLOAT))
        return false;
    a->exact = false;
    a->values[k] = kind == TD_IR_INT ? TD_I(1) : kind == TD_IR_BOOL ? TD_B(true) : TD_F(1);
    return kind == TD_IR_INT || kind == TD_IR_BOOL || kind == TD_IR_FLOAT;
}

static bool set_arguments(arguments *a, const td_ir_node *node, const guess *with) {
    *a = (arguments){.whole = true, .exact = true};
    for (int k = 0; k < node->ninputs; k++) {
        const td_ir_value *value = node->inputs[k];
        const td_value *constant = td_ir_constant_of(value);
        const td_ir_type *type = value->type;
        if (constant && constant->kind != TD_KIND_TENSOR) {
            a->values[k] = *constant;
            if (constant->kind == TD_KIND_INT && node->op->params[k].type == TD_PARAM_FLOAT)
                a->values[k] = TD_F((double)constant->i);
        } else if (type->kind == TD_IR_TENSOR) {
            td_tensor *x = stand_in(a, type, with);
            if (!x)
                return false;
            a->values[k] = TD_T(x);
        } else if (type->kind == TD_IR_LIST
                       ? !(asks_sizes(node->op, k) ? set_sizes(a, k, value->node, with)
                                                   : set_list(a, k, value->node, with))
                       : !set_number(a, k, node->op, (td_ir_type_kind)type->kind))
            return false;
    }
    return true;
}

/* ---- results ---- */

/* Some input has a place that is known, and none has one that is not. */
static bool is_placed(const td_ir_node *node) {
    bool any = false;
    for (int k = 0; k < node->ninputs; k++)
        if (node->inputs[k]->type->kind == TD_IR_TENSOR) {
            if (!node->inputs[k]->type->placed)
                return false;
            any = true;
        }
    return any || !(node->op->flags & TD_OP_ANY_DEVICE);
}

/* 0 where no input requires grad. */
static int8_t grad_of(const td_ir_node *node, const td_tensor *made) {
    if (made->requires_grad || node->op->flags & TD_OP_CREATES)
        return made->requires_grad ? 1 : TD_IR_UNKNOWN;
    for (int k = 0; k < node->ninputs; k++) {
        const td_ir_type *type = node->inputs[k]->type;
        bool numbers = type->kind == TD_IR_LIST && type->parts[0]->kind != TD_IR_TENSOR &&
                       type->parts[0]->kind < TD_IR_ANY;
        bool holds = (type->kind == TD_IR_TENSOR || type->kind >= TD_IR_ANY) && !numbers;
        if (holds && !(type->kind == TD_IR_TENSOR && type->requires_grad == 0))
            return TD_IR_UNKNOWN;
    }
    return 0;
}

static const td_ir_type *type_of(td_ir_graph *g, const td_ir_node *node, const td_tensor *x,
                                 bool guessed) {
    td_ir_type type = {.kind = TD_IR_TENSOR,
                       .dtype = x->dtype,
                       .requires_grad = grad_of(node, x),
                       .placed = is_placed(node),
                       .device = td_device_real(td_tensor_device(x)),
                       .n = x->ndim,
                       .sizes = x->sizes,
                       .strides = guessed || x->layout != TD_STRIDED ? NULL : x->strides};
    return td_ir_type_copy(g, &type);
}

/* What two guesses have in common; in the graph's memory. */
static const td_ir_type *common_type(td_ir_graph *g, const td_ir_type *a, const td_ir_type *b) {
    if (!a || !b)
        return NULL;
    td_ir_type type = *a;
    int64_t sizes[TD_MAX_DIMS];
    type.strides = NULL;
    if (a->dtype != b->dtype)
        type.dtype = TD_DTYPE_NONE;
    if (a->n != b->n)
        type.n = TD_IR_UNKNOWN;
    type.sizes = type.n < 0 ? NULL : sizes;
    for (int d = 0; d < type.n; d++)
        sizes[d] = a->sizes && b->sizes && a->sizes[d] == b->sizes[d] ? a->sizes[d] : TD_IR_UNKNOWN;
    return td_ir_type_copy(g, &type);
}

static bool has_number_results(const td_op *op) {
    return op->result_type != TD_RESULT_TENSOR && op->result_type != TD_RESULT_TENSORS;
}

/* One try; false: refused, or not to be tried. *again: with other guesses it may be otherwise. */
static bool try_guess(td_ir_graph *g, const td_ir_node *node, const guess *with, bool first,
                      td_inferred *out, bool *again) {
    arguments a;
    bool ready = set_arguments(&a, node, with);
    const td_op *op = node->op;
    td_tensor *self = ready ? td_arg_tensor(a.values[0]) : NULL;
    bool inplace = node->inplace || op->flags & TD_OP_INPLACE_ONLY;
    td_call call = {
        .op = op, .args = a.values, .inplace = inplace, .given = &self, .ngiven = inplace};
    *again = ready && a.guessed;
    ready = ready && (!inplace || self) && td_op_infer(&call) == TD_OK;
    if (ready) {
        int n = op->result_type == TD_RESULT_TENSORS ? call.nlist : op->nresults;
        bool list = op->result_type == TD_RESULT_TENSORS;
        out->exact = a.whole && a.exact && first;
        out->numbers = a.whole && first;
        out->n = first || out->n == n ? n : -1;
        for (int k = 0; g && !has_number_results(op) && k < n && k < TD_MAX_RESULTS; k++) {
            const td_tensor *x = list ? call.list[k] : call.out[k];
            const td_ir_type *type = x ? type_of(g, node, x, !a.whole) : NULL;
            out->types[k] = first ? type : common_type(g, out->types[k], type);
        }
        td_call_drop(&call);
    }
    clear(&a);
    return ready;
}

/* The number of dims that a list of sizes asks for, or UNKNOWN. */
static int asked_dims(const td_ir_node *node) {
    for (int k = 0; k < node->ninputs && k < node->op->nparams; k++) {
        const td_ir_node *list = node->inputs[k]->node;
        if (asks_sizes(node->op, k) && list && list->kind == TD_IR_LIST_CONSTRUCT &&
            list->ninputs <= TD_MAX_DIMS)
            return list->ninputs;
    }
    return TD_IR_UNKNOWN;
}

/* Where nothing could be called: a view has the dtype and the device of what it shows. */
static void infer_view(td_ir_graph *g, const td_ir_node *node, td_inferred *out) {
    const td_ir_type *seen = node->ninputs ? node->inputs[0]->type : NULL;
    if (!seen || seen->kind != TD_IR_TENSOR || !(node->op->flags & TD_OP_VIEW) ||
        node->op->result_type != TD_RESULT_TENSOR || node->op->nresults != 1)
        return;
    td_ir_type type = *seen;
    type.requires_grad = seen->requires_grad == 0 ? 0 : TD_IR_UNKNOWN;
    type.n = asked_dims(node);
    type.sizes = type.strides = NULL;
    out->n = 1;
    out->types[0] = td_ir_type_copy(g, &type);
}

void td_infer_node(td_ir_graph *g, const td_ir_node *node, td_inferred *out) {
    bool again = true, tried = false;
    int taken = 0;
    *out = (td_inferred){.n = -1};
    for (int k = 0; k < GUESSES && again; k++) {
        taken += try_guess(g, node, &guesses[k], !taken, out, &again);
        tried |= again;
    }
    for (int k = 0; g && tried && taken == 1 && k < TD_MAX_RESULTS; k++)
        if (out->types[k]) { /* a single guess tells no size */
            td_ir_type type = *out->types[k];
            type.sizes = type.strides = NULL;
            out->types[k] = td_ir_type_copy(g, &type);
        }
    if (g && !taken)
        infer_view(g, node, out);
}
