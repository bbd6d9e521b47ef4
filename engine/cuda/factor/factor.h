/* factor.h: the library that decomposes matrices, and a decomposition on its way. */
#ifndef TD_CUDA_FACTOR_FACTOR_H
#define TD_CUDA_FACTOR_FACTOR_H

#include "engine/cuda/cuda.h"
#include "engine/cuda/factor/factor_code.h"
#include "engine/cuda/loaded_libraries/cusolver.h"

/* The library's table and its handle for a device, which is current; false where it is not
 * installed. With a lock held that td_cuda_solver_leave gives back where it is. */
bool td_cuda_solver_enter(int device, const td_late_cusolver **solver, void **handle);
void td_cuda_solver_leave(void);

#endif
