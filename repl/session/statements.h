/* statements.h: the statements of an input at its top level, found by their tokens. Knows no Lua
 * state. What it says of text that does not compile means nothing.
 */
#ifndef TIDE_STATEMENTS_H
#define TIDE_STATEMENTS_H

#include "repl/session/lex.h"

typedef enum statement_kind {
    STATEMENT_END,        /* there is none */
    STATEMENT_LOCAL,      /* local names [= expressions], local function */
    STATEMENT_EXPRESSION, /* a call; or an expression, which Lua takes for no statement */
    STATEMENT_OTHER,
} statement_kind;

typedef struct statement {
    statement_kind kind;
    size_t start, end; /* bytes, from the first token to the end of the last */
    bool apart;        /* begins a line or stands behind a semicolon */
} statement;

typedef struct statement_reader {
    lexer lx;
    lex_token next; /* the token that was not taken yet */
    size_t end;     /* of the one before */
} statement_reader;

void statement_reader_init(statement_reader *r, const char *code, size_t len);
statement statement_next(statement_reader *r);

/* A name that a local statement declares. */
typedef struct local_name {
    size_t start, end;
    bool constant, closed; /* <const>, <close> */
} local_name;

/* The names of the local statement of code that starts at `start`, at most `most`; their number. */
int statement_locals(const char *code, size_t len, size_t start, local_name *names, int most);

#endif
