/* npz.c: arrays in an archive of NumPy's (.npz) as tensors, and tensors as such an archive, for
 * lua/files/numpy.lua. Where an array lies, lua/files/zip.lua has found; it knows nothing of
 * arrays, and this file reads no directory. Archives are written by engine/io/zip.h.
 */
#include "engine/core/interrupt.h"
#include "engine/io/npy.h"
#include "engine/io/read_range.h"
#include "engine/io/zip.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum { PIECE = 1 << 20, STORED = 0, DEFLATED = 8, MOST_OF_A_BYTE = 1032 };

/* The checksum of more bytes. */
static td_status add_sum(uLong *sum, const void *bytes, size_t n) {
    for (const unsigned char *at = bytes; n > 0;) {
        size_t part = n < PIECE ? n : PIECE;
        td_status status = td_interrupt_check();
        if (status)
            return status;
        *sum = crc32(*sum, at, (uInt)part);
        at += part;
        n -= part;
    }
    return TD_OK;
}

/* ---- reading ---- */

/* An entry of the archive, as its directory has it. */
typedef struct entry {
    int64_t at, packed, size;
    lua_Integer method;
    uLong sum;
} entry;

static td_status new_bytes(lua_State *L, int64_t size, tide_handle *out) {
    td_status status = td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &out->tensor);
    if (status != TD_ENOMEM)
        return status;
    tide_free_memory(L, TIDE_STATE(L));
    return td_tensor_empty(TD_U8, TD_DEVICE_CPU, 1, &size, &out->tensor);
}

static td_status read_packed(const char *path, const entry *e, td_tensor *to) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return td_fail(TD_EIO, "%s", strerror(errno));
    td_status status = td_read_range(fd, to->data, e->packed, e->at);
    close(fd);
    return status;
}

static td_status fail_damaged(void) {
    return td_fail(TD_EIO, "damaged: what is packed is not what its directory says");
}

static td_status inflate_all(z_stream *z, const entry *e, unsigned char *from, unsigned char *to) {
    unsigned char *stop = from + e->packed, *end = to + e->size;
    int found = Z_OK;
    z->next_in = from;
    z->next_out = to;
    while (found == Z_OK) {
        td_status status = td_interrupt_check();
        if (status)
            return status;
        z->avail_in = stop - z->next_in < PIECE ? (uInt)(stop - z->next_in) : PIECE;
        z->avail_out = end - z->next_out < PIECE ? (uInt)(end - z->next_out) : PIECE;
        found = inflate(z, Z_NO_FLUSH); /* Z_BUF_ERROR where neither moves on */
    }
    if (found == Z_MEM_ERROR)
        return td_fail(TD_ENOMEM, "out of memory");
    return found == Z_STREAM_END && z->next_out == end ? TD_OK : fail_damaged();
}

static td_status unpack(const entry *e, td_tensor *from, td_tensor *to) {
    z_stream z = {0};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return td_fail(TD_ENOMEM, "out of memory");
    td_status status = inflate_all(&z, e, from->data, to->data);
    inflateEnd(&z);
    return status;
}

/* The bytes of an entry, unpacked and checked. */
static td_status load_entry(lua_State *L, const char *path, const entry *e, tide_handle *packed,
                            tide_handle *bytes) {
    uLong sum = crc32(0, NULL, 0);
    td_status status = TD_OK;
    if (e->packed < 0 || e->size < 0 ||
        (e->method == STORED ? e->packed != e->size : e->size / MOST_OF_A_BYTE > e->packed))
        return fail_damaged();
    TD_TRY(new_bytes(L, e->packed, e->method == STORED ? bytes : packed));
    TD_TRY(read_packed(path, e, (e->method == STORED ? bytes : packed)->tensor));
    if (e->method == DEFLATED) {
        TD_TRY(new_bytes(L, e->size, bytes));
        TD_TRY(unpack(e, packed->tensor, bytes->tensor));
    }
    TD_TRY(add_sum(&sum, bytes->tensor->data, (size_t)e->size));
    if (sum != e->sum)
        status = fail_damaged();
done:
    td_release(packed->tensor);
    packed->tensor = NULL;
    return status;
}

