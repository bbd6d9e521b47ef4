/* nvrtc.c: the table of NVRTC's calls, in a module of its own. */
#include "engine/cuda/loaded_libraries/nvrtc.h"

#include <nvrtc.h>
#include <stdio.h>

static int compile(const char *text, int nheaders, const char *const *headers,
                   const char *const *names, int capability, void **out) {
    char architecture[40];
    /* as pointwise.cu is compiled, so that programs' own kernels give the same bits */
    const char *options[] = {architecture, "--std=c++17", "--fmad=false"};
    nvrtcProgram program = NULL;
    snprintf(architecture, sizeof architecture, "--gpu-architecture=sm_%d", capability);
    *out = NULL;
    nvrtcResult result =
        nvrtcCreateProgram(&program, text, "td_program.cu", nheaders, headers, names);
    if (result == NVRTC_SUCCESS)
        result = nvrtcCompileProgram(program, 3, options);
    if (result == NVRTC_SUCCESS) {
        *out = program;
        return 0;
    }
    if (program)
        (void)nvrtcDestroyProgram(&program);
    return (int)result;
}

/* Compiling is what makes most of it. */
static void prepare(int capability) {
    void *program = NULL;
    if (compile("extern \"C\" __global__ void td_nothing() {}", 0, NULL, NULL, capability,
                &program) == 0)
        (void)nvrtcDestroyProgram((nvrtcProgram *)&program);
}

static size_t size_of(void *program) {
    size_t bytes = 0;
    return nvrtcGetCUBINSize(program, &bytes) == NVRTC_SUCCESS ? bytes : 0;
}

static int read_image(void *program, char *image) {
    return (int)nvrtcGetCUBIN(program, image);
}

static void drop(void *program) {
    nvrtcProgram p = program;
    (void)nvrtcDestroyProgram(&p);
}

extern const td_late_nvrtc td_late_nvrtc_calls;
const td_late_nvrtc td_late_nvrtc_calls = {
    .prepare = prepare, .compile = compile, .size = size_of, .read = read_image, .drop = drop};
