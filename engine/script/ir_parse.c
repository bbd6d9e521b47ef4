/* ir_parse.c: graphs from their printed form. A text from outside is bounded: what it nests, and
 * what it names, must have been made before. */
#include "engine/core/memory.h"
#include "engine/core/number.h"
#include "engine/ops/quantized/quantized_tensor.h"
#include "engine/script/scalars.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_DEPTH = 64, MOST_ENTRIES = 1 << 16, MOST_NAME = 200, MOST_GRAPHS = 1000 };

/* The values of a graph by the names that its text gives them. */
typedef struct scope {
    td_ir_graph *g;
    td_map names; /* of entries */
} scope;

typedef struct entry {
    const char *name;
    td_ir_value *value;
} entry;

/* A node that names a graph of its own, which stands further down. */
typedef struct reference {
    td_ir_node *node;
    int from; /* the number of the graph that the node is in; -1: the first */
    int to;
    struct reference *next;
} reference;

typedef struct parser {
    const char *text, *at;
    scope *scope;
    int depth;
    int number; /* of the graph that is read; -1: the first */
    reference *references;
    td_ir_graph *scratch; /* memory of what lives as long as the parser */
    int ntensors;         /* constants that the text has by number */
    td_tensor *const *tensors;
    bool failed; /* with a message */
} parser;

/* ---- errors and words ---- */

