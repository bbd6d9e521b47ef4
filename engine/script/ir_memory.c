/* ir_memory.c: memory of graphs, in chunks that go with them. */
#include "engine/core/memory.h"
#include "engine/script/ir.h"

#include <string.h>

enum { CHUNK = 8192 };

typedef struct td_ir_chunk {
    struct td_ir_chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
} td_ir_chunk;

void *td_ir_alloc(td_ir_graph *g, size_t bytes) {
    td_ir_chunk *chunk = g->chunks;
    bytes = (bytes + 15) & ~(size_t)15;
    if (!chunk || chunk->size - chunk->used < bytes) {
        size_t size = bytes > CHUNK ? bytes : CHUNK;
        chunk = td_malloc(sizeof *chunk + size);
        if (!chunk) {
            g->failed = true;
            return NULL;
        }
        *chunk = (td_ir_chunk){.next = g->chunks, .size = size};
        g->chunks = chunk;
    }
    void *block = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return memset(block, 0, bytes);
}

const char *td_ir_text(td_ir_graph *g, const char *text, size_t length) {
    char *copy = text ? td_ir_alloc(g, length + 1) : NULL;
    return copy ? memcpy(copy, text, length) : NULL;
}

void td_ir_free_memory(td_ir_graph *g) {
    for (td_ir_chunk *chunk = g->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        td_free(chunk);
    }
    g->chunks = NULL;
}
