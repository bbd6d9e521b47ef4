/* openmp.c: settings of libgomp: how long its threads spin, how many a team has, and how these
 * treat denormals. Its functions are looked up in the library that brought it. */
#include "engine/core/openmp.h"

#include "engine/core/denormals.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Some microseconds: 20 ns a turn (Zen) to 50 (Xeon); by itself it is 300,000. */
#define TURNS "200"

typedef void (*set_fn)(int value);
static _Atomic(set_fn) set_threads, set_dynamic;

/* Run fn(data) on a team of threads, the caller among them. */
typedef void (*team_fn)(void (*fn)(void *data), void *data, unsigned threads, unsigned flags);
static _Atomic(team_fn) run_team;

void td_openmp_prepare(void) {
    setenv("GOMP_SPINCOUNT", TURNS, 0);
}

static set_fn find(void *library, const char *name) {
    union {
        void *object;
        set_fn fn;
    } found = {dlsym(library, name)};
    return found.fn;
}

void td_openmp_find(void *library) {
    union {
        void *object;
        team_fn fn;
    } team = {dlsym(library, "GOMP_parallel")};
    atomic_store(&run_team, team.fn);
    atomic_store(&set_dynamic, find(library, "omp_set_dynamic"));
    atomic_store(&set_threads, find(library, "omp_set_num_threads"));
}

/* oneDNN waits for as many threads as a primitive was made for: the runtime must not give fewer by
 * itself (OMP_DYNAMIC). */
void td_openmp_set_threads(int n) {
    static _Thread_local int told;
    set_fn threads = atomic_load(&set_threads), dynamic = atomic_load(&set_dynamic);
    if (n == told || !threads || !dynamic)
        return;
    dynamic(0);
    threads(n);
    told = n;
}

static void flush(void *on) {
    td_set_flush_denormal(*(const bool *)on);
}

/* Threads that the runtime makes later begin as this one. */
void td_openmp_flush_denormals(int n) {
    static _Thread_local bool told;
    static _Thread_local int told_to;
    team_fn run = atomic_load(&run_team);
    bool on = td_flush_denormal();
    if ((on == told && (!on || n <= told_to)) || n <= 1 || !run)
        return;
    run(flush, &on, (unsigned)n, 0);
    told = on;
    told_to = n;
}
