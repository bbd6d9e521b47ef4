/* code_text.c: writes a program's function: rows, tiles of them, and in each tile the passages of
 * code_values.h, whole vectors first and then what is left.
 *
 * What is left of a tile goes under masks where the set has them for all elements (AVX-512), else
 * one by one. Within a passage all loads come before the first store, since a result may lie where
 * an operand does. */
#include "engine/cpu/code/code_text.h"

#include "engine/core/memory.h"
#include "engine/cpu/code/code_values.h"
#include "engine/cpu/code/code_words.h"
#include "engine/cpu/pointwise/pointwise_job.h"

#include <stddef.h>
#include <string.h>

typedef struct writing {
    const td_code_form *form;
    const td_program *program;
    td_code_values v;
    td_code_writer w;
    int lanes, vector_bytes;
    bool tiled;               /* calls are made */
    int blocks;               /* loops so far; the last one's number is in its names */
    int all[TD_CODE_VALUES];  /* registers of numbers in all lanes, */
    int one[TD_CODE_VALUES];  /* and of them alone */
    int made[TD_CODE_VALUES]; /* of values, in the loop that is being written; 0: not yet */
    uint32_t masked;          /* element types that are loaded or stored under masks */
} writing;

#define SAY(...) td_code_say(&(x)->w, __VA_ARGS__)

static td_dtype dtype_of(const writing *x, int value) {
    return (td_dtype)x->v.values[value].dtype;
}

/* ---- memory ---- */

/* i16 of what is narrow. */
static td_code_type memory_type(const writing *x, int value) {
    const td_code_value *v = &x->v.values[value];
    bool is_side = v->kind == TD_CODE_LOAD;
    return is_side && x->form->narrow != TD_DTYPE_NONE ? (td_code_type){"i16"}
                                                       : td_code_memory((td_dtype)v->dtype);
}

static size_t bytes_of(td_code_type t) {
    return !strcmp(t.text, "double") || !strcmp(t.text, "i64")  ? 8
           : !strcmp(t.text, "float") || !strcmp(t.text, "i32") ? 4
           : !strcmp(t.text, "i16")                             ? 2
                                                                : 1;
}

enum { MASKED_TYPES = 6 };
static const char *const masked_types[MASKED_TYPES] = {"float", "double", "i8",
                                                       "i16",   "i32",    "i64"};
static const char *const masked_suffixes[MASKED_TYPES] = {"f32", "f64", "i8", "i16", "i32", "i64"};

static int masked_type(td_code_type t) {
    for (int k = 0; k < MASKED_TYPES; k++)
        if (!strcmp(masked_types[k], t.text))
            return k;
    return 0;
}

/* How a loop goes through a tile. */
typedef enum way { WHOLE, MASKED, SINGLE } way;

/* Elements from `pointer` on, as they are in memory. */
static int load(writing *x, td_code_type t, int pointer, way how) {
    const td_code_type v = td_code_vector(x->w.lanes, t);
    int made = ++x->w.names;
    if (how == MASKED) {
        int k = masked_type(t);
        x->masked |= 1u << k;
        SAY("  %%v%d = call %s @llvm.masked.load.v%d%s.p0(ptr %%v%d, i32 %zu, <%d x i1> %%mask%d, "
            "%s zeroinitializer)\n",
            made, v.text, x->lanes, masked_suffixes[k], pointer, bytes_of(t), x->lanes, x->blocks,
            v.text);
    } else {
        SAY("  %%v%d = load %s, ptr %%v%d, align %zu\n", made, v.text, pointer, bytes_of(t));
    }
    return made;
}

static void store(writing *x, td_code_type t, int reg, int pointer, way how) {
    const td_code_type v = td_code_vector(x->w.lanes, t);
    if (how == MASKED) {
        int k = masked_type(t);
        x->masked |= 1u << (MASKED_TYPES + k);
        SAY("  call void @llvm.masked.store.v%d%s.p0(%s %%v%d, ptr %%v%d, i32 %zu, <%d x i1> "
            "%%mask%d)\n",
            x->lanes, masked_suffixes[k], v.text, reg, pointer, bytes_of(t), x->lanes, x->blocks);
    } else {
        SAY("  store %s %%v%d, ptr %%v%d, align %zu\n", v.text, reg, pointer, bytes_of(t));
    }
}

