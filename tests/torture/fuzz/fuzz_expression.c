/* fuzz_expression.c: composites (the first byte is even) and gradients as expressions: compiled,
 * not run. */
#include "tests/torture/fuzz/bytes.h"

#include "engine/core/memory.h"
#include "engine/ops/language/expression.h"
#include "engine/ops/language/schema.h"
#include "engine/td.h"

#include <stdlib.h>

/* The operator that the texts are written for. */
static td_op probe(void) {
    td_op op = {.name = "probe",
                .schema = "(Tensor x, Tensor y, int n, float t, dim[]? dim=nil, bool keep=true, "
                          "str mode=\"mean\") -> (Tensor a, Tensor b)"};
    HOLDS(td_init() == TD_OK && td_schema_parse(&op) == TD_OK);
    return op;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static td_op made;
    if (!made.name)
        made = probe();
    bool gradient = bytes_choice(&data, &size) & 1;
    char *text = bytes_text(data, size);
    td_op op = made;
    if (gradient)
        op.gradient = text;
    else
        op.formula = text;
    td_status status = td_expression_prepare(&op);
    HOLDS((status == TD_OK) == (gradient ? op.derivative != NULL : op.composite != NULL));
    td_free(op.composite);
    td_free(op.derivative);
    free(text);
    return 0;
}
