/* test_session_magics.c: a table of all magics: what each says, word for word, as a script left the
 * library and after one that took all of it away.
 */
#include "tests/check.h"
#include "tests/unit/session/session_inputs.h"

#include <stdlib.h>
#include <unistd.h>

static char shown[512]; /* what displays were made of */

static void catch_display(void *ctx, const tide_bundle *bundle, const char *id, bool update) {
    (void)ctx, (void)id, (void)update;
    shown[0] = '\0';
    for (int i = 0; i < bundle->n; i++)
        if (strcmp(bundle->entries[i].type, "text/plain") != 0)
            snprintf(shown, sizeof shown, "%s: %s", bundle->entries[i].type,
                     bundle->entries[i].data);
}

static char *no_line(void *ctx, const char *prompt, bool password, size_t *len) {
    (void)ctx, (void)prompt, (void)password, (void)len;
    return NULL;
}

/* What an input prints, displays and gives, or the error's text. */
static const char *said(const char *code) {
    static char text[20000];
    shown[0] = '\0';
    const char *last = value(code);
    snprintf(text, sizeof text, "%s%s%s%s", caught, shown, last, r.pager ? r.pager : "");
    return text;
}

/* Does the text read as the pattern, in which * stands for anything? */
static bool reads_as(const char *text, const char *pattern) {
    while (*pattern && *pattern != '*') {
        if (*text++ != *pattern++)
            return false;
    }
    if (!*pattern)
        return !*text;
    do
        if (reads_as(text, pattern + 1))
            return true;
    while (*text++);
    return false;
}

typedef struct row {
    const char *magic, *input, *says;
} row;

