/* schema.c: parses operator schemas (the grammar is in op.h). Runs once per operator at start. */
#include "engine/ops/language/schema.h"

#include "engine/core/memory.h"
#include "engine/core/number.h"

#include <stdio.h>
#include <string.h>

typedef struct parser {
    const char *text, *at;
    bool out_of_memory; /* for whoever got no text */
} parser;

static td_status fail(const parser *p, const char *what) {
    if (p->out_of_memory)
        return td_fail(TD_ENOMEM, "out of memory");
    return td_fail(TD_EINTERNAL, "schema '%s', at %d: %s", p->text, (int)(p->at - p->text) + 1,
                   what);
}

static void skip_space(parser *p) {
    while (*p->at == ' ')
        p->at++;
}

static bool accept(parser *p, const char *token) {
    skip_space(p);
    size_t len = strlen(token);
    if (strncmp(p->at, token, len))
        return false;
    p->at += len;
    return true;
}

/* A word must end where an identifier does. */
static bool accept_word(parser *p, const char *word) {
    skip_space(p);
    size_t len = strlen(word);
    if (strncmp(p->at, word, len) || td_is_word(p->at[len]))
        return false;
    p->at += len;
    return true;
}

/* The text from there up to here, owned by the caller. */
static char *copy_text(parser *p, const char *from) {
    size_t len = (size_t)(p->at - from);
    char *text = td_malloc(len + 1);
    if (text) {
        memcpy(text, from, len);
        text[len] = 0;
    }
    p->out_of_memory = !text;
    return text;
}

static char *identifier(parser *p) {
    skip_space(p);
    const char *from = p->at;
    while (td_is_word(*p->at))
        p->at++;
    return p->at > from ? copy_text(p, from) : NULL;
}

typedef struct type_row {
    const char *word;
    uint8_t type, list_type; /* list_type: with [] behind it; 255: no list */
} type_row;

static const type_row type_rows[] = {
    {"Tensor", TD_PARAM_TENSOR, TD_PARAM_TENSORS},
    {"number", TD_PARAM_NUMBER, TD_PARAM_NUMBERS},
    {"int", TD_PARAM_INT, TD_PARAM_INTS},
    {"float", TD_PARAM_FLOAT, 255},
    {"bool", TD_PARAM_BOOL, 255},
    {"dim", TD_PARAM_DIM, TD_PARAM_DIMS},
    {"index", TD_PARAM_INDEX, 255},
    {"dtype", TD_PARAM_DTYPE, 255},
    {"device", TD_PARAM_DEVICE, 255},
    {"str", TD_PARAM_STRING, 255},
    {"generator", TD_PARAM_GENERATOR, 255},
    {"any", TD_PARAM_ANY, 255},
    {"table", TD_PARAM_TABLE, 255},
    {"list", TD_PARAM_LIST, 255},
    {"data", TD_PARAM_DATA, 255},
    {"function", TD_PARAM_FUNCTION, 255},
};

/* "(1..)", "(0..1)" */
static td_status parse_range(parser *p, td_param *param) {
    const char *end;
    if (!accept(p, "("))
        return TD_OK;
    param->ranged = true;
    skip_space(p);
    param->low = td_number_read_int(p->at, &end);
    if (end == p->at)
        param->low = INT64_MIN;
    p->at = end;
    if (!accept(p, ".."))
        return fail(p, "'..' expected");
    skip_space(p);
    param->high = td_number_read_int(p->at, &end);
    if (end == p->at)
        param->high = INT64_MAX;
    p->at = end;
    return accept(p, ")") ? TD_OK : fail(p, "')' expected");
}

/* "mean"|"sum": kept as mean|sum. */
static td_status parse_choices(parser *p, td_param *param) {
    char *to = param->word = td_calloc(1, strlen(p->at) + 1);
    if (!to)
        return td_fail(TD_ENOMEM, "out of memory");
    do {
        if (!accept(p, "\""))
            return fail(p, "a string expected");
        if (to > param->word)
            *to++ = '|';
        while (*p->at && *p->at != '"')
            *to++ = *p->at++;
        if (!accept(p, "\""))
            return fail(p, "'\"' expected");
    } while (accept(p, "|"));
    return TD_OK;
}

/* A word in capitals is a class. */
static td_status parse_object(parser *p, td_param *param) {
    skip_space(p);
    if (!td_is_capital(*p->at))
        return fail(p, "a type expected");
    param->word = identifier(p);
    if (!param->word)
        return fail(p, "a type expected");
    param->type = accept(p, "[]") ? TD_PARAM_OBJECTS : TD_PARAM_OBJECT;
    return TD_OK;
}

