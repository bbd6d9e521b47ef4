/* source.c: writes a pointwise program as CUDA C++: registers become variables, dtypes and the ways
 * in which operands are found are known. The text is compiled at run time with headers that
 * CMake puts into the module, and rounds where the interpreter (pointwise.cu) rounds. Knows neither
 * the compiler nor tensors. */
#include "engine/cuda/pointwise/source.h"

#include "engine/core/memory.h"
#include "engine/cuda/limits.h"
#include "engine/ops/language/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- text that grows ---- */

typedef struct text {
    char *at;
    size_t length, room;
    bool failed;
} text;

static void __attribute__((format(printf, 2, 3))) put(text *t, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    size_t n = (size_t)vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (!t->failed && t->length + n + 1 > t->room) {
        size_t room = 2 * (t->length + n + 1);
        char *at = td_realloc(t->at, room);
        t->failed = !at;
        t->at = at ? at : t->at;
        t->room = at ? room : t->room;
    }
    if (!t->failed)
        t->length += (size_t)vsnprintf(t->at + t->length, n + 1, format, again);
    va_end(again);
}

/* ---- types ---- */

static const char *const memory_types[TD_DTYPE_COUNT] = {
    [TD_BOOL] = "td_bool",   [TD_U8] = "unsigned char",
    [TD_I8] = "signed char", [TD_I16] = "short",
    [TD_I32] = "int",        [TD_I64] = "long long",
    [TD_F16] = "__half",     [TD_BF16] = "__nv_bfloat16",
    [TD_F32] = "float",      [TD_F64] = "double"};

/* Of a register. */
static const char *wide_type(int dtype) {
    static const char *const types[TD_DTYPE_COUNT] = {
        [TD_F16] = "float", [TD_BF16] = "float", [TD_F32] = "float", [TD_F64] = "double"};
    return types[dtype] ? types[dtype] : "long long";
}

/* ---- steps ---- */

/* What a register holds at a place of the program. */
typedef struct value {
    char name[16];
    const char *type; /* NULL: whatever it is read as */
} value;

typedef struct writer {
    text text;
    const td_cu_code *code;
    const td_cuda_form *form;
    value registers[TD_CU_REGISTERS];
} writer;

static int kind_of(const td_cuda_form *form, int load) {
    return (int)(form->kinds >> (2 * load) & 3);
}

static void set_value(writer *w, int r, const char *letter, int k, const char *type) {
    value *v = &w->registers[r];
    snprintf(v->name, sizeof v->name, "%s%d", letter, k);
    v->type = type;
}

/* A register as a number of a type; one of another type is no program of ours. */
static void put_value(writer *w, int r, const char *type) {
    const value *v = &w->registers[r];
    if (v->type && strcmp(v->type, type) != 0)
        w->text.failed = true;
    if (v->type)
        put(&w->text, "%s", v->name);
    else
        put(&w->text, "td_number<%s>(%s)", type, v->name);
}

static void put_formula(writer *w, int s, const td_cu_step *step, const char *type) {
    td_primitive primitive = (td_primitive)step->primitive;
    bool floating = td_dtype_is_float((td_dtype)step->from);
    bool compares = floating && td_primitive_signature(primitive) == TD_SIGNATURE_COMPARE;
    const char *formula = td_primitive_text(primitive, floating);
    const char *result = compares ? "long long" : floating ? type : wide_type(step->to);
    int arity = td_primitive_arity(primitive);
    put(&w->text, "    %s s%d;\n    {\n        typedef %s T;\n", result, s, type);
    for (int k = 0; k < arity; k++) {
        put(&w->text, "        const T %c = ", 'a' + k);
        put_value(w, step->src[k], type);
        put(&w->text, ";\n");
    }
    if (compares)
        put(&w->text, "        s%d = (%s) ? 1LL : 0LL;\n    }\n", s, formula ? formula : "");
    else if (floating)
        put(&w->text, "        s%d = (T)(%s);\n    }\n", s, formula ? formula : "");
    else
        put(&w->text, "        s%d = td_as<%s>((long long)(%s));\n    }\n", s,
            memory_types[step->to], formula ? formula : "");
    w->text.failed = w->text.failed || !formula;
    set_value(w, step->dst, "s", s, result);
}

