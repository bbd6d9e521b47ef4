/* transcript.c: see transcript.h. A line without a prompt was printed, unless what was entered
 * before it is unfinished.
 */
#include "repl/session/transcript.h"
#include "repl/session/lex.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char MARK[] = "\xEF\xBB\xBF";
/* What stands around a value that another input comes behind. */
static const char BEFORE[] = "do local _ = ", BEHIND[] = " end";

/* What inputs begin with, and what their further lines do. */
static const char *const prompts[][2] = {
    {"tide>", "....>"}, {">>>", "..."}, {">", ">>"}, {"In [", "...:"}};
enum { KINDS = sizeof prompts / sizeof *prompts };

/* Length of the prompt that a line begins with, with the blank behind it; 0: it begins with none.
 */
static size_t prompt_length(const char *line, size_t len, const char *prompt) {
    size_t at = 0, n = strlen(prompt);
    while (at < len && line[at] == ' ')
        at++;
    if (len - at < n || memcmp(line + at, prompt, n) != 0)
        return 0;
    at += n;
    if (prompt[n - 1] == '[') { /* its number, and "]:" */
        while (at < len && line[at] >= '0' && line[at] <= '9')
            at++;
        if (len - at < 2 || memcmp(line + at, "]:", 2) != 0)
            return 0;
        at += 2;
    }
    if (at < len && line[at] != ' ' && line[at] != '\r')
        return 0;
    return at < len && line[at] == ' ' ? at + 1 : at;
}

static size_t line_length(const char *text, size_t len) {
    const char *newline = memchr(text, '\n', len);
    return newline ? (size_t)(newline - text) : len;
}

/* The kind of the prompt that the first line begins with which is not blank; KINDS: none. */
static int find_kind(const char *code, size_t len) {
    size_t at = 0;
    int kind = 0;
    while (at < len && strchr(" \t\r\n", code[at]) && code[at])
        at++;
    size_t n = line_length(code + at, len - at);
    while (kind < KINDS && prompt_length(code + at, n, prompts[kind][0]) == 0)
        kind++;
    return kind;
}

/* Is text the beginning of something that goes on in the next line? */
static bool is_unfinished(const char *text, size_t len) {
    lex_token last = lex_last(text, len);
    return lex_open_blocks(text, len) > 0 || (last.kind == LEX_STRING && last.unfinished);
}

/* Is text a value that stands for no statement: x, 1 + 1, x[1], a, b? Lua has no such line within
 * others. A call is a statement. */
static bool is_value(const char *text, size_t len) {
    static const char *const words[] = {"and", "or", "not", "nil", "true", "false"};
    lexer lx = {.code = text, .len = len};
    int depth = 0;
    bool operators = false, prefix = false, call = false, any = false;
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx)) {
        const char c = text[t.start];
        bool word = t.kind != LEX_KEYWORD, opens = t.kind == LEX_OP && strchr("([{", c);
        if (t.kind == LEX_COMMENT)
            continue;
        for (size_t k = 0; k < sizeof words / sizeof *words; k++)
            word |= lex_is(&lx, t, words[k]);
        if (depth == 0 && (!word || lex_is(&lx, t, "=") || lex_is(&lx, t, ";") ||
                           (t.kind == LEX_OP && strchr("?!@$\\`", c)) ||
                           (!any && t.kind == LEX_OP && strchr("%*/", c))))
            return false; /* statements, magics, questions */
        if (depth == 0) {
            call = prefix && (t.kind == LEX_STRING || (opens && c != '['));
            operators |= t.kind == LEX_KEYWORD || (t.kind == LEX_OP && !strchr("([{.:", c)) ||
                         lex_is(&lx, t, "..");
        }
        depth += opens ? 1 : t.kind == LEX_OP && strchr(")]}", c) ? -1 : 0;
        prefix =
            t.kind == LEX_NAME || t.kind == LEX_STRING || (t.kind == LEX_OP && strchr(")]}", c));
        any = true;
    }
    return any && depth == 0 && (operators || !call);
}

/* A value within the text becomes a statement: the last input alone is shown. Returns the new
 * length of the input. */
static size_t make_statement(char *input, size_t len) {
    if (!is_value(input, len))
        return len;
    size_t end = lex_last(input, len).end;
    memmove(input + end + sizeof BEHIND - 1, input + end, len - end);
    memcpy(input + end, BEHIND, sizeof BEHIND - 1);
    memmove(input + sizeof BEFORE - 1, input, len + sizeof BEHIND - 1);
    memcpy(input, BEFORE, sizeof BEFORE - 1);
    return len + sizeof BEFORE + sizeof BEHIND - 2;
}

/* Copies what was entered to `to`; its length. */
static size_t copy_entered(const char *code, size_t len, int kind, char *to) {
    size_t used = 0, input = 0; /* input: where the last one begins in `to` */
    bool goes_on = false;
    for (size_t at = 0, n; at < len; at += n + 1) {
        n = line_length(code + at, len - at);
        size_t first = prompt_length(code + at, n, prompts[kind][0]);
        size_t skip = first ? first : prompt_length(code + at, n, prompts[kind][1]);
        if (first) {
            used = input + make_statement(to + input, used - input);
            input = used;
        }
        if (skip || goes_on) {
            memcpy(to + used, code + at + skip, n - skip);
            used += n - skip;
            goes_on = is_unfinished(to + input, used - input);
        }
        if (at + n < len)
            to[used++] = '\n';
    }
    return used;
}

/* Bytes for the code where each of its lines is a value. */
static size_t room_for(const char *code, size_t len) {
    size_t lines = 1;
    for (size_t at = 0; at < len; at++)
        lines += code[at] == '\n';
    return len + lines * (sizeof BEFORE + sizeof BEHIND) + 1;
}

char *transcript_plain(const char **code, size_t *len) {
    const size_t mark = sizeof MARK - 1;
    if (*len >= mark && memcmp(*code, MARK, mark) == 0) {
        *code += mark;
        *len -= mark;
    }
    int kind = find_kind(*code, *len);
    char *plain = kind < KINDS ? malloc(room_for(*code, *len)) : NULL;
    if (!plain)
        return NULL;
    *len = copy_entered(*code, *len, kind, plain);
    plain[*len] = '\0';
    *code = plain;
    return plain;
}
