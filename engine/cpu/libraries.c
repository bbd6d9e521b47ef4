/* libraries.c: names and versions of what the CPU kernels stand on. */
#include "engine/cpu/cpu.h"
#include "engine/cpu/product/blas.h"
#include "engine/cpu/product/onednn.h"

#include <sleef.h>
#include <stdio.h>

void td_cpu_libraries(char *text, size_t size) {
    char dnn[48], blas[80];
    td_dnn_version(dnn, sizeof dnn);
    td_blas_version(blas, sizeof blas);
    snprintf(text, size, "%s, %s, SLEEF %d.%d.%d", dnn, blas, SLEEF_VERSION_MAJOR,
             SLEEF_VERSION_MINOR, SLEEF_VERSION_PATCHLEVEL);
}
