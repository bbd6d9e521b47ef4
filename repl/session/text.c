/* text.c: see text.h. An input is as many lines as the prompt would take for one; lines that begin
 * as no input can, with an operator between two operands, belong to the one before.
 */
#include "repl/session/text.h"
#include "repl/session/lex.h"
#include "repl/session/magic.h"
#include "repl/session/state.h"
#include "repl/session/transcript.h"

#include <stdlib.h>
#include <string.h>

bool tide_session_set_text(tide_session *s, char *text, size_t len, bool shows) {
    const char *code = text;
    text_free(s);
    char *plain = transcript_plain(&code, &len);
    s->text.code = malloc(len + 1);
    s->text.rest = malloc(len + 1);
    s->text.len = len;
    s->text.shows = shows;
    bool ok = s->text.code && s->text.rest;
    if (ok && len > 0)
        memcpy(s->text.code, code, len);
    free(plain);
    free(text);
    if (!ok)
        text_free(s);
    return ok;
}

void text_free(tide_session *s) {
    free(s->text.code);
    free(s->text.rest);
    memset(&s->text, 0, sizeof s->text);
}

/* End of the line that begins at `at`: where its newline stands, or the text ends. */
static size_t line_end(const tide_session *s, size_t at) {
    const char *code = s->text.code, *newline = memchr(code + at, '\n', s->text.len - at);
    return newline ? (size_t)(newline - code) : s->text.len;
}

/* Does the line at `at` go on with what stands before it? */
static bool goes_on(const tide_session *s, size_t at) {
    static const char *const words[] = {"and", "or", ".",  ":",  "..", "+", "*", "^", "<", ">",
                                        "<=",  ">=", "==", "~=", "=",  ",", ")", "]", "}", NULL};
    size_t end = line_end(s, at);
    lexer lx = {s->text.code + at, end - at, 0};
    lex_token first = lex_next(&lx);
    int i = 0;
    while (words[i] && !lex_is(&lx, first, words[i]))
        i++;
    return words[i] != NULL;
}

static bool is_whole(tide_session *s, size_t start, size_t end) {
    const char *code = s->text.code + start;
    return tide_session_is_complete(s, code, end - start, NULL, 0) != TIDE_INCOMPLETE;
}

/* Where the input ends that begins with the line at `start`. */
static size_t input_end(tide_session *s, size_t start) {
    size_t end = line_end(s, start);
    while (end < s->text.len && (!is_whole(s, start, end) || goes_on(s, end + 1)))
        end = line_end(s, end + 1);
    return end;
}

const char *text_next(tide_session *s, size_t *len) {
    size_t start = s->text.at, lines = s->text.lines;
    if (start >= s->text.len)
        return NULL;
    size_t end = input_end(s, start);
    memset(s->text.rest + start - lines, '\n', lines);
    memcpy(s->text.rest + start, s->text.code + start, end - start);
    for (size_t i = start; i < end; i++)
        s->text.lines += s->text.code[i] == '\n';
    s->text.lines += end < s->text.len;
    s->text.at = end < s->text.len ? end + 1 : end;
    *len = lines + end - start;
    return s->text.rest + start - lines;
}

const char *text_whole(tide_session *s, size_t *len) {
    s->text.at = *len = s->text.len;
    return s->text.code;
}
