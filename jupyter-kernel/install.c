/* install.c: see install.h. */
#include "jupyter-kernel/install.h"
#include "cmake/embedded.h"
#include "jupyter-kernel/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern const tide_embedded tide_embedded_tide_kernel_core[];

/* The files of the kernelspec; the contents of the logos are carried in the binary. */
static const struct {
    const char *name, *logo;
} spec_files[] = {
    {"logo-32x32.png", "logo-32x32"},
    {"logo-64x64.png", "logo-64x64"},
    {"logo-svg.svg", "logo-svg"},
    {"kernel.json", NULL}, /* last: it is what makes Jupyter see the others */
};
enum { SPEC_FILES = sizeof spec_files / sizeof *spec_files };

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static const char *home(void) {
    const char *path = variable("HOME");
    struct passwd *entry = path ? NULL : getpwuid(getuid());
    return entry ? entry->pw_dir : path;
}

char *tk_install_folder(tk_place place, const char *prefix, char *error, size_t size) {
    const char *base = prefix, *below = "/share/jupyter";
    switch (place) {
    case TK_SYSTEM:
        base = "/usr/local";
        break;
    case TK_PREFIX:
        break;
    case TK_SYS_PREFIX:
        base = variable("VIRTUAL_ENV") ? variable("VIRTUAL_ENV") : variable("CONDA_PREFIX");
        if (!base) {
            snprintf(error, size, "--sys-prefix: neither VIRTUAL_ENV nor CONDA_PREFIX is set");
            return NULL;
        }
        break;
    case TK_USER:
        if ((base = variable("JUPYTER_DATA_DIR"))) {
            below = "";
        } else if ((base = variable("XDG_DATA_HOME"))) {
            below = "/jupyter";
        } else if ((base = home())) {
            below = "/.local/share/jupyter";
        } else {
            snprintf(error, size, "--user: there is no home directory");
            return NULL;
        }
        break;
    }
    char *folder;
    if (asprintf(&folder, "%s%s/kernels/tide", base, below) >= 0)
        return folder;
    snprintf(error, size, "out of memory");
    return NULL;
}

/* mkdir -p. */
static bool make_folder(const char *folder, char *error, size_t size) {
    char *path = strdup(folder);
    bool ok = path != NULL;
    for (char *end = path; ok && end;) {
        end = strchr(end + 1, '/');
        if (end)
            *end = '\0';
        ok = mkdir(path, 0777) == 0 || errno == EEXIST;
        if (end)
            *end = '/';
    }
    if (!ok)
        snprintf(error, size, "%s: %s", folder, strerror(path ? errno : ENOMEM));
    free(path);
    return ok;
}

static char *file_path(const char *folder, int i, const char *ending) {
    char *path;
    return asprintf(&path, "%s/%s%s", folder, spec_files[i].name, ending) < 0 ? NULL : path;
}

static bool write_bytes(const char *path, const char *bytes, size_t len) {
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    bool ok = fwrite(bytes, 1, len, file) == len && fflush(file) == 0 && fsync(fileno(file)) == 0;
    int problem = errno;
    if (fclose(file) != 0 && ok)
        return false;
    errno = problem;
    return ok;
}

static char *kernel_json(const char *binary) {
    json_t *spec =
        json_pack("{s:[s, s, s], s:s, s:s, s:s, s:s, s:{s:b, s:s}}", "argv", binary, "-f",
                  "{connection_file}", "display_name", "Tide (Lua 5.4)", "language", "lua",
                  "interrupt_mode", "message", "kernel_protocol_version", TK_PROTOCOL_VERSION,
                  "metadata", "debugger", 0, "supported_encryption", "curve");
    char *text = spec ? json_dumps(spec, JSON_INDENT(2)) : NULL;
    json_decref(spec);
    return text;
}

/* Writes file number i under its temporary name. */
static bool write_file(const char *folder, int i, const char *json) {
    const char *bytes = json;
    size_t len = strlen(json);
    if (spec_files[i].logo) {
        const tide_embedded *logo = tide_embedded_tide_kernel_core;
        while (logo->name && strcmp(logo->name, spec_files[i].logo) != 0)
            logo++;
        bytes = logo->bytes;
        len = logo->len;
    }
    char *path = file_path(folder, i, ".new");
    bool ok = path && write_bytes(path, bytes, len);
    free(path);
    return ok;
}

static bool rename_file(const char *folder, int i) {
    char *from = file_path(folder, i, ".new"), *to = file_path(folder, i, "");
    bool ok = from && to && rename(from, to) == 0;
    free(from);
    free(to);
    return ok;
}

/* Removes one of our files; one that is not there is removed already. */
static bool remove_file(const char *folder, int i, const char *ending) {
    char *path = file_path(folder, i, ending);
    bool ok = path && (unlink(path) == 0 || errno == ENOENT);
    free(path);
    return ok;
}

bool tk_install(const char *folder, const char *binary, char *error, size_t size) {
    char *json = kernel_json(binary);
    if (!json) {
        snprintf(error, size, "%s: not a path that JSON can carry", binary);
        return false;
    }
    bool ok = make_folder(folder, error, size);
    if (ok) {
        for (int i = 0; ok && i < SPEC_FILES; i++)
            ok = write_file(folder, i, json);
        for (int i = 0; ok && i < SPEC_FILES; i++)
            ok = rename_file(folder, i);
        if (!ok) {
            snprintf(error, size, "%s: %s", folder, strerror(errno));
            for (int i = 0; i < SPEC_FILES; i++)
                remove_file(folder, i, ".new");
            rmdir(folder); /* succeeds only when it was ours alone */
        }
    }
    free(json);
    return ok;
}

bool tk_uninstall(const char *folder, char *error, size_t size) {
    struct stat info;
    bool ok = stat(folder, &info) == 0;
    for (int i = SPEC_FILES - 1; ok && i >= 0; i--)
        ok = remove_file(folder, i, "");
    if (ok && rmdir(folder) != 0)
        ok = errno == ENOTEMPTY || errno == EEXIST;
    if (!ok)
        snprintf(error, size, "%s: %s", folder, strerror(errno));
    return ok;
}
