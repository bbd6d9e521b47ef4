/* late_library.c: opens a library by name and finds its functions, once; see images.h. */
#include "lua-bindings/images/images.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { CLOSED, OPEN, NAME = 64 };

static td_status find_all(const tide_late_library *library, void *handle) {
    char name[NAME];
    size_t prefix = strlen(library->prefix), k = 0;
    for (const char *at = library->names; *at; at += strspn(at, " "), k++) {
        size_t len = strcspn(at, " ");
        snprintf(name, sizeof name, "%s%.*s", library->prefix, (int)(len < NAME - prefix ? len : 0),
                 at);
        void *symbol = dlsym(handle, name);
        if (!symbol)
            return td_fail(TD_EIO, "%s has no '%s'", library->file, name);
        memcpy((char *)library->table + k * sizeof symbol, &symbol, sizeof symbol);
        at += len;
    }
    return TD_OK;
}

static td_status open_alone(tide_late_library *library) {
    if (library->state == OPEN)
        return TD_OK;
    void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return td_fail(TD_EIO, "%s", dlerror());
    td_status status = find_all(library, handle);
    if (status == TD_OK)
        library->state = OPEN;
    return status;
}

td_status tide_open_late(tide_late_library *library) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (library->state == OPEN)
        return TD_OK;
    pthread_mutex_lock(&lock);
    td_status status = open_alone(library);
    pthread_mutex_unlock(&lock);
    return status;
}
