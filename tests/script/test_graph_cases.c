/* test_graph_cases.c: texts of graphs with the passes to be run on them and what these make of
 * them, from the files *.graph of the folder TIDE_GRAPH_CASES:
 *
 *     let X = Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)
 *     ==== name of the case
 *     passes: types peephole
 *     graph(%x : $X):
 *       ...
 *     ----
 *     graph(...):
 *
 * `same` in place of the second graph: the passes change nothing. Each graph is run before and
 * after them, too, on inputs of its types. With TIDE_GRAPH_CASES_PRINT set the files are printed
 * with what the passes make of them today. */
#include "engine/script/passes/passes.h"
#include "engine/td.h"

#include "tests/check.h"
#include "tests/script/graph_runs.h"

#include <dirent.h>
#include <stdlib.h>

enum { MOST_LETS = 16, MOST_CASES = 400, MOST_TEXT = 1 << 16 };

typedef struct let {
    char name[32], text[160];
} let;

static let lets[MOST_LETS];
static int nlets;
static int ncases;
static bool printing;

/* Every $NAME by its text. */
static void expand(const char *from, char *to, size_t size) {
    size_t used = 0;
    while (*from && used + 200 < size) {
        int best = -1;
        for (int k = 0; *from == '$' && k < nlets; k++)
            if (!strncmp(from + 1, lets[k].name, strlen(lets[k].name)) &&
                (best < 0 || strlen(lets[k].name) > strlen(lets[best].name)))
                best = k;
        if (best >= 0) {
            used += (size_t)snprintf(to + used, size - used, "%s", lets[best].text);
            from += 1 + strlen(lets[best].name);
        } else
            to[used++] = *from++;
    }
    to[used] = 0;
}

/* The other way round, for printing. */
static void contract(const char *from, char *to, size_t size) {
    size_t used = 0;
    while (*from && used + 200 < size) {
        int best = -1;
        for (int k = 0; k < nlets; k++)
            if (!strncmp(from, lets[k].text, strlen(lets[k].text)))
                best = k;
        if (best >= 0) {
            used += (size_t)snprintf(to + used, size - used, "$%s", lets[best].name);
            from += strlen(lets[best].text);
        } else
            to[used++] = *from++;
    }
    to[used] = 0;
}

static td_status run_passes(td_ir_graph *g, const char *names) {
    td_passes_options options = {.verify = true};
    td_status status = TD_OK;
    char name[32];
    int read = 0;
    for (; status == TD_OK && sscanf(names, " %31s%n", name, &read) == 1; names += read) {
        const td_pass *pass = td_pass_find(name);
        if (!strcmp(name, "all"))
            status = td_passes_run(g, &options, NULL);
        else if (!pass)
            status = td_fail(TD_EVALUE, "there is no pass %s", name);
        else
            status = td_pass_run(g, pass, &options, NULL);
    }
    return status;
}

static void compare_runs(const char *name, const td_ir_graph *before, const td_ir_graph *after) {
    for (uint64_t seed = 1; seed <= 3; seed++) {
        graph_run a, b;
        char why[1400] = "";
        bool ran = graph_run_make(before, seed, &a);
        if (ran != graph_run_make(after, seed, &b) ||
            (ran && !graph_run_same(&a, &b, why, sizeof why)))
            check_fail(__FILE__, __LINE__, "%s: runs differ: %.700s", name, why);
        else if (!ran)
            check_fail(__FILE__, __LINE__, "%s: is not run: %s", name, a.message);
        graph_run_clear(&a);
        graph_run_clear(&b);
    }
}

