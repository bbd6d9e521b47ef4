/* arrow.h: Arrow's C data interface (https://arrow.apache.org/docs/format/CDataInterface.html):
 * columns that a host program has become tensors over the same memory, and tensors become columns,
 * by two structs and no library.
 *
 * Who takes a pair of structs moves them, as the interface has it: their `release` is NULL then,
 * and the callbacks are called once each, at once or when the last tensor over the memory has died,
 * on whichever thread drops it. Such a tensor is for reading: the memory is the host's. The buffers
 * are its word: of their lengths the interface says nothing that could be checked.
 */
#ifndef TD_IO_ARROW_H
#define TD_IO_ARROW_H

#include "engine/core/tensor.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE           2
#define ARROW_FLAG_MAP_KEYS_SORTED    4

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

/* New CPU tensor of one dim of a column of numbers or booleans; both structs are stolen. Without a
 * copy: int8 to int64, uint8, float16 to float64, and what dates, times and durations count as
 * int32 or int64. Copied: booleans, which are bits there; uint16 and uint32 as int32 and int64,
 * uint64 as int64. Where values are missing a copy is float64, or of the column's own float dtype,
 * with NaN in their place. EVALUE (of another type, wrong in itself, a uint64 beyond int64),
 * ENOMEM. */
td_status td_from_arrow(struct ArrowSchema *schema, struct ArrowArray *array,
                        td_tensor **out) TD_MUST_CHECK;

/* Fill both structs with a row-major CPU tensor of one dim; the array keeps x alive. Without a copy
 * but for bool. The name may be NULL. EVALUE (of another shape or place, bfloat16), ENOMEM; the
 * structs are released then. */
td_status td_to_arrow(td_tensor *x, const char *name, struct ArrowSchema *schema,
                      struct ArrowArray *array) TD_MUST_CHECK;

/* ---- tables ---- */

/* A pair of structs that was taken, and whoever holds memory of it: counted. */
typedef struct td_arrow td_arrow;

/* Take both structs (stolen): a column, or a struct of columns. EVALUE, ENOMEM. */
td_status td_arrow_take(struct ArrowSchema *schema, struct ArrowArray *array,
                        td_arrow **out) TD_MUST_CHECK;
void td_arrow_release(td_arrow *arrow); /* NULL is fine */

int64_t td_arrow_rows(const td_arrow *arrow);
int64_t td_arrow_columns(const td_arrow *arrow); /* -1: it is a column itself, number 0 */
const char *td_arrow_name(const td_arrow *arrow,
                          int64_t column); /* borrowed; "" where it has none */
bool td_arrow_has_texts(const td_arrow *arrow,
                        int64_t column); /* utf8, as it is or by a dictionary */
/* New tensor of a column, as td_from_arrow. */
td_status td_arrow_tensor(td_arrow *arrow, int64_t column, td_tensor **out) TD_MUST_CHECK;
/* A text of a column of texts, borrowed; *at is NULL where it is missing. EVALUE where offsets or
 * numbers of the dictionary are wrong. */
td_status td_arrow_text(const td_arrow *arrow, int64_t column, int64_t row, const char **at,
                        size_t *len) TD_MUST_CHECK;

/* Texts by a dictionary: `codes` (int64, 0 where a text is missing) number those of `bytes` from 1,
 * of which k begins at offsets[k]; row-major CPU tensors of one dim. The numbers are copied, the
 * texts not. */
td_status td_texts_to_arrow(td_tensor *codes, td_tensor *bytes, td_tensor *offsets,
                            const char *name, struct ArrowSchema *schema,
                            struct ArrowArray *array) TD_MUST_CHECK;
/* A struct of n columns of one length, whose structs are moved into it, also when it fails. ENOMEM.
 */
td_status td_columns_to_arrow(int64_t n, struct ArrowSchema *columns, struct ArrowArray *arrays,
                              int64_t rows, struct ArrowSchema *schema,
                              struct ArrowArray *array) TD_MUST_CHECK;

#endif
