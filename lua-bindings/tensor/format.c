/* format.c: the text of a tensor.
 *
 * The body is PyTorch's: aligned columns, four digits after the point, scientific where the range
 * asks for it, integral floats as "1.", and the edges alone beyond 1,000 elements. A last line says
 * dtype, shape and device. A 0-dim tensor is the number. Only elements that are shown are read.
 */
#include "lua-bindings/call/function.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/tensor/print_options.h"
#include "lua-bindings/tensor/tensor.h"

#include "engine/core/interrupt.h"
#include "engine/core/number.h"
#include "engine/core/sparse.h"
#include "engine/ops/quantized/quantized_tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { THRESHOLD = 1000, EDGE = 3, LINE_WIDTH = 80, PRECISION = 4, NUMBER_TEXT = 512 };
enum { MOST_FAINT = 20 }; /* one of so many */

static const double FAINT = 1e-4;

typedef enum style { STYLE_INTEGER, STYLE_BOOL, STYLE_WHOLE, STYLE_FIXED, STYLE_SCIENTIFIC } style;

static const char options_key;

tide_print_options *tide_print_options_of(lua_State *L) {
    lua_rawgetp(L, LUA_REGISTRYINDEX, &options_key);
    tide_print_options *options = lua_touserdata(L, -1);
    lua_pop(L, 1);
    return options;
}

typedef struct printer {
    luaL_Buffer *buffer;
    const tide_print_options *options;
    const td_tensor *x;
    bool summarize;
    style style;
    int width;
    /* what the shown elements are like: finite ones, and of those that are not 0 */
    bool all_whole;
    double largest, smallest;
    int64_t nonzero, faint; /* how many, and how many that four digits hardly show */
} printer;

static bool is_gap(const printer *p, int64_t size, int64_t k) {
    int64_t edge = p->options->edge;
    return p->summarize && size > 2 * edge && k >= edge && k < size - edge;
}

static void number_text(const printer *p, const char *at, char *text) {
    td_dtype dtype = (td_dtype)p->x->dtype;
    if (p->style == STYLE_BOOL) {
        snprintf(text, NUMBER_TEXT, "%s", td_load_int(dtype, at) ? "true" : "false");
        return;
    }
    if (p->style == STYLE_INTEGER) {
        snprintf(text, NUMBER_TEXT, "%lld", (long long)td_load_int(dtype, at));
        return;
    }
    double v = td_load_double(dtype, at);
    if (isnan(v))
        snprintf(text, NUMBER_TEXT, "nan");
    else if (isinf(v))
        snprintf(text, NUMBER_TEXT, v > 0 ? "inf" : "-inf");
    else if (p->style == STYLE_WHOLE)
        td_number_print(text, NUMBER_TEXT, "%.0f.", v);
    else
        td_number_print(text, NUMBER_TEXT, p->style == STYLE_SCIENTIFIC ? "%.*e" : "%.*f",
                        p->options->precision, v);
}

/* The edges of sixteen dims are more than anybody waits for. */
static void poll(const printer *p) {
    if (TD_UNLIKELY(td_interrupt_requested()))
        TIDE_CHECK(p->buffer->L, td_interrupted());
}

/* Visit the shown elements: their range first, their widths when the style is known. */
static void survey(printer *p, int dim, const char *at, bool measure) {
    const td_tensor *x = p->x;
    if (dim == x->ndim) {
        char text[NUMBER_TEXT];
        if (measure) {
            number_text(p, at, text);
            int width = (int)strlen(text);
            p->width = width > p->width ? width : p->width;
            return;
        }
        double v = fabs(td_load_double((td_dtype)x->dtype, at));
        if (!isfinite(v))
            return;
        p->all_whole = p->all_whole && v == floor(v);
        if (v > p->largest)
            p->largest = v;
        if (v != 0 && v < p->smallest)
            p->smallest = v;
        p->nonzero += v != 0;
        p->faint += v != 0 && v < FAINT;
        return;
    }
    int64_t step = x->strides[dim] * (int64_t)td_tensor_itemsize(x);
    poll(p);
    for (int64_t k = 0; k < x->sizes[dim]; k++) {
        if (is_gap(p, x->sizes[dim], k))
            k = x->sizes[dim] - p->options->edge;
        survey(p, dim + 1, at + k * step, measure);
    }
}

/* Whole numbers beyond that are shown by their first digits. */
static const double whole_limit = 1e8;

