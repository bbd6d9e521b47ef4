/* test_cusolver.cpp: decompositions on the played device multiply back to what they are of. */
#include "check_cpp.h"
#include "include/cusolverDn.h"

#include <cmath>
#include <vector>

typedef std::vector<double> numbers;

/* a (m by k) times b (k by n), in columns. */
static numbers times(const numbers &a, const numbers &b, size_t m, size_t k, size_t n) {
    numbers c(m * n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++)
            for (size_t l = 0; l < k; l++)
                c[j * m + i] += a[l * m + i] * b[j * k + l];
    return c;
}

static void check_near(const numbers &got, const numbers &want) {
    CHECK_INT(got.size(), want.size());
    for (size_t k = 0; k < want.size(); k++)
        CHECK_CLOSE(got[k], want[k], 1e-12);
}

struct solver {
    cusolverDnHandle_t handle;
    int *info = device_array<int>(1), size = 0;
    double *work = device_array<double>(256);
    solver() { CHECK_INT(cusolverDnCreate(&handle), CUSOLVER_STATUS_SUCCESS); }
    ~solver() {
        cusolverDnDestroy(handle);
        cudaFree(info), cudaFree(work);
    }
};

static const numbers SYMMETRIC = {4, 2, 1, 2, 5, 3, 1, 3, 6};

TEST(cholesky_factors_solve) {
    solver s;
    double *a = upload(SYMMETRIC), *b = upload(times(SYMMETRIC, {1, 2, 3}, 3, 3, 1));
    CHECK_INT(cusolverDnDpotrf_bufferSize(s.handle, CUBLAS_FILL_MODE_LOWER, 3, a, 3, &s.size), 0);
    CHECK_INT(
        cusolverDnDpotrf(s.handle, CUBLAS_FILL_MODE_LOWER, 3, a, 3, s.work, s.size - 1, s.info),
        CUSOLVER_STATUS_INVALID_VALUE);
    CHECK_INT(cusolverDnDpotrf(s.handle, CUBLAS_FILL_MODE_LOWER, 3, a, 3, s.work, s.size, s.info),
              0);
    CHECK_INT(cusolverDnDpotrs(s.handle, CUBLAS_FILL_MODE_LOWER, 3, 1, a, 3, b, 3, s.info), 0);
    CHECK_INT(read_one(s.info), 0);
    check_near(download(b, 3), {1, 2, 3});
    double *bad = upload<double>({1, 0, 0, -1}), *list[] = {bad, a},
           **pointers = device_array<double *>(2);
    int *infos = device_array<int>(2);
    CHECK_OK(cudaMemcpy(pointers, list, sizeof list, cudaMemcpyHostToDevice));
    CHECK_INT(cusolverDnDpotrfBatched(s.handle, CUBLAS_FILL_MODE_LOWER, 2, pointers, 2, infos, 2),
              0);
    CHECK_INT(read_one(infos), 2); /* the second minor is not positive */
    cudaFree(a), cudaFree(b), cudaFree(bad), cudaFree(pointers), cudaFree(infos);
}

TEST(lu_factors_solve) {
    solver s;
    numbers general = {0, 2, 1, 3, 5, 3, 1, -3, 6};
    double *a = upload(general), *b = upload(times(general, {3, -1, 2}, 3, 3, 1));
    int *pivots = device_array<int>(3);
    CHECK_INT(cusolverDnDgetrf_bufferSize(s.handle, 3, 3, a, 3, &s.size), 0);
    CHECK_INT(cusolverDnDgetrf(s.handle, 3, 3, a, 3, s.work, pivots, s.info), 0);
    CHECK_INT(cusolverDnDgetrs(s.handle, CUBLAS_OP_N, 3, 1, a, 3, pivots, b, 3, s.info), 0);
    check_near(download(b, 3), {3, -1, 2});
    CHECK_INT(read_one(pivots), 2);
    cudaFree(a), cudaFree(b), cudaFree(pivots);
}

