/* solver.c: cuSOLVER, loaded when it is first needed, and a handle for each device. */
#include "engine/cuda/factor/factor.h"

#include "engine/cuda/runtime/loaded_libraries.h"

#include <pthread.h>

#ifndef TD_CUDA_CUSOLVER
#define TD_CUDA_CUSOLVER "" /* the module's file, beside ours: built without it */
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
#ifdef TD_CUDA_CUSOLVER_LINKED /* the played device's is no library */
extern const td_late_cusolver td_late_cusolver_calls;
static td_cuda_late library = {.tried = true, .table = &td_late_cusolver_calls};
#else
static td_cuda_late library = {.file = TD_CUDA_CUSOLVER, .symbol = TD_LATE_CUSOLVER};
#endif

bool td_cuda_solver_enter(int device, const td_late_cusolver **table, void **handle) {
    pthread_mutex_lock(&lock);
    *table = td_cuda_late_table(&library);
    *handle = *table ? td_cuda_late_handle(&library, device, (*table)->start) : NULL;
    if (!*handle)
        pthread_mutex_unlock(&lock);
    return *handle != NULL;
}

void td_cuda_solver_leave(void) {
    pthread_mutex_unlock(&lock);
}