TD_PRINTF(2, 3) static bool fail(parser *p, const char *format, ...) {
    char what[256];
    int line = 1, column = 1;
    if (p->failed)
        return false;
    for (const char *c = p->text; c < p->at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    p->failed = true;
    return td_fail(TD_EVALUE, "line %d, column %d of the graph: %s", line, column, what) == TD_OK;
}

static bool fail_memory(parser *p) {
    p->failed = true;
    return td_fail(TD_ENOMEM, "out of memory for a graph") == TD_OK;
}

static void skip_space(parser *p) {
    while (td_is_space(*p->at))
        p->at++;
}

/* Is this next? Then it is passed. */
static bool take(parser *p, const char *word) {
    skip_space(p);
    size_t n = strlen(word);
    if (strncmp(p->at, word, n) != 0)
        return false;
    p->at += n;
    return true;
}

static bool expect(parser *p, const char *word) {
    return take(p, word) || fail(p, "'%s' expected", word);
}

static bool is_name(char c) {
    return td_is_word(c) || c == '.';
}

/* A name of letters, digits, dots and underscores; *n is its length, 0: there is none. */
static const char *take_name(parser *p, size_t *n) {
    skip_space(p);
    const char *name = p->at;
    while (is_name(*p->at))
        p->at++;
    *n = (size_t)(p->at - name);
    return name;
}

static bool take_int(parser *p, int64_t *value) {
    const char *end;
    skip_space(p);
    *value = td_number_read_int(p->at, &end);
    if (end == p->at)
        return fail(p, "an integer expected");
    p->at = end;
    return true;
}

static bool deeper(parser *p) {
    return ++p->depth <= MOST_DEPTH || fail(p, "nested deeper than %d", MOST_DEPTH);
}

/* ---- names of values ---- */

static bool matches(const void *found, const void *name) {
    return strcmp(((const entry *)found)->name, name) == 0;
}

static bool copy_name(parser *p, char name[MOST_NAME]) {
    size_t n;
    if (!expect(p, "%"))
        return false;
    const char *text = take_name(p, &n);
    if (!n || n >= MOST_NAME)
        return fail(p, "a name of a value expected");
    memcpy(name, text, n);
    name[n] = 0;
    return true;
}

static bool define(parser *p, const char *name, td_ir_value *value) {
    scope *s = p->scope;
    if (!value)
        return fail_memory(p);
    if (td_map_find(&s->names, td_hash_text(name), matches, name))
        return fail(p, "%%%s is made twice", name);
    entry *e = td_ir_alloc(p->scratch, sizeof *e);
    if (!e || !(e->name = td_ir_text(p->scratch, name, strlen(name))))
        return fail_memory(p);
    e->value = value;
    return td_map_add(&s->names, td_hash_text(name), e) == TD_OK || fail_memory(p);
}

static td_ir_value *use(parser *p) {
    char name[MOST_NAME];
    if (!copy_name(p, name))
        return NULL;
    const entry *e = td_map_find(&p->scope->names, td_hash_text(name), matches, name);
    if (!e) {
        fail(p, "%%%s has not been made", name);
        return NULL;
    }
    return e->value;
}

/* Values between parentheses, after the first; a list in the scratch memory. */
static bool take_values(parser *p, int *n, td_ir_value ***list) {
    size_t room = 0;
    *n = 0;
    *list = NULL;
    if (!expect(p, "("))
        return false;
    while (!take(p, ")")) {
        if (*n && !expect(p, ","))
            return false;
        td_ir_value *value = use(p);
        if (!value)
            return false;
        if ((size_t)*n == room) {
            if (*n >= MOST_ENTRIES)
                return fail(p, "more than %d values", MOST_ENTRIES);
            room = room ? 2 * room : 8;
            td_ir_value **more = td_ir_alloc(p->scratch, room * sizeof *more);
            if (!more)
                return fail_memory(p);
            if (*n)
                memcpy(more, *list, sizeof *more * (size_t)*n);
            *list = more;
        }
        (*list)[(*n)++] = value;
    }
    return true;
}

/* ---- types ---- */

static const td_ir_type *take_type(parser *p);

/* A size or a stride, or *. */
static bool take_size(parser *p, int64_t *size) {
    *size = TD_IR_UNKNOWN;
    if (take(p, "*"))
        return true;
    return take_int(p, size) && (*size >= 0 || fail(p, "a size is not negative"));
}

static bool take_strides(parser *p, int64_t strides[TD_MAX_DIMS], int *n) {
    for (*n = 0; !take(p, "]"); (*n)++) {
        if (*n == TD_MAX_DIMS)
            return fail(p, "more than %d dims", TD_MAX_DIMS);
        if (*n && !expect(p, ","))
            return false;
        if (take(p, "*"))
            strides[*n] = TD_IR_UNKNOWN;
        else if (!take_int(p, &strides[*n]))
            return false;
    }
    return true;
}

static bool take_device(parser *p, td_device *device) {
    char name[40];
    size_t n = 0;
    skip_space(p);
    while ((is_name(p->at[n]) || p->at[n] == ':') && n < sizeof name - 1)
        n++;
    memcpy(name, p->at, n);
    name[n] = 0;
    if (td_device_parse(name, device))
        return fail(p, "'%s' is no device", name);
    p->at += n;
    return true;
}

/* What stands between the parentheses of a tensor's type. */
static bool take_tensor_parts(parser *p, td_ir_type *type, int64_t sizes[TD_MAX_DIMS],
                              int64_t strides[TD_MAX_DIMS]) {
    int nstrides = TD_IR_UNKNOWN;
    int64_t flag;
    type->n = 0;
    for (bool first = true; !take(p, ")"); first = false) {
        if (!first && !expect(p, ","))
            return false;
        skip_space(p);
        if (take(p, "..."))
            type->n = TD_IR_UNKNOWN;
        else if (take(p, "strides=[")) {
            if (!take_strides(p, strides, &nstrides))
                return false;
        } else if (take(p, "requires_grad=")) {
            if (!take_int(p, &flag))
                return false;
            type->requires_grad = flag != 0;
        } else if (take(p, "device=")) {
            if (!take_device(p, &type->device))
                return false;
            type->placed = true;
        } else if (type->n < 0 || type->n == TD_MAX_DIMS)
            return fail(p, "more than %d dims", TD_MAX_DIMS);
        else if (!take_size(p, &sizes[type->n++]))
            return false;
    }
    type->sizes = type->n > 0 ? sizes : NULL;
    type->strides = nstrides == type->n ? strides : NULL;
    if (nstrides >= 0 && nstrides != type->n)
        return fail(p, "%d strides of %d dims", nstrides, type->n);
    return true;
}

static const td_ir_type *take_tensor(parser *p, uint8_t dtype) {
    int64_t sizes[TD_MAX_DIMS], strides[TD_MAX_DIMS];
    td_ir_type type = *td_ir_simple_type(TD_IR_TENSOR);
    type.dtype = dtype;
    if (*p->at == '(') {
        p->at++;
        if (!take_tensor_parts(p, &type, sizes, strides))
            return NULL;
    }
    const td_ir_type *copy = td_ir_type_copy(p->scope->g, &type);
    if (!copy)
        fail_memory(p);
    return copy;
}

/* Types between commas up to a closing parenthesis; Future[T] has a bracket. */
static const td_ir_type *take_parts(parser *p, td_ir_type_kind kind) {
    const td_ir_type *parts[64];
    const char *end = p->at[-1] == '[' ? "]" : ")";
    int n = 0;
    while (!take(p, end)) {
        if (n == 64)
            fail(p, "a type of more than 64 parts");
        if ((n && !expect(p, ",")) || p->failed || !(parts[n] = take_type(p)))
            return NULL;
        n++;
    }
    if (kind == TD_IR_FUTURE && n != 1) {
        fail(p, "a future has one type");
        return NULL;
    }
    if (kind == TD_IR_DICT && (n != 2 || parts[0]->kind != TD_IR_STRING)) {
        fail(p, "a dict has strings as keys and one type of values");
        return NULL;
    }
    return td_ir_type_of_parts(p->scope->g, kind, n, parts);
}

static const td_ir_type *take_plain_type(parser *p) {
    static const struct {
        const char *name;
        td_ir_type_kind kind;
    } simple[] = {{"int", TD_IR_INT},       {"float", TD_IR_FLOAT},         {"bool", TD_IR_BOOL},
                  {"Scalar", TD_IR_NUMBER}, {"number", TD_IR_NUMBER},       {"str", TD_IR_STRING},
                  {"NoneType", TD_IR_NONE}, {"None", TD_IR_NONE},           {"dtype", TD_IR_DTYPE},
                  {"Device", TD_IR_DEVICE}, {"Generator", TD_IR_GENERATOR}, {"Any", TD_IR_ANY}};
    size_t n;
    if (take(p, "("))
        return take_parts(p, TD_IR_TUPLE);
    const char *name = take_name(p, &n);
    for (size_t k = 0; k < sizeof simple / sizeof *simple; k++)
        if (strlen(simple[k].name) == n && !strncmp(name, simple[k].name, n))
            return td_ir_simple_type(simple[k].kind);
    if (n == 6 && !strncmp(name, "Tensor", n))
        return take_tensor(p, TD_DTYPE_NONE);
    if (n == 6 && !strncmp(name, "Future", n) && (take(p, "(") || take(p, "[")))
        return take_parts(p, TD_IR_FUTURE);
    if (n == 4 && !strncmp(name, "Dict", n) && (take(p, "(") || take(p, "[")))
        return take_parts(p, TD_IR_DICT);
    for (int d = 0; d < TD_DTYPE_COUNT; d++)
        if (strlen(td_ir_dtype_name((td_dtype)d)) == n &&
            !strncmp(name, td_ir_dtype_name((td_dtype)d), n))
            return take_tensor(p, (uint8_t)d);
    p->at = name;
    fail(p, "a type expected");
    return NULL;
}

static const td_ir_type *take_type(parser *p) {
    if (!deeper(p))
        return NULL;
    const td_ir_type *type = take_plain_type(p);
    while (type && (*p->at == '?' || (p->at[0] == '[' && p->at[1] == ']'))) {
        bool list = *p->at == '[';
        p->at += list ? 2 : 1;
        type = deeper(p)
                   ? td_ir_type_of_parts(p->scope->g, list ? TD_IR_LIST : TD_IR_OPTIONAL, 1, &type)
                   : NULL;
        p->depth--;
    }
    p->depth--;
    return type;
}

/* ---- constants ---- */

static bool take_string(parser *p, char *buffer, size_t size) {
    size_t n = 0;
    if (!expect(p, "\""))
        return false;
    while (*p->at && *p->at != '"' && n + 1 < size) {
        char c = *p->at++;
        if (c == '\\' && *p->at >= '0' && *p->at <= '7') {
            int code = 0;
            for (int k = 0; k < 3 && *p->at >= '0' && *p->at <= '7'; k++)
                code = 8 * code + (*p->at++ - '0');
            c = (char)code;
        } else if (c == '\\' && *p->at) {
            c = *p->at == 'n' ? '\n' : *p->at;
            p->at++;
        }
        buffer[n++] = c;
    }
    buffer[n] = 0;
    return *p->at == '"' ? (p->at++, true) : fail(p, "a string ends with \"");
}

static bool take_float(parser *p, double *value) {
    char *end;
    skip_space(p);
    *value = td_number_read(p->at, &end);
    if (end == p->at)
        return fail(p, "a number expected");
    p->at = end;
    return true;
}

/* {1.5}: a tensor of one element. */
static bool take_element(parser *p, const td_ir_type *type, td_value *v) {
    td_tensor *x = NULL;
    int64_t whole = 0, ones[TD_MAX_DIMS];
    double value = 0;
    if (!take(p, "{"))
        return fail(p, "the elements of this tensor are not in the text");
    td_dtype dtype = type->dtype == TD_DTYPE_NONE ? TD_F32 : (td_dtype)type->dtype;
    bool floating = td_dtype_is_float(dtype);
    if (!(floating ? take_float(p, &value) : take_int(p, &whole)) || !expect(p, "}"))
        return false;
    int n = type->n < 0 ? 0 : type->n;
    for (int d = 0; d < n; d++)
        ones[d] = 1;
    if (td_tensor_empty(dtype, TD_DEVICE_CPU, n, ones, &x))
        return fail_memory(p);
    if (floating)
        td_store_double(dtype, x->data, value);
    else
        td_store_int(dtype, x->data, whole);
    *v = TD_T(x);
    return true;
}

static bool take_list(parser *p, const td_ir_type *type, td_value *v) {
    bool floats = type->parts[0]->kind == TD_IR_FLOAT;
    int n = 0, room = 0;
    int64_t *list = NULL;
    if (!expect(p, "["))
        return false;
    while (!take(p, "]")) {
        if (n == room) {
            if (n >= MOST_ENTRIES)
                return fail(p, "more than %d entries", MOST_ENTRIES);
            room = room ? 2 * room : 8;
            int64_t *more = td_ir_alloc(p->scratch, 8 * (size_t)room);
            if (!more)
                return fail_memory(p);
            list = n ? memcpy(more, list, 8 * (size_t)n) : more;
        }
        if ((n && !expect(p, ",")) ||
            !(floats ? take_float(p, (double *)&list[n]) : take_int(p, &list[n])))
            return false;
        n++;
    }
    *v = floats ? TD_FLOATS(n, (const double *)list) : TD_INTS(n, list);
    return true;
}

/* The dtype of that name, as td_dtype_name gives it. */
static bool take_dtype(parser *p, td_value *v) {
    char name[40];
    if (!take_string(p, name, sizeof name))
        return false;
    for (int d = 0; d < TD_DTYPE_COUNT; d++)
        if (!strcmp(td_dtype_name((td_dtype)d), name)) {
            *v = TD_DTYPE((td_dtype)d);
            return true;
        }
    const td_dtype ints = td_quantized_find(name);
    if (ints != TD_DTYPE_NONE) {
        *v = TD_QUANTIZED_DTYPE(ints);
        return true;
    }
    return fail(p, "'%s' is no dtype", name);
}

static bool take_constant(parser *p, const td_ir_type *type, char *room, size_t size, td_value *v) {
    td_device device;
    int64_t i;
    switch ((td_ir_type_kind)type->kind) {
    case TD_IR_INT:
    case TD_IR_BOOL:
        if (!take_int(p, &i))
            return false;
        *v = type->kind == TD_IR_INT ? TD_I(i) : TD_B(i != 0);
        return true;
    case TD_IR_FLOAT:
        *v = TD_F(0);
        return take_float(p, &v->f);
    case TD_IR_STRING:
        *v = TD_STRING(room);
        return take_string(p, room, size);
    case TD_IR_DTYPE:
        return take_dtype(p, v);
    case TD_IR_DEVICE:
        if (!take_string(p, room, size))
            return false;
        if (td_device_parse(room, &device))
            return fail(p, "'%s' is no device", room);
        *v = TD_DEVICE(device);
        return true;
    case TD_IR_TENSOR:
        return take_element(p, type, v);
    case TD_IR_LIST:
        if (type->parts[0]->kind == TD_IR_INT || type->parts[0]->kind == TD_IR_FLOAT)
            return take_list(p, type, v);
        break;
    case TD_IR_NUMBER:
    case TD_IR_NONE:
    case TD_IR_GENERATOR:
    case TD_IR_ANY:
    case TD_IR_OPTIONAL:
    case TD_IR_FUTURE:
    case TD_IR_DICT:
    case TD_IR_TUPLE:
    case TD_IR_TYPE_KINDS:
        break;
    }
    return fail(p, "no constant of this type can be written");
}

/* ---- nodes ---- */

/* A small number that stands there; 0: none. */
static int small_int(const char *text) {
    const char *end;
    int64_t value = td_number_read_int(text, &end);
    return value < 0 || value > 1 << 30 ? 0 : (int)value;
}

/* The values that a node makes: their names and types, before it is known what it is; in the
 * scratch memory. */
typedef struct results {
    int n, room;
    const char **names;
    const td_ir_type **types;
} results;

static bool add_result(parser *p, results *r, const char *name, const td_ir_type *type) {
    if (r->n == r->room) {
        int room = r->room ? 2 * r->room : 4;
        const char **names = td_ir_alloc(p->scratch, sizeof *names * (size_t)room);
        const td_ir_type **types = td_ir_alloc(p->scratch, sizeof *types * (size_t)room);
        if (!names || !types)
            return fail_memory(p);
        for (int k = 0; k < r->n; k++) {
            names[k] = r->names[k];
            types[k] = r->types[k];
        }
        *r = (results){.n = r->n, .room = room, .names = names, .types = types};
    }
    r->names[r->n] = td_ir_text(p->scratch, name, strlen(name));
    r->types[r->n] = type;
    return r->names[r->n++] || fail_memory(p);
}

static bool take_results(parser *p, results *r) {
    char name[MOST_NAME];
    *r = (results){.n = 0};
    skip_space(p);
    if (*p->at != '%')
        return true;
    do {
        if (r->n == MOST_ENTRIES)
            return fail(p, "a node that makes more than %d values", MOST_ENTRIES);
        if (!copy_name(p, name) || !expect(p, ":"))
            return false;
        const td_ir_type *type = take_type(p);
        if (!type || !add_result(p, r, name, type))
            return p->failed ? false : fail_memory(p);
    } while (take(p, ","));
    return expect(p, "=");
}

/* What a node is. */
typedef struct head {
    td_ir_kind kind;
    const td_op *op;
    bool inplace;
    const char *name; /* of an operator, in the text */
    size_t length;
    const td_scalar *scalar;
    int graph, id;
    td_ir_mode mode;
    td_value constant;
    char room[512];
} head;

/* The operator on tensors of that name; none leaves `op` NULL. */
static void find_operator(head *h) {
    char name[MOST_NAME];
    size_t n = h->length;
    memcpy(name, h->name, n);
    name[n] = 0;
    h->op = td_op_find(name);
    if (!h->op && name[n - 1] == '_') {
        name[n - 1] = 0;
        h->op = td_op_find(name);
        h->inplace = true;
        if (h->op && !h->op->inplace_name)
            h->op = NULL;
    }
    if (!h->op) {
        const td_alias *alias = td_alias_find(name);
        h->op = alias ? alias->op : NULL;
    }
}

static bool is_scalar_name(const head *h) {
    for (int k = 0; k < td_scalar_count(); k++)
        if (strlen(td_scalar_get(k)->name) == h->length &&
            !memcmp(td_scalar_get(k)->name, h->name, h->length))
            return true;
    return false;
}

static bool take_operator(parser *p, head *h) {
    h->name = take_name(p, &h->length);
    if (!h->length || h->length >= MOST_NAME)
        return fail(p, "the name of an operator expected");
    h->kind = TD_IR_OPERATOR;
    find_operator(h);
    if (h->op || is_scalar_name(h))
        return true;
    p->at = h->name;
    return fail(p, "there is no operator '%.*s'", (int)h->length, h->name);
}

/* Which operator it is follows from its arguments, too; and of numbers from what it makes: those on
 * tensors take numbers for tensors. */
static bool choose_operator(parser *p, head *h, int n, td_ir_value *const *inputs,
                            const results *r) {
    char types[160] = "", one[64];
    h->scalar = td_scalar_find(h->name, h->length, n, inputs);
    if (h->scalar && h->op && r->n == 1 && r->types[0]->kind == TD_IR_TENSOR &&
        !td_scalar_gives(h->scalar, n, inputs, r->types[0]))
        h->scalar = NULL;
    if (h->scalar) {
        h->kind = TD_IR_SCALAR;
        h->op = NULL;
        h->inplace = false;
    }
    if (h->scalar || h->op)
        return true;
    for (int k = 0; k < n; k++) {
        size_t used = strlen(types);
        snprintf(types + used, sizeof types - used, "%s%s", k ? ", " : "",
                 td_ir_type_text(inputs[k]->type, one, sizeof one));
    }
    p->at = h->name;
    return fail(p, "'%.*s' does not take (%s)", (int)h->length, h->name, types);
}

static bool take_number(parser *p, const char *what, int most, int *number) {
    int64_t value;
    if (!take_int(p, &value))
        return false;
    if (value < 0 || value >= most)
        return fail(p, "there is no %s %lld", what, (long long)value);
    *number = (int)value;
    return expect(p, "]");
}

/* What stands between a constant's brackets. */
static bool take_attribute(parser *p, const results *r, head *h) {
    int tensor = 0;
    if (r->n != 1)
        return fail(p, "a constant is one value");
    if (take(p, "[tensor=")) {
        if (r->types[0]->kind != TD_IR_TENSOR)
            return fail(p, "a constant tensor is a Tensor");
        if (!take_number(p, "tensor", p->ntensors, &tensor))
            return false;
        h->constant = TD_T(td_retain(p->tensors[tensor]));
        return true;
    }
    return !take(p, "[value=") ||
           (take_constant(p, r->types[0], h->room, sizeof h->room, &h->constant) && expect(p, "]"));
}

/* `name=0` or `name=1`, behind a comma. */
static bool take_flag(parser *p, bool *flag) {
    int64_t value;
    if (!take_int(p, &value))
        return false;
    *flag = value != 0;
    return true;
}

static bool take_mode_kind(parser *p, head *h) {
    if (!expect(p, "[mode=") || !take_string(p, h->room, sizeof h->room))
        return false;
    for (int k = 0; k < TD_IR_MODE_KINDS; k++)
        if (!strcmp(td_ir_mode_name((td_ir_mode_kind)k), h->room)) {
            h->mode = (td_ir_mode){.kind = (uint8_t)k, .enabled = true, .cached = true};
            return true;
        }
    return fail(p, "there is no mode '%.60s'", h->room);
}

/* What stands between the brackets of prim::With. */
static bool take_mode(parser *p, head *h) {
    td_device device;
    td_value dtype;
    if (!take_mode_kind(p, h))
        return false;
    h->mode.dtype = TD_BF16;
    while (take(p, ",")) {
        bool taken = false;
        if (take(p, "device=")) {
            if (!take_string(p, h->room, sizeof h->room))
                return false;
            if (td_device_parse(h->room, &device))
                return fail(p, "'%.60s' is no device", h->room);
            h->mode.device = device.type;
            taken = true;
        } else if (take(p, "dtype=")) {
            taken = take_dtype(p, &dtype) && dtype.kind == TD_KIND_DTYPE;
            h->mode.dtype = taken ? (uint8_t)dtype.dtype : h->mode.dtype;
        } else if (take(p, "enabled=")) {
            taken = take_flag(p, &h->mode.enabled);
        } else if (take(p, "cached=")) {
            taken = take_flag(p, &h->mode.cached);
        }
        if (!taken)
            return p->failed ? false : fail(p, "device, dtype, enabled or cached expected");
    }
    return expect(p, "]");
}

static bool take_head(parser *p, const results *r, head *h) {
    size_t n;
    if (take(p, "aten::"))
        return take_operator(p, h);
    if (!expect(p, "prim::"))
        return false;
    const char *name = take_name(p, &n);
    for (int k = TD_IR_OPERATOR + 1; k < TD_IR_KINDS; k++) {
        const char *kind = td_ir_kind_name((td_ir_kind)k) + strlen("prim::");
        size_t length = strlen(kind);
        bool graph = td_ir_kind_has_graph((td_ir_kind)k);
        if (!length || strncmp(name, kind, length) != 0 ||
            (graph ? n <= length + 1 || name[length] != '_' : n != length))
            continue;
        h->kind = (td_ir_kind)k;
        h->graph = graph ? small_int(name + length + 1) : -1;
        if (k == TD_IR_CONSTANT)
            return take_attribute(p, r, h);
        if (k == TD_IR_WITH)
            return take_mode(p, h);
        return k != TD_IR_HOST_CALL ||
               (expect(p, "[id=") && take_number(p, "function", 1 << 30, &h->id));
    }
    p->at = name;
    return fail(p, "there is no node 'prim::%.*s'", (int)(n < 60 ? n : 60), name);
}

/* `# file:line:column` at the end of the line. */
static void take_place(parser *p, td_ir_node *node) {
    const char *at = p->at;
    while (*at == ' ')
        at++;
    if (*at != '#')
        return;
    const char *end = strchr(at, '\n'), *start = at + 1;
    end = end ? end : at + strlen(at);
    while (start < end && *start == ' ')
        start++;
    const char *colons[2] = {NULL, NULL};
    for (const char *c = start; c < end; c++)
        if (*c == ':') {
            colons[0] = colons[1];
            colons[1] = c;
        }
    const char *first = colons[0] ? colons[0] : colons[1];
    if (first) {
        node->place.file = td_ir_text(p->scope->g, start, (size_t)(first - start));
        node->place.line = small_int(first + 1);
        node->place.column = colons[0] ? small_int(colons[1] + 1) : 0;
    }
    p->at = end;
}

static bool take_block(parser *p, td_ir_block *block);

static bool take_blocks(parser *p, td_ir_node *node) {
    char name[24];
    for (int k = 0;; k++) {
        snprintf(name, sizeof name, "block%d(", k);
        if (!take(p, name))
            return true;
        td_ir_block *block = td_ir_add_block(node);
        if (!block)
            return fail_memory(p);
        for (bool first = true; !take(p, ")"); first = false) {
            char input[MOST_NAME];
            if ((!first && !expect(p, ",")) || !copy_name(p, input) || !expect(p, ":"))
                return false;
            const td_ir_type *type = take_type(p);
            if (!type || !define(p, input, td_ir_add_input(block, type, input)))
                return false;
        }
        if (!expect(p, ":") || !take_block(p, block))
            return false;
    }
}

static bool add_reference(parser *p, td_ir_node *node, int to) {
    reference *ref = td_ir_alloc(p->scratch, sizeof *ref);
    if (!ref)
        return fail_memory(p);
    *ref = (reference){node, p->number, to, p->references};
    p->references = ref;
    return true;
}

/* A node without its blocks. */
static td_ir_node *take_line(parser *p, td_ir_block *block, results *r) {
    head h = {.graph = -1, .constant = TD_NIL};
    td_ir_value **inputs;
    int n;
    td_ir_node *node = NULL;
    if (take_results(p, r) && take_head(p, r, &h) && take_values(p, &n, &inputs) &&
        (h.kind != TD_IR_OPERATOR || choose_operator(p, &h, n, inputs, r))) {
        node = td_ir_append(block, h.kind, n, inputs, r->n, r->types);
        if (!node)
            fail_memory(p);
    }
    if (node) {
        node->op = h.op;
        node->scalar = h.scalar;
        node->inplace = h.inplace;
        node->id = h.id;
        node->mode = h.mode;
        if (h.kind == TD_IR_CONSTANT)
            td_ir_set_constant(node, h.constant);
        take_place(p, node);
    }
    td_release(td_arg_tensor(h.constant));
    return node && (h.graph < 0 || add_reference(p, node, h.graph)) ? node : NULL;
}

static bool take_node(parser *p, td_ir_block *block) {
    results r;
    td_ir_node *node = take_line(p, block, &r);
    if (!node || !take_blocks(p, node))
        return false;
    for (int k = 0; k < r.n; k++) { /* seen by what follows, not by its own blocks */
        td_ir_set_name(p->scope->g, node->outputs[k], r.names[k]);
        if (!define(p, r.names[k], node->outputs[k]))
            return false;
    }
    return true;
}

/* Nodes, and `-> (outputs)` or `return (outputs)`. */
static bool take_block(parser *p, td_ir_block *block) {
    td_ir_value **outputs;
    int n;
    if (!deeper(p))
        return false;
    const char *end = block->owner ? "->" : "return";
    while (!take(p, end)) {
        if (!*p->at)
            return fail(p, "'%s' expected", end);
        if (!take_node(p, block))
            return false;
    }
    p->depth--;
    if (!take_values(p, &n, &outputs))
        return false;
    td_ir_set_outputs(block, n, outputs);
    return true;
}

static bool take_graph(parser *p, td_ir_graph **out) {
    scope here = {.g = td_ir_graph_new()};
    *out = here.g;
    p->scope = &here;
    bool well = here.g ? expect(p, "graph(") : fail_memory(p);
    for (bool first = true; well && !take(p, ")"); first = false) {
        char name[MOST_NAME];
        well = (first || expect(p, ",")) && copy_name(p, name) && expect(p, ":");
        const td_ir_type *type = well ? take_type(p) : NULL;
        well = type && define(p, name, td_ir_add_input(here.g->block, type, name));
    }
    well = well && expect(p, ":") && take_block(p, here.g->block);
    td_map_clear(&here.names);
    return well;
}

/* ---- whole texts ---- */

/* The graphs that stand behind the first, in order. */
typedef struct graphs {
    int n;
    td_ir_graph **list; /* references; in the scratch memory */
    bool *reached;      /* those from which nothing goes back to what is being looked at */
} graphs;

/* `with prim::CallFunction_0 = graph(...)`, whatever kind has the number. */
static bool take_graphs(parser *p, graphs *all) {
    all->list = td_ir_alloc(p->scratch, sizeof *all->list * MOST_GRAPHS);
    all->reached = td_ir_alloc(p->scratch, MOST_GRAPHS);
    if (!all->list || !all->reached)
        return fail_memory(p);
    while (take(p, "with ")) {
        size_t n;
        char number[16];
        p->number = all->n;
        if (all->n == MOST_GRAPHS)
            return fail(p, "more than %d graphs", MOST_GRAPHS);
        snprintf(number, sizeof number, "_%d", all->n);
        const char *name = expect(p, "prim::") ? take_name(p, &n) : NULL;
        if (!name)
            return false;
        if (n < strlen(number) || strncmp(name + n - strlen(number), number, strlen(number)) != 0)
            return fail(p, "the graph of number %d expected", all->n);
        bool well = expect(p, "=") && take_graph(p, &all->list[all->n]);
        bool made = all->list[all->n] != NULL;
        well = well && (!all->list[all->n]->failed || fail_memory(p));
        all->n += made;
        if (!well)
            return false;
    }
    return true;
}

/* No graph is reached from itself, but by its own nodes. */
static bool check_order(parser *p, graphs *all, int number, int depth) {
    if (depth > all->n)
        return fail(p, "graphs %d and others call one another in a circle", number);
    if (all->reached[number])
        return true;
    for (reference *ref = p->references; ref; ref = ref->next)
        if (ref->from == number && ref->to != number && !check_order(p, all, ref->to, depth + 1))
            return false;
    return all->reached[number] = true;
}

/* Each node has the graph that it names. */
static bool join_graphs(parser *p, graphs *all) {
    for (reference *ref = p->references; ref; ref = ref->next)
        if (ref->to >= all->n)
            return fail(p, "the graph of group %d is missing", ref->to);
    for (int k = 0; k < all->n; k++)
        if (!check_order(p, all, k, 0))
            return false;
    for (reference *ref = p->references; ref; ref = ref->next) {
        td_ir_graph *g = all->list[ref->to];
        ref->node->subgraph = ref->from == ref->to ? g : td_ir_graph_retain(g);
    }
    return true;
}

td_status td_ir_parse_with(const char *text, int ntensors, td_tensor *const *tensors,
                           td_ir_graph **out) {
    parser p = {.text = text,
                .at = text,
                .number = -1,
                .scratch = td_ir_graph_new(),
                .ntensors = ntensors,
                .tensors = tensors};
    graphs all = {.n = 0};
    *out = NULL;
    if (!p.scratch)
        return td_fail(TD_ENOMEM, "out of memory for a graph");
    bool well = take_graph(&p, out) && take_graphs(&p, &all);
    skip_space(&p);
    if (well && *p.at)
        well = fail(&p, "the text goes on behind the graph");
    well = well && join_graphs(&p, &all);
    td_status status = well ? td_ir_status(*out) : td_error_code();
    for (int k = 0; k < all.n && status == TD_OK; k++)
        status = td_ir_verify(all.list[k]);
    if (status == TD_OK)
        status = td_ir_verify(*out);
    for (int k = 0; k < all.n; k++)
        td_ir_graph_release(all.list[k]);
    td_ir_graph_release(p.scratch);
    if (status) {
        td_ir_graph_release(*out);
        *out = NULL;
    }
    return status;
}

td_status td_ir_parse(const char *text, td_ir_graph **out) {
    return td_ir_parse_with(text, 0, NULL, out);
}