static td_status read_array(td_tensor *bytes, td_tensor **out) {
    size_t at = 0;
    td_status status = td_npy_read(bytes, (size_t)bytes->numel, &at, out);
    if (status == TD_OK && at < (size_t)bytes->numel)
        status = td_fail(TD_EVALUE, "more than one array");
    return status;
}

static entry check_entry(lua_State *L) {
    entry e = {luaL_checkinteger(L, 2), luaL_checkinteger(L, 3), luaL_checkinteger(L, 4),
               luaL_checkinteger(L, 5), (uLong)luaL_checkinteger(L, 6)};
    luaL_argcheck(L, e.method == STORED || e.method == DEFLATED, 5, "neither stored nor deflated");
    return e;
}

/* _zip_entry(path, at, packed, size, method, sum): its bytes, a uint8 tensor; nil and why. */
static int read_bytes(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    entry e = check_entry(L);
    tide_handle *packed = tide_push_handle(L), *bytes = tide_push_handle(L);
    td_status status = load_entry(L, path, &e, packed, bytes);
    return tide_value_or_why(L, status);
}

/* _npz_entry(path, at, packed, size, method, sum): an array; nil, why and whether it is whole but
 * of a dtype that Tide has not. */
static int read_entry(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    entry e = check_entry(L);
    tide_handle *packed = tide_push_handle(L), *bytes = tide_push_handle(L);
    tide_handle *out = tide_push_handle(L);
    td_status status = load_entry(L, path, &e, packed, bytes);
    if (status == TD_OK)
        status = read_array(bytes->tensor, &out->tensor);
    int n = tide_value_or_why(L, status);
    if (status == TD_OK)
        return n;
    lua_pushboolean(L, status == TD_EDTYPE);
    return n + 1;
}

/* ---- writing ---- */

/* An array as NumPy writes one. */
static td_status put_array(const void *content, td_sink *to) {
    const td_tensor *x = content;
    char head[TD_NPY_HEADER];
    size_t first = td_npy_header(x, head);
    td_status status = td_sink_put(to, head, first);
    return status ? status : td_sink_put(to, x->data, (size_t)x->numel * td_dtype_size(x->dtype));
}

/* _npz_write(path, names, tensors, fname): the lists and what is in them are the caller's alone;
 * each lies row by row on the CPU and has a dtype of NumPy's. */
static int write_npz(lua_State *L) {
    const char *path = luaL_checkstring(L, 1), *fname = luaL_checkstring(L, 4);
    luaL_checktype(L, 2, LUA_TTABLE);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 2);
    td_zip_file *list = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *list, 0);
    for (lua_Integer k = 0; k < n; k++) {
        tide_poll(L, k);
        lua_rawgeti(L, 2, k + 1);
        lua_rawgeti(L, 3, k + 1);
        td_tensor *x = tide_check_tensor(L, -1, fname);
        list[k] = (td_zip_file){.suffix = ".npy", .put = put_array, .content = x};
        list[k].name = luaL_checklstring(L, -2, &list[k].length);
        luaL_argcheck(L, td_npy_holds(x), 3, "row-major tensors for NumPy expected");
        lua_pop(L, 2);
    }
    tide_enter_engine(TIDE_STATE(L));
    td_status status = td_zip_write(path, n, list);
    if (status == TD_EINTR)
        tide_raise(L);
    if (status) /* says the path itself */
        return tide_error(L, "%s: %s", fname, td_error_message());
    return 0;
}

void tide_open_npz(lua_State *L) {
    static const luaL_Reg functions[] = {{"_npz_entry", read_entry},
                                         {"_npz_write", write_npz},
                                         {"_zip_entry", read_bytes},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
