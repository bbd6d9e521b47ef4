/* loaded_libraries.h: what the libraries that are loaded at first use offer: tables of calls. Each
 * is a module beside libtide.so, linked to the library it stands for, whose only symbol is its
 * table.
 */
#ifndef TD_CPU_LOADED_LIBRARIES_LOADED_LIBRARIES_H
#define TD_CPU_LOADED_LIBRARIES_LOADED_LIBRARIES_H

#include <stdbool.h>

/* LAPACK of one type, matrices column-major; what is returned is its `info`. work has room for what
 * LAPACK's documentation asks for. */
#define TD_LATE_LAPACK(R)                                                                          \
    int (*potrf)(int n, R *a, int lda); /* which takes a buffer, however small a is */             \
    int (*geqrf)(int m, int n, R *a, int lda, R *tau, R *work, int nwork);                         \
    int (*orgqr)(int m, int n, int k, R *a, int lda, const R *tau, R *work, int nwork);            \
    int (*gesdd)(char job, int m, int n, R *a, int lda, R *s, R *u, int ldu, R *vt, int ldvt,      \
                 R *work, int nwork, int *iwork);                                                  \
    int (*syevd)(bool vectors, int n, R *a, int lda, R *w, R *work, int nwork, int *iwork,         \
                 int niwork); /* the lower triangle */

typedef struct td_late_lapack_float {
    TD_LATE_LAPACK(float)
} td_late_lapack_float;

typedef struct td_late_lapack_double {
    TD_LATE_LAPACK(double)
} td_late_lapack_double;

/* `lda`, `ldb`, `ldc` as in cblas_?gemm with row-major order. */
typedef void (*td_late_gemm)(bool ta, bool tb, int m, int n, int k, const void *a, int lda,
                             const void *b, int ldb, double beta, void *c, int ldc);

/* OpenBLAS. */
typedef struct td_late_openblas {
    td_late_gemm sgemm, dgemm;
    const char *(*config)(void); /* begins with name and version; static */
    const char *(*core)(void);   /* whose loops run, "SkylakeX"; static */

    td_late_lapack_float of_float;
    td_late_lapack_double of_double;
} td_late_openblas;

/* Names of the tables; oneDNN's is in loaded_libraries/onednn.h, which alone needs its header. */
#define TD_LATE_OPENBLAS "td_late_openblas_calls"
#define TD_LATE_ONEDNN   "td_late_onednn_calls"

#endif