static td_status parse_list_suffix(parser *p, td_param *param, const type_row *row) {
    if (!accept(p, "["))
        return TD_OK;
    if (row->list_type == 255)
        return fail(p, "this type has no list");
    param->type = row->list_type;
    int64_t length = td_number_read_int(p->at, &p->at);
    if (length < 0 || length > UINT8_MAX)
        return fail(p, "a length from 1 to 255 expected");
    param->length = (uint8_t)length;
    return accept(p, "]") ? TD_OK : fail(p, "']' expected");
}

bool td_param_has_words(const td_param *param) {
    return param->type == TD_PARAM_INTS || param->type == TD_PARAM_NUMBER;
}

static td_status parse_named_type(parser *p, td_param *param) {
    size_t n = sizeof type_rows / sizeof *type_rows, k = 0;
    while (k < n && !accept_word(p, type_rows[k].word))
        k++;
    if (k == n)
        return parse_object(p, param);
    param->type = type_rows[k].type;
    td_status status = parse_range(p, param);
    if (strncmp(p->at, "?[", 2) == 0) { /* a list whose entries may be nil */
        param->holes = true;
        p->at++;
    }
    if (status == TD_OK)
        status = parse_list_suffix(p, param, &type_rows[k]);
    if (status == TD_OK && td_param_has_words(param) && accept(p, "|"))
        status = parse_choices(p, param);
    return status;
}

static td_status parse_type(parser *p, td_param *param) {
    td_status status = TD_OK;
    if (accept(p, "index Tensor")) {
        param->base = TD_BASE_INDEX;
        param->holes = accept(p, "?[]");
        param->type = param->holes ? TD_PARAM_TENSORS : TD_PARAM_TENSOR;
    } else if (accept(p, "class Tensor")) {
        param->base = TD_BASE_CLASS;
        param->type = TD_PARAM_TENSOR;
    } else if (accept(p, "Tensor|Tensor[]")) {
        param->type = TD_PARAM_TENSORS;
        param->alone = true;
    } else if (accept(p, "Tensor|Tensor?[]")) {
        param->type = TD_PARAM_TENSORS;
        param->alone = param->holes = true;
    } else if (accept(p, "Tensor...")) {
        param->type = TD_PARAM_TENSORS;
        param->rest = true;
    } else if (accept(p, "Tensor|number")) {
        param->type = TD_PARAM_TENSOR_OR_NUMBER;
    } else if (accept(p, "number|bool")) {
        param->type = TD_PARAM_NUMBER;
        param->truth = true;
    } else if (accept(p, "int|int[]")) {
        param->type = TD_PARAM_INTS;
        param->alone = true;
    } else if (accept(p, "int|dim[]")) {
        param->type = TD_PARAM_DIMS;
        param->alone = true;
    } else if (*p->at == '"') {
        param->type = TD_PARAM_STRING;
        status = parse_choices(p, param);
    } else {
        status = parse_named_type(p, param);
    }
    param->optional = param->optional || accept(p, "?");
    return status;
}

static td_status parse_default_list(parser *p, td_param *param) {
    int n = 0, most = (int)(sizeof param->preset_ints / sizeof *param->preset_ints);
    while (!accept(p, "}")) {
        const char *end;
        if (n == most || (n && !accept(p, ",")))
            return fail(p, n == most ? "too many integers" : "',' or '}' expected");
        skip_space(p);
        param->preset_ints[n++] = td_number_read_int(p->at, &end);
        if (end == p->at)
            return fail(p, "an integer expected");
        p->at = end;
    }
    param->preset = TD_INTS(n, param->preset_ints);
    return TD_OK;
}

static td_status parse_default_number(parser *p, td_param *param) {
    const char *int_end;
    char *end;
    int64_t i = td_number_read_int(p->at, &int_end);
    double d = td_number_read(p->at, &end);
    bool whole = int_end == end;
    if (end == p->at)
        return fail(p, "a default expected");
    if (whole && (double)i != d)
        return fail(p, "this integer does not fit into 64 bits");
    p->at = end;
    param->preset = whole && param->type != TD_PARAM_FLOAT ? TD_I(i) : TD_F(d);
    return TD_OK;
}

