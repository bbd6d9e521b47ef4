/* held.c: what keeps an interrupt waiting, in words: a C function of Lua's own that looks at no
 * flag, a finalizer or a hook, in which Lua runs no hooks. Called in a signal handler: no
 * allocation, no stdio.
 */
#include "repl/session/held.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

typedef struct text {
    char bytes[240];
    size_t len;
} text;

static void add(text *t, const char *words) {
    size_t n = strlen(words), room = sizeof t->bytes - t->len;
    if (n > room)
        n = room;
    memcpy(t->bytes + t->len, words, n);
    t->len += n;
}

static void add_number(text *t, int n) {
    char digits[16], *at = digits + sizeof digits;
    *--at = '\0';
    do
        *--at = (char)('0' + n % 10);
    while ((n /= 10) > 0 && at > digits);
    add(t, at);
}

static bool among(const char *name, const char *const *names) {
    for (; *names; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* The library that a function of this name comes from, with its dot. */
static const char *library_of(const char *name) {
    static const char *const strings[] = {"find",   "match",  "gmatch", "gsub",     "rep",
                                          "format", "upper",  "lower",  "byte",     "reverse",
                                          "pack",   "unpack", "char",   "packsize", NULL};
    static const char *const tables[] = {"concat", "insert", "move", "remove", "sort", NULL};
    return among(name, strings) ? "string." : among(name, tables) ? "table." : "";
}

static void add_place(text *t, lua_State *L, int level) {
    lua_Debug ar;
    if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "Sl", &ar) || ar.currentline <= 0)
        return;
    add(t, " (");
    add(t, ar.short_src);
    add(t, ":");
    add_number(t, ar.currentline);
    add(t, ")");
}

/* Is the function at `level` a finalizer or a hook, which Lua calls with hooks off? */
static const char *deaf_caller(lua_State *L, int level) {
    lua_Debug ar;
    if (!lua_getstack(L, level, &ar) || !lua_getinfo(L, "n", &ar))
        return NULL;
    if (strcmp(ar.namewhat, "hook") == 0)
        return "a hook of debug.sethook";
    bool finalizer =
        strcmp(ar.namewhat, "metamethod") == 0 && ar.name && strcmp(ar.name, "__gc") == 0;
    return finalizer ? "a finalizer (__gc)" : NULL;
}

static void add_function(text *t, lua_State *L) {
    enum { DEEPEST = 200 };
    lua_Debug ar;
    for (int level = 0; level < DEEPEST && lua_getstack(L, level, &ar); level++) {
        const char *deaf = deaf_caller(L, level);
        if (deaf) {
            add(t, deaf);
            add_place(t, L, level);
            return;
        }
    }
    if (!lua_getstack(L, 0, &ar) || !lua_getinfo(L, "nS", &ar)) {
        add(t, "what runs");
        return;
    }
    bool in_c = ar.what[0] == 'C';
    if (!in_c)
        add(t, "Lua code");
    else if (!ar.name)
        add(t, "a C function");
    else {
        add(t, library_of(ar.name));
        add(t, ar.name);
    }
    add_place(t, L, in_c);
}

void held_say(lua_State *L) {
    text t = {.len = 0};
    add(&t, "tide: the interrupt waits for ");
    add_function(&t, L);
    add(&t, "\n");
    t.bytes[t.len - 1] = '\n'; /* also where it was cut */
    ssize_t written = write(STDERR_FILENO, t.bytes, t.len);
    (void)written;
}
