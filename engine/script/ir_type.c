/* ir_type.c: types of values in graphs. */
#include "engine/script/ir.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[TD_IR_TYPE_KINDS] = {
    [TD_IR_TENSOR] = "Tensor", [TD_IR_INT] = "int",
    [TD_IR_FLOAT] = "float",   [TD_IR_BOOL] = "bool",
    [TD_IR_NUMBER] = "Scalar", [TD_IR_STRING] = "str",
    [TD_IR_NONE] = "NoneType", [TD_IR_DTYPE] = "dtype",
    [TD_IR_DEVICE] = "Device", [TD_IR_GENERATOR] = "Generator",
    [TD_IR_ANY] = "Any",       [TD_IR_LIST] = "[]",
    [TD_IR_OPTIONAL] = "?",    [TD_IR_FUTURE] = "Future",
    [TD_IR_DICT] = "Dict",     [TD_IR_TUPLE] = "()"};

const char *td_ir_dtype_name(td_dtype dtype) {
    static const char *const dtypes[TD_DTYPE_COUNT] = {
        [TD_BOOL] = "Bool", [TD_U8] = "Byte",   [TD_I8] = "Char",  [TD_I16] = "Short",
        [TD_I32] = "Int",   [TD_I64] = "Long",  [TD_F16] = "Half", [TD_BF16] = "BFloat16",
        [TD_F32] = "Float", [TD_F64] = "Double"};
    return dtypes[dtype];
}

const td_ir_type *td_ir_simple_type(td_ir_type_kind kind) {
#define SIMPLE(name)                                                                               \
    [name] = {                                                                                     \
        .kind = (name),                                                                            \
        .dtype = TD_DTYPE_NONE,                                                                    \
        .requires_grad = TD_IR_UNKNOWN,                                                            \
        .n = (name) == TD_IR_TENSOR ? TD_IR_UNKNOWN : 0                                            \
    }
    static const td_ir_type simple[TD_IR_LIST] = {
        SIMPLE(TD_IR_TENSOR), SIMPLE(TD_IR_INT),       SIMPLE(TD_IR_FLOAT), SIMPLE(TD_IR_BOOL),
        SIMPLE(TD_IR_NUMBER), SIMPLE(TD_IR_STRING),    SIMPLE(TD_IR_NONE),  SIMPLE(TD_IR_DTYPE),
        SIMPLE(TD_IR_DEVICE), SIMPLE(TD_IR_GENERATOR), SIMPLE(TD_IR_ANY)};
#undef SIMPLE
    return &simple[kind];
}

const td_ir_type *td_ir_type_of_parts(td_ir_graph *g, td_ir_type_kind kind, int n,
                                      const td_ir_type *const *parts) {
    td_ir_type *type = td_ir_alloc(g, sizeof *type);
    const td_ir_type **copies = td_ir_alloc(g, sizeof *copies * (size_t)(n ? n : 1));
    if (!type || !copies)
        return NULL;
    for (int k = 0; k < n; k++) {
        g->failed |= !parts[k];
        copies[k] = parts[k];
    }
    *type = (td_ir_type){.kind = (uint8_t)kind, .dtype = TD_DTYPE_NONE, .n = n, .parts = copies};
    return type;
}

static const int64_t *copy_sizes(td_ir_graph *g, int n, const int64_t *sizes) {
    if (n < 0 || !sizes)
        return NULL;
    int64_t *copy = td_ir_alloc(g, sizeof *copy * (size_t)(n ? n : 1));
    return copy && n ? memcpy(copy, sizes, sizeof *copy * (size_t)n) : copy;
}

const td_ir_type *td_ir_type_copy(td_ir_graph *g, const td_ir_type *type) {
    if (type->kind != TD_IR_TENSOR && !type->parts)
        return td_ir_simple_type((td_ir_type_kind)type->kind);
    td_ir_type *copy = td_ir_alloc(g, sizeof *copy);
    if (!copy)
        return NULL;
    *copy = *type;
    copy->sizes = copy_sizes(g, type->n, type->sizes);
    copy->strides = copy_sizes(g, type->n, type->strides);
    if (!type->parts)
        return copy;
    const td_ir_type **parts = td_ir_alloc(g, sizeof *parts * (size_t)(type->n ? type->n : 1));
    for (int k = 0; parts && k < type->n; k++)
        parts[k] = td_ir_type_copy(g, type->parts[k]);
    copy->parts = parts;
    return parts ? copy : NULL;
}

