/* cusolver.cpp: cuSOLVER's decompositions by the LAPACK that OpenBLAS brings along, which is loaded
 * at the first call.
 *
 * Matrices are copied off the device as doubles and back again, since OpenBLAS' threads may not
 * touch its memory. */
#include "include/cusolverDn.h"
#include "library.h"
#include "runtime.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>

using namespace td_played;

struct cusolverDnContext {
    cudaStream_t stream = nullptr;
};
struct gesvdjInfo {};

namespace {

void *lapack(const char *name) {
    static void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, name) : nullptr;
    if (!found)
        die("%s of OpenBLAS is not there", name);
    return found;
}
#define LAPACK(name, ...) (reinterpret_cast<void (*)(__VA_ARGS__)>(lapack(#name "_")))

typedef std::vector<double> numbers;

/* A matrix on the device, in columns. */
template <typename T> struct matrix {
    T *at;
    int rows, cols, ld;

    size_t bytes() const {
        return rows && cols ? ((size_t)(cols - 1) * (size_t)ld + (size_t)rows) * sizeof(T) : 0;
    }
    numbers read() const {
        numbers v((size_t)rows * (size_t)cols);
        for (int c = 0; c < cols; c++)
            for (int r = 0; r < rows; r++)
                v[(size_t)c * (size_t)rows + (size_t)r] = at[(size_t)c * (size_t)ld + (size_t)r];
        return v;
    }
    void write(const numbers &v) const {
        for (int c = 0; c < cols; c++)
            for (int r = 0; r < rows; r++)
                at[(size_t)c * (size_t)ld + (size_t)r] = (T)v[(size_t)c * (size_t)rows + (size_t)r];
    }
    void write_turned(const numbers &v) const {
        for (int c = 0; c < cols; c++)
            for (int r = 0; r < rows; r++)
                at[(size_t)c * (size_t)ld + (size_t)r] = (T)v[(size_t)r * (size_t)cols + (size_t)c];
    }
};

template <typename T> matrix<T> column(T *at, int n) {
    return {at, n, 1, std::max(n, 1)};
}

int at_least_one(int n) {
    return std::max(n, 1);
}

char letter(cublasFillMode_t uplo) {
    return uplo == CUBLAS_FILL_MODE_LOWER ? 'L' : 'U';
}

/* The storage that everything here asks for, in elements. */
int storage(int m, int n) {
    return 32 + at_least_one(std::max(m, n)) * 4;
}

template <typename T> bool fits(const matrix<T> &a) {
    return a.rows >= 0 && a.cols >= 0 && a.ld >= at_least_one(a.rows);
}

/* A call in the making: ranges are checked at once, the work is queued. */
template <typename T> struct call {
    cusolverDnHandle_t handle;
    const char *name;
    T *work = nullptr;
    int size = 0;

    cusolverStatus_t refuse(bool bad, int m, int n) const {
        return bad || !handle || size < storage(m, n) ? CUSOLVER_STATUS_INVALID_VALUE
                                                      : CUSOLVER_STATUS_SUCCESS;
    }
    template <typename U> void check(const char *what, const matrix<U> &a) const {
        check_range(name, what, a.at, a.bytes());
    }
    template <typename F> cusolverStatus_t queue(int *info, F body) const {
        check_range(name, "info", info, sizeof *info);
        check_range(name, "the storage", work, (size_t)size * sizeof(T));
        cudaError_t error = enqueue_library(handle->stream, name, [=, *this] {
            if (size)
                memset(static_cast<void *>(work), 0xEE, (size_t)size * sizeof(T));
            *info = body();
        });
        return error ? CUSOLVER_STATUS_EXECUTION_FAILED : CUSOLVER_STATUS_SUCCESS;
    }
};

/* ---- the decompositions ---- */

template <typename T> int cholesky(char uplo, const matrix<T> &a) {
    int info, ld = at_least_one(a.rows);
    numbers v = a.read();
    LAPACK(dpotrf, const char *, const int *, double *, const int *, int *)
    (&uplo, &a.rows, v.data(), &ld, &info);
    a.write(v);
    return info;
}

