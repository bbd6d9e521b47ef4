/* code_words.c: the operations that the primitives are, in LLVM's intermediate language. */
#include "engine/cpu/code/code_words.h"

#include "engine/core/memory.h"
#include "engine/cpu/pointwise/pointwise_job.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- text ---- */

void td_code_say(td_code_writer *w, const char *format, ...) {
    enum { LONGEST = 4096 };
    if (w->failed)
        return;
    if (w->room - w->length < LONGEST) {
        size_t room = 2 * w->room + 2 * LONGEST;
        char *text = td_realloc(w->text, room);
        if (!text) {
            w->failed = true;
            return;
        }
        w->text = text;
        w->room = room;
    }
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->length, LONGEST, format, args);
    va_end(args);
    if (n < 0 || n >= LONGEST)
        w->failed = true;
    else
        w->length += (size_t)n;
}

td_code_type td_code_element(td_dtype dtype) {
    switch (dtype) {
    case TD_BOOL:
        return (td_code_type){"i1"};
    case TD_F32:
        return (td_code_type){"float"};
    case TD_F64:
        return (td_code_type){"double"};
    case TD_U8:
    case TD_I8:
        return (td_code_type){"i8"};
    case TD_I16:
    case TD_F16:
    case TD_BF16:
        return (td_code_type){"i16"};
    case TD_I32:
        return (td_code_type){"i32"};
    case TD_I64:
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        break;
    }
    return (td_code_type){"i64"};
}

td_code_type td_code_memory(td_dtype dtype) {
    return dtype == TD_BOOL ? (td_code_type){"i8"} : td_code_element(dtype);
}

td_code_type td_code_vector(int lanes, td_code_type t) {
    td_code_type v;
    if (lanes == 1)
        return t;
    snprintf(v.text, sizeof v.text, "<%d x %.8s>", lanes, t.text);
    return v;
}

/* ---- numbers ---- */

/* All lanes: "<i32 1, i32 1>", or "1". */
typedef struct number {
    char text[64 * 32];
} number;

static number all_lanes(const td_code_writer *w, td_code_type element, const char *one) {
    number n;
    size_t at = 0;
    if (w->lanes == 1) {
        snprintf(n.text, sizeof n.text, "%s", one);
        return n;
    }
    for (int k = 0; k < w->lanes; k++)
        at += (size_t)snprintf(n.text + at, sizeof n.text - at, "%s%.8s %.20s", k ? ", " : "<",
                               element.text, one);
    snprintf(n.text + at, sizeof n.text - at, ">");
    return n;
}

int td_code_splat(td_code_writer *w, td_code_type element, int one) {
    const td_code_type v = td_code_vector(w->lanes, element);
    if (w->lanes == 1)
        return one;
    int first = ++w->names, all = ++w->names;
    td_code_say(w, "  %%v%d = insertelement %s undef, %s %%v%d, i32 0\n", first, v.text,
                element.text, one);
    td_code_say(w, "  %%v%d = shufflevector %s %%v%d, %s undef, <%d x i32> zeroinitializer\n", all,
                v.text, first, v.text, w->lanes);
    return all;
}

/* ---- words of one operation ---- */

/* Of the floats that are computed with: the integer as wide, the name in intrinsics, the bit of the
 * sign and all others, one among the bits of what was declared. */
static const struct {
    td_code_type bits;
    const char *name, *sign, *others;
    int declared;
} float_words[TD_DTYPE_COUNT] = {
    [TD_F32] = {{"i32"}, "f32", "-2147483648", "2147483647", 0},
    [TD_F64] = {{"i64"}, "f64", "-9223372036854775808", "9223372036854775807", 2}};

typedef struct words {
    td_code_writer *w;
    td_dtype dtype;
    bool floating, is_unsigned;
    td_code_type element, v, mask, bits, bit; /* bits: integers as wide; bit: one of them */
} words;

static words words_of(td_code_writer *w, td_dtype dtype) {
    words x = {.w = w,
               .dtype = dtype,
               .floating = td_dtype_is_float(dtype),
               .is_unsigned = dtype == TD_U8 || dtype == TD_BOOL,
               .element = td_code_element(dtype)};
    x.bit = float_words[dtype].bits.text[0] ? float_words[dtype].bits : x.element;
    x.v = td_code_vector(w->lanes, x.element);
    x.bits = td_code_vector(w->lanes, x.bit);
    x.mask = td_code_vector(w->lanes, (td_code_type){"i1"});
    return x;
}

