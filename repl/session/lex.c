/* lex.c: see lex.h. The rules are those of Lua 5.4's llex.c. */
#include "repl/session/lex.h"

#include <string.h>

const char *const lex_keywords[] = {"and",   "break", "do",       "else",  "elseif", "end",
                                    "false", "for",   "function", "goto",  "if",     "in",
                                    "local", "nil",   "not",      "or",    "repeat", "return",
                                    "then",  "true",  "until",    "while", NULL};

static bool is_name_start(unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(unsigned char c) {
    return c >= '0' && c <= '9';
}

static bool is_name_part(unsigned char c) {
    return is_name_start(c) || is_digit(c);
}

static bool is_space(unsigned char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static int peek(const lexer *lx, size_t ahead) {
    return lx->at + ahead < lx->len ? (unsigned char)lx->code[lx->at + ahead] : -1;
}

/* Level of a long bracket that opens here, -1 when none does. */
static int bracket_level(const lexer *lx) {
    if (peek(lx, 0) != '[')
        return -1;
    int level = 0;
    while (peek(lx, (size_t)level + 1) == '=')
        level++;
    return peek(lx, (size_t)level + 1) == '[' ? level : -1;
}

/* Reads past a long bracket of that level; false when it isn't closed. */
static bool skip_long(lexer *lx, int level) {
    lx->at += (size_t)level + 2;
    while (lx->at < lx->len) {
        if (lx->code[lx->at++] != ']')
            continue;
        int seen = 0;
        while (seen < level && peek(lx, (size_t)seen) == '=')
            seen++;
        if (seen == level && peek(lx, (size_t)seen) == ']') {
            lx->at += (size_t)seen + 1;
            return true;
        }
    }
    return false;
}

/* Reads past a quoted string; false when its line ends first. */
static bool skip_quoted(lexer *lx) {
    char quote = lx->code[lx->at++];
    while (lx->at < lx->len) {
        char c = lx->code[lx->at];
        if (c == '\n' || c == '\r')
            return false;
        lx->at++;
        if (c == quote)
            return true;
        if (c != '\\' || lx->at >= lx->len)
            continue;
        if (lx->code[lx->at++] == 'z')
            while (lx->at < lx->len && is_space((unsigned char)lx->code[lx->at]))
                lx->at++;
    }
    return false;
}

bool lex_string_goes_on(const lexer *lx, lex_token t) {
    for (size_t at = t.start + 1; at < t.end;) {
        if (lx->code[at++] != '\\')
            continue;
        char escaped = at < t.end ? lx->code[at++] : '\n';
        if (escaped == 'z')
            while (at < t.end && is_space((unsigned char)lx->code[at]))
                at++;
        if (at == t.end && (escaped == 'z' || escaped == '\n' || escaped == '\r'))
            return true;
    }
    return false;
}

static void skip_number(lexer *lx) {
    const char *exponents = "eE";
    if (peek(lx, 0) == '0' && (peek(lx, 1) == 'x' || peek(lx, 1) == 'X')) {
        exponents = "pP";
        lx->at += 2;
    }
    for (;;) {
        int c = peek(lx, 0);
        if (c > 0 && strchr(exponents, c)) {
            lx->at++;
            if (peek(lx, 0) == '+' || peek(lx, 0) == '-')
                lx->at++;
        } else if (c == '.' || (c > 0 && is_name_part((unsigned char)c))) {
            lx->at++;
        } else {
            return;
        }
    }
}

static void skip_operator(lexer *lx) {
    int first = peek(lx, 0), second = peek(lx, 1);
    bool same = first == second && strchr("./:<>", first) && first;
    bool compared = second == '=' && strchr("=~<>", first) && first;
    lx->at += same || compared ? 2 : 1;
    if (same && first == '.' && peek(lx, 0) == '.')
        lx->at++;
}

/* Is the text of len bytes the word, which ends in NUL? Most texts differ in the first byte. */
static bool is_word(const char *text, size_t len, const char *word) {
    return len > 0 && text[0] == word[0] && strncmp(text, word, len) == 0 && word[len] == '\0';
}

static lex_kind name_kind(const char *name, size_t len) {
    enum { SHORTEST = 2, LONGEST = 8 };
    for (int i = 0; len >= SHORTEST && len <= LONGEST && lex_keywords[i]; i++)
        if (is_word(name, len, lex_keywords[i]))
            return LEX_KEYWORD;
    return LEX_NAME;
}

static lex_token finish(lexer *lx, lex_token t, lex_kind kind) {
    t.kind = kind;
    t.end = lx->at;
    return t;
}

static lex_token read_comment(lexer *lx, lex_token t) {
    lx->at += 2;
    int level = bracket_level(lx);
    t.bracketed = level >= 0;
    if (t.bracketed) {
        t.unfinished = !skip_long(lx, level);
    } else {
        while (lx->at < lx->len && lx->code[lx->at] != '\n')
            lx->at++;
    }
    return finish(lx, t, LEX_COMMENT);
}

lex_token lex_next(lexer *lx) {
    while (lx->at < lx->len && is_space((unsigned char)lx->code[lx->at]))
        lx->at++;
    lex_token t = {.start = lx->at};
    int c = peek(lx, 0);
    if (c < 0)
        return finish(lx, t, LEX_END);
    if (is_name_start((unsigned char)c)) {
        while (peek(lx, 0) >= 0 && is_name_part((unsigned char)peek(lx, 0)))
            lx->at++;
        return finish(lx, t, name_kind(lx->code + t.start, lx->at - t.start));
    }
    if (is_digit((unsigned char)c) ||
        (c == '.' && peek(lx, 1) >= 0 && is_digit((unsigned char)peek(lx, 1)))) {
        skip_number(lx);
        return finish(lx, t, LEX_NUMBER);
    }
    if (c == '-' && peek(lx, 1) == '-')
        return read_comment(lx, t);
    if (c == '"' || c == '\'') {
        t.unfinished = !skip_quoted(lx);
        return finish(lx, t, LEX_STRING);
    }
    int level = bracket_level(lx);
    if (level >= 0) {
        t.bracketed = true;
        t.unfinished = !skip_long(lx, level);
        return finish(lx, t, LEX_STRING);
    }
    skip_operator(lx);
    return finish(lx, t, LEX_OP);
}

bool lex_is(const lexer *lx, lex_token t, const char *text) {
    return t.kind != LEX_STRING && t.kind != LEX_COMMENT &&
           is_word(lx->code + t.start, t.end - t.start, text);
}

/* +1: t opens a block or bracket; -1: closes one; 0: neither. */
static int nesting(const lexer *lx, lex_token t) {
    static const char *const opens[] = {"function", "do", "then", "else", "repeat", "(", "{", "["};
    static const char *const closes[] = {"end", "until", "elseif", "else", ")", "}", "]"};
    if (t.kind != LEX_KEYWORD && t.kind != LEX_OP)
        return 0;
    for (size_t i = 0; i < sizeof opens / sizeof *opens; i++)
        if (lex_is(lx, t, opens[i]))
            return 1;
    for (size_t i = 0; i < sizeof closes / sizeof *closes; i++)
        if (lex_is(lx, t, closes[i]))
            return -1;
    return 0;
}

static void take_token(lex_blocks *b, const lexer *lx, lex_token t) {
    for (size_t at = b->at; at < t.start; at++)
        b->line += lx->code[at] == '\n';
    int change = nesting(lx, t);
    if (lex_is(lx, t, "else") && b->depth > 0)
        b->depth--;
    if (change > 0 && b->depth < LEX_DEEPEST)
        b->lines[b->depth++] = b->line;
    else if (change < 0 && b->depth > 0)
        b->depth--;
    for (size_t at = t.start; at < t.end; at++)
        b->line += lx->code[at] == '\n';
    b->at = t.end;
    if (t.kind != LEX_COMMENT)
        b->last = t;
}

int lex_blocks_read(lex_blocks *b, const char *code, size_t len, lex_token *last) {
    lexer lx = {code, len, b->at};
    lex_blocks now = *b;
    for (lex_token t = lex_next(&lx), next; t.kind != LEX_END; t = next) {
        take_token(&now, &lx, t);
        next = lex_next(&lx);
        if (next.kind != LEX_END) /* t has ended */
            *b = now;
    }
    int open = 0;
    for (int i = 0; i < now.depth; i++)
        open += i == 0 || now.lines[i] != now.lines[i - 1];
    *last = now.last;
    return open;
}

int lex_open_blocks(const char *code, size_t len) {
    lex_blocks b = {0};
    lex_token last;
    return lex_blocks_read(&b, code, len, &last);
}

char lex_innermost(const char *code, size_t len) {
    char open[LEX_DEEPEST];
    int depth = 0;
    lexer lx = {code, len, 0};
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx)) {
        bool again = lex_is(&lx, t, "else");
        int change = nesting(&lx, t);
        if ((again || change < 0) && depth > 0)
            depth--;
        if (change > 0 && depth == LEX_DEEPEST)
            return 0;
        if (change > 0)
            open[depth++] = t.kind == LEX_OP ? code[t.start] : 'b';
    }
    return depth > 0 ? open[depth - 1] : 0;
}

lex_token lex_last(const char *code, size_t len) {
    lexer lx = {code, len, 0};
    lex_token last = {LEX_END, len, len, false, false};
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx))
        if (t.kind != LEX_COMMENT)
            last = t;
    return last;
}
