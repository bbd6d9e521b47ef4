/* ir_print.c: graphs as TorchScript prints them. */
#include "engine/core/memory.h"
#include "engine/core/number.h"
#include "engine/ops/quantized/quantized_tensor.h"
#include "engine/script/scalars.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A text that grows. */
typedef struct printer {
    char *text;
    size_t used, size;
    bool failed;
    const td_ir_node **graphs; /* the first nodes that name graphs, in the order of their numbers */
    int ngraphs;
    td_list *tensors; /* constants by number; NULL: by their elements */
} printer;

static void add_bytes(printer *p, const char *bytes, size_t n) {
    if (p->used + n + 1 > p->size) {
        size_t size = 2 * (p->used + n) + 256;
        char *larger = p->failed ? NULL : td_realloc(p->text, size);
        if (!larger) {
            p->failed = true;
            return;
        }
        p->text = larger;
        p->size = size;
    }
    memcpy(p->text + p->used, bytes, n);
    p->used += n;
    p->text[p->used] = 0;
}

TD_PRINTF(2, 3) static void add(printer *p, const char *format, ...) {
    char buffer[1024];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(buffer, sizeof buffer, format, args);
    va_end(args);
    add_bytes(p, buffer, (size_t)n < sizeof buffer ? (size_t)n : sizeof buffer - 1);
}

/* ---- constants ---- */

static void add_string(printer *p, const char *text) {
    add(p, "\"");
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            add(p, "\\%c", c);
        else if (c == '\n')
            add(p, "\\n");
        else if (c < 32 || c == 127)
            add(p, "\\%03o", c);
        else
            add_bytes(p, text, 1);
    }
    add(p, "\"");
}

