/* arena.c: reserves the range, hands out blocks, and lets go of tensors when Lua frees them. */
#include "lua-bindings/state/arena.h"

#include "engine/core/poison.h"

#include <lauxlib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* A userdata of two pointers takes 48 bytes in Lua 5.4; where its handle lies in the block is seen
 * when a state begins. Lua asks twice for memory, with a collection between, before it gives
 * up. */
enum { BLOCK_BYTES = 48, CHUNK_BYTES = 64 * 1024, LEAST_RANGE = 4 << 20, ATTEMPTS = 2 };

typedef struct tide_block {
    struct tide_block *next;
} tide_block;

typedef struct tide_chunk {
    struct tide_chunk *next;
    char *memory;
} tide_chunk;

char *tide_arena_begin, *tide_arena_end;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *unused;                 /* never given out yet */
static tide_chunk *returned;         /* chunks of states that are closed */
static _Atomic size_t handle_offset; /* from a block to its handle; 0: not known yet */

/* Addresses are plenty, but not where the process may have only so many: a sixteenth of them then,
 * which is room for a million handles in a gigabyte. */
static size_t range_wanted(void) {
    size_t size = (size_t)16 << 30;
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur / 16 < size)
        size = space.rlim_cur / 16 / CHUNK_BYTES * CHUNK_BYTES;
    return size < LEAST_RANGE ? LEAST_RANGE : size;
}

static bool reserve(void) {
    for (size_t size = range_wanted(); size >= LEAST_RANGE; size /= 2) {
        void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED)
            continue;
        unused = p;
        tide_arena_end = (char *)p + size;
        tide_arena_begin = p;
        return true;
    }
    return false;
}

static char *take_memory(void) {
    if (!tide_arena_begin && !reserve())
        return NULL;
    if (tide_arena_end - unused < CHUNK_BYTES ||
        mprotect(unused, CHUNK_BYTES, PROT_READ | PROT_WRITE))
        return NULL;
    char *memory = unused;
    unused += CHUNK_BYTES;
    return memory;
}

static tide_chunk *take_chunk(void) {
    pthread_mutex_lock(&lock);
    tide_chunk *chunk = returned;
    if (chunk) {
        returned = chunk->next;
    } else {
        chunk = malloc(sizeof *chunk);
        if (chunk && !(chunk->memory = take_memory())) {
            free(chunk);
            chunk = NULL;
        }
    }
    pthread_mutex_unlock(&lock);
    return chunk;
}

static void *take_block(tide_arena *arena) {
    if (!arena->free) {
        tide_chunk *chunk = take_chunk();
        if (!chunk)
            return NULL;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        TD_UNPOISON(chunk->memory, CHUNK_BYTES);
        for (int k = CHUNK_BYTES / BLOCK_BYTES - 1; k >= 0; k--) {
            tide_block *b = (tide_block *)(chunk->memory + k * BLOCK_BYTES);
            b->next = arena->free;
            arena->free = b;
        }
        TD_POISON(chunk->memory, CHUNK_BYTES);
    }
    tide_block *b = arena->free;
    TD_UNPOISON(b, BLOCK_BYTES);
    arena->free = b->next;
    arena->live++;
    return memset(b, 0, BLOCK_BYTES); /* a handle that is freed unfilled is empty */
}

static void free_block(tide_arena *arena, void *block) {
    size_t offset = atomic_load_explicit(&handle_offset, memory_order_relaxed);
    const tide_handle *handle = offset ? (tide_handle *)((char *)block + offset) : NULL;
    td_tensor *tensor = handle ? handle->tensor : NULL;
    tide_block *b = block;
    if (TD_UNLIKELY(handle && handle->pending)) /* nobody waits for it any more */
        handle->pending->holder = NULL;
    b->next = arena->free;
    arena->free = b;
    arena->live--;
    TD_POISON(b, BLOCK_BYTES);
    td_release(tensor);
}

void *tide_arena_alloc(void *ud, void *block, size_t old_size, size_t new_size) {
    tide_arena *arena = ud;
    if (!block) {
        if (arena->expecting && old_size == LUA_TUSERDATA && new_size <= BLOCK_BYTES) {
            void *p = take_block(arena);
            arena->expecting = p ? 0 : arena->expecting - 1;
            return p;
        }
        arena->expecting = 0;
        return arena->next(arena->next_ud, NULL, old_size, new_size);
    }
    if (tide_is_handle(block)) { /* handles are freed, never moved */
        free_block(arena, block);
        return NULL;
    }
    bool last = new_size == 0 && arena->main && (char *)arena->main >= (char *)block &&
                (char *)arena->main < (char *)block + old_size;
    void *p = arena->next(arena->next_ud, block, old_size, new_size);
    if (last) /* the state itself went */
        tide_arena_free(arena);
    return p;
}

tide_arena *tide_arena_new(lua_Alloc next, void *next_ud) {
    tide_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return NULL;
    arena->next = next;
    arena->next_ud = next_ud;
    pthread_mutex_lock(&lock);
    bool there = tide_arena_begin || reserve();
    pthread_mutex_unlock(&lock);
    if (there)
        return arena;
    free(arena);
    return NULL;
}

void tide_arena_free(tide_arena *arena) {
    td_autograd_collect(); /* the handles are gone: what is left are circles */
    if (arena->at_end)
        arena->at_end(arena->at_end_ctx);
    pthread_mutex_lock(&lock);
    while (arena->chunks) {
        tide_chunk *chunk = arena->chunks;
        arena->chunks = chunk->next;
        chunk->next = returned;
        returned = chunk;
    }
    pthread_mutex_unlock(&lock);
    free(arena);
}

tide_handle *tide_handle_new(lua_State *L, tide_arena *arena) {
    arena->expecting = ATTEMPTS;
    tide_handle *handle = lua_newuserdatauv(L, sizeof *handle, 0);
    arena->expecting = 0;
    return handle;
}

void tide_arena_probe(lua_State *L, tide_arena *arena) {
    tide_handle *handle = tide_handle_new(L, arena);
    size_t offset = (size_t)((char *)handle - tide_arena_begin) % CHUNK_BYTES % BLOCK_BYTES;
    if (!tide_is_handle(handle) || offset + sizeof *handle > BLOCK_BYTES)
        luaL_error(L, "this Lua lays out userdata in a way that Tide does not know");
    atomic_store_explicit(&handle_offset, offset, memory_order_relaxed);
    lua_pop(L, 1);
}
