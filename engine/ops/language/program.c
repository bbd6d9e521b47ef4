/* program.c: makes programs step by step; their lives. */
#include "engine/ops/language/program.h"
#include "engine/ops/language/program_uses.h"

#include "engine/core/memory.h"

#include <stdio.h>
#include <string.h>

const td_program *td_program_retain(const td_program *p) {
    __atomic_add_fetch(&((td_program *)p)->refs, 1, __ATOMIC_RELAXED);
    return p;
}

void td_program_release(const td_program *p) {
    if (p && __atomic_sub_fetch(&((td_program *)p)->refs, 1, __ATOMIC_ACQ_REL) == 0)
        td_free((td_program *)p);
}

td_dtype td_program_compute(const td_program *p, td_dtype call) {
    if (TD_LIKELY(td_dtype_compute(call) == call))
        return call;
    for (int s = 0; s < p->nsteps; s++)
        if (p->steps[s].primitive != TD_PW_copy && p->steps[s].primitive != TD_PW_where)
            return td_dtype_compute(call);
    return p->reduces ? td_dtype_compute(call) : call;
}

/* ---- values ---- */

/* A value under construction: what it is in the high bits, which of them in the low ones. */
enum {
    OPERAND = 0 << 24,  /* not read yet: the dtype follows from who reads it */
    NUMBER = 1 << 24,   /* likewise */
    LOAD = 2 << 24,     /* an operand as a dtype */
    CONSTANT = 3 << 24, /* a number as a dtype */
    STEP = 4 << 24,
    KIND = 7 << 24,
    MOST = 60000 /* of each kind, so that registers fit 16 bits */
};

typedef struct draft_step {
    int16_t primitive;
    uint8_t arity, from, to;
    int src[3];
} draft_step;

typedef struct draft_output {
    int value;
    td_output_kind kind;
} draft_output;

struct td_builder {
    int noperands;
    bool fast;
    td_status failed;
    td_list numbers, loads, constants, steps, outputs;
    char label[TD_PROGRAM_LABEL + 1];
};

td_builder *td_builder_new(int noperands) {
    td_builder *b = td_calloc(1, sizeof *b);
    if (b)
        b->noperands = noperands;
    return b;
}

void td_builder_label(td_builder *b, const char *text) {
    size_t n = strlen(text);
    snprintf(b->label, sizeof b->label, "%s",
             text + (n > TD_PROGRAM_LABEL ? n - TD_PROGRAM_LABEL : 0));
}

void td_builder_release(td_builder *b) {
    if (!b)
        return;
    td_list_clear(&b->numbers);
    td_list_clear(&b->loads);
    td_list_clear(&b->constants);
    td_list_clear(&b->steps);
    td_list_clear(&b->outputs);
    td_free(b);
}

static int refuse(td_builder *b, td_status status) {
    if (!b->failed)
        b->failed = status;
    return 0;
}

/* Index of a new item; 0 after a failure. */
static int append(td_builder *b, td_list *list, const void *item, size_t size) {
    if (b->failed)
        return 0;
    if (list->n == MOST)
        return refuse(b, td_fail(TD_EVALUE, "a program of more than %d steps or values", MOST));
    void *place = td_list_add(list, size);
    if (!place)
        return refuse(b, td_fail(TD_ENOMEM, "out of memory for a program"));
    memcpy(place, item, size);
    return list->n - 1;
}

int td_builder_operand(td_builder *b, int operand) {
    if (operand < 0 || operand >= b->noperands || operand > MOST)
        return refuse(b, td_fail(TD_EINTERNAL, "a program has no operand %d", operand));
    return OPERAND + operand;
}

int td_builder_number(td_builder *b, double value) {
    return NUMBER + append(b, &b->numbers, &value, sizeof value);
}