static int two(const words *x, const char *operation, td_code_type type, int a, int b) {
    int made = ++x->w->names;
    td_code_say(x->w, "  %%v%d = %s %s %%v%d, %%v%d\n", made, operation, type.text, a, b);
    return made;
}

static int with_number(const words *x, const char *operation, td_code_type type,
                       td_code_type element, int a, const char *one) {
    number n = all_lanes(x->w, element, one);
    int made = ++x->w->names;
    td_code_say(x->w, "  %%v%d = %s %s %%v%d, %s\n", made, operation, type.text, a, n.text);
    return made;
}

static int choose(const words *x, int mask, int a, int b) {
    int made = ++x->w->names;
    td_code_say(x->w, "  %%v%d = select %s %%v%d, %s %%v%d, %s %%v%d\n", made, x->mask.text, mask,
                x->v.text, a, x->v.text, b);
    return made;
}

static int converted(td_code_writer *w, const char *operation, td_code_type from, int a,
                     td_code_type to) {
    int made = ++w->names;
    td_code_say(w, "  %%v%d = %s %s %%v%d to %s\n", made, operation, from.text, a, to.text);
    return made;
}

/* A number as a register. */
static int constant(const words *x, const char *one) {
    number n = all_lanes(x->w, x->element, one);
    int made = ++x->w->names;
    td_code_say(x->w, "  %%v%d = bitcast %s %s to %s\n", made, x->v.text, n.text, x->v.text);
    return made;
}

/* ---- functions of LLVM ---- */

enum { SQRT, FLOOR, CEIL, RINT, TRUNC, INTRINSICS };
static const char *const intrinsics[INTRINSICS] = {"sqrt", "floor", "ceil", "rint", "trunc"};

/* "v16f32", "f64" */
static td_code_type suffix_of(int lanes, td_dtype dtype) {
    td_code_type t;
    const char *element = float_words[dtype].name;
    if (lanes == 1)
        snprintf(t.text, sizeof t.text, "%s", element);
    else
        snprintf(t.text, sizeof t.text, "v%d%s", lanes, element);
    return t;
}

/* A bit says which function, which dtype, and whether of vectors. */
static int intrinsic(const words *x, int which, int a) {
    const td_code_type suffix = suffix_of(x->w->lanes, x->dtype);
    int made = ++x->w->names;
    x->w->declared |=
        (uint64_t)1 << (4 * which + float_words[x->dtype].declared + (x->w->lanes > 1));
    td_code_say(x->w, "  %%v%d = call %s @llvm.%s.%s(%s %%v%d)\n", made, x->v.text,
                intrinsics[which], suffix.text, x->v.text, a);
    return made;
}

void td_code_declare(td_code_writer *w) {
    for (int bit = 0; bit < 4 * INTRINSICS; bit++) {
        if (!(w->declared >> bit & 1))
            continue;
        const td_dtype dtype = bit & 2 ? TD_F64 : TD_F32;
        const int lanes = bit & 1 ? w->lanes : 1;
        const td_code_type v = td_code_vector(lanes, td_code_element(dtype)),
                           suffix = suffix_of(lanes, dtype);
        td_code_say(w, "declare %s @llvm.%s.%s(%s)\n", v.text, intrinsics[bit / 4], suffix.text,
                    v.text);
    }
}

/* ---- floats ---- */

/* A sum, a difference or a product. */
#define FREELY " contract reassoc"
static int arithmetic(const words *x, const char *operation, int a, int b) {
    char text[32];
    snprintf(text, sizeof text, "%s%s", operation, x->w->fast ? FREELY : "");
    return two(x, text, x->v, a, b);
}

#define SIGN_BIT(x)  float_words[(x)->dtype].sign
#define OTHER_BIT(x) float_words[(x)->dtype].others

static int part_of_bits(const words *x, int a, const char *bits) {
    int whole = converted(x->w, "bitcast", x->v, a, x->bits);
    return with_number(x, "and", x->bits, x->bit, whole, bits);
}

/* b where that is NaN, a where only that is or both are equal (vec_native.h). */
static int extreme(const words *x, const char *order, int a, int b) {
    int chosen = choose(x, two(x, order, x->v, b, a), b, a);
    return choose(x, two(x, "fcmp uno", x->v, b, b), b, chosen);
}

