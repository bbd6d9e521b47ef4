/* openmp.c: what libgomp is told. */
#include "engine/core/openmp.h"

#include "engine/core/pool.h"
#include "engine/core/threads.h"

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
 * itself (OMP_DYNAMIC), nor be asked for more than it gives (OMP_THREAD_LIMIT). */
void td_openmp_enter(void) {
    static _Thread_local int told;
    int n = td_pool_within() ? 1 : td_threads_at_most();
    if (n == told)
        return;
    set_fn threads = atomic_load(&set_threads), dynamic = atomic_load(&set_dynamic);
    if (threads && dynamic) {
        dynamic(0);
        threads(n);
        told = n;
    }
}