static int load_as(td_builder *b, int operand, uint8_t dtype) {
    const td_load *loads = b->loads.items;
    for (int k = 0; k < b->loads.n; k++)
        if (loads[k].operand == operand && loads[k].dtype == dtype)
            return LOAD + k;
    td_load load = {(uint16_t)operand, dtype};
    return LOAD + append(b, &b->loads, &load, sizeof load);
}

static int number_as(td_builder *b, int number, uint8_t dtype) {
    if (b->failed)
        return CONSTANT;
    double value = ((const double *)b->numbers.items)[number];
    const td_constant *constants = b->constants.items;
    for (int k = 0; k < b->constants.n; k++)
        if (constants[k].dtype == dtype && !memcmp(&constants[k].value, &value, sizeof value))
            return CONSTANT + k;
    td_constant constant = {value, dtype};
    return CONSTANT + append(b, &b->constants, &constant, sizeof constant);
}

static int step_of(td_builder *b, const draft_step *step, bool anew) {
    const draft_step *steps = b->steps.items;
    for (int s = 0; s < b->steps.n && !anew; s++)
        if (steps[s].primitive == step->primitive && steps[s].from == step->from &&
            steps[s].to == step->to && !memcmp(steps[s].src, step->src, sizeof step->src))
            return STEP + s;
    return STEP + append(b, &b->steps, step, sizeof *step);
}

/* The dtype of a value; TD_DTYPE_NONE where that is up to who reads it. */
static uint8_t dtype_of(const td_builder *b, int value) {
    int at = value & ~KIND;
    if (b->failed)
        return TD_DTYPE_CALL;
    switch (value & KIND) {
    case LOAD:
        return ((const td_load *)b->loads.items)[at].dtype;
    case CONSTANT:
        return ((const td_constant *)b->constants.items)[at].dtype;
    case STEP:
        return ((const draft_step *)b->steps.items)[at].to;
    case OPERAND:
    case NUMBER:
        break;
    }
    return TD_DTYPE_NONE;
}

int td_builder_convert(td_builder *b, int value, uint8_t dtype) {
    if ((value & KIND) == OPERAND)
        return load_as(b, value, dtype);
    if ((value & KIND) == NUMBER)
        return number_as(b, value & ~KIND, dtype);
    uint8_t from = dtype_of(b, value);
    if (from == dtype)
        return value;
    draft_step step = {
        .primitive = TD_PW_copy, .arity = 1, .from = from, .to = dtype, .src = {value}};
    return step_of(b, &step, false);
}

/* The dtype in which a step over these values is computed: the one fixed dtype among them, else the
 * call's. Masks that are computed with count as values of the call. */
static uint8_t compute_of(const td_builder *b, int n, const int *values) {
    uint8_t common = TD_DTYPE_NONE;
    for (int k = 0; k < n; k++) {
        uint8_t dtype = dtype_of(b, values[k]);
        if (dtype == TD_DTYPE_NONE)
            dtype = (values[k] & KIND) == NUMBER ? TD_DTYPE_NONE : TD_DTYPE_CALL;
        else if (dtype == TD_BOOL)
            dtype = TD_DTYPE_CALL;
        if (dtype == TD_DTYPE_NONE)
            continue;
        if (common != TD_DTYPE_NONE && common != dtype)
            return TD_DTYPE_CALL;
        common = dtype;
    }
    return common == TD_DTYPE_NONE ? TD_DTYPE_CALL : common;
}

static bool chooses(td_primitive primitive) {
    return td_primitive_signature(primitive) == TD_SIGNATURE_SELECT;
}

int td_builder_step_as(td_builder *b, td_primitive primitive, uint8_t dtype, int x, int y, int z) {
    int values[3] = {x, y, z}, arity = td_primitive_arity(primitive);
    td_signature signature = td_primitive_signature(primitive);
    uint8_t from = signature == TD_SIGNATURE_LOGIC ? TD_BOOL : dtype;
    draft_step step = {.primitive = (int16_t)primitive,
                       .arity = (uint8_t)arity,
                       .from = from,
                       .to = signature == TD_SIGNATURE_COMPARE ? TD_BOOL : from};
    for (int k = 0; k < arity; k++)
        step.src[k] = td_builder_convert(b, values[k], k < chooses(primitive) ? TD_BOOL : from);
    return step_of(b, &step, false);
}

