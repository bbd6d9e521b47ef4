/* syntax.h: from a text to its tree. The grammar is in expression.h. Knows neither names nor kinds:
 * what a tree means is said by draft.h.
 */
#ifndef TD_OPS_LANGUAGE_SYNTAX_H
#define TD_OPS_LANGUAGE_SYNTAX_H

#include "engine/ops/op.h"

#include <string.h>

/* What a text is for, and how its failures are told. */
typedef enum td_source_kind {
    TD_SOURCE_FORMULA,
    TD_SOURCE_GRADIENT,
    TD_SOURCE_UPDATES
} td_source_kind;
typedef struct td_source {
    const char *text, *at; /* at: the place that a failure speaks of */
    const td_op *op;       /* whose text it is; NULL: a formula by itself */
    td_source_kind kind;
    td_status wrong;  /* the code of a text that is wrong */
    td_status status; /* TD_OK until something fails */
} td_source;

/* Fail with the operator, the place and what is wrong there; false. */
bool td_source_fail(td_source *t, const char *format, ...) TD_PRINTF(2, 3);
/* Likewise for want of memory. */
bool td_source_no_memory(td_source *t);

typedef enum td_sign {
    TD_SIGN_NONE,
    TD_SIGN_ADD,
    TD_SIGN_SUB,
    TD_SIGN_MUL,
    TD_SIGN_DIV,
    TD_SIGN_POW,
    TD_SIGN_NEG,
    TD_SIGN_EQ, /* comparisons from here on */
    TD_SIGN_NE,
    TD_SIGN_LT,
    TD_SIGN_LE,
    TD_SIGN_GT,
    TD_SIGN_GE,
    TD_SIGN_AND, /* of the parser alone */
    TD_SIGN_OR
} td_sign;

typedef enum td_syntax_type {
    TD_SYNTAX_CONSTANT, /* constant */
    TD_SYNTAX_NAME,     /* word */
    TD_SYNTAX_SIGN,     /* sign; operands: one or two */
    TD_SYNTAX_AND,      /* operands: two, as of the next */
    TD_SYNTAX_OR,
    TD_SYNTAX_MEMBER, /* word; operands: of what, and what stands in brackets behind the word */
    TD_SYNTAX_CALL,   /* word; operands: arguments */
    TD_SYNTAX_IF,     /* likewise, as the next */
    TD_SYNTAX_ERROR,
    TD_SYNTAX_ARGUMENT, /* word; operand: what is given by that name */
    TD_SYNTAX_LIST,     /* operands: entries */
    TD_SYNTAX_LABEL,    /* a statement, as the next two; word; operand */
    TD_SYNTAX_BINDING,  /* word; operand */
    TD_SYNTAX_RESULT    /* operand */
} td_syntax_type;

/* A node. Nodes have numbers from 1, each has a higher one than its operands, and operands have
 * them from the left to the right: in the order of their numbers nodes may be computed. */
typedef struct td_syntax {
    uint8_t type, sign;
    bool read;       /* of bindings: some name was this */
    int first, next; /* its first operand, the next operand of whose operand it is; 0: none */
    const char *at;  /* its place in the text: of signs and members that of the sign or word */
    const char *word;
    td_value constant;
} td_syntax;

/* The tree of a text, in one block. */
typedef struct td_tree {
    int nnodes; /* with a node 0, which is none */
    int first;  /* the first statement; others follow by `next` */
    td_syntax *nodes;
    char *words, *end; /* names and strings, one after the other */
} td_tree;

/* Names are compared often, and seldom begin alike. */
static inline bool td_is_name(const char *a, const char *b) {
    return *a == *b && !strcmp(a, b);
}

/* *out is new, NULL when the text is wrong; td_free it. What it points to lives as long as it and
 * the text. */
bool td_tree_parse(td_source *t, td_tree **out) TD_MUST_CHECK;

#endif
