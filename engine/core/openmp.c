/* openmp.c: what libgomp is told. */
#include "engine/core/openmp.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Some microseconds: 20 ns a turn (Zen) to 50 (Xeon); by itself it is 300,000. */
#define TURNS "200"

typedef void (*set_fn)(int value);
static _Atomic(set_fn) set_threads, set_dynamic;

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
