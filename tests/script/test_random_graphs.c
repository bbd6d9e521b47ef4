/* test_random_graphs.c: graphs of operators that are drawn from the table do the same whatever
 * passes were run on them, alone and all together, and as functions, which are specialised for
 * their inputs. TIDE_GRAPHS: how many (2000), TIDE_GRAPHS_FIRST: the first one's seed. */
#include "engine/script/passes/copy.h"
#include "engine/script/passes/passes.h"
#include "engine/script/run.h"
#include "engine/script/trace.h"
#include "engine/td.h"

#include "tests/check.h"
#include "tests/script/graph_runs.h"
#include "tests/script/random_graph.h"

#include <stdlib.h>

enum { MOST_SHOWN = 3 };
static int shown;

static long setting(const char *name, long otherwise) {
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : otherwise;
}

static void show(const char *what, uint64_t seed, const td_ir_graph *before,
                 const td_ir_graph *after, const char *why) {
    char *was = td_ir_print(before), *is = after ? td_ir_print(after) : NULL;
    check_fail(__FILE__, __LINE__, "graph %llu after %s: %.700s", (unsigned long long)seed, what,
               why);
    if (shown++ < MOST_SHOWN)
        fprintf(stderr, "%s\nbecomes\n%s\n", was, is ? is : "nothing");
    td_free(was);
    td_free(is);
}

/* One pass, or all where it is NULL. False: something differs. */
static void check_pass(const td_ir_graph *g, uint64_t seed, const graph_run *wanted,
                       const td_pass *pass) {
    char why[1400] = "";
    const char *what = pass ? pass->name : "all passes";
    td_passes_options options = {.verify = true};
    td_ir_graph *copy = td_ir_graph_copy(g);
    td_status status = !copy  ? TD_ENOMEM
                       : pass ? td_pass_run(copy, pass, &options, NULL)
                              : td_passes_run(copy, &options, NULL);
    if (status) {
        show(what, seed, g, copy, td_error_message());
        td_ir_graph_release(copy);
        return;
    }
    graph_run run;
    bool ran = graph_run_make(copy, seed, &run);
    if (!ran || !graph_run_same(wanted, &run, why, sizeof why))
        show(what, seed, g, copy, ran ? why : run.message);
    graph_run_clear(&run);
    td_ir_graph_release(copy);
}

/* A function made of the graph does the same. */
static void check_scripted(const td_ir_graph *g, uint64_t seed, const graph_run *wanted) {
    char why[1400] = "";
    graph_run run;
    bool ran = graph_run_scripted(g, seed, &run);
    if (!ran || !graph_run_same(wanted, &run, why, sizeof why))
        show("scripting", seed, g, NULL, ran ? why : run.message);
    graph_run_clear(&run);
}

static int failed_runs, branches, loops, modes;

static void count(const td_ir_block *block) {
    for (const td_ir_node *node = block->first; node; node = node->next) {
        branches += node->kind == TD_IR_IF;
        loops += node->kind == TD_IR_LOOP;
        modes += node->kind == TD_IR_WITH;
        for (int b = 0; b < node->nblocks; b++)
            count(node->blocks[b]);
    }
}

TEST(passes_keep_what_random_graphs_do) {
    long n = setting("TIDE_GRAPHS", 2000), first = setting("TIDE_GRAPHS_FIRST", 1);
    for (long seed = first; seed < first + n; seed++) {
        graph_run wanted;
        td_ir_graph *g = random_graph((uint64_t)seed);
        REQUIRE(g != NULL);
        count(g->block);
        if (!graph_run_make(g, (uint64_t)seed, &wanted))
            show("no pass", (uint64_t)seed, g, NULL, wanted.message);
        else {
            failed_runs += wanted.status != TD_OK;
            for (int k = 0; k < td_pass_count(); k++)
                check_pass(g, (uint64_t)seed, &wanted, td_pass_get(k));
            check_pass(g, (uint64_t)seed, &wanted, NULL);
            check_scripted(g, (uint64_t)seed, &wanted);
        }
        graph_run_clear(&wanted);
        td_ir_graph_release(g);
    }
    printf("%ld graphs, %d of which fail; %d branches, %d loops, %d modes\n", n, failed_runs,
           branches, loops, modes);
    if (n >= 100) {
        CHECK(failed_runs < n / 2); /* most of them come to results */
        CHECK(branches > n / 10 && loops > n / 10 && modes > n / 10);
    }
}

int main(void) {
    if (td_init()) {
        fprintf(stderr, "%s\n", td_error_message());
        return 1;
    }
    RUN(passes_keep_what_random_graphs_do);
    return check_finish();
}
