/* compiled.c: what is compiled once is kept as bytes for the states of workers, which read it in a
 * quarter of the time. A process of one state keeps nothing.
 */
#include "lua-bindings/modules/compiled.h"

#include "engine/core/memory.h"

#include <lauxlib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

typedef struct chunk {
    const tide_embedded *module;
    char *bytes;
    size_t len, room;
    struct chunk *next;
} chunk;

static _Atomic(chunk *) chunks; /* never freed: states may read them at any time */
static atomic_int states;

void tide_count_state(void) {
    atomic_fetch_add_explicit(&states, 1, memory_order_relaxed);
}

static const chunk *find(const tide_embedded *module) {
    const chunk *c = atomic_load_explicit(&chunks, memory_order_acquire);
    while (c && c->module != module)
        c = c->next;
    return c;
}

static int write(lua_State *L, const void *bytes, size_t n, void *ctx) {
    chunk *c = ctx;
    (void)L;
    if (c->room - c->len < n) {
        size_t room = 2 * c->room + n;
        char *larger = td_realloc(c->bytes, room);
        if (!larger)
            return 1;
        c->bytes = larger;
        c->room = room;
    }
    memcpy(c->bytes + c->len, bytes, n);
    c->len += n;
    return 0;
}

/* The function on top. Of two threads that do this at once both add theirs, which are the same. */
static void keep(lua_State *L, const tide_embedded *module) {
    chunk *c = td_calloc(1, sizeof *c);
    if (!c)
        return;
    c->module = module;
    if (lua_dump(L, write, c, 0)) {
        td_free(c->bytes);
        td_free(c);
        return;
    }
    c->next = atomic_load_explicit(&chunks, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&chunks, &c->next, c, memory_order_release,
                                                  memory_order_relaxed))
        ;
}

void tide_push_compiled(lua_State *L, const tide_embedded *module, const char *name) {
    const chunk *c = find(module);
    if (c ? luaL_loadbufferx(L, c->bytes, c->len, name, "b")
          : luaL_loadbufferx(L, module->bytes, module->len, name, "t"))
        lua_error(L);
    if (!c && atomic_load_explicit(&states, memory_order_relaxed) > 1)
        keep(L, module);
}
