/* registry.c: the table of all operators, and the engine's start. */
#include "engine/autograd/autograd.h"
#include "engine/core/map.h"
#include "engine/core/memory.h"
#include "engine/core/openmp.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/isa/isa.h"
#include "engine/ops/expression.h"
#include "engine/ops/pointwise.h"
#include "engine/ops/schema.h"

#include <pthread.h>
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
    td_status status = td_schema_parse(op);
    if (status)
        return status;
    if (td_op_find(op->name) || op_count == MAX_OPS)
        return td_fail(TD_EINTERNAL, "operator '%s' stands twice, or there are too many", op->name);
    if (op->kernel && !op->dtypes)
        return td_fail(TD_EINTERNAL, "operator '%s' does not say which dtypes it takes", op->name);
    op->id = (uint16_t)op_count;
    if (op->pointwise) {
        status = td_pointwise_prepare(op);
        if (status)
            return status;
        op->save_args = op->programs->reads_args;
        op->save_outs = op->programs->reads_out;
        if (op->gradient)
            op->backward = td_pointwise_backward;
    }
    ops[op_count++] = op;
    return td_map_add(&by_name, td_hash_text(op->name), op);
}

/* What needs all operators to be there: expressions name others. */
static td_status finish_op(td_op *op) {
    td_status status = td_expression_check_row(op);
    return status ? status : td_expression_prepare(op);
}

/* The bounds of the section that TD_OPERATOR fills; the linker makes these symbols. */
extern const td_operator_entry *const __start_td_operators[], *const __stop_td_operators[];

td_status td_op_register_all(void) {
    td_status status = TD_OK;
    for (const td_operator_entry *const *e = __start_td_operators;
         e < __stop_td_operators && status == TD_OK; e++)
        status = add_op(*e);
    for (int k = 0; k < op_count && status == TD_OK; k++)
        status = finish_op((td_op *)ops[k]);
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

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static td_status init_status;

static void init(void) {
    td_openmp_prepare();
    td_openmp_find(NULL);
    td_autograd_destroy_hook = td_autograd_free;
    init_status = td_cpu_choose();
    if (init_status == TD_OK)
        init_status = td_backend_register(&td_cpu_backend);
    if (init_status == TD_OK)
        init_status = td_op_register_all();
}

td_status td_init(void) {
    pthread_once(&init_once, init);
    if (init_status && !*td_error_message()) /* another thread saw the message */
        return td_fail(init_status, "the engine could not start");
    return init_status;
}