static void declare_masked(writing *x) {
    for (int k = 0; k < MASKED_TYPES; k++) {
        const char *suffix = masked_suffixes[k];
        const td_code_type v = td_code_vector(x->lanes, td_code_memory(k == 0   ? TD_F32
                                                                       : k == 1 ? TD_F64
                                                                       : k == 2 ? TD_I8
                                                                       : k == 3 ? TD_I16
                                                                       : k == 4 ? TD_I32
                                                                                : TD_I64));
        if (x->masked >> k & 1)
            SAY("declare %s @llvm.masked.load.v%d%s.p0(ptr, i32, <%d x i1>, %s)\n", v.text,
                x->lanes, suffix, x->lanes, v.text);
        if (x->masked >> (MASKED_TYPES + k) & 1)
            SAY("declare void @llvm.masked.store.v%d%s.p0(%s, ptr, i32, <%d x i1>)\n", x->lanes,
                suffix, v.text, x->lanes);
    }
}

/* Where the loop's element of a run or a buffer ("p", "out", "buffer") is: a register. */
static int element_at(writing *x, td_code_type t, const char *base, int number) {
    int made = ++x->w.names;
    SAY("  %%v%d = getelementptr inbounds %s, ptr %%%s%d, i64 %%i%d\n", made, t.text, base, number,
        x->blocks);
    return made;
}

/* As it is in memory to as it is computed with, and back. */
static int from_memory(writing *x, td_dtype dtype, int reg) {
    if (dtype != TD_BOOL)
        return reg;
    const td_code_type v = td_code_vector(x->w.lanes, (td_code_type){"i8"});
    int made = ++x->w.names;
    SAY("  %%v%d = icmp ne %s %%v%d, %s\n", made, v.text, reg,
        x->w.lanes == 1 ? "0" : "zeroinitializer");
    return made;
}

static int to_memory(writing *x, td_dtype dtype, int reg) {
    if (dtype != TD_BOOL)
        return reg;
    const td_code_type mask = td_code_vector(x->w.lanes, (td_code_type){"i1"}),
                       v = td_code_vector(x->w.lanes, (td_code_type){"i8"});
    int made = ++x->w.names;
    SAY("  %%v%d = zext %s %%v%d to %s\n", made, mask.text, reg, v.text);
    return made;
}

/* ---- values in a loop ---- */

/* A load's elements: %p is where its tile begins, or a vector full of what is one for the row. */
static int load_elements(writing *x, int value, way how) {
    const td_code_type t = memory_type(x, value);
    const td_dtype dtype = dtype_of(x, value);
    if (x->form->rows) {
        int moved = ++x->w.names, at = ++x->w.names;
        SAY("  %%v%d = and i64 %%i%d, %%moves%d\n", moved, x->blocks, value);
        SAY("  %%v%d = getelementptr inbounds %s, ptr %%p%d, i64 %%v%d\n", at, t.text, value,
            moved);
        return from_memory(x, dtype, load(x, t, at, how));
    }
    int loaded = load(x, t, element_at(x, t, "p", value), how);
    return x->form->narrow != TD_DTYPE_NONE ? td_code_widen(&x->w, x->form->narrow, loaded)
                                            : from_memory(x, dtype, loaded);
}

static int value_in_loop(writing *x, int value, int passage, way how) {
    const td_code_value *v = &x->v.values[value];
    if (x->made[value])
        return x->made[value];
    if (v->kind == TD_CODE_NUMBER)
        return how == SINGLE ? x->one[value] : x->all[value];
    if (v->kind == TD_CODE_LOAD && !(v->buffer >= 0 && passage > 0)) {
        x->made[value] = load_elements(x, value, how);
    } else { /* it was made by a call, or in a passage before */
        const td_code_type t = td_code_memory((td_dtype)v->dtype);
        int at = element_at(x, t, "buffer", v->buffer);
        x->made[value] =
            from_memory(x, (td_dtype)v->dtype, load(x, t, at, how == MASKED ? WHOLE : how));
    }
    return x->made[value];
}

static bool is_made_in(const td_code_value *v, int passage) {
    bool kept = v->arity == 0 && v->buffer >= 0;
    return v->needed && v->passage == passage && (v->kind == TD_CODE_IN_PLACE || kept);
}

/* The float32 that a value is, after it has been a 16-bit float within this loop; -1: it is none
 * such. */
static int rounded_by(const writing *x, const td_code_value *value, int passage) {
    const td_code_value *narrow = &x->v.values[value->src[0]];
    bool rounds = value->primitive < 0 && td_is_narrow((td_dtype)value->from) &&
                  value->dtype == TD_F32 && narrow->primitive < 0 && narrow->from == TD_F32 &&
                  narrow->kind == TD_CODE_IN_PLACE && narrow->passage == passage;
    return rounds ? narrow->src[0] : -1;
}

