/* formula.c: drafts whose steps are primitives become programs. */
#include "engine/ops/language/draft.h"

/* Which steps the roots read, and those that they read: a draft has others where a name is not read
 * by what is wanted. */
static void note_read(const td_draft *d, bool *read) {
    for (int k = 0; k < d->roots.n; k++)
        read[td_draft_root(d, k)->step] = true;
    for (int k = d->steps.n; k > 0; k--)
        for (int j = 0; read[k] && j < td_draft_at(d, k)->step.noperands; j++)
            read[td_draft_operands(d, k)[j]] = true;
}

/* A step as a value of the builder. */
static int lower(const td_draft *d, int k, td_builder *b, const int *values) {
    const td_expression_step *step = &td_draft_at(d, k)->step;
    const uint16_t *operands = td_draft_operands(d, k);
    int x[3] = {0, 0, 0};
    if (step->type == TD_EX_CONSTANT)
        return td_builder_number(b, td_arg_double(step->constant));
    if (step->type == TD_EX_ARGUMENT)
        return td_builder_operand(b, step->which);
    for (int j = 0; j < step->noperands; j++)
        x[j] = values[operands[j]];
    return td_builder_step(b, td_draft_primitive(step), x[0], x[1], x[2]);
}

td_status td_draft_program(const td_draft *d, const td_program **out) {
    size_t n = (size_t)d->steps.n + 1;
    int *values = td_calloc(n, sizeof *values + sizeof(bool));
    td_builder *b = td_builder_new(d->nnames);
    *out = NULL;
    if (!values || !b) {
        td_free(values);
        td_builder_release(b);
        return td_fail(TD_ENOMEM, "out of memory for a program");
    }
    bool *read = (bool *)(values + n);
    note_read(d, read);
    for (int k = 1; k <= d->steps.n; k++)
        if (read[k])
            values[k] = lower(d, k, b, values);
    for (int k = 0; k < d->roots.n; k++)
        td_builder_output(b, values[td_draft_root(d, k)->step], TD_OUTPUT_ELEMENTS);
    td_free(values);
    if (d->source.op)
        td_builder_label(b, d->source.op->name);
    return td_builder_finish(b, out);
}

/* ---- formulas by themselves ---- */

static td_status compile(td_source_kind kind, int ntexts, const char *const *texts, int noperands,
                         const char *const *names, uint32_t *written, const td_program **out) {
    td_draft d;
    bool right = true;
    td_draft_init(&d, NULL, kind, noperands, names);
    for (int k = 0; k < ntexts && right; k++)
        right = td_draft_parse(&d, texts[k]) && td_draft_compile(&d, TD_ALL_LABELS);
    *out = NULL;
    *written = 0;
    td_status status = right ? td_draft_program(&d, out) : d.source.status;
    for (int k = 0; k < d.roots.n && status == TD_OK; k++)
        if (td_draft_root(&d, k)->slot < 32)
            *written |= 1u << td_draft_root(&d, k)->slot;
    td_draft_clear(&d);
    return status;
}

td_status td_program_compile_all(int nformulas, const char *const *formulas, int noperands,
                                 const char *const *names, const td_program **out) {
    uint32_t written;
    return compile(TD_SOURCE_FORMULA, nformulas, formulas, noperands, names, &written, out);
}

td_status td_program_compile(const char *formula, int noperands, const char *const *names,
                             const td_program **out) {
    return td_program_compile_all(1, &formula, noperands, names, out);
}

td_status td_program_compile_updates(const char *text, int noperands, const char *const *names,
                                     uint32_t *written, const td_program **out) {
    return compile(TD_SOURCE_UPDATES, 1, &text, noperands, names, written, out);
}
