/* bytes.c: the bytes of a file or a pipe; see bytes.h. */
#include "lua-bindings/modules/bytes.h"

#include "engine/core/draft.h"
#include "engine/core/interrupt.h"
#include "engine/io/read_range.h"
#include "lua-bindings/call/args.h"
#include "lua-bindings/modules/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { POLL_MS = 50, FIRST_BYTES = 1 << 16, READ_BYTES = 1 << 20 };

typedef struct source {
    lua_State *L;
    tide_handle *handle; /* owns the bytes */
    size_t held;
    int fd;
    bool waits; /* a pipe or a terminal: bytes come when they come */
} source;

static td_status fail_system(void) {
    return td_fail(TD_EIO, "%s", strerror(errno));
}

/* A buffer of `size` bytes with what is held in front. */
static td_status grow(source *s, int64_t size) {
    td_tensor *larger = NULL;
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &larger);
    if (status == TD_ENOMEM) {
        tide_free_memory(s->L, TIDE_STATE(s->L));
        status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &larger);
    }
    if (status)
        return status;
    if (s->held)
        memcpy(larger->data, s->handle->tensor->data, s->held);
    td_release(s->handle->tensor);
    s->handle->tensor = larger;
    return TD_OK;
}

static td_status make_room(source *s) {
    int64_t size = s->handle->tensor->numel;
    return (int64_t)s->held + TIDE_BYTES_BEHIND < size ? TD_OK : grow(s, size + size / 2);
}

/* A pipe without a writer yet reads as one that has ended; polling tells them apart. */
static td_status wait_for_bytes(const source *s) {
    struct pollfd one = {.fd = s->fd, .events = POLLIN};
    while (s->waits && poll(&one, 1, POLL_MS) <= 0)
        if (td_interrupt_requested())
            return td_interrupted();
    return td_interrupt_check();
}

/* *n: bytes that came, 0 at the end, below 0 for none yet. */
static td_status read_some(source *s, ssize_t *n) {
    td_status status = wait_for_bytes(s);
    if (status)
        return status;
    size_t room = (size_t)s->handle->tensor->numel - s->held - TIDE_BYTES_BEHIND;
    *n = read(s->fd, (char *)s->handle->tensor->data + s->held,
              room < READ_BYTES ? room : READ_BYTES);
    return *n < 0 && errno != EINTR && errno != EAGAIN ? fail_system() : TD_OK;
}

static td_status read_open(source *s) {
    struct stat info;
    if (fstat(s->fd, &info))
        return fail_system();
    if (S_ISDIR(info.st_mode))
        return td_fail(TD_EIO, "%s", strerror(EISDIR));
    bool regular = S_ISREG(info.st_mode);
    s->waits = !regular;
    /* One byte more tells the end of the file. */
    td_status status = grow(s, regular && info.st_size < INT64_MAX - FIRST_BYTES && info.st_size > 0
                                   ? info.st_size + 1 + TIDE_BYTES_BEHIND
                                   : FIRST_BYTES);
    for (ssize_t n = 1; status == TD_OK && n != 0;) {
        status = make_room(s);
        if (status == TD_OK)
            status = read_some(s, &n);
        if (status == TD_OK && n > 0)
            s->held += (size_t)n;
    }
    return status;
}

/* ---- gzip ---- */

/* One piece more of what `z` unpacks, into room that is made; *end: a member of the file ends. */
static td_status unpack_piece(source *to, z_stream *z, bool *end) {
    td_status status = make_room(to);
    if (status == TD_OK)
        status = td_interrupt_check();
    if (status)
        return status;
    size_t room = (size_t)to->handle->tensor->numel - to->held - TIDE_BYTES_BEHIND;
    z->next_out = (unsigned char *)to->handle->tensor->data + to->held;
    z->avail_out = room < READ_BYTES ? (unsigned)room : READ_BYTES;
    unsigned before = z->avail_out;
    int found = inflate(z, Z_NO_FLUSH);
    to->held += before - z->avail_out;
    *end = found == Z_STREAM_END;
    if (found == Z_MEM_ERROR)
        return td_fail(TD_ENOMEM, "out of memory");
    return found == Z_OK || *end ? TD_OK
                                 : td_fail(TD_EIO, "the packed file is cut short or damaged");
}

