/* program_uses.c: who reads what a step of a program makes, noted once for those who run it. */
#include "engine/ops/language/program_uses.h"

static int first_buffer(const td_program *p) {
    return p->nloads + p->nconstants + p->noutputs;
}

static int count_reads(const td_step *step, int reg) {
    int reads = 0;
    for (int k = 0; k < step->arity; k++)
        reads += step->src[k] == reg;
    return reads;
}

/* The step that alone reads what step s makes, once; -1: an output, or there are more or none. */
static int reader_of(const td_program *p, int s) {
    int made = p->steps[s].dst, reader = -1, reads = 0;
    if (made < first_buffer(p))
        return -1;
    for (int t = s + 1; t < p->nsteps; t++) {
        int more = count_reads(&p->steps[t], made);
        if (more)
            reader = t;
        reads += more;
        if (p->steps[t].dst == made)
            break;
    }
    return reads == 1 ? reader : -1;
}

/* The step before s that makes what s finds in a register; -1: none does. */
static int maker_of(const td_program *p, int s, int reg) {
    int made = s - 1;
    while (made >= 0 && p->steps[made].dst != reg)
        made--;
    return made;
}

/* Is what step s reads in a register still there for step t, and not only passed on? What is
 * written between into outputs may lie where an operand does. */
static bool is_there(const td_program *p, int reg, int s, int t) {
    int made = maker_of(p, s, reg);
    for (int u = s + 1; u < t; u++)
        if (p->steps[u].dst < first_buffer(p) || p->steps[u].dst == reg)
            return false;
    return made < 0 || !p->steps[made].passed;
}

/* Can comparison s wait for its only reader? What is passed on waits for the very next step. */
static bool can_wait(const td_program *p, int s, int t) {
    const td_step *by = &p->steps[s], *choice = &p->steps[t];
    if (td_primitive_signature((td_primitive)by->primitive) != TD_SIGNATURE_COMPARE ||
        choice->primitive != TD_PW_where || choice->src[0] != by->dst)
        return false;
    for (int k = 0; k < 2; k++)
        if (t > s + 1 && !is_there(p, by->src[k], s, t))
            return false;
    return true;
}

void td_program_note_flow(td_program *p) {
    for (int s = 0; s < p->nsteps; s++)
        p->steps[s].passed = reader_of(p, s) == s + 1;
    for (int s = 0; s < p->nsteps; s++) {
        int reader = reader_of(p, s);
        if (reader < 0 || !can_wait(p, s, reader))
            continue;
        p->steps[s].waits = true;
        p->steps[reader].by = (uint16_t)(s + 1);
    }
}