/* a where it is in the order or b is NaN (primitives.def: fmax, fmin). */
static int extreme_but_nan(const words *x, const char *order, int a, int b) {
    int is = two(x, order, x->v, a, b), nan = two(x, "fcmp uno", x->v, b, b);
    return choose(x, two(x, "or", x->mask, is, nan), a, b);
}

static int sign_of(const words *x, int a) {
    const char *zero = x->floating ? "0.0" : "0", *one = x->floating ? "1.0" : "1";
    const char *above = x->floating ? "fcmp ogt" : x->is_unsigned ? "icmp ugt" : "icmp sgt";
    const char *below = x->floating ? "fcmp olt" : x->is_unsigned ? "icmp ult" : "icmp slt";
    int ones = constant(x, one), zeros = constant(x, zero);
    int positive = choose(x, with_number(x, above, x->v, x->element, a, zero), ones, zeros);
    int negative = choose(x, with_number(x, below, x->v, x->element, a, zero), ones, zeros);
    return two(x, x->floating ? "fsub" : "sub", x->v, positive, negative);
}

static int float_operation(const words *x, int primitive, int a, int b, int c) {
    int made;
    switch (primitive) {
    case TD_PW_add:
        return arithmetic(x, "fadd", a, b);
    case TD_PW_sub:
        return arithmetic(x, "fsub", a, b);
    case TD_PW_mul:
        return arithmetic(x, "fmul", a, b);
    case TD_PW_square:
        return arithmetic(x, "fmul", a, a);
    case TD_PW_div:
        return two(x, "fdiv", x->v, a, b);
    case TD_PW_muladd:
        return arithmetic(x, "fadd", a, arithmetic(x, "fmul", b, c));
    case TD_PW_reciprocal:
        return two(x, "fdiv", x->v, constant(x, "1.0"), a);
    case TD_PW_neg:
        made = ++x->w->names;
        td_code_say(x->w, "  %%v%d = fneg %s %%v%d\n", made, x->v.text, a);
        return made;
    case TD_PW_abs:
        return converted(x->w, "bitcast", x->bits, part_of_bits(x, a, OTHER_BIT(x)), x->v);
    case TD_PW_copysign:
        return converted(x->w, "bitcast", x->bits,
                         two(x, "or", x->bits, part_of_bits(x, a, OTHER_BIT(x)),
                             part_of_bits(x, b, SIGN_BIT(x))),
                         x->v);
    case TD_PW_sign:
        return sign_of(x, a);
    case TD_PW_maximum:
        return extreme(x, "fcmp ogt", a, b);
    case TD_PW_minimum:
        return extreme(x, "fcmp olt", a, b);
    case TD_PW_relu:
        return extreme(x, "fcmp ogt", a, constant(x, "0.0"));
    case TD_PW_fmax:
        return extreme_but_nan(x, "fcmp oge", a, b);
    case TD_PW_fmin:
        return extreme_but_nan(x, "fcmp ole", a, b);
    case TD_PW_sqrt:
        return intrinsic(x, SQRT, a);
    case TD_PW_floor:
        return intrinsic(x, FLOOR, a);
    case TD_PW_ceil:
        return intrinsic(x, CEIL, a);
    case TD_PW_round:
        return intrinsic(x, RINT, a);
    }
    return intrinsic(x, TRUNC, a); /* code_values.c lets no other pass */
}

/* ---- integers ---- */

static int larger(const words *x, int a, int b, bool smaller) {
    const char *above = x->is_unsigned ? "icmp ugt" : "icmp sgt";
    const char *below = x->is_unsigned ? "icmp ult" : "icmp slt";
    return choose(x, two(x, smaller ? below : above, x->v, a, b), a, b);
}

static int whole_operation(const words *x, int primitive, int a, int b) {
    switch (primitive) {
    case TD_PW_add:
        return two(x, "add", x->v, a, b);
    case TD_PW_sub:
        return two(x, "sub", x->v, a, b);
    case TD_PW_mul:
        return two(x, "mul", x->v, a, b);
    case TD_PW_square:
        return two(x, "mul", x->v, a, a);
    case TD_PW_neg:
        return two(x, "sub", x->v, constant(x, "0"), a);
    case TD_PW_abs:
        return x->is_unsigned ? a
                              : choose(x, with_number(x, "icmp slt", x->v, x->element, a, "0"),
                                       two(x, "sub", x->v, constant(x, "0"), a), a);
    case TD_PW_sign:
        return sign_of(x, a);
    case TD_PW_maximum:
    case TD_PW_fmax:
        return larger(x, a, b, false);
    case TD_PW_minimum:
    case TD_PW_fmin:
        return larger(x, a, b, true);
    case TD_PW_relu:
        return larger(x, a, constant(x, "0"), false);
    case TD_PW_bitwise_and:
        return two(x, "and", x->v, a, b);
    case TD_PW_bitwise_or:
        return two(x, "or", x->v, a, b);
    case TD_PW_bitwise_xor:
        return two(x, "xor", x->v, a, b);
    }
    return with_number(x, "xor", x->v, x->element, a, "-1"); /* bitwise_not */
}

