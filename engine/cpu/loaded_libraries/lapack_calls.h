/* lapack_calls.h: LAPACK's calls for one type. Included once for each by openblas.c with R (the
 * type), SUFFIX (its name) and F (the Fortran name of a call) defined; undefines them. Fortran's
 * texts are followed by their lengths. */
#define CAT2(a, b) a##_##b
#define CAT1(a, b) CAT2(a, b)
#define NAME(a)    CAT1(a, SUFFIX)

void F(potrf)(const char *uplo, const int *n, R *a, const int *lda, int *info, size_t);
void F(geqrf)(const int *m, const int *n, R *a, const int *lda, R *tau, R *work, const int *nwork,
              int *info);
void F(orgqr)(const int *m, const int *n, const int *k, R *a, const int *lda, const R *tau, R *work,
              const int *nwork, int *info);
void F(gesdd)(const char *job, const int *m, const int *n, R *a, const int *lda, R *s, R *u,
              const int *ldu, R *vt, const int *ldvt, R *work, const int *nwork, int *iwork,
              int *info, size_t);
void F(syevd)(const char *job, const char *uplo, const int *n, R *a, const int *lda, R *w, R *work,
              const int *nwork, int *iwork, const int *niwork, int *info, size_t, size_t);

static int NAME(potrf)(int n, R *a, int lda) {
    int info = 0;
    F(potrf)("L", &n, a, &lda, &info, 1);
    return info;
}

static int NAME(geqrf)(int m, int n, R *a, int lda, R *tau, R *work, int nwork) {
    int info = 0;
    F(geqrf)(&m, &n, a, &lda, tau, work, &nwork, &info);
    return info;
}

static int NAME(orgqr)(int m, int n, int k, R *a, int lda, const R *tau, R *work, int nwork) {
    int info = 0;
    F(orgqr)(&m, &n, &k, a, &lda, tau, work, &nwork, &info);
    return info;
}

static int NAME(gesdd)(char job, int m, int n, R *a, int lda, R *s, R *u, int ldu, R *vt, int ldvt,
                       R *work, int nwork, int *iwork) {
    int info = 0;
    F(gesdd)(&job, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &nwork, iwork, &info, 1);
    return info;
}

static int NAME(syevd)(bool vectors, int n, R *a, int lda, R *w, R *work, int nwork, int *iwork,
                       int niwork) {
    int info = 0;
    F(syevd)(vectors ? "V" : "N", "L", &n, a, &lda, w, work, &nwork, iwork, &niwork, &info, 1, 1);
    return info;
}

#undef R
#undef SUFFIX
#undef F
#undef NAME
#undef CAT1
#undef CAT2