static td_status parse_default(parser *p, td_param *param) {
    td_value *v = &param->preset;
    param->has_default = true;
    if (accept_word(p, "nil")) {
        *v = TD_NIL;
    } else if (accept_word(p, "true")) {
        *v = TD_B(true);
    } else if (accept_word(p, "false")) {
        *v = TD_B(false);
    } else if (accept(p, "\"")) {
        const char *from = p->at;
        while (*p->at && *p->at != '"')
            p->at++;
        char *text = *p->at ? copy_text(p, from) : NULL;
        if (!text)
            return fail(p, "a string expected");
        p->at++;
        *v = TD_STRING(text);
    } else if (accept(p, "{")) {
        return parse_default_list(p, param);
    } else {
        return parse_default_number(p, param);
    }
    return TD_OK;
}

/* May this default stand for an argument of the type? Callers read the kind that the type says. */
static bool suits(const td_param *param) {
    switch ((td_kind)param->preset.kind) {
    case TD_KIND_BOOL:
        return param->type == TD_PARAM_BOOL || param->type == TD_PARAM_ANY;
    case TD_KIND_STRING:
        return param->type == TD_PARAM_STRING || param->type == TD_PARAM_ANY || param->word;
    case TD_KIND_INTS:
        return param->type == TD_PARAM_INTS || param->type == TD_PARAM_DIMS;
    case TD_KIND_INT:
        if (param->type == TD_PARAM_INT || param->type == TD_PARAM_DIM ||
            param->type == TD_PARAM_INDEX || param->alone)
            return true;
        /* fall through */
    case TD_KIND_FLOAT:
        return param->type == TD_PARAM_NUMBER || param->type == TD_PARAM_FLOAT ||
               param->type == TD_PARAM_TENSOR_OR_NUMBER || param->type == TD_PARAM_ANY;
    case TD_KIND_NIL:
    case TD_KIND_TENSOR:
    case TD_KIND_TENSORS:
    case TD_KIND_FLOATS:
    case TD_KIND_DTYPE:
    case TD_KIND_DEVICE:
    case TD_KIND_GENERATOR:
        break;
    }
    return true;
}

static td_status parse_param(parser *p, td_param *param) {
    td_status status = parse_type(p, param);
    if (status)
        return status;
    param->name = identifier(p);
    if (!param->name)
        return fail(p, "a name expected");
    if (accept(p, "=")) {
        status = parse_default(p, param);
        return status || suits(param) ? status : fail(p, "the default is not of the type");
    }
    if (param->optional) {
        param->has_default = true;
        param->preset = TD_NIL;
    }
    return TD_OK;
}

static td_status parse_list(parser *p, td_op *op, td_param *params, int *n) {
    bool options = false;
    op->npositional = 255;
    while (!accept(p, ")")) {
        if ((*n > 0 || options) && !accept(p, ","))
            return fail(p, "',' or ')' expected");
        if (accept(p, "*")) {
            options = true;
            op->npositional = (uint8_t)*n;
            continue;
        }
        if (accept(p, "...")) {
            op->flags |= TD_OP_REST;
            continue;
        }
        if (*n == TD_MAX_PARAMS)
            return fail(p, "too many parameters");
        td_param *param = &params[(*n)++];
        param->option = options;
        td_status status = parse_param(p, param);
        if (status)
            return status;
    }
    return TD_OK;
}

/* What a call looks at before anything else: see td_op.nlooks. */
static bool is_looked_at(const td_param *param) {
    return param->type == TD_PARAM_TENSOR || param->type == TD_PARAM_TENSOR_OR_NUMBER ||
           param->type == TD_PARAM_TENSORS || param->type == TD_PARAM_DEVICE;
}

static void clear_params(td_param *params, int n) {
    for (int k = 0; k < n; k++) {
        td_free(params[k].name);
        td_free(params[k].word);
        if (params[k].preset.kind == TD_KIND_STRING)
            td_free((char *)params[k].preset.string);
    }
}

/* What was parsed is the operator's also when an error follows, for td_schema_clear. */
static td_status parse_params(parser *p, td_op *op) {
    td_param params[TD_MAX_PARAMS] = {0};
    int n = 0;
    td_status status = parse_list(p, op, params, &n);
    if (op->npositional == 255)
        op->npositional = (uint8_t)n;
    op->params = td_malloc(sizeof(td_param) * (size_t)(n ? n : 1));
    if (!op->params) {
        clear_params(params, n);
        return td_fail(TD_ENOMEM, "out of memory");
    }
    op->nparams = (uint8_t)n;
    memcpy(op->params, params, sizeof(td_param) * (size_t)n);
    for (int k = 0; k < n; k++) {
        if (params[k].preset.kind == TD_KIND_INTS)
            op->params[k].preset.ints = op->params[k].preset_ints;
        if (is_looked_at(&params[k]))
            op->nlooks = (uint8_t)(k + 1);
    }
    return status;
}

