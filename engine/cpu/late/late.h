/* late.h: what the libraries that are loaded at first use offer: tables of calls. Each is a module
 * beside libtide.so, linked to the library it stands for, whose only symbol is its table.
 */
#ifndef TD_CPU_LATE_LATE_H
#define TD_CPU_LATE_LATE_H

#include <stdbool.h>

/* OpenBLAS: `lda`, `ldb`, `ldc` as in cblas_?gemm with row-major order. */
typedef struct td_late_openblas {
    void (*sgemm)(bool ta, bool tb, int m, int n, int k, const void *a, int lda, const void *b,
                  int ldb, double beta, void *c, int ldc);
    void (*dgemm)(bool ta, bool tb, int m, int n, int k, const void *a, int lda, const void *b,
                  int ldb, double beta, void *c, int ldc);
    const char *(*config)(void); /* begins with name and version; static */

    /* LAPACK of float64, matrices column-major; what is returned is its `info`. work has room for
     * what LAPACK's documentation asks for. */
    int (*getrf)(int m, int n, double *a, int lda, int *pivots);
    int (*getrs)(int n, int columns, const double *a, int lda, const int *pivots, double *b,
                 int ldb);
    int (*potrf)(int n, double *a, int lda); /* the lower triangle */
    int (*geqrf)(int m, int n, double *a, int lda, double *tau, double *work, int nwork);
    int (*orgqr)(int m, int n, int k, double *a, int lda, const double *tau, double *work,
                 int nwork);
    int (*gesdd)(char job, int m, int n, double *a, int lda, double *s, double *u, int ldu,
                 double *vt, int ldvt, double *work, int nwork, int *iwork);
    int (*syevd)(bool vectors, int n, double *a, int lda, double *w, double *work, int nwork,
                 int *iwork, int niwork); /* the lower triangle */
    /* b (m x n) = the inverse of a triangular a times b */
    void (*trsm)(bool upper, bool unit, int m, int n, const double *a, int lda, double *b, int ldb);
} td_late_openblas;

/* Names of the tables; oneDNN's is in late/onednn.h, which alone needs its header. */
#define TD_LATE_OPENBLAS "td_late_openblas_calls"
#define TD_LATE_ONEDNN   "td_late_onednn_calls"

#endif
