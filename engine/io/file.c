/* file.c: see file.h. */
#include "engine/io/file.h"

#include "engine/core/interrupt.h"
#include "engine/core/memory.h"
#include "engine/io/read_range.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct td_file {
    atomic_int refs;
    int fd;      /* closed when the opener lets go: tensors hold pages alone */
    char *pages; /* NULL: not mapped */
    int64_t bytes;
};

enum { CHUNK = 8 << 20 };

static td_status fail_system(void) {
    return td_fail(TD_EIO, "%s", strerror(errno));
}

/* ---- opening ---- */

static td_status look_at(td_file *file, const char *path) {
    struct stat info;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file->fd < 0 || fstat(file->fd, &info))
        return fail_system();
    if (!S_ISREG(info.st_mode))
        return td_fail(TD_EIO, "%s",
                       S_ISDIR(info.st_mode) ? strerror(EISDIR) : "not a regular file");
    file->bytes = info.st_size;
    return TD_OK;
}

static void map_pages(td_file *file) {
    if (file->bytes == 0)
        return;
    void *at = mmap(NULL, (size_t)file->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE,
                    file->fd, 0);
    file->pages = at == MAP_FAILED ? NULL : at;
}

static void drop(td_file *file) {
    if (atomic_fetch_sub(&file->refs, 1) > 1)
        return;
    if (file->pages)
        munmap(file->pages, (size_t)file->bytes);
    td_free(file);
}

void td_file_release(td_file *file) {
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
    drop(file);
}

td_status td_file_open(const char *path, bool map, td_file **out) {
    td_file *file = td_calloc(1, sizeof *file);
    *out = NULL;
    if (!file)
        return td_fail(TD_ENOMEM, "out of memory");
    file->refs = 1;
    td_status status = look_at(file, path);
    if (status) {
        td_file_release(file);
        return status;
    }
    if (map)
        map_pages(file);
    *out = file;
    return TD_OK;
}

/* ---- bytes ---- */

int64_t td_file_bytes(const td_file *file) {
    return file->bytes;
}

bool td_file_has(const td_file *file, int64_t at, int64_t n) {
    return at >= 0 && n >= 0 && at <= file->bytes && n <= file->bytes - at;
}

td_status td_file_read(const td_file *file, void *to, int64_t n, int64_t at) {
    if (!td_file_has(file, at, n))
        return td_fail(TD_EIO, "it ends before byte %lld", (long long)at);
    return td_read_range(file->fd, to, n, at);
}

/* ---- elements ---- */

static void turn_some(char *at, size_t size, int64_t n) {
    for (; n > 0; n--, at += size)
        for (size_t k = 0; k < size / 2; k++) {
            char kept = at[k];
            at[k] = at[size - 1 - k];
            at[size - 1 - k] = kept;
        }
}

td_status td_elements_turn(td_dtype dtype, void *at, int64_t n) {
    size_t size = td_dtype_size(dtype);
    for (char *from = at; size > 1 && n > 0; n -= CHUNK, from += CHUNK * size) {
        td_status status = td_interrupt_check();
        if (status)
            return status;
        turn_some(from, size, n < CHUNK ? n : CHUNK);
    }
    return TD_OK;
}

td_status td_elements_check(td_dtype dtype, const void *at, int64_t n) {
    const unsigned char *from = at, *end = from + (dtype == TD_BOOL ? n : 0);
    while (from < end) {
        const unsigned char *stop = end - from > CHUNK ? from + CHUNK : end;
        unsigned char all = 0;
        for (; from < stop; from++)
            all |= *from;
        if (all > 1)
            return td_fail(TD_EVALUE, "a bool that is neither 0 nor 1");
        td_status status = td_interrupt_check();
        if (status)
            return status;
    }
    return TD_OK;
}

static void drop_pages(void *owner, void *data) {
    (void)data;
    drop(owner);
}

static td_status map_tensor(td_file *file, int64_t at, td_dtype dtype, int ndim,
                            const int64_t *sizes, td_tensor **out) {
    td_status status =
        td_tensor_from_memory(dtype, ndim, sizes, file->pages + at, drop_pages, file, out);
    if (status == TD_OK)
        atomic_fetch_add(&file->refs, 1);
    return status;
}

static td_status read_tensor(td_file *file, int64_t at, td_dtype dtype, bool turned, int ndim,
                             const int64_t *sizes, td_tensor **out) {
    td_status status = TD_OK;
    TD_TRY(td_tensor_empty(dtype, TD_DEVICE_CPU, ndim, sizes, out));
    int64_t n = (*out)->numel;
    TD_TRY(td_file_read(file, (*out)->data, n * (int64_t)td_dtype_size(dtype), at));
    if (turned)
        TD_TRY(td_elements_turn(dtype, (*out)->data, n));
done:
    return status;
}

td_status td_file_tensor(td_file *file, int64_t at, td_dtype dtype, bool turned, int ndim,
                         const int64_t *sizes, td_tensor **out) {
    int64_t size = (int64_t)td_dtype_size(dtype), bytes = td_numel(ndim, sizes);
    td_status status = TD_OK;
    *out = NULL;
    if (bytes < 0 || __builtin_mul_overflow(bytes, size, &bytes))
        return td_fail(TD_EVALUE, "its shape has more elements than can be counted");
    if (!td_file_has(file, at, bytes))
        return td_fail(TD_EVALUE, "its %lld bytes end beyond the file's %lld", (long long)bytes,
                       (long long)file->bytes);
    bool mapped = file->pages && bytes > 0 && at % size == 0 && (!turned || size == 1);
    TD_TRY(mapped ? map_tensor(file, at, dtype, ndim, sizes, out)
                  : read_tensor(file, at, dtype, turned, ndim, sizes, out));
    TD_TRY(td_elements_check(dtype, (*out)->data, (*out)->numel));
done:
    if (status) {
        td_release(*out);
        *out = NULL;
    }
    return status;
}
