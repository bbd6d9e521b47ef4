/* start.c: the engine's start, which knows every room of it: devices, operators, autograd. */
#include "engine/autograd/autograd.h"
#include "engine/core/activity.h"
#include "engine/core/backend_module.h"
#include "engine/core/openmp.h"
#include "engine/cpu/cpu.h"
#include "engine/meta/meta.h"

#include <pthread.h>

/* CUDA's, built where the toolkit is and of use where a driver is. */
static const td_backend_module cuda = {
    .type = TD_CUDA,
    .name = "cuda",
    .variable = "TIDE_CUDA_MODULE",
    .library = {
        .name = "CUDA", .file = "libtide_cuda.so", .table = "td_cuda_module", .room = 64 << 20}};

static td_status init(void) {
    td_status status = TD_OK;
    td_backend_module_announce(&cuda);
    td_activity_log_announce();
    td_openmp_prepare();
    td_autograd_destroy_hook = td_autograd_free;
    if (!td_backends[TD_CPU])
        TD_TRY(td_backend_register(&td_cpu_backend));
    if (!td_backends[TD_META])
        TD_TRY(td_backend_register(&td_meta_backend));
    TD_TRY(td_op_register_all());
done:
    return status;
}

td_status td_init(void) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool done;
    pthread_mutex_lock(&lock);
    td_status status = done ? TD_OK : init();
    done = status == TD_OK;
    pthread_mutex_unlock(&lock);
    return status;
}
