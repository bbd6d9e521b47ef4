/* code.c: how long scripts live. */
#include "engine/script/code.h"

#include "engine/core/memory.h"
#include "engine/script/row_kernel.h"

/* The scripts of the nodes in a block. */
static void release_scripts(const td_script *s, const td_code_block *c) {
    for (int k = 0; k < c->nsteps; k++) {
        if (c->steps[k].script != s)
            td_script_release(c->steps[k].script);
        for (int b = 0; b < c->steps[k].node->nblocks; b++)
            release_scripts(s, &c->steps[k].blocks[b]);
    }
}

td_script *td_script_retain(td_script *s) {
    if (s)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void td_script_release(td_script *s) {
    if (!s || !td_was_last(&s->refs))
        return;
    release_scripts(s, &s->code);
    td_script_kernel_free(s->kernel);
    td_row_kernel_free(s->rows);
    td_ir_graph_release(s->memory);
    td_ir_graph_release(s->graph);
    td_free(s);
}

static void add_measured(const td_script *s, const td_code_block *c, td_kernel_error *error) {
    for (int k = 0; k < c->nsteps; k++) {
        if (c->steps[k].script && c->steps[k].script != s)
            td_script_measured(c->steps[k].script, error);
        for (int b = 0; b < c->steps[k].node->nblocks; b++)
            add_measured(s, &c->steps[k].blocks[b], error);
    }
}

void td_script_measured(const td_script *s, td_kernel_error *error) {
    td_script_kernel_measured(s->kernel, error);
    add_measured(s, &s->code, error);
}

const td_ir_graph *td_script_graph(const td_script *s) {
    return s->graph;
}
