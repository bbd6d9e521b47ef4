/* cuda_runtime.h: CUDA C++ for the host's compiler: language, vectors, atomics, arithmetic. */
#ifndef TIDE_PLAYED_CUDA_RUNTIME_H
#define TIDE_PLAYED_CUDA_RUNTIME_H

#include "cuda_runtime_api.h"
#include "played/arithmetic.h"
#include "played/atomics.h"
#include "played/language.h"
#include "vector_functions.h"

#endif
