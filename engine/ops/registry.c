/* registry.c: the table of all operators. */
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/ops/expression.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/schema.h"

#include <string.h>

enum { MAX_OPS = 1024 };

static const td_op *ops[MAX_OPS];
static int op_count;
static td_map by_name;

static bool has_name(const void *op, const void *name) {
    return strcmp(((const td_op *)op)->name, name) == 0;
}

static td_status add_op(const td_operator_entry *entry) {
    td_op *op = entry->op;
    op->name = entry->name;
    op->family = entry->family;
    td_status status = op->params ? TD_OK : td_schema_parse(op); /* an attempt before may have */
    if (status)
        return status;
    if (td_op_find(op->name) || op_count == MAX_OPS)
        return td_fail(TD_EINTERNAL, "operator '%s' stands twice, or there are too many", op->name);
    if (op->kernel && !op->dtypes)
        return td_fail(TD_EINTERNAL, "operator '%s' does not say which dtypes it takes", op->name);
    op->id = (uint16_t)op_count;
    if (op->pointwise) {
        status = op->programs ? TD_OK : td_pointwise_prepare(op);
        if (status)
            return status;
        op->dtypes = op->dtypes ? op->dtypes : TD_DTYPES_ALL;
        op->save_args = op->programs->reads_args;
        op->save_outs = op->programs->reads_out;
        if (op->gradient)
            op->backward = td_pointwise_backward;
    }
    status = td_map_add(&by_name, td_hash_text(op->name), op);
    if (status == TD_OK)
        ops[op_count++] = op;
    return status;
}

/* What needs all operators to be there: expressions name others. */
static td_status finish_op(td_op *op) {
    td_status status = td_expression_check_row(op);
    return status ? status : td_expression_prepare(op);
}

/* The bounds of the section that TD_OPERATOR fills; the linker makes these symbols. */
extern const td_operator_entry *const __start_td_operators[], *const __stop_td_operators[];

static td_status check_aliases(void);

td_status td_op_register_all(void) {
    static int finished; /* where an attempt ran out of memory the next goes on */
    td_status status = TD_OK;
    while (__start_td_operators + op_count < __stop_td_operators && status == TD_OK)
        status = add_op(__start_td_operators[op_count]);
    while (finished < op_count && status == TD_OK) {
        status = finish_op((td_op *)ops[finished]);
        finished += status == TD_OK;
    }
    return status ? status : check_aliases();
}

const td_op *td_op_find(const char *name) {
    return td_map_find(&by_name, td_hash_text(name), has_name, name);
}

int td_op_count(void) {
    return op_count;
}

const td_op *td_op_get(int id) {
    return id >= 0 && id < op_count ? ops[id] : NULL;
}

/* ---- aliases ---- */

extern const td_alias *const __start_td_aliases[], *const __stop_td_aliases[];

int td_alias_count(void) {
    return (int)(__stop_td_aliases - __start_td_aliases);
}

const td_alias *td_alias_get(int k) {
    return k >= 0 && k < td_alias_count() ? __start_td_aliases[k] : NULL;
}

const td_alias *td_alias_find(const char *name) {
    for (int k = 0; k < td_alias_count(); k++) {
        const td_alias *a = __start_td_aliases[k];
        if (!strcmp(a->name, name) || (a->op->inplace_name && !strcmp(a->inplace_name, name)))
            return a;
    }
    return NULL;
}

static td_status check_aliases(void) {
    for (int k = 0; k < td_alias_count(); k++)
        if (td_op_find(td_alias_get(k)->name) ||
            td_alias_find(td_alias_get(k)->name) != td_alias_get(k))
            return td_fail(TD_EINTERNAL, "the alias '%s' stands twice, or is an operator",
                           td_alias_get(k)->name);
    return TD_OK;
}
