/* states.c: Lua states on threads of their own, at work at once, while another thread interrupts:
 * states WORK.lua FOLDER SEED SECONDS THREADS. Prints figures and findings; 1 when there are any.
 */
#include "engine/td.h"
#include "lua-bindings/tide_lua.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { MOST = 64 };

typedef struct state {
    pthread_t thread;
    int number;
    long long steps, interrupted, rounds;
    char finding[512];
} state;

static const char *script, *folder;
static long long seed;
static double stop_at; /* by tide.time */
static atomic_bool over;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A state lives a second or two: making and closing it is work beside the others' too. */
static void one_round(state *s, lua_State *L) {
    char own[256];
    snprintf(own, sizeof own, "%s/%d", folder, s->number);
    mkdir(own, 0700);
    double left = stop_at - now();
    lua_settop(L, 0);
    if (luaL_loadfile(L, script) == LUA_OK) {
        lua_pushinteger(L, seed * 100 + s->number + 10000 * s->rounds);
        lua_getglobal(L, "deadline");
        lua_pushnumber(L, left < 2 ? left : 2);
        lua_call(L, 1, 1);
        lua_pushstring(L, own);
        if (lua_pcall(L, 3, 3, 0) == LUA_OK) {
            s->steps += lua_tointeger(L, 1);
            s->interrupted += lua_tointeger(L, 2);
            lua_remove(L, 1);
            lua_remove(L, 1);
        }
    }
    if (lua_tostring(L, -1))
        snprintf(s->finding, sizeof s->finding, "%s", lua_tostring(L, -1));
    s->rounds++;
}

static void *run(void *ctx) {
    state *s = ctx;
    while (now() < stop_at && !*s->finding) {
        lua_State *L = tide_lua_new();
        if (!L || luaL_dostring(L, "local tide = require 'tide'\n"
                                   "function deadline(left) return tide.time() + left end")) {
            snprintf(s->finding, sizeof s->finding, "%s", L ? lua_tostring(L, -1) : "no state");
            return NULL;
        }
        one_round(s, L);
        tide_lua_close(L);
    }
    return NULL;
}

/* An interrupt stands for a moment, as long as a hook would need to see it. */
static void *interrupt(void *ctx) {
    unsigned random = (unsigned)seed;
    (void)ctx;
    while (!atomic_load(&over)) {
        random = random * 1664525u + 1013904223u;
        nanosleep(&(struct timespec){0, 1000000 * (20 + (random >> 24))}, NULL);
        td_interrupt_request();
        nanosleep(&(struct timespec){0, 1000 * (random >> 16 & 2047)}, NULL);
        td_interrupt_clear();
    }
    return NULL;
}

static int report(state *states, int n) {
    long long steps = 0, interrupted = 0, rounds = 0;
    int findings = 0;
    for (int k = 0; k < n; k++) {
        steps += states[k].steps;
        interrupted += states[k].interrupted;
        rounds += states[k].rounds;
        if (*states[k].finding && ++findings)
            printf("finding: state %d: %s\n", k, states[k].finding);
    }
    printf("figure: states %lld states\nfigure: steps %lld steps\nfigure: interrupted %lld steps\n",
           rounds, steps, interrupted);
    return findings;
}

int main(int argc, char **argv) {
    static state states[MOST];
    pthread_t interrupter;
    if (argc != 6 || td_init())
        return 2;
    script = argv[1];
    folder = argv[2];
    seed = strtoll(argv[3], NULL, 10);
    stop_at = now() + strtod(argv[4], NULL);
    int n = (int)strtol(argv[5], NULL, 10);
    n = n < 1 ? 1 : n > MOST ? MOST : n;
    int64_t before = td_memory_allocated(TD_DEVICE_CPU);
    for (int k = 0; k < n; k++) {
        states[k].number = k;
        pthread_create(&states[k].thread, NULL, run, &states[k]);
    }
    pthread_create(&interrupter, NULL, interrupt, NULL);
    for (int k = 0; k < n; k++)
        pthread_join(states[k].thread, NULL);
    atomic_store(&over, true);
    pthread_join(interrupter, NULL);
    int findings = report(states, n);
    if (td_memory_allocated(TD_DEVICE_CPU) != before && ++findings)
        printf("finding: %lld bytes of tensors outlive all states\n",
               (long long)(td_memory_allocated(TD_DEVICE_CPU) - before));
    return findings > 0;
}