static void put_step(writer *w, int s) {
    const td_cu_step *step = &w->code->steps[s];
    const char *type = wide_type(step->from);
    if (step->primitive == TD_PW_where) {
        put(&w->text, "    %s s%d = ", type, s);
        put_value(w, step->src[0], "long long");
        put(&w->text, " ? ");
        put_value(w, step->src[1], type);
        put(&w->text, " : ");
        put_value(w, step->src[2], type);
        put(&w->text, ";\n");
        set_value(w, step->dst, "s", s, type);
    } else if (step->primitive == TD_PW_copy) {
        bool same = step->from == step->to;
        put(&w->text, "    %s s%d = ", wide_type(step->to), s);
        if (!same)
            put(&w->text, "td_as<%s>(", memory_types[step->to]);
        put_value(w, step->src[0], type);
        put(&w->text, same ? ";\n" : ");\n");
        set_value(w, step->dst, "s", s, wide_type(step->to));
    } else {
        put_formula(w, s, step, type);
    }
}

/* All steps of one element, a function of loads (but numbers), of the words that the kernel was
 * launched with, and of results. */
static void put_steps(writer *w) {
    const td_cu_code *code = w->code;
    put(&w->text, "__device__ static inline void td_steps(const long long *w, const long long *k");
    for (int k = 0; k < code->nloads; k++) {
        if (kind_of(w->form, k) == TD_CU_NUMBER) {
            snprintf(w->registers[k].name, sizeof w->registers[k].name, "w[%d]", k);
            w->registers[k].type = NULL;
            continue;
        }
        put(&w->text, ",\n    %s x%d", wide_type(code->load_as[k]), k);
        set_value(w, k, "x", k, wide_type(code->load_as[k]));
    }
    for (int k = 0; k < code->nconstants; k++)
        snprintf(w->registers[code->nloads + k].name, sizeof w->registers[0].name, "k[%d]", k);
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, ",\n    %s &y%d", memory_types[code->out_to[k]], k);
    put(&w->text, ") {\n");
    for (int s = 0; s < code->nsteps; s++)
        put_step(w, s);
    for (int k = 0; k < code->nouts; k++) {
        put(&w->text, "    y%d = td_narrow<%s>::of(", k, memory_types[code->out_to[k]]);
        put_value(w, code->nloads + code->nconstants + k, wide_type(code->out_from[k]));
        put(&w->text, ");\n");
    }
    put(&w->text, "}\n\n");
}

/* ---- elements ---- */

static bool is_dense(const writer *w, int load) {
    return kind_of(w->form, load) == TD_CU_DENSE;
}

static bool is_repeated(const writer *w, int load) {
    return w->form->repeated >> load & 1;
}

/* The element that stands in `place` as a register holds it. */
static void put_loaded(writer *w, int k, const char *place, int number) {
    int from = w->code->load_from[k], as = w->code->load_as[k];
    bool same = from == as;
    if (!same)
        put(&w->text, "td_as<%s>(", memory_types[as]);
    put(&w->text, "td_widen(");
    put(&w->text, "%s%d", place, number);
    if (strcmp(place, "p") == 0)
        put(&w->text, ".e[v]");
    put(&w->text, same ? ")" : "))");
}

/* Single elements are read once by each thread; addresses of the others are made pointers. */
static void put_addresses(writer *w) {
    const td_cu_code *code = w->code;
    for (int k = 0; k < code->nloads; k++) {
        const char *type = memory_types[code->load_from[k]];
        if (is_dense(w, k))
            put(&w->text, "    const %s *i%d = (const %s *)w[%d];\n", type, k, type, k);
        else if (kind_of(w->form, k) == TD_CU_SINGLE)
            put(&w->text, "    const %s q%d = *(const %s *)w[%d];\n", type, k, type, k);
    }
    for (int k = 0; k < code->nouts; k++) {
        const char *type = memory_types[code->out_to[k]];
        put(&w->text, "    %s *o%d = (%s *)w[%d];\n", type, k, type, code->nloads + k);
    }
}

/* The call of td_steps; dense loads are found as `load` says, with numbers behind it. */
static void put_call(writer *w, const char *load, const char *result) {
    put(&w->text, "td_steps(w, k");
    for (int k = 0; k < w->code->nloads; k++) {
        if (kind_of(w->form, k) == TD_CU_NUMBER)
            continue;
        put(&w->text, ", ");
        put_loaded(w, k, is_dense(w, k) && !is_repeated(w, k) ? load : "q", k);
    }
    for (int k = 0; k < w->code->nouts; k++)
        put(&w->text, ", %s%d%s", result, k, strcmp(result, "r") == 0 ? ".e[v]" : "");
    put(&w->text, ");\n");
}

