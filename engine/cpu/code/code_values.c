/* code_values.c: from the registers of a program to values, calls, passages and buffers. */
#include "engine/cpu/code/code_values.h"

#include "engine/cpu/pointwise/pointwise_job.h"

#include <string.h>

/* ---- what is done in place ---- */

static bool is_whole(td_dtype dtype) {
    return td_dtype_is_int(dtype);
}

/* What float32 holds: the 16-bit floats are converted to and from these by way of it. */
static bool is_short(td_dtype dtype) {
    return dtype == TD_BOOL || dtype == TD_U8 || dtype == TD_I8 || dtype == TD_I16 ||
           td_is_narrow(dtype);
}

/* `wide`: the set has instructions that float16 needs. */
static bool converts_in_place(td_dtype from, td_dtype to, bool wide) {
    if ((from == TD_F16 || to == TD_F16) && !wide)
        return false;
    if (td_is_narrow(from))
        return to == TD_BOOL || td_dtype_is_float(to);
    if (td_is_narrow(to))
        return from == TD_F32 || is_short(from);
    if (from == TD_BOOL || to == TD_BOOL || (is_whole(from) && is_whole(to)))
        return true;
    if (is_whole(from))
        return to == TD_F64 || from != TD_I64;
    return (from == TD_F32 && to == TD_F64) || (from == TD_F64 && to == TD_F32) ||
           (from == TD_F32 && (to == TD_I32 || to == TD_I16 || to == TD_I8));
}

/* Of bools: what keeps to 0 and 1. */
static bool keeps_bools(int primitive) {
    switch (primitive) {
    case TD_PW_add:
    case TD_PW_mul:
    case TD_PW_maximum:
    case TD_PW_minimum:
    case TD_PW_bitwise_and:
    case TD_PW_bitwise_or:
    case TD_PW_bitwise_xor:
    case TD_PW_bitwise_not:
        return true;
    }
    return false;
}

bool td_code_in_place(int primitive, td_dtype from, td_dtype to, bool rounds) {
    enum { FLOATS = 1, WHOLE = 2, BOTH = FLOATS | WHOLE };
    static const uint8_t simple[TD_PRIMITIVES] = {
#define ARITH(name, arity, formula)                         [TD_PW_##name] = BOTH,
#define COMPARE(name, arity, formula)                       [TD_PW_##name] = BOTH,
#define EITHER(name, arity, float_formula, integer_formula) [TD_PW_##name] = BOTH,
#define FLOAT(name, arity, formula)                         [TD_PW_##name] = FLOATS,
#define INTEGER(name, arity, formula)                       [TD_PW_##name] = WHOLE,
#define PRIMITIVE(name, ...)
#include "engine/ops/language/primitives.def"
#undef PRIMITIVE
        [TD_PW_sqrt] = FLOATS};
    if (primitive < 0)
        return converts_in_place(from, to, rounds);
    if (primitive == TD_PW_copy || primitive == TD_PW_where)
        return true;
    if (primitive == TD_PW_nextafter)
        return false;
    if (primitive == TD_PW_floor || primitive == TD_PW_ceil || primitive == TD_PW_round ||
        primitive == TD_PW_trunc)
        return rounds && td_dtype_is_float(from);
    if (from == TD_BOOL)
        return keeps_bools(primitive) ||
               td_primitive_signature((td_primitive)primitive) == TD_SIGNATURE_LOGIC ||
               td_primitive_signature((td_primitive)primitive) == TD_SIGNATURE_COMPARE;
    if (from == TD_F16 || from == TD_BF16)
        return false;
    return simple[primitive] & (td_dtype_is_float(from) ? FLOATS : WHOLE);
}

/* ---- values ---- */

static int add_call(td_code_text *text, int primitive, td_dtype from, td_dtype to) {
    const td_code_call wanted = {(int16_t)primitive, (uint8_t)from, (uint8_t)to};
    for (int k = 0; k < text->ncalls; k++)
        if (text->calls[k].primitive == wanted.primitive && text->calls[k].from == wanted.from &&
            text->calls[k].to == wanted.to)
            return k;
    if (text->ncalls == TD_CODE_CALLS)
        return -1;
    text->calls[text->ncalls] = wanted;
    return text->ncalls++;
}

/* A power by a number is a cheaper function of some numbers (td_cheaper_power), which is known when
 * it runs: the loop is told which of its operands are numbers, as the program would tell it. Of
 * what is a number in a row alone neither would know. */
static bool tells_numbers(const td_code_form *form) {
    return !form->rows;
}

