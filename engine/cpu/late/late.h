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
} td_late_openblas;

/* Names of the tables; oneDNN's is in late/onednn.h, which alone needs its header. */
#define TD_LATE_OPENBLAS "td_late_openblas_calls"
#define TD_LATE_ONEDNN   "td_late_onednn_calls"

#endif
