/* registry.c: the table of all operators. */
#include "engine/ops/registry.h"

#include "engine/core/map.h"

#include <string.h>

enum { MAX_OPS = 1024 };

static const td_op *ops[MAX_OPS];
static int op_count;
static td_map by_name;

static bool has_name(const void *op, const void *name) {
    return strcmp(((const td_op *)op)->name, name) == 0;
}

td_status td_registry_add(td_op *op) {
    if (td_op_find(op->name) || op_count == MAX_OPS)
        return td_fail(TD_EINTERNAL, "operator '%s' stands twice, or there are too many", op->name);
    op->id = (uint16_t)op_count;
    td_status status = td_map_add(&by_name, td_hash_text(op->name), op);
    if (status == TD_OK)
        ops[op_count++] = op;
    return status;
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
