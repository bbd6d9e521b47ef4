/* syntax.c: reads texts; the grammar is in expression.h. */
#include "engine/ops/language/syntax.h"

#include "engine/core/memory.h"
#include "engine/core/number.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool td_source_fail(td_source *t, const char *format, ...) {
    char what[320], whose[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (t->op)
        snprintf(whose, sizeof whose, "operator '%s', %s", t->op->name,
                 t->kind == TD_SOURCE_GRADIENT ? "gradient" : "formula");
    else
        snprintf(whose, sizeof whose, "formula '%.180s'", t->text);
    t->status = td_fail(t->wrong, "%s, at %d%s%.20s%s: %s", whose, (int)(t->at - t->text) + 1,
                        *t->at ? " '" : "", t->at, *t->at ? "'" : " (the end)", what);
    return false;
}

bool td_source_no_memory(td_source *t) {
    t->status = td_fail(TD_ENOMEM, "out of memory");
    return false;
}

/* Functions that read return the node of what they have read, 0 when they failed. */
typedef struct parser {
    td_source *source;
    td_tree *tree;
    const char *at;
    int depth; /* of brackets and signs within one another */
} parser;

static int fail(parser *p, const char *at, const char *what) {
    p->source->at = at;
    return td_source_fail(p->source, "%s", what);
}

/* ---- words ---- */

static const char *skip_space(parser *p) {
    while (td_is_space(*p->at))
        p->at++;
    return p->at;
}

static bool accept(parser *p, const char *token) {
    const char *at = skip_space(p);
    while (*token && *at == *token)
        at++, token++;
    if (!*token)
        p->at = at;
    return !*token;
}

static bool expect(parser *p, const char *token) {
    p->source->at = skip_space(p);
    return accept(p, token) || td_source_fail(p->source, "'%s' expected", token);
}

static const char *keep_word(parser *p, const char *from, const char *end) {
    char *word = p->tree->end;
    for (; from < end; from++)
        *p->tree->end++ = *from;
    *p->tree->end++ = 0;
    return word;
}

/* A name, or NULL and nothing read. */
static const char *accept_name(parser *p) {
    const char *from = skip_space(p);
    if (!td_is_word(*from) || td_is_digit(*from))
        return NULL;
    while (td_is_word(*p->at))
        p->at++;
    return keep_word(p, from, p->at);
}

/* ---- nodes ---- */

/* There is room for all: each takes a letter of the text, but for the last statement. */
static int add(parser *p, td_syntax node) {
    p->tree->nodes[p->tree->nnodes] = node;
    return p->tree->nnodes++;
}

static int add_sign(parser *p, const char *at, td_sign sign, int a, int b) {
    td_syntax_type type = sign == TD_SIGN_AND  ? TD_SYNTAX_AND
                          : sign == TD_SIGN_OR ? TD_SYNTAX_OR
                                               : TD_SYNTAX_SIGN;
    p->tree->nodes[a].next = b;
    return add(p, (td_syntax){.type = (uint8_t)type, .sign = (uint8_t)sign, .at = at, .first = a});
}

/* ---- values ---- */

static int expression(parser *p);

static int string(parser *p, const char *at) {
    const char *from = p->at, *end = strchr(from, '"');
    if (!end)
        return fail(p, at, "the string has no end");
    p->at = end + 1;
    return add(p, (td_syntax){.type = TD_SYNTAX_CONSTANT,
                              .at = at,
                              .constant = TD_STRING(keep_word(p, from, end))});
}

/* A whole number that 64 bits don't hold is a float, as in Lua. */
static int number(parser *p) {
    const char *at = p->at, *int_end;
    char *end;
    int64_t i = td_number_read_int(at, &int_end);
    double value = td_number_read(at, &end);
    bool whole = int_end == end && (double)i == value;
    p->at = end;
    return add(p, (td_syntax){.type = TD_SYNTAX_CONSTANT,
                              .at = at,
                              .constant = whole ? TD_I(i) : TD_F(value)});
}