TEST(q_times_r_is_the_matrix) {
    solver s;
    numbers tall = {1, 2, 3, 4, 5, 7};
    double *a = upload(tall), *tau = device_array<double>(2);
    CHECK_INT(cusolverDnDgeqrf_bufferSize(s.handle, 3, 2, a, 3, &s.size), 0);
    CHECK_INT(cusolverDnDgeqrf(s.handle, 3, 2, a, 3, tau, s.work, s.size, s.info), 0);
    numbers r = download(a, 6);
    CHECK_INT(cusolverDnDorgqr(s.handle, 3, 2, 2, a, 3, tau, s.work, s.size, s.info), 0);
    check_near(times(download(a, 6), {r[0], 0, r[3], r[4]}, 3, 2, 2), tall);
    cudaFree(a), cudaFree(tau);
}

TEST(singular_values_and_vectors_make_the_matrix) {
    solver s;
    numbers tall = {1, 2, 3, 4, 5, 7};
    double *a = upload(tall), *values = device_array<double>(2), *u = device_array<double>(6);
    double *vt = device_array<double>(4), *v = device_array<double>(4);
    CHECK_INT(cusolverDnDgesvd_bufferSize(s.handle, 3, 2, &s.size), 0);
    CHECK_INT(cusolverDnDgesvd(s.handle, 'S', 'S', 3, 2, a, 3, values, u, 3, vt, 2, s.work, s.size,
                               NULL, s.info),
              0);
    numbers w = download(values, 2), left = download(u, 6);
    for (size_t k = 0; k < 6; k++)
        left[k] *= w[k / 3];
    check_near(times(left, download(vt, 4), 3, 2, 2), tall);
    CHECK_INT(cusolverDnDgesvd(s.handle, 'S', 'S', 2, 3, a, 2, values, u, 2, vt, 2, s.work, s.size,
                               NULL, s.info),
              CUSOLVER_STATUS_INVALID_VALUE); /* wide */
    gesvdjInfo_t params;
    cusolverDnCreateGesvdjInfo(&params);
    cudaFree(a), a = upload(tall);
    CHECK_INT(cusolverDnDgesvdj(s.handle, CUSOLVER_EIG_MODE_VECTOR, 1, 3, 2, a, 3, values, u, 3, v,
                                2, s.work, s.size, s.info, params),
              0);
    numbers turned = download(v, 4), straight = download(vt, 4);
    check_near(turned, {straight[0], straight[2], straight[1], straight[3]});
    cusolverDnDestroyGesvdjInfo(params);
    cudaFree(a), cudaFree(values), cudaFree(u), cudaFree(vt), cudaFree(v);
}

TEST(eigenvectors_turn_into_multiples) {
    solver s;
    float *a = device_array<float>(9), *values = device_array<float>(3), host[9], w[3];
    float *work = device_array<float>(256);
    for (int k = 0; k < 9; k++)
        host[k] = (float)SYMMETRIC[(size_t)k];
    CHECK_OK(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
    CHECK_INT(cusolverDnSsyevd_bufferSize(s.handle, CUSOLVER_EIG_MODE_VECTOR,
                                          CUBLAS_FILL_MODE_LOWER, 3, a, 3, values, &s.size),
              0);
    CHECK_INT(cusolverDnSsyevd(s.handle, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 3, a, 3,
                               values, work, s.size, s.info),
              0);
    CHECK_OK(cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost));
    CHECK_OK(cudaMemcpy(w, values, sizeof w, cudaMemcpyDeviceToHost));
    for (int j = 0; j < 3; j++)
        for (int i = 0; i < 3; i++) {
            double sum = 0;
            for (int k = 0; k < 3; k++)
                sum += SYMMETRIC[(size_t)(k * 3 + i)] * host[j * 3 + k];
            CHECK_CLOSE(sum, w[j] * host[j * 3 + i], 1e-5);
        }
    CHECK_CLOSE(w[0] + w[1] + w[2], 15, 1e-5);
    cudaFree(a), cudaFree(values), cudaFree(work);
}

int main() {
    RUN(cholesky_factors_solve);
    RUN(lu_factors_solve);
    RUN(q_times_r_is_the_matrix);
    RUN(singular_values_and_vectors_make_the_matrix);
    RUN(eigenvectors_turn_into_multiples);
    return check_finish();
}
