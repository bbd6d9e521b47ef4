/* openmp.h: the OpenMP runtime that oneDNN and OpenBLAS bring along. The engine's own loops run on
 * core/pool.c; this makes the libraries' threads behave as the pool's do.
 */
#ifndef TD_CORE_OPENMP_H
#define TD_CORE_OPENMP_H

/* Bound how long the runtime's threads wait awake, whatever OMP_WAIT_POLICY says; where the user
 * has set GOMP_SPINCOUNT, that holds. The runtime reads the environment when it is loaded: call
 * before the libraries are. */
void td_openmp_prepare(void);

/* The libraries have been loaded: `library` is dlopen's handle of one that needs the runtime. */
void td_openmp_find(void *library);

/* Have the n threads of this thread's team treat denormal numbers as it does (core/denormals.h). */
void td_openmp_flush_denormals(int n);

/* How many threads the libraries may use when they are called from this thread. */
void td_openmp_set_threads(int n);

#endif