static td_status parse_one_result(parser *p, td_op *op, bool named) {
    int n = op->nresults;
    if (n == TD_MAX_RESULTS)
        return fail(p, "too many results");
    op->result_base[n] = accept(p, "index Tensor") ? TD_BASE_INDEX : TD_BASE_NONE;
    if (!op->result_base[n] && !accept(p, "Tensor"))
        return fail(p, "Tensor expected");
    op->result_names[n] = named ? identifier(p) : NULL;
    op->nresults++;
    return p->out_of_memory ? fail(p, "a name expected") : TD_OK;
}

static td_status parse_results(parser *p, td_op *op) {
    td_status status = TD_OK;
    op->result_type = TD_RESULT_TENSOR;
    if (!accept(p, "->"))
        return fail(p, "'->' expected");
    if (accept_word(p, "nothing"))
        op->result_type = TD_RESULT_NOTHING;
    else if (accept_word(p, "bool"))
        op->result_type = TD_RESULT_BOOL;
    else if (accept_word(p, "number"))
        op->result_type = TD_RESULT_NUMBER;
    else if (accept(p, "Tensor[]"))
        op->result_type = TD_RESULT_TENSORS;
    else if (accept(p, "(")) {
        do
            status = parse_one_result(p, op, true);
        while (status == TD_OK && accept(p, ","));
        if (status == TD_OK && !accept(p, ")"))
            status = fail(p, "')' expected");
    } else {
        status = parse_one_result(p, op, false);
    }
    skip_space(p);
    return status == TD_OK && *p->at ? fail(p, "end expected") : status;
}

/* `saves` names parameters and results (a single result is "out"). */
static td_status read_saves(td_op *op) {
    for (const char *at = op->saves; at && *at;) {
        size_t len = strcspn(at, ", ");
        bool found = false;
        for (int k = 0; k < op->nparams; k++)
            if (strlen(op->params[k].name) == len && !memcmp(at, op->params[k].name, len)) {
                op->save_args |= 1u << k;
                found = true;
            }
        for (int k = 0; k < op->nresults; k++) {
            const char *name = op->result_names[k] ? op->result_names[k] : "out";
            if (strlen(name) == len && !memcmp(at, name, len)) {
                op->save_outs |= (uint8_t)(1u << k);
                found = true;
            }
        }
        if (!found)
            return td_fail(TD_EINTERNAL, "operator '%s' saves '%.*s', which it has not", op->name,
                           (int)len, at);
        at += len;
        at += strspn(at, ", ");
    }
    return TD_OK;
}

/* "max_pool2d" -> "MaxPool2dBackward" */
static char *make_backward_name(const char *name) {
    char *text = td_malloc(strlen(name) + sizeof "Backward"), *to = text;
    bool upper = true;
    for (; text && *name; name++) {
        if (*name != '_')
            *to++ = (char)(upper && *name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name);
        upper = *name == '_';
    }
    if (text)
        memcpy(to, "Backward", sizeof "Backward");
    return text;
}

td_status td_schema_parse_function(td_op *f) {
    parser p = {.text = f->schema, .at = f->schema};
    f->name = identifier(&p);
    if (!f->name || !accept(&p, "("))
        return fail(&p, "'NAME(' expected");
    td_status status = parse_params(&p, f);
    if (status || !accept(&p, "->"))
        return status;
    skip_space(&p);
    size_t size = strlen(p.at) + 1;
    f->result_names[0] = td_malloc(size);
    if (!f->result_names[0])
        return td_fail(TD_ENOMEM, "out of memory");
    memcpy(f->result_names[0], p.at, size);
    return TD_OK;
}

/* Parameters and names of results. */
static void clear_lists(td_op *f) {
    clear_params(f->params, f->params ? f->nparams : 0);
    td_free(f->params);
    f->params = NULL;
    f->nparams = f->nresults = 0;
    for (int k = 0; k < TD_MAX_RESULTS; k++) {
        td_free(f->result_names[k]);
        f->result_names[k] = NULL;
    }
}

void td_schema_clear(td_op *f) {
    clear_lists(f);
    td_free((char *)f->name);
    *f = (td_op){0};
}

static td_status parse_row(td_op *op) {
    parser p = {.text = op->schema, .at = op->schema};
    if (!accept(&p, "("))
        return fail(&p, "'(' expected");
    td_status status = parse_params(&p, op);
    if (status == TD_OK)
        status = parse_results(&p, op);
    return status == TD_OK ? read_saves(op) : status;
}