/* ---- bools ---- */

static int bool_operation(const words *x, int primitive, int a, int b) {
    switch (primitive) {
    case TD_PW_add:
    case TD_PW_maximum:
    case TD_PW_bitwise_or:
    case TD_PW_logical_or:
        return two(x, "or", x->v, a, b);
    case TD_PW_mul:
    case TD_PW_minimum:
    case TD_PW_bitwise_and:
    case TD_PW_logical_and:
        return two(x, "and", x->v, a, b);
    case TD_PW_bitwise_xor:
    case TD_PW_logical_xor:
        return two(x, "xor", x->v, a, b);
    }
    return with_number(x, "xor", x->v, x->element, a, "true"); /* not */
}

/* ---- comparisons ---- */

static int comparison(const words *x, int primitive, int a, int b) {
    static const char *const floats[] = {"fcmp oeq", "fcmp une", "fcmp olt",
                                         "fcmp ole", "fcmp ogt", "fcmp oge"};
    static const char *const whole[] = {"icmp eq",  "icmp ne",  "icmp slt",
                                        "icmp sle", "icmp sgt", "icmp sge"};
    static const char *const unsigneds[] = {"icmp eq",  "icmp ne",  "icmp ult",
                                            "icmp ule", "icmp ugt", "icmp uge"};
    int which = primitive == TD_PW_eq   ? 0
                : primitive == TD_PW_ne ? 1
                : primitive == TD_PW_lt ? 2
                : primitive == TD_PW_le ? 3
                : primitive == TD_PW_gt ? 4
                                        : 5;
    const char *const *of = x->floating ? floats : x->is_unsigned ? unsigneds : whole;
    return two(x, of[which], x->v, a, b);
}

/* ---- 16-bit floats ---- */

int td_code_widen(td_code_writer *w, td_dtype narrow, int reg) {
    const td_code_type halves = td_code_vector(w->lanes, (td_code_type){"i16"}),
                       half = td_code_vector(w->lanes, (td_code_type){"half"}),
                       floats = td_code_vector(w->lanes, (td_code_type){"float"});
    const words x = words_of(w, TD_I32);
    if (narrow == TD_F16)
        return converted(w, "fpext", half, converted(w, "bitcast", halves, reg, half), floats);
    int wide = converted(w, "zext", halves, reg, x.v);
    return converted(w, "bitcast", x.v, with_number(&x, "shl", x.v, x.element, wide, "16"), floats);
}

/* Integers whose upper halves are what floats, of which these are the bits, round to: to nearest
 * even. Not of NaNs. With masks of all elements (AVX-512) that is a test and an addition. */
static int add_half(const words *x, int bits) {
    if (x->w->masks) {
        int odd = with_number(x, "icmp ne", x->v, x->element,
                              with_number(x, "and", x->v, x->element, bits, "65536"), "0");
        return two(x, "add", x->v, bits,
                   choose(x, odd, constant(x, "32768"), constant(x, "32767")));
    }
    int odd = with_number(x, "and", x->v, x->element,
                          with_number(x, "lshr", x->v, x->element, bits, "16"), "1");
    return two(x, "add", x->v, with_number(x, "add", x->v, x->element, bits, "32767"), odd);
}

/* As vf_to_bfloats of vec_half.h: a NaN stays one. */
static int to_bfloat(td_code_writer *w, int reg) {
    const words x = words_of(w, TD_I32), f = words_of(w, TD_F32);
    const td_code_type halves = td_code_vector(w->lanes, (td_code_type){"i16"});
    int bits = converted(w, "bitcast", f.v, reg, x.v);
    int quiet = with_number(&x, "or", x.v, x.element, bits, "4194304");
    int chosen = choose(&x, two(&f, "fcmp uno", f.v, reg, reg), quiet, add_half(&x, bits));
    return converted(w, "trunc", x.v, with_number(&x, "lshr", x.v, x.element, chosen, "16"),
                     halves);
}