/* PyTorch's rule, but for numbers of which the largest is near 1, as rand and randn draw them: some
 * of many are always small beside it, and no reason to show all of them by powers of ten. */
static bool is_scientific(const printer *p) {
    if (p->options->notation != TIDE_NOTATION_FITTING)
        return p->options->notation == TIDE_NOTATION_SCIENTIFIC;
    if (p->all_whole)
        return p->largest > whole_limit;
    double largest = p->largest, smallest = p->smallest;
    bool wide =
        largest > 0 && (largest / smallest > 1000 || largest > whole_limit || smallest < FAINT);
    bool near_one = largest >= 0.1 && largest < 10;
    return wide && !(near_one && p->faint * MOST_FAINT <= p->nonzero);
}

static void choose_style(printer *p) {
    td_dtype dtype = (td_dtype)p->x->dtype;
    p->all_whole = true;
    p->smallest = INFINITY;
    if (dtype == TD_BOOL) {
        p->style = STYLE_BOOL;
    } else if (!td_dtype_is_float(dtype)) {
        p->style = STYLE_INTEGER;
    } else {
        survey(p, 0, p->x->data, false);
        p->style = is_scientific(p) ? STYLE_SCIENTIFIC : p->all_whole ? STYLE_WHOLE : STYLE_FIXED;
    }
    survey(p, 0, p->x->data, true);
}

static void add_text(printer *p, const char *text) {
    luaL_addstring(p->buffer, text);
}

static void add_indent(printer *p, int n) {
    luaL_addchar(p->buffer, '\n');
    for (int k = 0; k < n; k++)
        luaL_addchar(p->buffer, ' ');
}

/* As set, or as wide as what shows it. */
static int line_width(const tide_print_options *options) {
    int width = options->line_width ? options->line_width : options->terminal;
    return width > 0 ? width : LINE_WIDTH;
}

/* One innermost row, wrapped at the line's width. */
static void print_row(printer *p, const char *at, int indent) {
    const td_tensor *x = p->x;
    int dim = x->ndim - 1, per_line = (line_width(p->options) - indent - 1) / (p->width + 2);
    int64_t step = x->strides[dim] * (int64_t)td_tensor_itemsize(x);
    char text[NUMBER_TEXT];
    poll(p);
    per_line = per_line < 1 ? 1 : per_line;
    luaL_addchar(p->buffer, '[');
    for (int64_t k = 0, shown = 0; k < x->sizes[dim]; k++, shown++) {
        if (k > 0)
            luaL_addchar(p->buffer, ',');
        if (shown > 0 && shown % per_line == 0)
            add_indent(p, indent + 1);
        else if (k > 0)
            luaL_addchar(p->buffer, ' ');
        if (is_gap(p, x->sizes[dim], k)) {
            add_text(p, "...");
            k = x->sizes[dim] - p->options->edge - 1;
            continue;
        }
        number_text(p, at + k * step, text);
        for (int pad = p->width - (int)strlen(text); pad > 0; pad--)
            luaL_addchar(p->buffer, ' ');
        add_text(p, text);
    }
    luaL_addchar(p->buffer, ']');
}

static void print_dim(printer *p, int dim, const char *at, int indent) {
    const td_tensor *x = p->x;
    if (dim == x->ndim - 1) {
        print_row(p, at, indent);
        return;
    }
    int64_t step = x->strides[dim] * (int64_t)td_tensor_itemsize(x);
    luaL_addchar(p->buffer, '[');
    for (int64_t k = 0; k < x->sizes[dim]; k++) {
        if (k > 0) {
            luaL_addchar(p->buffer, ',');
            for (int blank = x->ndim - dim - 2; blank > 0; blank--)
                luaL_addchar(p->buffer, '\n');
            add_indent(p, indent + 1);
        }
        if (is_gap(p, x->sizes[dim], k)) {
            add_text(p, "...");
            k = x->sizes[dim] - p->options->edge - 1;
            continue;
        }
        print_dim(p, dim + 1, at + k * step, indent + 1);
    }
    luaL_addchar(p->buffer, ']');
}

/* Digits that tell a number from its neighbours, less what looks like noise. */
static int digits_of(td_dtype dtype) {
    size_t size = td_dtype_size(dtype);
    return size > sizeof(float) ? 14 : size == sizeof(float) ? 7 : 5;
}

