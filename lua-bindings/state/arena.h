/* arena.h: where tensor handles live, so that collecting one costs no finalizer.
 *
 * A handle is a Lua userdata that holds one td_tensor reference. Its block comes from a range of
 * addresses reserved once for the process; the allocator that we give to Lua states knows blocks by
 * their address, and when the collector's sweep frees one, the allocator drops the reference. The
 * range is a type check as well: a userdata is a tensor if its address lies in it.
 *
 * Dropping a reference may free tensors and graph nodes but never calls Lua.
 */
#ifndef TIDE_LUA_STATE_ARENA_H
#define TIDE_LUA_STATE_ARENA_H

#include "engine/td.h"

#include <lua.h>

typedef struct tide_handle {
    td_tensor *tensor;    /* owned; NULL: not filled yet, put off, or closed */
    td_deferred *pending; /* what it waits for while its call is put off; else NULL */
} tide_handle;

/* The reserved range; begin == end while nothing is reserved. */
extern char *tide_arena_begin, *tide_arena_end;

/* One per Lua state: its free blocks, and the allocator that serves everything else. */
typedef struct tide_arena {
    lua_Alloc next; /* the allocator behind */
    void *next_ud;
    struct tide_block *free;   /* blocks ready to use */
    struct tide_chunk *chunks; /* taken from the range, given back at the end */
    int expecting;             /* attempts left in which a userdata allocated is a handle */
    lua_State *main;           /* of a state that is not ours: tells when it is freed */
    size_t live;               /* handles */
    void (*at_end)(void *ctx); /* called when the state is gone; NULL: nothing is to be done */
    void *at_end_ctx;
} tide_arena;

/* A lua_Alloc whose ud is a tide_arena. */
void *tide_arena_alloc(void *ud, void *block, size_t old_size, size_t new_size);

/* New arena over an allocator; NULL: out of memory. */
tide_arena *tide_arena_new(lua_Alloc next, void *next_ud);
/* After the state is closed. */
void tide_arena_free(tide_arena *arena);

/* See where this Lua puts a handle in its block; before the first one is made. Raises an error when
 * it would not fit. */
void tide_arena_probe(lua_State *L, tide_arena *arena);

/* Push a new handle that is still empty. Raises Lua's memory error, having leaked nothing. The
 * metatable is to be set by the caller. */
tide_handle *tide_handle_new(lua_State *L, tide_arena *arena);

/* Is this the address of a handle? */
static inline bool tide_is_handle(const void *p) {
    return (const char *)p >= tide_arena_begin && (const char *)p < tide_arena_end;
}

#endif