template <typename T>
cusolverStatus_t potrf(cusolverDnHandle_t handle, cublasFillMode_t uplo, matrix<T> a, T *work,
                       int size, int *info) {
    call<T> c{handle, "cusolverDnpotrf", work, size};
    if (cusolverStatus_t status = c.refuse(!fits(a), a.rows, a.cols))
        return status;
    c.check("A", a);
    return c.queue(info, [=] { return cholesky(letter(uplo), a); });
}

template <typename T>
cusolverStatus_t potrf_batched(cusolverDnHandle_t handle, cublasFillMode_t uplo, int n, T *A[],
                               int lda, int *infos, int batches) {
    call<T> c{handle, "cusolverDnpotrfBatched"};
    if (!handle || n < 0 || lda < at_least_one(n) || batches < 1)
        return CUSOLVER_STATUS_INVALID_VALUE;
    check_range(c.name, "the pointers", A, (size_t)batches * sizeof *A);
    check_range(c.name, "info", infos, (size_t)batches * sizeof *infos);
    return c.queue(infos, [=] {
        for (int k = batches - 1; k > 0; k--)
            infos[k] = cholesky(letter(uplo), matrix<T>{A[k], n, n, lda});
        return cholesky(letter(uplo), matrix<T>{A[0], n, n, lda});
    });
}

template <typename T>
cusolverStatus_t potrs(cusolverDnHandle_t handle, cublasFillMode_t uplo, matrix<const T> a,
                       matrix<T> b, int *info) {
    call<T> c{handle, "cusolverDnpotrs"};
    if (!handle || !fits(a) || !fits(b))
        return CUSOLVER_STATUS_INVALID_VALUE;
    c.check("A", a), c.check("B", b);
    return c.queue(info, [=] {
        char side = letter(uplo);
        int code, ld = at_least_one(a.rows);
        numbers v = a.read(), x = b.read();
        LAPACK(dpotrs, const char *, const int *, const int *, const double *, const int *,
               double *, const int *, int *)
        (&side, &a.rows, &b.cols, v.data(), &ld, x.data(), &ld, &code);
        b.write(x);
        return code;
    });
}

template <typename T>
cusolverStatus_t getrf(cusolverDnHandle_t handle, matrix<T> a, T *work, int *pivots, int *info) {
    call<T> c{handle, "cusolverDngetrf", work, storage(a.rows, a.cols)};
    if (cusolverStatus_t status = c.refuse(!fits(a), a.rows, a.cols))
        return status;
    if (!pivots)
        return CUSOLVER_STATUS_NOT_SUPPORTED;
    int npivots = std::min(a.rows, a.cols);
    c.check("A", a);
    check_range(c.name, "the pivots", pivots, (size_t)npivots * sizeof *pivots);
    return c.queue(info, [=] {
        int code, ld = at_least_one(a.rows);
        numbers v = a.read();
        std::vector<int> order((size_t)npivots);
        LAPACK(dgetrf, const int *, const int *, double *, const int *, int *, int *)
        (&a.rows, &a.cols, v.data(), &ld, order.data(), &code);
        a.write(v);
        std::copy(order.begin(), order.end(), pivots);
        return code;
    });
}

template <typename T>
cusolverStatus_t getrs(cusolverDnHandle_t handle, cublasOperation_t trans, matrix<const T> a,
                       const int *pivots, matrix<T> b, int *info) {
    call<T> c{handle, "cusolverDngetrs"};
    if (!handle || !fits(a) || !fits(b) || !pivots)
        return CUSOLVER_STATUS_INVALID_VALUE;
    c.check("A", a), c.check("B", b);
    check_range(c.name, "the pivots", pivots, (size_t)a.rows * sizeof *pivots);
    return c.queue(info, [=] {
        char turned = trans == CUBLAS_OP_N ? 'N' : 'T';
        int code, ld = at_least_one(a.rows);
        numbers v = a.read(), x = b.read();
        std::vector<int> order(pivots, pivots + a.rows);
        LAPACK(dgetrs, const char *, const int *, const int *, const double *, const int *,
               const int *, double *, const int *, int *)
        (&turned, &a.rows, &b.cols, v.data(), &ld, order.data(), x.data(), &ld, &code);
        b.write(x);
        return code;
    });
}

