/* install.h: the kernelspec `tide`, where Jupyter finds it. Knows no protocol. */
#ifndef TIDE_KERNEL_INSTALL_H
#define TIDE_KERNEL_INSTALL_H

#include <stdbool.h>
#include <stddef.h>

typedef enum tk_place {
    TK_SYSTEM,    /* /usr/local */
    TK_USER,      /* $JUPYTER_DATA_DIR, $XDG_DATA_HOME/jupyter or ~/.local/share/jupyter */
    TK_PREFIX,    /* a given prefix */
    TK_SYS_PREFIX /* the environment in use: $VIRTUAL_ENV or $CONDA_PREFIX */
} tk_place;

/* Folder of the kernelspec in a place, in a malloc'ed string. NULL with one line in `error` when
 * the environment does not say where that is. `prefix` is for TK_PREFIX. */
char *tk_install_folder(tk_place place, const char *prefix, char *error, size_t size);

/* Writes kernel.json (naming `binary`) and the logos into `folder`. All files are written under
 * other names first and then renamed, so that an error, which gives false and one line in `error`,
 * leaves what was there before. */
bool tk_install(const char *folder, const char *binary, char *error, size_t size);

/* Removes the files that tk_install writes, and the folder when nothing else is in it. False with
 * one line in `error` when there was nothing to remove or it cannot be removed. */
bool tk_uninstall(const char *folder, char *error, size_t size);

#endif
