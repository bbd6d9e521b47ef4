/* defer_plan.c: divides a path into parts.
 *
 * Each step has a level: that of what it reads, or the next one where that is held (a cut). Steps
 * of one level are a graph; views that are held are calls behind it. What draws or writes keeps its
 * place: nothing behind it is of a lower level.
 */
#include "engine/script/defer/defer_plan.h"

#include "engine/core/memory.h"
#include "engine/script/trace.h"

#include <string.h>

typedef struct planner {
    td_ir_graph *memory;
    td_path_step **steps;
    int nsteps, nvalues;
    bool recorded;
    bool *held, *cut; /* by result */
    int *maker;       /* the step of a result */
    int *level;       /* by step */
    bool *called;     /* by step: it is a call of its own, behind its level's graph */
    int nlevels;
} planner;

static td_tensor *stand_in_of(const planner *p, int value) {
    const td_path_step *s = p->steps[p->maker[value]];
    return s->outs[value - s->first_value];
}

/* A view that is held, or that one is made of, is made by a call of what it looks into. */
static void find_cuts(planner *p) {
    for (int v = 0; v < p->nvalues; v++)
        p->cut[v] = p->recorded && p->held[v] && stand_in_of(p, v)->requires_grad;
    for (int k = p->nsteps - 1; k >= 0; k--) {
        const td_path_step *s = p->steps[k];
        for (int j = 0; j < s->nouts && s->view; j++)
            p->called[k] |= p->cut[s->first_value + j];
        for (int j = 0; j < s->noperands && p->called[k]; j++)
            if (s->operands[j].value >= 0)
                p->cut[s->operands[j].value] = true;
    }
}

static void find_levels(planner *p) {
    int floor = 0;
    for (int k = 0; k < p->nsteps; k++) {
        const td_path_step *s = p->steps[k];
        bool keeps = s->inplace || s->op->flags & TD_OP_RANDOM;
        int level = floor;
        for (int j = 0; j < s->noperands; j++) {
            int v = s->operands[j].value;
            int least = v < 0 ? 0 : p->level[p->maker[v]] + p->cut[v];
            level = level > least ? level : least;
        }
        if (keeps && level < p->nlevels - 1)
            level = p->nlevels - 1;
        if (keeps)
            floor = level;
        p->level[k] = level;
        if (level >= p->nlevels)
            p->nlevels = level + 1;
    }
}

/* ---- parts ---- */

static bool has_input(const td_plan_part *part, const td_path_operand *o) {
    for (int k = 0; k < part->ninputs; k++)
        if (part->inputs[k].stand_in == o->stand_in)
            return true;
    return false;
}

static bool belongs(const planner *p, int step, int level, bool called) {
    return p->level[step] == level && p->called[step] == called && !p->steps[step]->idle;
}

static void add_inputs(const planner *p, td_plan_part *part, const td_path_step *s, int level,
                       bool called) {
    for (int j = 0; j < s->noperands; j++) {
        const td_path_operand *o = &s->operands[j];
        bool own = o->value >= 0 && belongs(p, p->maker[o->value], level, called);
        if (o->stand_in && !own && !has_input(part, o))
            part->inputs[part->ninputs++] = *o;
    }
}

/* Is a result of this part read by another, or held? */
static bool leaves(const planner *p, int value, int level, bool called) {
    if (p->held[value])
        return true;
    for (int k = p->maker[value] + 1; k < p->nsteps; k++) {
        const td_path_step *s = p->steps[k];
        if (belongs(p, k, level, called) || s->idle)
            continue;
        for (int j = 0; j < s->noperands; j++)
            if (s->operands[j].value == value)
                return true;
    }
    return false;
}

/* The part of a level; called views by themselves. NULL: nothing belongs to it, or (the memory's
 * graph says so) there is no memory. */
static td_plan_part *make_part(planner *p, int level, bool called) {
    int nsteps = 0, noperands = 0, nouts = 0;
    for (int k = 0; k < p->nsteps; k++)
        if (belongs(p, k, level, called)) {
            nsteps++;
            noperands += p->steps[k]->noperands;
            nouts += p->steps[k]->nouts;
        }
    td_plan_part *part = nsteps ? td_ir_alloc(p->memory, sizeof *part) : NULL;
    if (!part)
        return NULL;
    part->steps = td_ir_alloc(p->memory, sizeof *part->steps * (size_t)nsteps);
    part->inputs = td_ir_alloc(p->memory, sizeof *part->inputs * (size_t)(noperands + 1));
    part->outputs = td_ir_alloc(p->memory, sizeof *part->outputs * (size_t)(nouts + 1));
    if (p->memory->failed)
        return NULL;
    bool draws = false;
    for (int k = 0; k < p->nsteps; k++) {
        const td_path_step *s = p->steps[k];
        if (!belongs(p, k, level, called))
            continue;
        part->steps[part->nsteps++] = k;
        draws |= s->op->flags & TD_OP_RANDOM;
        add_inputs(p, part, s, level, called);
        for (int v = s->first_value; v < s->first_value + s->nouts; v++)
            if (s->outs[v - s->first_value] && leaves(p, v, level, called))
                part->outputs[part->noutputs++] = v;
    }
    part->calls = called || nsteps == 1;
    return part->noutputs || draws ? part : NULL;
}

