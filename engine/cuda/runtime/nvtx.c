/* nvtx.c: ranges for the tools that look at a program from outside (Nsight), through NVTX, which is
 * headers alone and does nothing while no tool looks. */
#include "engine/cuda/runtime/activity.h"

#if defined(__has_include) && __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

static int push(const char *name) {
    return nvtxRangePushA(name);
}

static int pop(void) {
    return nvtxRangePop();
}

static void mark(const char *name) {
    nvtxMarkA(name);
}

static const td_annotations annotations = {.push = push, .pop = pop, .mark = mark};
const td_annotations *const td_cuda_annotations = &annotations;
#else
const td_annotations *const td_cuda_annotations = NULL;
#endif