/* The dtype of a quantized tensor stays unknown: what computes with its integers as they are would
 * be wrong. */
const td_ir_type *td_ir_type_of_tensor(td_ir_graph *g, const td_tensor *x) {
    td_ir_type type = {.kind = TD_IR_TENSOR,
                       .dtype = x->layout == TD_QUANTIZED ? TD_DTYPE_NONE : x->dtype,
                       .requires_grad = x->requires_grad,
                       .placed = true,
                       .device = td_device_real(td_tensor_device(x)),
                       .n = x->ndim,
                       .sizes = x->sizes,
                       .strides = x->layout == TD_STRIDED ? x->strides : NULL};
    return td_ir_type_copy(g, &type);
}

/* ---- comparison ---- */

static bool equal_sizes(int n, const int64_t *a, const int64_t *b) {
    return !a == !b && (!a || n <= 0 || !memcmp(a, b, sizeof *a * (size_t)n));
}

bool td_ir_type_equal(const td_ir_type *a, const td_ir_type *b) {
    if (a == b)
        return true;
    if (a->kind != b->kind || a->n != b->n)
        return false;
    if (a->kind == TD_IR_TENSOR)
        return a->dtype == b->dtype && a->requires_grad == b->requires_grad &&
               a->placed == b->placed && (!a->placed || td_device_same(a->device, b->device)) &&
               equal_sizes(a->n, a->sizes, b->sizes) && equal_sizes(a->n, a->strides, b->strides);
    for (int k = 0; k < a->n; k++)
        if (!td_ir_type_equal(a->parts[k], b->parts[k]))
            return false;
    return true;
}

static bool sizes_fit(int n, const int64_t *from, const int64_t *to) {
    for (int d = 0; from && to && d < n; d++)
        if (from[d] != TD_IR_UNKNOWN && to[d] != TD_IR_UNKNOWN && from[d] != to[d])
            return false;
    return true;
}

static bool tensors_fit(const td_ir_type *from, const td_ir_type *to) {
    bool dtypes =
        from->dtype == TD_DTYPE_NONE || to->dtype == TD_DTYPE_NONE || from->dtype == to->dtype;
    bool grads = from->requires_grad < 0 || to->requires_grad < 0 ||
                 from->requires_grad == to->requires_grad;
    bool devices = !from->placed || !to->placed || td_device_same(from->device, to->device);
    bool dims = from->n < 0 || to->n < 0 ||
                (from->n == to->n && sizes_fit(to->n, from->sizes, to->sizes) &&
                 sizes_fit(to->n, from->strides, to->strides));
    return dtypes && grads && devices && dims;
}

static const td_ir_type *without_optional(const td_ir_type *type) {
    while (type->kind == TD_IR_OPTIONAL)
        type = type->parts[0];
    return type;
}

/* Has a value of this type parts, or could it have some? */
static bool may_nest(const td_ir_type *type) {
    td_ir_type_kind kind = (td_ir_type_kind)without_optional(type)->kind;
    return kind == TD_IR_LIST || kind == TD_IR_DICT || kind == TD_IR_TUPLE ||
           kind == TD_IR_FUTURE || kind == TD_IR_ANY;
}

/* Parts of types that are to fit: td_ir_type_may_enter, but that what may be anything is that on
 * both sides. */
static bool part_fits(const td_ir_type *from, const td_ir_type *to) {
    if (without_optional(to)->kind == TD_IR_ANY && may_nest(from))
        return td_ir_type_equal(from, to);
    return td_ir_type_fits(from, to);
}

