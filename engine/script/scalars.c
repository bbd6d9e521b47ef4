/* scalars.c: the table of operators on what is no tensor, and which of them a call means. */
#include "engine/script/scalars.h"

#include "engine/script/scalar_rows.h"

#include <string.h>

#define SCALAR(row_name, row_parameters, row_result, row_acts, row_function, row_doc)              \
    {.name = #row_name,                                                                            \
     .parameters = row_parameters,                                                                 \
     .result = row_result,                                                                         \
     .acts = (row_acts) == '0'   ? TD_SCALAR_PURE                                                  \
             : (row_acts) == 'F' ? TD_SCALAR_FAILS                                                 \
             : (row_acts) == 'R' ? TD_SCALAR_READS                                                 \
                                 : TD_SCALAR_WRITES,                                               \
     .run = td_scalar_##row_function,                                                              \
     .doc = row_doc},
static const td_scalar rows[] = {
#include "engine/script/scalars.def"
};
#undef SCALAR
enum { ROWS = sizeof rows / sizeof *rows };

int td_scalar_count(void) {
    return ROWS;
}

const td_scalar *td_scalar_get(int k) {
    return &rows[k];
}

/* ---- which row ---- */

/* The T of a list T[], a Future(T), a Dict(str, T). */
static const td_ir_type *entry_type(const td_ir_type *type) {
    return type->parts[type->kind == TD_IR_DICT];
}

static bool is_number(const td_ir_type *type) {
    return type->kind == TD_IR_INT || type->kind == TD_IR_FLOAT || type->kind == TD_IR_NUMBER;
}

/* Of a parameter's letter, where `first` is the type of the first argument. */
static bool letter_takes(char letter, const td_ir_type *type, const td_ir_type *first) {
    switch (letter) {
    case 'i':
        return type->kind == TD_IR_INT;
    case 'n':
        return is_number(type);
    case 'b':
        return type->kind == TD_IR_BOOL;
    case 's':
        return type->kind == TD_IR_STRING;
    case 't':
        return type->kind == TD_IR_TENSOR;
    case 'l':
        return type->kind == TD_IR_LIST &&
               (type == first || (first->kind == TD_IR_LIST && td_ir_type_fits(type, first)));
    case 'e':
        return td_ir_type_may_enter(type, entry_type(first));
    case 'D':
        return type->kind == TD_IR_DICT;
    case 'w':
        return type->kind == TD_IR_FUTURE;
    case 'I':
        return type->kind == TD_IR_INT || type->kind == TD_IR_NONE ||
               (type->kind == TD_IR_OPTIONAL && type->parts[0]->kind == TD_IR_INT);
    default:
        return true; /* a */
    }
}

bool td_scalar_takes(const td_scalar *s, int n, td_ir_value *const *arguments) {
    int k = 0;
    const char *letter = s->parameters;
    for (; k < n && *letter && *letter != '*'; k++, letter++)
        if (!arguments[k] || !letter_takes(*letter, arguments[k]->type, arguments[0]->type))
            return false;
    return *letter == '*' || (k == n && !*letter);
}

const td_scalar *td_scalar_find(const char *name, size_t length, int n,
                                td_ir_value *const *arguments) {
    for (int k = 0; k < ROWS; k++)
        if (strlen(rows[k].name) == length && !memcmp(rows[k].name, name, length) &&
            td_scalar_takes(&rows[k], n, arguments))
            return &rows[k];
    return NULL;
}

/* ---- results ---- */

/* Of numbers: int where all are, float where one is (`mixed`: where all are), else not known. */
static td_ir_type_kind number_of(int n, td_ir_value *const *arguments, bool mixed) {
    int ints = 0, floats = 0;
    for (int k = 0; k < n; k++) {
        ints += arguments[k]->type->kind == TD_IR_INT;
        floats += arguments[k]->type->kind == TD_IR_FLOAT;
    }
    return ints == n ? TD_IR_INT : (mixed ? floats == n : floats > 0) ? TD_IR_FLOAT : TD_IR_NUMBER;
}

