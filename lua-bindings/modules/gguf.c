/* gguf.c: packed tensors of GGUF files (engine/io/blocks.h) and such files whole, for
 * lua/files/gguf.lua, which knows their headers. */
#include "engine/core/draft.h"
#include "engine/core/memory.h"
#include "engine/io/blocks.h"
#include "lua-bindings/modules/file.h"
#include "lua-bindings/modules/modules.h"
#include "lua-bindings/state/state.h"

enum { BUFFER = 4 << 20 };

/* _block_type(number or name): name, elements and bytes of a block, number, and whether it is
 * written; nothing where it isn't known. */
static int get_type(lua_State *L) {
    const td_block_type *type = lua_type(L, 1) == LUA_TNUMBER
                                    ? td_block_type_find(luaL_checkinteger(L, 1))
                                    : td_block_type_named(luaL_checkstring(L, 1));
    if (!type)
        return 0;
    lua_pushstring(L, type->name);
    lua_pushinteger(L, type->elements);
    lua_pushinteger(L, type->bytes);
    lua_pushinteger(L, type->number);
    lua_pushboolean(L, type->pack != NULL);
    return 5;
}

/* ---- reading ---- */

/* All blocks, a bufferful at a time. */
static td_status unpack_file(const td_file *file, int64_t at, const td_block_type *type, float *to,
                             int64_t n) {
    int64_t most = BUFFER / type->bytes;
    char *buffer = td_malloc((size_t)((n < most ? n : most) * type->bytes));
    td_status status = buffer || n == 0 ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    while (status == TD_OK && n > 0) {
        int64_t part = n < most ? n : most;
        TD_TRY(td_file_read(file, buffer, part * type->bytes, at));
        TD_TRY(td_blocks_unpack(type, buffer, to, part));
        at += part * type->bytes;
        to += part * type->elements;
        n -= part;
    }
done:
    td_free(buffer);
    return status;
}

/* Rows are whole blocks, and all of them lie in the file. */
static td_status count_blocks(const td_file *file, int64_t at, const td_block_type *type, int ndim,
                              const int64_t *sizes, int64_t *n) {
    int64_t bytes, count = td_numel(ndim, sizes);
    if (ndim == 0 || sizes[ndim - 1] % type->elements)
        return td_fail(TD_EVALUE, "rows of %s are multiples of %d elements", type->name,
                       type->elements);
    if (count < 0 || count > INT64_MAX / (int64_t)sizeof(float))
        return td_fail(TD_EVALUE, "its shape has more elements than can be counted");
    *n = count / type->elements;
    if (__builtin_mul_overflow(*n, type->bytes, &bytes) || !td_file_has(file, at, bytes))
        return td_fail(TD_EVALUE, "its %lld blocks of %d bytes end beyond the file", (long long)*n,
                       type->bytes);
    return TD_OK;
}

static td_status load(lua_State *L, const td_file *file, int64_t at, const td_block_type *type,
                      int ndim, const int64_t *sizes, tide_handle *out) {
    int64_t n = 0;
    td_status status = TD_OK;
    TD_TRY(count_blocks(file, at, type, ndim, sizes, &n));
    status = td_tensor_empty(TD_F32, TD_DEVICE_CPU, ndim, sizes, &out->tensor);
    if (status == TD_ENOMEM) {
        tide_free_memory(L, TIDE_STATE(L));
        status = td_tensor_empty(TD_F32, TD_DEVICE_CPU, ndim, sizes, &out->tensor);
    }
    TD_TRY(status);
    TD_TRY(unpack_file(file, at, type, out->tensor->data, n));
done:
    return status;
}

/* _blocks_read(file, at, number, sizes): packed elements from byte `at` on as float32; nil and why
 * where the file hasn't them. */
static int read_blocks(lua_State *L) {
    const td_file *file = tide_check_file(L, 1);
    lua_Integer at = luaL_checkinteger(L, 2);
    const td_block_type *type = td_block_type_find(luaL_checkinteger(L, 3));
    int64_t sizes[TD_MAX_DIMS];
    luaL_argcheck(L, type, 3, "a type of blocks expected");
    luaL_checktype(L, 4, LUA_TTABLE);
    int ndim = tide_read_sizes(L, 4, sizes);
    if (ndim < 0)
        return tide_tell_why(L, td_fail(TD_EVALUE, "its shape has what is no size"));
    tide_handle *handle = tide_push_handle(L);
    td_status status = load(L, file, at, type, ndim, sizes, handle);
    if (status)
        return tide_tell_why(L, status);
    tide_check_pressure(L, TIDE_STATE(L), handle->tensor);
    return 1;
}

/* ---- writing ---- */

