/* blas.c: OpenBLAS. */
#include "engine/cpu/blas.h"

#include "engine/core/openmp.h"

#include <cblas.h>
#include <pthread.h>
#include <stdio.h>

#define TRANSPOSE(t) ((t) ? CblasTrans : CblasNoTrans)

void td_blas_sgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                   const void *b, int64_t ldb, double beta, void *c, int64_t ldc) {
    td_openmp_enter();
    cblas_sgemm(CblasRowMajor, TRANSPOSE(ta), TRANSPOSE(tb), (int)m, (int)n, (int)k, 1, a, (int)lda,
                b, (int)ldb, (float)beta, c, (int)ldc);
}

void td_blas_dgemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const void *a, int64_t lda,
                   const void *b, int64_t ldb, double beta, void *c, int64_t ldc) {
    td_openmp_enter();
    cblas_dgemm(CblasRowMajor, TRANSPOSE(ta), TRANSPOSE(tb), (int)m, (int)n, (int)k, 1, a, (int)lda,
                b, (int)ldb, beta, c, (int)ldc);
}

static char version_text[64];
static pthread_once_t version_once = PTHREAD_ONCE_INIT;

/* The configuration begins with name and version. */
static void write_version(void) {
    char name[24] = "OpenBLAS", version[24] = "";
    sscanf(openblas_get_config(), "%23s %23s", name, version);
    snprintf(version_text, sizeof version_text, "%s %s", name, version);
}

const char *td_blas_version(void) {
    pthread_once(&version_once, write_version);
    return version_text;
}