/* The bytes of all members, of which each begins as the first does. */
static td_status unpack_all(const source *from, source *to, z_stream *z) {
    unsigned char *at = from->handle->tensor->data, *stop = at + from->held;
    bool end = true;
    td_status status = TD_OK;
    while (status == TD_OK && !(end && at == stop)) {
        if (end && inflateReset(z) != Z_OK)
            return td_fail(TD_EIO, "the packed file is damaged");
        z->next_in = at;
        z->avail_in = stop - at < READ_BYTES ? (unsigned)(stop - at) : READ_BYTES;
        status = unpack_piece(to, z, &end);
        at = z->next_in;
    }
    return status;
}

static bool is_packed(const source *s) {
    return s->held > 2 && !memcmp(s->handle->tensor->data, "\x1F\x8B\x08", 3);
}

/* Put what gzip packed in the place of what was read. */
static td_status unpack(source *s) {
    enum { GZIP_ALONE = 16 + MAX_WBITS };
    z_stream z = {0};
    source to = {.L = s->L, .handle = tide_push_handle(s->L)};
    if (inflateInit2(&z, GZIP_ALONE) != Z_OK)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status = grow(&to, (int64_t)s->held < FIRST_BYTES ? FIRST_BYTES : (int64_t)s->held);
    if (status == TD_OK)
        status = unpack_all(s, &to, &z);
    inflateEnd(&z);
    td_release(s->handle->tensor);
    s->handle->tensor = to.handle->tensor;
    to.handle->tensor = NULL;
    s->held = to.held;
    lua_pop(s->L, 1);
    return status;
}

/* ---- mapping ---- */

enum { MAP_FROM = 1 << 16, MAGIC = 3 };

static void unmap(void *owner, void *data) {
    munmap(data, (size_t)(uintptr_t)owner);
}

/* The file's pages in front of one of zeros, where a NUL is behind the last byte. */
static td_status map_pages(int fd, size_t size, td_tensor **out) {
    size_t whole = size + (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, whole, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status = TD_OK;
    if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0) ==
        MAP_FAILED)
        status = fail_system();
    int64_t n = (int64_t)size;
    if (status == TD_OK)
        status = td_tensor_from_memory(TD_U8, 1, &n, at, unmap, (void *)(uintptr_t)whole, out);
    if (status)
        munmap(at, whole);
    return status;
}

/* Is it a large file as it is? */
static bool is_mappable(int fd, size_t *size) {
    struct stat info;
    unsigned char magic[MAGIC];
    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_size < MAP_FROM ||
        pread(fd, magic, MAGIC, 0) != MAGIC)
        return false;
    *size = (size_t)info.st_size;
    return memcmp(magic, "\x1F\x8B\x08", MAGIC) != 0;
}

static td_status read_or_map(source *s, bool map) {
    if (map && is_mappable(s->fd, &s->held) &&
        map_pages(s->fd, s->held, &s->handle->tensor) == TD_OK)
        return TD_OK;
    s->held = 0;
    td_status status = read_open(s);
    close(s->fd); /* unpacking may raise an error */
    s->fd = -1;
    if (status == TD_OK && is_packed(s))
        status = unpack(s);
    if (status == TD_OK)
        memset((char *)s->handle->tensor->data + s->held, 0, TIDE_BYTES_BEHIND);
    return status;
}

/* A file is opened once: who writes into a pipe would see its reader go. */
static char *bytes_of(lua_State *L, const char *path, const char *fname, bool map, size_t *held) {
    source s = {.L = L, .handle = tide_push_handle(L)};
    s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    td_status status = s.fd < 0 ? fail_system() : read_or_map(&s, map);
    if (s.fd >= 0)
        close(s.fd);
    if (status == TD_EINTR)
        tide_raise(L);
    if (status)
        tide_error(L, "%s: cannot read '%s': %s", fname, path, td_error_message());
    *held = s.held;
    return s.handle->tensor->data;
}

