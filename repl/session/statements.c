/* statements.c: see statements.h. Lua needs nothing between statements: one ends where a token
 * can't go on with it, which two neighbouring tokens tell, if it is known whether what stands
 * before can be called or indexed.
 */
#include "repl/session/statements.h"

#include <string.h>

static bool next_is(const statement_reader *r, const char *text) {
    return lex_is(&r->lx, r->next, text);
}

static bool next_among(const statement_reader *r, const char *const *words) {
    for (; *words; words++)
        if (next_is(r, *words))
            return true;
    return false;
}

static void take(statement_reader *r) {
    r->end = r->next.end;
    do
        r->next = lex_next(&r->lx);
    while (r->next.kind == LEX_COMMENT);
}

static bool at_end(const statement_reader *r) {
    return r->next.kind == LEX_END;
}

void statement_reader_init(statement_reader *r, const char *code, size_t len) {
    *r = (statement_reader){.lx = {code, len, 0}};
    take(r);
    r->end = 0;
}

/* Takes tokens up to the one that closes what the next one opens. */
static void take_balanced(statement_reader *r, const char *const *opens,
                          const char *const *closes) {
    int depth = 0;
    do {
        depth += next_among(r, opens);
        depth -= next_among(r, closes);
        take(r);
    } while (depth > 0 && !at_end(r));
}

static void take_brackets(statement_reader *r) {
    static const char *const opens[] = {"(", "[", "{", NULL};
    static const char *const closes[] = {")", "]", "}", NULL};
    take_balanced(r, opens, closes);
}

static const char *const block_opens[] = {"if", "do", "function", "repeat", NULL};
static const char *const block_closes[] = {"end", "until", NULL};

static void take_block(statement_reader *r) {
    take_balanced(r, block_opens, block_closes);
}

/* Takes an operand or what stands before one; false: neither is there. *ended: it was an operand;
 * *callable: one that may be called or indexed. */
static bool take_operand(statement_reader *r, bool *ended, bool *callable) {
    static const char *const unary[] = {"-", "not", "#", "~", NULL};
    static const char *const values[] = {"nil", "true", "false", "...", NULL};
    *ended = true;
    *callable = r->next.kind == LEX_NAME || next_is(r, "(");
    if (next_is(r, "(") || next_is(r, "{"))
        take_brackets(r);
    else if (next_is(r, "function"))
        take_block(r);
    else if (r->next.kind == LEX_NAME || r->next.kind == LEX_NUMBER || r->next.kind == LEX_STRING ||
             next_among(r, values))
        take(r);
    else if (next_among(r, unary)) {
        *ended = false;
        take(r);
    } else
        return false;
    return true;
}

/* Takes what goes on with an operand; false: nothing does. */
static bool take_continuation(statement_reader *r, bool *ended, bool callable, bool *assigns) {
    static const char *const binary[] = {"+", "-",  "*",  "/",   "//", "%",  "^", "..",
                                         "<", ">",  "<=", ">=",  "==", "~=", "&", "|",
                                         "~", "<<", ">>", "and", "or", ",",  "=", NULL};
    if (callable && (next_is(r, "(") || next_is(r, "[") || next_is(r, "{"))) {
        take_brackets(r);
    } else if (callable && r->next.kind == LEX_STRING) {
        take(r);
    } else if (next_is(r, ".") || next_is(r, ":") || next_among(r, binary)) {
        *assigns = *assigns || next_is(r, "=");
        *ended = false;
        take(r);
    } else {
        return false;
    }
    return true;
}

/* Takes expressions with commas and equals signs between them; whether there was one of these. */
static bool take_expressions(statement_reader *r) {
    bool ended = false, callable = false, assigns = false;
    while (!at_end(r))
        if (!(ended ? take_continuation(r, &ended, callable, &assigns)
                    : take_operand(r, &ended, &callable)))
            break;
    return assigns;
}

/* Reads "name <attribute>"; false: there is no name. */
static bool take_local_name(statement_reader *r, local_name *name) {
    if (r->next.kind != LEX_NAME)
        return false;
    *name = (local_name){.start = r->next.start, .end = r->next.end};
    take(r);
    if (next_is(r, "<")) {
        take(r);
        name->constant = next_is(r, "const");
        name->closed = next_is(r, "close");
        take(r);
        take(r);
    }
    return true;
}

/* Reads "name, name, ..." behind `local` or `local function`. */
static int take_local_names(statement_reader *r, local_name *names, int most) {
    int n = 0;
    local_name name;
    while (take_local_name(r, &name)) {
        if (n < most)
            names[n++] = name;
        if (!next_is(r, ","))
            break;
        take(r);
    }
    return n;
}

int statement_locals(const char *code, size_t len, size_t start, local_name *names, int most) {
    statement_reader r;
    statement_reader_init(&r, code + start, len - start);
    take(&r);
    if (next_is(&r, "function"))
        take(&r);
    int n = take_local_names(&r, names, most);
    for (int i = 0; i < n; i++) {
        names[i].start += start;
        names[i].end += start;
    }
    return n;
}

static statement_kind take_local(statement_reader *r) {
    take(r);
    if (next_is(r, "function")) {
        take_block(r);
        return STATEMENT_LOCAL;
    }
    (void)take_local_names(r, NULL, 0);
    if (next_is(r, "=")) {
        take(r);
        (void)take_expressions(r);
    }
    return STATEMENT_LOCAL;
}

/* A statement that begins with a keyword or a label. */
static statement_kind take_marked(statement_reader *r) {
    static const char *const heads[] = {"while", "for", NULL};
    if (next_is(r, "local"))
        return take_local(r);
    if (next_is(r, "::")) {
        for (int i = 0; i < 3; i++)
            take(r);
    } else if (next_is(r, "return")) {
        take(r);
        (void)take_expressions(r);
    } else if (next_is(r, "goto")) {
        take(r);
        take(r);
    } else if (next_among(r, heads)) {
        while (!at_end(r) && !next_is(r, "do"))
            if (next_is(r, "function"))
                take_block(r);
            else
                take(r);
        take_block(r);
    } else if (next_among(r, block_opens)) {
        bool repeats = next_is(r, "repeat");
        take_block(r);
        if (repeats)
            (void)take_expressions(r);
    } else {
        take(r);
    }
    return STATEMENT_OTHER;
}

/* Does the next token begin an expression, and not a statement of another kind? */
static bool begins_expression(const statement_reader *r) {
    static const char *const words[] = {"not", "nil", "true", "false", NULL};
    return (r->next.kind != LEX_KEYWORD || next_among(r, words)) && !next_is(r, "::");
}

statement statement_next(statement_reader *r) {
    bool apart = r->end == 0;
    while (next_is(r, ";")) {
        take(r);
        apart = true;
    }
    statement found = {.kind = STATEMENT_END, .start = r->next.start, .apart = apart};
    if (at_end(r))
        return found;
    found.apart = apart || memchr(r->lx.code + r->end, '\n', found.start - r->end) != NULL;
    size_t before = r->end;
    if (begins_expression(r))
        found.kind = take_expressions(r) ? STATEMENT_OTHER : STATEMENT_EXPRESSION;
    else
        found.kind = take_marked(r);
    if (r->end == before) { /* no statement of Lua's: what is left is one */
        take(r);
        found.kind = STATEMENT_OTHER;
    }
    found.end = r->end;
    return found;
}