template <typename T>
cusolverStatus_t geqrf(cusolverDnHandle_t handle, matrix<T> a, T *tau, T *work, int size,
                       int *info) {
    call<T> c{handle, "cusolverDngeqrf", work, size};
    if (cusolverStatus_t status = c.refuse(!fits(a), a.rows, a.cols))
        return status;
    matrix<T> scales = column(tau, std::min(a.rows, a.cols));
    c.check("A", a), c.check("tau", scales);
    return c.queue(info, [=] {
        int code, ld = at_least_one(a.rows), room = 64 * at_least_one(a.cols);
        numbers v = a.read(), t((size_t)at_least_one(scales.rows)), w((size_t)room);
        LAPACK(dgeqrf, const int *, const int *, double *, const int *, double *, double *,
               const int *, int *)
        (&a.rows, &a.cols, v.data(), &ld, t.data(), w.data(), &room, &code);
        a.write(v);
        scales.write(t);
        return code;
    });
}

template <typename T>
cusolverStatus_t orgqr(cusolverDnHandle_t handle, matrix<T> a, int k, const T *tau, T *work,
                       int size, int *info) {
    call<T> c{handle, "cusolverDnorgqr", work, size};
    if (cusolverStatus_t status =
            c.refuse(!fits(a) || a.cols > a.rows || k > a.cols || k < 0, a.rows, a.cols))
        return status;
    matrix<const T> scales = column(tau, k);
    c.check("A", a), c.check("tau", scales);
    return c.queue(info, [=] {
        int code, ld = at_least_one(a.rows), room = 64 * at_least_one(a.cols);
        numbers v = a.read(), t = scales.read(), w((size_t)room);
        LAPACK(dorgqr, const int *, const int *, const int *, double *, const int *, const double *,
               double *, const int *, int *)
        (&a.rows, &a.cols, &k, v.data(), &ld, t.data(), w.data(), &room, &code);
        a.write(v);
        return code;
    });
}

/* U (m by nu), values, and V transposed (nv by n); 'A', 'S' or 'N' of either. */
struct singular {
    numbers values, u, vt;
    int info;
};

template <typename T> singular decompose(const matrix<T> &a, char jobu, char jobvt) {
    int m = a.rows, n = a.cols, k = std::min(m, n), room = 64 * (m + n + 1) + 5 * (m + n);
    int ldu = at_least_one(m), ldvt = at_least_one(jobvt == 'A' ? n : k);
    numbers v = a.read(), w((size_t)room);
    singular s{numbers((size_t)k), numbers((size_t)ldu * (size_t)at_least_one(m)),
               numbers((size_t)ldvt * (size_t)at_least_one(n)), 0};
    LAPACK(dgesvd, const char *, const char *, const int *, const int *, double *, const int *,
           double *, double *, const int *, double *, const int *, double *, const int *, int *)
    (&jobu, &jobvt, &m, &n, v.data(), &ldu, s.values.data(), s.u.data(), &ldu, s.vt.data(), &ldvt,
     w.data(), &room, &s.info);
    return s;
}

/* The same by halves, as the engine has it on the CPU: singular vectors have the same signs then.
 */
template <typename T> singular decompose_by_halves(const matrix<T> &a, char job) {
    int m = a.rows, n = a.cols, k = std::min(m, n);
    int room = 4 * k * k + 7 * k + 65 * (m + n + 1);
    int ldu = at_least_one(m), ldvt = at_least_one(job == 'A' ? n : k);
    numbers v = a.read(), w((size_t)room);
    std::vector<int> places((size_t)(8 * (k + 1)));
    singular s{numbers((size_t)k), numbers((size_t)ldu * (size_t)at_least_one(m)),
               numbers((size_t)ldvt * (size_t)at_least_one(n)), 0};
    LAPACK(dgesdd, const char *, const int *, const int *, double *, const int *, double *,
           double *, const int *, double *, const int *, double *, const int *, int *, int *)
    (&job, &m, &n, v.data(), &ldu, s.values.data(), s.u.data(), &ldu, s.vt.data(), &ldvt, w.data(),
     &room, places.data(), &s.info);
    return s;
}

