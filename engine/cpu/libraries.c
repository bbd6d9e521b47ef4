/* libraries.c: names and versions of what the CPU kernels stand on. */
#include "engine/cpu/blas.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/onednn.h"

#include <pthread.h>
#include <sleef.h>
#include <stdio.h>

static char versions[160];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void write_versions(void) {
    snprintf(versions, sizeof versions, "%s, %s, SLEEF %d.%d.%d", td_dnn_version(),
             td_blas_version(), SLEEF_VERSION_MAJOR, SLEEF_VERSION_MINOR, SLEEF_VERSION_PATCHLEVEL);
}

const char *td_cpu_libraries(void) {
    pthread_once(&once, write_versions);
    return versions;
}
