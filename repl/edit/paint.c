/* paint.c: see paint.h. */
#include "repl/edit/paint.h"

#include "repl/session/lex.h"

#include <stdlib.h>
#include <string.h>

const char *const style_sequences[N_STYLES] = {
    [STYLE_PLAIN] = "",           [STYLE_PROMPT] = "\x1b[1;34m", [STYLE_PROMPT_NEXT] = "\x1b[34m",
    [STYLE_KEYWORD] = "\x1b[35m", [STYLE_CONSTANT] = "\x1b[36m", [STYLE_STRING] = "\x1b[32m",
    [STYLE_NUMBER] = "\x1b[36m",  [STYLE_COMMENT] = "\x1b[90m",  [STYLE_CALL] = "\x1b[34m",
    [STYLE_MAGIC] = "\x1b[33m",   [STYLE_MATCH] = "\x1b[1;4m",   [STYLE_ODD] = "\x1b[31m",
    [STYLE_GHOST] = "\x1b[90m",   [STYLE_HINT] = "\x1b[90m",     [STYLE_CHOSEN] = "\x1b[7m",
    [STYLE_FOUND] = "\x1b[1;4m",  [STYLE_CURRENT] = "\x1b[1m",
};

/* A bracket, or a word that begins a block. */
typedef struct opener {
    size_t start, end;
} opener;

/* Those that are open where the painter is. */
typedef struct openers {
    opener *items;
    size_t n, room;
} openers;

typedef struct painter {
    lexer lx;
    char *styles;
    size_t cursor;
    size_t bracket; /* the one that the cursor is at; len: none */
    openers open;
} painter;

static void fill(painter *p, size_t start, size_t end, style s) {
    memset(p->styles + start, s, end - start);
}

static style keyword_style(const painter *p, lex_token t) {
    bool constant =
        lex_is(&p->lx, t, "nil") || lex_is(&p->lx, t, "true") || lex_is(&p->lx, t, "false");
    return constant ? STYLE_CONSTANT : STYLE_KEYWORD;
}

/* A name that is called: a parenthesis, a string or a table follows. */
static style name_style(const painter *p) {
    lexer ahead = p->lx;
    lex_token next = lex_next(&ahead);
    bool called = next.kind == LEX_STRING || lex_is(&ahead, next, "(") || lex_is(&ahead, next, "{");
    return called ? STYLE_CALL : STYLE_PLAIN;
}

static bool push(openers *open, lex_token t) {
    if (open->n == open->room) {
        size_t room = open->room * 2 + 32;
        opener *grown = realloc(open->items, room * sizeof *grown);
        if (!grown)
            return false;
        open->items = grown;
        open->room = room;
    }
    open->items[open->n++] = (opener){t.start, t.end};
    return true;
}

static bool are_partners(char open, char close) {
    return (open == '(' && close == ')') || (open == '[' && close == ']') ||
           (open == '{' && close == '}');
}

/* A closing bracket: what it closes is taken off, and both are shown where the cursor is at one. */
static void close_bracket(painter *p, size_t place) {
    char close = p->lx.code[place];
    if (p->open.n == 0 || !are_partners(p->lx.code[p->open.items[p->open.n - 1].start], close)) {
        p->styles[place] = STYLE_ODD;
        return;
    }
    size_t partner = p->open.items[--p->open.n].start;
    if (p->bracket == place || p->bracket == partner)
        p->styles[place] = p->styles[partner] = STYLE_MATCH;
}

static bool begins_block(const painter *p, lex_token t) {
    return lex_is(&p->lx, t, "do") || lex_is(&p->lx, t, "function") || lex_is(&p->lx, t, "if") ||
           lex_is(&p->lx, t, "repeat");
}

/* Is the cursor in a word or behind it, and at no bracket? */
static bool at_cursor(const painter *p, opener word) {
    return p->bracket == p->lx.len && p->cursor >= word.start && p->cursor <= word.end;
}

/* end, or the until of a repeat: as a closing bracket, but one without a partner is no error yet
 * where lines above it are still to be written. */
static void close_block(painter *p, opener word, bool until) {
    opener *top = p->open.n ? &p->open.items[p->open.n - 1] : NULL;
    size_t len = top ? top->end - top->start : 0;
    bool block = len > 1, repeats = len == sizeof "repeat" - 1; /* no other opener is as long */
    if (!block || repeats != until)
        return;
    p->open.n--;
    if (!at_cursor(p, word) && !at_cursor(p, *top))
        return;
    fill(p, word.start, word.end, STYLE_MATCH);
    fill(p, top->start, top->end, STYLE_MATCH);
}

static bool paint_keyword(painter *p, lex_token t) {
    fill(p, t.start, t.end, keyword_style(p, t));
    if (begins_block(p, t))
        return push(&p->open, t);
    bool until = lex_is(&p->lx, t, "until");
    if (until || lex_is(&p->lx, t, "end"))
        close_block(p, (opener){t.start, t.end}, until);
    return true;
}

static bool paint_operator(painter *p, lex_token t) {
    char c = p->lx.code[t.start];
    if (t.end - t.start != 1)
        return true;
    if (strchr("([{", c) && c)
        return push(&p->open, t);
    if (strchr(")]}", c) && c)
        close_bracket(p, t.start);
    else if (strchr("$`\\?!", c) || (unsigned char)c >= 0x80)
        p->styles[t.start] = STYLE_ODD;
    return true;
}

static bool paint_token(painter *p, lex_token t) {
    switch (t.kind) {
    case LEX_KEYWORD:
        return paint_keyword(p, t);
    case LEX_NUMBER:
        fill(p, t.start, t.end, STYLE_NUMBER);
        break;
    case LEX_STRING:
        fill(p, t.start, t.end, STYLE_STRING);
        break;
    case LEX_COMMENT:
        fill(p, t.start, t.end, STYLE_COMMENT);
        break;
    case LEX_NAME:
        fill(p, t.start, t.end, name_style(p));
        break;
    case LEX_OP:
        return paint_operator(p, t);
    case LEX_END:
        break;
    }
    return true;
}

/* A line that begins with % or ? is a magic or a question: its name is shown so, the rest is Lua or
 * none. Returns where the rest begins. */
static size_t paint_magic(painter *p, const char *code, size_t len) {
    size_t at = 0;
    while (at < len && (code[at] == ' ' || code[at] == '\t'))
        at++;
    if (at == len || (code[at] != '%' && code[at] != '?' && code[at] != '!'))
        return 0;
    size_t end = at;
    while (end < len && !strchr(" \t\n", code[end]))
        end++;
    fill(p, at, end, STYLE_MAGIC);
    return end;
}

static bool is_bracket(const char *code, size_t len, size_t at) {
    return at < len && code[at] && strchr("()[]{}", code[at]);
}

bool paint(bytes *styles, const char *code, size_t len, size_t cursor) {
    styles->len = 0;
    if (len == 0)
        return true;
    if (!bytes_set(styles, code, len))
        return false;
    painter p = {.lx = {code, len, 0}, .styles = styles->at, .cursor = cursor, .bracket = len};
    fill(&p, 0, len, STYLE_PLAIN);
    if (is_bracket(code, len, cursor))
        p.bracket = cursor;
    else if (cursor > 0 && is_bracket(code, len, cursor - 1))
        p.bracket = cursor - 1;
    p.lx.at = paint_magic(&p, code, len);
    bool painted = true;
    for (lex_token t = lex_next(&p.lx); painted && t.kind != LEX_END; t = lex_next(&p.lx))
        painted = paint_token(&p, t);
    free(p.open.items);
    return painted;
}