char *tide_map_bytes(lua_State *L, const char *path, const char *fname, size_t *held) {
    return bytes_of(L, path, fname, true, held);
}

char *tide_read_bytes(lua_State *L, const char *path, const char *fname, size_t *held) {
    return bytes_of(L, path, fname, false, held);
}

/* ---- for modules in Lua ---- */

/* `n` bytes from a place on, of a file that has them. */
static td_status read_part(source *s, const char *path, int64_t at, int64_t n) {
    struct stat info;
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (s->fd < 0)
        return fail_system();
    td_status status = fstat(s->fd, &info) ? fail_system() : TD_OK;
    if (status == TD_OK && (at < 0 || n < 0 || at > info.st_size || n > info.st_size - at))
        status = td_fail(TD_EIO, "cut off");
    if (status == TD_OK)
        status = grow(s, n);
    if (status == TD_OK)
        status = td_read_range(s->fd, s->handle->tensor->data, n, at);
    close(s->fd);
    return status;
}

/* _bytes(path, fname[, at, n]): all of a file, or n bytes from `at` (from 0) on, as a uint8 tensor.
 */
static int push_bytes(lua_State *L) {
    const char *path = luaL_checkstring(L, 1), *fname = luaL_checkstring(L, 2);
    if (!lua_isnoneornil(L, 3)) {
        int64_t at = luaL_checkinteger(L, 3), n = luaL_checkinteger(L, 4);
        source s = {.L = L, .handle = tide_push_handle(L)};
        td_status status = read_part(&s, path, at, n);
        if (status == TD_EINTR)
            tide_raise(L);
        if (status)
            tide_error(L, "%s: cannot read '%s': %s", fname, path, td_error_message());
        return 1;
    }
    size_t held;
    tide_read_bytes(L, path, fname, &held);
    td_tensor *x = tide_check_tensor(L, -1, "bytes");
    TIDE_CHECK(L, td_tensor_set_shape(x, 1, &(int64_t){(int64_t)held}, &(int64_t){1}));
    return 1;
}

/* Bytes of all elements, where they lie in a row on the CPU; -1: they don't. */
static int64_t bytes_in_row(const td_tensor *x) {
    bool here = x->layout == TD_STRIDED && x->contiguous && td_tensor_device(x).type == TD_CPU;
    return here ? x->numel * (int64_t)td_dtype_size((td_dtype)x->dtype) : -1;
}

/* _string(x, at, n): bytes of a tensor's elements, from 0 on, as a string. */
static int push_string(lua_State *L) {
    const td_tensor *x = tide_check_tensor(L, 1, "bytes");
    int64_t at = luaL_checkinteger(L, 2), n = luaL_checkinteger(L, 3), held = bytes_in_row(x);
    luaL_argcheck(L, held >= 0, 1, "elements in a row expected");
    luaL_argcheck(L, at >= 0 && n >= 0 && at <= held && n <= held - at, 2,
                  "beyond the end of the bytes");
    luaL_Buffer text;
    char *to = luaL_buffinitsize(L, &text, (size_t)n);
    x = tide_check_tensor(L, 1, "bytes");
    if (n && bytes_in_row(x) >= at + n)
        memcpy(to, (const char *)x->data + at, (size_t)n);
    luaL_pushresultsize(&text, (size_t)n);
    return 1;
}

static td_status write_parts(lua_State *L, td_draft *draft) {
    td_status status = TD_OK;
    for (int k = 3; k <= lua_gettop(L) && status == TD_OK; k++) {
        size_t len = 0;
        const void *at = lua_isstring(L, k) ? lua_tolstring(L, k, &len) : NULL;
        const td_tensor *x = at ? NULL : tide_to_tensor(L, k);
        if (x) {
            at = x->data;
            len = (size_t)x->numel * td_dtype_size(x->dtype);
        }
        if (len)
            status = td_draft_write(draft, at, len);
    }
    return status;
}