static void float_text(td_dtype dtype, double v, char *text) {
    if (isnan(v))
        snprintf(text, NUMBER_TEXT, "nan"); /* its sign says nothing */
    else if (v != 0 && v == floor(v) && fabs(v) <= whole_limit)
        snprintf(text, NUMBER_TEXT, "%.0f", v);
    else
        td_number_print(text, NUMBER_TEXT, "%.*g", digits_of(dtype), v);
}

static void print_number(luaL_Buffer *b, const td_tensor *x) {
    char text[NUMBER_TEXT];
    if (x->dtype == TD_BOOL)
        snprintf(text, sizeof text, "%s", td_load_int(TD_BOOL, x->data) ? "true" : "false");
    else if (td_dtype_is_float((td_dtype)x->dtype))
        float_text((td_dtype)x->dtype, td_load_double((td_dtype)x->dtype, x->data), text);
    else
        snprintf(text, sizeof text, "%lld", (long long)td_load_int((td_dtype)x->dtype, x->data));
    luaL_addstring(b, text);
}

/* On a line of their own; those of a number, which are short, behind it. */
static void print_facts(luaL_Buffer *b, const td_tensor *x) {
    char shape[TD_SHAPE_TEXT], text[TD_SHAPE_TEXT + 200], facts[80] = "";
    const char *grad_fn = td_grad_fn_name(x);
    bool strided = x->layout == TD_STRIDED;
    if (!strided)
        td_layout_of(x)->describe(x, facts, sizeof facts);
    snprintf(text, sizeof text, "%s%s %s %s%s%s%s%s%s%s%s", x->ndim || !strided ? "\n" : "  ",
             td_tensor_dtype_name(x), td_tensor_shape_text(x, shape),
             td_device_name(td_tensor_device(x)), strided ? "" : " ",
             strided ? "" : td_layout_of(x)->name, *facts ? " " : "", facts,
             grad_fn            ? " grad_fn=<"
             : x->requires_grad ? " requires_grad"
                                : "",
             grad_fn ? grad_fn : "", grad_fn ? ">" : "");
    luaL_addstring(b, text);
}

/* The elements alone, of a tensor on the host that has dims. */
static void print_elements(luaL_Buffer *b, const td_tensor *x, int indent) {
    const tide_print_options *options = tide_print_options_of(b->L);
    printer p = {
        .buffer = b, .options = options, .x = x, .summarize = x->numel > options->threshold};
    if (x->numel == 0) {
        add_text(&p, "[]");
        return;
    }
    choose_style(&p);
    print_dim(&p, 0, x->data, indent);
}

/* The parts of a sparse tensor on the host, held by handles on the stack: indices from 1. */
static void print_parts(luaL_Buffer *b, const td_tensor *indices, const td_tensor *values) {
    luaL_addstring(b, "indices=");
    print_elements(b, indices, (int)strlen("indices="));
    luaL_addstring(b, "\nvalues=");
    print_elements(b, values, (int)strlen("values="));
}

enum part { ELEMENTS, VALUES, INDICES };

/* What of a tensor is printed, on the host, in a new handle: another holder of its elements, since
 * the buffer's memory may run a finalizer, and that may give the tensor other ones. */
static const td_tensor *hold(lua_State *L, td_tensor *given, enum part part) {
    tide_handle *handle = tide_push_handle(L);
    const td_sparse *s = td_sparse_of(given);
    td_tensor *x = part == VALUES ? s->values : part == INDICES ? s->indices : given;
    if (x->layout == TD_QUANTIZED) {
        TIDE_CHECK(L, TD_APPLY(&handle->tensor, dequantize, TD_T(x)));
        tide_handle *host = tide_push_handle(L);
        TIDE_CHECK(
            L, TD_APPLY(&host->tensor, to, TD_T(handle->tensor), TD_NIL, TD_DEVICE(TD_DEVICE_CPU)));
        return host->tensor;
    }
    if (part == INDICES || td_tensor_device(x).type != TD_CPU)
        TIDE_CHECK(L, TD_APPLY(&handle->tensor, to, TD_T(x), TD_NIL, TD_DEVICE(TD_DEVICE_CPU),
                               TD_B(true)));
    else
        TIDE_CHECK(L, td_tensor_alias(x, &handle->tensor));
    if (part == INDICES)
        TIDE_CHECK(L, TD_APPLY_INPLACE(add, TD_T(handle->tensor), TD_I(1)));
    return handle->tensor;
}