static void run_case(const char *name, const char *passes, const char *given,
                     const char *expected) {
    static char text[MOST_TEXT], wanted[MOST_TEXT];
    td_ir_graph *before = NULL, *after = NULL;
    ncases++;
    expand(given, text, sizeof text);
    expand(expected, wanted, sizeof wanted);
    if (td_ir_parse(text, &before) || td_ir_parse(text, &after) || run_passes(after, passes)) {
        check_fail(__FILE__, __LINE__, "%s: %s", name, td_error_message());
        td_ir_graph_release(before);
        td_ir_graph_release(after);
        return;
    }
    char *made = td_ir_print(after);
    bool same = !strcmp(wanted, "same\n");
    if (printing) {
        contract(made, text, sizeof text);
        printf("==== %s\npasses:%s\n%s----\n%s", name, passes, given, same ? wanted : text);
    }
    char *as_it_was = td_ir_print(before);
    if (made && as_it_was && strcmp(made, same ? as_it_was : wanted)) {
        contract(made, text, sizeof text);
        fprintf(stderr, "---- %s gives\n%s", name, text);
        check_fail(__FILE__, __LINE__, "%s: another graph is expected", name);
    }
    compare_runs(name, before, after);
    td_free(made);
    td_free(as_it_was);
    td_ir_graph_release(before);
    td_ir_graph_release(after);
}

/* ---- files ---- */

typedef struct reader {
    char name[96], passes[96];
    char given[MOST_TEXT], expected[MOST_TEXT];
    char *part; /* which of both the lines go to; NULL: none */
} reader;

static void end_case(reader *r) {
    if (r->name[0])
        run_case(r->name, r->passes, r->given, r->expected);
    r->name[0] = r->passes[0] = r->given[0] = r->expected[0] = 0;
    r->part = NULL;
}

static void read_line(reader *r, const char *line) {
    let *l = &lets[nlets];
    if (sscanf(line, "let %31s = %159[^\n]", l->name, l->text) == 2) {
        nlets += nlets + 1 < MOST_LETS;
        if (printing)
            printf("%s", line);
    } else if (sscanf(line, "passes:%95[^\n]", r->passes) == 1)
        return;
    else if (!strcmp(line, "----\n"))
        r->part = r->expected;
    else if (r->part && line[0] != '\n' && strlen(r->part) + strlen(line) + 1 < MOST_TEXT)
        memcpy(r->part + strlen(r->part), line, strlen(line) + 1);
}

static void run_file(const char *folder, const char *file) {
    static reader r;
    char path[1024], line[1024];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    if (!f) {
        check_fail(__FILE__, __LINE__, "%s can't be read", path);
        return;
    }
    nlets = 0;
    memset(&r, 0, sizeof r);
    if (printing)
        printf("#### %s\n", file);
    while (fgets(line, sizeof line, f)) {
        static char
            name[96]; /* the case that ends here has run before the next one's name is read */
        if (!strncmp(line, "==== ", 5)) {
            snprintf(name, sizeof name, "%.*s", (int)strcspn(line + 5, "\n"), line + 5);
            end_case(&r);
            snprintf(r.name, sizeof r.name, "%s", name);
            r.part = r.given;
        } else
            read_line(&r, line);
    }
    end_case(&r);
    fclose(f);
}

TEST(passes_make_of_graphs_what_the_cases_say) {
    const char *folder = getenv("TIDE_GRAPH_CASES");
    REQUIRE(folder != NULL);
    struct dirent **files;
    int n = scandir(folder, &files, NULL, alphasort);
    REQUIRE(n > 0);
    for (int k = 0; k < n; k++) {
        size_t length = strlen(files[k]->d_name);
        if (length > 6 && !strcmp(files[k]->d_name + length - 6, ".graph"))
            run_file(folder, files[k]->d_name);
        free(files[k]);
    }
    free(files);
    CHECK(ncases >= 80);
}

TEST(a_pass_that_does_not_exist_is_named_with_those_that_do) {
    td_passes_options options = {0};
    CHECK_INT(td_passes_switch(&options, "fsue", false), TD_EVALUE);
    CHECK_STR(td_error_message(),
              "there is no pass fsue; passes are inline, types, fold, branches, unroll, peephole, "
              "common, hoist, dead, parts, epilogue, fuse, rows, order, reuse");
    for (int k = 0; k < td_pass_count(); k++) {
        CHECK_INT(td_passes_switch(&options, td_pass_get(k)->name, false), TD_OK);
        CHECK(td_pass_find(td_pass_get(k)->name) == td_pass_get(k));
    }
    CHECK_INT(options.off, (1 << td_pass_count()) - 1);
    CHECK_INT(td_passes_switch(&options, "dead", true), TD_OK);
    CHECK(options.off != (uint32_t)(1 << td_pass_count()) - 1);
}

