/* passes.c: the table of passes, and how they are run. */
#include "engine/script/passes/passes.h"

#include "engine/core/memory.h"

#include <stdio.h>
#include <string.h>

static const td_pass passes[] = {
    {"inline", "Calls of short functions give way to what these do.", false, td_pass_inline},
    {"types", "What is known of the inputs tells dtypes, shapes and strides of all values.", false,
     td_pass_types},
    {"fold", "Operators of constants are computed once, now.", false, td_pass_fold},
    {"branches", "Branches on constants, and loops that never run, give way.", false,
     td_pass_branches},
    {"unroll",
     "Loops of fewer than 64 trips are written out, longer ones of short bodies 8 trips at a time.",
     false, td_pass_unroll},
    {"peephole", "x * 1, x - 0, views and conversions that come back: what changes no bit goes.",
     false, td_pass_peephole},
    {"common", "What was computed before is not computed again.", true, td_pass_common},
    {"hoist", "What is the same in every trip of a loop is computed once, before it.", true,
     td_pass_hoist},
    {"dead", "What nobody reads is not computed, unless it acts or may fail.", false, td_pass_dead},
    {"parts", "A sum of parts in their places is one tensor that they are put into.", true,
     td_pass_parts},
    {"epilogue",
     "A convolution pads its images, adds to its result and limits it as steps of its own.", true,
     td_pass_epilogue},
    {"fuse", "Pointwise operators that make one shape become one kernel.", true, td_pass_fuse},
    {"rows", "Reductions of rows and what is pointwise between them run block by block of rows.",
     true, td_pass_rows},
    {"order", "An order of the nodes in which less memory is held at one time.", true,
     td_pass_order},
    {"reuse", "Results are written over arguments that nobody reads any more.", true,
     td_pass_reuse},
};
enum {
    PASSES = sizeof passes / sizeof *passes,
    /* run again and again, from the first to the last of these, for so many rounds at most */
    FIRST_REPEATED = 0,
    LAST_REPEATED = 8,
    ROUNDS = 4
};
static const char once[] = "unroll"; /* what it leaves would be unrolled again */

int td_pass_count(void) {
    return PASSES;
}

const td_pass *td_pass_get(int k) {
    return &passes[k];
}

const td_pass *td_pass_find(const char *name) {
    for (int k = 0; k < PASSES; k++)
        if (strcmp(passes[k].name, name) == 0)
            return &passes[k];
    return NULL;
}

td_status td_passes_switch(td_passes_options *options, const char *name, bool on) {
    const td_pass *pass = td_pass_find(name);
    if (pass) {
        uint32_t bit = (uint32_t)1 << (pass - passes);
        options->off = on ? options->off & ~bit : options->off | bit;
        return TD_OK;
    }
    char names[256] = "";
    size_t used = 0;
    for (int k = 0; k < PASSES && used < sizeof names; k++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", k ? ", " : "",
                                 passes[k].name);
    return td_fail(TD_EVALUE, "there is no pass %.40s; passes are %s", name, names);
}

/* ---- the log ---- */

static void clear_step(td_pass_step *step) {
    td_pass_note_clear(&step->note);
    td_free(step->before);
    td_free(step->after);
}

void td_pass_log_clear(td_pass_log *log) {
    for (int k = 0; k < log->nsteps; k++)
        clear_step(&log->steps[k]);
    td_free(log->steps);
    log->steps = NULL;
    log->nsteps = log->room = 0;
}

static td_status add_step(td_pass_log *log, const td_pass_step *step) {
    if (log->nsteps == log->room) {
        int room = log->room ? 2 * log->room : 16;
        td_pass_step *larger = td_realloc(log->steps, sizeof *larger * (size_t)room);
        if (!larger)
            return td_fail(TD_ENOMEM, "out of memory for a log");
        log->steps = larger;
        log->room = room;
    }
    log->steps[log->nsteps++] = *step;
    return TD_OK;
}

/* ---- runs ---- */

static td_status verify(const td_ir_graph *g, const td_pass *pass,
                        const td_passes_options *options) {
#ifdef NDEBUG
    bool wanted = options && options->verify;
#else
    bool wanted = true;
    (void)options;
#endif
    td_status status = wanted ? td_ir_verify(g) : TD_OK;
    if (status) {
        char prefix[64];
        snprintf(prefix, sizeof prefix, "after the pass %s", pass->name);
        td_error_prefix(prefix);
    }
    return status;
}

static td_status run_noted(td_ir_graph *g, const td_pass *pass, const td_passes_options *options,
                           td_pass_log *log, int *changes) {
    td_pass_step step = {.pass = pass, .note = {.explain = log && log->explain, .peak = {-1, -1}}};
    bool keep = log && log->keep;
    td_status status = TD_OK;
    if (keep && !(step.before = td_ir_print(g)))
        status = td_fail(TD_ENOMEM, "out of memory for a log");
    if (status == TD_OK)
        status = pass->run(g, &step.note);
    if (status == TD_OK)
        status = verify(g, pass, options);
    *changes += step.note.changes;
    if (status == TD_OK && keep && step.note.changes && !(step.after = td_ir_print(g)))
        status = td_fail(TD_ENOMEM, "out of memory for a log");
    if (status == TD_OK && log && step.note.changes) {
        status = add_step(log, &step);
        if (status == TD_OK)
            return TD_OK;
    }
    clear_step(&step);
    return status;
}

td_status td_pass_run(td_ir_graph *g, const td_pass *pass, const td_passes_options *options,
                      td_pass_log *log) {
    int changes = 0;
    return run_noted(g, pass, options, log, &changes);
}

static bool is_on(int k, const td_passes_options *options) {
    return !options || (!(options->off >> k & 1) && !(options->recorded && passes[k].forward));
}

/* Is a pass run in this round of those that are repeated? */
static bool is_in_round(int k, int round, const td_passes_options *options) {
    return is_on(k, options) && !(round && strcmp(passes[k].name, once) == 0);
}

int td_passes_sequence(const td_passes_options *options, int room, const td_pass **list) {
    int n = 0;
    for (int round = 0; round < ROUNDS; round++)
        for (int k = FIRST_REPEATED; k <= LAST_REPEATED; k++)
            if (is_in_round(k, round, options) && n++ < room)
                list[n - 1] = &passes[k];
    for (int k = LAST_REPEATED + 1; k < PASSES; k++)
        if (is_on(k, options) && n++ < room)
            list[n - 1] = &passes[k];
    return n;
}

td_status td_passes_run(td_ir_graph *g, const td_passes_options *options, td_pass_log *log) {
    td_status status = TD_OK;
    int changes = 1;
    for (int round = 0; round < ROUNDS && changes && status == TD_OK; round++) {
        changes = 0;
        for (int k = FIRST_REPEATED; k <= LAST_REPEATED && status == TD_OK; k++)
            if (is_in_round(k, round, options))
                status = run_noted(g, &passes[k], options, log, &changes);
    }
    for (int k = LAST_REPEATED + 1; k < PASSES && status == TD_OK; k++)
        if (is_on(k, options))
            status = run_noted(g, &passes[k], options, log, &changes);
    return status;
}
