/* test_session_library.c: a script may take Lua's library apart, a name at a time or all of it:
 * what the session does for the person at the prompt (values, errors, help, magics, commands,
 * completion) stays what it was.
 */
#include "tests/check.h"
#include "tests/unit/session_inputs.h"

#include <stdlib.h>

/* Inputs that call nothing of the library themselves. */
static const char *const inputs[] = {
    "tide.arange(6):reshape(2, 3)",
    "tide.rand(2, 3):gt(2)",
    "x = tide.tensor({1, 2.5})",
    "x",
    "{1, {2, 'x', [true] = x}, n = 1e300}",
    "'a \\1 text', nil, 1/0",
    "tide.nn.Linear(2, 3)",
    "tide.plot.line({3, 1, 2})",
    "tide.optim.SGD({tide.ones(2, {requires_grad = true})}, {lr = 0.1})",
    "tide.onse(1)",
    "tide.ones(2):matmul(tide.ones(3))",
    "nowhere.x = 1",
    "x = = 1",
    "local t = nil\nreturn t.x.y",
    "(function() return {} + 1 end)()",
    "?tide.conv2d",
    "??tide.nn.Linear",
    "?indexing",
    "tide.nn.Conv2d?",
    "*conv2*?",
    "/singular values",
    "%lsmagic",
    "%pwd",
    "%cd /",
    "%env TIDE_WALK=1",
    "%env TIDE_WALK",
    "%who",
    "%whos",
    "%nosuch",
    "!echo told",
    "y = !echo told",
    "y",
    "for k = 1, 2 do\n    !echo within\nend",
    "%%bash\necho cell",
    "%%capture held\nx",
    "held",
    "%pinfo tide.add",
    "tide.display.html('<b>x</b>')",
    "tide.version == nil",
};

/* Those whose text tells times: what becomes of them is all that is compared. */
static const char *const timed[] = {"%timeit -n 2 -r 1 1 + 1", "%time 1 + 1", "%%time\n1 + 1"};
static const char *const completed[] = {"tide.conv",   "x:matm", "%time",
                                        "tide.nn.Lin", "x.",     "%cd /us"};
static const char *const inspected[] = {"tide.conv2d", "tide.nn.Linear", "x:matmul"};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- all that a person sees, as one text ---- */

static char *text;
static size_t used, room;

static void say(const char *more) {
    size_t n = strlen(more) + 1;
    if (used + n + 1 > room) {
        room = 2 * (used + n + 1);
        text = realloc(text, room);
        if (!text)
            exit(1);
    }
    memcpy(text + used, more, n - 1);
    used += n - 1;
    text[used++] = '\n';
    text[used] = '\0';
}

static void say_result(const char *code, bool whole) {
    static const char *const outcomes[] = {"ok", "error", "interrupted", "exit"};
    const char *shown = value(code);
    say(code);
    say(outcomes[r.outcome]);
    if (!whole)
        return;
    say(shown);
    for (int k = 1; k < r.value.n; k++)
        say(r.value.entries[k].type);
    for (int k = 0; k < r.n_traceback; k++)
        say(r.traceback[k]);
    say(r.pager ? r.pager : "");
    say(caught);
}

static void say_all(void) {
    used = 0;
    for (size_t k = 0; k < COUNT(inputs); k++)
        say_result(inputs[k], true);
    for (size_t k = 0; k < COUNT(timed); k++)
        say_result(timed[k], false);
    for (size_t k = 0; k < COUNT(completed); k++) {
        tide_completions c;
        size_t n = strlen(completed[k]);
        tide_session_complete(s, completed[k], n, n, &c);
        say(c.n ? completed[k] : "nothing");
        for (int m = 0; m < c.n; m++)
            say(c.matches[m]);
        tide_completions_clear(&c);
    }
    for (size_t k = 0; k < COUNT(inspected); k++) {
        tide_bundle b;
        size_t n = strlen(inspected[k]);
        say(tide_session_inspect(s, inspected[k], n, n, 1, &b) && b.n ? b.entries[0].data
                                                                      : "nothing");
        tide_bundle_clear(&b);
        char *hint = tide_session_hint(s, inspected[k], n, n, false);
        say(hint ? hint : "nothing");
        free(hint);
    }
    say(tide_session_is_complete(s, "for k = 1, 2 do", 15, NULL, 0) == TIDE_INCOMPLETE ? "more"
                                                                                       : "whole");
}

/* ---- the walk ---- */

static tide_frontend frontend = {.write = catch_output};