/* All digits that are needed, and a point where it would be read as an int. */
static void add_float(printer *p, double value) {
    char text[40];
    if (isnan(value) || isinf(value)) {
        add(p, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        td_number_print(text, sizeof text, "%.*g", digits, value);
        if (td_number_read(text, NULL) == value)
            break;
    }
    add(p, strpbrk(text, ".e") ? "%s" : "%s.", text);
}

/* A single element of the host as {1.5}, others without their elements. */
static void add_tensor(printer *p, const td_tensor *x) {
    bool shown = x->numel == 1 && x->layout == TD_STRIDED && td_tensor_device(x).type == TD_CPU;
    double value = 0;
    int64_t whole = 0;
    if (!shown || td_tensor_item(x, &value) || td_tensor_item_int(x, &whole)) {
        add(p, "<Tensor>");
        return;
    }
    add(p, "{");
    if (td_dtype_is_float((td_dtype)x->dtype))
        add_float(p, value);
    else
        add(p, "%lld", (long long)whole);
    add(p, "}");
}

/* The number of a constant tensor in the list. */
static void add_tensor_number(printer *p, td_tensor *x) {
    td_tensor **known = p->tensors->items;
    int k = 0;
    while (k < p->tensors->n && known[k] != x)
        k++;
    if (k == p->tensors->n) {
        td_tensor **place = td_list_add(p->tensors, sizeof *place);
        p->failed |= !place;
        if (place)
            *place = x;
    }
    add(p, "[tensor=%d]", k);
}

static void add_constant(printer *p, td_value v) {
    if (v.kind == TD_VALUE_QUANTIZED_DTYPE) {
        add_string(p, td_quantized_name(v.dtype));
        return;
    }
    switch ((td_kind)v.kind) {
    case TD_KIND_NIL:
        return;
    case TD_KIND_INT:
        add(p, "%lld", (long long)v.i);
        return;
    case TD_KIND_BOOL:
        add(p, "%d", v.b);
        return;
    case TD_KIND_FLOAT:
        add_float(p, v.f);
        return;
    case TD_KIND_STRING:
        add_string(p, v.string);
        return;
    case TD_KIND_DTYPE:
        add_string(p, td_dtype_name(v.dtype));
        return;
    case TD_KIND_DEVICE:
        add_string(p, td_device_name(v.device));
        return;
    case TD_KIND_TENSOR:
        add_tensor(p, v.tensor);
        return;
    case TD_KIND_INTS:
    case TD_KIND_FLOATS:
        add(p, "[");
        for (int k = 0; k < v.n; k++) {
            add(p, k ? ", " : "");
            if (v.kind == TD_KIND_INTS)
                add(p, "%lld", (long long)v.ints[k]);
            else
                add_float(p, v.floats[k]);
        }
        add(p, "]");
        return;
    case TD_KIND_TENSORS:
    case TD_KIND_GENERATOR:
        add(p, "<Object>");
        return;
    }
}

/* ---- nodes ---- */

static void indent(printer *p, int depth) {
    for (int k = 0; k < depth; k++)
        add(p, "  ");
}

static void add_type(printer *p, const td_ir_type *type) {
    char text[960];
    add(p, " : %s", td_ir_type_text(type, text, sizeof text));
}

static void add_values(printer *p, int n, td_ir_value *const *values) {
    for (int k = 0; k < n; k++)
        add(p, k ? ", %%%s" : "%%%s", values[k]->name);
}

/* The number of a node's graph among those of this text; the same graph has the same. */
static int number_of(printer *p, const td_ir_node *node) {
    for (int k = 0; k < p->ngraphs; k++)
        if (p->graphs[k]->subgraph == node->subgraph)
            return k;
    const td_ir_node **more = td_realloc(p->graphs, sizeof *more * (size_t)(p->ngraphs + 1));
    if (!more) {
        p->failed = true;
        return 0;
    }
    p->graphs = more;
    p->graphs[p->ngraphs] = node;
    return p->ngraphs++;
}

static void add_mode(printer *p, const td_ir_mode *mode) {
    add(p, "[mode=\"%s\"", td_ir_mode_name((td_ir_mode_kind)mode->kind));
    if (mode->kind == TD_IR_AUTOCAST)
        add(p, ", device=\"%s\", dtype=\"%s\", cached=%d",
            td_device_name((td_device){.type = mode->device}), td_dtype_name((td_dtype)mode->dtype),
            mode->cached);
    if (mode->kind == TD_IR_AUTOCAST || mode->kind == TD_IR_INFERENCE_MODE)
        add(p, ", enabled=%d", mode->enabled);
    add(p, "]");
}

static void add_name(printer *p, const td_ir_node *node) {
    if (node->kind == TD_IR_OPERATOR)
        add(p, "aten::%s%s", node->op->name, node->inplace ? "_" : "");
    else if (node->kind == TD_IR_SCALAR)
        add(p, "aten::%s", node->scalar->name);
    else
        add(p, "%s", td_ir_kind_name((td_ir_kind)node->kind));
    if (td_ir_kind_has_graph((td_ir_kind)node->kind))
        add(p, "_%d", number_of(p, node));
    if (node->kind == TD_IR_HOST_CALL)
        add(p, "[id=%d]", node->id);
    if (node->kind == TD_IR_WITH)
        add_mode(p, &node->mode);
    if (node->kind != TD_IR_CONSTANT || node->constant.kind == TD_KIND_NIL)
        return;
    if (p->tensors && node->constant.kind == TD_KIND_TENSOR) {
        add_tensor_number(p, node->constant.tensor);
        return;
    }
    add(p, "[value=");
    add_constant(p, node->constant);
    add(p, "]");
}

static void add_place(printer *p, td_ir_place place) {
    if (place.file)
        add(p, place.column ? " # %s:%d:%d" : " # %s:%d", place.file, place.line, place.column);
    add(p, "\n");
}

static void add_nodes(printer *p, const td_ir_block *block, int depth);

static void add_block(printer *p, const td_ir_block *block, int number, int depth) {
    indent(p, depth);
    add(p, "block%d(", number);
    for (int k = 0; k < block->ninputs; k++) {
        add(p, k ? ", %%%s" : "%%%s", block->inputs[k]->name);
        add_type(p, block->inputs[k]->type);
    }
    add(p, "):\n");
    add_nodes(p, block, depth + 1);
    indent(p, depth + 1);
    add(p, "-> (");
    add_values(p, block->noutputs, block->outputs);
    add(p, ")\n");
}

static void add_node(printer *p, const td_ir_node *node, int depth) {
    indent(p, depth);
    for (int k = 0; k < node->noutputs; k++) {
        add(p, k ? ", %%%s" : "%%%s", node->outputs[k]->name);
        add_type(p, node->outputs[k]->type);
    }
    add(p, node->noutputs ? " = " : "");
    add_name(p, node);
    add(p, "(");
    add_values(p, node->ninputs, node->inputs);
    add(p, ")");
    add_place(p, node->place);
    for (int k = 0; k < node->nblocks; k++)
        add_block(p, node->blocks[k], k, depth + 1);
}

static void add_nodes(printer *p, const td_ir_block *block, int depth) {
    for (const td_ir_node *node = block->first; node; node = node->next)
        add_node(p, node, depth);
}

/* `column` is where the inputs stand, one below another. */
static void add_graph(printer *p, const td_ir_graph *g, int column) {
    add(p, "graph(");
    for (int k = 0; k < g->block->ninputs; k++) {
        if (k)
            add(p, ",\n%*s", column, "");
        add(p, "%%%s", g->block->inputs[k]->name);
        add_type(p, g->block->inputs[k]->type);
    }
    add(p, "):\n");
    add_nodes(p, g->block, 1);
    add(p, "  return (");
    add_values(p, g->block->noutputs, g->block->outputs);
    add(p, ")\n");
}

char *td_ir_print_with(const td_ir_graph *g, td_list *tensors) {
    printer p = {.tensors = tensors};
    add_graph(&p, g, 6);
    for (int k = 0; k < p.ngraphs && !p.failed; k++) { /* which may name more graphs */
        size_t before = p.used;
        const td_ir_node *node = p.graphs[k];
        add(&p, "with %s_%d = ", td_ir_kind_name((td_ir_kind)node->kind), k);
        add_graph(&p, node->subgraph, (int)(p.used - before) + 6);
    }
    td_free(p.graphs);
    if (p.failed) {
        td_free(p.text);
        return NULL;
    }
    return p.text;
}

char *td_ir_print(const td_ir_graph *g) {
    return td_ir_print_with(g, NULL);
}