/* A result that is its argument itself is held as that. */
static void hold(planner *p, int value) {
    const td_path_step *s = p->steps[p->maker[value]];
    if (!s->idle)
        p->held[value] = true;
    for (int j = 0; j < s->noperands && s->idle; j++)
        if (s->operands[j].stand_in == s->outs[0] && s->operands[j].value >= 0)
            p->held[s->operands[j].value] = true;
}

static td_plan *make_plan(planner *p, int n, const int *held) {
    td_plan *plan = td_ir_alloc(p->memory, sizeof *plan);
    for (int k = 0; k < p->nsteps; k++)
        for (int j = 0; j < p->steps[k]->nouts; j++)
            p->maker[p->steps[k]->first_value + j] = k;
    for (int k = 0; k < n; k++)
        hold(p, held[k]);
    find_cuts(p);
    find_levels(p);
    td_plan_part **end = plan ? &plan->first : NULL;
    for (int level = 0; level < p->nlevels && end; level++)
        for (int called = 1; called >= 0; called--) {
            td_plan_part *part = make_part(p, level, called);
            if (part) {
                *end = part;
                end = &part->next;
            }
        }
    return p->memory->failed ? NULL : plan;
}

td_plan *td_plan_new(td_ir_graph *memory, td_path_step *s, int n, const int *held, bool recorded) {
    planner p = {.memory = memory,
                 .nsteps = s->ncalls,
                 .nvalues = s->first_value + s->nouts,
                 .recorded = recorded};
    size_t steps = (size_t)p.nsteps + 1, values = (size_t)p.nvalues + 1;
    p.steps = td_calloc(steps, sizeof *p.steps);
    p.level = td_calloc(steps, sizeof *p.level);
    p.called = td_calloc(steps, sizeof *p.called);
    p.maker = td_calloc(values, sizeof *p.maker);
    p.held = td_calloc(values, sizeof *p.held);
    p.cut = td_calloc(values, sizeof *p.cut);
    td_plan *plan = NULL;
    if (p.steps && p.level && p.called && p.maker && p.held && p.cut) {
        td_path_list(s, p.steps);
        plan = make_plan(&p, n, held);
    }
    td_free(p.steps);
    td_free(p.level);
    td_free(p.called);
    td_free(p.maker);
    td_free(p.held);
    td_free(p.cut);
    return plan;
}

void td_plan_drop(td_plan *plan) {
    for (td_plan_part *part = plan ? plan->first : NULL; part; part = part->next)
        td_scripted_release(part->graph);
}

/* ---- graphs ---- */

static void add_call(td_trace *t, const td_path_step *s) {
    td_ir_graph *g = td_trace_graph(t);
    td_ir_node *before = g->block->last;
    td_call call = {.op = s->op, .args = s->args, .inplace = s->inplace};
    if (s->op->result_type == TD_RESULT_TENSORS) {
        call.list = s->outs;
        call.nlist = s->nouts;
    } else {
        memcpy(call.out, s->outs, sizeof *s->outs * (size_t)s->nouts);
    }
    td_trace_add_call(t, s->op, &call);
    const char *file = s->place.file ? td_ir_text(g, s->place.file, strlen(s->place.file)) : NULL;
    for (td_ir_node *node = g->block->last; node && node != before; node = node->previous)
        node->place = (td_ir_place){file, s->place.line, 0};
}

static td_status make_graph(td_path_step *s, const td_plan_part *part, td_path_step **steps,
                            td_tensor **outputs, td_ir_graph **out) {
    td_trace *t;
    td_status status = td_trace_new(NULL, NULL, NULL, &t);
    if (status)
        return status;
    td_ir_graph *g = td_trace_graph(t);
    td_path_list(s, steps);
    for (int k = 0; k < part->ninputs; k++) {
        td_tensor *x = part->inputs[k].stand_in;
        td_trace_name(t, x, td_ir_add_input(g->block, td_ir_type_of_tensor(g, x), NULL));
    }
    for (int k = 0; k < part->nsteps; k++)
        add_call(t, steps[part->steps[k]]);
    for (int k = 0, j = 0; k < part->noutputs; k++) {
        while (steps[part->steps[j]]->first_value + steps[part->steps[j]]->nouts <=
               part->outputs[k])
            j++;
        const td_path_step *maker = steps[part->steps[j]];
        outputs[k] = maker->outs[part->outputs[k] - maker->first_value];
    }
    return td_trace_end(t, part->noutputs, outputs, out);
}

td_status td_plan_make(td_path_step *s, td_plan_part *part) {
    td_ir_graph *g = NULL;
    td_path_step **steps = td_malloc(sizeof *steps * (size_t)(s->ncalls + 1));
    td_tensor **outputs = td_malloc(sizeof *outputs * (size_t)(part->noutputs + 1));
    td_status status = steps && outputs ? make_graph(s, part, steps, outputs, &g)
                                        : td_fail(TD_ENOMEM, "out of memory for a graph");
    if (status == TD_OK)
        status = td_scripted_new(g, "calls that were put off", &part->graph);
    if (status == TD_OK)
        td_scripted_set_untimed(part->graph);
    td_ir_graph_release(g);
    td_free(steps);
    td_free(outputs);
    return status;
}
