/* registry.c: the table of all operators. */
#include "engine/ops/registry.h"

#include "engine/core/map.h"

#include <stdatomic.h>
#include <string.h>

enum { MAX_OPS = 1024 };

/* Operators are only added, so what is below the count may be read while others are: those of the
 * start, which the map knows too, and behind them those of libraries that were loaded later. */
static const td_op *ops[MAX_OPS];
static atomic_int op_count;
static int own_count; /* of the start, once it is over */
static td_map by_name;

static bool has_name(const void *op, const void *name) {
    return strcmp(((const td_op *)op)->name, name) == 0;
}

td_status td_registry_add(td_op *op) {
    if (td_op_find(op->name) || op_count == MAX_OPS)
        return td_fail(TD_EINTERNAL, "operator '%s' stands twice, or there are too many", op->name);
    op->id = (uint16_t)op_count;
    td_status status = own_count ? TD_OK : td_map_add(&by_name, td_hash_text(op->name), op);
    if (status)
        return status;
    ops[op_count] = op;
    atomic_fetch_add_explicit(&op_count, 1, memory_order_release);
    return TD_OK;
}

void td_registry_seal(void) {
    own_count = op_count;
}

void td_registry_withdraw(int count) {
    atomic_store(&op_count, count);
}

const td_op *td_op_find(const char *name) {
    const td_op *own = td_map_find(&by_name, td_hash_text(name), has_name, name);
    for (int k = own_count; !own && own_count && k < td_op_count(); k++)
        own = strcmp(ops[k]->name, name) ? NULL : ops[k];
    return own;
}

int td_op_count(void) {
    return atomic_load_explicit(&op_count, memory_order_acquire);
}

const td_op *td_op_get(int id) {
    return id >= 0 && id < td_op_count() ? ops[id] : NULL;
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
