/* cuda_profiler_api.h: its two functions are declared with the rest of the runtime. */
#ifndef TIDE_PLAYED_CUDA_PROFILER_API_H
#define TIDE_PLAYED_CUDA_PROFILER_API_H

#include "cuda_runtime_api.h"

#endif
