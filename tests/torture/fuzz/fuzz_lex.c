/* fuzz_lex.c: Lua's tokens in any text, and the lines that are magics: ranges lie in the text, in
 * order. */
#include "tests/torture/fuzz/bytes.h"

#include "repl/session/lex.h"
#include "repl/session/magic.h"

#include <stdlib.h>
#include <string.h>

static void check_tokens(const char *code, size_t size) {
    lexer lx = {code, size, 0};
    size_t end = 0;
    for (lex_token t = lex_next(&lx); t.kind != LEX_END; t = lex_next(&lx)) {
        HOLDS(t.start >= end && t.end > t.start && t.end <= size);
        end = t.end;
        if (t.kind == LEX_STRING && t.unfinished && !t.bracketed)
            (void)lex_string_goes_on(&lx, t);
    }
    lex_token last = lex_last(code, size);
    HOLDS(last.start <= last.end && last.end <= size);
    HOLDS(lex_open_blocks(code, size) >= 0);
}

static void check_magics(const char *code, size_t size) {
    magic_call call;
    size_t start, end;
    int detail;
    if (magic_parse(code, size, &call)) {
        HOLDS(call.name >= code && call.name + call.name_len <= code + size);
        HOLDS(call.args >= code && call.args + call.args_len <= code + size);
        HOLDS(call.body >= code && call.body + call.body_len <= code + size);
    }
    if (magic_parse_question(code, size, &start, &end, &detail))
        /* `?` alone asks of nothing; names and words of a search are C strings to what answers */
        HOLDS(start <= end && end <= size && !memchr(code + start, '\0', end - start));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *code = malloc(size ? size : 1); /* no NUL behind it */
    HOLDS(code);
    if (size)
        memcpy(code, data, size);
    check_tokens(code, size);
    check_magics(code, size);
    free(code);
    return 0;
}
