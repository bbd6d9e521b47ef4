/* fuzz_assist.c: an editor's questions about any text: completion, inspection, is it complete,
 * where is it wrong. Only what can't be compiled is evaluated, for its message. */
#include "tests/torture/fuzz/bytes.h"

#include "repl/session/session.h"

#include <stdlib.h>
#include <string.h>

static void check_completions(tide_session *s, const char *code, size_t size, size_t cursor) {
    tide_completions c;
    tide_session_complete(s, code, size, cursor, &c);
    HOLDS(c.start <= c.end && c.end <= size);
    for (int k = 0; k < c.n; k++)
        HOLDS(c.matches[k] && c.types[k]);
    tide_completions_clear(&c);
}

static void check_inspection(tide_session *s, const char *code, size_t size, size_t cursor) {
    tide_bundle bundle;
    for (int detail = 0; detail < 2; detail++) {
        if (tide_session_inspect(s, code, size, cursor, detail, &bundle))
            HOLDS(bundle.n > 0);
        tide_bundle_clear(&bundle);
    }
}

static void check_hints(tide_session *s, const char *code, size_t size, size_t cursor) {
    for (int of_call = 0; of_call < 2; of_call++)
        free(tide_session_hint(s, code, size, cursor, of_call));
}

static void check_error(tide_session *s, const char *code, size_t size) {
    tide_result result;
    tide_session_eval(s, code, size, true, &result);
    HOLDS(result.outcome == TIDE_ERROR && result.ename && result.evalue && result.n_traceback > 0);
    tide_result_clear(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char indent[64];
    size_t cursor = bytes_choice(&data, &size);
    const char *code = (const char *)data;
    tide_session *s = bytes_session();
    cursor = cursor > 200 || cursor > size ? size : cursor;
    if (!size)
        code = "";
    check_completions(s, code, size, cursor);
    check_inspection(s, code, size, cursor);
    check_hints(s, code, size, cursor);
    tide_completeness whole = tide_session_is_complete(s, code, size, indent, sizeof indent);
    HOLDS(strspn(indent, " ") == strlen(indent));
    if (whole == TIDE_INVALID && !memchr(code, '%', size) && !memchr(code, '?', size))
        check_error(s, code, size);
    return 0;
}
