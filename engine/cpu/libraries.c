/* libraries.c: names and versions of what the CPU kernels stand on. */
#include "engine/cpu/blas.h"
#include "engine/cpu/cpu.h"
#include "engine/cpu/onednn.h"

#include <sleef.h>
#include <stdio.h>

const char *td_cpu_libraries(void) {
    static _Thread_local char versions[160];
    snprintf(versions, sizeof versions, "%s, %s, SLEEF %d.%d.%d", td_dnn_version(),
             td_blas_version(), SLEEF_VERSION_MAJOR, SLEEF_VERSION_MINOR, SLEEF_VERSION_PATCHLEVEL);
    return versions;
}
