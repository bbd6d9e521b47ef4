/* cpu.h: the CPU's side of the backend: its functions, file by file, and the struct that holds them
 * (backend.c), which is all that the rest of the engine sees. */
#ifndef TD_CPU_CPU_H
#define TD_CPU_CPU_H

#include "engine/ops/plan/plan.h"

#define TD_CPU_DECLARE(function, plan, ntensors, nwritten)                                         \
    td_status td_cpu_##function(const struct plan *plan) TD_MUST_CHECK;
TD_BACKEND_WORK(TD_CPU_DECLARE)
#undef TD_CPU_DECLARE
td_status td_cpu_reduce_lists(const td_reduce_lists_plan *plan) TD_MUST_CHECK;
td_status td_cpu_recurrent(const td_recurrent_plan *plan) TD_MUST_CHECK;

/* "oneDNN 2.6.3, OpenBLAS 0.3.21, SLEEF 3.5.1" */
void td_cpu_libraries(char *text, size_t size);

extern const td_backend td_cpu_backend;

#endif
