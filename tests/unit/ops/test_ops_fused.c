/* test_ops_fused.c: every program of Tide's operators that may be compiled with it is
 * (engine/cpu/pointwise/fused.def), and no other; with TIDE_FUSED_WRITE=FILE the rows are written
 * anew.
 */
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/pointwise/chain.h"
#include "engine/ops/op.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/td.h"

#include "tests/check.h"
#include "tests/unit/ops/pieces.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 2000, STEPS = 16, REGISTERS = 16 };

typedef struct found {
    const td_program *program;
    const char *name; /* of an operator that has it */
    uint64_t numbers; /* its loads that never are tensors of elements, by bits */
} found;

/* The steps of optimizers as lua-bindings/lua/optim/steps.lua writes them for the options that
 * most have. */
#define GRAD   "g = grad; "
#define DECAY  GRAD "g = g + decay * param; "
#define SHRINK GRAD "param = param * shrink; "
#define SGD    "param grad momentum_buffer rate momentum keep decay: "
#define KEEP   "momentum_buffer = momentum_buffer * momentum + keep * g; "
#define FOLLOW "param = param + rate * momentum_buffer"
#define ADAM   "param grad exp_avg exp_avg_sq rate weight beta2 keep eps decay shrink: "
#define MOMENTS                                                                                    \
    "exp_avg = exp_avg + weight * (g - exp_avg); exp_avg_sq = exp_avg_sq * beta2 + keep * g * g; "
#define MOVE "param = param + rate * exp_avg / (sqrt(exp_avg_sq) + eps)"
#define RMS  "param grad square_avg rate alpha keep eps momentum decay: "
enum { TENSORS = 3 /* bits of param and grad; states are written */ };
static const char *const recipes[][2] = {
    {"SGD", SGD GRAD "param = param + rate * g"},
    {"SGD, weight_decay", SGD DECAY "param = param + rate * g"},
    {"SGD, momentum", SGD GRAD KEEP FOLLOW},
    {"SGD, momentum, weight_decay", SGD DECAY KEEP FOLLOW},
    {"SGD, nesterov", SGD GRAD KEEP "param = param + rate * (g + momentum * momentum_buffer)"},
    {"Adam", ADAM GRAD MOMENTS MOVE},
    {"Adam, weight_decay", ADAM DECAY MOMENTS MOVE},
    {"AdamW", ADAM SHRINK MOMENTS MOVE},
    {"RMSprop", RMS GRAD "square_avg = square_avg * alpha + keep * g * g; "
                         "root = sqrt(square_avg) + eps; param = param + rate * g / root"},
};

static found programs[MOST];
static int nprograms;

static int by_digest(const void *a, const void *b) {
    uint64_t x = ((const found *)a)->program->digest, y = ((const found *)b)->program->digest;
    return (x > y) - (x < y);
}

/* Short ones of floats. */
static bool is_wanted(const td_program *p) {
    return p && p->nsteps <= STEPS && p->nloads + p->nconstants + p->noutputs <= REGISTERS &&
           td_chain_takes(p, TD_F32) && td_chain_takes(p, TD_F64);
}

static bool is_like(const td_program *a, const td_program *b) {
    bool same = a->nsteps == b->nsteps && a->nloads == b->nloads &&
                a->nconstants == b->nconstants && a->noutputs == b->noutputs;
    for (int s = 0; same && s < a->nsteps; s++) {
        const td_step *x = &a->steps[s], *y = &b->steps[s];
        same = x->primitive == y->primitive && x->from == y->from && x->to == y->to &&
               x->dst == y->dst;
        for (int k = 0; same && k < x->arity; k++)
            same = x->src[k] == y->src[k];
    }
    return same;
}

/* `numbers`: operands that are numbers, by bits. False: it is not wanted, or known. */
static bool take(const td_program *p, const char *name, uint32_t numbers) {
    uint64_t loads = 0;
    if (!is_wanted(p))
        return false;
    for (int k = 0; k < p->nloads; k++)
        loads |= (uint64_t)(numbers >> p->loads[k].operand & 1) << k;
    for (int k = 0; k < nprograms; k++)
        if (programs[k].program->digest == p->digest) {
            CHECK(is_like(p, programs[k].program));
            programs[k].numbers &= loads;
            return false;
        }
    CHECK(nprograms < MOST);
    programs[nprograms++] = (found){p, name, loads};
    return true;
}