int td_builder_step(td_builder *b, td_primitive primitive, int x, int y, int z) {
    int values[3] = {x, y, z}, first = chooses(primitive);
    uint8_t dtype = compute_of(b, td_primitive_arity(primitive) - first, values + first);
    return td_builder_step_as(b, primitive, dtype, x, y, z);
}

void td_builder_output(td_builder *b, int value, td_output_kind kind) {
    draft_output output = {value, kind};
    append(b, &b->outputs, &output, sizeof output);
}

void td_builder_set_fast(td_builder *b) {
    b->fast = true;
}

/* ---- from values to registers ---- */

/* Every output is made by a step of its own; `makers` says which. */
static void settle_outputs(td_builder *b, int *makers) {
    for (int k = 0; k < b->outputs.n && !b->failed; k++) {
        int value = ((const draft_output *)b->outputs.items)[k].value;
        bool own = (value & KIND) == STEP;
        for (int j = 0; j < k && own; j++)
            own = makers[j] != (value & ~KIND);
        if (!own) {
            uint8_t dtype = dtype_of(b, value);
            if (dtype == TD_DTYPE_NONE)
                dtype = TD_DTYPE_CALL;
            draft_step step = {.primitive = TD_PW_copy, .arity = 1, .from = dtype, .to = dtype};
            step.src[0] = td_builder_convert(b, value, dtype);
            value = step_of(b, &step, true);
        }
        makers[k] = value & ~KIND;
    }
}

/* Give every step's value a buffer that no living value holds, its operands' among them: a loop
 * reads a single-element operand anew for each vector it writes. Outputs have registers of their
 * own. `room`: three ints per step. */
static void assign_registers(const td_builder *b, const int *makers, td_program *p, int *room) {
    int n = b->steps.n, first_output = b->loads.n + b->constants.n;
    int *last_use = room, *register_of = room + n, *busy_until = room + 2 * n;
    const draft_step *drafts = b->steps.items;
    for (int s = 0; s < n; s++) {
        last_use[s] = s;
        register_of[s] = -1;
        for (int k = 0; k < drafts[s].arity; k++)
            if ((drafts[s].src[k] & KIND) == STEP)
                last_use[drafts[s].src[k] & ~KIND] = s;
    }
    for (int k = 0; k < b->outputs.n; k++)
        register_of[makers[k]] = first_output + k;
    for (int s = 0; s < n; s++) {
        const draft_step *d = &drafts[s];
        td_step *step = &p->steps[s];
        *step =
            (td_step){.primitive = d->primitive, .arity = d->arity, .from = d->from, .to = d->to};
        for (int k = 0; k < d->arity; k++) {
            int at = d->src[k] & ~KIND, kind = d->src[k] & KIND;
            step->src[k] = (uint16_t)(kind == LOAD       ? at
                                      : kind == CONSTANT ? b->loads.n + at
                                                         : register_of[at]);
        }
        if (register_of[s] < 0) {
            int free = 0;
            while (free < p->nbuffers && busy_until[free] >= s)
                free++;
            p->nbuffers += free == p->nbuffers;
            busy_until[free] = last_use[s];
            register_of[s] = first_output + b->outputs.n + free;
        }
        step->dst = (uint16_t)register_of[s];
        p->cost += td_primitive_cost((td_primitive)d->primitive);
    }
}

/* The operand that the only output is, as it stands. */
static int whole_operand(const td_builder *b) {
    const draft_output *outputs = b->outputs.items;
    bool whole = b->outputs.n == 1 && outputs[0].kind == TD_OUTPUT_ELEMENTS &&
                 (outputs[0].value & KIND) == OPERAND;
    return whole ? outputs[0].value : -1;
}