/* A tensor of a file to be; rows of packed ones are whole blocks of float32. */
typedef struct part {
    const td_tensor *x;
    const td_block_type *type; /* NULL: as it is */
} part;

static td_status pack_elements(td_draft *draft, const part *p) {
    int64_t n = p->x->numel / p->type->elements, most = BUFFER / p->type->bytes;
    const float *from = p->x->data;
    char *buffer = td_malloc((size_t)((n < most ? n : most) * p->type->bytes));
    td_status status = buffer || n == 0 ? TD_OK : td_fail(TD_ENOMEM, "out of memory");
    while (status == TD_OK && n > 0) {
        int64_t some = n < most ? n : most;
        TD_TRY(td_blocks_pack(p->type, from, buffer, some));
        TD_TRY(td_draft_write(draft, buffer, (size_t)(some * p->type->bytes)));
        from += some * p->type->elements;
        n -= some;
    }
done:
    td_free(buffer);
    return status;
}

static int64_t bytes_of(const part *p) {
    return p->type ? p->x->numel / p->type->elements * p->type->bytes
                   : p->x->numel * (int64_t)td_dtype_size(p->x->dtype);
}

/* Zeros up to a multiple of the alignment, a power of two. */
static td_status pad(td_draft *draft, int64_t at, int64_t alignment) {
    static const char zeros[256];
    int64_t n = -at & (alignment - 1);
    td_status status = TD_OK;
    for (; status == TD_OK && n > 0; n -= (int64_t)sizeof zeros)
        status = td_draft_write(draft, zeros, n < (int64_t)sizeof zeros ? (size_t)n : sizeof zeros);
    return status;
}

static td_status write_file(const char *path, const char *header, size_t length, int64_t alignment,
                            int64_t n, const part *parts) {
    td_draft *draft = NULL;
    td_status status = TD_OK;
    TD_TRY(td_draft_open(path, &draft));
    TD_TRY(td_draft_write(draft, header, length));
    TD_TRY(pad(draft, (int64_t)length, alignment));
    for (int64_t k = 0; k < n; k++) {
        const part *p = &parts[k];
        TD_TRY(p->type ? pack_elements(draft, p)
                       : td_draft_write(draft, p->x->data, (size_t)bytes_of(p)));
        TD_TRY(pad(draft, bytes_of(p), alignment));
    }
    TD_TRY(td_draft_commit(draft));
done:
    td_draft_close(draft);
    return status;
}

/* _gguf_write(path, header, alignment, tensors, types): row-major tensors on the CPU, each behind
 * the other; types has the names of those that are packed, of float32 with rows of whole blocks. */
static int write_gguf(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    size_t length;
    const char *header = luaL_checklstring(L, 2, &length);
    lua_Integer alignment = luaL_checkinteger(L, 3);
    luaL_argcheck(L, alignment > 0 && (alignment & (alignment - 1)) == 0, 3, "a power of two");
    luaL_checktype(L, 4, LUA_TTABLE);
    luaL_checktype(L, 5, LUA_TTABLE);
    lua_Integer n = (lua_Integer)lua_rawlen(L, 4);
    part *parts = lua_newuserdatauv(L, (size_t)(n + 1) * sizeof *parts, 0);
    for (lua_Integer k = 0; k < n; k++) {
        tide_poll(L, k);
        lua_rawgeti(L, 4, k + 1);
        lua_rawgeti(L, 5, k + 1);
        const td_tensor *x = tide_check_tensor(L, -2, "write_gguf");
        const char *name = lua_tostring(L, -1);
        parts[k] = (part){x, name ? td_block_type_named(name) : NULL};
        const td_block_type *type = parts[k].type;
        luaL_argcheck(L, x->contiguous && td_tensor_device(x).type == TD_CPU, 4,
                      "row-major tensors");
        luaL_argcheck(L,
                      !type || (type->pack && x->dtype == TD_F32 && x->ndim > 0 &&
                                x->sizes[x->ndim - 1] % type->elements == 0),
                      5, "types that fit");
        lua_pop(L, 2);
    }
    tide_enter_engine(TIDE_STATE(L));
    td_status status = write_file(path, header, length, alignment, n, parts);
    if (status == TD_EINTR)
        tide_raise(L);
    if (status) /* says the path itself */
        return tide_error(L, "write_gguf: %s", td_error_message());
    return 0;
}

void tide_open_gguf(lua_State *L) {
    static const luaL_Reg functions[] = {{"_block_type", get_type},
                                         {"_blocks_read", read_blocks},
                                         {"_gguf_write", write_gguf},
                                         {NULL, NULL}};
    tide_set_functions(L, functions);
}
