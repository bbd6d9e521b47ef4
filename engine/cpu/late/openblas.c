/* openblas.c: the table of OpenBLAS's calls, in a module of its own. */
#include "engine/cpu/late/late.h"

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

/* ---- LAPACK: Fortran, whose texts are followed by their lengths ---- */

void dgetrf_(const int *m, const int *n, double *a, const int *lda, int *pivots, int *info);
void dgetrs_(const char *trans, const int *n, const int *columns, const double *a, const int *lda,
             const int *pivots, double *b, const int *ldb, int *info, size_t);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t);
void dgeqrf_(const int *m, const int *n, double *a, const int *lda, double *tau, double *work,
             const int *nwork, int *info);
void dorgqr_(const int *m, const int *n, const int *k, double *a, const int *lda, const double *tau,
             double *work, const int *nwork, int *info);
void dgesdd_(const char *job, const int *m, const int *n, double *a, const int *lda, double *s,
             double *u, const int *ldu, double *vt, const int *ldvt, double *work, const int *nwork,
             int *iwork, int *info, size_t);
void dsyevd_(const char *job, const char *uplo, const int *n, double *a, const int *lda, double *w,
             double *work, const int *nwork, int *iwork, const int *niwork, int *info, size_t,
             size_t);

static int getrf(int m, int n, double *a, int lda, int *pivots) {
    int info = 0;
    dgetrf_(&m, &n, a, &lda, pivots, &info);
    return info;
}

static int getrs(int n, int columns, const double *a, int lda, const int *pivots, double *b,
                 int ldb) {
    int info = 0;
    dgetrs_("N", &n, &columns, a, &lda, pivots, b, &ldb, &info, 1);
    return info;
}

static int potrf(int n, double *a, int lda) {
    int info = 0;
    dpotrf_("L", &n, a, &lda, &info, 1);
    return info;
}

static int geqrf(int m, int n, double *a, int lda, double *tau, double *work, int nwork) {
    int info = 0;
    dgeqrf_(&m, &n, a, &lda, tau, work, &nwork, &info);
    return info;
}

static int orgqr(int m, int n, int k, double *a, int lda, const double *tau, double *work,
                 int nwork) {
    int info = 0;
    dorgqr_(&m, &n, &k, a, &lda, tau, work, &nwork, &info);
    return info;
}

static int gesdd(char job, int m, int n, double *a, int lda, double *s, double *u, int ldu,
                 double *vt, int ldvt, double *work, int nwork, int *iwork) {
    int info = 0;
    dgesdd_(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &nwork, iwork, &info, 1);
    return info;
}

static int syevd(bool vectors, int n, double *a, int lda, double *w, double *work, int nwork,
                 int *iwork, int niwork) {
    int info = 0;
    dsyevd_(vectors ? "V" : "N", "L", &n, a, &lda, w, work, &nwork, iwork, &niwork, &info, 1, 1);
    return info;
}

static void trsm(bool upper, bool unit, int m, int n, const double *a, int lda, double *b,
                 int ldb) {
    cblas_dtrsm(CblasColMajor, CblasLeft, upper ? CblasUpper : CblasLower, CblasNoTrans,
                unit ? CblasUnit : CblasNonUnit, m, n, 1, a, lda, b, ldb);
}

extern const td_late_openblas td_late_openblas_calls;
const td_late_openblas td_late_openblas_calls = {sgemm, dgemm, config, getrf, getrs, potrf,
                                                 geqrf, orgqr, gesdd,  syevd, trsm};