static void write_output(writing *x, int k, int passage, way how) {
    const int value = x->v.outputs[k];
    const td_dtype dtype = dtype_of(x, value);
    int reg = value_in_loop(x, value, passage, how);
    const bool narrow = x->form->narrow != TD_DTYPE_NONE;
    const td_code_type t = narrow ? (td_code_type){"i16"} : td_code_memory(dtype);
    reg = narrow ? td_code_narrow(&x->w, x->form->narrow, reg) : to_memory(x, dtype, reg);
    store(x, t, reg, element_at(x, t, "out", k), how);
}

/* What a passage does with the elements from %i on. */
static void write_body(writing *x, int passage, way how) {
    td_code_values *v = &x->v;
    const bool last = passage == v->passages - 1;
    memset(x->made, 0, sizeof x->made);
    x->w.lanes = how == SINGLE ? 1 : x->lanes;
    for (int k = 0; k < v->n; k++) {
        const td_code_value *value = &v->values[k];
        if (!is_made_in(value, passage))
            continue;
        if (value->arity == 0) {
            x->made[k] = value_in_loop(x, k, passage, how);
            continue;
        }
        int src[3] = {0, 0, 0};
        const int rounded = rounded_by(x, value, passage);
        for (int s = 0; s < value->arity && rounded < 0; s++)
            src[s] = value_in_loop(x, value->src[s], passage, how);
        x->made[k] = rounded >= 0
                         ? td_code_round(&x->w, (td_dtype)value->from,
                                         value_in_loop(x, rounded, passage, how))
                         : td_code_operation(&x->w, value->primitive, (td_dtype)value->from,
                                             (td_dtype)value->dtype, src);
    }
    for (int k = 0; last && k < x->program->noutputs; k++)
        value_in_loop(x, v->outputs[k], passage, how);
    for (int k = 0; k < v->n; k++) {
        const td_code_value *value = &v->values[k];
        if (!is_made_in(value, passage) || value->buffer < 0)
            continue;
        const td_code_type t = td_code_memory((td_dtype)value->dtype);
        store(x, t, to_memory(x, (td_dtype)value->dtype, x->made[k]),
              element_at(x, t, "buffer", value->buffer), how == MASKED ? WHOLE : how);
    }
    for (int k = 0; last && k < x->program->noutputs; k++)
        write_output(x, k, passage, how);
    x->w.lanes = x->lanes;
}

/* ---- loops ---- */

static bool has_body(const writing *x, int passage) {
    if (passage == x->v.passages - 1)
        return true;
    for (int k = 0; k < x->v.n; k++)
        if (is_made_in(&x->v.values[k], passage))
            return true;
    return false;
}

/* For elements from `from` on while there are `end`. */
static void write_loop(writing *x, int passage, way how, const char *from, const char *end) {
    const int b = ++x->blocks;
    SAY("  br label %%before%d\nbefore%d:\n  br label %%head%d\nhead%d:\n", b, b, b, b);
    SAY("  %%i%d = phi i64 [ %s, %%before%d ], [ %%after%d, %%end%d ]\n", b, from, b, b, b);
    SAY("  %%more%d = icmp slt i64 %%i%d, %s\n", b, b, end);
    SAY("  br i1 %%more%d, label %%body%d, label %%done%d\nbody%d:\n", b, b, b, b);
    write_body(x, passage, how);
    SAY("  br label %%end%d\nend%d:\n  %%after%d = add i64 %%i%d, %d\n", b, b, b, b,
        how == SINGLE ? 1 : x->lanes);
    SAY("  br label %%head%d\ndone%d:\n", b, b);
}

/* Those behind the whole vectors at once. */
static void write_rest(writing *x, int passage) {
    const int b = ++x->blocks;
    SAY("  %%rest%d = sub i64 %%count, %%whole\n  %%any%d = icmp sgt i64 %%rest%d, 0\n", b, b, b);
    SAY("  br i1 %%any%d, label %%body%d, label %%done%d\nbody%d:\n", b, b, b, b);
    SAY("  %%i%d = add i64 %%whole, 0\n  %%above%d = shl i64 1, %%rest%d\n", b, b, b);
    SAY("  %%first%d = sub i64 %%above%d, 1\n", b, b);
    if (x->lanes < 64)
        SAY("  %%bits%d = trunc i64 %%first%d to i%d\n", b, b, x->lanes);
    else
        SAY("  %%bits%d = add i64 %%first%d, 0\n", b, b);
    SAY("  %%mask%d = bitcast i%d %%bits%d to <%d x i1>\n", b, x->lanes, b, x->lanes);
    write_body(x, passage, MASKED);
    SAY("  br label %%done%d\ndone%d:\n", b, b);
}