/* In this order, in one session: inputs 1, 2, ... */
static const row rows[] = {
    {"reset", "before = 1; local near = 2\n42", "42"},
    {"reset", "%reset", ""},
    {"reset", "before == nil and near == nil and _ == nil", "true"},
    {"who", "%who", "no variables\n"},
    {"", "x = tide.ones(2, 3) -- ones?", ""},
    {"", "local rate = 0.5", ""},
    {"who", "%who", "rate  x\n"},
    {"whos", "%whos",
     "name  type    value               bytes\nrate  float   0.5\n"
     "x     tensor  float32 (2, 3) cpu  24 B\n"},
    {"history", "%history 5-6 8",
     "   5: x = tide.ones(2, 3) -- ones?\n   6: local rate = 0.5\n   8: %whos\n"},
    {"", "y = 1\n%time y = 2\nfiles = !ls\nfor i = 1, 1 do\n  !true\n  y = y + 1\nend",
     "*Wall time*"},
    {"save", "%save 'saved one.lua' 5 8 10", "2 inputs in saved one.lua\n"},
    {"load", "%load 'saved one.lua'",
     "x = tide.ones(2, 3) -- ones?\ny = 1\n-- %time y = 2\n-- files = !ls\nfor i = 1, 1 do\n"
     "--   !true\n  y = y + 1\nend\n"},
    {"run", "y = nil", ""},
    {"run", "%run 'saved one.lua'", ""},
    {"run", "y", "2"},
    {"file", "%%file inner.lua\nreturn {v = 7}", "15 bytes in inner.lua\n"},
    {"writefile", "%%writefile args.lua\nfirst, script = ..., arg[0]\n", "28 bytes in args.lua\n"},
    {"writefile", "%%writefile -a args.lua\nlast = 3", "9 bytes in args.lua\n"},
    {"file", "%file x", "%%file stands above the lines that it writes"},
    {"file", "%%file a b\nx", "%%file: one file expected, got a b"},
    {"run", "%run args.lua 'a b' c", ""},
    {"run", "first, script, last, arg", "\"a b\"\n\"args.lua\"\n3\nnil"},
    {"load", "%load nosuch", "%load: cannot read nosuch: No such file or directory"},
    {"run", "!mkdir 'sub dir'; mv inner.lua 'sub dir'", ""},
    {"file", "%%file sub dir/x\n1", "%%file: one file expected, got sub dir/x"},
    {"file", "%%file 'sub dir/main.lua'\ngiven = require('inner').v",
     "27 bytes in sub dir/main.lua\n"},
    {"run", "%run 'sub dir/main.lua'\n", ""},
    {"run", "given", "7"},
    {"run", "%%file leaves.lua\nleft = 1 local o = {} o.x.y = 1\nleft = 2",
     "41 bytes in leaves.lua\n"},
    {"run", "%run leaves.lua", "leaves.lua:1: attempt to index a nil value (field 'x')"},
    {"ls", "%ls *.lua", "args.lua*leaves.lua*saved one.lua\n"},
    {"ls", "%ls nosuch", "*nosuch*No such file or directory\n(exit status 2)\n"},
    {"cd", "%cd sub dir", "\"*/sub dir\""},
    {"pwd", "%pwd", "\"*/sub dir\""},
    {"cd", "%cd -", "\"*\""},
    {"pwd", "here = %pwd\nhere == _", "true"},
    {"cd", "%cd 'sub dir'", "\"*/sub dir\""},
    {"cd", "%cd ..", "\"*\""},
    {"cd", "%cd no such", "%cd: no such: No such file or directory"},
    {"cd", "%cd", "\"/\""}, /* the test's home */
    {"cd", "%cd -", "\"*\""},
    {"env", "%env TIDE_TEST_NAME=a b = c", "env: TIDE_TEST_NAME=a b = c\n"},
    {"env", "%env TIDE_TEST_NAME", "\"a b = c\""},
    {"env", "%env TIDE_TEST_NAME other", "env: TIDE_TEST_NAME=other\n"},
    {"env", "!echo $TIDE_TEST_NAME", "other\n"},
    {"env", "%env", "*\nTIDE_TEST_NAME=other\n*"},
    {"env", "%env TIDE_TEST_NONE", "%env: there is no variable TIDE_TEST_NONE"},
    {"bash", "!echo out; echo err >&2; ls nosuch; exit 3 # 2>&1",
     "out\nerr\nls: *nosuch*\n(exit status 3)\n"},
    {"bash", "%bash echo one", "one\n"},
    {"bash", "%%bash\nfor i in 1 2; do echo $i; done; echo err >&2\n", "1\n2\nerr\n"},
    {"bash", "%%bash\nkill -9 $$", "Killed\n%%bash: exit status 137"},
    {"bash", "%%bash\nexit 3", "%%bash: exit status 3"},
    {"bash", "%%bash --no-raise-error\nexit 3", ""},
    {"bash", "%%bash -e\nfalse\necho on", "%%bash: exit status 1"},
    {"lines_of", "list = !echo a; echo b >&2; echo; exit 2\nlist", "{\"a\", \"b\", \"\"}"},
    {"mem", "%mem", "tensors: * B\nLua:     *iB\n"},
    {"threads", "%threads 1", "1"},
    {"threads", "%threads", "1"},
    {"threads", "%threads 0", "%threads: a number from 1 on expected, got 0"},
    {"precision", "%precision 2", ""},
    {"precision", "tide.full({1}, 1/3)", "[0.33]\nfloat32 (1) cpu"},
    {"precision", "%precision", ""},
    {"precision", "tide.full({1}, 1/3)", "[0.3333]\nfloat32 (1) cpu"},
    {"precision", "%precision 18", "%precision: a number from 0 to 17 expected, got 18"},
    {"time", "%time 6 * 7", "CPU times: user *, sys: *, total: *\nWall time: *s\n42"},
    {"time", "%%time\n!echo within\ny = {}\ny.z.w = 1",
     "within\n*:4: attempt to index a nil value (field 'z')"},
    {"timeit", "%timeit -n 3 -r 2 y = 5",
     "* per loop (mean ± std. dev. of 2 runs, 3 loops each)\n"},
    {"timeit", "%timeit -n 3 -r 2 -q y = 5", ""},
    {"timeit", "t = %timeit -o -q -n 3 -r 2 y = 5\nt.loops, t.runs, #t.timings", "3\n2\n2"},
    {"timeit", "n, m = 0, 0", ""},
    {"timeit", "%%timeit -n 3 -r 2 -q m = m + 1\nn = n + 1", ""},
    {"timeit", "n, m", "6\n2"},
    {"capture", "%%capture kept\nprint('out')\n!echo child\ntide.display(5)\n42", ""},
    {"capture", "kept", "\"out\\nchild\\n\""},
    {"capture", "kept.stderr, #kept.outputs", "\"\"\n2"},
    {"capture", "kept:show()", "out\nchild\n"},
    {"capture", "%%capture --no-stdout kept\nprint('seen')\n!echo seen too", "seen\nseen too\n"},
    {"capture", "%%capture --no-stdout kept\nwarn('@on') warn('kept')", ""},
    {"capture", "kept.stderr", "\"Lua warning: kept\\n\""},
    {"capture", "%%capture --no-stderr kept\nwarn('seen')", "Lua warning: seen\n"},
    {"capture", "%%capture kept\nprint('before')\nlocal o = {}\no.x.y = 1",
     "*:4: attempt to index a nil value (field 'x')"},
    {"capture", "kept.stdout", "\"before\\n\""},
    {"capture", "%%capture --no-such kept\nx",
     "%%capture: unknown option --no-such (known: --no-stdout, --no-stderr, --no-display)"},
    {"html", "%%html\n<b>x</b>", "text/html: <b>x</b>"},
    {"javascript", "%%javascript\nalert(1)", "application/javascript: alert(1)"},
    {"js", "%%js\nalert(1)", "application/javascript: alert(1)"},
    {"markdown", "%%markdown\n# x", "text/markdown: # x"},
    {"latex", "%%latex\n$x$", "text/latex: $x$"},
    {"svg", "%%svg\n<svg/>", "image/svg+xml: <svg/>"},
    {"html", "%html x", "%%html stands above the lines that it displays"},
    {"pinfo", "%pinfo y", "Type:      number (integer)\nValue:     5\n"},
    {"pinfo", "y = 6\n?y", "Type:      number (integer)\nValue:     6\n"},
    {"pinfo", "y?\ny = 7\ny?", "*Value:     6\n*Value:     7\n"},
    {"pinfo", "tide.CONV*2d?", "*tide.conv2d *tide.conv_transpose2d *"},
    {"pinfo", "fi*t?", "*first*"},
    {"pinfo", "a_print, _print = 1, 2", ""},
    {"pinfo", "pri*t?", "*print*"},
    {"pinfo", "_pri*?", "_print*"},
    {"pinfo", "no*where?", "nothing matches 'no*where'"},
    {"pinfo", "%pinfo nosuch", "nothing is known of 'nosuch'"},
    {"pinfo2", "-- Two of it.\nfunction twice(x)\n  return 2 * x\nend", ""},
    {"pinfo2", "%pinfo2 twice",
     "Signature: twice(x)\nDoc:       Two of it.\nType:      function\nDefined:   "
     "In[*]:2-4\nSource:\n"
     "  function twice(x)\n    return 2 * x\n  end\n"},
    {"pinfo2", "twice??", "*Source:\n  function twice(x)\n    return 2 * x\n  end"},
    {"pinfo2", "?twice",
     "Signature: twice(x)\nDoc:       Two of it.\nType:      function\nDefined:   In[*]:2-4"},
    {"prof", "%prof x:sum()", "*sum*"},
    {"prof", "y = {}\n%prof y.z.w()", "*:2: attempt to index a nil value (field 'z')"},
    {"prof", "%%prof\n\ny.z.w()", "*:3: attempt to index a nil value (field 'z')"},
    {"trace", "%trace trace.json x:sum()", "written to trace.json\n"},
    {"trace", "%trace trace.json", "%trace: a file and a statement expected"},
    {"debug", "%debug 1", "%debug takes no arguments"},
    {"debug", "local function inner() local o = {} return o.x.y end\ninner()", "*(field 'x')"},
    {"debug", "%debug", "*(field 'x')\npost mortem (h: help)\n*:1: in *inner*"},
    {"flood", "%flood off", ""},
    {"flood", "%flood on", ""},
    {"flood", "%flood", "%flood: expected on or off, got ''"},
    {"hist", "%hist 1", "*before = 1; local near = 2*"},
    {"rerun", "%rerun 999", "%rerun: there is no such input"},
    {"recall", "%recall 999", "%recall: there is no such input"},
    {"rep", "%rep 999", "%rep: there is no such input"},
    {"edit", "%edit a.lua", "%edit needs a terminal: %recall puts an input into the next cell"},
    {"paste", "%paste x", "%paste takes no arguments"},
    {"pdb", "%pdb on", "automatic %debug is on\n"},
    {"pdb", "%pdb off", "automatic %debug is off\n"},
    {"pdb", "%pdb x", "%pdb: on or off expected, got x"},
    {"matplotlib", "%matplotlib inline", "%matplotlib is not needed: *"},
    {"pylab", "%pylab", "%pylab is not needed: *"},
    {"load_ext", "%load_ext autoreload", "%load_ext is not needed: *"},
    {"reload_ext", "%reload_ext x", "%reload_ext is not needed: *"},
    {"autoreload", "%autoreload 2", "%autoreload is not there: *"},
    {"tensorboard", "%tensorboard", "%tensorboard is not here: *"},
    {"config", "%config", "%config is not there: *"},
    {"colors", "%colors", "%colors is not there: *"},
    {"lsmagic", "%lsmagic", "*%lsmagic: the magics and what they do\n*%who: *"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void walk(const char *skipped) {
    for (size_t i = 0; i < ROWS; i++) {
        if (skipped && *rows[i].magic && strstr(skipped, rows[i].magic)) {
            value("nil"); /* the numbers of the inputs stay */
            continue;
        }
        const char *text = said(rows[i].input);
        bool as_wanted = reads_as(text, rows[i].says);
        if (!as_wanted)
            printf("input: %s\nwanted: %s\nsaid: %s\n", rows[i].input, rows[i].says, text);
        CHECK(as_wanted);
    }
}

static void open_session(void) {
    tide_frontend frontend = {
        .write = catch_output, .display = catch_display, .read_line = no_line, .notebook = true};
    s = tide_session_new(&frontend);
    REQUIRE(s);
}

static void close_session(void) {
    tide_result_clear(&r);
    tide_session_free(s);
    CHECK_INT(system("rm -rf 'sub dir' *.lua trace.json"), 0);
}

TEST(each_does_what_it_says) {
    open_session();
    walk(NULL);
    close_session();
}

/* What parts of tide are written in Lua, the profiler and tide.display, use the library as any
 * module does. */
TEST(each_does_so_for_a_script_that_took_the_library) {
    open_session();
    static const char takes[] =
        "local keep = {print = true, tide = true, require = true, _G = true}\n"
        "local set, walk = rawset, next\n"
        "local function taken() return nil end\n"
        "local methods = debug.getmetatable(io.stdout).__index\n"
        "for _, t in walk, {string, table, math, io, os, utf8, coroutine, debug, methods} do\n"
        "  for name, value in walk, t do set(t, name, taken) end\n"
        "end\n"
        "for name in walk, package.loaded do set(package.loaded, name, nil) end\n"
        "for name in walk, _G do if not keep[name] then set(_G, name, nil) end end";
    tide_result_clear(&r);
    tide_session_eval(s, takes, sizeof takes - 1, true, &r); /* no input that counts */
    CHECK_INT(r.outcome, TIDE_OK);
    walk("prof trace capture");
    close_session();
}

/* Is there a row for the magic of that name? */
static bool is_walked(const char *name, size_t len) {
    for (size_t i = 0; i < ROWS; i++)
        if (strlen(rows[i].magic) == len && memcmp(rows[i].magic, name, len) == 0)
            return true;
    return false;
}

TEST(all_that_are_listed_are_in_the_table_and_completed) {
    open_session();
    value("%lsmagic");
    int n = 0;
    for (const char *line = caught; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *name = line + strspn(line, "%");
        size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789");
        if (name == line || len == 0)
            continue;
        char typed[64];
        int typed_len = snprintf(typed, sizeof typed, "%%%.*s", (int)len, name);
        tide_completions c;
        tide_session_complete(s, typed, (size_t)typed_len, (size_t)typed_len, &c);
        bool offered = false;
        for (int i = 0; i < c.n; i++)
            offered = offered || strcmp(c.matches[i], typed) == 0;
        tide_completions_clear(&c);
        if (!is_walked(name, len) || !offered)
            printf("%s\n", typed);
        CHECK(is_walked(name, len) && offered);
        n++;
    }
    CHECK(n > 30);
    close_session();
}

int main(void) {
    char folder[] = "/tmp/tide-magics-XXXXXX";
    if (!mkdtemp(folder) || chdir(folder) != 0)
        return 1;
    setenv("HOME", "/", 1);
    RUN(each_does_what_it_says);
    RUN(each_does_so_for_a_script_that_took_the_library);
    RUN(all_that_are_listed_are_in_the_table_and_completed);
    CHECK_INT(rmdir(folder), 0);
    return check_finish();
}