/* `name mark value`, when the value that was read from `at` turns out to be that name; else the
 * value itself. */
static int accept_marked(parser *p, const char *at, int value, const char *mark,
                         td_syntax_type type) {
    td_syntax node = p->tree->nodes[value];
    if (node.type != TD_SYNTAX_NAME || node.at != at || !accept(p, mark))
        return value;
    p->tree->nnodes--; /* the name, which was the last node */
    node.first = expression(p);
    node.type = (uint8_t)type;
    return node.first ? add(p, node) : 0;
}

static int argument(parser *p) {
    const char *at = skip_space(p);
    return accept_marked(p, at, expression(p), "=", TD_SYNTAX_ARGUMENT);
}

/* A node whose operands are what `part` reads, up to `close`. */
static int several(parser *p, td_syntax node, int (*part)(parser *), const char *close) {
    int last = 0;
    while (!accept(p, close)) {
        p->source->at = p->at;
        if (last && !accept(p, ","))
            return td_source_fail(p->source, "',' or '%s' expected", close);
        int entry = part(p);
        if (!entry)
            return 0;
        *(last ? &p->tree->nodes[last].next : &node.first) = entry;
        last = entry;
    }
    return add(p, node);
}

static int primary(parser *p) {
    const char *at = skip_space(p), *name;
    if (td_is_digit(*at))
        return number(p);
    name = accept_name(p);
    if (!name && accept(p, "\""))
        return string(p, at);
    if (!name && accept(p, "{"))
        return several(p, (td_syntax){TD_SYNTAX_LIST, .at = at}, expression, "}");
    if (!name && accept(p, "(")) {
        int inner = expression(p);
        return inner && expect(p, ")") ? inner : 0;
    }
    if (!name)
        return fail(p, at, "a value expected");
    if (!accept(p, "("))
        return add(p, (td_syntax){TD_SYNTAX_NAME, .at = at, .word = name});
    if (td_is_name(name, "if"))
        return several(p, (td_syntax){TD_SYNTAX_IF, .at = at}, expression, ")");
    if (td_is_name(name, "error"))
        return several(p, (td_syntax){TD_SYNTAX_ERROR, .at = at}, expression, ")");
    return several(p, (td_syntax){TD_SYNTAX_CALL, .at = at, .word = name}, argument, ")");
}

static int suffixed(parser *p) {
    int value = primary(p);
    while (value && accept(p, ".")) {
        const char *at = skip_space(p), *name = accept_name(p);
        if (!name)
            return fail(p, at, "a name expected");
        if (accept(p, "(")) {
            int inner = expression(p);
            if (!inner || !expect(p, ")"))
                return 0;
            p->tree->nodes[value].next = inner;
        }
        value = add(p, (td_syntax){TD_SYNTAX_MEMBER, .at = at, .word = name, .first = value});
    }
    return value;
}

/* ---- signs ---- */

static int unary(parser *p);

/* The negative of a number is a number. */
static int negated(parser *p, const char *at) {
    int a = unary(p);
    td_syntax *number = &p->tree->nodes[a];
    if (!a || number->type != TD_SYNTAX_CONSTANT || number->constant.kind == TD_KIND_STRING)
        return a ? add_sign(p, at, TD_SIGN_NEG, a, 0) : 0;
    bool whole = number->constant.kind == TD_KIND_INT;
    number->constant = whole ? TD_I(-number->constant.i) : TD_F(-number->constant.f);
    number->at = at;
    return a;
}

static int power(parser *p) {
    int a = suffixed(p);
    const char *at = skip_space(p);
    if (!a || !accept(p, "^"))
        return a;
    int b = unary(p);
    return b ? add_sign(p, at, TD_SIGN_POW, a, b) : 0;
}

/* Whatever stands within something else is read through here. */
static int unary(parser *p) {
    enum { DEEPEST = 1000 };
    const char *at = skip_space(p);
    if (p->depth == DEEPEST)
        return fail(p, at, "too deep");
    p->depth++;
    int a = accept(p, "-") ? negated(p, at) : power(p);
    p->depth--;
    return a;
}

