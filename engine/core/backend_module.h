/* cuda_module.h: what libtide_cuda.so, which device.c loads, shows: one symbol. */
#ifndef TD_CORE_CUDA_MODULE_H
#define TD_CORE_CUDA_MODULE_H

#include "engine/core/backend.h"

/* CUDA's backend; NULL, with the reason in *absence, where there is no device. Static. */
const td_backend *td_cuda_module(const char **absence);

#endif
