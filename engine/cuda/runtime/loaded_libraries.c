/* loaded_libraries.c: loads modules beside this one. */
#include "engine/cuda/runtime/loaded_libraries.h"

#include "engine/core/observer.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

const void *td_cuda_late_table(td_cuda_late *late) {
    static const char here;
    Dl_info info;
    char path[PATH_MAX];
    if (late->tried || !*late->file)
        return late->table;
    const char *slash = dladdr(&here, &info) ? strrchr(info.dli_fname, '/') : NULL;
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - info.dli_fname) + 1 : 0,
             slash ? info.dli_fname : "", late->file);
    td_loading loading;
    td_loading_begin(&loading, late->file);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    td_loading_end(&loading);
    late->tried = true;
    return late->table = module ? dlsym(module, late->symbol) : NULL;
}

void *td_cuda_late_handle(td_cuda_late *late, int device, int (*start)(void **handle)) {
    if (device >= TD_CUDA_DEVICES)
        return NULL;
    if (!late->handles[device]) {
        td_loading loading;
        td_loading_begin(&loading, late->file);
        if (start(&late->handles[device]) != 0)
            late->handles[device] = NULL;
        td_loading_end(&loading);
    }
    return late->handles[device];
}
