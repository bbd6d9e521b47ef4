/* nvrtc.h: the compiler that runs at run time as a table of calls, in a module of its own beside
 * libtide_cuda.so, so that machines without the library interpret programs. */
#ifndef TD_CUDA_LOADED_LIBRARIES_NVRTC_H
#define TD_CUDA_LOADED_LIBRARIES_NVRTC_H

#include <stddef.h>

#define TD_LATE_NVRTC "td_late_nvrtc_calls"

typedef struct td_late_nvrtc {
    /* Has the library make what it keeps until the process ends, so that whoever asks for something
     * to be done at exit after this is asked before that goes. */
    void (*prepare)(int capability);
    /* Compile a text for a compute capability (90); answers 0, or the library's status. *out is
     * new; NULL where compiling failed. */
    int (*compile)(const char *text, int nheaders, const char *const *headers,
                   const char *const *names, int capability, void **out);
    size_t (*size)(void *program);
    int (*read)(void *program, char *image); /* `size` bytes, for cudaLibraryLoadData */
    void (*drop)(void *program);
} td_late_nvrtc;

#endif
