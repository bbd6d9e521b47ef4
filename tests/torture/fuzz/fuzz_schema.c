/* fuzz_schema.c: schemas of functions, and of operators where the text begins with a bracket. */
#include "tests/torture/fuzz/bytes.h"

#include "engine/core/memory.h"
#include "engine/ops/language/schema.h"

#include <stdlib.h>

static void check_params(const td_op *op) {
    char text[40];
    HOLDS(op->nparams <= TD_MAX_PARAMS && op->nresults <= TD_MAX_RESULTS);
    for (int k = 0; k < op->nparams; k++)
        td_param_type_text(&op->params[k], text, sizeof text);
}

/* Operators live for ever in the engine; here they go. */
static void discard(td_op *op) {
    for (int k = 0; k < op->nparams; k++) {
        if (op->params[k].preset.kind == TD_KIND_STRING)
            td_free((void *)op->params[k].preset.string);
        td_free(op->params[k].name);
        td_free(op->params[k].word);
    }
    for (int k = 0; k < op->nresults; k++)
        td_free(op->result_names[k]);
    td_free(op->params);
    td_free((void *)op->backward_name);
    td_free((void *)op->inplace_name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = bytes_text(data, size);
    if (text[0] == '(') {
        td_op op = {.schema = text, .name = "probe_2d", .flags = TD_OP_INPLACE};
        if (td_schema_parse(&op) == TD_OK)
            check_params(&op);
        discard(&op);
    } else {
        td_op function = {.schema = text};
        if (td_schema_parse_function(&function) == TD_OK)
            check_params(&function);
        td_schema_clear(&function);
    }
    free(text);
    return 0;
}
