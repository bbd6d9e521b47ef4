/* register.c: rows become operators: schemas are parsed, formulas compiled, and what a row claims
 * is checked. */
#include "engine/ops/language/expression.h"
#include "engine/ops/language/schema.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/ops/registry.h"

#include <pthread.h>
#include <string.h>

static td_status check_aliases(void) {
    for (int k = 0; k < td_alias_count(); k++)
        if (td_op_find(td_alias_get(k)->name) ||
            td_alias_find(td_alias_get(k)->name) != td_alias_get(k))
            return td_fail(TD_EINTERNAL, "the alias '%s' stands twice, or is an operator",
                           td_alias_get(k)->name);
    return TD_OK;
}

static td_status add_op(const td_operator_entry *entry) {
    td_op *op = entry->op;
    op->name = entry->name;
    op->family = entry->family;
    td_status status = op->params ? TD_OK : td_schema_parse(op); /* an attempt before may have */
    if (status)
        return status;
    if (op->kernel && !op->dtypes)
        return td_fail(TD_EINTERNAL, "operator '%s' does not say which dtypes it takes", op->name);
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
    return td_registry_add(op);
}

/* What needs all operators to be there: expressions name others. */
static td_status finish_op(td_op *op) {
    td_status status = td_expression_check_row(op);
    return status ? status : td_expression_prepare(op);
}

/* The bounds of the section that TD_OPERATOR fills; the linker makes these symbols. */
extern const td_operator_entry *const __start_td_operators[], *const __stop_td_operators[];

td_status td_op_register_all(void) {
    static int finished; /* where an attempt ran out of memory the next goes on */
    td_status status = TD_OK;
    while (__start_td_operators + td_op_count() < __stop_td_operators && status == TD_OK)
        status = add_op(__start_td_operators[td_op_count()]);
    while (finished < td_op_count() && status == TD_OK) {
        status = finish_op((td_op *)td_op_get(finished));
        finished += status == TD_OK;
    }
    status = status ? status : check_aliases();
    if (status == TD_OK)
        td_registry_seal();
    return status;
}

td_status td_op_register(int n, const td_operator_entry *const *entries) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    td_status status = TD_OK;
    pthread_mutex_lock(&lock);
    int before = td_op_count();
    for (int k = 0; k < n && status == TD_OK; k++)
        if (td_op_find(entries[k]->name) != entries[k]->op)
            status = add_op(entries[k]);
    for (int k = before; k < td_op_count() && status == TD_OK; k++)
        status = finish_op((td_op *)td_op_get(k));
    if (status)
        td_registry_withdraw(before);
    pthread_mutex_unlock(&lock);
    return status;
}
