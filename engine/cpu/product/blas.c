/* blas.c: OpenBLAS, loaded when it is first needed.
 *
 * It takes a buffer of 128 MB of addresses for every thread and for every call under way, and where
 * the system refuses one it asks for ever. So buffers are counted here: a call that would need one
 * more than there is room for waits until another has ended, and threads that would need more stay
 * away.
 */
#include "engine/cpu/product/blas.h"

#include "engine/core/load.h"
#include "engine/core/memory.h"
#include "engine/core/observer.h"
#include "engine/core/team.h"
#include "engine/core/threads.h"
#include "engine/cpu/isa/isa.h"
#include "engine/cpu/loaded_libraries/loaded_libraries.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define BUFFER    ((size_t)130 << 20) /* with what surrounds it */
#define LOAD_ROOM ((size_t)64 << 20)  /* the library itself, and some */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_ended = PTHREAD_COND_INITIALIZER;
static const td_late_openblas *blas; /* NULL: not loaded yet */
static int calls, calls_most;        /* under way; of those that buffers are there for */
static int threads_most;             /* the same of threads */

/* ---- loading ---- */

/* AMD's processors with AVX2 are known to OpenBLAS by their family. Measured on an Emerald Rapids,
 * which 0.3.21 takes for a Prescott, its choice and this one: 316^3 of float64 3.9 and 0.98 ms,
 * 64^3 34 and 6.7 us, a batch of 100 10^3 of float32 20 and 6 us, eigh of 100 x 100 0.76 and 0.54
 * ms. */
void td_blas_prepare(void) {
#if defined(__x86_64__)
    if (td_cpu_has_set("avx512"))
        setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
    else if (td_cpu_has_set("avx2") && !__builtin_cpu_is("amd"))
        setenv("OPENBLAS_CORETYPE", "Haswell", 0);
#endif
}

static void before_fork(void) {
    pthread_mutex_lock(&lock);
}
static void in_parent(void) {
    pthread_mutex_unlock(&lock);
}
static void in_child(void) {
    calls = 0; /* those of other threads stayed behind */
    pthread_mutex_unlock(&lock);
}

/* A call takes a buffer when it begins, and the library keeps it for the next one. The first is
 * made here, while there is room: later, tensors or a thread's heap could have taken that. */
static void take_buffer(void) {
    float one = 1;
    (void)blas->of_float.potrf(1, &one, 1);
}

/* It takes buffers for as many threads as it reads of in the environment, and may be asked for
 * more. */
static td_status load(void) {
    int first = td_threads_at_first(), now = td_threads_at_most();
    int threads = first > now ? first : now;
    td_library library = {.name = "OpenBLAS",
                          .file = "libtide-openblas.so",
                          .table = TD_LATE_OPENBLAS,
                          .room = LOAD_ROOM + (size_t)(threads + 1) * BUFFER};
    const void *table;
    td_status status = td_library_load(&library, &table);
    if (status)
        return status;
    blas = table;
    take_buffer();
    calls_most = 1;
    threads_most = threads;
    pthread_atfork(before_fork, in_parent, in_child);
    return TD_OK;
}

td_status td_blas_ready(void) {
    pthread_mutex_lock(&lock);
    td_status status = TD_OK;
    if (!blas) {
        td_loading loading;
        td_loading_begin(&loading, "OpenBLAS");
        status = load();
        td_loading_end(&loading);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- calls ---- */

static void begin_call(td_blas_call *c) {
    int wanted = td_threads_at_most();
    pthread_mutex_lock(&lock);
    while (calls == calls_most && !td_memory_has_room(2 * BUFFER))
        pthread_cond_wait(&call_ended, &lock);
    if (++calls > calls_most)
        calls_most = calls;
    if (wanted > threads_most && td_memory_has_room((size_t)(wanted - threads_most + 1) * BUFFER))
        threads_most = wanted;
    int most = threads_most;
    pthread_mutex_unlock(&lock);
    c->held = td_team_enter(most) > 1;
    if (c->held)
        td_signals_hold(&c->before);
}

static void end_call(const td_blas_call *c) {
    if (c->held)
        td_signals_release(&c->before);
    pthread_mutex_lock(&lock);
    calls--;
    pthread_cond_signal(&call_ended);
    pthread_mutex_unlock(&lock);
}

static void run_gemm(td_late_gemm fn, const td_gemm *g, int64_t size) {
    td_blas_call call;
    begin_call(&call);
    for (int64_t i = 0; i < g->batch; i++)
        fn(g->ta, g->tb, (int)g->m, (int)g->n, (int)g->k, g->a + i * g->a_step * size, (int)g->lda,
           g->b + i * g->b_step * size, (int)g->ldb, g->beta, g->c + i * g->c_step * size,
           (int)g->ldc);
    end_call(&call);
}

td_status td_blas_sgemm(const td_gemm *g) {
    td_status status = td_blas_ready();
    if (status == TD_OK)
        run_gemm(blas->sgemm, g, sizeof(float));
    return status;
}

td_status td_blas_dgemm(const td_gemm *g) {
    td_status status = td_blas_ready();
    if (status == TD_OK)
        run_gemm(blas->dgemm, g, sizeof(double));
    return status;
}

const td_late_openblas *td_blas_begin(td_blas_call *call) {
    begin_call(call);
    return blas;
}

void td_blas_end(const td_blas_call *call) {
    end_call(call);
}

/* ---- what it is ---- */

/* The configuration begins with name and version. */
void td_blas_version(char *text, size_t size) {
    char name[24] = "OpenBLAS", version[24] = "";
    if (td_blas_ready()) {
        snprintf(text, size, "OpenBLAS (not loaded)");
        return;
    }
    sscanf(blas->config(), "%23s %23s", name, version);
    snprintf(text, size, "%s %s for %.24s", name, version, blas->core());
}