/* "names: updates" */
static const td_program *compile_recipe(const char *text, uint32_t *written) {
    char header[200], *names[32];
    int n = 0;
    size_t length = strcspn(text, ":");
    const td_program *p;
    snprintf(header, sizeof header, "%.*s", (int)length, text);
    for (char *at = header; at && n < 32; n++) {
        names[n] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = '\0';
    }
    must(td_program_compile_updates(text + length + 1, n, (const char *const *)names, written, &p));
    return p;
}

static uint32_t numbers_of(const td_op *op) {
    uint32_t numbers = 0;
    for (int k = 0; k < op->nparams; k++) {
        int type = op->params[k].type;
        bool number = type == TD_PARAM_NUMBER || type == TD_PARAM_INT || type == TD_PARAM_FLOAT ||
                      type == TD_PARAM_BOOL;
        numbers |= (uint32_t)number << k;
    }
    return numbers;
}

static void find_programs(void) {
    if (nprograms)
        return;
    for (int id = 0; id < td_op_count(); id++) {
        const td_op *op = td_op_get(id);
        const td_formula *f = op->programs;
        if (!f)
            continue;
        uint32_t numbers = numbers_of(op);
        take(f->forward, op->name, numbers);
        for (int k = 0; k < op->nparams; k++)
            take(f->gradient[k], op->name, numbers);
        for (int mask = 0; f->joint && mask < 1 << f->ngradients; mask++)
            take(f->joint[mask], op->name, numbers);
    }
    for (size_t k = 0; k < sizeof recipes / sizeof *recipes; k++) {
        uint32_t written;
        const td_program *p = compile_recipe(recipes[k][1], &written);
        CHECK(is_wanted(p));
        if (!take(p, recipes[k][0], ~(written | TENSORS)))
            td_program_release(p);
    }
    qsort(programs, (size_t)nprograms, sizeof *programs, by_digest);
}

/* ---- rows ---- */

typedef struct names {
    char of[64][16]; /* what holds a register's value, by register */
} names;

static void write_step(FILE *file, const td_program *p, int s, names *n) {
    const td_step *step = &p->steps[s];
    const uint16_t *src = step->src;
    const char *name = td_primitive_name((td_primitive)step->primitive);
    td_signature signature = td_primitive_signature((td_primitive)step->primitive);
    char to[16];
    snprintf(to, sizeof to, "s%d", s);
    if (step->waits)
        return;
    if (step->primitive == TD_PW_where && step->by) {
        const td_step *by = &p->steps[step->by - 1];
        fprintf(file, " PICK(%s, %s, %s, %s, %s, %s)",
                td_primitive_name((td_primitive)by->primitive), to, n->of[by->src[0]],
                n->of[by->src[1]], n->of[src[1]], n->of[src[2]]);
    } else if (step->primitive == TD_PW_where) {
        fprintf(file, " CHOOSE(%s, %s, %s, %s)", to, n->of[src[0]], n->of[src[1]], n->of[src[2]]);
    } else if (step->primitive == TD_PW_copy && step->from == TD_BOOL) {
        fprintf(file, " ONES(%s, %s)", to, n->of[src[0]]);
    } else {
        bool mask = signature == TD_SIGNATURE_COMPARE || signature == TD_SIGNATURE_LOGIC;
        fprintf(file, " %s%d(%s, %s", mask ? "MASK" : "S", step->arity, name, to);
        for (int k = 0; k < step->arity; k++)
            fprintf(file, ", %s", n->of[src[k]]);
        fprintf(file, ")");
    }
    memcpy(n->of[step->dst], to, sizeof to);
}

static bool is_number(const found *f, int reg) {
    return reg >= f->program->nloads || (f->numbers >> reg & 1);
}

static void write_program(FILE *file, const found *f) {
    const td_program *p = f->program;
    names n;
    int first = p->nloads + p->nconstants;
    fprintf(file, "/* %s */\nPROGRAM(%016llx, 0x%llx,", f->name, (unsigned long long)p->digest,
            (unsigned long long)f->numbers);
    for (int r = 0; r < first; r++)
        snprintf(n.of[r], sizeof n.of[r], "r%d", r);
    for (int r = 0; r < first; r++)
        fprintf(file, " %s(%d)", is_number(f, r) ? "NUMBER" : "BEGIN", r);
    fprintf(file, ",");
    for (int r = 0; r < first; r++)
        if (!is_number(f, r))
            fprintf(file, " LOAD(%d)", r);
    fprintf(file, ",\n       ");
    for (int s = 0; s < p->nsteps; s++)
        write_step(file, p, s, &n);
    fprintf(file, ",\n       ");
    for (int r = first; r < first + p->noutputs; r++)
        fprintf(file, " OUT(%d, %s)", r, n.of[r]);
    fprintf(file, ")\n");
}

