/* fuzz_formula.c: formulas over pointwise primitives, and recipes. */
#include "tests/torture/fuzz/bytes.h"

#include "engine/ops/language/program.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const names[] = {"x", "y", "g"};
    char *text = bytes_text(data, size);
    const td_program *program = NULL;
    if (td_program_compile(text, 3, names, &program) == TD_OK)
        td_program_release(program);
    else
        HOLDS(!program);
    uint32_t written = 0;
    if (td_program_compile_updates(text, 3, names, &written, &program) == TD_OK) {
        HOLDS(written && written < 8);
        td_program_release(program);
    } else {
        HOLDS(!program);
    }
    free(text);
    return 0;
}
