/* dtype.c: the table of dtypes, promotion, and conversion of single elements. */
#include "engine/core/dtype.h"

#include "engine/core/default_dtype.h"

#include <stdatomic.h>
#include <string.h>

const td_dtype_info td_dtypes[TD_DTYPE_COUNT] = {
#define ROW(name, NAME, type, text, category, alias)                                               \
    [TD_##NAME] = {text, alias, sizeof(type), category},
    TD_DTYPE_TABLE(ROW)
#undef ROW
};

td_dtype td_dtype_promote(td_dtype a, td_dtype b) {
    uint8_t ca = td_dtypes[a].category, cb = td_dtypes[b].category;
    if (ca != cb)
        return ca > cb ? a : b;
    if ((a == TD_U8 && b == TD_I8) || (a == TD_I8 && b == TD_U8)) /* neither holds the other */
        return TD_I16;
    if ((a == TD_F16 && b == TD_BF16) || (a == TD_BF16 && b == TD_F16))
        return TD_F32;
    return a > b ? a : b; /* ORDER DTYPE */
}

td_dtype td_dtype_find(const char *name) {
    for (int d = 0; d < TD_DTYPE_COUNT; d++)
        if (!strcmp(name, td_dtypes[d].name) || !strcmp(name, td_dtypes[d].alias))
            return (td_dtype)d;
    return TD_DTYPE_NONE;
}

static atomic_uchar default_dtype = TD_F32;

td_dtype td_default_dtype(void) {
    return (td_dtype)atomic_load_explicit(&default_dtype, memory_order_relaxed);
}

td_status td_set_default_dtype(td_dtype dtype) {
    if (!td_dtype_is_float(dtype))
        return td_fail(TD_EVALUE, "the default dtype is a floating one, got %s",
                       td_dtype_name(dtype));
    atomic_store_explicit(&default_dtype, (unsigned char)dtype, memory_order_relaxed);
    return TD_OK;
}

/* ---- single elements ---- */

static double half_value(td_half h) {
    return (double)td_half_to_float(h);
}
static double bfloat_value(td_bfloat b) {
    return (double)td_bfloat_to_float(b);
}
static double same(double v) {
    return v;
}
#define VALUE(v) _Generic((v), td_half : half_value, td_bfloat : bfloat_value, default : same)(v)
#define FROM(type, v)                                                                              \
    _Generic((type){0}, td_half                                                                    \
             : td_double_to_half, td_bfloat                                                        \
             : td_double_to_bfloat, default                                                        \
             : same)(v)

double td_load_double(td_dtype d, const void *p) {
    switch (d) {
#define CASE(name, NAME, type, text, category, alias)                                              \
    case TD_##NAME: {                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return VALUE(v);                                                                           \
    }
        TD_DTYPE_TABLE(CASE)
#undef CASE
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        break;
    }
    return 0;
}

/* The integer dtypes and bool, whose C types are integers. */
#define INTEGERS(X)                                                                                \
    X(BOOL, uint8_t)                                                                               \
    X(U8, uint8_t)                                                                                 \
    X(I8, int8_t)                                                                                  \
    X(I16, int16_t)                                                                                \
    X(I32, int32_t)                                                                                \
    X(I64, int64_t)

int64_t td_load_int(td_dtype d, const void *p) {
    switch (d) {
#define CASE(NAME, type)                                                                           \
    case TD_##NAME: {                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return (int64_t)v;                                                                         \
    }
        INTEGERS(CASE)
#undef CASE
    case TD_F16:
    case TD_BF16:
    case TD_F32:
    case TD_F64:
        return td_double_to_i64(td_load_double(d, p));
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        break;
    }
    return 0;
}

void td_store_double(td_dtype d, void *p, double value) {
    switch (d) {
#define CASE(NAME, type)                                                                           \
    case TD_##NAME: {                                                                              \
        type v = FROM(type, value);                                                                \
        memcpy(p, &v, sizeof v);                                                                   \
        return;                                                                                    \
    }
        CASE(F16, td_half)
        CASE(BF16, td_bfloat)
        CASE(F32, float)
        CASE(F64, double)
#undef CASE
    case TD_BOOL:
        td_store_int(d, p, value != 0);
        return;
    case TD_I8:
    case TD_I16:
    case TD_I32:
        td_store_int(d, p, td_double_to_i32(value));
        return;
    case TD_U8:
    case TD_I64:
        td_store_int(d, p, td_double_to_i64(value));
        return;
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        return;
    }
}

void td_store_int(td_dtype d, void *p, int64_t value) {
    if (d == TD_BOOL)
        value = value != 0;
    switch (d) {
#define CASE(NAME, type)                                                                           \
    case TD_##NAME: {                                                                              \
        type v = (type)value;                                                                      \
        memcpy(p, &v, sizeof v);                                                                   \
        return;                                                                                    \
    }
        INTEGERS(CASE)
#undef CASE
    case TD_F16:
    case TD_BF16:
        td_store_double(d, p, (double)td_odd_float_of_int(value));
        return;
    case TD_F32:
        memcpy(p, &(float){(float)value}, sizeof(float));
        return;
    case TD_F64:
        td_store_double(d, p, (double)value);
        return;
    case TD_DTYPE_COUNT:
    case TD_DTYPE_NONE:
        return;
    }
}

void td_convert(td_dtype to, void *dst, int64_t dst_stride, td_dtype from, const void *src,
                int64_t src_stride, int64_t n) {
    char *d = dst;
    const char *s = src;
    bool exact = td_dtype_is_float(from);
    for (int64_t i = 0; i < n; i++, d += dst_stride, s += src_stride) {
        if (exact)
            td_store_double(to, d, td_load_double(from, s));
        else
            td_store_int(to, d, td_load_int(from, s));
    }
}

/* Bits of an integer's magnitude; 0: any number will do. */
static int magnitude_bits(td_dtype dtype) {
    if (td_dtype_is_float(dtype) || dtype == TD_BOOL)
        return 0;
    return 8 * (int)td_dtype_size(dtype) - (dtype != TD_U8);
}

bool td_dtype_holds_int(td_dtype dtype, int64_t i) {
    int bits = magnitude_bits(dtype);
    if (bits == 0 || bits > 62)
        return true;
    int64_t end = (int64_t)1 << bits;
    return i < end && i >= -end + (dtype == TD_U8);
}

bool td_dtype_holds(td_dtype dtype, double value) {
    int bits = magnitude_bits(dtype);
    if (bits == 0)
        return true;
    if (bits > 62)
        return value >= -0x1p63 && value < 0x1p63;
    return value > -0x1p63 && value < 0x1p63 && td_dtype_holds_int(dtype, (int64_t)value);
}