/* ---- tests ---- */

TEST(rows_are_written_where_that_is_asked_for) {
    const char *path = getenv("TIDE_FUSED_WRITE");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file)
        return;
    find_programs();
    fprintf(file,
            "/* fused.def: programs of Tide's operators and of their gradients, by digest, as rows "
            "for\n"
            " * fused_loops.h. Written by tests/unit/ops/test_ops_fused.c (TIDE_FUSED_WRITE=FILE). "
            "*/\n");
    for (int k = 0; k < nprograms; k++)
        write_program(file, &programs[k]);
    fprintf(file, "#undef PROGRAM\n");
    fclose(file);
}

TEST(all_programs_that_may_be_compiled_are_and_no_others) {
    find_programs();
    for (int k = 0; k < nprograms; k++)
        if (!td_chain_fused(programs[k].program, TD_F32, programs[k].numbers, (td_narrow){0}))
            check_fail(__FILE__, __LINE__,
                       "a program of %s is not in engine/cpu/pointwise/fused.def",
                       programs[k].name);
    CHECK((size_t)nprograms == td_cpu->fused->n);
}

/* Results of one program in one dtype, of tensors of n elements, where bits of `single` say which
 * operands are single numbers: whole or in pieces. */
static void run_program(const td_program *p, td_dtype dtype, int64_t n, unsigned single, bool whole,
                        td_tensor **lists, td_tensor **outs) {
    for (int64_t from = 0, m; from < n; from += m) {
        td_operand operands[32] = {{0}};
        td_tensor *pieces[32] = {0}, *parts[REGISTERS];
        m = whole || n - from < PIECE ? n - from : PIECE;
        for (int k = 0; k < p->noperands; k++) {
            pieces[k] = piece(lists[k], from, m);
            operands[k].tensor = single >> k & 1 ? NULL : pieces[k];
            operands[k].f = 0.7 - k;
        }
        for (int k = 0; k < p->noutputs; k++)
            parts[k] = piece(outs[k], from, m);
        run(p, dtype, operands, parts);
        for (int k = 0; k < p->noperands; k++)
            td_release(pieces[k]);
        for (int k = 0; k < p->noutputs; k++)
            td_release(parts[k]);
    }
}

static void check_program(const found *f, td_dtype dtype, int64_t n, unsigned single) {
    const td_program *p = f->program;
    td_tensor *lists[32], *x[REGISTERS], *y[REGISTERS];
    for (int k = 0; k < p->noperands; k++)
        lists[k] = fill(dtype, n, 17 * k);
    for (int k = 0; k < p->noutputs; k++) {
        x[k] = fill(dtype, n, 0);
        y[k] = fill(dtype, n, 1);
    }
    run_program(p, dtype, n, single, true, lists, x);
    run_program(p, dtype, n, single, false, lists, y);
    for (int k = 0; k < p->noutputs; k++) {
        if (!is_same(x[k], y[k]))
            check_fail(__FILE__, __LINE__, "%s: output %d of %d %s differs, single numbers: %x",
                       f->name, k, (int)n, td_dtype_name(dtype), single);
        td_release(x[k]);
        td_release(y[k]);
    }
    for (int k = 0; k < p->noperands; k++)
        td_release(lists[k]);
}

/* Which are long enough to be run by them; pieces go step by step. */
TEST(their_loops_give_the_bits_of_their_steps) {
    static const td_dtype dtypes[] = {TD_F32, TD_F64, TD_F16, TD_BF16};
    find_programs();
    for (int k = 0; k < nprograms; k++) {
        const td_program *p = programs[k].program;
        unsigned numbers = 0; /* operands that only are numbers */
        for (int r = 0; r < p->nloads; r++)
            numbers |= (unsigned)(programs[k].numbers >> r & 1) << p->loads[r].operand;
        for (int d = 0; d < 4 && !p->reduces; d++)
            for (int64_t n = 256; n < 300; n += 21)
                for (int other = 0; other <= p->noperands; other++) {
                    unsigned behind = ~0u << other;
                    check_program(&programs[k], dtypes[d], n, behind);
                    check_program(&programs[k], dtypes[d], n, ~behind);
                    check_program(&programs[k], dtypes[d], n, numbers | 1u << other);
                }
    }
}

int main(void) {
    must(td_init());
    RUN(rows_are_written_where_that_is_asked_for);
    RUN(all_programs_that_may_be_compiled_are_and_no_others);
    RUN(their_loops_give_the_bits_of_their_steps);
    return check_finish();
}
