/* draft.c: a draft is locked while it is written, so that two writers of one file wait for each
 * other, and its name is always the same, so that kills leave one draft and not many. */
#include "engine/core/draft.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct td_draft {
    int fd, folder;
    bool committed;
    const char *name; /* of the target in its folder */
    const char *shown;
    char target[PATH_MAX];
    char draft[NAME_MAX + 1];
    char path[]; /* as it was given */
};

enum { CHUNK = 8 << 20, WAIT_MS = 20 };

static td_status fail_path(const td_draft *d, int error) {
    return td_fail(TD_EIO, "cannot write '%s': %s", d->shown, strerror(error));
}

/* The file that a path leads to, split into folder and name. */
static td_status open_folder(td_draft *d) {
    if (!realpath(d->path, d->target)) {
        if (errno != ENOENT || strlen(d->path) >= sizeof d->target)
            return fail_path(d, errno == ENOENT ? ENAMETOOLONG : errno);
        memcpy(d->target, d->path, strlen(d->path) + 1);
    }
    char *slash = strrchr(d->target, '/');
    d->name = slash ? slash + 1 : d->target;
    if (!*d->name)
        return fail_path(d, slash ? EISDIR : ENOENT);
    if (slash == d->target)
        d->folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    else if (slash) {
        *slash = 0;
        d->folder = open(d->target, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    } else {
        d->folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return d->folder < 0 ? fail_path(d, errno) : TD_OK;
}

/* Is what we opened and locked still what the name means? Another writer may have renamed it. */
static bool is_named(const td_draft *d) {
    struct stat ours, named;
    return fstat(d->fd, &ours) == 0 &&
           fstatat(d->folder, d->draft, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

/* File systems without locks have drafts none the less. */
static td_status lock(td_draft *d) {
    while (flock(d->fd, LOCK_EX | LOCK_NB) && (errno == EWOULDBLOCK || errno == EINTR)) {
        poll(NULL, 0, WAIT_MS);
        if (td_interrupt_requested())
            return td_interrupted();
    }
    return TD_OK;
}

static void close_file(td_draft *d) {
    if (d->fd >= 0)
        close(d->fd);
    d->fd = -1;
}

static td_status open_draft(td_draft *d) {
    td_status status = TD_OK;
    for (;;) {
        d->fd = openat(d->folder, d->draft,
                       O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
        if (d->fd < 0)
            return fail_path(d, errno);
        status = lock(d);
        if (status || is_named(d))
            break;
        close_file(d);
    }
    if (status)
        close_file(d); /* it is another's */
    else if (ftruncate(d->fd, 0))
        status = fail_path(d, errno);
    return status;
}

/* What stands there: nothing, or a regular file, whose permissions the new one takes over. */
static td_status look_at_target(td_draft *d, mode_t *mode) {
    struct stat there;
    *mode = 0;
    if (fstatat(d->folder, d->name, &there, 0))
        return errno == ENOENT ? TD_OK : fail_path(d, errno);
    if (S_ISDIR(there.st_mode))
        return fail_path(d, EISDIR);
    if (!S_ISREG(there.st_mode))
        return td_fail(TD_EIO, "cannot write '%s': not a regular file", d->shown);
    if (faccessat(d->folder, d->name, W_OK, AT_EACCESS))
        return fail_path(d, errno);
    *mode = there.st_mode & 0777;
    return TD_OK;
}

td_status td_draft_open(const char *path, td_draft **out) {
    size_t len = strlen(path);
    td_draft *d = td_malloc(sizeof *d + len + 1);
    td_status status = TD_OK;
    mode_t mode;
    *out = NULL;
    if (!d)
        return td_fail(TD_ENOMEM, "out of memory");
    *d = (td_draft){.fd = -1, .folder = -1};
    memcpy(d->path, path, len + 1);
    d->shown = d->path;
    TD_TRY(open_folder(d));
    TD_TRY(look_at_target(d, &mode));
    if (snprintf(d->draft, sizeof d->draft, ".%s.draft", d->name) >= (int)sizeof d->draft)
        TD_TRY(fail_path(d, ENAMETOOLONG));
    TD_TRY(open_draft(d));
    if (mode && fchmod(d->fd, mode))
        TD_TRY(fail_path(d, errno));
    *out = d;
    d = NULL;
done:
    td_draft_close(d);
    return status;
}

td_status td_draft_write(td_draft *d, const void *bytes, size_t n) {
    const char *at = bytes, *end = at + n;
    while (at < end) {
        if (td_interrupt_requested())
            return td_interrupted();
        ssize_t done = write(d->fd, at, end - at < CHUNK ? (size_t)(end - at) : CHUNK);
        if (done < 0 && errno != EINTR)
            return fail_path(d, errno);
        at += done > 0 ? done : 0;
    }
    return TD_OK;
}

td_status td_draft_replace(td_draft *d) {
    if (renameat(d->folder, d->draft, d->folder, d->name))
        return fail_path(d, errno);
    d->committed = true;
    return TD_OK;
}

td_status td_draft_commit(td_draft *d) {
    if (fsync(d->fd))
        return fail_path(d, errno);
    td_status status = td_draft_replace(d);
    if (status)
        return status;
    /* Some file systems can't sync a folder: they order the rename by themselves. */
    return fsync(d->folder) && errno != EINVAL ? fail_path(d, errno) : TD_OK;
}

void td_draft_close(td_draft *d) {
    if (!d)
        return;
    if (d->fd >= 0 && !d->committed)
        unlinkat(d->folder, d->draft, 0);
    close_file(d);
    if (d->folder >= 0)
        close(d->folder);
    td_free(d);
}