/* _write(path, fname, ...): a file of these strings and contiguous CPU tensors, whole or not at
 * all.
 */
static int write_bytes(lua_State *L) {
    const char *path = luaL_checkstring(L, 1), *fname = luaL_checkstring(L, 2);
    td_draft *draft;
    for (int k = 3; k <= lua_gettop(L); k++)
        luaL_argcheck(L,
                      lua_type(L, k) == LUA_TSTRING || tide_check_tensor(L, k, fname)->contiguous,
                      k, "strings and contiguous tensors expected");
    tide_enter_engine(TIDE_STATE(L));
    td_status status = td_draft_open(path, &draft);
    if (status == TD_OK) {
        status = write_parts(L, draft);
        if (status == TD_OK)
            status = td_draft_commit(draft);
        td_draft_close(draft);
    }
    if (status == TD_EINTR)
        tide_raise(L);
    if (status) /* says the path itself */
        return tide_error(L, "%s: %s", fname, td_error_message());
    return 0;
}

/* _sha256(bytes): the digest of a uint8 tensor, 32 bytes as a string. */
static int push_digest(lua_State *L) {
    unsigned char digest[crypto_hash_sha256_BYTES];
    const td_tensor *x = tide_check_tensor(L, 1, "bytes");
    luaL_argcheck(L, x->dtype == TD_U8 && x->contiguous, 1, "uint8 bytes in a row expected");
    crypto_hash_sha256(digest, x->data, (unsigned long long)x->numel);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* _checksum(x): BLAKE2b of the elements of a contiguous tensor of any dtype, 64 hexadecimal digits;
 * three times as quick as SHA-256. `b2sum -l 256` gives the same of the same bytes. */
static int push_checksum(lua_State *L) {
    enum { BYTES = 32, PIECE = 16 << 20 };
    unsigned char digest[BYTES];
    char text[2 * BYTES + 1];
    crypto_generichash_state state;
    const td_tensor *x = tide_hold_elements(L, 1, "checksum");
    luaL_argcheck(L, x->contiguous && td_tensor_device(x).type == TD_CPU, 1,
                  "elements in a row on the CPU expected");
    size_t n = (size_t)x->numel * td_tensor_itemsize(x);
    if (sodium_init() < 0) /* chooses instructions; does nothing the second time */
        return tide_error(L, "libsodium can't be used");
    crypto_generichash_init(&state, NULL, 0, BYTES);
    for (size_t at = 0; at < n; at += PIECE) {
        TIDE_CHECK(L, td_interrupt_check());
        crypto_generichash_update(&state, (const unsigned char *)x->data + at,
                                  n - at < PIECE ? n - at : PIECE);
    }
    crypto_generichash_final(&state, digest, BYTES);
    lua_pushstring(L, sodium_bin2hex(text, sizeof text, digest, BYTES));
    return 1;
}

/* _make_folder(path [, mode]): make it, and those around it, with the permissions that a mode and
 * the umask leave (as if nothing is said: for this user alone); whether it is there, and why not.
 */
static int make_folder(lua_State *L) {
    size_t len;
    const char *path = luaL_checklstring(L, 1, &len);
    mode_t mode = (mode_t)luaL_optinteger(L, 2, 0700);
    char *copy = memcpy(lua_newuserdatauv(L, len + 1, 0), path, len + 1);
    int code = 0;
    for (char *at = copy + (len > 0); code == 0; at++)
        if (*at == '/' || *at == '\0') {
            char end = *at;
            *at = '\0';
            code = mkdir(copy, mode) && errno != EEXIST;
            *at = end;
            if (end == '\0')
                break;
        }
    lua_pushboolean(L, code == 0);
    lua_pushstring(L, code ? strerror(errno) : NULL);
    return 2;
}

void tide_open_bytes(lua_State *L) {
    static const luaL_Reg functions[] = {{"_bytes", push_bytes},
                                         {"_string", push_string},
                                         {"_write", write_bytes},
                                         {"_sha256", push_digest},
                                         {"_checksum", push_checksum},
                                         {"_make_folder", make_folder},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
