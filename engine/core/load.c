/* load.c: opens the modules that lie beside libtide.so. They are never closed. */
#include "engine/core/load.h"

#include "engine/core/memory.h"
#include "engine/core/openmp.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

/* The folder of libtide.so with its slash; its length, 0 where that is unknown. */
static int own_folder(const char **folder) {
    static const char here;
    Dl_info info;
    const char *slash = dladdr(&here, &info) ? strrchr(info.dli_fname, '/') : NULL;
    *folder = slash ? info.dli_fname : "";
    return slash ? (int)(slash - info.dli_fname) + 1 : 0;
}

static td_status fail_load(const td_library *library) {
    const char *why = dlerror();
    why = why ? why : "no reason given";
    /* The loader's words for a request that failed; the room for thread-local storage is another
     * matter, which giving memory back doesn't mend. */
    bool memory = strstr(why, "memory") || strstr(why, "failed to map") || strstr(why, "out of");
    if (memory && !strstr(why, "static TLS"))
        return td_fail(TD_ENOMEM, "out of memory: %s can't be loaded: %s", library->name, why);
    return td_fail(TD_EINTERNAL, "%s can't be loaded: %s", library->name, why);
}

/* Whether a file ends before its table of sections, which linkers put last, as after half an
 * install: the loader maps it all the same, and SIGBUS ends whoever touches what is missing. */
static bool is_cut(const char *path) {
    ElfW(Ehdr) head;
    FILE *file = fopen(path, "rbe");
    bool cut = false;
    if (file && fread(&head, sizeof head, 1, file) == 1 && !memcmp(head.e_ident, ELFMAG, SELFMAG))
        cut = fseek(file, 0, SEEK_END) == 0 &&
              (unsigned long)ftell(file) <
                  head.e_shoff + (unsigned long)head.e_shnum * head.e_shentsize;
    if (file)
        fclose(file);
    return cut;
}

td_status td_library_load(const td_library *library, const void **table) {
    char path[PATH_MAX];
    const char *folder;
    int len = own_folder(&folder);
    if (strchr(library->file, '/'))
        len = 0;
    snprintf(path, sizeof path, "%.*s%s", len, folder, library->file);
    if (!td_memory_has_room(library->room))
        return td_fail(TD_ENOMEM, "out of memory");
    if (is_cut(path))
        return td_fail(TD_EINTERNAL, "%s can't be loaded: %s is cut short: install Tide again",
                       library->name, path);
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module)
        td_openmp_find(module);
    *table = module ? dlsym(module, library->table) : NULL;
    return *table ? TD_OK : fail_load(library);
}
