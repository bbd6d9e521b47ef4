/* blocks.h: elements that are packed a block at a time, a few bits each, with what they are scaled
 * by in front or behind: GGML's quantized types, as GGUF files have them. Layouts and rounding are
 * those of https://github.com/ggml-org/ggml (ggml-quants.c, gguf-py/gguf/quants.py), bit for bit.
 * It knows bytes and floats alone.
 */
#ifndef TD_IO_BLOCKS_H
#define TD_IO_BLOCKS_H

#include "engine/core/status.h"

#include <stdbool.h>

typedef struct td_block_type {
    const char *name;    /* "Q4_0" */
    int number;          /* in a file */
    int elements, bytes; /* of a block */
    void (*unpack)(const uint8_t *from, float *to);
    void (*pack)(const float *from, uint8_t *to); /* NULL: it is only read */
} td_block_type;

/* The type of a number in a file; NULL where there is none, or it isn't known. */
const td_block_type *td_block_type_find(int64_t number);
/* The same by name. */
const td_block_type *td_block_type_named(const char *name);

/* Unpack or pack n blocks, on several threads where that is worth it. EINTR. */
td_status td_blocks_unpack(const td_block_type *type, const void *from, float *to,
                           int64_t n) TD_MUST_CHECK;
td_status td_blocks_pack(const td_block_type *type, const float *from, void *to,
                         int64_t n) TD_MUST_CHECK;

#endif