/* ---- calls ---- */

/* Where a call finds an operand, and which bit says that it is a single element. */
static void write_operand(writing *x, int b, int s, int value) {
    const td_code_value *v = &x->v.values[value];
    if (v->buffer >= 0)
        SAY("  %%from%d_%d = getelementptr i8, ptr %%buffer%d, i64 0\n", b, s, v->buffer);
    else if (v->kind == TD_CODE_NUMBER)
        SAY("  %%from%d_%d = getelementptr i8, ptr %%at%d, i64 0\n", b, s, value);
    else
        SAY("  %%from%d_%d = getelementptr i8, ptr %%p%d, i64 0\n", b, s, value);
    if (v->single)
        SAY("  %%bit%d_%d = add i32 0, %d\n", b, s, 1 << s);
    else if (v->kind == TD_CODE_LOAD && v->buffer < 0 && x->form->rows)
        SAY("  %%bit%d_%d = select i1 %%single%d, i32 %d, i32 0\n", b, s, value, 1 << s);
    else
        SAY("  %%bit%d_%d = add i32 0, 0\n", b, s);
}

static void write_call(writing *x, int value) {
    const td_code_value *v = &x->v.values[value];
    const int b = ++x->blocks;
    for (int s = 0; s < v->arity; s++)
        write_operand(x, b, s, v->src[s]);
    if (v->primitive < 0) {
        SAY("  call void %%function%d(i64 %%count, ptr %%buffer%d, ptr %%from%d_0)\n", v->call,
            v->buffer, b);
        return;
    }
    SAY("  %%bits%d_0 = add i32 %%bit%d_0, 0\n", b, b);
    for (int s = 1; s < v->arity; s++)
        SAY("  %%bits%d_%d = or i32 %%bits%d_%d, %%bit%d_%d\n", b, s, b, s - 1, b, s);
    SAY("  call void %%function%d(i64 %%count, ptr %%buffer%d", v->call, v->buffer);
    for (int s = 0; s < 3; s++) {
        if (s < v->arity)
            SAY(", ptr %%from%d_%d", b, s);
        else
            SAY(", ptr null");
    }
    SAY(", i32 %%bits%d_%d)\n", b, v->arity - 1);
}

/* ---- the function ---- */

static void write_passages(writing *x) {
    for (int passage = 0; passage < x->v.passages; passage++) {
        if (has_body(x, passage)) {
            write_loop(x, passage, WHOLE, "0", "%whole");
            if (x->w.masks)
                write_rest(x, passage);
            else
                write_loop(x, passage, SINGLE, "%whole", "%count");
        }
        for (int k = 0; k < x->v.n; k++) {
            const td_code_value *v = &x->v.values[k];
            if (v->needed && v->kind == TD_CODE_CALLED && v->passage == passage)
                write_call(x, k);
        }
    }
}

static void write_run(writing *x, const char *at, const char *next, int number, int run) {
    const size_t place = sizeof(td_run) * (size_t)run;
    const int b = ++x->blocks;
    SAY("  %%place%d = getelementptr i8, ptr %%runs, i64 %zu\n", b, place + offsetof(td_run, at));
    SAY("  %%%s%d = load ptr, ptr %%place%d, align 8\n", at, number, b);
    if (next && x->form->rows) {
        SAY("  %%further%d = getelementptr i8, ptr %%runs, i64 %zu\n", b,
            place + offsetof(td_run, next));
        SAY("  %%%s%d = load i64, ptr %%further%d, align 8\n", next, number, b);
    }
}

static void write_number(writing *x, int value) {
    const td_dtype dtype = dtype_of(x, value);
    const td_code_type t = td_code_memory(dtype);
    int one = ++x->w.names;
    SAY("  %%v%d = load %s, ptr %%at%d, align 1\n", one, t.text, value);
    x->w.lanes = 1;
    x->one[value] = from_memory(x, dtype, one);
    x->w.lanes = x->lanes;
    x->all[value] = td_code_splat(&x->w, td_code_element(dtype), x->one[value]);
}