/* A vector of elements from each place iK_ on through the steps, and to oK_. */
static void put_vector(writer *w, const char *indent) {
    const td_cu_code *code = w->code;
    int vector = w->form->vector;
    for (int k = 0; k < code->nloads; k++) {
        const char *type = memory_types[code->load_from[k]];
        if (is_dense(w, k) && is_repeated(w, k))
            put(&w->text, "%sconst %s q%d = *i%d_;\n", indent, type, k, k);
        else if (is_dense(w, k))
            put(&w->text, "%sconst td_pack<%s, %d> p%d = td_read_pack<%s, %d>(i%d_);\n", indent,
                type, vector, k, type, vector, k);
    }
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, "%std_pack<%s, %d> r%d;\n", indent, memory_types[code->out_to[k]], vector, k);
    put(&w->text, "%sTD_UNROLL\n%sfor (int v = 0; v < %d; v++)\n%s    ", indent, indent, vector,
        indent);
    put_call(w, "p", "r");
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, "%std_write_pack<%s, %d>(o%d_, r%d);\n", indent,
            memory_types[code->out_to[k]], vector, k, k);
}

/* ---- kernels ---- */

static const char head[] = "#include \"td_numbers.h\"\n#include \"td_math.h\"\n"
                           "#include \"td_integers.h\"\n#include \"td_vector.h\"\n"
                           "#include \"td_compiled.h\"\n#include \"td_vocabulary.h\"\n\n";

static int count_sides(const td_cu_code *code) {
    return code->nloads + code->nouts;
}

static void put_one_head(writer *w) {
    int sides = count_sides(w->code);
    put(&w->text,
        "(const __grid_constant__ td_values<%d> p) {\n"
        "    const long long *w = p.v + 1, *k = p.v + %d;\n"
        "    const long long n = p.v[0], first = (long long)blockIdx.x * %d;\n",
        1 + sides + w->code->nconstants, 1 + sides, TD_CU_TILE);
}

static void put_many_head(writer *w) {
    put(&w->text,
        "(const __grid_constant__ td_lists<%d, %d> l,\n"
        "    const __grid_constant__ td_values<%d> p) {\n"
        "    const int list = l.find(blockIdx.x);\n"
        "    const long long *w = l.words + list * l.stride + 2, *k = p.v;\n"
        "    const long long n = w[-2], first = (long long)(blockIdx.x - l.tiles[list]) * %d;\n",
        TD_CU_LISTS, TD_CU_WORDS, w->code->nconstants + 1, TD_CU_TILE);
}

/* Whole tiles of aligned elements by vectors, others one by one. */
static void put_flat_body(writer *w) {
    const td_cu_code *code = w->code;
    int vector = w->form->vector, threads = td_cuda_threads(w->form);
    put_addresses(w);
    put(&w->text, "    if (first + %d <= n", TD_CU_TILE);
    for (int k = 0; k < code->nloads; k++)
        if (is_dense(w, k))
            put(&w->text, " &&\n        td_is_aligned<%s, %d>(i%d)",
                memory_types[code->load_from[k]], vector, k);
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, " &&\n        td_is_aligned<%s, %d>(o%d)", memory_types[code->out_to[k]],
            vector, k);
    put(&w->text, ") {\n        const long long at = first + threadIdx.x * %d;\n", vector);
    for (int k = 0; k < code->nloads; k++)
        if (is_dense(w, k))
            put(&w->text, "        const auto *i%d_ = i%d + at;\n", k, k);
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, "        auto *o%d_ = o%d + at;\n", k, k);
    put_vector(w, "        ");
    put(&w->text,
        "        return;\n    }\n"
        "    const long long end = first + %d < n ? first + %d : n;\n    TD_NO_UNROLL\n"
        "    for (long long at = first + threadIdx.x; at < end; at += %d) {\n",
        TD_CU_TILE, TD_CU_TILE, threads);
    for (int k = 0; k < code->nloads; k++)
        if (is_dense(w, k))
            put(&w->text, "        const auto e%d = i%d[at];\n", k, k);
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, "        %s t%d;\n", memory_types[code->out_to[k]], k);
    put(&w->text, "        ");
    put_call(w, "e", "t");
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, "        o%d[at] = t%d;\n", k, k);
    put(&w->text, "    }\n}\n");
}