static void begin(void) {
    s = tide_session_new(&frontend);
    if (!s)
        exit(1);
}

static void end(void) {
    tide_result_clear(&r);
    tide_session_free(s);
}

/* The first line that differs, with the one before. */
static void tell_difference(const char *spoil, const char *wanted) {
    size_t at = 0, line = 0, before = 0;
    for (; wanted[at] && wanted[at] == text[at]; at++)
        if (wanted[at] == '\n') {
            before = line;
            line = at + 1;
        }
    fprintf(stderr, "after %s:\n%.300s\n-- instead of --\n%.300s\n", spoil, text + before,
            wanted + before);
}

static void compare(const char *spoil, const char *wanted) {
    begin();
    value("%cd /");
    value(spoil);
    CHECK_INT(r.outcome, TIDE_OK);
    say_all();
    if (strcmp(text, wanted))
        tell_difference(spoil, wanted);
    CHECK(strcmp(text, wanted) == 0);
    end();
}

static char *wanted_text(void) {
    begin();
    value("%cd /");
    value("(function() end)()");
    say_all();
    end();
    return strdup(text);
}

/* Every name of the library, "print", "string", "string.rep", a line each. */
static char *names(void) {
    begin();
    const char *list = value("(function()\n"
                             "local t = {}\n"
                             "for k, v in pairs(_G) do\n"
                             "    if k ~= '_G' and (type(v) == 'function' or package.loaded[k] == "
                             "v and k ~= 'tide') then\n"
                             "        t[#t + 1] = k\n"
                             "        for name in pairs(type(v) == 'table' and v or {}) do t[#t + "
                             "1] = k .. '.' .. name end\n"
                             "    end\n"
                             "end\n"
                             "table.sort(t)\n"
                             "io.stdout:write(table.concat(t, '\\n'), '\\n')\n"
                             "end)()");
    (void)list;
    char *all = strdup(caught);
    end();
    return all;
}

/* One by one they are taken away; a library's functions fail all at once. */
TEST(each_name_of_the_library_may_be_taken_away_or_fail) {
    static const char libraries[] = "string table math io os utf8 coroutine debug package";
    char *wanted = wanted_text(), *all = names(), code[512];
    int n = 0;
    for (char *name = strtok(all, "\n"); name; name = strtok(NULL, "\n"), n++) {
        snprintf(code, sizeof code, "%s = nil", name);
        compare(code, wanted);
        if (strchr(name, '.'))
            continue;
        const char *is_table = strstr(libraries, name) ? "true" : "false";
        snprintf(code, sizeof code,
                 "(function(no, next)\n"
                 "local function fail() no('no') end\n"
                 "if %s then for k in next, %s do %s[k] = fail end else %s = fail end\n"
                 "end)(error, next)",
                 is_table, name, name, name);
        compare(code, wanted);
    }
    CHECK(n > 120);
    free(all);
    free(wanted);
}

TEST(the_library_may_be_taken_away_at_once_and_strings_be_anything) {
    static const char *const ways[] = {
        "for k in next, _G do if k ~= 'tide' and k ~= '_G' then _G[k] = nil end end",
        "(function(next, type)\n"
        "for k, t in next, _G do\n"
        "    if type(t) == 'table' and k ~= 'tide' and k ~= '_G' then for n in next, t do t[n] = "
        "nil end end\n"
        "end end)(next, type)",
        "debug.setmetatable('', nil)",
        "debug.setmetatable('', {__index = function() error('no') end})",
        "getmetatable('').__index = nil",
        "getmetatable('').__index = function() return function() return 'x' end end",
        "string.trim = function(s) return s end",
        "setmetatable(_G, {__index = function(_, name) return nil end})",
        "string, table, math = 'x', 1, {}",
    };
    char *wanted = wanted_text();
    for (size_t k = 0; k < COUNT(ways); k++)
        compare(ways[k], wanted);
    free(wanted);
}

TEST(what_a_script_adds_to_strings_is_theirs) {
    begin();
    value("string.trim = function(s) return s:match('^%s*(.-)%s*$') end");
    CHECK_STR(value("(' x '):trim()"), "\"x\"");
    CHECK_STR(value("getmetatable('').__index == string"), "true");
    end();
}

int main(void) {
    RUN(each_name_of_the_library_may_be_taken_away_or_fail);
    RUN(the_library_may_be_taken_away_at_once_and_strings_be_anything);
    RUN(what_a_script_adds_to_strings_is_theirs);
    free(text);
    return check_finish();
}
