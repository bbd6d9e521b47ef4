/* draft.h: a text while it is compiled: its tree, the steps that it means and what is known of
 * their values. Private to the language, and to those who compile gradients one by one.
 *
 * Steps are operators, or primitives where operands have names. draft.c makes steps and checks what
 * they are given, statements.c takes the tree apart; expression.c seals operators as an expression,
 * formula.c makes a program of primitives. Steps and nodes have numbers from 1: 0 is none, and what
 * functions return that have failed.
 */
#ifndef TD_OPS_LANGUAGE_DRAFT_H
#define TD_OPS_LANGUAGE_DRAFT_H

#include "engine/core/memory.h"
#include "engine/ops/language/expression.h"
#include "engine/ops/language/program.h"
#include "engine/ops/language/syntax.h"

#define TD_KIND_BIT(kind) (1u << (kind))
enum {
    TD_KINDS_NUMBER = TD_KIND_BIT(TD_KIND_INT) | TD_KIND_BIT(TD_KIND_FLOAT),
    TD_KINDS_TENSOR = TD_KIND_BIT(TD_KIND_TENSOR),
    TD_KINDS_TENSORS = TD_KIND_BIT(TD_KIND_TENSORS),
    TD_KINDS_ELEMENTS = TD_KINDS_NUMBER | TD_KINDS_TENSOR, /* what primitives read and make */
    TD_KINDS_SEVERAL = 1 << 15, /* of several results one is still to be named */
    TD_KINDS_TEXT = 160         /* size of a buffer that td_kinds_text fills */
};

/* kinds.c: "a number", "a string or nil": what values of these kinds are. */
const char *td_kinds_text(uint32_t kinds, char *buffer);
uint32_t td_result_kinds(const td_op *op); /* 0: no result */
/* The number of a parameter, of a result (a single one is "out"); -1: there is none. */
int td_op_find_param(const td_op *op, const char *name);
int td_op_find_result(const td_op *op, const char *name);

enum { TD_DRAFT_LISTS = 64 };

typedef struct td_draft_step {
    td_expression_step step;
    uint32_t kinds; /* what the value may be */
    uint16_t next;  /* of the steps that may be equal to it, the one before it */
    bool host;      /* known before any operator has run */
} td_draft_step;

typedef struct td_draft {
    td_source source;
    const char *const *names; /* of operands; NULL: steps are operators */
    int nnames;
    td_tree *tree;
    int *made, *entries;            /* by node: its step; room for as many others */
    td_list steps, operands, roots; /* of td_draft_step, uint16_t, td_expression_root */
    uint16_t alike[TD_DRAFT_LISTS]; /* the last steps of lists in which equal ones are found */
} td_draft;

static inline td_draft_step *td_draft_at(const td_draft *d, int step) {
    return (td_draft_step *)d->steps.items + step - 1;
}
static inline const uint16_t *td_draft_operands(const td_draft *d, int step) {
    const uint16_t *items = d->operands.items; /* NULL: no step has any */
    return items ? items + td_draft_at(d, step)->step.first : NULL;
}
static inline td_expression_root *td_draft_root(const td_draft *d, int root) {
    return (td_expression_root *)d->roots.items + root;
}

/* Begin a draft: in steps that are operators, or in primitives over operands of these names. */
void td_draft_init(td_draft *d, const td_op *op, td_source_kind kind, int nnames,
                   const char *const *names);
void td_draft_clear(td_draft *d);
/* Read a text: its tree takes the place of the former one, the steps of that stay. */
bool td_draft_parse(td_draft *d, const char *text) TD_MUST_CHECK;
/* Add the steps of the tree: of labelled expressions those alone whose parameters or results are
 * among `labels`, a bit each. Where these are all, everything must have been read, and no
 * expression be missing. */
#define TD_ALL_LABELS UINT32_MAX
bool td_draft_compile(td_draft *d, uint32_t labels) TD_MUST_CHECK;
/* Forget the steps; the tree stays. */
void td_draft_restart(td_draft *d);
/* formula.c: the steps as a program, with an output for each root. *out is new. */
td_status td_draft_program(const td_draft *d, const td_program **out) TD_MUST_CHECK;

/* ---- steps: draft.c for statements.c ----
 *
 * The step that makes this value: a new one, or an equal one that stands already. What is wrong is
 * so at source.at. */

int td_draft_constant(td_draft *d, td_value v);
int td_draft_variable(td_draft *d, const char *name);        /* that is no binding */
int td_draft_find_name(const td_draft *d, const char *name); /* of an operand; -1: there is none */
int td_draft_member(td_draft *d, int of, const char *name, int dim); /* x.name, x.size(dim) */
int td_draft_list(td_draft *d, int n, const int *entries);
int td_draft_choose(td_draft *d, int condition, int then, int otherwise);
int td_draft_error(td_draft *d, int n, const int *entries);
int td_draft_sign(td_draft *d, td_sign sign, int a, int b);

/* What a call names: an operator, or what stands for a primitive as one; NULL: it may not. */
const td_op *td_draft_find(td_draft *d, const char *name);
/* A call with these arguments, 0 where one is left out. */
int td_draft_call(td_draft *d, const td_op *op, const int *given);
td_primitive td_draft_primitive(const td_expression_step *call);

#endif
