/* loaded_libraries.h: libraries that are loaded when they are first needed, each through a module
 * beside this one that holds a table of its calls. */
#ifndef TD_CUDA_RUNTIME_LOADED_LIBRARIES_H
#define TD_CUDA_RUNTIME_LOADED_LIBRARIES_H

#include "engine/cuda/cuda.h"

/* Its user locks it. */
typedef struct td_cuda_late {
    const char *file, *symbol; /* the module, and its table there; "": built without it */
    bool tried;
    const void *table;
    void *handles[TD_CUDA_DEVICES];
} td_cuda_late;

/* NULL: the module, or the library that it needs, is not installed. Never let go again. */
const void *td_cuda_late_table(td_cuda_late *late);
/* What the library knows the device by, which is current: made by `start` (0: it worked) when it is
 * first asked for, and kept. NULL: it can't be. */
void *td_cuda_late_handle(td_cuda_late *late, int device, int (*start)(void **handle));

#endif
