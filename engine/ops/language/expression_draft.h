/* expression_draft.h: an expression while it is compiled: the steps so far and what is known of
 * their values. Private to the compiler: expression_parse.c reads texts, expression_draft.c checks
 * and adds what they mean, expression.c seals the result. */
#ifndef TD_OPS_LANGUAGE_EXPRESSION_DRAFT_H
#define TD_OPS_LANGUAGE_EXPRESSION_DRAFT_H

#include "engine/ops/language/expression.h"

#define TD_KIND_BIT(kind) (1u << (kind))
enum {
    TD_KINDS_NUMBER = TD_KIND_BIT(TD_KIND_INT) | TD_KIND_BIT(TD_KIND_FLOAT),
    TD_KINDS_TENSOR = TD_KIND_BIT(TD_KIND_TENSOR),
    TD_KINDS_TENSORS = TD_KIND_BIT(TD_KIND_TENSORS),
    TD_KINDS_SEVERAL = 1 << 15, /* of several results one is still to be named */
    TD_KINDS_TEXT = 160         /* size of a buffer that td_kinds_text fills */
};

enum { TD_DRAFT_BINDINGS = 12, TD_DRAFT_NAME = 48 };

typedef struct td_binding {
    char name[TD_DRAFT_NAME];
    const char *at;
    int step;
    bool read;
} td_binding;

typedef struct td_draft {
    const td_op *op;
    bool backward; /* a gradient; else a formula */
    const char *text, *at;
    td_expression_step steps[TD_EXPRESSION_STEPS];
    uint32_t kinds[TD_EXPRESSION_STEPS]; /* what the value may be */
    bool host[TD_EXPRESSION_STEPS];      /* known before any operator has run */
    uint8_t operands[TD_EXPRESSION_OPERANDS];
    char *chars; /* the strings of constants */
    int nsteps, noperands, nchars, nlists, nbindings, nroots;
    int depth; /* of brackets and signs within one another */
    td_expression_root roots[TD_MAX_PARAMS];
    td_binding bindings[TD_DRAFT_BINDINGS];
} td_draft;

/* Fail with the operator, the place `at` in the text, and what is wrong there: -1 for functions
 * that return the number of a step, false for those that return whether all is well. */
int td_draft_fail(const td_draft *d, const char *at, const char *format, ...) TD_PRINTF(3, 4);
bool td_draft_refuse(const td_draft *d, const char *at, const char *format, ...) TD_PRINTF(3, 4);

/* "a number", "a string or nil": what values of these kinds are. */
const char *td_kinds_text(uint32_t kinds, char *buffer);
uint32_t td_result_kinds(const td_op *op); /* 0: no result */
/* The number of a parameter, of a result (a single one is "out"); -1: there is none. */
int td_op_find_param(const td_op *op, const char *name);
int td_op_find_result(const td_op *op, const char *name);
td_binding *td_draft_find_binding(td_draft *d, const char *name); /* NULL: there is none */

/* The number of the step that makes this value: a new one, or an equal one that stands already.
 * -1: it is not allowed. */
int td_draft_constant(td_draft *d, const char *at, td_value v);
int td_draft_variable(td_draft *d, const char *at, const char *name);
/* x.name; `dim` is the step in x.size(dim), else -1. */
int td_draft_member(td_draft *d, const char *at, int of, const char *name, int dim);
int td_draft_list(td_draft *d, const char *at, int n, const int *entries);
int td_draft_choose(td_draft *d, const char *at, int condition, int then, int otherwise);
int td_draft_error(td_draft *d, const char *at, int n, const int *entries);
/* A call with these arguments, -1 where one is left out; td_draft_find_op says whether it may be
 * called at all (NULL: it failed). */
const td_op *td_draft_find_op(const td_draft *d, const char *at, const char *name);
int td_draft_call(td_draft *d, const char *at, const td_op *op, const int *given);
/* A sign between two values, or before one (b is -1). */
int td_draft_sign(td_draft *d, const char *at, td_sign sign, int a, int b);

/* expression_parse.c: read the whole text; false when it failed. */
bool td_draft_parse(td_draft *d) TD_MUST_CHECK;

#endif
