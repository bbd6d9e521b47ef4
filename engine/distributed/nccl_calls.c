/* nccl_calls.c: finds NCCL and its calls. */
#include "engine/distributed/nccl_calls.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fail(char why[TD_WHY], const char *file, const char *reason) {
    snprintf(why, TD_WHY, "no NCCL is there: %.60s: %.120s; TIDE_NCCL names another libnccl.so.2",
             file, reason);
    return false;
}

/* dlsym gives data pointers, which POSIX lets be functions'. */
static bool find(void *library, const char *file, const char *name, void *member,
                 char why[TD_WHY]) {
    void *symbol = dlsym(library, name);
    memcpy(member, &symbol, sizeof symbol);
    char reason[80];
    snprintf(reason, sizeof reason, "it has no %s, which NCCL has from 2.14 on", name);
    return symbol || fail(why, file, reason);
}

static bool load(td_nccl_calls *calls, char why[TD_WHY]) {
    const char *given = getenv("TIDE_NCCL");
    const char *file = given && *given ? given : "libnccl.so.2";
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *reason = dlerror();
        const char *behind = reason ? strstr(reason, ": ") : NULL; /* it repeats the file's name */
        return fail(why, file, behind ? behind + 2 : "it can't be loaded");
    }
#define FIND(member, name, result, parameters)                                                     \
    if (!find(library, file, "nccl" #name, &calls->member, why))                                   \
        return false;
    TD_NCCL_TABLE(FIND)
#undef FIND
    return true;
}

const td_nccl_calls *td_nccl_load(char why[TD_WHY]) {
    static td_nccl_calls calls;
    static bool loaded;
    loaded = loaded || load(&calls, why);
    return loaded ? &calls : NULL;
}
