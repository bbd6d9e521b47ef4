/* lex.h: Lua's tokens as byte ranges, for text that may be unfinished or wrong. Knows no Lua state.
 */
#ifndef TIDE_LEX_H
#define TIDE_LEX_H

#include <stdbool.h>
#include <stddef.h>

typedef enum lex_kind {
    LEX_END,
    LEX_NAME,
    LEX_KEYWORD,
    LEX_NUMBER,
    LEX_STRING,
    LEX_COMMENT,
    LEX_OP, /* operators and punctuation, and any byte that Lua has no use for */
} lex_kind;

typedef struct lex_token {
    lex_kind kind;
    size_t start, end; /* bytes */
    bool unfinished;   /* a string or long comment whose end is missing */
    bool bracketed;    /* a string or comment in long brackets */
} lex_token;

typedef struct lexer {
    const char *code;
    size_t len, at;
} lexer;

lex_token lex_next(lexer *lx);

extern const char *const lex_keywords[]; /* NULL-terminated */

/* Is token t the operator, keyword or name `text`? */
bool lex_is(const lexer *lx, lex_token t, const char *text);

/* May the unfinished quoted string t go on in the next line (its last escape takes a newline)? */
bool lex_string_goes_on(const lexer *lx, lex_token t);

/* Blocks and brackets that code leaves open, those opened on one line counted once. */
int lex_open_blocks(const char *code, size_t len);

/* What is open at the front of a text that grows; zeroed it is the beginning of one. */
enum { LEX_DEEPEST = 64 };
typedef struct lex_blocks {
    size_t at; /* bytes that were read */
    int depth;
    size_t line, lines[LEX_DEEPEST]; /* at `at`, and on which each open block began; from 0 */
    lex_token last;
} lex_blocks;

/* lex_open_blocks and lex_last of code, whose front was read before. *b moves on to the end of what
 * a longer code begins with as well: its last token may go on. */
int lex_blocks_read(lex_blocks *b, const char *code, size_t len, lex_token *last);

/* What the end of code stands in: '{', '(' or '[', a bracket; 'b', a block; 0: nothing that is
 * open, or more than is followed. */
char lex_innermost(const char *code, size_t len);

/* Start of the last token that is no comment, LEX_END when there is none. */
lex_token lex_last(const char *code, size_t len);

#endif
