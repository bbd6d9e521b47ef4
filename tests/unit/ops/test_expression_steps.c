/* test_expression_steps.c: what the texts of the engine compile to, step by step: of every operator
 * its formula and its gradients, of optimizers their recipes, of refusals their conditions. What
 * was found right stands in texts.def as numbers of steps and their digests. Where it is changed on
 * purpose, TIDE_TEXTS_WRITE=FILE writes the rows anew, and TIDE_TEXTS_SHOW=FILE all steps in words.
 */
#include "engine/ops/language/expression.h"
#include "engine/ops/pointwise/pointwise.h"
#include "engine/td.h"

#include "tests/check.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

typedef struct row {
    const char *name;
    int nsteps;
    uint64_t digest;
} row;

static const row wanted[] = {
#define TEXT(name, nsteps, digest) {name, nsteps, digest},
#include "tests/unit/ops/texts.def"
};
static const int nwanted = (int)(sizeof wanted / sizeof *wanted);

/* "names: statements", as lua-bindings/lua/optim/steps.lua writes them. */
static const char *const recipes[] = {
#define RECIPE(text) text,
#include "tests/unit/ops/texts.def"
};

/* Over x: conditions that refuse elements, and what is computed of one operand. */
static const char *const conditions[] = {
#define CONDITION(text) text,
#include "tests/unit/ops/texts.def"
};

/* ---- steps in words ---- */

static char words[1 << 20];
static size_t length;

static void say(const char *format, ...) TD_PRINTF(1, 2);
static void say(const char *format, ...) {
    va_list args;
    va_start(args, format);
    length += (size_t)vsnprintf(words + length, sizeof words - length, format, args);
    va_end(args);
    if (length >= sizeof words)
        exit(1);
}

static const char *dtype_text(uint8_t dtype) {
    return dtype == TD_DTYPE_CALL ? "call" : td_dtype_name((td_dtype)dtype);
}

static int say_program(const td_program *p) {
    say("%d operands, whole %d\n", p->noperands, p->whole);
    for (int k = 0; k < p->nloads; k++)
        say("  r%d = operand %d as %s\n", k, p->loads[k].operand, dtype_text(p->loads[k].dtype));
    for (int k = 0; k < p->nconstants; k++)
        say("  r%d = %a as %s\n", p->nloads + k, p->constants[k].value,
            dtype_text(p->constants[k].dtype));
    for (int s = 0; s < p->nsteps; s++) {
        const td_step *step = &p->steps[s];
        say("  r%d = %s", step->dst, td_primitive_name((td_primitive)step->primitive));
        for (int k = 0; k < step->arity; k++)
            say(" r%d", step->src[k]);
        say(" from %s to %s\n", dtype_text(step->from), dtype_text(step->to));
    }
    for (int k = 0; k < p->noutputs; k++)
        say("  out %d: step %d, kind %d\n", k, p->outputs[k].step, p->outputs[k].kind);
    return p->nsteps;
}

static void say_value(td_value v) {
    if (v.kind == TD_KIND_INT)
        say(" %" PRId64, v.i);
    else if (v.kind == TD_KIND_FLOAT)
        say(" %a", v.f);
    else if (v.kind == TD_KIND_BOOL)
        say(v.b ? " true" : " false");
    else if (v.kind == TD_KIND_STRING)
        say(" \"%s\"", v.string);
    else if (v.kind == TD_KIND_DTYPE)
        say(" %s", td_dtype_name(v.dtype));
    else if (v.kind != TD_KIND_INTS)
        say(" of kind %d", v.kind);
    else
        for (int k = 0; k < v.n; k++)
            say("%s%" PRId64 "%s", k ? "," : " {", v.ints[k], k + 1 < v.n ? "" : "}");
}

static int say_expression(const td_expression *e) {
    static const char *const types[] = {
        [TD_EX_CONSTANT] = "constant", [TD_EX_ARGUMENT] = "argument",
        [TD_EX_GIVEN] = "given",       [TD_EX_RESULT] = "result",
        [TD_EX_GRADIENT] = "gradient", [TD_EX_ATTRIBUTE] = "attribute",
        [TD_EX_CALL] = "call",         [TD_EX_PICK] = "pick",
        [TD_EX_LIST] = "list",         [TD_EX_CHOOSE] = "choose",
        [TD_EX_ERROR] = "error"};
    say("%d leaves\n", e->nleaves);
    for (int k = 0; k < e->nsteps; k++) {
        const td_expression_step *s = &e->steps[k];
        say("  %d = %s %d", k, types[s->type], s->which);
        if (s->type == TD_EX_CONSTANT)
            say_value(s->constant);
        if (s->op)
            say(" %s sign %d", s->op->name, s->sign);
        for (int j = 0; j < s->noperands; j++)
            say(" %d", e->operands[s->first + j]);
        say("\n");
    }
    for (int k = 0; k < e->nroots; k++)
        say("  slot %d: step %d, gradient %d, saves %x %x\n", e->roots[k].slot, e->roots[k].step,
            e->roots[k].gradient, (unsigned)e->roots[k].args, (unsigned)e->roots[k].outs);
    return e->nsteps;
}