template <typename T>
cusolverStatus_t gesvd(cusolverDnHandle_t handle, char jobu, char jobvt, matrix<T> a, T *values,
                       T *U, int ldu, T *VT, int ldvt, T *work, int size, int *info) {
    call<T> c{handle, "cusolverDngesvd", work, size};
    int m = a.rows, n = a.cols;
    bool jobs = strchr("ASN", jobu) && strchr("ASN", jobvt);
    if (cusolverStatus_t status = c.refuse(!fits(a) || m < n || !jobs, m, n))
        return status;
    matrix<T> sv = column(values, n), u{U, m, jobu == 'A' ? m : jobu == 'S' ? n : 0, ldu};
    matrix<T> vt{VT, jobvt == 'N' ? 0 : n, n, ldvt};
    c.check("A", a), c.check("S", sv), c.check("U", u), c.check("VT", vt);
    return c.queue(info, [=] {
        singular s = decompose(a, jobu, jobvt);
        sv.write(s.values), u.write(s.u), vt.write(s.vt);
        return s.info;
    });
}

/* The same for matrices of any shape, and V as it is. */
template <typename T>
cusolverStatus_t gesvdj(cusolverDnHandle_t handle, cusolverEigMode_t job, bool econ, matrix<T> a,
                        T *values, T *U, int ldu, T *V, int ldv, T *work, int size, int *info) {
    call<T> c{handle, "cusolverDngesvdj", work, size};
    int m = a.rows, n = a.cols, k = std::min(m, n);
    if (cusolverStatus_t status = c.refuse(!fits(a), m, n))
        return status;
    char letter = job == CUSOLVER_EIG_MODE_NOVECTOR ? 'N' : econ ? 'S' : 'A';
    bool vectors = letter != 'N'; /* the room for them is worked in without them, too */
    matrix<T> sv = column(values, k), u{U, m, econ ? k : m, ldu}, v{V, n, econ ? k : n, ldv};
    c.check("A", a), c.check("S", sv), c.check("U", u), c.check("V", v);
    return c.queue(info, [=] {
        singular s = decompose_by_halves(a, letter);
        if (!vectors) {
            s.u.assign((size_t)m * (size_t)u.cols, NAN);
            s.vt.assign((size_t)n * (size_t)v.cols, NAN);
        }
        sv.write(s.values), u.write(s.u), v.write_turned(s.vt);
        return s.info;
    });
}

template <typename T>
cusolverStatus_t syevd(cusolverDnHandle_t handle, cusolverEigMode_t job, cublasFillMode_t uplo,
                       matrix<T> a, T *values, T *work, int size, int *info) {
    call<T> c{handle, "cusolverDnsyevd", work, size};
    if (cusolverStatus_t status = c.refuse(!fits(a), a.rows, a.cols))
        return status;
    matrix<T> roots = column(values, a.rows);
    c.check("A", a), c.check("W", roots);
    return c.queue(info, [=] {
        char vectors = job == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N', side = letter(uplo);
        int code, n = a.rows, ld = at_least_one(n), whole = 3 + 5 * n;
        int room = 1 + 6 * n + 2 * n * n;
        numbers v = a.read(), w((size_t)n), space((size_t)room);
        std::vector<int> more((size_t)whole);
        LAPACK(dsyevd, const char *, const char *, const int *, double *, const int *, double *,
               double *, const int *, int *, const int *, int *)
        (&vectors, &side, &n, v.data(), &ld, w.data(), space.data(), &room, more.data(), &whole,
         &code);
        a.write(v);
        roots.write(w);
        return code;
    });
}