/* What stays for all rows. */
static void write_entry(writing *x) {
    const td_code_values *v = &x->v;
    for (int k = 0; k < v->n; k++)
        if (v->values[k].buffer >= 0)
            SAY("  %%buffer%d = alloca [%d x %s], align 64\n", v->values[k].buffer, TD_CODE_TILE,
                td_code_memory(dtype_of(x, k)).text);
    for (int k = 0; k < v->nloads + v->nconstants; k++) {
        if (!v->values[k].needed)
            continue;
        const bool number = v->values[k].kind == TD_CODE_NUMBER;
        write_run(x, "at", number ? NULL : "next", k, k);
        if (number) {
            write_number(x, k);
        } else if (x->form->rows) {
            SAY("  %%fill%d = alloca %s, align 64\n", k,
                td_code_vector(x->lanes, td_code_memory(dtype_of(x, k))).text);
            SAY("  %%moving%d = getelementptr i8, ptr %%runs, i64 %zu\n", k,
                sizeof(td_run) * (size_t)k + offsetof(td_run, moves));
            SAY("  %%moves%d = load i64, ptr %%moving%d, align 8\n", k, k);
            SAY("  %%single%d = icmp eq i64 %%moves%d, 0\n", k, k);
        }
    }
    for (int k = 0; k < x->program->noutputs; k++)
        write_run(x, "to", "tonext", k, v->nloads + v->nconstants + k);
    for (int k = 0; k < v->n; k++)
        if (v->values[k].needed && v->values[k].kind == TD_CODE_CALLED)
            x->tiled = true;
}

static void write_functions(writing *x, const td_code_text *text) {
    for (int k = 0; k < text->ncalls; k++) {
        SAY("  %%entry%d = getelementptr i8, ptr %%functions, i64 %zu\n", k,
            sizeof(void *) * (size_t)k);
        SAY("  %%function%d = load ptr, ptr %%entry%d, align 8\n", k, k);
    }
}

/* Where a row of a load begins; or, where it is one element, a vector of that. */
static void write_row_load(writing *x, int k) {
    const td_code_type t = td_code_memory(dtype_of(x, k));
    SAY("  %%off%d = mul i64 %%row, %%next%d\n", k, k);
    SAY("  %%line%d = getelementptr i8, ptr %%at%d, i64 %%off%d\n", k, k, k);
    SAY("  br i1 %%single%d, label %%filling%d, label %%filled%d\nfilling%d:\n", k, k, k, k);
    int one = ++x->w.names;
    SAY("  %%v%d = load %s, ptr %%line%d, align 1\n", one, t.text, k);
    int all = td_code_splat(&x->w, t, one);
    SAY("  store %s %%v%d, ptr %%fill%d, align %zu\n", td_code_vector(x->lanes, t).text, all, k,
        bytes_of(t));
    SAY("  br label %%filled%d\nfilled%d:\n", k, k);
    SAY("  %%begin%d = select i1 %%single%d, ptr %%fill%d, ptr %%line%d\n", k, k, k, k);
}

static void write_tile_pointers(writing *x) {
    const td_code_values *v = &x->v;
    for (int k = 0; k < v->nloads; k++) {
        if (!v->values[k].needed || v->values[k].kind != TD_CODE_LOAD)
            continue;
        const td_code_type t = memory_type(x, k);
        if (x->form->rows) {
            SAY("  %%shift%d = and i64 %%base, %%moves%d\n", k, k);
            SAY("  %%p%d = getelementptr %s, ptr %%begin%d, i64 %%shift%d\n", k, t.text, k, k);
        } else {
            SAY("  %%p%d = getelementptr %s, ptr %%at%d, i64 %%base\n", k, t.text, k);
        }
    }
    for (int k = 0; k < x->program->noutputs; k++) {
        const bool narrow = x->form->narrow != TD_DTYPE_NONE;
        const td_code_type t =
            narrow ? (td_code_type){"i16"} : td_code_memory(dtype_of(x, v->outputs[k]));
        SAY("  %%out%d = getelementptr %s, ptr %%%s%d, i64 %%base\n", k, t.text,
            x->form->rows ? "rowout" : "to", k);
    }
}

