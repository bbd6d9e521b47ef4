/* dtype.c: the table of dtypes, promotion, and conversion of single elements. */
#include "engine/core/dtype.h"

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
    return a > b ? a : b; /* ORDER DTYPE */
}

td_dtype td_dtype_find(const char *name) {
    for (int d = 0; d < TD_DTYPE_COUNT; d++)
        if (!strcmp(name, td_dtypes[d].name) || !strcmp(name, td_dtypes[d].alias))
            return (td_dtype)d;
    return TD_DTYPE_NONE;
}

td_dtype td_default_dtype(void) {
    return TD_F32;
}

#define LOAD_AS(result)                                                                            \
    switch (d) {                                                                                   \
        TD_DTYPE_TABLE(CASE)                                                                       \
    default:                                                                                       \
        return 0;                                                                                  \
    }

double td_load_double(td_dtype d, const void *p) {
#define CASE(name, NAME, type, text, category, alias)                                              \
    case TD_##NAME: {                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return (double)v;                                                                          \
    }
    LOAD_AS(double)
#undef CASE
}

/* A float out of int64's range has no defined cast in C; saturate, NaN is 0. */
static int64_t double_to_int(double v) {
    if (v != v)
        return 0;
    if (v >= 0x1p63)
        return INT64_MAX;
    if (v < -0x1p63)
        return INT64_MIN;
    return (int64_t)v;
}

int64_t td_load_int(td_dtype d, const void *p) {
    if (td_dtype_is_float(d))
        return double_to_int(td_load_double(d, p));
#define CASE(name, NAME, type, text, category, alias)                                              \
    case TD_##NAME: {                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return (int64_t)v;                                                                         \
    }
    LOAD_AS(int64_t)
#undef CASE
}

void td_store_double(td_dtype d, void *p, double value) {
    if (d == TD_F64) {
        memcpy(p, &value, sizeof value);
    } else if (d == TD_F32) {
        float v = (float)value;
        memcpy(p, &v, sizeof v);
    } else if (d == TD_BOOL) {
        *(uint8_t *)p = value != 0;
    } else {
        td_store_int(d, p, double_to_int(value));
    }
}

void td_store_int(td_dtype d, void *p, int64_t value) {
    if (d == TD_BOOL)
        value = value != 0;
    switch (d) {
#define CASE(name, NAME, type, text, category, alias)                                              \
    case TD_##NAME: {                                                                              \
        type v = (type)value;                                                                      \
        memcpy(p, &v, sizeof v);                                                                   \
        return;                                                                                    \
    }
        TD_DTYPE_TABLE(CASE)
#undef CASE
    default:
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