/* Signs between two values: the higher their level, the closer they bind. */
enum { CHOICES, COMPARISONS, SUMS, PRODUCTS, UNARIES };
typedef struct sign_row {
    char text[4];
    uint8_t sign, level;
} sign_row;
static const sign_row signs[] = {{"and", TD_SIGN_AND, CHOICES},   {"or", TD_SIGN_OR, CHOICES},
                                 {"==", TD_SIGN_EQ, COMPARISONS}, {"~=", TD_SIGN_NE, COMPARISONS},
                                 {"<=", TD_SIGN_LE, COMPARISONS}, {">=", TD_SIGN_GE, COMPARISONS},
                                 {"<", TD_SIGN_LT, COMPARISONS},  {">", TD_SIGN_GT, COMPARISONS},
                                 {"+", TD_SIGN_ADD, SUMS},        {"-", TD_SIGN_SUB, SUMS},
                                 {"*", TD_SIGN_MUL, PRODUCTS},    {"/", TD_SIGN_DIV, PRODUCTS}};

/* The sign that stands next, which is not read; NULL: there is none. */
static const sign_row *next_sign(parser *p) {
    const char *at = skip_space(p);
    if (*at == ')' || *at == ',' || !*at) /* as mostly */
        return NULL;
    for (size_t k = 0; k < sizeof signs / sizeof *signs; k++) {
        size_t n = 1;
        if (*at != *signs[k].text)
            continue;
        while (signs[k].text[n] && at[n] == signs[k].text[n])
            n++;
        if (!signs[k].text[n] && !(td_is_word(*at) && td_is_word(at[n])))
            return &signs[k];
    }
    return NULL;
}

/* Values with signs of this level or a higher one between, from the left. What has been compared is
 * not compared again. */
static int chain(parser *p, int level) {
    int a = unary(p), most = UNARIES;
    for (const sign_row *s = next_sign(p); a && s && s->level >= level && s->level <= most;
         s = next_sign(p)) {
        const char *at = p->at;
        p->at += strlen(s->text);
        int b = chain(p, s->level + 1);
        a = b ? add_sign(p, at, (td_sign)s->sign, a, b) : 0;
        most = s->level == COMPARISONS ? CHOICES : most;
    }
    return a;
}

static int expression(parser *p) {
    return chain(p, CHOICES);
}

/* ---- statements ---- */

static int statement(parser *p) {
    const char *at = skip_space(p);
    int value = expression(p), node = accept_marked(p, at, value, ":", TD_SYNTAX_LABEL);
    if (node == value)
        node = accept_marked(p, at, value, "=", TD_SYNTAX_BINDING);
    if (node != value || !value)
        return node;
    return add(p, (td_syntax){TD_SYNTAX_RESULT, .at = at, .first = value});
}

static bool statements(parser *p) {
    int last = 0;
    do {
        int next = statement(p);
        if (!next)
            return false;
        if (*skip_space(p) && *p->at != ';')
            return fail(p, p->at, "an operator or the end expected");
        *(last ? &p->tree->nodes[last].next : &p->tree->first) = next;
        last = next;
    } while (accept(p, ";") && *skip_space(p));
    return true;
}

bool td_tree_parse(td_source *t, td_tree **out) {
    size_t length = strlen(t->text), nodes = sizeof(td_syntax) * (length + 2);
    td_tree *tree = td_malloc(sizeof *tree + nodes + 2 * length + 1);
    parser p = {.source = t, .tree = tree, .at = t->text};
    *out = NULL;
    if (!tree)
        return td_source_no_memory(t);
    *tree = (td_tree){.nodes = (td_syntax *)(tree + 1)};
    tree->words = tree->end = (char *)tree->nodes + nodes;
    tree->nodes[tree->nnodes++] = (td_syntax){0};
    if (!statements(&p)) {
        td_free(tree);
        return false;
    }
    *out = tree;
    return true;
}
