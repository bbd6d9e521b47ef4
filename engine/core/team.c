/* team.c: room for a team of threads is found out by starting as many at once, for a moment. Their
 * stacks stay with the C library, which gives them to OpenMP's threads. */
#include "engine/core/team.h"

#include "engine/core/openmp.h"
#include "engine/core/pool.h"
#include "engine/core/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

enum { PATIENCE = 256 }; /* loops that run alone before room is looked for again */

_Thread_local int td_team_ready = 1;

static _Thread_local bool orphaned; /* the team stayed in the process that forked this one */
static _Thread_local int alone_for;
static _Thread_local bool alone; /* by td_run_alone */

static void in_child(void) {
    if (td_team_ready > 1) {
        orphaned = true;
        td_team_ready = 1;
    }
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, in_child);
}

static void *pass(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Can `count` threads live beside this one? */
static bool try_threads(int count) {
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *threads = malloc((size_t)count * sizeof *threads);
    int made = 0;
    if (!threads)
        return false;
    pthread_mutex_lock(&gate);
    while (made < count && pthread_create(&threads[made], NULL, pass, &gate) == 0)
        made++;
    pthread_mutex_unlock(&gate);
    for (int k = 0; k < made; k++)
        pthread_join(threads[k], NULL);
    free(threads);
    return made == count;
}

int td_team_prepare(int wanted) {
    if (orphaned || alone_for > 0) {
        alone_for -= alone_for > 0;
        return 1;
    }
    if (!try_threads(wanted - 1)) {
        alone_for = PATIENCE;
        return 1;
    }
    td_team_ready = wanted;
    return wanted;
}

int td_team_enter(int most) {
    int wanted = td_threads_at_most();
    int size = td_pool_within() || alone ? 1 : td_team_size(wanted < most ? wanted : most);
    td_openmp_set_threads(size);
    td_openmp_flush_denormals(size);
    return size;
}

void td_run_alone(void (*fn)(void *ctx), void *ctx) {
    bool before = alone;
    alone = true;
    fn(ctx);
    alone = before;
}