/* ---- rows ---- */

static FILE *rows_file, *show_file;
static int nfound;

static const row *find_row(const char *name) {
    for (int k = 0; k < nwanted; k++)
        if (!strcmp(wanted[k].name, name))
            return &wanted[k];
    static const row none;
    return &none;
}

/* What has been said is of this text. */
static void check_text(const char *name, int nsteps) {
    uint64_t digest = 0xcbf29ce484222325u; /* FNV-1a */
    const row *want = find_row(name);
    for (size_t k = 0; k < length; k++)
        digest = (digest ^ (uint8_t)words[k]) * 0x100000001b3u;
    if (rows_file)
        fprintf(rows_file, "TEXT(\"%s\", %d, 0x%016" PRIx64 ")\n", name, nsteps, digest);
    else if (want->digest != digest)
        check_fail(__FILE__, __LINE__, "%s has other steps than in texts.def, where it has %d:\n%s",
                   name, want->nsteps, words);
    if (show_file)
        fprintf(show_file, "%s:\n%s", name, words);
    nfound++;
    length = 0;
}

static void check_program(const char *name, const td_program *p) {
    if (p)
        check_text(name, say_program(p));
}

static void check_operator(const td_op *op) {
    char name[200];
    if (op->composite) {
        snprintf(name, sizeof name, "%s, formula", op->name);
        check_text(name, say_expression(op->composite));
    }
    if (op->derivative) {
        snprintf(name, sizeof name, "%s, gradient", op->name);
        check_text(name, say_expression(op->derivative));
    }
    if (!op->programs)
        return;
    snprintf(name, sizeof name, "%s, formula", op->name);
    check_program(name, op->programs->forward);
    for (int k = 0; k < op->nparams; k++) {
        snprintf(name, sizeof name, "%s, gradient of %s", op->name, op->params[k].name);
        check_program(name, op->programs->gradient[k]);
    }
    for (int mask = 0; op->programs->joint && mask < 1 << op->programs->ngradients; mask++) {
        snprintf(name, sizeof name, "%s, gradients %x", op->name, (unsigned)mask);
        check_program(name, op->programs->joint[mask]);
    }
}

static void check_recipe(int number) {
    char header[200], name[32], *names[32];
    const char *text = recipes[number];
    int n = 0;
    uint32_t written = 0;
    const td_program *p = NULL;
    snprintf(header, sizeof header, "%.*s", (int)strcspn(text, ":"), text);
    for (char *at = header; at && n < 32; n++) {
        names[n] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = '\0';
    }
    td_status status = td_program_compile_updates(strchr(text, ':') + 1, n,
                                                  (const char *const *)names, &written, &p);
    if (status)
        check_fail(__FILE__, __LINE__, "%s: %s", text, td_error_message());
    snprintf(name, sizeof name, "recipe %d", number + 1);
    say("writes %x\n", (unsigned)written);
    check_program(name, p);
    td_program_release(p);
}

static void check_condition(int number) {
    static const char *const x[] = {"x"};
    char name[32];
    const td_program *p = NULL;
    if (td_program_compile(conditions[number], 1, x, &p))
        check_fail(__FILE__, __LINE__, "%s: %s", conditions[number], td_error_message());
    snprintf(name, sizeof name, "condition %d", number + 1);
    check_program(name, p);
    td_program_release(p);
}

TEST(texts_compile_to_the_steps_that_were_found_right) {
    const char *rows = getenv("TIDE_TEXTS_WRITE"), *show = getenv("TIDE_TEXTS_SHOW");
    rows_file = rows ? fopen(rows, "w") : NULL;
    show_file = show ? fopen(show, "w") : NULL;
    for (int id = 0; id < td_op_count(); id++)
        check_operator(td_op_get(id));
    for (size_t k = 0; k < sizeof recipes / sizeof *recipes; k++)
        check_recipe((int)k);
    for (size_t k = 0; k < sizeof conditions / sizeof *conditions; k++)
        check_condition((int)k);
    CHECK(rows_file || nfound == nwanted); /* none is missing */
    if (rows_file)
        fclose(rows_file);
    if (show_file)
        fclose(show_file);
}

int main(void) {
    if (td_init())
        return 1;
    RUN(texts_compile_to_the_steps_that_were_found_right);
    return check_finish();
}