static td_program *allocate(const td_builder *b) {
    size_t steps = (sizeof(td_program) + sizeof(td_step) * (size_t)b->steps.n + 7) & ~(size_t)7;
    size_t constants = sizeof(td_constant) * (size_t)b->constants.n;
    size_t loads = sizeof(td_load) * (size_t)b->loads.n;
    size_t outputs = sizeof(td_output) * (size_t)b->outputs.n;
    size_t label = *b->label ? strlen(b->label) + 1 : 0;
    char *block = td_malloc(steps + constants + loads + outputs + label);
    if (!block)
        return NULL;
    td_program *p = (td_program *)block;
    *p = (td_program){.refs = 1,
                      .noperands = b->noperands,
                      .nloads = b->loads.n,
                      .nconstants = b->constants.n,
                      .noutputs = b->outputs.n,
                      .nsteps = b->steps.n,
                      .whole = whole_operand(b),
                      .fast = b->fast,
                      .constants = (const td_constant *)(block + steps),
                      .loads = (const td_load *)(block + steps + constants),
                      .outputs = (const td_output *)(block + steps + constants + loads)};
    if (label)
        p->label = memcpy(block + steps + constants + loads + outputs, b->label, label);
    if (constants)
        memcpy(block + steps, b->constants.items, constants);
    if (loads)
        memcpy(block + steps + constants, b->loads.items, loads);
    return p;
}

/* FNV-1a over numbers. */
static uint64_t digest_of(const td_program *p) {
    uint64_t digest = 0xcbf29ce484222325u;
#define TAKE(number) digest = (digest ^ (uint64_t)(number)) * 0x100000001b3u
    TAKE(p->nloads);
    TAKE(p->nconstants);
    TAKE(p->noutputs);
    for (int s = 0; s < p->nsteps; s++) {
        const td_step *step = &p->steps[s];
        TAKE(step->primitive);
        TAKE(step->from);
        TAKE(step->to);
        TAKE(step->dst);
        for (int k = 0; k < step->arity; k++)
            TAKE(step->src[k]);
    }
    if (p->fast)
        TAKE(-1);
#undef TAKE
    return digest;
}

static td_status make_program(td_builder *b, td_program **out) {
    td_status status = TD_OK;
    td_program *p = NULL;
    int *makers = td_malloc(sizeof(int) * (size_t)(b->outputs.n + 1)), *room = NULL;
    if (!makers)
        return td_fail(TD_ENOMEM, "out of memory for a program");
    settle_outputs(b, makers);
    status = b->failed;
    if (status == TD_OK) {
        room = td_malloc(sizeof(int) * 3 * (size_t)b->steps.n);
        p = room ? allocate(b) : NULL;
        status = p ? TD_OK : td_fail(TD_ENOMEM, "out of memory for a program");
    }
    if (status == TD_OK) {
        assign_registers(b, makers, p, room);
        for (int k = 0; k < p->nloads; k++)
            p->used |= 1u << (p->loads[k].operand < 31 ? p->loads[k].operand : 31);
        td_output *outputs = (td_output *)p->outputs;
        for (int k = 0; k < p->noutputs; k++) {
            uint8_t kind = (uint8_t)((const draft_output *)b->outputs.items)[k].kind;
            outputs[k] = (td_output){kind, p->steps[makers[k]].to, (uint16_t)makers[k]};
            p->reduces |= kind != TD_OUTPUT_ELEMENTS;
        }
        td_program_note_flow(p);
        p->digest = digest_of(p);
        *out = p;
    }
    td_free(makers);
    td_free(room);
    return status;
}

td_status td_builder_finish(td_builder *b, const td_program **out) {
    td_program *p = NULL;
    td_status status = b->failed;
    if (status == TD_OK && b->outputs.n == 0)
        status = td_fail(TD_EINTERNAL, "a program without outputs");
    if (status == TD_OK)
        status = make_program(b, &p);
    td_builder_release(b);
    *out = p;
    return status;
}
