/* scalars.h: operators of graphs on numbers, bools, strings and lists (scalars.def). */
#ifndef TD_SCRIPT_SCALARS_H
#define TD_SCRIPT_SCALARS_H

#include "engine/script/boxes.h"
#include "engine/script/ir.h"

typedef enum td_scalar_acts {
    TD_SCALAR_PURE,  /* its result follows from its arguments, and it never fails */
    TD_SCALAR_FAILS, /* the same where it does not fail */
    TD_SCALAR_READS, /* it reads a list or a tensor that others may write */
    TD_SCALAR_WRITES /* it writes its first argument */
} td_scalar_acts;

/* Arguments are borrowed, the result is the caller's. */
typedef td_status (*td_scalar_fn)(int n, const td_value *args, td_value *out);

struct td_scalar {
    const char *name;
    const char *parameters; /* as in scalars.def */
    char result;
    uint8_t acts; /* td_scalar_acts */
    td_scalar_fn run;
    const char *doc;
};

/* All rows, from 0. */
int td_scalar_count(void);
const td_scalar *td_scalar_get(int k);

/* The first row of that name (of that length) that takes values of these types; NULL: none. */
const td_scalar *td_scalar_find(const char *name, size_t length, int n,
                                td_ir_value *const *arguments);
/* Does a row take values of these types? */
bool td_scalar_takes(const td_scalar *s, int n, td_ir_value *const *arguments);
/* May what it makes of them have this type? */
bool td_scalar_gives(const td_scalar *s, int n, td_ir_value *const *arguments,
                     const td_ir_type *type);
/* The kinds of values that its k-th argument may be of, a bit each: wider types than a row's stand
 * where types are not known, so whoever runs it looks at the values. */
uint64_t td_scalar_kinds(const td_scalar *s, int k);
/* What it then makes, in the graph's memory; NULL: nothing, or memory has run out. */
const td_ir_type *td_scalar_result(const td_scalar *s, td_ir_graph *g, int n,
                                   td_ir_value *const *arguments);

#endif