static void write_tiles(writing *x) {
    SAY("  br label %%tiles\ntiles:\n  br label %%tile\ntile:\n");
    SAY("  %%base = phi i64 [ 0, %%tiles ], [ %%nextbase, %%tiled ]\n");
    SAY("  %%moretiles = icmp slt i64 %%base, %%n\n");
    SAY("  br i1 %%moretiles, label %%intile, label %%rowdone\nintile:\n");
    if (x->tiled) {
        SAY("  %%left = sub i64 %%n, %%base\n  %%short = icmp slt i64 %%left, %d\n", TD_CODE_TILE);
        SAY("  %%count = select i1 %%short, i64 %%left, i64 %d\n", TD_CODE_TILE);
    } else {
        SAY("  %%count = sub i64 %%n, %%base\n");
    }
    SAY("  %%whole = and i64 %%count, -%d\n", x->lanes);
    write_tile_pointers(x);
    write_passages(x);
    SAY("  br label %%tiled\ntiled:\n  %%nextbase = add i64 %%base, %%count\n");
    SAY("  br label %%tile\nrowdone:\n");
}

static void write_rows(writing *x) {
    const td_code_values *v = &x->v;
    SAY("  br label %%rowhead\nrowhead:\n");
    SAY("  %%row = phi i64 [ 0, %%entry ], [ %%nextrow, %%rowdone ]\n");
    SAY("  %%morerows = icmp slt i64 %%row, %%rows\n");
    SAY("  br i1 %%morerows, label %%inrow, label %%return\ninrow:\n");
    for (int k = 0; k < v->nloads; k++)
        if (v->values[k].needed && v->values[k].kind == TD_CODE_LOAD)
            write_row_load(x, k);
    for (int k = 0; k < x->program->noutputs; k++) {
        SAY("  %%outoff%d = mul i64 %%row, %%tonext%d\n", k, k);
        SAY("  %%rowout%d = getelementptr i8, ptr %%to%d, i64 %%outoff%d\n", k, k, k);
    }
    write_tiles(x);
    SAY("  %%nextrow = add i64 %%row, 1\n  br label %%rowhead\nreturn:\n");
}

/* ---- the whole text ---- */

/* Elements of a vector: as many as the widest of them has; twice as many where 16-bit floats are
 * rounded on the way, so that two of such long chains of operations, each waiting for the one
 * before, are at work in a processor's window at a time. */
static int count_lanes(const writing *x) {
    size_t widest = 1;
    bool rounds = false;
    for (int k = 0; k < x->v.n; k++) {
        const td_code_value *v = &x->v.values[k];
        size_t bytes = td_dtype_size((td_dtype)v->dtype);
        if (v->needed && bytes > widest)
            widest = bytes;
        if (v->needed && v->arity && td_dtype_size((td_dtype)v->from) > widest)
            widest = td_dtype_size((td_dtype)v->from);
        rounds |= v->needed && v->primitive < 0 && td_is_narrow((td_dtype)v->dtype);
    }
    return (rounds ? 2 : 1) * x->vector_bytes / (int)widest;
}

static void write_all(writing *x, const td_code_text *text) {
    x->lanes = x->w.lanes = count_lanes(x);
    SAY("define void @kernel(i64 %%rows, i64 %%n, ptr %%runs, ptr %%functions) nounwind "
        "\"prefer-vector-width\"=\"512\" \"min-legal-vector-width\"=\"512\" {\nentry:\n");
    write_entry(x);
    write_functions(x, text);
    if (x->form->rows)
        write_rows(x);
    else
        write_tiles(x);
    SAY("  ret void\n}\n");
    td_code_declare(&x->w);
    declare_masked(x);
}

const char *td_code_write(const td_code_form *form, const char *isa, td_code_text *text) {
    const bool avx512 = !strcmp(isa, "avx512"), avx2 = !strcmp(isa, "avx2");
    td_code_text none = {.text = NULL};
    td_code_text *to = text ? text : &none;
    writing *x = td_calloc(1, sizeof *x);
    *to = none;
    if (!x)
        return text ? NULL : "out of memory";
    x->form = form;
    x->program = form->program;
    x->w.masks = avx512;
    x->w.fast = form->program->fast;
    x->vector_bytes = avx512 ? 64 : avx2 ? 32 : 16;
    const char *why = form->narrow != TD_DTYPE_NONE && !avx512 && !avx2
                          ? "16-bit floats without instructions for them"
                          : td_code_values_make(form, avx512 || avx2, &x->v, to);
    if (!why && text) {
        write_all(x, text);
        text->text = x->w.failed ? NULL : x->w.text;
        text->length = x->w.length;
    }
    if (!text || x->w.failed)
        td_free(x->w.text);
    td_free(x);
    return why;
}