const td_ir_type *td_scalar_result(const td_scalar *s, td_ir_graph *g, int n,
                                   td_ir_value *const *arguments) {
    const td_ir_type *whole = td_ir_simple_type(TD_IR_INT);
    const td_ir_type *first = n ? arguments[0]->type : NULL;
    switch (s->result) {
    case 'i':
        return whole;
    case 'f':
        return td_ir_simple_type(TD_IR_FLOAT);
    case 'b':
        return td_ir_simple_type(TD_IR_BOOL);
    case 's':
        return td_ir_simple_type(TD_IR_STRING);
    case 'd':
        return td_ir_simple_type(TD_IR_DTYPE);
    case 'v':
        return td_ir_simple_type(TD_IR_DEVICE);
    case 'S':
        return td_ir_simple_type(TD_IR_NUMBER);
    case 'n':
    case 'm':
        return td_ir_simple_type(number_of(n, arguments, s->result == 'm'));
    case 'I':
        return td_ir_type_of_parts(g, TD_IR_OPTIONAL, 1, &whole);
    case 'L':
        return td_ir_type_of_parts(g, TD_IR_LIST, 1, &whole);
    case 'l':
        return first;
    case 'e':
        return entry_type(first);
    case 'q':
        first = entry_type(first);
        return first->kind == TD_IR_OPTIONAL ? first
                                             : td_ir_type_of_parts(g, TD_IR_OPTIONAL, 1, &first);
    case 'k':
        whole = td_ir_simple_type(TD_IR_STRING);
        return td_ir_type_of_parts(g, TD_IR_LIST, 1, &whole);
    default: /* a */
        return first->kind == TD_IR_OPTIONAL ? first->parts[0] : first;
    }
}

bool td_scalar_gives(const td_scalar *s, int n, td_ir_value *const *arguments,
                     const td_ir_type *type) {
    const td_ir_type *part = s->result == 'k'   ? td_ir_simple_type(TD_IR_STRING)
                             : s->result == 'q' ? entry_type(arguments[0]->type)
                                                : td_ir_simple_type(TD_IR_INT);
    const td_ir_type *const parts[1] = {part};
    const td_ir_type made = {.n = 1,
                             .parts = parts,
                             .kind = s->result == 'L' || s->result == 'k' ? TD_IR_LIST
                                                                          : TD_IR_OPTIONAL};
    bool own = strchr("ILk", s->result) || (s->result == 'q' && part->kind != TD_IR_OPTIONAL);
    return td_ir_type_fits(own ? &made : td_scalar_result(s, NULL, n, arguments), type);
}

/* ---- values ---- */

#define BIT(kind) ((uint64_t)1 << (kind))

static uint64_t kinds_of_letter(char letter) {
    switch (letter) {
    case 'i':
        return BIT(TD_KIND_INT);
    case 'n':
        return BIT(TD_KIND_INT) | BIT(TD_KIND_FLOAT);
    case 'b':
        return BIT(TD_KIND_BOOL);
    case 's':
        return BIT(TD_KIND_STRING) | BIT(TD_BOX_STRING);
    case 't':
        return BIT(TD_KIND_TENSOR);
    case 'l':
        return BIT(TD_BOX_LIST) | BIT(TD_KIND_INTS) | BIT(TD_KIND_FLOATS) | BIT(TD_KIND_TENSORS);
    case 'D':
        return BIT(TD_BOX_DICT);
    case 'w':
        return BIT(TD_BOX_FUTURE);
    case 'I':
        return BIT(TD_KIND_INT) | BIT(TD_KIND_NIL);
    default: /* a, e */
        return ~(uint64_t)0;
    }
}

uint64_t td_scalar_kinds(const td_scalar *s, int k) {
    const char *letter = s->parameters;
    for (int j = 0; j < k && *letter && *letter != '*'; j++)
        letter++;
    return kinds_of_letter(*letter);
}