/* NAMEBackward and NAME_. */
static td_status make_names(td_op *op) {
    size_t len = strlen(op->name);
    char *made = op->backward_name ? NULL : make_backward_name(op->name);
    if (!op->backward_name && !made)
        return td_fail(TD_ENOMEM, "out of memory");
    if (op->flags & TD_OP_INPLACE_ONLY) {
        op->inplace_name = op->name;
    } else if (op->flags & TD_OP_INPLACE) {
        char *name = td_malloc(len + 2);
        if (!name) {
            td_free(made);
            return td_fail(TD_ENOMEM, "out of memory");
        }
        memcpy(name, op->name, len);
        memcpy(name + len, "_", 2);
        op->inplace_name = name;
    }
    if (made)
        op->backward_name = made;
    return TD_OK;
}

td_status td_schema_parse(td_op *op) {
    td_status status = parse_row(op);
    if (status == TD_OK)
        status = make_names(op);
    if (status)
        clear_lists(op);
    return status;
}

static void add_range(const td_param *p, char *text, size_t size) {
    char low[24] = "", high[24] = "";
    if (p->low != INT64_MIN)
        snprintf(low, sizeof low, "%lld", (long long)p->low);
    if (p->high != INT64_MAX)
        snprintf(high, sizeof high, "%lld", (long long)p->high);
    snprintf(text, size, "(%s..%s)", low, high);
}

/* mean|sum as "mean"|"sum" */
static void add_choices(const char *word, char *text, size_t size) {
    size_t at = 0;
    for (; *word && at + 5 < size; word++) {
        if (at == 0)
            text[at++] = '"';
        if (*word == '|')
            text[at++] = '"';
        text[at++] = *word;
        if (*word == '|')
            text[at++] = '"';
    }
    text[at++] = '"';
    text[at] = 0;
}

void td_param_type_text(const td_param *param, char *buffer, size_t size) {
    static const char *const words[] = {[TD_PARAM_TENSOR] = "Tensor",
                                        [TD_PARAM_TENSORS] = "Tensor",
                                        [TD_PARAM_NUMBER] = "number",
                                        [TD_PARAM_TENSOR_OR_NUMBER] = "Tensor|number",
                                        [TD_PARAM_INT] = "int",
                                        [TD_PARAM_FLOAT] = "float",
                                        [TD_PARAM_BOOL] = "bool",
                                        [TD_PARAM_DIM] = "dim",
                                        [TD_PARAM_DIMS] = "dim",
                                        [TD_PARAM_INDEX] = "index",
                                        [TD_PARAM_INTS] = "int",
                                        [TD_PARAM_DTYPE] = "dtype",
                                        [TD_PARAM_DEVICE] = "device",
                                        [TD_PARAM_STRING] = "str",
                                        [TD_PARAM_GENERATOR] = "generator",
                                        [TD_PARAM_ANY] = "any",
                                        [TD_PARAM_TABLE] = "table",
                                        [TD_PARAM_LIST] = "list",
                                        [TD_PARAM_DATA] = "data",
                                        [TD_PARAM_FUNCTION] = "function",
                                        [TD_PARAM_OBJECT] = "",
                                        [TD_PARAM_OBJECTS] = "",
                                        [TD_PARAM_NUMBERS] = "number"};
    static const char *const bases[] = {"", "index ", "class "};
    char range[56] = "", list[16] = "", choices[128] = "";
    const char *before = !param->alone                     ? bases[param->base]
                         : param->type == TD_PARAM_TENSORS ? "Tensor|"
                                                           : "int|";
    bool many = param->type == TD_PARAM_TENSORS || param->type == TD_PARAM_DIMS ||
                param->type == TD_PARAM_INTS || param->type == TD_PARAM_OBJECTS ||
                param->type == TD_PARAM_NUMBERS;
    bool chosen = param->word && param->type == TD_PARAM_STRING;
    if (param->ranged)
        add_range(param, range, sizeof range);
    if (many && param->length)
        snprintf(list, sizeof list, param->holes ? "?[%d]" : "[%d]", param->length);
    else if (many)
        snprintf(list, sizeof list, param->rest ? "..." : param->holes ? "?[]" : "[]");
    if (chosen || (param->word && td_param_has_words(param)))
        add_choices(param->word, choices, sizeof choices);
    snprintf(buffer, size, "%s%s%s%s%s%s%s", before,
             chosen                       ? choices
             : param->word && !choices[0] ? param->word
             : param->truth               ? "number|bool"
                                          : words[param->type],
             range, list, choices[0] && !chosen ? "|" : "", chosen ? "" : choices,
             param->optional ? "?" : "");
}