static const char *make_step(const td_code_form *form, bool rounds, td_code_values *v,
                             td_code_text *text, const td_step *step, const int *made) {
    const td_dtype from = td_dtype_in_call(step->from, form->compute),
                   to = td_dtype_in_call(step->to, form->compute);
    const bool converts = step->primitive == TD_PW_copy && from != to;
    const bool chooses = step->primitive == TD_PW_where;
    td_code_value *x = &v->values[v->n++];
    *x = (td_code_value){.kind = TD_CODE_IN_PLACE,
                         .dtype = (uint8_t)to,
                         .single = true,
                         .buffer = -1,
                         .call = -1,
                         .primitive = converts ? -1 : step->primitive,
                         .from = (uint8_t)from,
                         .arity = step->arity};
    for (int k = 0; k < step->arity; k++) {
        x->src[k] = made[step->src[k]];
        const td_code_value *s = &v->values[x->src[k]];
        if (s->dtype != (chooses && k == 0 ? TD_BOOL : from))
            return "a step reads another dtype than it is given";
        x->single &= s->single;
        int ready = s->passage + (s->kind == TD_CODE_CALLED);
        x->passage = x->passage > ready ? x->passage : ready;
    }
    if (td_code_in_place(x->primitive, from, to, rounds))
        return NULL;
    if (from == TD_BOOL && !converts)
        return "arithmetic of bools";
    if (step->primitive == TD_PW_pow && !tells_numbers(form))
        return "a power along rows";
    if (!converts && !td_pointwise_loop(step->primitive, from))
        return "a step without a loop";
    x->kind = TD_CODE_CALLED;
    x->call = add_call(text, x->primitive, from, to);
    return x->call < 0 ? "too many functions" : NULL;
}

static void begin_values(const td_code_form *form, td_code_values *v, int *made) {
    const td_program *p = form->program;
    for (int k = 0; k < p->nloads + p->nconstants; k++) {
        bool number = k >= p->nloads || (k < 64 && (form->numbers >> k & 1));
        uint8_t dtype = k < p->nloads ? p->loads[k].dtype : p->constants[k - p->nloads].dtype;
        v->values[v->n] = (td_code_value){.kind = number ? TD_CODE_NUMBER : TD_CODE_LOAD,
                                          .dtype = (uint8_t)td_dtype_in_call(dtype, form->compute),
                                          .single = number,
                                          .buffer = -1,
                                          .call = -1};
        made[k] = v->n++;
    }
}

/* ---- what is needed, and where it is kept ---- */

static bool keep(td_code_values *v, int value) {
    td_code_value *x = &v->values[value];
    if (x->buffer >= 0)
        return true;
    x->buffer = v->nbuffers++;
    return v->nbuffers <= TD_CODE_BUFFERS;
}

/* From the last step to the first: what is read by none is not made. */
static void note_needed(td_code_values *v, int noutputs) {
    for (int k = 0; k < noutputs; k++)
        v->values[v->outputs[k]].needed = true;
    for (int k = v->n - 1; k >= 0; k--)
        for (int s = 0; v->values[k].needed && s < v->values[k].arity; s++)
            v->values[v->values[k].src[s]].needed = true;
}

/* Elements that are widened on their way in are not in memory as a call reads them. (Loops of one
 * operand, and conversions, read no single elements: those stand in buffers for them.) */
static bool must_keep_load(const td_code_form *form, const td_code_value *x) {
    return x->kind == TD_CODE_LOAD && form->narrow != TD_DTYPE_NONE;
}

static bool choose_buffers(const td_code_form *form, td_code_values *v) {
    bool fits = true;
    for (int k = 0; k < v->n; k++) {
        const td_code_value *x = &v->values[k];
        if (!x->needed || x->arity == 0)
            continue;
        if (x->kind == TD_CODE_CALLED)
            fits &= keep(v, k);
        for (int s = 0; s < x->arity; s++) {
            const td_code_value *from = &v->values[x->src[s]];
            bool later = from->arity > 0 && from->passage < x->passage;
            bool read = x->kind == TD_CODE_CALLED &&
                        (from->arity > 0 || x->arity == 1 || must_keep_load(form, from));
            if (later || read)
                fits &= keep(v, x->src[s]);
        }
    }
    for (int k = 0; k < form->program->noutputs; k++) {
        const td_code_value *x = &v->values[v->outputs[k]];
        if (x->arity > 0 && x->passage < v->passages - 1)
            fits &= keep(v, v->outputs[k]);
    }
    return fits;
}

const char *td_code_values_make(const td_code_form *form, bool rounds, td_code_values *v,
                                td_code_text *text) {
    enum { REGISTERS = 512 };
    const td_program *p = form->program;
    int made[REGISTERS];
    memset(v, 0, sizeof *v);
    if (p->nloads + p->nconstants + p->noutputs + p->nbuffers > REGISTERS ||
        p->nloads + p->nconstants + p->nsteps > TD_CODE_VALUES || p->noutputs > TD_CODE_BUFFERS)
        return "too long";
    v->nloads = p->nloads;
    v->nconstants = p->nconstants;
    begin_values(form, v, made);
    for (int s = 0; s < p->nsteps; s++) {
        const char *why = make_step(form, rounds, v, text, &p->steps[s], made);
        if (why)
            return why;
        made[p->steps[s].dst] = v->n - 1;
    }
    v->passages = 1;
    for (int k = 0; k < p->noutputs; k++)
        v->outputs[k] = p->nloads + p->nconstants + p->outputs[k].step;
    note_needed(v, p->noutputs);
    for (int k = 0; k < v->n; k++) {
        const td_code_value *x = &v->values[k];
        int ready = x->passage + (x->kind == TD_CODE_CALLED);
        if (x->needed && ready >= v->passages)
            v->passages = ready + 1;
    }
    return choose_buffers(form, v) ? NULL : "too many values at once";
}