/* The offset fK of each side at element `at`, in bytes: its index along each dim times strides. */
static void put_offsets(writer *w) {
    const td_cu_code *code = w->code;
    int sides = count_sides(code), ndim = w->form->ndim;
    const char *integer = w->form->wide ? "long long" : "int";
    put(&w->text, "        unsigned %s rest = at;\n", integer);
    for (int k = 0; k < sides; k++)
        if (k >= code->nloads || is_dense(w, k))
            put(&w->text, "        %s f%d = 0;\n", integer, k);
    for (int d = ndim - 1; d >= 0; d--) {
        if (d > 0)
            put(&w->text,
                "        const unsigned %s above%d = rest / (unsigned %s)sizes[%d];\n"
                "        const %s at%d = (%s)(rest - above%d * (unsigned %s)sizes[%d]);\n"
                "        rest = above%d;\n",
                integer, d, integer, d, integer, d, integer, d, integer, d, d);
        else
            put(&w->text, "        const %s at0 = (%s)rest;\n", integer, integer);
        for (int k = 0; k < sides; k++)
            if (k >= code->nloads || is_dense(w, k))
                put(&w->text, "        f%d += at%d * (%s)strides[%d];\n", k, d, integer,
                    k * ndim + d);
    }
    for (int k = 0; k < code->nloads; k++)
        if (is_dense(w, k))
            put(&w->text, "        const auto *i%d_ = (const %s *)((const char *)i%d + f%d);\n", k,
                memory_types[code->load_from[k]], k, k);
    for (int k = 0; k < code->nouts; k++)
        put(&w->text, "        auto *o%d_ = (%s *)((char *)o%d + f%d);\n", k,
            memory_types[code->out_to[k]], k, code->nloads + k);
}

static void put_walk(writer *w) {
    const td_cu_code *code = w->code;
    int sides = count_sides(code), ndim = w->form->ndim, vector = w->form->vector;
    int threads = td_cuda_threads(w->form), numbers = 1 + sides + ndim + sides * ndim;
    put(&w->text,
        "(const __grid_constant__ td_values<%d> p) {\n"
        "    const long long *w = p.v + 1, *sizes = p.v + %d, *strides = p.v + %d;\n"
        "    const long long *k = p.v + %d, n = p.v[0];\n",
        numbers + code->nconstants, 1 + sides, 1 + sides + ndim, numbers);
    put_addresses(w);
    put(&w->text,
        "    TD_UNROLL\n    for (int e = 0; e < %d; e += %d) {\n"
        "        const unsigned %s at = (unsigned %s)blockIdx.x * %d + e + threadIdx.x * %d;\n"
        "        if (at >= n)\n            return;\n",
        TD_CU_TILE, threads * vector, w->form->wide ? "long long" : "int",
        w->form->wide ? "long long" : "int", TD_CU_TILE, vector);
    put_offsets(w);
    put_vector(w, "        ");
    put(&w->text, "    }\n}\n");
}

int td_cuda_threads(const td_cuda_form *form) {
    int threads = TD_CU_TILE / form->vector;
    return threads < TD_CU_BLOCK ? threads : TD_CU_BLOCK;
}

int td_cuda_vector(const td_cu_code *code) {
    size_t largest = 1;
    for (int k = 0; k < code->nloads; k++)
        if (td_dtype_size((td_dtype)code->load_from[k]) > largest)
            largest = td_dtype_size((td_dtype)code->load_from[k]);
    for (int k = 0; k < code->nouts; k++)
        if (td_dtype_size((td_dtype)code->out_to[k]) > largest)
            largest = td_dtype_size((td_dtype)code->out_to[k]);
    return largest <= 2 && code->nsteps <= TD_LIMIT(POINTWISE_STEPS) ? 8 : 4;
}

char *td_cuda_source(const td_cu_code *code, const td_cuda_form *form) {
    writer *w = td_calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->code = code;
    w->form = form;
    put(&w->text, "%s", head);
    put_steps(w);
    put(&w->text, "extern \"C\" __global__ void __launch_bounds__(%d)\n" TD_CUDA_PROGRAM,
        td_cuda_threads(form));
    if (form->way == TD_CUDA_WALK) {
        put_walk(w);
    } else {
        if (form->way == TD_CUDA_ONE)
            put_one_head(w);
        else
            put_many_head(w);
        put_flat_body(w);
    }
    char *source = w->text.at;
    if (w->text.failed) {
        td_free(source);
        source = NULL;
    }
    td_free(w);
    return source;
}
