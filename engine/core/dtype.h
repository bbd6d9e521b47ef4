/* dtype.h: element types, one row each. A new dtype is a new row here plus its kernels. */
#ifndef TD_CORE_DTYPE_H
#define TD_CORE_DTYPE_H

#include "engine/core/half.h"
#include "engine/core/status.h"

typedef enum td_category { TD_CAT_BOOL, TD_CAT_INT, TD_CAT_FLOAT } td_category;

/* ORDER DTYPE: within a category from narrow to wide; promotion reads this order.
 *   name  ENUM  C type   printed name  category        alias of the Lua constant */
#define TD_DTYPE_TABLE(X)                                                                          \
    X(bool_, BOOL, uint8_t, "bool", TD_CAT_BOOL, "bool")                                           \
    X(u8, U8, uint8_t, "uint8", TD_CAT_INT, "byte")                                                \
    X(i8, I8, int8_t, "int8", TD_CAT_INT, "char")                                                  \
    X(i16, I16, int16_t, "int16", TD_CAT_INT, "short")                                             \
    X(i32, I32, int32_t, "int32", TD_CAT_INT, "int")                                               \
    X(i64, I64, int64_t, "int64", TD_CAT_INT, "long")                                              \
    X(f16, F16, td_half, "float16", TD_CAT_FLOAT, "half")                                          \
    X(bf16, BF16, td_bfloat, "bfloat16", TD_CAT_FLOAT, "bfloat")                                   \
    X(f32, F32, float, "float32", TD_CAT_FLOAT, "float")                                           \
    X(f64, F64, double, "float64", TD_CAT_FLOAT, "double")

typedef enum td_dtype {
#define TD_DTYPE_ENUM(name, NAME, type, text, category, alias) TD_##NAME,
    TD_DTYPE_TABLE(TD_DTYPE_ENUM)
#undef TD_DTYPE_ENUM
        TD_DTYPE_COUNT,
    TD_DTYPE_NONE = 255 /* "not given" */
} td_dtype;

/* Sets of dtypes, a bit each: TD_DTYPE_BIT(F32) | TD_DTYPE_BIT(F64). */
#define TD_DTYPE_BIT(NAME) (1 << TD_##NAME)
enum {
#define TD_DTYPE_OF(wanted, NAME, category) | ((category) == (wanted) ? TD_DTYPE_BIT(NAME) : 0)
#define TD_DTYPE_BOOLS(name, NAME, type, text, category, alias)                                    \
    TD_DTYPE_OF(TD_CAT_BOOL, NAME, category)
#define TD_DTYPE_INTS(name, NAME, type, text, category, alias)                                     \
    TD_DTYPE_OF(TD_CAT_INT, NAME, category)
#define TD_DTYPE_FLOATS(name, NAME, type, text, category, alias)                                   \
    TD_DTYPE_OF(TD_CAT_FLOAT, NAME, category)
    TD_DTYPES_BOOL = 0 TD_DTYPE_TABLE(TD_DTYPE_BOOLS),
    TD_DTYPES_INTS = 0 TD_DTYPE_TABLE(TD_DTYPE_INTS),
    TD_DTYPES_FLOATS = 0 TD_DTYPE_TABLE(TD_DTYPE_FLOATS),
    TD_DTYPES_NUMBERS = TD_DTYPES_INTS | TD_DTYPES_FLOATS,
    TD_DTYPES_ALL = TD_DTYPES_BOOL | TD_DTYPES_NUMBERS
#undef TD_DTYPE_OF
#undef TD_DTYPE_BOOLS
#undef TD_DTYPE_INTS
#undef TD_DTYPE_FLOATS
};

typedef struct td_dtype_info {
    const char *name, *alias;
    uint8_t size; /* bytes of an element */
    uint8_t category;
} td_dtype_info;

extern const td_dtype_info td_dtypes[TD_DTYPE_COUNT];

static inline size_t td_dtype_size(td_dtype d) {
    return td_dtypes[d].size;
}
static inline const char *td_dtype_name(td_dtype d) {
    return td_dtypes[d].name;
}
static inline bool td_dtype_is_float(td_dtype d) {
    return td_dtypes[d].category == TD_CAT_FLOAT;
}
static inline bool td_dtype_is_int(td_dtype d) {
    return td_dtypes[d].category == TD_CAT_INT;
}

/* The dtype that arithmetic on d is done in: float32 for the 16-bit floats, else d itself. */
static inline td_dtype td_dtype_compute(td_dtype d) {
    return d == TD_F16 || d == TD_BF16 ? TD_F32 : d;
}

/* The dtype both promote to (PyTorch's table: bool < ints < floats; u8 with i32 is i32, u8 with i8
 * i16, float16 with bfloat16 float32). */
td_dtype td_dtype_promote(td_dtype a, td_dtype b);

/* The dtype that sums over elements of d are kept in: float32 for narrower floats, else d. */
static inline td_dtype td_dtype_wide(td_dtype d) {
    return td_dtype_is_float(d) && td_dtype_size(d) < td_dtype_size(TD_F32) ? TD_F32 : d;
}

/* By printed name or alias ("float32", "float"); TD_DTYPE_NONE when unknown. */
td_dtype td_dtype_find(const char *name);

/* The dtype of floating results made from nothing or from integers (see core/default_dtype.h). */
td_dtype td_default_dtype(void);

/* From floats to integers as x86 converts, on every machine: towards zero, and what an int64 (or an
 * int32) does not hold, NaN among it, is the least one. Narrower integers take the low bits, those
 * of the int32 or, uint8, of the int64; that is what PyTorch does. */
static inline int64_t td_double_to_i64(double v) {
    return (int64_t)(v >= -0x1p63 && v < 0x1p63 ? v : -0x1p63);
}
static inline int32_t td_double_to_i32(double v) {
    return (int32_t)(v > -0x1.00000002p31 && v < 0x1p31 ? v : -0x1p31);
}

/* One element as double or int64, and back; `p` may be unaligned. Conversion as above, or as a C
 * cast, bool by != 0. */
double td_load_double(td_dtype d, const void *p);
int64_t td_load_int(td_dtype d, const void *p);
void td_store_double(td_dtype d, void *p, double value);
void td_store_int(td_dtype d, void *p, int64_t value);

/* Convert n elements between dtypes; strides in bytes (0 repeats). */
void td_convert(td_dtype to, void *dst, int64_t dst_stride, td_dtype from, const void *src,
                int64_t src_stride, int64_t n);

/* Can a tensor of this dtype be given the number? An integer dtype must hold its whole part; an
 * unsigned one takes also what wraps around from below. */
bool td_dtype_holds_int(td_dtype dtype, int64_t i);
bool td_dtype_holds(td_dtype dtype, double value);

#endif