cusolverStatus_t say_storage(cusolverDnHandle_t handle, int m, int n, int *size) {
    *size = storage(m, n);
    return handle && m >= 0 && n >= 0 ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

} // namespace

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle) {
    int device;
    if (cudaGetDevice(&device))
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    *handle = new cusolverDnContext;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
    delete handle;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream) {
    if (!handle || !is_stream(stream))
        return CUSOLVER_STATUS_INVALID_VALUE;
    handle->stream = stream;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream) {
    *stream = handle->stream;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info) {
    *info = new gesvdjInfo;
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t cusolverDnDestroyGesvdjInfo(gesvdjInfo_t info) {
    delete info;
    return CUSOLVER_STATUS_SUCCESS;
}

#define H cusolverDnHandle_t h
#define TD_PLAYED_CUSOLVER(S, T)                                                                   \
    cusolverStatus_t cusolverDn##S##potrf_bufferSize(H, cublasFillMode_t, int n, T *, int,         \
                                                     int *size) {                                  \
        return say_storage(h, n, n, size);                                                         \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##potrf(H, cublasFillMode_t uplo, int n, T *A, int lda, T *work, \
                                          int size, int *info) {                                   \
        return potrf(h, uplo, matrix<T>{A, n, n, lda}, work, size, info);                          \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##potrfBatched(H, cublasFillMode_t uplo, int n, T *A[], int lda, \
                                                 int *infos, int batches) {                        \
        return potrf_batched(h, uplo, n, A, lda, infos, batches);                                  \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##potrs(H, cublasFillMode_t uplo, int n, int nrhs, const T *A,   \
                                          int lda, T *B, int ldb, int *info) {                     \
        return potrs(h, uplo, matrix<const T>{A, n, n, lda}, matrix<T>{B, n, nrhs, ldb}, info);    \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##getrf_bufferSize(H, int m, int n, T *, int, int *size) {       \
        return say_storage(h, m, n, size);                                                         \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##getrf(H, int m, int n, T *A, int lda, T *work, int *pivots,    \
                                          int *info) {                                             \
        return getrf(h, matrix<T>{A, m, n, lda}, work, pivots, info);                              \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##getrs(H, cublasOperation_t trans, int n, int nrhs, const T *A, \
                                          int lda, const int *pivots, T *B, int ldb, int *info) {  \
        return getrs(h, trans, matrix<const T>{A, n, n, lda}, pivots, matrix<T>{B, n, nrhs, ldb},  \
                     info);                                                                        \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##geqrf_bufferSize(H, int m, int n, T *, int, int *size) {       \
        return say_storage(h, m, n, size);                                                         \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##geqrf(H, int m, int n, T *A, int lda, T *tau, T *work,         \
                                          int size, int *info) {                                   \
        return geqrf(h, matrix<T>{A, m, n, lda}, tau, work, size, info);                           \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##orgqr_bufferSize(H, int m, int n, int, const T *, int,         \
                                                     const T *, int *size) {                       \
        return say_storage(h, m, n, size);                                                         \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##orgqr(H, int m, int n, int k, T *A, int lda, const T *tau,     \
                                          T *work, int size, int *info) {                          \
        return orgqr(h, matrix<T>{A, m, n, lda}, k, tau, work, size, info);                        \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##gesvd_bufferSize(H, int m, int n, int *size) {                 \
        return say_storage(h, m, n, size);                                                         \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##gesvd(H, signed char jobu, signed char jobvt, int m, int n,    \
                                          T *A, int lda, T *values, T *U, int ldu, T *VT,          \
                                          int ldvt, T *work, int size, T *, int *info) {           \
        return gesvd(h, (char)jobu, (char)jobvt, matrix<T>{A, m, n, lda}, values, U, ldu, VT,      \
                     ldvt, work, size, info);                                                      \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##gesvdj_bufferSize(H, cusolverEigMode_t, int, int m, int n,     \
                                                      const T *, int, const T *, const T *, int,   \
                                                      const T *, int, int *size, gesvdjInfo_t) {   \
        return say_storage(h, m, n, size);                                                         \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##gesvdj(H, cusolverEigMode_t job, int econ, int m, int n, T *A, \
                                           int lda, T *values, T *U, int ldu, T *V, int ldv,       \
                                           T *work, int size, int *info, gesvdjInfo_t) {           \
        return gesvdj(h, job, econ != 0, matrix<T>{A, m, n, lda}, values, U, ldu, V, ldv, work,    \
                      size, info);                                                                 \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##syevd_bufferSize(                                              \
        H, cusolverEigMode_t, cublasFillMode_t, int n, const T *, int, const T *, int *size) {     \
        return say_storage(h, n, n, size);                                                         \
    }                                                                                              \
    cusolverStatus_t cusolverDn##S##syevd(H, cusolverEigMode_t job, cublasFillMode_t uplo, int n,  \
                                          T *A, int lda, T *values, T *work, int size,             \
                                          int *info) {                                             \
        return syevd(h, job, uplo, matrix<T>{A, n, n, lda}, values, work, size, info);             \
    }
TD_PLAYED_CUSOLVER(S, float)
TD_PLAYED_CUSOLVER(D, double)
