/* openblas.c: the table of OpenBLAS's calls, in a module of its own. */
#include "engine/cpu/loaded_libraries/loaded_libraries.h"

#include <cblas.h>

#define TRANSPOSE(t) ((t) ? CblasTrans : CblasNoTrans)

static void sgemm(bool ta, bool tb, int m, int n, int k, const void *a, int lda, const void *b,
                  int ldb, double beta, void *c, int ldc) {
    cblas_sgemm(CblasRowMajor, TRANSPOSE(ta), TRANSPOSE(tb), m, n, k, 1, a, lda, b, ldb,
                (float)beta, c, ldc);
}

static void dgemm(bool ta, bool tb, int m, int n, int k, const void *a, int lda, const void *b,
                  int ldb, double beta, void *c, int ldc) {
    cblas_dgemm(CblasRowMajor, TRANSPOSE(ta), TRANSPOSE(tb), m, n, k, 1, a, lda, b, ldb, beta, c,
                ldc);
}

static const char *config(void) {
    return openblas_get_config();
}

static const char *core(void) {
    return openblas_get_corename();
}

#define R       float
#define SUFFIX  float
#define F(name) s##name##_
#include "engine/cpu/loaded_libraries/lapack_calls.h"

#define R       double
#define SUFFIX  double
#define F(name) d##name##_
#include "engine/cpu/loaded_libraries/lapack_calls.h"

#define LAPACK(type)                                                                               \
    { potrf_##type, geqrf_##type, orgqr_##type, gesdd_##type, syevd_##type }

extern const td_late_openblas td_late_openblas_calls;
const td_late_openblas td_late_openblas_calls = {
    sgemm, dgemm, config, core, .of_float = LAPACK(float), .of_double = LAPACK(double)};
