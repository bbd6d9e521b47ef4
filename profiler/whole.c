/* whole.c: see whole.h. */
#include "profiler/whole.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

typedef struct job {
    const char *path; /* as it is called in messages */
    void (*write)(FILE *file, const void *ctx);
    const void *ctx;
} job;

static td_status fail_write(const char *path, int error) {
    return td_fail(TD_EIO, "%s: %s", path, strerror(error));
}

/* ---- zlib as a stream ---- */

static ssize_t write_packed(void *gz, const char *bytes, size_t n) {
    int done = n < INT32_MAX ? gzwrite(gz, bytes, (unsigned)n) : 0;
    return done > 0 ? done : 0;
}

static int close_packed(void *gz) {
    int status = gzclose(gz);
    if (status != Z_OK && status != Z_ERRNO)
        errno = EIO;
    return status == Z_OK ? 0 : EOF;
}

static FILE *open_packed(const char *file) {
    gzFile gz = gzopen(file, "wb1");
    if (!gz)
        return NULL;
    FILE *f =
        fopencookie(gz, "w", (cookie_io_functions_t){.write = write_packed, .close = close_packed});
    if (!f)
        gzclose(gz);
    return f;
}

static bool is_packed(const char *path) {
    size_t n = strlen(path);
    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

/* ---- drafts ---- */

/* Write to `file`, which is `target` itself or a draft that takes its place when it is whole. */
static td_status write_file(const job *j, const char *target, const char *file) {
    FILE *f = is_packed(j->path) ? open_packed(file) : fopen(file, "w");
    if (!f)
        return fail_write(j->path, errno ? errno : ENOMEM);
    errno = 0;
    j->write(f, j->ctx);
    int error = ferror(f) ? (errno ? errno : EIO) : 0;
    if (fclose(f) != 0 && !error)
        error = errno ? errno : EIO;
    td_status status = td_interrupt_check();
    if (!error && !status && file != target && rename(file, target) != 0)
        error = errno;
    if ((error || status) && file != target)
        unlink(file);
    if (status)
        return status;
    return error ? fail_write(j->path, error) : TD_OK;
}

td_status tide_write_whole(const char *path, void (*write)(FILE *file, const void *ctx),
                           const void *ctx) {
    struct stat there;
    job j = {path, write, ctx};
    char *target = realpath(path, NULL); /* a link stays, the file that it leads to is replaced */
    const char *end = target ? target : path;
    size_t len = strlen(end) + 32;
    char *draft = td_malloc(len);
    td_status status;
    if (!draft) {
        status = td_fail(TD_ENOMEM, "out of memory");
    } else if (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) {
        status = write_file(&j, path, path); /* a pipe or a device: nothing to replace */
    } else {
        snprintf(draft, len, "%s.%d.part", end, (int)getpid());
        status = write_file(&j, end, draft);
    }
    td_free(draft);
    free(target);
    return status;
}