static const char twice[] = "graph(%x : Float(2, strides=[1], requires_grad=0, device=cpu)):\n"
                            "  %a : Tensor = aten::exp(%x) # cell.lua:2:3\n"
                            "  %b : Tensor = aten::exp(%x) # cell.lua:3:3\n"
                            "  %n : int = prim::Constant[value=1]()\n"
                            "  %c : Tensor = aten::add(%a, %b, %n)\n"
                            "  return (%c)\n";

TEST(a_log_keeps_the_graph_before_and_after_each_pass_and_lines) {
    td_ir_graph *g = NULL;
    td_pass_log log = {.keep = true, .explain = true};
    td_passes_options options = {.verify = true};
    REQUIRE(td_ir_parse(twice, &g) == TD_OK);
    CHECK_INT(td_passes_run(g, &options, &log), TD_OK);
    REQUIRE(log.nsteps >= 3);
    bool common = false;
    for (int k = 0; k < log.nsteps; k++) {
        const td_pass_step *step = &log.steps[k];
        CHECK(step->before && step->after && step->note.changes > 0);
        if (k)
            CHECK_STR(step->before, log.steps[k - 1].after);
        if (!strcmp(step->pass->name, "common")) {
            common = true;
            CHECK_CONTAINS(step->note.text, "cell.lua:3: %b: is %a, which was computed before");
        }
    }
    CHECK(common);
    char *text = td_ir_print(g);
    CHECK_STR(text, log.steps[log.nsteps - 1].after);
    td_free(text);
    td_pass_log_clear(&log);
    CHECK_INT(log.nsteps, 0);
    td_ir_graph_release(g);
}

TEST(passes_that_are_off_do_not_run) {
    td_ir_graph *g = NULL;
    td_pass_log log = {.keep = false};
    td_passes_options options = {.recorded = true};
    REQUIRE(td_ir_parse(twice, &g) == TD_OK);
    REQUIRE(td_passes_switch(&options, "fuse", false) == TD_OK);
    CHECK_INT(td_passes_run(g, &options, &log), TD_OK);
    for (int k = 0; k < log.nsteps; k++) {
        CHECK(strcmp(log.steps[k].pass->name, "fuse") != 0);
        CHECK(!log.steps[k].pass->forward);
        CHECK(log.steps[k].before == NULL);
    }
    td_pass_log_clear(&log);
    td_ir_graph_release(g);
}

TEST(memory_that_runs_out_in_a_pass_is_said_and_nothing_leaks) {
    int whole = 0; /* runs that needed no more allocations than there were, one after the other */
    for (int64_t n = 1; whole < 40; n++) {
        td_ir_graph *g = NULL;
        td_pass_log log = {.keep = true, .explain = true};
        REQUIRE(td_ir_parse(twice, &g) == TD_OK);
        td_memory_fail_after(n);
        td_status status = td_passes_run(g, NULL, &log);
        td_memory_fail_after(0);
        CHECK(status == TD_OK || status == TD_ENOMEM);
        whole = status == TD_OK ? whole + 1 : 0;
        td_pass_log_clear(&log);
        td_ir_graph_release(g);
    }
}

int main(void) {
    printing = getenv("TIDE_GRAPH_CASES_PRINT") != NULL;
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(passes_make_of_graphs_what_the_cases_say);
    RUN(a_pass_that_does_not_exist_is_named_with_those_that_do);
    RUN(a_log_keeps_the_graph_before_and_after_each_pass_and_lines);
    RUN(passes_that_are_off_do_not_run);
    RUN(memory_that_runs_out_in_a_pass_is_said_and_nothing_leaks);
    return check_finish();
}
