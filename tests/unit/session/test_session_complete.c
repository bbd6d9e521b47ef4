/* test_session_complete.c: a table of what Tab offers: which bytes it replaces, and by what. */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>
#include <unistd.h>

/* "^" stands at the first byte that is replaced, "|" at the cursor. */
static const struct {
    const char *code, *matches;
} rows[] = {
    {"^%ti|", "%time %timeit"},
    {"  ^%%ti|", "%%time %%timeit"},
    {"x = 1\n^%wri|", "%writefile"},
    {"x = 1 ^%ti|", NULL}, /* a modulo */
    {"%timeit word.^sh|", "shown"},
    {"word.^|", "shown size"},
    {"word.^s|", "shown size"},
    {"word.^_|", "__deep _hidden"},
    {"word.^_h|", "_hidden"},
    {"word.^s|hown", "shown size"},
    {"f(word.^si|)", "size"},
    {"word:^|", "size"},
    {"^wor|", "word"},
    {"^loca|", "local local_one"},
    {"string.^re|", "rep reverse"},
    {"('x'):^re|", "rep reverse"},
    {"x = '^|", "a.txt sub/"},
    {"x = '^.|", ".hidden"},
    {"x = '^sub/|", "sub/b.txt"},
    {"x = \"^a|\"", "a.txt"},
    {"x = [[^a|", "a.txt"},
    {"-- wor^|", ""},
    {"5^|", ""},
    {"word.nosuch.x^|", ""},
    {"tide.zeros(2, {^dt|", "dtype"},
    {"tide.zeros(2, {dtype = tide.float32, ^devi|", "device"},
    {"tide.zeros(2, {dtype = tide.float32, ^req|", "require"},
    {"tensor:^argma|", "argmax"},
    {"tensor.^is_le|", "is_leaf"},
};

static const char *joined(const tide_completions *c) {
    static char text[4096];
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < c->n && used < sizeof text; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", c->matches[i]);
    return text;
}

TEST(what_is_offered_and_what_it_replaces) {
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char code[128];
        size_t n = 0, start = 0, cursor = 0;
        for (const char *at = rows[i].code; *at; at++) {
            if (*at == '^')
                start = n;
            else if (*at == '|')
                cursor = n;
            else
                code[n++] = *at;
        }
        tide_completions c;
        tide_session_complete(s, code, n, cursor, &c);
        bool as_wanted = rows[i].matches ? strcmp(joined(&c), rows[i].matches) == 0 &&
                                               c.start == start && c.end == cursor
                                         : !strstr(joined(&c), "%");
        if (!as_wanted)
            printf("%s: %zu-%zu %.200s\n", rows[i].code, c.start, c.end, joined(&c));
        CHECK(as_wanted);
        tide_completions_clear(&c);
    }
}

int main(void) {
    char folder[] = "/tmp/tide-complete-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    tide_frontend frontend = {.write = catch_output};
    s = tide_session_new(&frontend);
    if (!s)
        return 1;
    value("!mkdir sub; touch a.txt .hidden sub/b.txt");
    value("word = {shown = 1, size = print, _hidden = 2, __deep = 3}; tensor = tide.ones(2)");
    value("local_one = 1");
    RUN(what_is_offered_and_what_it_replaces);
    value("!rm -r sub a.txt .hidden");
    CHECK_INT(rmdir(folder), 0);
    tide_result_clear(&r);
    tide_session_free(s);
    return check_finish();
}