/* NaNs stay as they are: whether they still are some when they are stored is seen to there. */
int td_code_round(td_code_writer *w, td_dtype narrow, int reg) {
    const words x = words_of(w, TD_I32), f = words_of(w, TD_F32);
    if (narrow == TD_F16)
        return td_code_widen(w, narrow, td_code_narrow(w, narrow, reg));
    int bits = converted(w, "bitcast", f.v, reg, x.v);
    int upper = with_number(&x, "and", x.v, x.element, add_half(&x, bits), "-65536");
    int rounded = choose(&x, two(&f, "fcmp ord", f.v, reg, reg), upper, bits);
    return converted(w, "bitcast", x.v, rounded, f.v);
}

int td_code_narrow(td_code_writer *w, td_dtype narrow, int reg) {
    const td_code_type halves = td_code_vector(w->lanes, (td_code_type){"i16"}),
                       half = td_code_vector(w->lanes, (td_code_type){"half"}),
                       floats = td_code_vector(w->lanes, (td_code_type){"float"});
    if (narrow == TD_BF16)
        return to_bfloat(w, reg);
    return converted(w, "bitcast", half, converted(w, "fptrunc", floats, reg, half), halves);
}

/* ---- conversions ---- */

#define LEAST_INT32  "-2147483648.0"
#define BEYOND_INT32 "2147483648.0"

/* As x86 does it (core/dtype.h): what an int32 does not hold, NaN among it, is the least one. */
static int float_to_whole(const words *x, const words *y, int a) {
    const words whole = words_of(x->w, TD_I32);
    int above = with_number(x, "fcmp oge", x->v, x->element, a, LEAST_INT32);
    int below = with_number(x, "fcmp olt", x->v, x->element, a, BEYOND_INT32);
    int held = choose(x, two(x, "and", x->mask, above, below), a, constant(x, LEAST_INT32));
    int made = converted(x->w, "fptosi", x->v, held, whole.v);
    return y->dtype == TD_I32 ? made : converted(x->w, "trunc", whole.v, made, y->v);
}

/* 16-bit floats by way of float32, as the conversions of whole tensors. */
static int conversion(const words *x, td_dtype to, int a) {
    const words y = words_of(x->w, to), f = words_of(x->w, TD_F32);
    if (x->dtype == to)
        return a;
    if (td_is_narrow(x->dtype))
        return conversion(&f, to, td_code_widen(x->w, x->dtype, a));
    if (td_is_narrow(to))
        return td_code_narrow(x->w, to, conversion(x, TD_F32, a));
    if (x->dtype == TD_BOOL)
        return y.floating ? choose(&y, a, constant(&y, "1.0"), constant(&y, "0.0"))
                          : converted(x->w, "zext", x->v, a, y.v);
    if (to == TD_BOOL)
        return with_number(x, x->floating ? "fcmp une" : "icmp ne", x->v, x->element, a,
                           x->floating ? "0.0" : "0");
    if (x->floating && !y.floating)
        return float_to_whole(x, &y, a);
    if (x->floating)
        return converted(x->w, td_dtype_size(to) > td_dtype_size(x->dtype) ? "fpext" : "fptrunc",
                         x->v, a, y.v);
    if (y.floating)
        return converted(x->w, x->is_unsigned ? "uitofp" : "sitofp", x->v, a, y.v);
    size_t from = td_dtype_size(x->dtype), wide = td_dtype_size(to);
    if (from == wide)
        return a;
    return converted(x->w, from > wide ? "trunc" : x->is_unsigned ? "zext" : "sext", x->v, a, y.v);
}

int td_code_operation(td_code_writer *w, int primitive, td_dtype from, td_dtype to,
                      const int *src) {
    const words x = words_of(w, from);
    if (primitive < 0)
        return conversion(&x, to, src[0]);
    if (primitive == TD_PW_copy)
        return src[0];
    if (primitive == TD_PW_where)
        return choose(&x, src[0], src[1], src[2]);
    if (td_primitive_signature((td_primitive)primitive) == TD_SIGNATURE_COMPARE)
        return comparison(&x, primitive, src[0], src[1]);
    if (from == TD_BOOL)
        return bool_operation(&x, primitive, src[0], src[1]);
    return x.floating ? float_operation(&x, primitive, src[0], src[1], src[2])
                      : whole_operation(&x, primitive, src[0], src[1]);
}
