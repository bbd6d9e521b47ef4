/* backend_module.h: kinds of devices whose backend is a library of its own, loaded when one of its
 * devices is first asked for. */
#ifndef TD_CORE_BACKEND_MODULE_H
#define TD_CORE_BACKEND_MODULE_H

#include "engine/core/backend.h"
#include "engine/core/load.h"

/* The one function that such a library shows: its backend; NULL, with the reason in *absence, where
 * there is no device. Both static. */
typedef const td_backend *(*td_backend_entry)(const char **absence);

typedef struct td_backend_module {
    td_device_type type;
    const char *name;     /* the backend's: what device strings begin with */
    const char *variable; /* of the environment, which names another file */
    td_library library;   /* its table is the td_backend_entry */
} td_backend_module;

/* Make a kind of device known that is not there yet; static. Once, before anybody asks for its
 * devices. */
void td_backend_module_announce(const td_backend_module *module);

#endif