void tide_push_tensor_text(lua_State *L, td_tensor *given) {
    luaL_Buffer b;
    int index = lua_gettop(L) + 1;
    bool sparse = given->layout == TD_SPARSE_COO;
    if (!td_has_elements(given)) {
        luaL_buffinit(L, &b);
        luaL_addstring(&b, given->ndim ? "..." : "... ");
        print_facts(&b, given);
        luaL_pushresult(&b);
        return;
    }
    const td_tensor *x = hold(L, given, sparse ? VALUES : ELEMENTS);
    const td_tensor *indices = sparse ? hold(L, given, INDICES) : NULL;
    luaL_buffinit(L, &b);
    if (sparse)
        print_parts(&b, indices, x);
    else if (x->ndim)
        print_elements(&b, x, 0);
    else
        print_number(&b, x);
    print_facts(&b, given);
    luaL_pushresult(&b);
    lua_replace(L, index);
    lua_settop(L, index);
}

/* tide._print_format(x): the format in which the elements of a float tensor on the host print. */
static int print_format(lua_State *L) {
    const td_tensor *x = hold(L, tide_check_tensor(L, 1, "_print_format"), ELEMENTS);
    static const char *const formats[] = {
        [STYLE_INTEGER] = "%d", [STYLE_BOOL] = "%s", [STYLE_WHOLE] = "%.0f."};
    luaL_Buffer b;
    printer p = {.buffer = &b, .options = tide_print_options_of(L), .x = x};
    luaL_buffinit(L, &b);
    choose_style(&p);
    if (p.style == STYLE_FIXED || p.style == STYLE_SCIENTIFIC)
        lua_pushfstring(L, "%%.%d%s", p.options->precision, p.style == STYLE_FIXED ? "f" : "e");
    else
        lua_pushstring(L, formats[p.style]);
    return 1;
}

/* ---- options ---- */

static void set_defaults(tide_print_options *options) {
    int terminal = options->terminal;
    *options = (tide_print_options){
        .precision = PRECISION, .threshold = THRESHOLD, .edge = EDGE, .terminal = terminal};
}

static int set_printoptions(lua_State *L) {
    enum { PROFILE_, PRECISION_, THRESHOLD_, EDGE_, WIDTH_, SCIENTIFIC_ };
    tide_frame f;
    tide_read_call(L, &f);
    tide_print_options *options = tide_print_options_of(L);
    const td_value *v = f.args;
    if (!td_is_nil(v[PROFILE_])) {
        set_defaults(options);
        bool full = !strcmp(v[PROFILE_].string, "full");
        options->precision = !strcmp(v[PROFILE_].string, "short") ? 2 : PRECISION;
        options->threshold = full ? INT64_MAX : THRESHOLD;
    }
    if (!td_is_nil(v[PRECISION_]))
        options->precision = (int)v[PRECISION_].i;
    if (!td_is_nil(v[THRESHOLD_]))
        options->threshold = v[THRESHOLD_].i;
    if (!td_is_nil(v[EDGE_]))
        options->edge = v[EDGE_].i;
    if (!td_is_nil(v[WIDTH_]))
        options->line_width = (int)v[WIDTH_].i;
    options->notation = td_is_nil(v[SCIENTIFIC_]) ? TIDE_NOTATION_FITTING
                        : v[SCIENTIFIC_].b        ? TIDE_NOTATION_SCIENTIFIC
                                                  : TIDE_NOTATION_PLAIN;
    return 0;
}

void tide_open_printing(lua_State *L) {
    static const tide_function functions[] = {
        {"set_printoptions(\"default\"|\"short\"|\"full\"? profile=nil, *, int(0..17)? "
         "precision=nil, int(0..)? threshold=nil, int(1..1000000)? edgeitems=nil, "
         "int(10..100000)? linewidth=nil, bool? sci_mode=nil)",
         "How tensors print: digits after the point, from how many elements on the edges alone, "
         "how many at an edge, columns (those of the terminal where not given), and whether floats "
         "are written with powers of ten: always, never, or (nil) where that fits them.",
         set_printoptions},
        {NULL, NULL, NULL},
    };
    static const luaL_Reg plain[] = {{"_print_format", print_format}, {NULL, NULL}};
    tide_print_options *options = lua_newuserdatauv(L, sizeof *options, 0);
    options->terminal = 0;
    set_defaults(options);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &options_key);
    tide_declare(L, functions);
    tide_set_functions(L, plain);
}