bool td_ir_type_fits(const td_ir_type *from, const td_ir_type *to) {
    if (to->kind == TD_IR_ANY || from->kind == TD_IR_ANY)
        return true;
    if (to->kind == TD_IR_OPTIONAL)
        return from->kind == TD_IR_NONE ||
               td_ir_type_fits(from->kind == TD_IR_OPTIONAL ? from->parts[0] : from, to->parts[0]);
    if (to->kind == TD_IR_NUMBER)
        return from->kind == TD_IR_INT || from->kind == TD_IR_FLOAT || from->kind == TD_IR_BOOL ||
               from->kind == TD_IR_NUMBER;
    if (from->kind != to->kind)
        return false;
    if (to->kind == TD_IR_TENSOR)
        return tensors_fit(from, to);
    for (int k = 0; k < to->n; k++)
        if (from->n != to->n || !part_fits(from->parts[k], to->parts[k]))
            return false;
    return from->n == to->n;
}

bool td_ir_type_may_enter(const td_ir_type *entry, const td_ir_type *part) {
    const td_ir_type *anything = without_optional(part);
    return td_ir_type_fits(entry, part) && (anything->kind != TD_IR_ANY || !may_nest(entry));
}

/* ---- texts ---- */

typedef struct words {
    char *text;
    size_t used, size;
} words;

TD_PRINTF(2, 3) static void add(words *w, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->used, w->size - w->used, format, args);
    va_end(args);
    w->used += (size_t)n;
    if (w->used >= w->size)
        w->used = w->size - 1;
}

static void add_size(words *w, int64_t size) {
    if (size == TD_IR_UNKNOWN)
        add(w, "*");
    else
        add(w, "%lld", (long long)size);
}

static void add_sizes(words *w, const td_ir_type *type) {
    for (int d = 0; d < type->n; d++) {
        add(w, d ? ", " : "");
        add_size(w, type->sizes ? type->sizes[d] : TD_IR_UNKNOWN);
    }
    if (!type->strides)
        return;
    add(w, "%sstrides=[", type->n ? ", " : "");
    for (int d = 0; d < type->n; d++) {
        add(w, d ? ", " : "");
        add_size(w, type->strides[d]);
    }
    add(w, "]");
}

static void add_type(words *w, const td_ir_type *type);

static void add_tensor(words *w, const td_ir_type *type) {
    bool more = type->n >= 0 || type->requires_grad >= 0 || type->placed;
    const char *comma = type->n > 0 || type->strides ? ", " : "";
    add(w, "%s", type->dtype == TD_DTYPE_NONE ? "Tensor" : td_ir_dtype_name((td_dtype)type->dtype));
    if (!more)
        return;
    add(w, "(");
    if (type->n >= 0)
        add_sizes(w, type);
    else
        add(w, "...");
    comma = type->n < 0 ? ", " : comma;
    if (type->requires_grad >= 0) {
        add(w, "%srequires_grad=%d", comma, type->requires_grad);
        comma = ", ";
    }
    if (type->placed)
        add(w, "%sdevice=%s", comma, td_device_name(type->device));
    add(w, ")");
}

static void add_type(words *w, const td_ir_type *type) {
    if (type->kind == TD_IR_TENSOR)
        add_tensor(w, type);
    else if (type->kind == TD_IR_LIST || type->kind == TD_IR_OPTIONAL) {
        add_type(w, type->parts[0]);
        add(w, "%s", names[type->kind]);
    } else if (type->kind == TD_IR_FUTURE || type->kind == TD_IR_TUPLE ||
               type->kind == TD_IR_DICT) {
        add(w, "%s(", type->kind == TD_IR_TUPLE ? "" : names[type->kind]);
        for (int k = 0; k < type->n; k++) {
            add(w, k ? ", " : "");
            add_type(w, type->parts[k]);
        }
        add(w, ")");
    } else
        add(w, "%s", names[type->kind]);
}

const char *td_ir_type_text(const td_ir_type *type, char *buffer, size_t size) {
    words w = {.text = buffer, .size = size};
    buffer[0] = 0;
    add_type(&w, type);
    return buffer;
}
